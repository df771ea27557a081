package capacity

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/effect"
)

const (
	mostNames = 100 // that one request may have
	pageOf    = 25  // groups, with all their instances (a guess: of an answer no more than 4 MiB are read)
)

// Named are the Auto Scaling groups of some names that exist.
func Named(ctx context.Context, api autoscaling.DescribeAutoScalingGroupsAPIClient, names []string) ([]types.AutoScalingGroup, error) {
	var out []types.AutoScalingGroup
	for some := range slices.Chunk(names, mostNames) {
		found, err := List(ctx, api, autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: some})
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// List reads all pages of a list of Auto Scaling groups.
func List(ctx context.Context, api autoscaling.DescribeAutoScalingGroupsAPIClient, in autoscaling.DescribeAutoScalingGroupsInput) ([]types.AutoScalingGroup, error) {
	in.MaxRecords = aws.Int32(pageOf)
	var out []types.AutoScalingGroup
	for pages := autoscaling.NewDescribeAutoScalingGroupsPaginator(api, &in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list Auto Scaling groups: %w", effect.WithoutDetails(err))
		}
		out = append(out, page.AutoScalingGroups...)
	}
	return out, nil
}

// Members are the instances that come and go with the size of a group. Instances in Standby, and
// those that are Retained, do not.
func Members(g types.AutoScalingGroup) []types.Instance {
	return slices.DeleteFunc(slices.Clone(g.Instances), func(i types.Instance) bool {
		state := string(i.LifecycleState)
		return strings.HasSuffix(state, "Standby") || strings.HasSuffix(state, ":Retained")
	})
}

// Machines are the ids of instances.
func Machines(members []types.Instance) []string {
	out := make([]string, len(members))
	for i, m := range members {
		out[i] = aws.ToString(m.InstanceId)
	}
	return out
}

// InService says how much of a group's desired capacity is at work, and whether more instances are
// to come.
func InService(members []types.Instance) (weight int32, coming bool) {
	for _, i := range members {
		switch {
		case i.LifecycleState != types.LifecycleStateInService:
			coming = coming || strings.HasPrefix(string(i.LifecycleState), "Pending")
		case aws.ToString(i.HealthStatus) == "Unhealthy":
			coming = true // it is replaced
		default:
			weight += weightOf(i)
		}
	}
	return weight, coming
}

func weightOf(i types.Instance) int32 {
	n, err := strconv.ParseInt(aws.ToString(i.WeightedCapacity), 10, 32)
	if err != nil || n < 1 {
		return 1
	}
	return int32(n)
}

// Units are how many instances there are of each type.
func Units(members []types.Instance) map[string]float64 {
	out := map[string]float64{}
	for _, i := range members {
		out[aws.ToString(i.InstanceType)]++
	}
	return out
}
