package drain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

func now() time.Time { return time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC) }

// budget lets one of five healthy pods go.
func budget(changes ...func(*drain.Budget)) drain.Budget {
	b := drain.Budget{
		Namespace: "shop", Name: "web", Version: 10, Selector: &selector.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		MinAvailable: "4", Current: true, Allowed: 1, CurrentHealthy: 5, DesiredHealthy: 4, ExpectedPods: 5,
	}
	for _, c := range changes {
		c(&b)
	}
	return b
}

func full(b *drain.Budget) { b.Allowed, b.CurrentHealthy = 0, 4 }

func TestABudgetCoversPodsOfItsNamespaceThatItSelects(t *testing.T) {
	for name, c := range map[string]struct {
		budget drain.Budget
		want   bool
	}{
		"its pods":                    {budget(), true},
		"another namespace":           {budget(func(b *drain.Budget) { b.Namespace = "bank" }), false},
		"no selector picks nothing":   {budget(func(b *drain.Budget) { b.Selector = nil }), false},
		"an empty selector picks all": {budget(func(b *drain.Budget) { b.Selector = &selector.LabelSelector{} }), true},
		"an operator that is not known": {budget(func(b *drain.Budget) {
			b.Selector.MatchExpressions = []selector.SelectorRequirement{{Key: "app", Operator: "Gt"}}
		}), false},
		"an expression that matches not": {budget(func(b *drain.Budget) {
			b.Selector.MatchExpressions = []selector.SelectorRequirement{{Key: "x", Operator: "Exists"}}
		}), false},
	} {
		if got := c.budget.Covers(web()); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestWhatAnEvictionNeedsOfItsBudget(t *testing.T) {
	for name, c := range map[string]struct {
		pod    drain.Pod
		budget drain.Budget
		want   drain.Need
	}{
		"a healthy pod needs room":                       {web(), budget(), drain.NeedRoom},
		"a healthy pod needs room, though all may leave": {web(), budget(func(b *drain.Budget) { b.AlwaysAllow = true }), drain.NeedRoom},
		"a finished pod needs nothing":                   {web(finished), budget(full), drain.NeedNothing},
		"a pod that waits needs nothing":                 {web(func(p *drain.Pod) { p.Phase = "Pending" }), budget(full), drain.NeedNothing},
		"a pod that goes already needs nothing":          {web(func(p *drain.Pod) { p.Deleting = true }), budget(full), drain.NeedNothing},
		"an unhealthy pod of a healthy rest":             {web(unready), budget(full), drain.NeedNothing},
		"an unhealthy pod of too few":                    {web(unready), budget(full, func(b *drain.Budget) { b.CurrentHealthy = 3 }), drain.NeedRoom},
		"an unhealthy pod that may always go":            {web(unready), budget(full, func(b *drain.Budget) { b.CurrentHealthy, b.AlwaysAllow = 3, true }), drain.NeedNothing},
		"an unhealthy pod where none has to be":          {web(unready), budget(func(b *drain.Budget) { b.DesiredHealthy = 0 }), drain.NeedRoom},
		"a budget that is behind":                        {web(), budget(func(b *drain.Budget) { b.Current = false }), drain.NeedSync},
		"a budget that makes no sense":                   {web(), budget(func(b *drain.Budget) { b.Allowed = -1 }), drain.NeedSync},
	} {
		if got := drain.NeedOf(c.pod, c.budget); got != c.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

func TestRoomIsWhatIsFreeLessWhatTheStatusDoesNotShowYet(t *testing.T) {
	three := func(b *drain.Budget) { b.Allowed = 3 }
	for name, c := range map[string]struct {
		budget drain.Budget
		claims []drain.Claim
		want   int
	}{
		"nothing claimed":                               {budget(three), nil, 3},
		"a claim that is under way":                     {budget(three), []drain.Claim{{Pod: "a"}}, 2},
		"a claim that the status names":                 {budget(three, func(b *drain.Budget) { b.Disrupted = map[string]time.Time{"a": now()} }), []drain.Claim{{Pod: "a"}}, 3},
		"deleted after the status was written":          {budget(three), []drain.Claim{{Pod: "a", Deleted: 11}}, 2},
		"deleted before the status was written":         {budget(three), []drain.Claim{{Pod: "a", Deleted: 9}}, 3},
		"more claims than room":                         {budget(), []drain.Claim{{Pod: "a"}, {Pod: "b"}}, 0},
		"the status names one, another is under way":    {budget(three, func(b *drain.Budget) { b.Disrupted = map[string]time.Time{"a": now()} }), []drain.Claim{{Pod: "a"}, {Pod: "b"}}, 2},
		"a budget that allows less than nothing has no": {budget(func(b *drain.Budget) { b.Allowed = -2 }), nil, 0},
	} {
		if got := drain.Remaining(c.budget, c.claims); got != c.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

func TestBlocksSayWhatHoldsAndForHowLong(t *testing.T) {
	behind := func(b *drain.Budget) {
		b.Current, b.Allowed, b.CurrentHealthy, b.DesiredHealthy, b.ExpectedPods = false, 0, 0, 0, 0
	}
	other := budget(func(b *drain.Budget) { b.Name = "all"; b.Selector = &selector.LabelSelector{} })
	few := func(b *drain.Budget) { b.Allowed, b.CurrentHealthy = 0, 3 }
	for name, c := range map[string]struct {
		pod       drain.Pod
		budgets   []drain.Budget
		why       string // empty: no block
		permanent bool
		names     int
	}{
		"no budget":                               {web(), nil, "", false, 0},
		"a budget with room":                      {web(), []drain.Budget{budget()}, "", false, 0},
		"minAvailable is all":                     {web(), []drain.Budget{budget(full, func(b *drain.Budget) { b.DesiredHealthy, b.ExpectedPods, b.MinAvailable = 4, 4, "4" })}, "minAvailable is 4, and there are 4 pods", true, 1},
		"minAvailable is all, in per cent":        {web(), []drain.Budget{budget(full, func(b *drain.Budget) { b.DesiredHealthy, b.ExpectedPods, b.MinAvailable = 4, 4, "100%" })}, "minAvailable is 100%", true, 1},
		"minAvailable is all, and one more comes": {web(how("surge")), []drain.Budget{budget(full, func(b *drain.Budget) { b.DesiredHealthy, b.ExpectedPods, b.MinAvailable = 4, 4, "4" })}, "", false, 0},
		"maxUnavailable is 0":                     {web(), []drain.Budget{budget(full, func(b *drain.Budget) { b.MinAvailable, b.MaxUnavailable = "", "0" })}, "maxUnavailable is 0", true, 1},
		"maxUnavailable is 0%":                    {web(), []drain.Budget{budget(full, func(b *drain.Budget) { b.MinAvailable, b.MaxUnavailable = "", "0%" })}, "maxUnavailable is 0%", true, 1},
		"two budgets":                             {web(), []drain.Budget{budget(), other}, "more than one", true, 2},
		"two budgets on a pod that waits":         {web(func(p *drain.Pod) { p.Phase = "Pending" }), []drain.Budget{budget(), other}, "", false, 0},
		"a pod that crashes, of too few":          {web(unready, func(p *drain.Pod) { p.Trouble = "CrashLoopBackOff" }), []drain.Budget{budget(few)}, "not Ready (CrashLoopBackOff), and 3 of 5 pods are healthy where 4 must be", true, 1},
		"a pod that is long not Ready":            {web(unready, func(p *drain.Pod) { p.NotReady = now().Add(-time.Hour) }), []drain.Budget{budget(few)}, "IfHealthyBudget", true, 1},
		"a pod that starts":                       {web(unready, func(p *drain.Pod) { p.NotReady = now().Add(-time.Second) }), []drain.Budget{budget(few)}, "a rollout is in progress", false, 1},
		"a pod that crashes, and may":             {web(unready, func(p *drain.Pod) { p.Trouble = "CrashLoopBackOff" }), []drain.Budget{budget(few, func(b *drain.Budget) { b.AlwaysAllow = true })}, "", false, 0},
		"an eviction elsewhere was cut off":       {web(), []drain.Budget{budget(full, func(b *drain.Budget) { b.Disrupted = map[string]time.Time{"web-7": now().Add(-time.Minute)} })}, "the eviction of web-7 was cut off, and is counted for two minutes", false, 1},
		"an eviction elsewhere is under way":      {web(), []drain.Budget{budget(full, func(b *drain.Budget) { b.Disrupted = map[string]time.Time{"web-7": now()} })}, "a rollout is in progress", false, 1},
		"a replica elsewhere is not Ready":        {web(), []drain.Budget{budget(full)}, "4 of 5 pods are healthy, and 4 must be", false, 1},
		"a budget that is behind":                 {web(), []drain.Budget{budget(func(b *drain.Budget) { b.Current = false })}, "not computed", false, 1},
		"maxUnavailable 0, not computed yet":      {web(), []drain.Budget{budget(behind, func(b *drain.Budget) { b.MinAvailable, b.MaxUnavailable = "", "0" })}, "maxUnavailable is 0", true, 1},
		"minAvailable 100%, not computed yet":     {web(), []drain.Budget{budget(behind, func(b *drain.Budget) { b.MinAvailable = "100%" })}, "minAvailable is 100%", true, 1},
		"maxUnavailable 0, and it has a fault":    {web(), []drain.Budget{budget(full, func(b *drain.Budget) { b.MinAvailable, b.MaxUnavailable, b.SyncFailed = "", "0", "x" })}, "maxUnavailable is 0", true, 1},
		"a budget that cannot be computed":        {web(), []drain.Budget{budget(full, func(b *drain.Budget) { b.SyncFailed = "found no controllers" })}, "found no controllers", false, 1},
		"a pod that does not end":                 {web(func(p *drain.Pod) { p.Deleting, p.DeleteBy = true, now().Add(-time.Hour) }), nil, "should have ended", true, 0},
		"a pod that is ending":                    {web(func(p *drain.Pod) { p.Deleting, p.DeleteBy = true, now().Add(time.Second) }), []drain.Budget{budget(full)}, "", false, 0},
		"a pod that is refused":                   {web(bare), nil, "declare no controller", true, 0},
		"a pod that stays on purpose":             {web(how("skip")), []drain.Budget{budget(full)}, "", false, 0},
		"a pod that is waited for to complete":    {web(how("wait-completed")), []drain.Budget{budget(full)}, "", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			judged := drain.NewJudge(drain.Options{}, daemonSets).All([]drain.Pod{c.pod})
			blocks := drain.Blocks(judged, c.budgets, false, now())
			if c.why == "" {
				if len(blocks) != 0 {
					t.Errorf("%+v", blocks)
				}
				return
			}
			if len(blocks) != 1 || !strings.Contains(blocks[0].Why, c.why) || blocks[0].Permanent != c.permanent || len(blocks[0].Budgets) != c.names || blocks[0].Remedy == "" {
				t.Errorf("%+v", blocks)
			}
		})
	}
}

// What a drain waits for without asking is no longer believed to go by itself once the drain's time
// is over.
func TestWhatHasNotLeftWhenTimeIsOver(t *testing.T) {
	shutsDown := func(by time.Duration) func(*drain.Pod) {
		return func(p *drain.Pod) { p.Deleting, p.DeleteBy = true, now().Add(by) }
	}
	begun := func(ago time.Duration) time.Time { return now().Add(-ago) }
	for name, c := range map[string]struct {
		pod   drain.Pod
		since time.Time
		o     drain.Options
		why   string
	}{
		"a drain that has not begun":               {pod: web(how("wait-completed"))},
		"in time":                                  {pod: web(how("wait-completed")), since: begun(drain.DefaultDrainTimeout - time.Second)},
		"late":                                     {pod: web(how("wait-completed")), since: begun(drain.DefaultDrainTimeout), why: "it has not completed"},
		"without a limit":                          {pod: web(how("wait-completed")), since: begun(30 * 24 * time.Hour), o: drain.Options{Timeout: d(0)}},
		"late, and completed":                      {pod: web(how("wait-completed"), finished), since: begun(time.Hour)},
		"late, and about to end":                   {pod: web(how("wait-completed"), leaving), since: begun(time.Hour)},
		"late, and evicted a moment ago":           {pod: web(shutsDown(30 * time.Second)), since: begun(time.Hour)},
		"late, and it has days to shut down":       {pod: web(shutsDown(72 * time.Hour)), since: begun(time.Hour), why: "it may take until"},
		"in time, and it has days to shut down":    {pod: web(shutsDown(72 * time.Hour)), since: begun(time.Second)},
		"late, and nothing is in the pod's way":    {pod: web(), since: begun(time.Hour)},
		"late, and the pod is to stay":             {pod: web(how("skip")), since: begun(time.Hour)},
		"late by its own timeout, not the default": {pod: web(how("wait-completed")), since: begun(2 * time.Minute), o: drain.Options{Timeout: d(time.Minute)}, why: "it has not completed"},
	} {
		t.Run(name, func(t *testing.T) {
			f := drain.NewJudge(c.o, daemonSets).Begun(c.since, now()).Forecast([]drain.Pod{c.pod}, nil, now())
			if c.why == "" {
				if len(f.Blocks) != 0 || !f.Possible() {
					t.Errorf("%+v", f.Blocks)
				}
				return
			}
			if len(f.Blocks) != 1 || !f.Blocks[0].Permanent || f.Blocks[0].Refused || !strings.Contains(f.Blocks[0].Why, c.why) || f.Blocks[0].Remedy == "" || f.Possible() {
				t.Errorf("%+v", f.Blocks)
			}
		})
	}
}

func TestPodsOfOneCauseAreOneBlock(t *testing.T) {
	var pods []drain.Pod
	for i := range 60 {
		pods = append(pods, web(named("web-"+string(rune('a'+i%26))+string(rune('a'+i/26)))))
	}
	blocks := drain.Blocks(drain.NewJudge(drain.Options{}, daemonSets).All(pods), []drain.Budget{budget(full)}, false, now())
	if len(blocks) != 1 || blocks[0].Count != 60 || len(blocks[0].Pods) != 50 {
		t.Errorf("%d blocks, %+v", len(blocks), blocks)
	}
}

func TestAForecastIsInGroups(t *testing.T) {
	order := func(n int) func(*drain.Pod) { return func(p *drain.Pod) { p.Order = n } }
	pods := []drain.Pod{
		web(named("b"), order(1)), web(named("a")), web(named("j"), how("wait-completed")), web(named("s"), how("surge"), order(-3)),
		web(named("d"), daemon("there")), web(named("k"), kept), web(named("g"), func(p *drain.Pod) { p.Deleting, p.DeleteBy = true, now() }),
	}
	f := drain.NewJudge(drain.Options{}, daemonSets).Forecast(pods, nil, now())
	want := []drain.Group{{Order: -3, Surge: []string{"shop/s"}}, {Evict: []string{"shop/a"}, Await: []string{"shop/j"}, Leaves: []string{"shop/g"}}, {Order: 1, Evict: []string{"shop/b"}}}
	same(t, want, f.Groups)
	same(t, []drain.RemainingPod{{Pod: "shop/d", Why: "ignoring DaemonSet-managed Pods"}}, f.Skipped)
	same(t, []drain.RemainingPod{{Pod: "shop/k", Why: `karpenter.sh/do-not-disrupt: "true"`}}, f.Refused)
	if f.Total != 6 || f.Possible() {
		t.Errorf("%+v", f)
	}
}

func TestABlockIsOneSentence(t *testing.T) {
	b := drain.Block{Budgets: []string{"shop/web"}, Pods: []string{"shop/web-1", "shop/web-2"}, Count: 2, Permanent: true, Why: "maxUnavailable is 0", Remedy: "raise maxUnavailable to at least 1"}
	same(t, "shop/web-1 and 1 more cannot leave until somebody changes something: budget shop/web: maxUnavailable is 0; raise maxUnavailable to at least 1", b.String())
	b.Permanent, b.Budgets, b.Count = false, nil, 1
	same(t, "shop/web-1 cannot leave for now: maxUnavailable is 0; raise maxUnavailable to at least 1", b.String())
}
