package store

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/keys"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// EndedRun is what is kept of a run that has ended: who it is, and what decides how
// long it stays. There may be a hundred for each plan.
type EndedRun struct {
	Namespace, Name, Uid, Plan string
	version                    uint64
	Created                    int64 // seconds
	Succeeded, Deleting        bool
	DryRun                     bool
	Made                       bool // by the agent, as its signature says: only those are taken away
}

// GetObjectMeta is metav1.ObjectMetaAccessor's: a cache asks for it.
func (r *EndedRun) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name, UID: types.UID(r.Uid), ResourceVersion: strconv.FormatUint(r.version, 10)}
}

// NewestFirst orders runs by when they were made. Those of one second go by their last
// write, which was that of their end.
func NewestFirst(a, b *EndedRun) int {
	return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(b.version, a.version))
}

// SlimEndedRun keeps of an ended run what decides how long it stays.
func SlimEndedRun(signed *keys.Store) cache.TransformFunc {
	return func(o any) (any, error) {
		if m, ok := o.(*metav1.PartialObjectMetadata); ok {
			return endedRunOf(m, signed), nil
		}
		return o, nil
	}
}

func endedRunOf(m *metav1.PartialObjectMetadata, signed *keys.Store) *EndedRun {
	return &EndedRun{
		Made: signed.IsOurs(m), Namespace: m.Namespace, Name: m.Name, Uid: string(m.UID), Plan: m.Labels[annotations.LabelPlan], version: informer.Version(m.ResourceVersion),
		Created: m.CreationTimestamp.Unix(), Succeeded: m.Labels[annotations.LabelPhase] == string(run.Succeeded), Deleting: m.DeletionTimestamp != nil,
		DryRun: m.Annotations[annotations.StatusDryRun] == "true",
	}
}

// History are the ended runs by plan, as the watch shows them.
type History struct {
	mu   sync.Mutex
	Runs map[types.NamespacedName][]*EndedRun
}

// NewHistory has no runs.
func NewHistory() *History { return &History{Runs: map[types.NamespacedName][]*EndedRun{}} }

// Put takes in an ended run as the watch shows it.
func (h *History) Put(r *EndedRun) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := types.NamespacedName{Namespace: r.Namespace, Name: r.Plan}
	h.Runs[k] = append(h.without(k, r.Name), r)
}

// Drop forgets an ended run that is gone.
func (h *History) Drop(r *EndedRun) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := types.NamespacedName{Namespace: r.Namespace, Name: r.Plan}
	if h.Runs[k] = h.without(k, r.Name); len(h.Runs[k]) == 0 {
		delete(h.Runs, k)
	}
}

func (h *History) without(k types.NamespacedName, name string) []*EndedRun {
	return slices.DeleteFunc(h.Runs[k], func(r *EndedRun) bool { return r.Name == name })
}

// Of are a plan's ended runs.
func (h *History) Of(k types.NamespacedName) []*EndedRun {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.Runs[k])
}
