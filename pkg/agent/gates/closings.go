package gates

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
)

// writes count how often something was written on an object, by whatever policy and for whatever
// reason, so that two that undo each other, or one gate that undoes itself, do not do so as fast as
// they can.
type writes struct {
	limit, reset time.Duration // the longest pause, and how long it takes until all is forgotten

	mu    sync.Mutex
	of    map[closedField]backoff
	swept time.Time // when those were last forgotten that were left in peace
}

// closedField is a field of an object that gates close; without a pointer it is what they tell of it.
type closedField struct {
	uid     types.UID
	pointer string
}

type backoff struct {
	times int
	last  time.Time
}

// maxBackoff is how long an object that does not stay closed is left open, and backoffReset how
// long it takes until that is forgotten (guesses).
const (
	maxBackoff   = 5 * time.Minute
	backoffReset = 15 * time.Minute
)

// maxStatusBackoff and statusBackoffReset are the same for a status that does not stay as it was
// written (guesses: whether change waits is looked at once a minute, and may really change as often).
const (
	maxStatusBackoff   = time.Minute
	statusBackoffReset = 3 * time.Minute
)

// pauses are those between writes of one object.
type pauses struct {
	closings *writes // of fields
	statuses *writes // of what is told of an object, where its field stays as it is
}

func newPauses() pauses {
	return pauses{closings: newWrites(maxBackoff, backoffReset), statuses: newWrites(maxStatusBackoff, statusBackoffReset)}
}

func newWrites(limit, reset time.Duration) *writes {
	return &writes{limit: limit, reset: reset, of: map[closedField]backoff{}}
}

func (b backoff) next(limit time.Duration) time.Time {
	if b.times < 3 { // a person's single attempt is answered at once
		return b.last
	}
	return b.last.Add(min(time.Second<<min(b.times-1, 10), limit))
}

func closes(a knob.Action) bool { return a == knob.Closing || a == knob.ClosesAgain }

// until is until when a field is left as it is; zero: it may be written now.
func (c *writes) until(f closedField, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.of[f]
	if next := b.next(c.limit); now.Sub(b.last) <= c.reset && next.After(now) {
		return next
	}
	return time.Time{}
}

// note counts what was written.
func (c *writes) note(f closedField, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	forgotten := func(_ closedField, b backoff) bool { return now.Sub(b.last) > c.reset }
	if now.Sub(c.swept) > c.reset {
		maps.DeleteFunc(c.of, forgotten)
		c.swept = now
	}
	b := c.of[f]
	if forgotten(f, b) {
		b.times = 0
	}
	c.of[f] = backoff{times: b.times + 1, last: now}
}

// leftOpen is until when a field is left open that does not stay closed; zero: it may be closed now.
func (g *Controller) leftOpen(w *gateWatch, o *gateObject, a knob.Action, now time.Time) time.Time {
	if !closes(a) {
		return time.Time{}
	}
	return g.pauses.closings.until(w.field(o), now)
}

// counted counts what was written on an object: a closing, or what is told of it alone.
func (g *Controller) counted(w *gateWatch, o *gateObject, v knob.Verdict, now time.Time) {
	switch {
	case closes(v.Action):
		g.pauses.closings.note(w.field(o), now)
	case v.Patch == nil:
		g.pauses.statuses.note(closedField{uid: o.UID}, now)
	}
}

// field is what of an object a watch closes.
func (w *gateWatch) field(o *gateObject) closedField {
	return closedField{o.UID, w.knob.Pointer()}
}

// contested says that an object does not stay closed, and why; a reason that was found before is
// kept.
func (w *gateWatch) contested(o *gateObject, a knob.Action) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := cache.NewObjectName(o.Namespace, o.Name).String()
	if known := w.problems[name]; known != "" {
		return known
	}
	memory, _ := knob.ReadMemory(o.Annotations[annotations.StatusGate])
	others := slices.DeleteFunc(slices.Clone(memory[w.knob.Pointer()].By), func(by string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(w.policies)), func(k types.NamespacedName) bool { return k.String() == by })
	})
	by, why := "is opened by somebody again and again", "is it set otherwise in what is applied, as from Git?"
	switch label, undoes := w.undoesItself(o); {
	case undoes:
		by, why = "does not stay closed", fmt.Sprintf("the gate sets the label %s, by which it selects its objects, so that it no longer names what it has closed: select by another label", label)
	case len(others) > 0:
		by, why = "does not stay closed", fmt.Sprintf("%s of it is also set by policy %s, to another value: give both gates the same closed", w.knob.Pointer(), strings.Join(others, ", "))
	case a == knob.Closing:
		by, why = "does not stay closed", "does what its policy says or names change every few moments?"
	}
	return fmt.Sprintf("%s/%s %s, and the agent closes it after longer and longer pauses: %s", w.kind.Kind, o.Name, by, why)
}

// undoesItself says whether a gate of a watch names an object only until it has closed it, by the
// label that is its knob. The watch's lock is held.
func (w *gateWatch) undoesItself(o *gateObject) (label string, undoes bool) {
	if len(w.knob.Path) != 3 || w.knob.Path[0] != "metadata" || w.knob.Path[1] != "labels" {
		return "", false
	}
	label = w.knob.Path[2]
	shut := maps.Clone(o.Labels)
	delete(shut, label)
	if text, is := w.knob.Closed.V.(string); is {
		if shut == nil {
			shut = map[string]string{}
		}
		shut[label] = text
	}
	for _, entries := range w.policies {
		for _, e := range entries {
			if !e.Leaving && e.Matches(o.Name, o.Labels) && !e.Matches(o.Name, shut) {
				return label, true
			}
		}
	}
	return "", false
}

// orphans says that an object cannot be closed, because its controller might find it no more by the
// label that is the knob, and make another one in its place, which would be closed in turn.
func (w *gateWatch) orphans(o *gateObject) string {
	if o.controller == "" || w.knob.Name != "" || w.knob.Path[0] != "metadata" || w.knob.Path[1] != "labels" {
		return ""
	}
	label := w.knob.Path[2]
	if _, there := o.Labels[label]; !there {
		return ""
	}
	return fmt.Sprintf("%s/%s is not closed: it belongs to %s, which might find it by its label %s, and make another one: name a label that it has not, or an annotation", w.kind.Kind, o.Name, o.controller, label)
}
