package write_test

import (
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/write"
)

func TestLintFindsAFieldThatANodeDoesNotHave(t *testing.T) {
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - name: roll\n    type: for-each-node\n    properties:\n      when: \"node.status.nodeInfo.kernel == 'a'\"\n      steps:\n      - {name: uncordon, type: uncordon}\n"
	faults := write.UnknownFields(source.Document{File: "p.yaml", Kind: "plan", Name: "p", Text: text})
	if len(faults) != 1 || faults[0].Path != "spec.steps[0].properties.when" || !strings.Contains(faults[0].Message, "node.status.nodeInfo.kernel: a Node has no such field") {
		t.Errorf("%+v", faults)
	}
}

func TestLintFindsNamesThatNoRunHas(t *testing.T) {
	for name, c := range map[string]struct{ expression, want string }{
		"a step that there is not":                  {"steps['frist'].phase", `steps["frist"]: the plan has no step of this name; did you mean "first"?`},
		"a step by its field":                       {"steps.frist.phase", `steps["frist"]: the plan has no step of this name; did you mean "first"?`},
		"a field that no step has":                  {"steps.first.output", `steps.first.output: a step has no such field; did you mean "outputs"?`},
		"a misspelt field of run":                   {"run.nmae", `run.nmae: there is no such value; did you mean "name"?`},
		"a parameter that is not declared":          {"run.parameters.sise", `run.parameters.sise: the plan declares no such parameter; did you mean "size"?`},
		"a parameter in brackets":                   {"run.parameters['sise']", `run.parameters.sise: the plan declares no such parameter; did you mean "size"?`},
		"a misspelt field of plan":                  {"plan.nam", `plan.nam: there is no such value; did you mean "name"?`},
		"one that is told at the end of a run":      {"run.message", ""},
		"an output, whatever it is called":          {"steps.first.outputs.anything.at.all", ""},
		"a step that another one holds":             {"steps['inner'].phase", ""},
		"a step in finally":                         {"steps.last.phase", ""},
		"a declared parameter":                      {"run.parameters.size", ""},
		"a field of the target, which we know not":  {"target.spec.anything", ""},
		"a name that is reckoned when it is needed": {"steps[run.parameters.size].phase", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  target: {apiVersion: apps/v1, kind: Deployment, name: a}\n  parameters: [{name: size}]\n  steps:\n" +
				"  - {name: first, type: suspend, properties: {duration: 1s}}\n" +
				"  - {name: group, type: step-group, properties: {steps: [{name: inner, type: suspend, properties: {duration: 1s}}]}}\n" +
				"  - {name: note, type: annotate, properties: {operation: add, annotations: {a: \"is ${" + c.expression + "}\"}}}\n" +
				"  finally:\n  - {name: last, type: suspend, properties: {duration: 1s}}\n"
			faults := write.UnknownNames(source.Document{File: "p.yaml", Kind: "plan", Name: "p", Text: text})
			switch {
			case c.want == "" && len(faults) > 0:
				t.Errorf("%+v", faults)
			case c.want != "" && (len(faults) != 1 || faults[0].Message != c.want || faults[0].Path != "spec.steps[2].properties.annotations.a"):
				t.Errorf("got %+v", faults)
			}
		})
	}
}
