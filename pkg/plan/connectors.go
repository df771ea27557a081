package plan

import (
	"fmt"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// ClusterScope is the cluster that steps of a type may work on.
type ClusterScope int

// The clusters of step types.
const (
	// NoCluster: the type works on no cluster.
	NoCluster ClusterScope = iota
	// AnyCluster: on the plan's own cluster, or on another by a connector.
	AnyCluster
	// OwnCluster: on the plan's own cluster alone.
	OwnCluster
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
	case t.ClusterScope == NoCluster:
		v.Fault(path, "is for steps that work on a cluster, and those of type %s do not", s.Type)
	case t.ClusterScope == OwnCluster:
		v.Fault(path, "%s", OwnClusterOnly(s.Type))
	}
}

// OwnClusterOnly says that steps of a type work on no other cluster.
func OwnClusterOnly(stepType string) string {
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
	if t, known := StepTypeNamed(s.Type); known && t.ClusterScope == NoCluster {
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
