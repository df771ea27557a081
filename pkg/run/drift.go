package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
)

// Drift is a change of what a step left, by somebody else, while the run lives.
type Drift struct {
	Object   string        `json:"object"`             // Kind/name
	Field    string        `json:"field,omitempty"`    // empty: the object is gone
	Want     string        `json:"want,omitempty"`     // as the step left it, cut
	Value    string        `json:"value,omitempty"`    // as it is, cut
	Manager  string        `json:"manager,omitempty"`  // field manager that wrote it; empty: nobody says
	At       *time.Time    `json:"at,omitempty"`       // when that manager wrote
	SeenAt   time.Time     `json:"seenAt"`             //
	Accepted *intent.Actor `json:"accepted,omitempty"` // who let the run go on all the same
	Over     *time.Time    `json:"over,omitempty"`     // it was seen to be as the step left it again
}

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
	}
	at := d.SeenAt
	if d.At != nil {
		at = *d.At
	}
	return document.Cut(text, document.MaxMessage/2) + " at " + at.UTC().Format(time.RFC3339)
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

// DriftMessage says in one sentence what stands of what somebody changed; empty: nothing.
func (j Journal) DriftMessage() string {
	drifting := j.OpenDrifts()
	if len(drifting) == 0 {
		return ""
	}
	text := "after step " + drifting[0].Path + " " + drifting[0].Drift.Said()
	if n := len(drifting) - 1; n > 0 {
		text += fmt.Sprintf(", and %d more", n)
	}
	return document.Cut(text, document.MaxMessage)
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

// Drifted says at a run's end what somebody changed meanwhile, unless its message does.
func (j Journal) Drifted() string {
	var said []string
	for _, rec := range j.Steps {
		if rec.Drift != nil && len(said) < 3 && !strings.Contains(j.Message, rec.Drift.Said()) { // a guess: the steps name the others
			said = append(said, rec.Drift.Said())
		}
	}
	return strings.Join(said, "; ")
}
