package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

// maxHeld is how many ledgers are held in memory; the rest is read again when
// it is needed (a guess: 2,000 heads of some kilobytes).
const maxHeld = 2000

// Ledgers reads and writes the plans' ledgers. What it holds in memory is what
// it last read or wrote itself while the fence stood; a write by anybody else
// shows as a conflict, and the reading begins anew.
type Ledgers struct {
	kube kubernetes.Interface

	held *lru.Cache[ledgerKey, *heldLedger]
}

// NewLedgers has read none.
func NewLedgers(kube kubernetes.Interface) *Ledgers {
	held, _ := lru.New[ledgerKey, *heldLedger](maxHeld) // its error is for limits below one
	return &Ledgers{kube: kube, held: held}
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
	stale  atomic.Bool // what was read is gone: set without waiting for a writer
}

func (l *Ledgers) of(k ledgerKey) *heldLedger {
	fresh := &heldLedger{}
	if h, had, _ := l.held.PeekOrAdd(k, fresh); had {
		l.held.Get(k) // it was used just now
		return h
	}
	return fresh
}

// Forget drops everything held, as a new leader does.
func (l *Ledgers) Forget() {
	l.held.Purge()
}

// Doubt has a plan's ledger read again before it is used next.
func (l *Ledgers) Doubt(pk types.NamespacedName, uid string) {
	if h, have := l.held.Peek(ledgerKey{pk, uid}); have {
		h.stale.Store(true)
	}
}

// Get is a plan's ledger, or nil where it has none yet.
func (l *Ledgers) Get(ctx context.Context, pk types.NamespacedName, uid string) (*ledger.Ledger, error) {
	h := l.of(ledgerKey{pk, uid})
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := l.load(ctx, h, pk, uid); err != nil || h.object == nil {
		return nil, err
	}
	out := h.ledger
	return &out, nil
}

func (l *Ledgers) load(ctx context.Context, h *heldLedger, pk types.NamespacedName, uid string) error {
	if h.stale.Swap(false) {
		h.read = false
	}
	if h.read {
		return nil
	}
	cm, err := l.kube.CoreV1().ConfigMaps(pk.Namespace).Get(ctx, annotations.LedgerName(pk.Name, uid), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		h.object, h.read = nil, true
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the ledger of plan %s: %w", pk, err)
	}
	ledger, err := annotations.ReadLedger(cm, uid)
	if err != nil {
		return err
	}
	cm.ManagedFields, cm.Data = nil, nil // the next write makes the text anew
	h.object, h.ledger, h.read = cm, ledger, true
	return nil
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
		if h.object == nil {
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
	if (was == nil) != (h.object == nil) || was != nil && !sameLedger(*was, h.ledger) {
		return queue.ErrConflict
	}
	return l.store(ctx, h, pk, now)
}

// sameLedger compares what every write changes at one of.
func sameLedger(a, b ledger.Ledger) bool {
	if len(a.Open) != len(b.Open) || len(a.Recent) != len(b.Recent) || !a.Watermark.Equal(b.Watermark) || len(a.Tokens) != len(b.Tokens) ||
		len(a.Rules) != len(b.Rules) || len(a.Seen) != len(b.Seen) || len(a.Left) != len(b.Left) || a.Shards != b.Shards {
		return false
	}
	for i := range a.Open {
		if a.Open[i].Run != b.Open[i].Run || a.Open[i].Refused != b.Open[i].Refused {
			return false
		}
	}
	for r, n := range a.Totals {
		if b.Totals[r] != n {
			return false
		}
	}
	return a.Created == b.Created && a.TargetReady == b.TargetReady
}

// store writes the archive first, then the head: entries that stand in both
// after a crash are told apart by reading, entries that stand in neither would
// be lost.
func (l *Ledgers) store(ctx context.Context, h *heldLedger, pk types.NamespacedName, led ledger.Ledger) error {
	led, batch := led.Overflow()
	if len(batch) > 0 {
		if err := l.archive(ctx, pk, led.PlanUID, batch); err != nil {
			return err
		}
	}
	var cm *corev1.ConfigMap
	var err error
	if h.object == nil {
		if cm, err = annotations.LedgerObject(pk.Namespace, pk.Name, led); err == nil {
			cm, err = l.kube.CoreV1().ConfigMaps(pk.Namespace).Create(ctx, cm, client.CreateOptions())
		}
	} else if cm, err = annotations.WithLedger(h.object, led); err == nil {
		cm, err = l.kube.CoreV1().ConfigMaps(pk.Namespace).Update(ctx, cm, client.UpdateOptions())
	}
	if err != nil {
		h.read = false // the reply may have been lost: what is there must be read
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
			return queue.ErrConflict
		}
		return fmt.Errorf("write the ledger of plan %s: %w", pk, err)
	}
	cm.ManagedFields, cm.Data = nil, nil // the next write makes the text anew
	h.object, h.ledger, h.read = cm, led, true
	return nil
}

func (l *Ledgers) archive(ctx context.Context, pk types.NamespacedName, uid string, batch []ledger.Entry) error {
	maps := l.kube.CoreV1().ConfigMaps(pk.Namespace)
	cm, err := maps.Get(ctx, annotations.ArchiveName(pk.Name, uid), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if cm, err = annotations.ArchiveObject(pk.Namespace, pk.Name, uid, batch); err == nil {
			_, err = maps.Create(ctx, cm, client.CreateOptions())
		}
	case err == nil:
		var old ledger.Ledger
		if old, err = annotations.ReadLedger(cm, uid); err == nil {
			old.Recent = ledger.AppendArchive(old.Recent, batch)
			if cm, err = annotations.WithLedger(cm, old); err == nil {
				_, err = maps.Update(ctx, cm, client.UpdateOptions())
			}
		}
	}
	if err != nil {
		return fmt.Errorf("archive entries of plan %s: %w", pk, err)
	}
	return nil
}
