package nodes_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// without takes a part of the agent's rights away, as install --without does; what it
// returns gives it back.
func (l *lab) without(binding string) (giveBack func()) {
	l.Helper()
	bindings := l.admin.RbacV1().ClusterRoleBindings()
	was, err := bindings.Get(l.ctx, binding, metav1.GetOptions{})
	l.must(err)
	l.must(bindings.Delete(l.ctx, binding, deleteNow()))
	giveBack = func() {
		was.ResourceVersion, was.UID = "", ""
		if _, err := bindings.Create(l.ctx, was, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			l.Error(err)
		}
	}
	l.Cleanup(giveBack)
	return giveBack
}

// says waits until the request's status speaks of something.
func (l *lab) says(node, requestor string, words ...string) {
	l.Helper()
	l.eventually(fmt.Sprintf("the request of %s says %q", requestor, words), func() (bool, string) {
		n, err := l.admin.CoreV1().Nodes().Get(l.ctx, node, metav1.GetOptions{})
		l.must(err)
		text := n.Annotations["status.request.maint.dev/"+requestor]
		for _, word := range words {
			if !strings.Contains(text, word) {
				return false, text
			}
		}
		return true, text
	})
}

// Without the right to delete pods one whose time is over is waited for, and the request
// says which right it lacks; with it the drain goes on.
func TestWithoutTheRightToDeleteAPodIsWaitedFor(t *testing.T) {
	l := newLab(t, unlimited)
	l.label("node-4", "pool", "four")
	l.deployment("stuck", 1, only("four"))
	l.budget("stuck", intstr.FromInt32(0))
	giveBack := l.without("maint-agent-force")
	l.request("node-4", "os", `{"drain":{"timeout":"1s","onTimeout":"force"}}`)
	l.says("node-4", "os", "delete", "pods")
	if left := l.podsOn("node-4"); len(left) != 1 {
		t.Errorf("the pod is gone: %v", left)
	}
	giveBack()
	l.phase("node-4", "os", nodes.Ready)
}

// Without the right to read claims a request that waits for volumes says so, and one that
// does not is carried out.
func TestWithoutTheRightToReadClaimsVolumesAreWaitedFor(t *testing.T) {
	l := newLab(t, unlimited)
	l.label("node-4", "pool", "four")
	l.claim("data")
	l.deployment("mover", 1, only("four"), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	})
	giveBack := l.without("maint-agent-volumes")
	l.request("node-4", "os", `{"drain":{"waitForVolumes":true}}`)
	l.says("node-4", "os", "persistentvolumeclaims")
	giveBack()
	l.phase("node-4", "os", nodes.Ready)
}
