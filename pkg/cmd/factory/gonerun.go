package factory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// GoneRunError says that a run is no longer kept, and that the ledger of its plan knows it.
type GoneRunError struct {
	Namespace, Plan string
	Entry           ledger.Entry
	Doubt           error  // why the agent cannot have written the ledger; nil: it may have
	see             string // the command that shows the ledger
}

// Error is error's.
func (e *GoneRunError) Error() string {
	ended := string(e.Entry.Result)
	if e.Entry.Outcome != nil && e.Entry.Outcome.Phase != "" {
		ended = string(e.Entry.Outcome.Phase)
	}
	return fmt.Sprintf("run %s of plan %s ended %s, and is no longer kept: see %s", e.Entry.Run, e.Plan, ended, e.see)
}

// Unwrap is errors.As's: there is no such run.
func (e *GoneRunError) Unwrap() error { return NotFoundError(e.Error()) }

// lastRun is the last run of a plan, which is gone: by its entry, or, where that is no longer kept either, by
// what the head of the ledger says of it.
func (k *Cluster) lastRun(cm *corev1.ConfigMap, kept view.Ledger) *GoneRunError {
	last := kept.Head.Last
	entry := ledger.Entry{Run: last.Name, Result: run.Ran, Outcome: &ledger.Outcome{Phase: last.Phase}}
	for _, e := range kept.Closed {
		if e.Run == last.Name {
			entry = e
		}
	}
	return &GoneRunError{Namespace: cm.Namespace, Plan: cm.Name, Entry: entry, Doubt: kept.Doubt, see: k.commands().History(cm.Name)}
}

// goneRun finds a run in the ledgers of the namespace; nil: none knows it, or that cannot be seen.
// unread are the plans whose ledgers may know it and cannot be read.
func (k *Cluster) goneRun(ctx context.Context, name string) (gone *GoneRunError, unread []string) {
	if !strings.HasPrefix(name, view.RunPrefix) { // else each name that is not there would read all ledgers
		return nil, nil
	}
	list, err := k.listLedgers(ctx, k.Namespace)
	if err != nil {
		return nil, nil
	}
	for i := range list {
		cm := &list[i]
		plan, uid := cm.Labels[annotations.LabelPlan], ownerUID(cm)
		if cm.Name != annotations.LedgerName(plan, uid) && cm.Name != annotations.ArchiveName(plan, uid) { // it holds no entries
			continue
		}
		l, doubt, err := k.readLedger(ctx, cm, uid)
		if err != nil {
			unread = append(unread, plan)
			continue
		}
		if at := slices.IndexFunc(l.Recent, func(e ledger.Entry) bool { return e.Run == name }); at >= 0 {
			return &GoneRunError{Namespace: cm.Namespace, Plan: plan, Entry: l.Recent[at], Doubt: doubt, see: k.commands().History(plan)}, nil
		}
	}
	return nil, slices.Compact(slices.Sorted(slices.Values(unread)))
}
