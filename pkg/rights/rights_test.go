package rights

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// written are needs as a person would note them: ns: get,patch on apps/v1 Deployment/orders.
func written(needs []Need) []string {
	var out []string
	for _, n := range needs {
		text := n.Namespace + ": " + strings.Join(n.Verbs, ",") + " on " + n.APIVersion + " " + n.Kind
		if n.Subresource != "" {
			text += "." + n.Subresource
		}
		if n.Name != "" {
			text += "/" + n.Name
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// connectors are those of the namespace that are known; stg is not.
func connectors() map[string]connector.Connector {
	eks := func(provider string) connector.Connector {
		return connector.Connector{Cluster: &connector.ClusterSpec{EKS: &connector.EKSCluster{Name: "eks-1"}, ProviderRef: &connector.Ref{Name: provider}}}
	}
	return map[string]connector.Connector{
		"K8SCluster/far":      {Cluster: &connector.ClusterSpec{K8S: &connector.Kubernetes{KubeconfigRef: connector.KubeconfigRef{Name: "far-config"}}}},
		"K8SCluster/eks":      eks("role"),
		"K8SCluster/eks-keys": eks("keys"),
		"CloudProvider/role":  {Cloud: &connector.CloudSpec{AWS: &connector.AWS{Auth: connector.Auth{ServiceAccount: &connector.ServiceAccountAuth{}}}}},
		"CloudProvider/keys":  {Cloud: &connector.CloudSpec{AWS: &connector.AWS{Auth: connector.Auth{Static: &connector.StaticAuth{SecretRef: connector.Ref{Name: "aws-keys"}}}}}},
	}
}

func TestRightsOfAPlan(t *testing.T) {
	const dep = "{apiVersion: apps/v1, kind: Deployment, name: orders}"
	for name, c := range map[string]struct {
		spec string
		want []string
		open string
	}{
		"nothing":                      {spec: "steps: [{name: a, type: suspend}, {name: b, type: approval}, {name: c, type: notification, properties: {message: x, sinks: [ops]}}]"},
		"a target":                     {spec: "target: " + dep + "\nsteps: [{name: a, type: suspend}]", want: []string{"shop: get on apps/v1 Deployment/orders"}},
		"a target with labels":         {spec: "target: " + dep + "\ntriggers: {labels: [go]}\nsteps: [{name: a, type: suspend}]", want: []string{"shop: get on apps/v1 Deployment/orders", "shop: get,patch on apps/v1 Deployment/orders", "shop: list,watch on apps/v1 Deployment"}},
		"a target with a mirror":       {spec: "mirrorPrefix: workflow-activity.oam.dev\ntarget: " + dep + "\nsteps: [{name: a, type: suspend}]", want: []string{"shop: get on apps/v1 Deployment/orders", "shop: patch on apps/v1 Deployment/orders"}},
		"a watch":                      {spec: "triggers: {watch: [{apiVersion: v1, kind: Node, when: 'true'}]}\nsteps: [{name: a, type: suspend}]", want: []string{": list,watch on v1 Node"}},
		"a label elsewhere":            {spec: "steps: [{name: a, type: label, properties: {operation: add, labels: {x: y}, object: {apiVersion: v1, kind: Service, name: web, namespace: front}}}]", want: []string{"front: get,patch on v1 Service/web"}},
		"a scale that is put back":     {spec: "steps: [{name: a, type: scale, properties: {resource: " + dep + ", replicas: 0, restoreAfter: true}}]", want: []string{"shop: get,patch on apps/v1 Deployment.scale/orders", "shop: get on apps/v1 Deployment/orders", "shop: list,watch on apps/v1 Deployment"}},
		"the same, where drift may be": {spec: "onDrift: ignore\nsteps: [{name: a, type: scale, properties: {resource: " + dep + ", replicas: 0, restoreAfter: true}}]", want: []string{"shop: get,patch on apps/v1 Deployment.scale/orders", "shop: get on apps/v1 Deployment/orders", "shop: list,watch on apps/v1 Deployment"}},
		"a wait for a rollout's node":  {spec: "steps: [{name: a, type: for-each-node, properties: {selector: {matchLabels: {pool: gpu}}, steps: [{name: w, type: wait, properties: {condition: Ready}}]}}]", want: []string{": get,list,watch,patch on v1 Node", ": get,list,watch on v1 Node"}},
		"an object of the cluster":     {spec: "steps: [{name: a, type: patch-object, properties: {resource: {apiVersion: v1, kind: Node, name: n1}, patch: {spec: {unschedulable: true}}}}]", want: []string{": get,patch on v1 Node/n1"}},
		"a job, in a group":            {spec: "steps: [{name: g, type: step-group, properties: {steps: [{name: a, type: job, properties: {image: x}}]}}]", want: []string{"shop: create,get,list,watch,delete on batch/v1 Job", "shop: list on v1 Pod", "shop: get on v1 Pod.log"}},
		"a header's Secret":            {spec: "steps: [{name: a, type: webhook, properties: {url: 'https://x', headers: {Token: {secretKeyRef: {name: tokens, key: x}}}}}]", want: []string{"shop: get on v1 Secret/tokens"}},
		"health of all":                {spec: "steps: [{name: a, type: health-check, properties: {all: true}}]", want: []string{"shop: get,list,watch on apps/v1 Deployment", "shop: get,list,watch on apps/v1 StatefulSet", "shop: get,list,watch on apps/v1 DaemonSet", "shop: get,list,watch on batch/v1 Job"}},
		"a drain":                      {spec: "steps: [{name: a, type: drain, properties: {node: n1}}]", want: []string{": get,list,watch,patch on v1 Node", ": list,watch on v1 Pod", ": create on v1 Pod.eviction", ": get on apps/v1 DaemonSet"}},
		"a drain by force":             {spec: "steps: [{name: a, type: drain, properties: {node: n1, onTimeout: force}}]", want: []string{": get,list,watch,patch on v1 Node", ": list,watch,delete on v1 Pod", ": create on v1 Pod.eviction", ": get on apps/v1 DaemonSet"}},
		"a loop that asks its objects": {spec: "steps: [{name: l, type: for-each, properties: {apiVersion: apps/v1, kind: Deployment, when: 'each.spec.paused', steps: [{name: s, type: suspend}]}}]", want: []string{"shop: list on apps/v1 Deployment"}},
		"a loop over what a run says":  {spec: "steps: [{name: l, type: for-each, properties: {apiVersion: apps/v1, kind: Deployment, namespace: '${run.parameters.ns}', steps: [{name: s, type: suspend}]}}]", open: "step l: list on apps/v1 Deployment of namespace ${run.parameters.ns}; only a run knows which objects these are"},
		"a loop":                       {spec: "steps: [{name: l, type: for-each, properties: {apiVersion: apps/v1, kind: Deployment, steps: [{name: r, type: restart, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: '${each.metadata.name}'}}}]}}]", want: []string{"shop: get,list on apps/v1 Deployment", "shop: get,patch,list,watch on apps/v1 Deployment"}},
		"a label of what it names, and not of the target": {spec: "target: " + dep + "\nsteps: [{name: a, type: label, properties: {operation: add, labels: {x: y}, object: {apiVersion: v1, kind: Service, name: web}}}]", want: []string{"shop: get on apps/v1 Deployment/orders", "shop: get,patch on v1 Service/web"}},
		"a label of the target":                           {spec: "target: " + dep + "\nsteps: [{name: a, type: label, properties: {operation: add, labels: {x: y}}}]", want: []string{"shop: get on apps/v1 Deployment/orders", "shop: get,patch on apps/v1 Deployment/orders"}},
		"a loop that looks at none of its objects":        {spec: "steps: [{name: l, type: for-each, properties: {apiVersion: apps/v1, kind: Deployment, steps: [{name: r, type: suspend}]}}]", want: []string{"shop: list on apps/v1 Deployment"}},
		"a loop that looks what became of them":           {spec: "steps: [{name: l, type: for-each, properties: {apiVersion: apps/v1, kind: Deployment, until: 'true', steps: [{name: r, type: suspend}]}}]", want: []string{"shop: get,list,watch on apps/v1 Deployment"}},
		"what a function requires, one and all":           {spec: "steps: [{name: f, type: function, requires: [{name: one, apiVersion: v1, kind: Service, objectName: web}, {name: all, apiVersion: v1, kind: Endpoints, matchLabels: {a: b}}], properties: {endpoint: 'f:9443'}}]", want: []string{"shop: get on v1 Service/web", "shop: list on v1 Endpoints"}, open: "get and list on what the function requires"},
		"a function with a certificate":                   {spec: "steps: [{name: f, type: function, properties: {endpoint: 'f:9443', tls: {secretName: certs}, credentials: [{name: c, secretName: keys}]}}]", want: []string{"shop: get on v1 Secret/keys", "shop: get on v1 Secret/certs"}, open: "get and list on what the function requires"},
		"a function without one":                          {spec: "steps: [{name: f, type: function, properties: {endpoint: 'f:9443', tls: {insecure: true}}}]", open: "get and list on what the function requires"},
		"a function that is installed":                    {spec: "steps: [{name: f, type: function, properties: {functionRef: {name: resize}}}]", want: []string{": list on pkg.crossplane.io/v1 FunctionRevision"}, open: "step f: get and list on what the function requires"},
		"functions one after another": {
			spec: "steps: [{name: f, type: pipeline, properties: {functions: [{name: one, functionRef: {name: resize}, credentials: [{name: c, secretName: keys}]}, {name: two, endpoint: 'f:9443', tls: {secretName: certs}, timeout: 5s}]}}]",
			want: []string{"shop: get on v1 Secret/keys", ": list on pkg.crossplane.io/v1 FunctionRevision", "shop: get on v1 Secret/certs"},
			open: "step f, function one: get and list on what the function requires, get, create and patch on what it desires\nstep f, function two: get and list",
		},
		"a hold":                                     {spec: "steps: [{name: a, type: hibernate, properties: {plan: nights}}]", want: []string{"shop: get,patch on v1 ConfigMap/nights", "shop: list,watch on v1 ConfigMap", "shop: override on maint.dev/v1alpha1 Plan/nights"}},
		"a hold of what a run knows alone":           {spec: "parameters: [{name: which}]\nsteps: [{name: a, type: wake, properties: {plan: '${run.parameters.which}'}}]", want: []string{"shop: get,patch,list,watch on v1 ConfigMap"}, open: "step a: with the admission policies, override on plans.maint.dev of the HibernatePlan ${run.parameters.which}; only a run knows which one that is"},
		"what a run knows alone":                     {spec: "parameters: [{name: kind}]\nsteps: [{name: a, type: restart, properties: {resource: {apiVersion: apps/v1, kind: '${run.parameters.kind}', name: x}}}]", open: "step a: get, patch, list, watch on apps/v1 ${run.parameters.kind}"},
		"owners, whoever they are":                   {spec: "holdOwners: true\ntarget: " + dep + "\nsteps: [{name: a, type: suspend}]", want: []string{"shop: get on apps/v1 Deployment/orders"}, open: "get, list, watch, patch on the Kustomization, HelmRelease or Application that owns Deployment/orders"},
		"another cluster has its own":                {spec: "steps: [{name: a, type: restart, connectorRef: {kind: K8SCluster, name: stg}, properties: {resource: " + dep + "}}]", open: "its rights are those of the account on the other cluster, stg"},
		"another cluster by its kubeconfig":          {spec: "steps: [{name: a, type: restart, connectorRef: {kind: K8SCluster, name: far}, properties: {resource: " + dep + "}}]", want: []string{"shop: get on v1 Secret/far-config"}, open: "its rights are those of the account on the other cluster, far"},
		"a cluster of EKS by a role":                 {spec: "steps: [{name: a, type: restart, connectorRef: {kind: K8SCluster, name: eks}, properties: {resource: " + dep + "}}]", open: "step a: its role in AWS needs eks:DescribeCluster on the cluster eks-1, and there an access entry (docs/clusters.md)\nstep a: the connector role takes the role that the ServiceAccount is annotated with"},
		"a cluster of EKS by keys":                   {spec: "steps: [{name: a, type: restart, connectorRef: {kind: K8SCluster, name: eks-keys}, properties: {resource: " + dep + "}}]", want: []string{"shop: get on v1 Secret/aws-keys"}, open: "eks:DescribeCluster on the cluster eks-1"},
		"a snapshot in an account by keys":           {spec: "steps: [{name: a, type: backup, connectorRef: {kind: CloudProvider, name: keys}, properties: {method: rds-snapshot, component: db, retain: 7d}}]", want: []string{"shop: get on v1 Secret/aws-keys"}, open: "rds:AddTagsToResource, rds:DeleteDBSnapshot, rds:DeleteDBClusterSnapshot"},
		"a snapshot in an account by a role":         {spec: "steps: [{name: a, type: backup, connectorRef: {kind: CloudProvider, name: role}, properties: {method: rds-snapshot, component: db}}]", open: "rds:AddTagsToResource\nstep a: the connector role takes the role that the ServiceAccount is annotated with, which needs 'kubectl maint install --cloud'"},
		"a snapshot in an account that is not known": {spec: "steps: [{name: a, type: backup, connectorRef: {kind: CloudProvider, name: gone}, properties: {method: rds-snapshot, component: db}}]", open: "step a: the connector gone may need get on a Secret with keys here"},
		"a snapshot that makes room":                 {spec: "steps: [{name: a, type: backup, properties: {method: volume-snapshot, component: db, retain: 7d}}]", want: []string{"shop: list,watch,create,delete on snapshot.storage.k8s.io/v1 VolumeSnapshot", "shop: list on v1 PersistentVolumeClaim", "shop: get on apps/v1 StatefulSet/db", "shop: get on apps/v1 Deployment/db", "shop: get on v1 PersistentVolumeClaim/db"}},
		"velero, where it is by default":             {spec: "steps: [{name: a, type: backup, properties: {method: velero, selector: {matchLabels: {a: b}}}}]", want: []string{"velero: get,list,watch,create on velero.io/v1 Backup"}},
		"and so have steps that a group holds there": {spec: "steps: [{name: g, type: step-group, connectorRef: {kind: K8SCluster, name: stg}, properties: {steps: [{name: a, type: restart, properties: {resource: " + dep + "}}]}}]", open: "step a: its rights are those of the account on the other cluster, stg"},
		"a whole plan on another cluster": {
			spec: "target: " + dep + "\nconnectorRef: {kind: K8SCluster, name: stg}\ntriggers: {labels: [go]}\nsteps: [{name: a, type: label, properties: {operation: add, labels: {x: y}}}, {name: b, type: webhook, properties: {url: 'https://x', headers: {Token: {secretKeyRef: {name: tokens, key: x}}}}}]",
			want: []string{"shop: get on v1 Secret/tokens"}, open: "target: its rights are those of the account on the other cluster, stg",
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec, faults := plan.Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  "+strings.ReplaceAll(c.spec, "\n", "\n  ")+"\n"), "orders")
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			needs, open := Of(plan.Tree{Spec: spec}, "shop", connectors())
			if diff := cmp.Diff(c.want, written(needs)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if all := strings.Join(open, "\n"); !strings.Contains(all, c.open) || c.open == "" && all != "" {
				t.Errorf("open is %q", all)
			}
		})
	}
}
