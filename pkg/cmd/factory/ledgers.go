package factory

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Ledger reads a plan's ledger with the archive of its older entries. If one of them cannot be read,
// that is an error.
func (k *Cluster) Ledger(ctx context.Context, cm *corev1.ConfigMap) (view.Ledger, error) {
	all := Ledgers{k: k, objects: map[types.NamespacedName]*corev1.ConfigMap{}}
	for _, name := range ledgerNames(cm) {
		object, err := k.ConfigMaps(cm.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			break // there is no archive without a ledger
		}
		if err != nil {
			return view.Ledger{}, k.ReadError("read the ledger of "+cm.Name, cm.Namespace, err)
		}
		all.objects[name] = object
	}
	out := all.Of(ctx, cm)
	if out.Unread != nil {
		return view.Ledger{}, out.Unread
	}
	return out, nil
}

// ledgerNames are the names of a plan's ledger, and of the archive of its older entries.
func ledgerNames(cm *corev1.ConfigMap) [2]types.NamespacedName {
	return [2]types.NamespacedName{
		{Namespace: cm.Namespace, Name: annotations.LedgerName(cm.Name, string(cm.UID))},
		{Namespace: cm.Namespace, Name: annotations.ArchiveName(cm.Name, string(cm.UID))},
	}
}

// Ledgers are the ledgers of a namespace, or of all, with their archives.
type Ledgers struct {
	k       *Cluster
	objects map[types.NamespacedName]*corev1.ConfigMap
}

// Ledgers lists them. One that cannot be read is no error: Of says so of its plan.
func (k *Cluster) Ledgers(ctx context.Context, namespace string) (Ledgers, error) {
	list, err := k.listLedgers(ctx, namespace)
	if err != nil {
		return Ledgers{}, k.ReadError("list ledgers", namespace, err)
	}
	out := Ledgers{k: k, objects: map[types.NamespacedName]*corev1.ConfigMap{}}
	for i := range list {
		out.objects[types.NamespacedName{Namespace: list[i].Namespace, Name: list[i].Name}] = &list[i]
	}
	return out, nil
}

func (k *Cluster) listLedgers(ctx context.Context, namespace string) ([]corev1.ConfigMap, error) {
	list, err := k.ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindLedger})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Of is what is known of the ledger of a plan of either kind.
func (l Ledgers) Of(ctx context.Context, cm *corev1.ConfigMap) view.Ledger {
	var out view.Ledger
	var parts [2]*ledger.Ledger
	for i, name := range ledgerNames(cm) {
		object, there := l.objects[name]
		if !there {
			continue
		}
		part, doubt, err := l.k.readLedger(ctx, object, string(cm.UID))
		if err != nil {
			out.Unread = cmp.Or(out.Unread, err)
			continue
		}
		parts[i], out.Doubt = part, cmp.Or(out.Doubt, doubt)
	}
	if out.Head = parts[0]; parts[1] != nil {
		out.Closed = parts[1].Recent
	}
	if out.Head != nil {
		out.Closed = ledger.Kept(out.Closed, out.Head.Recent)
	}
	return out
}

// readLedger reads a ledger, and says why the agent cannot have written it; nil: it may have. Actors
// count as verified only if that can be believed.
func (k *Cluster) readLedger(ctx context.Context, cm *corev1.ConfigMap, planUID string) (l *ledger.Ledger, doubt, err error) {
	read, err := annotations.ReadLedger(cm, planUID)
	if err != nil {
		return nil, nil, err
	}
	verified := view.LedgerVerified(&read)
	if doubt = annotations.CheckForm(cm); doubt != nil {
		view.Doubt(verified)
	} else {
		k.doubt(ctx, verified)
	}
	return &read, doubt, nil
}

// WarnOfLedger warns of what is wrong with the ledger of a plan.
func (c *Factory) WarnOfLedger(namespace, plan string, l view.Ledger) {
	if fault := l.Fault(); fault != "" {
		c.Warn("the ledger of plan " + namespace + "/" + plan + " " + fault)
	}
}

// LeftBy finds an ended run of the namespace whose object is gone, and whose plan's ledger still
// names what it did not restore; nil: none that can be read does.
func (k *Cluster) LeftBy(ctx context.Context, name string) (*view.Run, error) {
	list, err := k.listLedgers(ctx, k.Namespace)
	if err != nil {
		return nil, k.Explain("look for run "+name+" in the plans' ledgers", err)
	}
	var unread error
	for i := range list {
		cm := &list[i]
		planName, uid := cm.Labels[annotations.LabelPlan], ownerUID(cm)
		if cm.Name != annotations.LedgerName(planName, uid) { // not the ledger of a plan
			continue
		}
		l, err := annotations.ReadLedger(cm, uid)
		if err != nil {
			unread = cmp.Or(unread, fmt.Errorf("look for run %s in the plans' ledgers: %w", name, err))
			continue
		}
		for _, candidate := range []string{name, view.RunPrefix + name} {
			var left []run.Record
			for _, o := range l.Left {
				if o.Run == candidate {
					left = append(left, run.Record{Path: o.Step})
				}
			}
			if len(left) > 0 {
				return &view.Run{Run: run.Run{Namespace: cm.Namespace, Name: candidate, Plan: planName, PlanUID: l.PlanUID}, Journal: run.Journal{Steps: left}}, nil
			}
		}
	}
	return nil, unread
}

func ownerUID(cm *corev1.ConfigMap) string {
	for _, o := range cm.OwnerReferences {
		return string(o.UID)
	}
	return ""
}
