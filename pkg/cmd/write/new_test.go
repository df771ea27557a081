package write_test

import (
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
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
			said:    []string{`"Orders" is no name`, `"go on" is no name of a label`, `"at=weekends" is no name of a policy`, `"ops/week ends" is no name of a policy`, "unknown time zone Europe/Berln: write it like Europe/Berlin", "save it, and see what comes next: kubectl maint next -f FILE"},
		},
		{
			name:    "when somebody asks; what a step needs is asked for, and what is wrong with it is said",
			answers: []string{"p", "", "", "", "", "?", "scal", "scale", "", "?", "orders", "deployment/orders", "0", "health-check", ""},
			plan:    []string{"- name: scale\n        type: scale\n", "replicas: 0\n"},
			said:    []string{"label, annotate, patch-object", `unknown step type "scal"; did you mean "scale"?`, "scale needs it: see kubectl maint explain plan.spec.steps.scale", "needs exactly one of resource, selector and all", "'kubectl maint explain plan.spec.steps.scale' says what it takes", "  resource: orders\n  \"orders\": write it like Deployment/orders or apps/v1/Deployment/orders\n  resource: deployment/orders\n"},
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
