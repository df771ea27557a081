package asg

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/capacity"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// selected are the groups that a selector picks. AWS filters by the keys of tags only: it does not
// document what characters such as * mean in a filter on values, so values are compared here.
func selected(ctx context.Context, api API, s hibernate.CloudSelector) ([]types.AutoScalingGroup, error) {
	in := autoscaling.DescribeAutoScalingGroupsInput{}
	for _, key := range slices.Sorted(maps.Keys(s.Tags)) {
		in.Filters = append(in.Filters, types.Filter{Name: aws.String("tag-key"), Values: []string{key}})
	}
	var found []types.AutoScalingGroup
	var err error
	if len(s.IDs) > 0 {
		found, err = capacity.Named(ctx, api, s.IDs)
	} else {
		found, err = capacity.List(ctx, api, in)
	}
	return slices.DeleteFunc(found, func(g types.AutoScalingGroup) bool {
		return !s.Picks(aws.ToString(g.AutoScalingGroupName), tagsOf(g))
	}), err
}

func tagsOf(g types.AutoScalingGroup) map[string]string {
	out := map[string]string{}
	for _, t := range g.Tags {
		out[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return out
}

func sizeOf(g types.AutoScalingGroup) capacity.Size {
	return capacity.Size{Min: aws.ToInt32(g.MinSize), Desired: aws.ToInt32(g.DesiredCapacity), Max: aws.ToInt32(g.MaxSize)}
}

// identity is the part of an observation that every group has: its id and its machines.
func identity(g types.AutoScalingGroup) hibernate.Observation {
	return hibernate.Observation{
		ID: aws.ToString(g.AutoScalingGroupName), UID: aws.ToString(g.AutoScalingGroupARN), Kind: "group",
		Gone:     g.Status != nil, // AWS sets it where a group is being deleted, and only then
		Machines: capacity.Machines(capacity.Members(g)),
	}
}

// observed says how a group is. It is asleep once its size is zero and it has no instances.
func observed(g types.AutoScalingGroup) hibernate.Observation {
	size, members := sizeOf(g), capacity.Members(g)
	o := identity(g)
	o.LeftOut = leftOut(g)
	if size.None() {
		o.Asleep = len(members) == 0
		return o
	}
	text, err := json.Marshal(size)
	if err != nil {
		return o // three numbers always marshal; without them nothing is done
	}
	o.Awake, o.Before, o.Ready, o.Units = true, text, ready(g, members, size), capacity.Units(members)
	return o
}

// ready says whether the instances that a group should have are in service.
func ready(g types.AutoScalingGroup, members []types.Instance, size capacity.Size) bool {
	weight, coming := capacity.InService(members)
	if unit := aws.ToString(g.DesiredCapacityType); unit != "" && unit != "units" { // vCPUs or memory, of which instances say nothing
		return weight > 0 && !coming
	}
	return weight >= size.Desired
}

// leftOut says why a group is not set to size zero: somebody else manages it, it would keep its
// instances, or it would not get them back.
func leftOut(g types.AutoScalingGroup) string {
	switch why := notOurs(g); {
	case why != "":
		return why
	case suspended(g, "Terminate"):
		return "its process Terminate is suspended: its instances would stay"
	case suspended(g, "Launch"):
		return "its process Launch is suspended: nothing would start when it wakes"
	case slices.ContainsFunc(g.Instances, func(i types.Instance) bool { return aws.ToBool(i.ProtectedFromScaleIn) }):
		return "it has instances that are protected from scale-in, which would stay"
	}
	return ""
}

// notOurs says why a group is left out, whether it would be emptied or stopped.
func notOurs(g types.AutoScalingGroup) string {
	tags := tagsOf(g)
	switch {
	case tags["eks:nodegroup-name"] != "":
		return fmt.Sprintf("it belongs to the managed node group %s; a target of type eks puts that to sleep", tags["eks:nodegroup-name"])
	case g.Operator != nil:
		return fmt.Sprintf("it is managed by %s", aws.ToString(g.Operator.Principal))
	case g.WarmPoolConfiguration != nil:
		return "it has a warm pool, which would fill up instead"
	}
	return ""
}

func suspended(g types.AutoScalingGroup, process string) bool {
	return slices.ContainsFunc(g.SuspendedProcesses, func(p types.SuspendedProcess) bool { return aws.ToString(p.ProcessName) == process })
}
