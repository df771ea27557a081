package asg

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/smithy-go"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/capacity"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// account is Auto Scaling as it behaves with time: instances come and go when it is
// settled, lists have pages of two, sizes have bounds, and some groups refuse.
type account struct {
	groups  map[string]*types.AutoScalingGroup
	refuses map[string]string // the code with which a request about a group is refused
	lists   string            // the code with which lists are refused
	asked   []string          // each request that changes something
	made    int
}

func newAccount() *account {
	return &account{groups: map[string]*types.AutoScalingGroup{}, refuses: map[string]string{}}
}

// add has a group that is at its size, with tags as key=value.
func (a *account) add(name string, size capacity.Size, tags ...string) *types.AutoScalingGroup {
	a.made++
	g := &types.AutoScalingGroup{
		AutoScalingGroupName: aws.String(name), AutoScalingGroupARN: aws.String(fmt.Sprintf("arn:aws:autoscaling:eu-central-1:123456789012:autoScalingGroup:%d:autoScalingGroupName/%s", a.made, name)),
		MinSize: aws.Int32(size.Min), DesiredCapacity: aws.Int32(size.Desired), MaxSize: aws.Int32(size.Max),
	}
	for _, t := range tags {
		key, value, _ := strings.Cut(t, "=")
		g.Tags = append(g.Tags, types.TagDescription{Key: aws.String(key), Value: aws.String(value)})
	}
	a.groups[name] = g
	fill(g)
	return g
}

// fill gives a group the instances that it is to have.
func fill(g *types.AutoScalingGroup) {
	g.Instances = nil
	for n := range *g.DesiredCapacity {
		g.Instances = append(g.Instances, types.Instance{InstanceId: aws.String(fmt.Sprintf("i-%d", n)), InstanceType: aws.String("m5.large"), LifecycleState: types.LifecycleStateInService, HealthStatus: aws.String("Healthy")})
	}
}

func (a *account) settle() {
	for _, g := range a.groups {
		fill(g)
	}
}

func (a *account) DescribeAutoScalingGroups(ctx context.Context, in *autoscaling.DescribeAutoScalingGroupsInput, _ ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if a.lists != "" {
		return nil, denial(a.lists, "autoscaling:DescribeAutoScalingGroups")
	}
	var found []types.AutoScalingGroup
	for _, name := range slices.Sorted(maps.Keys(a.groups)) {
		g := a.groups[name]
		if len(in.AutoScalingGroupNames) > 0 && !slices.Contains(in.AutoScalingGroupNames, name) {
			continue
		}
		if !slices.ContainsFunc(in.Filters, func(f types.Filter) bool { _, has := tagsOf(*g)[f.Values[0]]; return !has }) {
			found = append(found, *g)
		}
	}
	from, _ := strconv.Atoi(aws.ToString(in.NextToken))
	out := &autoscaling.DescribeAutoScalingGroupsOutput{AutoScalingGroups: found[min(from, len(found)):min(from+2, len(found))]}
	if from+2 < len(found) {
		out.NextToken = aws.String(strconv.Itoa(from + 2))
	}
	return out, nil
}

func denial(code, action string) error {
	return &smithy.GenericAPIError{Code: code, Message: "User: arn:aws:sts::123456789012:assumed-role/nights/maint is not authorized to perform: " + action}
}

func (a *account) UpdateAutoScalingGroup(ctx context.Context, in *autoscaling.UpdateAutoScalingGroupInput, _ ...func(*autoscaling.Options)) (*autoscaling.UpdateAutoScalingGroupOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	name := aws.ToString(in.AutoScalingGroupName)
	a.asked = append(a.asked, fmt.Sprintf("%s min=%d desired=%d", name, aws.ToInt32(in.MinSize), aws.ToInt32(in.DesiredCapacity)))
	if code := a.refuses[name]; code != "" {
		return nil, denial(code, "autoscaling:UpdateAutoScalingGroup")
	}
	g := a.groups[name]
	if lowest, desired := *in.MinSize, *in.DesiredCapacity; lowest > desired || desired > *g.MaxSize {
		return nil, &smithy.GenericAPIError{Code: "ValidationError", Message: fmt.Sprintf("Desired capacity:%d must be between the specified min size:%d and max size:%d", desired, lowest, *g.MaxSize)}
	}
	g.MinSize, g.DesiredCapacity = in.MinSize, in.DesiredCapacity
	for i := range g.Instances {
		if i >= int(*g.DesiredCapacity) {
			g.Instances[i].LifecycleState = types.LifecycleStateTerminating
		}
	}
	return &autoscaling.UpdateAutoScalingGroupOutput{}, nil
}

func (a *account) sleeps() Sleeps {
	return Sleeps{Open: func(ctx context.Context, _ executors.SleepCall) (API, error) { return a, ctx.Err() }}
}

// nights is a target of all that has the tag env=stg.
func nights() *hibernate.ASGParameters {
	return &hibernate.ASGParameters{Selector: &hibernate.CloudSelector{Tags: map[string]string{"env": "stg"}}}
}

// world is an account for the questions that every sleeper is asked.
type world struct{ *account }

func (w world) Sleeper() executors.Sleeper { return w.sleeps() }

func (w world) Call() executors.SleepCall { return executors.SleepCall{Params: nights()} }

func (w world) State(*testing.T) map[string]string {
	out := map[string]string{}
	for name, g := range w.groups {
		out[name] = fmt.Sprintf("%d/%d/%d with %d", *g.MinSize, *g.DesiredCapacity, *g.MaxSize, len(g.Instances))
	}
	return out
}

func (w world) Outside(name string) bool { return !strings.HasPrefix(name, "stg") }

func (w world) Unselect(*testing.T) bool {
	for _, g := range w.groups {
		g.Tags = nil
	}
	return true
}

func (w world) Settle(*testing.T) { w.settle() }
