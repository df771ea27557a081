package cmd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func askingOf(records ...plan.Record) aRun { return aRunOf(records...) }

func asking(path string) plan.Record { return record(path, plan.TypeApproval, plan.StepRunning) }

// pendingRun waits for approval before it begins.
func pendingRun(edits ...func(*aRun)) aRun {
	r := aRunOf(record("ask", plan.TypeApproval, plan.StepPending))
	r.journal.Phase, r.journal.StartedAt, r.run.Spec.RequiresApproval = plan.RunPending, nil, true
	for _, edit := range edits {
		edit(&r)
	}
	return r
}

func TestWhatAnAnswerIsFor(t *testing.T) {
	answered := asking("done")
	answered.Approval = &plan.Approval{Approved: true}
	two := askingOf(asking("a"), record("g", plan.TypeGroup, plan.StepRunning), asking("g/b"), record("call", "webhook", plan.StepPending), answered)
	ended := askingOf(asking("a"))
	ended.journal.Phase, ended.journal.Message = plan.RunAborted, "aborted by jane"
	twins := askingOf(asking("roll/x/ask"), asking("roll/y/ask"))
	for _, c := range []struct {
		name, step, want, err string
		run                   aRun
		code                  int
	}{
		{name: "a run that waits", run: pendingRun(), want: "maint-run-p-x"},
		{name: "a run that is approved and waits for more", run: pendingRun(func(r *aRun) {
			r.journal.Approved, r.journal.Waiting, r.journal.Message = &plan.Actor{}, plan.WaitWindow, "waits for its window"
		}), code: CodeNotNow, err: "run maint-run-p-x does not wait for approval: it is Pending, waits for its window"},
		{name: "a dry run asks nobody", run: pendingRun(func(r *aRun) { r.run.Request.DryRun = true }), code: CodeNotNow, err: "run maint-run-p-x does not wait for approval: it is Pending"},
		{name: "the only step that asks", run: askingOf(asking("a"), answered), want: "maint-run-p-x/a"},
		{name: "one of two steps", run: two, code: CodeUsage, err: "run maint-run-p-x waits for 2 approvals: name one of maint-run-p-x/a, maint-run-p-x/g/b"},
		{name: "by its path", run: two, step: "g/b", want: "maint-run-p-x/g/b"},
		{name: "by its name", run: two, step: "b", want: "maint-run-p-x/g/b"},
		{name: "by a name that two have", run: twins, step: "ask", code: CodeUsage, err: `run maint-run-p-x has 2 steps "ask": name one of roll/x/ask, roll/y/ask`},
		{name: "a step that asks nobody", run: two, step: "call", code: CodeNotNow, err: "step call of run maint-run-p-x does not wait for approval: it is Pending (type webhook)"},
		{name: "a step that was answered", run: two, step: "done", code: CodeNotNow, err: "step done of run maint-run-p-x does not wait for approval: it is Running (type approval)"},
		{name: "an unknown step", run: askingOf(asking("a")), step: "x", code: CodeError, err: `run maint-run-p-x has no step "x"; it has a`},
		{name: "a run that has ended", run: ended, code: CodeNotNow, err: "run maint-run-p-x does not wait for approval: it is Aborted: aborted by jane"},
		{name: "a run that asks for nothing", run: askingOf(record("call", "webhook", plan.StepSucceeded)), code: CodeNotNow, err: "run maint-run-p-x does not wait for approval: it is Running for 60m0s, 1 of 1 steps done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := answerOptions{cli: &cli{Env: Env{Now: saturday, Name: "kubectl maint"}}, step: c.step}
			got, err := o.asked(c.run)
			text := ""
			if err != nil {
				text = err.Error()
				err = coded(t.Context(), err)
			}
			if diff := cmp.Diff([]any{c.want, c.err, c.code}, []any{got, text, codeOf(err)}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestARunsNameIsTakenApartFromAStepsPath(t *testing.T) {
	o := answerOptions{cli: &cli{}}
	if err := o.Complete(nil, []string{"run/maint-run-p-x/g/b"}); err != nil || o.name != "maint-run-p-x" || o.step != "g/b" {
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
			k := &cluster{kube: fake.NewClientset(cm)}
			err := (&cli{}).askRun(t.Context(), k, pendingRun(), annotations.Approve, "maint-run-p-x", "CHG-1", &dryRun{mode: "none"}, annotations.Reject)
			if text := errText(err); text != c.err || err != nil && codeOf(err) != CodeNotNow {
				t.Fatalf("%d, %q, want %q", codeOf(err), text, c.err)
			}
			got, err := k.maps("shop").Get(t.Context(), "p", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if wrote := got.Annotations[annotations.Reason(annotations.Approve)] == "CHG-1"; wrote != (c.err == "") {
				t.Errorf("it stands there: %v", got.Annotations)
			}
		})
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
