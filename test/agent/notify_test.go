package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// sinks gives the agent a configuration with a sink on a server of its own, until
// the test ends, and waits until the agent has taken it up. There is one
// configuration: who wants another waits.
func (l *lab) sinks(on string) *harness.Receiver {
	l.Helper()
	world.configuring.Lock()
	l.Cleanup(world.configuring.Unlock)
	desk, err := harness.NewReceiver(nil)
	l.must(err)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "maint-sinks"}, StringData: map[string]string{"desk": "generic+" + desk.URL + "/t0ken?template=json\n"}}
	_, err = l.admin.CoreV1().Secrets(annotations.DefaultNamespace).Create(l.ctx, secret, metav1.CreateOptions{})
	l.must(err)
	const allow = `outbound: {allow: ["127.0.0.1/32"]}`
	l.configure(`{` + allow + `, notifications: {sinks: [{name: desk, urlSecretRef: {name: maint-sinks, key: desk}}, {name: lost, urlSecretRef: {name: maint-sinks, key: lost}}], on: [` + on + `]}}`)
	l.Cleanup(func() {
		l.configure(`{` + allow + `}`)
		l.must(l.admin.CoreV1().Secrets(annotations.DefaultNamespace).Delete(l.ctx, "maint-sinks", metav1.DeleteOptions{}))
		desk.Close()
	})
	return desk
}

// sinksAhead has the sinks of the configuration in force told of what comes, so long ahead.
func (l *lab) sinksAhead(before string) {
	l.Helper()
	cm, err := l.admin.CoreV1().ConfigMaps(annotations.DefaultNamespace).Get(l.ctx, annotations.AgentConfigName, metav1.GetOptions{})
	l.must(err)
	text, fault := annotations.DocumentText(cm)
	if fault != nil {
		l.Fatal(fault)
	}
	_, spec, _ := strings.Cut(text, "spec: ")
	l.configure(strings.Replace(strings.TrimSpace(spec), "notifications: {", "notifications: {before: "+before+", ", 1))
}

func (l *lab) configure(spec string) {
	l.Helper()
	l.must(harness.Configure(l.ctx, world.cluster.AdminConfig(), spec))
	l.eventually("the agent takes up its configuration", func() (bool, string) {
		cm, err := l.admin.CoreV1().ConfigMaps(annotations.DefaultNamespace).Get(l.ctx, annotations.AgentConfigName, metav1.GetOptions{})
		l.must(err)
		return cm.Annotations[annotations.StatusObserved] == annotations.Observed(cm), fmt.Sprint(cm.Annotations)
	})
}

// told are the messages that speak of this test's plans: other tests' runs end, too.
func (l *lab) told(desk *harness.Receiver) []string {
	var out []string
	for _, d := range desk.Deliveries() {
		if strings.Contains(d.Body, l.ns) && d.Path == "/t0ken" {
			out = append(out, d.Body)
		}
	}
	return out
}

// TestWhatComesIsToldAhead: a slot, a window and a sleep within the half hour that the
// configuration asks for, one message each.
func TestWhatComesIsToldAhead(t *testing.T) {
	l := newLab(t)
	l.runner()
	desk := l.sinks("RunFailed")
	at := time.Now().Add(20 * time.Minute).UTC().Truncate(time.Minute)
	l.plan("upgrade", "triggers: {schedules: [{at: '"+at.Format(time.RFC3339)+"'}]}\npolicies: [{name: later}]\nsteps: [{name: hold, type: suspend}]\n")
	l.plan("far", "triggers: {schedules: [{at: '"+at.Add(time.Hour).Format(time.RFC3339)+"'}]}\nsteps: [{name: hold, type: suspend}]\n")
	l.policy("later", fmt.Sprintf("{strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{cron: '%d %d * * *', duration: 30m}]}}", at.Add(5*time.Minute).Minute(), at.Add(5*time.Minute).Hour()))
	l.document(annotations.KindHibernatePlan, "nights", annotations.DataPlan, fmt.Sprintf("apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec: {schedule: {timezone: UTC, offHours: [{start: '%s', end: '%s'}]}, targets: [{name: apps, type: noop}]}\n", at.Format("15:04"), at.Add(time.Hour).Format("15:04")))
	l.plan("targetless", "target: {apiVersion: apps/v1, kind: Deployment, name: ghost}\ntriggers: {schedules: [{at: '"+at.Format(time.RFC3339)+"'}]}\nsteps: [{name: hold, type: suspend}]\n")
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewHibernatePlan(l.ns, "nobodys", fmt.Sprintf("apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec: {serviceAccountName: nobody, schedule: {timezone: UTC, offHours: [{start: '%s', end: '%s'}]}, targets: [{name: apps, type: noop}]}\n", at.Format("15:04"), at.Add(time.Hour).Format("15:04")), "nobody"), metav1.CreateOptions{})
	l.must(err)
	l.seen("upgrade")
	l.seen("far")
	l.eventually("the agent finds no target", func() (bool, string) {
		said := l.seen("targetless").Annotations[annotations.StatusConditions]
		return strings.Contains(said, `"type":"Ready","status":"False"`), said
	})
	l.sinksAhead("30m")
	want := []string{
		`"Plan ` + l.ns + `/targetless has its slot in `, "as things are it cannot begin: Deployment/ghost",
		`"HibernatePlan ` + l.ns + `/nobodys is to sleep in `, "as things are it cannot begin: the ServiceAccount nobody does not exist",
		`"Plan ` + l.ns + `/upgrade runs in `, "change is not permitted then (policy later: outside of the windows): it waits for that",
		`"Policy ` + l.ns + `/later permits change in `, `"HibernatePlan ` + l.ns + `/nights sleeps in `,
	}
	l.eventually("the sinks are told", func() (bool, string) {
		got := l.told(desk)
		return len(got) >= 5, strings.Join(got, "\n")
	})
	l.annotate("upgrade", map[string]string{"example.com/touched": "yes"})
	l.plan("later", "steps: [{name: hold, type: suspend}]\n", func(cm *corev1.ConfigMap) { cm.Name = "another" })
	l.seen("another")
	got := strings.Join(l.told(desk), "\n")
	for _, w := range want {
		if strings.Count(got, w) != 1 {
			t.Errorf("%d times %s in\n%s", strings.Count(got, w), w, got)
		}
	}
	if strings.Contains(got, "/targetless runs") {
		t.Errorf("what cannot begin is told as a run:\n%s", got)
	}
	if strings.Contains(got, "/far ") {
		t.Errorf("what is far is told:\n%s", got)
	}
}

func TestNotificationsReachTheirSinks(t *testing.T) {
	l := newLab(t)
	l.runner()
	desk := l.sinks("RunFailed, RunSucceeded")
	l.plan("upgrade", `
steps:
- name: tell
  type: notification
  properties: {title: "in `+l.ns+`", message: "it begins: ${run.name}", sinks: [desk]}
`)
	l.plan("misspelled", `
steps:
- name: tell
  type: notification
  properties: {message: "in `+l.ns+`", sinks: [desk, deks]}
`)
	l.plan("keyless", `
steps:
- name: tell
  type: notification
  properties: {message: "in `+l.ns+`", sinks: [desk, lost]}
`)
	for _, name := range []string{"upgrade", "misspelled", "keyless"} {
		l.seen(name)
		l.trigger(name, "now")
	}
	good, bad, lost := l.ended("upgrade", 1)[0], l.ended("misspelled", 1)[0], l.ended("keyless", 1)[0]
	if good.journal.Phase != run.Succeeded {
		t.Errorf("ended %s: %s", good.journal.Phase, good.journal.Message)
	}
	for want, r := range map[string]runState{`"deks": not among spec.notifications.sinks of the AgentConfig, which names desk, lost`: bad, `"lost": its Secret maint-system/maint-sinks holds no URL under the key "lost"`: lost} {
		if got := r.journal.Steps[0]; r.journal.Phase != run.Failed || !strings.Contains(got.Message, want) {
			t.Errorf("ended %s, step: %s, want %s", r.journal.Phase, got.Message, want)
		}
	}
	want := []string{
		`{"message":"it begins: ` + good.run.Name + `","origin":"plan ` + l.ns + `/upgrade","title":"plan ` + l.ns + `/upgrade: in ` + l.ns + `"}`,
		`"title":"Plan ` + l.ns + `/upgrade succeeded"`, `"title":"Plan ` + l.ns + `/misspelled failed"`, `"title":"Plan ` + l.ns + `/keyless failed"`,
	}
	l.eventually("the sinks are told", func() (bool, string) {
		got := l.told(desk)
		return len(got) >= len(want), strings.Join(got, "\n")
	})
	got := strings.Join(l.told(desk), "\n")
	for _, w := range want {
		if strings.Count(got, w) != 1 {
			t.Errorf("%d times %s in\n%s", strings.Count(got, w), w, got)
		}
	}
	if log := world.agent.Log(); strings.Contains(log, "t0ken") {
		t.Error("a sink's URL is in the log")
	}
}

func TestAWindowThatOpensIsTold(t *testing.T) {
	l := newLab(t)
	desk := l.sinks("WindowOpening")
	l.policy("weekends", "{strategy: Restrictive}")
	l.policy("free", "{strategy: Permissive}") // was never closed
	l.policySeen("weekends", permitted("false"))
	l.policySeen("free", permitted("true"))
	for i, want := range []string{"true", "false", "true"} {
		if want == "true" {
			l.expect(l.maint("allow", "weekends", "--for", "1h", "--reason", "CHG-7"), 0, "allowed until")
		} else {
			l.expect(l.maint("freeze", "weekends", "--for", "1h", "--reason", "CHG-8"), 0, "frozen until")
		}
		l.policySeen("weekends", permitted(want))
		l.eventually("the sink is told", func() (bool, string) {
			got := l.told(desk)
			return len(got) == (i+2)/2, strings.Join(got, "\n")
		})
	}
	if got := l.told(desk)[0]; !strings.Contains(got, `"title":"Policy `+l.ns+`/weekends permits change"`) || !strings.Contains(got, "change is permitted until ") {
		t.Error(got)
	}
}
