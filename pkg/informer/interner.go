package informer

import "sync"

// Interner keeps one copy of texts that stand in many objects: the keys of annotations,
// the names of namespaces.
type Interner struct {
	mu    sync.Mutex
	texts map[string]string
}

// maxWords bounds them; what is new beyond is not shared (a guess).
const maxWords = 10_000

// NewInterner has no texts yet.
func NewInterner() *Interner { return &Interner{texts: map[string]string{}} }

// Intern is the copy that is kept of a text.
func (w *Interner) Intern(text string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if have, known := w.texts[text]; known {
		return have
	}
	if len(w.texts) < maxWords {
		w.texts[text] = text
	}
	return text
}

// Keys is a map of its own size with shared keys.
func (w *Interner) Keys(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[w.Intern(k)] = v
	}
	return out
}
