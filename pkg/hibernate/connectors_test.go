package hibernate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/reference"
)

func TestWhatIsWrongWithTheConnectorsOfAPlan(t *testing.T) {
	in := func(account string) connector.Connector {
		return connector.Connector{Cluster: &connector.ClusterSpec{ProviderRef: &connector.Ref{Name: account}, EKS: &connector.EKSCluster{Name: "stg", Region: "eu-west-1"}}}
	}
	there := map[string]connector.Connector{
		"aws": {Cloud: &connector.CloudSpec{}}, "stg": {Cluster: &connector.ClusterSpec{K8S: &connector.Kubernetes{}}},
		"eks": in("aws"), "astray": in("gone"), "crossed": in("stg"),
	}
	find := func(ref connector.Reference) (connector.Connector, string) {
		if one, is := there[ref.Name]; is {
			return one, ""
		}
		return connector.Connector{}, reference.NoConnector(ref)
	}
	target := func(kind, ref string) Target {
		out := Target{Name: kind, Type: kind}
		if of, name, is := strings.Cut(ref, "/"); is {
			out.ConnectorRef = &connector.Reference{Kind: of, Name: name}
		}
		return out
	}
	for name, c := range map[string]struct {
		targets []Target
		used    string
		want    string
	}{
		"none":                      {targets: []Target{target(TypeNoop, ""), target(TypeWorkload, "")}},
		"an account":                {targets: []Target{target(TypeEC2, "CloudProvider/aws")}, used: "CloudProvider/aws"},
		"a cluster":                 {targets: []Target{target(TypeWorkload, "K8SCluster/stg")}, used: "K8SCluster/stg"},
		"a cluster of EKS":          {targets: []Target{target(TypeEKS, "K8SCluster/eks"), target(TypeWorkload, "K8SCluster/eks")}, used: "CloudProvider/aws K8SCluster/eks"},
		"one that is not there":     {targets: []Target{target(TypeNoop, ""), target(TypeEC2, "CloudProvider/gone")}, want: "spec.targets[1].connectorRef: there is no connector gone of kind CloudProvider"},
		"one of another kind":       {targets: []Target{target(TypeEC2, "CloudProvider/stg")}, want: "spec.targets[0].connectorRef: the connector stg is a K8SCluster, and not a CloudProvider"},
		"the other way round":       {targets: []Target{target(TypeWorkload, "K8SCluster/aws")}, want: "spec.targets[0].connectorRef: the connector aws is a CloudProvider, and not a K8SCluster"},
		"a kubeconfig for EKS":      {targets: []Target{target(TypeEKS, "K8SCluster/stg")}, want: "spec.targets[0].connectorRef: the connector stg is no cluster of EKS, which a target of type eks needs"},
		"EKS of no account":         {targets: []Target{target(TypeEKS, "K8SCluster/astray")}, used: "K8SCluster/astray", want: "spec.targets[0].connectorRef: there is no connector gone of kind CloudProvider"},
		"EKS of what is no account": {targets: []Target{target(TypeWorkload, "K8SCluster/crossed")}, used: "K8SCluster/crossed", want: "spec.targets[0].connectorRef: the connector stg is a K8SCluster, and not a CloudProvider"},
	} {
		t.Run(name, func(t *testing.T) {
			used, faults := UseConnectors(Spec{Targets: c.targets}, find)
			if got := faults.Error(); got != c.want {
				t.Errorf("it says %q, want %q", got, c.want)
			}
			if got := strings.Join(slices.Sorted(maps.Keys(used)), " "); got != c.used {
				t.Errorf("it uses %q, want %q", got, c.used)
			}
		})
	}
}
