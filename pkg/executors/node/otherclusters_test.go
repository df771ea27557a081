package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/follow"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// mineThere is how the plan is named in the record of a node of another cluster.
const mineThere = "plan:ops/roll@7b"

// there has a call work on another cluster.
func there(call executors.Call) executors.Call {
	call.Plan.UID, call.Clients.Cluster, call.Nodes.Turn, call.Nodes.Resume = "7b", "stg", nil, nil
	return call
}

// Nobody here knows of the limits of another cluster: its nodes are taken one after another,
// and what is remembered of them is not taken for nodes of this cluster.
func TestADrainTakesTheNodesOfAnotherClusterOneAfterAnother(t *testing.T) {
	s := newDraining(t, ofPool(drain.Options{}), nodeNamed("a"), nodeNamed("b"))
	s.call = there(s.call)
	s.begin()
	begun := s.remembers()
	if want := []run.DrainTarget{{Name: "a", UID: "uid-a"}, {Name: "b", UID: "uid-b"}}; begun.Nodes != nil || !cmp.Equal(want, begun.Elsewhere) {
		t.Errorf("remembered %+v", begun)
	}
	for _, c := range []struct {
		says map[string]executors.DrainStatus
		want string
		a, b string
	}{
		{nil, "not yet Draining: Node/b: waits for its turn after Node/a; Node/a: 0 of 2 pods have left", "shut for [" + mineThere + "]", "open"},
		{map[string]executors.DrainStatus{"a": doneWith(drain.Outcome{})}, "not yet Draining: Node/b: 0 of 2 pods have left; Node/a: " + drain.Outcome{}.String(), "shut for [" + mineThere + "]", "shut for [" + mineThere + "]"},
		{map[string]executors.DrainStatus{"a": doneWith(drain.Outcome{}), "b": doneWith(drain.Outcome{})}, "done : Node/a: " + drain.Outcome{}.String() + "; Node/b: " + drain.Outcome{}.String(), "shut for [" + mineThere + "]", "shut for [" + mineThere + "]"},
	} {
		s.drains.says = c.says
		if got := outcome(s.pass()); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
		if a, b := how(s.node("a")), how(s.node("b")); a != c.a || b != c.b {
			t.Errorf("a is %s, b is %s; want %s and %s", a, b, c.a, c.b)
		}
	}
	for _, o := range s.drains.ordered {
		if o.By != mineThere {
			t.Errorf("ordered by %s", o.By)
		}
	}
	if err := (Drains{}).Stop(t.Context(), s.call); err != nil || !slices.Equal(s.drains.stopped[len(s.drains.stopped)-2:], []string{"a of " + mineThere, "b of " + mineThere}) {
		t.Errorf("stopped %v, %v", s.drains.stopped, err)
	}
}

// A plan of the same name on the other cluster is another one: neither frees what the other
// has cordoned.
func TestACordonOnAnotherClusterIsNoPlansThatHasTheSameName(t *testing.T) {
	pool := &plan.CordonProperties{NodeProperties: plan.NodeProperties{Selector: &selector.LabelSelector{MatchLabels: map[string]string{"pool": "gpu"}}}}
	by := func(who string) nodes.Cordon {
		return nodes.Cordon{By: []string{who}, Node: "uid-theirs", At: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)}
	}
	c := newCluster(t, nodeNamed("free"), nodeNamed("theirs", recorded(true, by(mine))), nodeNamed("shut", shut))
	call := there(c.step(pool))
	if out := (Cordoner{}).Pass(t.Context(), call); out.State != executors.Done {
		t.Fatal(outcome(out))
	}
	states := func() map[string]string {
		return map[string]string{"free": how(c.node("free")), "theirs": how(c.node("theirs")), "shut": how(c.node("shut"))}
	}
	want := map[string]string{"free": "shut for [" + mineThere + "]", "theirs": "shut for [" + mine + " " + mineThere + "]", "shut": "shut for [" + mineThere + "], as before"}
	if diff := cmp.Diff(want, states()); diff != "" {
		t.Errorf("cordoned (-want +got):\n%s", diff)
	}
	if out := (Uncordoner{}).Pass(t.Context(), call); out.State != executors.Done {
		t.Fatal(outcome(out))
	}
	want = map[string]string{"free": "open", "theirs": "shut for [" + mine + "]", "shut": "shut"}
	if diff := cmp.Diff(want, states()); diff != "" {
		t.Errorf("uncordoned (-want +got):\n%s", diff)
	}
}

// elsewhere are clients of another cluster.
func (h *host) elsewhere(connection string) executors.Clients {
	return executors.Clients{Cluster: "stg", Connection: connection, Kube: h.kube}
}

func drainerAt(t *testing.T, d *Drainer, clients executors.Clients) executors.Drainer {
	t.Helper()
	at, free := d.ForCluster(mine, clients)
	if !free {
		t.Fatal("there is no room for it")
	}
	return at
}

func TestADrainOnAnotherClusterIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, far := newHost(t, podNamed("web-1")), newHost(t, podNamed("web-2"))
		var told []string
		d := here.drainer(func(c *Config) {
			c.OnChange = func(node, by string) {
				here.mu.Lock()
				defer here.mu.Unlock()
				told = append(told, node+" of "+by)
			}
		})
		at := drainerAt(t, d, far.elsewhere("one"))
		order := far.order(drain.Options{})
		order.By = mineThere
		at.Ensure(t.Context(), order)
		d.Keep(func(string, string) bool { return false }) // of this cluster's nodes
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if st := at.Ensure(t.Context(), order); !st.Done {
			t.Errorf("it is %q", standing(st))
		}
		if got := append(here.requests(), far.requests()...); !slices.Equal(got, []string{"evict shop/web-2"}) {
			t.Errorf("asked %q", got)
		}
		if len(told) == 0 || told[0] != "a of "+mine {
			t.Errorf("told %q", told)
		}
		if drainerAt(t, d, far.elsewhere("one")) != at {
			t.Errorf("the same credentials give another drainer")
		}
	})
}

// Nobody keeps the sessions of another cluster: one that its step does not ensure ends.
func TestADrainOnAnotherClusterEndsWithItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, podNamed("web-1"), budget(0))
		order := h.order(drain.Options{})
		at := drainerAt(t, newHost(t).drainer(), h.elsewhere("one"))
		for range 5 {
			at.Ensure(t.Context(), order)
			time.Sleep(leaseFor - time.Second)
		}
		at.Ensure(t.Context(), order)
		time.Sleep(leaseFor + time.Second)
		synctest.Wait()
		h.allow(1)
		time.Sleep(leaseFor)
		synctest.Wait()
		if got := h.requests(); len(got) > 0 {
			t.Errorf("after its lease it asked %q", got)
		}
		at.Ensure(t.Context(), order)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := h.requests(); !slices.Equal(got, []string{"evict shop/web-1"}) {
			t.Errorf("begun anew it asked %q", got)
		}
	})
}

// Other credentials may allow other things: what was begun with the old ones ends.
func TestADrainOnAnotherClusterGoesOnWithItsNewCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, now := newHost(t, podNamed("web-1"), budget(0)), newHost(t, podNamed("web-2"))
		d := newHost(t).drainer()
		drainerAt(t, d, old.elsewhere("old")).Ensure(t.Context(), old.order(drain.Options{}))
		time.Sleep(5 * time.Second)
		at := drainerAt(t, d, now.elsewhere("new"))
		at.Ensure(t.Context(), now.order(drain.Options{}))
		old.allow(1)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if before, after := old.requests(), now.requests(); len(before) > 0 || !slices.Equal(after, []string{"evict shop/web-2"}) {
			t.Errorf("by the old ones %q, by the new ones %q", before, after)
		}
		at.Stop("a", mine)
		time.Sleep(leaseFor)
		d.ForCluster("plan:ops/other", now.elsewhere("other"))
		if len(d.others) != 1 {
			t.Errorf("%d drainers are kept, want that of the other plan", len(d.others))
		}
	})
}

// Who was handed a drainer and has not begun yet keeps it, whoever asks for another one.
func TestADrainerOfAnotherClusterIsNotForgottenBeforeItIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, podNamed("web-1"))
		d := newHost(t).drainer()
		at := drainerAt(t, d, h.elsewhere("one"))
		d.ForCluster("plan:ops/other", newHost(t).elsewhere("two"))
		order := h.order(drain.Options{})
		at.Ensure(t.Context(), order)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if st := at.Ensure(t.Context(), order); !st.Done {
			t.Errorf("it is %q", standing(st))
		}
	})
}

func TestSoManyNodesOfAnotherClusterAreDrainedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, podNamed("web-1"), budget(0))
		at := drainerAt(t, newHost(t).drainer(), h.elsewhere("one"))
		order := h.order(drain.Options{})
		for i := range mostDrains {
			order.Node = fmt.Sprint("n", i)
			at.Ensure(t.Context(), order)
		}
		order.Node = "a"
		if st := at.Ensure(t.Context(), order); st.Done || !strings.HasPrefix(st.Message, "waits: 4 other nodes") {
			t.Errorf("it is %q", standing(st))
		}
		at.Stop("n0", mine)
		if st := at.Ensure(t.Context(), order); st.Reason != executors.DrainListing {
			t.Errorf("it is %q", standing(st))
		}
	})
}

// The agent of the other cluster drops the record of an open node that names plans alone:
// somebody's uncordon is not undone for that.
func TestANodeOfAnotherClusterThatIsUncordonedStaysSoWithoutItsRecord(t *testing.T) {
	s := newDraining(t, ofNode("a", drain.Options{}), nodeNamed("a"))
	s.call = there(s.call)
	s.begin()
	s.pass()
	s.edit("a", func(n *corev1.Node) {
		n.Spec.Unschedulable = false
		delete(n.Annotations, annotations.StatusCordoned)
	})
	if got := outcome(s.pass()); !strings.Contains(got, "Uncordoned") || how(s.node("a")) != "open" {
		t.Errorf("%s; the node is %s", got, how(s.node("a")))
	}
}

// Who asks for a replacement before a pod goes keeps it where none is made.
func TestNoReplacementsAreMadeOnAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, podNamed("web-1", func(p *corev1.Pod) { p.Annotations["maint.dev/drain"] = "surge" }), podNamed("web-2"))
		at := drainerAt(t, newHost(t).drainer(), h.elsewhere("one"))
		order := h.order(drain.Options{})
		at.Ensure(t.Context(), order)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		st := at.Ensure(t.Context(), order)
		if len(st.Blocks) != 1 || !st.Blocks[0].Permanent || !slices.Equal(st.Blocks[0].Pods, []string{"shop/web-1"}) {
			t.Errorf("it is %q, blocked by %+v", standing(st), st.Blocks)
		}
		if got := h.requests(); slices.Contains(got, "evict shop/web-1") {
			t.Errorf("asked %q", got)
		}
	})
}

// What other clusters show is kept in memory: so the plans of a namespace drain on eight at
// once, and those of others do not wait for them.
func TestANamespaceDrainsOnSoManyClustersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newHost(t).drainer()
		far := newHost(t, podNamed("web-1"), budget(0))
		ask := func(by, cluster string) bool {
			clients := far.elsewhere("one")
			clients.Cluster = cluster
			at, free := d.ForCluster(by, clients)
			if free {
				order := far.order(drain.Options{})
				order.By = by
				at.Ensure(t.Context(), order)
			}
			return free
		}
		for i := range mostClusters {
			if !ask(mine, fmt.Sprint("c", i)) {
				t.Errorf("cluster %d has no room", i)
			}
		}
		if ask("plan:ops/second", "stg") || !ask("plan:ops2/roll", "stg") || !ask(mine, "c0") {
			t.Errorf("the ninth has room, or what has it has it no more, or another namespace has not")
		}
		time.Sleep(leaseFor + time.Second)
		synctest.Wait()
		if !ask("plan:ops/second", "stg") {
			t.Errorf("there is no room after the others have ended")
		}
	})
}

// The API server of another cluster may be anybody's: what it shows has a bound.
func TestADrainKeepsNoMoreOfAnotherClusterThanItHasRoomFor(t *testing.T) {
	const size = 15 << 10 // each may be kept: see drain.Pod.Bounded
	fat := func(from, to int) (out []metav1.Object) {
		for i := from; i < to; i++ {
			out = append(out, podNamed(fmt.Sprint("web-", i), func(p *corev1.Pod) { p.Labels["fat"] = strings.Repeat("x", size) }))
		}
		return out
	}
	const room = follow.MostBytes / size
	for name, c := range map[string]struct {
		there, later []metav1.Object
		want         string
	}{
		"a list":  {there: fat(0, room+2), want: "the other cluster shows more than is read of it: 1024 KiB"},
		"a watch": {there: append(fat(0, room-1), budget(0)), later: fat(room, room+3), want: "the other cluster shows more than is read of it: 1024 KiB"},
	} {
		inBubble(t, name, func(t *testing.T) {
			h := newHost(t, c.there...)
			at, order := drainerAt(t, newHost(t).drainer(), h.elsewhere("one")), h.order(drain.Options{})
			at.Ensure(t.Context(), order)
			time.Sleep(5 * time.Second)
			h.put(c.later...)
			time.Sleep(20 * time.Second)
			synctest.Wait()
			st := at.Ensure(t.Context(), order)
			if !strings.Contains(st.Message, c.want) || st.Done {
				t.Errorf("it is %q", standing(st))
			}
			other := at.(*otherCluster) //nolint:forcetypeassert // At gives no other
			other.mu.Lock()
			defer other.mu.Unlock()
			if n := len(other.sessions[place{"a", mine}].seen.pods); n > room {
				t.Errorf("%d pods are kept", n)
			}
		})
	}
}

// A watch that ends is begun anew from a list, and what happened meanwhile is seen.
func TestADrainFollowsAnotherClusterOverTheEndOfItsWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, podNamed("web-1"), podNamed("web-2"), budget(0))
		at, order := drainerAt(t, newHost(t).drainer(), h.elsewhere("one")), h.order(drain.Options{})
		at.Ensure(t.Context(), order)
		time.Sleep(5 * time.Second)
		h.DeleteAtOnce("pods", "shop", "web-1")
		time.Sleep(5 * time.Second)
		h.allow(2)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if st := at.Ensure(t.Context(), order); !st.Done || st.Outcome.Evicted != 1 {
			t.Errorf("it is %q", standing(st))
		}
	})
}
