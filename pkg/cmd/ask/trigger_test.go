package ask_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

const twoParameters = "parameters: [{name: mode}, {name: size, default: big}]"

// requested is the run that the token on the plan asks for.
func requested(o *cmdtest.Cluster) string {
	return annotations.RunName("orders", "u-orders", run.Request{Kind: run.ByToken, Token: o.Notes("orders")[annotations.Trigger]})
}

func TestTriggerWritesAToken(t *testing.T) {
	for _, c := range []struct {
		name, line, spec string
		handled          bool
		err              string
		want             intent.TriggerOptions
	}{
		{name: "without a word", line: "trigger orders"},
		{name: "with a reason", line: "trigger orders --reason CHG-1", want: intent.TriggerOptions{Reason: "CHG-1"}},
		{name: "with parameters", spec: twoParameters, line: "trigger orders --param mode=a=b", want: intent.TriggerOptions{Parameters: map[string]string{"mode": "a=b"}}},
		{name: "outside of the window, for a reason", line: "trigger orders --outside-window --reason CHG-1", want: intent.TriggerOptions{Reason: "CHG-1", OutsideWindow: true}},
		{name: "for a run that changes nothing", line: "trigger orders --dry-run", want: intent.TriggerOptions{DryRun: true}},
		{name: "after one that the agent has handled", line: "trigger orders", handled: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := cmdtest.Plan("orders", c.spec)
			if c.handled {
				cmdtest.Noting(annotations.Trigger, "old", annotations.StatusTrigger, "old")(p)
			}
			o := cmdtest.NewCluster(t, cmd.Run, p, cmdtest.Agent())
			got := o.Maint(strings.Fields(c.line)...)
			got.Is(t, cmdtest.Printed{Out: "run/" + requested(o) + " requested\n"})
			notes := o.Notes("orders")
			var options intent.TriggerOptions
			if err := json.Unmarshal([]byte(notes[annotations.TriggerOptions]), &options); err != nil {
				t.Fatal(err)
			}
			c.want.Token = notes[annotations.Trigger]
			if diff := cmp.Diff(c.want, options); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
			if len(c.want.Token) != 36 || notes[annotations.Actor(annotations.Trigger)] != actor || notes[annotations.Reason(annotations.Trigger)] != c.want.Reason {
				t.Errorf("%v", notes)
			}
		})
	}
}

// saidInvalid is what the agent says of a plan without a specification of its own.
func saidInvalid(why string) []string {
	return []string{annotations.StatusObserved, annotations.Observed(cmdtest.Plan("orders", "")), annotations.StatusConditions, `[{"type":"Valid","status":"False","message":"` + why + `"}]`}
}

func TestTriggerRefusesWhatTheAgentWouldNotRun(t *testing.T) {
	invalid := saidInvalid("there is no step template hush")
	runRows(t, []row{
		{name: "a parameter that is missing, and one that is not there", spec: twoParameters, line: "trigger orders --param mod=a", code: 2, err: "error: --param mod: the plan has no such parameter; it has mode, size\nerror: the plan's parameter mode has no default: give --param mode=…\n"},
		{name: "a parameter of a plan that has none", line: "trigger orders --param mode=a", code: 2, err: "error: --param mode: the plan has no parameters\n"},
		{name: "a plan with a fault", spec: "startDeadline: soon", line: "trigger orders", code: 1, err: "error: plan orders is not valid, so that nothing would run:\nerror: line 1: spec.startDeadline: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\n"},
		{name: "no agent", world: objects(noAgent()), line: "trigger orders", code: 5, err: missing},
		{name: "a paused plan, for who would wait", notes: []string{annotations.Pause, "true"}, line: "trigger orders --wait", code: 3, err: "error: plan orders is paused until somebody resumes it; nothing was asked (without --wait the run begins when the pause ends)\n"},
		{name: "a plan of a namespace that is paused, for who would wait", world: objects(cmdtest.Namespace("shop", annotations.Pause, "2026-11-22T00:00:00Z", annotations.Actor(annotations.Pause), "jane", annotations.Reason(annotations.Pause), "disks")), line: "trigger orders --wait", code: 3, err: "error: namespace shop is paused until Sun 2026-11-22 01:00 CET (2026-11-22T00:00:00Z), by jane (unverified): disks; nothing was asked (without --wait the run begins when the pause ends)\n"},
		{name: "a plan that is paused for a while, in a namespace that is paused without an end, for who would wait", notes: []string{annotations.Pause, "2026-11-21T05:00:00Z"}, world: objects(cmdtest.Namespace("shop", annotations.Pause, "true")), line: "trigger orders --wait", code: 3, err: "error: plan orders is paused until Sat 2026-11-21 06:00 CET (2026-11-21T05:00:00Z); namespace shop is paused until somebody resumes it; nothing was asked (without --wait the run begins when all that has ended)\n"},
		{name: "a plan that the agent calls invalid", notes: invalid, line: "trigger orders", code: 3, err: "error: plan orders is invalid, so it starts nothing: there is no step template hush; nothing was asked: see 'kubectl maint why orders'\n"},
		{name: "no plan", line: "trigger ghost", code: 1, err: "error: there is no plan \"ghost\" in namespace shop; see 'kubectl maint list'\n"},
		{name: "who may not write, of a plan that is busy and paused", notes: []string{annotations.Pause, "true"}, world: objects(live(cmdtest.Record("call", "webhook", run.StepRunning))), before: func(o *cmdtest.Cluster) { o.Forbids("patch", "configmaps", "") }, line: "trigger orders", code: 1, err: "Error from server (Forbidden): write to shop/orders: configmaps is forbidden: not for you; the ClusterRole edit in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may\n"},
		{name: "who may not write", before: func(o *cmdtest.Cluster) { o.Forbids("patch", "configmaps", "") }, line: "trigger orders", code: 1, err: "Error from server (Forbidden): write to shop/orders: configmaps is forbidden: not for you; the ClusterRole edit in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may\n"},
		{name: "another's token, written a moment before", before: func(o *cmdtest.Cluster) {
			o.Conflicts("configmaps", func() {
				o.Stores("configmaps", cmdtest.Plan("orders", "", cmdtest.Noting(annotations.Trigger, "theirs")))
			})
		}, line: "trigger orders", code: 3, err: "error: an earlier trigger of plan orders is not handled yet; nothing was asked\n", wrote: map[string]string{annotations.Trigger: "theirs"}},
	})
}

// An agent of an earlier version has a heartbeat like any other. Of one that does not look at a plan, nothing is
// asked on it, and the exit code says why.
func TestNothingIsAskedOfAnAgentThatIsTooOld(t *testing.T) {
	const waits = "waiting for the agent: it has not looked at plan orders yet\n"
	const old = "error: the agent does not look at plan orders, and nothing was asked: it is too old, or does not watch namespace shop; 'kubectl maint doctor' shows its version, and 'kubectl maint install --apply --namespace maint-system' upgrades it\n"
	asks, failed := live(cmdtest.Asking("ask")), cmdtest.Record("call", "webhook", run.StepFailed)
	for _, c := range []struct {
		line  string
		world []runtime.Object
		err   string // before it waits
	}{
		{line: "trigger orders"},
		{line: "trigger orders --wait"},
		{line: "approve orders-a", world: objects(asks)},
		{line: "approve orders-a/ask --wait", world: objects(asks)},
		{line: "reject orders-a", world: objects(asks)},
		{line: "retry orders-a", world: objects(ended("Failed", failed))},
		{line: "retry orders-a --wait", world: objects(ended("Failed", failed))},
		{line: "rollback orders", world: history(), err: back},
		{line: "rollback orders --to maint-run-orders-a --wait", world: history()},
	} {
		t.Run(c.line, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before := cmdtest.Agent()
				before.Data["version"] = "v0.0.0-before"
				orders := cmdtest.Plan("orders", "", func(cm *corev1.ConfigMap) { delete(cm.Annotations, annotations.StatusObserved) })
				world := []runtime.Object{before, orders}
				for _, o := range c.world {
					world = append(world, o.DeepCopyObject())
				}
				o := cmdtest.NewCluster(t, cmd.Run, world...)
				o.Line(c.line).Is(t, cmdtest.Printed{Code: 5, Err: c.err + waits + old})
				if diff := cmp.Diff(orders.Annotations, o.Notes("orders")); diff != "" {
					t.Errorf("something was asked (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A token that is found when a plan is first seen is not run, and one that is
// overwritten is lost: a new one waits.
func TestTriggerWaitsUntilATokenWouldCount(t *testing.T) {
	unseen := func(cm *corev1.ConfigMap) { delete(cm.Annotations, annotations.StatusObserved) }
	pending := cmdtest.Noting(annotations.Trigger, "theirs", annotations.StatusMessage, "queued")
	for _, c := range []struct {
		name  string
		edit  func(*corev1.ConfigMap)
		becom func(o *cmdtest.Cluster) // while it waits
		flags []string
		dies  bool // the agent shows itself no more
		code  int
		err   string
		asked bool
	}{
		{name: "the agent looks at the plan", edit: unseen, becom: func(o *cmdtest.Cluster) { o.Stores("configmaps", cmdtest.Plan("orders", "")) }, err: "waiting for the agent: it has not looked at plan orders yet\n", asked: true},
		{name: "the agent never looks at the plan", edit: unseen, code: 5, err: "waiting for the agent: it has not looked at plan orders yet\nerror: the agent does not look at plan orders, and nothing was asked: it is too old, or does not watch namespace shop; 'kubectl maint doctor' shows its version, and 'kubectl maint install --apply --namespace maint-system' upgrades it\n"},
		{name: "the agent handles the other token", edit: pending, becom: func(o *cmdtest.Cluster) {
			o.Stores("configmaps", cmdtest.Plan("orders", "", cmdtest.Noting(annotations.Trigger, "theirs", annotations.StatusTrigger, "theirs")))
		}, err: "waiting for the agent: an earlier trigger of plan orders is not handled yet: queued\n", asked: true},
		{name: "the other token stays", edit: pending, code: 3, err: "waiting for the agent: an earlier trigger of plan orders is not handled yet: queued\nerror: an earlier trigger of plan orders is not handled yet: queued; nothing was asked\n"},
		{name: "the time is over first", edit: pending, flags: []string{"--wait", "--timeout", "5s"}, code: 124, err: "waiting for the agent: an earlier trigger of plan orders is not handled yet: queued\nerror: --timeout passed: nothing was asked: an earlier trigger of plan orders is not handled yet: queued\n"},
		{name: "the agent was killed a moment ago, and never handles the other token", edit: pending, dies: true, code: 5, err: "waiting for the agent: an earlier trigger of plan orders is not handled yet: queued\nerror: the agent in namespace maint-system was last seen 31s ago (Sat 2026-11-21 01:00 CET): see 'kubectl -n maint-system get pods'; nothing was asked: an earlier trigger of plan orders is not handled yet: queued\n"},
		{name: "the agent was killed a moment ago, and never looks at the plan", edit: unseen, dies: true, code: 5, err: "waiting for the agent: it has not looked at plan orders yet\nerror: the agent in namespace maint-system was last seen 31s ago (Sat 2026-11-21 01:00 CET): see 'kubectl -n maint-system get pods'; nothing was asked: it has not looked at plan orders yet\n"},
		{name: "the plan is deleted", edit: unseen, becom: func(o *cmdtest.Cluster) { o.Deletes("configmaps", "orders") }, code: 1, err: "waiting for the agent: it has not looked at plan orders yet\nerror: plan orders was deleted meanwhile\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Plan("orders", "", c.edit), cmdtest.Agent())
				o.Moves = c.dies
				if c.becom != nil {
					o.Told(map[string]func(){"waiting for the agent": cmdtest.Later(func() { c.becom(o) })})
				}
				want := cmdtest.Printed{Code: c.code, Err: c.err}
				got := o.Maint(append([]string{"trigger", "orders"}, c.flags...)...)
				if c.asked {
					want.Out = "run/" + requested(o) + " requested\n"
				}
				got.Is(t, want)
			})
		})
	}
}

// What it lacked may just have been created.
func TestTriggerGivesAnInvalidPlanAMomentToBecomeValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Plan("orders", "", cmdtest.Noting(saidInvalid("there is no step template hush")...)), cmdtest.Agent())
		time.AfterFunc(time.Second, func() { o.Stores("configmaps", cmdtest.Plan("orders", "")) })
		got := o.Maint("trigger", "orders", "--reason", "CHG-1")
		got.Is(t, cmdtest.Printed{Out: "run/" + requested(o) + " requested\n"})
	})
}

func TestTriggerSaysThatAPausedPlanRunsLater(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Plan("orders", "", cmdtest.Noting(annotations.Pause, "2026-11-22T00:00:00Z")), cmdtest.Agent())
	got := o.Maint("trigger", "orders")
	got.Is(t, cmdtest.Printed{Out: "run/" + requested(o) + " requested\n", Err: "plan orders is paused until Sun 2026-11-22 01:00 CET (2026-11-22T00:00:00Z); the run begins when the pause ends\n"})
}

func TestTriggerNamesTheRunThatHasToEndFirst(t *testing.T) {
	atWork := cmdtest.RunOf(cmdtest.Record("call", "webhook", run.StepRunning))
	atWork.Run.Request.At = *cmdtest.Before(time.Hour)
	live := cmdtest.RunObject(atWork, "maint-run-orders-a")
	const waits = "the trigger waits for run maint-run-orders-a; 'kubectl maint describe maint-run-orders-a' shows how far it is, 'kubectl maint why orders' what waits\n"
	for name, c := range map[string]struct{ spec, err string }{
		"one after another":          {"", waits},
		"runs that may be at once":   {"concurrencyPolicy: Allow", ""},
		"a new one replaces the old": {"concurrencyPolicy: Replace", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Plan("orders", c.spec), cmdtest.Ledger(ledger.Ledger{}), live.DeepCopy(), cmdtest.Agent())
			got := o.Maint("trigger", "orders")
			got.Is(t, cmdtest.Printed{Out: "run/" + requested(o) + " requested\n", Err: c.err})
		})
	}
}

// A dry run that is in the way is said to be one, with the command that ends it.
func TestTriggerNamesTheDryRunThatHasToEndFirst(t *testing.T) {
	atWork := cmdtest.RunOf(cmdtest.Record("roll", "for-each-node", run.StepRunning))
	atWork.Run.Request.At, atWork.Run.Request.DryRun = *cmdtest.Before(time.Hour), true
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Plan("orders", ""), cmdtest.Ledger(ledger.Ledger{}), cmdtest.RunObject(atWork, "maint-run-orders-a"), cmdtest.Agent())
	got := o.Maint("trigger", "orders")
	got.Is(t, cmdtest.Printed{
		Out: "run/" + requested(o) + " requested\n",
		Err: "the trigger waits for dry run maint-run-orders-a; 'kubectl maint describe maint-run-orders-a' shows how far it is, 'kubectl maint why orders' what waits; 'kubectl maint abort maint-run-orders-a' ends the dry run, which changes nothing\n",
	})
}

// A slot that is due waits for what the plan lacks, and not for the run that is being asked for.
func TestTriggerNamesNoRunThatNeverWas(t *testing.T) {
	due := ledger.Ledger{Watermark: *cmdtest.Before(20 * time.Minute)}
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Plan("orders", "concurrencyPolicy: Queue, triggers: {schedules: [{cron: '50 * * * *'}]}, policies: [{name: ghost}]"), cmdtest.Ledger(due), cmdtest.RunObject(cmdtest.PendingRun(func(r *view.Run) {
		r.Run.Spec.RequiresApproval, r.Run.Request.DryRun, r.Journal.Waiting, r.Journal.Message = false, true, run.WaitWindow, "waits for its window"
	}), "maint-run-orders-a"), cmdtest.Agent())
	got := o.Line("trigger orders --outside-window --reason x2")
	got.Is(t, cmdtest.Printed{Out: "run/" + requested(o) + " requested\n"})
}

func TestTriggerSaysForWhatItsRunWaits(t *testing.T) {
	signed := func(until string) []string {
		return []string{
			annotations.ChangeStrategy, "RestrictiveUntil", annotations.RestrictiveUntil, until,
			annotations.Actor(annotations.ChangeStrategy), "jane", annotations.Reason(annotations.ChangeStrategy), "launch week",
		}
	}
	const ghost = "policies: [{name: ghost}]"
	lacks := func(spec, what string) []string {
		return []string{annotations.StatusObserved, annotations.Observed(cmdtest.Plan("orders", spec)), annotations.StatusConditions, `[{"type":"Ready","status":"False","message":"` + what + `"}]`}
	}
	for _, c := range []struct {
		name, line, spec string
		world            []runtime.Object
		notes            []string
		err              string
	}{
		{name: "a freeze of the plan", line: "trigger orders", notes: signed("2026-11-22T00:00:00Z"), err: "the run waits for its window, which opens Sun 2026-11-22 01:00 CET (2026-11-22T00:00:00Z) (RestrictiveUntil Sun 2026-11-22 01:00 CET by jane (unverified): launch week); 'kubectl maint trigger orders --outside-window --reason …' asks for one that does not\n"},
		{name: "who asks for a dry run with a reason", line: "trigger orders --dry-run --reason CHG-1", notes: signed("2026-11-22T00:00:00Z"), err: "the run waits for its window, which opens Sun 2026-11-22 01:00 CET (2026-11-22T00:00:00Z) (RestrictiveUntil Sun 2026-11-22 01:00 CET by jane (unverified): launch week); 'kubectl maint trigger orders --dry-run --outside-window --reason CHG-1' asks for one that does not\n"},
		{name: "a freeze of its namespace", line: "trigger orders", world: objects(cmdtest.Namespace("shop", signed("2026-11-22T00:00:00Z")...)), err: "the run waits for its window, which opens Sun 2026-11-22 01:00 CET (2026-11-22T00:00:00Z) (namespace: RestrictiveUntil Sun 2026-11-22 01:00 CET by jane (unverified): launch week); the annotation maint.dev/bypass on the plan lets one run start all the same\n"},
		{name: "a freeze of its namespace, which binds a run outside of its window, too", line: "trigger orders --outside-window --reason CHG-1", world: objects(cmdtest.Namespace("shop", signed("2026-11-22T00:00:00Z")...)), err: "the run waits for its window all the same, which opens Sun 2026-11-22 01:00 CET (2026-11-22T00:00:00Z) (namespace: RestrictiveUntil Sun 2026-11-22 01:00 CET by jane (unverified): launch week); the annotation maint.dev/bypass on the plan lets one run start all the same\n"},
		{name: "a freeze of its namespace, which binds a run outside of its window, too, whatever its policies say", line: "trigger orders --outside-window --reason CHG-1", spec: "policies: [{name: night}]", world: objects(cmdtest.Policy("night", "{strategy: MaintenanceSchedule, maintenanceSchedule: {timezone: UTC, windows: [{start: '22:00', end: '23:00'}]}}"), cmdtest.Namespace("shop", signed("2026-11-22T00:00:00Z")...)), err: "the run waits for its window all the same, which opens Sun 2026-11-22 01:00 CET (2026-11-22T00:00:00Z) (namespace: RestrictiveUntil Sun 2026-11-22 01:00 CET by jane (unverified): launch week); the annotation maint.dev/bypass on the plan lets one run start all the same\n"},
		{name: "who does not wait", line: "trigger orders --outside-window --reason CHG-1", notes: signed("2026-11-22T00:00:00Z")},
		{name: "what its plan lacks", line: "trigger orders", notes: lacks("", "Deployment/web does not exist"), err: "plan orders is not ready, and the run waits until it is: Deployment/web does not exist; 'kubectl maint why orders' says what is in the way, 'kubectl maint doctor orders' checks all that it needs\n"},
		{name: "an account and a policy that are not there: no window helps", line: "trigger orders", spec: ghost, notes: lacks(ghost, "ServiceAccount runner does not exist"), err: "plan orders is not ready, and the run waits until it is: ServiceAccount runner does not exist; 'kubectl maint why orders' says what is in the way, 'kubectl maint doctor orders' checks all that it needs\n"},
		{name: "an account that is not there, for who does not wait for the window", line: "trigger orders --outside-window --reason CHG-1", notes: lacks("", "ServiceAccount runner does not exist"), err: "plan orders is not ready, and the run waits until it is: ServiceAccount runner does not exist; 'kubectl maint why orders' says what is in the way, 'kubectl maint doctor orders' checks all that it needs\n"},
		{name: "a policy that is not there, for who does not wait for it", line: "trigger orders --outside-window --reason CHG-1", spec: ghost, notes: lacks(ghost, "policy ghost: not ready: there is no such policy in namespace shop")},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, append(objects(cmdtest.Plan("orders", c.spec, cmdtest.Noting(c.notes...)), cmdtest.Agent()), c.world...)...)
			got := o.Line(c.line)
			got.Is(t, cmdtest.Printed{Out: "run/" + requested(o) + " requested\n", Err: c.err})
		})
	}
}

// The exit code of --wait is the run's.
func TestTriggerWaitsForTheEndOfItsRun(t *testing.T) {
	const at, stepped, ended = "2026-11-21T00:00:00Z ", "2026-11-20T23:59:05Z ", "2026-11-20T23:55:00Z "
	step := func(phase run.StepPhase, text string) run.Record {
		return cmdtest.Record("call", "webhook", phase, cmdtest.Message(text))
	}
	for _, c := range []struct {
		name  string
		agent func(o *cmdtest.Cluster, name string) // what it does when it sees the token
		code  int
		out   string // RUN is its name
		err   string
	}{
		{
			name: "it succeeds", agent: func(o *cmdtest.Cluster, name string) { o.Creates(endedAs(name, "Succeeded", step("Succeeded", ""))) },
			out: at + "waiting for run RUN\n" + stepped + "step call: Succeeded\n" + ended + "run RUN: Succeeded\n", err: "run/RUN requested\n",
		},
		{
			name: "it fails", agent: func(o *cmdtest.Cluster, name string) { o.Creates(endedAs(name, "Failed", step("Failed", "503"))) }, code: 4,
			out: at + "waiting for run RUN\n" + stepped + "step call: Failed: 503\n" + ended + "run RUN: Failed\n", err: "run/RUN requested\nerror: run RUN ended Failed\n",
		},
		{name: "it ends before it began", agent: func(o *cmdtest.Cluster, name string) {
			r := cmdtest.RunOf()
			r.Journal.Phase, r.Journal.StartedAt, r.Journal.Message = run.Aborted, nil, "rejected by joe"
			o.Creates(cmdtest.RunObject(r, name))
		}, code: 3, out: at + "waiting for run RUN\n" + "2026-11-21T00:00:01Z run RUN: Aborted: rejected by joe\n", err: "run/RUN requested\nerror: run RUN did not start: rejected by joe\n"},
		{name: "it was never made, and the ledger says why", agent: func(o *cmdtest.Cluster, name string) {
			o.Creates(cmdtest.Ledger(ledger.Ledger{Recent: []ledger.Entry{{Run: name, Result: run.Skipped, Reason: "busy"}}}))
		}, code: 3, out: at + "waiting for run RUN\n", err: "run/RUN requested\nerror: run RUN did not start: Skipped (busy)\n"},
		{name: "it succeeded, and only the ledger knows of it", agent: func(o *cmdtest.Cluster, name string) {
			o.Creates(cmdtest.Ledger(ledger.Ledger{Recent: []ledger.Entry{{Run: name, Result: run.Ran, Outcome: &ledger.Outcome{Phase: run.Succeeded}}}}))
		}, out: at + "waiting for run RUN\nrun RUN: Succeeded\n", err: "run/RUN requested\n"},
		{name: "it failed, and only the ledger knows of it", agent: func(o *cmdtest.Cluster, name string) {
			o.Creates(cmdtest.Ledger(ledger.Ledger{Recent: []ledger.Entry{{Run: name, Result: run.Ran, Outcome: &ledger.Outcome{Phase: run.Failed, Step: "dump", Message: "exit code 3"}}}}))
		}, code: 4, out: at + "waiting for run RUN\n", err: "run/RUN requested\nerror: run RUN ended Failed in step dump: exit code 3\n"},
		{
			name: "it says what it would have changed", agent: func(o *cmdtest.Cluster, name string) {
				rec := step("Succeeded", "")
				rec.Outputs = map[string]any{"difference": "-replicas: 3\n+replicas: 0\n"}
				o.Creates(endedAs(name, "Succeeded", rec))
			},
			out: at + "waiting for run RUN\n" + stepped + "step call: Succeeded\n" + ended + "run RUN: Succeeded\n\nWould change:\n  step call:\n    -replicas: 3\n    +replicas: 0\n", err: "run/RUN requested\n",
		},
		{name: "it ended, and is gone already", agent: func(o *cmdtest.Cluster, name string) {
			o.Creates(cmdtest.Ledger(ledger.Ledger{Recent: []ledger.Entry{{Run: name, Result: run.Ran}}}))
		}, code: 1, out: at + "waiting for run RUN\n", err: "run/RUN requested\nerror: run RUN has ended and is no longer kept: see 'kubectl maint history orders'\n"},
		{
			name: "the plan is deleted", agent: func(o *cmdtest.Cluster, _ string) { o.Deletes("configmaps", "orders") }, code: 3,
			out: at + "waiting for run RUN\n", err: "run/RUN requested\nerror: plan orders was deleted before run RUN began\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Plan("orders", ""), cmdtest.Agent())
				o.Moves = true
				name := ""
				o.Told(map[string]func(){"waiting for run": cmdtest.Later(func() {
					name = requested(o)
					c.agent(o, name)
				})})
				got := o.Maint("trigger", "orders", "--wait")
				named := strings.NewReplacer("RUN", name)
				got.Is(t, cmdtest.Printed{Code: c.code, Out: named.Replace(c.out), Err: named.Replace(c.err)})
			})
		})
	}
}

// What the agent says of the plan meanwhile has times as people read them.
func TestWhoWaitsForARunReadsTimesAsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Plan("orders", "", cmdtest.Noting(annotations.StatusMessage, "next run 2040-01-01T02:00:00+01:00 Europe/Berlin")), cmdtest.Agent())
		o.Moves = true
		o.Told(map[string]func(){"waiting for run": cmdtest.Later(func() { o.Deletes("configmaps", "orders") })})
		got := o.Maint("trigger", "orders", "--wait")
		if want := "2026-11-21T00:00:00Z waiting for run " + requestedIn(got.Out) + ": next run Sun 2040-01-01 02:00 CET\n"; got.Out != want {
			t.Errorf("%q, want %q", got.Out, want)
		}
	})
}

// requestedIn is the name of the run that somebody was told to wait for.
func requestedIn(out string) string {
	_, rest, _ := strings.Cut(out, "waiting for run ")
	name, _, _ := strings.Cut(rest, ":")
	return name
}

// Who may not see what is at work is told so, and not left to think that nothing is.
func TestTriggerSaysThatItCannotSeeWhatIsAtWork(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Plan("orders", ""), cmdtest.Agent())
	o.Forbids("list", "configmaps", "")
	got := o.Maint("trigger", "orders")
	if got.Code != 0 || !strings.HasPrefix(got.Err, "cannot see whether another run has to end first: list runs: configmaps is forbidden: ") {
		t.Errorf("%+v", got)
	}
}
