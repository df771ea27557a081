package ask

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestWhatAnAnswerIsFor(t *testing.T) {
	answered := cmdtest.Asking("done")
	answered.Approval = &run.Approval{Approved: true}
	two := cmdtest.AskingOf(cmdtest.Asking("a"), cmdtest.Record("g", plan.TypeGroup, run.StepRunning), cmdtest.Asking("g/b"), cmdtest.Record("call", "webhook", run.StepPending), answered)
	ended := cmdtest.AskingOf(cmdtest.Asking("a"))
	ended.Journal.Phase, ended.Journal.Message = run.Aborted, "aborted by jane"
	twins := cmdtest.AskingOf(cmdtest.Asking("roll/x/ask"), cmdtest.Asking("roll/y/ask"))
	for _, c := range []struct {
		name, step, want, err string
		run                   view.Run
		code                  int
	}{
		{name: "a run that waits", run: cmdtest.PendingRun(), want: "maint-run-p-x"},
		{name: "a run that is approved and waits for more", run: cmdtest.PendingRun(func(r *view.Run) {
			r.Journal.Approved, r.Journal.Waiting, r.Journal.Message = &intent.Actor{}, run.WaitWindow, "waits for its window"
		}), code: exit.CodeNotNow, err: "run maint-run-p-x does not wait for approval: it is Pending, waits for its window"},
		{name: "a dry run asks nobody", run: cmdtest.PendingRun(func(r *view.Run) { r.Run.Request.DryRun = true }), code: exit.CodeNotNow, err: "run maint-run-p-x does not wait for approval: it is Pending (dry run)"},
		{name: "the only step that asks", run: cmdtest.AskingOf(cmdtest.Asking("a"), answered), want: "maint-run-p-x/a"},
		{name: "one of two steps", run: two, code: exit.CodeUsage, err: "run maint-run-p-x waits for 2 approvals: name one of maint-run-p-x/a, maint-run-p-x/g/b"},
		{name: "by its path", run: two, step: "g/b", want: "maint-run-p-x/g/b"},
		{name: "by its name", run: two, step: "b", want: "maint-run-p-x/g/b"},
		{name: "by a name that two have", run: twins, step: "ask", code: exit.CodeUsage, err: `run maint-run-p-x has 2 steps "ask": name one of roll/x/ask, roll/y/ask`},
		{name: "a step that asks nobody", run: two, step: "call", code: exit.CodeNotNow, err: "step call of run maint-run-p-x does not wait for approval: it is Pending (type webhook)"},
		{name: "a step that was answered", run: two, step: "done", code: exit.CodeNotNow, err: "step done of run maint-run-p-x does not wait for approval: it is Running (type approval)"},
		{name: "an unknown step", run: cmdtest.AskingOf(cmdtest.Asking("a")), step: "x", code: exit.CodeError, err: `run maint-run-p-x has no step "x"; it has a`},
		{name: "a run that has ended", run: ended, code: exit.CodeNotNow, err: "run maint-run-p-x does not wait for approval: it is Aborted: aborted by jane"},
		{name: "a run that asks for nothing", run: cmdtest.AskingOf(cmdtest.Record("call", "webhook", run.StepSucceeded)), code: exit.CodeNotNow, err: "run maint-run-p-x does not wait for approval: it is Running for 1h0m, 1 of 1 steps done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := answerOptions{Factory: &factory.Factory{Env: factory.Env{Now: cmdtest.Now, Name: "kubectl maint"}}, step: c.step}
			got, err := o.asked(c.run)
			text := ""
			if err != nil {
				text = err.Error()
				err = exit.Coded(t.Context(), err)
			}
			if diff := cmp.Diff([]any{c.want, c.err, c.code}, []any{got, text, exit.CodeOf(err)}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestARunsNameIsTakenApartFromAStepsPath(t *testing.T) {
	o := answerOptions{Factory: &factory.Factory{}}
	if err := o.Complete(nil, []string{"run/maint-run-p-x/g/b"}); err != nil || o.name != "run/maint-run-p-x" || o.step != "g/b" {
		t.Errorf("%q, %q, %v", o.name, o.step, err)
	}
}

// Two answers to one run contradict each other: a person has to say which counts.
func TestAnAnswerIsNotGivenBesideItsOpposite(t *testing.T) {
	for _, c := range []struct {
		name, have, value, err string
	}{
		{name: "nothing stands"},
		{name: "the same answer", have: annotations.Approve, value: "maint-run-p-x"},
		{name: "the opposite", have: annotations.Reject, value: "maint-run-p-x", err: "plan p still has maint.dev/reject: maint-run-p-x by joe, which the agent has not handled: try again in a moment, or remove that annotation"},
		{name: "the opposite, of a step", have: annotations.Reject, value: "maint-run-p-x/ask", err: "plan p still has maint.dev/reject: maint-run-p-x/ask by joe, which the agent has not handled: try again in a moment, or remove that annotation"},
		{name: "the opposite, of another run", have: annotations.Reject, value: "maint-run-p-xy"},
		{name: "the same, of another run", have: annotations.Approve, value: "maint-run-p-y", err: "plan p still has maint.dev/approve: maint-run-p-y by joe, which the agent has not handled: try again in a moment, or remove that annotation"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", Annotations: map[string]string{}}}
			if c.have != "" {
				cm.Annotations[c.have], cm.Annotations[annotations.Actor(c.have)] = c.value, "joe"
			}
			k := &factory.Cluster{Kube: fake.NewClientset(cm)}
			err := askRun(t.Context(), (&factory.Factory{}), k, cmdtest.PendingRun(), annotations.Approve, "maint-run-p-x", "CHG-1", &factory.DryRun{Mode: "none"}, annotations.Reject)
			if text := cmdtest.ErrText(err); text != c.err || err != nil && exit.CodeOf(err) != exit.CodeNotNow {
				t.Fatalf("%d, %q, want %q", exit.CodeOf(err), text, c.err)
			}
			got, err := k.ConfigMaps("shop").Get(t.Context(), "p", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if wrote := got.Annotations[annotations.Reason(annotations.Approve)] == "CHG-1"; wrote != (c.err == "") {
				t.Errorf("it stands there: %v", got.Annotations)
			}
		})
	}
}
