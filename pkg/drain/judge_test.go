package drain_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// web is a pod that any drain evicts.
func web(changes ...func(*drain.Pod)) drain.Pod {
	p := drain.Pod{
		UID: "u1", Namespace: "shop", Name: "web-1", Node: "n", Phase: "Running", Ready: true,
		Labels: map[string]string{"app": "web"}, Controller: &drain.Owner{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "rs"},
	}
	for _, c := range changes {
		c(&p)
	}
	return p
}

func daemon(name string) func(*drain.Pod) {
	return func(p *drain.Pod) {
		p.Controller = &drain.Owner{APIVersion: "apps/v1", Kind: "DaemonSet", Name: name}
	}
}
func bare(p *drain.Pod)     { p.Controller = nil }
func scratch(p *drain.Pod)  { p.EmptyDir = true }
func mirror(p *drain.Pod)   { p.Mirror = true }
func finished(p *drain.Pod) { p.Phase = "Succeeded" }
func kept(p *drain.Pod)     { p.Kept = `karpenter.sh/do-not-disrupt: "true"` }
func unready(p *drain.Pod)  { p.Ready = false }
func how(h string) func(*drain.Pod) {
	return func(p *drain.Pod) { p.How = h }
}

func named(name string) func(*drain.Pod) {
	return func(p *drain.Pod) { p.Name, p.UID = name, "uid-"+name }
}

func daemonSets(_, name string) (bool, error) {
	if name == "broken" {
		return false, errors.New("no answer")
	}
	return name == "there", nil
}

func TestVerdicts(t *testing.T) {
	force, emptyDir := drain.Options{Force: true}, drain.Options{DeleteEmptyDir: true}
	gpu := drain.Options{EvictionFilters: []drain.EvictionFilter{{ByResourceNameRegex: "nvidia.com/gpu-*"}}}
	for name, c := range map[string]struct {
		pod     drain.Pod
		options drain.Options
		do      drain.PodAction
		reason  string
	}{
		"a pod of a ReplicaSet goes":                                   {web(), drain.Options{}, drain.Evict, ""},
		"a pod of a DaemonSet is ignored":                              {web(daemon("there")), drain.Options{}, drain.Skip, "ignoring DaemonSet-managed Pods"},
		"a pod of a DaemonSet that is gone holds":                      {web(daemon("gone")), drain.Options{}, drain.Refuse, `daemonsets.apps "gone" not found`},
		"a pod of a DaemonSet that is gone goes by force":              {web(daemon("gone")), force, drain.Evict, ""},
		"a pod of a DaemonSet that nobody can read holds":              {web(daemon("broken")), force, drain.Refuse, "no answer"},
		"a finished pod of a DaemonSet goes":                           {web(daemon("there"), finished), drain.Options{}, drain.Evict, ""},
		"a static pod is left":                                         {web(mirror, bare), drain.Options{}, drain.Skip, "static"},
		"a static pod is left by force, too":                           {web(mirror, bare), force, drain.Skip, "static"},
		"an emptyDir holds":                                            {web(scratch), drain.Options{}, drain.Refuse, "Pods with local storage (use --delete-emptydir-data to override)"},
		"an emptyDir may be lost":                                      {web(scratch), emptyDir, drain.Evict, ""},
		"force alone does not lose an emptyDir":                        {web(scratch), force, drain.Refuse, "local storage"},
		"a pod without a controller holds":                             {web(bare), drain.Options{}, drain.Refuse, "Pods that declare no controller (use --force to override)"},
		"a pod without a controller goes by force":                     {web(bare), force, drain.Evict, "deleting Pods that declare no controller"},
		"of emptyDir and controller, emptyDir is said":                 {web(bare, scratch), drain.Options{}, drain.Refuse, "local storage"},
		"a finished pod without anything goes":                         {web(bare, scratch, finished), drain.Options{}, drain.Evict, ""},
		"a selector that does not pick":                                {web(bare), drain.Options{PodSelector: "app=db"}, drain.Skip, "podSelector"},
		"a selector that picks":                                        {web(), drain.Options{PodSelector: "app=web"}, drain.Evict, ""},
		"a selector that nobody can read holds":                        {web(), drain.Options{PodSelector: "app=a b"}, drain.Refuse, "podSelector"},
		"a selector that cannot be read holds":                         {web(), drain.Options{PodSelector: "a>b"}, drain.Refuse, "podSelector"},
		"a selector with a comparison picks":                           {web(), drain.Options{PodSelector: "a>1"}, drain.Skip, "podSelector does not pick it"},
		"a filter that does not pick":                                  {web(bare), gpu, drain.Skip, "no eviction filter"},
		"a filter that picks, unanchored":                              {web(func(p *drain.Pod) { p.Resources = []string{"cpu", "x.nvidia.com/gpu-a"} }), gpu, drain.Evict, ""},
		"a filter that does not compile holds":                         {web(), drain.Options{EvictionFilters: []drain.EvictionFilter{{ByResourceNameRegex: "("}}}, drain.Refuse, "does not compile"},
		"skip is left":                                                 {web(how("skip")), drain.Options{}, drain.Skip, "maint.dev/drain: skip"},
		"skip is left, though kubectl would refuse":                    {web(how("skip"), bare, scratch), drain.Options{}, drain.Skip, "maint.dev/drain: skip"},
		"Cluster API's skip is left":                                   {web(how("skip"), func(p *drain.Pod) { p.HasHowLabel = true }), drain.Options{}, drain.Skip, "cluster.x-k8s.io/drain: skip"},
		"wait-completed is waited for":                                 {web(how("wait-completed"), bare), drain.Options{}, drain.Await, "wait-completed"},
		"wait-completed that has completed stays":                      {web(how("wait-completed"), finished), drain.Options{}, drain.Skip, "has completed"},
		"a word that nobody knows holds":                               {web(how("skpi")), force, drain.Refuse, `maint.dev/drain is "skpi"`},
		"an order that is no number holds":                             {web(func(p *drain.Pod) { p.OrderFault = "first" }), force, drain.Refuse, "drain-order"},
		"what an autoscaler is told to leave holds":                    {web(kept), drain.Options{}, drain.Refuse, "do-not-disrupt"},
		"what an autoscaler is told to leave goes by force":            {web(kept), force, drain.Evict, "set aside by force"},
		"what an autoscaler is told to leave goes once it is finished": {web(kept, finished), drain.Options{}, drain.Evict, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := drain.NewJudge(c.options, daemonSets).Of(c.pod)
			if v.Do != c.do || !strings.Contains(v.Reason(), c.reason) || c.reason == "" && v.Reason() != "" {
				t.Errorf("%+v", v)
			}
			if v.Do == drain.Refuse && v.Remedy == "" {
				t.Error("nothing is said about what helps")
			}
		})
	}
}

func TestAForecastKnowsWhichPodsCouldNotBeReplaced(t *testing.T) {
	failed := map[string]drain.Replacement{"uid-a": {Impossible: true, Why: "an autoscaler", Remedy: "raise it"}}
	for name, c := range map[string]struct {
		pod  drain.Pod
		want []drain.Block
	}{
		"that one":                        {pod("a", how("surge")), []drain.Block{{Pods: []string{"shop/a"}, Count: 1, Permanent: true, Why: "an autoscaler", Remedy: "raise it"}}},
		"another":                         {pod("b", how("surge")), nil},
		"one that does not ask any more":  {pod("a"), nil},
		"one that is being deleted since": {pod("a", how("surge"), leaving), nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := drain.NewJudge(drain.Options{}, daemonSets).WithFailed(failed).Forecast([]drain.Pod{c.pod}, nil, now())
			same(t, c.want, f.Blocks)
		})
	}
}

func TestSurgeIsForPodsOfADeployment(t *testing.T) {
	judge := drain.NewJudge(drain.Options{Force: true}, daemonSets)
	for name, c := range map[string]struct {
		pod  drain.Pod
		want bool
	}{
		"of a ReplicaSet":       {web(how("surge")), true},
		"without a controller":  {web(how("surge"), bare), false},
		"of a ReplicaSet, done": {web(how("surge"), finished), false},
	} {
		if v := judge.Of(c.pod); v.Surge != c.want || v.Do != drain.Evict {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestWordsNamePodsTogether(t *testing.T) {
	pods := []drain.Pod{web(daemon("there"), named("b")), web(daemon("there"), named("a")), web(bare, named("c")), web(scratch, named("d"))}
	warnings, faults := drain.Words(drain.NewJudge(drain.Options{}, daemonSets).All(pods))
	if warnings != "ignoring DaemonSet-managed Pods: shop/a, shop/b" {
		t.Error(warnings)
	}
	want := []string{
		"cannot delete Pods that declare no controller (use --force to override): shop/c",
		"cannot delete Pods with local storage (use --delete-emptydir-data to override): shop/d",
	}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Error(diff)
	}
}

// What Kubernetes' own parser picks, ours picks.
func TestSelectorsPickWhatKubernetesPicks(t *testing.T) {
	sets := []map[string]string{nil, {"app": "web"}, {"app": "db", "tier": ""}, {"app": "web", "tier": "front", "example.org/x.y": "1"}, {"gpu": "true"}, {"n": "3"}}
	for _, text := range []string{
		"", " ", "app", "!app", "! app", "app=web", "app==web", "app = web", "app!=web", "app in (web,db)", "app in ( web , db )", "app notin (web)",
		"app in (web),tier", "app=web,tier!=front", "tier=", "tier in ()", "example.org/x.y=1", "example.org/x.y in (1,2),app", "gpu,!app", "a in (b", "a=b c", ",", "app,", "=x", "a in b", "(a)", "a!b", "n>1", "n<5", "n>x", "EXAMPLE.com/a", "!EXAMPLE.com/a", "a=" + strings.Repeat("b", 64),
		"app  in(web)", "app in(web),!tier", "-a", "a-", "a=-",
	} {
		theirs, theirErr := labels.Parse(text)
		ours := drain.NewJudge(drain.Options{PodSelector: text}, daemonSets)
		for _, set := range sets {
			pod := web(named("a"))
			pod.Labels = set
			verdict := ours.Of(pod)
			if refused := verdict.Do == drain.Refuse; refused != (theirErr != nil) {
				t.Errorf("%q: %v, Kubernetes says %v", text, verdict, theirErr)
			} else if skipped := verdict.Do == drain.Skip; !refused && skipped == theirs.Matches(labels.Set(set)) {
				t.Errorf("%q of %v: %v", text, set, verdict)
			}
		}
	}
}
