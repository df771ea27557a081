package nodes_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// surger lets the agent surge, and has a Deployment whose only pod wants it.
func (l *lab) surger() (from string) {
	l.Helper()
	_, err := l.admin.RbacV1().ClusterRoleBindings().Create(l.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "maint-surge"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "maint-surge"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "maint-agent", Namespace: annotations.DefaultNamespace}},
	}, metav1.CreateOptions{})
	l.must(err)
	l.Cleanup(func() { _ = l.admin.RbacV1().ClusterRoleBindings().Delete(l.ctx, "maint-surge", deleteNow()) })
	l.pool("two", "node-10", "node-11")
	l.deployment("single", 1, only("two"), func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations = map[string]string{annotations.DrainHow: "surge"}
	})
	if len(l.podsOn("node-10")) > 0 {
		return "node-10"
	}
	return "node-11"
}

// killAt kills the agent at the n-th write of a kind, before it or after it, and
// waits for that.
func (l *lab) killAt(kind string, n int, answered bool, begin func()) {
	l.Helper()
	killed := make(chan struct{})
	victim, seen := l.agent, 0
	var mu sync.Mutex
	world.proxy.At(func(req *http.Request, reply bool) bool {
		if reply != answered || req.Method+" "+req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:] != kind || !strings.Contains(req.URL.Path, "/namespaces/"+l.ns+"/") {
			return true
		}
		mu.Lock()
		defer mu.Unlock()
		if seen++; seen != n {
			return seen < n
		}
		victim.Kill()
		close(killed)
		return false
	})
	defer world.proxy.At(nil)
	begin()
	select {
	case <-killed:
	case <-time.After(60 * time.Second):
		l.Fatalf("no %d. %s came", n, kind)
	}
	<-victim.Ended()
}

// asBefore waits until nothing of a surge is left.
func (l *lab) asBefore(name string, replicas int32) {
	l.Helper()
	l.within(60, "the replicas are as they were", func() (bool, string) {
		d, err := l.admin.AppsV1().Deployments(l.ns).Get(l.ctx, name, metav1.GetOptions{})
		l.must(err)
		_, surges := d.Labels[annotations.LabelSurging]
		return *d.Spec.Replicas == replicas && d.Annotations[annotations.StatusSurge] == "" && !surges, fmt.Sprint(*d.Spec.Replicas, d.Annotations, d.Labels)
	})
}

func TestASurgeWhoseAgentDiedLeavesNoReplicaBehind(t *testing.T) {
	for _, c := range []struct {
		name, kind string
		n          int
		answered   bool
		withdrawn  bool // while no agent runs
	}{
		{"after the replica was added, and nobody wants the node any more", "PATCH single", 1, true, true},
		{"after the replica was added, and the drain goes on", "PATCH single", 1, true, false},
		{"after the eviction, and the drain goes on", "POST eviction", 1, true, false},
		{"after the eviction, and nobody wants the node any more", "POST eviction", 1, true, true},
		{"before the replica is given back", "PATCH single", 2, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, unlimited)
			from := l.surger()
			l.killAt(c.kind, c.n, c.answered, func() { l.request(from, "os", "{}") })
			if c.withdrawn {
				l.release(from, "os")
			}
			var err error
			l.agent, err = harness.StartAgent(world.bin, world.agent, "--leader-elect=false")
			l.must(err)
			if !c.withdrawn {
				l.phase(from, "os", nodes.Ready)
			}
			l.asBefore("single", 1)
			if !c.withdrawn {
				l.release(from, "os")
			}
			l.gone(from, "os")
		})
	}
}
