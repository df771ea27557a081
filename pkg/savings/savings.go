package savings

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

// Sleep is what slept of a plan between two instants.
type Sleep struct {
	Namespace, Plan string
	Began, Ended    time.Time
	Slept           []ledger.Slept
}

// Bounds of the kinds of one target (guesses: no cluster has as many that can sleep). Functions and
// other clusters name them, and each is a series in the metrics and a line of the ledger.
const (
	mostKinds   = 20
	longestKind = document.MaxNameLength
)

// SleptIn is what has slept in a cycle of a plan so far. Kinds beyond the first of a target count
// together, under its type.
func SleptIn(records []hibernate.Record, now time.Time) []ledger.Slept {
	var out []ledger.Slept
	for _, r := range records {
		byKind := map[string]*ledger.Slept{}
		for _, res := range r.Resources {
			if res.AsleepAt == nil && res.Slept == 0 {
				continue
			}
			hours := res.SleptFor(now).Hours()
			kind := cmp.Or(document.Cut(res.Kind, longestKind), r.Executor)
			if byKind[kind] == nil && len(byKind) >= mostKinds {
				kind = r.Executor
			}
			one := byKind[kind]
			if one == nil {
				one = &ledger.Slept{Target: r.Target, Executor: r.Executor, Kind: kind, UnitHours: map[string]float64{}}
				byKind[kind] = one
			}
			one.Resources++
			one.Hours = min(one.Hours+hours, 2*mostHours)
			for unit, seconds := range res.UnitSeconds(now) {
				one.UnitHours[unit] = min(one.UnitHours[unit]+seconds/time.Hour.Seconds(), 2*mostHours) // JSON has no infinity
			}
		}
		for _, kind := range slices.Sorted(maps.Keys(byKind)) {
			out = append(out, *byKind[kind])
		}
	}
	return out
}

// SleepsOf are the sleeps that a ledger's entries tell of.
func SleepsOf(namespace, plan string, entries []ledger.Entry) []Sleep {
	var out []Sleep
	for _, e := range entries {
		if len(e.Slept) > 0 && e.StartedAt != nil && e.EndedAt != nil {
			out = append(out, Sleep{namespace, plan, *e.StartedAt, *e.EndedAt, e.Slept})
		}
	}
	return out
}

// Row is what the resources of one kind of a target saved.
type Row struct {
	Namespace string  `json:"namespace"`
	Plan      string  `json:"plan"`
	Target    string  `json:"target"`
	Executor  string  `json:"executor"`
	Kind      string  `json:"kind"`
	Resources int     `json:"resources"` // the most that slept at once
	Sleeps    int     `json:"sleeps"`
	Hours     float64 `json:"hours"`           // of all resources together
	Saved     float64 `json:"saved,omitempty"` // in Currency
	Currency  string  `json:"currency,omitempty"`
	// Unpriced are the units that no price is known of.
	Unpriced []string `json:"unpriced,omitempty"`
	// Uncounted are the units of which more is said to have slept than can be: they count for nothing.
	Uncounted []string `json:"uncounted,omitempty"`
}

// mostHours is more than all resources of one sleep can have slept, of any unit (a guess). What slept
// is a tenant's word, as is how much a resource asks for; a sum of it is to stay a number.
const mostHours = 1e15

// possible says whether so many hours can have been slept.
func possible(hours float64) bool { return hours >= 0 && hours <= mostHours }

// unitOfHours stands for the hours of a row among its units.
const unitOfHours = "hours"

// Sum adds up what slept in [from, to), by plan, target and kind. A sleep that lies there
// in part counts in part. prices are those of a namespace; nil: none are known.
func Sum(sleeps []Sleep, from, to time.Time, prices func(namespace string) *Prices) []Row {
	type key struct{ namespace, plan, target, kind string }
	rows := map[key]*Row{}
	for _, s := range sleeps {
		part := overlap(s, from, to)
		if part == 0 {
			continue
		}
		known := prices(s.Namespace)
		for _, one := range s.Slept {
			k := key{s.Namespace, s.Plan, one.Target, one.Kind}
			row := rows[k]
			if row == nil {
				row = &Row{Namespace: s.Namespace, Plan: s.Plan, Target: one.Target, Executor: one.Executor, Kind: one.Kind}
				rows[k] = row
			}
			row.add(one, part, known)
		}
	}
	out := make([]Row, 0, len(rows))
	for _, row := range rows {
		slices.Sort(row.Unpriced)
		slices.Sort(row.Uncounted)
		out = append(out, *row)
	}
	slices.SortFunc(out, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Plan, b.Plan), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

func (row *Row) add(one ledger.Slept, part float64, known *Prices) {
	row.Sleeps++
	row.Resources = max(row.Resources, one.Resources)
	uncounted := func(what string) {
		if !slices.Contains(row.Uncounted, what) {
			row.Uncounted = append(row.Uncounted, what)
		}
	}
	if possible(one.Hours) {
		row.Hours += one.Hours * part
	} else {
		uncounted(unitOfHours)
	}
	for _, unit := range slices.Sorted(maps.Keys(one.UnitHours)) {
		price, ok := known.of(one.Executor, unit)
		switch {
		case !possible(one.UnitHours[unit]):
			uncounted(unit)
		case ok:
			row.Saved += price * one.UnitHours[unit] * part
			row.Currency = known.Currency
		case !slices.Contains(row.Unpriced, unit):
			row.Unpriced = append(row.Unpriced, unit)
		}
	}
}

// overlap is which part of a sleep lies in [from, to).
func overlap(s Sleep, from, to time.Time) float64 {
	whole := s.Ended.Sub(s.Began)
	if whole <= 0 {
		if s.Began.Before(from) || !s.Began.Before(to) {
			return 0
		}
		return 1
	}
	begin, end := s.Began, s.Ended
	if from.After(begin) {
		begin = from
	}
	if to.Before(end) {
		end = to
	}
	return max(0, end.Sub(begin).Seconds()/whole.Seconds())
}

// Total is what several rows come to; money by its currency.
type Total struct {
	Hours float64            `json:"hours"`
	Saved map[string]float64 `json:"saved,omitempty"`
}

// TotalOf adds rows up.
func TotalOf(rows []Row) Total {
	t := Total{}
	for _, row := range rows {
		t.Hours += row.Hours
		if row.Currency != "" {
			if t.Saved == nil {
				t.Saved = map[string]float64{}
			}
			t.Saved[row.Currency] += row.Saved
		}
	}
	return t
}
