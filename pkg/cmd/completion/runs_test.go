package completion_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// endedAs is a run that ended in a phase, made so many hours ago.
func endedAs(name string, phase run.Phase, hours int, edits ...func(*view.Run)) *corev1.ConfigMap {
	r := cmdtest.RunOf(cmdtest.Record("call", "webhook", run.StepFailed))
	r.Journal.Phase, r.Journal.FinishedAt = phase, cmdtest.Before(time.Minute)
	for _, edit := range edits {
		edit(&r)
	}
	cm := cmdtest.RunObject(r, name)
	cm.CreationTimestamp = metav1.NewTime(*cmdtest.Before(time.Duration(hours) * time.Hour))
	return cm
}

func offered(t *testing.T, of func(*factory.Factory) completion.Func, word string, world ...runtime.Object) []string {
	t.Helper()
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	got, _ := of(factory.NewFor(env(), cmdtest.NewCluster(t, nil, world...).Connected()))(cmd, nil, word)
	return got
}

func TestRunsThatCanBeRetriedAreOffered(t *testing.T) {
	last := func(name string) func(*corev1.ConfigMap) { return cmdtest.Noting(annotations.StatusLastRunName, name) }
	dry := func(r *view.Run) { r.Run.Request.DryRun = true }
	older, newer := endedAs("maint-run-orders-a", run.Failed, 2), endedAs("maint-run-orders-b", run.Failed, 1)
	for _, c := range []struct {
		name, word string
		world      []runtime.Object
		want       []string
	}{
		{"the newest alone", "", []runtime.Object{cmdtest.Plan("orders", ""), older, newer}, []string{"maint-run-orders-b"}},
		{"with its kind before it", "run/", []runtime.Object{cmdtest.Plan("orders", ""), older, newer}, []string{"run/maint-run-orders-b"}},
		{"not after another kind", "plan/", []runtime.Object{cmdtest.Plan("orders", ""), older, newer}, nil},
		{"the newest as the plan says it: the newer one never started", "", []runtime.Object{cmdtest.Plan("orders", "", last("maint-run-orders-a")), older, newer}, []string{"maint-run-orders-a"}},
		{"the one before a dry run", "", []runtime.Object{cmdtest.Plan("orders", ""), older, endedAs("maint-run-orders-c", run.Failed, 0, dry)}, []string{"maint-run-orders-a"}},
		{"none after one that succeeded", "", []runtime.Object{cmdtest.Plan("orders", ""), older, endedAs("maint-run-orders-c", run.Succeeded, 0)}, nil},
		{"one that was aborted", "", []runtime.Object{cmdtest.Plan("orders", ""), endedAs("maint-run-orders-c", run.Aborted, 0)}, []string{"maint-run-orders-c"}},
		{"none beside one that lives", "", []runtime.Object{cmdtest.Plan("orders", ""), newer, cmdtest.RunObject(cmdtest.PendingRun(), "maint-run-orders-c")}, nil},
		{"none of a plan that is gone", "", []runtime.Object{newer}, nil},
		{"none that is no longer kept", "", []runtime.Object{cmdtest.Plan("orders", "", last("maint-run-orders-z")), newer}, nil},
	} {
		if diff := cmp.Diff(c.want, offered(t, completion.Retryable, c.word, c.world...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestRunsThatAResumeDoesSomethingForAreOffered(t *testing.T) {
	drifted := func(rec *run.Record) { rec.Drift = &run.Drift{Field: "spec.replicas"} }
	left := `[{"type":"Restored","status":"False","reason":"NotPutBack","message":"run maint-run-orders-l did not put back step s: gone; restore it by hand, or acknowledge it: 'kubectl maint -n shop resume maint-run-orders-l'"}]`
	resumable := func(f *factory.Factory) completion.Func {
		return completion.Resumable(f, func(m metav1.ObjectMeta) bool { return m.Annotations[annotations.Pause] != "" })
	}
	paused := cmdtest.Noting(annotations.Pause, "true")
	night := cmdtest.Policy("night", "{}")
	paused(night)
	both := []runtime.Object{
		cmdtest.Plan("orders", "", paused), cmdtest.Plan("reports", ""), night,
		cmdtest.RunObject(cmdtest.RunOf(cmdtest.Record("hold", "suspend", run.StepRunning)), "maint-run-orders-a"),
	}
	for _, c := range []struct {
		name, word string
		world      []runtime.Object
		want       []string
	}{
		{"what is paused, and a run", "", both, []string{"night", "orders", "maint-run-orders-a"}},
		{"of one kind", "plan/", both, []string{"plan/orders"}},
		{"runs alone", "run/", both, []string{"run/maint-run-orders-a"}},
		{"plans of both kinds", "plan/", append(slices.Clone(both), cmdtest.Sleeper("nights", "schedule: {offHours: [{start: '20:00', end: '06:00'}]}", cmdtest.Noting(annotations.Pause, "true"))), []string{"plan/nights", "plan/orders"}},
		{"documents of any kind", "cm/", both, []string{"cm/night", "cm/orders", "cm/maint-run-orders-a"}},
		{"one at work", "", []runtime.Object{cmdtest.RunObject(cmdtest.RunOf(cmdtest.Record("call", "webhook", run.StepRunning)), "maint-run-orders-a")}, nil},
		{"one that is suspended", "", []runtime.Object{cmdtest.RunObject(cmdtest.RunOf(cmdtest.Record("hold", "suspend", run.StepRunning)), "maint-run-orders-a")}, []string{"maint-run-orders-a"}},
		{"one that is held by drift", "", []runtime.Object{cmdtest.RunObject(cmdtest.RunOf(cmdtest.Record("patch", "patch-object", run.StepSucceeded, drifted), cmdtest.Record("call", "webhook", run.StepPending)), "maint-run-orders-a")}, []string{"maint-run-orders-a"}},
		{"one that ended", "", []runtime.Object{cmdtest.Plan("orders", ""), endedAs("maint-run-orders-a", run.Failed, 1)}, nil},
		{"one that left something, by the word of its plan", "", []runtime.Object{cmdtest.Plan("orders", "", cmdtest.Noting(annotations.StatusConditions, left))}, []string{"maint-run-orders-l"}},
		{"a plan that left nothing", "", []runtime.Object{cmdtest.Plan("orders", "", cmdtest.Noting(annotations.StatusConditions, `[{"type":"Ready","status":"True","message":"it is ready to resume x'"}]`))}, nil},
	} {
		if diff := cmp.Diff(c.want, offered(t, resumable, c.word, c.world...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
