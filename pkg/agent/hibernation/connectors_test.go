package hibernation

import (
	"strings"
	"testing"
)

// A target of type eks has the account of its cluster, and a way into the cluster that is
// taken only where it is needed.
func TestATargetOfEKSHasItsAccountAndAWayIntoItsCluster(t *testing.T) {
	const nodes = "targets: [{name: apps, type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {karpenter: {}, managedNodeGroups: {names: [x]}}}]\n"
	night(t, oneToThree+nodes, func(w *world) {
		w.connector("aws", "kind: CloudProvider, spec: {type: aws, aws: {accountId: '123456789012', region: eu-central-1, auth: {serviceAccount: {}}}}")
		w.connector("stg", "kind: K8SCluster, spec: {providerRef: {name: aws}, eks: {name: stg-1, region: eu-west-1}}")
		w.until("01:30")
		w.sleeps()
		w.beds.mu.Lock()
		call := w.beds.calls[len(w.beds.calls)-1]
		w.beds.mu.Unlock()
		if c := call.Cloud; c == nil || c.Cluster != "stg-1" || c.AWS.Region != "eu-west-1" || c.AWS.AccountID != "123456789012" || call.Clients.Cluster != "" {
			t.Fatalf("its cloud is %+v, and its clients are of %q", c, call.Clients.Cluster)
		}
		if _, err := call.Cloud.Connect(w.Context()); err == nil || !strings.Contains(err.Error(), "K8SCluster stg: this agent reaches no clusters of EKS") {
			t.Errorf("the cluster says %v", err)
		}
		w.until("03:30")
		w.awake()
		w.closed()
	})
}
