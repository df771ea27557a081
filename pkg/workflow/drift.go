package workflow

import (
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// maxLooks is of how many steps a run's effects are looked after (a guess: each is a
// watch). It is those of the first.
const maxLooks = 50

// Holding says whether others are to leave what a step did as it is while the run lives.
func Holding(step plan.Step, rec run.Record) bool {
	switch {
	case rec.Phase != run.StepSucceeded || plan.SectionOf(rec.Path) != plan.SectionSteps:
		return false
	case plan.KeepsEffect(rec.Type):
		return true
	}
	return rec.Before != nil && plan.Restores(step)
}

// drift holds or ends a run whose effects somebody changed, unless that is only to be told. Who
// resumes it accepts what was seen, and nothing else.
func (a *advance) drift() {
	for _, rec := range a.j.OpenDrifts() {
		if a.run.HeldByDrift(rec) && a.sig.Resume.Covers(rec.Path) {
			a.accept(rec.Path, a.sig.Resume.Actor)
		}
	}
	drifting := a.j.OpenDrifts()
	if len(drifting) == 0 || a.run.Spec.OnDrift == plan.DriftIgnore {
		return
	}
	said := a.j.DriftMessage()
	if a.run.Spec.OnDrift == plan.DriftFail {
		if a.sig.Abort == nil && !a.sig.Replace {
			a.cut(run.End{Phase: run.Failed, Reason: run.ReasonDrift, Step: drifting[0].Path, Message: said})
		}
		return
	}
	if a.sig.Held == "" {
		until := ": no new step begins until it is as the step left it, or somebody resumes the run: " + intent.Command(a.run.Namespace, "resume", a.run.Name)
		a.sig.Held = document.Cut(said, document.MaxMessage-len(until)) + until
	}
}

func (a *advance) accept(path string, by intent.Actor) {
	rec := a.record(path)
	d := *rec.Drift
	d.Accepted = &by
	rec.Drift = &d
}

// looks adds the looks at what steps did to a move: whoever moves the run makes one when
// there is something new to see.
func (a *advance) looks(m Action) Action {
	if a.j.End != nil || a.j.Section != plan.SectionSteps && a.j.Section != "" || a.run.Request.DryRun || m.Act == ActClose {
		return m
	}
	n := 0
	for _, rec := range a.j.Steps {
		if n < maxLooks && a.isLookedAfter(&rec) {
			m.Besides = append(m.Besides, Action{Act: ActCheckDrift, Path: rec.Path, Step: a.find(rec.Path)})
			n++
		}
	}
	return m
}

// SetByRun says whether another step of the run set a field after the step at a path had
// ended, as far as the journal tells. A step that found its effect there, perhaps from an
// attempt whose outcome was lost, does not say what it set: then it may have been this.
func SetByRun(r run.Run, j run.Journal, path, kind, name, field string) bool {
	rec := j.Record(path)
	if rec == nil || j.ChangedSince(path, kind, name, field) {
		return true
	}
	tree := r.Tree()
	for _, other := range j.Steps {
		begun := other.Phase != run.StepPending && other.Phase != run.StepSkipped
		before := rec.FinishedAt != nil && other.FinishedAt != nil && other.FinishedAt.Before(*rec.FinishedAt)
		if other.Path == path || !begun || before || !run.Writes(other.Type) || len(other.Changed) > 0 {
			continue
		}
		item, _, _ := r.ItemOf(j, other.Path)
		if step, _ := tree.Find(other.Path); mayWrite(step, r.Spec.Target, kind, name, item.Name) {
			return true
		}
	}
	return false
}

// mayWrite says whether a step may be about an object: where a template names it, it may, unless it
// is the name of the step's own item.
func mayWrite(step plan.Step, target *plan.ObjectRef, kind, name, item string) bool {
	means := func(text any, value string) bool {
		s, is := text.(string)
		if item != "" {
			s = strings.ReplaceAll(s, "${each.metadata.name}", item)
		}
		return !is || s == value || strings.Contains(s, "${")
	}
	for _, key := range []string{"object", "resource"} {
		given, is := step.Properties[key].(map[string]any)
		if !is {
			continue
		}
		if meta, applied := given["metadata"].(map[string]any); applied {
			return means(given["kind"], kind) && means(meta["name"], name)
		}
		return means(given["kind"], kind) && means(given["name"], name)
	}
	return target != nil && target.Kind == kind && target.Name == name
}

// NoteDrift writes down whether what a step did is as it left it; nil: it is.
func NoteDrift(j run.Journal, path string, d *run.Drift, now time.Time) run.Journal {
	return with(j, path, func(rec *run.Record) {
		was := rec.Drift
		d := d.Without(was.Accepts)
		switch {
		case d == nil && was.IsOpen():
			over := *was
			over.Over = new(now.UTC())
			rec.Drift = &over
		case d != nil && was.IsOpen() && was.Same(*d):
		case d != nil:
			fresh := *d
			fresh.SeenAt = now.UTC()
			fresh.Earlier, fresh.AllAccepted = was.AcceptedChanges()
			rec.Drift = &fresh
		}
	})
}

// NoteUnchecked writes down why what a step did cannot be read now; empty: it was read. The first
// cause stands until then.
func NoteUnchecked(j run.Journal, path, why string) run.Journal {
	return with(j, path, func(rec *run.Record) {
		if why == "" || rec.Unchecked == "" {
			rec.Unchecked = document.Cut(why, document.MaxMessage/2)
		}
	})
}

// NoteUnwatched writes down whether the account may not watch what a step did.
func NoteUnwatched(j run.Journal, path string, unwatched bool) run.Journal {
	return with(j, path, func(rec *run.Record) { rec.Unwatched = unwatched })
}
