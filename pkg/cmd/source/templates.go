package source

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/reference"
)

// template reads a step template with its annotations.
func (d Document) template() plan.Template {
	if d.Object != nil {
		t := annotations.StepTemplate(d.Object)
		for i, f := range t.Faults {
			if f.Path == annotations.PermittedContexts {
				t.Faults[i].Path = fieldPath("metadata.annotations", f.Path)
			}
		}
		return t
	}
	spec, faults := plan.ParseTemplate([]byte(d.Text), d.Name)
	return plan.Template{Spec: spec, Faults: faults}
}

func (d Document) templateFaults() document.Faults {
	t := d.template()
	return WithDashHints(d.Text, plan.Spec{Steps: t.Spec.Steps}, t.Faults)
}

// Used are the templates of a plan's steps in files, and the faults in the use of templates and
// connectors.
type Used struct {
	Templates  map[string]plan.TemplateSpec
	Connectors map[string]connector.Connector // those that the files hold, by connector.Reference.Key
	Faults     []Fault
	// missing are templates and connectors that are not in the files: they may be in the cluster.
	Missing []Fault
}

// Use finds the templates and connectors of a plan as the agent does: templates in the plan's
// namespace, else in the agent's; connectors only in the plan's.
func (w Set) Use(p Plan, agentNamespace string) Used {
	absent := map[string]bool{} // by the fault that each causes
	out, faults := Used{}, document.Faults{}
	if strings.Contains(p.Source.Text, plan.TemplatePrefix) {
		out.Templates, faults = reference.UseTemplates(p.Spec, func(name string) *plan.Template {
			for _, namespace := range []string{p.Namespace, agentNamespace} {
				if t := w.templates[namespace+"/"+name]; t != nil {
					return t
				}
			}
			absent[noTemplate(name)] = true
			return nil
		})
	}
	if !slices.ContainsFunc(faults, func(f document.Fault) bool { return !absent[f.Message] }) { // else they may stand for themselves
		var connected document.Faults
		out.Connectors, connected = reference.UseConnectors(plan.Tree{Spec: p.Spec, Templates: out.Templates}, w.findConnector(p.Namespace, absent))
		faults = append(faults, connected...)
	}
	lines, _ := document.Decode([]byte(p.Source.Text), &plan.Document{})
	out.Faults, out.Missing = sortFaults(p.Source, lines, faults, absent)
	return out
}

// UseConnectors finds the connectors of a HibernatePlan, as Use does those of a plan.
func (w Set) UseConnectors(p HibernatePlan) Used {
	absent := map[string]bool{}
	used, wrong := hibernate.UseConnectors(p.Spec, w.findConnector(p.Namespace, absent))
	out := Used{Connectors: used}
	lines, _ := document.Decode([]byte(p.Source.Text), &hibernate.Document{})
	out.Faults, out.Missing = sortFaults(p.Source, lines, wrong, absent)
	return out
}

// sortFaults separates faults from documents that may only be missing among the files, and adds the
// places.
func sortFaults(d Document, lines document.Positions, all document.Faults, absent map[string]bool) (faults, missing []Fault) {
	for _, f := range all {
		outer, _, _ := strings.Cut(f.Path, "(") // a fault in a template is placed at its use
		found := Fault{File: d.File, Line: d.LineOf(document.Fault{Line: lines.Line(outer)}), Path: f.Path, Message: f.Message}
		if absent[f.Message] {
			found.Message += " among the files: it must be in the cluster"
			missing = append(missing, found)
			continue
		}
		faults = append(faults, found)
	}
	return faults, missing
}

// findConnector looks for a connector among the files, and notes the faults of missing ones.
func (w Set) findConnector(namespace string, absent map[string]bool) reference.FindConnector {
	return func(ref connector.Reference) (connector.Connector, string) {
		d, there := w.connectors[namespace+"/"+ref.Name]
		if !there {
			absent[reference.NoConnector(ref)] = true
			return connector.Connector{}, reference.NoConnector(ref)
		}
		one, faults := connector.Parse([]byte(d.Text))
		if len(faults) > 0 {
			return one, fmt.Sprintf("the connector %s is not valid: %s", ref.Name, faults[0])
		}
		return one, ""
	}
}

// noTemplate is the text of reference.UseTemplates for a missing template.
func noTemplate(name string) string {
	return fmt.Sprintf("there is no step template %q", document.Cut(name, 100))
}

// TemplatesOf are the step templates of a plan in the cluster: from its namespace, else from the
// agent's. Unreadable ones are reported and left out.
func TemplatesOf(ctx context.Context, c *factory.Factory, k *factory.Cluster, namespace string, spec plan.Spec) map[string]plan.TemplateSpec {
	if !UsesTemplates(spec) {
		return nil
	}
	agent, _ := c.Agent(ctx, k)
	found := map[string]*corev1.ConfigMap{}
	for _, from := range []string{agent.Namespace, namespace} { // the plan's own last: it wins
		if from == "" {
			continue
		}
		list, err := k.ListDocuments(ctx, "step templates", annotations.KindStepTemplate, from, "")
		if err != nil {
			c.Warn(err.Error())
		}
		for _, cm := range list {
			found[cm.Name] = cm
		}
	}
	used, faults := reference.UseTemplates(spec, func(name string) *plan.Template {
		cm := found[name]
		if cm == nil {
			return nil
		}
		t := annotations.StepTemplate(cm)
		return &t
	})
	for _, f := range faults {
		c.Warn(f.String())
	}
	return used
}

// UsesTemplates says whether a step of a plan is that of a template.
func UsesTemplates(spec plan.Spec) (uses bool) {
	plan.Tree{Spec: spec}.Walk(func(s plan.Step) { uses = uses || strings.HasPrefix(s.Type, plan.TemplatePrefix) })
	return uses
}
