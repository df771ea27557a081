// Package sleepertest tests the contract of executors.Sleeper: one suite for all types, in whatever
// world they act on.
package sleepertest

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Backend is a world in which a target sleeps. Its parameters select at least one resource that is
// awake, and there are others that they do not select.
type Backend interface {
	Sleeper() executors.Sleeper
	// Call has the parameters and clients of the target.
	Call() executors.SleepCall
	// State is the state of each resource of the world that somebody may have set, selected or
	// not, by its id.
	State(t *testing.T) map[string]string
	// Outside says whether a resource does not belong to the target.
	Outside(id string) bool
	// Unselect changes the target's resources so that they are no longer selected. False: that is
	// impossible.
	Unselect(t *testing.T) bool
	// Settle ends all transitions.
	Settle(t *testing.T)
}

// Run runs all tests, each in a world of its own.
func Run(t *testing.T, build func(t *testing.T) Backend) {
	for name, ask := range map[string]func(t *testing.T, w Backend){
		"it sleeps and wakes as it was":                        asItWas,
		"what was there already is left alone":                 twice,
		"asking twice is asking once":                          repeated,
		"a wake that comes at once ends as it was":             atOnce,
		"an agent that dies half-way is followed by another":   halfDone,
		"a call whose context has ended changes nothing":       cancelled,
		"what is late is not said to be done":                  late,
		"what was selected wakes whatever its tags say by now": unselected,
	} {
		t.Run(name, func(t *testing.T) { ask(t, build(t)) })
	}
}

// target is a target of a world, with the record that an agent would keep.
type target struct {
	Backend
	record hibernate.Record
	now    time.Time
}

func newTarget(w Backend) *target {
	now := time.Now().UTC()
	return &target{Backend: w, now: now, record: hibernate.Record{Plan: "nights", Cycle: "nights-2026-11-23T20:00:00Z", Target: "all", StartedAt: &now, State: hibernate.Running}}
}

func (x *target) call(op hibernate.Operation) executors.SleepCall {
	c := x.Call()
	c.Plan.Name, c.Cycle, c.Target, c.Operation, c.Plan.Manager = x.record.Plan, x.record.Cycle, x.record.Target, op, "maint-plan-nights"
	c.Recorded, c.StartedAt, c.Now = x.record.Resources, *x.record.StartedAt, x.now
	if c.Snapshots == 0 {
		c.Snapshots = hibernate.DefaultKeepSnapshots
	}
	return c
}

// look is the first half of a pass: observe and record.
func (x *target) look(t *testing.T, op hibernate.Operation) hibernate.Step {
	t.Helper()
	x.now = x.now.Add(time.Second)
	seen, err := x.Sleeper().Observe(t.Context(), x.call(op))
	if err != nil {
		t.Fatalf("look before %s: %v", op, err)
	}
	step := x.record.ToSleep(seen, x.now)
	if op == hibernate.Wake {
		step = x.record.ToWake(seen, x.now)
	}
	text, err := json.Marshal(step.Record) // only what can be written counts
	if err != nil {
		t.Fatal(err)
	}
	var stored hibernate.Record
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	x.record = stored
	return step
}

func (x *target) act(ctx context.Context, op hibernate.Operation, due []hibernate.Due) []executors.SleepResult {
	if op == hibernate.Wake {
		return x.Sleeper().Wake(ctx, x.call(op), due)
	}
	return x.Sleeper().Shutdown(ctx, x.call(op), due)
}

// mostPasses is more than any world here needs.
const mostPasses = 40

// through runs an operation to its end, and fails on any error. each may change what a pass gets to
// do, and says whether to repeat it.
func (x *target) through(t *testing.T, op hibernate.Operation, each func(due []hibernate.Due) (given []hibernate.Due, again bool)) {
	t.Helper()
	for range mostPasses {
		step := x.look(t, op)
		if step.Done && len(step.Due) == 0 {
			return
		}
		if len(step.Due) == 0 && step.Again.After(x.now) {
			x.now = step.Again
		}
		given, again := each(step.Due)
		if len(given) == 0 {
			x.Settle(t)
			continue
		}
		good(t, x.act(t.Context(), op, given))
		if again {
			good(t, x.act(t.Context(), op, given))
		}
		x.Settle(t)
	}
	t.Fatalf("it comes to no end: %+v", x.record.Resources)
}

func good(t *testing.T, results []executors.SleepResult) {
	t.Helper()
	for _, r := range results {
		if r.Err != nil {
			t.Errorf("%s: %v", r.ID, r.Err)
		}
	}
}

// Due is what was observed, each with the record in a call from when it was first seen.
func Due(call *executors.SleepCall, seen []hibernate.Observation) []hibernate.Due {
	var out []hibernate.Due
	for _, o := range seen {
		i := slices.IndexFunc(call.Recorded, func(r hibernate.Resource) bool { return r.ID == o.ID })
		if i < 0 {
			call.Recorded = append(call.Recorded, hibernate.Resource{ID: o.ID, UID: o.UID, Before: o.Before})
			i = len(call.Recorded) - 1
		}
		out = append(out, hibernate.Due{Resource: call.Recorded[i], Seen: o})
	}
	return out
}

func whole(due []hibernate.Due) ([]hibernate.Due, bool) { return due, false }

// asleep checks that everything recorded sleeps, and that nothing else was touched.
func (x *target) asleep(t *testing.T, before map[string]string) {
	t.Helper()
	if len(x.record.Resources) == 0 {
		t.Fatal("nothing sleeps")
	}
	for _, r := range x.record.Resources {
		if r.AsleepAt == nil || r.Left != "" {
			t.Errorf("%s does not sleep: %q", r.ID, r.Left)
		}
	}
	after := x.State(t)
	for id, was := range before {
		if x.Outside(id) && after[id] != was {
			t.Errorf("%s is none of the target's and was %s, now it is %s", id, was, after[id])
		}
	}
}

func (x *target) awake(t *testing.T, before map[string]string) {
	t.Helper()
	if diff := cmp.Diff(before, x.State(t)); diff != "" {
		t.Errorf("it is not as it was (-was +is):\n%s", diff)
	}
	for _, r := range x.record.Resources {
		if r.RestoredAt == nil {
			t.Errorf("%s is not said to be awake: %q", r.ID, r.Left)
		}
	}
}

func asItWas(t *testing.T, w Backend) {
	x, before := newTarget(w), w.State(t)
	if err := w.Sleeper().Validate(t.Context(), x.call(hibernate.Shutdown)); err != nil {
		t.Fatal(err)
	}
	x.through(t, hibernate.Shutdown, whole)
	x.asleep(t, before)
	x.through(t, hibernate.Wake, whole)
	x.awake(t, before)
}

// twice puts a sleeping target to sleep, and wakes one that is awake.
func twice(t *testing.T, w Backend) {
	x, before := newTarget(w), w.State(t)
	x.through(t, hibernate.Shutdown, whole)
	asleep, recorded := w.State(t), x.record.Resources
	if step := x.look(t, hibernate.Shutdown); len(step.Due) > 0 {
		t.Errorf("it sleeps, and is to be put to sleep: %+v", step.Due)
	}
	if diff := cmp.Diff(recorded, x.record.Resources); diff != "" {
		t.Errorf("what was recorded is another (-was +is):\n%s", diff)
	}
	if diff := cmp.Diff(asleep, w.State(t)); diff != "" {
		t.Errorf("looking has changed it (-was +is):\n%s", diff)
	}
	x.through(t, hibernate.Wake, whole)
	if step := x.look(t, hibernate.Wake); len(step.Due) > 0 {
		t.Errorf("it is awake, and is to be woken: %+v", step.Due)
	}
	x.awake(t, before)
}

// repeated gives each pass the same work twice, as after a lost reply.
func repeated(t *testing.T, w Backend) {
	x, before := newTarget(w), w.State(t)
	again := func(due []hibernate.Due) ([]hibernate.Due, bool) { return due, true }
	x.through(t, hibernate.Shutdown, again)
	x.asleep(t, before)
	x.through(t, hibernate.Wake, again)
	x.awake(t, before)
}

// halfDone cancels every second pass before its effects, and the others after the first.
func halfDone(t *testing.T, w Backend) {
	x, before := newTarget(w), w.State(t)
	n := 0
	dying := func(due []hibernate.Due) ([]hibernate.Due, bool) {
		n++
		if n%2 == 1 {
			return nil, false
		}
		return due[:min(1, len(due))], false
	}
	x.through(t, hibernate.Shutdown, dying)
	x.asleep(t, before)
	x.through(t, hibernate.Wake, dying)
	x.awake(t, before)
}

// atOnce wakes a target while it is falling asleep.
func atOnce(t *testing.T, w Backend) {
	x, before := newTarget(w), w.State(t)
	good(t, x.act(t.Context(), hibernate.Shutdown, x.look(t, hibernate.Shutdown).Due))
	x.through(t, hibernate.Wake, whole)
	x.awake(t, before)
}

func cancelled(t *testing.T, w Backend) {
	x, before := newTarget(w), w.State(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	step := x.look(t, hibernate.Shutdown)
	began := time.Now()
	x.act(ended, hibernate.Shutdown, step.Due)
	_, _ = x.Sleeper().Observe(ended, x.call(hibernate.Shutdown))
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it returns after %s", took)
	}
	w.Settle(t)
	if diff := cmp.Diff(before, w.State(t)); diff != "" {
		t.Errorf("it has an effect (-was +is):\n%s", diff)
	}
}

// late makes calls whose deadline is over while the target is in transition: a timeout is a
// failure, and what has not arrived does not count.
func late(t *testing.T, w Backend) {
	x, before := newTarget(w), w.State(t)
	x.lateFor(t, hibernate.Shutdown)
	x.through(t, hibernate.Shutdown, whole)
	x.asleep(t, before)
	x.lateFor(t, hibernate.Wake)
	x.through(t, hibernate.Wake, whole)
	x.awake(t, before)
}

func (x *target) lateFor(t *testing.T, op hibernate.Operation) {
	t.Helper()
	over, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	step := x.look(t, op)
	seen, err := x.Sleeper().Observe(over, x.call(op))
	if err == nil && (len(seen) == 0 || slices.ContainsFunc(seen, func(o hibernate.Observation) bool { return o.Unseen == nil })) {
		t.Errorf("%s: a look whose time is over is no failure: %+v", op, seen)
	}
	for _, r := range x.act(over, op, step.Due) {
		if r.Err == nil {
			t.Errorf("%s: %s is said to be asked for, and the time was over", op, r.ID)
		}
	}
	good(t, x.act(t.Context(), op, step.Due))
	step, underWay := x.look(t, op), x.State(t)
	x.Settle(t)
	if diff := cmp.Diff(underWay, x.State(t)); step.Done && diff != "" {
		t.Errorf("%s is said to be done while it is under way (-was +is):\n%s", op, diff)
	}
}

func unselected(t *testing.T, w Backend) {
	x, before := newTarget(w), w.State(t)
	x.through(t, hibernate.Shutdown, whole)
	x.asleep(t, before)
	if !w.Unselect(t) {
		t.Log("these resources cannot lose what they are selected by")
	}
	x.look(t, hibernate.Shutdown) // asleep, it is observed once more
	x.asleep(t, before)
	x.through(t, hibernate.Wake, whole)
	x.awake(t, before)
}
