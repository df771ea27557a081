package cmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// leaving is plan orders of uid "u" and its ledger, which names what run
// maint-run-orders-x did not put back.
func leaving(t *testing.T) []runtime.Object {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "orders", UID: "u", ResourceVersion: "1", Labels: map[string]string{annotations.LabelKind: annotations.KindPlan},
	}}
	ledger, err := annotations.LedgerObject("shop", "orders", plan.Ledger{PlanUID: "u", Left: []plan.Leftover{{Run: "maint-run-orders-x", Message: "no"}}})
	if err != nil {
		t.Fatal(err)
	}
	other, err := annotations.LedgerObject("shop", "other", plan.Ledger{PlanUID: "o"})
	if err != nil {
		t.Fatal(err)
	}
	return []runtime.Object{cm, ledger, other}
}

// What a run left is acknowledged by its name also when its object is gone.
func TestResumeAcknowledgesForARunThatIsGone(t *testing.T) {
	const said = "run/maint-run-orders-x: what it did not put back is acknowledged; it stays as it is\n"
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
		{name: "a plan of that name", arg: "plan/maint-run-orders-x", err: `there is no plan or policy or run "maint-run-orders-x"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOnline(t, Run, leaving(t)...)
			got := o.maint(append([]string{"resume", c.arg, "--reason", "known"}, c.flags...)...)
			if !strings.Contains(got.err, c.err) || got.out != c.said || (got.code == 0) != (c.err == "") {
				t.Errorf("%+v", got)
			}
			cm, err := o.kube.CoreV1().ConfigMaps("shop").Get(t.Context(), "orders", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, cm.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

// Who may not list is told so, and what is not known is not denied.
func TestResumeSaysThatItMayNotLookForARunThatIsGone(t *testing.T) {
	o := newOnline(t, nil, leaving(t)...)
	o.kube.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "", nil)
	})
	c := newCLI(Env{Now: saturday})
	_, err := (&resumeOptions{cli: c}).find(t.Context(), &cluster{kube: o.kube, namespace: "shop"}, "orders-x")
	if text := errText(err); !strings.Contains(text, "there is no plan or policy or run") || !strings.Contains(text, "look for run orders-x in the plans' ledgers") {
		t.Error(text)
	}
}
