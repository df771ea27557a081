package run

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Drift is a change of what a step left, by somebody else, while the run lives.
type Drift struct {
	Object   string        `json:"object"`             // Kind/name
	Field    string        `json:"field,omitempty"`    // empty: the object is gone
	Want     string        `json:"want,omitempty"`     // as the step left it, cut
	Value    string        `json:"value,omitempty"`    // as it is, cut
	Manager  string        `json:"manager,omitempty"`  // field manager that wrote it; empty: nobody says
	At       *time.Time    `json:"at,omitempty"`       // when that manager wrote
	SeenAt   time.Time     `json:"seenAt,omitzero"`    //
	Accepted *intent.Actor `json:"accepted,omitempty"` // who let the run go on all the same
	Over     *time.Time    `json:"over,omitempty"`     // it was seen to be as the step left it again
	// Also are further changes that were seen at the same look, and are accepted with this one.
	Also []Drift `json:"also,omitempty"`
	// Earlier are changes of the same step that were accepted before this one, oldest first.
	Earlier []Drift `json:"earlier,omitempty"`
	// AllAccepted says that more were accepted than are kept: then every other change is, too.
	AllAccepted bool `json:"allAccepted,omitempty"`
}

// maxAccepted bounds what one step keeps of accepted changes: four times what one look tells.
const maxAccepted = 4 * MaxFields

// MaxFields is how many changed fields of an object one look tells (a guess).
const MaxFields = 8

// AcceptedChanges are the changes of the step in spite of which somebody let the run go on, oldest
// first, and whether there were more than these. Of a field that a manager changed again and again,
// it has the newest.
func (d *Drift) AcceptedChanges() (list []Drift, all bool) {
	if d == nil {
		return nil, false
	}
	list = slices.Clone(d.Earlier)
	if d.Accepted != nil {
		for _, one := range d.flat() {
			one.Accepted = d.Accepted
			list = slices.DeleteFunc(list, func(old Drift) bool { return old.Field == one.Field && old.Manager == one.Manager })
			list = append(list, one)
		}
	}
	return list[max(len(list)-maxAccepted, 0):], d.AllAccepted || len(list) > maxAccepted
}

// flat are the changes that were seen at one look, one by one.
func (d *Drift) flat() []Drift {
	list := append([]Drift{*d}, d.Also...)
	for i := range list {
		list[i].Also, list[i].Earlier, list[i].AllAccepted = nil, nil, false
		if list[i].SeenAt.IsZero() {
			list[i].SeenAt = d.SeenAt
		}
	}
	return list
}

// Without is what is left of a look without the changes that are to be dropped; nil: nothing.
func (d *Drift) Without(drop func(Drift) bool) *Drift {
	if d == nil {
		return nil
	}
	return DriftOf(slices.DeleteFunc(d.flat(), drop))
}

// DriftOf are changes that were seen at one look, in one; nil: there are none.
func DriftOf(changes []Drift) *Drift {
	if len(changes) == 0 {
		return nil
	}
	d := changes[0]
	d.Also = changes[1:]
	return &d
}

// Accepts says whether a change is one that somebody accepted: the same field has the same value, or
// the same manager has written it again. A value that is not shown in full is the same only by the
// same manager.
func (d *Drift) Accepts(other Drift) bool {
	list, all := d.AcceptedChanges()
	return all || slices.ContainsFunc(list, func(c Drift) bool {
		full := c.Value != HiddenValue && !strings.HasSuffix(c.Value, document.Ellipsis)
		same := c.Value == other.Value && (full || c.Manager == other.Manager)
		return c.Field == other.Field && (same || c.Manager != "" && c.Manager == other.Manager)
	})
}

// Same says whether two looks saw the same: an open drift that is seen again is no news.
func (d *Drift) Same(other Drift) bool {
	same := func(a, b Drift) bool {
		return a.Field == b.Field && a.Value == b.Value && a.Manager == b.Manager
	}
	return same(*d, other) && slices.EqualFunc(d.Also, other.Also, same)
}

// HiddenValue stands for a value that is secret.
const HiddenValue = "(hidden)"

// IsOpen says whether it holds a run: neither over nor accepted.
func (d *Drift) IsOpen() bool { return d != nil && d.Accepted == nil && d.Over == nil }

// Said says who changed what, and when, in one sentence without an end.
func (d Drift) Said() string {
	text := "somebody"
	if d.Manager != "" {
		text = d.Manager
	}
	if d.Field == "" {
		text += " deleted " + d.Object
	} else {
		text += fmt.Sprintf(" changed %s of %s from %s to %s", d.Field, d.Object, d.Want, d.Value)
		text += d.also()
	}
	at := d.SeenAt
	if d.At != nil {
		at = *d.At
	}
	return document.Cut(text, document.MaxMessage/2) + " at " + at.UTC().Format(time.RFC3339)
}

// also names the other fields that were seen changed: " (and spec.paused, 2 more)". It is all that one
// look tells.
func (d Drift) also() string {
	const most = MaxFields - 1
	var names []string
	for _, one := range d.Also[:min(len(d.Also), most)] {
		names = append(names, one.Field)
	}
	if n := len(d.Also) - most; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	if len(names) == 0 {
		return ""
	}
	return " (and " + strings.Join(names, ", ") + ")"
}

// HeldByDrift says whether somebody changed the effect of a step of the run, and it is not only to be
// told: then whoever resumes the run accepts that.
func (r Run) HeldByDrift(rec Record) bool {
	return rec.Drift.IsOpen() && r.Spec.OnDrift != plan.DriftIgnore
}

// OpenDrifts are the steps whose effect somebody changed, while that stands.
func (j Journal) OpenDrifts() []Record {
	var out []Record
	for _, rec := range j.Steps {
		if rec.Drift.IsOpen() {
			out = append(out, rec)
		}
	}
	return out
}

// Bounds of what is said of drifts: a message has all of it, and the command after it (guesses).
const (
	maxDriftMessage = document.MaxMessage * 3 / 4
	maxDriftsTold   = 5
)

// DriftMessage says what stands of what somebody changed, after each step: whoever resumes the run
// accepts all of it. Empty: nothing does.
func (j Journal) DriftMessage() string {
	drifting := j.OpenDrifts()
	told, more := drifting[:min(len(drifting), maxDriftsTold)], ""
	const rest = "; describe of the run tells all of it"
	if n := len(drifting) - len(told); n > 0 {
		more = fmt.Sprintf("; and after %d more steps", n)
	}
	var parts []string
	whole := more == ""
	for _, rec := range told {
		said := "after step " + rec.Path + " " + rec.Drift.Said()
		part := document.Cut(said, (maxDriftMessage-len(more)-len(rest))/len(told)-len("; "))
		parts, whole = append(parts, part), whole && part == said
	}
	if !whole {
		more += rest
	}
	return strings.Join(parts, "; ") + more
}

// Writes says whether steps of a type change an object themselves, in one piece.
func Writes(stepType string) bool {
	return slices.Contains([]string{"label", "annotate", "patch-object", "apply-object", "delete-object", "scale", "restart"}, stepType)
}

// Writing says whether another step of the run may be changing an object just now.
func (j Journal) Writing(path string) bool {
	return slices.ContainsFunc(j.Steps, func(r Record) bool { return r.Path != path && r.Phase == StepRunning && Writes(r.Type) })
}

// ChangedSince says whether another step of the run changed the field after the step at a
// path had ended, or made or deleted the object.
func (j Journal) ChangedSince(path, kind, name, field string) bool {
	rec := j.Record(path)
	return rec != nil && slices.ContainsFunc(j.Steps, func(other Record) bool {
		if other.Path == path || rec.FinishedAt != nil && other.FinishedAt != nil && other.FinishedAt.Before(*rec.FinishedAt) {
			return false
		}
		return slices.ContainsFunc(other.Changed, func(c Change) bool {
			if c.Kind != kind || c.Name != name {
				return false
			}
			return field == "" || slices.Contains([]string{"created", "deleted"}, c.What) || slices.Contains(strings.Split(c.What, ", "), field)
		})
	})
}

// DriftEvent is what an Event says of the effect of a step.
type DriftEvent struct {
	Type, Reason, Message string // Type: Normal or Warning
}

// DriftEvents are what became known since an earlier state of the journal: what somebody changed,
// or put right again, and what the run's account may not watch or read.
func (j Journal) DriftEvents(before Journal, account string) []DriftEvent {
	var out []DriftEvent
	const normal, warning = "Normal", "Warning"
	add := func(kind, reason, format string, args ...any) {
		out = append(out, DriftEvent{kind, reason, fmt.Sprintf(format, args...)})
	}
	for _, rec := range j.Steps {
		was := before.Record(rec.Path)
		if was == nil {
			continue
		}
		switch d := rec.Drift; {
		case d == nil || reflect.DeepEqual(was.Drift, d):
		case d.Accepted != nil:
			unchecked := ""
			if _, all := d.AcceptedChanges(); all {
				unchecked = "; after so many changes the step is not checked any more"
			}
			add(normal, "DriftAccepted", "step %s: %s; %s%s", rec.Path, d.Said(), d.Accepted.Said("resumed"), unchecked)
		case d.Over != nil:
			add(normal, "DriftOver", "step %s: %s", rec.Path, d.over())
		default:
			add(warning, "Drift", "step %s: %s", rec.Path, d.Said())
		}
		if rec.Unwatched && !was.Unwatched {
			add(normal, "DriftUnwatched", "step %s: what it did is checked once a minute, because ServiceAccount %s may not watch it", rec.Path, account)
		}
		switch {
		case rec.Unchecked != "" && was.Unchecked == "":
			add(warning, "DriftUnchecked", "step %s: it is not known whether what it changed is still as it left it: %s", rec.Path, rec.Unchecked)
		case rec.Unchecked == "" && was.Unchecked != "":
			add(normal, "DriftChecked", "step %s: what it did is checked again", rec.Path)
		}
	}
	return out
}

// over says that what was changed is changed no more.
func (d Drift) over() string {
	switch list, _ := d.AcceptedChanges(); {
	case d.Field == "":
		return d.Object + " is there again"
	case len(list) > 0:
		return d.Field + " of " + d.Object + " is as the step left it, or as somebody accepted it"
	}
	return fmt.Sprintf("%s of %s is %s again", d.Field, d.Object, d.Want)
}

// unchecked says at a run's end of which steps nobody could check the effect; empty: of none.
func (j Journal) unchecked() string {
	var said []string
	for _, rec := range j.Steps {
		if rec.Unchecked != "" && len(said) < 3 { // a guess, as with drift
			said = append(said, "what step "+rec.Path+" did could not be checked: "+document.Cut(rec.Unchecked, document.MaxMessage/8))
		}
	}
	return strings.Join(said, "; ")
}

// ForeignChanges says at a run's end what others did while it ran, unless its message does: what was not put
// back since they had changed it, what they changed, and of what nobody could look whether they did.
func (j Journal) ForeignChanges() string {
	drifted := j.drifted()
	if drifted != "" {
		drifted = "while it ran " + drifted
	}
	parts := append(j.notPutBack(), drifted, j.unchecked())
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// DuringRun is the change in words that follow those of a restore; empty: there was none.
func (d *Drift) DuringRun() string {
	if d == nil {
		return ""
	}
	return "; while the run lived " + d.Said()
}

// notPutBack are what steps did not put back since somebody had changed it, or it was gone. What a
// later step of the run deleted was not to stay.
func (j Journal) notPutBack() (out []string) {
	more := 0
	for i := range j.Steps {
		rec := &j.Steps[i]
		switch {
		case rec.Restored != RestoreChanged && (rec.Restored != RestoreGone || len(rec.Changed) == 0 || j.deleted(rec.Changed)):
		case len(out) == maxCleanupTold:
			more++
		default:
			why := strings.TrimSuffix(rec.RestoreMessage, rec.Drift.DuringRun())
			out = append(out, fmt.Sprintf("what step %s found was not put back: %s", rec.Path, document.Cut(why, 2*maxCleanupText)))
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("nor what %d more steps found", more))
	}
	return out
}

// deleted says whether a step of the run deleted one of the objects of some changes.
func (j Journal) deleted(these []Change) bool {
	return slices.ContainsFunc(these, func(c Change) bool {
		c.What = "deleted"
		return slices.ContainsFunc(j.Steps, func(r Record) bool { return slices.Contains(r.Changed, c) })
	})
}

// drifted says at a run's end what somebody changed meanwhile, unless its message does.
func (j Journal) drifted() string {
	var said []string
	for _, rec := range j.Steps {
		if rec.Drift == nil {
			continue
		}
		for _, d := range append(slices.Clone(rec.Drift.Earlier), *rec.Drift) {
			if len(said) < 3 && !strings.Contains(j.Message, d.Said()) { // a guess: the steps name the others
				said = append(said, d.Said())
			}
		}
	}
	return strings.Join(said, "; ")
}
