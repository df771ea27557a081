package eks

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/capacity"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/sleepertest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

func TestNodeGroupsSleepAsEveryTargetDoes(t *testing.T) {
	sleepertest.Run(t, func(*testing.T) sleepertest.Backend {
		a := newAccount()
		for n, name := range []string{"stg-a", "stg-b", "stg-c", "stg-d", "stg-e"} {
			a.add(name, capacity.Size{Min: int32(n % 2), Desired: int32(n + 1), Max: 9}, "env=stg")
		}
		a.add("off", capacity.Size{Max: 4}, "env=stg")
		a.add("system", capacity.Size{Min: 1, Desired: 2, Max: 4}, "env=system")
		a.add("plain", capacity.Size{Min: 1, Desired: 2, Max: 4})
		return world{a}
	})
}

// story is a target of a plan, as an agent goes on with it.
type story struct {
	*account
	t        *testing.T
	record   hibernate.Record
	now      time.Time
	failures int
}

func newStory(t *testing.T) *story {
	return &story{account: newAccount(), t: t, now: time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC)}
}

// pass is one look and what follows from it; it gives what was refused.
func (s *story) pass(op hibernate.Operation) (step hibernate.Step, refused string) {
	s.t.Helper()
	s.now = s.now.Add(time.Second)
	call := nights()
	call.Operation, call.Recorded, call.Now, call.Failures = op, s.record.Resources, s.now, s.failures
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

// sleeping has all node groups asleep.
func (s *story) sleeping() {
	s.t.Helper()
	s.pass(hibernate.Shutdown)
	s.settle()
	if step, refused := s.pass(hibernate.Shutdown); !step.Done || refused != "" {
		s.t.Fatalf("it does not sleep: %+v, %q", step, refused)
	}
	s.asked = nil
}

func TestANodeGroupIsWaitedForUntilItsInstancesAreGone(t *testing.T) {
	s := newStory(t)
	s.add("workers", capacity.Size{Min: 2, Desired: 3, Max: 5}, "env=stg")
	s.pass(hibernate.Shutdown)
	waits := func(when string) {
		t.Helper()
		if step, refused := s.pass(hibernate.Shutdown); step.Done || len(step.Due) != 1 || refused != "" {
			t.Errorf("%s it is %+v, %q", when, step, refused)
		}
	}
	waits("while it is updated")
	s.groups["workers"].Status = types.NodegroupStatusActive
	waits("while its instances terminate")
	s.settle()
	if step, _ := s.pass(hibernate.Shutdown); !step.Done {
		t.Errorf("it has none: %+v", step)
	}
	if diff := cmp.Diff([]string{"workers min=0 desired=0 max=5"}, s.asked); diff != "" {
		t.Error(diff)
	}
	r := s.record.Resources[0]
	if diff := cmp.Diff(`{"min":2,"desired":3,"max":5}`, string(r.Before)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]float64{"m5.large": 3}, r.Units); diff != "" {
		t.Error(diff)
	}
}

func TestWhileAnotherUpdateRunsANodeGroupIsAskedLater(t *testing.T) {
	s := newStory(t)
	g := s.add("workers", capacity.Size{Min: 2, Desired: 3, Max: 5}, "env=stg")
	g.Status = types.NodegroupStatusUpdating
	if step, refused := s.pass(hibernate.Shutdown); step.Done || len(s.record.Resources) > 0 || refused != "" {
		t.Errorf("what it will be is not known yet, and it is %+v, %q", step, refused)
	}
	g.Status = types.NodegroupStatusActive
	s.refuses["workers"] = "ResourceInUseException"
	if step, refused := s.pass(hibernate.Shutdown); step.Done || refused != "" || len(s.asked) != 1 {
		t.Errorf("between the look and the request one began, and it is %+v, %q", step, refused)
	}
	clear(s.refuses)
	s.pass(hibernate.Shutdown)
	s.settle()
	if step, _ := s.pass(hibernate.Shutdown); !step.Done || s.instances["workers"] > 0 {
		t.Errorf("afterwards it is %+v", step)
	}
}

// It wakes while EKS still takes its nodes away: the one update is waited for.
func TestANodeGroupThatIsStillOnItsWayDownIsPutBackAfterwards(t *testing.T) {
	s := newStory(t)
	s.add("workers", capacity.Size{Min: 2, Desired: 3, Max: 5}, "env=stg")
	s.pass(hibernate.Shutdown)
	if step, refused := s.pass(hibernate.Wake); step.Done || refused != "" {
		t.Errorf("it is on its way down: %+v, %q", step, refused)
	}
	s.settle()
	s.pass(hibernate.Wake)
	s.settle()
	if step, refused := s.pass(hibernate.Wake); !step.Done || refused != "" || s.instances["workers"] != 3 {
		t.Errorf("it is %+v, %q, with %d instances", step, refused, s.instances["workers"])
	}
}

func TestANodeGroupIsAwakeOnceItsInstancesAreAtWork(t *testing.T) {
	s := newStory(t)
	g := s.add("workers", capacity.Size{Min: 2, Desired: 3, Max: 5}, "env=stg")
	s.sleeping()
	for _, status := range []types.NodegroupStatus{"", types.NodegroupStatusUpdating, types.NodegroupStatusActive} {
		if status != "" {
			g.Status = status
		}
		if step, refused := s.pass(hibernate.Wake); step.Done || refused != "" {
			t.Errorf("%s: it has no instances yet: %+v, %q", status, step, refused)
		}
	}
	s.settle()
	if step, _ := s.pass(hibernate.Wake); !step.Done {
		t.Errorf("it has them: %+v", step)
	}
	if diff := cmp.Diff([]string{"workers min=2 desired=3 max=5"}, s.asked); diff != "" {
		t.Error(diff)
	}
}

func TestAnUpdateThatFailsIsSaidAndAskedForAnew(t *testing.T) {
	s := newStory(t)
	s.add("workers", capacity.Size{Min: 2, Desired: 3, Max: 5}, "env=stg")
	s.fails["workers"] = true
	if _, refused := s.pass(hibernate.Shutdown); refused != "" {
		t.Errorf("it has begun, and it says %q", refused)
	}
	if _, refused := s.pass(hibernate.Shutdown); refused != "set to no nodes nodegroups/workers: the update u-1 is Failed; AccessDenied: the node role may not" {
		t.Errorf("it says %q", refused)
	}
	s.failures++
	clear(s.fails)
	s.pass(hibernate.Shutdown)
	s.settle()
	if step, refused := s.pass(hibernate.Shutdown); !step.Done || refused != "" || len(s.updates) != 2 {
		t.Errorf("at the next attempt it is %+v, %q, by %d updates", step, refused, len(s.updates))
	}
}

func TestANodeGroupThatFallsBackOrDoesNotComeUpIsAFailure(t *testing.T) {
	s := newStory(t)
	g := s.add("workers", capacity.Size{Min: 2, Desired: 3, Max: 5}, "env=stg")
	s.sleeping()
	s.pass(hibernate.Wake)
	s.pass(hibernate.Wake) // it is seen on its way up
	g.Status, g.ScalingConfig = types.NodegroupStatusActive, &types.NodegroupScalingConfig{MinSize: aws.Int32(0), DesiredSize: aws.Int32(0), MaxSize: aws.Int32(5)}
	if _, refused := s.pass(hibernate.Wake); !strings.Contains(refused, "nodegroups/workers was put back and has no nodes again") {
		t.Errorf("it says %q", refused)
	}
	g.ScalingConfig = &types.NodegroupScalingConfig{MinSize: aws.Int32(2), DesiredSize: aws.Int32(3), MaxSize: aws.Int32(5)}
	g.Status = types.NodegroupStatusDegraded
	g.Health = &types.NodegroupHealth{Issues: []types.Issue{{Code: types.NodegroupIssueCodeAsgInstanceLaunchFailures, Message: aws.String("no capacity")}}}
	if _, refused := s.pass(hibernate.Wake); refused != "nodegroups/workers does not come up: its status is DEGRADED; AsgInstanceLaunchFailures: no capacity" {
		t.Errorf("it says %q", refused)
	}
}

func TestWhatSomebodyChangesWhileANodeGroupSleepsIsTheirs(t *testing.T) {
	resized := func(lowest, desired, most int32) func(a *account) {
		return func(a *account) {
			a.groups["workers"].ScalingConfig = &types.NodegroupScalingConfig{MinSize: &lowest, DesiredSize: &desired, MaxSize: &most}
		}
	}
	for name, c := range map[string]struct {
		change func(a *account)
		want   string // of what is said; empty: it is put back as it was
		asked  []string
	}{
		"nothing":             {func(*account) {}, "", []string{"workers min=2 desired=3 max=5"}},
		"its desired":         {resized(0, 1, 5), "somebody changed it while it slept", nil},
		"its max, higher":     {resized(0, 0, 9), "", []string{"workers min=2 desired=3 max=9"}},
		"its max, lower":      {resized(0, 0, 1), "nodegroups/workers: it was at min 2, desired 3 and is put back at min 1, desired 1: its max is 1 by now", []string{"workers min=1 desired=1 max=1"}},
		"it is gone":          {func(a *account) { delete(a.groups, "workers") }, "it is gone", nil},
		"it is being deleted": {func(a *account) { a.groups["workers"].Status = types.NodegroupStatusDeleting }, "it is gone", nil},
		"it is another":       {func(a *account) { a.add("workers", capacity.Size{Max: 5}, "env=stg") }, "it is gone", nil},
		"the cluster is gone": {func(a *account) { a.cluster = "other" }, "it is gone", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.add("workers", capacity.Size{Min: 2, Desired: 3, Max: 5}, "env=stg")
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

func TestWhatIsDeniedIsSaidOfTheNodeGroup(t *testing.T) {
	for _, code := range []string{"AccessDeniedException", "UnauthorizedOperation"} {
		s := newStory(t)
		s.add("workers", capacity.Size{Min: 1, Desired: 1, Max: 5}, "env=stg")
		s.add("xl", capacity.Size{Min: 1, Desired: 1, Max: 5}, "env=stg")
		s.refuses["workers"] = code
		if _, refused := s.pass(hibernate.Shutdown); refused != "set to no nodes nodegroups/workers: "+code+": User: nights is not authorized to perform: eks:UpdateNodegroupConfig" {
			t.Errorf("it says %q", refused)
		}
		if *s.groups["xl"].ScalingConfig.DesiredSize != 0 {
			t.Error("the other one is spoilt")
		}
	}
	for right, want := range map[string]string{
		"eks:ListNodegroups":                    "list the node groups of the cluster stg: AccessDeniedException: ",
		"eks:DescribeNodegroup":                 "look at the node group workers of the cluster stg: AccessDeniedException: ",
		"autoscaling:DescribeAutoScalingGroups": "list Auto Scaling groups: AccessDeniedException: ",
	} {
		a := newAccount()
		a.add("workers", capacity.Size{Min: 1, Desired: 1, Max: 5}, "env=stg")
		a.denies = right
		if _, err := a.sleeps().Observe(t.Context(), nights()); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), right) {
			t.Errorf("%s: it says %v", right, err)
		}
	}
}

func TestWhatATargetNamesHasToBeThere(t *testing.T) {
	a := newAccount()
	a.add("workers", capacity.Size{Min: 1, Desired: 1, Max: 5}, "env=stg")
	a.add("broken", capacity.Size{Min: 1, Desired: 1, Max: 5}).Status = types.NodegroupStatusCreateFailed
	a.add("warm", capacity.Size{Min: 1, Desired: 1, Max: 5}).WarmPoolConfig = &types.WarmPoolConfig{Enabled: aws.Bool(true)}
	for name, c := range map[string]struct {
		cluster string
		groups  *hibernate.NodeGroups
		want    string
	}{
		"by its name":               {"stg", &hibernate.NodeGroups{Names: []string{"workers"}}, ""},
		"by its tags":               {"stg", &hibernate.NodeGroups{Tags: map[string]string{"env": "stg"}}, ""},
		"one that is not there":     {"stg", &hibernate.NodeGroups{Names: []string{"workers", "wrokers"}}, "there is no managed node group wrokers in the cluster stg"},
		"tags that nothing has":     {"stg", &hibernate.NodeGroups{Tags: map[string]string{"env": "dev"}}, "no managed node group of the cluster stg"},
		"a cluster that is not":     {"sgt", &hibernate.NodeGroups{Names: []string{"workers"}}, "there is no cluster sgt"},
		"a connector of no cluster": {"", &hibernate.NodeGroups{Names: []string{"workers"}}, "names no cluster of EKS"},
		"no node groups":            {"stg", nil, "name no node groups"},
		"one that was never made":   {"stg", &hibernate.NodeGroups{Names: []string{"broken"}}, "its status is CREATE_FAILED"},
		"one with a warm pool":      {"stg", &hibernate.NodeGroups{Names: []string{"warm"}}, "warm pool"},
	} {
		call := executors.SleepCall{Params: &hibernate.EKSParameters{ManagedNodeGroups: c.groups}, Cloud: &executors.Cloud{Cluster: c.cluster}}
		err := a.sleeps().Validate(t.Context(), call)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhichMachinesANodeGroupHas(t *testing.T) {
	g := group{Nodegroup: *newAccount().add("workers", capacity.Size{Min: 1, Desired: 2, Max: 5}), members: []asgtypes.Instance{{InstanceId: aws.String("i-1")}, {InstanceId: aws.String("i-2")}}}
	if diff := cmp.Diff([]string{"i-1", "i-2"}, observed(g).Machines); diff != "" {
		t.Error(diff)
	}
}

func TestHowANodeGroupIs(t *testing.T) {
	working := asgtypes.Instance{InstanceType: aws.String("m5.large"), LifecycleState: asgtypes.LifecycleStateInService}
	for name, c := range map[string]struct {
		edit func(g *group)
		want string
	}{
		"at work":                         {func(*group) {}, "awake ready 2 m5.large"},
		"one is to come":                  {func(g *group) { g.members = g.members[:1] }, "awake 1 m5.large"},
		"one is protected":                {func(g *group) { g.members[0].ProtectedFromScaleIn = aws.Bool(true) }, "awake ready 2 m5.large left out"},
		"of its instances nothing is":     {func(g *group) { g.members, g.known, g.InstanceTypes = nil, false, []string{"t3.large"} }, "awake ready 2 t3.large"},
		"nor of their type":               {func(g *group) { g.members, g.known, g.InstanceTypes = nil, false, []string{"t3.large", "t3a.large"} }, "awake ready 2 nodes"},
		"degraded":                        {func(g *group) { g.Status = types.NodegroupStatusDegraded }, "awake 2 m5.large"},
		"it goes up":                      {func(g *group) { g.Status = types.NodegroupStatusUpdating }, "starting"},
		"it has no size and is changed":   {func(g *group) { g.Status, g.ScalingConfig = types.NodegroupStatusUpdating, nil }, ""},
		"it has no size, but instances":   {func(g *group) { g.ScalingConfig = nil }, ""},
		"it has no size and no instances": {func(g *group) { g.ScalingConfig, g.members = nil, nil }, "asleep"},
		"it goes":                         {func(g *group) { g.Status = types.NodegroupStatusDeleting }, "gone awake 2 m5.large"},
	} {
		g := group{Nodegroup: *newAccount().add("workers", capacity.Size{Min: 1, Desired: 2, Max: 5}), members: []asgtypes.Instance{working, working}, known: true}
		c.edit(&g)
		o := observed(g)
		var got []string
		for _, w := range []struct {
			word string
			is   bool
		}{{"gone", o.Gone}, {"awake", o.Awake}, {"asleep", o.Asleep}, {"starting", o.Starting}, {"ready", o.Ready}} {
			if w.is {
				got = append(got, w.word)
			}
		}
		for unit, n := range o.Units {
			got = append(got, fmt.Sprintf("%g %s", n, unit))
		}
		if o.LeftOut != "" {
			got = append(got, "left out")
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestNothingIsDoneBehindTheFence(t *testing.T) {
	a := newAccount()
	g := a.add("workers", capacity.Size{Min: 1, Desired: 1, Max: 5}, "env=stg")
	due := []hibernate.Due{{Resource: hibernate.Resource{ID: "nodegroups/workers", UID: *g.NodegroupArn}, Seen: hibernate.Observation{Awake: true}}}
	fenced := errors.New("another agent may lead")
	call := nights()
	call.Clients.Fence = func() error { return fenced }
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

func TestAThrottledRequestIsTriedAgainByTheSDKAndThenSaid(t *testing.T) {
	for first, want := range map[int]string{2: "", 1000: "list the node groups of the cluster stg: TooManyRequestsException: Too Many Requests"} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked > first {
				fmt.Fprint(w, `{"nodegroups": ["workers"]}`)
				return
			}
			w.Header().Set("X-Amzn-Errortype", "TooManyRequestsException")
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"message": "Too Many Requests"}`)
		}))
		config := aws.Config{
			Region: "eu-central-1", BaseEndpoint: aws.String(server.URL), HTTPClient: http.DefaultClient, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
			Retryer: func() aws.Retryer {
				return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
			},
		}
		api := struct {
			*eks.Client
			autoscaling.DescribeAutoScalingGroupsAPIClient
		}{eks.NewFromConfig(config), newAccount()}
		names, err := clusterOf{api: api, name: "stg"}.names(t.Context())
		server.Close()
		if asked != 3 || (err == nil) != (want == "") || err != nil && err.Error() != want || err == nil && len(names) != 1 {
			t.Errorf("after %d requests it is %q, %v", asked, names, err)
		}
	}
}
