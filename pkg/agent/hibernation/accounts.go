package hibernation

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// When it is looked whether plans' accounts are there (guesses): with each look at a plan, and
// an hour before it falls asleep, so that somebody can still create what is not. One that is
// missing is asked for twice a minute, for all of its plans at once, and all that are known
// to be missing about ten times a second. The agent may get ServiceAccounts, and not watch them.
const (
	accountAhead = time.Hour
	accountPause = 30 * time.Second
	accountShare = 100 * time.Millisecond
	maxMissing   = 10000
)

// missingAccounts are those that were not there when they were last asked for, and when that
// was.
type missingAccounts struct {
	mu    sync.Mutex
	asked *lru.Cache[client.Account, time.Time]
}

func newMissingAccounts() *missingAccounts {
	asked, _ := lru.New[client.Account, time.Time](maxMissing) // its error is for limits below one
	return &missingAccounts{asked: asked}
}

// recently says whether an account was missing a short while ago.
func (m *missingAccounts) recently(w client.Account, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	pause := max(accountPause, time.Duration(m.asked.Len())*accountShare)
	for _, at, is := m.asked.GetOldest(); is && now.After(at.Add(pause+accountPause)); _, at, is = m.asked.GetOldest() {
		m.asked.RemoveOldest() // no plan has asked for it any more
	}
	at, is := m.asked.Peek(w)
	return is && now.Before(at.Add(pause))
}

func (m *missingAccounts) note(w client.Account, missing bool, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if missing {
		m.asked.Add(w, now)
		return
	}
	m.asked.Remove(w)
}

// readiness notes whether the plan's account is there. What cannot be asked holds nothing up:
// it stays as it was last known. What sleeps and cannot be looked at could not be woken either.
func (c *Controller) readiness(ctx context.Context, k types.NamespacedName, known *cachedPlan, v *view) {
	for _, r := range v.facts.Records {
		v.unready = cmp.Or(v.unready, unseen(r))
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
		v.again = queue.Soonest(v.again, now.Add(accountPause))
	}
	if until := v.facts.Until; until != nil && !v.facts.Sleep && until.Add(-accountAhead).After(now) {
		v.again = queue.Soonest(v.again, until.Add(-accountAhead))
	}
}

// unseen says why a target that sleeps could not be looked at the last time; empty: it was.
func unseen(r hibernate.Record) string {
	if r.State != hibernate.Asleep || r.NotBefore == nil {
		return ""
	}
	return fmt.Sprintf("target %s could not be woken now: %s", r.Target, r.Message)
}

// missingAccount says that an account is not there, and what helps. The first plan of an
// account asks for all of them.
func (c *Controller) missingAccount(ctx context.Context, w client.Account) (string, error) {
	message := fmt.Sprintf("the ServiceAccount %s does not exist in namespace %s, so nothing can be put to sleep or woken: 'kubectl maint rbac -f FILE | kubectl apply -f -', with the plan's file, creates it with the rights that its targets need", w.Name, w.Namespace)
	now := c.Clock.Now()
	if c.missing.recently(w, now) {
		return message, nil
	}
	missing, err := c.Clients.Accounts.Missing(ctx, w)
	if err != nil {
		return "", err
	}
	c.missing.note(w, missing != "", now)
	if missing == "" {
		return "", nil
	}
	return message, nil
}
