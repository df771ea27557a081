package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
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
	looked  map[time.Time]string // by the start of an off-window, why nothing slept when it was last looked at
	slept   []stretch
	resumes time.Time // when it is looked at next
}

// stretch is one sleep; a zero end is not there yet.
type stretch struct {
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
	s := &sleeper{plan: one, span: scenario.Span, table: table, outages: merged(scenario.Outages, scenario.From), looked: map[time.Time]string{}}
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
	was := len(s.records) > 0
	if err := s.converge(now, want, paused, forbidden); err != nil {
		return err
	}
	is := len(s.records) > 0
	switch {
	case is && !was:
		s.slept = append(s.slept, stretch{from: now, held: !want.Level.Asleep})
	case was && !is:
		s.slept[len(s.slept)-1].to = now
	}
	if !is { // looked is asked for the starts of off-windows alone
		s.looked[want.Level.Since] = because(want, paused, forbidden)
	}
	for _, o := range s.outages {
		s.again(now, o.From)
	}
	return nil
}

func (s *sleeper) again(now, at time.Time) {
	if at.After(now) && (s.resumes.IsZero() || at.Before(s.resumes)) {
		s.resumes = at
	}
}

func (s *sleeper) paused(now time.Time) bool {
	held := false
	for _, p := range s.plan.Pauses {
		held = held || p.Holds(now)
		if p.On && p.Until != nil {
			s.again(now, *p.Until)
		}
	}
	return held
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

// because is why nothing sleeps in off-hours, in the ledger's words.
func because(want hibernate.DesiredState, paused bool, forbidden string) string {
	switch {
	case want.By == hibernate.ByHold && !want.Asleep:
		return run.ReasonHold
	case want.By == hibernate.BySkip:
		return run.ReasonSkip
	case paused:
		return run.ReasonPaused
	case forbidden != "":
		return run.ReasonWindow
	}
	return run.ReasonNotReady
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
	for w := range s.table.Windows(s.span.From) {
		if !w.Start.Before(s.span.To) {
			break
		}
		if w.Start.Before(s.span.From) {
			continue
		}
		out = append(out, s.entry(base, w))
	}
	return out
}

func (s *sleeper) entry(e Entry, w hibernate.Window) Entry {
	e.Slot = new(w.Start.UTC())
	for _, one := range s.slept {
		begins, ends := one.from, one.to
		if !w.End.IsZero() && !begins.Before(w.End) || !ends.IsZero() && !ends.After(w.Start) {
			continue
		}
		if begins.Before(w.Start) {
			begins = w.Start
		}
		e.Result, e.Reason = run.Ran, string(run.BySchedule)
		e.sleeps(begins, ends)
		return e
	}
	reason, looked := s.looked[w.Start]
	if !looked {
		reason = run.ReasonCatchUp
	}
	e.Result, e.Reason = run.Missed, reason
	if slices.Contains([]string{run.ReasonSkip, run.ReasonPaused, run.ReasonHold}, reason) {
		e.Result = run.Skipped
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
