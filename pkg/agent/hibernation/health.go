package hibernation

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// healthPause is after how long targets that are not healthy are asked about again (a guess).
const healthPause = 5 * time.Second

// health is what was found of a plan's health since its targets are awake.
type health struct {
	cycle   string
	healthy bool
	why     string
}

// check makes a plan's health checks, as its account. What it finds is kept in memory:
// after a restart it is asked anew.
func (c *Controller) check(ctx context.Context, k types.NamespacedName, spec hibernate.Spec, cycle string) (health, error) {
	out := health{cycle: cycle, healthy: true}
	ctx, cancel := context.WithTimeout(executors.WithNamespace(ctx, k.Namespace), passTimeout)
	defer cancel()
	account := client.Account{Namespace: k.Namespace, Name: spec.Account()}
	clients, err := c.Clients.Accounts.Clients(account, "")
	if err != nil {
		return out, err
	}
	for i, props := range spec.Checks() {
		got := c.Executors.Health.Pass(ctx, executors.Call{
			Plan: executors.PlanRef{Name: k.Name, Namespace: k.Namespace, Account: account.Name, Manager: annotations.PlanManager(k.Namespace, k.Name)}, Path: fmt.Sprintf("healthChecks[%d]", i), Attempt: 1,
			Properties: props, Now: c.Clock.Now(), Clients: clients,
		})
		if got.State != executors.Done {
			return health{cycle: cycle, why: got.Message}, nil
		}
	}
	return out, nil
}
