package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// retention is how long ended runs are kept where the configuration says nothing.
const retention = 30 * 24 * time.Hour

// prune deletes the ended runs of a plan beyond its limits and its age, the
// oldest first. The ledger remembers them all the same.
func (a *Agent) prune(ctx context.Context, k types.NamespacedName, uid string, spec plan.Spec) error {
	var good, bad []*retiredRun
	for _, r := range a.history.of(k) {
		switch {
		case r.deleting:
		case r.succeeded:
			good = append(good, r)
		default:
			bad = append(bad, r)
		}
	}
	keep := a.config.Spec().Retention.Runs.Or(retention)
	for _, r := range append(a.beyond(good, *spec.SuccessfulRunsHistoryLimit, keep), a.beyond(bad, *spec.FailedRunsHistoryLimit, keep)...) {
		if err := a.deleteRun(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// beyond are the runs past a limit or too old, by creation.
func (a *Agent) beyond(runs []*retiredRun, limit int, keep time.Duration) []*retiredRun {
	slices.SortFunc(runs, func(x, y *retiredRun) int { return cmp.Compare(y.created, x.created) })
	var out []*retiredRun
	for i, r := range runs {
		if i >= limit || a.now().Sub(time.Unix(r.created, 0)) > keep {
			out = append(out, r)
		}
	}
	return out
}

func (a *Agent) deleteRun(ctx context.Context, r *retiredRun) error {
	uid := types.UID(r.uid)
	err := a.kube.CoreV1().ConfigMaps(r.namespace).Delete(ctx, r.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete the ended run %s/%s: %w", r.namespace, r.name, err)
	}
	return nil
}

// retiredRun is what is kept of a run that has ended: who it is, and what decides how
// long it stays. There may be a hundred for each plan.
type retiredRun struct {
	namespace, name, uid, plan string
	version                    uint64
	created                    int64 // seconds
	succeeded, deleting        bool
}

// GetObjectMeta is metav1.ObjectMetaAccessor's: a cache asks for it.
func (r *retiredRun) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.namespace, Name: r.name, UID: types.UID(r.uid), ResourceVersion: strconv.FormatUint(r.version, 10)}
}

func slimEnded(o any) (any, error) {
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return o, nil
	}
	return &retiredRun{
		namespace: m.Namespace, name: m.Name, uid: string(m.UID), plan: m.Labels[annotations.LabelPlan], version: informer.Version(m.ResourceVersion),
		created: m.CreationTimestamp.Unix(), succeeded: m.Labels[annotations.LabelPhase] == string(run.RunSucceeded), deleting: m.DeletionTimestamp != nil,
	}, nil
}

// history are the ended runs by plan, as the watch shows them.
type history struct {
	mu   sync.Mutex
	runs map[types.NamespacedName][]*retiredRun
}

func newHistory() *history { return &history{runs: map[types.NamespacedName][]*retiredRun{}} }

func (h *history) put(r *retiredRun) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := types.NamespacedName{Namespace: r.namespace, Name: r.plan}
	h.runs[k] = append(h.without(k, r.name), r)
}

func (h *history) drop(r *retiredRun) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := types.NamespacedName{Namespace: r.namespace, Name: r.plan}
	if h.runs[k] = h.without(k, r.name); len(h.runs[k]) == 0 {
		delete(h.runs, k)
	}
}

func (h *history) without(k types.NamespacedName, name string) []*retiredRun {
	return slices.DeleteFunc(h.runs[k], func(r *retiredRun) bool { return r.name == name })
}

// of are a plan's ended runs.
func (h *history) of(k types.NamespacedName) []*retiredRun {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.runs[k])
}
