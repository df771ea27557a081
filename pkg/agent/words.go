package agent

import "sync"

// words keep one copy of texts that stand in many objects: the keys of annotations,
// the names of namespaces.
type words struct {
	mu    sync.Mutex
	known map[string]string
}

// mostWords bounds them; what is new beyond is not shared (a guess).
const mostWords = 10_000

func newWords() *words { return &words{known: map[string]string{}} }

// of is the copy that is kept of a text.
func (w *words) of(text string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if have, known := w.known[text]; known {
		return have
	}
	if len(w.known) < mostWords {
		w.known[text] = text
	}
	return text
}

// keys is a map of its own size with shared keys.
func (w *words) keys(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[w.of(k)] = v
	}
	return out
}
