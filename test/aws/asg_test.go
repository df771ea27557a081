package aws

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	awsasg "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/asg"
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
