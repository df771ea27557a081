package eks

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/eks"
)

// client has the calls that are made here and no others. Some code of the program finds
// methods by name (text templates do), and so the linker keeps all methods of whatever
// stands in an interface: of the SDK's client that is a whole service, megabytes of it.
// A function says nothing of whose it is.
type client struct {
	listNodegroups            func(context.Context, *eks.ListNodegroupsInput, ...func(*eks.Options)) (*eks.ListNodegroupsOutput, error)
	describeNodegroup         func(context.Context, *eks.DescribeNodegroupInput, ...func(*eks.Options)) (*eks.DescribeNodegroupOutput, error)
	updateNodegroupConfig     func(context.Context, *eks.UpdateNodegroupConfigInput, ...func(*eks.Options)) (*eks.UpdateNodegroupConfigOutput, error)
	describeAutoScalingGroups func(context.Context, *autoscaling.DescribeAutoScalingGroupsInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error)
}

func newClient(autoscalingClient *autoscaling.Client, eksClient *eks.Client) API {
	return client{
		listNodegroups:            eksClient.ListNodegroups,
		describeNodegroup:         eksClient.DescribeNodegroup,
		updateNodegroupConfig:     eksClient.UpdateNodegroupConfig,
		describeAutoScalingGroups: autoscalingClient.DescribeAutoScalingGroups,
	}
}

// ListNodegroups is the SDK's.
func (c client) ListNodegroups(ctx context.Context, in *eks.ListNodegroupsInput, options ...func(*eks.Options)) (*eks.ListNodegroupsOutput, error) {
	return c.listNodegroups(ctx, in, options...)
}

// DescribeNodegroup is the SDK's.
func (c client) DescribeNodegroup(ctx context.Context, in *eks.DescribeNodegroupInput, options ...func(*eks.Options)) (*eks.DescribeNodegroupOutput, error) {
	return c.describeNodegroup(ctx, in, options...)
}

// UpdateNodegroupConfig is the SDK's.
func (c client) UpdateNodegroupConfig(ctx context.Context, in *eks.UpdateNodegroupConfigInput, options ...func(*eks.Options)) (*eks.UpdateNodegroupConfigOutput, error) {
	return c.updateNodegroupConfig(ctx, in, options...)
}

// DescribeAutoScalingGroups is the SDK's.
func (c client) DescribeAutoScalingGroups(ctx context.Context, in *autoscaling.DescribeAutoScalingGroupsInput, options ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
	return c.describeAutoScalingGroups(ctx, in, options...)
}
