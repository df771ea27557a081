package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// document makes a ConfigMap of a kind in the lab's namespace.
func (l *lab) document(kind, name, data, text string) *corev1.ConfigMap {
	l.Helper()
	cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{annotations.LabelKind: kind}},
		Data:       map[string]string{data: text},
	}, metav1.CreateOptions{})
	l.must(err)
	return cm
}

func (l *lab) policy(name, spec string) {
	l.Helper()
	l.document(annotations.KindPolicy, name, annotations.DataPolicy, "apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec: "+spec+"\n")
}

// policySeen is a policy once the agent has published what it says.
func (l *lab) policySeen(name string, holds func(a map[string]string) bool) map[string]string {
	l.Helper()
	var got map[string]string
	l.eventually("policy "+name+" is published", func() (bool, string) {
		cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, name, metav1.GetOptions{})
		l.must(err)
		got = cm.Annotations
		return got[annotations.StatusObserved] == annotations.Observed(cm) && holds(got), fmt.Sprint(got)
	})
	return got
}

func permitted(want string) func(map[string]string) bool {
	return func(a map[string]string) bool { return a[annotations.StatusPermitted] == want }
}

// waiting is the plan's live run, once it waits for what is wanted.
func (l *lab) waiting(name, want string) runState {
	l.Helper()
	var got runState
	l.eventually("a run of "+name+" waits for "+want, func() (bool, string) {
		runs := l.runs(name)
		if len(runs) != 1 {
			return false, describeRuns(runs)
		}
		got = runs[0]
		return got.journal.Waiting == want, describeRuns(runs)
	})
	return got
}

func condition(t *testing.T, a map[string]string, kind string) metav1.Condition {
	t.Helper()
	var list []metav1.Condition
	if err := json.Unmarshal([]byte(a[annotations.StatusConditions]), &list); err != nil {
		t.Fatalf("conditions %q: %v", a[annotations.StatusConditions], err)
	}
	for _, c := range list {
		if c.Type == kind {
			return c
		}
	}
	t.Fatalf("no condition %s in %v", kind, list)
	return metav1.Condition{}
}

func TestARunWaitsForItsWindowAndStartsWhenItOpens(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.policy("closed", "{strategy: Restrictive}")
	a := l.policySeen("closed", permitted("false"))
	if c := condition(t, a, "ChangesRestricted"); c.Status != metav1.ConditionTrue {
		t.Errorf("ChangesRestricted: %+v", c)
	}
	l.plan("gated", "policies: [{name: closed}]"+quick)
	l.seen("gated")
	l.trigger("gated", "t")
	r := l.waiting("gated", run.WaitWindow)
	if !strings.Contains(r.journal.Message, "policy closed: Restrictive") {
		t.Errorf("it says %q", r.journal.Message)
	}
	l.eventually("the plan says that it waits", func() (bool, string) {
		now := l.seen("gated")
		return now.Annotations[annotations.StatusPhase] == string(trigger.PhaseWaiting) && condition(t, now.Annotations, "ChangesPending").Status == metav1.ConditionTrue &&
			condition(t, now.Annotations, policy.ChangesPaused).Status == metav1.ConditionTrue, fmt.Sprint(now.Annotations)
	})
	l.annotate("closed", map[string]string{annotations.ChangeStrategy: "PermissiveUntil", annotations.PermissiveUntil: time.Now().Add(time.Hour).UTC().Format(time.RFC3339)})
	end := l.ended("gated", 1)[0]
	if end.journal.Phase != run.Succeeded || end.journal.Passed != nil {
		t.Errorf("it ended %s, passed %v", end.journal.Phase, end.journal.Passed)
	}
	a = l.policySeen("closed", permitted("true"))
	var b policy.Behavior
	l.must(json.Unmarshal([]byte(a[annotations.StatusBehavior]), &b))
	if b.Current.State != policy.ChangesUnpaused || b.Current.Strategy != "Permissive" || b.Current.EndTime == nil || b.Next == nil || b.Next.State != policy.ChangesPaused || len(b.History) != 1 || b.History[0].State != policy.ChangesPaused {
		t.Errorf("behavior: %s", a[annotations.StatusBehavior])
	}
}

func TestAWindowThatOpensByTheClockStartsWhatWaits(t *testing.T) {
	l := newLab(t)
	l.runner()
	opens := time.Now().Add(6 * time.Second).UTC().Truncate(time.Second)
	l.policy("later", "{strategy: Permissive}")
	l.annotate("later", map[string]string{annotations.ChangeStrategy: "RestrictiveUntil", annotations.RestrictiveUntil: opens.Format(time.RFC3339)})
	l.plan("gated", "policies: [{name: later}]"+quick)
	l.seen("gated")
	l.trigger("gated", "t")
	l.waiting("gated", run.WaitWindow)
	end := l.ended("gated", 1)[0]
	if at := *end.journal.StartedAt; at.Before(opens) || at.Sub(opens) > 3*time.Second {
		t.Errorf("started %s, the window opened %s", at, opens)
	}
}

func TestASlotWhoseWindowStaysClosedIsMissed(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.policy("closed", "{strategy: Restrictive}")
	slot := time.Now().Add(4 * time.Second).UTC().Truncate(time.Second)
	cm := l.plan("gated", fmt.Sprintf("policies: [{name: closed}]\nstartDeadline: 2s\ntriggers: {schedules: [{at: %q}]}", slot.Format(time.RFC3339))+quick)
	l.waiting("gated", run.WaitWindow)
	l.eventually("the slot is missed", func() (bool, string) {
		ledger := l.ledger(cm)
		return len(ledger.Recent) == 1 && ledger.Recent[0].Result == run.Missed && ledger.Recent[0].Reason == run.ReasonWindow && ledger.Recent[0].Slot.Equal(slot), fmt.Sprintf("%+v", ledger)
	})
	if n := len(l.hooks.Keys("/" + l.ns + "/call")); n != 0 {
		t.Errorf("%d calls went out", n)
	}
}

func TestAPolicyThatIsMissingOrBrokenIsNotReadyAndNothingStarts(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("gated", "policies: [{name: later}]"+quick)
	cm := l.seen("gated")
	if c := condition(t, cm.Annotations, "Ready"); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "there is no such policy") {
		t.Errorf("Ready: %+v", c)
	}
	l.trigger("gated", "t")
	l.policy("later", "{strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{days: [Sat], start: '25:00', end: '02:00'}]}}")
	a := l.policySeen("later", permitted("false"))
	if c := condition(t, a, "Valid"); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "spec.maintenanceSchedule.windows[0].start") {
		t.Errorf("Valid: %+v", c)
	}
	if c := condition(t, a, "ChangesRestricted"); c.Status != metav1.ConditionTrue {
		t.Errorf("ChangesRestricted: %+v", c)
	}
	if runs := l.runs("gated"); len(runs) != 0 {
		t.Errorf("runs: %s", describeRuns(runs))
	}
	l.expect(l.maint("status"), 0, "Needs somebody:", "policy later  is not ready, so that nothing begins that waits for it: ", "spec.maintenanceSchedule.windows[0].start", "'kubectl maint -n "+l.ns+" why policy/later'", "gated  is not Ready: ")
	l.expect(l.maint("why", "policy/later"), 3, "windows[0].start", "mend the policy")
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, "later", types.MergePatchType, []byte(`{"data":{"policy.yaml":"apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec: {strategy: MaintenanceSchedule, maintenanceSchedule: {permit: {}}}\n"}}`), metav1.PatchOptions{})
	l.must(err)
	if end := l.ended("gated", 1)[0]; end.journal.Phase != run.Succeeded {
		t.Errorf("it ended %s", end.journal.Phase)
	}
}

func TestOnlyAReasonOrABypassPassesAClosedGate(t *testing.T) {
	l := newLab(t)
	l.runner()
	_, err := l.admin.CoreV1().Namespaces().Patch(l.ctx, l.ns, types.MergePatchType, []byte(`{"metadata":{"annotations":{"maint.dev/change-strategy":"Restrictive"}}}`), metav1.PatchOptions{})
	l.must(err)
	l.plan("urgent", quick, func(cm *corev1.ConfigMap) {
		cm.Annotations = map[string]string{annotations.ChangeStrategy: "Permissive"} // the namespace binds it all the same
	})
	l.seen("urgent")
	l.annotate("urgent", map[string]string{annotations.Trigger: "t", annotations.TriggerOptions: `{"token":"t","outsideWindow":true}`})
	r := l.waiting("urgent", run.WaitWindow)
	l.annotate("urgent", map[string]string{annotations.Bypass: "for ever"})
	l.eventually("a bypass without an end is refused with words", func() (bool, string) {
		said := l.seen("urgent").Annotations[annotations.StatusConditions]
		return strings.Contains(said, "bypasses nothing"), said
	})
	l.annotate("urgent", map[string]string{annotations.Bypass: r.run.Name + ": the site is down", annotations.Actor(annotations.Bypass): "ann"})
	end := l.ended("urgent", 1)[0]
	if p := end.journal.Passed; p == nil || p.Name != "ann" || p.Reason != "the site is down" {
		t.Errorf("who let it through: %+v", p)
	}
	l.plan("burning", quick)
	l.seen("burning")
	l.annotate("burning", map[string]string{annotations.Trigger: "u", annotations.TriggerOptions: `{"token":"u","outsideWindow":true,"reason":"fire"}`})
	l.waiting("burning", run.WaitWindow) // outside the window is not outside the namespace
	l.policy("closed", "{strategy: Restrictive}")
	_, err = l.admin.CoreV1().Namespaces().Patch(l.ctx, l.ns, types.MergePatchType, []byte(`{"metadata":{"annotations":{"maint.dev/change-strategy":"ByPolicy","maint.dev/change-policy":"closed"}}}`), metav1.PatchOptions{})
	l.must(err)
	if p := l.ended("burning", 1)[0].journal.Passed; p == nil || p.Reason != "fire" {
		t.Errorf("who let it through: %+v", p)
	}
	l.annotate("burning", map[string]string{annotations.Trigger: "v", annotations.Bypass: time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + ": all day"})
	l.ended("burning", 2)
}

const twoSteps = `
steps:
- {name: hold, type: suspend}
- {name: call, type: webhook, properties: {url: "HOOK/call"}}
finally:
- {name: tell, type: webhook, properties: {url: "HOOK/over"}}
`

func TestAWindowThatClosesBetweenTwoStepsHoldsOrEndsTheRun(t *testing.T) {
	for _, c := range []struct {
		name, onClose string
		want          run.Phase
	}{{"held", "wait", run.Succeeded}, {"ended", "abort", run.Aborted}, {"finished", "finish", run.Succeeded}} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.runner()
			l.policy("door", "{strategy: Permissive}")
			l.plan("gated", "policies: [{name: door}]\nmaxDuration: 1h\nonWindowClose: "+c.onClose+twoSteps)
			l.seen("gated")
			l.trigger("gated", "t")
			r := l.running("gated", "hold")
			l.annotate("door", map[string]string{annotations.ChangeStrategy: "Restrictive"})
			l.policySeen("door", permitted("false"))
			l.annotate("gated", map[string]string{annotations.Resume: r.run.Name})
			if c.onClose == "wait" {
				l.eventually("it is held", func() (bool, string) {
					runs := l.runs("gated")
					return len(runs) == 1 && runs[0].journal.HeldSince != nil && strings.Contains(runs[0].journal.Message, "does not open by itself"), describeRuns(runs)
				})
				if n := len(l.hooks.Keys("/" + l.ns + "/call")); n != 0 {
					t.Errorf("a step began behind a closed gate")
				}
				l.annotate("door", map[string]string{annotations.ChangeStrategy: ""})
			}
			end := l.ended("gated", 1)[0]
			if end.journal.Phase != c.want {
				t.Errorf("ended %s, want %s: %s", end.journal.Phase, c.want, end.journal.Message)
			}
			if c.want == run.Aborted && end.journal.End.Reason != "WindowClosed" {
				t.Errorf("end: %+v", end.journal.End)
			}
			if n := len(l.hooks.Keys("/" + l.ns + "/over")); n != 1 {
				t.Errorf("finally was called %d times", n)
			}
		})
	}
}

// A namespace that is closed during a long suspend of a run holds its next step, also where
// the plan says nothing of its window, until it is open again; an abort cleans up meanwhile.
func TestANamespaceThatIsClosedDuringALongSuspendHoldsTheNextStep(t *testing.T) {
	l := newLab(t)
	l.runner()
	says := func(strategy, until any) {
		l.Helper()
		notes := map[string]any{annotations.ChangeStrategy: strategy, annotations.RestrictiveUntil: until, annotations.Actor(annotations.ChangeStrategy): "ann", annotations.Reason(annotations.ChangeStrategy): "inventory"}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": notes}})
		l.must(err)
		_, err = l.admin.CoreV1().Namespaces().Patch(l.ctx, l.ns, types.MergePatchType, patch, metav1.PatchOptions{})
		l.must(err)
	}
	held := func(name, until string) {
		l.Helper()
		l.eventually(name+" is held", func() (bool, string) {
			runs := l.runs(name)
			return len(runs) == 1 && runs[0].journal.HeldSince != nil && strings.Contains(runs[0].journal.Message, until) && strings.Contains(runs[0].journal.Message, "ann"), describeRuns(runs)
		})
	}
	calls := func(path string) int { return len(l.hooks.Keys("/" + l.ns + path)) }
	l.plan("goes-on", "maxDuration: 1h"+twoSteps)
	l.plan("ends", "maxDuration: 1h"+strings.ReplaceAll(twoSteps, "HOOK/", "HOOK/ends/"))
	resumes := map[string]string{}
	for _, name := range []string{"goes-on", "ends"} {
		l.seen(name)
		l.trigger(name, "t")
		resumes[name] = l.running(name, "hold").run.Name
	}
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second).Format(time.RFC3339)
	says("RestrictiveUntil", until)
	for name, r := range resumes {
		l.annotate(name, map[string]string{annotations.Resume: r})
		held(name, until)
	}
	l.expect(l.maint("status"), 0, "inventory")
	l.expect(l.maint("describe", "goes-on"), 0, "waits for its window, which opens at", "inventory")
	l.expect(l.maint("why", "goes-on"), 3, "change is not permitted: namespace: RestrictiveUntil", "inventory")
	l.annotate("ends", map[string]string{annotations.Abort: resumes["ends"]})
	if end := l.ended("ends", 1)[0]; end.journal.Phase != run.Aborted || calls("/ends/over") != 1 || calls("/ends/call") != 0 {
		t.Errorf("aborted, it ended %s; finally was called %d times, the step %d times", end.journal.Phase, calls("/ends/over"), calls("/ends/call"))
	}
	if n := calls("/call"); n != 0 {
		t.Errorf("the step was called %d times in a closed namespace", n)
	}
	says(nil, nil)
	end := l.ended("goes-on", 1)[0]
	if end.journal.Phase != run.Succeeded || end.journal.HeldSeconds == 0 || calls("/call") != 1 || calls("/over") != 1 {
		t.Errorf("ended %s, held for %d s, called %d times, finally %d times", end.journal.Phase, end.journal.HeldSeconds, calls("/call"), calls("/over"))
	}
}

func TestACalendarClosesAPolicyAndItsFaultyLinesAreTold(t *testing.T) {
	l := newLab(t)
	today := time.Now().UTC()
	l.document(annotations.KindCalendar, "days", annotations.DataICS, strings.Join([]string{
		"BEGIN:VCALENDAR", "BEGIN:VEVENT", "UID:1", "SUMMARY:stocktaking", "DTSTART;VALUE=DATE:" + today.Format("20060102"), "DTEND;VALUE=DATE:" + today.AddDate(0, 0, 2).Format("20060102"),
		"END:VEVENT", "BEGIN:VEVENT", "UID:2", "DTSTART:never", "END:VEVENT", "END:VCALENDAR", "",
	}, "\n"))
	l.policy("workdays", "{strategy: MaintenanceSchedule, maintenanceSchedule: {permit: {}, exclude: [{calendar: {name: days}}]}}")
	a := l.policySeen("workdays", permitted("false"))
	if !strings.Contains(a[annotations.StatusMessage], "stocktaking") {
		t.Errorf("the policy says %q", a[annotations.StatusMessage])
	}
	l.eventually("the calendar says which line is wrong", func() (bool, string) {
		cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, "days", metav1.GetOptions{})
		l.must(err)
		return strings.Contains(cm.Annotations[annotations.StatusMessage], "line 10"), fmt.Sprint(cm.Annotations)
	})
	l.must(l.admin.CoreV1().ConfigMaps(l.ns).Delete(l.ctx, "days", metav1.DeleteOptions{}))
	l.eventually("a policy whose calendar is gone is not ready", func() (bool, string) {
		a := l.policySeen("workdays", permitted("false"))
		return condition(t, a, "Ready").Status == metav1.ConditionFalse, fmt.Sprint(a)
	})
	l.annotate("workdays", map[string]string{annotations.Pause: "true"})
	l.eventually("a paused policy says so", func() (bool, string) {
		a := l.policySeen("workdays", permitted("false"))
		return strings.Contains(a[annotations.StatusMessage], "paused"), fmt.Sprint(a)
	})
}

// metrics is all that the agent exports.
func (l *lab) metrics() string {
	l.Helper()
	resp, err := http.Get("http://" + world.agent.Address() + "/metrics")
	l.must(err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	l.must(err)
	return string(text)
}

// change is one change_management metric of an object of the lab.
func (l *lab) change(metric, kind, object, more string) string {
	l.Helper()
	want := fmt.Sprintf(`change_management_%s{kind=%q,namespace=%q,object=%q,`, metric, kind, l.ns, object)
	for line := range strings.SplitSeq(l.metrics(), "\n") {
		if strings.HasPrefix(line, want) && strings.Contains(line, more) {
			return line[strings.LastIndex(line, " ")+1:]
		}
	}
	return "absent"
}

func TestMetricsSayWhenChangeIsPermittedAndWhetherItWaits(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.policy("closed", "{strategy: Restrictive}")
	l.policy("open", "{strategy: Permissive}")
	l.policy("broken", "{strategy: Sometimes}")
	l.plan("gated", "policies: [{name: closed}]"+quick)
	l.plan("free", quick)
	l.seen("gated")
	l.seen("free")
	l.trigger("gated", "t")
	l.waiting("gated", run.WaitWindow)
	for _, c := range []struct{ metric, kind, object, more, want string }{
		{"next_change_eta", "Policy", "closed", "", "-1"},
		{"permissive_remaining", "Policy", "closed", "", "0"},
		{"last_change", "Policy", "closed", "", "-1"},
		{"strategy_enabled", "Policy", "closed", `strategy="Restrictive"`, "1"},
		{"strategy_enabled", "Policy", "closed", `strategy="Permissive"`, "0"},
		{"change_pending", "Policy", "closed", "", "2"},
		{"next_change_eta", "Policy", "open", "", "0"},
		{"permissive_remaining", "Policy", "open", "", "-1"},
		{"last_change", "Policy", "open", "", "0"},
		{"change_pending", "Policy", "open", "", "0"},
		{"next_change_eta", "Policy", "broken", "", "-2"},
		{"permissive_remaining", "Policy", "broken", "", "-2"},
		{"change_pending", "Plan", "gated", "", "2"},
		{"next_change_eta", "Plan", "gated", "", "-1"},
		{"strategy_enabled", "Plan", "gated", `strategy="ByPolicy"`, "1"},
		{"change_pending", "Plan", "free", "", "0"},
		{"next_change_eta", "Plan", "free", "", "0"},
		{"strategy_enabled", "Plan", "free", `strategy="Permissive"`, "1"},
	} {
		l.eventually(c.metric+" of "+c.object, func() (bool, string) {
			got := l.change(c.metric, c.kind, c.object, c.more)
			return got == c.want, "is " + got + ", want " + c.want
		})
	}
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	l.annotate("closed", map[string]string{annotations.ChangeStrategy: "PermissiveUntil", annotations.PermissiveUntil: until.Format(time.RFC3339)})
	l.ended("gated", 1)
	l.eventually("an hour is left", func() (bool, string) {
		left, _ := strconv.Atoi(l.change("permissive_remaining", "Policy", "closed", ""))
		return left > 3500 && left <= 3600 && l.change("strategy_enabled", "Policy", "closed", `strategy="Permissive"`) == "1", fmt.Sprint(left)
	})
}

func TestAPersonChecksAllowsFreezesAndAsksWhy(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.policy("weekends", "{strategy: MaintenanceSchedule, maintenanceSchedule: {timezone: Europe/Berlin, windows: [{days: [Sat], start: '02:00', end: '06:00'}]}}")
	l.plan("gated", "policies: [{name: weekends}]\ntriggers: {schedules: [{cron: '0 3 * * 5', timezone: Europe/Berlin}]}"+quick)
	l.seen("gated")
	l.expect(l.maint("check", "weekends", "--at", "2026-12-05T01:30:00Z"), 0, "policy/weekends: change is permitted", "until Sat 2026-12-05 06:00 CET (2026-12-05T05:00:00Z)")
	l.expect(l.maint("check", "weekends", "--at", "2026-12-05T06:00:00Z", "-o", "json"), 3, `{
    "apiVersion": "maint.dev/v1alpha1",
    "kind": "Verdict",
    "permitted": false,
    "reason": "policy weekends: outside of the windows",
    "since": "2026-12-05T05:00:00Z",
    "until": "2026-12-12T01:00:00Z",
    "next": {
        "permitted": true,
        "start": "2026-12-12T01:00:00Z",
        "end": "2026-12-12T05:00:00Z"
    },
    "nextChangeETA": 586800,
    "permissiveRemaining": 0
}`)
	l.expect(l.maint("check", "gated", "--at", "2026-12-04T02:00:00Z"), 3, "plan/gated: change is not permitted")
	l.expect(l.maint("check", "absent"), 1, "there is no plan or policy")
	l.expect(l.maint("next", "weekends", "--count", "1", "--from", "2026-12-05T02:00:00Z", "-o", "json"), 0, `{
    "apiVersion": "maint.dev/v1alpha1",
    "items": [
        {
            "start": "2026-12-05T01:00:00Z",
            "end": "2026-12-05T05:00:00Z",
            "note": ""
        }
    ],
    "kind": "WindowList"
}`)
	l.expect(l.maint("next", "gated", "--count", "1", "--from", "2026-12-04T00:00:00Z"), 0, "window closed until Sat 2026-12-05 02:00 CET")
	l.expect(l.maint("calendar"), 0, "weekends", "gated")
	l.expect(l.maint("calendar", "-A", "-o", "ics"), 0, "BEGIN:VCALENDAR", "END:VCALENDAR")
	l.expect(l.maint("freeze", "weekends", "--for", "2h", "--reason", "go-live"), 0, "policy/weekends frozen until")
	l.policySeen("weekends", permitted("false"))
	l.trigger("gated", "t")
	l.waiting("gated", run.WaitWindow)
	l.expect(l.maint("why", "gated"), 3, "change is not permitted: policy weekends: RestrictiveUntil", "--outside-window", "waits for its window")
	l.expect(l.maint("status", "gated"), 0, "Window:", "closed until")
	l.expect(l.maint("allow", "weekends", "--until", "2020-01-01T00:00:00Z"), 2, "has passed")
	l.expect(l.maint("allow", "weekends"), 2, "--for or --until is missing", "--reason is missing")
	l.plan("free", quick)
	l.expect(l.maint("allow", "free", "--for", "1h", "--reason", "x"), 1, "plan/free has no policy, so change is permitted already")
	l.expect(l.maint("allow", "weekends", "--for", "1h", "--reason", "CHG-7", "--dry-run=server"), 0, "allowed until", "dry run")
	l.expect(l.maint("allow", "weekends", "--for", "1h", "--reason", "CHG-7"), 0, "policy/weekends allowed until")
	l.ended("gated", 1)
	cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, "weekends", metav1.GetOptions{})
	l.must(err)
	if cm.Annotations[annotations.Reason(annotations.ChangeStrategy)] != "CHG-7" || cm.Annotations[annotations.Actor(annotations.ChangeStrategy)] == "" {
		t.Errorf("nobody stands behind it: %v", cm.Annotations)
	}
	l.expect(l.maint("why", "weekends"), 0, "policy/weekends: change is permitted")
	l.expect(l.maint("allow", "weekends", "--end"), 0, "no longer frozen or allowed")
	l.expect(l.maint("freeze", "namespace/"+l.ns, "--for", "1h", "--reason", "stocktaking"), 0, "namespace/"+l.ns+" frozen until")
	l.eventually("the freeze of the namespace binds the plan", func() (bool, string) {
		s := l.maint("check", "gated")
		return s.code == 3 && strings.Contains(s.out, "namespace: RestrictiveUntil"), s.out + s.err
	})
	l.expect(l.maint("freeze", "namespace/"+l.ns, "--end"), 0)
	l.expect(l.maint("pause", "weekends", "--reason", "audit"), 0, "policy/weekends paused until resumed")
	l.expect(l.maint("check", "weekends", "-q"), 3)
	l.expect(l.maint("resume", "weekends"), 0, "policy/weekends resumed")
}

func TestMetricsTellOfNodesThatSayWhenTheyMayBeChanged(t *testing.T) {
	l := newLab(t)
	name := "node-" + l.ns
	_, err := l.admin.CoreV1().Nodes().Create(l.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}}, metav1.CreateOptions{})
	l.must(err)
	t.Cleanup(func() {
		_ = l.admin.CoreV1().Nodes().Delete(context.WithoutCancel(l.ctx), name, metav1.DeleteOptions{})
	})
	l.expect(l.maint("freeze", "node/"+name, "--for", "1h", "--reason", "disk swap"), 0, "node/"+name+" frozen until")
	l.expect(l.maint("check", "node/"+name), 3, "node/"+name+": change is not permitted")
	l.expect(l.maint("why", "node/"+name), 3, "RestrictiveUntil", "to end the freeze: 'kubectl maint freeze node/"+name+" --end'")
	metrics := func(want string) func() (bool, string) {
		return func() (bool, string) {
			text := l.metrics()
			return strings.Contains(text, want), want
		}
	}
	l.eventually("its strategy is exported", metrics(fmt.Sprintf(`change_management_strategy_enabled{kind="Node",namespace="",object=%q,strategy="Restrictive",system="control-plane"} 1`, name)))
	l.expect(l.maint("allow", "node/"+name, "--end"), 0)
	l.eventually("a node that says nothing is not exported", func() (bool, string) {
		return !strings.Contains(l.metrics(), fmt.Sprintf("object=%q", name)), ""
	})
}
