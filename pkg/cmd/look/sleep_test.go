package look_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// At the tests' now it is Friday 19:00 in New York: office sleeps for an hour.
const (
	office = "schedule: {timezone: America/New_York, offHours: [{start: '18:00', end: '06:00', daysOfWeek: [MON, TUE, WED, THU, FRI]}]}"
	lunch  = "schedule: {timezone: America/New_York, offHours: [{start: '12:00', end: '13:00'}], exclude: [{fromDate: '2026-11-22', reason: sale}]}"
)

// evenings have not begun at the tests' now, which is Fri 19:00 there.
const evenings = "schedule: {timezone: America/New_York, offHours: [{start: '18:00', end: '23:00', daysOfWeek: [SAT, SUN, MON, TUE]}]}"

func TestNextOfSleep(t *testing.T) {
	world := objects(
		cmdtest.Namespace("shop"), cmdtest.Policy("night", nights), cmdtest.Policy("shut", "{strategy: Restrictive}"),
		cmdtest.Sleeper("office", office), cmdtest.Sleeper("lunch", lunch),
		cmdtest.Sleeper("skips", office, cmdtest.Noting(annotations.Skip, "2026-11-23T23:00:00Z")),
		cmdtest.Sleeper("skipsnext", office, cmdtest.Noting(annotations.Skip, "next")),
		cmdtest.Sleeper("held", office, cmdtest.Noting(annotations.HoldState, "awake", annotations.HoldUntil, "2026-11-24T12:00:00Z")),
		cmdtest.Sleeper("paused", office, cmdtest.Noting(annotations.Pause, "true")),
		cmdtest.Sleeper("asleep", office, cmdtest.Noting(annotations.Pause, "true", annotations.StatusPhase, "Hibernated")),
		cmdtest.Sleeper("gated", office+", policies: [{name: night}]"), cmdtest.Sleeper("forbidden", office+", policies: [{name: shut}]"), cmdtest.Sleeper("lost", office+", policies: [{name: ghost}]"),
		cmdtest.Policy("early", "{strategy: MaintenanceSchedule, maintenanceSchedule: {timezone: UTC, windows: [{start: '02:00', end: '05:00'}]}}"), cmdtest.Sleeper("late", office+", policies: [{name: early}]"),
		cmdtest.Sleeper("broken", "schedule: {offHours: []}"),
		cmdtest.Sleeper("exceptional", office+", exceptions: [{type: extend, validFrom: '2026-11-21T00:00:00Z', validUntil: '2026-11-22T00:00:00Z', offHours: [{start: '12:00', end: '13:00'}], reason: stocktaking}, {type: suspend, validFrom: '2026-11-24T05:00:00Z', validUntil: '2026-11-25T00:00:00Z', reason: tests, leadTime: 8h}]"),
		cmdtest.Sleeper("never", "schedule: {offHours: [{start: '18:00', end: '06:00'}], exclude: [{fromDate: '2000-01-01', untilDate: '2999-01-01'}]}"),
	)
	item := func(start, end, note string) string {
		return `{"start":"` + start + `","end":"` + end + `","note":"` + note + `"}`
	}
	list := func(items ...string) string {
		out := `{"apiVersion":"maint.dev/v1alpha1","items":[`
		for i, one := range items {
			if i > 0 {
				out += ","
			}
			out += one
		}
		return cmdtest.JSON(out + `],"kind":"WindowList"}`)
	}
	friday := func(note string) string { return item("2026-11-20T23:00:00Z", "2026-11-21T11:00:00Z", note) }
	monday := func(note string) string { return item("2026-11-23T23:00:00Z", "2026-11-24T11:00:00Z", note) }
	const forgetting = "; 'kubectl maint wake held --release' ends that\n"
	runRows(t, []row{
		{name: "the one that it is in comes first, with its true start", line: "next office --count 2", world: world, out: "SLEEPS                     WAKES                      UTC                                                    NOTE\nFri 2026-11-20 18:00 EST   Sat 2026-11-21 06:00 EST   Fri 2026-11-20 23:00 UTC to Sat 2026-11-21 11:00 UTC   -\nMon 2026-11-23 18:00 EST   Tue 2026-11-24 06:00 EST   Mon 2026-11-23 23:00 UTC to Tue 2026-11-24 11:00 UTC   -\n"},
		{name: "for a machine", line: "next office --count 2 -o json", world: world, out: list(friday(""), monday(""))},
		{name: "as the lists print its name", line: "next hibernate-plan/office --count 1 -o json", world: world, out: list(friday(""))},
		{name: "from an instant", line: "next plan/office --from 2026-11-24T11:00:00Z --count 1 -o json", world: world, err: "from Tue 2026-11-24 06:00 EST (2026-11-24T11:00:00Z)\n", out: list(item("2026-11-24T23:00:00Z", "2026-11-25T11:00:00Z", ""))},
		{name: "an excluded day is passed over", line: "next lunch --count 2 -o json", world: world, out: list(item("2026-11-21T17:00:00Z", "2026-11-21T18:00:00Z", ""), item("2026-11-23T17:00:00Z", "2026-11-23T18:00:00Z", ""))},
		{name: "one that is skipped by its start", line: "next skips --count 2 -o json", world: world, out: list(friday(""), monday("skipped"))},
		{name: "the next one is skipped", line: "next skipsnext --count 2 -o json", world: world, out: list(friday("skipped"), monday(""))},
		{name: "the next one is that from now, wherever the list begins", line: "next skipsnext --from 2026-11-22T00:00:00Z --count 1 -o json", world: world, err: "from Sat 2026-11-21 19:00 EST (2026-11-22T00:00:00Z)\n", out: list(monday(""))},
		{name: "held awake over one and into the next", line: "next held --count 2 -o json", world: world, out: list(friday("held awake until 2026-11-24T12:00:00Z"), monday("held awake until 2026-11-24T12:00:00Z")), err: "it is held awake until 2026-11-24T12:00:00Z" + forgetting},
		{name: "a hold for people: on the clocks of the others", line: "next held --count 1", world: world, out: "SLEEPS                     WAKES                      UTC                                                    NOTE\nFri 2026-11-20 18:00 EST   Sat 2026-11-21 06:00 EST   Fri 2026-11-20 23:00 UTC to Sat 2026-11-21 11:00 UTC   held awake until Tue 2026-11-24 07:00 EST\n", err: "it is held awake until Tue 2026-11-24 07:00 EST" + forgetting},
		{name: "a window that opens later, for people", line: "next late --from 2026-11-23T00:00:00Z --count 1", world: world, err: "from Sun 2026-11-22 19:00 EST (2026-11-23T00:00:00Z)\n", out: "SLEEPS                     WAKES                      UTC                                                    NOTE\nMon 2026-11-23 18:00 EST   Tue 2026-11-24 06:00 EST   Mon 2026-11-23 23:00 UTC to Tue 2026-11-24 11:00 UTC   does not begin before Mon 2026-11-23 21:00 EST: window closed (policy early: outside of the windows)\n"},
		{name: "a window that opens later, for a machine", line: "next late --from 2026-11-23T00:00:00Z --count 1 -o json", world: world, err: "from Sun 2026-11-22 19:00 EST (2026-11-23T00:00:00Z)\n", out: list(monday("does not begin before 2026-11-24T02:00:00Z: window closed (policy early: outside of the windows)"))},
		{name: "paused: none begins", line: "next paused --count 1 -o json", world: world, out: list(friday("paused"))},
		{name: "a pause ends no sleep", line: "next asleep --count 2 -o json", world: world, out: list(friday(""), monday("paused"))},
		{name: "by a policy it begins later", line: "next gated --from 2026-11-23T00:00:00Z --count 2 -o json", world: world, err: "from Sun 2026-11-22 19:00 EST (2026-11-23T00:00:00Z)\n", out: list(monday(""), item("2026-11-24T23:00:00Z", "2026-11-25T11:00:00Z", ""))},
		{name: "by a policy it never begins", line: "next forbidden --count 1 -o json", world: world, out: list(friday("does not begin: window closed (policy shut: Restrictive)"))},
		{name: "its policy is not there", line: "next lost --count 1 -o json", world: world, out: list(friday("does not begin: policy ghost: not ready: there is no such policy in namespace shop"))},
		{
			name: "exceptions say what they do", line: "next exceptional --count 3 -o json", world: world,
			out: list(friday(""), item("2026-11-21T17:00:00Z", "2026-11-21T18:00:00Z", "extended by an exception: stocktaking"), item("2026-11-23T23:00:00Z", "2026-11-24T05:00:00Z", "ends: suspended by an exception: tests, does not begin: soon suspended by an exception: tests, from Tue 2026-11-24 00:00 EST on")),
		},
		{name: "no sleep is to come", line: "next never", world: world, err: "no sleep is to come: the off-hours are excluded or suspended for good\n"},
		{name: "a plan with a fault", line: "next broken", world: world, code: 1, err: "error: line 1: spec.schedule.offHours: is empty; write for instance [{start: \"20:00\", end: \"06:00\"}]\n"},
		{name: "its logs", line: "logs office", world: world, code: 1, err: "error: shop/office is a HibernatePlan and no run or plan; a HibernatePlan has no runs: 'kubectl maint describe office' shows its targets, and 'kubectl maint trigger office' tries again what failed of them\n"},
		{name: "whether change is permitted to it", line: "check office", world: world, code: 1, err: "error: shop/office is a HibernatePlan and no plan or policy; 'kubectl maint why office' says why it sleeps or is awake, and whether policies permit its sleep\n"},
		{name: "its name as that of a policy", line: "next policy/office", world: world, code: 1, err: "error: shop/office is a HibernatePlan and no policy; see 'kubectl maint list policies'\n"},
	})
}

func TestNextOfSleepInFiles(t *testing.T) {
	cmdtest.WriteFiles(t, map[string]string{
		"one.yaml":  cmdtest.SleeperOf("office", "maint.dev/skip: '2026-11-20T23:00:00Z'", office),
		"two.yaml":  cmdtest.SleeperOf("office", "", office) + cmdtest.SleeperOf("lunch", "", lunch),
		"both.yaml": cmdtest.SleeperOf("office", "", office) + cmdtest.PlanOf("orders", "", daily),
	})
	friday := func(note string) string {
		return cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[{"start":"2026-11-20T23:00:00Z","end":"2026-11-21T11:00:00Z","note":"` + note + `"}],"kind":"WindowList"}`)
	}
	for _, c := range []struct {
		name string
		args []string
		want cmdtest.Printed
	}{
		{"the only one", []string{"next", "-f", "one.yaml", "--count", "1", "-o", "json"}, cmdtest.Printed{Out: friday("skipped")}},
		{"one by its name", []string{"next", "-f", "two.yaml", "office", "--count", "1", "-o", "json"}, cmdtest.Printed{Out: friday("")}},
		{"two without a name", []string{"next", "-f", "two.yaml"}, cmdtest.Printed{Code: 2, Err: "error: the files hold 2 HibernatePlans: name one (office, lunch)\n"}},
		{"beside a plan the plan is meant", []string{"next", "-f", "both.yaml", "--count", "1", "-o", "json"}, cmdtest.Printed{Out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[{"utc":"2026-11-21T01:00:00Z","local":"2026-11-21T02:00:00+01:00","schedule":0,"note":""}],"kind":"SlotList"}`)}},
	} {
		t.Run(c.name, func(t *testing.T) { cmdtest.Offline(t, cmd.Run, "", c.args...).Is(t, c.want) })
	}
}

func sleepTargets(list ...hibernate.TargetStatus) string { return annotations.Targets(list) }

func sleeping(name string, state hibernate.State, attempts int, message string) hibernate.TargetStatus {
	return hibernate.TargetStatus{Target: name, Executor: "workload", State: state, StartedAt: cmdtest.Before(time.Hour), FinishedAt: cmdtest.Before(30 * time.Minute), Attempts: attempts, Message: message}
}

// hibernated is a plan whose target sleeps, and its restore data, signed by somebody.
func hibernated(t *testing.T, name string, notes ...string) []runtime.Object {
	t.Helper()
	cm := cmdtest.Sleeper(name, office, cmdtest.Noting(
		annotations.StatusPhase, "Hibernated", annotations.StatusMessage, "1 of 1 targets sleep", annotations.StatusAsleep, "2026-11-20T23:30:00Z",
		annotations.StatusWakes, "2026-11-21T11:00:00Z", annotations.StatusTargets, sleepTargets(sleeping("apps", hibernate.Asleep, 0, "")),
	), cmdtest.Noting(notes...))
	return objects(cm, cmdtest.Signed(restoreData(t, name)))
}

func restoreData(t *testing.T, plan string) *corev1.ConfigMap {
	t.Helper()
	r, err := annotations.RestoreObject("shop", cmdtest.Slept(plan, "apps",
		hibernate.Resource{ID: "Deployment/shop/web", Before: json.RawMessage(`{"replicas":3}`)},
		hibernate.Resource{ID: "Deployment/shop/theirs", Before: json.RawMessage(`{"replicas":3}`), Left: "it is gone"},
	))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func failing() *corev1.ConfigMap {
	return cmdtest.Sleeper("failing", office, cmdtest.Noting(
		annotations.StatusPhase, "Error", annotations.StatusMessage, "apps failed: no right", annotations.StatusTargets,
		sleepTargets(sleeping("apps", hibernate.Failed, 4, "no right"), sleeping("db", hibernate.Aborted, 0, "apps has failed"), hibernate.TargetStatus{Target: "slow", Executor: "noop", State: hibernate.Running, StartedAt: cmdtest.Before(time.Minute), Attempts: 1, Message: "later"}),
	))
}

// noAccount is what the agent says of a plan whose account is missing.
var noAccount = []string{annotations.StatusConditions, `[{"type":"Ready","status":"False","reason":"NotReady","message":"no account"}]`} //nolint:gochecknoglobals // read only

func TestStatusOfSleep(t *testing.T) {
	held := cmdtest.Sleeper("held", office, cmdtest.Noting(annotations.StatusPhase, "Active", annotations.StatusMessage, "awake: it is held awake", annotations.HoldState, "awake", annotations.Actor(annotations.HoldState), "jane", annotations.Reason(annotations.HoldState), "late", annotations.Pause, "true", annotations.Skip, "true"))
	shut := cmdtest.Sleeper("kept", office+", policies: [{name: shut}]", cmdtest.Noting(annotations.StatusPhase, "Active", annotations.StatusMessage, "does not fall asleep: policy shut: Restrictive", annotations.HoldState, "sleepy"))
	world := append(hibernated(t, "office"), cmdtest.Namespace("shop"), failing(), held, shut, cmdtest.Policy("shut", "{strategy: Restrictive}"), cmdtest.Sleeper("unseen", lunch, cmdtest.Noting(annotations.StatusObserved, "old")))
	unready := cmdtest.Sleeper("unready", lunch, cmdtest.Noting(annotations.StatusPhase, "Active", annotations.StatusMessage, "awake, and cannot fall asleep: no account"), cmdtest.Noting(noAccount...))
	world = append(world, unready)
	const table = `shop/failing  Error: apps failed: no right
  apps   workload   Failed    30m0s ago   4 attempts failed: no right
  db     workload   Aborted   30m0s ago   apps has failed
  slow   noop       Running   for 60s     1 attempt failed: later

HIBERNATEPLAN   PHASE        ASLEEP      NEXT                                      MESSAGE
failing         Error        -           wakes Sat 2026-11-21 06:00 EST (11h0m)    apps failed: no right
held            Active       -           -                                         awake: it is held awake by jane (unverified): late
kept            Active       -           -                                         does not fall asleep: policy shut: Restrictive
office          Hibernated   30m0s ago   wakes Sat 2026-11-21 06:00 EST (11h0m)    1 of 1 targets sleep
unready         Active       -           sleeps Sat 2026-11-21 12:00 EST (17h0m)   awake, and cannot fall asleep: no account
unseen          Unseen       -           sleeps Sat 2026-11-21 12:00 EST (17h0m)   the agent has not looked at this version of the plan yet
`
	runRows(t, []row{
		{name: "the overview shows what sleeps, and in full what needs eyes", line: "status", world: world, out: "Needs somebody:\n  failing  is Error: apps failed: no right\n    'kubectl maint describe failing'\n  failing  target slow has failed 1 time, and is tried again by itself: later\n    'kubectl maint doctor failing'\n  held  is paused until resumed\n    'kubectl maint resume held'\n  unready  is not Ready: no account\n    'kubectl maint doctor unready'\n\n" + table},
		{name: "one that sleeps", line: "status office", world: world, out: "Plan:    office in namespace shop, a HibernatePlan\nPhase:   Hibernated: 1 of 1 targets sleep\nAsleep:  since Fri 2026-11-20 18:30 EST (2026-11-20T23:30:00Z), 30m0s ago\nNext:    wakes Sat 2026-11-21 06:00 EST (2026-11-21T11:00:00Z), in 11h0m\nWhy:     to be asleep: off-hours\n\nTargets\n  apps   workload   Asleep   30m0s ago   -\n"},
		{name: "one whose account is missing", line: "status unready", world: world, out: "Needs somebody:\n  unready  is not Ready: no account\n    'kubectl maint doctor unready'\n\nPlan:        unready in namespace shop, a HibernatePlan\nPhase:       Active: awake, and cannot fall asleep: no account\nNext:        sleeps Sat 2026-11-21 12:00 EST (2026-11-21T17:00:00Z), in 17h0m\nWhy:         to be awake: outside of the off-hours\nConditions:  Ready=False (NotReady) no account\n"},
		{name: "one that is held, paused and skipped", line: "status hibernate-plan/held", world: world, out: "Needs somebody:\n  held  is paused until resumed\n    'kubectl maint resume held'\n\nPlan:   held in namespace shop, a HibernatePlan\nPhase:  Active: awake: it is held awake by jane (unverified): late\nNext:   none, since it is paused\nWhy:    to be awake: it is held awake by jane (unverified): late\nHold:   held awake until released with 'kubectl maint wake held --release', by jane (unverified): late\nPause:  until resumed\nSkip:   all slots, until 'unskip'\n"},
		{name: "one that no policy lets sleep, and a hold that is none", line: "status kept", world: world, out: "Plan:   kept in namespace shop, a HibernatePlan\nPhase:  Active: does not fall asleep: policy shut: Restrictive\nNext:   none: no sleep may begin\nWhy:    to be asleep: off-hours\nGate:   no sleep may begin: policy shut: Restrictive\nNotes:  maint.dev/hold-state: \"sleepy\" is neither awake nor asleep: the hold is ignored\n"},
	})
}

func TestStatusOfSleepForScripts(t *testing.T) {
	asleep := sleeping("apps", hibernate.Asleep, 0, "")
	asleep.LastTransition = asleep.FinishedAt
	world := []runtime.Object{
		cmdtest.Sleeper("office", office, cmdtest.Noting(annotations.StatusPhase, "Hibernated", annotations.StatusLastTransition, "2026-11-20T23:30:00Z", annotations.StatusTargets, sleepTargets(asleep))),
		cmdtest.Sleeper("lunch", lunch, cmdtest.Noting(annotations.StatusPhase, "Active")),
		failing(),
	}
	const fields = "-o 'jsonpath={.overall} {.lastTransition} {.targets[0].lastTransition}'"
	runRows(t, []row{
		{name: "one that sleeps", line: "status office " + fields, world: world, out: "Asleep 2026-11-20T23:30:00Z 2026-11-20T23:30:00Z"},
		{name: "one that never slept", line: "status lunch -o 'jsonpath={.phase}{.overall}{.lastTransition}'", world: world, out: "Active"},
		{name: "one of which a target failed, as an older agent says it", line: "status failing " + fields, world: world, out: "Failed  "},
	})
}

func TestStatusSaysHowLongAPlanSlept(t *testing.T) {
	before := func(h int) *time.Time { return cmdtest.Before(time.Duration(h) * time.Hour) }
	l, err := annotations.LedgerObject("shop", "office", ledger.Ledger{PlanUID: "u-office", Recent: []ledger.Entry{
		{Slot: before(31 * 24), Result: run.Ran, StartedAt: before(31 * 24), EndedAt: before(31*24 - 10), Slept: []ledger.Slept{{Target: "apps", Executor: "workload", Kind: "Deployment", Resources: 9, Hours: 90}}},
		{Slot: before(25), Result: run.Ran, StartedAt: before(25), EndedAt: before(13), Slept: []ledger.Slept{
			{Target: "apps", Executor: "workload", Kind: "CronJob", Resources: 1, Hours: 12}, {Target: "apps", Executor: "workload", Kind: "Deployment", Resources: 2, Hours: 24},
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := annotations.RestoreObject("shop", cmdtest.Slept("office", "apps", hibernate.Resource{ID: "Deployment/shop/web", Kind: "Deployment", Before: json.RawMessage(`{}`), AsleepAt: cmdtest.Before(30 * time.Minute)}))
	if err != nil {
		t.Fatal(err)
	}
	world := []runtime.Object{cmdtest.Sleeper("office", office), cmdtest.Sleeper("lunch", lunch), l, r}
	got := cmdtest.NewCluster(t, cmd.Run, append(world, cmdtest.Agent())...)
	const said = "\nSlept in the last 30 days\n  apps   CronJob      12.0 hours   1 resource\n  apps   Deployment   24.5 hours   2 resources\n"
	for _, line := range []string{"status", "describe"} {
		if out := got.Maint(line, "office"); out.Code != 0 || !strings.Contains(out.Out, said) {
			t.Errorf("%s says\n%s%s", line, out.Out, out.Err)
		}
		if out := got.Maint(line, "lunch"); out.Code != 0 || strings.Contains(out.Out, "Slept") {
			t.Errorf("%s of one that never slept says\n%s%s", line, out.Out, out.Err)
		}
		const want = `[{"executor":"workload","hours":12,"kind":"CronJob","resources":1,"sleeps":1,"target":"apps"},{"executor":"workload","hours":24.5,"kind":"Deployment","resources":2,"sleeps":2,"target":"apps"}]`
		if out := got.Maint(line, "office", "-o", "jsonpath={.slept}"); out.Code != 0 || strings.Join(strings.Fields(out.Out), "") != want {
			t.Errorf("%s for scripts says %s%s", line, out.Out, out.Err)
		}
	}
}

func TestListAndHistoryOfSleep(t *testing.T) {
	slot := func(h int) *time.Time { at := cmdtest.Now().Add(time.Duration(h) * time.Hour); return &at }
	l, err := annotations.LedgerObject("shop", "office", ledger.Ledger{PlanUID: "u-office", Recent: []ledger.Entry{
		{Slot: slot(-49), Result: run.Skipped, Reason: "skip", At: *slot(-37)},
		{Slot: slot(-25), Result: run.Ran, StartedAt: slot(-25), At: *slot(-25), Slept: []ledger.Slept{{Target: "apps", Kind: "Deployment", Resources: 2, Hours: 24}}},
		{Kind: run.ByToken, Result: run.Ran, StartedAt: slot(-5), At: *slot(-4), EndedAt: slot(-4)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	world := append(hibernated(t, "office"), cmdtest.Signed(l), seen("orders", daily))
	runRows(t, []row{
		{name: "beside plans", line: "list", world: world, out: "NAME     KIND            PHASE        NEXT                       RESULT   AGE\norders   Plan            Idle         <none>                     <none>   2d\noffice   HibernatePlan   Hibernated   Sat 2026-11-21 06:00 EST   <none>   <unknown>\n"},
		{name: "names", line: "list -o name", world: world, out: "configmap/orders\nconfigmap/office\n"},
		{name: "its off-windows", line: "history office", world: world, out: "WHEN                       RESULT    REASON   RUN      OUTCOME\nWed 2026-11-18 18:00 EST   Skipped   skip     <none>   <none>\nThu 2026-11-19 18:00 EST   Ran       <none>   <none>   apps: 2 of kind Deployment slept, together 24h0m\nFri 2026-11-20 14:00 EST   Ran       <none>   <none>   nothing slept\n"},
		{name: "and for a machine, with what slept", line: "history office -o 'jsonpath={.items[1].plan} {.items[1].slept[0].hours}'", world: world, out: "shop/office 24"},
	})
	got := cmdtest.NewCluster(t, cmd.Run, append(world, cmdtest.Agent())...).Maint("describe", "office")
	for _, words := range []string{"Phase:   Hibernated", "Restore data:\n  " + annotations.RestoreName("office", "apps") + "  apps: 1 resource to be woken, 1 left as they are\n", "History (all of it: 'kubectl maint history office'):\n", "Document:\n  {apiVersion: maint.dev/v1alpha1, kind: HibernatePlan"} {
		if got.Code != 0 || !strings.Contains(got.Out, words) {
			t.Errorf("no %q in %d\n%s%s", words, got.Code, got.Out, got.Err)
		}
	}
}

// list counts the same pauses as status: the plan's own and those above it.
func TestListCountsThePausesAboveAHibernatePlan(t *testing.T) {
	plan := cmdtest.Sleeper("office", evenings, cmdtest.Noting(annotations.StatusPhase, "Active", annotations.StatusSleeps, "2026-11-21T23:00:00Z"))
	gated := cmdtest.Sleeper("office", evenings+", policies: [{name: monday}]", cmdtest.Noting(annotations.StatusPhase, "Active", annotations.StatusSleeps, "2026-11-21T23:00:00Z"))
	monday := cmdtest.Policy("monday", "{strategy: MaintenanceSchedule, maintenanceSchedule: {timezone: America/New_York, windows: [{start: '19:30', end: '22:00', days: [MON]}]}}")
	held := cmdtest.Sleeper("office", evenings, cmdtest.Noting(annotations.StatusPhase, "Active", annotations.HoldState, "awake", annotations.HoldUntil, "2026-11-22T00:30:00Z", annotations.ChangeStrategy, "RestrictiveUntil", annotations.RestrictiveUntil, "2026-11-22T01:30:00Z"))
	line := "list -o 'jsonpath={.items[0].status.sleepsAt}'"
	runRows(t, []row{
		{name: "no pause", line: line, world: objects(cmdtest.Namespace("shop"), plan), out: "2026-11-21T23:00:00Z"},
		{name: "a policy that lets no sleep begin before", line: line, world: objects(cmdtest.Namespace("shop"), gated, monday), out: "2026-11-24T00:30:00Z"},
		{name: "and so status says", line: "status office -o jsonpath={.sleepsAt}", world: objects(cmdtest.Namespace("shop"), gated, monday), out: "2026-11-24T00:30:00Z"},
		{name: "a freeze that lasts longer than a hold", line: line, world: objects(cmdtest.Namespace("shop"), held), out: "2026-11-22T01:30:00Z"},
		{name: "the namespace", line: line, world: objects(cmdtest.Namespace("shop", annotations.Pause, "true"), plan)},
		{name: "the whole cluster", line: line, world: objects(cmdtest.Namespace("shop"), plan), before: clusterPaused},
		{name: "as a row", line: "list --no-headers", world: objects(cmdtest.Namespace("shop", annotations.Pause, "true"), plan), out: "office   HibernatePlan   Active   <none>   <none>   <unknown>\n"},
	})
}

// A HibernatePlan that only runs dry is called so wherever a plan is.
func TestAHibernatePlanThatOnlyRunsDry(t *testing.T) {
	world := objects(cmdtest.Namespace("shop"), cmdtest.Sleeper("office", office+", dryRun: true", cmdtest.Noting(annotations.StatusPhase, "Active", annotations.StatusMessage, "awake")))
	const dry = "it is a dry run (spec.dryRun): nothing is put to sleep"
	for line, words := range map[string]string{
		"status":                              "awake; " + dry,
		"status office":                       "Plan:   office in namespace shop, a HibernatePlan: " + dry,
		"describe office":                     "a HibernatePlan: " + dry,
		"status office -o jsonpath={.dryRun}": "true",
		"list -o wide":                        "awake; " + dry,
		"next office --count 1 -o jsonpath={.items[0].note}":                            "dry run",
		"calendar -o jsonpath={.items[-1:].type}/{.items[-1:].idle}/{.items[-1:].note}": "sleep/true/dry run",
	} {
		if got := cmdtest.NewCluster(t, cmd.Run, append(world, cmdtest.Agent())...).Line(line); got.Code != 0 || !strings.Contains(got.Out, words) {
			t.Errorf("%s: no %q in %+v", line, words, got)
		}
	}
}

// clusterPaused is a pause of everything.
func clusterPaused(o *cmdtest.Cluster) {
	o.Stores("namespaces", cmdtest.Namespace("maint-system", paused("jane", "incident 8")...))
}

func TestWhyItSleepsOrIsAwake(t *testing.T) {
	plan := func(spec string, notes ...string) runtime.Object {
		return cmdtest.Sleeper("office", spec, cmdtest.Noting(annotations.StatusPhase, "Active", annotations.StatusMessage, "awake"), cmdtest.Noting(notes...))
	}
	shut := cmdtest.Policy("shut", "{strategy: Restrictive}")
	night := cmdtest.Policy("night", "{strategy: MaintenanceSchedule, maintenanceSchedule: {timezone: UTC, windows: [{start: '02:00', end: '04:00'}]}}")
	adopt := "'kubectl maint adopt " + annotations.RestoreName("office", "apps") + "'"
	const (
		day     = "Active: awake\nit is to be awake: outside of the off-hours\n"
		noon    = "Sat 2026-11-21 12:00 EST (2026-11-21T17:00:00Z), in 17h0m"
		toBe    = "Active: awake\nit is to be asleep: off-hours\n"
		askWake = "by hand: 'kubectl maint wake office --for 2h'\n"
		askHib  = "by hand: 'kubectl maint hibernate office --for 2h'\n"
		morning = "it is to wake Sat 2026-11-21 06:00 EST (2026-11-21T11:00:00Z), in 11h0m\n"
		monday  = "it is to sleep Mon 2026-11-23 18:00 EST (2026-11-23T23:00:00Z), in 2d23h\n"
	)
	runRows(t, []row{
		{name: "it sleeps as it should", line: "why office", world: append(hibernated(t, "office"), cmdtest.Namespace("shop")), out: "Hibernated: 1 of 1 targets sleep\nit is to be asleep: off-hours\nnothing is in the way\n" + morning + askWake},
		{name: "not all of it sleeps", line: "why office", world: append(hibernated(t, "office", annotations.StatusTargets, sleepTargets(sleeping("apps", hibernate.Asleep, 0, "web: flux puts it back"))), cmdtest.Namespace("shop")), out: "Hibernated: 1 of 1 targets sleep\nit is to be asleep: off-hours\ntarget apps: web: flux puts it back\nnothing is in the way\n" + morning + askWake},
		{name: "it is day", line: "why office", world: objects(cmdtest.Namespace("shop"), plan(lunch)), out: "Active: awake\nit is to be awake: outside of the off-hours\nnothing is in the way\nit is to sleep Sat 2026-11-21 12:00 EST (2026-11-21T17:00:00Z), in 17h0m\n" + askHib},
		{name: "it is day, and its policy lets no sleep begin later", line: "why office", world: objects(cmdtest.Namespace("shop"), shut, plan(lunch+", policies: [{name: shut}]")), code: 3, out: day + "1. no sleep may begin in its next off-hours, from " + noon + " on: policy shut: Restrictive\n   it stays so until somebody changes it\n" + askHib},
		{name: "it is day, and its policy is not there", line: "why office", world: objects(cmdtest.Namespace("shop"), plan(lunch+", policies: [{name: ghost}]")), code: 3, out: day + "1. no sleep may begin in its next off-hours, from " + noon + " on: policy ghost: not ready: there is no such policy in namespace shop\n   fix or create the policy\n" + askHib},
		{name: "it is day, and its policy lets sleep begin after its off-hours", line: "why office", world: objects(cmdtest.Namespace("shop"), night, plan(lunch+", policies: [{name: night}]")), code: 3, out: day + "1. no sleep may begin in its next off-hours, from " + noon + " on: policy night: outside of the windows\n   it may from Sat 2026-11-21 21:00 EST (2026-11-22T02:00:00Z) on\n" + askHib},
		{name: "it is day, and its policy lets sleep begin within its off-hours", line: "why office", world: objects(cmdtest.Namespace("shop"), cmdtest.Policy("half", "{strategy: MaintenanceSchedule, maintenanceSchedule: {timezone: UTC, windows: [{start: '17:30', end: '20:00'}]}}"), plan(lunch+", policies: [{name: half}]")), out: day + "nothing is in the way\nit is to sleep Sat 2026-11-21 12:30 EST (2026-11-21T17:30:00Z), in 17h30m\n" + askHib},
		{name: "it is day, its policy lets no sleep begin, and the next off-hours are skipped", line: "why office", world: objects(cmdtest.Namespace("shop"), shut, plan(lunch+", policies: [{name: shut}]", annotations.Skip, "next")), out: day + "nothing is in the way\n" + askHib},
		{name: "its account is missing", line: "why office", world: objects(cmdtest.Namespace("shop"), plan(lunch, noAccount...)), code: 3, out: "Active: awake\nit is to be awake: outside of the off-hours\n1. the plan is not ready: no account\n   the agent notices within a minute when that exists; 'kubectl maint doctor office' checks all that it needs\nit is to sleep Sat 2026-11-21 12:00 EST (2026-11-21T17:00:00Z), in 17h0m\n" + askHib},
		{name: "the clock is in doubt", line: "why office", world: objects(cmdtest.Namespace("shop"), plan(office, annotations.StatusConditions, `[{"type":"ClockDoubt","status":"True","reason":"ClocksDiffer","message":"the clocks are apart"}]`)), code: 3, out: toBe + "1. the agent's clock may be wrong, so no sleep begins, and what sleeps wakes as soon as its own clock or the API server's says so: the clocks are apart\n   set the clock of the node that the agent runs on\n" + morning + askWake},
		{name: "somebody holds it", line: "why office", world: objects(cmdtest.Namespace("shop"), plan(office, annotations.HoldState, "awake", annotations.HoldUntil, "2026-11-21T02:00:00Z", annotations.Actor(annotations.HoldState), "jane", annotations.Reason(annotations.HoldState), "late")), code: 3, out: "Active: awake\nit is to be awake: it is held awake until Fri 2026-11-20 21:00 EST by jane (unverified): late\n1. it is held awake until Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z), by jane (unverified): late\n   'kubectl maint wake office --release'; then it falls asleep by its schedule until Sat 2026-11-21 06:00 EST (2026-11-21T11:00:00Z)\nit is to sleep Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z), in 2h0m\n" + askHib},
		{name: "it is skipped", line: "why office", world: objects(cmdtest.Namespace("shop"), plan(office, annotations.Skip, "next", annotations.Reason(annotations.Skip), "release")), code: 3, out: "Active: awake\nit is to be awake: these off-hours are skipped\n1. these off-hours are skipped: release\n   'kubectl maint unskip office'\n" + monday + askHib},
		{name: "it is paused", line: "why office", world: objects(cmdtest.Namespace("shop"), plan(office, annotations.Pause, "true")), code: 3, out: toBe + "1. it is paused until somebody resumes it, and keeps its present state\n   'kubectl maint resume office'\n" + askWake},
		{name: "its namespace is paused", line: "why office", world: objects(cmdtest.Namespace("shop", annotations.Pause, "2026-11-22T00:00:00Z"), plan(office)), code: 3, out: toBe + "1. namespace shop is paused until Sat 2026-11-21 19:00 EST (2026-11-22T00:00:00Z), in 24h0m; the plan keeps its present state\n   'kubectl maint resume --all'\nit is to sleep Mon 2026-11-23 18:00 EST (2026-11-23T23:00:00Z), in 2d23h\n" + askWake},
		{name: "the whole cluster is paused", line: "why office", world: objects(cmdtest.Namespace("shop"), plan(office)), before: clusterPaused, code: 3, out: toBe + "1. the whole cluster is paused until resumed, by jane (unverified): incident 8; the plan keeps its present state\n   'kubectl maint resume --all -A'\n" + askWake},
		{name: "the whole cluster is paused, which is hidden: the agent says it", line: "why office", world: objects(cmdtest.Namespace("shop"), plan(office, annotations.StatusPhase, "Suspended", annotations.StatusMessage, "the whole cluster is paused by jane (unverified): incident 8")), before: func(o *cmdtest.Cluster) { o.Forbids("get", "namespaces", "") }, code: 3, out: "Suspended: the whole cluster is paused by jane (unverified): incident 8\n" + "it is to be asleep: off-hours\n1. the whole cluster is paused until resumed, by jane (unverified): incident 8, says the agent; the plan keeps its present state\n   'kubectl maint resume --all -A'\n" + askWake, err: "warning: read namespace shop: namespaces is forbidden: not for you; the answer that the agent published is used\n"},
		{name: "a policy forbids it", line: "why office", world: objects(cmdtest.Namespace("shop"), cmdtest.Policy("noon", "{strategy: MaintenanceSchedule, maintenanceSchedule: {timezone: UTC, windows: [{start: '02:00', end: '04:00'}]}}"), plan(office+", policies: [{name: noon}]")), code: 3, out: toBe + "1. no sleep may begin: policy noon: outside of the windows\n   it may from Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z), in 2h0m\nit is to sleep Fri 2026-11-20 21:00 EST (2026-11-21T02:00:00Z), in 2h0m\n" + askWake},
		{name: "its policy is not there", line: "why office", world: objects(cmdtest.Namespace("shop"), plan(office+", policies: [{name: ghost}]")), code: 3, out: toBe + "1. no sleep may begin: policy ghost: not ready: there is no such policy in namespace shop\n   fix or create the policy\n" + askWake},
		{name: "an exception", line: "why office", world: objects(cmdtest.Namespace("shop"), plan(office+", exceptions: [{type: suspend, validFrom: '2026-11-20T00:00:00Z', validUntil: '2026-11-21T12:00:00Z', reason: tests}]")), code: 3, out: "Active: awake\nit is to be awake: suspended by an exception: tests\n1. its schedule says: suspended by an exception: tests\n   change spec.schedule or spec.exceptions; or 'kubectl maint hibernate office --for 2h'\n" + monday + askHib},
		{name: "the lead time of a suspend", line: "why office", world: objects(cmdtest.Namespace("shop"), plan(office+", exceptions: [{type: suspend, validFrom: '2026-11-21T01:00:00Z', validUntil: '2026-11-21T12:00:00Z', leadTime: 2h}]")), code: 3, out: toBe + "1. no sleep begins: soon suspended by an exception, from Fri 2026-11-20 20:00 EST on\n   'kubectl maint hibernate office --for 2h'\nit is to sleep Mon 2026-11-23 18:00 EST (2026-11-23T23:00:00Z), in 2d23h\n" + askWake},
		{name: "it only rehearses", line: "why office", world: objects(cmdtest.Namespace("shop"), plan(office+", dryRun: true")), code: 3, out: toBe + "1. it is a dry run\n   take spec.dryRun out of the plan\n" + morning + askWake},
		{name: "targets have failed", line: "why failing", world: objects(cmdtest.Namespace("shop"), failing()), code: 3, out: "Error: apps failed: no right\nit is to be asleep: off-hours\n1. target apps has failed after 4 attempts: no right\n   fix what it says, then 'kubectl maint trigger failing'; 'kubectl maint doctor failing' checks the account and its rights\n2. target db is not tried: apps has failed\n   'kubectl maint trigger failing', once the other is mended\n3. target slow has failed 1 time, and is tried again by itself: later\n   at once: 'kubectl maint trigger failing'; 'kubectl maint doctor failing' checks the account and its rights\n" + morning + "by hand: 'kubectl maint wake failing --for 2h'\n"},
		{name: "its restore data carries no signature", line: "why office", world: objects(cmdtest.Namespace("shop"), hibernated(t, "office")[0], restoreData(t, "office")), code: 3, out: "Hibernated: 1 of 1 targets sleep\nit is to be asleep: off-hours\n1. restore data " + annotations.RestoreName("office", "apps") + " does not count: it carries no signature of the agent's\n   if it is the agent's own, sign it with " + adopt + "\n" + morning + askWake},
		{name: "its restore data is gone", line: "why office", world: objects(cmdtest.Namespace("shop"), hibernated(t, "office")[0]), code: 3, out: "Hibernated: 1 of 1 targets sleep\nit is to be asleep: off-hours\n1. the restore data of target apps is gone: nobody knows how it was before it was put to sleep\n   wake it by hand, and say so with 'kubectl maint trigger office'\n" + morning + askWake},
		{name: "it has a fault", line: "why broken", world: objects(cmdtest.Namespace("shop"), cmdtest.Sleeper("broken", "schedule: {offHours: []}", cmdtest.Noting(annotations.StatusPhase, "Invalid"))), code: 3, out: "Invalid\n1. the plan is invalid: line 1: spec.schedule.offHours: is empty; write for instance [{start: \"20:00\", end: \"06:00\"}]\n   fix it; 'kubectl maint lint -f FILE' shows all faults; what sleeps wakes at its time, or with 'kubectl maint wake broken'\n"},
		{name: "a node has its name, too", line: "why office", world: objects(cmdtest.Namespace("shop"), cmdtest.Node("office"), plan(office)), code: 2, err: "error: office is a HibernatePlan in namespace shop, and a node: write hibernate-plan/office or node/office\n"},
	})
	stale := cmdtest.Agent()
	stale.Data["heartbeat"] = "2026-11-20T23:00:00Z"
	got := cmdtest.NewCluster(t, cmd.Run, stale, cmdtest.Namespace("shop"), plan(lunch)).Maint("why", "office")
	if got.Code != 0 || !strings.Contains(got.Out, "1. no agent is at work: the agent in namespace maint-system was last seen 1h0m0s ago") {
		t.Errorf("%+v", got)
	}
}

// A plan that is deleted while it sleeps is shown until all of it is awake, with what to do.
func TestStatusNamesRestoreDataWhosePlanIsGone(t *testing.T) {
	name := annotations.RestoreName("gone", "apps")
	for what, c := range map[string]struct {
		object *corev1.ConfigMap
		want   string
	}{
		"it wakes":          {cmdtest.Signed(restoreData(t, "gone")), "Needs somebody:\n  gone  is deleted, with restore data in configmap/" + name + ": its plan is gone, and the agent wakes what sleeps\n    'kubectl maint restore show gone'\n\n"},
		"it does not count": {restoreData(t, "gone"), "Needs somebody:\n  gone  is deleted, with restore data in configmap/" + name + ": its plan is gone, and nothing wakes by it: it carries no signature of the agent's\n    'kubectl maint adopt " + name + "'\n\n"},
	} {
		o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), c.object)
		if got := o.Maint("status"); got.Code != 0 || !strings.HasPrefix(got.Out, c.want) {
			t.Errorf("%s: %+v, want %q", what, got, c.want)
		}
		machine := o.Maint("status", "-o", "jsonpath={range .items[*]}{.kind} {.metadata.name} {.plan} {.target}: {.needs[0].what}: {.needs[0].remedy}{end}")
		_, rest, _ := strings.Cut(c.want, "gone  ")
		need, remedy, _ := strings.Cut(strings.TrimSpace(rest), "\n    ")
		if want := "RestoreStatus " + name + " gone apps: " + need + ": " + remedy; machine.Code != 0 || machine.Out != want {
			t.Errorf("%s: %+v, want %q", what, machine, want)
		}
		o.Maint("status", "-o", "name").Is(t, cmdtest.Printed{Out: "configmap/" + name + "\n"})
	}
}

// A target that does not wake needs somebody before its last attempt has failed.
func TestATargetWhoseAttemptsFailNeedsSomebody(t *testing.T) {
	targets := sleepTargets(hibernate.TargetStatus{Target: "apps", Executor: "workload", State: hibernate.Running, Attempts: 2, Message: "no right, until 2026-11-21T02:00:00Z"})
	retried := cmdtest.Sleeper("office", office, cmdtest.Noting(annotations.StatusPhase, "WakingUp", annotations.StatusTargets, targets))
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), retried)
	const need = "  office  target apps has failed 2 times, and is tried again by itself: no right, until Fri 2026-11-20 21:00 EST\n    'kubectl maint doctor office'\n"
	if got := o.Maint("status"); !strings.HasPrefix(got.Out, "Needs somebody:\n"+need) {
		t.Errorf("%+v", got)
	}
}
