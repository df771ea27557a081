package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// Where is the cluster that steps of a type may work on.
type Where int

// The clusters of step types.
const (
	// Nowhere: the type works on no cluster.
	Nowhere Where = iota
	// Anywhere: on the plan's own cluster, or on another by a connector.
	Anywhere
	// Home: on the plan's own cluster alone.
	Home
)

// connectorRef checks what a step alone says of its cluster.
func (v *validator) connectorRef(path string, s Step) {
	ref := s.ConnectorRef
	if ref == nil {
		return
	}
	switch {
	case ref.Kind != connector.K8SCluster:
		v.Fault(path+".kind", "must be %s, is %q: a step works on a cluster", connector.K8SCluster, document.Cut(ref.Kind, 100))
	case !document.DNSLabel(ref.Name):
		v.Fault(path+".name", "%q cannot name a connector", document.Cut(ref.Name, 100))
	}
	if strings.HasPrefix(s.Type, TemplatePrefix) {
		return
	}
	switch t, known := StepTypeNamed(s.Type); {
	case !known: // said already
	case t.Where == Nowhere:
		v.Fault(path, "is for steps that work on a cluster, and those of type %s do not", s.Type)
	case t.Where == Home:
		v.Fault(path, "%s", homeAlone(s.Type))
	}
}

func homeAlone(stepType string) string {
	return fmt.Sprintf("steps of type %s work on the plan's own cluster alone in this version", stepType)
}

// ConnectorAt is the connector by which the step at a path reaches its cluster: its own,
// or that of the innermost step that holds it and has one. Without one it is the plan's
// own cluster.
func (t Tree) ConnectorAt(path string) (connector.Reference, bool) {
	chain := t.Chain(path)
	for i := len(chain) - 1; i >= 0; i-- {
		if ref := chain[i].Step.ConnectorRef; ref != nil {
			return *ref, true
		}
	}
	return connector.Reference{}, false
}

// FindConnector looks a connector up in the plan's namespace; why says why it cannot be
// used.
type FindConnector func(ref connector.Reference) (one connector.Connector, why string)

// UseConnectors finds the connectors that the steps of a tree name, by Reference.Key, and
// says what is wrong with their use. Of templates CheckTree has to have found nothing.
func UseConnectors(t Tree, find FindConnector) (map[string]connector.Connector, document.Faults) {
	u := connectorUse{tree: t, find: find, used: map[string]connector.Connector{}, why: map[string]string{}}
	for _, section := range Sections(t.Spec) {
		u.steps("spec."+string(section.Name), section.Steps, false, maxLevels)
	}
	return u.used, u.faults
}

type connectorUse struct {
	tree   Tree
	find   FindConnector
	used   map[string]connector.Connector
	why    map[string]string // of those that cannot be used
	faults document.Faults
}

func (u *connectorUse) fault(path, format string, args ...any) {
	u.faults = append(u.faults, document.Fault{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (u *connectorUse) steps(list string, steps []Step, elsewhere bool, levels int) {
	for i, s := range steps {
		path := fmt.Sprintf("%s[%d]", list, i)
		if s.ConnectorRef != nil {
			u.take(path+".connectorRef", *s.ConnectorRef)
		}
		away := elsewhere || s.ConnectorRef != nil
		if away {
			u.elsewhere(path, s)
		}
		if levels == 0 || !s.Holds() {
			continue
		}
		below := path + ".properties.steps"
		if name, is := strings.CutPrefix(s.Type, TemplatePrefix); is {
			below = path + "(" + name + ").steps"
		}
		u.steps(below, u.tree.Children(s), away, levels-1)
	}
}

// take keeps a connector.
func (u *connectorUse) take(path string, ref connector.Reference) {
	if why := u.look(ref); why != "" {
		u.fault(path, "%s", why)
		return
	}
	if cluster := u.used[ref.Key()].Cluster; cluster != nil && cluster.K8S == nil {
		u.fault(path, "the connector %s is a cluster of EKS, which steps do not reach in this version; write one with a kubeconfig", ref.Name)
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

// elsewhere checks a step on another cluster: what it takes by default is in the plan's own.
func (u *connectorUse) elsewhere(path string, s Step) {
	t, known := StepTypeNamed(s.Type)
	switch {
	case !known:
	case t.Where == Home && s.ConnectorRef == nil:
		u.fault(path+".type", "stands in a step with a connectorRef, and %s", homeAlone(s.Type))
	case slices.Contains([]string{"label", "annotate"}, s.Type) && s.Properties["object"] == nil:
		u.fault(path+".properties.object", "is missing: the step works on another cluster, and the plan's target is in its own")
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
func CheckConnectors(t Tree, held map[string]connector.Connector) document.Faults {
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
