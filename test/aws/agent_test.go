package aws

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/hibernation"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/builtin"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
)

// agent is one life of the part of an agent that has plans sleep.
type agent struct {
	end  context.CancelFunc // at once, whatever it is at
	gone sync.WaitGroup
}

// begins has one lead in the plan's cluster, for which AWS is at an endpoint.
func begins(t *testing.T, conn *client.Connection, at string) *agent {
	t.Helper()
	log, signed := slog.New(slog.DiscardHandler), agenttest.Keys()
	docs := agenttest.ConfigMaps(conn, annotations.LabelKind+"="+annotations.KindHibernatePlan, store.Strip)
	restores := agenttest.ConfigMaps(conn, annotations.LabelKind+"="+annotations.KindRestore, store.Strip)
	namespaces := agenttest.Metadata(conn, "namespaces", store.Strip)
	c := hibernation.New(hibernation.Config{
		Clients: hibernation.Clients{Kube: conn.Kube, Accounts: conn.Impersonate(external(at))},
		Stores: hibernation.Stores{
			Documents: store.NewDocuments(docs, namespaces, store.FreshConfig{
				Kube: conn.Kube, Meta: conn.Meta, Namespace: annotations.DefaultNamespace, Now: time.Now, Backlog: func() int { return 0 }, Plans: func() int { return 1 },
			}),
			Gates: store.NewGates(annotations.DefaultNamespace), Ledgers: store.NewLedgers(conn.Kube, signed, func(types.NamespacedName, error) {}), Keys: signed,
			Holders: func(bool) func(string) []executors.Holder { return func(string) []executors.Holder { return nil } },
		},
		Executors: hibernation.Executors{Sleepers: builtin.Sleepers(), Machines: func(context.Context) ([]string, error) { return nil, nil }}, Sleeping: func(map[string]int) {},
		Clock:  hibernation.Clock{ClockDoubt: conn.Clock.SkewReason, Ahead: conn.Clock.Ahead, Now: time.Now},
		Status: status.NewWriter(conn.Kube, &agenttest.Events{}), Scope: hibernation.Scope{Namespace: annotations.DefaultNamespace, Denied: func(string) []string { return nil }},
		Telemetry: notify.Telemetry{
			Notify: notify.New(notify.Config{Settings: func() agentconfig.Notifications { return agentconfig.Notifications{} }, Register: func(prometheus.Collector) {}}),
			Events: &agenttest.Events{}, Log: log,
		},
		Queue: queue.New(queue.Config{Name: "hibernation", Now: time.Now, Log: log, OnPanic: func() { t.Error("a panic") }}),
	})
	ctx, cancel := context.WithCancel(t.Context())
	a := &agent{end: cancel}
	seen := func(o any) {
		cm := o.(*corev1.ConfigMap)
		c.Queue.Add(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	}
	docs.Handle(seen, seen)
	restores.Handle(c.RecordSeen, c.RecordLost)
	namespaces.Handle(func(any) { c.EnqueueAll() }, func(any) {})
	for _, one := range []*informer.Cache{docs, restores, namespaces} {
		a.gone.Go(func() { one.Informer.RunWithContext(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), docs.Synced, restores.Synced, namespaces.Synced) {
		t.Fatal("the caches do not fill")
	}
	a.gone.Go(func() { c.Run(ctx) })
	return a
}

func (a *agent) stop() {
	a.end()
	a.gone.Wait()
}

// documents are a plan of some targets in a cluster, and its connectors.
func documents(home *agenttest.Cluster, targets string) {
	connector := func(name, text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: map[string]string{annotations.LabelKind: annotations.KindConnector}},
			Data:       map[string]string{annotations.DataConnector: "{apiVersion: maint.dev/v1alpha1, " + text + "}"},
		}
	}
	home.Put(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: annotations.DefaultNamespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "maint-runner"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "keys"}, Data: map[string][]byte{"accessKeyId": []byte("AKIAIOSFODNN7EXAMPLE"), "secretAccessKey": []byte("none")}},
		connector("aws", fmt.Sprintf("kind: CloudProvider, spec: {type: aws, aws: {accountId: '%s', region: %s, auth: {static: {secretRef: {name: keys}}}}}", account, region)),
		connector("stg", "kind: K8SCluster, spec: {providerRef: {name: aws}, eks: {name: stg}}"),
		annotations.NewHibernatePlan("team", "nights", `
apiVersion: maint.dev/v1alpha1
kind: HibernatePlan
spec:
  schedule: {offHours: [{start: "20:00", end: "20:01", daysOfWeek: [MON]}]}
  targets:
`+targets, ""),
	)
}

// holds has the plan of a cluster be asleep or awake, and waits until it is. It is looked at
// again and again, so that nobody waits for the agent's pauses.
func holds(t *testing.T, home *agenttest.Cluster, settle func(), state, phase string) {
	t.Helper()
	home.Annotate("team", "nights", annotations.HoldState, state)
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		settle()
		home.Annotate("team", "nights", "looked-at", time.Now().String())
		notes := home.ConfigMap("team", "nights").Annotations
		if notes[annotations.StatusPhase] == phase && (state == "asleep") == strings.Contains(notes[annotations.StatusTargets], `"Asleep"`) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("it is not %s: %v", phase, notes)
		}
	}
}

func (w *nodesOfEKS) documents() {
	documents(w.home, fmt.Sprintf(`
  - name: nodes
    type: eks
    connectorRef: {kind: K8SCluster, name: stg}
    parameters: {computePolicy: {mode: Both, order: [%s]}, karpenter: {nodePools: [general, spot]}, managedNodeGroups: {tags: {env: stg, team: "*"}}}
`, strings.Join(w.order, ", ")))
}

func (w *nodesOfEKS) conn() *client.Connection {
	conn, _ := w.home.Connect()
	return conn
}

// strideOfDeaths is how many calls lie between two at which an agent dies: one with
// MAINT_CRASHES=all.
func strideOfDeaths(most int) int {
	if os.Getenv("MAINT_CRASHES") == "all" {
		return 1
	}
	return most
}

// Wherever an agent dies at a call of AWS or of the cluster, the next one has all nodes
// sleep, and brings them back as they were.
func TestThePlanOfWhoeverDiesHasTheNodesOfEKSSleepAndWake(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for at := 1; ; at += strideOfDeaths(14) {
			w := newNodesOfEKS(t, nil)
			w.documents()
			settle := func() { w.Settle(t) }
			before := w.State(t)
			d := newDeath(t, at, lost)
			d.Config.Handler = d.before(w.aws(t, d.before(w.server())).Config.Handler)
			w.endpoints = append(w.endpoints, d.URL)
			heir := make(chan *agent, 1)
			ready := make(chan struct{})
			var victim *agent
			d.ends = func() {
				go func() {
					<-ready
					victim.stop()
					heir <- begins(t, w.conn(), w.endpoints[0])
				}()
			}
			victim = begins(t, w.conn(), d.URL)
			close(ready)
			holds(t, w.home, settle, "asleep", "Hibernated")
			if is := w.State(t); is["stg/stg-workers"] != "0/0/4" || !strings.Contains(is["nodepools/general"], "cpu:0") || !strings.Contains(is["nodepools/spot"], "cpu:0") {
				t.Errorf("killed at %s: it is %v", d.asked(), is)
			}
			holds(t, w.home, settle, "awake", "Active")
			if diff := cmp.Diff(before, w.State(t)); diff != "" {
				t.Errorf("killed at call %d, %s, its reply lost %t (-was +is):\n%s", at, d.asked(), lost, diff)
			}
			if d.asked() == "" { // the cycle ended before its call of that number
				victim.stop()
				break
			}
			(<-heir).stop()
			t.Log("killed at ", at, ": ", d.asked())
		}
	}
}
