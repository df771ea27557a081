package plans

import (
	"context"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
)

// askBlocker asks a blocker's question. The answer is only compared with the one
// before.
func (c *Controller) askBlocker(ctx context.Context, by blocker, last string) (string, error) {
	if by.who != (client.Account{}) {
		return c.Clients.Accounts.RightsDigest(ctx, by.who, last)
	}
	served, err := c.Clients.Accounts.KindServed(by.kind)
	if served {
		return "served", err
	}
	return "not served", err
}

// blockerChanged forgets what was remembered of a question whose answer is another
// one now.
func (c *Controller) blockerChanged(by blocker) {
	if by.who != (client.Account{}) {
		c.Clients.Accounts.Forget(by.who)
		c.Watches.Targets.Retry(by.who)
		return
	}
	c.Clients.Accounts.ResetKinds()
}
