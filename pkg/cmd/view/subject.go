package view

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Subject is what a command about permission speaks of.
type Subject struct {
	Kind, Namespace, Name string // plan, policy or node
	UID                   string // of a plan
	Zone                  string // in which people think of its times
	Gate                  *schedule.Gate
	policy, unpaused      *schedule.Policy // with and without its own pause; nil: it is none
	Pauses                []schedule.Pause
	Above                 *schedule.Gate // decides over a policy where not all that does may be read; nil: all may
	Invalid               string         // why nothing of a plan begins, whatever is permitted; empty: it is valid
	Gates                 string         // what the agent says of a policy's gates; empty: it has none
	Deleting              bool           // its namespace is being deleted: nothing begins in it
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

// Permission is a verdict in words, without its reason.
func Permission(v schedule.Verdict) string {
	switch {
	case v.Permitted:
		return "change is permitted"
	case v.Unknown():
		return "whether change is permitted is not known"
	}
	return "change is not permitted"
}

// Verdict says what is permitted at an instant, pauses included: what is paused is not permitted,
// whatever its windows say.
func (s Subject) Verdict(at time.Time) schedule.Verdict {
	with, without := s.asks()
	v := schedule.LongestPause(s.Pauses...).Verdict(at, with, without)
	if s.Above != nil && (v.Permitted || v.Hidden()) {
		return s.Above.Verdict(at)
	}
	return v
}

// asks are the policy for the verdict, with and without the pause.
func (s Subject) asks() (with, without func(time.Time) schedule.Verdict) {
	if s.policy != nil {
		return s.policy.Verdict, s.unpaused.Verdict
	}
	return s.Gate.Verdict, s.Gate.Verdict
}

// PauseAt is the pause at an instant; off: none.
func (s Subject) PauseAt(at time.Time) schedule.Pause {
	return holding(at, s.Pauses...)
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
