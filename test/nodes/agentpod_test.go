package nodes_test

import (
	"os/exec"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// agents runs two replicas as the manifests have them on the nodes of a pool, but
// for what is in them: the agent of these tests runs beside the cluster.
func (l *lab) agents(pool string, ready int32) {
	l.Helper()
	yes, no, two, user := true, false, int32(2), int64(65532)
	labels := map[string]string{annotations.AgentLabel: annotations.AgentName}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "maint-agent"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				NodeSelector:    map[string]string{"pool": pool},
				SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
				Containers: []corev1.Container{{Name: "agent", Image: "example.org/none", SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				}}},
			}},
		},
	}
	in := l.admin.AppsV1().Deployments(annotations.DefaultNamespace)
	_, err := in.Create(l.ctx, d, metav1.CreateOptions{})
	l.must(err)
	l.Cleanup(func() { l.must(in.Delete(l.ctx, d.Name, deleteNow())) })
	l.eventually("the replicas are Ready", func() (bool, string) {
		now, err := in.Get(l.ctx, d.Name, metav1.GetOptions{})
		l.must(err)
		return now.Status.ReadyReplicas == ready, ""
	})
}

// replicasOn are the agent's pods on a node that are not on their way out.
func (l *lab) replicasOn(node string) []string {
	l.Helper()
	list, err := l.admin.CoreV1().Pods(annotations.DefaultNamespace).List(l.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	l.must(err)
	var out []string
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			out = append(out, p.Name)
		}
	}
	return out
}

func TestTheAgentDoesNotEvictItsLastPod(t *testing.T) {
	l := newLab(t, `{nodes: {maxParallelOperations: 1}}`)
	l.pool("lone", "node-4")
	l.agents("lone", 2)
	l.deployment("web", 2, only("lone"))

	said, err := exec.Command(world.plugin, "--kubeconfig", world.config, "drain", "node-4", "--plan").CombinedOutput()
	if !strings.Contains(string(said), "last: maint-system/maint-agent-") {
		t.Errorf("drain --plan says nothing of the agent's own pod: %v\n%s", err, said)
	}
	l.request("node-4", "os", "{}")
	s := l.phase("node-4", "os", nodes.Ready)
	if !strings.Contains(s.Reason, "the agent's own pod stays: no other replica of it is Ready on another node") {
		t.Errorf("the request is told: %s", s.Reason)
	}
	if got := l.replicasOn("node-4"); len(got) != 1 {
		t.Errorf("replicas on the node: %q", got)
	}
	if got := l.podsOn("node-4"); len(got) != 0 {
		t.Errorf("pods on the node: %q", got)
	}
	said, _ = exec.Command(world.plugin, "--kubeconfig", world.config, "drain", "node-4", "--plan").CombinedOutput()
	if !strings.Contains(string(said), "the agent's own pod stays") {
		t.Errorf("drain --plan says\n%s", said)
	}

	// With room for the other one elsewhere, it goes.
	l.pool("lone", "node-5")
	l.release("node-4", "os")
	l.gone("node-4", "os")
	l.eventually("another is Ready elsewhere", func() (bool, string) {
		d, err := l.admin.AppsV1().Deployments(annotations.DefaultNamespace).Get(l.ctx, "maint-agent", metav1.GetOptions{})
		l.must(err)
		return d.Status.ReadyReplicas == 2, ""
	})
	l.request("node-4", "os", "{}")
	s = l.phase("node-4", "os", nodes.Ready)
	if got := l.replicasOn("node-4"); len(got) != 0 || strings.Contains(s.Reason, "own pod") {
		t.Errorf("replicas on the node: %q; it is told: %s", got, s.Reason)
	}
	l.release("node-4", "os")
	l.gone("node-4", "os")
}
