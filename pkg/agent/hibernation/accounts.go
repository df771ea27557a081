package hibernation

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/restoredata"
)

// When it is looked whether plans' accounts are there (guesses): with each look at a plan, and
// an hour before it falls asleep, so that somebody can still create what is not.
const accountAhead = time.Hour

// readiness notes whether the plan's account is there. What cannot be asked holds nothing up:
// it stays as it was last known. What sleeps and cannot be looked at could not be woken either.
func (c *Controller) readiness(ctx context.Context, k types.NamespacedName, known *cachedPlan, v *view) {
	for _, r := range v.facts.Records {
		v.unready = cmp.Or(v.unready, restoredata.UnreadableMessage(r))
	}
	if known.table == nil {
		return
	}
	w, now := client.Account{Namespace: k.Namespace, Name: known.spec.Account()}, c.Clock.Now()
	missing, err := c.missingAccount(ctx, w)
	if err == nil {
		v.facts.Retry = v.facts.Retry || known.unready != "" && missing == "" // what failed for it goes on
		known.unready = missing
	}
	v.unready = cmp.Or(known.unready, v.unready)
	if missing != "" || err != nil {
		v.again = queue.Soonest(v.again, now.Add(client.MissingPause))
	}
	if until := v.facts.Until; until != nil && !v.facts.Sleep && until.Add(-accountAhead).After(now) {
		v.again = queue.Soonest(v.again, until.Add(-accountAhead))
	}
}

// missingAccount says that an account is not there, and what helps. The first plan of an
// account asks for all of them.
func (c *Controller) missingAccount(ctx context.Context, w client.Account) (string, error) {
	message := fmt.Sprintf("the ServiceAccount %s does not exist in namespace %s, so nothing can be put to sleep or woken: 'kubectl maint rbac -f FILE | kubectl apply -f -', with the plan's file, creates it with the rights that its targets need", w.Name, w.Namespace)
	now := c.Clock.Now()
	if c.missing.Recently(w, now) {
		return message, nil
	}
	missing, err := c.Clients.Accounts.Missing(ctx, w)
	if err != nil {
		return "", err
	}
	c.missing.Note(w, missing != "", now)
	if missing == "" {
		return "", nil
	}
	return message, nil
}
