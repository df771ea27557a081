package cmdtest

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

// Plan is a plan that the agent has seen; spec is YAML on one line, without its braces, beside one
// step.
func Plan(name, spec string, edits ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	cm := Map(annotations.KindPlan, name, annotations.DataPlan, "{apiVersion: maint.dev/v1alpha1, kind: Plan, spec: {steps: [{name: hold, type: suspend}], "+spec+"}}")
	cm.Annotations[annotations.StatusObserved] = "1"
	for _, edit := range edits {
		edit(cm)
	}
	return cm
}

// Sleeper is a HibernatePlan that the agent has seen; spec is YAML on one line, without its braces,
// beside a target of type noop.
func Sleeper(name, spec string, edits ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	cm := Map(annotations.KindHibernatePlan, name, annotations.DataPlan, "{apiVersion: maint.dev/v1alpha1, kind: HibernatePlan, spec: {targets: [{name: apps, type: noop}], "+spec+"}}")
	for _, edit := range edits {
		edit(cm)
	}
	if _, unseen := cm.Annotations[annotations.StatusObserved]; !unseen {
		cm.Annotations[annotations.StatusObserved] = annotations.Observed(cm)
	}
	return cm
}

// Slept is the restore data of a target that has slept for four hours.
func Slept(planName, target string, resources ...hibernate.Resource) hibernate.Record {
	spec, faults := hibernate.Parse([]byte("{apiVersion: maint.dev/v1alpha1, kind: HibernatePlan, spec: {schedule: {offHours: [{start: '20:00', end: '06:00'}]}, targets: [{name: " + target + ", type: workload}]}}"))
	if len(faults) > 0 {
		panic(faults)
	}
	return hibernate.Record{
		Plan: planName, PlanUID: "u-" + planName, Cycle: planName + "-2026-11-20T20:00:00Z", Target: target, Executor: "workload", Operation: hibernate.Shutdown, State: hibernate.Asleep,
		Snapshot: hibernate.Snapshot{Spec: spec, BeganAt: *Before(4 * time.Hour)}, Resources: resources,
	}
}

// Map is a document of ours in namespace shop.
func Map(kind, name, key, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("u-" + name), ResourceVersion: "1",
			Labels: map[string]string{annotations.LabelKind: kind}, Annotations: map[string]string{},
		},
		Data: map[string]string{key: text},
	}
}

// Policy is a policy in namespace shop; spec is YAML on one line.
func Policy(name, spec string) *corev1.ConfigMap {
	return Map(annotations.KindPolicy, name, annotations.DataPolicy, "{apiVersion: maint.dev/v1alpha1, kind: Policy, spec: "+spec+"}")
}

// Noting puts annotations on a document: pairs of key and value.
func Noting(pairs ...string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) {
		for i := 0; i < len(pairs); i += 2 {
			cm.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

// Namespace is one, with annotations: pairs of key and value.
func Namespace(name string, pairs ...string) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("u-" + name), Annotations: map[string]string{}}}
	for i := 0; i < len(pairs); i += 2 {
		ns.Annotations[pairs[i]] = pairs[i+1]
	}
	return ns
}

// RunObject is the object of a run of plan orders, under its name.
func RunObject(r view.Run, name string) *corev1.ConfigMap {
	r.Run.Name, r.Run.Plan, r.Run.PlanUID, r.Run.Namespace = name, "orders", "u-orders", "shop"
	cm, err := annotations.RunObject(r.Run, r.Journal)
	if err != nil {
		panic(err)
	}
	return Signed(cm)
}

// Signed is an object with an agent's signature, by a key that no command has.
func Signed(cm *corev1.ConfigMap) *corev1.ConfigMap {
	keys, err := annotations.ReadKeyring(&corev1.Secret{Data: map[string][]byte{annotations.DataKey: annotations.NewKey()}})
	if err != nil {
		panic(err)
	}
	if err := keys.Sign(cm); err != nil {
		panic(err)
	}
	return cm
}

// Ledger is the ledger of plan orders.
func Ledger(l ledger.Ledger) *corev1.ConfigMap { return LedgerOf("orders", l) }

// LedgerOf is the ledger of a plan in namespace shop.
func LedgerOf(plan string, l ledger.Ledger) *corev1.ConfigMap {
	l.PlanUID = "u-" + plan
	cm, err := annotations.LedgerObject("shop", plan, l)
	if err != nil {
		panic(err)
	}
	return Signed(cm)
}

// Notes are the annotations of a document in namespace shop.
func (o *Cluster) Notes(name string) map[string]string {
	o.Helper()
	cm, err := o.Kube.CoreV1().ConfigMaps("shop").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		o.Error(err)
		return nil
	}
	return cm.Annotations
}

// Changed are the annotations that are new or have another value in the second; empty: gone. It is nil
// where none are.
func Changed(was, is map[string]string) map[string]string {
	var out map[string]string
	put := func(key, value string) {
		if out == nil {
			out = map[string]string{}
		}
		out[key] = value
	}
	for key := range was {
		if _, there := is[key]; !there {
			put(key, "")
		}
	}
	for key, value := range is {
		if was[key] != value {
			put(key, value)
		}
	}
	return out
}

// CutShort is a ledger whose text is cut short.
func CutShort(cm *corev1.ConfigMap) *corev1.ConfigMap {
	text := cm.Data[annotations.DataLedger]
	cm.Data[annotations.DataLedger] = text[:len(text)/2]
	return cm
}

// Unsigned is an object without its signature.
func Unsigned(cm *corev1.ConfigMap) *corev1.ConfigMap {
	delete(cm.Annotations, annotations.StatusSignature)
	return cm
}
