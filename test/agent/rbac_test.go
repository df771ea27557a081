package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// TestARunNeedsNoMoreThanRBACPrints: an account with just what `rbac` prints does all of it.
func TestARunNeedsNoMoreThanRBACPrints(t *testing.T) {
	l := newLab(t)
	l.deployment("orders", 2)
	l.deployment("carts", 1)
	spec := `
target: {apiVersion: apps/v1, kind: Deployment, name: orders}
triggers: {labels: [example.com/go]}
steps:
- {name: mark, type: label, properties: {operation: add, labels: {example.com/at: work}, restoreAfter: true}}
- {name: note, type: annotate, properties: {operation: add, annotations: {example.com/by: maint}, object: {apiVersion: apps/v1, kind: Deployment, name: carts}}}
- {name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: carts}, replicas: 0, restoreAfter: true}}
- {name: conf, type: apply-object, properties: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: b}}}}
- {name: patch, type: patch-object, properties: {resource: {apiVersion: v1, kind: ConfigMap, name: settings}, patch: {data: {a: c}}}}
- {name: there, type: wait, properties: {resource: {apiVersion: v1, kind: ConfigMap, name: settings}, until: "object.data.a == 'c'"}}
- {name: each, type: for-each, properties: {apiVersion: apps/v1, kind: Deployment, steps: [{name: say, type: annotate, properties: {operation: add, annotations: {example.com/seen: "${each.metadata.name}"}, object: {apiVersion: apps/v1, kind: Deployment, name: "${each.metadata.name}"}}}]}}
- {name: gone, type: delete-object, properties: {resource: {apiVersion: v1, kind: ConfigMap, name: settings}}}
- {name: call, type: webhook, properties: {url: "HOOK/rbac"}}
`
	cm := l.plan("everything", strings.ReplaceAll(spec, "HOOK", l.hooks.URL+"/"+l.ns))
	file := filepath.Join(t.TempDir(), "plan.yaml")
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: everything, labels: {maint.dev/kind: plan}}\ndata:\n  plan.yaml: |\n    " + strings.ReplaceAll(cm.Data["plan.yaml"], "\n", "\n    ") + "\n"
	l.must(os.WriteFile(file, []byte(text), 0o600))
	printed := l.maint("rbac", "-f", file)
	l.expect(printed, 0)
	if printed.err != "" {
		t.Errorf("said %s", printed.err)
	}
	l.must(harness.Apply(l.ctx, world.cluster.AdminConfig(), "", []byte(printed.out), nil))
	l.seen("everything")
	l.trigger("everything", "one")
	r := l.ended("everything", 1)[0]
	if r.journal.Phase != run.Succeeded {
		t.Errorf("ended %s: %s\n%s", r.journal.Phase, r.journal.Message, fmt.Sprint(printed.out))
	}
	for _, rec := range r.journal.Steps {
		if strings.Contains(rec.Message, "may not") || rec.Restored != "" && rec.Restored != run.RestoreDone {
			t.Errorf("step %s: %s, restored %s", rec.Path, rec.Message, rec.Restored)
		}
	}
}

func TestDoctorTriesRightsBeforeARunDoes(t *testing.T) {
	l := newLab(t)
	l.deployment("orders", 1)
	l.plan("restarts", "steps:\n- {name: go, type: restart, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}}}\n- {name: tell, type: notification, properties: {message: x, sinks: [nowhere]}}\n")
	l.seen("restarts")
	l.expect(l.maint("doctor"), 0, "ok       agent ", "admission policies confine the agent's token")
	l.expect(l.maint("doctor", "restarts"), 1, "amiss    ServiceAccount "+l.ns+"/maint-runner is not there")
	l.runner(deploymentRightsWithout("watch"))
	l.expect(l.maint("doctor", "restarts"), 1, "may not: watch deployments.apps in namespace "+l.ns+" (for step go)", `amiss    the sink "nowhere": not among spec.notifications.sinks`)
}
