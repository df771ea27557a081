package setup

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// removable is everything that any install may have applied, the namespace included; also the
// PodDisruptionBudget of kustomize's component ha, which would have no pods.
func (o *uninstallOptions) removable() ([]*unstructured.Unstructured, error) {
	objects, err := Manifests{Version: o.Version, Namespace: o.namespace, Image: defaultRepository}.all()
	if err != nil {
		return nil, err
	}
	return append(objects, objectIn(o.namespace, "policy/v1", "PodDisruptionBudget", annotations.AgentName)), nil
}

// objectIn is an object of a namespace, by its name.
func objectIn(namespace, version, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// print shows what would be removed, as it is in the cluster, and removes nothing.
func (o *uninstallOptions) print(ctx context.Context, others []string) error {
	a, err := connect(o.Factory)
	if err != nil {
		return err
	}
	items, err := o.standing(ctx, a, others)
	if err != nil {
		return err
	}
	if err := o.out.PrintObjects(o.Out, items); err != nil {
		return err
	}
	if len(items) == 0 {
		fmt.Fprintf(o.ErrOut, "no agent is installed in namespace %s: there is nothing to remove\n", o.namespace)
		return nil
	}
	fmt.Fprintf(o.ErrOut, "nothing was removed: %s removes it\n", o.Suggest().Uninstall(o.namespace))
	return nil
}

// standing are the objects that would be removed, in the order of their removal. What an agent of
// another namespace needs is not among them.
func (o *uninstallOptions) standing(ctx context.Context, a *applier, others []string) ([]unstructured.Unstructured, error) {
	objects, err := o.removable()
	if err != nil {
		return nil, err
	}
	objects = append([]*unstructured.Unstructured{objectIn(o.namespace, "coordination.k8s.io/v1", "Lease", annotations.LeaseName), objectIn(o.namespace, "v1", "ConfigMap", annotations.HeartbeatName)}, objects...)
	objects = slices.DeleteFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == "Namespace" })
	live, err := a.read(ctx, objects)
	if err != nil {
		return nil, err
	}
	kept := map[objectKey]bool{}
	if len(others) > 0 {
		shared := maps.Clone(live)
		maps.DeleteFunc(shared, func(_ objectKey, u *unstructured.Unstructured) bool { return u.GetNamespace() != "" })
		kept = sharedWith(shared, o.namespace)
	}
	items := []unstructured.Unstructured{}
	for _, u := range slices.Backward(objects) {
		if found := live[keyOf(u)]; found != nil && !kept[keyOf(u)] {
			found.SetManagedFields(nil)
			items = append(items, *found)
		}
	}
	return items, nil
}
