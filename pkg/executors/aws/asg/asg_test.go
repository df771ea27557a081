package asg

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/capacity"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/effect"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/sleepertest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

func TestGroupsSleepAsEveryTargetDoes(t *testing.T) {
	sleepertest.Run(t, func(*testing.T) sleepertest.Backend {
		a := newAccount()
		for n, name := range []string{"stg-a", "stg-b", "stg-c", "stg-d", "stg-e"} {
			a.add(name, capacity.Size{Min: int32(n % 2), Desired: int32(n + 1), Max: 9}, "env=stg")
		}
		a.add("off", capacity.Size{Max: 4}, "env=stg")
		a.add("prod", capacity.Size{Min: 1, Desired: 2, Max: 4}, "env=prod")
		a.add("plain", capacity.Size{Min: 1, Desired: 2, Max: 4})
		a.add("eks-workers", capacity.Size{Min: 1, Desired: 2, Max: 4}, "env=stg", "eks:nodegroup-name=workers")
		return world{a}
	})
}

// story is a target of a plan, as an agent goes on with it.
type story struct {
	*account
	t      *testing.T
	record hibernate.Record
	now    time.Time
	params *hibernate.ASGParameters
}

func newStory(t *testing.T) *story {
	return &story{account: newAccount(), t: t, now: time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC), params: nights()}
}

// pass is one look and what follows from it; it gives what was refused.
func (s *story) pass(op hibernate.Operation) (step hibernate.Step, refused string) {
	s.t.Helper()
	s.now = s.now.Add(time.Second)
	call := executors.SleepCall{Params: s.params, Operation: op, Recorded: s.record.Resources, Now: s.now}
	seen, err := s.sleeps().Observe(s.t.Context(), call)
	if err != nil {
		s.t.Fatal(err)
	}
	act := s.sleeps().Shutdown
	step = s.record.ToSleep(seen, s.now)
	if op == hibernate.Wake {
		act, step = s.sleeps().Wake, s.record.ToWake(seen, s.now)
	}
	s.record = step.Record
	call.Recorded = step.Record.Resources
	var all []string
	for _, r := range act(s.t.Context(), call, step.Due) {
		if r.Err != nil {
			all = append(all, r.Err.Error())
		}
	}
	return step, strings.Join(all, "; ")
}

// sleeping has all groups asleep.
func (s *story) sleeping() {
	s.t.Helper()
	s.pass(hibernate.Shutdown)
	s.settle()
	if step, refused := s.pass(hibernate.Shutdown); !step.Done || refused != "" {
		s.t.Fatalf("it does not sleep: %+v, %q", step, refused)
	}
	s.asked = nil
}

func TestAGroupIsWaitedForUntilItsInstancesAreGone(t *testing.T) {
	s := newStory(t)
	s.add("web", capacity.Size{Min: 2, Desired: 3, Max: 5}, "env=stg")
	s.pass(hibernate.Shutdown)
	for range 2 {
		if step, refused := s.pass(hibernate.Shutdown); step.Done || len(step.Due) != 1 || refused != "" {
			t.Errorf("its instances terminate, and it is %+v, %q", step, refused)
		}
	}
	if diff := cmp.Diff([]string{"web min=0 desired=0"}, s.asked); diff != "" {
		t.Error(diff)
	}
	s.settle()
	if step, _ := s.pass(hibernate.Shutdown); !step.Done {
		t.Errorf("it has none: %+v", step)
	}
	if diff := cmp.Diff(`{"min":2,"desired":3,"max":5}`, string(s.record.Resources[0].Before)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]float64{"m5.large": 3}, s.record.Resources[0].Units); diff != "" {
		t.Error(diff)
	}
}

func TestAGroupIsAwakeOnceItsInstancesAreAtWork(t *testing.T) {
	s := newStory(t)
	s.add("web", capacity.Size{Min: 2, Desired: 3, Max: 5}, "env=stg")
	s.sleeping()
	s.pass(hibernate.Wake)
	if step, refused := s.pass(hibernate.Wake); step.Done || refused != "" {
		t.Errorf("it has no instances yet: %+v, %q", step, refused)
	}
	s.settle()
	if step, _ := s.pass(hibernate.Wake); !step.Done {
		t.Errorf("it has them: %+v", step)
	}
	if diff := cmp.Diff([]string{"web min=2 desired=3"}, s.asked); diff != "" {
		t.Error(diff)
	}
}

func TestWhatSomebodyChangesWhileAGroupSleepsIsTheirs(t *testing.T) {
	for name, c := range map[string]struct {
		change func(a *account)
		want   string // of what is said; empty: it is put back as it was
		asked  []string
	}{
		"nothing":     {func(*account) {}, "", []string{"web min=2 desired=3"}},
		"its desired": {func(a *account) { a.groups["web"].DesiredCapacity = aws.Int32(1) }, "somebody changed it while it slept", nil},
		"its min": {func(a *account) {
			a.groups["web"].MinSize = aws.Int32(1)
			a.groups["web"].DesiredCapacity = aws.Int32(1)
		}, "somebody changed it", nil},
		"its max, higher":     {func(a *account) { a.groups["web"].MaxSize = aws.Int32(9) }, "", []string{"web min=2 desired=3"}},
		"its max, lower":      {func(a *account) { a.groups["web"].MaxSize = aws.Int32(1) }, "web: it was at min 2, desired 3 and is put back at min 1, desired 1: its max is 1 by now", []string{"web min=1 desired=1"}},
		"it is gone":          {func(a *account) { delete(a.groups, "web") }, "it is gone", nil},
		"it is being deleted": {func(a *account) { a.groups["web"].Status = aws.String("Delete in progress") }, "it is gone", nil},
		"it is another":       {func(a *account) { a.add("web", capacity.Size{Max: 5}, "env=stg") }, "it is gone", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.add("web", capacity.Size{Min: 2, Desired: 3, Max: 5}, "env=stg")
			s.sleeping()
			c.change(s.account)
			_, refused := s.pass(hibernate.Wake)
			if got := refused + s.record.Resources[0].Left; !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("it says %q", got)
			}
			s.settle()
			if step, again := s.pass(hibernate.Wake); !step.Done || again != "" {
				t.Errorf("it does not come to an end: %+v, %q", step, again)
			}
			if diff := cmp.Diff(c.asked, s.asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhichMachinesAGroupHas(t *testing.T) {
	g := newAccount().add("web", capacity.Size{Desired: 2, Max: 5})
	g.Instances = []types.Instance{
		{InstanceId: aws.String("i-1"), LifecycleState: types.LifecycleStateInService},
		{InstanceId: aws.String("i-2"), LifecycleState: types.LifecycleStatePending},
		{InstanceId: aws.String("i-3"), LifecycleState: types.LifecycleStateStandby}, // it stays
	}
	if diff := cmp.Diff([]string{"i-1", "i-2"}, observed(*g).Machines); diff != "" {
		t.Error(diff)
	}
}

// Between the look and the request somebody may make it anew: that one is not touched.
func TestAnotherGroupOfTheNameIsNotTouched(t *testing.T) {
	a := newAccount()
	a.add("web", capacity.Size{Min: 1, Desired: 1, Max: 5}, "env=stg")
	call := executors.SleepCall{Params: nights(), Operation: hibernate.Shutdown}
	seen, err := a.sleeps().Observe(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	step := hibernate.Record{}.ToSleep(seen, time.Now())
	a.add("web", capacity.Size{Min: 1, Desired: 1, Max: 5}, "env=stg")
	if results := a.sleeps().Shutdown(t.Context(), call, step.Due); len(a.asked) > 0 || len(results) != 1 || results[0].Err != nil {
		t.Errorf("it asks for %q: %+v", a.asked, results)
	}
}

func TestWhatAWSRefusesOfAGroupIsSaidOfIt(t *testing.T) {
	for code, c := range map[string]struct{ want string }{
		"AccessDenied":              {"set to no instances web: AccessDenied: User: arn:aws:sts::123456789012:assumed-role/nights/maint is not authorized to perform: autoscaling:UpdateAutoScalingGroup"},
		"UnauthorizedOperation":     {"set to no instances web: UnauthorizedOperation: "},
		"ResourceContention":        {""}, // waited for
		"ScalingActivityInProgress": {""},
	} {
		s := newStory(t)
		s.add("web", capacity.Size{Min: 1, Desired: 1, Max: 5}, "env=stg")
		s.add("workers", capacity.Size{Min: 1, Desired: 1, Max: 5}, "env=stg")
		s.refuses["web"] = code
		step, refused := s.pass(hibernate.Shutdown)
		if !strings.HasPrefix(refused, c.want) || c.want == "" && refused != "" || step.Done {
			t.Errorf("%s: it says %q", code, refused)
		}
		if *s.groups["workers"].DesiredCapacity != 0 || *s.groups["web"].DesiredCapacity != 1 {
			t.Errorf("%s: %v", code, world{s.account}.State(t))
		}
		delete(s.refuses, "web")
		s.pass(hibernate.Shutdown)
		s.settle()
		if step, _ := s.pass(hibernate.Shutdown); !step.Done {
			t.Errorf("%s: once it may, it does not sleep: %+v", code, step)
		}
	}
}

func TestALookThatIsDeniedNamesTheRight(t *testing.T) {
	a := newAccount()
	a.lists = "AccessDenied"
	call := executors.SleepCall{Params: nights(), Operation: hibernate.Shutdown}
	_, looked := a.sleeps().Observe(t.Context(), call)
	for _, err := range []error{looked, a.sleeps().Validate(t.Context(), call)} {
		if err == nil || !strings.Contains(err.Error(), "list Auto Scaling groups: AccessDenied") || !strings.Contains(err.Error(), "autoscaling:DescribeAutoScalingGroups") {
			t.Errorf("it says %v", err)
		}
	}
}

func TestWhichGroupsAreLeftOutAndWhy(t *testing.T) {
	for name, c := range map[string]struct {
		make func(g *types.AutoScalingGroup)
		tags []string
		want string
	}{
		"that of a managed node group": {tags: []string{"eks:nodegroup-name=workers", "eks:cluster-name=stg"}, want: "managed node group workers; a target of type eks"},
		"one that a service manages": {make: func(g *types.AutoScalingGroup) {
			g.Operator = &types.Operator{Principal: aws.String("eks.amazonaws.com")}
		}, want: "managed by eks.amazonaws.com"},
		"one with a warm pool": {make: func(g *types.AutoScalingGroup) { g.WarmPoolConfiguration = &types.WarmPoolConfiguration{} }, want: "warm pool"},
		"one that terminates nothing": {make: func(g *types.AutoScalingGroup) {
			g.SuspendedProcesses = []types.SuspendedProcess{{ProcessName: aws.String("Terminate")}}
		}, want: "Terminate is suspended"},
		"one that launches nothing": {make: func(g *types.AutoScalingGroup) {
			g.SuspendedProcesses = []types.SuspendedProcess{{ProcessName: aws.String("Launch")}}
		}, want: "Launch is suspended"},
		"one with a protected instance": {make: func(g *types.AutoScalingGroup) { g.Instances[0].ProtectedFromScaleIn = aws.Bool(true) }, want: "protected from scale-in"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			g := s.add("web", capacity.Size{Min: 1, Desired: 1, Max: 5}, append(c.tags, "env=stg")...)
			if c.make != nil {
				c.make(g)
			}
			step, refused := s.pass(hibernate.Shutdown)
			if !step.Done || refused != "" || len(step.Record.Resources) > 0 || len(step.Record.LeftOut) != 1 || !strings.Contains(step.Record.LeftOut[0], c.want) {
				t.Errorf("it says %+v", step)
			}
			named := executors.SleepCall{Params: &hibernate.ASGParameters{Selector: &hibernate.CloudSelector{IDs: []string{"web"}}}}
			if err := s.sleeps().Validate(t.Context(), named); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("where it is named it says %v", err)
			}
		})
	}
}

func TestWhenAGroupIsAtWork(t *testing.T) {
	in := func(state types.LifecycleState, health, weight string) types.Instance {
		i := types.Instance{LifecycleState: state, HealthStatus: aws.String(health)}
		if weight != "" {
			i.WeightedCapacity = aws.String(weight)
		}
		return i
	}
	const good = "Healthy"
	for name, c := range map[string]struct {
		unit      string
		instances []types.Instance
		want      bool
	}{
		"it has all":                  {"", []types.Instance{in("InService", good, ""), in("InService", good, "")}, true},
		"one is still to come":        {"", []types.Instance{in("InService", good, ""), in("Pending:Wait", good, "")}, false},
		"one is not well":             {"", []types.Instance{in("InService", good, ""), in("InService", "Unhealthy", "")}, false},
		"one counts for two":          {"units", []types.Instance{in("InService", good, "2")}, true},
		"one is taken aside":          {"", []types.Instance{in("InService", good, ""), in("Standby", good, "")}, false},
		"it has none":                 {"", nil, false},
		"vCPUs, and one is there":     {"vcpu", []types.Instance{in("InService", good, "")}, true},
		"vCPUs, and one is to come":   {"vcpu", []types.Instance{in("InService", good, ""), in("Pending", good, "")}, false},
		"vCPUs, and there is nothing": {"vcpu", nil, false},
	} {
		g := types.AutoScalingGroup{MinSize: aws.Int32(0), DesiredCapacity: aws.Int32(2), MaxSize: aws.Int32(4), Instances: c.instances}
		if c.unit != "" {
			g.DesiredCapacityType = aws.String(c.unit)
		}
		if o := observed(g); o.Ready != c.want || !o.Awake {
			t.Errorf("%s: %+v", name, o)
		}
	}
	aside := types.AutoScalingGroup{MinSize: aws.Int32(0), DesiredCapacity: aws.Int32(0), MaxSize: aws.Int32(4), Instances: []types.Instance{in("Standby", good, ""), in("Terminating:Retained", good, "")}}
	if o := observed(aside); !o.Asleep {
		t.Errorf("what somebody took aside does not go: %+v", o)
	}
}

func TestWhatATargetNamesHasToBeThere(t *testing.T) {
	a := newAccount()
	a.add("web", capacity.Size{Min: 1, Desired: 1, Max: 5}, "env=stg")
	for name, c := range map[string]struct {
		s    hibernate.CloudSelector
		want string
	}{
		"a group":                {hibernate.CloudSelector{IDs: []string{"web"}}, ""},
		"one that is not there":  {hibernate.CloudSelector{IDs: []string{"web", "wep"}}, "there is no Auto Scaling group wep"},
		"tags":                   {hibernate.CloudSelector{Tags: map[string]string{"env": "stg"}}, ""},
		"tags that nothing has":  {hibernate.CloudSelector{Tags: map[string]string{"env": "dev"}}, "no Auto Scaling group"},
		"a tag of another value": {hibernate.CloudSelector{Tags: map[string]string{"env": "st*"}}, "no Auto Scaling group"},
	} {
		err := a.sleeps().Validate(t.Context(), executors.SleepCall{Params: &hibernate.ASGParameters{Selector: &c.s}})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRestoreDataThatCannotBeReadWakesNothing(t *testing.T) {
	a := newAccount()
	g := a.add("web", capacity.Size{Max: 5}, "env=stg")
	due := []hibernate.Due{{Resource: hibernate.Resource{ID: "web", UID: *g.AutoScalingGroupARN, Before: json.RawMessage(`{"min":"two"}`)}}}
	results := a.sleeps().Wake(t.Context(), executors.SleepCall{Params: nights()}, due)
	if len(results) != 1 || results[0].Err == nil || !strings.Contains(results[0].Err.Error(), "the restore data of web") || len(a.asked) > 0 {
		t.Errorf("it says %+v and asks for %q", results, a.asked)
	}
}

func TestNothingIsDoneBehindTheFence(t *testing.T) {
	a := newAccount()
	g := a.add("web", capacity.Size{Min: 1, Desired: 1, Max: 5}, "env=stg")
	due := []hibernate.Due{{Resource: hibernate.Resource{ID: "web", UID: *g.AutoScalingGroupARN}, Seen: hibernate.Observation{Awake: true}}}
	fenced := errors.New("another agent may lead")
	call := executors.SleepCall{Params: nights(), Clients: executors.Clients{Fence: func() error { return fenced }}}
	if results := a.sleeps().Shutdown(t.Context(), call, due); len(results) != 1 || !errors.Is(results[0].Err, fenced) {
		t.Errorf("it says %+v", results)
	}
	call.Clients.Fence, call.DryRun = nil, true
	if results := a.sleeps().Shutdown(t.Context(), call, due); len(results) != 1 || results[0].Err != nil {
		t.Errorf("it says %+v", results)
	}
	if len(a.asked) > 0 {
		t.Errorf("it asks for %q", a.asked)
	}
}

// busy answers the first requests that it has too much to do.
func busy(t *testing.T, first int) (api API, asked *int) {
	asked = new(int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*asked++
		if *asked <= first {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error></ErrorResponse>`)
			return
		}
		action := "UpdateAutoScalingGroup"
		if strings.Contains(string(body), "Action=Describe") {
			action = "DescribeAutoScalingGroups"
		}
		fmt.Fprintf(w, `<%[1]sResponse><%[1]sResult><AutoScalingGroups><member><AutoScalingGroupName>web</AutoScalingGroupName><AutoScalingGroupARN>arn</AutoScalingGroupARN><MinSize>1</MinSize><MaxSize>2</MaxSize><DesiredCapacity>1</DesiredCapacity></member></AutoScalingGroups></%[1]sResult></%[1]sResponse>`, action)
	}))
	t.Cleanup(server.Close)
	config := aws.Config{
		Region: "eu-central-1", BaseEndpoint: aws.String(server.URL), HTTPClient: http.DefaultClient, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		Retryer: func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
		},
	}
	return newClient(autoscaling.NewFromConfig(config), ec2.NewFromConfig(config)), asked
}

func TestAThrottledRequestIsTriedAgainByTheSDKAndThenSaid(t *testing.T) {
	api, asked := busy(t, 2)
	if found, err := capacity.Named(t.Context(), api, []string{"web"}); err != nil || len(found) != 1 || *asked != 3 {
		t.Errorf("after %d requests it is %+v, %v", *asked, found, err)
	}
	api, asked = busy(t, 1000)
	results := effect.Each(t.Context(), []hibernate.Due{{Resource: hibernate.Resource{ID: "web"}}, {Resource: hibernate.Resource{ID: "workers"}}}, func(d hibernate.Due) error {
		return set(t.Context(), executors.SleepCall{}, api, d.ID, "put back", capacity.Size{})
	})
	if len(results) != 1 || results[0].Err == nil || results[0].Err.Error() != "put back web: Throttling: Rate exceeded" || *asked != 3 {
		t.Errorf("after %d requests it says %+v", *asked, results)
	}
}
