package nodes_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// The API server carries out a write of a node, and its reply never comes: the node
// goes on about two seconds later, and others do not wait for it.
func TestALostReplyDelaysItsNodeByTwoSecondsAtMost(t *testing.T) {
	for name, lose := range map[string]func(*http.Request){
		"the connection is cut":    func(*http.Request) {},
		"the connection is silent": func(req *http.Request) { <-req.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, unlimited)
			l.request("node-8", "warm", "{}")
			l.phase("node-8", "warm", nodes.Ready)
			var lost atomic.Int32
			world.proxy.At(func(req *http.Request, answered bool) bool {
				if !answered || req.Method != http.MethodPatch || !strings.HasSuffix(req.URL.Path, "/nodes/node-7") || lost.Add(1) > 1 {
					return true
				}
				lose(req)
				return false
			})
			defer world.proxy.At(nil)
			began := time.Now()
			l.request("node-7", "os", "{}")
			l.request("node-6", "os", "{}")
			l.phase("node-6", "os", nodes.Ready)
			other := time.Since(began)
			l.phase("node-7", "os", nodes.Ready)
			took := time.Since(began)
			if lost.Load() < 2 {
				t.Fatalf("%d writes of node-7 were seen", lost.Load())
			}
			t.Logf("Ready after %s, another node after %s", took, other)
			if took > 5*time.Second {
				t.Errorf("the node was Ready after %s", took)
			}
			if got := l.events("default", "node-7", "Scheduled"); len(got) == 0 {
				t.Error("the step whose reply was lost sent no Event")
			}
		})
	}
}
