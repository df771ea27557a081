package run_test

import (
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestAConditionInATemplateSeesItsParameters(t *testing.T) {
	const steps = "parameters: [{name: mode, default: fast}]\ntarget: {apiVersion: v1, kind: ConfigMap, name: x}\nsteps: [" +
		"{name: outer, type: template/outer, properties: {mode: '${run.parameters.mode}', size: '${1 + 1}', live: '${target.data.size}', wrong: '${true}'}}, " +
		"{name: roll, type: for-each, properties: {apiVersion: v1, kind: Pod, steps: [{name: each, type: template/inner, properties: {of: '${each.metadata.name}'}}]}}]"
	template := func(spec string) plan.TemplateSpec {
		parsed, faults := plan.ParseTemplate([]byte("apiVersion: maint.dev/v1alpha1\nkind: StepTemplate\nspec: "+spec+"\n"), "t")
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		return parsed
	}
	r := coretest.RunOf(t, steps)
	r.Templates = map[string]plan.TemplateSpec{
		"outer": template("{parameters: [{name: mode}, {name: size, type: integer}, {name: live, default: small}, {name: wrong}, {name: more, type: boolean, default: true}, {name: none}], steps: [{name: a, type: suspend}, {name: in, type: template/inner, properties: {of: '${params.mode}-x'}}]}"),
		"inner": template("{parameters: [{name: of}], steps: [{name: b, type: suspend}]}"),
	}
	j := run.Journal{Steps: []run.Record{{Path: "roll", Type: "for-each", Items: []run.Item{{Name: "p-1", UID: "u"}}, ItemVersion: "v1", ItemKind: "Pod"}}}
	for name, c := range map[string]struct {
		path, text string
		want       bool
		fails      string
	}{
		"one that is given":                       {path: "outer/a", text: "params.mode == 'fast'", want: true},
		"one of another type":                     {path: "outer/a", text: "params['size'] > 2"},
		"a default":                               {path: "outer/a", text: "params.more && !('none' in params)", want: true},
		"one of the template around it":           {path: "outer/in/b", text: "params.of == 'fast-x'", want: true},
		"one that is made of a loop's object":     {path: "roll/p-1/each/b", text: "params.of == 'p-1'", want: true},
		"one that is made of the target":          {path: "outer/a", text: "params.live == 'small'", fails: "params.live is not known to a condition: target.data.size: "},
		"one that is not of its type":             {path: "outer/a", text: "params.wrong == 'x'", fails: "params.wrong is not known to a condition: parameter wrong of template outer must be of type string"},
		"one that is not there":                   {path: "outer/a", text: "params.none == 'x'", fails: "no such key: none"},
		"those that are not known hold up no one": {path: "outer/a", text: "params.size == 2 || params.live == 'x'", want: true},
		"outside of a template there are none":    {path: "outer", text: "size(params) == 0", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.Condition(j, c.path, c.text)
			if got != c.want || (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%t, %v", got, err)
			}
		})
	}
}
