package hibernate

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// toy is a world of resources that sleep, and an agent that forgets all but the records.
type toy struct {
	t       fataler
	choose  func(n int) int // one of n, by chance
	now     time.Time
	spec    Spec
	all     []Target                     // the plan's, and those that were taken out of it
	uid     int                          // of the plan; 0: it is deleted
	things  map[string]map[string]*thing // by target
	made    int
	records map[string]Record // as they are stored
	sleep   bool
	keep    bool
	retry   bool
	cycle   int
	dies    func() bool
	trail   []string
}

// fataler is what a test and a property have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

type thing struct {
	uid      int
	replicas int // it was told to have; 0 is asleep
	running  int
	want     int    // what its owner wants when it is awake
	by       string // what put it back, where that is no person
	often    bool
	refuses  int // so many changes
}

func newToy(t fataler, choose func(int) int) *toy {
	w := &toy{t: t, choose: choose, uid: 1, now: time.Date(2026, 3, 2, 20, 0, 0, 0, time.UTC), things: map[string]map[string]*thing{}, records: map[string]Record{}}
	types := []StrategyType{Sequential, Parallel, DAG, Staged}
	w.spec.Execution.Strategy.Type = types[choose(len(types))]
	for i := range 3 {
		name := string(rune('a' + i))
		w.spec.Targets = append(w.spec.Targets, Target{Name: name, Type: TypeNoop})
		w.things[name] = map[string]*thing{}
		for range 1 + choose(3) {
			w.makes(name, 1+choose(5))
		}
	}
	w.all = w.spec.Targets
	switch w.spec.Execution.Strategy.Type {
	case DAG:
		w.spec.Execution.Strategy.Dependencies = []Dependency{{"a", "b"}, {"a", "c"}}
	case Staged:
		w.spec.Execution.Stages = []Stage{{Targets: []string{"b", "a"}, Parallel: true}}
	}
	if w.spec.Execution.Strategy.Type != Staged && choose(2) == 0 {
		w.spec.Execution.Strategy.MaxConcurrency = new(1)
	}
	if choose(2) == 0 {
		w.spec.Behavior.Mode = BestEffort
	}
	return w
}

func (w *toy) makes(target string, replicas int) string {
	w.made++
	id := fmt.Sprint(w.made)
	w.things[target][id] = &thing{uid: w.made, replicas: replicas, running: replicas, want: replicas}
	return id
}

func (w *toy) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(w.trail, "\n"))
}

func (w *toy) say(format string, args ...any) {
	w.trail = append(w.trail, fmt.Sprintf(format, args...))
}

func (w *toy) observe(target string) []Observation {
	var out []Observation
	for _, id := range slices.Sorted(maps.Keys(w.things[target])) {
		one := w.things[target][id]
		before, _ := json.Marshal(one.replicas)
		out = append(out, Observation{
			ID: id, UID: fmt.Sprint(one.uid), Asleep: one.replicas == 0 && one.running == 0, Awake: one.replicas > 0, Ready: one.replicas > 0 && one.running == one.replicas,
			Before: before, RevivedBy: one.by, Often: one.often,
		})
	}
	return out
}

// store writes a record; what it says was before is never "asleep".
func (w *toy) store(r Record) {
	for _, res := range r.Resources {
		if string(res.Before) == "0" {
			w.fail("%s/%s is recorded as asleep", r.Target, res.ID)
		}
	}
	w.records[r.Target] = r
}

// life is an agent until it dies or has nothing to do.
func (w *toy) life() {
	for range 60 {
		d := Decide(w.facts())
		if !d.Again.IsZero() && !d.Again.After(w.now) {
			w.fail("it would look again at %s, and it is %s", d.Again, w.now)
		}
		for _, r := range d.Write {
			if w.dies() {
				return
			}
			w.store(r)
		}
		for _, name := range d.Closed {
			if w.dies() {
				return
			}
			if n := w.records[name].Sleeping(); n > 0 {
				w.fail("the record of %s is closed while %d sleep", name, n)
			}
			delete(w.records, name)
		}
		w.retry = false
		moved := len(d.Write)+len(d.Closed) > 0
		for _, act := range d.Acts {
			did, died := w.act(act)
			if died {
				return
			}
			moved = moved || did
		}
		if !moved {
			return
		}
	}
	w.fail("it does not come to rest")
}

// facts are the world as an agent sees it: of a plan that is deleted there are snapshots.
func (w *toy) facts() Facts {
	f := Facts{Now: w.now, Spec: w.spec, Plan: "p", UID: fmt.Sprint(w.uid), Sleep: w.sleep, Keep: w.keep, Cycle: fmt.Sprint("p-", w.cycle), Retry: w.retry, Records: slices.Collect(maps.Values(w.records))}
	if w.uid == 0 {
		f.Sleep, f.Keep, f.Spec = false, false, Spec{}
		for _, r := range w.records {
			f.Spec = r.Snapshot.Spec
		}
	}
	return f
}

// act is one pass over a target, as the agent does it.
func (w *toy) act(a Act) (did, died bool) {
	r := w.records[a.Target]
	if r.NotBefore != nil && w.now.Before(*r.NotBefore) {
		return false, false
	}
	step := r.ToSleep(w.observe(a.Target), w.now)
	if a.Operation == Wake {
		step = r.ToWake(w.observe(a.Target), w.now)
	}
	if w.dies() {
		return false, true
	}
	w.store(step.Record)
	failure, untouched := "", []string(nil)
	for _, res := range step.Due {
		if w.dies() {
			return false, true
		}
		changed, refused := w.change(a, res)
		did = did || changed
		if refused {
			failure, untouched = "refused", append(untouched, res.ID)
		}
	}
	if a.Operation == Shutdown {
		step.Record = step.Untouched(r, untouched)
	}
	after := step.Record.Passed(step.Done, failure, 1, w.now)
	if w.dies() {
		return false, true
	}
	did = did || after.State != r.State
	w.store(after)
	return did, false
}

func (w *toy) change(a Act, due Due) (changed, refused bool) {
	if !slices.ContainsFunc(w.records[a.Target].Resources, func(have Resource) bool { return have.ID == due.ID && have.UID == due.UID }) {
		w.fail("%s/%s is touched before it is recorded", a.Target, due.ID)
	}
	one := w.things[a.Target][due.ID]
	if one.refuses > 0 {
		one.refuses--
		return false, true
	}
	to := 0
	if a.Operation == Wake {
		if due.Seen.Awake {
			return false, false
		}
		if err := json.Unmarshal(due.Before, &to); err != nil {
			w.fail("%s", err)
		}
	}
	changed = one.replicas != to
	if one.replicas = to; w.choose(3) > 0 { // else it takes a while
		one.running = to
	}
	return changed, false
}

// recorded says whether something sleeps by a record, or may, or slept until somebody changed it.
func (w *toy) recorded(target, id string) bool {
	return slices.ContainsFunc(w.records[target].Resources, func(r Resource) bool {
		r.takeBack(r.UID == fmt.Sprint(w.things[target][id].uid))
		return r.ID == id && r.RestoredAt == nil && r.Left == "" && !r.Untouched
	})
}

// happens is something that the world does.
func (w *toy) happens() {
	w.now = w.now.Add(time.Duration(1+w.choose(40)) * time.Minute)
	for _, group := range w.things {
		for _, one := range group {
			one.running = one.replicas
		}
	}
	target := w.all[w.choose(len(w.all))].Name
	ids := slices.Sorted(maps.Keys(w.things[target]))
	if len(ids) == 0 {
		return
	}
	id := ids[w.choose(len(ids))]
	switch n := w.choose(18); n {
	case 0, 1, 2, 3:
		w.sleep = !w.sleep
		if w.sleep && len(w.records) == 0 {
			w.cycle++
		}
		w.say("sleep %t", w.sleep)
	case 4:
		w.keep = !w.keep
		w.say("keep %t", w.keep)
	case 5:
		w.retry = true
		w.say("retry")
	case 6, 7, 8:
		w.edited()
	default:
		w.touched(target, id, n)
	}
}

// edited is somebody at work on the plan.
func (w *toy) edited() {
	name := w.all[w.choose(len(w.all))]
	at := slices.IndexFunc(w.spec.Targets, func(t Target) bool { return t.Name == name.Name })
	switch {
	case w.choose(3) == 0:
		if w.uid == 0 {
			w.made++
			w.uid = w.made
		} else {
			w.uid = 0
		}
		w.say("the plan is %d", w.uid)
	case at < 0:
		w.spec.Targets = append(slices.Clone(w.spec.Targets), name)
		w.say("%s is put into the plan", name.Name)
	case len(w.spec.Targets) > 1:
		w.spec.Targets = slices.Delete(slices.Clone(w.spec.Targets), at, at+1)
		w.say("%s is taken out of the plan", name.Name)
	}
}

// touched is somebody, or something, at a resource.
func (w *toy) touched(target, id string, what int) {
	one := w.things[target][id]
	switch what {
	case 9: // somebody scales it
		one.replicas = 1 + w.choose(9)
		one.running, one.want, one.by, one.often = one.replicas, one.replicas, "", false
		w.say("%s/%s is scaled to %d", target, id, one.replicas)
	case 10, 11: // something puts it back
		if one.replicas == 0 {
			one.replicas, one.running, one.by, one.often = one.want, one.want, "flux", what == 11
			w.say("%s/%s is put back, often %t", target, id, one.often)
		}
	case 12:
		w.say("%s/%s is new", target, w.makes(target, 1+w.choose(5)))
	case 13: // another of the same name
		w.made++
		one.uid, one.want = w.made, 1+w.choose(5)
		one.replicas, one.running, one.by, one.often = one.want, one.want, "", false
		w.say("%s/%s is made anew with %d", target, id, one.want)
	case 14:
		delete(w.things[target], id)
		w.say("%s/%s is deleted", target, id)
	case 15:
		one.refuses = 1 + w.choose(4)
		w.say("%s/%s refuses %d times", target, id, one.refuses)
	case 16: // somebody stops it; what is about to sleep cannot be told from it
		if !w.recorded(target, id) {
			one.replicas, one.running, one.want = 0, 0, 0
			w.say("%s/%s is stopped", target, id)
		}
	}
}

// ends has all be awake in the end, and says what is not as its owner left it.
func (w *toy) ends() {
	w.sleep = false
	w.restsNow()
	for target, group := range w.things {
		for id, one := range group {
			if one.replicas != one.want {
				w.fail("%s/%s has %d, its owner wants %d", target, id, one.replicas, one.want)
			}
		}
	}
	if len(w.records) > 0 {
		w.fail("records stay: %+v", w.records)
	}
}

// restsNow lets time pass until all is done that can be.
func (w *toy) restsNow() {
	w.keep, w.dies = false, func() bool { return false }
	for range 16 { // failures are tried again, each time later
		w.now = w.now.Add(3 * time.Hour)
		for _, group := range w.things {
			for _, one := range group {
				one.running = one.replicas
			}
		}
		w.life()
	}
}

// sleeps has all fall asleep that is in the plan, and says what does not.
func (w *toy) sleeps() {
	w.sleep, w.retry = true, true
	if w.uid == 0 {
		w.uid = 1
	}
	w.say("all is to sleep")
	for _, group := range w.things {
		for _, one := range group {
			one.refuses = 0
		}
	}
	w.restsNow()
	w.retry = true
	w.restsNow()
	for _, t := range w.spec.Targets {
		for id, one := range w.things[t.Name] {
			left := slices.ContainsFunc(w.records[t.Name].Resources, func(r Resource) bool { return r.ID == id && r.Left != "" })
			if one.replicas > 0 && !left {
				w.fail("%s/%s is awake: %+v", t.Name, id, w.records)
			}
		}
	}
	if d := Decide(w.facts()); d.Phase != Hibernated {
		w.fail("all sleeps, and the plan is %s: %s", d.Phase, d.Message)
	}
}

func (w *toy) lives(stories int) {
	for range stories {
		w.happens()
		deadly := w.choose(2) == 0
		w.dies = func() bool { return deadly && w.choose(6) == 0 }
		w.life()
	}
	if w.choose(2) == 0 {
		w.sleeps()
	}
	w.ends()
}

// Whatever happens, in whatever order, and wherever the agent dies: once it is to be awake
// all is as its owners left it, and no record stays behind.
func TestWhateverHappensItWakesAsItWas(t *testing.T) {
	n := 6000
	if testing.Short() {
		n = 600
	}
	for seed := range n {
		random := rand.New(rand.NewPCG(uint64(seed), 7)) //nolint:gosec // the same stories each time
		w := newToy(t, random.IntN)
		w.say("seed %d", seed)
		w.lives(16)
	}
}

// The same with other stories each time; one that fails is told as short as it can be.
func TestWhateverElseHappensItWakesAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.IntRange(0, 1<<16)
		w := newToy(t, func(n int) int { return number.Draw(t, "choice") % n })
		w.lives(rapid.IntRange(1, 10).Draw(t, "stories"))
	})
}
