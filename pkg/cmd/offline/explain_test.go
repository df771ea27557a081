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
		{path: "plan.spec.steps.scale", says: []string{"  resource <ResourceRef|${…}>  -required-", "  replicas <integer|${…}>"}},
		{path: "plan.spec.steps.drain", says: []string{"podSelector"}},
		{path: "hibernate-plan.spec.targets", says: []string{"under the key plan.yaml", "  workload\n"}},
		{path: "policy.spec.maintenanceSchedule.windows", says: []string{"<[]Window>", "timezone <string>"}},
		{path: "agentconfig.spec.notifications.before", says: []string{"so long ahead"}},
		{path: "template.spec", says: []string{"StepTemplate"}},
		{path: "prices", says: []string{"KIND:   Prices, under the key prices.yaml\n", "  currency <string>  -required-\n", "  hourly <map[string]map[string]number>  -required-\n"}},
		{path: "plan.spec.stepz", code: 2, says: []string{`plan.spec has no field "stepz": it has `, `; did you mean "steps"?`}},
		{path: "plan.spec.onDrift.x", code: 2, says: []string{"plan.spec.onDrift is a string, and has no fields"}},
		{path: "plan.spec", says: []string{"  holdOwners <boolean>\n      suspend the Flux or Argo CD object that manages the target"}},
		{path: "", code: 2, says: []string{"KIND is missing: write one of plan, hibernateplan, policy, "}},
		{path: "job", code: 2, says: []string{`"job" is no kind of document: it must be one of plan, `}},
	} {
		t.Run(c.path, func(t *testing.T) {
			got := cmdtest.Offline(t, cmd.Run, "", append([]string{"explain"}, strings.Fields(c.path)...)...)
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

// TestExplainSaysWhatEachFieldIsFor: the name and the type of a field alone help nobody who
// reads them for the first time.
func TestExplainSaysWhatEachFieldIsFor(t *testing.T) {
	for _, path := range []string{
		"plan.spec", "plan.spec.parameters", "plan.spec.triggers", "plan.spec.triggers.schedules", "plan.spec.triggers.watch",
		"plan.spec.steps", "plan.spec.steps.retry", "plan.spec.steps.requires", "policy.spec",
	} {
		t.Run(path, func(t *testing.T) {
			for _, name := range unexplained(cmdtest.Offline(t, cmd.Run, "", "explain", path).Out) {
				t.Errorf("nothing is said of %s", name)
			}
		})
	}
}

// unexplained are the fields that explain prints without a line that speaks of them.
func unexplained(printed string) []string {
	_, fields, _ := strings.Cut(printed, "FIELDS:\n")
	fields, _, _ = strings.Cut(fields, "\n\n")
	var out []string
	name, words := "", true
	for _, line := range append(strings.Split(strings.TrimRight(fields, "\n"), "\n"), "") {
		line, of := strings.CutPrefix(line, "      ")
		if of {
			words = words || !strings.HasPrefix(line, "one of ") && !strings.HasPrefix(line, "default ") && !strings.HasPrefix(line, "as ")
			continue
		}
		if !words {
			out = append(out, name)
		}
		name, words = strings.TrimSpace(line), false
	}
	return out
}
