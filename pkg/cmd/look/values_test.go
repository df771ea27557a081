package look_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// scripted is a plan that is paused, with a run that waits for an answer, and a node that
// somebody has.
func scripted(t *testing.T, more ...runtime.Object) *cmdtest.Cluster {
	return cmdtest.NewCluster(t, cmd.Run, append([]runtime.Object{
		cmdtest.Agent(), cmdtest.Plan("orders", "triggers: {schedules: [{cron: '0 2 * * *'}]}", young, cmdtest.Noting(annotations.Pause, "true")),
		cmdtest.Plan("weekly", "triggers: {schedules: [{cron: '0 2 * * 6', timezone: America/New_York}]}", young),
		cmdtest.RunObject(cmdtest.AskingOf(cmdtest.Asking("ask")), "maint-run-orders-a"), cmdtest.Sleeper("nights", "schedule: {offHours: [{start: '20:00', end: '06:00'}]}"),
		cmdtest.Node("quiet"), cmdtest.Node("busy", cmdtest.Asked(cmdtest.Jane, "{}")),
	}, more...)...)
}

// young is a plan of an hour ago: one without a time of birth owes the slots of ages.
func young(cm *corev1.ConfigMap) { cm.CreationTimestamp = metav1.NewTime(*cmdtest.Before(time.Hour)) }

func TestStatusForScripts(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"all, by name":           {"status -o name", "plan/orders\nplan/weekly\nhibernate-plan/nights\nnode/busy\n"},
		"a run by name":          {"status orders-a -o name", "run/maint-run-orders-a\n"},
		"the list has its kind":  {"status -o jsonpath={.apiVersion}/{.kind}", "maint.dev/v1alpha1/StatusList"},
		"the kinds of its items": {"status -o jsonpath={.items[*].kind}", "PlanStatus PlanStatus HibernatePlanStatus NodeStatus"},
		"one name is no list":    {"status orders -o jsonpath={.kind}/{.metadata.namespace}/{.metadata.name}", "PlanStatus/shop/orders"},
		"two names are one":      {"status orders node/busy -o jsonpath={.kind}:{.items[*].metadata.name}", "StatusList:orders busy"},
		"what needs somebody":    {"status orders -o jsonpath={.needs[0].remedy}", "'kubectl maint approve maint-run-orders-a/ask' or 'kubectl maint reject maint-run-orders-a/ask'"},
		"a switch is no text":    {"status orders -o jsonpath={.paused.on}", "true"},
		"what waits for approve": {"status orders -o jsonpath={.active[0].questions[0]}", "maint-run-orders-a/ask"},
		"an instant, in UTC":     {"status weekly -o jsonpath={.next}", "2026-11-21T07:00:00Z"},
		"who has a node":         {"status node/busy -o jsonpath={.claims[0].for}/{.permission.permitted}", cmdtest.Jane + "/true"},
		"columns":                {"status -o custom-columns=NAME:.metadata.name,KIND:.kind", "NAME     KIND\norders   PlanStatus\nweekly   PlanStatus\nnights   HibernatePlanStatus\nbusy     NodeStatus\n"},
	} {
		t.Run(name, func(t *testing.T) {
			scripted(t).Line(c.line).Is(t, cmdtest.Printed{Out: c.want})
		})
	}
}

func TestARunForScripts(t *testing.T) {
	scripted(t).Line("status orders-a -o yaml").Is(t, cmdtest.Printed{Out: `apiVersion: maint.dev/v1alpha1
kind: RunStatus
message: ""
metadata:
  name: maint-run-orders-a
  namespace: shop
needs:
- remedy: '''kubectl maint approve maint-run-orders-a/ask'' or ''kubectl maint reject
    maint-run-orders-a/ask'''
  what: 'run maint-run-orders-a asks in step ask: waits for approval'
phase: Running
plan: orders
questions:
- maint-run-orders-a/ask
reason: ""
requestedAt: "0001-01-01T00:00:00Z"
startedAt: "2026-11-20T23:00:00Z"
steps:
- attempt: 1
  path: ask
  phase: Running
  startedAt: "2026-11-20T23:59:00Z"
  type: approval
`})
}

// A stream has a line for each change, and none for what stays as it is.
func TestStatusStreamsLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		o := scripted(t)
		o.Ctx = ctx
		o.Told(map[string]func(){
			`"name":"orders"`: cmdtest.Later(func() {
				o.Stores("configmaps", cmdtest.Plan("orders", "triggers: {schedules: [{cron: '0 2 * * *'}]}", young))
				time.Sleep(5 * time.Second)
				cancel()
			}),
		})
		got := o.Maint("status", "orders", "-w", "-o", "json")
		lines := strings.Split(strings.TrimSuffix(got.Out, "\n"), "\n")
		if got.Code != 130 || got.Err != "" || len(lines) != 2 || !strings.Contains(lines[0], `"paused":{"on":true}`) || strings.Contains(lines[1], `"paused"`) {
			t.Errorf("exit code %d, standard error %q, %d lines:\n%s", got.Code, got.Err, len(lines), got.Out)
		}
	})
}

// What counts down or grows old is no change, whatever else changes.
func TestAStreamHasNoLineForWhatOnlyTheClockChanged(t *testing.T) {
	failed := cmdtest.Ledger(ledger.Ledger{Last: &ledger.LastRun{Name: "maint-run-orders-0", Phase: run.Failed, EndedAt: *cmdtest.Before(time.Hour)}})
	closed := policyWith("shop", "night", frozen(later, "jane", "go-live")...)
	for line, lines := range map[string]int{"status -w -o json": 8, "status orders -w -o json": 1, "status policy/night -w -o json": 1, "status node/busy -w -o json": 2, "status nights -w -o json": 1} {
		t.Run(line, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				o := scripted(t, failed, closed, seen("mail", "policies: [{name: night}]"))
				o.Ctx, o.Moves = ctx, true
				go func() {
					time.Sleep(10 * time.Minute)
					o.Become("busy", cmdtest.Stood(cmdtest.Jane, nodes.Pending, "waits its turn"))
					time.Sleep(10 * time.Second)
					cancel()
				}()
				got := o.Line(line)
				if n := strings.Count(got.Out, "\n"); got.Code != 130 || n != lines {
					t.Errorf("exit code %d, %d lines, want %d:\n%s", got.Code, n, lines, got.Out)
				}
				if strings.Contains(got.Out, " ago") || strings.Contains(got.Out, ", in ") {
					t.Errorf("a distance from now:\n%s", got.Out)
				}
			})
		})
	}
}

// What follows a stream is told what is gone, be it deleted, without the label that made it one of
// ours, or given back. What could not be read is not gone.
func TestAStreamSaysWhatIsGone(t *testing.T) {
	unlabelled := func(o *cmdtest.Cluster) {
		o.Stores("configmaps", cmdtest.Plan("weekly", "", young, func(cm *corev1.ConfigMap) { delete(cm.Labels, annotations.LabelKind) }))
	}
	unclaimed := func(o *cmdtest.Cluster) { o.Become("busy", func(n *corev1.Node) { n.Annotations = nil }) }
	gone := func(kind, metadata string) string {
		return `{"apiVersion":"maint.dev/v1alpha1","gone":true,"kind":"` + kind + `","metadata":{` + metadata + "}}\n"
	}
	weekly, nights := `"creationTimestamp":"2026-11-20T23:00:00Z","name":"weekly","namespace":"shop","uid":"u-weekly"`, `"name":"nights","namespace":"shop","uid":"u-nights"`
	for name, c := range map[string]struct {
		line string
		then func(*cmdtest.Cluster)
		want string
	}{
		"a plan that was deleted":     {"status -w -o json", func(o *cmdtest.Cluster) { o.Deletes("configmaps", "weekly") }, gone("PlanStatus", weekly)},
		"one that has lost the label": {"status -w -o json", unlabelled, gone("PlanStatus", weekly)},
		"a HibernatePlan":             {"status -w -o json", func(o *cmdtest.Cluster) { o.Deletes("configmaps", "nights") }, gone("HibernatePlanStatus", nights)},
		"a node that was given back":  {"status -w -o json", unclaimed, gone("NodeStatus", `"name":"busy","uid":"uid-busy"`)},
		"a plan by its name":          {"status weekly -w -o json", func(o *cmdtest.Cluster) { o.Deletes("configmaps", "weekly") }, gone("PlanStatus", weekly)},
		"one of several":              {"status weekly nights -w -o json", func(o *cmdtest.Cluster) { o.Deletes("configmaps", "weekly") }, gone("PlanStatus", weekly)},
		"a name without its label":    {"status weekly -w -o json", unlabelled, gone("PlanStatus", weekly)},
		"a run by its name":           {"status orders-a -w -o json", func(o *cmdtest.Cluster) { o.Deletes("configmaps", "maint-run-orders-a") }, gone("RunStatus", `"name":"maint-run-orders-a","namespace":"shop"`)},
		"a policy by its name":        {"status policy/night -w -o json", func(o *cmdtest.Cluster) { o.Deletes("configmaps", "night") }, gone("PolicyStatus", `"name":"night","namespace":"shop"`)},
		"a policy that is let go, for whoever may not list nodes": {"status -w -o json", func(o *cmdtest.Cluster) {
			o.Forbids("list", "nodes", "")
			o.Stores("configmaps", policyWith("shop", "shut"))
		}, gone("PolicyStatus", `"name":"shut","namespace":"shop"`)},
		"as YAML":                              {"status weekly -w -o yaml", func(o *cmdtest.Cluster) { o.Deletes("configmaps", "weekly") }, "gone: true\nkind: PlanStatus\n"},
		"as a name, which is to be read again": {"status weekly -w -o name", func(o *cmdtest.Cluster) { o.Deletes("configmaps", "weekly") }, "plan/weekly\nplan/weekly\n"},
		"what may not be read is not gone": {"status -w -o json", func(o *cmdtest.Cluster) {
			o.Forbids("list", "configmaps", "")
			o.Become("quiet", cmdtest.Asked(cmdtest.Jane, "{}"))
		}, ""},
		"by its name": {"status weekly -w -o json", func(o *cmdtest.Cluster) {
			o.Forbids("get", "configmaps", "")
			o.Deletes("configmaps", "weekly")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				o := scripted(t, policyWith("shop", "night"), policyWith("shop", "shut", annotations.Pause, "true"))
				o.Ctx = ctx
				go func() {
					time.Sleep(2 * time.Second)
					c.then(o)
					time.Sleep(10 * time.Second)
					cancel()
				}()
				got := o.Line(c.line)
				if got.Code != 130 || !strings.Contains(got.Out, c.want) || strings.Contains(got.Out, "gone") != strings.Contains(c.want, "gone") {
					t.Errorf("%+v, want %s", got, c.want)
				}
			})
		})
	}
}

// Whoever reads lines is told that the agent fell silent, and that it is back, each once.
func TestAStatusThatIsFollowedTellsOfASilentAgent(t *testing.T) {
	for line, of := range map[string]func(cmdtest.Printed) string{
		"status -w":         func(p cmdtest.Printed) string { return p.Out },
		"status orders -w":  func(p cmdtest.Printed) string { return p.Out },
		"status -w -o json": func(p cmdtest.Printed) string { return p.Err + " is back" }, // standard output has documents alone
	} {
		t.Run(line, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				o := scripted(t)
				o.Ctx, o.Moves = ctx, true
				go func() {
					time.Sleep(2 * time.Minute)
					back := cmdtest.Agent()
					back.Data["heartbeat"] = cmdtest.Now().Add(2 * time.Minute).Format(time.RFC3339)
					o.Stores("configmaps", back)
					time.Sleep(10 * time.Second)
					cancel()
				}()
				got := of(o.Line(line))
				for _, words := range []string{"the agent in namespace maint-system was last seen 3", " is back"} { // 30 and some seconds
					if strings.Count(got, words) != 1 {
						t.Errorf("%d times %q:\n%s", strings.Count(got, words), words, got)
					}
				}
			})
		})
	}
}

// An agent that watches another namespace is at work: its heartbeats are no news, and what is said of it is that.
func TestAStreamSaysOfAnAgentThatWatchesElsewhereThatAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		agent := func(after time.Duration) *corev1.ConfigMap {
			cm := cmdtest.Agent()
			cm.Data[annotations.HeartbeatWatches], cm.Data["heartbeat"] = "team", cmdtest.Now().Add(after).Format(time.RFC3339)
			return cm
		}
		o := cmdtest.NewCluster(t, cmd.Run, agent(0), cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"), cmdtest.Plan("orders", "", young))
		o.Ctx, o.Moves = ctx, true
		go func() {
			for beat := range 12 {
				time.Sleep(5 * time.Second)
				o.Stores("configmaps", agent(time.Duration(beat+1)*5*time.Second))
			}
			o.Stores("configmaps", cmdtest.Plan("orders", "triggers: {schedules: [{cron: '0 2 * * *'}]}", young))
			time.Sleep(10 * time.Second)
			cancel()
		}()
		got := o.Line("status -w -o json").Out
		if strings.Count(got, "AgentStatus") != 1 || !strings.Contains(got, "watches only namespace team") || strings.Count(got, "PlanStatus") != 2 {
			t.Errorf("not once, or for another reason:\n%s", got)
		}
	})
}

// An outage ends no status that is followed, in whatever form; it is told once, and what changed meanwhile is
// shown when the API server is back.
func TestAnOutageEndsNoStatusThatIsFollowed(t *testing.T) {
	for _, line := range []string{"status -w", "status orders -w", "status -w -o json", "status orders -w -o json"} {
		t.Run(line, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				o := scripted(t)
				o.Ctx = ctx
				var down atomic.Bool
				o.Kube.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
					return down.Load(), nil, &url.Error{Op: "Get", URL: "https://cluster", Err: errors.New("connection refused")}
				})
				go func() {
					time.Sleep(5 * time.Second)
					down.Store(true)
					o.Stores("configmaps", cmdtest.Plan("orders", "triggers: {schedules: [{cron: '0 2 * * *'}]}", young, cmdtest.Noting(annotations.StatusMessage, "meanwhile", annotations.StatusPhase, "Idle"), func(cm *corev1.ConfigMap) {
						cm.Annotations[annotations.StatusObserved] = annotations.Observed(cm)
					}))
					time.Sleep(5 * time.Second)
					down.Store(false)
					time.Sleep(10 * time.Second)
					cancel()
				}()
				got := o.Line(line)
				const old, current = "; what is shown may be old\n", "warning: what is shown is current again\n"
				if got.Code != 130 || strings.Count(got.Err, old) != 1 || strings.Count(got.Err, current) != 1 {
					t.Errorf("exit code %d, standard error:\n%s", got.Code, got.Err)
				}
				if !strings.Contains(got.Out, "meanwhile") {
					t.Errorf("standard output:\n%s", got.Out)
				}
			})
		})
	}
}

func TestDescribeForScripts(t *testing.T) {
	kept := cmdtest.Ledger(ledger.Ledger{Totals: map[run.Result]int64{run.Ran: 3}, Outcomes: map[run.Phase]int64{run.Succeeded: 2, run.Failed: 1}, Recent: []ledger.Entry{{Kind: run.ByToken, Result: run.Ran, Run: "maint-run-orders-0", At: cmdtest.Now()}}})
	for name, c := range map[string]struct{ line, want string }{
		"a plan with its document": {"describe orders -o jsonpath={.spec.steps[0].type}", "suspend"},
		"and how it ended before":  {"describe orders -o jsonpath={.history[0].run}/{.totals.Ran}/{.outcomes.Failed}", "maint-run-orders-0/3/1"},
		"with its newest run":      {"describe orders -o jsonpath={.newestRun.metadata.name}:{.newestRun.steps[0].path}", "maint-run-orders-a:ask"},
		"a run":                    {"describe orders-a -o name", "run/maint-run-orders-a\n"},
		"a HibernatePlan":          {"describe nights -o jsonpath={.kind}/{.spec.targets[0].type}", "HibernatePlanStatus/noop"},
		"several":                  {"describe orders orders-a -o jsonpath={.items[*].kind}", "PlanStatus RunStatus"},
	} {
		t.Run(name, func(t *testing.T) { scripted(t, kept).Line(c.line).Is(t, cmdtest.Printed{Out: c.want}) })
	}
}

func TestWhyForScripts(t *testing.T) {
	for name, c := range map[string]struct {
		line, want string
		code       int
	}{
		"a plan":                            {"why orders -o jsonpath={.kind}:{.subject}:{.inTheWay[0].what}:{.inTheWay[0].remedy}", "Explanation:plan:the plan is paused until resumed:'kubectl maint resume orders'", 3},
		"what would make it happen":         {"why orders -o jsonpath={.next[0]}", "next slot: none, since all slots are paused or skipped", 3},
		"a node in nobody's way":            {"why node/quiet -o jsonpath={.subject}:{.inTheWay}", "node:[]", 0},
		"a HibernatePlan as its name alone": {"why nights -o name", "hibernate-plan/nights\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			scripted(t).Line(c.line).Is(t, cmdtest.Printed{Code: c.code, Out: c.want})
		})
	}
}

func TestWhySaysWhyARollbackWasRefused(t *testing.T) {
	token := "t"
	name := annotations.RunName("orders", "u-orders", run.Request{Kind: run.ByToken, Token: token})
	refused := cmdtest.Ledger(ledger.Ledger{Tokens: []string{token}, Recent: []ledger.Entry{{
		Kind: run.ByToken, Result: run.Skipped, Reason: run.ReasonRefused, Run: name, At: cmdtest.Now(), AsOf: "maint-run-orders-0",
		Outcome: &ledger.Outcome{Phase: run.Aborted, Message: "there is no run maint-run-orders-0 any more"},
	}}})
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), refused, cmdtest.Plan("orders", "", cmdtest.Noting(annotations.Trigger, token, annotations.StatusTrigger, token)))
	o.Maint("why", "orders").Is(t, cmdtest.Printed{Out: `the rollback to run maint-run-orders-0 was refused: there is no run maint-run-orders-0 any more
   ask for another run with 'kubectl maint rollback orders --to RUN'
nothing is in the way
by hand: 'kubectl maint trigger orders'
`})
}

func TestCheckAndNextForScripts(t *testing.T) {
	for name, c := range map[string]struct {
		line, want string
		code       int
	}{
		"a verdict as YAML":       {"check orders -o jsonpath={.kind}/{.permitted}", "Verdict/false", 3},
		"what was checked":        {"check orders -o name", "plan/orders\n", 3},
		"slots, each by its time": {"next orders --count 2 -o name", "2026-11-21T02:00:00Z\n2026-11-22T02:00:00Z\n", 0},
		"slots as columns":        {"next orders --count 1 -o custom-columns=AT:.utc,NOTE:.note", "AT                     NOTE\n2026-11-21T02:00:00Z   paused\n", 0},
		"sleep":                   {"next nights --count 1 -o jsonpath={.kind}/{.items[0].start}", "WindowList/2026-11-20T20:00:00Z", 0},
		"a format that is none":   {"next orders -o wide", "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			want := cmdtest.Printed{Code: c.code, Out: c.want}
			if c.code == 2 {
				want.Err = "error: -o must be json, yaml, name, jsonpath=…, custom-columns=… or go-template=…, is \"wide\"\n"
			}
			scripted(t).Line(c.line).Is(t, want)
		})
	}
}
