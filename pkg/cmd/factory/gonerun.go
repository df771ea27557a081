package factory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

// GoneRunError says that a run is no longer kept, and that the ledger of its plan knows it.
type GoneRunError struct {
	Plan  string
	Entry ledger.Entry
	see   string // the command that shows the ledger
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

// goneRun finds a run in the ledgers of the namespace; nil: none knows it, or that cannot be seen.
func (k *Cluster) goneRun(ctx context.Context, name string) *GoneRunError {
	if !strings.HasPrefix(name, runPrefix) { // else each name that is not there would read all ledgers
		return nil
	}
	list, err := k.ConfigMaps(k.Namespace).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindLedger})
	if err != nil {
		return nil
	}
	for i := range list.Items {
		cm := &list.Items[i]
		l, err := annotations.ReadLedger(cm, ownerUID(cm))
		if err != nil {
			continue
		}
		k.doubtLedger(ctx, cm, &l)
		if at := slices.IndexFunc(l.Recent, func(e ledger.Entry) bool { return e.Run == name }); at >= 0 {
			plan := cm.Labels[annotations.LabelPlan]
			return &GoneRunError{Plan: plan, Entry: l.Recent[at], see: k.commands().History(plan)}
		}
	}
	return nil
}
