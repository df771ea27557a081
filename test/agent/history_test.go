package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// A run's object goes, how it ended does not.
func TestHistoryKnowsHowARunEndedThatIsGone(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("breaks", `
failedRunsHistoryLimit: 0
parameters: [{name: mode, default: full}]
steps:
- {name: call, type: webhook, properties: {url: "HOOK/call"}}
- {name: dump, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: absent}, replicas: 0}}
`)
	l.seen("breaks")
	l.expect(l.maint("trigger", "breaks", "--param", "mode=small", "--reason", "CHG-7"), 0, "requested")
	l.eventually("the run ended and its object is gone", func() (bool, string) {
		cm := l.seen("breaks")
		return cm.Annotations[annotations.StatusLastResult] == "Failed" && len(l.runs("breaks")) == 0, fmt.Sprint(cm.Annotations)
	})
	l.expect(l.maint("history", "breaks", "-o", "wide"), 0, "CHG-7", "Failed after", "step dump", "in all: 1 Ran (1 Failed)")
	gone := strings.TrimSpace(l.maint("history", "breaks", "-o", "jsonpath={.items[0].run}").out)
	l.expect(l.maint("history", "breaks"), 0, "step dump: ", "absent")
	l.expect(l.maint("describe", gone), 0, "run "+gone+" of plan breaks is no longer kept; its history", "history breaks", "Failed after", "step dump: ", "absent")
	l.expect(l.maint("status", gone), 1, "run "+gone+" of plan breaks ended Failed, and is no longer kept", "history breaks")
	l.expect(l.maint("why", gone), 1, "run "+gone+" of plan breaks ended Failed, and is no longer kept", "history breaks")
	l.expect(l.maint("history", "--result", "Failed", "--since", "10m"), 0, "breaks", "step dump")
	l.expect(l.maint("history", "-A", "--since", "24h", "--result", "Failed"), 0, l.ns+"/breaks", "Failed after", "step dump")
	out := l.maint("history", "breaks", "-o", "jsonpath={.items[0].outcome.phase} {.items[0].outcome.step} {.items[0].outcome.parameters[0]} {.items[0].outcome.message}")
	if !strings.HasPrefix(out.out, "Failed dump mode ") || strings.Contains(out.out, "small") {
		t.Errorf("for a machine it is %q", out.out)
	}
	l.expect(l.maint("history", "breaks", "--result", "Succeeded"), 0, "nothing of that kind")
	l.expect(l.maint("report", "--last", "1h"), 0, "1 run, 1 Failed", l.ns+"/breaks", "dump")
	l.expect(l.maint("report", "--last", "1h", "-o", "html"), 0, "<html", "breaks")
}

func TestADryRunIsNoRunForWhoeverCounts(t *testing.T) {
	l := newLab(t)
	l.runner(rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments", "deployments/scale"}, Verbs: []string{"get", "list", "watch", "patch"}})
	l.deployment("orders", 2)
	l.plan("tries", `
successfulRunsHistoryLimit: 1
target: {apiVersion: apps/v1, kind: Deployment, name: orders}
steps:
- {name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0}}
`)
	l.seen("tries")
	l.expect(l.maint("trigger", "tries", "--dry-run", "--wait", "--timeout", "60s"), 0, "Succeeded", "dry run, nothing was changed", "Would change:", "step down:")
	if got := l.replicas("orders"); got != 2 {
		t.Errorf("orders has %d replicas", got)
	}
	l.ended("tries", 1)
	l.expect(l.maint("history", "tries"), 0, "Ran (dry run)")
	mirrored := func() (out []string) {
		d, err := l.admin.AppsV1().Deployments(l.ns).Get(l.ctx, "orders", metav1.GetOptions{})
		l.must(err)
		for key, value := range d.Annotations {
			if strings.HasPrefix(key, "mirror.maint.dev/") {
				out = append(out, key+"="+value)
			}
		}
		slices.Sort(out)
		return out
	}
	if got := mirrored(); len(got) > 0 {
		t.Errorf("its target says of a dry run %q", got)
	}
	a := l.seen("tries").Annotations
	if a[annotations.StatusLastRun] != "" || a[annotations.StatusLastSuccess] != "" {
		t.Errorf("a dry run counts: %v", a)
	}
	if strings.Contains(l.maint("history", "tries").err, "1 Ran") {
		t.Error("a dry run counts among the totals")
	}
	dry := l.runs("tries")[0].run.Name
	l.expect(l.maint("retry", dry), 1, "only a Failed or Aborted run")
	l.eventually("Events say that it is a dry run", func() (bool, string) {
		out := l.maint("describe", "tries")
		return strings.Contains(out.out, "RunStarted") && strings.Contains(out.out, "(manual, dry run) started"), out.out
	})
	l.expect(l.maint("trigger", "tries", "--wait", "--timeout", "60s"), 0, "Succeeded")
	l.ended("tries", 2) // the dry run takes no place in the limit
	var told []string
	l.eventually("the target says that the plan has run", func() (bool, string) {
		told = mirrored()
		return slices.Contains(told, "mirror.maint.dev/tries-status=completed"), fmt.Sprint(told)
	})
	l.set("orders", `{"spec":{"replicas":2}}`)
	p := l.sits(100, 30, "trigger", "tries", "--dry-run", "--wait", "--timeout", "60s")
	p.Ends(0, "Succeeded", "dry run, nothing was changed", "Would change:", "step down:")
	if got := mirrored(); !slices.Equal(got, told) {
		t.Errorf("after another dry run its target says %q, not %q", got, told)
	}

	l.plan("breaks", failing[strings.Index(failing, "steps:"):])
	l.seen("breaks")
	counted := fmt.Sprintf("maint_run_failed_timestamp_seconds{namespace=%q,object=\"breaks\"}", l.ns)
	l.expect(l.maint("trigger", "breaks", "--dry-run", "--wait", "--timeout", "60s"), 4, "Failed")
	l.ended("breaks", 1)
	if strings.Contains(l.metrics(), counted) || strings.Contains(l.maint("status").out, "breaks  its last run") {
		t.Error("a dry run that failed counts as a failure")
	}
	l.expect(l.maint("trigger", "breaks", "--wait", "--timeout", "60s"), 4, "Failed")
	l.eventually("a run that failed is counted", func() (bool, string) { return strings.Contains(l.metrics(), counted), counted })
}
