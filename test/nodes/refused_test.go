package nodes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// barePod runs a pod on a node that no controller would bring back. It goes with the
// test, for the next one may drain the node.
func (l *lab) barePod(node, name string, marks map[string]string) {
	l.Helper()
	_, err := l.admin.CoreV1().Pods(l.ns).Create(l.ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: marks},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "example.org/none"}}},
	}, metav1.CreateOptions{})
	l.must(err)
	l.Cleanup(func() {
		if err := l.admin.CoreV1().Pods(l.ns).Delete(l.ctx, name, deleteNow()); !apierrors.IsNotFound(err) {
			l.must(err)
		}
		l.eventually("pod "+name+" is gone", func() (bool, string) {
			return !slices.Contains(l.podsOn(node), name), ""
		})
	})
}

// refused waits until a request says that a pod on its node may not leave.
func (l *lab) refused(node, requestor string, phase nodes.Phase, pod string) nodes.Status {
	l.Helper()
	var got nodes.Status
	l.eventually("pod "+pod+" blocks "+requestor, func() (bool, string) {
		got, _ = l.status(node, requestor)
		return got.Phase == phase && got.Blocked != nil && got.Blocked.Permanent && strings.Contains(got.Blocked.Text, l.ns+"/"+pod), got.String()
	})
	return got
}

// What force deletes past its budget is not what the drain may not evict at all.
func TestForceNeitherDeletesNorLeavesAPodThatIsRefused(t *testing.T) {
	l := newLab(t, unlimited)
	l.barePod("node-3", "odd", map[string]string{annotations.DrainOrder: "abc"})
	l.request("node-3", "os", `{"drain":{"force":true,"timeout":"1s","onTimeout":"force"}}`)
	if s := l.refused("node-3", "os", nodes.Pending, "odd"); !strings.Contains(s.Blocked.Text, `maint.dev/drain-order is "abc"; write a whole number`) {
		t.Errorf("it says %s", s)
	}
	l.schedulable("node-3", true)
	if got := l.why("node-3"); !strings.Contains(got, "--on-timeout skip") || strings.Contains(got, "or force") {
		t.Errorf("why says\n%s", got)
	}

	// A pod that comes after the cordon: its drain has begun.
	l.label("node-4", "pool", "four")
	l.deployment("late", 1, only("four"))
	l.deployment("web", 1, only("four"))
	l.request("node-4", "os", `{"waitFor":{"podSelector":"app=late"},"drain":{"timeout":"1s","onTimeout":"force"}}`)
	l.phase("node-4", "os", nodes.WaitingForPods)
	l.barePod("node-4", "bare", nil)
	l.must(l.admin.AppsV1().Deployments(l.ns).Delete(l.ctx, "late", deleteNow()))
	l.refused("node-4", "os", nodes.Draining, "bare")
	l.eventually("its time is long over", func() (bool, string) {
		s, _ := l.status("node-4", "os")
		return s.Phase != nodes.Draining || time.Since(s.Since) > 4*time.Second, s.String()
	})
	l.refused("node-4", "os", nodes.Draining, "bare")
	if there := l.podsOn("node-4"); len(there) != 2 || !slices.Contains(there, "bare") {
		t.Errorf("pods on node-4: %v", there)
	}
	got := slices.DeleteFunc(l.events(metav1.NamespaceDefault, "node-4", nodes.EventBlocked), func(e string) bool { return !strings.Contains(e, l.ns+"/") }) // the node is not this story's alone
	if len(got) != 1 || !strings.Contains(got[0], l.ns+"/bare") {
		t.Errorf("events %q", got)
	}

	// What helps: skip, which names what it leaves, or to let the pod go.
	l.request("node-4", "os", `{"drain":{"timeout":"1m","onTimeout":"skip"}}`)
	if s := l.phase("node-4", "os", nodes.Ready); !strings.Contains(s.Reason, l.ns+"/bare") {
		t.Errorf("it does not name what it left: %s", s)
	}
	if there := l.podsOn("node-4"); !slices.Equal(there, []string{"bare"}) {
		t.Errorf("pods on node-4: %v", there)
	}
	l.must(l.admin.CoreV1().Pods(l.ns).Delete(l.ctx, "odd", deleteNow()))
	l.request("node-3", "os", `{"drain":{"force":true,"timeout":"2s","onTimeout":"force"}}`)
	l.phase("node-3", "os", nodes.Ready)
}

func TestAPlanThatForcesWaitsForAPodThatIsRefused(t *testing.T) {
	l := newLab(t, unlimited)
	l.roller()
	role, err := l.admin.RbacV1().ClusterRoles().Get(l.ctx, "roller-"+l.ns, metav1.GetOptions{})
	l.must(err)
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete"}})
	_, err = l.admin.RbacV1().ClusterRoles().Update(l.ctx, role, metav1.UpdateOptions{})
	l.must(err)
	drains := func(name, node string) {
		text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: drain, type: drain, properties: {node: " + node + ", timeout: 2s, onTimeout: force}}\n  - {name: uncordon, type: uncordon, properties: {node: " + node + "}}\n"
		_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewPlan(l.ns, name, text, ""), metav1.CreateOptions{})
		l.must(err)
		l.trigger(name, "one")
	}
	l.barePod("node-5", "bare", nil)
	drains("refused", "node-5")
	l.eventually("the step says which pod is in its way", func() (bool, string) {
		all := l.journals("refused")
		if len(all) == 0 || all[0].Record("drain") == nil {
			return false, "no run"
		}
		rec := all[0].Record("drain")
		return rec.Phase == run.StepRunning && strings.Contains(rec.Message, l.ns+"/bare") && strings.Contains(rec.Message, "not cordoned"), string(rec.Phase) + " " + rec.Message
	})
	l.schedulable("node-5", true)

	// A budget does not hold it: its pods are deleted when the time is over.
	l.label("node-6", "pool", "six")
	l.deployment("stuck", 2, only("six"))
	l.budget("stuck", intstr.FromInt32(0))
	drains("forced", "node-6")
	if j := l.ends("forced", 1); j.Phase != run.Succeeded {
		t.Errorf("the run ended %s: %+v", j.Phase, j.End)
	}
	if j := l.journals("refused")[0]; j.Phase.Ended() {
		t.Errorf("the other ended %s: %+v", j.Phase, j.End)
	}
	if there := l.podsOn("node-5"); !slices.Equal(there, []string{"bare"}) {
		t.Errorf("pods on node-5: %v", there)
	}
}

// Whoever may patch a node, as its kubelet may, can fill its annotations after it was cordoned, so
// that nothing more can be written there: others have its turn meanwhile.
func TestANodeThatIsFilledAfterItsCordonPassesItsTurnOn(t *testing.T) {
	l := newLab(t, "{nodes: {maxParallelOperations: 1}}")
	l.label("node-7", "pool", "seven")
	l.deployment("web", 2, only("seven"))
	l.deployment("late", 1, only("seven"))
	l.request("node-7", "os", `{"waitFor":{"podSelector":"app=late"}}`)
	l.phase("node-7", "os", nodes.WaitingForPods)
	l.budget("web", intstr.FromInt32(0)) // of which more is to be said than there is room for
	const key = "example.org/x"
	l.eventually("it is filled", func() (bool, string) { // the agent may write at the same time
		left := annotations.MaxBytes - annotations.Bytes(l.node("node-7").Annotations) - len(key)
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, strings.Repeat("y", left))
		_, err := l.admin.CoreV1().Nodes().Patch(l.ctx, "node-7", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err == nil, fmt.Sprint(err)
	})
	l.must(l.admin.AppsV1().Deployments(l.ns).Delete(l.ctx, "late", deleteNow()))
	l.request("node-5", "net", `{"drain":false}`)
	l.phase("node-5", "net", nodes.Ready)
	l.schedulable("node-7", false)
	if got := l.why("node-7"); !strings.Contains(got, "the annotations of the node have 26") {
		t.Errorf("why says\n%s", got)
	}
	if got := l.events(metav1.NamespaceDefault, "node-7", "NodeNotWritten"); len(got) != 1 {
		t.Errorf("events %q", got)
	}
	l.release("node-5", "net")
	l.must(l.admin.PolicyV1().PodDisruptionBudgets(l.ns).Delete(l.ctx, "web", metav1.DeleteOptions{}))
	l.annotate("node-7", map[string]any{key: nil})
	l.within(90, "it is drained", func() (bool, string) { // the agent tries again after half a minute
		s, _ := l.status("node-7", "os")
		return s.Phase == nodes.Ready, s.String()
	})
	l.release("node-7", "os")
	l.schedulable("node-7", true)
}
