package watch

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// readAgain is for how long an answer is used that no watch keeps current.
const readAgain = 5 * time.Second

// WatchActiveRuns keeps a live picture of the runs of all namespaces that have not ended, too: nodes
// say for which plan they are cordoned, and an old answer about its runs would contradict them. Where
// these runs may not be read, it does nothing.
func (w *Cache) WatchActiveRuns(ctx context.Context, k *factory.Cluster) {
	tweak := ByLabel(annotations.LabelKind + "=" + annotations.KindRun + "," + factory.ActiveOnly)
	probe := metav1.ListOptions{Limit: 1}
	tweak(&probe)
	if _, err := k.ConfigMaps("").List(ctx, probe); err != nil {
		return
	}
	informer := newInformer(k, k.Kube.CoreV1().ConfigMaps(""), &corev1.ConfigMap{}, tweak)
	if runs, err := startInto(ctx, k, informer, w.Changed, func(_, _ any) bool { return true }); err == nil {
		w.active = runs
	}
}

// Reader is a cluster for repeated looks: ConfigMaps of these kinds, of a namespace or, if it is
// empty, of all, come from the picture, and answers to all other reads are used for some seconds.
// It is for reading only: objects that it returns are shared.
func (w *Cache) Reader(k *factory.Cluster, namespace string, kinds ...string) *factory.Cluster {
	out := k.In("")
	out.Kube = reader{Basic: k.Kube, core: coreReader{CoreV1Interface: k.Kube.CoreV1(), seen: w, namespace: namespace, kinds: kinds, answers: &answers{}}}
	return out
}

type reader struct {
	kube.Basic
	core coreReader
}

func (r reader) CoreV1() typedcorev1.CoreV1Interface { return r.core }

type coreReader struct {
	typedcorev1.CoreV1Interface
	seen      *Cache
	namespace string
	kinds     []string
	answers   *answers
}

func (r coreReader) ConfigMaps(namespace string) typedcorev1.ConfigMapInterface {
	return configMapReader{ConfigMapInterface: r.CoreV1Interface.ConfigMaps(namespace), core: r, namespace: namespace}
}

func (r coreReader) Namespaces() typedcorev1.NamespaceInterface {
	return namespaceReader{NamespaceInterface: r.CoreV1Interface.Namespaces(), core: r}
}

type configMapReader struct {
	typedcorev1.ConfigMapInterface
	core      coreReader
	namespace string
}

func (r configMapReader) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.ConfigMap, error) {
	if cm := r.core.seen.ConfigMap(r.namespace, name); cm != nil {
		return cm, nil
	}
	return answer(r.core.answers, "configmap/"+r.namespace+"/"+name, func() (*corev1.ConfigMap, error) { return r.ConfigMapInterface.Get(ctx, name, o) })
}

func (r configMapReader) List(ctx context.Context, o metav1.ListOptions) (*corev1.ConfigMapList, error) {
	asked, err := selector.Parse(o.LabelSelector)
	seen := r.picture(asked, o)
	if err != nil || seen == nil {
		return answer(r.core.answers, "configmaps/"+r.namespace+"/"+o.LabelSelector+"/"+o.FieldSelector, func() (*corev1.ConfigMapList, error) { return r.ConfigMapInterface.List(ctx, o) })
	}
	out := &corev1.ConfigMapList{}
	for _, cm := range seen.configMaps() {
		if (r.namespace == "" || cm.Namespace == r.namespace) && asked.Matches(cm.Labels) {
			out.Items = append(out.Items, *cm)
		}
	}
	return out, nil
}

// picture is one that has everything that is asked for; nil: none has.
func (r configMapReader) picture(asked selector.Labels, o metav1.ListOptions) *Cache {
	switch seen := r.core.seen; {
	case o.FieldSelector != "":
		return nil
	case (r.core.namespace == "" || r.core.namespace == r.namespace) && asked.Within(annotations.LabelKind, r.core.kinds...):
		return seen
	case asked.Within(annotations.LabelKind, annotations.KindRun) && asked.Within(annotations.LabelPhase, string(run.Pending), string(run.Running)):
		return seen.active
	}
	return nil
}

type namespaceReader struct {
	typedcorev1.NamespaceInterface
	core coreReader
}

func (r namespaceReader) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Namespace, error) {
	return answer(r.core.answers, "namespace/"+name, func() (*corev1.Namespace, error) { return r.NamespaceInterface.Get(ctx, name, o) })
}

func (r namespaceReader) List(ctx context.Context, o metav1.ListOptions) (*corev1.NamespaceList, error) {
	return answer(r.core.answers, "namespaces/"+o.LabelSelector, func() (*corev1.NamespaceList, error) { return r.NamespaceInterface.List(ctx, o) })
}

// answers are answers of the API server that are used for a while.
type answers struct {
	mu    sync.Mutex
	known map[string]known
}

type known struct {
	value any
	err   error
	at    time.Time
}

// answer asks, unless there is a recent answer.
func answer[T any](a *answers, question string, ask func() (T, error)) (T, error) {
	a.mu.Lock()
	was, there := a.known[question]
	a.mu.Unlock()
	if there && time.Since(was.at) < readAgain {
		return was.value.(T), was.err
	}
	value, err := ask()
	if err != nil && !refused(err) { // it was not answered
		return value, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = map[string]known{}
	}
	a.known[question] = known{value, err, time.Now()}
	return value, err
}

// configMaps are all of the picture, by namespace and name.
func (w *Cache) configMaps() []*corev1.ConfigMap {
	list := w.store.List()
	out := make([]*corev1.ConfigMap, len(list))
	for i, o := range list {
		out[i] = o.(*corev1.ConfigMap)
	}
	slices.SortFunc(out, byName)
	return out
}

func byName(a, b *corev1.ConfigMap) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}
