package hibernate_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// strideOfCrashes is which of the writes of a cycle the agent is killed at: every one with
// MAINT_CRASHES=all, as `make hibernate-crashes` sets it.
func strideOfCrashes() int {
	if os.Getenv("MAINT_CRASHES") == "all" {
		return 1
	}
	return 6
}

// crashing is an agent behind a proxy that knows each of its writes.
type crashing struct {
	proxy  *harness.Proxy
	config string
}

func newCrashing(t *testing.T) *crashing {
	t.Helper()
	l := newLab(t)
	own, err := world.cluster.ServiceAccountConfig(l.ctx, annotations.DefaultNamespace, "maint-agent")
	l.must(err)
	x := &crashing{}
	x.proxy, err = harness.NewProxy(own)
	l.must(err)
	t.Cleanup(x.proxy.CloseClientConnections)
	x.config, err = world.cluster.KubeconfigFile("crashing", x.proxy.Config(own))
	l.must(err)
	world.process.Kill() // nobody helps
	t.Cleanup(func() {
		if err := world.launch(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// Wherever in a cycle an agent is killed, at a write of its own or of the plan's account,
// before it is sent or with its reply lost, the next one brings all back as it was.
func TestAKillAtAnyWriteOfACycleWakesAllAsItWas(t *testing.T) {
	x := newCrashing(t)
	for _, lost := range []bool{false, true} {
		for n := 1; ; n += strideOfCrashes() {
			where := ""
			t.Run(fmt.Sprintf("write %d, its reply lost %t", n, lost), func(t *testing.T) { where = x.cycle(newLab(t), n, lost) })
			if where == "" || t.Failed() { // the cycle ended before its n-th write
				break
			}
		}
	}
}

// cycle has workloads sleep and wake while the agent is killed at its n-th write, and says
// which one that was.
func (x *crashing) cycle(l *lab, n int, lost bool) (where string) {
	l.runner(sleepRights()...)
	l.deployment("orders", 3)
	l.deployment("web", 2)
	l.cronJob("report")
	victim, err := harness.StartAgent(world.bin, x.config, "--leader-elect=false")
	l.must(err)
	var heir sync.WaitGroup
	var mu sync.Mutex
	seen := 0
	x.proxy.At(func(req *http.Request, answered bool) bool {
		if answered != lost || !strings.Contains(req.URL.Path, "/namespaces/"+l.ns+"/") || strings.Contains(req.URL.Path, "/events") {
			return true
		}
		mu.Lock()
		defer mu.Unlock()
		if seen++; seen != n {
			return seen < n
		}
		where = req.Method + " " + req.URL.Path
		victim.Kill()
		heir.Go(func() {
			if err := world.launch(); err != nil {
				l.Error(err)
			}
		})
		return false
	})
	l.sleeper("nights", workloads())
	l.annotate("nights", map[string]string{annotations.HoldState: "asleep"})
	l.phaseOf("nights", hibernate.Hibernated, "1 of 1 targets sleep")
	if l.replicas("orders") != 0 || l.replicas("web") != 0 || !l.suspended("report") {
		l.Errorf("killed at %s: orders has %d, web %d, report suspended: %t", where, l.replicas("orders"), l.replicas("web"), l.suspended("report"))
	}
	l.annotate("nights", map[string]string{annotations.HoldState: "awake"})
	l.phaseOf("nights", hibernate.Active, "")
	l.eventually("the restore data has served", func() (bool, string) { return l.restoreData("nights", "apps") == nil, where })
	if l.replicas("orders") != 3 || l.replicas("web") != 2 || l.suspended("report") {
		l.Errorf("killed at %s: orders has %d, web %d, report suspended: %t", where, l.replicas("orders"), l.replicas("web"), l.suspended("report"))
	}
	x.proxy.At(nil)
	mu.Lock()
	defer mu.Unlock()
	heir.Wait()
	if where == "" {
		victim.Kill()
	} else {
		world.process.Kill()
	}
	return where
}
