package doctor_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

// The Secret of a connector, or the role of the account, is looked for as for a HibernatePlan.
func TestDoctorOfThePlansConnectors(t *testing.T) {
	const (
		valid   = "ok       the agent finds the plan valid and ready\nok       ServiceAccount shop/maint-runner is there\n"
		restart = "type: restart, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}}"
		lead    = "{kind: K8SCluster, name: stg}"
		may     = "ok       system:serviceaccount:shop:maint-runner has the 1 right that the steps need\n"
		there   = "unknown  step one: its rights are those of the account on the other cluster, stg\n"
	)
	plan := func(spec string) *corev1.ConfigMap {
		cm := seen("")
		cm.Data[annotations.DataPlan] = "{apiVersion: maint.dev/v1alpha1, kind: Plan, spec: {" + spec + "}}"
		cm.Annotations[annotations.StatusObserved] = annotations.Observed(cm)
		return cm
	}
	stg := cmdtest.Map(annotations.KindConnector, "stg", annotations.DataConnector, "{apiVersion: maint.dev/v1alpha1, kind: K8SCluster, spec: {k8s: {kubeconfigRef: {name: keys}}}}")
	backup := plan("steps: [{name: one, type: backup, connectorRef: {kind: CloudProvider, name: aws}, properties: {method: rds-snapshot, component: orders}}]")
	ofStep := plan("steps: [{name: one, connectorRef: " + lead + ", " + restart + "}]")
	diagnose(t, []diagnosis{
		{
			name: "the kubeconfig that a step's connector names is not there", line: "doctor orders", code: 1, err: oneProblem,
			world: installed(ofStep, stg),
			out:   valid + "amiss    the Secret shop/keys of the connector K8SCluster/stg is not there\n         create it with the keys kubeconfig\n" + may + there,
		},
		{
			name: "that of the plan's connector is not there", line: "doctor orders", code: 1, err: oneProblem,
			world: installed(plan("connectorRef: "+lead+", steps: [{name: one, "+restart+"}]"), stg),
			out:   valid + "amiss    the Secret shop/keys of the connector K8SCluster/stg is not there\n         create it with the keys kubeconfig\n" + may + there,
		},
		{
			name: "it is there", line: "doctor orders",
			world: installed(ofStep, stg, keys("kubeconfig")),
			out:   valid + "ok       the connector K8SCluster/stg has its Secret shop/keys\n" + may + there,
		},
		{
			name: "one may not look at it", line: "doctor orders",
			before: func(o *cmdtest.Cluster) { o.Forbids("get", "secrets", "") },
			world:  installed(ofStep, stg, keys("kubeconfig")),
			out:    valid + "unknown  the Secret shop/keys of the connector K8SCluster/stg: it cannot be read: secrets is forbidden: not for you\n" + may + there,
		},
		{
			name: "the account names no role for the account of AWS", line: "doctor orders", code: 1, err: oneProblem,
			world: installed(backup, aws("{serviceAccount: {}}")),
			out: valid + "amiss    ServiceAccount shop/maint-runner names no role of AWS, which the connector CloudProvider/aws takes\n         'kubectl -n shop annotate serviceaccount maint-runner eks.amazonaws.com/role-arn=arn:aws:iam::123456789012:role/ROLE'\n" +
				"ok       the agent may ask for tokens of ServiceAccount shop/maint-runner\nok       the steps need no rights in this cluster\n" +
				"unknown  step one: its rights are those of its role in AWS: rds:DescribeDBInstances, rds:DescribeDBClusters, rds:DescribeDBSnapshots, rds:DescribeDBClusterSnapshots, rds:CreateDBSnapshot, rds:CreateDBClusterSnapshot, rds:AddTagsToResource\n" +
				"unknown  step one: the connector aws takes the role that the ServiceAccount is annotated with, which needs 'kubectl maint install --cloud' (docs/hibernation-aws.md)\n",
		},
	})
}
