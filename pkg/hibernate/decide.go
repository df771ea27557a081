package hibernate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
)

// Phase is how a plan as a whole is.
type Phase string

// How a plan is.
const (
	Active      Phase = "Active"
	Hibernating Phase = "Hibernating"
	Hibernated  Phase = "Hibernated"
	WakingUp    Phase = "WakingUp"
	Suspended   Phase = "Suspended"
	InError     Phase = "Error"
	Invalid     Phase = "Invalid"
)

// Facts are what a decision rests on. Everything in them may be as old as a cache; what is
// decided is written on top of what was read, and whoever was first wins.
type Facts struct {
	Now                  time.Time
	Spec                 Spec   // of the document; of one that is gone or cannot be read, that of the snapshots
	Namespace, Plan, UID string // of the plan
	Sleep                bool   // it should be asleep now
	Keep                 bool   // paused: what is at work goes on to its end, and nothing else begins
	Cycle                string // of the sleep that there should be
	Until                *time.Time
	// Forbidden says why no sleep may begin now; empty: it may.
	Forbidden string
	Records   []Record
	Retry     bool // somebody asks for what failed to be tried at once
	// Missing are targets that slept when they were last seen, and whose records are gone.
	Missing []string
	// Blocked are targets whose records do not count, and why: nothing is done to them.
	Blocked map[string]string
	Health  Health
}

// Health is what the plan's health checks say since its targets are awake.
type Health struct {
	Healthy   bool
	Unhealthy string // why they have not passed
}

// Act is an operation that may go on with a target now.
type Act struct {
	Target    string
	Operation Operation
}

// Decision is what follows from facts.
type Decision struct {
	Phase   Phase
	Message string
	Write   []Record // records that are new or have changed, to be written before any act
	Acts    []Act
	Closed  []string  // targets whose records have served
	Check   bool      // all targets are awake: the health checks are to be made
	Again   time.Time // when to decide again; zero: when something changes
}

// Decide says what is to be done now. It is a pure function, and says the same again until
// what it said was done.
func Decide(f Facts) Decision {
	d := &decider{f: f, records: map[string]*Record{}, was: map[string]Record{}}
	for _, r := range f.Records {
		d.records[r.Target], d.was[r.Target] = new(r), r
	}
	d.spec = d.ordering()
	d.order = OrderOf(d.spec)
	if f.Sleep {
		d.begin()
		d.advance(Shutdown)
	} else {
		d.advance(Wake)
	}
	d.close()
	d.phase()
	return d.out
}

type decider struct {
	f       Facts
	spec    Spec
	order   Order
	records map[string]*Record
	was     map[string]Record
	out     Decision
}

// ordering is the plan by whose order targets go: on waking that by which they fell asleep.
func (d *decider) ordering() Spec {
	if d.f.Sleep || len(d.f.Records) == 0 {
		return d.f.Spec
	}
	return slices.MinFunc(d.f.Records, func(a, b Record) int { return a.Snapshot.BeganAt.Compare(b.Snapshot.BeganAt) }).Snapshot.Spec
}

// begin has a record for each target, and each of them on its way to sleep.
func (d *decider) begin() {
	for _, t := range d.f.Spec.Targets {
		r := d.records[t.Name]
		switch {
		case d.f.Keep:
		case d.f.Forbidden != "" && r.begins():
		case r == nil && (d.f.Blocked[t.Name] != "" || slices.Contains(d.f.Missing, t.Name)): // what sleeps of it would be forgotten
		case r != nil && r.begins():
			d.records[t.Name] = r.anew(d.f, t)
		case r == nil:
			d.records[t.Name] = &Record{Plan: d.f.Plan, PlanUID: d.f.UID, Cycle: d.f.Cycle, Target: t.Name, Executor: t.Type, Operation: Shutdown, State: Pending, Snapshot: Snapshot{Spec: d.f.Spec, BeganAt: d.f.Now}}
		case r.Operation == Wake || r.State == Skipped:
			r.turn(Shutdown)
		}
	}
	for _, r := range d.records {
		d.skip(r)
		if !sameInstant(r.Snapshot.WakeAt, d.f.Until) {
			r.Snapshot.WakeAt = d.f.Until
		}
	}
}

// begins says whether a target begins a sleep: nothing of it sleeps; nil: it has no record.
func (r *Record) begins() bool { return r == nil || r.Operation == Wake && r.State == Awake }

// Beginning is how many targets would begin to sleep now, each with the plan as it is in its record.
func (f Facts) Beginning() int {
	n := len(f.Spec.Targets)
	for _, t := range f.Spec.Targets {
		if slices.ContainsFunc(f.Records, func(r Record) bool { return r.Target == t.Name && !r.begins() }) {
			n--
		}
	}
	return n
}

// skip lets go of a target that was taken out of the plan before it was asleep: no more of
// it is put to sleep, no other waits for it, and what sleeps of it wakes with the others.
func (d *decider) skip(r *Record) {
	in := slices.ContainsFunc(d.f.Spec.Targets, func(t Target) bool { return t.Name == r.Target })
	if !in && !d.f.Keep && r.State != Skipped && (r.Operation == Wake || r.State != Asleep) {
		r.turn(Shutdown)
		r.State, r.FinishedAt, r.Message = Skipped, new(d.f.Now), "it was removed from the plan; what it put to sleep wakes with the other targets"
	}
}

func sameInstant(a, b *time.Time) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Equal(*b)
}

// turn has a target begin with another operation, or anew with the one that it has.
func (r *Record) turn(to Operation) {
	r.AttemptsBefore += r.Attempts
	if to != r.Operation {
		r.AttemptsBefore = 0
	}
	r.Operation, r.State, r.Attempts, r.StartedAt, r.FinishedAt, r.NotBefore, r.Message = to, Pending, 0, nil, nil, nil, ""
}

// anew is the record of a target of which nothing sleeps any more, and that begins to
// sleep again before the others are awake: what was left alone sleeps with the rest.
func (r *Record) anew(f Facts, t Target) *Record {
	out := *r
	out.turn(Shutdown)
	out.PlanUID, out.Cycle, out.Executor, out.Snapshot.Spec, out.Resources = f.UID, f.Cycle, t.Type, f.Spec, nil
	if t.Type != r.Executor {
		return &out
	}
	for _, res := range r.Resources {
		again := Resource{ID: res.ID, UID: res.UID, Before: res.Before, Under: res.Under, CapturedAt: res.CapturedAt, RestoredAt: res.RestoredAt, Kind: res.Kind, Units: res.Units, Slept: res.seconds(f.Now), UnitSlept: res.UnitSeconds(f.Now)}
		if again.RestoredAt == nil {
			again.RestoredAt = new(f.Now)
		}
		out.Resources = append(out.Resources, again)
	}
	return &out
}

// advance has those targets begin, or go on, whose turn it is.
func (d *decider) advance(op Operation) {
	names := d.names(op)
	if op == Wake && !d.f.Keep {
		for _, r := range d.records {
			if r.Operation != Wake {
				r.turn(Wake)
			}
		}
	}
	if d.f.Retry {
		for _, r := range d.records {
			if r.Operation == op && (r.State == Failed || r.State == Aborted) {
				r.turn(op)
			}
			r.NotBefore = nil
		}
	}
	for _, name := range names {
		if r := d.records[name]; r != nil && r.Operation == op {
			d.target(r, op)
		}
	}
	for _, name := range names {
		if r := d.records[name]; r != nil && r.Operation == op && (r.State == Running || r.State == Asleep && !d.f.Keep) {
			d.out.Acts = append(d.out.Acts, Act{name, op})
		}
	}
}

// names are the targets in the order in which they are asked: those of the plan, and, to
// be woken, what else has a record.
func (d *decider) names(op Operation) []string {
	var out []string
	for _, t := range d.spec.Targets {
		out = append(out, t.Name)
	}
	if op == Wake {
		slices.Reverse(out)
		for _, name := range slices.Sorted(maps.Keys(d.records)) {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// target moves one target whose operation is not done.
func (d *decider) target(r *Record, op Operation) {
	switch {
	case r.State == Failed && op == Wake && r.Waits(d.f.Now):
		d.again(*r.NotBefore)
	case r.State == Failed && op == Wake && !d.f.Keep:
		r.State = Running // what sleeps is not given up
	case r.State == Running && r.Waits(d.f.Now):
		d.again(*r.NotBefore)
	case r.State != Pending || d.f.Keep:
	case d.stopped(r, op):
	case !d.first(r, op):
	case d.full(r):
	default:
		r.State, r.StartedAt, r.Message = Running, new(d.f.Now), ""
	}
}

// stopped says whether a failure keeps a target from beginning. None keeps one asleep but
// by the order.
func (d *decider) stopped(r *Record, op Operation) bool {
	if op == Wake {
		return false
	}
	if !d.spec.BestEffort() {
		for _, name := range slices.Sorted(maps.Keys(d.records)) {
			if other := d.records[name]; other.Operation == op && other.State == Failed {
				r.Message = "waits: " + name + " has failed"
				return true
			}
		}
		return false
	}
	for _, name := range d.waitsFor(r.Target, op) {
		if other := d.records[name]; d.needs() && other != nil && other.gaveUp(op) {
			r.State, r.FinishedAt, r.Message = Aborted, new(d.f.Now), name+" has failed"
			return true
		}
	}
	return false
}

// bestEffort says whether a failed target leaves those alone that do not depend on it. To wake,
// it is enough that the plan says so by now: who edits it lets go of what waits.
func (d *decider) bestEffort() bool {
	return d.spec.BestEffort() || !d.f.Sleep && d.f.Spec.BestEffort()
}

// needs says whether what comes before a target is what it depends on, and not only
// earlier.
func (d *decider) needs() bool { return d.spec.Execution.Strategy.Type == DAG }

// gaveUp says whether an operation is over, and not done.
func (r *Record) gaveUp(op Operation) bool {
	return r.Operation == op && (r.State == Failed || r.State == Aborted)
}

// waitsFor are the targets that are done before one begins.
func (d *decider) waitsFor(target string, op Operation) []string {
	if op == Wake {
		return d.order.After(target)
	}
	return d.order.Before(target)
}

// first says whether all that a target waits for is done.
func (d *decider) first(r *Record, op Operation) bool {
	done := map[Operation]State{Shutdown: Asleep, Wake: Awake}[op]
	for _, name := range d.waitsFor(r.Target, op) {
		other := d.records[name]
		switch {
		case other == nil || other.State == done || other.State == Skipped:
		case d.bestEffort() && other.gaveUp(op): // nothing is kept asleep for it, nor awake but what needs it
		default:
			r.Message = "waits for " + name
			return false
		}
	}
	return true
}

// full says whether as many are at work beside a target as may be.
func (d *decider) full(r *Record) bool {
	most, n := d.order.most(r.Target), 0
	if most == 0 {
		return false
	}
	for _, other := range d.records {
		if other.State == Running && d.order.together(other.Target, r.Target) {
			n++
		}
	}
	if n >= most {
		r.Message = fmt.Sprintf("waits for its turn: %d at once", most)
	}
	return n >= most
}

func (d *decider) again(at time.Time) {
	if d.out.Again.IsZero() || at.Before(d.out.Again) {
		d.out.Again = at
	}
}

// close lets go of the records of a cycle that is over, once all of its targets are awake.
func (d *decider) close() {
	awake := d.awake()
	if awake && len(d.f.Spec.HealthChecks) > 0 && !d.f.Health.Healthy {
		d.out.Check, awake = true, false
	}
	for _, name := range slices.Sorted(maps.Keys(d.records)) {
		r := d.records[name]
		if awake {
			d.out.Closed = append(d.out.Closed, name)
			continue
		}
		if was, there := d.was[name]; !there || changed(was, *r) {
			d.out.Write = append(d.out.Write, *r)
		}
	}
}

// awake says whether there is a cycle, and all of its targets are awake again.
func (d *decider) awake() bool {
	awake := !d.f.Sleep && len(d.records) > 0 && len(d.f.Blocked) == 0
	for _, r := range d.records {
		awake = awake && r.Operation == Wake && r.State == Awake
	}
	return awake
}

// unhealthy says whether the health checks have failed for longer than they may.
func (d *decider) unhealthy() bool {
	var since time.Time
	for _, r := range d.records {
		if r.FinishedAt != nil && r.FinishedAt.After(since) {
			since = *r.FinishedAt
		}
	}
	return d.f.Now.Sub(since) > HealthTimeout
}

// changed compares what a decision may change of a record.
func changed(a, b Record) bool {
	return a.Operation != b.Operation || a.State != b.State || a.Attempts != b.Attempts || a.Message != b.Message ||
		!sameInstant(a.StartedAt, b.StartedAt) || !sameInstant(a.FinishedAt, b.FinishedAt) || !sameInstant(a.NotBefore, b.NotBefore) || !sameInstant(a.Snapshot.WakeAt, b.Snapshot.WakeAt)
}

// phase says how the plan is, and what there is to say of it.
func (d *decider) phase() {
	states := map[State][]string{}
	for _, name := range slices.Sorted(maps.Keys(d.records)) {
		states[d.records[name].State] = append(states[d.records[name].State], name)
	}
	failed := append(slices.Clone(states[Failed]), states[Aborted]...)
	n := len(d.records)
	switch {
	case len(d.f.Missing) > 0:
		d.out.Phase = InError
		d.out.Message = fmt.Sprintf("the restore data of %s is gone: nobody knows how it was before it was put to sleep; wake it by hand, and say so with %s", strings.Join(d.f.Missing, ", "), intent.Command(d.f.Namespace, "trigger", d.f.Plan))
	case len(d.f.Blocked) > 0:
		d.out.Phase, d.out.Message = InError, d.f.Blocked[slices.Min(slices.Collect(maps.Keys(d.f.Blocked)))]
	case n == 0, d.f.Sleep && d.f.Forbidden != "" && len(states[Awake]) == n:
		d.out.Phase = Active
		if d.f.Sleep && d.f.Forbidden != "" {
			d.out.Message = "does not fall asleep: " + d.f.Forbidden
		}
	case len(d.out.Closed) > 0:
		d.out.Phase, d.out.Message = Active, "all targets are awake"
	case d.out.Check && d.unhealthy():
		d.out.Phase, d.out.Message = InError, fmt.Sprintf("all targets are awake, and not healthy after %s: %s", HealthTimeout, cmp.Or(d.f.Health.Unhealthy, "not looked at yet"))
	case d.out.Check:
		d.out.Phase, d.out.Message = WakingUp, "all targets are awake; waits until they are healthy: "+cmp.Or(d.f.Health.Unhealthy, "not looked at yet")
	case d.f.Sleep && len(states[Asleep])+len(states[Skipped]) == n:
		d.out.Phase, d.out.Message = Hibernated, fmt.Sprintf("%d of %d targets sleep", len(states[Asleep]), n-len(states[Skipped]))
	case len(failed) > 0 && d.settled(states, n):
		d.out.Phase, d.out.Message = InError, d.failures(failed)+d.keptAsleep(states[Pending])
		if d.f.Sleep && d.spec.BestEffort() && len(states[Asleep]) > 0 {
			d.out.Phase, d.out.Message = Hibernated, fmt.Sprintf("%d of %d targets sleep; %s", len(states[Asleep]), n, d.failures(failed))
		}
	case d.f.Sleep:
		d.out.Phase, d.out.Message = Hibernating, fmt.Sprintf("%d of %d targets sleep", len(states[Asleep]), n)
	default:
		d.out.Phase, d.out.Message = WakingUp, fmt.Sprintf("%d of %d targets are awake", len(states[Awake]), n)
	}
}

// keptAsleep says which targets sleep on because another one does not wake.
func (d *decider) keptAsleep(waiting []string) string {
	if d.f.Sleep || d.f.Keep || len(waiting) == 0 {
		return ""
	}
	return "; these sleep until it is awake: " + strings.Join(waiting, ", ") + "; with behavior.mode BestEffort they wake all the same"
}

// settled says whether nothing more happens by itself but retries.
func (d *decider) settled(states map[State][]string, n int) bool {
	return len(states[Running]) == 0 && (!d.bestEffort() || len(states[Pending]) == 0)
}

func (d *decider) failures(names []string) string {
	var out []string
	for _, name := range names {
		out = append(out, fmt.Sprintf("%s %s: %s", name, strings.ToLower(string(d.records[name].State)), d.records[name].Message))
	}
	return strings.Join(out, "; ")
}

// Passed is a record after a pass of its operation. failure is what went wrong; empty:
// nothing did.
func (r Record) Passed(done bool, failure string, retries int, now time.Time) Record {
	switch {
	case failure != "" && r.State == Asleep: // it sleeps, and could not be looked at
		r.Message, r.NotBefore = failure, new(now.Add(time.Minute))
	case failure != "":
		r.Attempts++
		r.Message = failure
		r.NotBefore = new(now.Add(backoff(r.Attempts)))
		if r.Attempts > retries {
			r.State, r.FinishedAt = Failed, &now
		}
	case done && r.Operation == Shutdown:
		if r.State != Asleep {
			r.State, r.FinishedAt = Asleep, &now
		}
		r.NotBefore, r.Message = nil, r.left()
	case done:
		r.State, r.FinishedAt, r.NotBefore, r.Message = Awake, &now, nil, r.left()
	default:
		r.NotBefore = nil
		if r.State == Asleep {
			r.Message = r.left()
		}
	}
	return r
}

// left says what is not put back, or does not sleep, and why.
func (r Record) left() string {
	var out []string
	for _, res := range r.Resources {
		switch {
		case res.Left != "":
			out = append(out, res.ID+": "+res.Left)
		case r.Operation == Shutdown && res.RevivedBy != "" && res.NotBefore != nil:
			out = append(out, fmt.Sprintf("%s: %s puts it back; it was put to sleep again %d times, the next time not before %s", res.ID, res.RevivedBy, res.Revived, res.NotBefore.UTC().Format(time.RFC3339)))
		}
	}
	if r.Operation == Shutdown {
		out = append(out, r.LeftOut...)
		if len(r.Resources)+len(out) == 0 {
			out = append(out, "nothing that it selects is awake")
		}
	}
	const most = 5
	if n := len(out); n > most {
		out = append(out[:most], fmt.Sprintf("and %d more", n-most))
	}
	return document.Cut(strings.Join(out, "; "), document.MaxMessage)
}

// longestPause is after which a failed operation is tried again at the latest.
const longestPause = 10 * time.Minute

// backoff is the pause after so many failures of an operation.
func backoff(failures int) time.Duration {
	return min(10*time.Second<<min(failures-1, 10), longestPause)
}

// Waits says whether a target is left alone until its NotBefore.
func (r Record) Waits(now time.Time) bool { return waits(r.NotBefore, now, longestPause) }

// waits says whether an instant is still to come for which something waits. One that is
// farther away than the longest pause was written by a clock that was wrong: nothing is kept
// asleep for it.
func waits(until *time.Time, now time.Time, longest time.Duration) bool {
	return until != nil && now.Before(*until) && until.Sub(now) <= longest
}
