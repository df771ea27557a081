package agent

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
func (a *Agent) leftAsItWas(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *store.CachedPlan, led ledger.Ledger) (time.Time, error) {
	if len(led.Left) == 0 {
		return time.Time{}, nil
	}
	if a.now().Before(known.LeftAgain) {
		return known.LeftAgain, nil
	}
	since := a.now().Sub(led.Left[len(led.Left)-1].At)
	known.LeftAgain = a.now().Add(min(max(since/2, firstLookAtLeft), lookAtLeft))
	for _, left := range led.Left {
		if !a.asItWas(ctx, k, left) {
			continue
		}
		err := a.ledgers.Edit(ctx, k, string(cm.UID), func(l ledger.Ledger) ledger.Ledger { return l.PutBack(left.Run, left.Step) })
		if err != nil {
			return time.Time{}, err
		}
		a.events.Eventf(cm, corev1.EventTypeNormal, "PutBack", "What run %s, step %s had left is as it was", left.Run, left.Step)
		a.ringPlan(k)
	}
	return known.LeftAgain, nil
}

func (a *Agent) asItWas(ctx context.Context, k types.NamespacedName, left ledger.Leftover) bool {
	executor, _ := a.options.Executor(left.Type)
	finder, ok := executor.(executors.Finder)
	if !ok || left.Before == nil {
		return false
	}
	clients, err := a.accounts.Clients(client.Account{Namespace: k.Namespace, Name: left.Account}, "")
	if err != nil {
		return false
	}
	so, err := finder.AsItWas(ctx, executors.Call{Namespace: k.Namespace, Account: left.Account, Path: left.Step, Before: left.Before, Now: a.now(), Clients: clients})
	return err == nil && so
}
