package annotations

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// The admission policy that refuses changes of frozen objects, and the label that says
// of an object which policy freezes it.
const (
	FreezePolicyName = "maint-freeze"
	LabelFreeze      = "maint.dev/freeze"
)

// StatusFrozen stands on a namespace and says which of its objects may be changed now.
const StatusFrozen = StatusPrefix + "frozen"

// MaxFrozenBytes bounds StatusFrozen: all annotations of an object may be 256 KiB.
const MaxFrozenBytes = 96 << 10

// Frozen is one object of a namespace whose changes admission decides.
type Frozen struct {
	Resource string     // as kubectl writes it: deployments.apps, configmaps
	Name     string     // of the object
	Run      string     // of its namespace, that alone may change it; empty: any run
	Open     bool       // others may change it
	Until    *time.Time // of an open one: from then on they may not, whoever is there to say so
}

// id is how admission finds an object's entry.
func (f Frozen) id() string { return f.Resource + "/" + f.Name }

func (f Frozen) String() string {
	state := "frozen"
	switch {
	case f.Run != "":
		state = "run/" + f.Run
	case f.Open && f.Until != nil:
		state = "open/" + f.Until.UTC().Format(time.RFC3339)
	case f.Open:
		state = "open"
	}
	return f.id() + "=" + state
}

// What stands for labelled objects beyond those that are named: each of them counts as
// frozen, or is open until the first of them closes.
const (
	frozenFull = "*=full"
	frozenRest = "*=open/"
)

// frozenRestBytes is the room that is kept for the longer of the two.
const frozenRestBytes = len(frozenRest + "2006-01-02T15:04:05Z")

// FrozenText is StatusFrozen of a namespace, and the objects that it has no room for. What a
// run holds comes first, then what is closed, then what will close.
func FrozenText(all []Frozen) (text string, left []Frozen) {
	return FrozenTextWithin(all, MaxFrozenBytes)
}

// FrozenTextWithin is the same with no more than so many bytes for the objects that it names.
func FrozenTextWithin(all []Frozen, most int) (text string, left []Frozen) {
	all = slices.SortedFunc(slices.Values(all), func(a, b Frozen) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.id(), b.id()))
	})
	var entries []string
	there, size := map[string]bool{}, 0
	for _, f := range all {
		if there[f.id()] { // a run and a policy hold it: the run's entry counts
			continue
		}
		there[f.id()] = true
		entry := f.String()
		if size += len(entry) + 1; size+frozenRestBytes > most {
			left = append(left, f)
			continue
		}
		entries = append(entries, entry)
	}
	if rest := restOf(left); rest != "" {
		entries = append(entries, rest)
	}
	slices.Sort(entries)
	return strings.Join(entries, ","), left
}

// restOf is the entry for objects that are not named. A closed one among them closes all,
// since nobody could tell which it is.
func restOf(left []Frozen) string {
	var until *time.Time
	for _, f := range left {
		switch {
		case !f.Open:
			return frozenFull
		case f.Until != nil && (until == nil || f.Until.Before(*until)):
			until = f.Until
		}
	}
	if until == nil {
		return ""
	}
	return frozenRest + until.UTC().Format(time.RFC3339)
}

func (f Frozen) rank() int {
	switch {
	case f.Run != "":
		return 0
	case !f.Open:
		return 1
	}
	return 2
}

// ParseFrozen reads StatusFrozen; entries that it does not understand are left out.
func ParseFrozen(text string) []Frozen {
	var all []Frozen
	for entry := range strings.SplitSeq(text, ",") {
		id, state, ok := strings.Cut(entry, "=")
		resource, name, named := strings.Cut(id, "/")
		if !ok || !named {
			continue
		}
		f := Frozen{Resource: resource, Name: name}
		word, rest, _ := strings.Cut(state, "/")
		switch word {
		case "run":
			f.Run = rest
		case "open":
			f.Open = true
			if until, err := time.Parse(time.RFC3339, rest); err == nil {
				f.Until = &until
			}
		case "frozen":
		default:
			continue
		}
		all = append(all, f)
	}
	return all
}
