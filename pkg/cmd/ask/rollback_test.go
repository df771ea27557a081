package ask_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// wentBefore is a run of plan orders, asked for so long ago, which slept for a minute
// where the plan now waits for somebody.
func wentBefore(name string, ago time.Duration, phase run.Phase, edits ...func(*view.Run)) *corev1.ConfigMap {
	r := cmdtest.RunOf(cmdtest.Record("hold", "suspend", run.StepSucceeded))
	r.Run.Request = run.Request{Kind: run.ByToken, Token: name, At: *cmdtest.Before(ago), Parameters: map[string]string{"mode": "slow"}}
	r.Run.Spec = plan.Spec{Parameters: []plan.Parameter{{Name: "mode"}}, Steps: []plan.Step{{Name: "hold", Type: "suspend", Properties: map[string]any{"duration": "1m"}}}}.Defaulted()
	r.Journal.Phase, r.Journal.FinishedAt = phase, cmdtest.Before(ago-time.Minute)
	for _, edit := range edits {
		edit(&r)
	}
	return cmdtest.RunObject(r, name)
}

func history(edits ...func(*view.Run)) []runtime.Object {
	return objects(
		wentBefore("maint-run-orders-a", 4*time.Hour, run.Succeeded), wentBefore("maint-run-orders-b", 3*time.Hour, run.Succeeded, edits...),
		wentBefore("maint-run-orders-c", 2*time.Hour, run.Failed), wentBefore("maint-run-orders-d", time.Hour, run.Failed),
		wentBefore("maint-run-orders-e", time.Minute, run.Succeeded, func(r *view.Run) { r.Run.Request.DryRun = true }),
	)
}

const back = "back to run maint-run-orders-b of Fri 2026-11-20 22:00 CET (2026-11-20T21:00:00Z), the newest that succeeded before maint-run-orders-d (Failed)\n"

// difference is between the plan and any of the runs before.
const difference = `--- plan/orders
+++ run/maint-run-orders-b
@@ -1,3 +1,5 @@
+parameters:
+  mode: slow
 spec:
   approvalTimeout: 24h0m0s
   catchUp: latest
@@ -7,9 +9,13 @@
   mirrorPrefix: mirror.maint.dev
   onDrift: hold
   onWindowClose: finish
+  parameters:
+  - name: mode
   serviceAccountName: maint-runner
   startDeadline: 1h0m0s
   steps:
   - name: hold
+    properties:
+      duration: 1m
     type: suspend
   successfulRunsHistoryLimit: 3
`

func TestRollbackAsksForTheEarlierRun(t *testing.T) {
	for _, c := range []struct {
		name, line, err string
		want            intent.TriggerOptions
	}{
		{"the newest that succeeded before the newest", "rollback orders --reason CHG-1", back, intent.TriggerOptions{AsOf: "maint-run-orders-b", Reason: "CHG-1"}},
		{"the one that is named", "rollback orders --to orders-a", "", intent.TriggerOptions{AsOf: "maint-run-orders-a"}},
		{"one that failed, where it is named", "rollback orders --to maint-run-orders-c", "", intent.TriggerOptions{AsOf: "maint-run-orders-c"}},
		{"outside of the window", "rollback orders --to orders-a --outside-window --reason fire", "", intent.TriggerOptions{AsOf: "maint-run-orders-a", OutsideWindow: true, Reason: "fire"}},
		{"a run that changes nothing", "rollback orders --to orders-a --dry-run=run", "", intent.TriggerOptions{AsOf: "maint-run-orders-a", DryRun: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, append(history(), cmdtest.Plan("orders", ""), cmdtest.Agent())...)
			got := o.Maint(strings.Fields(c.line)...)
			got.Is(t, cmdtest.Printed{Out: "run/" + requested(o) + " requested\n", Err: c.err})
			var options intent.TriggerOptions
			if err := json.Unmarshal([]byte(o.Notes("orders")[annotations.TriggerOptions]), &options); err != nil {
				t.Fatal(err)
			}
			c.want.Token = o.Notes("orders")[annotations.Trigger]
			if diff := cmp.Diff(c.want, options); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRollbackProposesTheSameRollbackOutsideOfTheWindow(t *testing.T) {
	for line, want := range map[string]string{
		"rollback orders": "'kubectl maint rollback orders --to maint-run-orders-b --outside-window --reason …'",
		"rollback orders --to orders-a --dry-run=run": "'kubectl maint rollback orders --to maint-run-orders-a --dry-run=run --outside-window --reason …'",
	} {
		o := cmdtest.NewCluster(t, cmd.Run, append(history(), cmdtest.Plan("orders", "", cmdtest.Noting(annotations.ChangeStrategy, "Restrictive")), cmdtest.Agent())...)
		if got := o.Line(line); !strings.HasSuffix(got.Err, "; "+want+" asks for one that does not\n") {
			t.Errorf("%s: %q does not propose %s", line, got.Err, want)
		}
	}
}

func TestRollbackShowsWhatWouldDiffer(t *testing.T) {
	for _, mode := range []string{"--dry-run", "--dry-run=client", "--dry-run=server"} {
		o := cmdtest.NewCluster(t, cmd.Run, append(history(), cmdtest.Plan("orders", ""), cmdtest.Agent())...)
		got := o.Maint("rollback", "orders", mode)
		diff, last := got.Out[:strings.LastIndex(got.Out, "run/")], got.Out[strings.LastIndex(got.Out, "run/"):]
		mark := " (dry run)\n"
		if mode == "--dry-run=server" {
			mark = " (server dry run)\n"
		}
		cmdtest.Printed{Code: got.Code, Out: diff, Err: got.Err}.Is(t, cmdtest.Printed{Out: difference, Err: back})
		if !strings.HasSuffix(last, " requested"+mark) {
			t.Errorf("%s: it ends with %q", mode, last)
		}
		if asked := o.Asked("patch", "configmaps", "orders"); asked == 1 != (mode == "--dry-run=server") {
			t.Errorf("%s: %d writes were sent", mode, asked)
		}
	}
}

func TestRollbackRefuses(t *testing.T) {
	of := func(edit func(*view.Run)) []runtime.Object {
		return objects(wentBefore("maint-run-orders-a", time.Hour, run.Succeeded, edit))
	}
	const to = "rollback orders --to orders-a"
	runRows(t, []row{
		{name: "a plan that never ran", line: "rollback orders", code: 1, err: "error: plan orders has no run to go back to\n"},
		{name: "a plan whose runs before the newest failed", world: objects(wentBefore("maint-run-orders-a", time.Hour, run.Failed), wentBefore("maint-run-orders-b", time.Minute, run.Succeeded)), line: "rollback orders", code: 1, err: "error: plan orders has no run that succeeded before its newest, maint-run-orders-b (Succeeded): name one with --to, see 'kubectl maint history orders'\n"},
		{name: "a run that is not there", line: to, code: 1, err: "error: there is no run \"orders-a\" in namespace shop: there is no such namespace; 'kubectl get namespaces' shows which there are\n"},
		{name: "a run that lives", world: objects(wentBefore("maint-run-orders-a", time.Hour, run.Running)), line: to, code: 1, err: "error: run maint-run-orders-a has not ended\n"},
		{name: "a run of another account", world: of(func(r *view.Run) { r.Run.Spec.ServiceAccountName = "admin" }), line: to, code: 1, err: "error: run maint-run-orders-a worked as ServiceAccount admin, and the plan now names maint-runner: a rollback does not change the account\n"},
		{name: "a run that is not valid any more", world: of(func(r *view.Run) { r.Run.Spec.Steps[0].Properties = map[string]any{"duration": "soon"} }), line: to, code: 1, err: "error: what run maint-run-orders-a did is not valid by the rules of this version:\nerror: spec.steps[0].properties.duration: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\n"},
		{name: "a plan with a fault", spec: "startDeadline: soon", line: to, code: 1, err: "error: plan orders is not valid, so that nothing would run:\nerror: line 1: spec.startDeadline: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\n"},
		{name: "no agent", world: append(history(), noAgent()), line: to, code: 5, err: missing},
		{name: "a paused plan, for who would wait", world: history(), notes: []string{annotations.Pause, "true"}, line: to + " --wait", code: 3, err: "error: plan orders is paused until somebody resumes it; nothing was asked (without --wait the run begins when the pause ends)\n"},
		{name: "a plan that the agent calls invalid", world: history(), notes: saidInvalid("there is no step template hush"), line: to, code: 3, err: "error: plan orders is invalid, so it starts nothing: there is no step template hush; nothing was asked: see 'kubectl maint why orders'\n"},
		{name: "a way out of the window without a reason", line: to + " --outside-window", code: 2, err: "error: --outside-window needs a --reason\n"},
		{name: "an unknown dry run", line: to + " --dry-run=maybe", code: 2, err: "error: --dry-run: \"maybe\" is not one of none, run, client, server\n"},
		{name: "an unknown format", line: to + " -o xml", code: 2, err: "error: -o xml: what was written is printed as json, yaml, name, jsonpath=… or go-template=…\n"},
	})
}

// What is shown of a run does not come between a script and its name.
func TestTriggerPrintsTheNameAlone(t *testing.T) {
	for _, line := range []string{"trigger orders -o name", "trigger orders --dry-run -o name", "trigger orders --dry-run=server -o name"} {
		o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Plan("orders", ""), cmdtest.Agent())
		got := o.Maint(strings.Fields(line)...)
		if line == "trigger orders --dry-run=server -o name" {
			if !strings.HasPrefix(got.Out, "maint-run-orders-") || strings.Count(got.Out, "\n") != 1 || got.Err != "" || got.Code != 0 {
				t.Errorf("%s: %+v", line, got)
			}
			continue
		}
		got.Is(t, cmdtest.Printed{Out: requested(o) + "\n"})
	}
}

func TestWritesPrintWhatTheyWrote(t *testing.T) {
	const name = "configmap/orders\n"
	asleep := "{.metadata.annotations.maint\\.dev/pause}"
	runRows(t, []row{
		{name: "by name", line: "pause orders -o name", out: name, wrote: signed(annotations.Pause, "true", "")},
		{name: "a trial on the client shows what would stand there", line: "pause orders --dry-run=client -o jsonpath=" + asleep, out: "true"},
		{name: "skip, all its slots in one", spec: weekly, line: "skip orders --next 2 -o name", out: name, wrote: signed(annotations.Skip, "2026-11-21T07:00:00Z,2026-11-28T07:00:00Z", "")},
		{name: "what stands there already", notes: []string{annotations.Pause, "true"}, line: "resume orders --dry-run=client -o jsonpath={.kind}/{.metadata.annotations}", out: "ConfigMap/{\"status.maint.dev/observed\":\"1\"}"},
		{name: "an approval", world: objects(cmdtest.RunObject(cmdtest.AskingOf(cmdtest.Asking("ask")), "maint-run-orders-a")), line: "approve orders-a -o name", out: name, wrote: signed(annotations.Approve, "maint-run-orders-a/ask", "")},
		{name: "a namespace", world: objects(cmdtest.Namespace("shop")), line: "pause --all --dry-run=client -o jsonpath={.kind}/{.metadata.annotations}", out: "Namespace/{\"actor.maint.dev/pause\":\"Jane@example.com\",\"maint.dev/pause\":\"true\"}"},
		{name: "an unknown format", line: "pause orders -o wide", code: 2, err: "error: -o wide: what was written is printed as json, yaml, name, jsonpath=… or go-template=…\n"},
	})
}
