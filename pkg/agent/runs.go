package agent

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// liveRun is a run that has not ended, with the object it was read from.
type liveRun struct {
	object  *corev1.ConfigMap
	run     run.Run
	journal run.Journal
	broken  error // why it cannot be read; such a run is left alone and reported
}

func (l *liveRun) key() types.NamespacedName {
	return types.NamespacedName{Namespace: l.object.Namespace, Name: l.object.Name}
}

func (l *liveRun) planKey() types.NamespacedName {
	return types.NamespacedName{Namespace: l.object.Namespace, Name: l.object.Labels[annotations.LabelPlan]}
}

func (l *liveRun) live() trigger.Live { return trigger.LiveOf(l.run, l.journal) }

// runs are the live runs as last seen or last written by us, whichever is
// newer: the watch's echo of an older state never hides what we wrote.
type runs struct {
	mu     sync.Mutex
	byKey  map[types.NamespacedName]*liveRun
	byPlan map[types.NamespacedName]map[types.NamespacedName]bool
	ended  map[types.NamespacedName]uint64   // runs that we ended, until the watch has seen it too
	torn   map[types.NamespacedName]*liveRun // runs that vanished without us, until their entries are closed
	holds  *holds
	// recorded are those that stand as Running in the status of their plan.
	recorded map[types.NamespacedName]bool
	stuck    map[types.NamespacedName]string // what the API server refuses for good of what they would write
}

func newRuns() *runs {
	return &runs{byKey: map[types.NamespacedName]*liveRun{}, byPlan: map[types.NamespacedName]map[types.NamespacedName]bool{}, ended: map[types.NamespacedName]uint64{}, torn: map[types.NamespacedName]*liveRun{}, holds: newHolds(), recorded: map[types.NamespacedName]bool{}, stuck: map[types.NamespacedName]string{}}
}

func versionOf(cm *corev1.ConfigMap) uint64 { return informer.Version(cm.ResourceVersion) }

// saw takes in what the watch delivered, and says whether it is news.
func (r *runs) saw(cm *corev1.ConfigMap) bool {
	k := types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}
	r.mu.Lock()
	have, ended := r.byKey[k], r.ended[k]
	r.mu.Unlock()
	version := versionOf(cm)
	if version <= ended || have != nil && version <= versionOf(have.object) {
		return false
	}
	l := &liveRun{object: cm}
	l.run, l.journal, l.broken = annotations.ReadRun(cm)
	r.put(l)
	return true
}

// put stores a run unless a newer state is there.
func (r *runs) put(l *liveRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := l.key()
	if have := r.byKey[k]; have != nil && versionOf(have.object) > versionOf(l.object) {
		return
	}
	r.byKey[k] = l
	r.holds.saw(l)
	pk := l.planKey()
	if r.byPlan[pk] == nil {
		r.byPlan[pk] = map[types.NamespacedName]bool{}
	}
	r.byPlan[pk][k] = true
}

// drop forgets a run that ended, at a version below which echoes are ignored.
func (r *runs) drop(k types.NamespacedName, version uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ended) > 10000 { // those whose echo came before our own reply stay behind
		clear(r.ended)
	}
	if version > 0 {
		r.ended[k] = version
	}
	delete(r.torn, k)
	r.forget(k)
}

// gone is the watch's word that a run is no longer live. If we did not end it,
// it was torn away: from this moment on nobody may create it again.
func (r *runs) gone(k types.NamespacedName, version uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ended, k)
	if have := r.byKey[k]; have != nil && version >= versionOf(have.object) {
		r.tear(have)
	}
}

// vanished is a run whose object turned out not to be there.
func (r *runs) vanished(l *liveRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tear(l)
}

func (r *runs) tear(l *liveRun) {
	r.forget(l.key())
	r.torn[l.key()] = l
}

// tornOf are the runs of a plan that were torn away.
func (r *runs) tornOf(k types.NamespacedName) []*liveRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*liveRun
	for _, l := range r.torn {
		if l.planKey() == k {
			out = append(out, l)
		}
	}
	return out
}

func (r *runs) isTorn(k types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.torn[k] != nil
}

// mended forgets a torn run whose entry is closed.
func (r *runs) mended(k types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.torn, k)
}

func (r *runs) forget(k types.NamespacedName) {
	have := r.byKey[k]
	if have == nil {
		return
	}
	delete(r.byKey, k)
	delete(r.recorded, k)
	delete(r.stuck, k)
	pk := have.planKey()
	delete(r.byPlan[pk], k)
	if len(r.byPlan[pk]) == 0 {
		delete(r.byPlan, pk)
	}
}

// record notes that runs stand in the status of their plan, and gives those that
// did not before.
func (r *runs) record(running []*liveRun) []*liveRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	var news []*liveRun
	for _, l := range running {
		if k := l.key(); r.byKey[k] != nil && !r.recorded[k] {
			r.recorded[k] = true
			news = append(news, l)
		}
	}
	return news
}

// stick notes why a run cannot go on, empty where it can, and says whether that is news.
func (r *runs) stick(k types.NamespacedName, why string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stuck[k] == why {
		return false
	}
	if r.stuck[k] = why; why == "" {
		delete(r.stuck, k)
	}
	return true
}

// stuckOf says which of a plan's runs cannot go on, and why; empty where all can.
func (r *runs) stuckOf(k types.NamespacedName) string {
	for _, l := range r.ofPlan(k) {
		if l.broken != nil {
			return fmt.Sprintf("run %s cannot be read and is left alone: %s; mend its ConfigMap, or delete it and take its finalizer off, and its cleanup does not run", l.object.Name, l.broken)
		}
		r.mu.Lock()
		why := r.stuck[l.key()]
		r.mu.Unlock()
		if why != "" {
			return fmt.Sprintf("run %s cannot go on, since the API server refuses what it writes: %s", l.object.Name, why)
		}
	}
	return ""
}

func (r *runs) isRecorded(k types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recorded[k]
}

func (r *runs) get(k types.NamespacedName) *liveRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byKey[k]
}

// ofPlan are a plan's live runs, oldest request first.
func (r *runs) ofPlan(k types.NamespacedName) []*liveRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*liveRun
	for rk := range r.byPlan[k] {
		out = append(out, r.byKey[rk])
	}
	sortRuns(out)
	return out
}

// where are the live runs that a condition holds for.
func (r *runs) where(holds func(*liveRun) bool) []*liveRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*liveRun
	for _, l := range r.byKey {
		if holds(l) {
			out = append(out, l)
		}
	}
	sortRuns(out)
	return out
}
