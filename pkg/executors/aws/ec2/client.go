package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// client has the calls that are made here and no others. Some code of the program finds
// methods by name (text templates do), and so the linker keeps all methods of whatever
// stands in an interface: of the SDK's client that is a whole service, megabytes of it.
// A function says nothing of whose it is.
type client struct {
	describeInstances func(context.Context, *ec2.DescribeInstancesInput, ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
	stopInstances     func(context.Context, *ec2.StopInstancesInput, ...func(*ec2.Options)) (*ec2.StopInstancesOutput, error)
	startInstances    func(context.Context, *ec2.StartInstancesInput, ...func(*ec2.Options)) (*ec2.StartInstancesOutput, error)
}

// NewClient takes the calls of API from the SDK's client.
func NewClient(c *ec2.Client) API {
	return client{
		describeInstances: c.DescribeInstances,
		stopInstances:     c.StopInstances,
		startInstances:    c.StartInstances,
	}
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
