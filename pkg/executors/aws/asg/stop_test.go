package asg

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/capacity"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/sleepertest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

func stopping() *hibernate.ASGParameters {
	p := nights()
	p.Strategy = hibernate.StopInstances
	return p
}

// kept is an account whose groups keep their instances.
type kept struct{ world }

func (w kept) Call() executors.SleepCall { return executors.SleepCall{Params: stopping()} }

func (w kept) State(t *testing.T) map[string]string {
	t.Helper()
	out := w.world.State(t)
	for name, g := range w.groups {
		var is []string
		for _, i := range g.Instances {
			is = append(is, string(w.instances[*i.InstanceId].State.Name))
		}
		var held []string
		for _, p := range g.SuspendedProcesses {
			held = append(held, *p.ProcessName)
		}
		slices.Sort(held)
		out[name] += fmt.Sprintf(" %v, suspended %v", is, held)
	}
	return out
}

func (w kept) Settle(t *testing.T) { w.arrive(t) }

func TestGroupsWhoseInstancesAreStoppedSleepAsEveryTargetDoes(t *testing.T) {
	sleepertest.Run(t, func(*testing.T) sleepertest.Backend {
		a := newAccount()
		for n, name := range []string{"stg-a", "stg-b", "stg-c"} {
			a.add(name, capacity.Size{Min: int32(n % 2), Desired: int32(n + 1), Max: 9}, "env=stg")
		}
		a.groups["stg-b"].SuspendedProcesses = []types.SuspendedProcess{{ProcessName: aws.String("Terminate")}, {ProcessName: aws.String("AddToLoadBalancer")}}
		a.add("off", capacity.Size{Max: 4}, "env=stg")
		a.add("prod", capacity.Size{Min: 1, Desired: 2, Max: 4}, "env=prod")
		a.add("eks-workers", capacity.Size{Min: 1, Desired: 2, Max: 4}, "env=stg", "eks:nodegroup-name=workers")
		a.keeps()
		return kept{world{a}}
	})
}

// stopStory is a story of groups that keep their instances.
type stopStory struct{ *story }

func newStopStory(t *testing.T) stopStory {
	t.Helper()
	s := stopStory{newStory(t)}
	s.params = stopping()
	g := s.add("web", capacity.Size{Min: 2, Desired: 3, Max: 5}, "env=stg")
	g.SuspendedProcesses = []types.SuspendedProcess{{ProcessName: aws.String("AlarmNotification")}}
	s.keeps()
	return s
}

// asleep has the group asleep.
func (s stopStory) asleep() {
	s.t.Helper()
	s.pass(hibernate.Shutdown)
	s.arrive(s.t)
	if step, refused := s.pass(hibernate.Shutdown); !step.Done || refused != "" || s.record.Asleep() != 1 {
		s.t.Fatalf("it does not sleep: %+v, %q", step, refused)
	}
	s.asked = nil
}

// remembers fails unless the restore data has the group as it was before it slept, with
// instances that were stopped already.
func (s stopStory) remembers(stopped ...string) {
	s.t.Helper()
	var before stoppedBefore
	if err := json.Unmarshal(s.record.Resources[0].Before, &before); err != nil {
		s.t.Fatal(err)
	}
	if diff := cmp.Diff(stoppedBefore{Size: capacity.Size{Min: 2, Desired: 3, Max: 5}, Processes: strings.Split(ours, ","), Stopped: stopped}, before); diff != "" {
		s.t.Errorf("remembered (-want +got):\n%s", diff)
	}
}

const ours = "AZRebalance,HealthCheck,InstanceRefresh,Launch,ReplaceUnhealthy,ScheduledActions,Terminate"

// Processes are suspended before the first instance stops, and resumed after the last has
// started: else the group would replace its instances.
func TestInWhichOrderAGroupStopsItsInstances(t *testing.T) {
	s := newStopStory(t)
	s.instances["i-web-2"].State.Name = ec2types.InstanceStateNameStopped // by somebody
	s.pass(hibernate.Shutdown)
	if step, refused := s.pass(hibernate.Shutdown); step.Done || refused != "" {
		t.Errorf("its instances stop, and it is %+v, %q", step, refused)
	}
	s.arrive(t)
	if step, _ := s.pass(hibernate.Shutdown); !step.Done {
		t.Errorf("they are stopped, and it is %+v", step)
	}
	s.remembers("i-web-2")
	s.pass(hibernate.Wake)
	if step, refused := s.pass(hibernate.Wake); step.Done || refused != "" {
		t.Errorf("its instances start, and it is %+v, %q", step, refused)
	}
	s.instances["i-web-2"].State.Name = ec2types.InstanceStateNameRunning // the group would replace it
	s.arrive(t)
	s.pass(hibernate.Wake)
	if step, _ := s.pass(hibernate.Wake); !step.Done {
		t.Errorf("they run, and it is %+v", step)
	}
	if diff := cmp.Diff([]string{"web suspend " + ours, "i-web-0,i-web-1 stop", "i-web-0,i-web-1 start", "web resume " + ours}, s.asked); diff != "" {
		t.Error(diff)
	}
}

// An agent that dies after each request is followed by another one.
func TestAGroupThatIsHalfStoppedIsStoppedByTheNextAgent(t *testing.T) {
	s := newStopStory(t)
	s.refuses["i-web-1"] = "UnauthorizedOperation"
	if _, refused := s.pass(hibernate.Shutdown); !strings.Contains(refused, "stop i-web-1: UnauthorizedOperation") || strings.Contains(refused, "i-web-0") {
		t.Errorf("it says %q", refused)
	}
	s.arrive(t)
	if step, _ := s.pass(hibernate.Shutdown); step.Done || step.Record.Resources[0].Left != "" {
		t.Errorf("one still runs: %+v", step)
	}
	delete(s.refuses, "i-web-1")
	s.asleep()
}

// A tool resumes a process of a group that is half stopped: what the group was before is not
// forgotten for that.
func TestAGroupThatIsHalfStoppedIsRememberedAsItWas(t *testing.T) {
	s := newStopStory(t)
	s.refuses["i-web-1"] = "UnauthorizedOperation"
	s.pass(hibernate.Shutdown)
	s.arrive(t)
	group := s.groups["web"]
	group.SuspendedProcesses = group.SuspendedProcesses[:len(group.SuspendedProcesses)-1] // one of ours
	s.groups["web"] = group
	s.pass(hibernate.Shutdown)
	delete(s.refuses, "i-web-1")
	s.asleep()
	s.remembers()
}

func TestAGroupWhoseProcessesMayNotBeSuspendedKeepsItsInstances(t *testing.T) {
	s := newStopStory(t)
	s.refuses["web"] = "AccessDenied"
	if _, refused := s.pass(hibernate.Shutdown); !strings.HasPrefix(refused, "suspend the processes of web: AccessDenied: ") || !strings.Contains(refused, "autoscaling:SuspendProcesses") {
		t.Errorf("it says %q", refused)
	}
	if diff := cmp.Diff([]string{"web suspend " + ours}, s.asked); diff != "" {
		t.Error(diff)
	}
}

// runs has instances run, as if somebody had started them.
func (s stopStory) runs(ids ...string) {
	for _, id := range ids {
		s.instances[id].State.Name = ec2types.InstanceStateNameRunning
	}
}

// resumes has processes of the group work again, as if somebody had resumed them.
func (s stopStory) resumes(names ...string) {
	g := s.groups["web"]
	g.SuspendedProcesses = slices.DeleteFunc(g.SuspendedProcesses, func(p types.SuspendedProcess) bool { return slices.Contains(names, *p.ProcessName) })
}

// wakes has the group wake, and makes sure that it is as it was.
func (s stopStory) wakes() {
	s.t.Helper()
	for range 6 {
		step, refused := s.pass(hibernate.Wake)
		if refused != "" {
			s.t.Errorf("it says %q", refused)
		}
		s.arrive(s.t)
		if step.Done {
			break
		}
	}
	r := s.record.Resources[0]
	if is := (kept{world{s.account}}).State(s.t)["web"]; is != "2/3/5 with 3 [running running running], suspended [AlarmNotification]" || r.RestoredAt == nil || r.Left != "" {
		s.t.Errorf("it is %s: %+v", is, r)
	}
}

// What somebody starts in the night runs on, and is theirs; the rest of the group still wakes
// in the morning.
func TestWhatSomebodyStartsOfAGroupThatSleepsRunsOnAndTheRestWakes(t *testing.T) {
	const rest = "that is left as it is, and the rest wakes with the group"
	for name, c := range map[string]struct {
		change func(s stopStory)
		said   string
		asleep map[string]float64 // the units of which an hour counts as asleep from then on
		asked  []string
	}{
		"an instance": {
			func(s stopStory) { s.runs("i-web-0") },
			"web: somebody started its instances i-web-0 while it slept: " + rest,
			map[string]float64{"m5.large": 2},
			[]string{"i-web-1,i-web-2 start", "web resume " + ours},
		},
		"an instance that is on its way": {
			func(s stopStory) { s.instances["i-web-0"].State.Name = ec2types.InstanceStateNamePending },
			"web: somebody started its instances i-web-0 while it slept: " + rest,
			map[string]float64{"m5.large": 2},
			[]string{"i-web-1,i-web-2 start", "web resume " + ours},
		},
		"all instances": {
			func(s stopStory) { s.runs("i-web-0", "i-web-1", "i-web-2") },
			"web: somebody started its instances i-web-0, i-web-1, i-web-2 while it slept: " + rest,
			map[string]float64{},
			[]string{"web resume " + ours},
		},
		"a process": {
			func(s stopStory) { s.resumes("ScheduledActions") },
			"web: somebody resumed its processes ScheduledActions while it slept: " + rest,
			map[string]float64{"m5.large": 3},
			[]string{"i-web-0,i-web-1,i-web-2 start", "web resume " + ours},
		},
		"all processes": {
			func(s stopStory) { s.resumes(strings.Split(ours, ",")...) },
			"web: somebody resumed its processes AZRebalance, HealthCheck, InstanceRefresh and 4 more while it slept: " + rest,
			map[string]float64{"m5.large": 3},
			[]string{"i-web-0,i-web-1,i-web-2 start"},
		},
		"an instance and a process": {
			func(s stopStory) {
				s.runs("i-web-0")
				s.resumes("AZRebalance")
			},
			"web: somebody started its instances i-web-0 and resumed its processes AZRebalance while it slept: " + rest,
			map[string]float64{"m5.large": 2},
			[]string{"i-web-1,i-web-2 start", "web resume " + ours},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStopStory(t)
			s.asleep()
			c.change(s)
			before := kept{world{s.account}}.State(t)
			for range 3 {
				if step, refused := s.pass(hibernate.Shutdown); !step.Done || len(step.Due) > 0 || refused != "" || s.record.Asleep() != min(1, len(c.asleep)) {
					t.Errorf("it is not left alone: %+v, %q", step, refused)
				}
			}
			if diff := cmp.Diff(before, kept{world{s.account}}.State(t)); diff != "" || len(s.asked) > 0 {
				t.Errorf("asked for %q, it is another (-was +is):\n%s", s.asked, diff)
			}
			if diff := cmp.Diff([]string{c.said}, s.record.LeftOut); diff != "" {
				t.Error(diff)
			}
			res, now := s.record.Resources[0], time.Now()
			asleep, anHourBefore := res.UnitSeconds(now.Add(24*time.Hour)), res.UnitSeconds(now.Add(23*time.Hour))
			for unit := range asleep {
				asleep[unit] = (asleep[unit] - anHourBefore[unit]) / 3600
			}
			maps.DeleteFunc(asleep, func(_ string, n float64) bool { return n == 0 })
			if diff := cmp.Diff(c.asleep, asleep); diff != "" || res.Units["m5.large"] != 3 {
				t.Errorf("of %v asleep (-want +got):\n%s", res.Units, diff)
			}
			s.wakes()
			if diff := cmp.Diff(c.asked, s.asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// One that was stopped before the group slept, and that somebody starts, is theirs as well.
func TestAnInstanceThatWasStoppedBeforeAndIsStartedByNightRunsOn(t *testing.T) {
	s := newStopStory(t)
	s.instances["i-web-2"].State.Name = ec2types.InstanceStateNameStopped
	s.asleep()
	s.runs("i-web-2")
	s.pass(hibernate.Shutdown)
	s.wakes()
	if diff := cmp.Diff([]string{"i-web-0,i-web-1 start", "web resume " + ours}, s.asked); diff != "" {
		t.Error(diff)
	}
}

// Somebody who wakes all of a group has it.
func TestAGroupThatSomebodyWakesWhollyIsTheirs(t *testing.T) {
	for op, want := range map[hibernate.Operation]string{hibernate.Shutdown: "somebody changed it while it slept", hibernate.Wake: ""} {
		s := newStopStory(t)
		s.asleep()
		s.runs("i-web-0", "i-web-1", "i-web-2")
		s.resumes(strings.Split(ours, ",")...)
		if step, refused := s.pass(op); !step.Done || refused != "" || s.record.Resources[0].Left != want || len(s.asked) > 0 {
			t.Errorf("%s: %+v, %q, asked for %q", op, step, refused, s.asked)
		}
	}
}

func TestAGroupThatIsGoneWhileItsInstancesAreStoppedIsLeft(t *testing.T) {
	for _, op := range []hibernate.Operation{hibernate.Shutdown, hibernate.Wake} {
		s := newStopStory(t)
		s.asleep()
		delete(s.groups, "web")
		if step, refused := s.pass(op); !step.Done || refused != "" || s.record.Resources[0].Left != "it is gone" || len(s.asked) > 0 {
			t.Errorf("%s: %+v, %q, asked for %q", op, step, refused, s.asked)
		}
	}
}

// A process that somebody resumes while the group falls asleep or wakes does not make it seem
// awake: what was stopped is started, and what was suspended is resumed.
func TestAProcessThatIsResumedOnTheWayKeepsNothingAsleep(t *testing.T) {
	for name, until := range map[string]func(s stopStory){
		"while it falls asleep": func(s stopStory) {
			s.refuses["i-web-1"] = "UnauthorizedOperation"
			s.pass(hibernate.Shutdown)
			s.arrive(s.t)
			delete(s.refuses, "i-web-1")
			s.resumes("AZRebalance")
		},
		"while it wakes": func(s stopStory) {
			s.asleep()
			for _, id := range []string{"i-web-0", "i-web-1", "i-web-2"} {
				s.refuses[id] = "UnauthorizedOperation"
			}
			s.pass(hibernate.Wake)
			clear(s.refuses)
			s.resumes("AZRebalance")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStopStory(t)
			until(s)
			s.wakes()
		})
	}
}

// A plan that is to sleep again before it is awake remembers its groups as they were first.
func TestAGroupThatSleepsAgainBeforeItIsAwakeIsRememberedAsItWas(t *testing.T) {
	s := newStopStory(t)
	s.asleep()
	s.refuses["i-web-1"] = "UnauthorizedOperation"
	s.pass(hibernate.Wake)
	s.arrive(t)
	delete(s.refuses, "i-web-1")
	s.resumes("AZRebalance")
	s.pass(hibernate.Shutdown)
	s.arrive(t)
	s.asleep()
	s.remembers()
	s.wakes()
}

// A filter takes two hundred values, and one request is for fifty instances at most.
func TestNoMoreInstancesOfAGroupAreAskedForAtOnceThanGoTogether(t *testing.T) {
	s := newStopStory(t)
	s.groups["web"].MaxSize, s.groups["web"].DesiredCapacity = aws.Int32(500), aws.Int32(401)
	s.settle()
	s.keeps()
	s.pass(hibernate.Shutdown)
	if diff := cmp.Diff([]int{200, 200, 1, 200, 200, 1}, s.values); diff != "" { // the look, and the one right before the effect
		t.Error(diff)
	}
	most := 0
	for _, one := range s.asked[1:] {
		most = max(most, strings.Count(one, "i-web-"))
	}
	if len(s.asked) != 10 || most != 50 {
		t.Errorf("%d requests, of %d instances at most", len(s.asked), most)
	}
}

func TestWhenAWSHasTooMuchToDoItIsNotAskedForEachInstance(t *testing.T) {
	s := newStopStory(t)
	for id := range s.instances {
		s.refuses[id] = "RequestLimitExceeded"
	}
	_, refused := s.pass(hibernate.Shutdown)
	if made := s.death.made; !strings.Contains(refused, "stop i-web-0: RequestLimitExceeded") || slices.Index(made, "StopInstances") != len(made)-1 {
		t.Errorf("it says %q after %q", refused, made)
	}
	clear(s.refuses)
	s.asleep()
	s.wakes()
}

func TestAnInstanceThatFallsBackIsSaid(t *testing.T) {
	s := newStopStory(t)
	s.asleep()
	for id := range s.instances {
		s.falls[id] = true
	}
	s.pass(hibernate.Wake)
	s.pass(hibernate.Wake)
	s.arrive(t)
	if _, refused := s.pass(hibernate.Wake); !strings.Contains(refused, "instances of web were started and are stopped again") || !strings.Contains(refused, "kms:CreateGrant") {
		t.Errorf("it says %q", refused)
	}
	if !suspended(*s.groups["web"], "Launch") {
		t.Error("its processes work, and replace what is stopped")
	}
}

func TestWhichGroupsDoNotStopTheirInstancesAndWhy(t *testing.T) {
	for name, c := range map[string]struct {
		make func(a *account)
		want string
	}{
		"one with a spot instance":   {func(a *account) { a.instances["i-web-1"].InstanceLifecycle = ec2types.InstanceLifecycleTypeSpot }, "its instance i-web-1 is a spot instance"},
		"one with an instance store": {func(a *account) { a.instances["i-web-1"].RootDeviceType = ec2types.DeviceTypeInstanceStore }, "i-web-1 is an instance store"},
		"one that does nothing already": {func(a *account) {
			for _, name := range processes() {
				a.groups["web"].SuspendedProcesses = append(a.groups["web"].SuspendedProcesses, types.SuspendedProcess{ProcessName: aws.String(name)})
			}
		}, "its processes are suspended already"},
		"one with a warm pool": {func(a *account) { a.groups["web"].WarmPoolConfiguration = &types.WarmPoolConfiguration{} }, "warm pool"},
	} {
		s := newStopStory(t)
		c.make(s.account)
		if step, refused := s.pass(hibernate.Shutdown); !step.Done || refused != "" || len(step.Record.LeftOut) != 1 || !strings.Contains(step.Record.LeftOut[0], c.want) || len(s.asked) > 0 {
			t.Errorf("%s: %+v, %q", name, step, refused)
		}
		named := &hibernate.ASGParameters{Selector: &hibernate.CloudSelector{IDs: []string{"web"}}, Strategy: hibernate.StopInstances}
		if err := s.sleeps().Validate(t.Context(), executors.SleepCall{Params: named}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: where it is named it says %v", name, err)
		}
	}
}

func TestAGroupWhoseInstancesComeOrGoIsWaitedFor(t *testing.T) {
	s := newStopStory(t)
	s.groups["web"].Instances[0].LifecycleState = types.LifecycleStatePending
	if step, refused := s.pass(hibernate.Shutdown); step.Done || refused != "" || len(s.record.Resources) > 0 || len(s.asked) > 0 {
		t.Errorf("%+v, %q", step, refused)
	}
}

func TestRestoreDataWithoutProcessesStartsNothing(t *testing.T) {
	s := newStopStory(t)
	s.asleep()
	for before, want := range map[string]string{`{"min":2,"desired":3,"max":5}`: "does not say which processes", `{"min":"two"}`: "the restore data of web: "} {
		r := s.record.Resources[0]
		r.Before = json.RawMessage(before)
		call := executors.SleepCall{Params: stopping(), Operation: hibernate.Wake, Now: time.Now()}
		if results := s.sleeps().Wake(t.Context(), call, []hibernate.Due{{Resource: r}}); len(results) != 1 || results[0].Err == nil || !strings.Contains(results[0].Err.Error(), want) || len(s.asked) > 0 {
			t.Errorf("it says %+v and asks for %q", results, s.asked)
		}
	}
}
