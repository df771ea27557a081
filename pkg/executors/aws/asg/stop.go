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
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/capacity"
	machines "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/ec2"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/effect"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// What EC2 takes in one filter, and how many instances are asked for in one request (a guess,
// as for targets of type ec2).
const (
	mostValues = 200
	atOnce     = 50
)

// processes are those that are suspended while a group's instances are stopped: each would
// replace or terminate them, or start others.
func processes() []string {
	return []string{"AZRebalance", "AlarmNotification", "HealthCheck", "InstanceRefresh", "Launch", "ReplaceUnhealthy", "ScheduledActions", "Terminate"}
}

// stoppedBefore is what restore data holds of a group whose instances are stopped.
type stoppedBefore struct {
	capacity.Size
	Processes []string `json:"processes"`         // that were suspended to put it to sleep
	Stopped   []string `json:"stopped,omitempty"` // instances that were stopped already
}

// stops has the instances of groups stopped, whose processes are suspended.
type stops struct {
	api       API
	instances map[string]ec2types.Instance // those that were looked at, by their ids
}

// look adds the instances of groups to those that were looked at.
func (s stops) look(ctx context.Context, groups []types.AutoScalingGroup) error {
	var ids []string
	for _, g := range groups {
		ids = append(ids, capacity.Machines(capacity.Members(g))...)
	}
	for some := range slices.Chunk(ids, mostValues) {
		in := &ec2.DescribeInstancesInput{Filters: []ec2types.Filter{{Name: aws.String("instance-id"), Values: some}}}
		for pages := ec2.NewDescribeInstancesPaginator(s.api, in); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return fmt.Errorf("list instances: %w", effect.Plain(err))
			}
			for _, r := range page.Reservations {
				for _, i := range r.Instances {
					s.instances[aws.ToString(i.InstanceId)] = i
				}
			}
		}
	}
	return nil
}

// in are the members of a group that are in a state.
func (s stops) in(g types.AutoScalingGroup, state ec2types.InstanceStateName) []string {
	var out []string
	for _, id := range capacity.Machines(capacity.Members(g)) {
		if i, seen := s.instances[id]; seen && i.State != nil && i.State.Name == state {
			out = append(out, id)
		}
	}
	return out
}

// observed is how a group is: asleep once its processes are suspended and none of its
// instances runs. recorded is what is known of it; nil: nothing is.
func (s stops) observed(g types.AutoScalingGroup, recorded *hibernate.Resource) hibernate.Observation {
	size, members := sizeOf(g), capacity.Members(g)
	o := identity(g)
	o.LeftOut = s.leftOut(g)
	starting, stopping := s.in(g, ec2types.InstanceStateNamePending), s.in(g, ec2types.InstanceStateNameStopping)
	up := len(s.in(g, ec2types.InstanceStateNameRunning)) + len(starting)
	switch {
	case recorded == nil && size.None() && len(members) == 0:
		o.Asleep = true
		return o
	case recorded == nil && slices.ContainsFunc(members, func(i types.Instance) bool { return i.LifecycleState != types.LifecycleStateInService }):
		return o // its instances come or go
	case told(g) && (up == 0 || !sleepsFor(recorded)):
		o.Asleep, o.Starting = up+len(stopping) == 0, len(starting) > 0
		return o
	}
	text, err := json.Marshal(foundFirst(recorded, stoppedBefore{Size: size, Processes: working(g), Stopped: s.in(g, ec2types.InstanceStateNameStopped)}))
	if err != nil {
		return o // names and numbers always have a text; without one nothing is done
	}
	o.Awake, o.Before, o.Ready, o.Units = true, text, ready(g, members, size), capacity.Units(members)
	return o
}

// foundFirst is how a group was before it was put to sleep, where that has begun and is not
// through: what is suspended and stopped by then may be by us, though somebody has resumed a
// process meanwhile.
func foundFirst(recorded *hibernate.Resource, now stoppedBefore) stoppedBefore {
	if recorded == nil || recorded.AsleepAt != nil || recorded.WokenAt != nil || recorded.RestoredAt != nil {
		return now
	}
	var first stoppedBefore
	if json.Unmarshal(recorded.Before, &first) != nil {
		return now
	}
	now.Processes = slices.DeleteFunc(processes(), func(name string) bool {
		return !slices.Contains(first.Processes, name) && !slices.Contains(now.Processes, name)
	})
	now.Stopped = first.Stopped
	return now
}

// sleepsFor says whether a group slept, and was not asked to wake: what runs of it then was
// started by somebody.
func sleepsFor(r *hibernate.Resource) bool {
	return r != nil && r.AsleepAt != nil && r.WokenAt == nil
}

// told says whether all processes are suspended that are while a group sleeps.
func told(g types.AutoScalingGroup) bool { return len(working(g)) == 0 }

// working are the processes of a group that are to be suspended, and are not.
func working(g types.AutoScalingGroup) []string {
	return slices.DeleteFunc(processes(), func(name string) bool { return suspended(g, name) })
}

// leftOut says why the instances of a group are not stopped: they would be replaced, or would
// not come back.
func (s stops) leftOut(g types.AutoScalingGroup) string {
	switch why := notOurs(g); {
	case why != "":
		return why
	case told(g):
		return "its processes are suspended already: somebody else looks after its instances"
	}
	for _, id := range capacity.Machines(capacity.Members(g)) {
		switch i := s.instances[id]; {
		case i.InstanceLifecycle == ec2types.InstanceLifecycleTypeSpot:
			return fmt.Sprintf("its instance %s is a spot instance, which may not come back", id)
		case i.RootDeviceType == ec2types.DeviceTypeInstanceStore:
			return fmt.Sprintf("the root device of its instance %s is an instance store, which is lost when it stops", id)
		}
	}
	return ""
}

// shutdown suspends the processes of groups, and stops their instances.
func (s stops) shutdown(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	return s.each(ctx, due, func(g types.AutoScalingGroup, d hibernate.Due) error {
		names := working(g)
		switch {
		case len(names) > 0 && !d.Seen.Awake: // somebody resumed them since: the next look will say so
			return nil
		case len(names) > 0:
			err := effect.One(ctx, call, func(ctx context.Context) error {
				_, err := s.api.SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: &d.ID, ScalingProcesses: names})
				return err
			})
			if err != nil { // what is stopped while they work is replaced
				return effect.Result(d.ID, "suspend the processes of", err).Err
			}
		}
		return joined(effect.Many(ctx, call, "stop", s.in(g, ec2types.InstanceStateNameRunning), atOnce, func(ctx context.Context, ids []string) error {
			_, err := s.api.StopInstances(ctx, &ec2.StopInstancesInput{InstanceIds: ids})
			return err
		}))
	})
}

// wake starts the instances of groups, and resumes their processes once all run: before, what
// is still stopped would be replaced.
func (s stops) wake(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	due = slices.DeleteFunc(slices.Clone(due), func(d hibernate.Due) bool { return d.Seen.Awake })
	return s.each(ctx, due, func(g types.AutoScalingGroup, d hibernate.Due) error {
		var was stoppedBefore
		if err := json.Unmarshal(d.Before, &was); err != nil {
			return fmt.Errorf("the restore data of %s: %w", d.ID, err)
		}
		if len(was.Processes) == 0 {
			return fmt.Errorf("the restore data of %s does not say which processes are to be resumed", d.ID)
		}
		stopped := slices.DeleteFunc(s.in(g, ec2types.InstanceStateNameStopped), func(id string) bool { return slices.Contains(was.Stopped, id) })
		switch {
		case len(stopped) > 0:
			err := joined(effect.Many(ctx, call, "start", stopped, atOnce, func(ctx context.Context, ids []string) error {
				_, err := s.api.StartInstances(ctx, &ec2.StartInstancesInput{InstanceIds: ids})
				return err
			}))
			if d.FellBack {
				err = errors.Join(err, fmt.Errorf("instances of %s were started and are stopped again; %s", d.ID, machines.KeyHint))
			}
			return err
		case len(s.in(g, ec2types.InstanceStateNamePending))+len(s.in(g, ec2types.InstanceStateNameStopping)) > 0:
			return nil
		}
		return effect.Result(d.ID, "resume the processes of", effect.One(ctx, call, func(ctx context.Context) error {
			_, err := s.api.ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: &d.ID, ScalingProcesses: was.Processes})
			return err
		})).Err
	})
}

// each looks at groups and their instances once more, and does something to each. A group
// that is gone meanwhile, or is another of that name, is left to the next look.
func (s stops) each(ctx context.Context, due []hibernate.Due, do func(g types.AutoScalingGroup, d hibernate.Due) error) []executors.SleepResult {
	if len(due) == 0 {
		return nil
	}
	var names []string
	for _, d := range due {
		names = append(names, d.ID)
	}
	groups, err := capacity.Named(ctx, s.api, names)
	if err == nil {
		err = s.look(ctx, groups)
	}
	if err != nil {
		return []executors.SleepResult{{Err: err}}
	}
	return effect.Each(ctx, due, func(d hibernate.Due) error {
		i := slices.IndexFunc(groups, func(g types.AutoScalingGroup) bool { return aws.ToString(g.AutoScalingGroupARN) == d.UID })
		if i < 0 {
			return nil
		}
		return do(groups[i], d)
	})
}

func joined(results []executors.SleepResult) error {
	var all []error
	for _, r := range results {
		all = append(all, r.Err)
	}
	return errors.Join(all...)
}
