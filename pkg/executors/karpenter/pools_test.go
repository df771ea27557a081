package karpenter

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/sleepertest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// pools is a cluster with NodePools and their NodeClaims, and one call for them.
type pools struct {
	*agenttest.Cluster
	*testing.T
	call executors.SleepCall
}

func newPools(t *testing.T, names ...string) *pools {
	p := &pools{Cluster: agenttest.New(t), T: t}
	p.Serve(
		agenttest.Kind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool", Resource: "nodepools"},
		agenttest.Kind{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim", Resource: "nodeclaims"},
	)
	p.call = executors.SleepCall{Plan: executors.PlanRef{Name: "nights", Manager: "maint-plan-x"}, Operation: hibernate.Shutdown, Params: &hibernate.KarpenterParameters{NodePools: names}, Clients: p.Clients()}
	return p
}

func (p *pools) object(format string, args ...any) {
	p.Helper()
	p.Put(agenttest.Object(p.T, fmt.Sprintf(format, args...)))
}

func (p *pools) pool(name, spec string) {
	p.Helper()
	p.object(`{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":%q,"uid":"uid-%s"},"spec":%s}`, name, name, spec)
}

// claim is a node of a pool, as Karpenter keeps it until it is drained.
func (p *pools) claim(name, pool, more string) {
	p.Helper()
	p.object(`{"apiVersion":"karpenter.sh/v1","kind":"NodeClaim","metadata":{"name":%q,"finalizers":["karpenter.sh/termination"],"labels":{"karpenter.sh/nodepool":%q}%s},"status":{"providerID":"aws:///a/i-%s"}}`, name, pool, more, name)
}

func (p *pools) observe() []hibernate.Observation {
	p.Helper()
	seen, err := Sleeps{}.Observe(p.Context(), p.call)
	if err != nil {
		p.Fatal(err)
	}
	return seen
}

// due is what was seen, recorded as it was at first.
func (p *pools) due() []hibernate.Due {
	p.Helper()
	return sleepertest.Due(&p.call, p.observe())
}

// stands is a pool's spec, and which of its nodes are there and not about to go.
func (p *pools) stands(name string) string {
	p.Helper()
	text, err := json.Marshal(p.Get("nodepools", "", name).Object["spec"])
	if err != nil {
		p.Fatal(err)
	}
	var stay []string
	for _, claim := range p.Names("nodeclaims") {
		u := p.Get("nodeclaims", "", strings.TrimPrefix(claim, "/"))
		if u.GetLabels()[poolLabel] == name && u.GetDeletionTimestamp() == nil {
			stay = append(stay, u.GetName())
		}
	}
	return fmt.Sprintf("%s %v", text, stay)
}

func errorsOf(t *testing.T, all []executors.SleepResult) []string {
	t.Helper()
	var out []string
	for _, r := range all {
		if r.Err != nil {
			out = append(out, r.ID+": "+r.Err.Error())
		}
	}
	return out
}

// A NodePool may make no more nodes first, then its nodes go; on waking it has its limits back.
func TestANodePoolWakesAsItWas(t *testing.T) {
	for _, c := range []struct{ name, spec, closed, after, meanwhile string }{
		{"with a limit of its cpu", `{"limits":{"cpu":"1000","memory":"1Ti"},"weight":10}`, `{"limits":{"cpu":"0","memory":"1Ti"},"weight":10}`, `{"limits":{"cpu":"1000","memory":"1Ti"},"weight":10}`, ""},
		{"with a limit of its memory alone", `{"limits":{"memory":"1Ti"}}`, `{"limits":{"cpu":"0","memory":"1Ti"}}`, `{"limits":{"memory":"1Ti"}}`, ""},
		{"without limits", `{"weight":1}`, `{"limits":{"cpu":"0"},"weight":1}`, `{"weight":1}`, ""},
		{"without limits, until somebody added one", `{"weight":1}`, `{"limits":{"cpu":"0"},"weight":1}`, `{"limits":{"memory":"200Gi"},"weight":1}`, `{"limits":{"cpu":"0","memory":"200Gi"},"weight":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPools(t)
			p.pool("small", c.spec)
			p.claim("n1", "small", "")
			p.claim("n2", "other", "")
			step := func(do func(context.Context, executors.SleepCall, []hibernate.Due) []executors.SleepResult, want string) {
				t.Helper()
				if faults := errorsOf(t, do(t.Context(), p.call, p.due())); faults != nil {
					t.Errorf("%q", faults)
				}
				if got := p.stands("small"); got != want {
					t.Errorf("it is %s, want %s", got, want)
				}
			}
			step(Sleeps{}.Shutdown, c.closed+" [n1]")
			step(Sleeps{}.Shutdown, c.closed+" []")
			deletions := func() int { return p.Asked(agenttest.When{Verb: "delete", Resource: "nodeclaims"}) }
			step(Sleeps{}.Shutdown, c.closed+" []")
			if deletions() != 1 || p.Get("nodeclaims", "", "n2").GetDeletionTimestamp() != nil {
				t.Errorf("%d deletions", deletions())
			}
			if o := p.observe()[0]; o.Asleep || o.Awake {
				t.Errorf("while its node is drained: %+v", o)
			}
			p.DeleteAtOnce("nodeclaims", "", "n1")
			if o := p.observe()[0]; !o.Asleep {
				t.Errorf("without nodes: %+v", o)
			}
			if c.meanwhile != "" {
				p.pool("small", c.meanwhile)
			}
			p.call.Operation = hibernate.Wake
			step(Sleeps{}.Wake, c.after+" []")
			writes := len(p.Log())
			step(Sleeps{}.Wake, c.after+" []")
			if len(p.Log()) != writes {
				t.Errorf("one that is awake is written again: %q", p.Log())
			}
		})
	}
}

// Which NodePools a target means.
func TestWhichNodePoolsSleep(t *testing.T) {
	for _, c := range []struct {
		name     string
		names    []string
		op       hibernate.Operation
		recorded []hibernate.Resource
		want     []string
	}{
		{"all of them", nil, hibernate.Shutdown, nil, []string{"nodepools/large", "nodepools/small"}},
		{"those that are named", []string{"small"}, hibernate.Shutdown, nil, []string{"nodepools/small"}},
		{"one that is recorded and not named any more, too", []string{"small"}, hibernate.Shutdown, []hibernate.Resource{{ID: "nodepools/large", UID: "uid-large"}}, []string{"nodepools/large", "nodepools/small"}},
		{"not one whose name another had when it was recorded", []string{"small"}, hibernate.Shutdown, []hibernate.Resource{{ID: "nodepools/large", UID: "uid-of-before"}}, []string{"nodepools/small"}},
		{"on waking only those that are recorded", nil, hibernate.Wake, []hibernate.Resource{{ID: "nodepools/large", UID: "uid-large"}}, []string{"nodepools/large"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPools(t, c.names...)
			p.pool("small", `{}`)
			p.pool("large", `{}`)
			p.claim("n1", "large", "")
			p.call.Operation, p.call.Recorded = c.op, c.recorded
			var got []string
			for _, o := range p.observe() {
				got = append(got, o.ID)
				if want := map[string][]string{"nodepools/large": {"aws:///a/i-n1"}}[o.ID]; !slices.Equal(o.Machines, want) {
					t.Errorf("%s has the machines %q", o.ID, o.Machines)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A node that has no machine yet is none that stops.
func TestNodesWithoutAMachine(t *testing.T) {
	p := newPools(t)
	p.pool("small", `{}`)
	p.object(`{"apiVersion":"karpenter.sh/v1","kind":"NodeClaim","metadata":{"name":"new","labels":{"karpenter.sh/nodepool":"small"}}}`)
	if o := p.observe()[0]; len(o.Machines) != 0 || o.Units["nodes"] != 1 {
		t.Errorf("%+v", o)
	}
}

// What is wrong with a target is told before anything of it is touched.
func TestWhatIsWrongWithATargetOfNodePools(t *testing.T) {
	for _, c := range []struct {
		name   string
		names  []string
		world  func(*pools)
		params any
		want   string
	}{
		{"nothing", []string{"small"}, nil, nil, ""},
		{"a name that is not there", []string{"small", "ghost"}, nil, nil, "there is no NodePool ghost"},
		{"a cluster without Karpenter", nil, func(p *pools) { p.Unserve("nodepools") }, nil, "the cluster serves no NodePools of karpenter.sh/v1"},
		{"a right that is missing", nil, func(p *pools) { p.Deny("", "list", "nodepools") }, nil, "list NodePools: nodepools.karpenter.sh is forbidden: "},
		{"parameters of another type", nil, nil, &hibernate.NoopParameters{}, "the parameters are *hibernate.NoopParameters"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPools(t, c.names...)
			p.pool("small", `{}`)
			if c.world != nil {
				c.world(p)
			}
			if c.params != nil {
				p.call.Params = c.params
			}
			err := Sleeps{}.Validate(t.Context(), p.call)
			if (err != nil) != (c.want != "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			if _, err := (Sleeps{}).Observe(t.Context(), p.call); (err != nil) != (c.want != "" && len(c.names) == 0) {
				t.Errorf("a look: %v", err)
			}
		})
	}
}

// What becomes of a write: what somebody else wrote is looked at again first, and one that
// is refused keeps no other from going.
func TestWritesOfNodePoolsThatDoNotSucceed(t *testing.T) {
	for _, c := range []struct {
		name   string
		closed bool // its nodes are to go
		world  func(*pools)
		faults []string
		want   string
	}{
		{"somebody sets a limit meanwhile: that is not overwritten unseen", false, func(p *pools) {
			p.Before(agenttest.When{Verb: "patch"}, func() { p.pool("small", `{"limits":{"cpu":"5"}}`) })
		}, nil, `{"limits":{"cpu":"5"}} [n1 n2]`},
		{"a webhook says no", false, func(p *pools) {
			p.Refuse(agenttest.When{Verb: "patch"}, 1, http.StatusBadRequest, "no")
		}, []string{"nodepools/small: nodepools/small: no"}, `{} [n1 n2]`},
		{"nodes that cannot be listed", true, func(p *pools) {
			p.Refuse(agenttest.When{Verb: "list", Resource: "nodeclaims"}, 1, http.StatusBadRequest, "no")
		}, []string{": list NodeClaims: no"}, `{"limits":{"cpu":"0"}} [n1 n2]`},
		{"one node that may not be deleted", true, func(p *pools) {
			p.Refuse(agenttest.When{Verb: "delete", Name: "n1"}, 1, http.StatusBadRequest, "no")
		}, []string{"nodepools/small: delete NodeClaim n1: no"}, `{"limits":{"cpu":"0"}} [n1]`},
		{"one node that is gone meanwhile", true, func(p *pools) {
			p.Before(agenttest.When{Verb: "delete", Name: "n1"}, func() { p.DeleteAtOnce("nodeclaims", "", "n1") })
		}, nil, `{"limits":{"cpu":"0"}} []`},
		{"one node in whose place another of its name stands", true, func(p *pools) {
			p.Before(agenttest.When{Verb: "delete", Name: "n1"}, func() {
				p.DeleteAtOnce("nodeclaims", "", "n1")
				p.claim("n1", "small", `,"uid":"another"`)
			})
		}, nil, `{"limits":{"cpu":"0"}} [n1]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPools(t)
			p.pool("small", `{}`)
			p.claim("n1", "small", "")
			p.claim("n2", "small", "")
			due := p.due()
			if c.closed {
				p.pool("small", `{"limits":{"cpu":"0"}}`)
				due = p.due()
			}
			c.world(p)
			if diff := cmp.Diff(c.faults, errorsOf(t, Sleeps{}.Shutdown(t.Context(), p.call, due))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := p.stands("small"); got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
		})
	}
}

// A pass whose time is over deletes no more nodes.
func TestAPassWhoseTimeIsOverDeletesNoMoreNodes(t *testing.T) {
	p := newPools(t)
	p.pool("small", `{"limits":{"cpu":"0"}}`)
	p.claim("n1", "small", "")
	p.claim("n2", "small", "")
	due := p.due()
	ctx, cancel := context.WithCancel(t.Context())
	p.Before(agenttest.When{Verb: "delete", Name: "n1"}, cancel)
	Sleeps{}.Shutdown(ctx, p.call, due)
	if n := p.Asked(agenttest.When{Verb: "delete"}); n != 1 {
		t.Errorf("%d were asked for", n)
	}
}
