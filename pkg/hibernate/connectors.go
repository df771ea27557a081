package hibernate

import (
	"fmt"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/reference"
)

// UseConnectors finds the connectors that the targets of a valid plan name, and the accounts
// that clusters of EKS are in, by Reference.Key, and says what is wrong with their use. find
// looks one up in the plan's namespace.
func UseConnectors(s Spec, find reference.FindConnector) (used map[string]connector.Connector, faults document.Faults) {
	used = map[string]connector.Connector{}
	for i, t := range s.Targets {
		if t.ConnectorRef == nil {
			continue
		}
		if why := reaches(t, *t.ConnectorRef, find, used); why != "" {
			faults = append(faults, document.Fault{Path: fmt.Sprintf("spec.targets[%d].connectorRef", i), Message: why})
		}
	}
	return used, faults
}

// reaches says why a target is not reached by a connector; empty: it may be.
func reaches(t Target, ref connector.Reference, find reference.FindConnector, used map[string]connector.Connector) (why string) {
	one, why := find(ref)
	switch {
	case why != "":
		return why
	case one.Kind() != ref.Kind:
		return fmt.Sprintf("the connector %s is a %s, and not a %s", ref.Name, one.Kind(), ref.Kind)
	case t.Type == TypeEKS && one.Cluster != nil && one.Cluster.EKS == nil:
		return NoEKS(ref, t.Type)
	}
	used[ref.Key()] = one
	if one.Cluster == nil {
		return ""
	}
	if provider, is := one.Cluster.Provider(); is {
		return reaches(t, provider, find, used)
	}
	return ""
}

// NoEKS says that a connector leads to a cluster by a kubeconfig, of which AWS knows nothing.
func NoEKS(ref connector.Reference, targetType string) string {
	return fmt.Sprintf("the connector %s is no cluster of EKS, which a target of type %s needs", ref.Name, targetType)
}
