package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// quick is a plan of one step that ends at once.
const quick = `
steps:
- {name: call, type: webhook, properties: {url: "HOOK/call"}}
`

// failing is a plan whose only step fails at once.
const failing = `
target: {apiVersion: apps/v1, kind: Deployment, name: orders}
triggers: {labels: [maintenance.company.org/database-upgrade]}
steps:
- {name: break, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: absent}, replicas: 0}}
`

// holding is a plan that waits for somebody.
const holding = `
steps:
- {name: hold, type: suspend}
finally:
- {name: tell, type: webhook, properties: {url: "HOOK/over"}}
`

func TestAScheduleFiresOnceAtItsInstant(t *testing.T) {
	l := newLab(t)
	l.runner()
	slot := time.Now().Add(4 * time.Second).UTC().Truncate(time.Second)
	cm := l.plan("at", fmt.Sprintf("triggers: {schedules: [{at: %q}]}", slot.Format(time.RFC3339))+quick)
	end := l.ended("at", 1)[0]
	if end.journal.Phase != run.Succeeded || end.journal.StartedAt.Before(slot) || end.journal.StartedAt.Sub(slot) > 5*time.Second {
		t.Fatalf("run of slot %s: %s, started %s", slot, end.journal.Phase, end.journal.StartedAt)
	}
	ledger := l.ledger(cm)
	if len(ledger.Recent) != 1 || !ledger.Recent[0].Slot.Equal(slot) || ledger.Recent[0].Result != run.Ran || !ledger.Watermark.Equal(slot) {
		t.Fatalf("ledger: %+v", ledger)
	}
	l.annotate("at", map[string]string{"example.org/touched": "again"})
	l.seen("at")
	if n := len(l.hooks.Keys("/" + l.ns + "/call")); n != 1 {
		t.Fatalf("%d keys were used, want 1", n)
	}
}

// A deleted ledger is made anew at once, and not by the next slot, which it would
// take for one before its time.
func TestASlotRunsAlthoughTheLedgerWasDeletedBefore(t *testing.T) {
	l := newLab(t)
	l.runner()
	slot := time.Now().Add(15 * time.Second).UTC().Truncate(time.Second)
	cm := l.plan("bereft", fmt.Sprintf("triggers: {schedules: [{at: %q}]}", slot.Format(time.RFC3339))+quick)
	l.seen("bereft")
	maps, name := l.admin.CoreV1().ConfigMaps(l.ns), annotations.LedgerName(cm.Name, string(cm.UID))
	old, err := maps.Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	l.must(maps.Delete(l.ctx, name, metav1.DeleteOptions{}))
	eventuallyWithin(t, l.ctx, time.Until(slot), "the ledger is made anew before the slot", func() (bool, string) {
		anew, err := maps.Get(l.ctx, name, metav1.GetOptions{})
		return err == nil && anew.UID != old.UID, fmt.Sprint(err)
	})
	if ledger := l.ledger(cm); !ledger.Watermark.Before(slot) || ledger.Watermark.Before(cm.CreationTimestamp.Time) {
		t.Fatalf("ledger: %+v", ledger)
	}
	l.ended("bereft", 1)
	if ledger := l.ledger(cm); len(ledger.Recent) != 1 || !ledger.Recent[0].Slot.Equal(slot) || ledger.Recent[0].Result != run.Ran {
		t.Fatalf("ledger: %+v", ledger)
	}
}

func TestALabelIsGoneAfterItsRunAlsoAfterAFailure(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.deployment("orders", 1)
	l.plan("breaks", failing)
	l.seen("breaks")
	for n := 1; n <= 2; n++ { // and it works again after it was used
		l.setLabel("orders", `"go"`)
		for _, r := range l.ended("breaks", n) {
			if r.journal.Phase != run.Failed {
				t.Fatalf("ended %s: %s", r.journal.Phase, r.journal.Message)
			}
		}
		l.asBefore("orders", 1)
	}
}

func TestALabelWhoseValueChangedDuringTheRunIsANewRequest(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.deployment("orders", 1)
	l.plan("orders-weekly", story)
	l.seen("orders-weekly")
	l.setLabel("orders", `"one"`)
	first := l.running("orders-weekly", "hold")
	l.setLabel("orders", `"two"`)
	l.annotate("orders-weekly", map[string]string{annotations.Resume: first.run.Name})
	second := l.running("orders-weekly", "hold")
	for second.run.Name == first.run.Name {
		second = l.running("orders-weekly", "hold")
	}
	if second.run.Request.Value != "two" {
		t.Errorf("the second run answers the value %q", second.run.Request.Value)
	}
	l.annotate("orders-weekly", map[string]string{annotations.Resume: second.run.Name})
	l.ended("orders-weekly", 2)
	l.asBefore("orders", 1)
}

func TestTheSameTokenIsOneRunAndAnotherIsAnother(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("manual", quick, func(cm *corev1.ConfigMap) {
		cm.Annotations = map[string]string{annotations.Trigger: "found-at-first-sight"}
	})
	l.seen("manual")
	l.trigger("manual", "a")
	l.ended("manual", 1)
	l.trigger("manual", "b")
	l.ended("manual", 2)
	l.trigger("manual", "a")
	l.trigger("manual", "found-at-first-sight")
	l.trigger("manual", "c")
	for _, r := range l.ended("manual", 3) {
		if r.run.Request.Token == "found-at-first-sight" {
			t.Errorf("the token that was there first was run")
		}
	}
	if keys := l.hooks.Keys("/" + l.ns + "/call"); len(keys) != 3 {
		t.Errorf("three tokens made the deliveries %v", keys)
	}
}

func TestOnCreateRunsOnceWhenThePlanIsFirstSeen(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("born", "triggers: {onCreate: true}"+quick)
	l.ended("born", 1)
	l.annotate("born", map[string]string{"example.org/touched": "again"})
	l.trigger("born", "t")
	l.ended("born", 2)
}

func TestAPausedPlanStartsNothingAndATokenWaits(t *testing.T) {
	l := newLab(t)
	l.runner()
	slot := time.Now().Add(3 * time.Second).UTC().Truncate(time.Second)
	cm := l.plan("paused", fmt.Sprintf("triggers: {schedules: [{at: %q}]}", slot.Format(time.RFC3339))+quick, func(cm *corev1.ConfigMap) {
		cm.Annotations = map[string]string{annotations.Pause: "true"}
	})
	l.seen("paused")
	l.trigger("paused", "t")
	l.eventually("the slot is skipped", func() (bool, string) {
		ledger := l.ledger(cm)
		return len(ledger.Recent) == 1 && ledger.Recent[0].Result == run.Skipped && ledger.Recent[0].Reason == run.ReasonPaused, fmt.Sprintf("%+v", ledger)
	})
	if n := len(l.runs("paused")); n != 0 {
		t.Fatalf("%d runs while paused", n)
	}
	l.annotate("paused", map[string]string{annotations.Pause: ""})
	if r := l.ended("paused", 1)[0]; r.run.Request.Token != "t" {
		t.Fatalf("after the pause ran %+v", r.run.Request)
	}
}

func TestSkipNextSkipsOneSlotAndIsTakenAway(t *testing.T) {
	l := newLab(t)
	l.runner()
	first := time.Now().Add(3 * time.Second).UTC().Truncate(time.Second)
	second := first.Add(3 * time.Second)
	cm := l.plan("skips", fmt.Sprintf("triggers: {schedules: [{at: %q}, {at: %q}]}", first.Format(time.RFC3339), second.Format(time.RFC3339))+quick, func(cm *corev1.ConfigMap) {
		cm.Annotations = map[string]string{annotations.Skip: "next"}
	})
	l.ended("skips", 1)
	ledger := l.ledger(cm)
	if len(ledger.Recent) != 2 || ledger.Recent[0].Result != run.Skipped || ledger.Recent[0].Reason != run.ReasonSkip || ledger.Recent[1].Result != run.Ran {
		t.Fatalf("ledger: %+v", ledger.Recent)
	}
	if now := l.seen("skips"); now.Annotations[annotations.Skip] != "" {
		t.Errorf("skip is still %q", now.Annotations[annotations.Skip])
	}
}

func TestSkipTrueAndSkippedInstantsAreRecorded(t *testing.T) {
	l := newLab(t)
	l.runner()
	slot := time.Now().Add(4 * time.Second).UTC().Truncate(time.Second)
	spec := fmt.Sprintf("triggers: {schedules: [{at: %q}]}", slot.Format(time.RFC3339)) + quick
	plans := map[string]*corev1.ConfigMap{}
	for name, skip := range map[string]string{"all": "true", "instant": slot.Format(time.RFC3339), "until": "until:" + slot.Add(time.Hour).Format(time.RFC3339)} {
		plans[name] = l.plan(name, spec, func(cm *corev1.ConfigMap) { cm.Annotations = map[string]string{annotations.Skip: skip} })
	}
	for name, cm := range plans {
		l.eventually(name+" is skipped", func() (bool, string) {
			l.seen(name)
			ledger := l.ledger(cm)
			return len(ledger.Recent) == 1 && ledger.Recent[0].Reason == run.ReasonSkip, fmt.Sprintf("%+v", ledger)
		})
	}
	l.eventually("the passed instant is taken away", func() (bool, string) {
		cm := l.seen("instant")
		return cm.Annotations[annotations.Skip] == "", cm.Annotations[annotations.Skip]
	})
}

func TestAnAbortRunsFinallyAndRestores(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.deployment("orders", 2)
	l.plan("orders-weekly", story)
	l.seen("orders-weekly")
	l.setLabel("orders", `"now"`)
	r := l.running("orders-weekly", "hold")
	l.annotate("orders-weekly", map[string]string{annotations.Abort: r.run.Name, annotations.Reason(annotations.Abort): "wrong night"})
	end := l.ended("orders-weekly", 1)[0]
	if end.journal.Phase != run.Aborted || !strings.Contains(end.journal.Message, "wrong night") {
		t.Fatalf("ended %s: %s", end.journal.Phase, end.journal.Message)
	}
	l.asBefore("orders", 2)
	if got := l.hooks.Keys("/" + l.ns + "/over"); len(got) != 1 {
		t.Errorf("finally was delivered as %v", got)
	}
	l.eventually("the intent is taken away", func() (bool, string) {
		cm := l.seen("orders-weekly")
		return cm.Annotations[annotations.Abort] == "", fmt.Sprint(cm.Annotations)
	})
}

func TestABrokenPlanIsSaidAndDisturbsNoOther(t *testing.T) {
	l := newLab(t)
	l.runner()
	broken := annotations.NewPlan(l.ns, "broken", "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  stepps: []\n  triggers: {schedules: [{cron: \"99 * * * *\"}]}\n", "")
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, broken, metav1.CreateOptions{})
	l.must(err)
	for name, data := range map[string]map[string]string{
		"no-yaml": {annotations.DataPlan: "\t: {"}, "no-key": {"other": "x"}, "two": {annotations.DataPlan: "a: 1\n---\nb: 2\n"}, "binary": {annotations.DataPlan: "\x00\x01"},
	} {
		cm := annotations.NewPlan(l.ns, name, "", "")
		cm.Data = data
		_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, cm, metav1.CreateOptions{})
		l.must(err)
	}
	l.plan("good", "triggers: {onCreate: true}"+quick)
	l.ended("good", 1)
	l.eventually("the broken plans are said", func() (bool, string) {
		for _, name := range []string{"broken", "no-yaml", "no-key", "two", "binary"} {
			cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, name, metav1.GetOptions{})
			l.must(err)
			if cm.Annotations[annotations.StatusPhase] != string(trigger.PhaseInvalid) {
				return false, name
			}
		}
		return true, ""
	})
	cm := l.seen("broken")
	if text := cm.Annotations[annotations.StatusConditions]; !strings.Contains(text, "did you mean") || !strings.Contains(text, "schedules[0].cron") {
		t.Errorf("the condition does not name both faults: %s", text)
	}
	l.eventually("an Event tells of the broken plan", func() (bool, string) {
		events, err := l.admin.CoreV1().Events(l.ns).List(l.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=broken"})
		l.must(err)
		return len(events.Items) > 0 && events.Items[0].Reason == "PlanInvalid", fmt.Sprint(len(events.Items))
	})
}

func TestAMissingRightIsAClearFailure(t *testing.T) {
	l := newLab(t)
	l.runner(deploymentRightsWithout("patch"))
	l.deployment("orders", 1)
	l.plan("weak", strings.ReplaceAll(failing, "name: absent", "name: orders"))
	l.eventually("the missing right for the label is a condition", func() (bool, string) {
		l.setLabel("orders", `"go"`)
		cm := l.seen("weak")
		text := cm.Annotations[annotations.StatusMessage]
		return strings.Contains(text, "may not patch") && strings.Contains(text, "maint-runner"), text
	})
	l.plan("weak-step", `
triggers: {onCreate: true}
steps:
- {name: mark, type: label, properties: {operation: add, labels: {a: b}, object: {apiVersion: apps/v1, kind: Deployment, name: orders}}}
`)
	end := l.ended("weak-step", 1)[0]
	for _, word := range []string{"patch", "deployments", l.ns + "/maint-runner"} {
		if !strings.Contains(end.journal.Message, word) {
			t.Errorf("the message does not say %q: %s", word, end.journal.Message)
		}
	}
}

func TestAMissingServiceAccountKeepsThePlanFromStarting(t *testing.T) {
	l := newLab(t)
	l.plan("nobody", "triggers: {onCreate: true}"+quick)
	l.eventually("it is said", func() (bool, string) {
		cm := l.seen("nobody")
		text := cm.Annotations[annotations.StatusMessage]
		return strings.Contains(text, "ServiceAccount maint-runner does not exist"), text
	})
	if n := len(l.runs("nobody")); n != 0 {
		t.Fatalf("%d runs were created", n)
	}
}

func TestAnEditDuringARunDoesNotChangeTheRun(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("edited", holding)
	l.seen("edited")
	l.trigger("edited", "t")
	r := l.running("edited", "hold")
	patch := `{"data":{"plan.yaml":"apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps: [{name: other, type: suspend}]\n"}}`
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, "edited", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	l.must(err)
	l.seen("edited")
	l.annotate("edited", map[string]string{annotations.Resume: r.run.Name})
	end := l.ended("edited", 1)[0]
	if len(end.journal.Steps) != 2 || end.journal.Steps[1].Path != "finally/tell" || end.journal.Phase != run.Succeeded {
		t.Fatalf("the run did not go on by its snapshot: %+v", end.journal)
	}
}
