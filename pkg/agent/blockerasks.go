package agent

import (
	"context"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
)

// askBlocker asks a blocker's question. The answer is only compared with the one
// before.
func (a *Agent) askBlocker(ctx context.Context, by blocker, last string) (string, error) {
	if by.who != (client.Account{}) {
		return a.accounts.RightsDigest(ctx, by.who, last)
	}
	served, err := a.accounts.KindServed(by.kind)
	if served {
		return "served", err
	}
	return "not served", err
}

// blockerChanged forgets what was remembered of a question whose answer is another
// one now.
func (a *Agent) blockerChanged(by blocker) {
	if by.who != (client.Account{}) {
		a.accounts.Forget(by.who)
		a.targets.Retry(by.who)
		return
	}
	a.accounts.ResetKinds()
}
