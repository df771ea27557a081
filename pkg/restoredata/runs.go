// Package restoredata says what of restore data counts in a world in which others have a hand: runs
// that have changed what sleeps and will put it back, and connectors that lead elsewhere by now.
package restoredata

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Step is a step of a run that has changed an object and will put it back.
type Step struct {
	Run, Path string
	Record    json.RawMessage // what it wrote down, as pkg/executors/object has it
	// Over says that it has put it back, or that its run has ended: so shortly before that its effect
	// may have been seen still.
	Over bool
}

// Steps are those of an object, by its uid, the newest first.
type Steps func(uid string) []Step

// DropEndedRuns is a record in which what runs had set before the sleep, and are over by now, is what they
// found: they could not put it back into what sleeps.
func DropEndedRuns(r hibernate.Record, on Steps) hibernate.Record {
	cloned := false
	for i, res := range r.Resources {
		if len(res.Under) == 0 {
			continue
		}
		steps := on(res.UID)
		for len(res.Under) > 0 && !working(steps, res.Under[0]) {
			res.Before, res.Under = res.Under[0].Before, res.Under[1:]
		}
		if len(res.Under) == 0 {
			res.Under = nil // as it is read back
		}
		if !cloned {
			r.Resources, cloned = slices.Clone(r.Resources), true
		}
		r.Resources[i] = res
	}
	return r
}

func working(steps []Step, u hibernate.Under) bool {
	return slices.ContainsFunc(steps, func(s Step) bool { return !s.Over && s.Run == u.Run && s.Path == u.Step })
}

// RecordRuns is a step with what runs will put back noted beside what it records for the first time. What
// was recorded and does not sleep yet stays as it was recorded, where it is a run that has changed it.
func RecordRuns(before hibernate.Record, s hibernate.Step, now time.Time, on Steps) hibernate.Step {
	was := make(map[hibernate.Place]hibernate.Resource, len(before.Resources))
	for _, res := range before.Resources {
		was[hibernate.Place{ID: res.ID, UID: res.UID}] = res
	}
	for i := range s.Record.Resources {
		res := &s.Record.Resources[i]
		old, known := was[hibernate.Place{ID: res.ID, UID: res.UID}]
		if !res.CapturedAt.Equal(now) || known && old.CapturedAt.Equal(now) {
			continue
		}
		under := underneath(on(res.UID), res.Before)
		if len(under) > 0 && known && old.AsleepAt == nil && old.WokenAt == nil && old.RestoredAt == nil {
			res.Before, res.CapturedAt, res.Kind, res.Units = old.Before, old.CapturedAt, old.Kind, old.Units
			continue
		}
		res.Under = under
	}
	return s
}

// underneath are the steps by which a workload is as it is, the last one first. Its restore data names
// one field of its spec: {"replicas": 3}, {"suspend": false}.
func underneath(steps []Step, before json.RawMessage) (out []hibernate.Under) {
	var is map[string]json.RawMessage
	if json.Unmarshal(before, &is) != nil || len(is) != 1 {
		return nil
	}
	add := func(of, step, key string, found json.RawMessage) bool {
		text, err := json.Marshal(map[string]json.RawMessage{key: found})
		if err != nil || len(found) == 0 { // it set what was absent
			return false
		}
		out = append(out, hibernate.Under{Run: of, Step: step, Before: text})
		return true
	}
	for _, s := range steps {
		h := run.ReadWritten(s.Record)
		if h == nil {
			continue
		}
		for _, c := range h.Changes {
			if len(c.Path) != 2 || c.Path[0].Key != "spec" || !same(c.After, is[c.Path[1].Key]) {
				continue
			}
			key := c.Path[1].Key
			if !add(s.Run, s.Path, key, c.Before) {
				return nil
			}
			for _, b := range c.Beneath {
				if !add(b.Run, b.Step, key, b.Before) {
					break
				}
			}
			return out
		}
	}
	return nil
}

// same says whether two values are the same but for white space. One that is absent is the same as no other.
func same(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// waits ends what is said of a target that waits for a run.
const waits = " at its end: only then it wakes"

// WaitForRuns is a step that wakes, without what a run has changed since that fell asleep: the run puts it
// back as it slept, and only the record knows how it was before. said names what is waited for;
// empty: nothing is.
func WaitForRuns(before hibernate.Record, s hibernate.Step, seen []hibernate.Observation, on Steps) (out hibernate.Step, said string) {
	at := hibernate.ByPlace(seen)
	var names []string
	for i, res := range before.Resources {
		o, there := at[hibernate.Place{ID: res.ID, UID: res.UID}]
		if !there || !seen[o].Awake || res.AsleepAt == nil || res.WokenAt != nil || res.RestoredAt != nil {
			continue
		}
		steps := on(res.UID)
		if len(steps) == 0 {
			continue
		}
		s.Record.Resources[i], s.Done = res, false
		s.Due = slices.DeleteFunc(s.Due, func(d hibernate.Due) bool { return d.ID == res.ID && d.UID == res.UID })
		names = append(names, fmt.Sprintf("run %s has changed %s", steps[0].Run, res.ID))
	}
	if len(names) == 0 {
		return s, ""
	}
	return s, "waits: " + document.Few(names, 3) + ", and puts it back" + waits
}

// WaitMessage is what a target says while it waits for a run, and no longer afterwards.
func WaitMessage(is, waiting string) string {
	if waiting == "" && strings.HasSuffix(is, waits) {
		return ""
	}
	if waiting == "" {
		return is
	}
	return waiting
}

// WaitMessages is what targets say that wait for runs, to be added to what their plan says.
func WaitMessages(records []hibernate.Record) string {
	text := ""
	for _, r := range records {
		if r.Operation == hibernate.Wake && strings.HasSuffix(r.Message, waits) {
			text += "; " + r.Target + " " + r.Message
		}
	}
	return text
}

// WaitsSince is since when what is due is waited for: what waited for a run has its time from then on.
func WaitsSince(r hibernate.Record, due []hibernate.Due) time.Time {
	var begun time.Time
	if r.StartedAt != nil {
		begun = *r.StartedAt
	}
	for _, d := range due {
		if r.Operation == hibernate.Wake && d.WokenAt != nil && d.WokenAt.After(begun) {
			begun = *d.WokenAt
		}
	}
	return begun
}

// UnreadableMessage says why a target that sleeps could not be looked at the last time; empty: it was.
func UnreadableMessage(r hibernate.Record) string {
	if r.State != hibernate.Asleep || r.NotBefore == nil {
		return ""
	}
	return fmt.Sprintf("target %s could not be woken now: %s", r.Target, r.Message)
}
