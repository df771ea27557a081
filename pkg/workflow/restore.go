package workflow

import (
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// maxRestores is how many restores of one run are under way at once (a guess: each
// is a request or two, and other runs want to be served, too).
const maxRestores = 100

// lastTry is how long a restore may take that was never tried before the time for
// restores was over: what held others up must not be why it never is.
const lastTry = time.Minute

// restore undoes steps with restoreAfter in the reverse of their order: what ran
// side by side is put back side by side, and what came later comes back first.
func (a *advance) restore() (Action, bool) {
	if m, ok := a.stopping(); ok {
		return m, true
	}
	limit := a.sectionLimit(plan.StepPath(plan.SectionRestore, "x"))
	late := !limit.IsZero() && !a.now.Before(limit)
	over := late && !a.now.Before(limit.Add(plan.DefaultCleanupDuration))
	var failed []string
	var open undo
	for i := range a.j.Steps {
		rec := &a.j.Steps[i]
		if rec.Before == nil || rec.Restored != "" && rec.Restored != run.RestoreFailed || !plan.Restores(a.find(rec.Path)) {
			continue
		}
		if rec.Restored == "" && (over || late && rec.Waits != "") {
			a.outOfTime(rec)
		}
		if rec.Restored == run.RestoreFailed {
			failed = append(failed, rec.Path)
			continue
		}
		open.add(a.tree.Chain(rec.Path), i)
	}
	if late {
		limit = a.now.Add(lastTry)
	}
	if ready := a.ready(&open); len(ready) > 0 {
		return a.restoreMove(ready, limit), true
	}
	if len(failed) > 0 {
		a.cleanupFailed(failed[0])
	}
	a.enter(plan.SectionFinally)
	return Action{}, false
}

// outOfTime ends a restore that could not be done.
func (a *advance) outOfTime(rec *run.Record) {
	rec.Restored, rec.RestoreMessage = run.RestoreFailed, waited(fmt.Sprintf("was not restored within %s", plan.DefaultCleanupDuration), rec.Waits)
	rec.Waits = ""
}

func (a *advance) restoreMove(ready []int, limit time.Time) Action {
	moves := make([]Action, len(ready))
	for i, at := range ready {
		path := a.j.Steps[at].Path
		moves[i] = Action{Act: ActRestore, Path: path, Step: a.find(path), WakeAt: limit}
	}
	m := moves[0]
	m.Besides = moves[1:]
	return m
}

// undo is what is still to be put back at one place of a run and below it: in a
// section, in a step that holds others, in one item of a loop.
type undo struct {
	name   string    // of the section, the step or the item
	step   plan.Step // of a step
	path   string
	at     int // of a step that holds no others: its record
	kids   []*undo
	byName map[string]*undo
}

// kid is the place of a name right below, made where it is not there yet.
func (u *undo) kid(name string) *undo {
	if k := u.byName[name]; k != nil {
		return k
	}
	if u.byName == nil {
		u.byName = map[string]*undo{}
	}
	k := &undo{name: name}
	u.byName[name] = k
	u.kids = append(u.kids, k)
	return k
}

// add takes in the record of a step, by the way to it.
func (u *undo) add(way []plan.Link, at int) {
	if len(way) == 0 {
		return
	}
	here := u.kid(string(plan.SectionOf(way[0].Path)))
	for _, l := range way {
		here = here.kid(l.Step.Name)
		here.step, here.path, here.at = l.Step, l.Path, at
		if l.Item != "" {
			here = here.kid(l.Item)
			here.path = l.Path + "/" + l.Item
		}
	}
}

// ready are the records of what may be put back now.
func (a *advance) ready(open *undo) []int {
	for _, name := range []plan.Section{plan.SectionFinally, plan.SectionOnFailure, plan.SectionSteps} {
		for _, s := range plan.Sections(a.run.Spec) {
			if u := open.byName[string(name)]; u != nil && s.Name == name {
				ready := a.lastOf(u, s.Steps)
				return ready[:min(len(ready), maxRestores)]
			}
		}
	}
	return nil
}

// lastOf is what may be put back of steps that run in order: of the last of them
// that has anything left.
func (a *advance) lastOf(u *undo, steps []plan.Step) []int {
	for _, step := range slices.Backward(steps) {
		if k := u.byName[step.Name]; k != nil {
			return a.readyIn(k)
		}
	}
	return nil
}

func (a *advance) readyIn(u *undo) []int {
	steps := a.tree.Children(u.step)
	side, most := u.step.Parallel()
	switch {
	case len(u.kids) == 0:
		return []int{u.at}
	case plan.IsLoop(u.step.Type):
		return a.lastItems(u)
	case side:
		return a.lastBeside(u, steps, most)
	}
	return a.lastOf(u, steps)
}

// lastBeside is what may be put back of steps that ran side by side: those that
// depend on others come first.
func (a *advance) lastBeside(u *undo, steps []plan.Step, most int) (ready []int) {
	waits := neededBy(u, steps)
	for _, step := range slices.Backward(steps) {
		k := u.byName[step.Name]
		if k == nil || waits[step.Name] || most <= 0 {
			continue
		}
		some := a.readyIn(k)
		ready = append(ready, some...)
		most -= min(a.busy(some), 1)
	}
	return ready
}

// neededBy are the steps on which one depends that has something left, also through
// others.
func neededBy(u *undo, steps []plan.Step) map[string]bool {
	needed := map[string]bool{}
	for more := true; more; {
		more = false
		for _, step := range steps {
			if u.byName[step.Name] == nil && !needed[step.Name] {
				continue
			}
			for _, name := range step.DependsOn {
				more = more || !needed[name]
				needed[name] = true
			}
		}
	}
	return needed
}

// lastItems is what may be put back of a loop's items: as many at once as were at
// work at once, the last first, and no batch before the one after it. What an
// earlier listing left, and the present one does not hold, comes last.
func (a *advance) lastItems(u *undo) (ready []int) {
	rec := a.record(u.path)
	if rec == nil {
		rec = &run.Record{}
	}
	place := make(map[string]int, len(rec.Items))
	for i := range rec.Items {
		place[rec.Items[i].Segment()] = i + 1
	}
	kids := slices.Clone(u.kids)
	slices.SortStableFunc(kids, func(x, y *undo) int { return place[y.name] - place[x.name] })
	ends, most := run.LoopBatches(u.step, len(rec.Items)), u.step.Concurrency(1)
	last := batchOf(ends, place[kids[0].name])
	for _, k := range kids {
		if most <= 0 || batchOf(ends, place[k.name]) != last {
			break
		}
		some := a.lastOf(k, a.tree.Children(u.step))
		ready = append(ready, some...)
		most -= min(a.busy(some), 1)
	}
	return ready
}

// batchOf is the batch of the item at a place, counted from 1; of none, below all.
func batchOf(ends []int, place int) int {
	if place == 0 {
		return -1
	}
	i, _ := slices.BinarySearch(ends, place)
	return i
}

// busy is how many of these are to be tried for the first time. One that was tried
// and has to wait, for a right or an answer, takes nobody's place.
func (a *advance) busy(records []int) (n int) {
	for _, i := range records {
		if a.j.Steps[i].Waits == "" {
			n++
		}
	}
	return n
}
