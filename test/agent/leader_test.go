package agent_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// A leader freezes with the creation of a run on its way. The next leader runs
// the request to its end and its history is deleted. When the first one wakes up
// and its creation arrives after all, nothing may run again.
func TestAFrozenLeaderThatWakesUpStartsNothingTwice(t *testing.T) {
	x := newCrashes(t)
	x.prepare("frozen")
	first, err := harness.StartAgent(x.bin, x.config) // through the proxy, with leader election
	if err != nil {
		t.Fatal(err)
	}
	defer first.Kill()
	leads(t, x.ctx, first)
	var held atomic.Bool
	release := make(chan struct{})
	frozen := make(chan struct{})
	x.proxy.At(func(req *http.Request, answered bool) bool {
		create := req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/namespaces/frozen/configmaps")
		if !create || answered || !ledgerExists(x) || !held.CompareAndSwap(false, true) {
			return true
		}
		if err := first.Freeze(); err != nil {
			t.Error(err)
		}
		close(frozen)
		<-release
		return true
	})
	eventually(t, x.ctx, "the plan is taken up", func() (bool, string) {
		cm, err := x.admin.CoreV1().ConfigMaps("frozen").Get(x.ctx, "orders-weekly", metav1.GetOptions{})
		return err == nil && cm.Annotations[annotations.StatusObserved] != "", ""
	})
	x.label("frozen")
	<-frozen
	second := x.direct()
	defer second.Kill()
	leads(t, x.ctx, second)
	x.play("frozen", nil, 60*time.Second)
	x.check("frozen", "the second leader's end")
	runs, err := readRuns(x.ctx, x.admin, "frozen", "orders-weekly")
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	if err := x.admin.CoreV1().ConfigMaps("frozen").Delete(x.ctx, runs[0].run.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	before := len(x.hooks.Deliveries())
	close(release)
	if err := first.Thaw(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-first.Ended():
	case <-time.After(30 * time.Second):
		t.Errorf("the deposed leader goes on:\n%s", first.Log())
	}
	eventually(t, x.ctx, "the stray run is taken away", func() (bool, string) {
		runs, err := readRuns(x.ctx, x.admin, "frozen", "orders-weekly")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			if !r.journal.Phase.Ended() || len(r.object.Finalizers) > 0 {
				return false, describeRuns(runs)
			}
		}
		return true, ""
	})
	if after := x.hooks.Deliveries(); len(after) != before {
		runs, _ := readRuns(x.ctx, x.admin, "frozen", "orders-weekly")
		t.Errorf("the request was run again: %v\nall deliveries: %v\nruns: %s\nfirst:\n%s\nsecond:\n%s", after[before:], after, describeRuns(runs), first.Log(), second.Log())
	}
}

func ledgerExists(x *crashes) bool {
	list, err := x.admin.CoreV1().ConfigMaps("frozen").List(x.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=ledger"})
	return err == nil && len(list.Items) == 1
}

// direct starts an agent that talks to the API server itself.
func (x *crashes) direct() *harness.Process {
	x.t.Helper()
	p, err := harness.StartInstalled(x.ctx, x.c, annotations.DefaultNamespace, x.bin)
	if err != nil {
		x.t.Fatal(err)
	}
	return p
}

func leads(t *testing.T, ctx context.Context, p *harness.Process) {
	t.Helper()
	eventually(t, ctx, "the agent leads", func() (bool, string) { return strings.Contains(p.Log(), "msg=leading"), p.Log() })
}

func TestOfTwoAgentsOneLeadsAndTheOtherTakesOver(t *testing.T) {
	x := newCrashes(t)
	x.prepare("pair")
	first := x.direct()
	leads(t, x.ctx, first)
	second := x.direct()
	defer second.Kill()
	x.label("pair")
	eventually(t, x.ctx, "the run holds", func() (bool, string) {
		runs, err := readRuns(x.ctx, x.admin, "pair", "orders-weekly")
		if err != nil || len(runs) != 1 {
			return false, describeRuns(runs)
		}
		return recordOf(runs[0].journal, "hold").Phase == run.StepRunning, describeRuns(runs)
	})
	if strings.Contains(second.Log(), "msg=leading") {
		t.Fatal("both agents lead")
	}
	first.Kill()
	leads(t, x.ctx, second)
	x.play("pair", nil, 60*time.Second)
	x.check("pair", "the first leader's death")
}

func TestAnAgentWithoutAnElectionSaysThatItLeads(t *testing.T) {
	x := newCrashes(t)
	p := x.agent()
	defer p.Kill()
	shows(t, x.ctx, p, "maint_leading 1")
}
