// Package asg empties Auto Scaling groups of EC2, or stops their instances, and brings the
// instances back.
package asg

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/capacity"
	machines "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/ec2"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/effect"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/observe"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// API are the calls of Auto Scaling, and those of EC2 about the instances of groups.
type API interface {
	autoscaling.DescribeAutoScalingGroupsAPIClient
	machines.API
	SuspendProcesses(ctx context.Context, in *autoscaling.SuspendProcessesInput, options ...func(*autoscaling.Options)) (*autoscaling.SuspendProcessesOutput, error)
	ResumeProcesses(ctx context.Context, in *autoscaling.ResumeProcessesInput, options ...func(*autoscaling.Options)) (*autoscaling.ResumeProcessesOutput, error)
	UpdateAutoScalingGroup(ctx context.Context, in *autoscaling.UpdateAutoScalingGroupInput, options ...func(*autoscaling.Options)) (*autoscaling.UpdateAutoScalingGroupOutput, error)
}

// Sleeps sets groups to size zero and back to their old size, or stops and starts their instances.
type Sleeps struct {
	Open func(ctx context.Context, call executors.SleepCall) (API, error)
}

// New reaches Auto Scaling by sessions of a pool.
func New(pool *session.Pool) Sleeps {
	return Sleeps{Open: session.Opener(pool, func(config aws.Config) API {
		return newClient(autoscaling.NewFromConfig(config), ec2.NewFromConfig(config))
	})}
}

// Validate checks that each group that is named exists and can be put to sleep, and that some group
// has the tags.
func (s Sleeps) Validate(ctx context.Context, call executors.SleepCall) error {
	p, api, err := observe.Open[hibernate.ASGParameters](ctx, call, s.Open)
	if err != nil {
		return err
	}
	if len(p.Selector.IDs) == 0 {
		found, err := selected(ctx, api, *p.Selector)
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("no Auto Scaling group of region %s has the tags of parameters.selector", call.Region())
		}
		return err
	}
	there, err := capacity.Named(ctx, api, p.Selector.IDs)
	if err != nil {
		return err
	}
	for _, name := range p.Selector.IDs {
		i := slices.IndexFunc(there, func(g types.AutoScalingGroup) bool { return aws.ToString(g.AutoScalingGroupName) == name })
		if i < 0 {
			return fmt.Errorf("there is no Auto Scaling group %s in region %s", name, call.Region())
		}
		why, err := whyNot(ctx, api, p, there[i])
		if err != nil {
			return err
		}
		if why != "" {
			return fmt.Errorf("the Auto Scaling group %s cannot be put to sleep: %s", name, why)
		}
	}
	return nil
}

// whyNot says why a group cannot be put to sleep in the way that the target asks for; empty: it
// can.
func whyNot(ctx context.Context, api API, p *hibernate.ASGParameters, g types.AutoScalingGroup) (string, error) {
	if !p.Stops() {
		return leftOut(g), nil
	}
	s := stops{api, map[string]ec2types.Instance{}}
	if err := s.look(ctx, []types.AutoScalingGroup{g}); err != nil {
		return "", err
	}
	return s.leftOut(g), nil
}

// Observe reports the selected groups and the recorded ones.
func (s Sleeps) Observe(ctx context.Context, call executors.SleepCall) ([]hibernate.Observation, error) {
	p, api, err := observe.Open[hibernate.ASGParameters](ctx, call, s.Open)
	if err != nil {
		return nil, err
	}
	from := observe.Source[types.AutoScalingGroup]{
		Selected: func() ([]types.AutoScalingGroup, error) { return selected(ctx, api, *p.Selector) },
		Named:    func(names []string) ([]types.AutoScalingGroup, error) { return capacity.Named(ctx, api, names) },
		Observed: observed,
	}
	if p.Stops() {
		from = stopped(ctx, call, api, from)
	}
	return observe.Resources(call, from)
}

// stopped finds the groups whose instances are stopped, for observe.Resources.
func stopped(ctx context.Context, call executors.SleepCall, api API, from observe.Source[types.AutoScalingGroup]) observe.Source[types.AutoScalingGroup] {
	s := stops{api, map[string]ec2types.Instance{}}
	withInstances := func(groups []types.AutoScalingGroup, err error) ([]types.AutoScalingGroup, error) {
		if err != nil {
			return nil, err
		}
		return groups, s.look(ctx, groups)
	}
	return observe.Source[types.AutoScalingGroup]{
		Selected: func() ([]types.AutoScalingGroup, error) { return withInstances(from.Selected()) },
		Named:    func(names []string) ([]types.AutoScalingGroup, error) { return withInstances(from.Named(names)) },
		Observed: func(g types.AutoScalingGroup) hibernate.Observation {
			i := slices.IndexFunc(call.Recorded, func(r hibernate.Resource) bool { return r.UID == aws.ToString(g.AutoScalingGroupARN) })
			if i < 0 {
				return s.observed(g, call.Operation, nil)
			}
			return s.observed(g, call.Operation, &call.Recorded[i])
		},
	}
}

// Shutdown sets the groups that have instances to size zero, or stops their instances.
func (s Sleeps) Shutdown(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	p, api, err := observe.Open[hibernate.ASGParameters](ctx, call, s.Open)
	if err != nil {
		return executors.NotBegun(err)
	}
	if p.Stops() {
		return stops{api, map[string]ec2types.Instance{}}.shutdown(ctx, call, due)
	}
	return capacity.Empty(ctx, due, find(ctx, call, api, "set to no instances"))
}

// Wake sets groups to their old size, or starts their instances.
func (s Sleeps) Wake(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	p, api, err := observe.Open[hibernate.ASGParameters](ctx, call, s.Open)
	if err != nil {
		return executors.NotBegun(err)
	}
	if p.Stops() {
		return stops{api, map[string]ec2types.Instance{}}.wake(ctx, call, due)
	}
	return capacity.Refill(ctx, due, find(ctx, call, api, "put back"))
}

// find reads groups right before they are changed.
func find(ctx context.Context, call executors.SleepCall, api API, what string) capacity.Find {
	return func(names []string) ([]capacity.Group, error) {
		found, err := capacity.Named(ctx, api, names)
		var out []capacity.Group
		for _, g := range found {
			out = append(out, capacity.Group{UID: aws.ToString(g.AutoScalingGroupARN), Max: aws.ToInt32(g.MaxSize), Set: func(ctx context.Context, d hibernate.Due, to capacity.Size) error {
				return set(ctx, call, api, d.ID, what, to)
			}})
		}
		return out, err
	}
}

// set changes the size of a group. While AWS is busy with another change of it, the next pass asks
// again.
func set(ctx context.Context, call executors.SleepCall, api API, id, what string, size capacity.Size) error {
	err := effect.One(ctx, call, func(ctx context.Context) error {
		_, err := api.UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{
			AutoScalingGroupName: &id, MinSize: aws.Int32(size.Min), DesiredCapacity: aws.Int32(size.Desired),
		})
		return err
	})
	if code := effect.Code(err); code == "ResourceContention" || code == "ScalingActivityInProgress" {
		return nil
	}
	return effect.Result(id, what, err).Err
}
