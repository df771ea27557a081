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
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/capacity"
	machines "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/ec2"
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
	// Of groups whose instances are stopped: what EC2 knows of instances, and those that fall
	// back after a start.
	instances map[string]*ec2types.Instance
	falls     map[string]bool
	values    []int // of how many instances each list is
	death     death
}

// death ends an agent at one of its calls, before it is sent or with its reply lost.
type death struct {
	at    int // zero: it lives on
	lost  bool
	made  []string // calls so far
	where string   // empty: it lives
}

// dead is how an agent ends.
type dead struct{}

// reached is at the beginning of a call, and what it gives at its end.
func (d *death) reached(call string) (ends func()) {
	if d.made = append(d.made, call); len(d.made) != d.at {
		return func() {}
	}
	d.where = call
	if !d.lost {
		panic(dead{})
	}
	return func() { panic(dead{}) }
}

func newAccount() *account {
	return &account{groups: map[string]*types.AutoScalingGroup{}, refuses: map[string]string{}, instances: map[string]*ec2types.Instance{}, falls: map[string]bool{}}
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
	defer a.death.reached("DescribeAutoScalingGroups")()
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
	defer a.death.reached("UpdateAutoScalingGroup")()
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

// keeps has the instances of all groups be known to EC2 as running, each of an id of its own.
func (a *account) keeps() {
	for name, g := range a.groups {
		for n := range g.Instances {
			id := fmt.Sprintf("i-%s-%d", name, n)
			g.Instances[n].InstanceId = &id
			a.instances[id] = &ec2types.Instance{InstanceId: &id, State: &ec2types.InstanceState{Name: ec2types.InstanceStateNameRunning}}
		}
	}
}

// arrive has instances that stop be stopped, and those that start run. A group whose processes
// work replaces what does not run.
func (a *account) arrive(t *testing.T) {
	t.Helper()
	for id, i := range a.instances {
		switch {
		case i.State.Name == ec2types.InstanceStateNameStopping, i.State.Name == ec2types.InstanceStateNamePending && a.falls[id]:
			i.State.Name = ec2types.InstanceStateNameStopped
		case i.State.Name == ec2types.InstanceStateNamePending:
			i.State.Name = ec2types.InstanceStateNameRunning
		}
	}
	for name, g := range a.groups {
		for _, i := range g.Instances {
			if state := a.instances[*i.InstanceId].State.Name; state != ec2types.InstanceStateNameRunning && !suspended(*g, "HealthCheck") {
				t.Errorf("instance %s is %s, and group %s replaces it", *i.InstanceId, state, name)
			}
		}
	}
}

func (a *account) SuspendProcesses(ctx context.Context, in *autoscaling.SuspendProcessesInput, _ ...func(*autoscaling.Options)) (*autoscaling.SuspendProcessesOutput, error) {
	defer a.death.reached("SuspendProcesses")()
	name := *in.AutoScalingGroupName
	if err := a.takes(ctx, name, "suspend "+strings.Join(in.ScalingProcesses, ","), "autoscaling:SuspendProcesses"); err != nil {
		return nil, err
	}
	for _, process := range in.ScalingProcesses {
		a.groups[name].SuspendedProcesses = append(a.groups[name].SuspendedProcesses, types.SuspendedProcess{ProcessName: aws.String(process)})
	}
	return &autoscaling.SuspendProcessesOutput{}, nil
}

func (a *account) ResumeProcesses(ctx context.Context, in *autoscaling.ResumeProcessesInput, _ ...func(*autoscaling.Options)) (*autoscaling.ResumeProcessesOutput, error) {
	defer a.death.reached("ResumeProcesses")()
	name := *in.AutoScalingGroupName
	if err := a.takes(ctx, name, "resume "+strings.Join(in.ScalingProcesses, ","), "autoscaling:ResumeProcesses"); err != nil {
		return nil, err
	}
	g := a.groups[name]
	g.SuspendedProcesses = slices.DeleteFunc(g.SuspendedProcesses, func(p types.SuspendedProcess) bool { return slices.Contains(in.ScalingProcesses, *p.ProcessName) })
	return &autoscaling.ResumeProcessesOutput{}, nil
}

// takes notes a request about something, and says whether it is refused.
func (a *account) takes(ctx context.Context, name, what, right string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a.asked = append(a.asked, name+" "+what)
	if code := a.refuses[name]; code != "" {
		return denial(code, right)
	}
	return nil
}

func (a *account) DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	defer a.death.reached("DescribeInstances")()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if aws.ToInt32(in.MaxResults) != machines.PageOf {
		return nil, fmt.Errorf("a page of %d was asked for", aws.ToInt32(in.MaxResults))
	}
	ids := slices.Clone(in.Filters[0].Values)
	if in.NextToken == nil {
		a.values = append(a.values, len(ids))
	}
	slices.Sort(ids)
	from, _ := strconv.Atoi(aws.ToString(in.NextToken))
	out := &ec2.DescribeInstancesOutput{}
	for _, id := range ids[min(from, len(ids)):min(from+2, len(ids))] {
		if i := a.instances[id]; i != nil {
			seen := *i
			seen.State = &ec2types.InstanceState{Name: i.State.Name}
			out.Reservations = append(out.Reservations, ec2types.Reservation{Instances: []ec2types.Instance{seen}})
		}
	}
	if from+2 < len(ids) {
		out.NextToken = aws.String(strconv.Itoa(from + 2))
	}
	return out, nil
}

func (a *account) StopInstances(ctx context.Context, in *ec2.StopInstancesInput, _ ...func(*ec2.Options)) (*ec2.StopInstancesOutput, error) {
	defer a.death.reached("StopInstances")()
	return &ec2.StopInstancesOutput{}, a.tell(ctx, in.InstanceIds, "stop", "ec2:StopInstances", ec2types.InstanceStateNameStopping)
}

func (a *account) StartInstances(ctx context.Context, in *ec2.StartInstancesInput, _ ...func(*ec2.Options)) (*ec2.StartInstancesOutput, error) {
	defer a.death.reached("StartInstances")()
	return &ec2.StartInstancesOutput{}, a.tell(ctx, in.InstanceIds, "start", "ec2:StartInstances", ec2types.InstanceStateNamePending)
}

// tell has instances be on their way to a state, where none of them refuses.
func (a *account) tell(ctx context.Context, ids []string, what, right string, to ec2types.InstanceStateName) error {
	for _, id := range ids {
		if code := a.refuses[id]; code != "" {
			return denial(code, right)
		}
	}
	if err := a.takes(ctx, strings.Join(ids, ","), what, right); err != nil {
		return err
	}
	for _, id := range ids {
		a.instances[id].State.Name = to
	}
	return nil
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
