// Package asg takes the instances out of Auto Scaling groups of EC2, and has them have
// theirs again.
package asg

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/capacity"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/effect"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/observe"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// API is what Auto Scaling is asked.
type API interface {
	autoscaling.DescribeAutoScalingGroupsAPIClient
	UpdateAutoScalingGroup(ctx context.Context, in *autoscaling.UpdateAutoScalingGroupInput, options ...func(*autoscaling.Options)) (*autoscaling.UpdateAutoScalingGroupOutput, error)
}

// Sleeps sets groups to no instances, and back to what they had.
type Sleeps struct {
	Open func(ctx context.Context, call executors.SleepCall) (API, error)
}

// New reaches Auto Scaling by sessions of a pool.
func New(pool *session.Pool) Sleeps {
	return Sleeps{Open: session.Opener(pool, func(config aws.Config) API { return newClient(autoscaling.NewFromConfig(config)) })}
}

// Validate looks whether each group that is named is there and can be put to sleep, and
// some group has the tags.
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
		if why := leftOut(there[i]); why != "" {
			return fmt.Errorf("the Auto Scaling group %s cannot be put to sleep: %s", name, why)
		}
	}
	return nil
}

// Observe says how the selected groups are, and the recorded ones.
func (s Sleeps) Observe(ctx context.Context, call executors.SleepCall) ([]hibernate.Observation, error) {
	p, api, err := observe.Open[hibernate.ASGParameters](ctx, call, s.Open)
	if err != nil {
		return nil, err
	}
	return observe.Resources(call, observe.Source[types.AutoScalingGroup]{
		Selected: func() ([]types.AutoScalingGroup, error) { return selected(ctx, api, *p.Selector) },
		Named:    func(names []string) ([]types.AutoScalingGroup, error) { return capacity.Named(ctx, api, names) },
		Observed: observed,
	})
}

// Shutdown sets the groups that have instances to none.
func (s Sleeps) Shutdown(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	_, api, err := observe.Open[hibernate.ASGParameters](ctx, call, s.Open)
	if err != nil {
		return []executors.SleepResult{{Err: err}}
	}
	return capacity.Empty(ctx, due, find(ctx, call, api, "set to no instances"))
}

// Wake sets groups to what they had.
func (s Sleeps) Wake(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	_, api, err := observe.Open[hibernate.ASGParameters](ctx, call, s.Open)
	if err != nil {
		return []executors.SleepResult{{Err: err}}
	}
	return capacity.Refill(ctx, due, find(ctx, call, api, "put back"))
}

// find looks at groups right before they are changed.
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

// set has a group be of a size. While another change of it is under way it is asked again.
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
