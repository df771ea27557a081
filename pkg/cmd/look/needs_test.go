package look_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/stuck"
)

// full is a run of plan orders that begins no other node, since both places are taken, and the nodes.
func full() []runtime.Object {
	rec := cmdtest.Record("roll", plan.TypeForEachNode, run.StepRunning)
	rec.Listed, rec.Items = true, []run.Item{{Name: "a", Phase: run.StepFailed, Message: "no disk"}, {Name: "b"}, {Name: "c"}}
	r := cmdtest.RunOf(rec)
	r.Run.Spec.Steps = []plan.Step{{Name: "roll", Type: plan.TypeForEachNode, Properties: map[string]any{"maxUnavailable": 2, "onError": "continue", "steps": []any{}}}}
	return objects(
		cmdtest.RunObject(r, "maint-run-orders-a"), cmdtest.Node("a", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:shop/orders"}})),
		cmdtest.Node("b", func(n *corev1.Node) { n.Spec.Unschedulable = true }), cmdtest.Node("c"),
	)
}

const needed = "{range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}:{range .needs[*]} {.what}: {.remedy}{end}\n{end}"

// What needs somebody on one node is said of that node as of all.
func TestStatusOfANodeBeginsWithWhatNeedsSomebody(t *testing.T) {
	const failed = "Failed for plan shop/orders: run maint-run-orders-a, step roll: no disk"
	held := cmdtest.Node("held", cmdtest.Noted(annotations.Pause, "true"))
	o := cmdtest.NewCluster(t, cmd.Run, append(full(), cmdtest.Agent(), cmdtest.Namespace("shop"), seen("orders", ""), held)...)
	for name, want := range map[string]string{
		"a":    "  node a  " + failed + "\n    'kubectl maint why node/a'\n",
		"held": "  node held  is paused until resumed\n    'kubectl maint resume node/held'\n",
	} {
		if text := o.Maint("status", name).Out; !strings.HasPrefix(text, "Needs somebody:\n"+want+"\nNode: ") {
			t.Errorf("%s:\n%s", name, text)
		}
		what, remedy, _ := strings.Cut(strings.TrimSuffix(want, "\n"), "\n    ")
		_, what, _ = strings.Cut(strings.TrimPrefix(what, "  "), "  ")
		o.Line("status "+name+" -o 'jsonpath={.needs[*].what}: {.needs[*].remedy}'").Is(t, cmdtest.Printed{Out: what + ": " + remedy})
	}
	if text := o.Maint("status", "c").Out; !strings.HasPrefix(text, "Node: ") {
		t.Errorf("a node that needs nobody:\n%s", text)
	}
}

// What needs somebody is one list, for people and for scripts.
func TestStatusForScriptsHasWhatNeedsSomebody(t *testing.T) {
	again := seen("orders", "")
	again.UID = "another"
	const gone, ends = "is deleted: ", "the agent ends its run maint-run-orders-a with its restore and finally; it is Running for 1h0m, 0 of 1 steps done"
	const stuck, frees = "step roll of run maint-run-orders-a begins no other node, since all its places are taken: a (its steps failed), b (somebody cordoned it)", "'kubectl uncordon a', or 'kubectl uncordon b'"
	hold := live(cmdtest.Record("call", "webhook", run.StepRunning))
	for _, c := range []struct {
		name         string
		world        []runtime.Object
		what, remedy string
		want         string
	}{
		{"a run whose plan was deleted", objects(hold), gone + ends, "'kubectl maint status maint-run-orders-a'", "RunStatus shop/maint-run-orders-a: WHAT: REMEDY\n"},
		{"a run of an earlier plan of its name", objects(hold, again), "had an earlier plan of its name, which was deleted: " + ends, "'kubectl maint status maint-run-orders-a'", "PlanStatus shop/orders:\nRunStatus shop/maint-run-orders-a: WHAT: REMEDY\n"},
		{"a rollout whose places are full", append(full(), seen("orders", "")), stuck, frees, "PlanStatus shop/orders: WHAT: REMEDY\nNodeStatus /a: Failed for plan shop/orders: run maint-run-orders-a, step roll: no disk: 'kubectl maint why node/a'\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, append(objects(cmdtest.Agent(), cmdtest.Namespace("shop")), c.world...)...)
			want := strings.NewReplacer("WHAT", c.what, "REMEDY", c.remedy).Replace(c.want)
			o.Line("status -o 'jsonpath="+needed+"'").Is(t, cmdtest.Printed{Out: want})
			if text := o.Line("status").Out; !strings.Contains(text, "  orders  "+c.what+"\n    "+c.remedy+"\n") {
				t.Errorf("the screen says something else:\n%s", text)
			}
		})
	}
	for _, line := range []string{"status orders", "describe orders", "status orders-a", "describe orders-a"} {
		o := cmdtest.NewCluster(t, cmd.Run, append(full(), cmdtest.Agent(), cmdtest.Namespace("shop"), seen("orders", ""))...)
		o.Line(line+" -o 'jsonpath={.needs[0].what}'").Is(t, cmdtest.Printed{Out: stuck})
	}
	for _, line := range []string{"status orders", "status orders-a"} {
		o := cmdtest.NewCluster(t, cmd.Run, append(full(), cmdtest.Agent(), cmdtest.Namespace("shop"), seen("orders", ""))...)
		if text := o.Line(line).Out; !strings.HasPrefix(text, "Needs somebody:\n  orders  "+stuck+"\n    "+frees+"\n") {
			t.Errorf("%s begins with something else:\n%s", line, text)
		}
	}
}

// A run that is named begins with what it needs, and scripts find it there.
func TestStatusOfARunBeginsWithWhatItNeeds(t *testing.T) {
	const asks, answer = "run maint-run-orders-a is suspended in step hold", "'kubectl maint resume maint-run-orders-a'"
	held := func(edits ...func(*view.Run)) runtime.Object {
		r := cmdtest.RunOf(cmdtest.Record("hold", "suspend", run.StepRunning))
		for _, e := range edits {
			e(&r)
		}
		return cmdtest.RunObject(r, "maint-run-orders-a")
	}
	said := func(message string) runtime.Object {
		return seen("orders", "", annotations.StatusConditions, runStuck(message))
	}
	for _, c := range []struct {
		name  string
		world []runtime.Object
		needs bool
	}{
		{"it is suspended", objects(held(), seen("orders", "")), true},
		{"its plan is gone", objects(held()), true},
		{"somebody aborts it", objects(held(), seen("orders", "", annotations.Abort, "maint-run-orders-a")), false},
		{"the agent leaves it alone", objects(held(), said("run maint-run-orders-a is left alone: it is not signed")), false},
		{"its plan's ledger does not have it open", objects(held(), said(stuck.CannotGoOn("maint-run-orders-a", stuck.NoOpenEntry))), false},
		{"another one of its plan is left alone", objects(held(), said("run maint-run-orders-b is left alone: it is not signed")), true},
		{"it has ended", objects(held(func(r *view.Run) { r.Journal.Phase, r.Journal.FinishedAt = run.Aborted, cmdtest.Before(0) }), seen("orders", "")), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, append(c.world, cmdtest.Agent(), cmdtest.Namespace("shop"))...)
			text := o.Line("status orders-a").Out
			if is := strings.HasPrefix(text, "Needs somebody:\n  orders  "+asks+"\n    "+answer+"\n\nRun maint-run-orders-a"); is != c.needs {
				t.Errorf("it needs somebody: %t\n%s", is, text)
			}
			want := ""
			if c.needs {
				want = asks + ": " + answer
			}
			for _, command := range []string{"status", "describe"} {
				o.Line(command+" orders-a -o 'jsonpath={range .needs[*]}{.what}: {.remedy}{end}'").Is(t, cmdtest.Printed{Out: want})
			}
		})
	}
}

func runStuck(message string) string {
	return `[{"type":"RunStuck","status":"True","reason":"Stuck","message":"` + message + `","lastTransitionTime":"2026-11-20T00:00:00Z"}]`
}

// A free place helps no run that begins nothing, whatever is asked: neither it nor its plan asks for one.
func TestNobodyIsAskedToFreeAPlaceForARunThatBeginsNothing(t *testing.T) {
	for name, message := range map[string]string{
		"the agent leaves it alone":               "run maint-run-orders-a is left alone: it is not signed",
		"its plan's ledger does not have it open": stuck.CannotGoOn("maint-run-orders-a", stuck.NoOpenEntry),
	} {
		o := cmdtest.NewCluster(t, cmd.Run, append(full(), cmdtest.Agent(), cmdtest.Namespace("shop"), seen("orders", "", annotations.StatusConditions, runStuck(message)))...)
		for _, line := range []string{"status", "status orders", "status orders-a", "describe orders-a", "status -o json", "status orders -o json", "describe orders -o json", "status orders-a -o json", "describe orders-a -o json"} {
			if text := o.Line(line).Out; strings.Contains(text, "uncordon b") {
				t.Errorf("%s: %s asks for a place:\n%s", name, line, text)
			}
		}
	}
}

// Whether anybody is at work, and by which configuration, is told to scripts in the list, too.
func TestTheAgentIsAmongWhatNeedsSomebodyForScripts(t *testing.T) {
	silent := cmdtest.Agent()
	silent.Data["heartbeat"] = "2026-11-19T00:00:00Z"
	const line = "status -o 'jsonpath={range .items[?(@.kind==\"AgentStatus\")]}{.metadata.namespace}/{.metadata.name}:{range .needs[*]} {.what}: {.remedy}{end}{end}'"
	for name, c := range map[string]struct {
		world []runtime.Object
		want  []string
	}{
		"it is at work": {objects(cmdtest.Agent()), nil},
		"it is silent":  {objects(silent), []string{"maint-system/maint-agent: ", "the agent in namespace maint-system was last seen", ": 'kubectl maint doctor'"}},
		"it is broken":  {objects(cmdtest.Agent(), cmdtest.Configured("{maxParallelOperations: few}")), []string{"maint-system/maint-agent: the agent's configuration, ConfigMap maint-system/maint-agent, is invalid: ", ": 'kubectl maint doctor'"}},
	} {
		o := cmdtest.NewCluster(t, cmd.Run, append(c.world, cmdtest.Namespace("shop"), seen("orders", ""))...)
		got := o.Line(line)
		for _, want := range c.want {
			if !strings.Contains(got.Out, want) {
				t.Errorf("%s: %q is missing: %+v", name, want, got)
			}
		}
		if c.want == nil && got.Out != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What is answered is asked of nobody, whether or not an agent has taken the answer up.
func TestARunForScriptsAsksNobodyForWhatIsAnswered(t *testing.T) {
	asks := cmdtest.RunObject(cmdtest.PendingRun(func(r *view.Run) { r.Journal.Waiting = run.WaitApproval }), "maint-run-orders-a")
	for _, c := range []struct{ name, approve, want string }{
		{"nobody has answered", "", `["maint-run-orders-a"]`},
		{"somebody has", "maint-run-orders-a", ""},
	} {
		for _, line := range []string{"status orders-a", "describe orders-a"} {
			t.Run(c.name+": "+line, func(t *testing.T) {
				var notes []string
				if c.approve != "" {
					notes = []string{annotations.Approve, c.approve, annotations.Actor(annotations.Approve), "jane"}
				}
				o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), seen("orders", "", notes...), asks.DeepCopy())
				o.Line(line+" -o jsonpath={.questions}").Is(t, cmdtest.Printed{Out: c.want})
			})
		}
	}
}

// Whatever else is paused or frozen: what failed is told first.
func TestWhatFailedIsToldFirst(t *testing.T) {
	last := ledger.LastRun{Name: "maint-run-orders-z", Phase: run.Failed, EndedAt: *cmdtest.Before(time.Hour)}
	failed := cmdtest.Ledger(ledger.Ledger{Last: &last, Recent: []ledger.Entry{{Result: run.Ran, Run: last.Name, Outcome: &ledger.Outcome{Phase: run.Failed, Step: "dump", Message: "no disk"}}}})
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("maint-system"), cmdtest.Namespace("shop", annotations.Pause, "true"), seen("aged", "", annotations.Pause, "true"), seen("orders", ""), failed)
	got := o.Line("status").Out
	at := strings.Index(got, "orders  its last run maint-run-orders-z failed")
	for _, later := range []string{"namespace shop  is paused", "aged  is paused"} {
		if i := strings.Index(got, later); at < 0 || i < at {
			t.Errorf("%q is told before the failure:\n%s", later, got)
		}
	}
}

// Who has a node whose run the agent leaves alone: one answer, from all that say it.
func TestOneAnswerAboutANodeWhoseRunIsLeftAlone(t *testing.T) {
	rec := cmdtest.Record("roll", plan.TypeForEachNode, run.StepRunning, cmdtest.Looping(run.Item{Name: "a", Phase: run.StepRunning}))
	world := objects(
		cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"), cmdtest.RunObject(cmdtest.RunOf(rec), "maint-run-orders-a"),
		seen("orders", "", annotations.StatusConditions, runStuck("run maint-run-orders-a is left alone: it is not signed")),
		cmdtest.Node("a", cmdtest.CordonedFor(nodes.Cordon{By: []string{"plan:shop/orders"}})),
	)
	const left = "the agent leaves its run maint-run-orders-a alone"
	for line, words := range map[string][]string{
		"status":           {"is left cordoned for plan shop/orders, and " + left, "Cordoned   10m0s   -      " + left},
		"status -A":        {"is left cordoned for plan shop/orders, and " + left},
		"status a":         {"is left cordoned for plan shop/orders, and " + left, "stays as it is: the agent leaves run maint-run-orders-a of plan shop/orders alone; 'kubectl maint -n shop why maint-run-orders-a' says why, or 'kubectl uncordon a'"},
		"status -o json":   {`"what": "is left cordoned for plan shop/orders, and ` + left},
		"status a -o json": {`"what": "is left cordoned for plan shop/orders, and ` + left},
		"why node/a":       {left},
	} {
		got := cmdtest.NewCluster(t, cmd.Run, world...).Line(line).Out
		for _, w := range words {
			if !strings.Contains(got, w) || strings.Contains(got, "next run does") {
				t.Errorf("%s: %q is missing, or it says something else:\n%s", line, w, got)
			}
		}
	}
}

// Where there is nothing to show, standard output is empty, whether or not an agent is at work.
func TestAnEmptyStatusWithoutAnAgentPrintsNothingToStandardOutput(t *testing.T) {
	silent := cmdtest.Agent()
	silent.Data["heartbeat"] = "2026-11-19T00:00:00Z"
	for words, world := range map[string][]runtime.Object{
		"the agent in namespace maint-system was last seen": objects(silent),
		"no agent runs in namespace maint-system":           nil,
	} {
		got := cmdtest.NewCluster(t, cmd.Run, append(world, cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"))...).Line("status")
		if got.Out != "" || got.Code != 0 || !strings.HasPrefix(got.Err, "No resources found in shop namespace.\n") || strings.Count(got.Err, words) != 1 {
			t.Errorf("%q: %+v", words, got)
		}
	}
}
