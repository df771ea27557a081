package agent_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// worker is a node of the test's own. Nothing runs on it but what the test puts
// there.
func (l *lab) worker(suffix string) string {
	l.Helper()
	name := "worker-" + suffix + "-" + l.ns
	_, err := l.admin.CoreV1().Nodes().Create(l.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	l.must(err)
	l.Cleanup(func() {
		_ = l.admin.CoreV1().Nodes().Delete(context.WithoutCancel(l.ctx), name, metav1.DeleteOptions{})
	})
	return name
}

func (l *lab) unschedulable(name string) bool {
	l.Helper()
	n, err := l.admin.CoreV1().Nodes().Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	return n.Spec.Unschedulable
}

func TestAPersonDrainsANodeAndGivesItBack(t *testing.T) {
	l := newLab(t)
	first, second := l.worker("a"), l.worker("b")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "bare"},
		Spec:       corev1.PodSpec{NodeName: first, Containers: []corev1.Container{{Name: "c", Image: "example.org/none"}}, AutomountServiceAccountToken: new(bool)},
	}
	l.eventually("a pod stands on the node", func() (bool, string) { // once its namespace has its account
		_, err := l.admin.CoreV1().Pods(l.ns).Create(l.ctx, pod, metav1.CreateOptions{})
		return err == nil, fmt.Sprint(err)
	})
	l.expect(l.maint("drain", first, "--plan"), 3, "refused: "+l.ns+"/bare", "use --force to override")
	l.expect(l.maint("drain", first, "--plan", "--force"), 0, "possible", "evicted: "+l.ns+"/bare")
	l.expect(l.maint("drain", first, "no-such-node", "--yes"), 1, "no-such-node", "nothing was done")
	l.expect(l.maint("drain", first), 2, "--yes")
	if l.unschedulable(first) {
		t.Fatal("it was cordoned by a look")
	}

	l.expect(l.maint("drain", first, "--force", "--grace-period", "0", "--reason", "new disks", "--yes", "--wait", "--timeout", "90s"), 0, "Draining", "Ready")
	if _, err := l.admin.CoreV1().Pods(l.ns).Get(l.ctx, "bare", metav1.GetOptions{}); !apierrors.IsNotFound(err) || !l.unschedulable(first) {
		t.Errorf("it is ready with its pod, or not cordoned: %v", err)
	}
	l.expect(l.maint("status", "node/"+first), 0, "Ready", "cli.", "it was schedulable before")
	l.expect(l.maint("status"), 0, first, "cli.")
	l.expect(l.maint("why", first), 0, "Ready", "nothing is in the way")

	l.expect(l.maint("drain", second, "--no-drain", "--requestor", "disk-swap", "--yes"), 0, "requested for disk-swap")
	l.expect(l.maint("why", second), 3, "disk-swap: waits its turn", "maxParallelOperations 1")
	l.expect(l.maint("drain", second, "--no-drain", "--requestor", "disk-swap", "--yes", "--wait", "--timeout", "2s"), 124, "unchanged", "waits its turn", "the request of disk-swap stays")

	l.expect(l.maint("release", first, "--wait", "--timeout", "60s"), 0, "released")
	if l.unschedulable(first) {
		t.Error("the node is still cordoned")
	}
	l.expect(l.maint("drain", second, "--no-drain", "--requestor", "disk-swap", "--wait", "--timeout", "60s"), 0, "Ready")
	l.expect(l.maint("release", "--all", "--requestor", "disk-swap", "--wait", "--timeout", "60s"), 0, second)
	l.expect(l.maint("release", second), 0, "was not asked for")
}

func TestAPausedNodeIsNotTaken(t *testing.T) {
	l := newLab(t)
	node := l.worker("p")
	l.expect(l.maint("pause", node, "--reason", "inventory"), 0, "node/"+node+" paused until resumed")
	l.expect(l.maint("check", node), 3, "paused")
	l.expect(l.maint("drain", node, "--requestor", "inventory", "--yes"), 0, "requested for inventory", "waits until change is permitted there (the node is paused by ", ": inventory); ", "why node/"+node)
	l.expect(l.maint("drain", node, "--requestor", "inventory", "--yes", "--wait", "--timeout", "3s"), 124, "the node is paused")
	l.expect(l.maint("why", node), 3, "the node is paused", "resume node/"+node)
	l.expect(l.maint("resume", node), 0, "resumed")
	l.expect(l.maint("release", node, "--requestor", "inventory", "--wait", "--timeout", "60s"), 0, "released")
}
