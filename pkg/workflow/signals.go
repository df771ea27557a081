package workflow

import (
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// SignalsOf is what people ask of a run by the annotations of its plan, and by the
// pause of that or of what is above it. What the caller knows of gates, nodes and
// other runs is for it to add.
func SignalsOf(in intent.Intent, r run.Run, j run.Journal, above []schedule.Pause, now time.Time) Signals {
	var sig Signals
	said := func(what string) intent.Actor {
		actor := in.Actors[what]
		actor.At = now.UTC()
		return actor
	}
	if in.Abort.For(r.Name) {
		actor := said("abort")
		sig.Abort = &run.End{Phase: run.Aborted, Reason: "Aborted", Actor: actor.Name, Message: actor.Said("aborted"), By: &actor}
	}
	if resume := (&Answer{Step: in.Resume.Step, Actor: said("resume")}); in.Resume.For(r.Name) && resumes(r, j, resume) {
		sig.Resume = resume
	}
	if in.Approve.For(r.Name) {
		sig.Approve = &Answer{Step: in.Approve.Step, Actor: said("approve")}
	}
	if in.Reject.For(r.Name) {
		sig.Reject = &Answer{Step: in.Reject.Step, Actor: said("reject")}
	}
	if p := schedule.LongestPause(append(slices.Clone(above), in.Pause)...); p.Holds(now) {
		sig.Paused = document.Cut(p.Said(), document.MaxMessage/2)
		sig.Held = sig.Paused + ": no new step begins"
	}
	return sig
}

// OfRun is who said it of the run itself, and not of one of its steps; nil: nobody.
func (a *Answer) OfRun() *intent.Actor {
	if a == nil || a.Step != "" {
		return nil
	}
	return &a.Actor
}

// resumes says whether something waits for a resume: a suspend at work, or what somebody changed.
func resumes(r run.Run, j run.Journal, resume *Answer) bool {
	return slices.ContainsFunc(j.Steps, func(rec run.Record) bool {
		suspended := rec.Type == "suspend" && rec.Phase == run.StepRunning
		return resume.Covers(rec.Path) && (suspended || r.HeldByDrift(rec))
	})
}
