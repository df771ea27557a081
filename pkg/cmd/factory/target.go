package factory

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// OwnerOf is who keeps a plan's target as Git has it, as its marks tell; empty: nobody who is
// known. namespace is the plan's. Two requests.
func (k *Cluster) OwnerOf(ctx context.Context, namespace string, ref plan.ObjectRef) (string, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", ref, err)
	}
	served, err := k.Kube.Discovery().ServerResourcesForGroupVersion(ref.APIVersion)
	if err != nil {
		return "", fmt.Errorf("find the kind of %s: %w", ref, err)
	}
	for _, r := range served.APIResources {
		if r.Kind != ref.Kind || r.Namespaced && namespace == "" {
			continue
		}
		if !r.Namespaced {
			namespace = ""
		}
		target, err := k.Metadata.Resource(gv.WithResource(r.Name)).Namespace(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("read %s: %w", ref, err)
		}
		return ownerSaid(knob.Object{Group: gv.Group, Kind: ref.Kind, Namespace: namespace, Name: ref.Name}, target), nil
	}
	return "", nil
}

func ownerSaid(of knob.Object, target *metav1.PartialObjectMetadata) string {
	for _, o := range knob.Owners(of, target.Labels, target.Annotations) {
		switch {
		case o.Doubtful: // the label is Helm's, too
		case o.Anywhere:
			return o.Kind + " " + o.Name
		default:
			return o.Kind + " " + o.Namespaces[0] + "/" + o.Name
		}
	}
	return ""
}
