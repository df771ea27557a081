package adopt

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/stuck"
)

// contents says what an object of the agent's makes the agent do, once it is signed. Whoever signs
// it reads this first, so an object that cannot be read is an error.
func contents(cm *corev1.ConfigMap, zone string) (string, error) {
	switch cm.Labels[annotations.LabelKind] {
	case annotations.KindRun:
		r, j, err := annotations.ReadRun(cm)
		if err != nil {
			return "", err
		}
		return runContents(r, j), nil
	case annotations.KindGate:
		r, err := annotations.ReadGates(cm)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("the gates of policy %s: %s", r.Policy, view.Counted(len(r.Entries), "entry")), nil
	case annotations.KindRestore:
		r, err := annotations.ReadRestore(cm)
		if err != nil {
			return "", err
		}
		return restoreContents(r), nil
	case annotations.KindLedger:
		return ledgerContents(cm, zone)
	}
	if plan := cm.Labels[annotations.LabelPlan]; !annotations.Unsigned(cm) && strings.HasPrefix(cm.Name, view.RunPrefix+plan) {
		return "", errors.New("it needs no new signature: " + stuck.LabelGone(cm.Namespace, cm.Name, annotations.LabelKind, annotations.KindRun))
	}
	return "", fmt.Errorf("it is nothing that the agent writes: its label %s is %q", annotations.LabelKind, document.Cut(cm.Labels[annotations.LabelKind], 40))
}

func runContents(r run.Run, j run.Journal) string {
	return fmt.Sprintf("a run of plan %s, %s, %d steps, as ServiceAccount %s", r.Plan, j.Phase, len(r.Spec.Steps), r.Spec.ServiceAccountName)
}

// restoreContents name what restore data wakes, and to which state.
func restoreContents(r hibernate.Record) string {
	const most = 5
	var list []string
	for _, res := range r.Resources[:min(most, len(r.Resources))] {
		list = append(list, document.Cut(res.ID, 100)+" "+document.Cut(string(res.Before), 100))
	}
	return fmt.Sprintf("restore data of target %s of plan %s, %s, as ServiceAccount %s: %s%s", r.Target, r.Plan, view.Counted(len(r.Resources), "resource"), r.Snapshot.Spec.Account(), strings.Join(list, ", "), view.AndMore(len(r.Resources)-most))
}

// ledgerContents tell apart the four objects of a ledger by what they hold. Of the head it is
// what keeps slots from running, and which runs it lets begin.
func ledgerContents(cm *corev1.ConfigMap, zone string) (string, error) {
	plan, uid := document.Cut(cm.Labels[annotations.LabelPlan], 80), ""
	if len(cm.OwnerReferences) > 0 {
		uid = string(cm.OwnerReferences[0].UID)
	}
	switch {
	case cm.Data[annotations.DataSeen] != "":
		seen, err := annotations.ReadShard(cm, uid)
		return fmt.Sprintf("what the watch rules of plan %s have seen: %s", plan, view.Counted(len(seen), "object")), err
	case cm.Data[annotations.DataNodes] != "":
		turns, err := annotations.ReadNodeTurns(cm, uid)
		return fmt.Sprintf("when the rollouts of plan %s had their nodes: %s", plan, view.Counted(len(turns), "node")), err
	}
	l, err := annotations.ReadLedger(cm, uid)
	if err != nil {
		return "", err
	}
	if cm.Name == annotations.ArchiveName(plan, uid) {
		return fmt.Sprintf("older entries of the ledger of plan %s: %s", plan, view.Counted(len(l.Recent), "entry")), nil
	}
	return fmt.Sprintf("the ledger of plan %s: %s, %s%s", plan, doneUntil(l, zone), view.Counted(len(l.Recent), "entry"), openRuns(l)), nil
}

func doneUntil(l ledger.Ledger, zone string) string {
	if l.Watermark.IsZero() {
		return "no slot counts as done"
	}
	return "slots up to " + instant.Both(l.Watermark, zone) + " count as done"
}

// openRuns are the runs that may begin steps once the ledger counts.
func openRuns(l ledger.Ledger) string {
	const most = 5
	var names []string
	for _, e := range l.Open[:min(most, len(l.Open))] {
		names = append(names, document.Cut(e.Run, 100))
	}
	if len(names) == 0 {
		return ", no open run"
	}
	return ", open: " + strings.Join(names, ", ") + view.AndMore(len(l.Open)-most)
}
