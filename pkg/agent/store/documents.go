package store

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/reference"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Documents are the documents and namespaces as the watches show them, or as they were
// read live since.
type Documents struct {
	cache      *informer.Cache
	namespaces *informer.Cache
	own        string // the agent's namespace
	fresh      *freshness
	Actors     *Actors
}

// NewDocuments looks into the caches of documents and of namespaces' metadata.
func NewDocuments(cache, namespaces *informer.Cache, c FreshConfig) *Documents {
	d := &Documents{cache: cache, namespaces: namespaces, own: c.Namespace, Actors: newActors()}
	d.fresh = newFreshness(d, c)
	return d
}

// All are the documents of every kind, as the watch last showed them.
func (d *Documents) All() []*corev1.ConfigMap {
	list := d.cache.Informer.GetStore().List()
	out := make([]*corev1.ConfigMap, len(list))
	for i, o := range list {
		out[i] = o.(*corev1.ConfigMap)
	}
	return out
}

// LabelPlan is a plan that a label triggers.
type LabelPlan struct {
	Object *corev1.ConfigMap
	Spec   plan.Spec
	Valid  bool
}

// LabelPlans are the plans beside the one of a UID that a label on an object triggers, in a namespace
// (empty: in all). Those that are being deleted begin nothing any more, and are left out.
func (d *Documents) LabelPlans(namespace, key string, target plan.ObjectRef, but string) (out []LabelPlan) {
	for _, cm := range d.All() {
		text := cm.Data[annotations.DataPlan]
		switch {
		case cm.Labels[annotations.LabelKind] != annotations.KindPlan, namespace != "" && cm.Namespace != namespace, string(cm.UID) == but:
			continue
		case !strings.Contains(text, key) || !strings.Contains(text, target.Name): // so that few are parsed
			continue
		case cm.DeletionTimestamp != nil || d.Terminating(cm.Namespace):
			continue
		}
		spec, faults := annotations.Plan(cm)
		if spec.Target != nil && spec.Target.Kind == target.Kind && spec.Target.Name == target.Name && slices.Contains(spec.Triggers.Labels, key) {
			out = append(out, LabelPlan{cm, spec, len(faults) == 0})
		}
	}
	return out
}

// Forget drops what was read live of a plan that the watch shows as gone.
func (d *Documents) Forget(k types.NamespacedName) { d.fresh.forget(k) }

// Plan is a plan's ConfigMap as the watch last showed it, or as it was read live
// since.
func (d *Documents) Plan(k types.NamespacedName) *corev1.ConfigMap {
	return ofKind(d.newest(k), annotations.KindPlan)
}

// HibernatePlan is the same of a HibernatePlan.
func (d *Documents) HibernatePlan(k types.NamespacedName) *corev1.ConfigMap {
	return ofKind(d.newest(k), annotations.KindHibernatePlan)
}

// newest is what stands under a name, of whatever kind.
func (d *Documents) newest(k types.NamespacedName) *corev1.ConfigMap {
	return d.fresh.document(k, d.Any(k))
}

func ofKind(cm *corev1.ConfigMap, kind string) *corev1.ConfigMap {
	if cm == nil || cm.Labels[annotations.LabelKind] != kind {
		return nil
	}
	return cm
}

// Any is a ConfigMap of ours of any kind, as the watch last showed it.
func (d *Documents) Any(k types.NamespacedName) *corev1.ConfigMap {
	o, found, err := d.cache.Informer.GetStore().GetByKey(k.String())
	if err != nil || !found {
		return nil
	}
	return o.(*corev1.ConfigMap)
}

// Template finds a step template in a plan's namespace, or else among those that
// an admin keeps for all beside the agent.
func (d *Documents) Template(namespace, name string) *plan.Template {
	for _, in := range []string{namespace, d.own} {
		o, found, err := d.cache.Informer.GetStore().GetByKey(types.NamespacedName{Namespace: in, Name: name}.String())
		if err != nil || !found {
			continue
		}
		if cm := o.(*corev1.ConfigMap); cm.Labels[annotations.LabelKind] == annotations.KindStepTemplate && cm.DeletionTimestamp == nil {
			t := annotations.StepTemplate(cm)
			return &t
		}
	}
	return nil
}

// Connector finds a connector of a namespace; why says why it cannot be used.
func (d *Documents) Connector(namespace string, ref connector.Reference) (one connector.Connector, why string) {
	cm := d.Any(types.NamespacedName{Namespace: namespace, Name: ref.Name})
	if cm == nil || cm.Labels[annotations.LabelKind] != annotations.KindConnector || cm.DeletionTimestamp != nil {
		return one, reference.NoConnector(ref) + " in namespace " + namespace
	}
	one, faults := annotations.Connector(cm)
	if len(faults) > 0 {
		return one, fmt.Sprintf("the connector %s is not valid: %s", ref.Name, faults[0])
	}
	return one, ""
}

// Pauses are the switches above a plan: its namespace's, and the cluster's,
// which stands on the agent's own namespace.
func (d *Documents) Pauses(namespace string) []schedule.Pause {
	var out []schedule.Pause
	take := func(name, of string) {
		if o, found, err := d.namespaces.Informer.GetStore().GetByKey(name); err == nil && found {
			out = append(out, annotations.PauseOf(of, o.(*metav1.PartialObjectMetadata).Annotations))
		}
	}
	if namespace != d.own {
		take(namespace, annotations.NamespaceNamed(namespace))
	}
	take(d.own, annotations.WholeCluster)
	return out
}

// Terminating says whether a namespace is being deleted, or gone.
func (d *Documents) Terminating(namespace string) bool {
	o, found, err := d.namespaces.Informer.GetStore().GetByKey(namespace)
	if err != nil || !found {
		return false
	}
	return o.(*metav1.PartialObjectMetadata).DeletionTimestamp != nil
}

// Strip drops what is never looked at. Of managedFields only what dates an edit
// is kept.
func Strip(o any) (any, error) {
	var m *metav1.ObjectMeta
	switch o := o.(type) {
	case *corev1.ConfigMap:
		m = &o.ObjectMeta
	case *metav1.PartialObjectMetadata:
		m = &o.ObjectMeta
	default:
		return o, nil
	}
	if m.Labels[annotations.LabelKind] == annotations.KindPlan {
		annotations.KeepEdits(m)
	} else {
		m.ManagedFields = nil
	}
	return o, nil
}
