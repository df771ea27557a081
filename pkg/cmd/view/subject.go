package view

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// LongerPause is the one of two pauses that ends later.
func LongerPause(a, b schedule.Pause) schedule.Pause {
	switch {
	case !b.On:
		return a
	case !a.On, b.Until == nil, a.Until != nil && b.Until.After(*a.Until):
		return b
	}
	return a
}

// Subject is what a command about permission speaks of.
type Subject struct {
	Kind, Namespace, Name string // plan, policy or node
	UID                   string // of a plan
	Zone                  string // in which people think of its times
	Gate                  *schedule.Gate
	policy, unpaused      *schedule.Policy // with and without its own pause; nil: it is none
	Pauses                []schedule.Pause
	Invalid               string // why nothing of a plan begins, whatever is permitted; empty: it is valid
	Gates                 string // what the agent says of a policy's gates; empty: it has none
	Deleting              bool   // its namespace is being deleted: nothing begins in it
	Intervals             func(from time.Time, yield func(schedule.Interval) bool)
}

// String is KIND/NAME.
func (s Subject) String() string { return s.Kind + "/" + s.Name }

// Stopped says why nothing of it begins, whatever is permitted; empty: nothing is known to stop it.
func (s Subject) Stopped() string { return Stopped(s.Deleting, s.Invalid) }

// Stopped is why nothing of a plan begins, in a few words; empty: nothing is known to stop it.
func Stopped(deleting bool, invalid string) string {
	switch {
	case deleting:
		return NamespaceGoes
	case invalid != "":
		return "the plan is invalid"
	}
	return ""
}

// Verdict says what is permitted at an instant, pauses included: what is paused is not permitted,
// whatever its windows say. When a pause began is not known: Since is set if the windows were
// closed before.
func (s Subject) Verdict(at time.Time) schedule.Verdict {
	ask, below := s.asks()
	v := ask(at)
	pause := s.longestPause()
	if !pause.Holds(at) || !v.Ready {
		return v
	}
	out := schedule.Verdict{Ready: true, Reason: pause.Said(), Cause: schedule.Cause{Kind: schedule.CausePause}, NextChangeETA: schedule.ForEver}
	if pause.Until != nil {
		out = pausedUntil(pause, at, ask)
	}
	if v := below(at); v.Ready && !v.Permitted {
		out.Since = v.Since
	}
	return out
}

// asks are the policy for the verdict, with and without the pause.
func (s Subject) asks() (with, without func(time.Time) schedule.Verdict) {
	if s.policy != nil {
		return s.policy.Verdict, s.unpaused.Verdict
	}
	return s.Gate.Verdict, s.Gate.Verdict
}

func (s Subject) longestPause() schedule.Pause {
	var pause schedule.Pause
	for _, p := range s.Pauses {
		pause = LongerPause(pause, p)
	}
	return pause
}

// PauseAt is the pause at an instant; off: none.
func (s Subject) PauseAt(at time.Time) schedule.Pause {
	if pause := s.longestPause(); pause.Holds(at) {
		return pause
	}
	return schedule.Pause{}
}

// pausedUntil is closed until the end of a pause, and on from there while the gate below is closed,
// too.
func pausedUntil(pause schedule.Pause, at time.Time, ask func(time.Time) schedule.Verdict) schedule.Verdict {
	v, end := schedule.Verdict{Ready: true, Reason: pause.Said(), Cause: schedule.Cause{Kind: schedule.CausePause}}, *pause.Until
	then := ask(end)
	opens := &end
	if !then.Permitted {
		opens = then.Until
	}
	if opens == nil || !then.Ready {
		v.NextChangeETA = schedule.ForEver
		return v
	}
	at2 := opens.UTC()
	v.Until = &at2
	v.Next = &schedule.Following{Permitted: true, Start: at2}
	if after := ask(at2); after.Until != nil {
		v.Next.End = after.Until
	}
	v.NextChangeETA = at2.Unix() - at.Unix()
	return v
}

// PolicySubject is a policy.
func PolicySubject(namespace, name, zone string, b *policy.Resolver) Subject {
	s := Subject{Kind: annotations.KindPolicy, Namespace: namespace, Name: name, Zone: zone, policy: b.Policy(namespace, name), unpaused: b.Unpaused(namespace, name)}
	s.Intervals = func(from time.Time, yield func(schedule.Interval) bool) { s.policy.Intervals(from)(yield) }
	return s
}

// NewSubject is a plan or a node with its gate.
func NewSubject(kind, namespace, name, zone string, gate *schedule.Gate) Subject {
	s := Subject{Kind: kind, Namespace: namespace, Name: name, Zone: zone, Gate: gate}
	s.Intervals = func(from time.Time, yield func(schedule.Interval) bool) { s.Gate.Intervals(from)(yield) }
	return s
}
