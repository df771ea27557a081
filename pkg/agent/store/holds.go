package store

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Holds know which steps of live runs will put back what, by the mark of the object.
// They are read off the runs' journals, so that a restart loses nothing. What is
// over is kept for a moment, for those who looked at the object just before.
type Holds struct {
	mu     sync.Mutex
	byMark map[string]*heldObject
	byRun  map[types.NamespacedName]map[string]string // mark by the path of the step
}

type heldObject struct {
	restoring sync.Mutex // restores of one object come one after another: each looks who is still there
	holders   []executors.Holder
	runs      []types.NamespacedName // of the holders
	since     []time.Time
}

// overFor is how long a hold that is over is remembered: longer than a pass.
const overFor = LongestPass

// NewHolds knows of none.
func NewHolds() *Holds {
	return &Holds{byMark: map[string]*heldObject{}, byRun: map[types.NamespacedName]map[string]string{}}
}

// MarkOf is the object of which a step recorded something, as executors.Mark has it; empty
// for what is no record of one object.
func MarkOf(before json.RawMessage) string {
	var found struct {
		UID    string `json:"uid"`
		Server string `json:"server"`
	}
	if json.Unmarshal(before, &found) != nil {
		return ""
	}
	return executors.Mark(found.UID, found.Server)
}

// saw takes in what a run's journal says.
func (h *Holds) saw(l *CachedRun) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := l.Key()
	for i := range l.Journal.Steps {
		rec := &l.Journal.Steps[i]
		if _, known := h.byRun[k][rec.Path]; rec.Before == nil || rec.Restored != "" || known {
			continue
		}
		mark := MarkOf(rec.Before)
		if h.byRun[k] == nil {
			h.byRun[k] = map[string]string{}
		}
		h.byRun[k][rec.Path] = mark
		if mark == "" {
			continue
		}
		if h.byMark[mark] == nil {
			h.byMark[mark] = &heldObject{}
		}
		h.byMark[mark].add(k, executors.Holder{Run: l.Run.Name, Path: rec.Path, Before: rec.Before}, began(rec))
	}
}

func began(rec *run.Record) time.Time {
	if rec.StartedAt == nil {
		return time.Time{}
	}
	return *rec.StartedAt
}

// add puts a holder among the others, the newest first.
func (u *heldObject) add(k types.NamespacedName, h executors.Holder, since time.Time) {
	i := 0
	for i < len(u.since) && u.since[i].After(since) {
		i++
	}
	u.holders, u.runs, u.since = slices.Insert(u.holders, i, h), slices.Insert(u.runs, i, k), slices.Insert(u.since, i, since)
}

// Over notes that what a step found is put back, or that its run has ended.
func (h *Holds) Over(k types.NamespacedName, path string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	u := h.byMark[h.byRun[k][path]]
	if u == nil {
		return
	}
	for i := range u.holders {
		if u.runs[i] == k && u.holders[i].Path == path && u.holders[i].Over.IsZero() {
			u.holders[i].Over = now
		}
	}
}

// Drop notes that a run has ended, and forgets what was over long ago.
func (h *Holds) Drop(k types.NamespacedName, now time.Time) {
	h.mu.Lock()
	paths := h.byRun[k]
	delete(h.byRun, k)
	for _, mark := range paths {
		if u := h.byMark[mark]; u != nil {
			u.drop(k, now)
		}
	}
	for mark, u := range h.byMark {
		if len(paths) > 0 && u.forget(now.Add(-overFor)) {
			delete(h.byMark, mark)
		}
	}
	h.mu.Unlock()
}

func (u *heldObject) drop(k types.NamespacedName, now time.Time) {
	for i := range u.holders {
		if u.runs[i] == k && u.holders[i].Over.IsZero() {
			u.holders[i].Over = now
		}
	}
}

// forget drops what was over before an instant, and says whether nothing is left.
func (u *heldObject) forget(before time.Time) bool {
	for i := len(u.holders) - 1; i >= 0; i-- {
		if over := u.holders[i].Over; !over.IsZero() && over.Before(before) {
			u.holders, u.runs, u.since = slices.Delete(u.holders, i, i+1), slices.Delete(u.runs, i, i+1), slices.Delete(u.since, i, i+1)
		}
	}
	return len(u.holders) == 0
}

// Of are the holders of an object but for one step.
func (h *Holds) Of(mark string, k types.NamespacedName, path string) []executors.Holder {
	h.mu.Lock()
	defer h.mu.Unlock()
	u := h.byMark[mark]
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

// Restoring lets one restore of an object at a time look and write.
func (h *Holds) Restoring(mark string) (done func()) {
	h.mu.Lock()
	u := h.byMark[mark]
	h.mu.Unlock()
	if u == nil {
		return func() {}
	}
	u.restoring.Lock()
	return u.restoring.Unlock
}

// LongestPass bounds one pass, so that a hanging one cannot hold a worker for ever.
const LongestPass = 11 * time.Minute
