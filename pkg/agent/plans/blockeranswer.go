package plans

import (
	"context"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
)

// askBlocker asks a blocker's question. The answer is only compared with the one
// before.
func (c *Controller) askBlocker(ctx context.Context, by blocker, last string) (string, error) {
	if by.who != (client.Account{}) {
		return c.Accounts.RightsDigest(ctx, by.who, last)
	}
	served, err := c.Accounts.KindServed(by.kind)
	if served {
		return "served", err
	}
	return "not served", err
}

// blockerChanged forgets what was remembered of a question whose answer is another
// one now.
func (c *Controller) blockerChanged(by blocker) {
	if by.who != (client.Account{}) {
		c.Accounts.Forget(by.who)
		c.Targets.Retry(by.who)
		return
	}
	c.Accounts.ResetKinds()
}
