package aws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
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
	w.api.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "maint-runner"}})
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
	return executors.SleepCall{Plan: executors.PlanRef{Namespace: "team", Account: "maint-runner"}, Params: &hibernate.KarpenterParameters{NodePools: []string{"general", "spot", "closed"}}, Clients: w.clients}
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
			w.api.DeleteAtOnce("nodeclaims", "", name)
		}
	}
}

func TestNodePoolsOfKarpenter(t *testing.T) {
	sleepertest.Run(t, func(t *testing.T) sleepertest.Backend { return newNodePools(t) })
}

// nodesOfEKS are the nodes of a cluster of EKS, of both kinds. Its API server is reached over
// the wire, by what EKS says of it and by a token that STS believes.
type nodesOfEKS struct {
	*nodePools
	groups    *nodeGroups
	order     []string
	home      *agenttest.Cluster // the cluster of the plan
	endpoints []string           // of AWS, as agents know it
}

func newNodesOfEKS(t *testing.T, order []string) *nodesOfEKS {
	t.Helper()
	w := &nodesOfEKS{groups: newNodeGroups(t).(*nodeGroups), nodePools: newNodePools(t), order: order, home: agenttest.New(t)}
	w.home.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "maint-runner"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "keys"}, Data: map[string][]byte{"accessKeyId": []byte("AKIAIOSFODNN7EXAMPLE"), "secretAccessKey": []byte("none")}})
	w.endpoints = []string{w.aws(t, w.server()).URL}
	return w
}

// server is the API server of the cluster.
func (w *nodesOfEKS) server() http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if why := simulated.Authenticate(r, "stg", w.endpoints...); why != "" {
			http.Error(out, why, http.StatusUnauthorized)
			return
		}
		answer, err := w.api.RoundTrip(r)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer func() { _ = answer.Body.Close() }()
		maps.Copy(out.Header(), answer.Header)
		out.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(out, answer.Body)
	})
}

// aws is an AWS that leads to an API server for the cluster.
func (w *nodesOfEKS) aws(t *testing.T, server http.Handler) *httptest.Server {
	t.Helper()
	api := httptest.NewTLSServer(server)
	t.Cleanup(api.Close)
	front, err := simulated.WithCluster("stg", api)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(front.Close)
	return front
}

// external is the world outside of the plan's cluster, with AWS at an endpoint.
func external(at string) client.External {
	return client.External{
		HTTP: func() *http.Client { return http.DefaultClient }, Dial: (&net.Dialer{}).DialContext, AWSEndpoint: at, EKS: awseks.NewClusters(session.NewPool(time.Now), time.Now),
	}
}

func (w *nodesOfEKS) Sleeper() executors.Sleeper {
	return awseks.New(session.NewPool(time.Now), karpenter.Sleeps{})
}

func (w *nodesOfEKS) Call() executors.SleepCall {
	c := w.groups.Call()
	params := c.Params.(*hibernate.EKSParameters)
	params.ComputePolicy = &hibernate.ComputePolicy{Mode: hibernate.BothKinds, Order: w.order}
	params.Karpenter = &hibernate.NodePools{NodePools: []string{"general", "spot", "closed"}}
	spec := c.Cloud.AWS
	conn, _ := w.home.Connect()
	accounts := conn.Impersonate(external(w.endpoints[0]))
	c.Cloud.Connect = func(ctx context.Context) (executors.Clients, error) {
		cluster := client.Cluster{Name: "stg", Spec: connector.ClusterSpec{EKS: &connector.EKSCluster{Name: "stg"}, ProviderRef: &connector.Ref{Name: "aws"}}, Provider: &spec}
		clients, failed := accounts.Remote(ctx, client.Account{Namespace: "team", Name: "maint-runner"}, cluster)
		if failed != nil {
			return clients, errors.New(failed.Message)
		}
		return clients, nil
	}
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
			sleepertest.Run(t, func(t *testing.T) sleepertest.Backend { return newNodesOfEKS(t, order) })
		})
	}
}
