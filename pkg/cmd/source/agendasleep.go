package source

import (
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/calendar"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
)

// sleeper adds when a HibernatePlan sleeps, by its schedule or a hold, with the reasons why it does
// not sleep in some of that.
func (a *Agenda) sleeper(p HibernatePlan) {
	owner := calendar.Owner{Kind: annotations.KindHibernatePlan, Namespace: p.Namespace, Name: p.Name}
	s := a.World.sleeper(p)
	if s.Table == nil {
		return
	}
	a.Owners = append(a.Owners, owner)
	held, holds := a.heldAsleep(owner, p)
	count := 0
	from := p.past.after(a.From)
	for w := range s.SleepWindows(a.Now, from, a.stamp) {
		e := a.sleepEntry(owner, p, w)
		if !e.Start.Before(a.To) {
			break
		}
		if count++; count > mostEntries {
			a.tooMany(owner, "stretches of sleep", e.Start)
			break
		}
		if !e.Unbegun && p.past.covers(e.End, a.Now) {
			p.past.note(&e)
		}
		if !holds || beside(&e, &held) {
			a.add(e)
		}
	}
	if holds && held.Start.Before(held.End) && held.Start.Before(a.To) {
		a.add(held)
	}
}

// sleepEntry is an entry of the schedule, as far as anything of it remains.
func (a *Agenda) sleepEntry(owner calendar.Owner, p HibernatePlan, w view.SleepWindow) calendar.Entry {
	e := calendar.Entry{Kind: calendar.Sleep, Owner: owner, Start: w.Start, End: w.End, Unbegun: w.Start.IsZero(), Unending: w.End.IsZero(), Note: w.Note, Idle: w.Awake}
	if e.Unbegun {
		e.Start = p.past.after(a.From)
	}
	if created := p.past.created; e.Start.Before(created) {
		e.Start, e.Key = created, ""
	}
	if e.Unending {
		e.End = a.To
	}
	return e
}

// heldAsleep is the sleep of a plan that is held asleep; false: it is not. In a cluster it begins
// when the plan fell asleep, or is about to; for a file that is not known.
func (a *Agenda) heldAsleep(owner calendar.Owner, p HibernatePlan) (calendar.Entry, bool) {
	e := calendar.Entry{Kind: calendar.Sleep, Owner: owner, Start: a.From, End: a.To, Unbegun: true, Unending: p.Hold.Until == nil, Note: intent.Held(true) + a.World.sleeper(p).HeldBy(), Key: "held"}
	if p.Hold.Until != nil {
		e.End = *p.Hold.Until
	}
	if p.Spec.DryRun && p.past.asleep.IsZero() {
		e.Note, e.Idle = view.DryRun+", "+e.Note, true
	}
	if !p.Hold.Asleep || !p.Hold.Holds(a.Now) && !p.Hold.Holds(a.From) {
		return e, false
	}
	if !p.past.created.IsZero() {
		e.Start, e.Unbegun = a.Now, false
		if at := p.past.asleep; !at.IsZero() && at.Before(a.Now) {
			e.Start = at
		}
	}
	if e.Start.Before(a.From) {
		e.Start, e.Unbegun = a.From, true
	}
	return e, true
}

// beside says whether a window of the schedule is drawn beside a held sleep, without overlap: one
// that began by the schedule is drawn in full; of one that goes on after the hold, only the rest.
func beside(e, held *calendar.Entry) bool {
	switch {
	case !e.End.After(held.Start) || !e.Start.Before(held.End):
	case e.Start.Before(held.Start) && !held.Unbegun && e.Idle:
		e.End = held.Start
	case e.Start.Before(held.Start) && !held.Unbegun:
		held.Start = e.End
	case !e.End.After(held.End):
		return false
	default:
		e.Start, e.Unbegun, e.Key = held.End, false, ""
	}
	return true
}
