package nodes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// renew deletes a node and makes another one under its name, as a machine that is replaced has it.
func (l *lab) renew(name string, edit func(*corev1.Node)) (uid types.UID) {
	l.Helper()
	n := l.node(name)
	was := n.UID
	n.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: n.Labels, Annotations: n.Annotations}
	n.Status.Conditions = slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return slices.Contains([]string{"MaintenancePlanned", "DrainInProgress", "Drained", "MaintenanceInProgress"}, string(c.Type))
	})
	edit(n)
	l.must(l.admin.CoreV1().Nodes().Delete(l.ctx, name, deleteNow()))
	made, err := l.admin.CoreV1().Nodes().Create(l.ctx, n, metav1.CreateOptions{})
	l.must(err)
	if made.UID == was {
		l.Fatalf("%s is still the one of before", name)
	}
	return made.UID
}

// A node is replaced by another of its name in the middle of a drain: nothing that was written or
// begun for the old one counts for it.
func TestANodeThatIsMadeAnewInTheMiddleOfADrainHasNothingOfTheOldOne(t *testing.T) {
	for name, c := range map[string]struct {
		edit   func(*corev1.Node)
		drains bool // anew
	}{
		"it comes as new": {
			edit: func(n *corev1.Node) {
				for key := range n.Annotations {
					if strings.Contains(key, "maint.dev/") {
						delete(n.Annotations, key)
					}
				}
				n.Spec.Unschedulable, n.Spec.Taints = false, nil
			},
		},
		"it has what was written on the old one, without the request and the cordon": {
			edit: func(n *corev1.Node) {
				delete(n.Annotations, annotations.RequestPrefix+"gpu")
				n.Spec.Unschedulable, n.Spec.Taints = false, nil
			},
		},
		"it has all of it, cordoned as it was: the request begins anew": {edit: func(*corev1.Node) {}, drains: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "{nodes: {maxParallelOperations: 1}}")
			l.label("node-5", "pool", "five")
			l.deployment("web", 3, only("five"))
			l.deployment("late", 1, only("five"))
			l.request("node-5", "gpu", `{"waitFor":{"podSelector":"app=late"}}`)
			l.phase("node-5", "gpu", nodes.WaitingForPods)
			l.budget("web", intstr.FromInt32(0)) // it is not known before the cordon
			l.must(l.admin.AppsV1().Deployments(l.ns).Delete(l.ctx, "late", deleteNow()))
			old := l.phase("node-5", "gpu", nodes.Draining)
			l.eventually("the drain is held up", func() (bool, string) {
				s, _ := l.status("node-5", "gpu")
				return s.Blocked != nil && len(l.podsOn("node-5")) == 3, s.String()
			})
			before := l.podsOn("node-5")

			uid := l.renew("node-5", c.edit)
			made := time.Now()
			if c.drains {
				l.must(l.admin.PolicyV1().PodDisruptionBudgets(l.ns).Delete(l.ctx, "web", deleteNow()))
				now := l.phase("node-5", "gpu", nodes.Ready)
				if now.Node != string(uid) || now.Since.Before(old.Since) || now.Since.Before(made.Add(-time.Second).Truncate(time.Second)) {
					t.Errorf("its request is that of %s since %s, the new one is %s of %s", now.Node, now.Since, uid, made)
				}
				l.release("node-5", "gpu")
				l.gone("node-5", "gpu")
				l.schedulable("node-5", false) // whoever made it made it cordoned: that is not ours to undo
				return
			}
			l.request("node-6", "gpu", "{}") // the slot is free
			l.phase("node-6", "gpu", nodes.Ready)
			l.eventually("nothing of the old one stands on it", func() (bool, string) {
				on := annotations.OfNode(l.node("node-5").Annotations)
				return len(on) == 0, fmt.Sprint(on)
			})
			l.lifecycleIs("node-5")
			l.must(l.admin.PolicyV1().PodDisruptionBudgets(l.ns).Delete(l.ctx, "web", deleteNow()))
			time.Sleep(2 * time.Second) // long enough for an eviction that is wrong to be seen
			if left := l.podsOn("node-5"); !slices.Equal(left, before) {
				t.Errorf("its pods were %v, and are %v", before, left)
			}
			l.schedulable("node-5", true)
		})
	}
}
