package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// FindConnector looks a connector up in the plan's namespace; why says why it cannot be
// used.
type FindConnector func(ref connector.Reference) (one connector.Connector, why string)

// UseConnectors finds the connectors that a tree and its steps name, by Reference.Key, and
// says what is wrong with their use. Of templates CheckTree has to have found nothing.
func UseConnectors(t plan.Tree, find FindConnector) (map[string]connector.Connector, document.Faults) {
	u := connectorUse{tree: t, find: find, used: map[string]connector.Connector{}, why: map[string]string{}}
	if t.Spec.ConnectorRef != nil {
		u.take("spec.connectorRef", *t.Spec.ConnectorRef)
	}
	for _, section := range plan.Sections(t.Spec) {
		u.steps("spec."+string(section.Name), section.Steps, t.Spec.ConnectorRef)
	}
	return u.used, u.faults
}

type connectorUse struct {
	tree   plan.Tree
	find   FindConnector
	used   map[string]connector.Connector
	why    map[string]string // of those that cannot be used
	faults document.Faults
	walked int
}

func (u *connectorUse) fault(path, format string, args ...any) {
	u.faults = append(u.faults, document.Fault{Path: path, Message: fmt.Sprintf(format, args...)})
}

// steps checks those of a list; outer is the nearest connector around them.
func (u *connectorUse) steps(list string, steps []plan.Step, outer *connector.Reference) {
	for i, s := range steps {
		if u.walked++; u.walked > plan.MaxWalked {
			return
		}
		path, at := fmt.Sprintf("%s[%d]", list, i), outer
		if s.ConnectorRef != nil {
			u.take(path+".connectorRef", *s.ConnectorRef)
			at = s.ConnectorRef
		}
		if at != nil {
			u.elsewhere(path, s, *at)
		}
		if !s.Holds() {
			continue
		}
		below := path + ".properties.steps"
		if name, is := strings.CutPrefix(s.Type, plan.TemplatePrefix); is {
			below = path + "(" + name + ").steps"
		}
		u.steps(below, u.tree.Children(s), at)
	}
}

// take keeps a connector, and of a cluster of EKS that of the account that it is in.
func (u *connectorUse) take(path string, ref connector.Reference) {
	if why := u.look(ref); why != "" {
		u.fault(path, "%s", why)
		return
	}
	if cluster := u.used[ref.Key()].Cluster; cluster != nil {
		if provider, is := cluster.Provider(); is {
			if why := u.look(provider); why != "" {
				u.fault(path, "%s", why)
			}
		}
	}
}

func (u *connectorUse) look(ref connector.Reference) (why string) {
	if _, have := u.used[ref.Key()]; have {
		return ""
	}
	if why, asked := u.why[ref.Key()]; asked {
		return why
	}
	one, why := u.find(ref)
	if why == "" && one.Kind() != ref.Kind {
		why = fmt.Sprintf("the connector %s is a %s, and not a %s", ref.Name, one.Kind(), ref.Kind)
	}
	if u.why[ref.Key()] = why; why == "" {
		u.used[ref.Key()] = one
	}
	return why
}

// elsewhere checks a step on another cluster: what it takes by default may be on one that it
// does not work on.
func (u *connectorUse) elsewhere(path string, s plan.Step, at connector.Reference) {
	t, known := plan.StepTypeNamed(s.Type)
	home := u.tree.Spec.ConnectorRef
	withTarget := home != nil && *home == at
	switch {
	case !known:
	case t.ClusterScope == plan.OwnCluster && s.ConnectorRef == nil && withTarget:
		u.fault(path+".type", "stands in a plan with a connectorRef, and %s", plan.OwnClusterOnly(s.Type))
	case t.ClusterScope == plan.OwnCluster && s.ConnectorRef == nil:
		u.fault(path+".type", "stands in a step with a connectorRef, and %s", plan.OwnClusterOnly(s.Type))
	case slices.Contains([]string{"label", "annotate"}, s.Type) && s.Properties["object"] == nil && !withTarget:
		u.fault(path+".properties.object", "is missing: the step works on another cluster than that of the plan's target")
	case plan.IsNodeStep(s.Type) && s.Properties["node"] == nil && s.Properties["selector"] == nil:
		u.fault(path+".properties.node", "is missing, and so is selector: the step works on another cluster, and the nodes of a rollout are of the plan's own")
	case s.Type == "wait" && s.Properties["resource"] == nil:
		u.fault(path+".properties.resource", "is missing: the step works on another cluster, and the nodes of a rollout are of the plan's own")
	}
}

// NoConnector says that a connector is not there.
func NoConnector(ref connector.Reference) string {
	return fmt.Sprintf("there is no connector %s of kind %s", document.Cut(ref.Name, 100), document.Cut(ref.Kind, 100))
}

// CheckConnectors says what is wrong with the connectors that a run holds. CheckTree has to
// have found nothing.
func CheckConnectors(t plan.Tree, held map[string]connector.Connector) document.Faults {
	_, faults := UseConnectors(t, func(ref connector.Reference) (connector.Connector, string) {
		one, there := held[ref.Key()]
		if !there {
			return one, NoConnector(ref)
		}
		if wrong := connector.Check(one); len(wrong) > 0 {
			return one, fmt.Sprintf("the connector %s is not valid: %s", ref.Name, wrong[0])
		}
		return one, ""
	})
	return faults
}
