package ec2

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/sleepertest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

const (
	running = types.InstanceStateNameRunning
	stopped = types.InstanceStateNameStopped
)

func TestInstancesSleepAsEveryTargetDoes(t *testing.T) {
	sleepertest.Run(t, func(*testing.T) sleepertest.Backend {
		a := newAccount()
		for _, id := range []string{"i-stg1", "i-stg2", "i-stg3", "i-stg4", "i-stg5"} {
			a.add(id, running, "env=stg")
		}
		a.add("i-stg-off", stopped, "env=stg")
		a.add("i-prod", running, "env=prod")
		a.add("i-plain", running)
		a.add("i-asg", running, "env=stg", "aws:autoscaling:groupName=web")
		return world{a}
	})
}

// due are instances of an account as a pass is given them.
func due(t *testing.T, a *account, call executors.SleepCall) []hibernate.Due {
	t.Helper()
	seen, err := a.sleeps().Observe(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	var out []hibernate.Due
	for _, o := range seen {
		out = append(out, hibernate.Due{Resource: hibernate.Resource{ID: o.ID, UID: o.UID}, Seen: o})
	}
	return out
}

// said is what came of a pass, by instance; empty: it was done.
func said(results []executors.SleepResult) map[string]string {
	out := map[string]string{}
	for _, r := range results {
		out[r.ID] = ""
		if r.Err != nil {
			out[r.ID] = r.Err.Error()
		}
	}
	return out
}

func TestAProtectedInstanceSpoilsNothing(t *testing.T) {
	a := newAccount()
	a.add("i-1", running, "env=stg")
	a.add("i-2", running, "env=stg")
	a.add("i-3", running, "env=stg")
	a.refuses["i-2"] = "OperationNotPermitted"
	call := executors.SleepCall{Params: nights(), Operation: hibernate.Shutdown}
	got := said(a.sleeps().Shutdown(t.Context(), call, due(t, a, call)))
	want := map[string]string{"i-1": "", "i-2": "stop i-2: OperationNotPermitted: The instance 'i-2' may not be modified", "i-3": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if a.instances["i-1"].State.Name == running || a.instances["i-2"].State.Name != running || a.instances["i-3"].State.Name == running {
		t.Errorf("it is %v", world{a}.State(t))
	}
}

func TestWhenAWSHasTooMuchToDoItIsNotAskedForEachInstance(t *testing.T) {
	a := newAccount()
	a.add("i-1", running, "env=stg")
	a.add("i-2", running, "env=stg")
	a.throttles = true
	call := executors.SleepCall{Params: nights(), Operation: hibernate.Shutdown}
	for id, message := range said(a.sleeps().Shutdown(t.Context(), call, due(t, a, call))) {
		if !strings.Contains(message, "RequestLimitExceeded") {
			t.Errorf("%s: %q", id, message)
		}
	}
	if len(a.asked) != 1 {
		t.Errorf("it was asked %d times: %q", len(a.asked), a.asked)
	}
}

// Of a large answer no more than a part is read, so lists are asked for in small pages.
func TestListsOfInstancesHaveSmallPages(t *testing.T) {
	for name, s := range map[string]hibernate.CloudSelector{"by tags": {Tags: map[string]string{"room": "stg"}}, "by ids": {IDs: []string{"i-0", "i-1", "i-2"}}} {
		t.Run(name, func(t *testing.T) {
			a := newAccount()
			for n := range 3 {
				a.add(fmt.Sprintf("i-%d", n), running, "room=stg")
			}
			call := executors.SleepCall{Params: &hibernate.EC2Parameters{Selector: &s}, Operation: hibernate.Shutdown}
			if list := due(t, a, call); len(list) != 3 || a.unbounded {
				t.Errorf("%d are seen; a page of any size was asked for: %t", len(list), a.unbounded)
			}
		})
	}
}

// A filter takes two hundred values, and one request is for fifty instances at most.
func TestNoMoreInstancesAreAskedForAtOnceThanGoTogether(t *testing.T) {
	a := newAccount()
	var ids []string
	for n := range 401 {
		id := fmt.Sprintf("i-%03d", n)
		ids = append(ids, id)
		a.add(id, running)
	}
	call := executors.SleepCall{Params: &hibernate.EC2Parameters{Selector: &hibernate.CloudSelector{IDs: ids}}, Operation: hibernate.Shutdown}
	list := due(t, a, call)
	a.sleeps().Shutdown(t.Context(), call, list)
	if diff := cmp.Diff([]int{200, 200, 1}, a.values); diff != "" || len(list) != len(ids) {
		t.Errorf("%d are seen\n%s", len(list), diff)
	}
	most := 0
	for _, one := range a.asked {
		most = max(most, strings.Count(one, "i-"))
	}
	if len(a.asked) != 9 || most != 50 {
		t.Errorf("%d requests, of %d instances at most", len(a.asked), most)
	}
}

func TestALookThatIsDeniedNamesTheRight(t *testing.T) {
	for _, code := range []string{"UnauthorizedOperation", "AccessDenied"} {
		a := newAccount()
		a.lists = code
		call := executors.SleepCall{Params: nights(), Operation: hibernate.Shutdown}
		_, looked := a.sleeps().Observe(t.Context(), call)
		for _, err := range []error{looked, a.sleeps().Validate(t.Context(), call)} {
			if err == nil || !strings.HasPrefix(err.Error(), "list instances: "+code+": ") || !strings.Contains(err.Error(), "ec2:DescribeInstances") {
				t.Errorf("it says %v", err)
			}
		}
	}
}

func TestAnInstanceThatFallsBackIsAFailure(t *testing.T) {
	for name, looks := range map[string]bool{"seen on its way up": true, "between two looks": false} {
		t.Run(name, func(t *testing.T) {
			a := newAccount()
			a.add("i-1", stopped, "env=stg")
			a.falls["i-1"] = true
			now := time.Now()
			r := hibernate.Record{Operation: hibernate.Wake, Resources: []hibernate.Resource{{ID: "i-1", UID: "i-1", AsleepAt: &now}}}
			pass := func() map[string]string {
				call := executors.SleepCall{Params: nights(), Operation: hibernate.Wake, Recorded: r.Resources}
				seen, err := a.sleeps().Observe(t.Context(), call)
				if err != nil {
					t.Fatal(err)
				}
				step := r.ToWake(seen, now)
				r = step.Record
				call.Recorded = r.Resources
				return said(a.sleeps().Wake(t.Context(), call, step.Due))
			}
			if got := pass(); got["i-1"] != "" {
				t.Errorf("the start is %q", got["i-1"])
			}
			if looks {
				pass()
			}
			a.settle()
			a.instances["i-1"].LaunchTime = aws.Time(now.Add(time.Second))
			if looks {
				a.instances["i-1"].LaunchTime = aws.Time(now.Add(-time.Hour))
			}
			if got := pass(); !strings.Contains(got["i-1"], "is stopped again") || !strings.Contains(got["i-1"], "kms:CreateGrant") {
				t.Errorf("it fell back, and that is %q", got["i-1"])
			}
			if got := a.asked[len(a.asked)-1]; got != "start i-1" || len(a.asked) != 2 {
				t.Errorf("it is not started anew: %q", a.asked)
			}
		})
	}
}

// AWS may say that an instance runs for a while after it took the request to stop it.
func TestAnInstanceThatWakesBeforeItsStopShowsIsStartedAgain(t *testing.T) {
	a := newAccount()
	a.add("i-1", running, "env=stg")
	var r hibernate.Record
	now := time.Now()
	pass := func(op hibernate.Operation) hibernate.Step {
		now = now.Add(time.Second)
		call := executors.SleepCall{Params: nights(), Operation: op, Recorded: r.Resources, Now: now}
		seen, err := a.sleeps().Observe(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		act, step := a.sleeps().Shutdown, r.ToSleep(seen, now)
		if op == hibernate.Wake {
			act, step = a.sleeps().Wake, r.ToWake(seen, now)
		}
		r, call.Recorded = step.Record, step.Record.Resources
		for id, message := range said(act(t.Context(), call, step.Due)) {
			if message != "" {
				t.Errorf("%s: %s", id, message)
			}
		}
		return step
	}
	pass(hibernate.Shutdown)
	a.shows["i-1"] = running
	if step := pass(hibernate.Wake); step.Done || step.Again.IsZero() {
		t.Errorf("it counts as awake: %+v", step)
	}
	delete(a.shows, "i-1")
	for range 3 {
		pass(hibernate.Wake)
		a.settle()
	}
	if step := pass(hibernate.Wake); !step.Done || a.instances["i-1"].State.Name != running {
		t.Errorf("it is %v: %+v", world{a}.State(t), step)
	}
	if diff := cmp.Diff([]string{"stop i-1 hibernate=false", "start i-1"}, a.asked); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsDeniedIsSaidOfEachInstance(t *testing.T) {
	for _, code := range []string{"UnauthorizedOperation", "AccessDenied"} {
		a := newAccount()
		a.add("i-1", running, "env=stg")
		a.add("i-2", running, "env=stg")
		a.refuses["i-2"] = code
		call := executors.SleepCall{Params: nights(), Operation: hibernate.Shutdown}
		got := said(a.sleeps().Shutdown(t.Context(), call, due(t, a, call)))
		if got["i-1"] != "" || !strings.HasPrefix(got["i-2"], "stop i-2: "+code+": ") {
			t.Errorf("%s: it says %q", code, got)
		}
	}
}

func TestWhatIsOnItsWayIsWaitedFor(t *testing.T) {
	a := newAccount()
	a.add("i-1", types.InstanceStateNamePending, "env=stg")
	a.add("i-2", types.InstanceStateNameStopping, "env=stg")
	call := executors.SleepCall{Params: nights(), Operation: hibernate.Shutdown}
	seen, err := a.sleeps().Observe(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	step := hibernate.Record{}.ToSleep(seen, time.Now())
	if step.Done || len(step.Due) > 0 || len(step.Record.Resources) > 0 {
		t.Errorf("nobody knows yet how they will be, and it says %+v", step)
	}
	a.sleeps().Shutdown(t.Context(), call, due(t, a, call))
	if len(a.asked) > 0 {
		t.Errorf("it asks for %q", a.asked)
	}
}

func TestWhatIsLeftOutAndWhy(t *testing.T) {
	for name, c := range map[string]struct {
		make func(i *types.Instance)
		tags []string
		want string
	}{
		"a member of an Auto Scaling group": {tags: []string{"aws:autoscaling:groupName=web"}, want: "Auto Scaling group web"},
		"a node of a managed node group":    {tags: []string{"aws:autoscaling:groupName=eks-x", "eks:nodegroup-name=workers"}, want: "managed node group workers"},
		"a node of Karpenter's":             {tags: []string{"karpenter.sh/nodepool=default"}, want: "Karpenter"},
		"a node of EKS Auto Mode": {make: func(i *types.Instance) {
			i.Operator = &types.OperatorResponse{Managed: aws.Bool(true), Principal: aws.String("eks.amazonaws.com")}
		}, want: "managed by eks.amazonaws.com"},
		"a spot instance":            {make: func(i *types.Instance) { i.InstanceLifecycle = types.InstanceLifecycleTypeSpot }, want: "spot"},
		"one with an instance store": {make: func(i *types.Instance) { i.RootDeviceType = types.DeviceTypeInstanceStore }, want: "instance store"},
		"a capacity block":           {make: func(i *types.Instance) { i.InstanceLifecycle = types.InstanceLifecycleTypeCapacityBlock }, want: "capacity-block"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount()
			i := a.add("i-1", running, append(c.tags, "env=stg")...)
			if c.make != nil {
				c.make(i)
			}
			seen, err := a.sleeps().Observe(t.Context(), executors.SleepCall{Params: nights(), Operation: hibernate.Shutdown})
			if err != nil {
				t.Fatal(err)
			}
			step := hibernate.Record{}.ToSleep(seen, time.Now())
			if !step.Done || len(step.Record.Resources) > 0 || len(step.Record.LeftOut) != 1 || !strings.Contains(step.Record.LeftOut[0], c.want) {
				t.Errorf("it says %+v", step)
			}
		})
	}
}

func TestAnInstanceIsAMachine(t *testing.T) {
	o := observed(types.Instance{InstanceId: aws.String("i-1")}, false)
	if diff := cmp.Diff([]string{"i-1"}, o.Machines); diff != "" {
		t.Error(diff)
	}
}

func TestMemoryIsKeptWhereThatIsAsked(t *testing.T) {
	a := newAccount()
	a.add("i-can", running, "env=stg").HibernationOptions = &types.HibernationOptions{Configured: aws.Bool(true)}
	a.add("i-cannot", running, "env=stg")
	params := nights()
	params.Hibernate = true
	call := executors.SleepCall{Params: params, Operation: hibernate.Shutdown}
	seen, err := a.sleeps().Observe(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	step := hibernate.Record{}.ToSleep(seen, time.Now())
	a.sleeps().Shutdown(t.Context(), call, step.Due)
	if diff := cmp.Diff([]string{"stop i-can hibernate=true"}, a.asked); diff != "" {
		t.Error(diff)
	}
	if len(step.Record.LeftOut) != 1 || !strings.Contains(step.Record.LeftOut[0], "i-cannot") {
		t.Errorf("left out is %q", step.Record.LeftOut)
	}
}

func TestWhatATargetNamesHasToBeThere(t *testing.T) {
	a := newAccount()
	a.add("i-1", running, "env=stg")
	for name, c := range map[string]struct {
		s    hibernate.CloudSelector
		want string
	}{
		"an instance":                   {hibernate.CloudSelector{IDs: []string{"i-1"}}, ""},
		"one that is not there":         {hibernate.CloudSelector{IDs: []string{"i-1", "i-2"}}, "there is no instance i-2"},
		"one that has other tags":       {hibernate.CloudSelector{IDs: []string{"i-1"}, Tags: map[string]string{"env": "prod"}}, ""},
		"tags that nothing has":         {hibernate.CloudSelector{Tags: map[string]string{"env": "dev"}}, "no instance"},
		"tags of which some are barred": {hibernate.CloudSelector{Tags: map[string]string{"env": "stg"}, ExcludeTags: map[string]string{"env": "stg"}}, "no instance"},
	} {
		err := a.sleeps().Validate(t.Context(), executors.SleepCall{Params: &hibernate.EC2Parameters{Selector: &c.s}})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

var errFenced = errors.New("another agent may lead") //nolint:gochecknoglobals // a sentinel for errors.Is

func TestNothingIsDoneBehindTheFence(t *testing.T) {
	a := newAccount()
	a.add("i-1", running, "env=stg")
	a.add("i-2", running, "env=stg")
	call := executors.SleepCall{Params: nights(), Operation: hibernate.Shutdown}
	list := due(t, a, call)
	call.Clients.Fence = func() error { return errFenced }
	for id, message := range said(a.sleeps().Shutdown(t.Context(), call, list)) {
		if !strings.Contains(message, errFenced.Error()) {
			t.Errorf("%s: %q", id, message)
		}
	}
	call.Clients.Fence, call.DryRun = nil, true
	for id, message := range said(a.sleeps().Shutdown(t.Context(), call, list)) {
		if message != "" {
			t.Errorf("%s: %q", id, message)
		}
	}
	if len(a.asked) > 0 {
		t.Errorf("it asks for %q", a.asked)
	}
}
