package hibernate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// Operation is what is done to a target.
type Operation string

// What is done to targets.
const (
	Shutdown Operation = "shutdown"
	Wake     Operation = "wake"
)

// State is how far a target has come.
type State string

// How far a target has come.
const (
	Pending State = "Pending"
	Running State = "Running"
	Asleep  State = "Asleep"
	Awake   State = "Awake"
	Failed  State = "Failed"  // its retries are used up
	Aborted State = "Aborted" // what it waits for has failed
	Skipped State = "Skipped"
)

// Record is the restore data of one target in one cycle of sleep: what its resources were
// before they were touched, and how far the target has come. It is written before what it
// speaks of is done.
type Record struct {
	Plan       string     `json:"plan"`
	PlanUID    string     `json:"planUID"`
	Cycle      string     `json:"cycle"`
	Target     string     `json:"target"`
	Executor   string     `json:"executor"`
	Operation  Operation  `json:"operation"`
	State      State      `json:"state"`
	Attempts   int        `json:"attempts,omitempty"` // of the operation that have failed
	StartedAt  *time.Time `json:"startedAt,omitempty"`
	FinishedAt *time.Time `json:"finishedAt,omitempty"`
	NotBefore  *time.Time `json:"notBefore,omitempty"` // the next attempt
	Message    string     `json:"message,omitempty"`
	Snapshot   Snapshot   `json:"snapshot"`
	Resources  []Resource `json:"resources"`
	// LeftOut are the first resources that are not put to sleep although they were asked
	// for, each with the reason, and those of which somebody started a part.
	LeftOut []string `json:"leftOut,omitempty"`
	// AttemptsBefore are those of the operation that failed before somebody had it tried at once.
	AttemptsBefore int `json:"attemptsBefore,omitempty"`
}

// Snapshot is the plan as it was when the cycle began: what was taken out of it meanwhile
// is woken all the same.
type Snapshot struct {
	Spec    Spec       `json:"spec"`
	BeganAt time.Time  `json:"beganAt"`
	WakeAt  *time.Time `json:"wakeAt,omitempty"` // the end of the off-hours, as it was seen last; nil: none is known
	// Connectors are those that reach the target, as they were before the first effect, by their keys.
	Connectors map[string]connector.Connector `json:"connectors,omitempty"`
	// Address is where the other cluster was found before the first effect, as
	// executors.Clients has it; empty: the target is in the plan's own cluster.
	Address string `json:"address,omitempty"`
}

// Check says what is wrong with a record that was read back: what the agent did not write
// so, or wrote for another version.
func (r Record) Check() error {
	if !slices.Contains([]Operation{Shutdown, Wake}, r.Operation) {
		return fmt.Errorf("operation: %q is neither %s nor %s", document.Cut(string(r.Operation), 80), Shutdown, Wake)
	}
	if !slices.Contains([]State{Pending, Running, Asleep, Awake, Failed, Aborted, Skipped}, r.State) {
		return fmt.Errorf("state: %q is not a state of a target", document.Cut(string(r.State), 80))
	}
	if r.Attempts < 0 {
		return fmt.Errorf("attempts: must not be negative, is %d", r.Attempts)
	}
	if !slices.ContainsFunc(r.Snapshot.Spec.Targets, func(t Target) bool { return t.Name == r.Target && t.Type == r.Executor }) {
		return fmt.Errorf("snapshot: has no target %q of type %q", document.Cut(r.Target, 80), document.Cut(r.Executor, 80))
	}
	seen := map[[2]string]bool{}
	for i, res := range r.Resources {
		switch {
		case res.ID == "":
			return fmt.Errorf("resources[%d].id: is missing", i)
		case seen[[2]string{res.ID, res.UID}]:
			return fmt.Errorf("resources[%d]: %s appears twice", i, document.Cut(res.ID, 200))
		case !json.Valid(res.Before):
			return fmt.Errorf("resources[%d].before: is missing", i)
		}
		seen[[2]string{res.ID, res.UID}] = true
	}
	if faults := CheckSnapshot(r.Snapshot.Spec); len(faults) > 0 {
		return fmt.Errorf("snapshot: the plan is not valid: %s", faults[0])
	}
	for _, key := range slices.Sorted(maps.Keys(r.Snapshot.Connectors)) {
		if faults := connector.Check(r.Snapshot.Connectors[key]); len(faults) > 0 {
			return fmt.Errorf("snapshot: the connector %s is not valid: %s", document.Cut(key, 80), faults[0])
		}
	}
	return nil
}

// Resource is something that sleeps, or that is about to.
type Resource struct {
	ID         string          `json:"id"`
	UID        string          `json:"uid,omitempty"`
	Before     json.RawMessage `json:"before"`
	CapturedAt time.Time       `json:"capturedAt"`
	AskedAt    *time.Time      `json:"askedAt,omitempty"` // to sleep, the last time, while it is not seen asleep
	AsleepAt   *time.Time      `json:"asleepAt,omitempty"`
	WokenAt    *time.Time      `json:"wokenAt,omitempty"`    // when waking it was first asked for
	StartingAt *time.Time      `json:"startingAt,omitempty"` // when it was first seen on the way up since
	RestoredAt *time.Time      `json:"restoredAt,omitempty"`
	// Untouched says that for certain nothing was done of it so far: who stops it is somebody else.
	Untouched bool `json:"untouched,omitempty"`
	// Left says why it is neither put to sleep nor woken any more in this cycle, LeftAt since when.
	Left   string     `json:"left,omitempty"`
	LeftAt *time.Time `json:"leftAt,omitempty"`
	// Kind and Units are what is counted while it sleeps, as Observation has them, and PartUnits
	// what of them sleeps since AsleepAt; nil: all.
	Kind      string             `json:"kind,omitempty"`
	Units     map[string]float64 `json:"units,omitempty"`
	PartUnits map[string]float64 `json:"partUnits,omitempty"`
	// Slept are the seconds that it slept in this cycle before AsleepAt, and UnitSlept those of
	// each unit; nil: Units slept all that time.
	Slept     int64              `json:"slept,omitempty"`
	UnitSlept map[string]float64 `json:"unitSlept,omitempty"`
	// Under are the steps of runs that had set what Before speaks of, the last one first.
	Under []Under `json:"under,omitempty"`
	// Revived is how often something that is no person put it back, and it was put to sleep again;
	// the next time is not before NotBefore.
	Revived   int        `json:"revived,omitempty"`
	RevivedBy string     `json:"revivedBy,omitempty"` // the last time
	NotBefore *time.Time `json:"notBefore,omitempty"`
	// AwakeAt is since when it was seen awake because something put it back, or because somebody
	// started all of it, until it sleeps again: meanwhile no hours are counted.
	AwakeAt *time.Time `json:"awakeAt,omitempty"`
}

// Under is a step of a run that will put back what it found, or leaves it to who put to sleep what it set.
type Under struct {
	Run    string          `json:"run"`
	Step   string          `json:"step"`
	Before json.RawMessage `json:"before"` // what it found, as Resource has it
}

// Observation is what an executor sees of one resource now.
type Observation struct {
	ID, UID string
	Asleep  bool // nothing of it runs, and it was told so
	Awake   bool // it was told to run; neither: it is on the way
	Ready   bool // awake, and at work
	// Starting says that it is on the way up, or was since it was asked to wake: what sleeps then fell back.
	Starting bool
	Gone     bool // there is no such resource any more
	// Unseen says why it could not be looked at; nil: it was. Only what is recorded and is to wake has it.
	Unseen error
	Before json.RawMessage    // awake: what is to be put back
	Kind   string             // what it is, for people and prices; empty: as the type of its target
	Units  map[string]float64 // awake: what runs of it and costs, as {"m5.large": 1} or {"cpu": 1.5, "memoryGiB": 4}; asleep: what of that still sleeps, nil: all
	// LeftOut says why it is not put to sleep although it was asked for, and StartedInPart what
	// somebody started of it while it sleeps: that runs on.
	LeftOut, StartedInPart string
	// Machines are the ids of those that stop with it, as i-0123456789abcdef0 or aws:///eu-central-1a/i-….
	Machines []string
	Version  string // of what was seen; a change that rests on it is refused once it is another
	// RevivedBy names what put it back, if no person; Often that it does so by its nature, without end.
	RevivedBy string
	Often     bool
	// Lag is how long after a request a look may still show what was before it; zero: no look does.
	Lag time.Duration
}

// How often what something else puts back is put to sleep again, and after which pause.
const (
	mostRevivals        = 3
	revivalPause        = time.Minute
	revivalFactor       = 5
	longestRevivalPause = time.Hour
)

// Step is what is to be done to a target next, and what is to be written before.
type Step struct {
	Record Record
	Due    []Due     // to be put to sleep, or to be woken
	Done   bool      // all that there is to do is done
	Again  time.Time // something is due at a later instant; zero: nothing is
}

// Due is a resource that is to be put to sleep or to be woken, and how it was seen. One
// that was told so and is not there yet is due, too.
type Due struct {
	Resource
	Seen Observation
	// FellBack says that it was on the way up since it was asked to wake, and sleeps again.
	FellBack bool
}

// ToSleep says which resources are to be put to sleep. What is seen awake for the first time is
// recorded as it is, and never again, but where it was awake in between by our own doing.
func (r Record) ToSleep(seen []Observation, now time.Time) Step {
	s := Step{Record: r, Done: true}
	s.Record.Resources, s.Record.LeftOut = slices.Clone(r.Resources), nil
	known := placesOf(r.Resources)
	for _, o := range seen {
		i := known.of(o)
		switch {
		case i < 0 && o.LeftOut != "" && !o.Gone:
			s.Record.mention(o.ID, o.LeftOut)
		case i < 0 && (o.Gone || o.Asleep):
		case i < 0 && !o.Awake: // somebody else is about it: what it will be is not known yet
			s.Done = false
		case i < 0:
			s.Record.Resources = append(s.Record.Resources, Resource{ID: o.ID, UID: o.UID, Before: o.Before, CapturedAt: now, Kind: o.Kind, Units: o.Units})
			i = len(s.Record.Resources) - 1
			known.add(o.ID, o.UID, i)
			s.sleep(o, i, now)
		default:
			s.sleep(o, i, now)
		}
	}
	s.replaced(seen, now)
	return s
}

// replaced gives up what there is another one of under the same name.
func (s *Step) replaced(seen []Observation, now time.Time) {
	there := map[string]bool{}
	for _, o := range seen {
		there[o.ID] = true
		there[o.ID+"\x00"+o.UID] = true
	}
	for i := range s.Record.Resources {
		res := &s.Record.Resources[i]
		if there[res.ID] && !there[res.ID+"\x00"+res.UID] && !there[res.ID+"\x00"] && res.Left == "" && res.RestoredAt == nil {
			res.leave("it is gone; there is another of that name", now)
		}
	}
}

// mostLeftOut is how many of them are told.
const mostLeftOut = 20

func (r *Record) mention(id, why string) {
	switch n := len(r.LeftOut); {
	case n < mostLeftOut:
		r.LeftOut = append(r.LeftOut, id+": "+why)
	case n == mostLeftOut:
		r.LeftOut = append(r.LeftOut, "and others")
	}
}

// places are where resources stand: there may be ten thousand.
type places map[Place]int

// Place tells resources apart.
type Place struct{ ID, UID string }

func placesOf(resources []Resource) places {
	p := make(places, 2*len(resources))
	for i, r := range resources {
		p.add(r.ID, r.UID, i)
	}
	return p
}

// add notes a place, also for who knows the id alone: the first one counts.
func (p places) add(id, uid string, at int) {
	for _, k := range []Place{{id, uid}, {id, ""}} {
		if _, have := p[k]; !have {
			p[k] = at
		}
	}
}

// of is where what is seen stands, -1 if nowhere: another of the same name is another one.
func (p places) of(o Observation) int {
	if at, have := p[Place{o.ID, o.UID}]; have {
		return at
	}
	return -1
}

func (s *Step) sleep(o Observation, i int, now time.Time) {
	res := &s.Record.Resources[i]
	res.takeBack(o.Asleep)
	switch {
	case res.Left != "":
	case o.Gone:
		res.leave(goneForGood, now)
	case !o.Awake && res.Untouched:
		res.leave(stoppedBefore, now)
	case o.Asleep && res.RestoredAt != nil: // it was awake again, and what it was then is not what is recorded
		res.leave("somebody stopped it", now)
	case o.Asleep && unsettled(res.WokenAt, o, now): // it may be on its way up, and not be shown so yet
		s.wait(res.WokenAt.Add(o.late()))
	case o.Asleep:
		res.sleeps(o, now)
		if o.StartedInPart != "" {
			s.Record.mention(o.ID, o.StartedInPart)
		}
	case !o.Awake: // on its way, one or the other
		s.due(i, o)
	case res.RestoredAt != nil || res.WokenAt != nil: // it is awake again by our doing, and is put to sleep anew
		*res = Resource{ID: res.ID, UID: res.UID, Before: o.Before, CapturedAt: now, Revived: res.Revived, RevivedBy: res.RevivedBy, Kind: o.Kind, Units: o.Units, Slept: res.seconds(now), UnitSlept: res.UnitSeconds(now)}
		s.ask(i, o, now)
	case res.AsleepAt == nil:
		if !equal(res.Before, o.Before) { // changed before anything was done
			res.Before, res.CapturedAt, res.Kind, res.Units = o.Before, now, o.Kind, o.Units
		}
		s.ask(i, o, now)
	default:
		s.revived(o, i, now)
	}
}

// sleeps is a resource that is seen asleep, or what somebody left asleep of it.
func (r *Resource) sleeps(o Observation, now time.Time) {
	part := o.Units
	if maps.Equal(part, r.Units) {
		part = nil
	}
	switch none := part != nil && len(part) == 0; {
	case none:
		r.AwakeAt = cmp.Or(r.AwakeAt, &now)
	case r.AwakeAt != nil || !maps.Equal(part, r.PartUnits): // what put it back let it go, or another part of it sleeps
		*r = r.AccumulateSleep(now)
		r.PartUnits = part
	}
	r.AsleepAt = cmp.Or(r.AsleepAt, &now)
	r.RestoredAt, r.WokenAt, r.StartingAt, r.AskedAt = nil, nil, nil, nil
}

// AccumulateSleep has what slept so far added up: what sleeps from now on may be another part of it.
func (r Resource) AccumulateSleep(now time.Time) Resource {
	r.Slept, r.UnitSlept, r.AsleepAt, r.AwakeAt, r.PartUnits = r.seconds(now), r.UnitSeconds(now), nil, nil, nil
	return r
}

// ask has a resource asked to sleep, and remembers when: it may be done later than anybody sees.
func (s *Step) ask(i int, o Observation, now time.Time) {
	s.Record.Resources[i].Untouched = false // from here on it may have been done
	s.Record.Resources[i].AskedAt = &now
	s.due(i, o)
}

// LateRequest is how long after it was sent a request that nobody saw answered may still take effect: an API server
// gives one up after 60 seconds (the default of its --request-timeout).
const LateRequest = time.Minute

// late is how long after a request what is seen may be how it was before.
func (o Observation) late() time.Duration { return cmp.Or(o.Lag, LateRequest) }

// unsettled says whether what is seen may be how it was before it was asked for something.
func unsettled(asked *time.Time, o Observation, now time.Time) bool {
	return asked != nil && waits(new(asked.Add(o.late())), now, o.late()+longestPause) // who led before may have had another clock
}

func (s *Step) wait(until time.Time) {
	s.Done = false
	s.wake(until)
}

func (s *Step) due(i int, o Observation) {
	s.Done = false
	s.Due = append(s.Due, Due{Resource: s.Record.Resources[i], Seen: o})
}

// revived is a resource that slept and is awake, not by us.
func (s *Step) revived(o Observation, i int, now time.Time) {
	res := &s.Record.Resources[i]
	switch {
	case o.RevivedBy == "":
		res.leave(changedAsleep, now)
	case res.Revived >= mostRevivals && !o.Often:
		res.leave(o.RevivedBy+putsBack, now)
	case waits(res.NotBefore, now, longestRevivalPause):
		if res.AwakeAt == nil {
			res.AwakeAt, res.RevivedBy = &now, o.RevivedBy
		}
		s.wait(*res.NotBefore)
	default:
		pause := revivalPause
		for range res.Revived {
			pause *= revivalFactor
		}
		res.Revived++
		res.RevivedBy = o.RevivedBy
		*res = res.AccumulateSleep(now)
		res.NotBefore = new(now.Add(min(pause, longestRevivalPause)))
		s.ask(i, o, now)
	}
}

func (s *Step) wake(at time.Time) {
	if s.Again.IsZero() || at.Before(s.Again) {
		s.Again = at
	}
}

// ToWake says which resources are to be woken: those that are as the sleep left them.
func (r Record) ToWake(seen []Observation, now time.Time) Step {
	s := Step{Record: r, Done: true}
	s.Record.Resources = slices.Clone(r.Resources)
	lastSeen := ByPlace(seen)
	for i := range s.Record.Resources {
		res := &s.Record.Resources[i]
		at, there := lastSeen[Place{res.ID, res.UID}]
		if there { // what nobody can look at may be as the sleep left it, too
			res.takeBack(!seen[at].Awake && !seen[at].Gone)
		}
		if res.RestoredAt != nil || res.Left != "" {
			continue
		}
		switch {
		case !there || seen[at].Gone:
			res.leave(goneForGood, now)
		case seen[at].Unseen != nil:
			s.due(i, seen[at])
		case !seen[at].Awake && res.Untouched:
			res.leave(stoppedBefore, now)
		case !seen[at].Awake:
			s.wakeUp(seen[at], i, now)
		case res.WokenAt == nil && res.AsleepAt != nil && !equal(res.Before, seen[at].Before):
			res.leave(changedAsleep, now)
		case res.AsleepAt == nil && res.WokenAt == nil && !res.Untouched && unsettled(res.AskedAt, seen[at], now): // it may be on its way down, and not be shown so yet
			s.wait(res.AskedAt.Add(seen[at].late()))
		case res.AsleepAt == nil && res.WokenAt == nil: // it never slept
			res.RestoredAt = &now
		case !seen[at].Ready:
			s.due(i, seen[at])
		default:
			res.RestoredAt = &now
		}
	}
	return s
}

// goneForGood is why a resource is left alone that is not there any more.
const goneForGood = "it is gone"

// Adopted is a record of a plan that was made anew, as out of a backup: what was made anew with it,
// and sleeps, is what slept. Another of the name that runs is somebody else's.
func (r Record) Adopted(seen []Observation) Record {
	there, others := map[Place]bool{}, map[string]Observation{}
	for _, o := range seen {
		if there[Place{o.ID, o.UID}] = true; !o.Gone && !o.Awake {
			others[o.ID] = o
		}
	}
	known := placesOf(r.Resources)
	r.Resources = slices.Clone(r.Resources)
	for i, res := range r.Resources {
		other, is := others[res.ID]
		if is && res.UID != "" && res.Left == "" && res.RestoredAt == nil && !there[Place{res.ID, res.UID}] && known.of(other) < 0 {
			r.Resources[i].UID = other.UID
		}
	}
	return r
}

// Expecting is the step without the conclusion that something is gone, as long as it may still come.
func (s Step) Expecting(before Record, now, until time.Time) Step {
	if !now.Before(until) {
		return s
	}
	for i, res := range before.Resources {
		if res.Left == "" && s.Record.Resources[i].Left == goneForGood {
			s.Record.Resources[i] = res
			s.wait(until)
		}
	}
	return s
}

// ByPlace is where each resource stands in what was seen, the first time.
func ByPlace(seen []Observation) map[Place]int {
	out := make(map[Place]int, len(seen))
	for i, o := range seen {
		if _, twice := out[Place{o.ID, o.UID}]; !twice {
			out[Place{o.ID, o.UID}] = i
		}
	}
	return out
}

// leave has a resource left alone until the cycle is over.
func (r *Resource) leave(why string, now time.Time) { r.Left, r.LeftAt = why, &now }

// RevivedNow says whether something put a resource back while it slept, or somebody started all of it.
func (r Resource) RevivedNow() bool {
	return r.AwakeAt != nil && r.WokenAt == nil && r.RestoredAt == nil && r.Left == ""
}

// SleptFor is how long a resource has slept in its cycle.
func (r Resource) SleptFor(now time.Time) time.Duration {
	return time.Duration(r.seconds(now)) * time.Second
}

// Bounds of the units that slept of one resource (guesses): what a resource is worth is a tenant's
// word, in each sleep another one, and JSON has no infinity. More hours than savings count.
const (
	mostUnitsSlept  = 100
	mostUnitSeconds = 1e20
)

// UnitSeconds is how long each unit of a resource has slept in its cycle, in seconds; nil: it
// has none.
func (r Resource) UnitSeconds(now time.Time) map[string]float64 {
	if len(r.Units)+len(r.UnitSlept) == 0 {
		return nil
	}
	out := map[string]float64{}
	maps.Copy(out, r.UnitSlept)
	before := float64(r.Slept)
	add := func(units map[string]float64, seconds float64) {
		for _, unit := range slices.Sorted(maps.Keys(units)) {
			if _, known := out[unit]; known || len(out) < mostUnitsSlept {
				out[unit] = min(out[unit]+units[unit]*seconds, mostUnitSeconds)
			}
		}
	}
	if r.UnitSlept == nil {
		add(r.Units, before)
	}
	part := r.PartUnits
	if part == nil {
		part = r.Units
	}
	add(part, float64(r.seconds(now))-before)
	return out
}

func (r Resource) seconds(now time.Time) int64 {
	if r.AsleepAt == nil {
		return r.Slept
	}
	end := now
	for _, at := range []*time.Time{r.AwakeAt, r.WokenAt, r.LeftAt, r.RestoredAt} {
		if at != nil && at.Before(end) {
			end = *at
		}
	}
	return r.Slept + max(0, int64(end.Sub(*r.AsleepAt)/time.Second))
}

// wakeUp is a resource that is to be woken, or that is on its way.
func (s *Step) wakeUp(o Observation, i int, now time.Time) {
	res := &s.Record.Resources[i]
	res.WokenAt = cmp.Or(res.WokenAt, &now)
	fell := o.Asleep && (o.Starting || res.StartingAt != nil)
	switch {
	case fell:
		res.StartingAt = nil // the next attempt is told apart from this one
	case o.Starting && res.StartingAt == nil:
		res.StartingAt = &now
	}
	s.due(i, o)
	s.Due[len(s.Due)-1].FellBack = fell
}

// Was says whether a value is what is to be put back.
func (r Resource) Was(value json.RawMessage) bool { return equal(r.Before, value) }

// equal says whether two recorded states are the same, whatever their spelling.
func equal(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return false
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}

// Sleeping is how many resources of a record sleep, or are on the way.
func (r Record) Sleeping() int {
	return r.count(func(res Resource) bool { return res.Left == "" && res.RestoredAt == nil })
}

// Asleep is how many resources of a record sleep.
func (r Record) Asleep() int {
	return r.count(func(res Resource) bool {
		return res.AsleepAt != nil && res.WokenAt == nil && res.RestoredAt == nil && res.Left == "" && !res.RevivedNow()
	})
}

func (r Record) count(is func(Resource) bool) (n int) {
	for _, res := range r.Resources {
		if is(res) {
			n++
		}
	}
	return n
}

// TargetStatus is one entry of status.maint.dev/targets.
type TargetStatus struct {
	Target     string     `json:"target"`
	Executor   string     `json:"executor"`
	Operation  Operation  `json:"operation,omitempty"` // that the state is of; empty: an older agent wrote it
	State      State      `json:"state"`
	StartedAt  *time.Time `json:"startedAt,omitempty"`
	FinishedAt *time.Time `json:"finishedAt,omitempty"`
	Attempts   int        `json:"attempts,omitempty"`
	Message    string     `json:"message,omitempty"`
	// LastTransition is since when it has its state; nil: nobody saw that begin.
	LastTransition *time.Time `json:"lastTransition,omitempty"`
}

// MaySleep says whether something of a target may be asleep, so that restore data is needed.
func (t TargetStatus) MaySleep() bool {
	switch t.Operation {
	case Wake:
		return t.State != Awake
	case Shutdown:
		return t.State == Asleep || t.State == Running || t.State == Failed
	}
	return t.State == Asleep
}

// Status is what a target's record says to people.
func (r Record) Status() TargetStatus {
	return TargetStatus{Target: r.Target, Executor: r.Executor, Operation: r.Operation, State: r.State, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt, Attempts: r.Attempts, Message: r.Message}
}
