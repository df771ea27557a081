package notify

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// Upcoming is what happens to a plan or a policy at an instant to come.
type Upcoming struct {
	About types.NamespacedName
	What  string    // how the title ends: runs, permits change, sleeps
	At    time.Time // zero: nothing comes
	Words string
	// Announced is the instant that was told last, as Claim wrote it on the document: by this
	// agent, or by one that led before.
	Announced string
	// Claim writes on the document that this instant is told, and fails where somebody
	// wrote there meanwhile.
	Claim func(told string) error
}

// CannotBegin notes why what comes could not begin as things are; nothing where why is empty. what is how
// the title ends then.
func (c *Upcoming) CannotBegin(what, why string) {
	if why == "" {
		return
	}
	c.What = what
	c.Words += "; as things are it cannot begin: " + why
}

// claimPause is how long one waits that could not write what it is to tell (a guess: what
// hinders is mostly that the watch is behind).
const claimPause = time.Second

// Ahead tells once of what comes, as long before as the configuration says, and returns when
// to look again; zero: not as things are. What was due while nobody led is told late. The
// claim comes before the message: an agent that dies between the two has told nobody, and
// one that was told twice would trust neither.
func (h *Notifier) Ahead(kind string, c Upcoming) time.Time {
	before := h.Settings().Before
	if h.DryRun || before == nil {
		return time.Time{}
	}
	now, due, instant := h.Now(), c.At.Add(-before.Duration), c.At.UTC().Format(time.RFC3339)
	switch {
	case !now.Before(c.At), c.Announced == instant:
		return time.Time{}
	case now.Before(due):
		return due
	}
	if err := c.Claim(instant); err != nil {
		h.Log.Debug("could not record a notification in advance", "object", c.About.String(), "error", err.Error())
		return now.Add(claimPause)
	}
	h.enqueue(message{
		on: ahead, about: c.About, title: fmt.Sprintf("%s %s %s in %s", kind, c.About, c.What, words(c.At.Sub(now))),
		text: document.Cut(c.Words, document.MaxMessage),
	})
	return time.Time{}
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
