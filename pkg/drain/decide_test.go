package drain_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

func same(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// situation is a drain that began a minute ago, with slots for all.
type situation struct {
	drain.View
	pods []drain.Pod
}

func during(o drain.Options, pods ...drain.Pod) *situation {
	return &situation{
		View: drain.View{
			Now: now(), Since: now().Add(-time.Minute), Options: o, Slots: 10, Room: map[string]int{}, Turns: map[string]int{},
			Asked: map[string]drain.Asked{}, Replacements: map[string]drain.Replacement{}, Returned: map[string]int{},
		},
		pods: pods,
	}
}

func (s *situation) with(f func(*situation)) *situation { f(s); return s }

func (s *situation) decide() drain.Decision {
	s.Judged = drain.NewJudge(s.Options, daemonSets).All(s.pods)
	return drain.Decide(s.View)
}

func names(pods []drain.Pod) string {
	var out []string
	for _, p := range pods {
		out = append(out, p.Name)
	}
	return strings.Join(out, " ")
}

func states(d drain.Decision) map[string]drain.State {
	out := map[string]drain.State{}
	for _, p := range d.Pods {
		out[strings.TrimPrefix(p.Pod, "shop/")] = p.State
	}
	return out
}

func pod(name string, changes ...func(*drain.Pod)) drain.Pod {
	return web(append([]func(*drain.Pod){named(name)}, changes...)...)
}

func order(n int) func(*drain.Pod) { return func(p *drain.Pod) { p.Order = n } }
func leaving(p *drain.Pod)         { p.Deleting, p.DeleteBy = true, now().Add(time.Second) }

func d(span time.Duration) *document.Duration { return &document.Duration{Duration: span} }

func asked(uid string, a drain.Asked) func(*situation) {
	return func(s *situation) { s.Asked["uid-"+uid] = a }
}

func TestDecide(t *testing.T) {
	var none drain.Options
	over := func(o drain.OnTimeout) drain.Options {
		return drain.Options{Timeout: d(30 * time.Second), OnTimeout: o}
	}
	room := func(n int) func(*situation) {
		return func(s *situation) {
			s.Budgets, s.Room, s.Turns["shop/web"] = []drain.Budget{budget()}, map[string]int{"shop/web": n}, 10
		}
	}
	cut := func(name string, ago time.Duration) func(*situation) {
		return func(s *situation) {
			s.Budgets[0].Disrupted, s.MayDelete = map[string]time.Time{name: now().Add(-ago)}, true
		}
	}
	tight := func(s *situation) { full(&s.Budgets[0]) }
	turns := func(n int) func(*situation) {
		return func(s *situation) { s.Turns["shop/web"] = n }
	}
	for name, c := range map[string]struct {
		s        *situation
		evict    string
		deletes  string
		surge    string
		states   map[string]drain.State
		done     bool
		aborted  bool
		late     bool
		wake     time.Duration // from now; zero: the deadline, or never
		left     int
		wantHeld int
		lines    string
		finish   string
		blocks   string // checked where it is set
	}{
		"an empty node is drained": {s: during(none), done: true},
		"what stays is no hindrance": {
			s: during(none, pod("d", daemon("there")), pod("s", how("skip"))), done: true,
		},
		"pods of no budget go at once": {
			s: during(none, pod("a"), pod("b")), evict: "a b",
			states: map[string]drain.State{"a": drain.Evicting, "b": drain.Evicting},
		},
		"as many as there are requests free": {
			s: during(none, pod("a"), pod("b"), pod("c")).with(func(s *situation) { s.Slots = 2 }), evict: "a b",
			states: map[string]drain.State{"a": drain.Evicting, "b": drain.Evicting, "c": drain.Queued},
		},
		"as many as the budget has room": {
			s: during(none, pod("a"), pod("b"), pod("c")).with(room(2)), evict: "a b", wantHeld: 1,
			states: map[string]drain.State{"a": drain.Evicting, "b": drain.Evicting, "c": drain.Waiting},
		},
		"as many at once as do not hinder each other": {
			s: during(none, pod("a"), pod("b"), pod("c"), pod("d")).with(room(3)).with(turns(1)), evict: "a", wantHeld: 1,
			states: map[string]drain.State{"a": drain.Evicting, "b": drain.Queued, "c": drain.Queued, "d": drain.Waiting}, lines: "shop/web",
		},
		"a pod that has no need of room needs no turn": {
			s: during(none, pod("a"), pod("b", unready)).with(room(1)).with(turns(0)), evict: "b",
			states: map[string]drain.State{"a": drain.Queued, "b": drain.Evicting}, lines: "shop/web",
		},
		"nor does what is deleted past its budget": {
			s: during(over(drain.TimeoutForce), pod("a")).with(room(0)).with(turns(0)), deletes: "a",
			states: map[string]drain.State{"a": drain.Evicting},
		},
		"a pod that has no need of room passes": {
			s: during(none, pod("a"), pod("b", unready)).with(room(0)), evict: "b", wantHeld: 1,
			states: map[string]drain.State{"a": drain.Waiting, "b": drain.Evicting},
		},
		"of the lowest order first": {
			s: during(none, pod("a", order(2)), pod("b", order(-1)), pod("c")), evict: "b",
			states: map[string]drain.State{"a": drain.Waiting, "b": drain.Evicting, "c": drain.Waiting},
		},
		"the next order waits until the last has gone": {
			s:      during(none, pod("a", leaving), pod("b", order(1))),
			states: map[string]drain.State{"a": drain.Terminating, "b": drain.Waiting}, wake: time.Minute + 2*time.Second,
		},
		"the next order waits for what has to complete": {
			s:      during(none, pod("a", how("wait-completed")), pod("b", order(1))),
			states: map[string]drain.State{"a": drain.Waiting, "b": drain.Waiting},
		},
		"what is asked for is not asked for again": {
			s:      during(none, pod("a")).with(asked("a", drain.Asked{Answer: drain.InFlight})),
			states: map[string]drain.State{"a": drain.Evicting},
		},
		"what was accepted is waited for": {
			s:      during(none, pod("a")).with(asked("a", drain.Asked{Answer: drain.Accepted, At: now().Add(-time.Second)})),
			states: map[string]drain.State{"a": drain.Evicting}, wake: 29 * time.Second,
		},
		"what was accepted and never went is asked for again": {
			s:     during(none, pod("a")).with(asked("a", drain.Asked{Answer: drain.Accepted, At: now().Add(-time.Minute)})),
			evict: "a", states: map[string]drain.State{"a": drain.Evicting},
		},
		"what failed waits": {
			s:      during(none, pod("a")).with(asked("a", drain.Asked{Answer: drain.Failed, NotBefore: now().Add(time.Second)})),
			states: map[string]drain.State{"a": drain.Waiting}, wake: time.Second,
		},
		"what failed is tried again": {
			s:     during(none, pod("a")).with(asked("a", drain.Asked{Answer: drain.Failed, NotBefore: now()})),
			evict: "a", states: map[string]drain.State{"a": drain.Evicting},
		},
		"what may have been accepted holds its own place": {
			s:     during(none, pod("a"), pod("b")).with(room(0)).with(asked("a", drain.Asked{Answer: drain.Failed, Unclear: true})),
			evict: "a", states: map[string]drain.State{"a": drain.Evicting, "b": drain.Waiting}, wantHeld: 1,
		},
		"a budget that said no is not asked again as it is": {
			s:      during(none, pod("a")).with(room(1)).with(asked("a", drain.Asked{Answer: drain.OverBudget, Version: 10, At: now()})),
			states: map[string]drain.State{"a": drain.Waiting}, wantHeld: 1, wake: time.Minute,
		},
		"a budget that moved is asked again": {
			s:     during(none, pod("a")).with(room(1)).with(asked("a", drain.Asked{Answer: drain.OverBudget, Version: 9, At: now()})),
			evict: "a", states: map[string]drain.State{"a": drain.Evicting},
		},
		"an eviction that was cut off is finished": {
			s: during(none, pod("a"), pod("b")).with(room(0)).with(cut("a", 10*time.Second)), finish: "a", wantHeld: 1,
			states: map[string]drain.State{"a": drain.Evicting, "b": drain.Waiting},
		},
		"but not before the pod could have been seen going": {
			s: during(none, pod("a")).with(room(0)).with(cut("a", time.Second)), wantHeld: 1,
			states: map[string]drain.State{"a": drain.Waiting}, wake: 4 * time.Second,
		},
		"nor when its budget may forget it": {
			s: during(none, pod("a")).with(room(0)).with(cut("a", 61*time.Second)), wantHeld: 1,
			states: map[string]drain.State{"a": drain.Waiting},
		},
		"nor by who may not delete": {
			s: during(none, pod("a")).with(room(0)).with(cut("a", 10*time.Second)).with(func(s *situation) { s.MayDelete = false }), wantHeld: 1,
			states: map[string]drain.State{"a": drain.Waiting},
		},
		"nor where another pod has the name now": {
			s: during(none, pod("a", func(p *drain.Pod) { p.Created = now().Add(-5 * time.Second) })).with(room(0)).with(cut("a", 10*time.Second)), wantHeld: 1,
			states: map[string]drain.State{"a": drain.Waiting},
		},
		"two budgets let nobody go": {
			s: during(none, pod("a")).with(func(s *situation) {
				s.Budgets = []drain.Budget{budget(), budget(func(b *drain.Budget) { b.Name = "x" })}
			}),
			states: map[string]drain.State{"a": drain.Waiting}, wantHeld: 1,
		},
		"a pod that is refused holds all": {
			s: during(none, pod("a"), pod("b", bare)), states: map[string]drain.State{"a": drain.Waiting, "b": drain.Refused},
		},
		"a pod that is refused and goes by itself holds nobody": {
			s: during(none, pod("a"), pod("b", bare, leaving)), evict: "a",
			states: map[string]drain.State{"a": drain.Evicting, "b": drain.Terminating}, wake: time.Minute + 2*time.Second,
		},
		"a pod that is refused is left where some may be": {
			s: during(drain.Options{OnTimeout: drain.TimeoutSkip}, pod("a"), pod("b", bare)), evict: "a",
			states: map[string]drain.State{"a": drain.Evicting, "b": drain.Refused},
		},
		"and the drain ends when it alone is left": {
			s: during(drain.Options{OnTimeout: drain.TimeoutSkip}, pod("b", bare)), done: true, left: 1,
			states: map[string]drain.State{"b": drain.Refused},
		},
		"time is over: retry":                       {s: during(over(""), pod("a")), evict: "a", late: true, states: map[string]drain.State{"a": drain.Evicting}},
		"time is over: skip":                        {s: during(over(drain.TimeoutSkip), pod("a"), pod("b", leaving)), done: true, left: 2},
		"time is over: abort":                       {s: during(over(drain.TimeoutAbort), pod("a")), aborted: true, left: 1},
		"time is over: abort, but nothing is there": {s: during(over(drain.TimeoutAbort)), done: true},
		"time is over: force": {
			s: during(over(drain.TimeoutForce), pod("a"), pod("b", leaving), pod("j", how("wait-completed"), order(3))).with(room(0)), deletes: "a j",
			states: map[string]drain.State{"a": drain.Evicting, "b": drain.Terminating, "j": drain.Evicting}, wake: time.Minute + 2*time.Second,
		},
		"time is over: force deletes past budgets, and not what is refused": {
			s: during(over(drain.TimeoutForce), pod("a"), pod("b", leaving), pod("c", bare)).with(room(0)), late: true,
			states: map[string]drain.State{"a": drain.Waiting, "b": drain.Terminating, "c": drain.Refused}, wake: time.Minute + 2*time.Second,
		},
		"time is over: force is not done while a pod is refused": {
			s: during(over(drain.TimeoutForce), pod("c", bare)), late: true, states: map[string]drain.State{"c": drain.Refused},
		},
		"nor before that": {
			s: during(drain.Options{OnTimeout: drain.TimeoutForce}, pod("c", bare)), states: map[string]drain.State{"c": drain.Refused},
		},
		"nor where the pod's order cannot be read": {
			s: during(drain.Options{OnTimeout: drain.TimeoutForce, Force: true}, pod("c", func(p *drain.Pod) { p.OrderFault = "abc" })), states: map[string]drain.State{"c": drain.Refused},
		},
		"a pod that is refused holds all: force": {
			s: during(drain.Options{OnTimeout: drain.TimeoutForce}, pod("a"), pod("b", bare)), states: map[string]drain.State{"a": drain.Waiting, "b": drain.Refused},
		},
		"a pod that is refused holds what is late: force": {
			s:      during(drain.Options{PodTimeout: d(time.Second), OnTimeout: drain.TimeoutForce}, pod("a"), pod("b", bare)).with(room(0)).with(asked("a", drain.Asked{Held: now().Add(-time.Minute)})),
			states: map[string]drain.State{"a": drain.Waiting, "b": drain.Refused},
		},
		"no limit is no deadline": {s: during(drain.Options{Timeout: d(0)}, pod("a")), evict: "a", states: map[string]drain.State{"a": drain.Evicting}},
		"a pod is late: skip": {
			s:      during(drain.Options{PodTimeout: d(time.Second), OnTimeout: drain.TimeoutSkip}, pod("a"), pod("b")).with(room(0)).with(asked("a", drain.Asked{Held: now().Add(-time.Minute)})),
			states: map[string]drain.State{"a": drain.Staying, "b": drain.Waiting}, wantHeld: 1, wake: time.Second,
		},
		"a pod is late: force": {
			s:       during(drain.Options{PodTimeout: d(time.Second), OnTimeout: drain.TimeoutForce}, pod("a")).with(room(0)).with(asked("a", drain.Asked{Held: now().Add(-time.Minute)})),
			deletes: "a", states: map[string]drain.State{"a": drain.Evicting},
		},
		"a pod is late: abort": {
			s:       during(drain.Options{PodTimeout: d(time.Second), OnTimeout: drain.TimeoutAbort}, pod("a")).with(asked("a", drain.Asked{Held: now().Add(-time.Minute)})),
			aborted: true, left: 1,
		},
		"a pod that came back twice stays": {
			s: during(none, pod("a")).with(func(s *situation) { s.Returned["uid-a"] = 2 }), done: true, left: 1,
			states: map[string]drain.State{"a": drain.Staying},
		},
		"a pod that came back once goes": {
			s: during(none, pod("a")).with(func(s *situation) { s.Returned["uid-a"] = 1 }), evict: "a", states: map[string]drain.State{"a": drain.Evicting},
		},
		"it is waited for pods that may come back": {
			s: during(none).with(func(s *situation) { s.Settle = now().Add(time.Second) }), wake: time.Second,
		},
		"it is waited for the answer about a pod that is gone": {s: during(none).with(func(s *situation) { s.Unanswered = 1 })},
		"a surge begins":                    {s: during(none, pod("a", how("surge"))), surge: "a", states: map[string]drain.State{"a": drain.Surging}},
		"a surge is waited for":             {s: during(none, pod("a", how("surge"))).with(replaced(drain.Replacement{})), states: map[string]drain.State{"a": drain.Surging}},
		"a surge that is Ready lets it go":  {s: during(none, pod("a", how("surge"))).with(replaced(drain.Replacement{Ready: true})), evict: "a", states: map[string]drain.State{"a": drain.Evicting}},
		"a surge that cannot be is a block": {s: during(none, pod("a", how("surge"))).with(replaced(drain.Replacement{Impossible: true, Why: "an autoscaler"})), states: map[string]drain.State{"a": drain.Waiting}},
		"a surge that waits for another drain's is a block": {
			s:      during(none, pod("a", how("surge"))).with(replaced(drain.Replacement{Behind: true, Why: "another pod comes first"})),
			states: map[string]drain.State{"a": drain.Waiting}, blocks: "another pod comes first",
		},
		"a pod that needs no replacement goes": {
			s: during(none, pod("a", how("surge"))).with(replaced(drain.Replacement{Unneeded: now()})).with(room(1)), evict: "a", states: map[string]drain.State{"a": drain.Evicting},
		},
		"it needs one when its budget lets nobody go any more": {
			s:     during(none, pod("a", how("surge"))).with(replaced(drain.Replacement{Unneeded: now()})).with(room(0)).with(tight),
			surge: "a", states: map[string]drain.State{"a": drain.Surging},
		},
		"others take what its budget has: it waits for room": {
			s:      during(none, pod("a", how("surge"))).with(replaced(drain.Replacement{Unneeded: now()})).with(room(0)),
			states: map[string]drain.State{"a": drain.Waiting}, wantHeld: 1,
		},
		"that it needs none was seen long ago": {
			s: during(none, pod("a", how("surge"))).with(replaced(drain.Replacement{Unneeded: now().Add(-time.Minute)})), surge: "a", states: map[string]drain.State{"a": drain.Surging},
		},
		"that was seen long ago, and no request is free": {
			s:      during(none, pod("a", how("surge"))).with(replaced(drain.Replacement{Unneeded: now().Add(-time.Minute)})).with(func(s *situation) { s.Slots = 0 }),
			states: map[string]drain.State{"a": drain.Queued},
		},
		"its own eviction that was cut off needs no replacement": {
			s:      during(none, pod("a", how("surge"))).with(replaced(drain.Replacement{Unneeded: now()})).with(room(0)).with(tight).with(cut("a", 10*time.Second)),
			finish: "a", states: map[string]drain.State{"a": drain.Evicting},
		},
		"a replacement is Ready, and its budget lets nobody go": {
			s:      during(none, pod("a", how("surge"))).with(replaced(drain.Replacement{Ready: true})).with(room(0)).with(tight),
			states: map[string]drain.State{"a": drain.Waiting}, wantHeld: 1, blocks: "4 of 5 pods are healthy, and 4 must be: a rollout is in progress, or a replica is not Ready",
		},
		"two surges under a budget that lets nobody go: one comes first": {
			s: during(none, pod("a", how("surge")), pod("b", how("surge"))).with(room(0)).with(tight), surge: "a",
			states: map[string]drain.State{"a": drain.Surging, "b": drain.Surging},
		},
		"the other's is on its way": {
			s:      during(none, pod("a", how("surge")), pod("b", how("surge"))).with(replaced(drain.Replacement{})).with(room(0)).with(tight),
			states: map[string]drain.State{"a": drain.Surging, "b": drain.Surging},
		},
		"the other's has just become Ready, and the budget does not count it yet": {
			s:      during(none, pod("a", how("surge")), pod("b", how("surge"))).with(replaced(drain.Replacement{Ready: true, ReadyAt: now()})).with(room(0)).with(tight),
			states: map[string]drain.State{"a": drain.Waiting, "b": drain.Surging}, wantHeld: 1, wake: 10 * time.Second,
		},
		"the other's is Ready, and makes no room": {
			s:     during(none, pod("a", how("surge")), pod("b", how("surge"))).with(replaced(drain.Replacement{Ready: true, ReadyAt: now().Add(-time.Minute)})).with(room(0)).with(tight),
			surge: "b", states: map[string]drain.State{"a": drain.Waiting, "b": drain.Surging}, wantHeld: 1,
		},
		"the other's cannot be": {
			s:     during(none, pod("a", how("surge")), pod("b", how("surge"))).with(replaced(drain.Replacement{Impossible: true})).with(room(0)).with(tight),
			surge: "b", states: map[string]drain.State{"a": drain.Waiting, "b": drain.Surging},
		},
		"the other's is not on its way: attempts fail": {
			s:     during(none, pod("a", how("surge")), pod("b", how("surge"))).with(replaced(drain.Replacement{Behind: true, Why: "no answer"})).with(room(0)).with(tight),
			surge: "b", states: map[string]drain.State{"a": drain.Waiting, "b": drain.Surging}, blocks: "no answer",
		},
		"the other is about to be gone": {
			s:     during(none, pod("a", how("surge"), leaving), pod("b", how("surge"))).with(replaced(drain.Replacement{Ready: true, ReadyAt: now()})).with(room(0)).with(tight),
			surge: "b", states: map[string]drain.State{"a": drain.Terminating, "b": drain.Surging}, wake: time.Minute + 2*time.Second,
		},
		"two surges under a budget that has room begin together": {
			s: during(none, pod("a", how("surge")), pod("b", how("surge"))).with(room(2)), surge: "a b",
			states: map[string]drain.State{"a": drain.Surging, "b": drain.Surging},
		},
		"a surge that is late is forced away": {s: during(over(drain.TimeoutForce), pod("a", how("surge"))), deletes: "a", states: map[string]drain.State{"a": drain.Evicting}},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.s.decide()
			same(t, c.evict, names(got.Requests.Evict))
			same(t, c.deletes, names(got.Requests.Delete))
			same(t, c.finish, names(got.Requests.Finish))
			same(t, c.surge, names(got.Requests.Surge))
			same(t, c.states, states(got))
			if got.Done != c.done || got.Aborted != c.aborted || got.Late != c.late || len(got.Left) != c.left || len(got.Held) != c.wantHeld {
				t.Errorf("%+v", got)
			}
			same(t, c.lines, strings.Join(slices.Sorted(maps.Keys(got.Lines)), " "))
			checkWake(t, c.s, got, c.wake)
			if c.blocks != "" && (len(got.Blocks) != 1 || got.Blocks[0].Why != c.blocks) {
				t.Errorf("blocks %+v", got.Blocks)
			}
		})
	}
}

func replaced(r drain.Replacement) func(*situation) {
	return func(s *situation) { s.Replacements["uid-a"] = r }
}

func checkWake(t *testing.T, s *situation, got drain.Decision, want time.Duration) {
	t.Helper()
	expected := time.Time{}
	deadline, limited := drain.Deadline(s.Options, s.Since)
	if limited && deadline.After(now()) && !got.Done && !got.Aborted {
		expected = deadline
	}
	if want > 0 {
		expected = now().Add(want)
	}
	if !got.Wake.Equal(expected) {
		t.Errorf("wakes at %s, not %s", got.Wake, expected)
	}
}

// Whatever the pods: a drain never asks for more than it may, and either ends,
// has something on its way, or says what it waits for.
func TestADrainNeverAsksForMoreThanItMay(t *testing.T) {
	kinds := []drain.Pod{pod("a"), pod("b", unready), pod("c", finished), pod("d", leaving), pod("e", how("surge")), pod("f", how("wait-completed")), pod("g", order(1)), pod("h", order(-1))}
	for bits := range 1 << len(kinds) {
		var pods []drain.Pod
		for i, p := range kinds {
			if bits>>i&1 == 1 {
				pods = append(pods, p)
			}
		}
		for i := range 9 {
			room, turns := i%3, i/3
			s := during(drain.Options{}, pods...)
			s.Budgets, s.Room, s.Slots = []drain.Budget{budget(func(b *drain.Budget) { b.Allowed = room; b.CurrentHealthy = 3 })}, map[string]int{"shop/web": room}, 3
			s.Turns = map[string]int{"shop/web": turns}
			got := s.decide()
			needy := slices.DeleteFunc(slices.Clone(got.Requests.Evict), func(p drain.Pod) bool { return drain.NeedOf(p, s.Budgets[0]) != drain.NeedRoom })
			if len(needy) > min(room, turns) || len(got.Requests.Evict)+len(got.Requests.Delete) > 3 || got.Done != (len(pods) == 0) || len(got.Pods) != got.Leaving {
				t.Fatalf("%s with room for %d and %d turns: %+v", names(pods), room, turns, got)
			}
		}
	}
}

// Whatever the pods and the options: a node is handed over only once every pod that
// has to leave has left, but for those that skip leaves by name.
func TestNoDrainIsDoneWhilePodsAreThatNobodySkips(t *testing.T) {
	kinds := []drain.Pod{
		pod("a"), pod("b", leaving), pod("c", bare), pod("d", how("wait-completed")), pod("e", how("surge")), pod("f", how("nonsense")),
		pod("g", func(p *drain.Pod) { p.EmptyDir = true }), pod("h", func(p *drain.Pod) { p.OrderFault = "abc" }),
	}
	for bits := range 1 << len(kinds) {
		var pods []drain.Pod
		for i, p := range kinds {
			if bits>>i&1 == 1 {
				pods = append(pods, p)
			}
		}
		for _, o := range []drain.OnTimeout{"", drain.TimeoutRetry, drain.TimeoutSkip, drain.TimeoutForce, drain.TimeoutAbort} {
			for _, limit := range []time.Duration{0, time.Second, time.Hour} {
				s := during(drain.Options{OnTimeout: o, Timeout: d(limit)}, pods...)
				got := s.decide()
				if got.Done && len(pods) > 0 && (o != drain.TimeoutSkip || len(got.Left) != len(pods)) {
					t.Fatalf("%s, %s after %s: %+v", names(pods), o, limit, got)
				}
				for _, p := range append(slices.Clone(got.Requests.Evict), got.Requests.Delete...) {
					if s.Judged[slices.IndexFunc(s.Judged, func(j drain.Judged) bool { return j.UID == p.UID })].Do == drain.Refuse {
						t.Fatalf("%s, %s after %s: %s is refused, and sent away", names(pods), o, limit, p)
					}
				}
			}
		}
	}
}

func TestReturns(t *testing.T) {
	var r drain.Returns
	a, b, c := pod("a"), pod("b"), pod("c")
	steps := []int{r.Arrived(a)}
	r.Left(a)
	steps = append(steps, r.Arrived(b))
	r.Left(b)
	steps = append(steps, r.Arrived(c), r.Arrived(pod("another")), r.Arrived(pod("x", func(p *drain.Pod) { p.Controller.UID = "other" })))
	same(t, []int{0, 1, 2, 0, 0}, steps)
	same(t, map[string]int{"uid-c": 2}, r.Counts())
}

// What time does not end depends on what comes then: force gets past budgets, and
// past no refusal; skip leaves both.
func TestWhatNoTimeoutEnds(t *testing.T) {
	s := during(drain.Options{}, pod("a"), pod("b", bare))
	s.decide()
	blocks := drain.Blocks(s.Judged, []drain.Budget{budget(func(b *drain.Budget) { b.MaxUnavailable, b.Allowed = "0", 0 })}, false, now())
	for o, want := range map[drain.OnTimeout]string{"": "a b", drain.TimeoutRetry: "a b", drain.TimeoutAbort: "a b", drain.TimeoutForce: "b", drain.TimeoutSkip: ""} {
		var held []string
		for _, b := range drain.Permanent(blocks, drain.Options{OnTimeout: o}) {
			held = append(held, strings.TrimPrefix(b.Pods[0], "shop/"))
		}
		same(t, want, strings.Join(held, " "))
	}
}

func TestAnOutcomeIsBoundedAndReadable(t *testing.T) {
	o := drain.Outcome{Evicted: 12, Forced: 1, Left: 2, LeftPods: []drain.RemainingPod{{Pod: "shop/web-1", Why: "maxUnavailable is 0"}}}
	same(t, "12 evicted, 1 forced, 2 left: shop/web-1 (maxUnavailable is 0)", o.String())
	b, err := json.Marshal(o)
	if err != nil || string(b) != `{"evicted":12,"forced":1,"left":2,"leftPods":[{"pod":"shop/web-1","why":"maxUnavailable is 0"}]}` {
		t.Errorf("%s %v", b, err)
	}
	var many []drain.Pod
	for i := range 200 {
		many = append(many, pod(strings.Repeat("x", 200)+string(rune('a'+i%26))+string(rune('a'+i/26)), how("skip")))
	}
	got := during(drain.Options{}, many...).decide()
	if len(got.Skipped) != 50 {
		t.Error(len(got.Skipped))
	}
}
