package drain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

func TestWhatMayBeAskedOfADrain(t *testing.T) {
	for _, c := range []struct {
		name    string
		options drain.Options
		want    string // one fault that begins so; empty: none
	}{
		{"nothing", drain.Options{}, ""},
		{"no limit", drain.Options{Timeout: d(0), GracePeriod: d(0), PodTimeout: d(0)}, ""},
		{"the longest times", drain.Options{Timeout: d(document.Longest), GracePeriod: d(document.Longest), PodTimeout: d(document.Longest)}, ""},
		{"a negative time", drain.Options{Timeout: d(-time.Second)}, "timeout: must be from 0s to "},
		{"a negative grace", drain.Options{GracePeriod: d(-time.Second)}, "gracePeriod: must be from 0s to "},
		{"a negative time of a pod", drain.Options{PodTimeout: d(-time.Second)}, "podTimeout: must be from 0s to "},
		{"pods by their labels", drain.Options{PodSelector: "app in (web,log)"}, ""},
		{"pods by an expression", drain.Options{PodSelector: "${run.parameters.pods}"}, ""},
		{"pods by what is no selector", drain.Options{PodSelector: "app in (web"}, `podSelector: "app in (web" is no label selector`},
		{"skip", drain.Options{OnTimeout: drain.TimeoutSkip}, ""},
		{"force", drain.Options{OnTimeout: drain.TimeoutForce}, ""},
		{"abort", drain.Options{OnTimeout: drain.TimeoutAbort}, ""},
		{"retry", drain.Options{OnTimeout: drain.TimeoutRetry}, ""},
		{"something else", drain.Options{OnTimeout: "stop"}, `onTimeout: must be retry, skip, force or abort, is "stop"`},
		{"a filter", drain.Options{EvictionFilters: []drain.EvictionFilter{{ByResourceNameRegex: "gpu"}}}, ""},
		{"a filter that is none", drain.Options{EvictionFilters: []drain.EvictionFilter{{ByResourceNameRegex: "gpu"}, {ByResourceNameRegex: "("}}}, `evictionFilters[1].byResourceNameRegex: "(" does not compile`},
		{"a filter that stands for millions of instructions", drain.Options{EvictionFilters: []drain.EvictionFilter{{ByResourceNameRegex: strings.Repeat("x{1000}", 500)}}}, `evictionFilters[0].byResourceNameRegex: "x{1000}x{1000}`},
		{"fifty filters", drain.Options{EvictionFilters: slices.Repeat([]drain.EvictionFilter{{ByResourceNameRegex: "gpu"}}, 50)}, ""},
		{"one more", drain.Options{EvictionFilters: slices.Repeat([]drain.EvictionFilter{{ByResourceNameRegex: "gpu"}}, 51)}, "evictionFilters: has 51; at most 50"},
		{"an empty filter", drain.Options{EvictionFilters: []drain.EvictionFilter{{}}}, "evictionFilters[0].byResourceNameRegex: is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			c.options.Check(func(path, format string, args ...any) { got = append(got, path+": "+fmt.Sprintf(format, args...)) })
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhetherADrainWouldComeToItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		pods    []drain.Pod
		budgets []drain.Budget
		want    bool
	}{
		"an empty node":                       {nil, nil, true},
		"a pod that leaves":                   {[]drain.Pod{pod("a")}, nil, true},
		"a pod that is refused":               {[]drain.Pod{pod("a", bare)}, nil, false},
		"a budget that waits for a rollout":   {[]drain.Pod{pod("a")}, []drain.Budget{budget(full)}, true},
		"a budget that never lets anybody go": {[]drain.Pod{pod("a")}, []drain.Budget{budget(full, func(b *drain.Budget) { b.MaxUnavailable, b.MinAvailable = "0", "" })}, false},
	} {
		f := drain.NewJudge(drain.Options{}, daemonSets).Forecast(c.pods, c.budgets, now())
		if got := f.Possible(); got != c.want {
			t.Errorf("%s: %t, blocks %v, refused %v", name, got, f.Blocks, f.Refused)
		}
	}
}

func TestABlockNamesOnePodAndCountsTheOthers(t *testing.T) {
	for want, b := range map[string]drain.Block{
		"shop/a cannot leave for now: w; r":                                     {Pods: []string{"shop/a"}, Count: 1, Why: "w", Remedy: "r"},
		"shop/a and 2 more cannot leave until somebody changes something: w; r": {Pods: []string{"shop/a", "shop/b"}, Count: 3, Permanent: true, Why: "w", Remedy: "r"},
		"shop/a cannot leave for now: budget shop/web: w; r":                    {Pods: []string{"shop/a"}, Count: 1, Budgets: []string{"shop/web"}, Why: "w", Remedy: "r"},
		" cannot leave for now: w; r":                                           {Budgets: []string{"shop/web", "shop/two"}, Why: "w", Remedy: "r"},
	} {
		if got := b.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWhyAPodIsLeftWhenADrainGivesUp(t *testing.T) {
	over := drain.Options{Timeout: d(30 * time.Second), OnTimeout: drain.TimeoutAbort}
	for name, c := range map[string]struct {
		s    *situation
		want string
	}{
		"its budget":                   {during(over, pod("a")).with(func(s *situation) { s.Budgets = []drain.Budget{budget(full)} }), "4 of "},
		"it shuts down":                {during(over, pod("a", leaving)), "was still shutting down when time was over"},
		"what the API server said":     {during(over, pod("a")).with(asked("a", drain.Asked{Answer: drain.Failed, Why: "no route"})), "no route"},
		"nobody said anything":         {during(over, pod("a")), "was still there when time was over"},
		"it is refused":                {during(over, pod("a", bare)), "declare no controller"},
		"it was to complete by itself": {during(over, pod("a", how("wait-completed"))), ""},
	} {
		got := c.s.decide()
		if !got.Aborted || len(got.Left) != 1 || !strings.Contains(got.Left[0].Why, c.want) || got.Left[0].Why == "" || name != "nobody said anything" && got.Left[0].Why == "was still there when time was over" {
			t.Errorf("%s: aborted %t, left %+v", name, got.Aborted, got.Left)
		}
	}
}

func TestADrainMovesWhileSomePodDoes(t *testing.T) {
	var none drain.Options
	for name, c := range map[string]struct {
		s    *situation
		want bool
	}{
		"an eviction is asked for":          {during(none, pod("a")), true},
		"one is under way":                  {during(none, pod("a")).with(asked("a", drain.Asked{Answer: drain.InFlight})), true},
		"a pod shuts down":                  {during(none, pod("a", leaving)), true},
		"a pod waits for a free request":    {during(none, pod("a")).with(func(s *situation) { s.Slots = 0 }), true},
		"a replacement is on its way":       {during(none, pod("a", how("surge"))), true},
		"a pod is refused":                  {during(none, pod("a", bare)), false},
		"a pod waits for its completion":    {during(none, pod("a", how("wait-completed"))), false},
		"a pod waits for its budget's room": {during(none, pod("a")).with(func(s *situation) { s.Budgets = []drain.Budget{budget(full)} }), false},
	} {
		if got := c.s.decide(); got.Moving != c.want {
			t.Errorf("%s: moves %t: %+v", name, got.Moving, got.Pods)
		}
	}
}

func TestWhatIsInTheWayStandsFirst(t *testing.T) {
	var none drain.Options
	got := during(none, pod("t", leaving), pod("w", how("wait-completed")), pod("q")).with(func(s *situation) { s.Slots = 0 }).decide()
	var order []drain.State
	for _, p := range got.Pods {
		order = append(order, p.State)
	}
	same(t, []drain.State{drain.Waiting, drain.Queued, drain.Terminating}, order)
	same(t, 3, got.Leaving)
}

func TestWhichReplicaOfTheAgentLeavesLast(t *testing.T) {
	for name, c := range map[string]struct {
		own      string
		replicas []drain.Pod
		want     string
	}{
		"the one that drains":            {"maint-system/b", []drain.Pod{replica("a", "n"), replica("b", "n", unready), replica("c", "n")}, "maint-system/b"},
		"or else one that is Ready":      {"maint-system/z", []drain.Pod{replica("a", "n", unready), replica("c", "n"), replica("b", "n")}, "maint-system/b"},
		"or else the first of them":      {"", []drain.Pod{replica("b", "n", unready), replica("a", "n", unready)}, "maint-system/a"},
		"none that is being deleted":     {"maint-system/a", []drain.Pod{replica("a", "n", isDeleting), replica("b", "n")}, "maint-system/b"},
		"none that has finished":         {"maint-system/a", []drain.Pod{replica("a", "n", finished), replica("b", "n")}, "maint-system/b"},
		"of those on another node, none": {"maint-system/a", []drain.Pod{replica("a", "m")}, ""},
	} {
		if got := drain.AgentOn("n", c.own, c.replicas, now()); got.Pod != c.want {
			t.Errorf("%s: %q, want %q", name, got.Pod, c.want)
		}
	}
}

func TestAnotherReplicaComesForTwoMinutes(t *testing.T) {
	for age, want := range map[time.Duration]drain.OtherReplica{2*time.Minute - time.Second: drain.ComesElsewhere, 2 * time.Minute: drain.NoneElsewhere} {
		young := replica("b", "m", unready, func(p *drain.Pod) { p.Created = now().Add(-age) })
		if got := drain.AgentOn("n", "", []drain.Pod{replica("a", "n"), young}, now()); got.Elsewhere != want {
			t.Errorf("one that is not Ready after %s: %v, want %v", age, got.Elsewhere, want)
		}
	}
}

func TestPodsThatStayOnPurposeWereToLeaveAllTheSame(t *testing.T) {
	got := during(drain.Options{}, pod("a"), pod("b")).with(func(s *situation) { s.Returned["uid-b"] = 99 }).decide()
	same(t, 2, got.Leaving)
	same(t, map[string]drain.State{"a": drain.Evicting, "b": drain.Staying}, states(got))
}

func TestAPodWithoutABudgetWaitsOnlyForOneThatWasJustChanging(t *testing.T) {
	soon := now().Add(time.Minute)
	for name, c := range map[string]struct {
		asked drain.Asked
		evict string
	}{
		"it was over its budget a moment ago":  {drain.Asked{Answer: drain.OverBudget, NotBefore: soon}, ""},
		"that was longer ago":                  {drain.Asked{Answer: drain.OverBudget, NotBefore: now()}, "a"},
		"it was accepted, and came to nothing": {drain.Asked{Answer: drain.Accepted, At: now().Add(-time.Hour), NotBefore: soon}, "a"},
	} {
		if got := during(drain.Options{}, pod("a")).with(asked("a", c.asked)).decide(); names(got.Requests.Evict) != c.evict {
			t.Errorf("%s: evicts %q", name, names(got.Requests.Evict))
		}
	}
}

func TestAPodsTimeRunsFromItsFirstRefusal(t *testing.T) {
	refused := func(s *situation) { s.Budgets = []drain.Budget{budget(full)} }
	for name, c := range map[string]struct {
		limit time.Duration
		asked drain.Asked
		wakes bool
	}{
		"it is held for the first time": {time.Hour, drain.Asked{}, true},
		"it has been held before":       {time.Hour, drain.Asked{Held: now().Add(-time.Minute)}, false},
		"there is no limit":             {0, drain.Asked{}, false},
	} {
		o := drain.Options{PodTimeout: d(c.limit), Timeout: d(0)}
		got := during(o, pod("a")).with(refused).with(asked("a", c.asked)).decide()
		if wakes := got.Wake.Equal(now().Add(c.limit)); wakes != c.wakes {
			t.Errorf("%s: looks again at %s", name, got.Wake)
		}
	}
}

func TestAStartIsNoFaultForTwoMinutes(t *testing.T) {
	few := func(b *drain.Budget) { b.Allowed, b.CurrentHealthy = 0, 3 }
	for ago, permanent := range map[time.Duration]bool{2*time.Minute - time.Second: false, 2 * time.Minute: true} {
		p := web(unready, func(p *drain.Pod) { p.NotReady = now().Add(-ago) })
		blocks := drain.Blocks(drain.NewJudge(drain.Options{}, daemonSets).All([]drain.Pod{p}), []drain.Budget{budget(few)}, false, now())
		if len(blocks) != 1 || blocks[0].Permanent != permanent {
			t.Errorf("not Ready for %s: %+v", ago, blocks)
		}
	}
}

func TestAReplacementHelpsWhereANumberOfPodsIsDemandedAndThere(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*drain.Budget)
		held bool
	}{
		"a number, which is there":      {func(b *drain.Budget) { b.MinAvailable, b.MaxUnavailable = "4", "" }, false},
		"a share":                       {func(b *drain.Budget) { b.MinAvailable, b.MaxUnavailable = "80%", "" }, true},
		"how many may be missing":       {func(b *drain.Budget) { b.MinAvailable, b.MaxUnavailable = "", "1" }, true},
		"a number, which is not there":  {func(b *drain.Budget) { b.MinAvailable, b.MaxUnavailable, b.CurrentHealthy = "4", "", 3 }, true},
		"a budget that is not computed": {func(b *drain.Budget) { b.MinAvailable, b.MaxUnavailable, b.Current = "4", "", false }, true},
	} {
		blocks := drain.Blocks(drain.NewJudge(drain.Options{}, daemonSets).All([]drain.Pod{web(how("surge"))}), []drain.Budget{budget(full, c.edit)}, false, now())
		if got := len(blocks) > 0; got != c.held {
			t.Errorf("%s: %+v", name, blocks)
		}
	}
}
