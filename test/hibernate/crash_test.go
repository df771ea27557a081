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
	killedAtEach(t, "write", func(t *testing.T, n int, lost bool) string { return x.cycle(newLab(t), n, lost) })
}

// killedAtEach plays a cycle once for each of its calls, with the agent killed at that one,
// before it is sent and with its reply lost. cycle says which call that was; empty: it ended
// before its n-th one.
func killedAtEach(t *testing.T, what string, cycle func(t *testing.T, n int, lost bool) (where string)) {
	for _, lost := range []bool{false, true} {
		for n := 1; ; n += strideOfCrashes() {
			where := ""
			t.Run(fmt.Sprintf("%s %d, its reply lost %t", what, n, lost), func(t *testing.T) { where = cycle(t, n, lost) })
			if where == "" || t.Failed() {
				break
			}
		}
	}
}

// victim is an agent that is killed in the middle of its work, and the one that follows it.
type victim struct {
	l     *lab
	agent *harness.Process
	heir  sync.WaitGroup
}

func (x *crashing) victim(l *lab) *victim {
	l.Helper()
	agent, err := harness.StartAgent(world.bin, x.config, "--leader-elect=false")
	l.must(err)
	return &victim{l: l, agent: agent}
}

// kill has it die, and the next one start.
func (v *victim) kill() {
	v.agent.Kill()
	v.heir.Go(func() {
		if err := world.launch(); err != nil {
			v.l.Error(err)
		}
	})
}

// end ends the one of the two that lives.
func (v *victim) end(killed bool) {
	v.heir.Wait()
	if killed {
		world.process.Kill()
	} else {
		v.agent.Kill()
	}
}

// cycle has workloads sleep and wake while the agent is killed at its n-th write, and says
// which one that was.
func (x *crashing) cycle(l *lab, n int, lost bool) (where string) {
	l.runner(sleepRights()...)
	l.deployment("orders", 3)
	l.deployment("web", 2)
	l.cronJob("report")
	victim := x.victim(l)
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
		victim.kill()
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
	victim.end(where != "")
	return where
}
