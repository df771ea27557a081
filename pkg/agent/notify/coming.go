package notify

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// Coming is what happens to a plan or a policy at an instant to come.
type Coming struct {
	About   types.NamespacedName
	What    string    // how the title ends: runs, permits change, sleeps
	At      time.Time // zero: nothing comes
	Created time.Time // when the document was made
	Words   string
}

// comingKey is one thing that comes: a plan's slot, say.
type comingKey struct {
	about types.NamespacedName
	what  string
}

// Ahead tells once of what comes, as long before as the configuration says, and returns when
// it is to be told; zero: not as things are. What was due before this agent led, its
// predecessor has told, unless the document came later.
func (h *Notifier) Ahead(kind string, c Coming) time.Time {
	before, key := h.Settings().Before, comingKey{c.About, c.What}
	last, looked := h.look(key)
	if h.DryRun || before == nil {
		return time.Time{}
	}
	now, due := h.Now(), c.At.Add(-before.Duration)
	switch {
	case !now.Before(c.At), last.Equal(c.At):
		return time.Time{}
	case now.Before(due):
		return due
	}
	h.note(key, c.At)
	if since := h.Since(); !looked && due.Before(since) && c.Created.Before(since) {
		return time.Time{}
	}
	h.enqueue(message{
		on: ahead, about: c.About, title: fmt.Sprintf("%s %s %s in %s", kind, c.About, c.What, words(c.At.Sub(now))),
		text: document.Cut(c.Words, document.MaxMessage),
	})
	return time.Time{}
}

// look says what was told of something last, and whether it was looked at before.
func (h *Notifier) look(key comingKey) (last time.Time, looked bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last, looked = h.told[key]
	if !looked {
		h.told[key] = time.Time{}
	}
	return last, looked
}

func (h *Notifier) note(key comingKey, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told[key] = at
}

// words are a time in whole seconds: 30m, 1h, 1h5m, 40s.
func words(d time.Duration) string {
	text := d.Round(time.Second).String()
	for _, none := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, none) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// ahead is what notifications.before asks for.
const ahead agentconfig.NotifyFor = "before"

// Forget lets go of what was told of a document that is gone.
func (h *Notifier) Forget(k types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key := range h.told {
		if key.about == k {
			delete(h.told, key)
		}
	}
}
