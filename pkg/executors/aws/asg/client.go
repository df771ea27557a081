package asg

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	machines "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/ec2"
)

// client has the calls that are made here and no others. Some code of the program finds
// methods by name (text templates do), and so the linker keeps all methods of whatever
// stands in an interface: of the SDK's client that is a whole service, megabytes of it.
// A function says nothing of whose it is.
type client struct {
	machines.API
	describeAutoScalingGroups func(context.Context, *autoscaling.DescribeAutoScalingGroupsInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error)
	updateAutoScalingGroup    func(context.Context, *autoscaling.UpdateAutoScalingGroupInput, ...func(*autoscaling.Options)) (*autoscaling.UpdateAutoScalingGroupOutput, error)
	suspendProcesses          func(context.Context, *autoscaling.SuspendProcessesInput, ...func(*autoscaling.Options)) (*autoscaling.SuspendProcessesOutput, error)
	resumeProcesses           func(context.Context, *autoscaling.ResumeProcessesInput, ...func(*autoscaling.Options)) (*autoscaling.ResumeProcessesOutput, error)
}

func newClient(c *autoscaling.Client, ec2Client *ec2.Client) API {
	return client{
		API:                       machines.NewClient(ec2Client),
		describeAutoScalingGroups: c.DescribeAutoScalingGroups,
		updateAutoScalingGroup:    c.UpdateAutoScalingGroup,
		suspendProcesses:          c.SuspendProcesses,
		resumeProcesses:           c.ResumeProcesses,
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

// SuspendProcesses is the SDK's.
func (c client) SuspendProcesses(ctx context.Context, in *autoscaling.SuspendProcessesInput, options ...func(*autoscaling.Options)) (*autoscaling.SuspendProcessesOutput, error) {
	return c.suspendProcesses(ctx, in, options...)
}

// ResumeProcesses is the SDK's.
func (c client) ResumeProcesses(ctx context.Context, in *autoscaling.ResumeProcessesInput, options ...func(*autoscaling.Options)) (*autoscaling.ResumeProcessesOutput, error) {
	return c.resumeProcesses(ctx, in, options...)
}
