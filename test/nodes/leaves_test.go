package nodes_test

import (
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// What blocks such a drain for good ends with its time: whoever asks is told when, and nobody has to
// do anything.
func TestADrainThatLeavesPodsBehindSaysUntilWhenItTries(t *testing.T) {
	l := newLab(t, "{nodes: {maxParallelOperations: 1}}")
	l.label("node-6", "pool", "six")
	l.deployment("web", 3, only("six"))
	l.budget("web", intstr.FromInt32(0))
	list, err := l.admin.CoreV1().Nodes().List(l.ctx, metav1.ListOptions{FieldSelector: "metadata.name=node-6"})
	l.must(err)
	written, err := l.admin.CoreV1().Nodes().Watch(l.ctx, metav1.ListOptions{FieldSelector: "metadata.name=node-6", ResourceVersion: list.ResourceVersion})
	l.must(err)
	t.Cleanup(written.Stop)

	l.request("node-6", "os", `{"drain":{"timeout":"25s","onTimeout":"skip"}}`)
	l.prints("why node/node-6", "3 of 3 pods are left", "os is blocked: ", l.ns+"/web", "it tries until ", "then leaves the pods that are still there and is Ready")
	out, err := exec.CommandContext(l.ctx, world.plugin, "--kubeconfig", world.config, "status").CombinedOutput()
	if err != nil || strings.Contains(string(out), "node node-6") || !strings.Contains(string(out), "tries until ") {
		t.Errorf("status: %v\n%s", err, out)
	}
	if s := l.phase("node-6", "os", nodes.Ready); !strings.Contains(s.Reason, "left: "+l.ns+"/web") {
		t.Errorf("it does not name what it left: %s", s)
	}

	var draining, blocked *nodes.Status
	for e := range written.ResultChan() {
		n, ok := e.Object.(*corev1.Node)
		if !ok {
			t.Fatalf("the watch of node-6: %+v", e)
		}
		s, _ := nodes.ParseStatus(n.Annotations[annotations.StatusRequestPrefix+"os"])
		if s.Phase == nodes.Ready {
			break
		}
		if s.Phase == nodes.Draining && draining == nil {
			draining = &s
		}
		if s.Blocked != nil && blocked == nil {
			blocked = &s
		}
		if strings.Contains(s.Reason, "0 of 0") {
			t.Errorf("it counts pods that it has not looked at: %s", s)
		}
	}
	if draining == nil || blocked == nil || blocked.Progress.At.Sub(draining.Since) >= nodes.ProgressEvery {
		t.Errorf("what blocks it is said late: it drains %v, and is blocked %v", draining, blocked)
	}
	l.release("node-6", "os")
	l.gone("node-6", "os")
	l.schedulable("node-6", true)
}
