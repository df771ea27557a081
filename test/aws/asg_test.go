package aws

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	awsasg "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/asg"
	awsec2 "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/ec2"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/sleepertest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// groups is a world of Auto Scaling groups, of which those with env=stg sleep.
type groups struct {
	api     *autoscaling.Client
	sleeper executors.Sleeper
}

func (w *groups) add(t *testing.T, name string, lowest, desired, most int32, tags ...string) {
	t.Helper()
	in := &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: &name, LaunchConfigurationName: aws.String("small"), AvailabilityZones: []string{region + "a"},
		MinSize: &lowest, DesiredCapacity: &desired, MaxSize: &most,
	}
	for _, tag := range tags {
		key, value, _ := strings.Cut(tag, "=")
		in.Tags = append(in.Tags, types.Tag{Key: aws.String(key), Value: aws.String(value), ResourceId: &name, ResourceType: aws.String("auto-scaling-group"), PropagateAtLaunch: aws.Bool(false)})
	}
	if _, err := w.api.CreateAutoScalingGroup(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

func newGroups(t *testing.T) sleepertest.Backend {
	w := &groups{api: autoscaling.NewFromConfig(fresh(t)), sleeper: awsasg.New(session.NewPool(time.Now))}
	in := &autoscaling.CreateLaunchConfigurationInput{LaunchConfigurationName: aws.String("small"), ImageId: aws.String("ami-12c6146b"), InstanceType: aws.String("t3.micro")}
	if _, err := w.api.CreateLaunchConfiguration(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	w.add(t, "stg-web", 1, 2, 4, "env=stg", "team=*")
	w.add(t, "stg-workers", 0, 3, 3, "env=stg", "team=*")
	w.add(t, "off", 0, 0, 3, "env=stg", "team=*")
	w.add(t, "other-team", 1, 1, 2, "env=stg", "team=other")
	w.add(t, "prod-web", 1, 1, 2, "env=prod", "team=*")
	w.add(t, "eks-workers", 1, 1, 2, "env=stg", "team=*", "eks:nodegroup-name=workers")
	return w
}

func (w *groups) Sleeper() executors.Sleeper { return w.sleeper }

func (w *groups) Call() executors.SleepCall {
	return call(&hibernate.ASGParameters{Selector: &hibernate.CloudSelector{Tags: map[string]string{"env": "stg", "team": "*"}}})
}

func (w *groups) State(t *testing.T) map[string]string {
	t.Helper()
	got, err := w.api.DescribeAutoScalingGroups(t.Context(), &autoscaling.DescribeAutoScalingGroupsInput{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, g := range got.AutoScalingGroups {
		out[*g.AutoScalingGroupName] = fmt.Sprintf("%d/%d/%d with %d", *g.MinSize, *g.DesiredCapacity, *g.MaxSize, len(g.Instances))
	}
	return out
}

func (w *groups) Outside(name string) bool { return !strings.HasPrefix(name, "stg-") }

func (w *groups) Unselect(t *testing.T) bool {
	t.Helper()
	for _, name := range []string{"stg-web", "stg-workers"} {
		in := &autoscaling.DeleteTagsInput{Tags: []types.Tag{{Key: aws.String("env"), ResourceId: aws.String(name), ResourceType: aws.String("auto-scaling-group")}}}
		if _, err := w.api.DeleteTags(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	return true
}

func (w *groups) Settle(*testing.T) {}

func TestAutoScalingGroups(t *testing.T) { sleepertest.Run(t, newGroups) }

// kept is a world of Auto Scaling groups whose instances are stopped.
type kept struct {
	*groups
	machines *ec2.Client
}

func newKept(t *testing.T) sleepertest.Backend {
	w := newGroups(t).(*groups)
	held := &autoscaling.SuspendProcessesInput{AutoScalingGroupName: aws.String("stg-web"), ScalingProcesses: []string{"Terminate", "AddToLoadBalancer"}}
	if _, err := w.api.SuspendProcesses(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	return kept{w, ec2.NewFromConfig(admin())}
}

func (w kept) Call() executors.SleepCall {
	c := w.groups.Call()
	c.Params.(*hibernate.ASGParameters).Strategy = hibernate.StopInstances
	return c
}

// State is the size of each group, how its instances are, and which processes are suspended.
func (w kept) State(t *testing.T) map[string]string {
	t.Helper()
	states := (&instances{api: w.machines}).State(t)
	got, err := w.api.DescribeAutoScalingGroups(t.Context(), &autoscaling.DescribeAutoScalingGroupsInput{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, g := range got.AutoScalingGroups {
		var is, held []string
		for _, i := range g.Instances {
			is = append(is, *i.InstanceId+" "+states[*i.InstanceId])
		}
		for _, p := range g.SuspendedProcesses {
			held = append(held, *p.ProcessName)
		}
		slices.Sort(is)
		slices.Sort(held)
		out[*g.AutoScalingGroupName] = fmt.Sprintf("%d/%d/%d %q, suspended %q", *g.MinSize, *g.DesiredCapacity, *g.MaxSize, is, held)
	}
	return out
}

func TestAutoScalingGroupsThatKeepTheirInstances(t *testing.T) { sleepertest.Run(t, newKept) }

// Instances that a group made are its own: a target of type ec2 leaves them alone, whatever
// their tags say.
func TestMembersOfAutoScalingGroupsAreNoTargetsOfEC2(t *testing.T) {
	w := newGroups(t).(*groups)
	machines := ec2.NewFromConfig(admin())
	got, err := w.api.DescribeAutoScalingGroups(t.Context(), &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{"stg-web"}})
	if err != nil {
		t.Fatal(err)
	}
	var members []string
	for _, i := range got.AutoScalingGroups[0].Instances {
		members = append(members, *i.InstanceId)
	}
	tag := &ec2.CreateTagsInput{Resources: members, Tags: []ec2types.Tag{{Key: aws.String("env"), Value: aws.String("stg")}}}
	if _, err := machines.CreateTags(t.Context(), tag); err != nil {
		t.Fatal(err)
	}
	alone := launch(t, machines, 1, "env=stg")
	sleeper := awsec2.New(session.NewPool(time.Now))
	for name, c := range map[string]struct {
		selector hibernate.CloudSelector
		due      []string
	}{
		"by tags": {hibernate.CloudSelector{Tags: map[string]string{"env": "stg"}}, alone},
		"by ids":  {hibernate.CloudSelector{IDs: members}, nil},
	} {
		ask := call(&hibernate.EC2Parameters{Selector: &c.selector})
		ask.Operation = hibernate.Shutdown
		seen, err := sleeper.Observe(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		step := hibernate.Record{}.ToSleep(seen, time.Now())
		var due []string
		for _, d := range step.Due {
			due = append(due, d.ID)
		}
		if !slices.Equal(due, c.due) || len(step.Record.LeftOut) != len(members) {
			t.Errorf("%s: %q are due, left out are %q", name, due, step.Record.LeftOut)
		}
		for _, why := range step.Record.LeftOut {
			if !strings.Contains(why, "it is a member of the Auto Scaling group stg-web, which would replace it") {
				t.Errorf("%s: it says %q", name, why)
			}
		}
		for _, r := range sleeper.Shutdown(t.Context(), ask, step.Due) {
			if r.Err != nil {
				t.Error(r.Err)
			}
		}
	}
	states := (&instances{api: machines}).State(t)
	for _, id := range members {
		if states[id] != "running" {
			t.Errorf("member %s is %s", id, states[id])
		}
	}
	if states[alone[0]] != "stopped" {
		t.Errorf("the instance that is no member is %s", states[alone[0]])
	}
}
