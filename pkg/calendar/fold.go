package calendar

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// mostLanes is how many plans have a lane each in the picture of a week, and lines of their
// own in the tables (a guess: nobody looks through more). Beyond that a namespace has one, and
// where there are more namespaces, all of them together.
const mostLanes = 200

// KindPlans is the kind of an owner that stands for all plans of a namespace, or of all.
const KindPlans = "plans"

func isPlan(o Owner) bool { return o.Kind == "plan" || o.Kind == "hibernate-plan" }

// plans is how many of the owners are plans.
func (p Page) plans() (n int) {
	for _, o := range p.Owners {
		if isPlan(o) {
			n++
		}
	}
	return n
}

// folded is the page with the plans of each namespace as one owner, where there are more of
// them than anybody looks through. Notes name the plans then.
func (p Page) folded() Page {
	total := p.plans()
	if total <= mostLanes {
		return p
	}
	plans := map[string]int{}
	for _, o := range p.Owners {
		if isPlan(o) {
			plans[o.Namespace]++
		}
	}
	whole, each := func(o Owner) Owner {
		return Owner{Kind: KindPlans, Namespace: o.Namespace, Name: countOf(plans[o.Namespace], "plan")}
	}, "one lane for each namespace"
	if len(plans) > mostLanes {
		all := Owner{Kind: KindPlans, Name: fmt.Sprintf("%d plans in %d namespaces", total, len(plans))}
		whole, each = func(Owner) Owner { return all }, "one lane for all"
	}
	p.lead = fmt.Sprintf("%d plans: %s, choose a namespace with -n, or plans with -l", total, each)
	owners := p.Owners
	p.Owners = nil
	for _, o := range owners {
		if isPlan(o) {
			o = whole(o)
		}
		if !slices.Contains(p.Owners, o) {
			p.Owners = append(p.Owners, o)
		}
	}
	p.Entries = foldedEntries(p.Entries, whole)
	return p
}

// foldedEntries are entries under their new owners. Sleeps of one time are one, which says of
// how many plans.
func foldedEntries(entries []Entry, whole func(Owner) Owner) []Entry {
	type sleep struct {
		owner      Owner
		start, end time.Time
		idle       bool
	}
	sleeps := map[sleep]int{} // how many
	at := map[sleep]int{}     // where in out
	out := make([]Entry, 0, len(entries))
	for _, e := range entries {
		if !isPlan(e.Owner) {
			out = append(out, e)
			continue
		}
		of := whole(e.Owner)
		name := e.Owner.Name
		if of.Namespace != e.Owner.Namespace {
			name = e.Owner.path()
		}
		e.Owner, e.Note = of, name+words(": ", e.Note)
		if e.Kind == Sleep {
			k := sleep{e.Owner, e.Start, e.End, e.Idle}
			if sleeps[k]++; sleeps[k] > 1 {
				out[at[k]].Note = countOf(sleeps[k], "plan")
				continue
			}
			at[k] = len(out)
		}
		out = append(out, e)
	}
	return out
}

// crowdedDay is how many slots a plan may have in a day before they are told as one.
const crowdedDay = 6

// daily are the entries in order of time, with the slots of a crowded day as one.
func (p Page) daily(loc *time.Location) []Entry {
	type dayOf struct {
		owner Owner
		year  int
		day   int // of the year
		what  string
	}
	of := func(e Entry) dayOf {
		at := e.Start.In(loc)
		return dayOf{e.Owner, at.Year(), at.YearDay(), e.what()}
	}
	sorted := p.Sorted()
	counts, last := map[dayOf]int{}, map[dayOf]time.Time{}
	for _, e := range sorted {
		if e.Kind == Slot {
			counts[of(e)]++
			last[of(e)] = e.Start
		}
	}
	var out []Entry
	told := map[dayOf]bool{}
	for _, e := range sorted {
		crowd := crowdedDay
		if e.Owner.Kind == KindPlans {
			crowd = 1
		}
		day := of(e)
		switch {
		case e.Kind != Slot || counts[day] <= crowd:
			out = append(out, e)
		case !told[day]:
			e.Slots, e.End, told[day] = counts[day], last[day], true
			out = append(out, e)
		}
	}
	return out
}

// crowdedFolded is the page with its plans folded, and with the slots of a crowded day as one, which
// names none of them.
func (p Page) crowdedFolded() Page {
	plans := p.plans()
	few := p.folded().spreadOut()
	if plans <= mostLanes {
		few.lead = fmt.Sprintf("%s: the slots of a crowded day are one event, choose a namespace with -n, or plans with -l", countOf(plans, "plan"))
	} else {
		few.lead = strings.Replace(few.lead, "one lane", "one event a day", 1)
	}
	few.Entries = few.daily(p.clock())
	for i := range few.Entries {
		if e := &few.Entries[i]; e.Slots > 0 {
			e.Key, e.Note = e.what()+"s of "+e.Start.UTC().Format(time.RFC3339), ""
		}
	}
	return few
}

// countOf is "1 plan" or "3 plans".
func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
