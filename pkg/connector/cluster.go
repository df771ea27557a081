package connector

import (
	"regexp"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// ClusterDocument is a K8SCluster: the text under the key connector.yaml.
type ClusterDocument struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Spec       ClusterSpec `json:"spec"`
}

// ClusterSpec is another cluster: exactly one of EKS and K8S.
type ClusterSpec struct {
	ProviderRef *Ref        `json:"providerRef,omitempty"` // eks: the CloudProvider in whose account it is
	EKS         *EKSCluster `json:"eks,omitempty"`
	K8S         *Kubernetes `json:"k8s,omitempty"`
}

// EKSCluster is a cluster of Amazon EKS.
type EKSCluster struct {
	Name   string `json:"name"`
	Region string `json:"region,omitempty"` // default: the provider's
}

// Kubernetes is any cluster that a kubeconfig reaches.
type Kubernetes struct {
	KubeconfigRef KubeconfigRef `json:"kubeconfigRef"`
}

// KubeconfigRef is the Secret with a kubeconfig, read as the plan's ServiceAccount.
type KubeconfigRef struct {
	Name string `json:"name"`
	Key  string `json:"key,omitempty"` // default kubeconfig
}

// DefaultKubeconfigKey is the key of a Secret in which a kubeconfig stands.
const DefaultKubeconfigKey = "kubeconfig"

// DataKey is the key in which the kubeconfig stands.
func (r KubeconfigRef) DataKey() string {
	if r.Key == "" {
		return DefaultKubeconfigKey
	}
	return r.Key
}

func cluster(c *document.Checker, s ClusterSpec) {
	switch {
	case s.EKS != nil && s.K8S != nil:
		c.Fault("spec", "has eks and k8s; write one of them")
	case s.EKS != nil:
		eks(c, s)
	case s.K8S != nil:
		kubernetes(c, s)
	default:
		c.Fault("spec", "does not say how its cluster is reached; write eks: {name: …} with providerRef, or k8s: {kubeconfigRef: {name: …}}")
	}
}

func eks(c *document.Checker, s ClusterSpec) {
	if s.ProviderRef == nil {
		c.Fault("spec.providerRef", "is missing: the CloudProvider in whose account the cluster is")
	} else {
		name(c, "spec.providerRef.name", s.ProviderRef.Name, "a connector")
	}
	switch {
	case s.EKS.Name == "":
		c.Fault("spec.eks.name", "is missing")
	case !regexp.MustCompile(`^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$`).MatchString(s.EKS.Name):
		c.Fault("spec.eks.name", "%q cannot name a cluster of EKS", document.Cut(s.EKS.Name, 120))
	}
	region(c, "spec.eks.region", s.EKS.Region, false)
}

func kubernetes(c *document.Checker, s ClusterSpec) {
	if s.ProviderRef != nil {
		c.Fault("spec.providerRef", "is for eks; a kubeconfig says itself how its cluster is reached")
	}
	name(c, "spec.k8s.kubeconfigRef.name", s.K8S.KubeconfigRef.Name, "a Secret")
	if key := s.K8S.KubeconfigRef.Key; key != "" && !regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`).MatchString(key) {
		c.Fault("spec.k8s.kubeconfigRef.key", "%q cannot be a key of a Secret", document.Cut(key, 100))
	}
}

// Provider is the CloudProvider in whose account a cluster of EKS is; without is the spec is
// of another cluster.
func (s ClusterSpec) Provider() (ref Reference, is bool) {
	if s.EKS == nil || s.ProviderRef == nil {
		return Reference{}, false
	}
	return Reference{Kind: CloudProvider, Name: s.ProviderRef.Name}, true
}
