package asg

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
)

// client has the calls that are made here and no others. Some code of the program finds
// methods by name (text templates do), and so the linker keeps all methods of whatever
// stands in an interface: of the SDK's client that is a whole service, megabytes of it.
// A function says nothing of whose it is.
type client struct {
	describeAutoScalingGroups func(context.Context, *autoscaling.DescribeAutoScalingGroupsInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error)
	updateAutoScalingGroup    func(context.Context, *autoscaling.UpdateAutoScalingGroupInput, ...func(*autoscaling.Options)) (*autoscaling.UpdateAutoScalingGroupOutput, error)
}

func newClient(c *autoscaling.Client) API {
	return client{
		describeAutoScalingGroups: c.DescribeAutoScalingGroups,
		updateAutoScalingGroup:    c.UpdateAutoScalingGroup,
	}
}

// DescribeAutoScalingGroups is the SDK's.
func (c client) DescribeAutoScalingGroups(ctx context.Context, in *autoscaling.DescribeAutoScalingGroupsInput, options ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
	return c.describeAutoScalingGroups(ctx, in, options...)
}

// UpdateAutoScalingGroup is the SDK's.
func (c client) UpdateAutoScalingGroup(ctx context.Context, in *autoscaling.UpdateAutoScalingGroupInput, options ...func(*autoscaling.Options)) (*autoscaling.UpdateAutoScalingGroupOutput, error) {
	return c.updateAutoScalingGroup(ctx, in, options...)
}
