package eks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/capacity"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/sleepertest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// pools are NodePools of a cluster, each open, closing or closed: what this package hands on
// to another world.
type pools struct {
	state map[string]string
	log   func(format string, args ...any)
	fails error // of every look
}

func (p *pools) Validate(_ context.Context, call executors.SleepCall) error {
	for _, name := range call.Params.(*hibernate.KarpenterParameters).NodePools {
		if p.state[name] == "" {
			return fmt.Errorf("there is no NodePool %s", name)
		}
	}
	return p.fails
}

func (p *pools) Observe(ctx context.Context, call executors.SleepCall) ([]hibernate.Observation, error) {
	if err := errors.Join(ctx.Err(), p.fails); err != nil {
		return nil, err
	}
	names := call.Params.(*hibernate.KarpenterParameters).NodePools
	var out []hibernate.Observation
	for name, state := range p.state {
		id := "nodepools/" + name
		if slices.Contains(names, name) || slices.ContainsFunc(call.Recorded, func(r hibernate.Resource) bool { return r.ID == id }) {
			out = append(out, hibernate.Observation{ID: id, UID: name, Kind: "NodePool", Asleep: state == "closed", Awake: state == "open", Ready: state == "open", Before: []byte(`{}`)})
		}
	}
	return out, nil
}

func (p *pools) set(ctx context.Context, due []hibernate.Due, state string) (out []executors.SleepResult) {
	for _, d := range due {
		name := strings.TrimPrefix(d.ID, "nodepools/")
		if was := p.state[name]; ctx.Err() == nil && was != state && (state == "open" || was == "open") {
			p.log("%s %s", name, state)
			p.state[name] = state
		}
		out = append(out, executors.SleepResult{ID: d.ID, Err: ctx.Err()})
	}
	return out
}

func (p *pools) Shutdown(ctx context.Context, _ executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	return p.set(ctx, due, "closing")
}

func (p *pools) Wake(ctx context.Context, _ executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	return p.set(ctx, due, "open")
}

// cluster is one with nodes of both kinds.
type cluster struct {
	*account
	pools       *pools
	order       []string
	unreachable error
}

func newCluster(order ...string) *cluster {
	c := &cluster{account: newAccount(), order: order}
	c.pools = &pools{state: map[string]string{"general": "open", "spot": "open", "kept": "open"}, log: func(format string, args ...any) { c.asked = append(c.asked, fmt.Sprintf(format, args...)) }}
	c.add("stg-workers", capacity.Size{Min: 1, Desired: 2, Max: 4}, "env=stg")
	c.add("system", capacity.Size{Min: 1, Desired: 1, Max: 2})
	return c
}

func (c *cluster) Sleeper() executors.Sleeper { return Sleeps{Groups: c.sleeps(), Pools: c.pools} }

func (c *cluster) Call() executors.SleepCall {
	return executors.SleepCall{
		Params: &hibernate.EKSParameters{
			ComputePolicy: &hibernate.ComputePolicy{Mode: hibernate.BothKinds, Order: c.order}, Karpenter: &hibernate.NodePools{NodePools: []string{"general", "spot"}},
			ManagedNodeGroups: &hibernate.NodeGroups{Tags: map[string]string{"env": "stg"}},
		},
		Cloud: &executors.Cloud{Cluster: "stg", Connect: func(context.Context) (executors.Clients, error) { return executors.Clients{}, c.unreachable }},
	}
}

func (c *cluster) State(t *testing.T) map[string]string {
	out := world{c.account}.State(t)
	for name, state := range c.pools.state {
		out["nodepools/"+name] = state
	}
	return out
}

func (c *cluster) Outside(id string) bool { return id == "system" || id == "nodepools/kept" }

func (c *cluster) Unselect(t *testing.T) bool { return world{c.account}.Unselect(t) }

func (c *cluster) Settle(*testing.T) {
	c.settle()
	for name, state := range c.pools.state {
		if state == "closing" {
			c.pools.state[name] = "closed"
		}
	}
}

func TestNodesOfBothKindsSleepAsEveryTargetDoes(t *testing.T) {
	for _, order := range [][]string{nil, {hibernate.ManagedNodeGroups, hibernate.KarpenterNodes}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			sleepertest.Run(t, func(*testing.T) sleepertest.Backend { return newCluster(order...) })
		})
	}
}

// night is a target of a cluster, as an agent goes on with it.
type night struct {
	*cluster
	t        *testing.T
	sleeper  func() executors.Sleeper
	record   hibernate.Record
	now      time.Time
	failures int
}

func newNight(t *testing.T, c *cluster) *night {
	return &night{cluster: c, t: t, sleeper: c.Sleeper, now: time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC)}
}

// pass is one look and what follows from it; it gives what was refused.
func (n *night) pass(op hibernate.Operation) (step hibernate.Step, refused string) {
	n.t.Helper()
	n.now = n.now.Add(time.Second)
	call := n.Call()
	call.Operation, call.Recorded, call.Now, call.Failures = op, n.record.Resources, n.now, n.failures
	seen, err := n.sleeper().Observe(n.t.Context(), call)
	if err != nil {
		return step, err.Error()
	}
	act := n.sleeper().Shutdown
	step = n.record.ToSleep(seen, n.now)
	if op == hibernate.Wake {
		act, step = n.sleeper().Wake, n.record.ToWake(seen, n.now)
	}
	n.record = step.Record
	call.Recorded = step.Record.Resources
	var all []string
	for _, r := range act(n.t.Context(), call, step.Due) {
		if r.Err != nil {
			all = append(all, r.Err.Error())
		}
	}
	return step, strings.Join(all, "; ")
}

// through has an operation done, and gives what was asked for, a word each, and a bar where
// what was asked for arrives.
func (n *night) through(op hibernate.Operation) string {
	n.t.Helper()
	var out []string
	for range 20 {
		n.asked = nil
		step, refused := n.pass(op)
		if refused != "" {
			n.t.Fatal(refused)
		}
		if step.Done {
			return strings.Join(out, " | ")
		}
		slices.Sort(n.asked)
		if len(n.asked) > 0 {
			out = append(out, strings.Join(n.asked, ", "))
		}
		n.Settle(n.t)
	}
	n.t.Fatalf("it comes to no end: %+v", n.record.Resources)
	return ""
}

func TestTheKindsOfNodesSleepOneAfterTheOtherAndWakeInTheReverse(t *testing.T) {
	const pools, groups = "general closing, spot closing", "stg-workers min=0 desired=0 max=4"
	const poolsBack, groupsBack = "general open, spot open", "stg-workers min=1 desired=2 max=4"
	for name, c := range map[string]struct {
		order       []string
		sleep, wake string
	}{
		"Karpenter first, unless the order says otherwise": {nil, pools + " | " + groups, groupsBack + " | " + poolsBack},
		"node groups first": {[]string{hibernate.ManagedNodeGroups, hibernate.KarpenterNodes}, groups + " | " + pools, poolsBack + " | " + groupsBack},
	} {
		n := newNight(t, newCluster(c.order...))
		if got := n.through(hibernate.Shutdown); got != c.sleep {
			t.Errorf("%s: it sleeps by %s", name, got)
		}
		if got := n.through(hibernate.Wake); got != c.wake {
			t.Errorf("%s: it wakes by %s", name, got)
		}
	}
}

// Before anything sleeps, doubt about one kind of nodes keeps both awake; on waking it does
// not keep the other asleep.
func TestAKindThatCannotBeReachedKeepsNoOtherAsleep(t *testing.T) {
	for name, c := range map[string]struct {
		breaks  func(*cluster)
		mends   func(*cluster)
		says    string
		awake   string // what wakes all the same
		asleep  string
		nothing bool // of the plan is put to sleep while it is so
	}{
		"the cluster does not let us in": {
			breaks: func(c *cluster) { c.unreachable = errors.New("K8SCluster stg: no access entry") }, mends: func(c *cluster) { c.unreachable = nil },
			says: "reach the cluster stg for its NodePools: K8SCluster stg: no access entry", awake: "stg-workers", asleep: "nodepools/general",
		},
		"Karpenter is gone": {
			breaks: func(c *cluster) { c.pools.fails = errors.New("the cluster serves no NodePools of karpenter.sh/v1") }, mends: func(c *cluster) { c.pools.fails = nil },
			says: "the cluster serves no NodePools", awake: "stg-workers", asleep: "nodepools/general",
		},
		"the account lacks a right": {
			breaks: func(c *cluster) { c.denies = "eks:DescribeNodegroup" }, mends: func(c *cluster) { c.denies = "" },
			says: "look at the node group stg-workers of the cluster stg: AccessDeniedException", awake: "nodepools/general", asleep: "stg-workers",
		},
	} {
		t.Run(name, func(t *testing.T) {
			fresh := newNight(t, newCluster())
			c.breaks(fresh.cluster)
			if _, refused := fresh.pass(hibernate.Shutdown); !strings.Contains(refused, c.says) || len(fresh.asked) > 0 {
				t.Errorf("before anything sleeps it says %q, and asks for %q", refused, fresh.asked)
			}
			if err := fresh.Sleeper().Validate(t.Context(), fresh.Call()); err == nil && name != "the account lacks a right" {
				t.Error("it is found to be well")
			}
			n := newNight(t, newCluster())
			before := n.State(t)
			n.through(hibernate.Shutdown)
			c.breaks(n.cluster)
			said := ""
			for range 4 {
				step, refused := n.pass(hibernate.Wake)
				if step.Done {
					t.Fatal("it is said to be awake")
				}
				said += refused
				n.Settle(t)
			}
			n.failures = 1
			if _, refused := n.pass(hibernate.Wake); !strings.Contains(said, c.says) || strings.Count(refused, c.says) != 1 {
				t.Errorf("it says %q, then %q", said, refused)
			}
			n.Settle(t)
			if is := n.State(t); is[c.awake] != before[c.awake] || is[c.asleep] == before[c.asleep] {
				t.Errorf("it is %v", is)
			}
			c.mends(n.cluster)
			n.through(hibernate.Wake)
			if diff := cmp.Diff(before, n.State(t)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A node group that does not come up keeps NodePools closed until that is a failure.
func TestAfterAFailureNoKindWaitsForAnother(t *testing.T) {
	n := newNight(t, newCluster())
	n.through(hibernate.Shutdown)
	n.refuses["stg-workers"] = "InvalidRequestException"
	if _, refused := n.pass(hibernate.Wake); !strings.Contains(refused, "InvalidRequestException") || n.pools.state["general"] != "closed" {
		t.Errorf("%q, and the pools are %v", refused, n.pools.state)
	}
	n.failures = 1
	if n.pass(hibernate.Wake); n.pools.state["general"] != "open" {
		t.Errorf("the pools are %v", n.pools.state)
	}
}

func TestANodePoolThatIsNamedHasToBeThere(t *testing.T) {
	c := newCluster()
	call := c.Call()
	params := call.Params.(*hibernate.EKSParameters)
	params.Karpenter.NodePools, params.ManagedNodeGroups = []string{"none"}, &hibernate.NodeGroups{Names: []string{"gone"}}
	if err := c.Sleeper().Validate(t.Context(), call); err == nil || err.Error() != "there is no NodePool none; there is no managed node group gone in the cluster stg" {
		t.Errorf("it says %v", err)
	}
}

// Who has no NodePools sleep needs no access to the cluster.
func TestNodeGroupsAloneNeedNoClusterToBeReached(t *testing.T) {
	c := newCluster()
	c.unreachable = errors.New("nobody may")
	call := c.Call()
	params := call.Params.(*hibernate.EKSParameters)
	params.ComputePolicy, params.Karpenter = nil, nil
	if err := c.Sleeper().Validate(t.Context(), call); err != nil {
		t.Error(err)
	}
	if seen, err := c.Sleeper().Observe(t.Context(), call); err != nil || len(seen) != 1 {
		t.Errorf("%+v, %v", seen, err)
	}
}
