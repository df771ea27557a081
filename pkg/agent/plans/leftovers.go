package plans

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

// Bounds of the pause before what a run did not put back is looked at again (guesses:
// who mends it at once sees it at once, and what stays for days costs little).
const (
	firstLookAtLeft = 5 * time.Second
	lookAtLeft      = time.Minute
)

// leftAsItWas forgets what is as it was again, by whomever. It looks as the account
// of the plan, after pauses that grow to a minute; what cannot be seen stays.
func (c *Controller) leftAsItWas(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *store.CachedPlan, led ledger.Ledger) (time.Time, error) {
	if len(led.Left) == 0 {
		return time.Time{}, nil
	}
	if c.Now().Before(known.LeftAgain) {
		return known.LeftAgain, nil
	}
	since := c.Now().Sub(led.Left[len(led.Left)-1].At)
	known.LeftAgain = c.Now().Add(min(max(since/2, firstLookAtLeft), lookAtLeft))
	for _, left := range led.Left {
		if !c.asItWas(ctx, k, left) {
			continue
		}
		err := c.Stores.Ledgers.Edit(ctx, k, string(cm.UID), func(l ledger.Ledger) ledger.Ledger { return l.PutBack(left.Run, left.Step) })
		if err != nil {
			return time.Time{}, err
		}
		c.Telemetry.Events.Eventf(cm, corev1.EventTypeNormal, "PutBack", "What run %s, step %s did not put back is now as it was before", left.Run, left.Step)
		c.Queue.Add(k)
	}
	return known.LeftAgain, nil
}

func (c *Controller) asItWas(ctx context.Context, k types.NamespacedName, left ledger.Leftover) bool {
	executor, _ := c.Executor(left.Type)
	finder, ok := executor.(executors.Finder)
	if !ok || left.Before == nil {
		return false
	}
	clients, err := c.Clients.Accounts.Clients(client.Account{Namespace: k.Namespace, Name: left.Account}, "")
	if err != nil {
		return false
	}
	so, err := finder.IsRestored(ctx, executors.Call{Plan: executors.PlanRef{Namespace: k.Namespace, Account: left.Account}, Path: left.Step, Recorded: executors.Recorded{Before: left.Before}, Now: c.Now(), Clients: clients})
	return err == nil && so
}
