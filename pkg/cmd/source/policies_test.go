package source

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// telling is a command line whose warnings are kept.
func telling(said *bytes.Buffer) *factory.Factory {
	c := &factory.Factory{}
	c.Now, c.ErrOut = cmdtest.Now, said
	return c
}

func TestAFrozenNamespaceIsFrozenWhateverElseMayNotBeRead(t *testing.T) {
	var said bytes.Buffer
	book := ReadResolver(t.Context(), cmdtest.Refusing("list", "configmaps"), "maint-system", "shop")
	if v := book.GateOf(telling(&said), policy.Query{Namespace: "shop"}).Verdict(cmdtest.Now()); v.Permitted || said.Len() > 0 {
		t.Errorf("%+v, said %q", v, said.String())
	}
}

func TestWhatIsHiddenIsToldOnceWhereItChangesTheAnswer(t *testing.T) {
	var said bytes.Buffer
	book, c := ReadResolver(t.Context(), cmdtest.Refusing("list", "configmaps"), "maint-system", "shop"), telling(&said)
	nights := policy.Query{Policies: []policy.PolicyRef{{Name: "nights", Namespace: "maint-system"}}}
	for range 2 {
		if v := book.GateOf(c, nights).Verdict(cmdtest.Now()); v.Permitted || v.Ready || v.Reason != "policy nights: the policies of namespace maint-system cannot be read" {
			t.Errorf("%+v", v)
		}
	}
	if got := said.String(); strings.Count(got, "warning") != 1 || !strings.Contains(got, "read the policies of namespace maint-system") {
		t.Errorf("said %q", got)
	}
}

func TestANamespaceThatMayNotBeReadPermitsNothing(t *testing.T) {
	var said bytes.Buffer
	book := ReadResolver(t.Context(), cmdtest.Refusing("get", "namespaces"), "maint-system", "shop")
	if v := book.GateOf(telling(&said), policy.Query{Namespace: "shop"}).Verdict(cmdtest.Now()); v.Permitted || v.Ready || v.Reason != "namespace: whether it is frozen cannot be read" || !strings.Contains(said.String(), "whether it is frozen is not known") {
		t.Errorf("%+v, said %q", v, said.String())
	}
}

// TestWhereAPolicyIsHiddenTheAgentsVerdictIsTaken: and not where it has none of this version,
// or is silent.
func TestWhereAPolicyIsHiddenTheAgentsVerdictIsTaken(t *testing.T) {
	const (
		open   = `{"current":{"state":"ChangesUnpaused","startTime":"2026-11-20T22:00:00Z","endTime":"2026-11-21T02:00:00Z","reason":"policy nights: in a window"},"next":{"state":"ChangesPaused","startTime":"2026-11-21T02:00:00Z","endTime":"2026-11-21T22:00:00Z"}}`
		closed = `{"current":{"state":"ChangesPaused","reason":"namespace: Restrictive by jane: launch"}}`
	)
	for _, c := range []struct {
		name, behavior, missing, reason string
		stale, permitted, gated         bool
	}{
		{name: "open", behavior: open, permitted: true, gated: true, reason: "policy nights: in a window, says the agent"},
		{name: "closed", behavior: closed, gated: true, reason: "namespace: Restrictive by jane: launch, says the agent"},
		{name: "nothing is said of policies that it names", gated: true},
		{name: "of an earlier version", behavior: open, stale: true, gated: true},
		{name: "a silent agent's", behavior: open, missing: "nobody", gated: true},
		{name: "nonsense", behavior: "{", gated: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cm := cmdtest.Plan("nightly", "policies: [{name: nights, namespace: maint-system}]")
			cm.Annotations = map[string]string{annotations.StatusObserved: annotations.Observed(cm), annotations.StatusBehavior: c.behavior}
			if c.stale {
				cm.Annotations[annotations.StatusObserved] = "another"
			}
			var said bytes.Buffer
			for _, refused := range [][2]string{{"list", "configmaps"}, {"get", "namespaces"}} {
				book := ReadResolver(t.Context(), cmdtest.Refusing(refused[0], refused[1]), "maint-system", "shop")
				gate, gated := book.PlanGate(telling(&said), factory.AgentState{Missing: c.missing}, cm)
				if v := gate.Verdict(cmdtest.Now()); v.Permitted != c.permitted || gated != c.gated || !strings.Contains(v.Reason, c.reason) {
					t.Errorf("%s %s refused: %+v, gated %v", refused[0], refused[1], v, gated)
				}
			}
			if said.Len() == 0 {
				t.Error("nothing was said")
			}
		})
	}
}

// TestWhatNamesNoPolicyIsOpenWhereTheAgentSaysNothingOfIt: a namespace that may not be read
// could be frozen, and then the agent would say so.
func TestWhatNamesNoPolicyIsOpenWhereTheAgentSaysNothingOfIt(t *testing.T) {
	cm := cmdtest.Plan("nightly", "")
	cm.Annotations = map[string]string{annotations.StatusObserved: annotations.Observed(cm)}
	book := ReadResolver(t.Context(), cmdtest.Refusing("get", "namespaces"), "maint-system", "shop")
	gate, _ := book.PlanGate(telling(&bytes.Buffer{}), factory.AgentState{}, cm)
	if v := gate.Verdict(cmdtest.Now()); !v.Permitted || v.Reason != "no strategy is set, says the agent" {
		t.Errorf("%+v", v)
	}
}

func TestWhereAPolicyIsHiddenTheAgentsWordOnSleepIsTaken(t *testing.T) {
	cm := annotations.NewHibernatePlan("shop", "nights", "apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec:\n  policies: [{name: quiet, namespace: maint-system}]\n", "")
	cm.Annotations = map[string]string{annotations.StatusObserved: annotations.Observed(cm), annotations.StatusBehavior: `{"current":{"state":"ChangesPaused","reason":"policy quiet: Restrictive"}}`}
	var said bytes.Buffer
	k := cmdtest.Refusing("list", "configmaps")
	for missing, reason := range map[string]string{"": "policy quiet: Restrictive, says the agent", "nobody": "namespace: Restrictive"} {
		book := ReadResolver(t.Context(), k, "maint-system", "shop")
		if v := book.SleepGate(telling(&said), factory.AgentState{Missing: missing}, cm).Verdict(cmdtest.Now()); v.Permitted || !strings.Contains(v.Reason, reason) {
			t.Errorf("agent missing %q: %+v", missing, v)
		}
	}
	if !strings.Contains(said.String(), "the answer that the agent published is used") {
		t.Errorf("said %q", said.String())
	}
}

// Without the admission policies, whoever may write a plan may write the agent's verdict on it.
// It is taken where what decides is hidden, and nowhere else.
func TestAForgedVerdictIsNotBelievedWhereAllMayBeRead(t *testing.T) {
	forged := func(cm *corev1.ConfigMap) *corev1.ConfigMap {
		cm.Annotations = map[string]string{
			annotations.StatusObserved: annotations.Observed(cm), annotations.StatusPhase: "Idle", annotations.StatusPermitted: "true",
			annotations.StatusBehavior: `{"current":{"state":"ChangesUnpaused","reason":"policy nights: in a window"}}`,
		}
		return cm
	}
	closed := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "maint-system", Name: "nights", Labels: map[string]string{annotations.LabelKind: annotations.KindPolicy}},
		Data:       map[string]string{annotations.DataPolicy: "apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec: {strategy: Restrictive}\n"},
	}
	_, k := clusterOf(t, "shop", cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"), closed)
	book := ReadResolver(t.Context(), k, "maint-system", "shop")
	var said bytes.Buffer
	plan, _ := book.PlanGate(telling(&said), factory.AgentState{}, forged(cmdtest.Plan("nightly", "policies: [{name: nights, namespace: maint-system}]")))
	sleeper := forged(annotations.NewHibernatePlan("shop", "nights", "apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec:\n  policies: [{name: nights, namespace: maint-system}]\n", ""))
	for what, gate := range map[string]*schedule.Gate{"a plan": plan, "a HibernatePlan": book.SleepGate(telling(&said), factory.AgentState{}, sleeper)} {
		if v := gate.Verdict(cmdtest.Now()); v.Permitted || strings.Contains(v.Reason, "says the agent") {
			t.Errorf("%s: %+v", what, v)
		}
	}
	if said.Len() > 0 {
		t.Errorf("said %q", said.String())
	}
}

func TestWhatMayNotBeReadIsToldOnceWhateverFollowsFromIt(t *testing.T) {
	of := func(name, behavior string) *corev1.ConfigMap {
		cm := cmdtest.Plan(name, "policies: [{name: quiet, namespace: maint-system}]")
		cm.Annotations = map[string]string{annotations.StatusObserved: annotations.Observed(cm), annotations.StatusBehavior: behavior}
		return cm
	}
	var said bytes.Buffer
	c, book := telling(&said), ReadResolver(t.Context(), cmdtest.Refusing("list", "configmaps"), "maint-system", "shop")
	book.PlanGate(c, factory.AgentState{}, of("known", `{"current":{"state":"ChangesPaused","reason":"policy quiet: Restrictive"}}`))
	gate, _ := book.PlanGate(c, factory.AgentState{}, of("unknown", ""))
	if v := gate.Verdict(cmdtest.Now()); v.Permitted || strings.Count(said.String(), "warning: ") != 1 {
		t.Errorf("%+v, said %q", v, said.String())
	}
}

func TestAPauseThatMayNotBeReadIsTheAgentsWord(t *testing.T) {
	plan := func(phase, message string) *corev1.ConfigMap {
		cm := cmdtest.Plan("nightly", "")
		cm.Annotations = map[string]string{annotations.StatusObserved: annotations.Observed(cm), annotations.StatusPhase: phase, annotations.StatusMessage: message}
		return cm
	}
	c := telling(&bytes.Buffer{})
	o, k := clusterOf(t, "shop", cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"))
	paused := plan("Paused", "the whole cluster is paused by root (unverified): upgrade")
	if got := ReadPauses(t.Context(), k, "maint-system", "shop").AbovePlan(c, paused); len(got) != 0 {
		t.Errorf("what may be read is not paused: %+v", got)
	}
	o.Forbids("get", "namespaces", "")
	got := ReadPauses(t.Context(), k, "maint-system", "shop").AbovePlan(c, paused)
	if len(got) != 1 || got[0].Of != annotations.WholeCluster || got[0].By != " by root (unverified): upgrade, says the agent" || !got[0].Holds(cmdtest.Now()) {
		t.Errorf("%+v", got)
	}
	at := func(phase, condition string, own ...string) *corev1.ConfigMap {
		cm := plan(phase, "run a-1 is at work")
		cm.Annotations[annotations.StatusConditions] = `[{"type":"ChangesPaused","status":"True",` + condition + `}]`
		if len(own) > 0 {
			cm.Annotations[annotations.Pause] = own[0]
		}
		return cm
	}
	const everywhere = `"reason":"Paused","message":"the whole cluster is paused by root: upgrade"`
	for name, cm := range map[string]*corev1.ConfigMap{"while a run is at work": at("Running", everywhere), "while one is held": at("Waiting", everywhere), "besides its own, which ends": at("Running", everywhere, "2026-12-24T00:00:00Z")} {
		if got := ReadPauses(t.Context(), k, "maint-system", "shop").AbovePlan(c, cm); len(got) != 1 || got[0].Said() != "the whole cluster is paused by root: upgrade, says the agent" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := ReadPauses(t.Context(), k, "maint-system", "shop").AboveSleeper(c, at("Hibernated", everywhere)); len(got) != 1 || got[0].Of != annotations.WholeCluster {
		t.Errorf("of a HibernatePlan that sleeps: %+v", got)
	}
	for name, cm := range map[string]*corev1.ConfigMap{
		"its own": at("Running", `"reason":"Paused","message":"paused by jane: the shop is paused"`), "closed by a window": at("Running", `"reason":"Restrictive","message":"namespace shop is paused"`),
		"that of another namespace": at("Running", `"reason":"Paused","message":"namespace bank is paused"`),
	} {
		if got := ReadPauses(t.Context(), k, "maint-system", "shop").AbovePlan(c, cm); len(got) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, cm := range map[string]*corev1.ConfigMap{"not paused": plan("Idle", "next run soon"), "over": plan("Paused", "namespace shop is paused until 2020-01-01T00:00:00Z")} {
		if got := ReadPauses(t.Context(), k, "maint-system", "shop").AbovePlan(c, cm); len(got) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A node that somebody asks for tells what closes it to those who may not read that; where it says
// nothing, or the agent is silent, nothing is permitted.
func TestWhereANodesPolicyIsHiddenTheAgentsWordIsTaken(t *testing.T) {
	const closed = `{"current":{"state":"ChangesPaused","endTime":"2026-11-21T22:00:00Z","reason":"policy nights: outside of its windows"}}`
	for name, c := range map[string]struct{ behavior, missing, policies, reason string }{
		"it is told":                   {closed, "", "nights", "policy nights: outside of its windows, says the agent"},
		"nobody asks for the node":     {"", "", "nights", "policy nights: the policies of namespace maint-system cannot be read"},
		"the agent is silent":          {closed, "nobody", "nights", "policy nights: the policies of namespace maint-system cannot be read"},
		"it cannot be read":            {"{", "", "nights", "policy nights: the policies of namespace maint-system cannot be read"},
		"all that decides can be read": {closed, "", "", "no strategy is set"},
	} {
		n := cmdtest.Node("a", cmdtest.Noted(annotations.StatusBehavior, c.behavior), cmdtest.Noted(annotations.ChangePolicy, c.policies))
		var said bytes.Buffer
		book := ReadResolver(t.Context(), cmdtest.Refusing("list", "configmaps"), "maint-system")
		v := book.NodeGate(telling(&said), factory.AgentState{Namespace: "maint-system", Missing: c.missing}, n).Verdict(cmdtest.Now())
		if v.Reason != c.reason || strings.Count(said.String(), "warning") > 1 || (said.Len() == 0) != (c.policies == "") {
			t.Errorf("%s: %+v, said %q", name, v, said.String())
		}
	}
	paused := `{"current":{"state":"ChangesPaused","strategy":"Restrictive","reason":"the whole cluster is paused until resumed"}}`
	book := ReadResolver(t.Context(), cmdtest.Refusing("get", "namespaces"), "maint-system")
	for name, c := range map[string]struct {
		missing, reason string
		edits           []func(*corev1.Node)
	}{
		"it is told":                          {"", "the whole cluster is paused until resumed, says the agent", []func(*corev1.Node){cmdtest.Stood("os", nodes.Pending, ""), cmdtest.Noted(annotations.StatusBehavior, paused)}},
		"the agent has nothing to tell":       {"", "no strategy is set", []func(*corev1.Node){cmdtest.Stood("os", nodes.Pending, "")}},
		"a plan's drain wants it":             {"", "no strategy is set, says the agent", []func(*corev1.Node){cmdtest.Noted(annotations.StatusBehavior, `{"current":{"state":"ChangesUnpaused","strategy":"Permissive","reason":"no strategy is set"}}`)}},
		"nobody asks, so that nobody is told": {"", "whether the whole cluster is paused cannot be read", nil},
		"the agent is silent":                 {"nobody", "whether the whole cluster is paused cannot be read", []func(*corev1.Node){cmdtest.Stood("os", nodes.Pending, ""), cmdtest.Noted(annotations.StatusBehavior, paused)}},
	} {
		v := book.NodeGate(telling(&bytes.Buffer{}), factory.AgentState{Namespace: "maint-system", Missing: c.missing}, cmdtest.Node("a", c.edits...)).Verdict(cmdtest.Now())
		if v.Reason != c.reason || v.Permitted != strings.HasPrefix(c.reason, "no strategy is set") {
			t.Errorf("the cluster's switch, %s: %+v", name, v)
		}
	}
}

// A bypass passes what holds a plan, and a plan without a policy of its own is held by nothing.
func TestWhetherAPlanHasAGate(t *testing.T) {
	_, k := clusterOf(t, "shop", cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"))
	book := ReadResolver(t.Context(), k, "maint-system", "shop")
	for name, c := range map[string]struct {
		plan *corev1.ConfigMap
		want bool
	}{
		"no policy":         {cmdtest.Plan("nightly", ""), false},
		"a policy":          {cmdtest.Plan("nightly", "policies: [{name: nights}]"), true},
		"a bypass of none":  {cmdtest.Plan("nightly", "", cmdtest.Noting(annotations.Bypass, "2026-11-22T06:00:00Z: CHG-7")), true},
		"a bypass of a run": {cmdtest.Plan("nightly", "", cmdtest.Noting(annotations.Bypass, "maint-run-nightly-a: CHG-7")), false},
	} {
		if _, gated := book.PlanGate(telling(&bytes.Buffer{}), factory.AgentState{}, c.plan); gated != c.want {
			t.Errorf("%s: %v", name, gated)
		}
	}
}

func TestTheNamespacesOfANodesPolicies(t *testing.T) {
	in := intent.Intent{Stanza: policy.StanzaText{Policies: []policy.PolicyRef{{Name: "nights"}, {Name: "days", Namespace: "ops"}}}}
	if got := PolicyNamespaces(in); !slices.Equal(got, []string{"ops"}) {
		t.Errorf("%q: a policy without a namespace is the agent's", got)
	}
}
