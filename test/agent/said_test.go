package agent_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// A plan that cannot begin says why, and not when its next slot is.
func TestAPlanWithAnObstacleIsNotWaitingForItsNextRun(t *testing.T) {
	l := newLab(t)
	l.runner()
	const nightly = "triggers: {schedules: [{cron: '0 3 * * *', timezone: Europe/Berlin}]}"
	for name, c := range map[string]struct{ spec, why string }{
		"absent": {"target: {apiVersion: apps/v1, kind: Deployment, name: ghost}\n" + nightly + quick, "Deployment/ghost does not exist"},
		"lost":   {"policies: [{name: ghost}]\n" + nightly + quick, "there is no such policy in namespace " + l.ns},
		"nobody": {"serviceAccountName: nobody\n" + nightly + quick, "ServiceAccount nobody does not exist"},
	} {
		l.plan(name, c.spec, func(cm *corev1.ConfigMap) {
			if name == "nobody" {
				metav1.SetMetaDataLabel(&cm.ObjectMeta, annotations.LabelServiceAccount, "nobody")
			}
		})
		l.eventually("status says why", func() (bool, string) {
			out := l.maint("status", name).out
			return strings.Contains(out, "Phase:") && strings.Contains(out, "Waiting: ") && strings.Contains(out, c.why), out
		})
		l.expect(l.maint("why", name), 3, "1. ", c.why)
		l.expect(l.maint("status"), 0, "Needs somebody:", name+"  is not Ready: ", c.why, "doctor "+name+"'")
		l.expect(l.maint("list", "-o", "wide"), 0, name, "Waiting", c.why)
		l.expect(l.maint("next", name, "--count", "1"), 0, "03:00")
	}
	for _, args := range [][]string{{"status"}, {"list", "-o", "wide"}, {"status", "absent"}, {"why", "lost"}, {"why", "nobody"}} {
		if out := l.maint(args...).out; strings.Contains(out, "next run") {
			t.Errorf("%v says when the next run is:\n%s", args, out)
		}
	}
}

// Of an account that is not there everything is forbidden: what helps is to create it.
func TestAMissingServiceAccountIsSaidBeforeAMissingRight(t *testing.T) {
	l := newLab(t)
	l.deployment("orders", 1)
	l.plan("labelled", "target: {apiVersion: apps/v1, kind: Deployment, name: orders}\ntriggers: {labels: [example.org/now]}"+quick)
	l.eventually("status says so", func() (bool, string) {
		out := l.maint("status", "labelled").out
		return strings.Contains(out, "ServiceAccount maint-runner does not exist"), out
	})
	got := l.maint("why", "labelled")
	l.expect(got, 3, "1. the plan is not ready: the ServiceAccount maint-runner does not exist in namespace "+l.ns, "rbac -f FILE' prints both")
	if strings.Contains(got.out, "may not list") {
		t.Errorf("it sends people to grant a right to nobody:\n%s", got.out)
	}
	l.runner()
	l.eventually("it is ready with the account", func() (bool, string) {
		got := l.maint("why", "labelled")
		return got.code == 0, got.out
	})
}

// What a report counts beside runs: how late they were, slots without one and why, windows, and
// who decided what.
func TestAReportTellsOfSlotsWindowsAndOverrides(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.policy("shut", "{strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{cron: '0 0 1 1 *', duration: 1h}]}}")
	slot := time.Now().Add(6 * time.Second).UTC().Truncate(time.Second)
	at := func(spec string) string {
		return fmt.Sprintf("triggers: {schedules: [{at: %q, timezone: UTC}]}\n%s", slot.Format(time.RFC3339), spec)
	}
	l.plan("late", at("requiresApproval: true"+quick))
	missed := l.plan("missed", at("startDeadline: 2s\npolicies: [{name: shut}]"+quick))
	l.plan("skipped", at(strings.TrimLeft(quick, "\n")))
	l.plan("urgent", "policies: [{name: shut}]"+quick)
	l.seen("urgent")
	l.seen("skipped")
	l.expect(l.maint("skip", "skipped", "--next", "1", "--reason", "release week"), 0, "skips")
	l.expect(l.maint("trigger", "urgent", "--outside-window", "--reason", "CHG-8", "--wait", "--timeout", "60s"), 0, "Succeeded")
	l.eventually("the slot of missed is missed", func() (bool, string) {
		ledger := l.ledger(missed)
		return ledger.Totals[run.Missed] == 1, fmt.Sprintf("%+v", ledger)
	})
	l.expect(l.maint("approve", "late", "--reason", "CHG-7", "--wait", "--timeout", "60s"), 0, "Succeeded")

	var got struct {
		Plans []struct {
			Plan                                                string
			Runs, Succeeded, Skipped, Missed, LateMost, Windows int64
			Reasons                                             map[string]int64
		}
		Overrides []struct{ Plan, What, Actor, Reason string }
	}
	l.eventually("the report has all of them", func() (bool, string) {
		out := l.maint("report", "--last", "1h", "-o", "json")
		got.Plans, got.Overrides = nil, nil
		l.must(json.Unmarshal([]byte(out.out), &got))
		return len(got.Plans) == 4, out.out
	})
	by := map[string]int{}
	for i, p := range got.Plans {
		by[strings.TrimPrefix(p.Plan, l.ns+"/")] = i
	}
	if p := got.Plans[by["late"]]; p.Runs != 1 || p.Succeeded != 1 || p.LateMost < 1 {
		t.Errorf("late: %+v", p)
	}
	if p := got.Plans[by["missed"]]; p.Missed != 1 || p.Reasons["Missed(window)"] != 1 {
		t.Errorf("missed: %+v", p)
	}
	if p := got.Plans[by["skipped"]]; p.Skipped != 1 || p.Reasons["Skipped(skip)"] != 1 {
		t.Errorf("skipped: %+v", p)
	}
	who := fmt.Sprintf("%+v", got.Overrides)
	for _, want := range []string{"What:approved", "Reason:CHG-7", "What:outside-window", "Reason:CHG-8", "Actor:"} {
		if !strings.Contains(who, want) {
			t.Errorf("%s is not among the overrides %s", want, who)
		}
	}
	l.expect(l.maint("report", "--last", "1h"), 0, "Missed(window)", "Skipped(skip)", "CHG-7", "CHG-8", "LATE (MOST)")
	l.expect(l.maint("report", "--last", "1h", "-o", "md"), 0, "| "+l.ns+"/missed |", "window", "CHG-8")
	l.expect(l.maint("report", "--last", "1h", "-o", "html"), 0, "CHG-7", "Missed")
	l.expect(l.maint("report", "--last", "1h", "-o", "csv"), 0, l.ns+"/missed", "Missed,window")
}

// Whoever reads of a slot that was missed in a freeze learns who froze, and why; and of a run that
// could begin only since somebody had opened its policy, who that was.
func TestTheHistorySaysWhoFrozeAndWhoOpened(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.policy("stop", "{strategy: Permissive}")
	l.policy("shut", "{strategy: Restrictive}")
	l.policySeen("stop", permitted("true"))
	l.policySeen("shut", permitted("false"))
	l.expect(l.maint("freeze", "policy/stop", "--for", "1h", "--reason", "CHG-1"), 0, "stop")
	l.policySeen("stop", permitted("false"))
	slot := time.Now().Add(6 * time.Second).UTC().Truncate(time.Second)
	frozen := l.plan("frozen", fmt.Sprintf("startDeadline: 2s\npolicies: [{name: stop}]\ntriggers: {schedules: [{at: %q, timezone: UTC}]}%s", slot.Format(time.RFC3339), quick))
	l.plan("opened", "policies: [{name: shut}]"+quick)
	l.seen("opened")
	l.expect(l.maint("allow", "policy/shut", "--for", "1h", "--reason", "CHG-2"), 0, "shut")
	l.policySeen("shut", permitted("true"))
	l.expect(l.maint("trigger", "opened", "--wait", "--timeout", "60s"), 0, "Succeeded")
	l.eventually("the slot of frozen is missed", func() (bool, string) {
		ledger := l.ledger(frozen)
		return ledger.Totals[run.Missed] == 1, fmt.Sprintf("%+v", ledger)
	})
	const why = "did not start within startDeadline 2s: policy stop: RestrictiveUntil "
	l.expect(l.maint("history", "frozen", "-o", "wide"), 0, "Missed", "window", why, "CHG-1")
	l.expect(l.maint("history", "frozen", "-o", "jsonpath={.items[0].said}"), 0, "policy stop: RestrictiveUntil ", " by ", "CHG-1")
	l.expect(l.maint("describe", "frozen"), 0, "CHG-1")
	l.expect(l.maint("report", "--last", "1h"), 0, "Missed(window)", "CHG-1", "allowed", "CHG-2")
	l.expect(l.maint("report", "--last", "1h", "-o", "csv"), 0, why, "allowed ")
	l.expect(l.maint("calendar", "--from", slot.Add(-time.Minute).Format(time.RFC3339)), 0, "CHG-1")
	l.expect(l.maint("history", "opened"), 0, "Succeeded", "allowed by ", ": CHG-2")
	l.expect(l.maint("describe", "opened"), 0, "opened for a time by ", "CHG-2")
}

// The windows that a report counts are those since its plan was made, and those in which a run began.
func TestAReportCountsTheWindowsThatWereUsed(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.policy("often", "{strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{cron: '* * * * *', duration: 50s}]}}")
	l.plan("works", "policies: [{name: often}]"+quick)
	l.seen("works")
	l.expect(l.maint("trigger", "works", "--wait", "--timeout", "90s"), 0, "Succeeded")
	l.eventually("one window of them was used", func() (bool, string) {
		out := l.maint("report", "--last", "1h", "-o", "jsonpath={.plans[0].windowsUsed} of {.plans[0].windows}")
		return out.out == "1 of 1" || out.out == "1 of 2" || out.out == "1 of 3", out.out + out.err
	})
}

// What a run took is the same whoever is asked.
func TestHowLongARunTookIsSaidOnce(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("rests", "steps: [{name: rest, type: suspend, properties: {duration: 1600ms}}]\n")
	l.seen("rests")
	l.trigger("rests", "t")
	name := l.ended("rests", 1)[0].run.Name
	took := regexp.MustCompile(`Succeeded after (\d+s)`)
	said := map[string]string{}
	for _, args := range [][]string{{"history", "rests"}, {"describe", name}, {"status", name}, {"wait", name}} {
		out := l.maint(args...)
		if found := took.FindStringSubmatch(out.out + out.err); found != nil {
			said[args[0]] = found[1]
		}
	}
	if len(said) < 3 || said["history"] != said["describe"] || said["history"] != said["status"] {
		t.Errorf("it is said to have taken %v", said)
	}
}
