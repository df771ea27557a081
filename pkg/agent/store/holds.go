package store

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// Holds know which steps of live runs will put back what, by the mark of the object.
// They are read off the runs' journals, so that a restart loses nothing. What is
// over is kept for a moment, for those who looked at the object just before.
type Holds struct {
	mu     sync.Mutex
	byMark map[string]*heldObject
	byRun  map[types.NamespacedName]*holdingRun
	kept   int                                    // bytes of records that are kept
	read   func(cm *corev1.ConfigMap) run.Journal // of a run's object
}

type heldObject struct {
	restoring sync.Mutex // restores of one object come one after another: each looks who is still there
	steps     []*heldStep
}

// heldStep is a step that holds an object. Its record is read again from the run where it is
// not kept.
type heldStep struct {
	executors.Holder
	key   types.NamespacedName
	of    *holdingRun
	since time.Time
}

// holdingRun is a run with steps that hold objects.
type holdingRun struct {
	object *corev1.ConfigMap // as it last counted; nil once it has ended, and all records are kept
	marks  map[string]string // by the path of the step
	kept   int               // bytes of its records that are kept
	left   bool              // some are not
}

// overFor is how long a hold that is over is remembered: longer than a pass.
const overFor = LongestPass

// What is kept of records (guesses): of most runs all, and of loops over thousands of objects
// no more than of others. The rest stands in the runs' texts, which are packed.
const (
	maxKeptOfRun = 64 << 10
	maxKept      = 16 << 20
)

// NewHolds knows of none.
func NewHolds() *Holds {
	return &Holds{byMark: map[string]*heldObject{}, byRun: map[types.NamespacedName]*holdingRun{}, read: readJournal}
}

// readJournal reads the journal of a run that counted when it was taken in; an empty one
// where that is not possible.
func readJournal(cm *corev1.ConfigMap) run.Journal {
	return (&LiveRun{Object: cm}).whole(nil).Journal
}

// ObjectIDOf is the object of which a step recorded something, as executors.Mark has it; empty
// for what is no record of one object.
func ObjectIDOf(before json.RawMessage) string {
	var found struct {
		UID    string `json:"uid"`
		Server string `json:"server"`
	}
	if json.Unmarshal(before, &found) != nil {
		return ""
	}
	return executors.ObjectID(found.UID, found.Server)
}

// saw takes in what a run's journal says.
func (h *Holds) saw(l *CachedRun) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := l.Key()
	if r := h.byRun[k]; r != nil && l.Broken == nil { // what somebody else wrote over it is no record
		r.object = l.Object
	}
	for i := range l.Journal.Steps {
		rec := &l.Journal.Steps[i]
		if rec.Restored != "" {
			continue
		}
		h.recordedAnew(h.byRun[k], rec)
		if rec.Before == nil {
			continue
		}
		r := h.byRun[k]
		if r == nil {
			r = &holdingRun{object: l.Object, marks: map[string]string{}}
			h.byRun[k] = r
		}
		if _, known := r.marks[rec.Path]; known {
			continue
		}
		mark := ObjectIDOf(rec.Before)
		r.marks[rec.Path] = mark
		if mark == "" {
			continue
		}
		if h.byMark[mark] == nil {
			h.byMark[mark] = &heldObject{}
		}
		step := &heldStep{Holder: executors.Holder{Run: l.Run.Name, Path: rec.Path}, key: k, of: r, since: began(rec)}
		h.keep(step, rec.Before)
		h.byMark[mark].add(step)
	}
}

// recordedAnew forgets a step's record that another, or none, has taken the place of: nothing was
// written by it.
func (h *Holds) recordedAnew(r *holdingRun, rec *run.Record) {
	if r == nil {
		return
	}
	mark, known := r.marks[rec.Path]
	if !known {
		return
	}
	i, u := -1, h.byMark[mark]
	if u != nil {
		i = slices.IndexFunc(u.steps, func(s *heldStep) bool { return s.of == r && s.Path == rec.Path })
	}
	if i < 0 || rec.Before != nil && (u.steps[i].Before == nil || bytes.Equal(u.steps[i].Before, rec.Before)) {
		return
	}
	size := len(u.steps[i].Before)
	r.kept, h.kept = r.kept-size, h.kept-size
	u.steps = slices.Delete(u.steps, i, i+1)
	delete(r.marks, rec.Path)
}

// keep keeps a step's record where there is room.
func (h *Holds) keep(s *heldStep, before json.RawMessage) {
	size := len(before)
	if s.of.kept+size > maxKeptOfRun || h.kept+size > maxKept {
		s.of.left = true
		return
	}
	s.Before = before
	s.of.kept, h.kept = s.of.kept+size, h.kept+size
}

func began(rec *run.Record) time.Time {
	if rec.StartedAt == nil {
		return time.Time{}
	}
	return *rec.StartedAt
}

// add puts a holder among the others, the newest first.
func (u *heldObject) add(s *heldStep) {
	i := 0
	for i < len(u.steps) && u.steps[i].since.After(s.since) {
		i++
	}
	u.steps = slices.Insert(u.steps, i, s)
}

// Release notes that what a step found is put back, or that its run has ended.
func (h *Holds) Release(k types.NamespacedName, path string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.byRun[k]
	if r == nil || h.byMark[r.marks[path]] == nil {
		return
	}
	h.byMark[r.marks[path]].end(k, path, now)
}

// Drop notes that a run has ended, and forgets what was over long ago.
func (h *Holds) Drop(k types.NamespacedName, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.byRun[k]
	if r == nil {
		return
	}
	delete(h.byRun, k)
	if !r.left {
		r.object = nil
	}
	for _, mark := range r.marks {
		if u := h.byMark[mark]; u != nil {
			u.end(k, "", now)
		}
	}
	for mark, u := range h.byMark {
		if h.forget(u, now.Add(-overFor)) {
			delete(h.byMark, mark)
		}
	}
}

// end notes that a step of a run holds it no more; an empty path is for all of them.
func (u *heldObject) end(k types.NamespacedName, path string, now time.Time) {
	for _, s := range u.steps {
		if s.key == k && (path == "" || s.Path == path) && s.Over.IsZero() {
			s.Over = now
		}
	}
}

// forget drops what was over before an instant, and says whether nothing is left.
func (h *Holds) forget(u *heldObject, before time.Time) bool {
	u.steps = slices.DeleteFunc(u.steps, func(s *heldStep) bool {
		gone := !s.Over.IsZero() && s.Over.Before(before)
		if gone {
			s.of.kept, h.kept = s.of.kept-len(s.Before), h.kept-len(s.Before)
		}
		return gone
	})
	return len(u.steps) == 0
}

// Of are the holders of an object but for one step.
func (h *Holds) Of(mark string, k types.NamespacedName, path string) []executors.Holder {
	return h.with(map[*corev1.ConfigMap]map[string]json.RawMessage{}, mark, k, path)
}

// Lookup is who holds objects, for a look at many of them: it reads each run's journal once, and none
// without records.
func (h *Holds) Lookup(records bool) func(mark string) []executors.Holder {
	read := map[*corev1.ConfigMap]map[string]json.RawMessage{}
	return func(mark string) []executors.Holder {
		if records {
			return h.with(read, mark, types.NamespacedName{}, "")
		}
		out, _ := h.of(mark, types.NamespacedName{}, "")
		return out
	}
}

// with are the holders of an object with their records, by path, as read has them or comes to have them.
func (h *Holds) with(read map[*corev1.ConfigMap]map[string]json.RawMessage, mark string, k types.NamespacedName, path string) []executors.Holder {
	out, unread := h.of(mark, k, path)
	for i, object := range unread { // without the lock: a journal may be long
		if read[object] == nil {
			read[object] = map[string]json.RawMessage{}
			for _, rec := range h.read(object).Steps {
				read[object][rec.Path] = rec.Before
			}
		}
		out[i].Before = read[object][out[i].Path]
	}
	return out
}

// of are the holders of an object but for one step, and the runs of those whose records are
// not kept, by their place among them.
func (h *Holds) of(mark string, k types.NamespacedName, path string) (out []executors.Holder, unread map[int]*corev1.ConfigMap) {
	h.mu.Lock()
	defer h.mu.Unlock()
	u := h.byMark[mark]
	if u == nil {
		return nil, nil
	}
	for _, s := range u.steps {
		if s.key == k && s.Path == path {
			continue
		}
		if s.Before == nil && s.of.object != nil {
			if unread == nil {
				unread = map[int]*corev1.ConfigMap{}
			}
			unread[len(out)] = s.of.object
		}
		out = append(out, s.Holder)
	}
	return out, unread
}

// LockRestore lets one restore of an object at a time look and write.
func (h *Holds) LockRestore(mark string) (done func()) {
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

// Refusals remembers since when something has been refused without a break. It is
// in memory: a new leader begins the half minute anew.
type Refusals[K comparable] struct {
	mu    sync.Mutex
	since map[K]workflow.Refusal
}

// NewRefusals has seen none.
func NewRefusals[K comparable]() *Refusals[K] { return &Refusals[K]{since: map[K]workflow.Refusal{}} }

// Record notes another refusal, and says whether it is final.
func (r *Refusals[K]) Record(of K, now time.Time) (workflow.Refusal, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, final := r.since[of].Again(now)
	r.since[of] = next
	return next, final
}

// Clear notes that something is refused no more.
func (r *Refusals[K]) Clear(of K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.since, of)
}

// Forget drops what match is true for.
func (r *Refusals[K]) Forget(match func(K) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for of := range r.since {
		if match(of) {
			delete(r.since, of)
		}
	}
}
