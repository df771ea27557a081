package write_test

import (
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func TestNewAsksItsWayToAPlan(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []string
		code    int
		plan    []string
		said    []string
	}{
		{
			name:    "every Saturday, under a policy",
			answers: []string{"Orders", "orders", "0 2 * * 6", "Europe/Berln", "Europe/Berlin", "deployment/orders", "go on", "example.com/go", "at=weekends", "ops/week ends", "weekends", "restart", "deployment/orders", "ok=health-check,selector=app=orders", ""},
			plan:    []string{"  name: orders\n", "- cron: 0 2 * * 6\n          timezone: Europe/Berlin\n", "labels:\n        - example.com/go\n", "- name: weekends\n", "- name: restart\n        type: restart\n", "- name: ok\n        type: health-check\n"},
			said:    []string{`"Orders" is no name`, `"go on" is no name of a label`, `"at=weekends" is no name of a policy`, `"ops/week ends" is no name of a policy`, "unknown time zone Europe/Berln: write it like Europe/Berlin", "  kubectl maint next -f FILE                 shows when it is due\n", "  kubectl maint doctor -n NAMESPACE orders\n"},
		},
		{
			name:    "when somebody asks; what a step needs is asked for, and what is wrong with it is said",
			answers: []string{"p", "", "", "", "", "?", "scal", "scale", "", "?", "orders", "deployment/orders", "0", "health-check,labels.x=y", "health-check", "deploy", "app=orders", ""},
			plan:    []string{"- name: scale\n        type: scale\n", "replicas: 0\n", "- name: health-check-2\n        type: health-check\n"},
			said:    []string{"label, annotate, patch-object", `unknown step type "scal"; did you mean "scale"?`, "scale needs it: see kubectl maint explain plan.spec.steps.scale", "  labels: unknown field; known are all, resource, selector", "'kubectl maint explain plan.spec.steps.scale' says what it takes", "  resource (KIND/NAME or APIVERSION/KIND/NAME, like Deployment/orders): orders\n  \"orders\": write it like Deployment/orders or apps/v1/Deployment/orders\n", "  what has to be healthy (KIND/NAME, a label KEY=VALUE, or all): deploy\n  \"deploy\": write it like"},
		},
		{name: "a cron that is none", answers: []string{"p", "99 * * * *", "soon", "2020-01-01"}, code: 2, said: []string{"cron", `"soon" is neither a cron expression, which has five fields, nor a time`, "2020-01-01 00:00 CET (2019-12-31T23:00:00Z) has passed", "error: the input ended before the plan was whole: nothing was printed\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := cmdtest.Offline(t, cmd.Run, strings.Join(c.answers, "\n")+"\n", "new")
			if got.Code != c.code || c.code != 0 && got.Out != "" {
				t.Fatalf("exit code %d\n%s%s", got.Code, got.Out, got.Err)
			}
			for _, w := range c.plan {
				if !strings.Contains(got.Out, w) {
					t.Errorf("the plan lacks %q:\n%s", w, got.Out)
				}
			}
			for _, w := range c.said {
				if !strings.Contains(got.Err, w) {
					t.Errorf("does not say %q:\n%s", w, got.Err)
				}
			}
			if c.code == 0 {
				if lint := cmdtest.Offline(t, cmd.Run, got.Out, "lint", "-f", "-"); lint.Code != 0 {
					t.Errorf("lint finds %s%s", lint.Out, lint.Err)
				}
			}
		})
	}
}

// Each type of step that is offered leads to a valid plan, by answers in the forms that the questions say.
func TestNewKnowsTheFormsOfEachStep(t *testing.T) {
	const steps = `[{"name":"hold","type":"suspend"}]`
	answers := map[string][]string{
		"label": {"add", "team=payments,tier=web", "Deployment/orders"}, "annotate": {"remove", "example.org/a,b", "Deployment/orders"},
		"patch-object": {"Deployment/orders", `{"spec":{"paused":true}}`}, "scale": {"Deployment/orders", "0"}, "hold-owners": {"Deployment/orders"},
		"suspend": {"10m"}, "wait": {"Deployment/orders", "object.status.readyReplicas > 1"}, "webhook": {"https://example.org/hook"}, "job": {"busybox:1.37", "sh -c date"},
		"apply-object": {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`}, "delete-object": {"Deployment/orders"}, "restart": {"Deployment/orders"},
		"health-check": {"app=orders"}, "prometheus": {"http://prometheus:9090", "sum(rate(errors[5m]))", "< 0.01"}, "notification": {"it begins, soon", "ops,chat"},
		"silence": {"http://alertmanager:9093", "alertname=Down,team=web"}, "exec": {"app=db", "pg_dump orders"}, "backup": {"volume-snapshot", "db"}, "function": {"fn.example.org:9443"}, "pipeline": {"resize, check=fn.example.org:9443"},
		"approval": {"switch?"}, "step-group": {steps}, "for-each": {"apps/v1", "Deployment", steps}, "for-each-node": {steps},
		"cordon": {"node-1"}, "drain": {"pool=blue"}, "uncordon": {"node-1"}, "hibernate": {"dev-nights"}, "wake": {"dev-nights"},
	}
	for _, kind := range plan.StepTypes() {
		t.Run(kind.Name, func(t *testing.T) {
			lines := append(append([]string{"p", "", "", "", kind.Name}, answers[kind.Name]...), "")
			got := cmdtest.Offline(t, cmd.Run, strings.Join(lines, "\n")+"\n", "new")
			if got.Code != 0 || len(answers[kind.Name]) == 0 {
				t.Fatalf("exit code %d\n%s", got.Code, got.Err)
			}
			if lint := cmdtest.Offline(t, cmd.Run, got.Out, "lint", "-f", "-"); lint.Code != 0 {
				t.Errorf("lint finds %s%s in\n%s", lint.Out, lint.Err, got.Out)
			}
		})
	}
}

func TestNewOffersTheTarget(t *testing.T) {
	got := cmdtest.Offline(t, cmd.Run, strings.Join([]string{"p", "", "Deployment/orders", "", "", "restart", "", "suspend", "", ""}, "\n")+"\n", "new")
	if got.Code != 0 || !strings.Contains(got.Out, "kind: Deployment\n            name: orders\n") || !strings.Contains(got.Err, "like Deployment/orders) [Deployment/orders]: ") {
		t.Errorf("%+v", got)
	}
}
