package hibernation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/keys"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/savings"
)

// records is the restore data of all plans, as last seen or last written by us, whichever
// is newer.
type records struct {
	kube kube.Interface
	keys *keys.Store

	mu     sync.Mutex
	byKey  map[types.NamespacedName]*stored
	closed map[types.NamespacedName]uint64 // versions up to which what the watch shows is gone
	types  map[string]int                  // how many sleep, by the type of their target
	begins map[types.NamespacedName]int    // room that is kept for plans that begin to sleep, in bytes
	most   int                             // how many bytes one namespace may have
	specs  *store.Parsed[hibernate.Spec]   // the plans in it, by their digests
	last   map[types.NamespacedName]lastSleep
}

// stored is restore data with the object that it was read from.
type stored struct {
	object *corev1.ConfigMap
	record hibernate.Record     // as it is kept, without its plan
	plan   types.NamespacedName // names its plan by what it says
	weight int                  // of its plan
	broken error                // why it does not count
	over   bool                 // its sleep is in the ledger as ended, and all of it is awake
}

// immutable says whether somebody saw to it that nothing can be written into it any more.
func (s *stored) immutable() bool { return s.object.Immutable != nil && *s.object.Immutable }

func newRecords(kube kube.Interface, signed *keys.Store) *records {
	return &records{kube: kube, keys: signed, byKey: map[types.NamespacedName]*stored{}, closed: map[types.NamespacedName]uint64{}, types: map[string]int{}, begins: map[types.NamespacedName]int{}, last: map[types.NamespacedName]lastSleep{}, most: mostRestore, specs: store.NewParsed[hibernate.Spec](maxParsed, maxParsedWeight).KeepHeavy()}
}

func keyOf(cm *corev1.ConfigMap) types.NamespacedName {
	return types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}
}

func (r *records) read(cm *corev1.ConfigMap) *stored {
	s := &stored{object: cm}
	if s.broken = r.keys.Check(cm); s.broken == nil {
		s.record, s.broken = annotations.ReadRestore(cm)
	}
	return s.digested()
}

// digested names the plan in restore data.
func (s *stored) digested() *stored {
	if s.broken == nil {
		text := specIn(s.object)
		sum := sha256.Sum256(text)
		s.plan = types.NamespacedName{Namespace: s.object.Namespace, Name: hex.EncodeToString(sum[:])}
		s.weight = store.WeightOf(string(text))
	}
	return s
}

func (r *records) observe(cm *corev1.ConfigMap) {
	r.put(r.read(cm))
}

// put keeps what is newer than what is held.
func (r *records) put(s *stored) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, version := keyOf(s.object), informer.VersionOf(s.object)
	if have := r.byKey[k]; version <= r.closed[k] || have != nil && version < informer.VersionOf(have.object) {
		return
	}
	r.keep(s)
}

// keep holds restore data, and the plan in it apart: the targets of a plan share it, and what
// has not been looked at for long is read again from the text. Its caller holds the lock.
func (r *records) keep(s *stored) {
	out := *s
	if s.broken == nil {
		r.specs.Keep(s.plan, s.weight, s.record.Snapshot.Spec)
		out.record.Snapshot.Spec = hibernate.Spec{}
	}
	r.byKey[keyOf(s.object)] = &out
}

// specIn is the text of the plan in restore data.
func specIn(cm *corev1.ConfigMap) json.RawMessage {
	var found struct {
		Snapshot struct {
			Spec json.RawMessage `json:"spec"`
		} `json:"snapshot"`
	}
	if json.Unmarshal([]byte(cm.Data[annotations.DataRestore]), &found) != nil {
		return nil
	}
	return found.Snapshot.Spec
}

// whole is restore data with the plan in it.
func (r *records) whole(kept *stored) *stored {
	if kept == nil || kept.broken != nil {
		return kept
	}
	s := *kept
	r.mu.Lock()
	spec, there := r.specs.Get(s.plan)
	s.over, s.broken = r.sleepOver(&s)
	r.mu.Unlock()
	if s.broken != nil {
		return &s
	}
	if !there {
		spec = r.specs.Read(s.weight, func() (spec hibernate.Spec) {
			s.broken = json.Unmarshal(specIn(s.object), &spec)
			return spec
		})
		if s.broken != nil {
			return &s
		}
		r.mu.Lock()
		r.specs.Keep(s.plan, s.weight, spec)
		r.mu.Unlock()
	}
	s.record.Snapshot.Spec = spec
	return &s
}

func (r *records) lost(cm *corev1.ConfigMap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := keyOf(cm)
	if have := r.byKey[k]; have != nil && informer.VersionOf(have.object) <= informer.VersionOf(cm) {
		delete(r.byKey, k)
	}
	delete(r.closed, k)
}

func (r *records) recheck() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.byKey {
		r.keep(r.read(s.object))
	}
}

// of is the restore data of a plan, by the name of its object.
func (r *records) of(plan types.NamespacedName) []*stored { return r.named(plan, false) }

// copies are those of restore data that somebody deletes.
func (r *records) copies(plan types.NamespacedName) []*stored { return r.named(plan, true) }

// onlyCopied says whether there is a copy of restore data that is not written anew yet.
func (r *records) onlyCopied(plan types.NamespacedName) bool {
	return slices.ContainsFunc(r.copies(plan), func(s *stored) bool { return s.broken == nil && r.find(plan.Namespace, s.record) == nil })
}

func (r *records) named(plan types.NamespacedName, copies bool) []*stored {
	r.mu.Lock()
	var out []*stored
	for k, s := range r.byKey {
		if k.Namespace == plan.Namespace && s.object.Labels[annotations.LabelPlan] == plan.Name && annotations.RestoreCopy(k.Name) == copies {
			out = append(out, s)
		}
	}
	r.mu.Unlock()
	for i := range out {
		out[i] = r.whole(out[i])
	}
	slices.SortFunc(out, func(a, b *stored) int { return compare(a.object.Name, b.object.Name) })
	return out
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// plans are those that have restore data.
func (r *records) plans() []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[types.NamespacedName]bool{}
	for k, s := range r.byKey {
		seen[types.NamespacedName{Namespace: k.Namespace, Name: s.object.Labels[annotations.LabelPlan]}] = true
	}
	out := make([]types.NamespacedName, 0, len(seen))
	for k := range seen {
		out = append(out, k)
	}
	return out
}

// sleeping is how many resources sleep, by the type of their target. A type that had any
// stays with none.
func (r *records) sleeping() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for executor := range r.types {
		r.types[executor] = 0
	}
	for _, s := range r.byKey {
		if s.broken == nil && !annotations.RestoreCopy(s.object.Name) {
			r.types[s.record.Executor] += s.record.Asleep()
		}
	}
	return maps.Clone(r.types)
}

// slept are the sleeps that there are now, with how long resources slept in each.
func (r *records) slept(now time.Time) []savings.Sleep {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []savings.Sleep
	for _, s := range r.byKey {
		if s.broken == nil && !annotations.RestoreCopy(s.object.Name) {
			if slept := savings.SleptIn([]hibernate.Record{s.record}, now); len(slept) > 0 {
				out = append(out, savings.Sleep{Namespace: s.object.Namespace, Plan: s.record.Plan, Began: s.record.Snapshot.BeganAt, Ended: now, Slept: slept})
			}
		}
	}
	return out
}

// among is the restore data of a name; nil: there was none.
func among(all []*stored, name string) *stored {
	for _, s := range all {
		if s.object.Name == name {
			return s
		}
	}
	return nil
}

// find is the restore data of a target; nil where there is none.
func (r *records) find(namespace string, record hibernate.Record) *stored {
	return r.get(types.NamespacedName{Namespace: namespace, Name: annotations.RestoreName(record.Plan, record.Target)})
}

func (r *records) get(k types.NamespacedName) *stored {
	r.mu.Lock()
	kept := r.byKey[k]
	r.mu.Unlock()
	return r.whole(kept)
}

// write stores a record on top of the restore data that it was made from; nil: there was none.
// Whoever was first wins. What was written is what the next record is made from.
func (r *records) write(ctx context.Context, namespace string, from *stored, record hibernate.Record) (*stored, error) {
	return r.writeAs(ctx, types.NamespacedName{Namespace: namespace, Name: annotations.RestoreName(record.Plan, record.Target)}, from, record)
}

// copy stores what restore data holds under the name of its copy.
func (r *records) copy(ctx context.Context, s *stored) error {
	k := types.NamespacedName{Namespace: s.object.Namespace, Name: annotations.RestoreCopyName(s.record.Plan, s.record.Target)}
	have := r.get(k)
	if have != nil && have.broken == nil && reflect.DeepEqual(have.record, s.record) {
		return nil
	}
	if have != nil && have.broken == nil && have.immutable() {
		if err := r.close(ctx, have); err != nil {
			return err
		}
		have = nil
	}
	_, err := r.writeAs(ctx, k, have, s.record)
	return err
}

// errTaken is an object of the name of restore data that does not count.
var errTaken = errors.New("is not written over") //nolint:gochecknoglobals // a sentinel for errors.Is

// writeAs writes nothing over what does not count: that may be all that is known of what
// sleeps. No watch shows whether an object that is none of restore data is still there.
func (r *records) writeAs(ctx context.Context, k types.NamespacedName, from *stored, record hibernate.Record) (*stored, error) {
	if have := r.get(k); have != nil && have.broken != nil {
		if err := r.reread(ctx, k, have); !errors.Is(err, queue.ErrConflict) {
			return nil, err
		}
		if have = r.get(k); have != nil && have.broken != nil {
			return nil, fmt.Errorf("restore data %s %w: %w", k, errTaken, have.broken)
		}
	}
	maps := r.kube.CoreV1().ConfigMaps(k.Namespace)
	var object *corev1.ConfigMap
	var err error
	if from == nil {
		object, err = annotations.RestoreObject(k.Namespace, record)
	} else {
		object, err = annotations.WithRestore(from.object, record)
	}
	if err != nil {
		return nil, err
	}
	object.Name = k.Name
	if err := r.keys.Sign(object); err != nil {
		return nil, err
	}
	var got *corev1.ConfigMap
	if from == nil {
		got, err = maps.Create(ctx, object, client.CreateOptions())
	} else {
		got, err = maps.Update(ctx, object, client.UpdateOptions())
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) && from != nil {
		return nil, r.reread(ctx, k, from)
	}
	if err != nil {
		return nil, fmt.Errorf("write restore data %s: %w", k, err)
	}
	got.ManagedFields = nil
	written := (&stored{object: got, record: record}).digested()
	r.put(written)
	return written, nil
}

// hold keeps a record in memory that could not be written on top of the restore data that it was
// made from, as long as that is what stands there.
func (r *records) hold(ctx context.Context, from *stored, record hibernate.Record) (*stored, error) {
	k := keyOf(from.object)
	live, err := r.kube.CoreV1().ConfigMaps(k.Namespace).Get(ctx, k.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read restore data %s: %w", k, err)
	}
	if live.UID != from.object.UID || live.ResourceVersion != from.object.ResourceVersion {
		r.observe(live)
		return nil, queue.ErrConflict
	}
	held := (&stored{object: from.object, record: record}).digested()
	r.put(held)
	return held, nil
}

// reread takes in what somebody else wrote.
func (r *records) reread(ctx context.Context, k types.NamespacedName, have *stored) error {
	cm, err := r.kube.CoreV1().ConfigMaps(k.Namespace).Get(ctx, k.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if have != nil {
			r.lost(have.object)
		}
	case err != nil:
		return fmt.Errorf("read restore data %s: %w", k, err)
	default:
		r.observe(cm)
	}
	return queue.ErrConflict
}

// objectOf is a copy of restore data to write on; of what was emptied it is read.
func (r *records) objectOf(ctx context.Context, cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	if !annotations.IsEmptied(cm) {
		return cm.DeepCopy(), nil
	}
	live, err := r.kube.CoreV1().ConfigMaps(cm.Namespace).Get(ctx, cm.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return cm.DeepCopy(), nil // and so is the write
	case err != nil:
		return nil, fmt.Errorf("read restore data %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	return live, nil
}

// uncounted is how much of a namespace's restore data does not count.
func (r *records) uncounted(namespace string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for k, s := range r.byKey {
		if k.Namespace == namespace && s.broken != nil && annotations.IsEmptied(s.object) {
			n++
		}
	}
	return n
}

// close takes restore data away that has served: its finalizer first, so that nothing of
// it stays where somebody deleted it already.
func (r *records) close(ctx context.Context, s *stored) error {
	maps := r.kube.CoreV1().ConfigMaps(s.object.Namespace)
	object, err := r.objectOf(ctx, s.object)
	if err != nil {
		return err
	}
	object.Finalizers = slices.DeleteFunc(object.Finalizers, func(f string) bool { return f == annotations.RestoreFinalizer })
	got, err := maps.Update(ctx, object, client.UpdateOptions())
	if apierrors.IsConflict(err) {
		return r.reread(ctx, keyOf(object), s)
	}
	if err == nil && got.DeletionTimestamp == nil {
		err = maps.Delete(ctx, object.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &object.UID}})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("take restore data %s/%s away: %w", object.Namespace, object.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k := keyOf(object)
	if got != nil {
		r.closed[k] = max(r.closed[k], informer.VersionOf(got), informer.VersionOf(object))
	}
	delete(r.byKey, k)
	return nil
}
