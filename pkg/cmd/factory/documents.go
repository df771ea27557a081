package factory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// Document finds what a name on the command line means: a plan, or a run, also without the first letters of
// its name. A kind before it, as in plan/NAME, decides which of the kinds; configmap/NAME, as the lists print
// it, may be any.
func (k *Cluster) Document(ctx context.Context, name string, kinds ...string) (*corev1.ConfigMap, error) {
	if err := k.noKind(name); err != nil {
		return nil, err
	}
	before, _ := SplitKind(name)
	bare, meant := BareName(name), view.KindsMeant(before, kinds)
	what, mayRun := strings.Join(view.KindWords(meant), " or "), slices.Contains(meant, annotations.KindRun)
	for _, candidate := range []string{bare, view.RunPrefix + bare} {
		if candidate != bare && !mayRun {
			break
		}
		cm, err := k.ConfigMaps(k.Namespace).Get(ctx, candidate, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, k.ReadError("read "+what+" "+bare, k.Namespace, err)
		}
		if slices.Contains(meant, cm.Labels[annotations.LabelKind]) { // what the command may not take
			meant = kinds
		}
		if !slices.Contains(meant, cm.Labels[annotations.LabelKind]) {
			return nil, fmt.Errorf("%w; %s", view.WrongKind(cm, strings.Join(view.KindWords(meant), " or ")), k.inPlaceOf(cm, meant))
		}
		return cm, nil
	}
	var unread []string
	if mayRun {
		if asked := k.askedRun(ctx, bare); asked != nil {
			return nil, asked
		}
		gone, hidden := k.goneRun(ctx, bare)
		if gone != nil {
			return nil, gone
		}
		unread = hidden
	}
	return nil, NotFoundError(fmt.Sprintf("there is no %s %q in namespace %s%s", what, bare, k.Namespace, view.PrefixList("; ledgers that may know it cannot be read, of plan ", unread)+k.instead(ctx, bare, meant)))
}

// NotFoundError says that no object has the name.
type NotFoundError string

// Error is error's.
func (e NotFoundError) Error() string { return string(e) }

// BareName is a name without the kind before it.
func BareName(name string) string {
	kind, bare := SplitKind(name)
	if _, known := view.KindsBefore(kind); known && kind != "" {
		return bare
	}
	return name
}

// noKind is the error where a kind is written before a name that is no document's.
func (k *Cluster) noKind(name string) error {
	kind, bare := SplitKind(name)
	_, known := view.KindsBefore(kind)
	switch {
	case known:
		return nil
	case kind == KindNode:
		return exit.Errorf(exit.CodeUsage, "%s: this command takes no node; %s shows it, and %s why nothing happens to it", name, k.commands().In("").StatusOf("node/"+bare), k.commands().In("").Why("node/"+bare))
	}
	return exit.Errorf(exit.CodeUsage, "%s", view.NoKind(name))
}

// instead suggests where to look: the name that was probably meant, or the list.
func (k *Cluster) instead(ctx context.Context, name string, kinds []string) string {
	names, err := k.namesLike(ctx, name, kinds)
	if err != nil {
		return ""
	}
	if len(names) == 0 {
		if k.noNamespace(ctx, k.Namespace) {
			return ": there is no such namespace; " + k.commands().In("").Get("namespaces") + " shows which there are"
		}
		return "; the namespace has none: choose another with -n, or see all with " + k.commands().ListAll()
	}
	if near, ok := view.NearestName(name, names); ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return "; see " + k.listOf(kinds)
}

// namesLike are the names of the documents of some kinds that may be written in place of a name: those of
// runs last, since there are many of each plan, and without their prefix where that was not written.
func (k *Cluster) namesLike(ctx context.Context, name string, kinds []string) ([]string, error) {
	isRun := func(kind string) bool { return kind == annotations.KindRun }
	var out []string
	if others := slices.DeleteFunc(slices.Clone(kinds), isRun); len(others) > 0 {
		names, err := k.Names(ctx, "configmaps", k.Namespace, annotations.LabelKind+" in ("+strings.Join(others, ",")+")")
		if err != nil {
			return nil, err
		}
		out = names
	}
	if !slices.ContainsFunc(kinds, isRun) {
		return out, nil
	}
	runs, err := k.Names(ctx, "configmaps", k.Namespace, annotations.LabelKind+"="+annotations.KindRun)
	if !strings.HasPrefix(name, view.RunPrefix) {
		for i := range runs {
			runs[i] = strings.TrimPrefix(runs[i], view.RunPrefix)
		}
	}
	return append(out, runs...), err
}

// noNamespace says whether a namespace is known not to exist.
func (k *Cluster) noNamespace(ctx context.Context, name string) bool {
	_, err := k.Kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

// seenNamespaces are namespaces that were found: of several empty lists that are read concurrently,
// only the first asks.
type seenNamespaces struct {
	mu    sync.Mutex
	names map[string]bool
}

func (s *seenNamespaces) there(name string, ask func() bool) bool {
	if s == nil {
		return ask()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.names[name] && ask() {
		if s.names == nil {
			s.names = map[string]bool{}
		}
		s.names[name] = true
	}
	return s.names[name]
}

// inPlaceOf is what helps with a document of another kind than those that were meant.
func (k *Cluster) inPlaceOf(cm *corev1.ConfigMap, kinds []string) string {
	if policies := slices.Contains(kinds, annotations.KindPolicy); cm.Labels[annotations.LabelKind] == annotations.KindHibernatePlan && (!policies || len(kinds) > 1) {
		return remedy.OfHibernatePlan(k.commands(), cm.Name, policies)
	}
	return "see " + k.listOf(kinds)
}

// listOf is the command that lists what a name may mean. A plan where a run is meant stands for its
// newest run.
func (k *Cluster) listOf(kinds []string) string {
	policies := slices.Contains(kinds, annotations.KindPolicy)
	switch {
	case kinds[0] == annotations.KindRun && !policies:
		return k.commands().ListOf("runs")
	case policies && len(kinds) == 1:
		return k.commands().ListOf("policies")
	}
	return k.commands().List()
}

// Plan finds a plan.
func (k *Cluster) Plan(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	return k.Document(ctx, name, annotations.KindPlan)
}

// HibernatePlan is the HibernatePlan that a name means; nil where it means something else, or nothing.
func (k *Cluster) HibernatePlan(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	before, _ := SplitKind(name)
	if err := k.noKind(name); before != KindNode && err != nil {
		return nil, err
	}
	if !view.MayMean(before, annotations.KindHibernatePlan) {
		return nil, nil
	}
	cm, err := k.ConfigMaps(k.Namespace).Get(ctx, BareName(name), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, k.ReadError("read plan "+BareName(name), k.Namespace, err)
	case cm.Labels[annotations.LabelKind] != annotations.KindHibernatePlan:
		return nil, nil
	}
	return cm, nil
}

// Plans are the plans of a namespace, by name.
func (k *Cluster) Plans(ctx context.Context, namespace, selector string) ([]*corev1.ConfigMap, error) {
	return k.ListDocuments(ctx, "plans", annotations.KindPlan, namespace, selector)
}

// HibernatePlans are the HibernatePlans of a namespace, by name.
func (k *Cluster) HibernatePlans(ctx context.Context, namespace, selector string) ([]*corev1.ConfigMap, error) {
	return k.ListDocuments(ctx, "HibernatePlans", annotations.KindHibernatePlan, namespace, selector)
}

// Prices are the prices of a namespace, by name.
func (k *Cluster) Prices(ctx context.Context, namespace string) ([]*corev1.ConfigMap, error) {
	return k.ListDocuments(ctx, "prices", annotations.KindPrices, namespace, "")
}

// ListDocuments are the documents of a kind, by name; what names the kind in an error.
func (k *Cluster) ListDocuments(ctx context.Context, what, kind, namespace, selector string) ([]*corev1.ConfigMap, error) {
	full := annotations.LabelKind + "=" + kind
	if selector != "" {
		full += "," + selector
	}
	list, err := k.ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: full})
	if err != nil {
		return nil, k.ReadError("list "+what, namespace, err)
	}
	if len(list.Items) == 0 && namespace != "" && k.Warn != nil && !k.seen.there(namespace, func() bool { return !k.noNamespace(ctx, namespace) }) {
		k.Warn("there is no namespace " + namespace + "; " + k.commands().In("").Get("namespaces") + " shows which there are")
	}
	out := make([]*corev1.ConfigMap, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}

// Deleting are the namespaces that are being deleted: of one, or of all where it is empty. What may
// not be read counts as not being deleted.
func (k *Cluster) Deleting(ctx context.Context, namespace string) map[string]bool {
	namespaces := k.Metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	if namespace != "" { // to list even this one needs a right in the whole cluster
		ns, err := namespaces.Get(ctx, namespace, metav1.GetOptions{})
		return map[string]bool{namespace: err == nil && ns.DeletionTimestamp != nil}
	}
	list, err := namespaces.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil
	}
	out := map[string]bool{}
	for _, ns := range list.Items {
		out[ns.Name] = ns.DeletionTimestamp != nil
	}
	return out
}
