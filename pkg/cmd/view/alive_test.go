package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// What an agent that loses its rights leaves behind is named; what has ended, or is in the namespace that it keeps,
// is not.
func TestWhatIsAlive(t *testing.T) {
	one := func(namespace, name string, phase run.Phase, dry bool) Run {
		return Run{Run: run.Run{Namespace: namespace, Name: name, Request: run.Request{DryRun: dry}}, Journal: run.Journal{Phase: phase}}
	}
	sleeper := func(namespace, phase string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "nights", Annotations: map[string]string{annotations.StatusPhase: phase}}}
	}
	runs := []Run{one("ops", "a", run.Running, false), one("team", "b", run.Running, false), one("ops", "c", run.Succeeded, false), one("ops", "d", run.Running, true)}
	sleepers := []*corev1.ConfigMap{sleeper("dev", "Hibernated"), sleeper("dev", "Running"), sleeper("team", "WakingUp")}
	given := func(name string, by ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if by != nil {
			n.Annotations = map[string]string{annotations.StatusCordoned: nodes.Cordon{By: by}.String()}
		}
		return n
	}
	list := []*corev1.Node{given("a", "gpu", nodes.PlanClaimant("shop", "roll")), given("b"), given("c", nodes.PlanElsewhere("shop", "roll", "u"))}
	names, on, requestor := RequestsAlive(append(list, given("d", "net")))
	if diff := cmp.Diff([]string{"the request of gpu for node a", "the request of net for node d", "a", "gpu"}, append(names, on, requestor)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"run ops/a", "the sleep of HibernatePlan dev/nights"}, AliveBeside(runs, sleepers, "team")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
