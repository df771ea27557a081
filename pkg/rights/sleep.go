package rights

import (
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

const (
	keda      = "keda.sh/v1alpha1"
	karpenter = "karpenter.sh/v1"
)

// OfSleep are the rights that the account of a HibernatePlan needs for its targets and its
// health checks, as Of tells those of a plan.
func OfSleep(s hibernate.Spec, namespace string, known map[string]connector.Connector) (needs []Need, open []string) {
	c := collector{namespace: namespace, connectors: known}
	for _, t := range s.Targets {
		c.at = "target " + t.Name
		c.target(t)
	}
	c.at = "health checks"
	for _, one := range s.HealthChecks {
		if properties, is := one.(map[string]any); is {
			c.health(plan.Step{Type: "health-check", Properties: properties})
		}
	}
	return c.needs, c.open
}

func (c *collector) target(t hibernate.Target) {
	on := t.ConnectorRef
	switch params := t.Params().(type) {
	case *hibernate.FunctionParameters:
		c.functionSecrets(params)
	case *hibernate.NoopParameters:
	case *hibernate.WorkloadParameters:
		if on == nil {
			c.workloads(params)
		} else {
			c.elsewhere(*on)
		}
	case *hibernate.KarpenterParameters:
		if on == nil {
			c.need(object{APIVersion: karpenter, Kind: "NodePool"}, "", "list", "patch")
			c.need(object{APIVersion: karpenter, Kind: "NodeClaim", Namespace: "*"}, "", "list", "delete")
		} else {
			c.nodePools(*on)
		}
	case *hibernate.EKSParameters:
		kinds := params.Kinds()
		if slices.Contains(kinds, hibernate.ManagedNodeGroups) {
			c.openly(inAWS, t.Type)
		}
		switch {
		case on == nil:
		case slices.Contains(kinds, hibernate.KarpenterNodes):
			c.nodePools(*on)
		default:
			c.account(*on)
		}
	default: // in an account of AWS
		c.openly(inAWS, t.Type)
		if on != nil {
			c.account(*on)
		}
	}
}

// inAWS are rights that no Role of the cluster gives.
const inAWS = "its rights are those of its role in AWS for targets of type %s (docs/hibernation-aws.md)"

// nodePools are Karpenter's on another cluster.
func (c *collector) nodePools(on connector.Reference) {
	c.elsewhere(on)
	c.openly("there it needs list, patch on nodepools.karpenter.sh and list, delete on nodeclaims.karpenter.sh")
}

// account is what an account of AWS is reached by, also that of a cluster of EKS.
func (c *collector) account(in connector.Reference) {
	if in.Kind == connector.CloudProvider {
		c.cloud(in)
		return
	}
	cluster := c.connectors[in.Key()].Cluster
	if cluster == nil {
		c.openly("and here those that the account of the connector %s is reached by", in.Name)
		return
	}
	if provider, is := cluster.Provider(); is {
		c.cloud(provider)
	}
}

func (c *collector) functionSecrets(p *hibernate.FunctionParameters) {
	for _, one := range p.Credentials {
		c.secret(one.SecretName)
	}
	if p.TLS != nil && p.TLS.SecretName != "" {
		c.secret(p.TLS.SecretName)
	}
}

// workloads are looked at, watched and changed, each kind as it is put to sleep.
func (c *collector) workloads(p *hibernate.WorkloadParameters) {
	in := p.Namespaces
	switch {
	case p.NamespaceSelector != nil:
		c.need(object{APIVersion: core, Kind: "Namespace"}, "", "list")
		in = []string{"*"}
	case len(in) == 0:
		in = []string{c.namespace}
	}
	for _, namespace := range in {
		for _, kind := range p.Of() {
			c.workload(kind, namespace, p.Names(kind))
		}
		if p.Floor != nil && *p.Floor > 0 {
			c.need(object{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler", Namespace: namespace}, "", "list")
		}
	}
}

// workload are the rights on one kind; asked says that the plan names it.
func (c *collector) workload(kind hibernate.Kind, namespace string, asked bool) {
	o := object{APIVersion: kind.APIVersion, Kind: kind.Kind, Namespace: namespace}
	switch {
	case kind == hibernate.ScaledObject() && !asked: // where KEDA is installed; else there is nothing to grant
		c.openly("get, list, watch, patch on scaledobjects.keda.sh, where KEDA is installed")
	case slices.Contains([]string{"CronJob", "DaemonSet"}, kind.Kind), kind.APIVersion == keda:
		c.need(o, "", "get", "list", "watch", "patch")
	default:
		c.need(o, "", "get", "list", "watch")
		c.need(o, "scale", "get", "patch")
	}
}
