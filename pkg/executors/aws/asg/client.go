package asg

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// client has the calls that are made here and no others. Some code of the program finds
// methods by name (text templates do), and so the linker keeps all methods of whatever
// stands in an interface: of the SDK's client that is a whole service, megabytes of it.
// A function says nothing of whose it is.
type client struct {
	describeAutoScalingGroups func(context.Context, *autoscaling.DescribeAutoScalingGroupsInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error)
	updateAutoScalingGroup    func(context.Context, *autoscaling.UpdateAutoScalingGroupInput, ...func(*autoscaling.Options)) (*autoscaling.UpdateAutoScalingGroupOutput, error)
	suspendProcesses          func(context.Context, *autoscaling.SuspendProcessesInput, ...func(*autoscaling.Options)) (*autoscaling.SuspendProcessesOutput, error)
	resumeProcesses           func(context.Context, *autoscaling.ResumeProcessesInput, ...func(*autoscaling.Options)) (*autoscaling.ResumeProcessesOutput, error)
	describeInstances         func(context.Context, *ec2.DescribeInstancesInput, ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
	stopInstances             func(context.Context, *ec2.StopInstancesInput, ...func(*ec2.Options)) (*ec2.StopInstancesOutput, error)
	startInstances            func(context.Context, *ec2.StartInstancesInput, ...func(*ec2.Options)) (*ec2.StartInstancesOutput, error)
}

func newClient(c *autoscaling.Client, machines *ec2.Client) API {
	return client{
		describeAutoScalingGroups: c.DescribeAutoScalingGroups,
		updateAutoScalingGroup:    c.UpdateAutoScalingGroup,
		suspendProcesses:          c.SuspendProcesses,
		resumeProcesses:           c.ResumeProcesses,
		describeInstances:         machines.DescribeInstances,
		stopInstances:             machines.StopInstances,
		startInstances:            machines.StartInstances,
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

// DescribeInstances is the SDK's.
func (c client) DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput, options ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	return c.describeInstances(ctx, in, options...)
}

// StopInstances is the SDK's.
func (c client) StopInstances(ctx context.Context, in *ec2.StopInstancesInput, options ...func(*ec2.Options)) (*ec2.StopInstancesOutput, error) {
	return c.stopInstances(ctx, in, options...)
}

// StartInstances is the SDK's.
func (c client) StartInstances(ctx context.Context, in *ec2.StartInstancesInput, options ...func(*ec2.Options)) (*ec2.StartInstancesOutput, error) {
	return c.startInstances(ctx, in, options...)
}
