// Package connector holds the documents that say how a world beyond this cluster is
// reached: CloudProvider, an account of a cloud, and K8SCluster, another cluster.
package connector

import (
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// Kinds of connectors.
const (
	CloudProvider = "CloudProvider"
	K8SCluster    = "K8SCluster"
)

// Connector is a document of one of the kinds, whose field alone is set.
type Connector struct {
	Cloud   *CloudSpec   `json:"cloud,omitempty"`
	Cluster *ClusterSpec `json:"cluster,omitempty"`
}

// Kind is CloudProvider or K8SCluster; empty where neither is set.
func (c Connector) Kind() string {
	switch {
	case c.Cloud != nil:
		return CloudProvider
	case c.Cluster != nil:
		return K8SCluster
	}
	return ""
}

// LeadsTo says whether another connector leads to the same resources, whatever the
// credentials of either.
func (c Connector) LeadsTo(other Connector) bool {
	here, known := c.place()
	there, _ := other.place()
	return known && here == there
}

// place is where a connector leads to: a region of an account, or a cluster of EKS.
type place struct{ account, provider, cluster, region string }

// place is not known of a kubeconfig: nobody can tell where that leads to.
func (c Connector) place() (p place, known bool) {
	switch {
	case c.Cloud != nil && c.Cloud.AWS != nil:
		return place{account: c.Cloud.AWS.AccountID, region: c.Cloud.AWS.Region}, true
	case c.Cluster != nil && c.Cluster.EKS != nil && c.Cluster.ProviderRef != nil:
		return place{provider: c.Cluster.ProviderRef.Name, cluster: c.Cluster.EKS.Name, region: c.Cluster.EKS.Region}, true
	}
	return place{}, false
}

// Parse reads a connector of either kind and reports all its faults. One with faults is
// returned as far as it could be read.
func Parse(text []byte) (Connector, document.Faults) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Spec       any    `json:"spec"`
	}
	c, ok := document.Read(text, &head)
	if !ok {
		return Connector{}, c.Faults()
	}
	switch head.Kind {
	case CloudProvider:
		return parseCloud(text)
	case K8SCluster:
		return parseCluster(text)
	case "":
		c.Fault("kind", "is missing; write %s or %s", CloudProvider, K8SCluster)
	default:
		document.OneOf(c, "kind", head.Kind, CloudProvider, K8SCluster)
	}
	return Connector{}, c.Faults()
}

func parseCloud(text []byte) (Connector, document.Faults) {
	var doc CloudDocument
	c, _ := document.Read(text, &doc)
	c.Envelope(doc.APIVersion, doc.Kind, CloudProvider)
	cloud(c, doc.Spec)
	return Connector{Cloud: &doc.Spec}, c.Faults()
}

func parseCluster(text []byte) (Connector, document.Faults) {
	var doc ClusterDocument
	c, _ := document.Read(text, &doc)
	c.Envelope(doc.APIVersion, doc.Kind, K8SCluster)
	cluster(c, doc.Spec)
	return Connector{Cluster: &doc.Spec}, c.Faults()
}

// Check says what is wrong with a connector as a record of the agent's holds it.
func Check(one Connector) document.Faults {
	c := document.NewChecker()
	switch {
	case one.Cloud != nil && one.Cluster != nil:
		c.Fault("", "is two connectors")
	case one.Cloud != nil:
		cloud(c, *one.Cloud)
	case one.Cluster != nil:
		cluster(c, *one.Cluster)
	default:
		c.Fault("", "is no connector")
	}
	return c.Faults()
}

// Reference names a connector in the namespace of the document that speaks of it. There is
// no way to name one of another namespace: its credentials are not the document's.
type Reference struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Key names a connector among those of a namespace.
func (r Reference) Key() string { return r.Kind + "/" + r.Name }

// Ref names a document or an object of the same namespace.
type Ref struct {
	Name string `json:"name"`
}

func name(c *document.Checker, path, value, what string) {
	switch {
	case value == "":
		c.Fault(path, "is missing")
	case !document.DNSSubdomain(value):
		c.Fault(path, "%q cannot name %s", document.Cut(value, 100), what)
	}
}
