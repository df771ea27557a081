// Package asg takes the instances out of Auto Scaling groups of EC2, and has them have
// theirs again.
package asg

import (
	"context"
	"encoding/json"
	"errors"
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
	return Sleeps{Open: func(ctx context.Context, call executors.SleepCall) (API, error) {
		config, err := pool.Config(ctx, call)
		if err != nil {
			return nil, err
		}
		return autoscaling.NewFromConfig(config), nil
	}}
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
	there, err := named(ctx, api, p.Selector.IDs)
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
		Named:    func(names []string) ([]types.AutoScalingGroup, error) { return named(ctx, api, names) },
		Observed: observed,
	})
}

// Shutdown sets the groups that have instances to none. Those that lose theirs are waited
// for.
func (s Sleeps) Shutdown(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	due = slices.DeleteFunc(slices.Clone(due), func(d hibernate.Due) bool { return !d.Seen.Awake })
	return s.resize(ctx, call, due, "set to no instances", func(types.AutoScalingGroup, hibernate.Due) (capacity.Size, string, error) {
		return capacity.Size{}, "", nil
	})
}

// Wake sets groups to what they had, within the max that they have now. Where that is less
// than they had it is a failure, which is said once: then the group is awake.
func (s Sleeps) Wake(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	due = slices.DeleteFunc(slices.Clone(due), func(d hibernate.Due) bool { return d.Seen.Awake })
	return s.resize(ctx, call, due, "put back", func(g types.AutoScalingGroup, d hibernate.Due) (capacity.Size, string, error) {
		var was capacity.Size
		if err := json.Unmarshal(d.Before, &was); err != nil {
			return was, "", fmt.Errorf("the restore data of %s: %w", d.ID, err)
		}
		size, why := was.Within(aws.ToInt32(g.MaxSize))
		return size, why, nil
	})
}

// resize looks at groups once more and sets each to a size. A group that is gone meanwhile,
// or is another of that name, is left to the next look.
func (s Sleeps) resize(ctx context.Context, call executors.SleepCall, due []hibernate.Due, what string, to func(types.AutoScalingGroup, hibernate.Due) (capacity.Size, string, error)) []executors.SleepResult {
	if len(due) == 0 {
		return nil
	}
	var names []string
	for _, d := range due {
		names = append(names, d.ID)
	}
	_, api, err := observe.Open[hibernate.ASGParameters](ctx, call, s.Open)
	if err != nil {
		return []executors.SleepResult{{Err: err}}
	}
	groups, err := named(ctx, api, names)
	if err != nil {
		return []executors.SleepResult{{Err: err}}
	}
	return effect.Each(ctx, due, func(d hibernate.Due) error {
		i := slices.IndexFunc(groups, func(g types.AutoScalingGroup) bool { return aws.ToString(g.AutoScalingGroupARN) == d.UID })
		if i < 0 {
			return nil
		}
		size, why, err := to(groups[i], d)
		if err != nil {
			return err
		}
		return errors.Join(set(ctx, call, api, d.ID, what, size), other(d.ID, why))
	})
}

func other(id, why string) error {
	if why == "" {
		return nil
	}
	return fmt.Errorf("%s: %s", id, why)
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
