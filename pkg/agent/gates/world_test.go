package gates

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

const (
	runner   = "system:serviceaccount:shop:maint-runner"
	fluxGate = "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, knob: flux}"
)

// world is a cluster with Flux in it, and an agent that keeps the gates of its policies.
type world struct {
	*testing.T
	cluster *agenttest.Cluster
	events  *agenttest.Events
	gates   *Controller
	doubt   atomic.Value // of the clock
	dryRun  bool
	stop    func()
}

func inWorld(t *testing.T, story func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, cluster: agenttest.New(t), events: &agenttest.Events{}}
		w.cluster.Serve(
			agenttest.Kind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization", Resource: "kustomizations", Namespaced: true},
			agenttest.Kind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository", Resource: "gitrepositories", Namespaced: true},
		)
		w.cluster.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "maint-runner"}})
		story(w)
	})
}

// policy puts a policy, as the spec of its document says.
func (w *world) policy(name, spec string) {
	w.Helper()
	w.policyOf("shop", name, spec)
}

func (w *world) policyOf(namespace, name, spec string) {
	w.Helper()
	w.cluster.Put(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{annotations.LabelKind: annotations.KindPolicy}},
		Data:       map[string]string{annotations.DataPolicy: "apiVersion: " + document.APIVersion + "\nkind: Policy\nspec: " + spec + "\n"},
	})
	w.after(0)
}

// app puts a Kustomization; suspended is nil where the field is not there.
func (w *world) app(name string, suspended any) {
	w.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": map[string]any{"namespace": "shop", "name": name, "labels": map[string]any{"app": name}},
		"spec": map[string]any{"sourceRef": map[string]any{"kind": "GitRepository", "name": "repo"}},
	}}
	if suspended != nil {
		_ = unstructured.SetNestedField(u.Object, suspended, "spec", "suspend")
	}
	w.cluster.Put(u)
	w.after(0)
}

// sets has somebody set spec.suspend.
func (w *world) sets(name string, suspended any) {
	w.Helper()
	w.cluster.Edit("kustomizations", "shop", name, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, suspended, "spec", "suspend")
	})
	w.after(0)
}

// suspended is spec.suspend as it stands.
func (w *world) suspended(name string) any {
	w.Helper()
	value, _, _ := unstructured.NestedFieldNoCopy(w.cluster.Get("kustomizations", "shop", name).Object, "spec", "suspend")
	return value
}

func (w *world) said(name, key string) string {
	return w.cluster.Get("kustomizations", "shop", name).GetAnnotations()[key]
}

// changes are the conditions on an object.
func (w *world) changes(name string) string {
	w.Helper()
	var all []metav1.Condition
	if err := json.Unmarshal([]byte(w.said(name, annotations.StatusConditions)), &all); err != nil {
		w.Fatalf("conditions of %s: %v", name, err)
	}
	var out []string
	for _, c := range all {
		out = append(out, fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, c.Reason))
	}
	return strings.Join(out, " ")
}

// begins starts an agent; what was one before is stopped.
func (w *world) begins() {
	w.Helper()
	if w.stop != nil {
		w.stop()
	}
	conn, accounts := w.cluster.Connect()
	log := slog.New(slog.DiscardHandler)
	docs := agenttest.ConfigMaps(conn, annotations.LabelKind+" in ("+annotations.KindPolicy+","+annotations.KindGate+")", store.Strip)
	namespaces := agenttest.Metadata(conn, "namespaces", store.Strip)
	book, panics := store.NewGates(annotations.DefaultNamespace), func() { w.Error("it panics") }
	policies := queue.New(queue.Config{Name: "policies", Now: time.Now, Log: log, OnPanic: panics})
	w.gates = New(Config{
		Clients: Clients{Kube: conn.Kube, Namespace: annotations.DefaultNamespace, Accounts: accounts, ClockDoubt: func() string { said, _ := w.doubt.Load().(string); return said }},
		Stores:  Stores{Documents: store.NewDocuments(docs, namespaces, store.FreshConfig{}), Gates: book, Keys: agenttest.Keys()},
		Queue:   queue.New(queue.Config{Name: "gates", Now: time.Now, Log: log, OnPanic: panics}), Policies: policies, Events: w.events, Log: log, Now: time.Now, DryRun: w.dryRun,
	})
	docs.Handle(func(o any) {
		cm := o.(*corev1.ConfigMap)
		k := types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}
		if cm.Labels[annotations.LabelKind] == annotations.KindGate {
			if record, err := annotations.ReadGates(cm); err == nil {
				k.Name = record.Policy
			}
		} else {
			book.Change(func(r *policy.Resolver) { r.PutPolicy(annotations.Policy(cm)) })
			w.gates.EnqueueOf(k.Namespace)
		}
		policies.Add(k)
	}, func(o any) {
		cm := o.(*corev1.ConfigMap)
		k := types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}
		if cm.Labels[annotations.LabelKind] == annotations.KindGate {
			record, err := annotations.ReadGates(cm)
			if err != nil {
				return
			}
			k.Name = record.Policy
			w.gates.RecordLost(k)
		} else {
			book.Change(func(r *policy.Resolver) { r.DropPolicy(k.Namespace, k.Name) })
			w.gates.EnqueueOf(k.Namespace)
		}
		policies.Add(k)
	})
	ctx, cancel := context.WithCancel(w.Context())
	var group sync.WaitGroup
	group.Go(func() { docs.Informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), docs.Synced) {
		w.Fatal("the cache does not fill")
	}
	group.Go(func() { w.gates.Run(ctx) })
	group.Go(func() {
		policies.Work(ctx, 2, func(ctx context.Context, k types.NamespacedName) (time.Time, error) {
			state, p := book.Policy(k.Namespace, k.Name)
			if p == nil {
				return w.gates.Reconcile(ctx, k, nil)
			}
			wake, err := w.gates.Reconcile(ctx, k, &state)
			return queue.Soonest(wake, until(p.Verdict(time.Now()).Until)), err
		})
	})
	w.stop = func() {
		cancel()
		group.Wait()
	}
	w.after(time.Second)
}

func until(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return *at
}

// after lets time pass, and everything come to rest.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// patches are the writes on an object, each with whom it was made as.
func (w *world) patches(name string) (n int) {
	for _, line := range w.cluster.Log() {
		if line == "maint-runner patch kustomizations shop/"+name {
			n++
		}
	}
	return n
}

func (w *world) heard(beginning string) (n int) {
	for _, e := range w.events.All() {
		if strings.HasPrefix(e, beginning) {
			n++
		}
	}
	return n
}

func (w *world) wantEvent(beginning string) {
	w.Helper()
	if w.heard(beginning) == 0 {
		w.Errorf("no Event %q among %q", beginning, w.events.All())
	}
}

// condition is what a policy says of its gates: reason and message.
func (w *world) condition(name string) string {
	found := w.gates.Condition(types.NamespacedName{Namespace: "shop", Name: name})
	if len(found) == 0 {
		return ""
	}
	return found[0].Reason + ": " + found[0].Message
}

// recorded says whether the record of a policy's gates is there.
func (w *world) recorded(name string) bool {
	return slices.Contains(w.cluster.Names("configmaps"), "shop/"+annotations.GateName(name))
}
