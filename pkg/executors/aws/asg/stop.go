package asg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/capacity"
	machines "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/ec2"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/effect"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// How many values EC2 takes in one filter, and how many instances one request names (a guess, as
// for targets of type ec2).
const (
	mostValues = 200
	atOnce     = 50
)

// processes are those that are suspended while the instances of a group are stopped: each would
// replace or terminate stopped instances, or start others.
func processes() []string {
	return []string{"AZRebalance", "AlarmNotification", "HealthCheck", "InstanceRefresh", "Launch", "ReplaceUnhealthy", "ScheduledActions", "Terminate"}
}

// stoppedBefore is the restore data of a group whose instances are stopped.
type stoppedBefore struct {
	capacity.Size
	Processes []string `json:"processes"`         // that were suspended to put it to sleep
	Stopped   []string `json:"stopped,omitempty"` // instances that were stopped already
}

// stops puts groups to sleep by stopping their instances, with the processes of the group
// suspended.
type stops struct {
	api       API
	instances map[string]ec2types.Instance // those that were looked at, by their ids
}

// look reads the instances of groups.
func (s stops) look(ctx context.Context, groups []types.AutoScalingGroup) error {
	var ids []string
	for _, g := range groups {
		ids = append(ids, capacity.Machines(capacity.Members(g))...)
	}
	for some := range slices.Chunk(ids, mostValues) {
		in := &ec2.DescribeInstancesInput{MaxResults: aws.Int32(machines.PageOf), Filters: []ec2types.Filter{{Name: aws.String("instance-id"), Values: some}}}
		for pages := ec2.NewDescribeInstancesPaginator(s.api, in); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return fmt.Errorf("list instances: %w", effect.WithoutDetails(err))
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

// observed says how a group is. It is asleep once its processes are suspended and none of its
// instances runs. What somebody starts or resumes in a sleeping group stays as they set it, and the
// rest sleeps on. recorded is its restore data; nil: there is none.
func (s stops) observed(g types.AutoScalingGroup, op hibernate.Operation, recorded *hibernate.Resource) hibernate.Observation {
	size, members, was := sizeOf(g), capacity.Members(g), beforeOf(recorded)
	o := identity(g)
	o.LeftOut = s.leftOut(g)
	starting, stopping := s.in(g, ec2types.InstanceStateNamePending), s.in(g, ec2types.InstanceStateNameStopping)
	up := append(s.in(g, ec2types.InstanceStateNameRunning), starting...)
	switch {
	case recorded == nil && size.None() && len(members) == 0:
		o.Asleep = true
		return o
	case recorded == nil && slices.ContainsFunc(members, func(i types.Instance) bool { return i.LifecycleState != types.LifecycleStateInService }):
		return o // its instances are starting or stopping
	case sleepsFor(recorded) && s.owed(g, was):
		o.Asleep = true
		o.StartedInPart, o.Units = startedInPart(up, was.resumed(g)), asleepUnits(members, up)
		return o
	case told(g), op == hibernate.Wake && unfinished(recorded) && s.owed(g, was):
		o.Asleep, o.Starting = len(up)+len(stopping) == 0, len(starting) > 0
		return o
	}
	now := stoppedBefore{Size: size, Processes: working(g), Stopped: s.in(g, ec2types.InstanceStateNameStopped)}
	if unfinished(recorded) && !sleepsFor(recorded) {
		now = was.foundFirst(now)
	}
	text, err := json.Marshal(now)
	if err != nil {
		return o // names and numbers always marshal; without them nothing is done
	}
	o.Awake, o.Before, o.Ready, o.Units = true, text, ready(g, members, size), capacity.Units(members)
	return o
}

// owed says whether something is left to put back: a process that we suspended, or an instance that
// we stopped.
func (s stops) owed(g types.AutoScalingGroup, was stoppedBefore) bool {
	held := slices.ContainsFunc(was.Processes, func(name string) bool { return suspended(g, name) })
	return held || told(g) || len(s.toStart(g, was)) > 0 || len(s.in(g, ec2types.InstanceStateNameStopping)) > 0
}

// toStart are the stopped instances of a group that ran before it slept.
func (s stops) toStart(g types.AutoScalingGroup, was stoppedBefore) []string {
	return slices.DeleteFunc(s.in(g, ec2types.InstanceStateNameStopped), func(id string) bool { return slices.Contains(was.Stopped, id) })
}

// beforeOf is the restore data of a group, as far as it can be read.
func beforeOf(recorded *hibernate.Resource) (was stoppedBefore) {
	if recorded == nil || json.Unmarshal(recorded.Before, &was) != nil {
		return stoppedBefore{}
	}
	return was
}

// resumed are the processes that we suspended and that work again.
func (was stoppedBefore) resumed(g types.AutoScalingGroup) []string {
	return slices.DeleteFunc(slices.Clone(was.Processes), func(name string) bool { return suspended(g, name) })
}

// foundFirst keeps the first record of a group whose sleep has begun: what is suspended and stopped
// by now may be our own work, even if somebody has resumed a process meanwhile.
func (was stoppedBefore) foundFirst(now stoppedBefore) stoppedBefore {
	if len(was.Processes) == 0 { // the record cannot be read
		return now
	}
	now.Processes = slices.DeleteFunc(processes(), func(name string) bool {
		return !slices.Contains(was.Processes, name) && !slices.Contains(now.Processes, name)
	})
	now.Stopped = slices.DeleteFunc(now.Stopped, func(id string) bool { return !slices.Contains(was.Stopped, id) })
	return now
}

// startedInPart says what somebody started and resumed of a group that sleeps; empty: nothing.
func startedInPart(up, resumed []string) string {
	var did []string
	if len(up) > 0 {
		did = append(did, fmt.Sprintf("started its instances %s", listed(up)))
	}
	if len(resumed) > 0 {
		did = append(did, fmt.Sprintf("resumed its processes %s", listed(resumed)))
	}
	if len(did) == 0 {
		return ""
	}
	return fmt.Sprintf("somebody %s while it slept: that is left as it is, and the rest wakes with the group", strings.Join(did, " and "))
}

// listed are the first few names, for a message.
func listed(names []string) string { return document.Few(names, 3) }

// asleepUnits counts the members of a group that sleep while others run; nil: all sleep.
func asleepUnits(members []types.Instance, up []string) map[string]float64 {
	if len(up) == 0 {
		return nil
	}
	return capacity.Units(slices.DeleteFunc(members, func(i types.Instance) bool { return slices.Contains(up, aws.ToString(i.InstanceId)) }))
}

// sleepsFor says whether a group slept and nobody asked it to wake: then somebody else started what
// runs of it.
func sleepsFor(r *hibernate.Resource) bool {
	return unfinished(r) && r.AsleepAt != nil && r.WokenAt == nil
}

// unfinished says whether a group is recorded and not restored yet.
func unfinished(r *hibernate.Resource) bool { return r != nil && r.RestoredAt == nil }

// told says whether all processes are suspended that have to be while a group sleeps.
func told(g types.AutoScalingGroup) bool { return len(working(g)) == 0 }

// working are the processes that should be suspended and are not.
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

// shutdown suspends the processes of groups, then stops their instances.
func (s stops) shutdown(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	return s.each(ctx, due, func(g types.AutoScalingGroup, d hibernate.Due) error {
		names := working(g)
		switch {
		case len(names) > 0 && !d.Seen.Awake: // somebody resumed them: the next look says so
			return nil
		case len(names) > 0:
			err := effect.One(ctx, call, func(ctx context.Context) error {
				_, err := s.api.SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: &d.ID, ScalingProcesses: names})
				return err
			})
			if err != nil { // with the processes at work, stopped instances would be replaced
				return effect.Only(effect.Result(d.ID, "suspend the processes of", err).Err)
			}
		}
		return joined(effect.Many(ctx, call, "stop", s.in(g, ec2types.InstanceStateNameRunning), atOnce, func(ctx context.Context, ids []string) error {
			_, err := s.api.StopInstances(ctx, &ec2.StopInstancesInput{InstanceIds: ids})
			return err
		}))
	})
}

// wake starts the instances of groups, and resumes their processes once all instances run. A
// process that is resumed earlier would replace what is still stopped.
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
		switch stopped := s.toStart(g, was); {
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

// each reads groups and their instances again, and calls do for each. A group that is gone, or was
// replaced by another of its name, is left to the next look.
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
		return executors.NotBegun(err)
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
