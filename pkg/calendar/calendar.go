// Package calendar draws what is known of the time ahead: as lines, as a feed
// that calendars subscribe to, as a picture and as a page with that picture.
//
// It is plain Go and knows no rules: entries come in, text goes out, and the
// same entries give the same text, byte for byte.
package calendar

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Kind says what an entry is.
type Kind string

// A window permits change, a freeze forbids it, in a sleep something is hibernated, a slot
// asks for a run. A slot is an instant, the others last.
const (
	Window Kind = "window"
	Freeze Kind = "freeze"
	Sleep  Kind = "sleep"
	Slot   Kind = "slot"
)

// Owner is what entries belong to: a policy, a plan of either kind, or a namespace.
type Owner struct {
	Kind      string // "policy", "plan", "hibernate-plan" or "namespace"
	Namespace string // empty for a namespace, and for files that name none
	Name      string
}

// String is the owner in words: plan shop/orders.
func (o Owner) String() string { return o.Kind + " " + o.path() }

func (o Owner) path() string { return strings.TrimPrefix(o.Namespace+"/"+o.Name, "/") }

// Entry is one window, freeze, sleep or slot.
type Entry struct {
	Kind       Kind
	Owner      Owner
	Start, End time.Time // [Start, End); for a slot the same
	// Unbegun and Unending say that an entry goes on beyond Start or End, for
	// longer than is known: there it is cut at the bounds of the page.
	Unbegun, Unending bool
	Idle              bool   // a slot at which nothing starts, or a sleep in which nothing sleeps
	Failed            bool   // a slot that is past and needs somebody: its run failed, or it was missed
	Note              string // for people, on one line
	Key               string // names it among those of its owner; empty: its start does

	Slots int // that this one stands for, from the first to the last at End; 0: it is one
}

// Page is all that is drawn.
type Page struct {
	Title    string
	From, To time.Time // what it covers: [From, To)
	Now      time.Time
	Zone     string  // IANA name of the zone of the clocks beside UTC
	Owners   []Owner // in the order in which they are drawn
	Entries  []Entry // in any order

	lead   string   // what is to be known before all else; empty: nothing
	spread []string // the namespaces of its owners, see [Page.spreadOut]; nil: not gathered yet
}

// Sorted are the entries in order of time.
func (p Page) Sorted() []Entry {
	out := slices.Clone(p.Entries)
	rank := map[Owner]int{}
	for i, o := range p.Owners {
		rank[o] = i
	}
	slices.SortStableFunc(out, func(a, b Entry) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(rank[a.Owner], rank[b.Owner]), strings.Compare(string(a.Kind), string(b.Kind)), a.End.Compare(b.End), strings.Compare(a.Note, b.Note))
	})
	return out
}

// spreadOut is the page with the namespaces of its owners gathered once: each of its entries has a label, and
// thousands of plans have a million entries.
func (p Page) spreadOut() Page {
	p.spread = p.namespaces()
	return p
}

// namespaces are those of the owners that are in one, each once.
func (p Page) namespaces() []string {
	out := []string{}
	for _, o := range p.Owners {
		if o.Kind != "namespace" {
			out = append(out, o.Namespace)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// label is how an owner is called on this page: with its namespace only where
// there are several.
func (p Page) label(o Owner) string {
	if o.Kind == "namespace" {
		return "namespace " + o.Name
	}
	spread := p.spread
	if spread == nil {
		spread = p.namespaces()
	}
	if slices.ContainsFunc(spread, func(namespace string) bool { return namespace != o.Namespace }) {
		return o.path()
	}
	return o.Name
}

// sleeps says whether anything is hibernated on the page: else nobody is told what that
// looks like.
func (p Page) sleeps() bool {
	return slices.ContainsFunc(p.Entries, func(e Entry) bool { return e.Kind == Sleep })
}

// fails says whether a slot on it needed somebody.
func (p Page) fails() bool {
	return slices.ContainsFunc(p.Entries, func(e Entry) bool { return e.Failed })
}

// current says whether now is on the page.
func (p Page) current() bool { return !p.Now.Before(p.From) && p.Now.Before(p.To) }

// covers says whether anything of an entry lies on the page.
func (p Page) covers(e Entry) bool {
	if e.Kind == Slot {
		return !e.Start.Before(p.From) && e.Start.Before(p.To)
	}
	return e.End.After(p.From) && e.Start.Before(p.To)
}

// clock is the zone of the page; UTC where it is not known.
func (p Page) clock() *time.Location {
	loc, err := schedule.LoadZone(p.Zone)
	if err != nil {
		return time.UTC
	}
	return loc
}
