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

// planConnector checks what a plan says of its cluster. What holds its target still is of the
// agent's own cluster: admission there knows of no other, and no Git owner is looked for.
func (v *validator) planConnector(s Spec) {
	if s.ConnectorRef == nil {
		return
	}
	v.clusterRef("spec.connectorRef", *s.ConnectorRef, "a plan")
	if s.FreezeTarget {
		v.Fault("spec.freezeTarget", "is for targets on the agent's own cluster: no admission policy of another cluster knows of a run here")
	}
	if s.HoldOwners {
		v.Fault("spec.holdOwners", "is for targets on the agent's own cluster: owners in Git are not held on another in this version")
	}
}

// clusterRef checks a reference to a cluster.
func (v *validator) clusterRef(path string, ref connector.Reference, who string) {
	switch {
	case ref.Kind != connector.K8SCluster:
		v.Fault(path+".kind", "must be %s, is %q: %s works on a cluster", connector.K8SCluster, document.Cut(ref.Kind, 100), who)
	case !document.DNSLabel(ref.Name):
		v.Fault(path+".name", "%q cannot name a connector", document.Cut(ref.Name, 100))
	}
}

// OnCloud says whether a step works in an account of a cloud, and on no cluster.
func (s Step) OnCloud() bool {
	return s.Type == TypeBackup && s.Properties["method"] == MethodRDSSnapshot
}

// cloudRef checks a reference to an account of a cloud.
func (v *validator) cloudRef(path string, ref *connector.Reference) {
	switch {
	case ref == nil:
		v.Fault(path, "is missing: the %s in whose account the database is; write {kind: %s, name: …}", connector.CloudProvider, connector.CloudProvider)
	case ref.Kind != connector.CloudProvider:
		v.Fault(path+".kind", "must be %s, is %q: %s works in an account of AWS", connector.CloudProvider, document.Cut(ref.Kind, 100), MethodRDSSnapshot)
	case !document.DNSLabel(ref.Name):
		v.Fault(path+".name", "%q cannot name a connector", document.Cut(ref.Name, 100))
	}
}

// connectorRef checks what a step alone says of its cluster, or of its account of a cloud.
func (v *validator) connectorRef(path string, s Step) {
	if s.OnCloud() {
		v.cloudRef(path, s.ConnectorRef)
		return
	}
	if s.ConnectorRef == nil {
		return
	}
	v.clusterRef(path, *s.ConnectorRef, "a step")
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
// that of the innermost step that holds it and has one, or the plan's. Without one it is the
// plan's own cluster; what steps that work on no cluster read is there, too. At the empty
// path it is the cluster of the plan's target.
func (t Tree) ConnectorAt(path string) (connector.Reference, bool) {
	chain, at := t.Chain(path), t.Spec.ConnectorRef
	for _, link := range chain {
		if link.Step.ConnectorRef != nil {
			at = link.Step.ConnectorRef
		}
	}
	if n := len(chain); n > 0 && chain[n-1].Path == path {
		at = onlyOnClusters(chain[n-1].Step, at)
	}
	if at == nil {
		return connector.Reference{}, false
	}
	return *at, true
}

// onlyOnClusters is no connector for steps that work on no cluster: their Secrets, and the
// HibernatePlans that they hold, are the plan's.
func onlyOnClusters(s Step, at *connector.Reference) *connector.Reference {
	if at == nil || s.OnCloud() {
		return nil
	}
	if t, known := StepTypeNamed(s.Type); known && t.Where == Nowhere {
		return nil
	}
	return at
}

// CloudAt is the account of a cloud in which the step at a path works, if it does.
func (t Tree) CloudAt(path string) (connector.Reference, bool) {
	s, found := t.Find(path)
	if !found || !s.OnCloud() || s.ConnectorRef == nil {
		return connector.Reference{}, false
	}
	return *s.ConnectorRef, true
}

// FindConnector looks a connector up in the plan's namespace; why says why it cannot be
// used.
type FindConnector func(ref connector.Reference) (one connector.Connector, why string)

// UseConnectors finds the connectors that a tree and its steps name, by Reference.Key, and
// says what is wrong with their use. Of templates CheckTree has to have found nothing.
func UseConnectors(t Tree, find FindConnector) (map[string]connector.Connector, document.Faults) {
	u := connectorUse{tree: t, find: find, used: map[string]connector.Connector{}, why: map[string]string{}}
	if t.Spec.ConnectorRef != nil {
		u.take("spec.connectorRef", *t.Spec.ConnectorRef)
	}
	for _, section := range Sections(t.Spec) {
		u.steps("spec."+string(section.Name), section.Steps, t.Spec.ConnectorRef)
	}
	return u.used, u.faults
}

type connectorUse struct {
	tree   Tree
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
func (u *connectorUse) steps(list string, steps []Step, outer *connector.Reference) {
	for i, s := range steps {
		if u.walked++; u.walked > maxWalked {
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
		if name, is := strings.CutPrefix(s.Type, TemplatePrefix); is {
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
func (u *connectorUse) elsewhere(path string, s Step, at connector.Reference) {
	t, known := StepTypeNamed(s.Type)
	home := u.tree.Spec.ConnectorRef
	withTarget := home != nil && *home == at
	switch {
	case !known:
	case t.Where == Home && s.ConnectorRef == nil && withTarget:
		u.fault(path+".type", "stands in a plan with a connectorRef, and %s", homeAlone(s.Type))
	case t.Where == Home && s.ConnectorRef == nil:
		u.fault(path+".type", "stands in a step with a connectorRef, and %s", homeAlone(s.Type))
	case slices.Contains([]string{"label", "annotate"}, s.Type) && s.Properties["object"] == nil && !withTarget:
		u.fault(path+".properties.object", "is missing: the step works on another cluster than that of the plan's target")
	case nodeStep(s.Type) && s.Properties["node"] == nil && s.Properties["selector"] == nil:
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
