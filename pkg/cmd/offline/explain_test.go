package offline_test

import (
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		path string
		code int
		says []string
	}{
		{path: "plan", says: []string{"KIND:   Plan, maint.dev/v1alpha1, under the key plan.yaml", "  spec <Spec>  -required-"}},
		{path: "Plans.spec.steps", says: []string{"FIELD:  spec.steps <[]Step>", "  name <string>  -required-", "BY TYPE, as kubectl maint explain Plans.spec.steps.annotate:", "  for-each-node\n"}},
		{path: "plan.spec.steps.retry.limit", says: []string{"FIELD:  spec.steps.retry.limit <"}},
		{path: "plan.spec.steps.drain", says: []string{"podSelector"}},
		{path: "hibernate-plan.spec.targets", says: []string{"under the key plan.yaml", "  workload\n"}},
		{path: "policy.spec.maintenanceSchedule.windows", says: []string{"<[]Window>", "timezone <string>"}},
		{path: "agentconfig.spec.notifications.before", says: []string{"so long ahead"}},
		{path: "template.spec", says: []string{"StepTemplate"}},
		{path: "plan.spec.stepz", code: 2, says: []string{`plan.spec has no field "stepz": it has `, "steps"}},
		{path: "plan.spec.onDrift.x", code: 2, says: []string{"plan.spec.onDrift is a string, and has no fields"}},
		{path: "job", code: 2, says: []string{`"job" is no kind of document: it must be one of plan, `}},
	} {
		t.Run(c.path, func(t *testing.T) {
			got := cmdtest.Offline(t, cmd.Run, "", "explain", c.path)
			if got.Code != c.code {
				t.Errorf("exit code %d\n%s%s", got.Code, got.Out, got.Err)
			}
			for _, w := range c.says {
				if !strings.Contains(got.Out+got.Err, w) {
					t.Errorf("does not say %q:\n%s%s", w, got.Out, got.Err)
				}
			}
		})
	}
}

func TestExplainForScripts(t *testing.T) {
	for format, want := range map[string]string{
		"name": "plan.spec.steps.retry\n",
		"jsonpath={.apiVersion} {.kind} {.of} {.path} {.fields[?(@.name=='limit')].type}": "maint.dev/v1alpha1 Field Plan spec.steps.retry integer",
	} {
		cmdtest.Offline(t, cmd.Run, "", "explain", "plan.spec.steps.retry", "-o", format).Is(t, cmdtest.Printed{Out: want})
	}
}

// TestEveryStepTypeIsExplained: a type that the schema does not name would be one that
// nobody finds.
func TestEveryStepTypeIsExplained(t *testing.T) {
	for _, kind := range plan.StepTypes() {
		if got := cmdtest.Offline(t, cmd.Run, "", "explain", "plan.spec.steps."+kind.Name); got.Code != 0 {
			t.Errorf("%s: %s", kind.Name, got.Err)
		}
	}
}
