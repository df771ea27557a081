package factory

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Ledger reads a plan's ledger and the archive of its older entries; nil if there is none yet.
func (k *Cluster) Ledger(ctx context.Context, cm *corev1.ConfigMap) (*ledger.Ledger, []ledger.Entry, error) {
	head, err := k.readLedger(ctx, cm, annotations.LedgerName(cm.Name, string(cm.UID)))
	if err != nil || head == nil {
		return nil, nil, err
	}
	archive, err := k.readLedger(ctx, cm, annotations.ArchiveName(cm.Name, string(cm.UID)))
	if err != nil {
		return nil, nil, err
	}
	var old []ledger.Entry
	if archive != nil {
		old = archive.Recent
	}
	return head, old, nil
}

func (k *Cluster) readLedger(ctx context.Context, cm *corev1.ConfigMap, name string) (*ledger.Ledger, error) {
	object, err := k.ConfigMaps(cm.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, k.ReadError("read the ledger of "+cm.Name, cm.Namespace, err)
	}
	l, err := annotations.ReadLedger(object, string(cm.UID))
	if err != nil {
		return nil, err
	}
	k.doubtLedger(ctx, object, &l)
	return &l, nil
}

// doubtLedger marks all actors in a ledger as unverified if the agent cannot have written it.
func (k *Cluster) doubtLedger(ctx context.Context, cm *corev1.ConfigMap, l *ledger.Ledger) {
	if verified := view.LedgerVerified(l); annotations.CheckForm(cm) != nil {
		view.Doubt(verified)
	} else {
		k.doubt(ctx, verified)
	}
}

// Ledgers are the ledgers of a namespace, by namespace/name.
func (k *Cluster) Ledgers(ctx context.Context, namespace string) (map[string]*ledger.Ledger, error) {
	list, err := k.ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindLedger})
	if err != nil {
		return nil, k.ReadError("list ledgers", namespace, err)
	}
	out := map[string]*ledger.Ledger{}
	for i := range list.Items {
		cm := &list.Items[i]
		if l, err := annotations.ReadLedger(cm, ownerUID(cm)); err == nil { // a foreign one is no ledger of these plans
			k.doubtLedger(ctx, cm, &l)
			out[cm.Namespace+"/"+cm.Name] = &l
		}
	}
	return out, nil
}

// LedgerOf is the ledger of a document among those of Ledgers, nil if it has none, and its closed
// entries, oldest first.
func LedgerOf(ledgers map[string]*ledger.Ledger, cm *corev1.ConfigMap) (head *ledger.Ledger, closed []ledger.Entry) {
	head = ledgers[cm.Namespace+"/"+annotations.LedgerName(cm.Name, string(cm.UID))]
	if old := ledgers[cm.Namespace+"/"+annotations.ArchiveName(cm.Name, string(cm.UID))]; old != nil {
		closed = old.Recent
	}
	if head != nil {
		closed = ledger.AppendArchive(closed, head.Recent)
	}
	return head, closed
}

// LeftBy finds an ended run of the namespace whose object is gone, and whose plan's ledger still
// names what it did not restore; nil: none.
func (k *Cluster) LeftBy(ctx context.Context, name string) (*view.Run, error) {
	list, err := k.ConfigMaps(k.Namespace).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindLedger})
	if err != nil {
		return nil, Explain("look for run "+name+" in the plans' ledgers", err)
	}
	for i := range list.Items {
		cm := &list.Items[i]
		l, err := annotations.ReadLedger(cm, ownerUID(cm))
		planName := cm.Labels[annotations.LabelPlan]
		if err != nil || cm.Name != annotations.LedgerName(planName, l.PlanUID) { // not the ledger of a plan
			continue
		}
		for _, candidate := range []string{name, runPrefix + name} {
			if slices.ContainsFunc(l.Left, func(o ledger.Leftover) bool { return o.Run == candidate }) {
				return &view.Run{Run: run.Run{Namespace: cm.Namespace, Name: candidate, Plan: planName, PlanUID: l.PlanUID}}, nil
			}
		}
	}
	return nil, nil
}

func ownerUID(cm *corev1.ConfigMap) string {
	for _, o := range cm.OwnerReferences {
		return string(o.UID)
	}
	return ""
}
