package factory

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// OwnerOf is the GitOps tool that reconciles a plan's target, by the marks on the target; empty:
// none is known. namespace is the plan's. It makes two requests.
func (k *Cluster) OwnerOf(ctx context.Context, namespace string, ref plan.ObjectRef) (string, error) {
	kind, err := k.served(ref)
	if err != nil || kind == nil {
		return "", err
	}
	target, err := k.targetOf(ctx, *kind, namespace, ref)
	if err != nil {
		return "", err
	}
	return ownerSaid(knob.Object{Group: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group, Kind: ref.Kind, Namespace: target.Namespace, Name: ref.Name}, target), nil
}

// served is how the API server serves the kind of an object; nil: it does not.
func (k *Cluster) served(ref plan.ObjectRef) (*metav1.APIResource, error) {
	served, err := k.Kube.Discovery().ServerResourcesForGroupVersion(ref.APIVersion)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find the kind of %s: %w", ref, err)
	}
	for i, r := range served.APIResources {
		if r.Kind == ref.Kind && !strings.Contains(r.Name, "/") {
			return &served.APIResources[i], nil
		}
	}
	return nil, nil
}

// targetOf is the object that a plan of a namespace is about, without its content.
func (k *Cluster) targetOf(ctx context.Context, kind metav1.APIResource, namespace string, ref plan.ObjectRef) (*metav1.PartialObjectMetadata, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	if !kind.Namespaced {
		namespace = ""
	}
	target, err := k.Metadata.Resource(gv.WithResource(kind.Name)).Namespace(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	return target, nil
}

// Needed looks at the account and the target of a plan, with the rights of whoever asks: the agent
// looks again only when a run is to begin. unseen is what could not be looked at, and why; target is
// nil if it was not.
func (k *Cluster) Needed(ctx context.Context, namespace string, spec plan.Spec) (gone, unseen []string, target *metav1.PartialObjectMetadata) {
	account := plan.Account(spec)
	there, err := k.AccountThere(ctx, namespace, account)
	switch {
	case err == nil && !there:
		gone = append(gone, fmt.Sprintf("the ServiceAccount %s does not exist in namespace %s", account, namespace))
	case err != nil:
		unseen = append(unseen, err.Error())
	}
	switch {
	case spec.Target == nil:
		return gone, unseen, nil
	case spec.ConnectorRef != nil:
		return gone, append(unseen, spec.TargetSaid()+" is in another cluster"), nil
	}
	target, err = k.Target(ctx, namespace, *spec.Target)
	switch {
	case err != nil:
		unseen = append(unseen, err.Error())
	case target == nil:
		gone = append(gone, spec.Target.String()+" does not exist")
	}
	return gone, unseen, target
}

// AccountThere says whether a ServiceAccount exists.
func (k *Cluster) AccountThere(ctx context.Context, namespace, name string) (bool, error) {
	_, err := k.Kube.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, Explain("read the ServiceAccount "+name, err)
}

// Target is the object that a plan of a namespace is about, without its content; nil: it does not
// exist.
func (k *Cluster) Target(ctx context.Context, namespace string, ref plan.ObjectRef) (*metav1.PartialObjectMetadata, error) {
	kind, err := k.served(ref)
	switch {
	case err != nil:
		return nil, Explain("look for the target", err)
	case kind == nil:
		return nil, fmt.Errorf("the API server has no kind %s in %s", ref.Kind, ref.APIVersion)
	}
	target, err := k.targetOf(ctx, *kind, namespace, ref)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return target, Explain("look for the target", err)
}

func ownerSaid(of knob.Object, target *metav1.PartialObjectMetadata) string {
	for _, o := range knob.Owners(of, target.Labels, target.Annotations) {
		switch {
		case o.Doubtful: // Helm uses this label, too
		case o.Anywhere:
			return o.Kind + " " + o.Name
		default:
			return o.Kind + " " + o.Namespaces[0] + "/" + o.Name
		}
	}
	return ""
}
