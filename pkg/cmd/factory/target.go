package factory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// OwnerOf is the GitOps tool that reconciles a plan's target, by the marks on the target; empty:
// none is known. namespace is the plan's. It makes two requests.
func (k *Cluster) OwnerOf(ctx context.Context, namespace string, ref plan.ObjectRef) (string, error) {
	kind, err := k.Served(ref)
	if err != nil || kind == nil {
		return "", err
	}
	target, err := k.targetOf(ctx, *kind, namespace, ref)
	if err != nil {
		return "", err
	}
	return ownerSaid(knob.Object{Group: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group, Kind: ref.Kind, Namespace: target.Namespace, Name: ref.Name}, target), nil
}

// Served is how the API server serves the kind of an object; nil: it does not.
func (k *Cluster) Served(ref plan.ObjectRef) (*metav1.APIResource, error) {
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
	return err == nil, k.Explain("read the ServiceAccount "+name, err)
}

// Target is the object that a plan of a namespace is about, without its content; nil: it does not exist.
func (k *Cluster) Target(ctx context.Context, namespace string, ref plan.ObjectRef) (*metav1.PartialObjectMetadata, error) {
	kind, err := k.Served(ref)
	switch {
	case err != nil:
		return nil, k.Explain("look for the target", err)
	case kind == nil:
		return nil, fmt.Errorf("the API server has no kind %s in %s", ref.Kind, ref.APIVersion)
	}
	target, err := k.targetOf(ctx, *kind, namespace, ref)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return target, k.Explain("look for the target", err)
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

// TargetSkip is the annotation by which the users of a plan's target skip the plan; empty: they do
// not, or the target may not be read.
func (k *Cluster) TargetSkip(ctx context.Context, cm *corev1.ConfigMap, spec plan.Spec) string {
	at := types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}
	return k.TargetSkips(ctx, map[types.NamespacedName]plan.Spec{at: spec})[at]
}

// TargetSkips is TargetSkip of many plans: those whose targets could be read.
func (k *Cluster) TargetSkips(ctx context.Context, plans map[types.NamespacedName]plan.Spec) map[types.NamespacedName]string {
	targets := map[targetRef]bool{}
	for at, spec := range plans {
		if SkippableByTarget(spec) {
			targets[targetRef{at.Namespace, *spec.Target}] = true
		}
	}
	known := k.targetAnnotations(ctx, slices.Collect(maps.Keys(targets)))
	out := map[types.NamespacedName]string{}
	for at, spec := range plans {
		if !SkippableByTarget(spec) {
			continue
		}
		if notes, read := known[targetRef{at.Namespace, *spec.Target}]; read {
			out[at] = view.TargetSkip(at.Name, spec, notes)
		}
	}
	return out
}

// SkippableByTarget says whether the users of a plan's target can skip the plan, as far as we look:
// it is not in another cluster.
func SkippableByTarget(spec plan.Spec) bool { return spec.Target != nil && spec.ConnectorRef == nil }

// targetRef is the target of a plan of a namespace.
type targetRef struct {
	Namespace string
	plan.ObjectRef
}

// fewTargets is how many objects of a kind are read one by one (a guess: more are listed).
const fewTargets = 10

// fewNamespaces is how many namespaces are listed one by one (a guess: of more, all are).
const fewNamespaces = 3

// targetAnnotations reads the annotations of the targets of many plans, with one request for each kind if
// there are many of it. One that does not exist has none. Those that could not be read are left out.
func (k *Cluster) targetAnnotations(ctx context.Context, wanted []targetRef) map[targetRef]map[string]string {
	kinds := map[schema.GroupVersionKind][]targetRef{}
	for _, t := range wanted {
		kind := schema.FromAPIVersionAndKind(t.APIVersion, t.Kind)
		kinds[kind] = append(kinds[kind], t)
	}
	r := targetReader{Cluster: k, found: map[targetRef]map[string]string{}}
	var all sync.WaitGroup
	for kind, of := range kinds {
		all.Go(func() { r.read(ctx, kind, of) })
	}
	all.Wait()
	return r.found
}

// targetReader reads the targets of many plans at once.
type targetReader struct {
	*Cluster
	mu    sync.Mutex // guards what follows
	found map[targetRef]map[string]string
}

func (r *targetReader) note(t targetRef, annotations map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found[t] = annotations
}

// read reads the targets of one kind. For a few, the name of the resource is guessed first, which
// mostly saves the request that looks it up. A wrong guess is not found, or not allowed.
func (r *targetReader) read(ctx context.Context, kind schema.GroupVersionKind, wanted []targetRef) {
	few := len(wanted) <= fewTargets
	guess, _ := meta.UnsafeGuessKindToResource(kind)
	if few && r.each(ctx, metav1.APIResource{Name: guess.Resource, Namespaced: true}, wanted) {
		return
	}
	served, err := r.Served(wanted[0].ObjectRef)
	switch {
	case err != nil || served == nil:
	case !few:
		r.list(ctx, *served, wanted)
	case served.Name != guess.Resource || !served.Namespaced:
		r.each(ctx, *served, wanted)
	}
}

// each reads targets one by one as objects of a resource. It says whether it found one.
func (r *targetReader) each(ctx context.Context, kind metav1.APIResource, wanted []targetRef) bool {
	var found atomic.Bool
	var all sync.WaitGroup
	for _, t := range wanted {
		all.Go(func() {
			switch m, err := r.targetOf(ctx, kind, t.Namespace, t.ObjectRef); {
			case err == nil:
				found.Store(true)
				r.note(t, m.Annotations)
			case apierrors.IsNotFound(err):
				r.note(t, nil)
			}
		})
	}
	all.Wait()
	return found.Load()
}

// list reads the targets of one kind with a list of each namespace, or of all.
func (r *targetReader) list(ctx context.Context, kind metav1.APIResource, wanted []targetRef) {
	seek := make(map[types.NamespacedName][]targetRef, len(wanted)) // several plans of a cluster-scoped one
	for _, t := range wanted {
		at := types.NamespacedName{Namespace: t.Namespace, Name: t.Name}
		if !kind.Namespaced {
			at.Namespace = ""
		}
		seek[at] = append(seek[at], t)
	}
	resource := r.Metadata.Resource(schema.FromAPIVersionAndKind(wanted[0].APIVersion, "").GroupVersion().WithResource(kind.Name))
	for _, namespace := range listedFor(kind, wanted) {
		seen := map[types.NamespacedName]map[string]string{}
		err := kube.EachOf(ctx, resource.Namespace(namespace).List, "", func(m *metav1.PartialObjectMetadata) error {
			if at := (types.NamespacedName{Namespace: m.Namespace, Name: m.Name}); seek[at] != nil {
				seen[at] = m.Annotations
			}
			return nil
		})
		if err != nil {
			continue
		}
		for at, of := range seek {
			for _, t := range of {
				if namespace == metav1.NamespaceAll || namespace == t.Namespace {
					r.note(t, seen[at])
				}
			}
		}
	}
}

// listedFor are the namespaces that are listed for targets; the empty one stands for all.
func listedFor(kind metav1.APIResource, wanted []targetRef) []string {
	var namespaces []string
	for _, t := range wanted {
		namespaces = append(namespaces, t.Namespace)
	}
	slices.Sort(namespaces)
	if namespaces = slices.Compact(namespaces); !kind.Namespaced || len(namespaces) > fewNamespaces {
		return []string{metav1.NamespaceAll}
	}
	return namespaces
}
