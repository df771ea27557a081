package ask_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

func labelled(key, value string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.Labels[key] = value }
}

// What is asked of plans by their labels reaches those plans of both kinds, and no others.
func TestPlansByTheirLabels(t *testing.T) {
	const none = "error: no plan in namespace shop has the labels team=ghosts; see 'kubectl maint list'\n"
	elsewhere := func(cm *corev1.ConfigMap) { cm.Namespace = "depot" }
	paused := cmdtest.Noting(annotations.Pause, "true")
	for _, c := range []struct {
		name string
		line string
		now  string            // how plan bills and off-hours office stand before, if not without intents
		want cmdtest.Printed   // with team a: plans bills and orders, HibernatePlan office, and depot/stock
		has  map[string]string // of each plan of team a in the namespace: the value of the intent that is asked for
	}{
		{name: "pause", line: "pause -l team=a", want: cmdtest.Printed{Out: "plan/bills paused until resumed\nplan/orders paused until resumed\nhibernate-plan/office paused until resumed\n"}, has: map[string]string{"bills": "true", "orders": "true", "office": "true"}},
		{name: "pause of one", line: "pause -l team=a,tier=back", want: cmdtest.Printed{Out: "plan/bills paused until resumed\n"}, has: map[string]string{"bills": "true"}},
		{name: "pause of none", line: "pause -l team=ghosts", want: cmdtest.Printed{Code: 1, Err: none}},
		{name: "pause of all namespaces, by a script that does not say so", line: "pause -l team=a -A", want: cmdtest.Printed{Code: 2, Err: "error: pause 4 plans of all namespaces: give --yes, since nobody can be asked here\n"}},
		{name: "pause of all namespaces, by a script that says so", line: "pause -l team=a -A --yes", want: cmdtest.Printed{Out: "plan/depot/stock paused until resumed\nplan/shop/bills paused until resumed\nplan/shop/orders paused until resumed\nhibernate-plan/shop/office paused until resumed\n"}, has: map[string]string{"bills": "true", "orders": "true", "office": "true"}},
		{name: "pause of all namespaces, none there", line: "pause -l team=ghosts -A", want: cmdtest.Printed{Code: 1, Err: "error: no plan in any namespace has the labels team=ghosts; see 'kubectl maint list'\n"}},
		{name: "a trial of a pause", line: "pause -l team=a,tier=back --dry-run", want: cmdtest.Printed{Out: "plan/bills paused until resumed (dry run)\n"}},
		{name: "labels and names", line: "pause -l team=a orders", want: cmdtest.Printed{Code: 2, Err: "error: -l and names exclude each other\n"}},
		{name: "labels and all", line: "resume -l team=a --all", want: cmdtest.Printed{Code: 2, Err: "error: --all and -l exclude each other\n"}},
		{name: "resume", line: "resume -l team=a,tier=back", now: "paused", want: cmdtest.Printed{Out: "plan/bills resumed\n"}, has: map[string]string{"office": "true"}},
		{name: "skip: one without a schedule does not keep the others from it", line: "skip -l team=a --next 1", want: cmdtest.Printed{
			Code: 1, Out: "plan/orders skips Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z)\nhibernate-plan/office skips Fri 2026-11-20 18:00 EST (2026-11-20T23:00:00Z), which has begun: what sleeps wakes\n",
			Err: "error: plan bills has no schedule, so there are no slots to skip; --all makes its labels wait\n",
		}, has: map[string]string{"orders": "2026-11-21T07:00:00Z", "office": "2026-11-20T23:00:00Z"}},
		{name: "skip of a slot: one without it does not keep the others from it", line: "skip -l team=a --slot 2026-11-21T07:00:00Z", want: cmdtest.Printed{
			Code: 1, Out: "plan/orders skips Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z)\n",
			Err: "error: plan bills has no schedule, so there are no slots to skip; --all makes its labels wait\nerror: plan office: --slot: the plan has no off-window at Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z); the next after it is Mon 2026-11-23 18:00 EST (2026-11-23T23:00:00Z)\n",
		}, has: map[string]string{"orders": "2026-11-21T07:00:00Z"}},
		{name: "skip of a slot that is no time: nothing is asked of any", line: "skip -l team=a --slot someday", want: cmdtest.Printed{Code: 2, Err: "error: \"someday\" is no time: write it like 2026-12-24T18:00:00Z, 2h, 30d, 08:00, \"tomorrow 08:00\", \"sat 02:00\" or \"2026-12-24 18:00\"\n"}},
		{name: "skip of labels and a name", line: "skip orders -l team=a --next 1", want: cmdtest.Printed{Code: 2, Err: "error: -l and a name exclude each other\n"}},
		{name: "skip of none", line: "skip -l team=ghosts --all", want: cmdtest.Printed{Code: 1, Err: none}},
		{name: "skip of all namespaces", line: "skip -l team=a -A --next 1", want: cmdtest.Printed{
			Code: 1, Out: "plan/depot/stock skips Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z)\nplan/shop/orders skips Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z)\nhibernate-plan/shop/office skips Fri 2026-11-20 18:00 EST (2026-11-20T23:00:00Z), which has begun: what sleeps wakes\n",
			Err: "error: plan shop/bills has no schedule, so there are no slots to skip; --all makes its labels wait\n",
		}, has: map[string]string{"orders": "2026-11-21T07:00:00Z", "office": "2026-11-20T23:00:00Z"}},
		{name: "skip of all slots of all namespaces: the commands that take it back name the namespace", line: "skip -l team=a,tier=back -A --all", want: cmdtest.Printed{Out: "plan/shop/bills skips all slots until 'kubectl maint -n shop unskip bills'\n"}, has: map[string]string{"bills": "true"}},
		{name: "skip of all namespaces without labels", line: "skip orders -A --next 1", want: cmdtest.Printed{Code: 2, Err: "error: -A needs -l\n"}},
		{name: "unskip of all namespaces", line: "unskip -l team=a -A", now: "skipped", want: cmdtest.Printed{Out: "plan/depot/stock skips nothing\nplan/shop/bills no longer skips all slots\nplan/shop/orders skips nothing\nhibernate-plan/shop/office no longer skips all off-windows\n"}},
		{name: "unskip", line: "unskip -l tier=back", now: "skipped", want: cmdtest.Printed{Out: "plan/bills no longer skips all slots\n"}, has: map[string]string{"office": "all"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			key, edits := annotations.Skip, []func(*corev1.ConfigMap){labelled("team", "a")}
			switch c.now {
			case "paused":
				edits = append(edits, paused)
			case "skipped":
				edits = append(edits, cmdtest.Noting(annotations.Skip, "all"))
			}
			plain := []func(*corev1.ConfigMap){labelled("team", "a")}
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(),
				cmdtest.Plan("orders", weekly, plain...), cmdtest.Plan("bills", "", append(edits, labelled("tier", "back"))...), cmdtest.Sleeper("office", office, edits...),
				cmdtest.Plan("others", weekly, labelled("team", "b")), cmdtest.Plan("stock", weekly, append(plain, elsewhere)...))
			o.Line(c.line).Is(t, c.want)
			if words := cmdtest.Words(c.line); words[0] == "pause" || words[0] == "resume" {
				key = annotations.Pause
			}
			for _, name := range []string{"orders", "bills", "office", "others"} {
				if got := o.Notes(name)[key]; got != c.has[name] {
					t.Errorf("%s has %s: %q, want %q", name, key, got, c.has[name])
				}
			}
		})
	}
}

// An agent that watches one namespace carries out what is asked there, from wherever it is asked.
func TestHoldsOfAllNamespacesWithAnAgentOfOne(t *testing.T) {
	const (
		elsewhere = "the agent in namespace maint-system watches only namespace depot, and nothing acts in namespace shop: it watches all after 'kubectl maint install --apply --namespace maint-system --single-namespace=false'"
		held      = " held asleep until released with 'kubectl maint -n %s wake %s --release'\n  its schedule is ignored until then\n"
	)
	agent := cmdtest.Agent()
	agent.Data[annotations.HeartbeatWatches] = "depot"
	sleeps := cmdtest.Noting(annotations.StatusHold, "asleep", annotations.StatusPhase, "Hibernated")
	there := cmdtest.Sleeper("store", office, labelled("tier", "back"), sleeps, labelled("team", "a"), func(cm *corev1.ConfigMap) { cm.Namespace = "depot" })
	late := cmdtest.Sleeper("late", office, labelled("tier", "late"), cmdtest.Noting(annotations.StatusPhase, "Active"), func(cm *corev1.ConfigMap) { cm.Namespace = "depot" })
	for _, c := range []struct {
		line string
		want cmdtest.Printed
	}{
		{"hibernate -l tier=back -A --yes --wait", cmdtest.Printed{Out: "hibernate-plan/depot/store" + fmt.Sprintf(held, "depot", "store") + "2026-11-21T00:00:00Z plan store: Hibernated\n"}},
		{"hibernate -l team=a -A --yes --wait", cmdtest.Printed{Code: 5, Err: "error: " + elsewhere + "; nothing was asked\n"}},
		{"hibernate -l tier=late -A --yes --wait --timeout 1s", cmdtest.Printed{
			Code: 124, Out: "hibernate-plan/depot/late" + fmt.Sprintf(held, "depot", "late") + "2026-11-21T00:00:00Z plan late: Active\n",
			Err: "error: --timeout passed: the request is kept, and goes on without you; see 'kubectl maint -n depot status late'\n",
		}},
		{"hibernate -l team=a -A --yes", cmdtest.Printed{
			Out: "hibernate-plan/depot/store" + fmt.Sprintf(held, "depot", "store") + "hibernate-plan/shop/office" + fmt.Sprintf(held, "shop", "office"),
			Err: "warning: " + elsewhere + "; what is asked here is done when it does\n",
		}},
	} {
		o := cmdtest.NewCluster(t, cmd.Run, agent, cmdtest.Namespace("shop"), cmdtest.Namespace("depot"), there, late, cmdtest.Sleeper("office", office, labelled("team", "a")))
		o.Line(c.line).Is(t, c.want)
	}
}

func TestAWaitForHoldsOfAllNamespacesThatEndsEarlyNamesEach(t *testing.T) {
	in := func(namespace, name string) *corev1.ConfigMap {
		return cmdtest.Sleeper(name, office, labelled("team", "a"), func(cm *corev1.ConfigMap) { cm.Namespace = namespace })
	}
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("depot"), in("depot", "store"), in("shop", "office"), in("shop", "tills"))
	const want = "error: --timeout passed: the request is kept, and goes on without you; see 'kubectl maint -n depot status store' and 'kubectl maint -n shop status office tills'\n"
	if got := o.Line("hibernate -l team=a -A --yes --wait --timeout 1s"); got.Code != 124 || got.Err != want {
		t.Errorf("exit code %d, standard error %q, want %q", got.Code, got.Err, want)
	}
}

// As with kubectl, what is refused of one object keeps no other from it.
func TestOneThatIsRefusedDoesNotKeepTheOthersFromIt(t *testing.T) {
	there := func(cm *corev1.ConfigMap) { cm.Namespace = "depot" }
	team := labelled("team", "a")
	const refused = "Error from server (Forbidden): write to "
	for _, c := range []struct {
		line, out, err string
	}{
		{"skip -l team=a -A --all", "plan/shop/orders skips", refused + "depot/stock: "},
		{"unskip -l team=a -A", "plan/shop/orders no longer skips", refused + "depot/stock: "},
		{"pause -l team=a -A --yes", "plan/shop/orders paused", refused + "depot/stock: "},
		{"resume -l team=a -A", "plan/shop/orders resumed", refused + "depot/stock: "},
		{"hibernate -l team=a -A --yes", "hibernate-plan/shop/office held asleep", refused + "depot/store: "},
		{"wake -l team=a -A", "hibernate-plan/shop/office held awake", refused + "depot/store: "},
		{"hibernate -l team=a -A --yes --wait", "hibernate-plan/shop/office held asleep", refused + "depot/store: "},
	} {
		asked := cmdtest.Noting(annotations.Skip, "all", annotations.Pause, "true")
		if cmdtest.Words(c.line)[0] == "skip" {
			asked = func(*corev1.ConfigMap) {}
		}
		o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("depot"),
			cmdtest.Plan("stock", weekly, team, there, asked), cmdtest.Plan("orders", weekly, team, asked),
			cmdtest.Sleeper("store", office, team, there), cmdtest.Sleeper("office", office, team))
		o.Forbids("patch", "configmaps", "depot")
		got := o.Line(c.line)
		if got.Code != 1 || !strings.Contains(got.Out, c.out) || !strings.HasPrefix(got.Err, c.err) {
			t.Errorf("%s: %+v", c.line, got)
		}
	}
}

func TestOfSeveralNamesOneThatIsRefusedDoesNotKeepTheOthersFromIt(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Plan("orders", weekly), cmdtest.Node("worker-1"))
	o.Forbids("patch", "nodes", "")
	got := o.Line("pause node/worker-1 orders")
	if got.Code != 1 || got.Out != "plan/orders paused until resumed\n" || !strings.Contains(got.Err, "worker-1") {
		t.Errorf("%+v", got)
	}
}

// A name alone means nothing where plans of all namespaces are meant.
func TestOfAllNamespacesCommandsThatAreProposedNameTheNamespace(t *testing.T) {
	there := func(cm *corev1.ConfigMap) { cm.Namespace = "depot" }
	team := labelled("team", "a")
	world := func(more ...string) []runtime.Object {
		asked := cmdtest.Noting(more...)
		return []runtime.Object{cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("depot"), cmdtest.Plan("stock", weekly, team, there, asked), cmdtest.Sleeper("store", office, team, there, asked)}
	}
	for _, c := range []struct {
		line  string
		world []runtime.Object
		code  int
		err   string
	}{
		{"hibernate -l team=a -A --yes", world(annotations.Pause, "true"), 0, "plan depot/store: paused until resumed; it keeps its present state meanwhile: 'kubectl maint -n depot resume store' ends that\n"},
		{"hibernate -l team=a -A --yes --wait", world(annotations.Pause, "true"), 3, "error: plan depot/store: paused until resumed; it keeps its present state meanwhile: 'kubectl maint -n depot resume store' ends that; nothing was asked (without --wait the request is kept, and is carried out as soon as it can be)\n"},
		{"skip -l team=a -A --next 1", world(annotations.Skip, "all"), 3, "error: plan depot/stock skips all slots already; 'kubectl maint -n depot unskip stock' takes that back first\nerror: plan depot/store skips all off-windows already; 'kubectl maint -n depot unskip store' takes that back first\n"},
	} {
		got := cmdtest.NewCluster(t, cmd.Run, c.world...).Line(c.line)
		if got.Code != c.code || got.Err != c.err {
			t.Errorf("%s: %+v, want %d, %s", c.line, got, c.code, c.err)
		}
	}
}
