package knob

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Memory is what is remembered on an object of its knobs that are held, by the
// pointer of each. It is written in the same patch as the knob, so that there is
// no instant at which one is true without the other.
type Memory map[string]Entry

// Entry is one knob that is held.
type Entry struct {
	Found Value    `json:"found"`         // what comes back when the last holder lets go
	Set   *Value   `json:"set,omitempty"` // what we wrote; absent: nothing, somebody else had closed it
	By    []string `json:"by"`            // the policies that hold it, namespace/name
}

// ReadMemory reads what an object's annotation says. What cannot be read is
// nothing: a knob that is closed then counts as closed by somebody else, and is
// never opened by us.
func ReadMemory(annotation string) (Memory, error) {
	m := Memory{}
	if annotation == "" {
		return m, nil
	}
	d := json.NewDecoder(bytes.NewReader([]byte(annotation)))
	d.UseNumber() // so that a long number comes back as it was
	if err := d.Decode(&m); err != nil {
		return Memory{}, fmt.Errorf("what was remembered of the knob cannot be read: %w", err)
	}
	if m == nil {
		m = Memory{}
	}
	return m, nil
}

// String is the memory as the annotation holds it; empty where nothing is held.
func (m Memory) String() string {
	if len(m) == 0 {
		return ""
	}
	b, err := json.Marshal(m)
	if err != nil {
		return ""
	}
	return string(b)
}

// HeldBy says whether a policy holds a knob of the object.
func (m Memory) HeldBy(policy string) bool {
	for _, e := range m {
		if slices.Contains(e.By, policy) {
			return true
		}
	}
	return false
}

// DesiredState is what one policy wants of a knob. One that says nothing keeps what it
// has.
type DesiredState struct {
	Policy string // namespace/name
	Closed bool
}

// Action is what is done to a knob.
type Action string

// What can be done to a knob.
const (
	Nothing     Action = ""
	Closing     Action = "closes"
	Opening     Action = "opens"
	ClosesAgain Action = "closes again" // somebody opened it while it was held
	FoundClosed Action = "found closed" // somebody else closed it: it stays so when we let go
	Releasing   Action = "lets go"      // of what was not ours to open
)

// Verdict is what follows for one object.
type Verdict struct {
	Action Action
	Patch  map[string]any // a merge patch of the knob; nil: the knob stays as it is
	Memory Memory         // as it is to be remembered, in the same write
	Closed bool           // how the knob stands then
	Held   bool           // by us or by a policy that found it closed
}

// Facts are an object as it stands.
type Facts struct {
	Object   map[string]any
	Memory   Memory
	Foreign  bool // somebody else wrote what is in the field, see Knob.Foreign
	Deleting bool
}

// longestFound is how much of what was found is remembered on the object.
const longestFound = 16 << 10

// Decide says what is to be done to an object, from how it stands, what is
// remembered and what policies want. Closed wins; the last to let go opens, and
// only what we closed ourselves. A gate holds: what somebody opened while it was
// held is closed again, and what they wrote is what comes back. An object that
// is being deleted is not closed any more, since its controller may have to work
// for it to go.
func (k Knob) Decide(f Facts, wants ...DesiredState) (Verdict, error) {
	now, err := read(f.Object, k.Path)
	if err != nil {
		return Verdict{}, err
	}
	out := Verdict{Memory: Memory{}, Closed: k.IsClosedValue(now)}
	for pointer, e := range f.Memory {
		out.Memory[pointer] = e
	}
	entry, known := f.Memory[k.Pointer()]
	entry.By = holders(entry.By, wants, f.Deleting)
	ours := entry.Set != nil && entry.Set.Equal(now) && !f.Foreign
	switch {
	case len(entry.By) > 0:
		if now.size() > longestFound {
			return Verdict{}, fmt.Errorf("field %s holds %d bytes; at most %d can be remembered", k.Pointer(), now.size(), longestFound)
		}
		out.Held = true
		entry, out.Action = k.hold(entry, now, known, ours, f.Deleting)
		out.Memory[k.Pointer()] = entry
		if out.Action == Closing || out.Action == ClosesAgain {
			out.Patch, out.Closed = k.closing(f.Object), true
		}
	case known:
		delete(out.Memory, k.Pointer())
		out.Action = Releasing
		if ours {
			out.Action, out.Closed = Opening, k.IsClosedValue(entry.Found)
			out.Patch = patch(k.Path, entry.Found)
		}
	}
	return out, nil
}

// hold is what becomes of a knob that somebody holds.
func (k Knob) hold(e Entry, now Value, known, ours, deleting bool) (Entry, Action) {
	switch {
	case ours && (e.Set.Equal(k.Closed) || deleting):
		return e, Nothing
	case ours: // the document names another value by now
		e.Set = &Value{k.Closed.V}
		return e, Closing
	case k.IsClosedValue(now):
		was := known && e.Set == nil && e.Found.Equal(now)
		e.Found, e.Set = now, nil
		if was {
			return e, Nothing
		}
		return e, FoundClosed
	case deleting:
		return e, Nothing
	}
	e.Found, e.Set = now, &Value{k.Closed.V}
	if known {
		return e, ClosesAgain
	}
	return e, Closing
}

func holders(have []string, wants []DesiredState, deleting bool) []string {
	out := slices.Clone(have)
	for _, w := range wants {
		holds := slices.Contains(out, w.Policy)
		switch {
		case w.Closed && !holds && !deleting:
			out = append(out, w.Policy)
		case !w.Closed && holds:
			out = slices.DeleteFunc(out, func(p string) bool { return p == w.Policy })
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
