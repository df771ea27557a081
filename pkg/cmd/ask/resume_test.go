package ask_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// What a run left is acknowledged by its name also when its object is gone.
func TestResumeAcknowledgesForARunThatIsGone(t *testing.T) {
	const said = "run/maint-run-orders-x: what it did not put back or clean up is acknowledged; it stays as it is\n"
	intent := map[string]string{annotations.Resume: "maint-run-orders-x", annotations.Actor(annotations.Resume): "Jane@example.com", annotations.Reason(annotations.Resume): "known"}
	for _, c := range []struct {
		name, arg, err string
		flags          []string
		said           string
		want           map[string]string
	}{
		{name: "its name", arg: "maint-run-orders-x", said: said, want: intent},
		{name: "without the first letters", arg: "orders-x", said: said, want: intent},
		{name: "with its kind", arg: "run/maint-run-orders-x", said: said, want: intent},
		{name: "a trial", arg: "orders-x", flags: []string{"--dry-run"}, said: strings.Replace(said, ";", " (dry run);", 1)},
		{name: "a run that left nothing", arg: "maint-run-orders-y", err: `there is no plan or policy or run "maint-run-orders-y"`},
		{name: "a plan of that name", arg: "plan/maint-run-orders-x", err: `there is no plan "maint-run-orders-x"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, append(cmdtest.Leaving(t), cmdtest.Agent())...)
			got := o.Maint(append([]string{"resume", c.arg, "--reason", "known"}, c.flags...)...)
			if !strings.Contains(got.Err, c.err) || got.Out != c.said || (got.Code == 0) != (c.err == "") {
				t.Errorf("%+v", got)
			}
			cm, err := o.Kube.CoreV1().ConfigMaps("shop").Get(t.Context(), "orders", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, cm.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

// A step of a run that is gone is named as one of a run that is kept, while its plan's ledger has what it left.
func TestResumeAcknowledgesAStepOfARunThatIsGone(t *testing.T) {
	left := func(step string) ledger.Leftover {
		return ledger.Leftover{Run: "maint-run-orders-x", Step: step, Message: "no"}
	}
	kept, err := annotations.LedgerObject("shop", "orders", ledger.Ledger{PlanUID: "u-orders", Left: []ledger.Leftover{left("down"), left("all/quiet")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ arg, err, out, wrote string }{
		{arg: "maint-run-orders-x/down", out: "run/maint-run-orders-x/down: what it did not put back or clean up is acknowledged; it stays as it is\n", wrote: "maint-run-orders-x/down"},
		{arg: "orders-x/quiet", out: "run/maint-run-orders-x/all/quiet: what it did not put back or clean up is acknowledged; it stays as it is\n", wrote: "maint-run-orders-x/all/quiet"},
		{arg: "orders-x/up", err: "error: run maint-run-orders-x has no step \"up\"; it has down, all/quiet, of what it did not put back or clean up\n"},
	} {
		o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Plan("orders", ""), kept)
		got := o.Maint("resume", c.arg)
		if got.Out != c.out || got.Err != c.err || (got.Code == 0) != (c.err == "") || o.Notes("orders")[annotations.Resume] != c.wrote {
			t.Errorf("%s: %+v", c.arg, got)
		}
	}
}

// One resume accepts a change and ends a suspend: whoever gives it is told of both.
func TestResumeOfARun(t *testing.T) {
	drifts := func(rec *run.Record) {
		rec.Drift = &run.Drift{Object: "Deployment/web", Field: "spec.replicas", Want: "1", Value: "2", Manager: "kubectl", SeenAt: cmdtest.Now()}
	}
	ends := func(rec *run.Record) { rec.ResumeAt = cmdtest.After(29 * time.Minute) }
	down, hold := cmdtest.Record("down", "scale", run.StepSucceeded, drifts), cmdtest.Record("hold", "suspend", run.StepRunning)
	timed := cmdtest.Record("hold", "suspend", run.StepRunning, ends)
	const accepts = "it goes on although after step down kubectl changed spec.replicas of Deployment/web from 1 to 2 at 2026-11-21T00:00:00Z\n"
	const said = "run/maint-run-orders-a resumed\n"
	wrote := signed(annotations.Resume, "maint-run-orders-a", "")
	runRows(t, []row{
		{name: "a suspend", world: objects(live(timed)), line: "resume orders-a", out: said, wrote: wrote},
		{name: "a drift", world: objects(live(down)), line: "resume orders-a", out: said, err: accepts, wrote: wrote},
		{name: "both", world: objects(live(down, timed)), line: "resume orders-a", out: said, err: accepts + "and ends step hold, 29m0s before its time\n", wrote: wrote},
		{name: "both, the suspend without an end", world: objects(live(down, hold)), line: "resume orders-a", out: said, err: accepts + "and ends step hold\n", wrote: wrote},
		{name: "both, as a trial", world: objects(live(down, timed)), line: "resume orders-a --dry-run", out: "run/maint-run-orders-a resumed (dry run)\n", err: accepts + "and ends step hold, 29m0s before its time\n"},
		{name: "two suspends beside each other", world: objects(live(down, timed, cmdtest.Record("also", "suspend", run.StepRunning))), line: "resume orders-a", out: said, err: accepts + "and ends step hold, 29m0s before its time, and step also\n", wrote: wrote},
		{
			name: "to the end of the run", world: objects(live(timed)), line: "resume orders-a --wait",
			before: becoming(map[string]*corev1.ConfigMap{"run maint-run-orders-a: Running": ended("Failed", cmdtest.Record("hold", "suspend", run.StepFailed, cmdtest.Message("late")))}),
			code:   4, err: said + "error: run maint-run-orders-a ended Failed\n", wrote: wrote,
			out: "2026-11-20T23:00:00Z run maint-run-orders-a: Running\n2026-11-20T23:59:00Z step hold: Running\n2026-11-20T23:59:05Z step hold: Failed: late\n2026-11-20T23:55:00Z run maint-run-orders-a: Failed\n",
		},
		{
			name: "a step that is rejected, to the end that this means", world: objects(live(cmdtest.Asking("ask"))), line: "reject orders-a --wait",
			before: becoming(map[string]*corev1.ConfigMap{"run maint-run-orders-a: Running": ended("Failed", cmdtest.Record("ask", "approval", run.StepFailed, cmdtest.Message("rejected"), func(rec *run.Record) { rec.Approval = &run.Approval{} }))}),
			err:    "run/maint-run-orders-a/ask rejected\n", wrote: signed(annotations.Reject, "maint-run-orders-a/ask", ""),
			out: "2026-11-20T23:00:00Z run maint-run-orders-a: Running\n2026-11-20T23:59:00Z step ask: Running\n2026-11-20T23:59:05Z step ask: Failed: rejected\n2026-11-20T23:55:00Z run maint-run-orders-a: Failed\n",
		},
		{
			name: "a step that somebody else had approved", world: objects(live(cmdtest.Asking("ask"))), line: "reject orders-a --wait",
			before: becoming(map[string]*corev1.ConfigMap{"run maint-run-orders-a: Running": ended("Failed", cmdtest.Record("ask", "approval", run.StepSucceeded, func(rec *run.Record) { rec.Approval = &run.Approval{Approved: true} }))}),
			code:   4, err: "run/maint-run-orders-a/ask rejected\nerror: run maint-run-orders-a ended Failed\n", wrote: signed(annotations.Reject, "maint-run-orders-a/ask", ""),
			out: "2026-11-20T23:00:00Z run maint-run-orders-a: Running\n2026-11-20T23:59:00Z step ask: Running\n2026-11-20T23:59:05Z step ask: Succeeded\n2026-11-20T23:55:00Z run maint-run-orders-a: Failed\n",
		},
		{name: "no agent", world: objects(live(timed), noAgent()), line: "resume orders-a", code: 5, err: missing},
		{name: "no agent, as a trial on the server", world: objects(live(timed), noAgent()), line: "resume orders-a --dry-run=server", code: 5, err: missing},
		{name: "no agent, as a trial", world: objects(live(timed), noAgent()), line: "resume orders-a --dry-run", out: "run/maint-run-orders-a resumed (dry run)\n"},
		{name: "no agent that would take note of what a run left", world: objects(ended("Failed", cmdtest.Record("down", "scale", "Succeeded", left)), noAgent()), line: "resume orders-a", code: 5, err: missing},
		{name: "the suspend of one step", world: objects(live(timed)), line: "resume orders-a/hold", out: "run/maint-run-orders-a/hold resumed\n", wrote: signed(annotations.Resume, "maint-run-orders-a/hold", "")},
		{name: "of one step, with its kind", world: objects(live(timed)), line: "resume run/maint-run-orders-a/hold", out: "run/maint-run-orders-a/hold resumed\n", wrote: signed(annotations.Resume, "maint-run-orders-a/hold", "")},
		{name: "the drift after one step, beside a suspend", world: objects(live(down, timed)), line: "resume orders-a/down", out: "run/maint-run-orders-a/down resumed\n", err: accepts, wrote: signed(annotations.Resume, "maint-run-orders-a/down", "")},
		{name: "a step that is not suspended", world: objects(live(cmdtest.Record("call", "webhook", run.StepRunning), timed)), line: "resume orders-a/call", code: 3, err: "error: step call of run maint-run-orders-a is not suspended now: it is Running (type webhook)\n"},
		{name: "a step that there is not", world: objects(live(timed)), line: "resume orders-a/gone", code: 1, err: "error: run maint-run-orders-a has no step \"gone\"; it has hold\n"},
		{name: "a step of a run that there is not", world: objects(live(timed)), line: "resume maint-run-orders-x/hold", code: 1, err: "error: there is no run or plan \"maint-run-orders-x\" in namespace shop; did you mean \"maint-run-orders-a\"?\n"},
		{name: "a kind that there is not", world: objects(live(timed)), line: "resume deployment/hold", code: 2, err: "error: deployment/hold: there is no kind \"deployment\" here. If deployment is a namespace, write: hold -n deployment. A document or node is written NAME, plan/NAME, policy/NAME, run/NAME or node/NAME. Other kinds are for 'allow' and 'freeze' alone, whose --end ends what they wrote\n"},
		{name: "a plan that is not paused, whose run is suspended", world: objects(live(timed)), line: "resume orders", code: 3, err: "error: plan/orders was not paused; its run maint-run-orders-a is suspended in step hold: run 'kubectl maint resume maint-run-orders-a'\n"},
		{name: "a plan that is not paused, whose run is held", world: objects(live(down)), line: "resume orders", code: 3, err: "error: plan/orders was not paused; its run maint-run-orders-a is held by what somebody changed after step down: run 'kubectl maint resume maint-run-orders-a'\n"},
		{name: "a plan that is not paused, whose run is resumed already", notes: []string{annotations.Resume, "maint-run-orders-a"}, world: objects(live(timed)), line: "resume orders", out: "plan/orders was not paused\n"},
		{name: "a plan that is not paused, whose run goes on", world: objects(live(cmdtest.Record("call", "webhook", run.StepRunning))), line: "resume orders", out: "plan/orders was not paused\n"},
		{name: "a plan that is paused, whose run is suspended", notes: []string{annotations.Pause, "true"}, world: objects(live(timed)), line: "resume orders", out: "plan/orders resumed\n", err: "but its run maint-run-orders-a is suspended in step hold: run 'kubectl maint resume maint-run-orders-a'\n", wrote: map[string]string{annotations.Pause: ""}},
		{name: "one that is approved, which no agent has taken up", notes: []string{annotations.Approve, "maint-run-orders-a"}, world: objects(cmdtest.RunObject(cmdtest.PendingRun(func(r *view.Run) {
			r.Journal.Waiting, r.Journal.Message = run.WaitApproval, "waits for approval: 'kubectl maint -n shop approve maint-run-orders-a'"
		}), "maint-run-orders-a"), noAgent()), line: "resume orders-a", code: 3, err: "error: run maint-run-orders-a is not suspended now: Pending, approved; no agent has taken that up yet\n"},
		{name: "neither", world: objects(live(cmdtest.Record("call", "webhook", run.StepRunning))), line: "resume orders-a", code: 3, err: "error: run maint-run-orders-a is not suspended now: Running for 1h0m, 0 of 1 steps done\n"},
	})
}

// A pause that the agent may never have seen is ended and stays noted: else what fell
// due in it would be made up for.
func TestResumeLeavesTheEndOfAPauseThatTheAgentMayNotHaveSeen(t *testing.T) {
	const over = "2026-11-21T00:00:00Z"
	stale := cmdtest.Agent()
	stale.Data["heartbeat"] = cmdtest.Now().Add(-time.Hour).Format(time.RFC3339)
	saying := "the agent may not have seen this pause: it is kept as a pause that ended at " + instant.Both(cmdtest.Now(), "Europe/Berlin")
	for name, c := range map[string]struct {
		agent           *corev1.ConfigMap
		denied          bool
		was, phase      string
		want, said, err string
	}{
		"the agent runs":                                {agent: cmdtest.Agent(), was: "true", said: "plan/orders resumed\n"},
		"it is away":                                    {agent: stale, was: "true", want: over, said: "plan/orders resumed\n", err: saying},
		"there is none":                                 {was: "true", want: over, said: "plan/orders resumed\n", err: saying},
		"it is away, and the pause had an end":          {agent: stale, was: "2026-12-01T00:00:00Z", want: over, said: "plan/orders resumed\n", err: saying},
		"it is away, and the pause was over":            {agent: stale, was: "2026-11-20T12:00:00Z", want: "2026-11-20T12:00:00Z", said: "plan/orders resumed\n"},
		"it is away, and nothing was paused":            {agent: stale, was: "false", said: "plan/orders was not paused\n"},
		"nobody may look, and the status says paused":   {denied: true, was: "true", phase: "Paused", said: "plan/orders resumed\n"},
		"nobody may look, and the status says no pause": {denied: true, was: "true", phase: "Idle", want: over, said: "plan/orders resumed\n", err: saying},
	} {
		t.Run(name, func(t *testing.T) {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "orders", UID: "u", ResourceVersion: "1", Labels: map[string]string{annotations.LabelKind: annotations.KindPlan},
				Annotations: map[string]string{annotations.Pause: c.was, annotations.Actor(annotations.Pause): "joe"},
			}}
			if c.phase != "" {
				cm.Annotations[annotations.StatusPhase] = c.phase
			}
			objects := []runtime.Object{cm}
			if c.agent != nil {
				objects = append(objects, c.agent.DeepCopy())
			}
			o := cmdtest.NewCluster(t, cmd.Run, objects...)
			if c.denied {
				o.Kube.PrependReactor("get", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
					if a.GetNamespace() != annotations.DefaultNamespace {
						return false, nil, nil
					}
					return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "", nil)
				})
			}
			got := o.Maint("resume", "orders")
			if got.Code != 0 || got.Out != c.said || !strings.HasPrefix(got.Err, c.err) || c.err == "" && got.Err != "" {
				t.Errorf("%+v", got)
			}
			left, err := o.Kube.CoreV1().ConfigMaps("shop").Get(t.Context(), "orders", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			_, by := left.Annotations[annotations.Actor(annotations.Pause)]
			if pause := left.Annotations[annotations.Pause]; pause != c.want || by != (c.was == c.want) {
				t.Errorf("its annotations are %v", left.Annotations)
			}
			if why := left.Annotations[annotations.Reason(annotations.Pause)]; (why == "paused by joe (unverified), and resumed since") != (c.want == over) {
				t.Errorf("what is kept of the pause is %q", why)
			}
		})
	}
}

func TestResumeOfANamespaceLeavesTheEndOfAPauseThatTheAgentMayNotHaveSeen(t *testing.T) {
	for name, c := range map[string]struct {
		agent []runtime.Object
		want  string
	}{
		"the agent runs": {agent: []runtime.Object{cmdtest.Agent()}},
		"there is none":  {want: "2026-11-21T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "s", Annotations: map[string]string{annotations.Pause: "true"}}}
			o := cmdtest.NewCluster(t, cmd.Run, append(c.agent, ns)...)
			o.Maint("resume", "--all")
			left, err := o.Kube.CoreV1().Namespaces().Get(t.Context(), "shop", metav1.GetOptions{})
			if err != nil || left.Annotations[annotations.Pause] != c.want {
				t.Errorf("%v %v", left.Annotations, err)
			}
		})
	}
}
