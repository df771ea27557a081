package node

import (
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// claimLife is how long an eviction is counted that its budget never shows: the disruption
// controller forgets it after the same time (DeletionTimeout).
const claimLife = 2 * time.Minute

// budgetCache is what all drains together take of the budgets: evictions that no budget's status shows
// yet, and sessions that wait for room, in the order in which they came. Its owner guards it.
type budgetCache struct {
	synced  bool
	budgets map[string]map[string]drain.Budget // by namespace, by key
	claims  map[string]map[string]*entry       // by budget's key, by pod's uid
	queues  map[string][]waiting               // by budget's key: sessions that wait for room
	flying  map[string]int                     // by budget's key: requests in flight that take of it
	lines   map[string][]*session              // by budget's key: sessions that wait for a request in flight to end
	asked   map[string]*session                // pods with a request in flight, by uid
}

type entry struct {
	drain.Claim
	at time.Time
}

type waiting struct {
	by   *session
	pods int
}

func newBudgetCache() budgetCache {
	return budgetCache{
		budgets: map[string]map[string]drain.Budget{}, claims: map[string]map[string]*entry{},
		queues: map[string][]waiting{}, flying: map[string]int{}, lines: map[string][]*session{}, asked: map[string]*session{},
	}
}

// in are the budgets of some namespaces.
func (l *budgetCache) in(namespaces map[string]bool) []drain.Budget {
	var out []drain.Budget
	for ns := range namespaces {
		for _, b := range l.budgets[ns] {
			out = append(out, b)
		}
	}
	return out
}

// set stores a budget as it is now, and forgets the claims that its status shows.
func (l *budgetCache) set(b drain.Budget) {
	if l.budgets[b.Namespace] == nil {
		l.budgets[b.Namespace] = map[string]drain.Budget{}
	}
	l.budgets[b.Namespace][b.Key()] = b
	for uid, c := range l.claims[b.Key()] {
		if b.Shows(c.Claim) {
			l.drop(b.Key(), uid)
		}
	}
}

func (l *budgetCache) remove(namespace, key string) {
	delete(l.budgets[namespace], key)
	delete(l.claims, key)
}

func (l *budgetCache) drop(key, uid string) {
	delete(l.claims[key], uid)
	if len(l.claims[key]) == 0 {
		delete(l.claims, key)
	}
}

// room is how much of each budget a session may take now: what is free, less the claims of sessions
// that came before it.
func (l *budgetCache) room(s *session, budgets []drain.Budget, now time.Time) map[string]int {
	out := map[string]int{}
	for _, b := range budgets {
		var claims []drain.Claim
		for uid, c := range l.claims[b.Key()] {
			if now.Sub(c.at) > claimLife {
				l.drop(b.Key(), uid)
				continue
			}
			claims = append(claims, c.Claim)
		}
		room := drain.Remaining(b, claims)
		for _, w := range l.queues[b.Key()] {
			if w.by == s {
				break
			}
			room -= w.pods
		}
		out[b.Key()] = max(room, 0)
	}
	return out
}

// claim counts an eviction that is about to be requested against a budget.
func (l *budgetCache) claim(key string, p drain.Pod, now time.Time) {
	if l.claims[key] == nil {
		l.claims[key] = map[string]*entry{}
	}
	l.claims[key][p.UID] = &entry{Claim: drain.Claim{Pod: p.Name}, at: now}
}

// deleted notes that a pod is being deleted.
func (l *budgetCache) deleted(uid string, version uint64) {
	for key, claims := range l.claims {
		if c := claims[uid]; c != nil && c.Deleted == 0 {
			c.Deleted = version
			if b, ok := l.find(key); ok && b.Shows(c.Claim) {
				l.drop(key, uid)
			}
		}
	}
}

func (l *budgetCache) find(key string) (drain.Budget, bool) {
	namespace, _, _ := strings.Cut(key, "/")
	b, ok := l.budgets[namespace][key]
	return b, ok
}

// unclaim returns what a refused request did not take.
func (l *budgetCache) unclaim(uid string) {
	for key, claims := range l.claims {
		if _, has := claims[uid]; has {
			l.drop(key, uid)
		}
	}
}

// wait notes for how many pods a session waits, by budget; the session keeps its place. It returns
// the sessions that may go on because this one waits for less.
func (l *budgetCache) wait(s *session, pods map[string]int) []*session {
	var freed []*session
	for key, queue := range l.queues {
		i := slices.IndexFunc(queue, func(w waiting) bool { return w.by == s })
		if i < 0 {
			continue
		}
		if n := pods[key]; n > 0 {
			if n < queue[i].pods {
				freed = append(freed, sessionsOf(queue[i+1:])...)
			}
			queue[i].pods = n
			continue
		}
		freed = append(freed, sessionsOf(queue[i+1:])...)
		l.queues[key] = slices.Delete(slices.Clone(queue), i, i+1)
		if len(l.queues[key]) == 0 {
			delete(l.queues, key)
		}
	}
	for key, n := range pods {
		waits := slices.ContainsFunc(l.queues[key], func(w waiting) bool { return w.by == s })
		if n > 0 && !waits {
			l.queues[key] = append(l.queues[key], waiting{s, n})
		}
	}
	return freed
}

func sessionsOf(queue []waiting) []*session {
	out := make([]*session, len(queue))
	for i, w := range queue {
		out[i] = w.by
	}
	return out
}

// turns is how many evictions under each budget a session may request now: sessions ahead of it
// come first.
func (l *budgetCache) turns(s *session, budgets []drain.Budget) map[string]int {
	out := map[string]int{}
	for _, b := range budgets {
		line := l.lines[b.Key()]
		before := slices.Index(line, s)
		if before < 0 {
			before = len(line)
		}
		out[b.Key()] = max(perBudget-l.flying[b.Key()]-before, 0)
	}
	return out
}

// line adds a session to the line of those that wait for turns, or removes it. On removal it
// returns the next in line, which may have got a turn.
func (l *budgetCache) line(s *session, wants map[string]bool) []*session {
	for key := range wants {
		if !slices.Contains(l.lines[key], s) {
			l.lines[key] = append(l.lines[key], s)
		}
	}
	var next []*session
	for key, line := range l.lines {
		i := slices.Index(line, s)
		if i < 0 || wants[key] {
			continue
		}
		if l.lines[key] = slices.Delete(slices.Clone(line), i, i+1); len(line) == 1 {
			delete(l.lines, key)
		}
		next = append(next, l.next(key)...)
	}
	return next
}

// next are the sessions that have a turn under a budget now, the first in its line.
func (l *budgetCache) next(key string) []*session {
	line := l.lines[key]
	return line[:min(len(line), max(perBudget-l.flying[key], 0))]
}

// landed notes the answer to a request that took of a budget, and returns who has the turn now.
func (l *budgetCache) landed(key string) []*session {
	if l.flying[key]--; l.flying[key] <= 0 {
		delete(l.flying, key)
	}
	return l.next(key)
}
