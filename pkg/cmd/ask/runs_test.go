package ask_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// left has a record say that it could not put back what it changed.
func left(rec *run.Record) {
	rec.Restored, rec.RestoreMessage = run.RestoreFailed, "put back spec.replicas: 7: forbidden"
}

// live is run maint-run-orders-a at work.
func live(records ...run.Record) *corev1.ConfigMap {
	return cmdtest.RunObject(cmdtest.RunOf(records...), "maint-run-orders-a")
}

// ended is the same run at its end, five minutes ago.
func ended(phase run.Phase, records ...run.Record) *corev1.ConfigMap {
	return endedAs("maint-run-orders-a", phase, records...)
}

func endedAs(name string, phase run.Phase, records ...run.Record) *corev1.ConfigMap {
	r := cmdtest.RunOf(records...)
	r.Journal.Phase, r.Journal.FinishedAt = phase, cmdtest.Before(5*time.Minute)
	return cmdtest.RunObject(r, name)
}

// pending is the same run before it began.
func pending(edits ...func(*view.Run)) *corev1.ConfigMap {
	return cmdtest.RunObject(cmdtest.PendingRun(edits...), "maint-run-orders-a")
}

const planIsGone = "error: the plan of run maint-run-orders-a is gone: the agent is ending the run; if it does not, delete the ConfigMap maint-run-orders-a\n"

// becoming has the agent put another state of a run in its place when a line was said.
func becoming(states map[string]*corev1.ConfigMap) func(*cmdtest.Cluster) {
	return func(o *cmdtest.Cluster) {
		steps := map[string]func(){}
		for line, cm := range states {
			steps[line] = cmdtest.Later(func() { o.Stores("configmaps", cm) })
		}
		o.Told(steps)
	}
}

// Somebody deleted a run while no agent was there that would take its finalizer off: it will be aborted, and
// nothing else becomes of it.
func TestARunThatWasDeletedIsBeingAborted(t *testing.T) {
	deleted := func(cm *corev1.ConfigMap) *corev1.ConfigMap {
		cm.DeletionTimestamp, cm.Finalizers = &metav1.Time{Time: *cmdtest.Before(time.Hour)}, []string{"maint.dev/run"}
		return cm
	}
	const taken = "; no agent has taken that up yet"
	const said, plain = "being aborted: it was deleted at Sat 2026-11-21 00:00 CET" + taken, "being aborted: it was deleted at 2026-11-20T23:00:00Z" + taken
	const head = "Running for 1h0m, 0 of 1 steps done: " + said
	hold, asks := func() *corev1.ConfigMap { return deleted(live(cmdtest.Record("hold", "suspend", run.StepRunning))) }, func() *corev1.ConfigMap { return deleted(live(cmdtest.Asking("ask"))) }
	runRows(t, []row{
		{name: "resume of it", world: objects(hold(), noAgent()), line: "resume orders-a", code: 3, err: "error: run maint-run-orders-a is not suspended now: " + head + "\n"},
		{name: "resume of its step", world: objects(hold(), noAgent()), line: "resume orders-a/hold", code: 3, err: "error: run maint-run-orders-a: " + plain + "\n"},
		{name: "resume of its plan", world: objects(hold()), line: "resume orders", out: "plan/orders was not paused\n"},
		{name: "approve of it", world: objects(asks(), noAgent()), line: "approve orders-a", code: 3, err: "error: run maint-run-orders-a does not wait for approval: it is " + head + "\n"},
		{name: "reject of its step", world: objects(asks(), noAgent()), line: "reject orders-a/ask", code: 3, err: "error: run maint-run-orders-a: " + plain + "\n"},
		{name: "approve before it begins", world: objects(deleted(pending()), noAgent()), line: "approve orders-a", code: 3, err: "error: run maint-run-orders-a does not wait for approval: it is Pending, " + said + "\n"},
		{name: "status of it", world: objects(hold()), line: "status orders-a", out: "Run maint-run-orders-a  " + head + "\n  ▶ hold  suspend  Running       60s\n"},
	})
}

func TestAbort(t *testing.T) {
	step := cmdtest.Record("call", "webhook", run.StepRunning)
	other := cmdtest.Plan("orders", "")
	other.UID = "another"
	const asks = "run maint-run-orders-a: Running"
	const leftAlone = "error: run maint-run-orders-a is left alone: another key; sign it with 'kubectl maint -n shop adopt run/maint-run-orders-a', which needs the right to read the agent's key\n"
	alone := []string{annotations.StatusConditions, `[{"type":"RunStuck","status":"True","message":"run maint-run-orders-a is left alone: another key; sign it with 'kubectl maint -n shop adopt run/maint-run-orders-a'"}]`}
	waits := []string{annotations.StatusConditions, `[{"type":"RunStuck","status":"True","message":"run maint-run-orders-a cannot go on: it waits for run q, which holds the same target"}]`}
	triggered := []string{annotations.Trigger, "token", annotations.TriggerOptions, `{"token":"token"}`, annotations.Actor(annotations.Trigger), "joe", annotations.Reason(annotations.Trigger), "CHG-1"}
	untriggered := map[string]string{annotations.Trigger: "", annotations.TriggerOptions: "", annotations.Actor(annotations.Trigger): "", annotations.Reason(annotations.Trigger): ""}
	asked := annotations.RunName("orders", "u-orders", run.Request{Kind: run.ByToken, Token: "token"})
	another := annotations.RunName("orders", "u-orders", run.Request{Kind: run.ByToken, Token: "another"})
	over := cmdtest.RunOf()
	over.Journal.Phase, over.Run.Request.At = run.Failed, over.Run.Request.At.Add(time.Minute)
	runRows(t, []row{
		{name: "a run at work", world: objects(live(step)), line: "abort maint-run-orders-a --yes --reason 'wrong week'", out: "run/maint-run-orders-a is being aborted\n", wrote: signed(annotations.Abort, "maint-run-orders-a", "wrong week")},
		{name: "by the end of its name", world: objects(live(step)), line: "abort orders-a --yes", out: "run/maint-run-orders-a is being aborted\n", wrote: signed(annotations.Abort, "maint-run-orders-a", "")},
		{name: "by its plan", world: objects(live(step)), line: "abort orders --yes", out: "run/maint-run-orders-a is being aborted\n", err: "run maint-run-orders-a is the newest of plan orders\n", wrote: signed(annotations.Abort, "maint-run-orders-a", "")},
		{name: "a run that the agent leaves alone", notes: alone, world: objects(live(step)), line: "abort orders-a --yes", code: 3, err: leftAlone},
		{name: "the retry of a run beside one that the agent leaves alone", notes: alone, world: objects(live(step), endedAs("maint-run-orders-b", run.Failed)), line: "retry orders-b", code: 3, err: leftAlone},
		{name: "the resume of a run that the agent leaves alone", notes: alone, world: objects(live(cmdtest.Record("hold", "suspend", run.StepRunning))), line: "resume orders-a", code: 3, err: leftAlone},
		{name: "a run that waits for another one", notes: waits, world: objects(live(step)), line: "abort orders-a --yes", out: "run/maint-run-orders-a is being aborted\n", wrote: signed(annotations.Abort, "maint-run-orders-a", "")},
		{name: "a run that waits", world: objects(pending()), line: "abort orders-a --yes", out: "run/maint-run-orders-a is being aborted\n", wrote: signed(annotations.Abort, "maint-run-orders-a", "")},
		{name: "without a terminal and without --yes", world: objects(live(step)), line: "abort orders-a", code: 2, err: "error: abort run maint-run-orders-a: give --yes, since nobody can be asked here\n"},
		{name: "a trial on the client asks neither the person nor for the agent", world: objects(live(step), noAgent()), line: "abort orders-a --dry-run", out: "run/maint-run-orders-a is being aborted (dry run)\n"},
		{name: "no agent that would do it", world: objects(live(step), noAgent()), line: "abort orders-a --yes", code: 5, err: missing},
		{name: "a run that has ended", world: objects(ended("Failed")), line: "abort orders-a --yes", code: 1, err: "error: run maint-run-orders-a has ended already: Failed\n"},
		{name: "a plan that is named as a run", world: objects(live(step)), line: "abort run/orders --yes", code: 1, err: "error: shop/orders is a plan and no run; see 'kubectl maint list runs'\n"},
		{name: "by its plan, with the kind of that", world: objects(live(step)), line: "abort plan/orders --yes", out: "run/maint-run-orders-a is being aborted\n", err: "run maint-run-orders-a is the newest of plan orders\n", wrote: signed(annotations.Abort, "maint-run-orders-a", "")},
		{name: "no run of that name", world: objects(live(step)), line: "abort orders-x --yes", code: 1, err: "error: there is no run or plan \"orders-x\" in namespace shop; did you mean \"orders-a\"?\n"},
		{name: "by its plan, of which a newer run has ended", world: objects(pending(), cmdtest.RunObject(over, "maint-run-orders-b")), line: "abort orders --yes", out: "run/maint-run-orders-a is being aborted\n", err: "run maint-run-orders-a is the newest of plan orders that has not ended\n", wrote: signed(annotations.Abort, "maint-run-orders-a", "")},
		{name: "a trigger that waits is taken back", notes: triggered, line: "abort orders --yes", out: "the trigger of plan/orders is taken back\n", wrote: untriggered},
		{name: "also without an agent", notes: triggered, world: objects(noAgent()), line: "abort orders --yes", out: "the trigger of plan/orders is taken back\n", wrote: untriggered},
		{name: "by the name of its run, which is not there yet", notes: triggered, line: "abort " + asked + " --yes --reason 'wrong week'", out: "the trigger of plan/orders is taken back\n", err: "the reason is kept nowhere, since there is no run\n", wrote: untriggered},
		{name: "beside runs that have ended", notes: triggered, world: objects(ended("Failed")), line: "abort orders --yes", out: "the trigger of plan/orders is taken back\n", wrote: untriggered},
		{name: "a trial of it", notes: triggered, line: "abort orders --dry-run", out: "the trigger of plan/orders is taken back (dry run)\n"},
		{name: "nobody is there to be asked", notes: triggered, line: "abort orders", code: 2, err: "error: take back the trigger of plan orders: give --yes, since nobody can be asked here\n"},
		{name: "a run that lives, while a trigger waits for its end", notes: triggered, world: objects(live(step)), line: "abort orders --yes", out: "run/maint-run-orders-a is being aborted\n", err: "a trigger of plan orders waits, too: 'kubectl maint abort " + asked + "' takes it back\nrun maint-run-orders-a is the newest of plan orders\n", wrote: signed(annotations.Abort, "maint-run-orders-a", "")},
		{name: "a trigger that the agent took up, and says so only in its ledger", notes: triggered, world: objects(cmdtest.Ledger(ledger.Ledger{Tokens: []string{"token"}, Open: []ledger.Entry{{Run: asked, Result: run.Open}}})), line: "abort orders --yes", code: 1, err: "error: plan orders has no run yet: run " + asked + " is about to be made; see 'kubectl maint why orders'\n"},
		{name: "one that it takes up meanwhile", notes: triggered, before: func(o *cmdtest.Cluster) {
			o.Conflicts("configmaps", func() {
				o.Stores("configmaps", cmdtest.Plan("orders", "", cmdtest.Noting(append(triggered, annotations.StatusTrigger, "token")...)))
			})
		}, line: "abort orders --yes", code: 3, err: "error: the agent took up the trigger of plan orders meanwhile: 'kubectl maint abort " + asked + "' ends its run\n", wrote: map[string]string{annotations.StatusTrigger: "token"}},
		{name: "one that is given anew meanwhile", notes: triggered, before: func(o *cmdtest.Cluster) {
			o.Conflicts("configmaps", func() {
				o.Stores("configmaps", cmdtest.Plan("orders", "", cmdtest.Noting(annotations.Trigger, "another")))
			})
		}, line: "abort orders --yes", code: 3, err: "error: plan orders was triggered again meanwhile: 'kubectl maint abort " + another + "' takes that back\n", wrote: map[string]string{annotations.Trigger: "another", annotations.Actor(annotations.Trigger): "", annotations.Reason(annotations.Trigger): "", annotations.TriggerOptions: ""}},
		{name: "a plan instead of a run, whose runs need parameters", spec: "parameters: [{name: size}, {name: mode, default: slow}]", line: "abort orders --yes", code: 1, err: "error: plan orders has no run: 'kubectl maint trigger orders --param size=…' asks for one\n"},
		{name: "a plan instead of a run", line: "abort orders --yes", code: 1, err: "error: plan orders has no run: 'kubectl maint trigger orders' asks for one\n"},
		{name: "another is aborted already", notes: []string{annotations.Abort, "maint-run-orders-b", annotations.Actor(annotations.Abort), "joe"}, world: objects(live(step)), line: "abort orders-a --yes", code: 3, err: "error: plan orders still has maint.dev/abort: maint-run-orders-b by joe, which the agent has not handled: try again in a moment, or remove that annotation\n"},
		{name: "its plan was created again", world: objects(live(step)), before: func(o *cmdtest.Cluster) { o.Stores("configmaps", other) }, line: "abort orders-a --yes", code: 1, err: planIsGone},
		{name: "who may not write", world: objects(live(step)), before: func(o *cmdtest.Cluster) { o.Forbids("patch", "configmaps", "") }, line: "abort orders-a --yes", code: 1, err: "Error from server (Forbidden): write to shop/orders: configmaps is forbidden: not for you; the ClusterRole edit in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may\n"},
		{
			name: "to its end, which is as it was asked", world: objects(live(step)), line: "abort orders-a --yes --wait",
			before: becoming(map[string]*corev1.ConfigMap{asks: ended("Aborted", cmdtest.Record("call", "webhook", run.StepFailed, cmdtest.Message("aborted")))}),
			out:    "2026-11-20T23:00:00Z run maint-run-orders-a: Running\n2026-11-20T23:59:00Z step call: Running\n2026-11-20T23:59:05Z step call: Failed: aborted\n2026-11-20T23:55:00Z run maint-run-orders-a: Aborted\n", err: "run/maint-run-orders-a is being aborted\n",
			wrote: signed(annotations.Abort, "maint-run-orders-a", ""),
		},
		{
			name: "to its end, with something left behind", world: objects(live(step)), line: "abort orders-a --yes --wait",
			before: becoming(map[string]*corev1.ConfigMap{asks: ended("Aborted", cmdtest.Record("down", "scale", run.StepSucceeded, left))}),
			code:   4, err: "run/maint-run-orders-a is being aborted\nerror: run maint-run-orders-a ended Aborted and left something behind: step down could not be put back: put back spec.replicas: 7: forbidden\n",
			out:   "2026-11-20T23:00:00Z run maint-run-orders-a: Running\n2026-11-20T23:59:00Z step call: Running\n2026-11-21T00:00:00Z step down: Succeeded, could not be put back: put back spec.replicas: 7: forbidden\n2026-11-20T23:55:00Z run maint-run-orders-a: Aborted\n",
			wrote: signed(annotations.Abort, "maint-run-orders-a", ""),
		},
		{
			name: "to its end, which came first", world: objects(live(step)), line: "abort orders-a --yes --wait",
			before: becoming(map[string]*corev1.ConfigMap{asks: ended("Failed", cmdtest.Record("call", "webhook", run.StepFailed, cmdtest.Message("503")))}),
			code:   4, err: "run/maint-run-orders-a is being aborted\nerror: run maint-run-orders-a ended Failed\n",
			out:   "2026-11-20T23:00:00Z run maint-run-orders-a: Running\n2026-11-20T23:59:00Z step call: Running\n2026-11-20T23:59:05Z step call: Failed: 503\n2026-11-20T23:55:00Z run maint-run-orders-a: Failed\n",
			wrote: signed(annotations.Abort, "maint-run-orders-a", ""),
		},
		{
			name: "until the time is over", world: objects(live(step)), line: "abort orders-a --yes --wait --timeout 10s",
			code: 124, err: "run/maint-run-orders-a is being aborted\nerror: --timeout passed: run maint-run-orders-a goes on without you; see 'kubectl maint status maint-run-orders-a', or end it with 'kubectl maint abort maint-run-orders-a'\n",
			out:   "2026-11-20T23:00:00Z run maint-run-orders-a: Running\n2026-11-20T23:59:00Z step call: Running\n",
			wrote: signed(annotations.Abort, "maint-run-orders-a", ""),
		},
		{name: "a timeout that nothing waits for", line: "abort orders-a --yes --timeout 5s", code: 2, err: "error: --timeout is for --wait\n"},
		{name: "a timeout below nothing", line: "abort orders-a --yes --wait --timeout=-5s", code: 2, err: "error: --timeout must not be negative\n"},
	})
}

func TestARunWhosePlanIsGoneIsNotAsked(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, live(cmdtest.Record("call", "webhook", run.StepRunning)), cmdtest.Agent())
	o.Maint("abort", "orders-a", "--yes").Is(t, cmdtest.Printed{Code: 1, Err: planIsGone})
}

// The agent asks the gate of a run's namespace alone where the run began, or may run outside of its window.
func TestWhatARunWaitsForThatWasApproved(t *testing.T) {
	night := cmdtest.Policy("night", "{strategy: MaintenanceSchedule, maintenanceSchedule: {timezone: UTC, windows: [{start: '22:00', end: '23:00'}]}}")
	frozen := cmdtest.Namespace("shop", annotations.ChangeStrategy, "RestrictiveUntil", annotations.RestrictiveUntil, "2026-11-21T14:00:00Z")
	policies := []policy.PolicyRef{{Name: "night"}}
	asks := func(closes plan.OnWindowClose, edits ...func(*run.Run)) *corev1.ConfigMap {
		r := cmdtest.RunOf(cmdtest.Asking("ask"))
		r.Run.Spec.Policies, r.Run.Spec.OnWindowClose = policies, closes
		for _, edit := range edits {
			edit(&r.Run)
		}
		return cmdtest.RunObject(r, "maint-run-orders-a")
	}
	outside := func(r *run.Run) { r.Request.OutsideWindow = true }
	named := func(r *view.Run) { r.Run.Spec.Policies = policies }
	const step, begins = "its next step that changes something", "the run"
	const namespace, window = "waits for its window, which opens at Sat 2026-11-21 15:00 CET (namespace: RestrictiveUntil Sat 2026-11-21 15:00 CET)", "waits for its window, which opens at Sat 2026-11-21 23:00 CET (policy night: outside of the windows)"
	const both = "waits for its window, which opens at Sat 2026-11-21 23:00 CET (namespace: RestrictiveUntil Sat 2026-11-21 15:00 CET; after the freeze: policy night: outside of the windows)"
	behind := func(o *cmdtest.Cluster) { o.Forbids("get", "namespaces", "") }
	for name, c := range map[string]struct {
		world  []runtime.Object
		before func(*cmdtest.Cluster)
		told   string
		who    string
		waits  string
	}{
		"a run that began, whose window is closed":                          {world: objects(night, asks(""))},
		"a run that began, whose namespace is frozen":                       {world: objects(night, asks(""), frozen), who: step, waits: namespace},
		"a run that waits between steps":                                    {world: objects(night, asks(plan.CloseWait)), who: step, waits: window},
		"a run that waits between steps, whose namespace is frozen":         {world: objects(night, asks(plan.CloseWait), frozen), who: step, waits: both},
		"a run that waits between steps, outside of its window":             {world: objects(night, asks(plan.CloseWait, outside), frozen), who: step, waits: namespace},
		"a run that ends with its window":                                   {world: objects(night, asks(plan.CloseAbort), frozen)},
		"a run before it begins":                                            {world: objects(night, pending(named)), who: begins, waits: window},
		"a run before it begins, outside of its window":                     {world: objects(night, pending(named, func(r *view.Run) { outside(&r.Run) }), frozen), who: begins, waits: namespace},
		"a run whose plan named no policy yet":                              {world: objects(night, pending())},
		"a frozen namespace that the agent tells of":                        {world: objects(night, asks("")), before: behind, told: `{"current":{"state":"ChangesPaused","reason":"namespace: RestrictiveUntil 2026-11-21T14:00:00Z","endTime":"2026-11-21T22:00:00Z"}}`, who: step, waits: strings.Replace(namespace, "15:00 CET)", "15:00 CET, says the agent)", 1)},
		"a closed window that the agent tells of, and the run asks no more": {world: objects(night, asks("")), before: behind, told: `{"current":{"state":"ChangesPaused","reason":"policy night: outside of the windows"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			said := ""
			if c.waits != "" {
				said = c.who + " " + c.waits + "; 'kubectl maint why orders' shows what would help\n"
			}
			p := cmdtest.Plan("orders", "policies: [{name: night}]")
			if c.told != "" {
				cmdtest.Noting(annotations.StatusObserved, annotations.Observed(p), annotations.StatusBehavior, c.told)(p)
			}
			o := cmdtest.NewCluster(t, cmd.Run, append(c.world, cmdtest.Agent(), p)...)
			if c.before != nil {
				c.before(o)
			}
			if got := o.Maint("approve", "orders-a"); got.Code != 0 || got.Err != said {
				t.Errorf("%d %q, want %q", got.Code, got.Err, said)
			}
		})
	}
}

func TestApproveAndReject(t *testing.T) {
	asks := func() *corev1.ConfigMap { return live(cmdtest.Asking("ask")) }
	agreed := cmdtest.Record("ask", "approval", run.StepSucceeded)
	freeze := []string{annotations.ChangeStrategy, "RestrictiveUntil", annotations.RestrictiveUntil, "2026-11-22T00:00:00Z", annotations.Actor(annotations.ChangeStrategy), "jane", annotations.Reason(annotations.ChangeStrategy), "launch week"}
	runRows(t, []row{
		{name: "a run that waits", world: objects(pending()), line: "approve orders-a --reason CHG-1", out: "run/maint-run-orders-a approved\n", wrote: signed(annotations.Approve, "maint-run-orders-a", "CHG-1")},
		{name: "a run whose plan is frozen", world: objects(pending()), notes: freeze, line: "approve orders-a", out: "run/maint-run-orders-a approved\n", err: "the run waits for its window, which opens at Sun 2026-11-22 01:00 CET (RestrictiveUntil Sun 2026-11-22 01:00 CET by jane (unverified): launch week); 'kubectl maint why orders' shows what would help\n", wrote: signed(annotations.Approve, "maint-run-orders-a", "")},
		{name: "a run whose plan is frozen, which a bypass names", world: objects(pending()), notes: append(freeze[:len(freeze):len(freeze)], annotations.Bypass, "maint-run-orders-a: CHG-1"), line: "approve orders-a", out: "run/maint-run-orders-a approved\n", wrote: signed(annotations.Approve, "maint-run-orders-a", "")},
		{name: "a run whose namespace is paused", world: objects(pending(), cmdtest.Namespace("shop", annotations.Pause, "true", annotations.Actor(annotations.Pause), "jane")), line: "approve orders-a", out: "run/maint-run-orders-a approved\n", err: "namespace shop is paused until somebody resumes it, by jane (unverified); the run begins when the pause ends\n", wrote: signed(annotations.Approve, "maint-run-orders-a", "")},
		{name: "a run, where nobody may read what stands around it", world: objects(pending(), cmdtest.Namespace("shop", freeze...)), before: func(o *cmdtest.Cluster) { o.Forbids("get", "namespaces", "") }, line: "approve orders-a", out: "run/maint-run-orders-a approved\n", wrote: signed(annotations.Approve, "maint-run-orders-a", "")},
		{name: "a run that is rejected waits for nothing", world: objects(pending()), notes: freeze, line: "reject orders-a", out: "run/maint-run-orders-a rejected\n", wrote: signed(annotations.Reject, "maint-run-orders-a", "")},
		{name: "a step, whose namespace is frozen", world: objects(asks(), cmdtest.Namespace("shop", freeze...)), line: "approve orders-a", out: "run/maint-run-orders-a/ask approved\n", err: "its next step that changes something waits for its window, which opens at Sun 2026-11-22 01:00 CET (namespace: RestrictiveUntil Sun 2026-11-22 01:00 CET by jane (unverified): launch week); 'kubectl maint why orders' shows what would help\n", wrote: signed(annotations.Approve, "maint-run-orders-a/ask", "")},
		{name: "a step, whose plan is frozen and does not ask again", world: objects(asks()), notes: freeze, line: "approve orders-a", out: "run/maint-run-orders-a/ask approved\n", wrote: signed(annotations.Approve, "maint-run-orders-a/ask", "")},
		{name: "a step, whose plan is paused", world: objects(asks()), notes: []string{annotations.Pause, "true"}, line: "approve orders-a", out: "run/maint-run-orders-a/ask approved\n", err: "plan orders is paused until somebody resumes it; the run goes on when the pause ends\n", wrote: signed(annotations.Approve, "maint-run-orders-a/ask", "")},
		{name: "the step of the newest run of a plan", world: objects(live(cmdtest.Record("hold", "suspend", run.StepRunning))), line: "resume orders/hold", out: "run/maint-run-orders-a/hold resumed\n", err: "run maint-run-orders-a is the newest of plan orders\n", wrote: signed(annotations.Resume, "maint-run-orders-a/hold", "")},
		{name: "the step of a plan that has no run", line: "resume orders/hold", code: 1, err: "error: plan orders has no run: 'kubectl maint trigger orders' asks for one\n"},
		{name: "a suspended run that is resumed, whose plan is paused", world: objects(live(cmdtest.Record("hold", "suspend", run.StepRunning))), notes: []string{annotations.Pause, "true"}, line: "resume orders-a", out: "run/maint-run-orders-a resumed\n", err: "plan orders is paused until somebody resumes it; the run goes on when the pause ends\n", wrote: signed(annotations.Resume, "maint-run-orders-a", "")},
		{name: "a step that asks", world: objects(asks()), line: "approve maint-run-orders-a/ask", out: "run/maint-run-orders-a/ask approved\n", wrote: signed(annotations.Approve, "maint-run-orders-a/ask", "")},
		{name: "no to a run", world: objects(pending()), line: "reject run/maint-run-orders-a", out: "run/maint-run-orders-a rejected\n", wrote: signed(annotations.Reject, "maint-run-orders-a", "")},
		{name: "no to a step", world: objects(asks()), line: "reject orders-a", out: "run/maint-run-orders-a/ask rejected\n", wrote: signed(annotations.Reject, "maint-run-orders-a/ask", "")},
		{name: "a trial", world: objects(pending(), noAgent()), line: "approve orders-a --dry-run", out: "run/maint-run-orders-a approved (dry run)\n"},
		{name: "a trial on the server keeps nothing that would wait", world: objects(pending()), notes: freeze, line: "approve orders-a --dry-run=server", out: "run/maint-run-orders-a approved (server dry run)\n", wrote: signed(annotations.Approve, "maint-run-orders-a", "")},
		{name: "nor does that of a resume", world: objects(live(cmdtest.Record("hold", "suspend", run.StepRunning))), notes: []string{annotations.Pause, "true"}, line: "resume orders-a --dry-run=server", out: "run/maint-run-orders-a resumed (server dry run)\n", wrote: signed(annotations.Resume, "maint-run-orders-a", "")},
		{name: "a trial on the server needs an agent as the real one", world: objects(pending(), noAgent()), line: "approve orders-a --dry-run=server", code: 5, err: missing},
		{name: "no agent", world: objects(pending(), noAgent()), line: "approve orders-a", code: 5, err: missing},
		{name: "beside a no", notes: []string{annotations.Reject, "maint-run-orders-a"}, world: objects(pending()), line: "approve orders-a", code: 3, err: "error: plan orders still has maint.dev/reject: maint-run-orders-a, which the agent has not handled: try again in a moment, or remove that annotation\n"},
		{name: "a step of a run, with the kind of that", world: objects(asks()), line: "approve run/maint-run-orders-a/ask", out: "run/maint-run-orders-a/ask approved\n", wrote: signed(annotations.Approve, "maint-run-orders-a/ask", "")},
		{name: "a plan that is named as a run", world: objects(asks()), line: "approve run/orders", code: 1, err: "error: shop/orders is a plan and no run; see 'kubectl maint list runs'\n"},
		{name: "nothing waits", world: objects(live(cmdtest.Record("call", "webhook", run.StepRunning))), line: "approve orders-a", code: 3, err: "error: run maint-run-orders-a does not wait for approval: it is Running for 1h0m, 0 of 1 steps done\n"},
		{name: "no run", line: "approve orders-a", code: 1, err: "error: there is no run or plan \"orders-a\" in namespace shop; did you mean \"orders\"?\n"},
		{
			name: "and wait for its end", world: objects(asks()), line: "approve orders-a --wait", before: becoming(map[string]*corev1.ConfigMap{"step ask: Running": ended("Succeeded", agreed)}),
			out: "2026-11-20T23:00:00Z run maint-run-orders-a: Running\n2026-11-20T23:59:00Z step ask: Running\n2026-11-20T23:59:05Z step ask: Succeeded\n2026-11-20T23:55:00Z run maint-run-orders-a: Succeeded\n", err: "run/maint-run-orders-a/ask approved\n",
			wrote: signed(annotations.Approve, "maint-run-orders-a/ask", ""),
		},
		{name: "a timeout that nothing waits for", line: "approve orders-a --timeout 5s", code: 2, err: "error: --timeout is for --wait\n"},
	})
}

func TestRetry(t *testing.T) {
	next := annotations.RetryName("orders", "u-orders", "maint-run-orders-a")
	triggered := annotations.RunName("orders", "u-orders", run.Request{Kind: run.ByToken, Token: "t1"})
	newest := func(name string) *corev1.ConfigMap {
		return cmdtest.Ledger(ledger.Ledger{Last: &ledger.LastRun{Name: name, Phase: run.Failed}})
	}
	failed := cmdtest.Record("call", "webhook", run.StepFailed, cmdtest.Message("503"))
	unstarted := cmdtest.RunOf()
	unstarted.Journal.Phase, unstarted.Journal.StartedAt = run.Aborted, nil
	tried := cmdtest.RunOf(failed)
	tried.Run.Request.DryRun, tried.Journal.Phase = true, run.Failed
	rehearsed := cmdtest.RunObject(tried, "maint-run-orders-a")
	runRows(t, []row{
		{name: "a run that failed", world: objects(ended("Failed", failed), newest("maint-run-orders-a")), line: "retry orders-a --reason 'the disk is there'", out: "run/" + next + " requested\n", wrote: signed(annotations.Retry, "maint-run-orders-a", "the disk is there")},
		{name: "a run that was aborted, of a plan without a ledger", world: objects(ended("Aborted", failed)), line: "retry orders-a", out: "run/" + next + " requested\n", wrote: signed(annotations.Retry, "maint-run-orders-a", "")},
		{name: "a trial needs no agent", world: objects(ended("Failed", failed), noAgent()), line: "retry orders-a --dry-run", out: "run/" + next + " requested (dry run)\n"},
		{name: "no agent", world: objects(ended("Failed", failed), noAgent()), line: "retry orders-a", code: 5, err: missing},
		{name: "a run that succeeded", world: objects(ended("Succeeded")), line: "retry orders-a", code: 1, err: "error: run maint-run-orders-a is Succeeded: only a Failed or Aborted run can be retried; ask for a new one with 'kubectl maint trigger orders'\n"},
		{name: "a run that never started", world: objects(cmdtest.RunObject(unstarted, "maint-run-orders-a")), line: "retry orders-a", code: 1, err: "error: run maint-run-orders-a never started: ask for a new one with 'kubectl maint trigger orders'\n"},
		{name: "a dry run", world: objects(rehearsed), line: "retry orders-a", code: 1, err: "error: run maint-run-orders-a was a dry run, which changed nothing that a retry could repeat: ask for a new one with 'kubectl maint trigger orders --dry-run=run'\n"},
		{name: "a plan whose run was rehearsed since", world: objects(ended("Failed", failed), cmdtest.RunObject(tried, "maint-run-orders-b"), newest("maint-run-orders-a")), line: "retry orders", out: "run/" + next + " requested\n", err: "run maint-run-orders-a is the newest of plan orders that was no dry run\n", wrote: signed(annotations.Retry, "maint-run-orders-a", "")},
		{name: "a plan of rehearsals alone", world: objects(rehearsed), line: "retry orders", code: 1, err: "run maint-run-orders-a is the newest of plan orders\nerror: run maint-run-orders-a was a dry run, which changed nothing that a retry could repeat: ask for a new one with 'kubectl maint trigger orders --dry-run=run'\n"},
		{name: "a run that is not the newest", world: objects(ended("Failed", failed), newest("maint-run-orders-b")), line: "retry orders-a", code: 1, err: "error: run maint-run-orders-a is not the newest of its plan: that is maint-run-orders-b (Failed)\n"},
		{name: "another run of the plan lives", world: objects(ended("Failed", failed), cmdtest.RunObject(cmdtest.RunOf(), "maint-run-orders-b")), line: "retry orders-a", code: 3, err: "error: run maint-run-orders-b of the plan is active: 'kubectl maint status maint-run-orders-b' shows how far it is, 'kubectl maint abort maint-run-orders-b' ends it\n"},
		{name: "a trigger of the plan waits", world: objects(ended("Failed", failed), newest("maint-run-orders-a")), notes: []string{annotations.Trigger, "t1"}, line: "retry orders-a", code: 3, err: "error: run " + triggered + " of the plan is asked for already, and has not begun: 'kubectl maint why orders' shows what it waits for, 'kubectl maint abort " + triggered + "' takes its trigger back; nothing was asked\n"},
		{name: "a trigger of the plan waits, and the plan is named", world: objects(ended("Failed", failed), newest("maint-run-orders-a")), notes: []string{annotations.Trigger, "t1"}, line: "retry orders --dry-run", code: 3, err: "run maint-run-orders-a is the newest of plan orders\nerror: run " + triggered + " of the plan is asked for already, and has not begun: 'kubectl maint why orders' shows what it waits for, 'kubectl maint abort " + triggered + "' takes its trigger back; nothing was asked\n"},
		{name: "a ledger that may not be read", world: objects(ended("Failed", failed)), before: func(o *cmdtest.Cluster) { o.Forbids("list", "configmaps", "") }, line: "retry orders-a", code: 1, err: "Error from server (Forbidden): list runs: configmaps is forbidden: not for you; the ClusterRole view in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may\n"},
		{name: "and wait for its end", world: objects(ended("Failed", failed), newest("maint-run-orders-a")), line: "retry orders-a --wait", before: func(o *cmdtest.Cluster) {
			o.Told(map[string]func(){"waiting for run": cmdtest.Later(func() {
				o.Creates(endedAs(next, "Succeeded", cmdtest.Record("call", "webhook", run.StepSucceeded)))
			})})
		}, out: "2026-11-21T00:00:00Z waiting for run " + next + "\n2026-11-20T23:59:05Z step call: Succeeded\n2026-11-20T23:55:00Z run " + next + ": Succeeded\n", wrote: signed(annotations.Retry, "maint-run-orders-a", "")},
		{name: "a plan that the agent calls invalid", world: objects(ended("Failed", failed)), notes: saidInvalid("there is no step template hush"), line: "retry orders-a", code: 3, err: "error: plan orders is invalid, so it starts nothing: there is no step template hush; nothing was asked: see 'kubectl maint why orders'\n"},
		{name: "a plan with a fault", world: objects(ended("Failed", failed)), spec: "startDeadline: soon", line: "retry orders-a --dry-run", code: 1, err: "error: plan orders is not valid, so that nothing would run:\nerror: line 1: spec.startDeadline: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d\n"},
		{name: "a paused plan", world: objects(ended("Failed", failed)), notes: []string{annotations.Pause, "true"}, line: "retry orders-a", out: "run/" + next + " requested\n", err: "plan orders is paused until somebody resumes it; the run begins when the pause ends\n", wrote: signed(annotations.Retry, "maint-run-orders-a", "")},
		{name: "a paused plan, for who would wait", world: objects(ended("Failed", failed)), notes: []string{annotations.Pause, "true"}, line: "retry orders-a --wait", code: 3, err: "error: plan orders is paused until somebody resumes it; nothing was asked (without --wait the run begins when the pause ends)\n"},
		{name: "a plan that is frozen", world: objects(ended("Failed", failed)), notes: []string{annotations.ChangeStrategy, "Restrictive"}, line: "retry orders-a", out: "run/" + next + " requested\n", err: "the run waits for its window, which does not open by itself (Restrictive); 'kubectl maint trigger orders --outside-window --reason …' asks for one that does not\n", wrote: signed(annotations.Retry, "maint-run-orders-a", "")},
		{name: "a plan that is frozen, for a reason, without leaving anything", world: objects(ended("Failed", failed)), notes: []string{annotations.ChangeStrategy, "Restrictive"}, line: "retry orders-a --reason CHG-1 --dry-run=server", out: "run/" + next + " requested (server dry run)\n", err: "the run waits for its window, which does not open by itself (Restrictive); 'kubectl maint trigger orders --dry-run=server --outside-window --reason CHG-1' asks for one that does not\n", wrote: signed(annotations.Retry, "maint-run-orders-a", "CHG-1")},
		{name: "a timeout that nothing waits for", line: "retry orders-a --timeout 5s", code: 2, err: "error: --timeout is for --wait\n"},
	})
}

func TestCompletionOffersWhatAVerbCanActOn(t *testing.T) {
	waits := cmdtest.RunObject(cmdtest.RunOf(cmdtest.Asking("ask")), "maint-run-orders-b")
	closed := cmdtest.Policy("closed", "{}")
	cmdtest.Noting(annotations.Pause, "true")(closed)
	world := objects(
		cmdtest.Plan("orders", ""), cmdtest.Plan("paused", "", cmdtest.Noting(annotations.Pause, "true")), cmdtest.Plan("skipping", "", cmdtest.Noting(annotations.Skip, "next")),
		cmdtest.Policy("night", "{}"), closed, live(), waits, endedAs("maint-run-orders-c", "Failed"), endedAs("maint-run-orders-d", "Succeeded"),
		cmdtest.Node("worker-1"), cmdtest.Node("worker-2", cmdtest.Noted(annotations.Pause, "true")),
	)
	const none = ":4\nCompletion ended with directive: ShellCompDirectiveNoFileComp\n"
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"trigger: plans", []string{"trigger", ""}, "orders\npaused\nskipping\n"},
		{"skip: plans", []string{"skip", ""}, "orders\npaused\nskipping\n"},
		{"unskip: plans that skip", []string{"unskip", ""}, "skipping\n"},
		{"pause: plans, policies and nodes that are not paused", []string{"pause", ""}, "night\norders\nskipping\nworker-1\n"},
		{"pause: not what is named already", []string{"pause", "orders", ""}, "night\nskipping\nworker-1\n"},
		{"pause: nodes alone after node/", []string{"pause", "node/"}, "node/worker-1\n"},
		{"trigger: what begins with what was typed", []string{"trigger", "or"}, "orders\n"},
		{"trigger: nothing begins so", []string{"trigger", "x"}, ""},
		{"resume: plans, policies and nodes that are paused, and no run that is neither suspended nor held", []string{"resume", ""}, "closed\npaused\nworker-2\n"},
		{"approve: what asks", []string{"approve", ""}, "maint-run-orders-b/ask\n"},
		{"reject: one at a time", []string{"reject", "maint-run-orders-b/ask", ""}, ""},
		{"abort: runs that live", []string{"abort", ""}, "maint-run-orders-a\nmaint-run-orders-b\n"},
		{"retry: no run of a plan with one that lives", []string{"retry", ""}, ""},
		{"allow: policies and plans", []string{"allow", ""}, "closed\nnight\norders\npaused\nskipping\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, world...)
			got := o.Maint(append([]string{"__complete"}, c.args...)...)
			got.Is(t, cmdtest.Printed{Out: c.want + none[:3], Err: none[3:]})
		})
	}
	const slot = "2026-11-22T01:00:00Z\tSun 2026-11-22 02:00 CET\n"
	nightly := cmdtest.Plan("nightly", "triggers: {schedules: [{cron: '0 2 * * *', timezone: Europe/Berlin}]}", cmdtest.Noting(annotations.Skip, "2026-11-21T01:00:00Z"))
	o := cmdtest.NewCluster(t, cmd.Run, append(world, nightly)...)
	for flags, want := range map[string]string{"skip nightly --slot ": slot, "skip orders --slot ": none[:3]} {
		if got := o.Maint(append(append([]string{"__complete"}, strings.Fields(flags)...), "")...); !strings.HasPrefix(got.Out, want) {
			t.Errorf("%s: %+v", flags, got)
		}
	}
	o.Maint("__complete", "unskip", "nightly", "--slot", "").Is(t, cmdtest.Printed{Out: "2026-11-21T01:00:00Z\tSat 2026-11-21 02:00 CET\n" + none[:3], Err: none[3:]})
	for _, verb := range []string{"approve", "abort", "pause", "trigger"} {
		t.Run(verb+" offers nothing to whoever may not list, and says nothing", func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, world...)
			o.Forbids("list", "configmaps", "")
			o.ForbidsMetadata = true
			o.Maint("__complete", verb, "").Is(t, cmdtest.Printed{Out: none[:3], Err: none[3:]})
		})
	}
}
