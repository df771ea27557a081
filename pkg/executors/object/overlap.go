package object

import (
	"encoding/json"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// Runs without a common target may change one field, and each is to leave it as it
// was before all of them. So a step that finds what another one at work has set
// writes down below whom it stands, and what each of them had found. At the end it
// puts back what the lowest of them found that is over by then; and a step on top of
// which another still stands leaves the field to that one, whose record says all
// that is needed. No run writes into another's journal, and a crash loses nothing.
// Recorded with each change, therefore: who was at work on this field, the nearest
// first.
type beneath struct {
	Run    string          `json:"run"`
	Step   string          `json:"step"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// holder is another step at work on the same object, with what it recorded.
type holder struct {
	executors.Holder
	changes []change
}

// holders are the others, the newest first. Those that have ended count as long as
// this pass may still have seen what they had set. A uid is an object's own on its API
// server alone: another one may be anybody's, and say any.
func holders(call executors.Call, uid string) []holder {
	if call.Objects.Holders == nil {
		return nil
	}
	var out []holder
	for _, h := range call.Objects.Holders(executors.Mark(uid, call.Clients.Server)) {
		var r record
		if json.Unmarshal(h.Before, &r) == nil && r.UID == uid && r.Server == call.Clients.Server {
			out = append(out, holder{h, r.Changes})
		}
	}
	return out
}

// chain is who stands beneath a field that holds a value: who set it, and whom that
// one stood above.
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

// overlapping are the changes of a step with who stands beneath them, and besides
// them the fields that the step sets to what another one at work has set already:
// it wants them so until its own end.
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

// sets says whether a patch asks for a value at a path. A JSON patch is asked for
// plain keys alone.
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

// effectiveChanges are a record's changes as they are to be put back now: to what, and which
// values are the maintenance's own. left are the fields that another step, which
// stands on top of this one, will put back, by the name of its run.
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

// onTop is the run of a step at work that stands on top of this one's change.
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

// pointerTo is a path as a JSON pointer; empty where it goes through an item.
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
