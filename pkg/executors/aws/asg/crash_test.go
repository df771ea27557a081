package asg

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/capacity"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/sleepertest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// life is a pass of an agent, which may die in it: what it wrote before its effects stays.
func (s *story) life(op hibernate.Operation) (done bool) {
	s.t.Helper()
	defer func() {
		if why := recover(); why != nil && why != any(dead{}) {
			panic(why)
		}
	}()
	step, refused := s.pass(op)
	if refused != "" {
		s.t.Errorf("killed at %s: it says %q", s.death.where, refused)
	}
	return step.Done
}

// crashing is a world of groups, and how they have to be recorded.
type crashing struct {
	story   *story
	backend sleepertest.Backend
	asleep  map[string]string // as the state of the world is then
	before  map[string]string
	calls   []string
}

// scaled are groups that sleep by having no instances.
func scaled(t *testing.T) crashing {
	s := newStory(t)
	s.add("web", capacity.Size{Min: 2, Desired: 3, Max: 5}, "env=stg")
	s.add("jobs", capacity.Size{Desired: 1, Max: 4}, "env=stg")
	s.add("prod", capacity.Size{Min: 1, Desired: 1, Max: 4}, "env=prod")
	return crashing{
		s,
		world{s.account},
		map[string]string{"web": "0/0/5 with 0", "jobs": "0/0/4 with 0", "prod": "1/1/4 with 1"},
		map[string]string{"web": `{"min":2,"desired":3,"max":5}`, "jobs": `{"min":0,"desired":1,"max":4}`},
		[]string{"DescribeAutoScalingGroups", "UpdateAutoScalingGroup"},
	}
}

// stoppedOnes are groups that keep their instances, one of which was stopped before.
func stoppedOnes(t *testing.T) crashing {
	s := newStory(t)
	s.params = stopping()
	s.add("web", capacity.Size{Min: 2, Desired: 3, Max: 5}, "env=stg").SuspendedProcesses = []types.SuspendedProcess{{ProcessName: aws.String("AlarmNotification")}}
	s.add("jobs", capacity.Size{Desired: 2, Max: 4}, "env=stg").SuspendedProcesses = []types.SuspendedProcess{{ProcessName: aws.String("HealthCheck")}}
	s.add("prod", capacity.Size{Min: 1, Desired: 1, Max: 4}, "env=prod")
	s.keeps()
	s.instances["i-jobs-1"].State.Name = ec2types.InstanceStateNameStopped
	all := "[AZRebalance AlarmNotification HealthCheck InstanceRefresh Launch ReplaceUnhealthy ScheduledActions Terminate]"
	return crashing{
		s,
		kept{world{s.account}},
		map[string]string{
			"web":  "2/3/5 with 3 [stopped stopped stopped], suspended " + all,
			"jobs": "0/2/4 with 2 [stopped stopped], suspended " + all,
			"prod": "1/1/4 with 1 [running], suspended []",
		},
		map[string]string{
			"web":  `{"min":2,"desired":3,"max":5,"processes":["AZRebalance","HealthCheck","InstanceRefresh","Launch","ReplaceUnhealthy","ScheduledActions","Terminate"]}`,
			"jobs": `{"min":0,"desired":2,"max":4,"processes":["AZRebalance","AlarmNotification","InstanceRefresh","Launch","ReplaceUnhealthy","ScheduledActions","Terminate"],"stopped":["i-jobs-1"]}`,
		},
		[]string{"DescribeAutoScalingGroups", "DescribeInstances", "SuspendProcesses", "StopInstances", "StartInstances", "ResumeProcesses"},
	}
}

// through has an operation done by an agent that dies on the way, and by the next one.
func (c crashing) through(t *testing.T, op hibernate.Operation) {
	t.Helper()
	for passes := 0; !c.story.life(op); passes++ {
		if passes > 20 {
			t.Fatalf("killed at %s: it comes to no end: %+v", c.story.death.where, c.story.record.Resources)
		}
		c.backend.Settle(t)
	}
	c.backend.Settle(t)
}

// cycle has all sleep and wake, while the agent dies.
func (c crashing) cycle(t *testing.T) {
	t.Helper()
	death, before := &c.story.death, c.backend.State(t)
	c.through(t, hibernate.Shutdown)
	if diff := cmp.Diff(c.asleep, c.backend.State(t)); diff != "" {
		t.Errorf("killed at call %d, %s, it is not asleep (-want +is):\n%s", death.at, death.where, diff)
	}
	recorded := map[string]string{}
	for _, r := range c.story.record.Resources {
		recorded[r.ID] = string(r.Before)
	}
	if diff := cmp.Diff(c.before, recorded); diff != "" {
		t.Errorf("killed at call %d, %s, it is remembered as (-want +is):\n%s", death.at, death.where, diff)
	}
	c.through(t, hibernate.Wake)
	if diff := cmp.Diff(before, c.backend.State(t)); diff != "" {
		t.Errorf("killed at call %d, %s (-was +is):\n%s", death.at, death.where, diff)
	}
}

// Wherever in a cycle an agent dies, the next one has all groups sleep, remembers them as they
// were before the first request, and brings them back so.
func TestWhereverAnAgentDiesGroupsWakeAsTheyWere(t *testing.T) {
	for name, build := range map[string]func(t *testing.T) crashing{"no instances": scaled, "stopped instances": stoppedOnes} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, its reply lost %t", name, lost), func(t *testing.T) {
				var places []string
				for at := 1; ; at++ {
					c := build(t)
					c.story.death = death{at: at, lost: lost}
					c.cycle(t)
					if c.story.death.where == "" { // the cycle ended before its call of that number
						break
					}
					places = append(places, c.story.death.where)
				}
				for _, want := range build(t).calls {
					if !slices.Contains(places, want) {
						t.Errorf("nobody dies at %s among %d calls", want, len(places))
					}
				}
				t.Log(places)
			})
		}
	}
}
