package plans

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// refuseRun is a claim whose run the API server does not take. It waits, and says
// for what: a slot until its deadline, or until it is known that it never will be
// taken, everything else without end.
func (c *Controller) refuseRun(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *store.CachedPlan, e ledger.Entry, refusal error) (retry time.Time, err error) {
	if client.IsRejectedForGood(refusal) && e.Slot != nil {
		c.Telemetry.Events.Eventf(cm, corev1.EventTypeWarning, "RunRefused", "The API server refused run %s: %s", runSaid(e), refusal)
		return time.Time{}, c.Stores.Ledgers.Edit(ctx, k, string(cm.UID), func(l ledger.Ledger) ledger.Ledger {
			return l.Close(e.Run, run.Missed, run.ReasonRefused, nil, c.Now())
		})
	}
	next, final := c.refused.again(k, e.Run, known.Observed, c.Now())
	if executors.RefusalOf(refusal, "") == executors.RefusedAgent && !final { // as one that starts does to everybody
		c.Telemetry.Log.Warn("will try again", "plan", k.String(), "run", e.Run, "error", refusal.Error())
		return next, nil
	}
	why := ledger.Entry{Run: e.Run}
	why = ledger.Ledger{Open: []ledger.Entry{why}}.Refuse(e.Run, refusal.Error()).Open[0]
	if e.Refused == why.Refused {
		return next, nil
	}
	if e.Refused == "" {
		c.Telemetry.Events.Eventf(cm, corev1.EventTypeWarning, "RunRefused", "The API server refuses run %s, and the agent tries again: %s", runSaid(e), document.Cut(refusal.Error(), document.MaxMessage))
	}
	c.Queue.AddAfter(k, status.Delay) // what it waits for goes into the status
	return next, c.Stores.Ledgers.Edit(ctx, k, string(cm.UID), func(l ledger.Ledger) ledger.Ledger { return l.Refuse(e.Run, why.Refused) })
}

// runSaid names the run of a claim, with what asked for it.
func runSaid(e ledger.Entry) string {
	if e.Request == nil {
		return e.Run
	}
	return e.Run + " (" + e.Request.Said() + ")"
}
