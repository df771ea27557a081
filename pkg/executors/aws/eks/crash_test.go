package eks

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// death ends an agent at one of its calls, before it is sent or with its reply lost.
type death struct {
	at    int
	lost  bool
	calls int
	where string // empty: it lives
}

// dead is how an agent ends.
type dead struct{}

func call[R any](d *death, what string, do func() R) R {
	if d.calls++; d.calls != d.at {
		return do()
	}
	d.where = what
	if d.lost {
		do()
	}
	panic(dead{})
}

type answer[T any] struct {
	out *T
	err error
}

func answers[T any](d *death, what string, do func() (*T, error)) (*T, error) {
	got := call(d, what, func() answer[T] {
		out, err := do()
		return answer[T]{out, err}
	})
	return got.out, got.err
}

// deadlyAPI is EKS for an agent that dies.
type deadlyAPI struct {
	API
	*death
}

func (a deadlyAPI) ListNodegroups(ctx context.Context, in *eks.ListNodegroupsInput, o ...func(*eks.Options)) (*eks.ListNodegroupsOutput, error) {
	return answers(a.death, "ListNodegroups", func() (*eks.ListNodegroupsOutput, error) { return a.API.ListNodegroups(ctx, in, o...) })
}

func (a deadlyAPI) DescribeNodegroup(ctx context.Context, in *eks.DescribeNodegroupInput, o ...func(*eks.Options)) (*eks.DescribeNodegroupOutput, error) {
	return answers(a.death, "DescribeNodegroup", func() (*eks.DescribeNodegroupOutput, error) { return a.API.DescribeNodegroup(ctx, in, o...) })
}

func (a deadlyAPI) UpdateNodegroupConfig(ctx context.Context, in *eks.UpdateNodegroupConfigInput, o ...func(*eks.Options)) (*eks.UpdateNodegroupConfigOutput, error) {
	return answers(a.death, "UpdateNodegroupConfig", func() (*eks.UpdateNodegroupConfigOutput, error) { return a.API.UpdateNodegroupConfig(ctx, in, o...) })
}

func (a deadlyAPI) DescribeAutoScalingGroups(ctx context.Context, in *autoscaling.DescribeAutoScalingGroupsInput, o ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
	return answers(a.death, "DescribeAutoScalingGroups", func() (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
		return a.API.DescribeAutoScalingGroups(ctx, in, o...)
	})
}

// deadlyPools are NodePools for an agent that dies, also between two of them.
type deadlyPools struct {
	*pools
	*death
}

func (p deadlyPools) each(what string, due []hibernate.Due, do func(one []hibernate.Due) []executors.SleepResult) []executors.SleepResult {
	var out []executors.SleepResult
	for _, d := range due {
		out = append(out, call(p.death, what, func() []executors.SleepResult { return do([]hibernate.Due{d}) })...)
	}
	return out
}

func (p deadlyPools) Observe(ctx context.Context, c executors.SleepCall) ([]hibernate.Observation, error) {
	return call(p.death, "list NodePools", func() func() ([]hibernate.Observation, error) {
		out, err := p.pools.Observe(ctx, c)
		return func() ([]hibernate.Observation, error) { return out, err }
	})()
}

func (p deadlyPools) Shutdown(ctx context.Context, c executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	return p.each("close a NodePool", due, func(one []hibernate.Due) []executors.SleepResult { return p.pools.Shutdown(ctx, c, one) })
}

func (p deadlyPools) Wake(ctx context.Context, c executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	return p.each("open a NodePool", due, func(one []hibernate.Due) []executors.SleepResult { return p.pools.Wake(ctx, c, one) })
}

// dying is a cluster whose agent dies once; the next one lives.
type dying struct {
	*cluster
	*death
}

func (x dying) Sleeper() executors.Sleeper {
	if x.where != "" {
		return x.cluster.Sleeper()
	}
	open := func(ctx context.Context, _ executors.SleepCall) (API, error) {
		return deadlyAPI{x.account, x.death}, ctx.Err()
	}
	return Sleeps{Groups: Groups{Open: open}, Pools: deadlyPools{x.cluster.pools, x.death}}
}

// life is a pass of an agent, which may die in it: what it wrote before its effects stays.
func (x dying) life(n *night, op hibernate.Operation) (done bool) {
	defer func() {
		if why := recover(); why != nil && why != any(dead{}) {
			panic(why)
		}
	}()
	n.sleeper = x.Sleeper
	step, _ := n.pass(op)
	return step.Done
}

// Wherever in a cycle an agent dies, the next one has all nodes sleep, and brings them back
// as they were.
func TestWhereverAnAgentDiesTheNodesOfBothKindsWakeAsTheyWere(t *testing.T) {
	for _, order := range [][]string{nil, {hibernate.ManagedNodeGroups}} {
		for _, lost := range []bool{false, true} {
			var places []string
			for at := 1; ; at++ {
				x := dying{newCluster(order...), &death{at: at, lost: lost}}
				n, before := newNight(t, x.cluster), x.State(t)
				for _, op := range []hibernate.Operation{hibernate.Shutdown, hibernate.Wake} {
					for passes := 0; !x.life(n, op); passes++ {
						if passes > 40 {
							t.Fatalf("killed at %s: it comes to no end: %+v", x.where, n.record.Resources)
						}
						x.Settle(t)
					}
					if is := x.State(t); op == hibernate.Shutdown && (is["nodepools/general"] != "closed" || is["stg-workers"] == before["stg-workers"]) {
						t.Errorf("killed at %s: %v", x.where, is)
					}
				}
				if diff := cmp.Diff(before, x.State(t)); diff != "" {
					t.Errorf("%v, killed at call %d, %s, its reply lost %t (-was +is):\n%s", order, at, x.where, lost, diff)
				}
				if x.where == "" { // the cycle ended before its call of that number
					break
				}
				places = append(places, x.where)
			}
			for _, want := range []string{"list NodePools", "close a NodePool", "open a NodePool", "ListNodegroups", "DescribeNodegroup", "UpdateNodegroupConfig", "DescribeAutoScalingGroups"} {
				if !slices.Contains(places, want) {
					t.Errorf("nobody dies at %s among %d calls", want, len(places))
				}
			}
			t.Log(fmt.Sprint(order, " ", len(places), " calls"))
		}
	}
}
