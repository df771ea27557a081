package hibernate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// story is a plan of noop targets and how they stand.
type story struct {
	spec    Spec
	records []Record
	facts   Facts
}

var evening = time.Date(2026, 3, 2, 20, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // an instant

// asleepAt is a story in which all is to sleep; without records none has begun.
func toldToSleep(strategy Strategy, targets string, states ...string) story {
	s := story{spec: Spec{Execution: Execution{Strategy: strategy}}, facts: Facts{Now: evening, Namespace: "shop", Plan: "nights", UID: "u", Sleep: true, Cycle: "nights-1", Until: new(evening.Add(10 * time.Hour))}}
	for _, name := range strings.Fields(targets) {
		s.spec.Targets = append(s.spec.Targets, Target{Name: name, Type: TypeNoop})
	}
	return s.stand(Shutdown, states...)
}

func toldToWake(strategy Strategy, targets string, states ...string) story {
	s := toldToSleep(strategy, targets)
	s.facts.Sleep, s.facts.Until = false, nil
	return s.stand(Wake, states...)
}

// stand adds records: "a Running", or "a shutdown Asleep" for one of another operation.
func (s story) stand(op Operation, states ...string) story {
	for _, one := range states {
		words := strings.Fields(one)
		r := Record{Plan: "nights", Target: words[0], Executor: TypeNoop, Operation: op, Cycle: "nights-1", State: State(words[len(words)-1]), Snapshot: Snapshot{Spec: s.spec, BeganAt: evening, WakeAt: s.facts.Until}}
		if len(words) == 3 {
			r.Operation = Operation(words[1])
		}
		if r.State == Failed {
			r.Message, r.NotBefore = "boom", new(evening.Add(time.Minute))
		}
		s.records = append(s.records, r)
	}
	return s
}

// checked adds a health check to the plan.
func (s story) checked() story {
	s.spec.HealthChecks = []any{map[string]any{}}
	for i := range s.records {
		s.records[i].FinishedAt = &evening
	}
	return s
}

func (s story) with(edit func(f *Facts)) story {
	edit(&s.facts)
	return s
}

func (s story) bestEffort() story {
	s.spec.Behavior.Mode = BestEffort
	for i := range s.records {
		s.records[i].Snapshot.Spec = s.spec
	}
	return s
}

// edited is the plan with another mode than that of its sleep.
func (s story) edited(mode Mode) story {
	s.spec.Behavior.Mode = mode
	return s
}

// without takes a target out of the plan, and leaves its record.
func (s story) without(target string) story {
	s.spec.Targets = slices.DeleteFunc(slices.Clone(s.spec.Targets), func(t Target) bool { return t.Name == target })
	return s
}

func (s story) decide() Decision {
	s.facts.Spec, s.facts.Records = s.spec, s.records
	return Decide(s.facts)
}

// told is what a decision comes to: "Phase: message", what is written, what is done, and
// what is closed.
func told(d Decision) []string {
	out := []string{string(d.Phase) + ": " + d.Message}
	for _, r := range d.Write {
		line := fmt.Sprintf("write %s %s %s", r.Target, r.Operation, r.State)
		if r.Message != "" {
			line += ": " + r.Message
		}
		out = append(out, line)
	}
	for _, a := range d.Acts {
		out = append(out, fmt.Sprintf("%s %s", a.Operation, a.Target))
	}
	for _, name := range d.Closed {
		out = append(out, "close "+name)
	}
	if d.Check {
		out = append(out, "check")
	}
	if !d.Again.IsZero() {
		out = append(out, "again in "+d.Again.Sub(evening).String())
	}
	return out
}

func TestWhatIsDoneNext(t *testing.T) {
	one := new(1)
	dag := Strategy{Type: DAG, Dependencies: []Dependency{{From: "db", To: "app"}}}
	staged := Strategy{Type: Staged, Stages: []Stage{{Targets: []string{"a", "b"}, Parallel: true, MaxConcurrency: one}, {Targets: []string{"c"}}}}
	for name, c := range map[string]struct {
		given story
		want  []string
	}{
		"nothing sleeps, and nothing is to": {toldToWake(Strategy{}, "a b"), []string{"Active: "}},
		"the first falls asleep, the next waits": {toldToSleep(Strategy{}, "a b"), []string{
			"Hibernating: 0 of 2 targets sleep", "write a shutdown Running", "write b shutdown Pending: waits for a", "shutdown a",
		}},
		"it sleeps, and the next begins": {toldToSleep(Strategy{}, "a b", "a Asleep", "b Pending"), []string{
			"Hibernating: 1 of 2 targets sleep", "write b shutdown Running", "shutdown a", "shutdown b",
		}},
		"all sleep, and are looked at again":   {toldToSleep(Strategy{}, "a b", "a Asleep", "b Asleep"), []string{"Hibernated: 2 of 2 targets sleep", "shutdown a", "shutdown b"}},
		"all at once":                          {toldToSleep(Strategy{Type: Parallel}, "a b"), []string{"Hibernating: 0 of 2 targets sleep", "write a shutdown Running", "write b shutdown Running", "shutdown a", "shutdown b"}},
		"so many at once":                      {toldToSleep(Strategy{Type: Parallel, MaxConcurrency: one}, "a b"), []string{"Hibernating: 0 of 2 targets sleep", "write a shutdown Running", "write b shutdown Pending: waits for its turn: 1 at once", "shutdown a"}},
		"one that sleeps takes nobody's place": {toldToSleep(Strategy{Type: Parallel, MaxConcurrency: one}, "a b", "a Asleep", "b Pending"), []string{"Hibernating: 1 of 2 targets sleep", "write b shutdown Running", "shutdown a", "shutdown b"}},
		"a target waits for its parents alone": {toldToSleep(dag, "app db other"), []string{
			"Hibernating: 0 of 3 targets sleep", "write app shutdown Pending: waits for db", "write db shutdown Running", "write other shutdown Running", "shutdown db", "shutdown other",
		}},
		"stages one after the other, with their own limits": {toldToSleep(staged, "a b c"), []string{
			"Hibernating: 0 of 3 targets sleep", "write a shutdown Running", "write b shutdown Pending: waits for its turn: 1 at once", "write c shutdown Pending: waits for a", "shutdown a",
		}},
		"waking is the reverse": {toldToWake(Strategy{}, "a b", "a shutdown Asleep", "b shutdown Asleep"), []string{
			"WakingUp: 0 of 2 targets are awake", "write a wake Pending: waits for b", "write b wake Running", "wake b",
		}},
		"what depends on another wakes before it": {toldToWake(dag, "app db", "app shutdown Asleep", "db shutdown Asleep"), []string{
			"WakingUp: 0 of 2 targets are awake", "write app wake Running", "write db wake Pending: waits for app", "wake app",
		}},
		"all are awake": {toldToWake(Strategy{}, "a b", "a Awake", "b Awake"), []string{"Active: all targets are awake", "close a", "close b"}},
		"one wakes while it falls asleep": {toldToWake(Strategy{}, "a b", "a shutdown Running", "b shutdown Pending"), []string{
			"WakingUp: 0 of 2 targets are awake", "write a wake Pending: waits for b", "write b wake Running", "wake b",
		}},
		"one sleeps again while it wakes": {toldToSleep(Strategy{}, "a b", "a wake Pending", "b wake Running"), []string{
			"Hibernating: 0 of 2 targets sleep", "write a shutdown Running", "write b shutdown Pending: waits for a", "shutdown a",
		}},

		"strict: what follows a failure does not begin": {toldToSleep(Strategy{Type: Parallel, MaxConcurrency: one}, "a b c", "a Failed", "b Asleep", "c Pending"), []string{
			"Error: a failed: boom", "write c shutdown Pending: waits: a has failed", "shutdown b",
		}},
		"strict: what is at work goes on": {toldToSleep(Strategy{Type: Parallel}, "a b", "a Failed", "b Running"), []string{"Hibernating: 0 of 2 targets sleep", "shutdown b"}},
		"strict: what failed to fall asleep wakes with the others": {toldToWake(Strategy{}, "a b", "a shutdown Failed", "b shutdown Pending"), []string{
			"WakingUp: 0 of 2 targets are awake", "write a wake Pending: waits for b", "write b wake Running", "wake b",
		}},
		"strict: what does not wake keeps nothing asleep but what waits for it": {toldToWake(dag, "app db other", "app Failed", "db Pending", "other Pending"), []string{
			"WakingUp: 0 of 3 targets are awake", "write db wake Pending: waits for app", "write other wake Running", "wake other", "again in 1m0s",
		}},
		"strict: what waits for one that does not wake sleeps on, and it is said": {toldToWake(Strategy{}, "a b c", "a Pending", "b Pending", "c Failed"), []string{
			"Error: c failed: boom; these sleep until it is awake: a, b; with behavior.mode BestEffort they wake all the same", "write a wake Pending: waits for b", "write b wake Pending: waits for c", "again in 1m0s",
		}},
		"strict: a pause keeps it asleep, too": {toldToWake(Strategy{}, "a b", "a Pending", "b Failed").with(func(f *Facts) { f.Keep = true }), []string{"Error: b failed: boom", "again in 1m0s"}},
		"strict, and edited to best effort: what waits for one that does not wake wakes": {toldToWake(Strategy{}, "a b c", "a Pending", "b Pending", "c Failed").edited(BestEffort), []string{
			"WakingUp: 0 of 3 targets are awake", "write a wake Pending: waits for b", "write b wake Running", "wake b", "again in 1m0s",
		}},
		"best effort, and edited to strict: nothing is kept asleep for a failure": {toldToWake(Strategy{}, "a b", "a Pending", "b Failed").bestEffort().edited(Strict), []string{
			"WakingUp: 0 of 2 targets are awake", "write a wake Running", "wake a", "again in 1m0s",
		}},
		"strict, and edited to best effort as it falls asleep: the mode of the plan counts": {toldToSleep(Strategy{}, "a b", "a Failed", "b Pending").edited(BestEffort), []string{
			"Hibernating: 0 of 2 targets sleep", "write b shutdown Running", "shutdown b",
		}},
		"what does not wake is tried again": {toldToWake(Strategy{}, "a", "a Failed").with(func(f *Facts) { f.Now = evening.Add(time.Minute) }), []string{
			"WakingUp: 0 of 1 targets are awake", "write a wake Running: boom", "wake a",
		}},
		"what does not wake is said meanwhile": {toldToWake(Strategy{}, "a", "a Failed"), []string{"Error: a failed: boom", "again in 1m0s"}},
		"best effort: what depends on a failure is aborted, the rest goes on": {toldToSleep(dag, "app db other", "db Failed", "app Pending", "other Pending").bestEffort(), []string{
			"Hibernating: 0 of 3 targets sleep", "write app shutdown Aborted: db has failed", "write other shutdown Running", "shutdown other",
		}},
		"best effort: so is what depends on that": {toldToSleep(Strategy{Type: DAG, Dependencies: []Dependency{{"a", "b"}, {"b", "c"}}}, "a b c", "a Failed", "b Aborted", "c Pending").bestEffort(), []string{
			"Error: a failed: boom; b aborted: ; c aborted: b has failed", "write c shutdown Aborted: b has failed",
		}},
		"best effort: what is only later goes on": {toldToSleep(Strategy{}, "a b", "a Failed", "b Pending").bestEffort(), []string{
			"Hibernating: 0 of 2 targets sleep", "write b shutdown Running", "shutdown b",
		}},
		"best effort: the partial result is said":   {toldToSleep(dag, "app db other", "db Failed", "app Aborted", "other Asleep").bestEffort(), []string{"Hibernated: 1 of 3 targets sleep; db failed: boom; app aborted: ", "shutdown other"}},
		"best effort: nothing sleeping is an error": {toldToSleep(Strategy{}, "a", "a Failed").bestEffort(), []string{"Error: a failed: boom"}},
		"best effort: nothing is kept asleep for a failure": {toldToWake(dag, "app db", "app Failed", "db Pending").bestEffort(), []string{
			"WakingUp: 0 of 2 targets are awake", "write db wake Running", "wake db", "again in 1m0s",
		}},

		"a pause before a cycle: nothing begins": {toldToSleep(Strategy{}, "a").with(func(f *Facts) { f.Keep = true }), []string{"Active: "}},
		"a pause in a cycle: what is at work goes on to its end": {toldToSleep(Strategy{Type: Parallel, MaxConcurrency: one}, "a b c", "a Running", "b Asleep").with(func(f *Facts) { f.Keep = true }), []string{
			"Hibernating: 1 of 2 targets sleep", "shutdown a",
		}},
		"a pause: what sleeps is not woken":      {toldToWake(Strategy{}, "a", "a shutdown Asleep").with(func(f *Facts) { f.Keep = true }), []string{"WakingUp: 0 of 1 targets are awake"}},
		"a pause: what wakes wakes to the end":   {toldToWake(Strategy{}, "a b", "b Running", "a Pending").with(func(f *Facts) { f.Keep = true }), []string{"WakingUp: 0 of 2 targets are awake", "wake b"}},
		"a pause: a failure waits, and no clock": {toldToWake(Strategy{}, "a", "a Failed").with(func(f *Facts) { f.Keep, f.Now = true, evening.Add(time.Hour) }), []string{"Error: a failed: boom"}},

		"a policy forbids that it begins, and a pause": {toldToSleep(Strategy{}, "a").with(func(f *Facts) { f.Forbidden, f.Keep, f.Retry = "release week", true, true }), []string{"Active: does not fall asleep: release week"}},
		"a policy forbids that it begins":              {toldToSleep(Strategy{}, "a").with(func(f *Facts) { f.Forbidden = "release week" }), []string{"Active: does not fall asleep: release week"}},
		"a policy does not end what began": {toldToSleep(Strategy{}, "a b", "a Asleep", "b Pending").with(func(f *Facts) { f.Forbidden = "release week" }), []string{
			"Hibernating: 1 of 2 targets sleep", "write b shutdown Running", "shutdown a", "shutdown b",
		}},

		"a policy keeps what woke awake": {toldToSleep(Strategy{Type: Parallel}, "a b", "a wake Awake", "b Asleep").with(func(f *Facts) { f.Forbidden = "release week" }), []string{
			"Hibernating: 1 of 2 targets sleep", "shutdown b",
		}},
		"a policy keeps what is new in the plan awake": {toldToSleep(Strategy{Type: Parallel}, "a b", "a Asleep").with(func(f *Facts) { f.Forbidden = "release week" }), []string{
			"Hibernated: 1 of 1 targets sleep", "shutdown a",
		}},
		"a policy lets what has not woken yet sleep on": {toldToSleep(Strategy{Type: Parallel}, "a b", "a wake Running", "b Asleep").with(func(f *Facts) { f.Forbidden = "release week" }), []string{
			"Hibernating: 1 of 2 targets sleep", "write a shutdown Running", "shutdown a", "shutdown b",
		}},
		"a policy forbids it, and all are awake": {toldToSleep(Strategy{Type: Parallel}, "a b", "a wake Awake", "b wake Awake").with(func(f *Facts) { f.Forbidden = "release week" }), []string{
			"Active: does not fall asleep: release week",
		}},

		"a policy forbids the next sleep, and all are awake": {toldToWake(Strategy{}, "a", "a Awake").with(func(f *Facts) { f.Forbidden = "release week" }), []string{
			"Active: all targets are awake", "close a",
		}},

		"somebody asks for another attempt":  {toldToSleep(Strategy{}, "a b", "a Failed", "b Pending").with(func(f *Facts) { f.Retry = true }), []string{"Hibernating: 0 of 2 targets sleep", "write a shutdown Running", "write b shutdown Pending: waits for a", "shutdown a"}},
		"of what was aborted, too":           {toldToSleep(dag, "app db", "db Asleep", "app Aborted").bestEffort().with(func(f *Facts) { f.Retry = true }), []string{"Hibernating: 1 of 2 targets sleep", "write app shutdown Running", "shutdown app", "shutdown db"}},
		"of what does not wake":              {toldToWake(Strategy{}, "a", "a Failed").with(func(f *Facts) { f.Retry = true }), []string{"WakingUp: 0 of 1 targets are awake", "write a wake Running", "wake a"}},
		"while it is paused: not of another": {toldToSleep(Strategy{}, "a", "a wake Failed").with(func(f *Facts) { f.Retry, f.Keep = true, true }), []string{"Error: a failed: boom", "write a wake Failed: boom"}},

		"health checks come before it is Active":    {toldToWake(Strategy{}, "a", "a Awake").checked(), []string{"WakingUp: all targets are awake; waits until they are healthy: not looked at yet", "check"}},
		"without a cycle there is nothing to check": {toldToWake(Strategy{}, "a").checked(), []string{"Active: "}},
		"they have passed":                          {toldToWake(Strategy{}, "a", "a Awake").checked().with(func(f *Facts) { f.Health.Healthy = true }), []string{"Active: all targets are awake", "close a"}},
		"they fail for too long": {toldToWake(Strategy{}, "a", "a Awake").checked().with(func(f *Facts) { f.Now, f.Health.Unhealthy = evening.Add(24*time.Hour), "web is not ready" }), []string{
			"Error: all targets are awake, and not healthy after " + HealthTimeout.String() + ": web is not ready", "check",
		}},
		"they fail as long as they may": {toldToWake(Strategy{}, "a", "a Awake").checked().with(func(f *Facts) { f.Now, f.Health.Unhealthy = evening.Add(HealthTimeout), "web is not ready" }), []string{
			"WakingUp: all targets are awake; waits until they are healthy: web is not ready", "check",
		}},
		"they are not made while one still wakes": {toldToWake(Strategy{Type: Parallel}, "a b", "a Awake", "b Running").checked(), []string{"WakingUp: 1 of 2 targets are awake", "wake b"}},
		"a sleep does not wait for them":          {toldToSleep(Strategy{}, "a", "a wake Awake").checked(), []string{"Hibernating: 0 of 1 targets sleep", "write a shutdown Running", "shutdown a"}},

		"its restore data is gone: it is said": {toldToWake(Strategy{}, "a b").with(func(f *Facts) { f.Missing = []string{"a"} }), []string{
			"Error: the restore data of a is gone: nobody knows how it was before it was put to sleep; wake it by hand, and say so with 'kubectl maint -n shop trigger nights'",
		}},
		"its restore data is gone: it is not begun anew, and the rest wakes": {toldToSleep(Strategy{Type: Parallel}, "a b", "b Asleep").with(func(f *Facts) { f.Missing = []string{"a"} }), []string{
			"Error: the restore data of a is gone: nobody knows how it was before it was put to sleep; wake it by hand, and say so with 'kubectl maint -n shop trigger nights'", "shutdown b",
		}},
		"restore data that does not count: nothing is done to its target": {toldToSleep(Strategy{Type: Parallel}, "a b").with(func(f *Facts) { f.Blocked = map[string]string{"a": "forged"} }), []string{
			"Error: forged", "write b shutdown Running", "shutdown b",
		}},
		"restore data that does not count: nothing is closed": {toldToWake(Strategy{}, "a b", "b Awake").with(func(f *Facts) { f.Blocked = map[string]string{"a": "forged"} }), []string{"Error: forged"}},

		"a target is new in the plan while it sleeps": {toldToSleep(Strategy{Type: Parallel}, "a b", "a Asleep"), []string{
			"Hibernating: 1 of 2 targets sleep", "write b shutdown Running", "shutdown a", "shutdown b",
		}},
		"one that was taken out of the plan stays asleep until the others wake": {toldToSleep(Strategy{}, "a b", "a Asleep", "b Asleep").without("b"), []string{"Hibernated: 2 of 2 targets sleep", "shutdown a"}},
		"one that was taken out while it fell asleep keeps nobody waiting": {toldToSleep(Strategy{Type: Parallel, MaxConcurrency: one}, "a b", "a Running", "b Pending").without("a"), []string{
			"Hibernating: 0 of 2 targets sleep", "write a shutdown Skipped: it was removed from the plan; what it put to sleep wakes with the other targets", "write b shutdown Running", "shutdown b",
		}},
		"then the rest is all there is": {toldToSleep(Strategy{Type: Parallel}, "a b", "a Skipped", "b Asleep").without("a"), []string{"Hibernated: 1 of 1 targets sleep", "shutdown b"}},
		"it is put into the plan again": {toldToSleep(Strategy{Type: Parallel}, "a b", "a Skipped", "b Asleep"), []string{
			"Hibernating: 1 of 2 targets sleep", "write a shutdown Running", "shutdown a", "shutdown b",
		}},
		"what was taken out wakes, too": {toldToWake(Strategy{}, "a b", "a Awake", "b shutdown Skipped").without("b"), []string{
			"WakingUp: 1 of 2 targets are awake", "write b wake Running", "wake b",
		}},
	} {
		if diff := diffOf(c.want, told(c.given.decide())); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func diffOf(want, got []string) string {
	if slices.Equal(want, got) {
		return ""
	}
	return "want\n  " + strings.Join(want, "\n  ") + "\ngot\n  " + strings.Join(got, "\n  ")
}

// What passes of an operation write does not count: it is not a decision that writes it.
func TestWhichChangesOfARecordAreWritten(t *testing.T) {
	later := evening.Add(time.Second)
	for name, c := range map[string]struct {
		edit func(*Record)
		want bool
	}{
		"none":                                 {func(*Record) {}, false},
		"the same instant by another clock":    {func(r *Record) { r.StartedAt = new(evening.In(time.FixedZone("", 3600))) }, false},
		"what is recorded of its resources":    {func(r *Record) { r.Resources = []Resource{{ID: "web"}} }, false},
		"its operation":                        {func(r *Record) { r.Operation = Wake }, true},
		"its state":                            {func(r *Record) { r.State = Asleep }, true},
		"its attempts":                         {func(r *Record) { r.Attempts = 2 }, true},
		"what it says":                         {func(r *Record) { r.Message = "waits for b" }, true},
		"when it began":                        {func(r *Record) { r.StartedAt = &later }, true},
		"that it began":                        {func(r *Record) { r.StartedAt = nil }, true},
		"when it ended":                        {func(r *Record) { r.FinishedAt = &later }, true},
		"when it is tried again":               {func(r *Record) { r.NotBefore = &later }, true},
		"that it is tried again at an instant": {func(r *Record) { r.NotBefore = nil }, true},
		"when it wakes":                        {func(r *Record) { r.Snapshot.WakeAt = &later }, true},
	} {
		was := Record{Operation: Shutdown, State: Running, Attempts: 1, Message: "boom", StartedAt: new(evening), FinishedAt: new(evening), NotBefore: new(evening), Snapshot: Snapshot{WakeAt: new(evening)}}
		is := was
		c.edit(&is)
		if changed(was, is) != c.want || changed(is, was) != c.want {
			t.Errorf("%s: it is written: %t", name, !c.want)
		}
	}
}

func TestHowManyTargetsBeginToSleep(t *testing.T) {
	for name, c := range map[string]struct {
		given story
		want  int
	}{
		"all, where nothing sleeps":          {toldToSleep(Strategy{}, "a b"), 2},
		"one that woke before the others":    {toldToSleep(Strategy{}, "a b", "a wake Awake", "b Asleep"), 1},
		"none that is still waking":          {toldToSleep(Strategy{}, "a b", "a wake Running", "b wake Failed"), 0},
		"none that falls asleep already":     {toldToSleep(Strategy{}, "a b", "a Running", "b Pending"), 0},
		"one that is new, and no one else's": {toldToSleep(Strategy{}, "a b", "b Asleep", "c Asleep"), 1},
	} {
		f := c.given.facts
		f.Spec, f.Records = c.given.spec, c.given.records
		if got := f.Beginning(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// What a wrong clock wrote keeps nothing waiting for longer than anything waits.
func TestHowLongATargetIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		until *time.Time
		want  bool
	}{
		"it waits for nothing":         {nil, false},
		"until now":                    {new(evening), false},
		"for a second":                 {new(evening.Add(time.Second)), true},
		"for as long as anything does": {new(evening.Add(longestPause)), true},
		"for longer than anything":     {new(evening.Add(longestPause + time.Second)), false},
	} {
		if got := (Record{NotBefore: c.until}).Waits(evening); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// What a decision wrote is what the next one rests on: the same again changes nothing.
func TestADecisionTwiceIsOnce(t *testing.T) {
	s := toldToSleep(Strategy{}, "a b", "a wake Failed")
	first := s.decide()
	s.records = first.Write
	if second := s.decide(); len(second.Write) > 0 || second.Phase != first.Phase {
		t.Errorf("%q, then %q", told(first), told(second))
	}
}

// A target that woke while another did not begins its next sleep by the plan as it is now,
// with what was left alone in the last one; what slept is not forgotten.
func TestANewSleepOfWhatIsAwakeIsRecordedAnew(t *testing.T) {
	s := toldToSleep(Strategy{Type: Parallel}, "a b", "a wake Awake", "b wake Failed")
	s.records[0].Resources = []Resource{
		{ID: "1", UID: "u", Before: []byte("3"), AsleepAt: new(evening.Add(-time.Hour)), Left: "somebody changed it while it slept", LeftAt: &evening, Revived: 3},
		{ID: "2", UID: "u", Before: []byte("3"), AsleepAt: new(evening.Add(-time.Hour)), WokenAt: &evening, RestoredAt: &evening},
	}
	s.records[1].Resources = []Resource{{ID: "3"}}
	s.facts.Cycle = "nights-2"
	s.spec.Targets[0].Parameters = map[string]any{"delay": "1s"}
	d := s.decide()
	if len(d.Write) != 2 || d.Write[0].Cycle != "nights-2" || d.Write[0].Snapshot.Spec.Targets[0].Parameters == nil || d.Write[0].Sleeping() > 0 {
		t.Fatalf("a is recorded as %+v", d.Write[0])
	}
	if r := d.Write[1]; len(r.Resources) != 1 || r.Cycle != "nights-1" {
		t.Errorf("b is recorded as %+v", r)
	}
	seen := []Observation{{ID: "1", UID: "u", Awake: true, Before: []byte("5")}, {ID: "2", UID: "u", Asleep: true}}
	step := d.Write[0].ToSleep(seen, evening)
	if got, want := said(step), "due 1, 1 was 5; 2 was 3 restored left: somebody stopped it"; got != want {
		t.Errorf("it comes to %q, want %q", got, want)
	}
	if got := step.Record.Resources[0].Slept; got != 3600 {
		t.Errorf("it slept %d seconds", got)
	}
	s.spec.Targets[0].Type = TypeWorkload
	if d := s.decide(); len(d.Write[0].Resources) > 0 || d.Write[0].Executor != TypeWorkload {
		t.Errorf("of another type it is recorded as %+v", d.Write[0])
	}
}

// What a snapshot says counts, not what became of the plan.
func TestWakingGoesByTheOrderOfTheSleep(t *testing.T) {
	s := toldToWake(Strategy{}, "a b", "a shutdown Asleep", "b shutdown Asleep")
	s.spec = Spec{Targets: []Target{{Name: "b", Type: TypeNoop}, {Name: "a", Type: TypeNoop}}}
	if got := s.decide().Acts; len(got) != 1 || got[0] != (Act{"b", Wake}) {
		t.Errorf("it begins with %v", got)
	}
}

func TestWhenItWakesIsKeptWithWhatSleeps(t *testing.T) {
	s := toldToSleep(Strategy{}, "a", "a Asleep")
	later := evening.Add(12 * time.Hour)
	s.facts.Until = &later
	if d := s.decide(); len(d.Write) != 1 || !d.Write[0].Snapshot.WakeAt.Equal(later) {
		t.Errorf("%+v", d.Write)
	}
}

// What is not asleep of a target that sleeps is said, also while something puts it back.
func TestATargetThatSleepsSaysWhatOfItDoesNot(t *testing.T) {
	asleep := Record{Operation: Shutdown, State: Asleep, FinishedAt: &evening}
	revived := []Resource{{ID: "web", Revived: 2, RevivedBy: "flux", NotBefore: new(evening.Add(5 * time.Minute))}}
	five := make([]Resource, 5)
	for i := range five {
		five[i] = Resource{ID: string(rune('a' + i)), Left: "it is gone"}
	}
	for name, c := range map[string]struct {
		resources []Resource
		done      bool
		want      string
	}{
		"all of it sleeps":                {[]Resource{{ID: "web", AsleepAt: &evening}}, true, ""},
		"there is nothing":                {nil, true, "nothing that it selects is awake"},
		"something puts it back":          {revived, false, "web: flux puts it back; it was put to sleep again 2 times, the next time not before 2026-03-02T20:05:00Z"},
		"something did, and it sleeps":    {revived, true, "web: flux puts it back; it was put to sleep again 2 times, the next time not before 2026-03-02T20:05:00Z"},
		"something did for the last time": {[]Resource{{ID: "web", AsleepAt: &evening, Revived: 1, RevivedBy: "flux"}}, true, ""},
		"all that there was is gone":      {[]Resource{{ID: "web", Left: "it is gone"}}, true, "web: it is gone"},
		"as many are gone as are told":    {five, true, "a: it is gone; b: it is gone; c: it is gone; d: it is gone; e: it is gone"},
		"something is new, and may fall":  {[]Resource{{ID: "web"}}, false, ""},
	} {
		r := asleep
		r.Resources, r.Message = c.resources, "what was said before"
		if got := r.Passed(c.done, "", 3, evening); got.State != Asleep || got.Message != c.want {
			t.Errorf("%s: %s, %q, want %q", name, got.State, got.Message, c.want)
		}
	}
}

func TestAPassIsCountedAndTriedAgainLaterAndLater(t *testing.T) {
	r := Record{Operation: Shutdown, State: Running, Resources: []Resource{{ID: "x", Left: "it is gone"}}, LeftOut: []string{"y: spot"}}
	for i, pause := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
		r = r.Passed(false, "boom", 2, evening)
		if r.Attempts != i+1 || !r.NotBefore.Equal(evening.Add(pause)) || r.Message != "boom" || (r.State == Failed) != (i == 2) {
			t.Fatalf("after failure %d: %+v", i+1, r)
		}
	}
	for range 30 {
		r = r.Passed(false, "boom", 2, evening)
	}
	if !r.NotBefore.Equal(evening.Add(10 * time.Minute)) {
		t.Errorf("the longest pause ends at %s", r.NotBefore)
	}
	r = r.Passed(true, "", 2, evening)
	if r.State != Asleep || r.NotBefore != nil || !r.FinishedAt.Equal(evening) || r.Message != "x: it is gone; y: spot" {
		t.Errorf("done: %+v", r)
	}
	asleep := r.Passed(false, "the API server is away", 2, evening.Add(time.Hour))
	if asleep.State != Asleep || asleep.Attempts != r.Attempts || !asleep.NotBefore.Equal(evening.Add(61*time.Minute)) {
		t.Errorf("it sleeps, and could not be looked at: %+v", asleep)
	}
	awake := Record{Operation: Wake, State: Running, NotBefore: &evening}.Passed(false, "", 2, evening)
	if awake.State != Running || awake.NotBefore != nil {
		t.Errorf("not yet: %+v", awake)
	}
	if awake = awake.Passed(true, "", 2, evening); awake.State != Awake {
		t.Errorf("done: %+v", awake)
	}
}
