package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/keys"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

// How many ledgers are held in memory, and how much they weigh; the rest is read again when
// it is needed (guesses: 2,000 heads of some kilobytes). The one that was used last stays,
// however heavy it is.
const (
	maxHeld       = 2000
	maxHeldWeight = 24 << 20
	perEntry      = 600 // bytes that an entry takes beside its texts
	perParameter  = 50  // bytes that a parameter of a claim takes beside its texts
)

// Ledgers reads and writes the plans' ledgers. What it holds in memory is what
// it last read or wrote itself while the fence stood; a write by anybody else
// shows as a conflict, and the reading begins anew.
//
// One that the agent has not signed counts as lost: anybody who may write ConfigMaps in
// a namespace can write one.
type Ledgers struct {
	kube kube.Interface
	keys *keys.Store
	// forged hears of each ledger that does not count, or that a plan had and is gone.
	forged func(pk types.NamespacedName, why error)

	mu     sync.Mutex // of what follows; never taken before that of a ledger is, and kept for no request
	held   *lru.LRU[ledgerKey, *heldLedger]
	weight int // of all that are held
}

// NewLedgers has read none. forged hears of each that does not count, or is gone.
func NewLedgers(kube kube.Interface, signed *keys.Store, forged func(pk types.NamespacedName, why error)) *Ledgers {
	l := &Ledgers{kube: kube, keys: signed, forged: forged}
	l.held, _ = lru.NewLRU(maxHeld, func(_ ledgerKey, gone *heldLedger) { l.weight -= gone.weight }) // its error is for limits below one
	return l
}

// ledgerKey is the plan of a ledger. Its UID alone would let an object of another
// namespace that names it come to this ledger.
type ledgerKey struct {
	plan types.NamespacedName
	uid  string
}

type heldLedger struct {
	mu     sync.Mutex // one writer at a time per ledger: the plan's and its runs' workers
	object *corev1.ConfigMap
	ledger ledger.Ledger
	read   bool
	lost   bool        // the object is there, and is none that the agent has signed
	stale  atomic.Bool // what was read is gone: set without waiting for a writer
	weight int         // as it was counted, under the mutex of all
}

func (l *Ledgers) of(k ledgerKey) *heldLedger {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h, had := l.held.Get(k); had {
		return h
	}
	fresh := &heldLedger{}
	l.held.Add(k, fresh)
	return fresh
}

// weigh counts what a ledger weighs now, and lets others go for it. One that was let go
// while it was at work is not counted: nobody comes to it again.
func (l *Ledgers) weigh(k ledgerKey, h *heldLedger, weight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now, have := l.held.Get(k); !have || now != h {
		return
	}
	l.weight += weight - h.weight
	h.weight = weight
	for l.weight > maxHeldWeight && l.held.Len() > 1 {
		l.held.RemoveOldest()
	}
}

// weightOf is about how much memory a ledger takes as it was read from a text.
func weightOf(text string, led ledger.Ledger) int {
	sum := len(text) + perEntry*(len(led.Open)+len(led.Recent)+len(led.Tokens)+len(led.Labels)+len(led.Seen)+len(led.Left)+len(led.Schedules)+len(led.Rules))
	for i := range led.Open {
		e := &led.Open[i]
		if e.Spec != nil { // rare, and as heavy as it likes
			return WeightOf(text)
		}
		if e.Request != nil {
			sum += perParameter * len(e.Request.Parameters)
		}
	}
	for i := range led.Recent {
		sum += perEntry * len(led.Recent[i].Slept)
	}
	return sum
}

// Forget drops everything held, as a new leader does.
func (l *Ledgers) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held.Purge()
}

// Invalidate has a plan's ledger read again before it is used next.
func (l *Ledgers) Invalidate(pk types.NamespacedName, uid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h, have := l.held.Peek(ledgerKey{pk, uid}); have {
		h.stale.Store(true)
	}
}

// Get is a plan's ledger, or nil where it has none yet.
func (l *Ledgers) Get(ctx context.Context, pk types.NamespacedName, uid string) (*ledger.Ledger, error) {
	h := l.of(ledgerKey{pk, uid})
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := l.load(ctx, h, pk, uid); err != nil || !h.there() {
		return nil, err
	}
	out := h.ledger
	return &out, nil
}

// Lost says whether a plan's ledger is there and does not count.
func (l *Ledgers) Lost(ctx context.Context, pk types.NamespacedName, uid string) (bool, error) {
	h := l.of(ledgerKey{pk, uid})
	h.mu.Lock()
	defer h.mu.Unlock()
	err := l.load(ctx, h, pk, uid)
	return err == nil && h.lost, err
}

// there says whether there is a ledger that counts.
func (h *heldLedger) there() bool { return h.object != nil && !h.lost }

func (l *Ledgers) load(ctx context.Context, h *heldLedger, pk types.NamespacedName, uid string) error {
	if h.stale.Swap(false) {
		h.read = false
	}
	if h.read {
		return nil
	}
	cm, err := l.kube.CoreV1().ConfigMaps(pk.Namespace).Get(ctx, annotations.LedgerName(pk.Name, uid), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		h.object, h.read, h.lost = nil, true, false
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the ledger of plan %s: %w", pk, err)
	}
	if forged := l.keys.CheckKind(cm, annotations.KindLedger); forged != nil {
		l.forged(pk, forged)
		cm.ManagedFields, cm.Data, cm.BinaryData = nil, nil, nil // nothing of it counts
		h.object, h.ledger, h.read, h.lost = cm, ledger.Ledger{}, true, true
		return nil
	}
	led, err := annotations.ReadLedger(cm, uid)
	if err != nil {
		return err
	}
	if !led.IsOlder(h.ledger) {
		l.hold(ledgerKey{pk, uid}, h, cm, led)
		return nil
	}
	h.object, h.lost = cm, false // it is written at once: a new leader knows no other
	if err := l.store(ctx, h, pk, h.ledger.WithPast(led)); err != nil {
		return err
	}
	l.forged(pk, ledger.ErrOlder)
	return nil
}

// hold keeps a ledger as it was read or written.
func (l *Ledgers) hold(k ledgerKey, h *heldLedger, cm *corev1.ConfigMap, led ledger.Ledger) {
	l.weigh(k, h, weightOf(cm.Data[annotations.DataLedger], led))
	cm.ManagedFields, cm.Data = nil, nil // the next write makes the text anew
	h.object, h.ledger, h.read, h.lost = cm, led, true, false
}

// Edit reads, changes and writes a ledger in one piece. When somebody else wrote
// it meanwhile, it is read again and the change is made anew, at most three times.
func (l *Ledgers) Edit(ctx context.Context, pk types.NamespacedName, uid string, change func(ledger.Ledger) ledger.Ledger) error {
	h := l.of(ledgerKey{pk, uid})
	h.mu.Lock()
	defer h.mu.Unlock()
	for range 3 {
		if err := l.load(ctx, h, pk, uid); err != nil {
			return err
		}
		if !h.there() {
			return nil // the ledger went with its plan: there is nothing to close
		}
		err := l.store(ctx, h, pk, change(h.ledger))
		if !errors.Is(err, queue.ErrConflict) {
			return err
		}
	}
	return queue.ErrConflict
}

// Put writes a ledger that was decided on the one that Get gave. It fails with
// queue.ErrConflict when that one is no longer the newest.
func (l *Ledgers) Put(ctx context.Context, pk types.NamespacedName, uid string, was *ledger.Ledger, now ledger.Ledger) error {
	h := l.of(ledgerKey{pk, uid})
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := l.load(ctx, h, pk, uid); err != nil {
		return err
	}
	if (was == nil) == h.there() || was != nil && !was.Same(h.ledger) {
		return queue.ErrConflict
	}
	gone := h.object == nil && now.BegunAnew != nil
	if err := l.store(ctx, h, pk, now); err != nil || !gone {
		return err
	}
	l.forged(pk, ledger.ErrGone)
	return nil
}

// store writes the archive first, then the head: entries that stand in both
// after a crash are told apart by reading, entries that stand in neither would
// be lost.
func (l *Ledgers) store(ctx context.Context, h *heldLedger, pk types.NamespacedName, led ledger.Ledger) error {
	led.Writes = max(led.Writes, h.ledger.Writes) + 1
	led, batch := led.Overflow()
	if len(batch) > 0 {
		if err := l.archive(ctx, pk, led.PlanUID, batch); err != nil {
			return err
		}
	}
	cm, err := l.write(ctx, h, pk, led)
	if err != nil {
		h.read = false // the reply may have been lost: what is there must be read
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
			return queue.ErrConflict
		}
		return fmt.Errorf("write the ledger of plan %s: %w", pk, err)
	}
	l.hold(ledgerKey{pk, led.PlanUID}, h, cm, led)
	return nil
}

// write writes a ledger over the one that is held. Of one that does not count nothing
// stays.
func (l *Ledgers) write(ctx context.Context, h *heldLedger, pk types.NamespacedName, led ledger.Ledger) (*corev1.ConfigMap, error) {
	cm, err := annotations.LedgerObject(pk.Namespace, pk.Name, led)
	if h.there() {
		cm, err = annotations.WithLedger(h.object, led)
	}
	if err != nil {
		return nil, err
	}
	return l.replace(ctx, h.object, cm)
}

// replace signs an object and writes it in place of the one that was read; nil: there is
// none.
func (l *Ledgers) replace(ctx context.Context, was, now *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	if err := l.keys.Sign(now); err != nil {
		return nil, err
	}
	maps := l.kube.CoreV1().ConfigMaps(now.Namespace)
	if was == nil {
		return maps.Create(ctx, now, client.CreateOptions())
	}
	now.UID, now.ResourceVersion = was.UID, was.ResourceVersion
	return maps.Update(ctx, now, client.UpdateOptions())
}

// Archived are the entries of a plan that are in its archive, where that counts.
func (l *Ledgers) Archived(ctx context.Context, pk types.NamespacedName, uid string) ([]ledger.Entry, error) {
	_, entries, err := l.readArchive(ctx, pk, uid)
	if err != nil {
		return nil, fmt.Errorf("read archived entries of plan %s: %w", pk, err)
	}
	return entries, nil
}

// readArchive reads a plan's archive. Of one that does not count only the object is given; nil: there
// is none.
func (l *Ledgers) readArchive(ctx context.Context, pk types.NamespacedName, uid string) (*corev1.ConfigMap, []ledger.Entry, error) {
	have, err := l.kube.CoreV1().ConfigMaps(pk.Namespace).Get(ctx, annotations.ArchiveName(pk.Name, uid), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	case l.keys.CheckKind(have, annotations.KindLedger) != nil:
		return have, nil, nil
	}
	old, err := annotations.ReadLedger(have, uid)
	return have, old.Recent, err
}

func (l *Ledgers) archive(ctx context.Context, pk types.NamespacedName, uid string, batch []ledger.Entry) error {
	have, old, err := l.readArchive(ctx, pk, uid)
	var cm *corev1.ConfigMap
	if err == nil {
		cm, err = annotations.ArchiveObject(pk.Namespace, pk.Name, uid, ledger.AppendArchive(old, batch))
	}
	if err == nil {
		_, err = l.replace(ctx, have, cm)
	}
	if err != nil {
		return fmt.Errorf("archive entries of plan %s: %w", pk, err)
	}
	return nil
}
