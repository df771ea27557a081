package aws

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	awseks "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/eks"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/karpenter"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/sleepertest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// nodePools is a cluster with Karpenter, of which general and spot sleep: their nodes take
// their time to go.
type nodePools struct {
	api     *agenttest.Cluster
	clients executors.Clients
}

func newNodePools(t *testing.T) *nodePools {
	t.Helper()
	w := &nodePools{api: agenttest.New(t)}
	w.api.Serve(agenttest.Kind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool", Resource: "nodepools"}, agenttest.Kind{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim", Resource: "nodeclaims"})
	for name, spec := range map[string]map[string]any{
		"general": {"weight": int64(10), "limits": map[string]any{"cpu": "1000", "memory": "1000Gi"}},
		"spot":    {"template": map[string]any{}},
		"closed":  {"limits": map[string]any{"cpu": "0"}},
		"kept":    {"limits": map[string]any{"cpu": "8"}},
	} {
		w.put("NodePool", name, map[string]any{"spec": spec})
		if name != "closed" {
			w.put("NodeClaim", name+"-1", map[string]any{"metadata": map[string]any{"labels": map[string]any{"karpenter.sh/nodepool": name}, "finalizers": []any{"karpenter.sh/termination"}}})
		}
	}
	_, accounts := w.api.Connect()
	clients, err := accounts.Clients(client.Account{Namespace: "team", Name: "maint-runner"}, "")
	if err != nil {
		t.Fatal(err)
	}
	w.clients = clients
	return w
}

func (w *nodePools) put(kind, name string, object map[string]any) {
	u := &unstructured.Unstructured{Object: object}
	u.SetAPIVersion("karpenter.sh/v1")
	u.SetKind(kind)
	u.SetName(name)
	w.api.Put(u)
}

func (w *nodePools) Sleeper() executors.Sleeper { return karpenter.Sleeps{} }

func (w *nodePools) Call() executors.SleepCall {
	return executors.SleepCall{Namespace: "team", Account: "maint-runner", Params: &hibernate.KarpenterParameters{NodePools: []string{"general", "spot", "closed"}}, Clients: w.clients}
}

// State is each NodePool's spec, and the nodes of those that do not sleep.
func (w *nodePools) State(*testing.T) map[string]string {
	out := map[string]string{}
	for _, name := range w.api.Names("nodepools") {
		name = strings.TrimPrefix(name, "/")
		out["nodepools/"+name] = fmt.Sprint(w.api.Get("nodepools", "", name).Object["spec"])
	}
	if claim := w.api.Get("nodeclaims", "", "kept-1"); claim != nil {
		out["nodeclaims/kept-1"] = fmt.Sprint(claim.GetDeletionTimestamp())
	}
	return out
}

func (w *nodePools) Outside(id string) bool { return strings.Contains(id, "kept") }

func (w *nodePools) Unselect(*testing.T) bool { return false } // they are selected by their names

// Settle is what Karpenter does once its nodes are drained.
func (w *nodePools) Settle(*testing.T) {
	for _, name := range w.api.Names("nodeclaims") {
		name = strings.TrimPrefix(name, "/")
		if w.api.Get("nodeclaims", "", name).GetDeletionTimestamp() != nil {
			w.api.Tear("nodeclaims", "", name)
		}
	}
}

func TestNodePoolsOfKarpenter(t *testing.T) {
	sleepertest.Run(t, func(t *testing.T) sleepertest.Backend { return newNodePools(t) })
}

// nodesOfEKS are the nodes of a cluster of EKS, of both kinds.
type nodesOfEKS struct {
	*nodePools
	groups *nodeGroups
	order  []string
}

func (w *nodesOfEKS) Sleeper() executors.Sleeper {
	return awseks.New(session.NewPool(time.Now), karpenter.Sleeps{})
}

func (w *nodesOfEKS) Call() executors.SleepCall {
	c := w.groups.Call()
	params := c.Params.(*hibernate.EKSParameters)
	params.ComputePolicy = &hibernate.ComputePolicy{Mode: hibernate.BothKinds, Order: w.order}
	params.Karpenter = &hibernate.NodePools{NodePools: []string{"general", "spot", "closed"}}
	c.Cloud.Connect = func(context.Context) (executors.Clients, error) { return w.clients, nil }
	return c
}

func (w *nodesOfEKS) State(t *testing.T) map[string]string {
	t.Helper()
	out := w.nodePools.State(t)
	maps.Copy(out, w.groups.State(t))
	return out
}

func (w *nodesOfEKS) Outside(id string) bool {
	if strings.HasPrefix(id, "node") {
		return w.nodePools.Outside(id)
	}
	return w.groups.Outside(id)
}

func TestNodesOfEKSByKarpenterAndNodeGroups(t *testing.T) {
	for _, order := range [][]string{nil, {hibernate.ManagedNodeGroups}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			sleepertest.Run(t, func(t *testing.T) sleepertest.Backend {
				return &nodesOfEKS{nodePools: newNodePools(t), groups: newNodeGroups(t).(*nodeGroups), order: order}
			})
		})
	}
}
