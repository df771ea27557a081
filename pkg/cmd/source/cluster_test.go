package source

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// moved puts an object into another namespace.
func moved(namespace string, cm *corev1.ConfigMap) *corev1.ConfigMap {
	cm.Namespace = namespace
	return cm
}

func clusterOf(t *testing.T, namespace string, objects ...runtime.Object) (*cmdtest.Cluster, *factory.Cluster) {
	o := cmdtest.NewCluster(t, nil, objects...)
	return o, &factory.Cluster{Kube: o.Kube, Metadata: o.Connected().Metadata, Namespace: namespace}
}

// A cluster is read as files of the same documents would be.
func TestReadCluster(t *testing.T) {
	const until = "2026-11-22T00:00:00Z"
	world := func() []runtime.Object {
		return []runtime.Object{
			cmdtest.Agent(), cmdtest.Namespace("shop", annotations.Pause, until), cmdtest.Namespace("ops"), cmdtest.Namespace("maint-system"),
			cmdtest.Plan("orders", "policies: [{name: night}]"), cmdtest.Plan("broken", "startDeadline: soon"), moved("ops", cmdtest.Plan("roll", "")),
			cmdtest.Policy("night", window), moved("maint-system", cmdtest.Policy("day", "{strategy: Sometimes}")), moved("ops", cmdtest.Policy("ops", "{strategy: Permissive}")),
		}
	}
	const broken = "warning: shop/broken: line 1: spec.startDeadline: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\n"
	const odd = "warning: maint-system/day: line 1: spec.strategy: \"Sometimes\" is no strategy of a policy; write Permissive, Restrictive or MaintenanceSchedule\n"
	for _, c := range []struct {
		name, namespace string
		forbids         [3]string
		plans, policies []string
		said            string
		err             string
		above           map[string]bool // namespaces with a pause above them
	}{
		{name: "a namespace, with the agent's policies", namespace: "shop", plans: []string{"shop/orders"}, policies: []string{"maint-system/day", "shop/night"}, said: broken + odd, above: map[string]bool{"shop": true}},
		{name: "all namespaces", plans: []string{"ops/roll", "shop/orders"}, policies: []string{"maint-system/day", "ops/ops", "shop/night"}, said: broken + odd, above: map[string]bool{"shop": true}},
		{name: "all namespaces, one by one where not all may be listed at once", forbids: [3]string{"list", "namespaces", ""}, plans: []string{"ops/roll", "shop/orders"}, policies: []string{"maint-system/day", "ops/ops", "shop/night"}, said: broken + odd, above: map[string]bool{"shop": true}},
		{name: "where plans may not be listed", namespace: "shop", forbids: [3]string{"list", "configmaps", "shop"}, err: "list plans: configmaps is forbidden: not for you", above: map[string]bool{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, k := clusterOf(t, c.namespace, world()...)
			if c.forbids[0] != "" {
				o.Forbids(c.forbids[0], c.forbids[1], c.forbids[2])
			}
			f, said := reader("")
			w, err := ReadCluster(t.Context(), f, k, "")
			if cmdtest.ErrText(err) != c.err {
				t.Fatal(err)
			}
			var plans, policies []string
			for _, p := range w.Plans {
				plans = append(plans, p.Namespace+"/"+p.Name)
			}
			for _, p := range w.policies {
				policies = append(policies, p.Namespace+"/"+p.Name)
			}
			slices.Sort(plans)
			slices.Sort(policies)
			above := map[string]bool{}
			for name, p := range w.Pauses {
				if p.On {
					above[name] = true
				}
			}
			if diff := cmp.Diff([]any{c.plans, c.policies, c.said, c.above}, []any{plans, policies, said.String(), above}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Few namespaces are read one by one, many at once: the verdict is the same.
func TestPoliciesOfManyNamespaces(t *testing.T) {
	var objects []runtime.Object
	var names []string
	for i := range 6 {
		name := fmt.Sprintf("team-%d", i)
		names = append(names, name)
		objects = append(objects, cmdtest.Namespace(name, annotations.ChangeStrategy, "Restrictive"))
	}
	objects = append(objects, moved("team-0", cmdtest.Policy("open", "{strategy: Permissive}")),
		moved("team-0", cmdtest.Map(annotations.KindCalendar, "days", annotations.DataDates, "{apiVersion: maint.dev/v1alpha1, kind: Calendar, spec: [{from: 2026-12-24}]}")))
	for _, c := range []struct {
		name    string
		ask     []string
		forbids string
		gets    int // of namespaces
	}{
		{"few, which stay as they were handed in", names[:2], "", 3},
		{"many", names, "", 0},
		{"many, where they may not be listed", names, "list", 7},
		{"one name twice", []string{"team-0", "team-0"}, "", 2},
		{"no name", []string{"", "team-0"}, "", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, k := clusterOf(t, "team-0", objects...)
			if c.forbids != "" {
				o.Forbids(c.forbids, "namespaces", "")
			}
			b := ReadResolver(t.Context(), k, "maint-system", c.ask...)
			gets := 0
			for _, a := range o.Kube.Actions() {
				if a.Matches("get", "namespaces") {
					gets++
				}
			}
			if gets != c.gets || len(b.namespaces)+len(b.documents) > 0 {
				t.Errorf("%d namespaces were read, unread %v, %v", gets, b.namespaces, b.documents)
			}
			if v := b.Gate(policy.Query{Namespace: "team-0"}).Verdict(cmdtest.Now()); v.Permitted {
				t.Errorf("%+v", v)
			}
			if p := b.Policy("team-0", "open"); !p.Ready(cmdtest.Now()) {
				t.Error("the policy was not read")
			}
		})
	}
}

func TestPauses(t *testing.T) {
	until := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	shop, all := schedule.Pause{On: true, Of: "namespace shop"}, schedule.Pause{On: true, Of: "the whole cluster"}
	later := schedule.Pause{On: true, Until: &until, Of: "namespace shop", By: " by jane (unverified): CHG-1"}
	for _, c := range []struct {
		name    string
		objects []runtime.Object
		ask     []string
		forbids bool
		want    map[string][]schedule.Pause
	}{
		{name: "none", objects: []runtime.Object{cmdtest.Namespace("shop")}, ask: []string{"shop"}, want: map[string][]schedule.Pause{"shop": {}}},
		{name: "the namespace's", objects: []runtime.Object{cmdtest.Namespace("shop", annotations.Pause, "true")}, ask: []string{"shop"}, want: map[string][]schedule.Pause{"shop": {shop}}},
		{name: "the cluster's", objects: []runtime.Object{cmdtest.Namespace("maint-system", annotations.Pause, "true")}, ask: []string{"shop", "shop"}, want: map[string][]schedule.Pause{"shop": {all}}},
		{name: "both", objects: []runtime.Object{cmdtest.Namespace("maint-system", annotations.Pause, "true"), cmdtest.Namespace("shop", annotations.Pause, "2026-11-22T00:00:00Z", annotations.Actor(annotations.Pause), "jane", annotations.Reason(annotations.Pause), "CHG-1")}, ask: []string{"shop"}, want: map[string][]schedule.Pause{"shop": {later, all}}},
		{name: "of the agent's own namespace once", objects: []runtime.Object{cmdtest.Namespace("maint-system", annotations.Pause, "true")}, ask: []string{"maint-system"}, want: map[string][]schedule.Pause{"maint-system": {all}}},
		{name: "what may not be read is not known", objects: []runtime.Object{cmdtest.Namespace("shop", annotations.Pause, "true")}, ask: []string{"shop"}, forbids: true, want: map[string][]schedule.Pause{"shop": {}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, k := clusterOf(t, "shop", c.objects...)
			if c.forbids {
				o.Forbids("get", "namespaces", "")
			}
			got := map[string][]schedule.Pause{}
			for _, s := range []Pauses{ReadPauses(t.Context(), k, "maint-system", c.ask...), ReadRestrictions(t.Context(), k, "maint-system", c.ask...).Pauses} {
				for _, name := range c.ask {
					got[name] = s.Above(name)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestWhatOfTheClusterIsMeant(t *testing.T) {
	world := []runtime.Object{
		cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"), cmdtest.Policy("night", window), moved("maint-system", cmdtest.Policy("night", window)),
		cmdtest.Plan("orders", "policies: [{name: night}], triggers: {schedules: [{cron: '0 2 * * *', timezone: America/New_York}]}"), cmdtest.Plan("paused", "", cmdtest.Noting(annotations.Pause, "true")),
		cmdtest.Node("free"), cmdtest.Node("governed", cmdtest.Noted(annotations.ChangePolicy, "maint-system/night")), cmdtest.Node("held", cmdtest.Noted(annotations.Pause, "true")),
	}
	noon := cmdtest.Now().Add(12 * time.Hour)
	for _, c := range []struct {
		name, arg       string
		forbids         string // getting
		want, zone, why string
		err, said       string
	}{
		{name: "a policy, in its zone", arg: "night", want: "policy/night", zone: "UTC", why: "policy night: outside of the windows"},
		{name: "a plan, in its zone", arg: "orders", want: "plan/orders", zone: "America/New_York", why: "policy night: outside of the windows"},
		{name: "a plan that is paused", arg: "plan/paused", want: "plan/paused", zone: "Europe/Berlin", why: "paused"},
		{name: "a node", arg: "free", want: "node/free", zone: "Europe/Berlin"},
		{name: "a node with a policy", arg: "node/governed", want: "node/governed", zone: "Europe/Berlin", why: "policy night: outside of the windows"},
		{name: "a node that is paused", arg: "held", want: "node/held", zone: "Europe/Berlin", why: "paused"},
		{
			name: "a namespace of which nobody may tell whether it is frozen permits nothing", arg: "orders", forbids: "namespaces", want: "plan/orders", zone: "America/New_York", why: "whether it is frozen cannot be read",
			said: "warning: read namespace shop: namespaces is forbidden: not for you; whether it is frozen is not known, so nothing is permitted\n",
		},
		{name: "nothing of that name", arg: "ghost", err: `there is no plan or policy "ghost" in namespace shop; see 'kubectl maint list'; nor is there a node of that name`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, k := clusterOf(t, "shop", world...)
			if c.forbids != "" {
				o.Forbids("get", c.forbids, "")
			}
			f, said := reader("")
			s, err := FindSubject(t.Context(), f, k, c.arg)
			if cmdtest.ErrText(err) != c.err || said.String() != c.said {
				t.Fatalf("%v, said %q", err, said.String())
			}
			if c.err != "" {
				return
			}
			if v := s.Verdict(noon); s.String() != c.want || s.Zone != c.zone || v.Permitted != (c.why == "") || !strings.Contains(v.Reason, c.why) {
				t.Errorf("%s in %s: %+v", s, s.Zone, v)
			}
		})
	}
}

// A policy permits nothing while the whole cluster is paused. The pause of its namespace is of the plans there.
func TestAPolicyIsHeldByThePauseOfTheCluster(t *testing.T) {
	for _, c := range []struct {
		name, own, above, cluster, want string
	}{
		{name: "none"},
		{name: "its own", own: "true", want: "paused"},
		{name: "its namespace's", above: "true"},
		{name: "the whole cluster's", cluster: "true", want: "the whole cluster is paused"},
		{name: "the longer of both", own: "2026-11-21T12:00:00Z", cluster: "2026-11-22T00:00:00Z", want: "the whole cluster is paused until 2026-11-22T00:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			open := cmdtest.Policy("open", "{strategy: Permissive}")
			cmdtest.Noting(annotations.Pause, c.own)(open)
			_, k := clusterOf(t, "shop", cmdtest.Agent(), open, cmdtest.Namespace("shop", annotations.Pause, c.above), cmdtest.Namespace("maint-system", annotations.Pause, c.cluster))
			f, _ := reader("")
			there, err := FindSubject(t.Context(), f, k, "open")
			if err != nil {
				t.Fatal(err)
			}
			pause := func(value string) string { return annotations.Pause + ": '" + value + "'" }
			w, _ := in(t, namespaceOf(pause(c.above)), strings.Replace(namespaceOf(pause(c.cluster)), "shop", "maint-system", 1), cmdtest.PolicyOf("open", pause(c.own), "{strategy: Permissive}"))
			filed, err := w.Subject("open", "UTC")
			if err != nil {
				t.Fatal(err)
			}
			for where, s := range map[string]view.Subject{"in the cluster": there, "in files": filed} {
				if v := s.Verdict(cmdtest.Now()); v.Permitted != (c.want == "") || c.want != "" && v.Reason != c.want {
					t.Errorf("%s: %+v", where, v)
				}
			}
		})
	}
}

func TestReadPlanAndReadNode(t *testing.T) {
	roll := cmdtest.RollsThrough(t, "waits", run.Item{Name: "a", Phase: run.StepRunning}, run.Item{Name: "b"})
	l := cmdtest.Ledger(ledger.Ledger{Totals: map[run.Result]int64{run.Ran: 3}})
	world := []runtime.Object{cmdtest.Agent(), cmdtest.Node("a"), roll, cmdtest.Plan("orders", ""), l, cmdtest.RunObject(cmdtest.RunOf(), "maint-run-orders-a")}
	o, k := clusterOf(t, "shop", world...)
	f, _ := reader("")
	agent := factory.AgentState{Namespace: "maint-system"}
	n, err := ReadNode(t.Context(), f, k, agent, cmdtest.Node("a"))
	if err != nil || n.Name != "a" || len(n.StepClaims) != 1 || n.StepClaims[0].Node != "a" {
		t.Errorf("%+v, %v", n.StepClaims, err)
	}
	p, err := ReadPlan(t.Context(), f, k, agent, cmdtest.Plan("orders", ""))
	if err != nil || len(p.Active) != 1 || p.Active[0].Run.Name != "maint-run-orders-a" || p.Ledger == nil || !maps.Equal(p.Ledger.Totals, map[run.Result]int64{run.Ran: 3}) {
		t.Errorf("%+v, %v", p, err)
	}
	o.Forbids("list", "configmaps", "")
	if n, err := ReadNode(t.Context(), f, k, agent, cmdtest.Node("a")); err != nil || n.Name != "a" || !n.Unseen.Of("plan:shop/orders") {
		t.Errorf("%+v, %v", n, err)
	}
	if _, err := ReadPlan(t.Context(), f, k, agent, cmdtest.Plan("orders", "")); cmdtest.ErrText(err) != "list runs: configmaps is forbidden: not for you" {
		t.Error(err)
	}
	o.Forbids("get", "configmaps", "")
	if _, err := ReadPlan(t.Context(), f, k, agent, cmdtest.Plan("orders", "")); !strings.HasPrefix(cmdtest.ErrText(err), "read the ledger of orders: configmaps is forbidden") {
		t.Error(err)
	}
}

// What stands above a plan and may not be read is the agent's word, in the calendar as elsewhere.
func TestTheCalendarTakesTheAgentsWordOfWhatMayNotBeRead(t *testing.T) {
	const (
		daily = "triggers: {schedules: [{cron: '0 3 21 * *'}]}"
		told  = `{"current":{"state":"ChangesPaused","reason":"policy quiet: Restrictive"}}`
	)
	said := func(cm *corev1.ConfigMap, phase, message, behavior string) *corev1.ConfigMap {
		cm.CreationTimestamp.Time = cmdtest.Now().Add(-time.Hour)
		cmdtest.Noting(annotations.StatusObserved, annotations.Observed(cm), annotations.StatusPhase, phase, annotations.StatusMessage, message, annotations.StatusBehavior, behavior)(cm)
		return cm
	}
	asleep := cmdtest.Sleeper("nights", nightly, cmdtest.Noting(annotations.StatusAsleep, "2026-11-20T23:30:00Z"))
	const freed = "2026-11-22T00:00:00Z"
	for _, c := range []struct {
		name    string
		forbids [3]string
		world   []runtime.Object
		want    []string
	}{
		{"a pause above a plan", [3]string{"get", "namespaces", ""}, []runtime.Object{said(cmdtest.Plan("orders", daily), "Paused", "the whole cluster is paused by root (unverified): upgrade", "")}, []string{
			"plan shop/orders: freeze [*, *): the whole cluster is paused by root (unverified): upgrade, says the agent",
			"plan shop/orders: slot 11-21 03:00 idle: the whole cluster is paused by root (unverified): upgrade, says the agent",
		}},
		{"a pause above a HibernatePlan", [3]string{"get", "namespaces", ""}, []runtime.Object{said(cmdtest.Sleeper("nights", nightly), "Suspended", "namespace shop is paused until "+freed, "")}, []string{
			"hibernate-plan shop/nights: sleep [11-20 23:00, 11-21 06:00): namespace shop is paused, says the agent", "hibernate-plan shop/nights: sleep [11-21 20:00, 11-22 06:00): namespace shop is paused, says the agent", "hibernate-plan shop/nights: sleep [11-22 20:00, 11-23 06:00)",
		}},
		{"a policy of a HibernatePlan", [3]string{"list", "configmaps", "maint-system"}, []runtime.Object{said(cmdtest.Sleeper("nights", "policies: [{name: quiet, namespace: maint-system}], "+nightly), "Active", "", told)}, []string{
			"hibernate-plan shop/nights: sleep [11-20 23:00, 11-21 06:00): does not begin: window closed (policy quiet: Restrictive, says the agent)", "hibernate-plan shop/nights: sleep [11-21 20:00, 11-22 06:00): does not begin: window closed (policy quiet: Restrictive, says the agent)", "hibernate-plan shop/nights: sleep [11-22 20:00, 11-23 06:00): does not begin: window closed (policy quiet: Restrictive, says the agent)",
		}},
		{"a freeze of the namespace of a plan", [3]string{"get", "namespaces", ""}, []runtime.Object{said(cmdtest.Plan("orders", ""), "Idle", "", strings.Replace(told, "policy quiet: Restrictive", "namespace: RestrictiveUntil "+freed+" by jane: CHG-7", 1))}, []string{
			"namespace shop: freeze [*, 11-22 00:00): RestrictiveUntil by jane: CHG-7, says the agent",
		}},
		{"a freeze of the namespace of a HibernatePlan", [3]string{"get", "namespaces", ""}, []runtime.Object{said(cmdtest.Sleeper("nights", nightly), "Active", "", strings.Replace(told, "policy quiet", "namespace", 1))}, []string{
			"namespace shop: freeze [*, *): Restrictive, says the agent",
			"hibernate-plan shop/nights: sleep [11-20 23:00, 11-21 06:00): does not begin: window closed (namespace: Restrictive, says the agent)", "hibernate-plan shop/nights: sleep [11-21 20:00, 11-22 06:00): does not begin: window closed (namespace: Restrictive, says the agent)", "hibernate-plan shop/nights: sleep [11-22 20:00, 11-23 06:00): does not begin: window closed (namespace: Restrictive, says the agent)",
		}},
		{"a pause does not wake what sleeps", [3]string{}, []runtime.Object{cmdtest.Namespace("shop", annotations.Pause, freed), said(asleep, "Hibernated", "", "")}, []string{
			"namespace shop: freeze [*, 11-22 00:00): paused",
			"hibernate-plan shop/nights: sleep [11-20 23:00, 11-21 06:00)", "hibernate-plan shop/nights: sleep [11-21 20:00, 11-22 06:00): namespace shop is paused", "hibernate-plan shop/nights: sleep [11-22 20:00, 11-23 06:00)",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			world := append([]runtime.Object{cmdtest.Agent(), cmdtest.Namespace("maint-system")}, c.world...)
			if c.forbids[0] != "" {
				world = append(world, cmdtest.Namespace("shop"))
			}
			o, k := clusterOf(t, "shop", world...)
			if c.forbids[0] != "" {
				o.Forbids(c.forbids[0], c.forbids[1], c.forbids[2])
			}
			f, _ := reader("")
			w, err := ReadCluster(t.Context(), f, k, "")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, entries(t, w)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
