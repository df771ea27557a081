package rights

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

func TestRightsOfAHibernatePlan(t *testing.T) {
	scaled := func(namespace, apiVersion, kind string) []string {
		return []string{namespace + ": get,list,watch on " + apiVersion + " " + kind, namespace + ": get,patch on " + apiVersion + " " + kind + ".scale"}
	}
	defaults := append([]string{"shop: get,list,watch,patch on batch/v1 CronJob"}, append(scaled("shop", "apps/v1", "Deployment"), append(scaled("shop", "apps/v1", "ReplicaSet"), scaled("shop", "apps/v1", "StatefulSet")...)...)...)
	const keda = "target a: get, list, watch, patch on scaledobjects.keda.sh, where KEDA is installed"
	for name, c := range map[string]struct {
		target string
		more   string
		want   []string
		open   string
	}{
		"nothing":                        {target: "type: noop"},
		"workloads":                      {target: "type: workload", want: defaults, open: keda},
		"kinds":                          {target: "type: workload, parameters: {kinds: [DaemonSet, ScaledObject]}", want: []string{"shop: get,list,watch,patch on apps/v1 DaemonSet", "shop: get,list,watch,patch on keda.sh/v1alpha1 ScaledObject"}},
		"kinds that KEDA does not scale": {target: "type: workload, parameters: {kinds: [CronJob]}", want: []string{"shop: get,list,watch,patch on batch/v1 CronJob"}},
		"a kind of another group":        {target: "type: workload, parameters: {kinds: [{apiVersion: argoproj.io/v1alpha1, kind: Rollout}]}", want: scaled("shop", "argoproj.io/v1alpha1", "Rollout"), open: keda},
		"namespaces":                     {target: "type: workload, parameters: {kinds: [Deployment], namespaces: [dev, test]}", want: append(scaled("dev", "apps/v1", "Deployment"), scaled("test", "apps/v1", "Deployment")...), open: keda},
		"namespaces by their labels":     {target: "type: workload, parameters: {kinds: [Deployment], namespaceSelector: {matchLabels: {env: dev}}}", want: append([]string{": list on v1 Namespace"}, scaled("", "apps/v1", "Deployment")...), open: keda},
		"a floor":                        {target: "type: workload, parameters: {kinds: [Deployment], floor: 1}", want: append(scaled("shop", "apps/v1", "Deployment"), "shop: list on autoscaling/v2 HorizontalPodAutoscaler"), open: keda},
		"no floor":                       {target: "type: workload, parameters: {kinds: [Deployment], floor: 0}", want: scaled("shop", "apps/v1", "Deployment"), open: keda},
		"workloads elsewhere":            {target: "type: workload, connectorRef: {kind: K8SCluster, name: far}", want: []string{"shop: get on v1 Secret/far-config"}, open: "its rights are those of the account on the other cluster, far"},
		"Karpenter's pools":              {target: "type: karpenter", want: []string{": list,patch on karpenter.sh/v1 NodePool", ": list,delete on karpenter.sh/v1 NodeClaim"}},
		"Karpenter's pools elsewhere":    {target: "type: karpenter, connectorRef: {kind: K8SCluster, name: far}", want: []string{"shop: get on v1 Secret/far-config"}, open: "its rights are those of the account on the other cluster, far"},
		"instances, by keys":             {target: "type: ec2, connectorRef: {kind: CloudProvider, name: keys}, parameters: {selector: {tags: {env: stg}}}", want: []string{"shop: get on v1 Secret/aws-keys"}, open: "target a: its rights are those of its role in AWS for targets of type ec2 (docs/hibernation-aws.md)"},
		"instances, by a role":           {target: "type: ec2, connectorRef: {kind: CloudProvider, name: role}, parameters: {selector: {tags: {env: stg}}}", open: "target a: the connector role takes the role that the ServiceAccount is annotated with"},
		"node groups, by keys":           {target: "type: eks, connectorRef: {kind: K8SCluster, name: eks-keys}, parameters: {managedNodeGroups: {names: [a]}}", want: []string{"shop: get on v1 Secret/aws-keys"}, open: "for targets of type eks"},
		"both kinds of nodes of EKS":     {target: "type: eks, connectorRef: {kind: K8SCluster, name: eks-keys}, parameters: {karpenter: {}, managedNodeGroups: {names: [a]}}", want: []string{"shop: get on v1 Secret/aws-keys"}, open: "there it needs list, patch on nodepools.karpenter.sh and list, delete on nodeclaims.karpenter.sh"},
		"NodePools of EKS":               {target: "type: eks, connectorRef: {kind: K8SCluster, name: eks-keys}, parameters: {computePolicy: {mode: Karpenter}}", want: []string{"shop: get on v1 Secret/aws-keys"}, open: "its role in AWS needs eks:DescribeCluster on the cluster"},
		"node groups of no cluster":      {target: "type: eks, connectorRef: {kind: K8SCluster, name: gone}, parameters: {managedNodeGroups: {names: [a]}}", open: "and here those that the account of the connector gone is reached by"},
		"a function":                     {target: "type: function, parameters: {endpoint: 'fn:9443', credentials: [{name: cloud, secretName: keys}], tls: {secretName: certs}}", want: []string{"shop: get on v1 Secret/keys", "shop: get on v1 Secret/certs"}},
		"a function without":             {target: "type: function, parameters: {endpoint: 'fn:9443', tls: {insecure: true}}"},
		"health checks": {
			target: "type: noop", more: "\n  healthChecks: [{resource: {apiVersion: apps/v1, kind: Deployment, name: web}}]",
			want: []string{"shop: get on apps/v1 Deployment/web", "shop: list,watch on apps/v1 Deployment"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec, faults := hibernate.Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec:\n  schedule: {offHours: [{start: '20:00', end: '06:00'}]}\n  targets: [{name: a, " + c.target + "}]" + c.more + "\n"))
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			needs, open := OfSleep(spec, "shop", connectors())
			if diff := cmp.Diff(c.want, written(needs)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if all := strings.Join(open, "\n"); !strings.Contains(all, c.open) || c.open == "" && all != "" {
				t.Errorf("open is %q", all)
			}
		})
	}
}
