package cmd

import (
	"fmt"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// template reads a step template, with what its annotations say.
func (d sourced) template() plan.Template {
	if d.object != nil {
		t := annotations.StepTemplate(d.object)
		for i, f := range t.Faults {
			if f.Path == annotations.PermittedContexts {
				t.Faults[i].Path = fieldPath("metadata.annotations", f.Path)
			}
		}
		return t
	}
	spec, faults := plan.ParseTemplate([]byte(d.text), d.name)
	return plan.Template{Spec: spec, Faults: faults}
}

func (d sourced) templateFaults() plan.Faults {
	t := d.template()
	return withDashHints(d.text, plan.Spec{Steps: t.Spec.Steps}, t.Faults)
}

// used are the templates that the steps of a plan in a file stand for.
type used struct {
	templates map[string]plan.TemplateSpec
	faults    []fileFault
	// missing are uses of templates that the files do not hold: they may be in the
	// cluster.
	missing []fileFault
}

// use finds the templates of a plan as the agent would: in the plan's namespace,
// else in the agent's.
func (w world) use(p filePlan, agentNamespace string) used {
	if !strings.Contains(p.source.text, plan.TemplatePrefix) {
		return used{}
	}
	absent := map[string]bool{} // by the fault that each will have
	templates, faults := plan.UseTemplates(p.spec, func(name string) *plan.Template {
		for _, namespace := range []string{p.namespace, agentNamespace} {
			if t := w.templates[namespace+"/"+name]; t != nil {
				return t
			}
		}
		absent[noTemplate(name)] = true
		return nil
	})
	out := used{templates: templates}
	lines, _ := plan.Decode([]byte(p.source.text), &plan.Document{})
	for _, f := range faults {
		outer, _, _ := strings.Cut(f.Path, "(") // what is in a template stands where it is used
		found := fileFault{File: p.source.file, Line: p.source.lineOf(plan.Fault{Line: lines.Line(outer)}), Path: f.Path, Message: f.Message}
		if absent[f.Message] {
			found.Message += " among the files: it must be in the cluster"
			out.missing = append(out.missing, found)
			continue
		}
		out.faults = append(out.faults, found)
	}
	return out
}

// noTemplate is how plan.UseTemplates says that a template is not there.
func noTemplate(name string) string {
	return fmt.Sprintf("there is no step template %q", plan.Cut(name, 100))
}
