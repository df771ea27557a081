package capacity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// pages is AWS: it knows groups by name, and gives two on a page.
type pages struct {
	groups []string
	asked  []string // how many names, and how many at once
	fails  int      // the request of this number
}

func (p *pages) DescribeAutoScalingGroups(_ context.Context, in *autoscaling.DescribeAutoScalingGroupsInput, _ ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
	p.asked = append(p.asked, fmt.Sprintf("%d names, %d at once", len(in.AutoScalingGroupNames), aws.ToInt32(in.MaxRecords)))
	if len(p.asked) == p.fails {
		return nil, errors.New("AWS is away")
	}
	all := p.groups
	if len(in.AutoScalingGroupNames) > 0 {
		all = slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !slices.Contains(in.AutoScalingGroupNames, name) })
	}
	from := 0
	_, _ = fmt.Sscan(aws.ToString(in.NextToken), &from)
	out := &autoscaling.DescribeAutoScalingGroupsOutput{}
	for _, name := range all[from:min(from+2, len(all))] {
		out.AutoScalingGroups = append(out.AutoScalingGroups, types.AutoScalingGroup{AutoScalingGroupName: aws.String(name)})
	}
	if from+2 < len(all) {
		out.NextToken = aws.String(fmt.Sprint(from + 2))
	}
	return out, nil
}

func namesOf(groups []types.AutoScalingGroup) string {
	var out []string
	for _, g := range groups {
		out = append(out, aws.ToString(g.AutoScalingGroupName))
	}
	return strings.Join(out, " ")
}

// Groups are read to the last page, and their names a hundred at a time.
func TestGroupsAreReadToTheLastPage(t *testing.T) {
	aws := &pages{groups: []string{"a", "b", "c", "d", "e"}}
	if got, err := Named(t.Context(), aws, []string{"a", "c", "e", "ghost"}); namesOf(got) != "a c e" || err != nil {
		t.Errorf("%q %v", namesOf(got), err)
	}
	if diff := cmp.Diff([]string{"4 names, 25 at once", "4 names, 25 at once"}, aws.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	many := make([]string, mostNames+1)
	for i := range many {
		many[i] = fmt.Sprint("group-", i)
	}
	aws = &pages{groups: []string{"group-0", "group-100"}}
	if got, err := Named(t.Context(), aws, many); namesOf(got) != "group-0 group-100" || err != nil {
		t.Errorf("%q %v", namesOf(got), err)
	}
	if diff := cmp.Diff([]string{"100 names, 25 at once", "1 names, 25 at once"}, aws.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	aws = &pages{groups: []string{"a", "b", "c"}, fails: 2}
	if got, err := Named(t.Context(), aws, []string{"a", "b", "c"}); got != nil || err == nil || !strings.HasPrefix(err.Error(), "list Auto Scaling groups: ") {
		t.Errorf("of half an answer: %q %v", namesOf(got), err)
	}
}

func instance(id string, state types.LifecycleState, edits ...func(*types.Instance)) types.Instance {
	i := types.Instance{InstanceId: aws.String(id), InstanceType: aws.String("m5.large"), LifecycleState: state, HealthStatus: aws.String("Healthy")}
	for _, edit := range edits {
		edit(&i)
	}
	return i
}

func weighs(n string) func(*types.Instance) {
	return func(i *types.Instance) { i.WeightedCapacity = aws.String(n) }
}

func unhealthy(i *types.Instance) { i.HealthStatus = aws.String("Unhealthy") }

// Instances that somebody took aside do not come and go with the group's size.
func TestWhichInstancesAreMembers(t *testing.T) {
	group := types.AutoScalingGroup{Instances: []types.Instance{
		instance("at-work", types.LifecycleStateInService), instance("aside", types.LifecycleStateStandby), instance("on-its-way-aside", types.LifecycleStateEnteringStandby),
		instance("comes", types.LifecycleStatePending), instance("kept", "Terminating:Retained"), instance("warm-kept", "Warmed:Retained"), instance("goes", types.LifecycleStateTerminating),
	}}
	got := Machines(Members(group))
	if diff := cmp.Diff([]string{"at-work", "comes", "goes"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(group.Instances) != 7 {
		t.Error("the group itself has lost some")
	}
}

// How much of what is wanted is at work, and whether more is to come.
func TestWhatIsInService(t *testing.T) {
	for _, c := range []struct {
		name    string
		members []types.Instance
		weight  int32
		coming  bool
	}{
		{"none", nil, 0, false},
		{"two at work", []types.Instance{instance("a", types.LifecycleStateInService), instance("b", types.LifecycleStateInService)}, 2, false},
		{"one at work, one that starts", []types.Instance{instance("a", types.LifecycleStateInService), instance("b", types.LifecycleStatePendingWait)}, 1, true},
		{"one that goes is not to come", []types.Instance{instance("a", types.LifecycleStateTerminating)}, 0, false},
		{"one that starts before one that goes", []types.Instance{instance("a", types.LifecycleStatePending), instance("b", types.LifecycleStateTerminating)}, 0, true},
		{"one that is unhealthy is replaced", []types.Instance{instance("a", types.LifecycleStateInService, unhealthy)}, 0, true},
		{"weights are counted", []types.Instance{instance("a", types.LifecycleStateInService, weighs("4")), instance("b", types.LifecycleStateInService, weighs("1"))}, 5, false},
		{"a weight that is none is one", []types.Instance{instance("a", types.LifecycleStateInService, weighs("0")), instance("b", types.LifecycleStateInService, weighs("heavy")), instance("c", types.LifecycleStateInService, weighs("-2"))}, 3, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if weight, coming := InService(c.members); weight != c.weight || coming != c.coming {
				t.Errorf("%d, to come %t", weight, coming)
			}
		})
	}
	large := func(i *types.Instance) { i.InstanceType = aws.String("m5.xlarge") }
	if diff := cmp.Diff(map[string]float64{"m5.large": 2, "m5.xlarge": 1}, Units([]types.Instance{instance("a", ""), instance("b", "", large), instance("c", "")})); diff != "" {
		t.Errorf("units (-want +got):\n%s", diff)
	}
}

// Which groups are made another size, and which are left to the next look.
func TestWhichGroupsAreResized(t *testing.T) {
	awake, starting, asleep := hibernate.Observation{Awake: true}, hibernate.Observation{Starting: true}, hibernate.Observation{Asleep: true}
	refused := errors.New("AWS says no")
	for _, c := range []struct {
		name  string
		seen  hibernate.Observation
		uid   string // of the group that is there
		set   error
		empty string // what was set, and what went wrong
		fill  string
	}{
		{"one that is awake falls asleep, and needs no waking", awake, "u", nil, "set min 0, desired 0 of 8", ""},
		{"one that sleeps wakes, and needs no sleep", asleep, "u", nil, "", "set min 1, desired 3 of 8"},
		{"one that starts is not told again", starting, "u", nil, "", ""},
		{"another group of its name is left alone", asleep, "other", nil, "", ""},
		{"AWS refuses to let it sleep", awake, "u", refused, "set min 0, desired 0 of 8: AWS says no", ""},
		{"AWS refuses to wake it", asleep, "u", refused, "", "set min 1, desired 3 of 8: AWS says no"},
	} {
		t.Run(c.name, func(t *testing.T) {
			due := []hibernate.Due{{Resource: hibernate.Resource{ID: "g", UID: "u", Before: []byte(`{"min":1,"desired":3,"max":8}`)}, Seen: c.seen}}
			for want, resize := range map[string]func(context.Context, []hibernate.Due, Find) []executors.SleepResult{"sleep " + c.empty: Empty, "wake " + c.fill: Refill} {
				said := ""
				find := func(ids []string) ([]Group, error) {
					if !slices.Equal(ids, []string{"g"}) {
						t.Errorf("looked for %q", ids)
					}
					return []Group{{UID: c.uid, Max: 8, Set: func(_ context.Context, _ hibernate.Due, to Size) error {
						said += fmt.Sprintf("set %s of %d", to, to.Max)
						return c.set
					}}}, nil
				}
				for _, r := range resize(t.Context(), due, find) {
					if r.Err != nil {
						said += ": " + r.Err.Error()
					}
				}
				if _, want, _ := strings.Cut(want, " "); said != want {
					t.Errorf("%q, want %q", said, want)
				}
			}
		})
	}
}

// Groups that cannot be looked at are a failure, and where nothing is to be done nobody looks.
func TestGroupsThatCannotBeLookedAt(t *testing.T) {
	away := errors.New("AWS is away")
	find := func([]string) ([]Group, error) { return nil, away }
	due := []hibernate.Due{{Resource: hibernate.Resource{ID: "g"}, Seen: hibernate.Observation{Awake: true}}}
	if got := Empty(t.Context(), due, find); len(got) != 1 || !errors.Is(got[0].Err, away) {
		t.Errorf("%v", got)
	}
	if got := Refill(t.Context(), due, find); got != nil {
		t.Errorf("of one that is awake: %v", got)
	}
}
