package object

import (
	"encoding/json"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// beneath are the other active steps that had set a field before this one, the nearest first.
//
// Runs without a common target may change the same field, and each should restore the value from
// before all of them. So a step that finds a field set by another active step records that step and
// what it had found, at the time of its own change. At its end it restores what the lowest of them
// that is over by then had found; a step whose field another active step has set after it leaves
// the field to that one, whose record is complete. No run writes into the journal of another, and a
// crash loses nothing.
type beneath struct {
	Run    string          `json:"run"`
	Step   string          `json:"step"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// holder is another active step on the same object, with its record.
type holder struct {
	executors.Holder
	changes []change
}

// holders are the others, the newest first. Steps that have ended still count while this pass may
// have seen their values. A uid is trusted only from the object's own API server: that of another
// cluster may report any uid.
func holders(call executors.Call, uid string) []holder {
	if call.Objects.Holders == nil {
		return nil
	}
	var out []holder
	for _, h := range call.Objects.Holders(executors.ObjectID(uid, call.Clients.Server)) {
		var r record
		if json.Unmarshal(h.Before, &r) == nil && r.UID == uid && r.Server == call.Clients.Server {
			out = append(out, holder{h, r.Changes})
		}
	}
	return out
}

// chain is who set a field to its present value, and whom that step is above.
func chain(others []holder, path fieldPath, value json.RawMessage, call executors.Call) []beneath {
	for _, h := range others {
		if !h.Over.IsZero() && h.Over.Before(call.Now) {
			continue
		}
		for _, c := range h.changes {
			if !c.Made && c.Path.String() == path.String() && equalRaw(c.After, value) {
				return append([]beneath{{Run: h.Run, Step: h.Path, Before: c.Before, After: c.After}}, c.Beneath...)
			}
		}
	}
	return nil
}

// overlapping are the changes of a step, each with the steps beneath it, and also the fields that
// another active step has set to the same value: this step wants that value until its own end.
func overlapping(call executors.Call, w write) []change {
	others := holders(call, string(w.live.GetUID()))
	if len(others) == 0 {
		return w.changes
	}
	out, known := make([]change, len(w.changes)), map[string]bool{}
	for i, c := range w.changes {
		known[c.Path.String()] = true
		if !c.Made {
			c.Beneath = chain(others, c.Path, c.Before, call)
		}
		out[i] = c
	}
	for _, h := range others {
		for _, c := range h.changes {
			v, found, _ := lookup(w.live.Object, c.Path)
			value := raw(v, found)
			if known[c.Path.String()] || c.Made || !equalRaw(c.After, value) || !w.sets(c.Path, value) {
				continue
			}
			known[c.Path.String()] = true
			if below := chain(others, c.Path, value, call); below != nil {
				out = append(out, change{Path: c.Path, Before: value, After: value, Beneath: below})
			}
		}
	}
	return out
}

// sets says whether a patch sets a value at a path. Of a JSON patch, only plain keys are
// recognised.
func (w write) sets(path fieldPath, value json.RawMessage) bool {
	if ops, isList := w.patch.Body.([]any); isList {
		return opsSet(ops, path, value)
	}
	body := decode(raw(w.patch.Body, true))
	v, found, _ := lookup(body, path)
	return found && (v == nil && value == nil || value != nil && equal(v, decode(value)))
}

func opsSet(ops []any, path fieldPath, value json.RawMessage) bool {
	for _, one := range ops {
		op, _ := one.(map[string]any)
		if at, _ := op["path"].(string); at != pointerTo(path) {
			continue
		}
		switch op["op"] {
		case "add", "replace":
			return value != nil && equal(op["value"], decode(value))
		}
	}
	return false
}

// effectiveChanges are a record's changes as they should be restored now: to which value, and which
// values count as ours. left are the fields that another step above this one will restore, by the
// name of its run.
func effectiveChanges(call executors.Call, rec *record) (changes []change, left map[string]string) {
	others := holders(call, rec.UID)
	working := map[[2]string]bool{}
	for _, h := range others {
		working[[2]string{h.Run, h.Path}] = h.Over.IsZero()
	}
	for _, c := range rec.Changes {
		if on := onTop(call, others, c); on != "" {
			if left == nil {
				left = map[string]string{}
			}
			left[c.Path.String()] = on
			continue
		}
		for _, b := range c.Beneath {
			if working[[2]string{b.Run, b.Step}] {
				break
			}
			c.ours = append(c.ours, b.After)
			c.Before = b.Before
		}
		changes = append(changes, c)
	}
	return changes, left
}

// onTop is the run of an active step above this one's change.
func onTop(call executors.Call, others []holder, c change) string {
	if c.Made {
		return ""
	}
	for _, h := range others {
		if !h.Over.IsZero() {
			continue
		}
		for _, theirs := range h.changes {
			if theirs.Path.String() != c.Path.String() {
				continue
			}
			for _, b := range theirs.Beneath {
				if b.Run == call.Run && b.Step == call.Path {
					return h.Run
				}
			}
		}
	}
	return ""
}

func equalRaw(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return equal(decode(a), decode(b))
}

// pointerTo is a path as a JSON pointer; empty where it passes through a list item.
func pointerTo(path fieldPath) string {
	out := ""
	for _, s := range path {
		if s.Item != "" {
			return ""
		}
		out += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(s.Key)
	}
	return out
}
