package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/chaos/check"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// settling is how long all that was begun may take to end once nothing breaks any
// more. It is longer than any backoff of the parts around the agents.
const settling = 150 * time.Second

// wind ends what people began: no pauses, no schedules, no requests for nodes.
func (p *people) wind(ctx context.Context) {
	for _, name := range []string{"steady", "ticks"} {
		p.insist(ctx, "takes the schedules of "+name+" away", func(ctx context.Context) error { return p.edit(ctx, name, none) })
	}
	for _, name := range []string{"steady", "ticks", "labelled", "watched", "asked"} {
		p.insist(ctx, "resumes "+name, func(ctx context.Context) error {
			return p.mergeMap(ctx, name, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, annotations.Pause))
		})
	}
	p.windNights(ctx)
	for _, node := range []string{"node-2", "node-3"} {
		p.insist(ctx, "releases "+node, func(ctx context.Context) error {
			return p.mergeNode(ctx, node, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, annotations.RequestPrefix+"person"))
		})
	}
}

// settle waits until nothing is left to do, and returns what is when it does not.
func (w *world) settle(ctx context.Context) []check.Left {
	var left []check.Left
	err := w.until(ctx, "everything has ended", settling, func(ctx context.Context) (bool, error) {
		var err error
		left, err = w.left(ctx)
		return err == nil && len(left) == 0, err
	})
	if err != nil && len(left) == 0 {
		left = []check.Left{{What: "the cluster", Why: err.Error()}}
	}
	return left
}

// left is what is not over yet.
func (w *world) left(ctx context.Context) ([]check.Left, error) {
	maps, err := w.admin.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind})
	if err != nil {
		return nil, err
	}
	var out []check.Left
	for _, cm := range maps.Items {
		switch kind := cm.Labels[annotations.LabelKind]; {
		case cm.DeletionTimestamp != nil:
			out = append(out, check.Left{What: kind + " " + cm.Name, Why: fmt.Sprintf("is being deleted, finalizers %v", cm.Finalizers)})
		case kind == annotations.KindRun && len(cm.Finalizers) > 0:
			out = append(out, check.Left{What: "run " + cm.Name + " of " + cm.Labels[annotations.LabelPlan], Why: "has its finalizer: " + cm.Labels[annotations.LabelPhase] + " " + cm.Annotations[annotations.StatusMessage]})
		case kind == annotations.KindLedger && openEntries(&cm) > 0:
			out = append(out, check.Left{What: "ledger " + cm.Name, Why: fmt.Sprintf("has %d open entries", openEntries(&cm))})
		case kind == annotations.KindPlan:
			out = append(out, leftOfPlan(&cm)...)
		default:
			out = append(out, leftOfNights(&cm)...)
		}
	}
	orders, err := w.admin.AppsV1().Deployments(namespace).Get(ctx, "orders", metav1.GetOptions{})
	if err != nil {
		return out, err
	}
	if orders.Labels[trigger] != "" {
		out = append(out, check.Left{What: "deployment orders", Why: "has its trigger label"})
	}
	return w.leftOnNodes(ctx, out)
}

func leftOfPlan(cm *corev1.ConfigMap) []check.Left {
	a := cm.Annotations
	if a[annotations.Trigger] != a[annotations.StatusTrigger] {
		return []check.Left{{What: "plan " + cm.Name, Why: fmt.Sprintf("token %s is not handled, the last was %s", a[annotations.Trigger], a[annotations.StatusTrigger])}}
	}
	if phase := a[annotations.StatusPhase]; phase != "Idle" {
		return []check.Left{{What: "plan " + cm.Name, Why: "is " + phase + ": " + a[annotations.StatusMessage]}}
	}
	return nil
}

func (w *world) leftOnNodes(ctx context.Context, out []check.Left) ([]check.Left, error) {
	nodes, err := w.admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return out, err
	}
	for _, n := range nodes.Items {
		for key := range n.Annotations {
			if strings.Contains(key, "request.maint.dev/") || strings.HasPrefix(key, "status.maint.dev/progress") {
				out = append(out, check.Left{What: "node " + n.Name, Why: "has " + key})
			}
		}
	}
	return out, nil
}

func openEntries(cm *corev1.ConfigMap) int {
	var ledger struct {
		Open []json.RawMessage `json:"open"`
	}
	if json.Unmarshal([]byte(cm.Data[annotations.DataLedger]), &ledger) != nil {
		return 0
	}
	return len(ledger.Open)
}

// cordoned are the nodes of the pool that a rollout that did not succeed has left.
func (w *world) cordoned(ctx context.Context) []string {
	var out []string
	nodes, err := w.admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "pool=roll"})
	if err != nil {
		return nil
	}
	for _, n := range nodes.Items {
		if n.Spec.Unschedulable {
			out = append(out, n.Name)
		}
	}
	return out
}

// reopen runs the rollout once more where nodes of failed steps stand cordoned, as
// documented: the next run opens them again.
func (p *people) reopen(ctx context.Context) []check.Left {
	for range 2 {
		nodes := p.cordoned(ctx)
		if len(nodes) == 0 {
			return nil
		}
		p.say("person", "runs the rollout again for %v", nodes)
		p.insist(ctx, "asks for a run of rollout", func(ctx context.Context) error { return p.ask(ctx, "rollout") })
		if err := p.world.until(ctx, "the rollout runs", 30*time.Second, func(ctx context.Context) (bool, error) {
			left, err := p.left(ctx)
			return err == nil && len(left) > 0, err
		}); err != nil {
			p.say("person", "%v", err)
		}
		if left := p.settle(ctx); len(left) > 0 {
			return left
		}
	}
	return nil
}

// snapshot is what plans change and give back, as text by field.
func (w *world) snapshot(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	deployments, err := w.admin.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, d := range deployments.Items {
		key := "deployment " + d.Name
		out[key+" replicas"] = fmt.Sprint(*d.Spec.Replicas)
		out[key+" minReadySeconds"] = fmt.Sprint(d.Spec.MinReadySeconds)
		out[key+" labels"] = spelled(d.Labels)
		out[key+" annotations"] = spelled(d.Annotations)
	}
	if err := w.cronJobs(ctx, out); err != nil {
		return nil, err
	}
	nodes, err := w.admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, n := range nodes.Items {
		out["node "+n.Name+" unschedulable"] = fmt.Sprint(n.Spec.Unschedulable)
		out["node "+n.Name+" cordon record"] = n.Annotations["status.maint.dev/cordoned"]
	}
	maps, err := w.admin.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: "!" + annotations.LabelKind})
	if err != nil {
		return nil, err
	}
	for _, cm := range maps.Items {
		out["configmap "+cm.Name] = "is there"
	}
	return out, nil
}

// spelled are the entries that are neither ours nor a controller's.
func spelled(m map[string]string) string {
	var out []string
	for k, v := range m {
		if !strings.Contains(k, "maint.dev/") && !strings.Contains(k, "kubernetes.io/") {
			out = append(out, k+"="+v)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// memories are the ledgers of the plans that still are.
func (w *world) memories(ctx context.Context) ([]check.Memory, error) {
	maps, err := w.admin.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindPlan})
	if err != nil {
		return nil, err
	}
	var out []check.Memory
	for _, cm := range maps.Items {
		m := check.Memory{Plan: namespace + "/" + cm.Name, UID: string(cm.UID)}
		head, err := w.admin.CoreV1().ConfigMaps(namespace).Get(ctx, annotations.LedgerName(cm.Name, m.UID), metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("ledger of %s: %w", cm.Name, err)
		}
		m.Head = head.Data[annotations.DataLedger]
		old, err := w.admin.CoreV1().ConfigMaps(namespace).Get(ctx, annotations.ArchiveName(cm.Name, m.UID), metav1.GetOptions{})
		switch {
		case err == nil:
			m.Old = old.Data[annotations.DataLedger]
		case !apierrors.IsNotFound(err):
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// history is all that was written down.
func (w *world) history() (check.History, error) {
	h := check.History{Sends: map[string]check.Send{}, Deliveries: w.hooks.deliveries()}
	for _, r := range w.replicas {
		for id, s := range r.proxy.sent() {
			h.Sends[id] = s
		}
	}
	if err := keep(filepath.Join(w.dir, "deliveries.json"), h.Deliveries); err != nil {
		return h, err
	}
	if err := keep(filepath.Join(w.dir, "sends.json"), h.Sends); err != nil {
		return h, err
	}
	_, err := harness.EachAudited(w.audit, 0, "", func(e harness.AuditEvent) { h.Audit = append(h.Audit, e) })
	return h, err
}

// keep writes down what a checker was given, for whoever looks for a fault.
func keep(path string, what any) error {
	b, err := json.MarshalIndent(what, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}
