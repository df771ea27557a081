package agent

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// holds know which steps of live runs will put back what, by the uid of the object.
// They are read off the runs' journals, so that a restart loses nothing. What is
// over is kept for a moment, for those who looked at the object just before.
type holds struct {
	mu    sync.Mutex
	byUID map[string]*heldUID
	byRun map[types.NamespacedName]map[string]string // uid by the path of the step
}

type heldUID struct {
	restoring sync.Mutex // restores of one object come one after another: each looks who is still there
	holders   []executors.Holder
	runs      []types.NamespacedName // of the holders
	since     []time.Time
}

// overFor is how long a hold that is over is remembered: longer than a pass.
const overFor = longestPass

func newHolds() *holds {
	return &holds{byUID: map[string]*heldUID{}, byRun: map[types.NamespacedName]map[string]string{}}
}

// uidOf is the object of which a step recorded something; empty for what is no
// record of one object.
func uidOf(before json.RawMessage) string {
	var found struct {
		UID string `json:"uid"`
	}
	if json.Unmarshal(before, &found) != nil {
		return ""
	}
	return found.UID
}

// saw takes in what a run's journal says.
func (h *holds) saw(l *liveRun) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := l.key()
	for i := range l.journal.Steps {
		rec := &l.journal.Steps[i]
		if _, known := h.byRun[k][rec.Path]; rec.Before == nil || rec.Restored != "" || known {
			continue
		}
		uid := uidOf(rec.Before)
		if h.byRun[k] == nil {
			h.byRun[k] = map[string]string{}
		}
		h.byRun[k][rec.Path] = uid
		if uid == "" {
			continue
		}
		if h.byUID[uid] == nil {
			h.byUID[uid] = &heldUID{}
		}
		h.byUID[uid].add(k, executors.Holder{Run: l.run.Name, Path: rec.Path, Before: rec.Before}, began(rec))
	}
}

func began(rec *run.Record) time.Time {
	if rec.StartedAt == nil {
		return time.Time{}
	}
	return *rec.StartedAt
}

// add puts a holder among the others, the newest first.
func (u *heldUID) add(k types.NamespacedName, h executors.Holder, since time.Time) {
	i := 0
	for i < len(u.since) && u.since[i].After(since) {
		i++
	}
	u.holders, u.runs, u.since = slices.Insert(u.holders, i, h), slices.Insert(u.runs, i, k), slices.Insert(u.since, i, since)
}

// over notes that what a step found is put back, or that its run has ended.
func (h *holds) over(k types.NamespacedName, path string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	u := h.byUID[h.byRun[k][path]]
	if u == nil {
		return
	}
	for i := range u.holders {
		if u.runs[i] == k && u.holders[i].Path == path && u.holders[i].Over.IsZero() {
			u.holders[i].Over = now
		}
	}
}

// drop notes that a run has ended, and forgets what was over long ago.
func (h *holds) drop(k types.NamespacedName, now time.Time) {
	h.mu.Lock()
	paths := h.byRun[k]
	delete(h.byRun, k)
	for _, uid := range paths {
		if u := h.byUID[uid]; u != nil {
			u.drop(k, now)
		}
	}
	for uid, u := range h.byUID {
		if len(paths) > 0 && u.forget(now.Add(-overFor)) {
			delete(h.byUID, uid)
		}
	}
	h.mu.Unlock()
}

func (u *heldUID) drop(k types.NamespacedName, now time.Time) {
	for i := range u.holders {
		if u.runs[i] == k && u.holders[i].Over.IsZero() {
			u.holders[i].Over = now
		}
	}
}

// forget drops what was over before an instant, and says whether nothing is left.
func (u *heldUID) forget(before time.Time) bool {
	for i := len(u.holders) - 1; i >= 0; i-- {
		if over := u.holders[i].Over; !over.IsZero() && over.Before(before) {
			u.holders, u.runs, u.since = slices.Delete(u.holders, i, i+1), slices.Delete(u.runs, i, i+1), slices.Delete(u.since, i, i+1)
		}
	}
	return len(u.holders) == 0
}

// of are the holders of an object but for one step.
func (h *holds) of(uid string, k types.NamespacedName, path string) []executors.Holder {
	h.mu.Lock()
	defer h.mu.Unlock()
	u := h.byUID[uid]
	if u == nil {
		return nil
	}
	var out []executors.Holder
	for i, one := range u.holders {
		if u.runs[i] != k || one.Path != path {
			out = append(out, one)
		}
	}
	return out
}

// restoring lets one restore of an object at a time look and write.
func (h *holds) restoring(uid string) (done func()) {
	h.mu.Lock()
	u := h.byUID[uid]
	h.mu.Unlock()
	if u == nil {
		return func() {}
	}
	u.restoring.Lock()
	return u.restoring.Unlock
}

// holders are what a step may know of the others that hold an object.
func (a *Agent) holders(l *liveRun, path string) func(uid string) []executors.Holder {
	return func(uid string) []executors.Holder { return a.runs.holds.of(uid, l.key(), path) }
}

// found says what a step found, for a message; empty where nobody can tell.
func (a *Agent) found(stepType string, before json.RawMessage) string {
	executor, _ := a.options.Executor(stepType)
	if finder, ok := executor.(executors.Finder); ok && before != nil {
		return finder.Found(before)
	}
	return ""
}

// toPutBack says what was to be put back, and why it is not.
func (a *Agent) toPutBack(m workflow.Move, rec *run.Record, why string) string {
	if found := a.found(m.Step.Type, rec.Before); found != "" && why != "" {
		return "put back " + found + ": " + why
	}
	return why
}

// Bounds of the pause before what a run did not put back is looked at again (guesses:
// who mends it at once sees it at once, and what stays for days costs little).
const (
	firstLookAtLeft = 5 * time.Second
	lookAtLeft      = time.Minute
)

// leftAsItWas forgets what is as it was again, by whomever. It looks as the account
// of the plan, after pauses that grow to a minute; what cannot be seen stays.
func (a *Agent) leftAsItWas(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap, known *knownPlan, led ledger.Ledger) (time.Time, error) {
	if len(led.Left) == 0 {
		return time.Time{}, nil
	}
	if a.now().Before(known.leftAgain) {
		return known.leftAgain, nil
	}
	since := a.now().Sub(led.Left[len(led.Left)-1].At)
	known.leftAgain = a.now().Add(min(max(since/2, firstLookAtLeft), lookAtLeft))
	for _, left := range led.Left {
		if !a.asItWas(ctx, k, left) {
			continue
		}
		err := a.ledgers.edit(ctx, k, string(cm.UID), func(l ledger.Ledger) ledger.Ledger { return l.PutBack(left.Run, left.Step) })
		if err != nil {
			return time.Time{}, err
		}
		a.events.Eventf(cm, corev1.EventTypeNormal, "PutBack", "What run %s, step %s had left is as it was", left.Run, left.Step)
		a.ringPlan(k)
	}
	return known.leftAgain, nil
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
