package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/offwindow"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Sleeper is a HibernatePlan without faults, with what its annotations ask for.
type Sleeper struct {
	Namespace, Name string
	Spec            hibernate.Spec
	Intent          intent.Intent
	Hold            hibernate.Hold
	Pauses          []schedule.Pause // its own, of its namespace and of the cluster
}

func (s Sleeper) key() string { return s.Namespace + "/" + s.Name }

// farthestSleep bounds how often one HibernatePlan is looked at: three times for each of
// four windows a day over a hundred years (a guess).
const farthestSleep = 500_000

// sleeper plays one HibernatePlan: its targets fall asleep and wake at once.
type sleeper struct {
	plan    Sleeper
	span    Span
	table   *hibernate.Timetable
	gate    *schedule.Gate // nil: no policy is asked
	outages []Span
	records []hibernate.Record

	wishes  hibernate.Overrides
	ledger  *ledger.Ledger // nil: nobody has looked yet
	ended   []ledger.Entry // one for each off-window of the span that has its end, in order
	slept   []sleepSpan
	resumes time.Time // when it is looked at next
}

// sleepSpan is one sleep; a zero end is not there yet.
type sleepSpan struct {
	from, to time.Time
	held     bool // outside of the off-hours
}

// runSleep is what becomes of the off-windows of a HibernatePlan that begin in the span, and
// of what somebody holds asleep beside them.
func runSleep(scenario Scenario, one Sleeper) ([]Entry, error) {
	table, err := hibernate.NewTimetable(one.Spec)
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", one.key(), err)
	}
	s := &sleeper{plan: one, span: scenario.Span, table: table, outages: merged(scenario.Outages, scenario.From)}
	s.wishes = hibernate.Overrides{Hold: one.Hold, Skip: table.Named(one.Intent.Skip, scenario.From)}
	if scenario.Resolver != nil {
		s.gate = scenario.Resolver.GateIfAny(one.Intent.Query(one.Namespace, one.Spec.Policies))
	}
	if err := s.play(); err != nil {
		return nil, err
	}
	return s.entries(), nil
}

// play looks at one instant after the other at which something may change, until all that
// began in the span has come to its end.
func (s *sleeper) play() error {
	now := s.span.From
	for range farthestSleep {
		if away, is := s.away(now); is {
			now = away.To
			continue
		}
		if err := s.look(now); err != nil {
			return err
		}
		if s.resumes.IsZero() || !s.resumes.Before(s.span.To) && !s.open(now) {
			return nil
		}
		now = s.resumes
	}
	return fmt.Errorf("plan %s changes more often than %d times", s.plan.key(), farthestSleep)
}

// away is the outage that an instant lies in.
func (s *sleeper) away(at time.Time) (Span, bool) {
	i := slices.IndexFunc(s.outages, func(o Span) bool { return !at.Before(o.From) && at.Before(o.To) })
	if i < 0 {
		return Span{}, false
	}
	return s.outages[i], true
}

// afterwards is how long after the span it is waited that what began in it ends.
const afterwards = 31 * 24 * time.Hour

// open says whether something that began in the span has not come to its end: a sleep, or
// an off-window in which one may still begin.
func (s *sleeper) open(now time.Time) bool {
	l := s.table.At(now)
	return now.Before(s.span.To.Add(afterwards)) && (len(s.records) > 0 || l.Asleep && l.Since.Before(s.span.To))
}

// look decides as the agent does, and does it at once.
func (s *sleeper) look(now time.Time) error {
	want := s.table.DesiredState(now, s.wishes)
	s.resumes = want.Again
	paused := s.paused(now)
	forbidden := ""
	if want.Asleep && len(s.records) == 0 {
		forbidden = s.forbidden(now, want)
	}
	f := s.facts(now)
	f.Awake = offwindow.Obstacles{Want: want, Paused: paused, Forbidden: forbidden, Actors: s.plan.Intent.Actors}.Awake()
	was := len(s.records) > 0
	if err := s.converge(now, want, paused.On, forbidden); err != nil {
		return err
	}
	is := len(s.records) > 0
	switch {
	case is && !was:
		s.slept = append(s.slept, sleepSpan{from: now, held: !want.Level.Asleep})
	case was && !is:
		s.slept[len(s.slept)-1].to = now
	}
	if was || is {
		last := s.slept[len(s.slept)-1]
		f.Begun, f.Woken = last.from, last.to
	}
	s.record(f)
	for _, o := range s.outages {
		s.again(now, o.From)
	}
	return nil
}

// facts are what the ledger rests on, but for what sleeps or keeps from it. The plan is made just
// before the span.
func (s *sleeper) facts(now time.Time) offwindow.Facts {
	return offwindow.Facts{
		Now: now, UID: s.plan.key(), Created: s.span.From.Add(-time.Nanosecond), Table: s.table, Skip: s.wishes.Skip, SkipBy: s.plan.Intent.Actors["skip"],
	}
}

// record brings the ledger up to now as the agent does. It folds entries, so those of the span are
// kept beside it one by one.
func (s *sleeper) record(f offwindow.Facts) {
	for changed := true; changed; { // after a long outage one look is not enough
		var was []ledger.Entry
		if s.ledger != nil {
			was = s.ledger.Recent
		}
		var l ledger.Ledger
		l, changed = offwindow.Pass(s.ledger, f)
		for _, e := range added(was, l.Recent) {
			if !e.Slot.Before(s.span.From) {
				s.ended = append(s.ended, slices.Repeat([]ledger.Entry{e}, int(e.Count))...)
			}
		}
		l, _ = l.Overflow()
		s.ledger = &l
	}
}

func (s *sleeper) again(now, at time.Time) {
	if at.After(now) && (s.resumes.IsZero() || at.Before(s.resumes)) {
		s.resumes = at
	}
}

// paused is the pause that holds; off: none does.
func (s *sleeper) paused(now time.Time) schedule.Pause {
	for _, p := range s.plan.Pauses {
		if p.On && p.Until != nil {
			s.again(now, *p.Until)
		}
	}
	if longest := schedule.LongestPause(s.plan.Pauses...); longest.Holds(now) {
		return longest
	}
	return schedule.Pause{}
}

// forbidden says why no sleep may begin: by the schedule, or a policy.
func (s *sleeper) forbidden(now time.Time, want hibernate.DesiredState) string {
	if want.Forbidden != "" || s.gate == nil {
		return want.Forbidden
	}
	v := s.gate.Verdict(now)
	if v.Permitted {
		return ""
	}
	if v.Until != nil {
		s.again(now, *v.Until)
	}
	return v.Reason
}

// converge asks the core what is to be done until nothing is any more.
func (s *sleeper) converge(now time.Time, want hibernate.DesiredState, paused bool, forbidden string) error {
	const most = 1000 // each target begins once and ends once
	for range most {
		d := hibernate.Decide(hibernate.Facts{
			Now: now, Spec: s.plan.Spec, Namespace: s.plan.Namespace, Plan: s.plan.Name, UID: s.plan.key(), Sleep: want.Asleep, Keep: paused, Cycle: s.plan.Name, Until: want.Until,
			Forbidden: forbidden, Records: s.records, Health: hibernate.Health{Healthy: true},
		})
		if len(d.Closed) > 0 {
			s.records = nil
			return nil
		}
		for _, r := range d.Write {
			s.put(r)
		}
		for _, act := range d.Acts {
			s.put(s.records[s.find(act.Target)].Passed(true, "", s.plan.Spec.Retries(), now))
		}
		if len(d.Write) == 0 { // what begins is written first, and done at once
			return nil
		}
	}
	return fmt.Errorf("plan %s does not come to rest at %s", s.plan.key(), now.UTC().Format(time.RFC3339))
}

func (s *sleeper) find(target string) int {
	return slices.IndexFunc(s.records, func(r hibernate.Record) bool { return r.Target == target })
}

func (s *sleeper) put(r hibernate.Record) {
	if i := s.find(r.Target); i >= 0 {
		s.records[i] = r
		return
	}
	s.records = append(s.records, r)
}

// entries are one for each off-window that begins in the span, and one for each sleep
// outside of them.
func (s *sleeper) entries() []Entry {
	var out []Entry
	base := Entry{Namespace: s.plan.Namespace, Plan: s.plan.Name, Zone: s.table.Zone()}
	for _, one := range s.slept {
		if one.held {
			e := base
			e.Result, e.Reason = run.Ran, run.ReasonHold
			e.sleeps(one.from, one.to)
			out = append(out, e)
		}
	}
	n := 0
	for w := range s.table.Windows(s.span.From) {
		if !w.Start.Before(s.span.To) {
			break
		}
		if w.Start.Before(s.span.From) {
			continue
		}
		out = append(out, s.entry(base, w, s.endOf(n, w)))
		n++
	}
	return out
}

// endOf is what the ledger says of an off-window, by its number in the span; of one that goes on, what
// it would say if nothing sleeps in it to its end.
func (s *sleeper) endOf(n int, w hibernate.Window) ledger.Entry {
	if n < len(s.ended) {
		return s.ended[n]
	}
	return s.facts(time.Time{}).Unslept(*s.ledger, w)
}

func (s *sleeper) entry(e Entry, w hibernate.Window, of ledger.Entry) Entry {
	e.Slot, e.Result, e.Reason, e.At = new(w.Start.UTC()), of.Result, cmp.Or(of.Reason, string(of.Kind)), of.At
	if of.StartedAt == nil {
		return e
	}
	for _, one := range s.slept {
		if !one.from.After(*of.StartedAt) && (one.to.IsZero() || one.to.After(*of.StartedAt)) {
			e.sleeps(*of.StartedAt, one.to)
		}
	}
	return e
}

// sleeps is when it fell asleep and woke.
func (e *Entry) sleeps(from, to time.Time) {
	e.StartedAt = new(from.UTC())
	if e.At = from.UTC(); !to.IsZero() {
		e.WokenAt, e.At = new(to.UTC()), to.UTC()
	}
}
