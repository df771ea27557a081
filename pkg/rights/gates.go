package rights

import (
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

// OfGates are the rights that a policy's account needs for its gates: to see what they name, and to
// turn its knob; and for Flux to see whether a source has something to apply. A source may stand in
// another namespace, which only the object says.
func OfGates(s policy.PolicySpec, namespace string) (needs []Need, open []string) {
	c := collector{namespace: namespace}
	for _, g := range s.Gates {
		c.at = "gate " + g.String()
		c.need(object{APIVersion: g.APIVersion, Kind: g.Kind, Name: g.Name, Namespace: g.GateScope(namespace)}, "", "list", "watch", "patch")
		if g.Knob == knob.Flux {
			c.sources(g, namespace)
		}
	}
	return c.needs, c.open
}

// OpenScopes are the gates on objects of which only a cluster says whether they are in namespaces.
// OfGates takes them to be, and those of a gate that names a namespace are.
func OpenScopes(s policy.PolicySpec) []string {
	var c collector
	for _, g := range s.Gates {
		group, _, _ := strings.Cut(g.APIVersion, "/")
		name, named := g.Knob.(string)
		known := named && name != knob.Crossplane || !strings.Contains(group, ".") || ClusterScoped(g.Kind)
		if !known && g.Namespace == "" {
			c.at = "gate " + g.String()
			c.openly("a ClusterRole and its binding in place of the Role, if %s of %s is cluster-scoped; if it is not, the gate may name its namespace", g.Kind, g.APIVersion)
		}
	}
	return c.open
}

// sources are those from which a gated object of Flux is fed.
func (c *collector) sources(g policy.GateRule, namespace string) {
	var kinds []string
	switch g.Kind {
	case "Kustomization":
		kinds = []string{"GitRepository", "OCIRepository", "Bucket"}
	case "HelmRelease":
		kinds = []string{"HelmChart", "OCIRepository"}
	default:
		return
	}
	for _, kind := range kinds {
		c.need(object{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: kind, Namespace: g.GateScope(namespace)}, "", "get")
	}
	c.openly("get on its source (%s), if that is in another namespace", strings.Join(kinds, ", "))
}
