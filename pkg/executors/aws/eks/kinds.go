package eks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Sleeps puts the nodes of an EKS cluster to sleep, one kind after the other, and wakes them in
// reverse order.
type Sleeps struct {
	Groups executors.Sleeper // of node groups, in the account
	Pools  executors.Sleeper // of NodePools, in the cluster; it takes hibernate.KarpenterParameters
}

// New reaches EKS by sessions of a session.Pool; pools does what happens inside of clusters.
func New(accounts *session.Pool, pools executors.Sleeper) Sleeps {
	return Sleeps{Groups: newGroups(accounts), Pools: pools}
}

// kind is one kind of nodes of a target.
type kind struct {
	executors.Sleeper
	name string
	call executors.SleepCall
	err  error // why it cannot be looked at
}

// kinds are those of a target, in the order in which they fall asleep. On waking, kinds without a
// record are left out.
func (s Sleeps) kinds(ctx context.Context, call executors.SleepCall) ([]kind, error) {
	p, ok := call.Params.(*hibernate.EKSParameters)
	if !ok || p == nil {
		return nil, fmt.Errorf("the parameters are %T", call.Params)
	}
	var out []kind
	for _, name := range p.Kinds() {
		one := kind{Sleeper: s.Groups, name: name, call: call}
		one.call.Recorded = nil
		for _, r := range call.Recorded {
			if kindOf(r.ID) == name {
				one.call.Recorded = append(one.call.Recorded, r)
			}
		}
		if call.Operation == hibernate.Wake && len(one.call.Recorded) == 0 {
			continue
		}
		if name == hibernate.KarpenterNodes {
			one.Sleeper, one.call.Params = s.Pools, p.Pools()
			one.call.Clients, one.err = connect(ctx, call)
		}
		out = append(out, one)
	}
	if call.Operation == hibernate.Wake {
		slices.Reverse(out)
	}
	return out, nil
}

// kindOf is the kind of nodes of a resource's id.
func kindOf(id string) string {
	if strings.HasPrefix(id, of) {
		return hibernate.ManagedNodeGroups
	}
	return hibernate.KarpenterNodes
}

// connect reaches the cluster that the target's connector names.
func connect(ctx context.Context, call executors.SleepCall) (executors.Clients, error) {
	if call.Cloud == nil || call.Cloud.Connect == nil {
		return executors.Clients{}, errors.New("the target's connector names no cluster of EKS")
	}
	clients, err := call.Cloud.Connect(ctx)
	if err != nil {
		return executors.Clients{}, fmt.Errorf("reach the cluster %s for its NodePools: %w", call.Cloud.Cluster, err)
	}
	return clients, nil
}

// Validate reports the faults of all kinds.
func (s Sleeps) Validate(ctx context.Context, call executors.SleepCall) error {
	kinds, err := s.kinds(ctx, call)
	if err != nil {
		return err
	}
	var faults []string
	for _, k := range kinds {
		err := k.err
		if err == nil {
			err = k.Sleeper.Validate(ctx, k.call)
		}
		if err != nil {
			faults = append(faults, err.Error())
		}
	}
	if len(faults) > 0 {
		return errors.New(strings.Join(faults, "; "))
	}
	return nil
}

// Observe reports the nodes of all kinds. A kind that cannot be read does not keep the others from
// waking.
func (s Sleeps) Observe(ctx context.Context, call executors.SleepCall) ([]hibernate.Observation, error) {
	kinds, err := s.kinds(ctx, call)
	if err != nil {
		return nil, err
	}
	var out []hibernate.Observation
	for _, k := range kinds {
		seen, err := k.observe(ctx)
		switch {
		case err == nil:
			out = append(out, seen...)
		case call.Operation != hibernate.Wake || len(kinds) == 1:
			return nil, err
		default:
			out = append(out, k.unseen(err)...)
		}
	}
	return out, nil
}

func (k kind) observe(ctx context.Context) ([]hibernate.Observation, error) {
	if k.err != nil {
		return nil, k.err
	}
	return k.Sleeper.Observe(ctx, k.call)
}

// unseen are the recorded resources of a kind that cannot be read.
func (k kind) unseen(why error) []hibernate.Observation {
	var out []hibernate.Observation
	for _, r := range k.call.Recorded {
		out = append(out, hibernate.Observation{ID: r.ID, UID: r.UID, Unseen: why})
	}
	return out
}

// Shutdown puts the nodes of the first kind to sleep that has any left.
func (s Sleeps) Shutdown(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	kinds, err := s.kinds(ctx, call)
	if err != nil {
		return executors.NotBegun(err)
	}
	for _, k := range kinds {
		if mine := k.of(due); len(mine) > 0 {
			return k.act(ctx, k.Sleeper.Shutdown, mine)
		}
	}
	return nil
}

// Turn is the kind whose nodes are put to sleep now.
func (Sleeps) Turn(call executors.SleepCall, due []hibernate.Due) []hibernate.Due {
	p, ok := call.Params.(*hibernate.EKSParameters)
	if !ok || p == nil {
		return nil
	}
	for _, name := range p.Kinds() {
		if mine := (kind{name: name}).of(due); len(mine) > 0 {
			return mine
		}
	}
	return nil
}

// Wake restores the nodes of the first kind that has any asleep. After a failure, and where a kind
// cannot be read, no kind waits for another: doubt keeps nothing asleep.
func (s Sleeps) Wake(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	kinds, err := s.kinds(ctx, call)
	if err != nil {
		return executors.NotBegun(err)
	}
	var out []executors.SleepResult
	for _, k := range kinds {
		mine := k.of(due)
		switch {
		case len(mine) == 0:
			continue
		case mine[0].Seen.Unseen != nil:
			out = append(out, executors.SleepResult{ID: mine[0].ID, Err: mine[0].Seen.Unseen})
			continue
		}
		out = append(out, k.act(ctx, k.Sleeper.Wake, mine)...)
		if call.Failures == 0 {
			break
		}
	}
	return out
}

// of are the due resources of a kind.
func (k kind) of(due []hibernate.Due) []hibernate.Due {
	var out []hibernate.Due
	for _, d := range due {
		if kindOf(d.ID) == k.name {
			out = append(out, d)
		}
	}
	return out
}

func (k kind) act(ctx context.Context, do func(context.Context, executors.SleepCall, []hibernate.Due) []executors.SleepResult, due []hibernate.Due) []executors.SleepResult {
	if k.err != nil {
		return executors.NotBegun(k.err)
	}
	return do(ctx, k.call, due)
}
