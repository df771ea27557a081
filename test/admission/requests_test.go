package admission_test

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

const planText = "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: hold, type: suspend}\n"

// document is a ConfigMap of a kind of ours.
func document(kind, name string, edits ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	cm := annotations.NewPlan("", name, planText, "")
	cm.Labels[annotations.LabelKind] = kind
	for _, edit := range edits {
		edit(cm)
	}
	return cm
}

// plain is a ConfigMap that is not ours.
func plain(name string, edits ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": "b"}}
	for _, edit := range edits {
		edit(cm)
	}
	return cm
}

func annotated(pairs ...string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.Annotations = pairsOf(pairs) }
}

func labelled(key, value string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) {
		if cm.Labels == nil {
			cm.Labels = map[string]string{}
		}
		cm.Labels[key] = value
	}
}

func owned(name string, uid types.UID) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) {
		cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: uid}}
	}
}

func alive(cm *corev1.ConfigMap) { cm.Finalizers = []string{annotations.Finalizer} }

func pairsOf(pairs []string) map[string]string {
	out := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

var dry = []string{metav1.DryRunAll} //nolint:gochecknoglobals // a constant that Go does not have

func creates(cm *corev1.ConfigMap) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		return k.CoreV1().ConfigMaps(l.ns).Create(l.ctx, cm.DeepCopy(), metav1.CreateOptions{DryRun: dry})
	}
}

// patches merges a patch into a ConfigMap.
func patches(name, patch string) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		return k.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: dry})
	}
}

// annotates gives a ConfigMap annotations; an empty value takes one away.
func annotates(name string, pairs ...string) request {
	return patches(name, annotationPatch(pairs))
}

func annotationPatch(pairs []string) string {
	values := map[string]*string{}
	for key, value := range pairsOf(pairs) {
		values[key] = &value
		if value == "" {
			values[key] = nil
		}
	}
	b, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": values}})
	if err != nil {
		panic(err) // of strings
	}
	return string(b)
}

// puts replaces a ConfigMap, as kubectl replace does.
func puts(cm *corev1.ConfigMap) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		return k.CoreV1().ConfigMaps(l.ns).Update(l.ctx, cm.DeepCopy(), metav1.UpdateOptions{DryRun: dry})
	}
}

func deletes(name string) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		return nil, k.CoreV1().ConfigMaps(l.ns).Delete(l.ctx, name, metav1.DeleteOptions{DryRun: dry})
	}
}

// deletesAll is DELETECOLLECTION: the request has no name.
func deletesAll(selector string) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		return nil, k.CoreV1().ConfigMaps(l.ns).DeleteCollection(l.ctx, metav1.DeleteOptions{DryRun: dry}, metav1.ListOptions{LabelSelector: selector})
	}
}

// applies is server-side apply, as Flux does it.
func applies(manager string, cm *corev1.ConfigMap) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		return apply(l, k, manager, cm, dry)
	}
}

func apply(l *lab, k kubernetes.Interface, manager string, cm *corev1.ConfigMap, dryRun []string) (metav1.Object, error) {
	cm = cm.DeepCopy()
	cm.TypeMeta, cm.Namespace = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, l.ns
	b, err := json.Marshal(cm)
	if err != nil {
		return nil, err
	}
	force := true
	return k.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, cm.Name, types.ApplyPatchType, b, metav1.PatchOptions{FieldManager: manager, Force: &force, DryRun: dryRun})
}

// onNode annotates the node worker-1, or one of its subresources.
func onNode(pairs ...string) request { return nodePatch(annotationPatch(pairs)) }

func onNodeStatus(pairs ...string) request { return nodePatch(annotationPatch(pairs), "status") }

func nodePatch(patch string, subresources ...string) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		return k.CoreV1().Nodes().Patch(l.ctx, "worker-1", types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: dry}, subresources...)
	}
}

// onNamespace annotates the test's namespace, and onAgents the agent's.
func onNamespace(pairs ...string) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		return k.CoreV1().Namespaces().Patch(l.ctx, l.ns, types.MergePatchType, []byte(annotationPatch(pairs)), metav1.PatchOptions{DryRun: dry})
	}
}

// patchesNamespace merges a patch into the test's namespace.
func patchesNamespace(patch string, subresources ...string) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		return k.CoreV1().Namespaces().Patch(l.ctx, l.ns, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: dry}, subresources...)
	}
}

// finalizesNamespace puts the test's namespace by the subresource that knows no patch.
func finalizesNamespace(pairs ...string) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		ns, err := k.CoreV1().Namespaces().Get(l.ctx, l.ns, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		ns.Annotations = pairsOf(pairs)
		return k.CoreV1().Namespaces().Finalize(l.ctx, ns, metav1.UpdateOptions{DryRun: dry})
	}
}

func onAgents(pairs ...string) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		return k.CoreV1().Namespaces().Patch(l.ctx, annotations.DefaultNamespace, types.MergePatchType, []byte(annotationPatch(pairs)), metav1.PatchOptions{DryRun: dry})
	}
}

// many are so many annotations with a prefix.
func many(n int, prefix string) []string {
	out := make([]string, 0, 2*n)
	for i := range n {
		out = append(out, fmt.Sprintf("%s%d", prefix, i), "x")
	}
	return out
}
