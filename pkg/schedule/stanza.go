package schedule

import (
	"fmt"
	"iter"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// Strategy is what a policy or a stanza says.
type Strategy string

// MaintenanceScheduled is for policies alone, ByPolicy and the Untils for
// stanzas alone.
const (
	Permissive           Strategy = "Permissive"
	Restrictive          Strategy = "Restrictive"
	MaintenanceScheduled Strategy = "MaintenanceSchedule"
	ByPolicy             Strategy = "ByPolicy"
	PermissiveUntil      Strategy = "PermissiveUntil"
	RestrictiveUntil     Strategy = "RestrictiveUntil"
)

// PolicySpec is when a policy permits change.
type PolicySpec struct {
	Strategy            Strategy             `json:"strategy,omitempty"`
	MaintenanceSchedule *MaintenanceSchedule `json:"maintenanceSchedule,omitempty"`
}

// Policy is a PolicySpec that was understood, or one that is not ready. It is
// immutable and safe for concurrent use.
type Policy struct {
	Name      string
	Namespace string // as causes give it; empty: not known
	gate      *Gate
}

// ParsePolicy reads a policy; name is what reasons call it. The error joins one *FieldError for
// every fault. With Permissive and Restrictive the maintenance schedule is ignored, also its
// faults: lint finds them with ParseMaintenanceSchedule.
func ParsePolicy(name string, spec PolicySpec, calendars Calendars) (*Policy, error) {
	of := Cause{Policy: name}
	switch spec.Strategy {
	case Permissive:
		return newPolicy(name, &constant{permits: true, why: of.because("", string(Permissive))}), nil
	case Restrictive:
		return newPolicy(name, &constant{why: of.because("", string(Restrictive))}), nil
	case MaintenanceScheduled:
		timeline, err := parseTimeline(of, spec.MaintenanceSchedule, calendars)
		if err != nil {
			return nil, Under("maintenanceSchedule", err)
		}
		return newPolicy(name, timeline), nil
	}
	return nil, &FieldError{Field: "strategy", Value: string(spec.Strategy), Message: "write Permissive, Restrictive or MaintenanceSchedule"}
}

// PolicyNotReady stands for a policy that is missing, broken or not yet
// evaluated; why says which.
func PolicyNotReady(name, why string) *Policy {
	return newPolicy(name, &unready{why: Cause{Policy: name}.because("", "not ready: "+why)})
}

// PolicyHidden stands for a policy of which whoever asks may not read all that it says; why says what.
func PolicyHidden(name, why string) *Policy {
	return newPolicy(name, &unready{why: Cause{Policy: name}.because(CauseHidden, why)})
}

func newPolicy(name string, c course) *Policy {
	return &Policy{Name: name, gate: &Gate{course: c}}
}

// Paused is the policy restrictive until a pause ends.
func (p *Policy) Paused(by Pause) *Policy {
	why := p.cause().because(CausePause, by.Said())
	if by.Until == nil {
		return p.with(&prefix{until: civil.Never, then: p.gate.course, why: why})
	}
	return p.with(newPrefix(false, *by.Until, p.gate.course, why))
}

// cause is what a verdict follows from that somebody wrote on the policy.
func (p *Policy) cause() Cause { return Cause{Policy: p.Name, PolicyNamespace: p.Namespace} }

// with is the policy with another course.
func (p *Policy) with(c course) *Policy {
	return &Policy{Name: p.Name, Namespace: p.Namespace, gate: (&Gate{course: c}).Within(p.gate.budget)}
}

// Within is Gate.Within of a policy.
func (p *Policy) Within(b Budget) { p.gate.Within(b) }

// Overridden is the policy with a stanza on it, which overrides the policy itself. PermissiveUntil
// and RestrictiveUntil hold until their instant; from then on the policies that the stanza names
// decide, or else the policy itself.
func (p *Policy) Overridden(by Stanza) *Policy {
	if !by.set() {
		return p
	}
	return p.with(by.course(p.cause(), p.gate.course))
}

// Verdict is what the policy says at an instant.
func (p *Policy) Verdict(now time.Time) Verdict { return p.gate.Verdict(now) }

// At is the state of the policy at an instant; a policy that is not ready is
// closed.
func (p *Policy) At(t time.Time) State { return stateOf(p.gate.course, t) }

// Intervals are the stretches in which the policy permits change, as those of a
// Timeline.
func (p *Policy) Intervals(from time.Time) iter.Seq[Interval] {
	return intervalsOf(p.gate.course, from)
}

// Ready tells whether the policy can be relied on at an instant.
func (p *Policy) Ready(now time.Time) bool { return p.gate.course.ready(now.Unix()) }

// Stanza is what the annotations of an object say: the strategy, the policies
// that change-policy names, and the instant of the Until. A policy that is
// named and not there is to be PolicyNotReady.
type Stanza struct {
	Strategy Strategy
	Policies []*Policy
	Until    *time.Time
	By       string // who said so and why, as it follows a sentence: " by jane: launch"
	Unread   string // why whoever asks does not know what it says: it binds, and is not ready
}

// ParseStrategy reads the change-strategy of a stanza; the empty text is no strategy. The error is
// a *FieldError of the field "change-strategy".
func ParseStrategy(text string) (Strategy, error) {
	switch s := Strategy(text); s {
	case "", ByPolicy, Permissive, Restrictive, PermissiveUntil, RestrictiveUntil:
		return s, nil
	}
	return "", &FieldError{Field: "change-strategy", Value: text, Message: "write ByPolicy, Permissive, Restrictive, PermissiveUntil or RestrictiveUntil"}
}

// set tells whether the stanza says anything. Policies that are named without a
// strategy are meant to be asked.
func (s Stanza) set() bool { return s.Strategy != "" || len(s.Policies) > 0 || s.Unread != "" }

// course is the stanza over time; policy is what it gives way to unless it
// names policies itself, and may be nil.
func (s Stanza) course(of Cause, policy course) course {
	if s.Unread != "" {
		return &unready{why: of.because(CauseHidden, s.Unread)}
	}
	if len(s.Policies) > 0 {
		policy = coursesOf(s.Policies)
	}
	switch s.Strategy {
	case "", ByPolicy:
		if policy == nil {
			return &unready{why: of.because("", "not ready: ByPolicy names no policy")}
		}
		return policy
	case Permissive, Restrictive:
		return &constant{permits: s.Strategy == Permissive, why: of.because("", string(s.Strategy)+s.By)}
	case PermissiveUntil, RestrictiveUntil:
		if s.Until == nil {
			return &unready{why: of.because("", "not ready: "+string(s.Strategy)+" without its instant")}
		}
		permits := s.Strategy == PermissiveUntil
		if policy == nil {
			policy = &constant{permits: !permits, why: of.because("", s.untilText()+isOver)}
		}
		return newPrefix(permits, *s.Until, policy, s.explain(of))
	}
	return &unready{why: of.because("", fmt.Sprintf("not ready: strategy %q is not known", s.Strategy))}
}

// isOver ends what is said of an Until that no policy follows.
const isOver = " is over"

// untilText names the strategy and the instant at which it ends.
func (s Stanza) untilText() string { return string(s.Strategy) + " " + stampOf(*s.Until) }

// explain is why an Until that holds permits change, or does not.
func (s Stanza) explain(of Cause) explanation {
	kind := CauseFreeze
	if s.Strategy == PermissiveUntil {
		kind = CauseAllow
	}
	return of.because(kind, s.untilText()+s.By)
}

func coursesOf(policies []*Policy) course {
	list := make([]course, len(policies))
	for i, p := range policies {
		if p == nil {
			list[i] = &unready{why: explanation{text: "not ready: a policy is missing"}}
			continue
		}
		list[i] = p.gate.course
	}
	if len(list) == 1 {
		return list[0]
	}
	return every(list)
}

func stampOf(t time.Time) string {
	return t.UTC().Format(time.RFC3339)
}

// GateSpec is all that decides whether change of one object is permitted.
type GateSpec struct {
	Own       Stanza    // the object's own
	Namespace Stanza    // that of its namespace
	Policies  []*Policy // spec.policies of a plan; all must permit
	Bypass    *time.Time
	BypassBy  string // who said so and why, as it follows a sentence
}

// Gate is a GateSpec over time. It is safe for concurrent use.
type Gate struct {
	course course
	memo   memo
	budget Budget // of its searches beside their own bounds; nil: none
}

// Within has the searches of the gate end where a budget is spent. What they have not found then is
// not known yet, and looked for again later.
func (g *Gate) Within(b Budget) *Gate {
	g.budget = b
	return g
}

// Kept is the gate itself where another answers the same, for what it remembers; else the other.
func (g *Gate) Kept(now *Gate) *Gate {
	if g != nil && now != nil && sameCourse(g.course, now.course) {
		return g
	}
	return now
}

// NewGate combines the stanzas. The object's own comes first, then the policies
// of its spec, then its namespace; but a namespace's Restrictive or
// RestrictiveUntil binds everything below, and only a bypass passes it.
func NewGate(spec GateSpec) *Gate {
	var namespace, policies course
	if spec.Namespace.set() {
		namespace = spec.Namespace.course(Cause{Namespace: true}, nil)
	}
	if len(spec.Policies) > 0 {
		policies = coursesOf(spec.Policies)
	}
	fallback := policies
	if fallback == nil {
		fallback = namespace
	}
	var c course
	switch {
	case spec.Own.set():
		c = spec.Own.course(Cause{}, fallback)
	case fallback != nil:
		c = fallback
	default:
		c = &constant{permits: true, why: explanation{text: "no strategy is set"}}
	}
	c = spec.Namespace.bind(c, namespace)
	if spec.Bypass != nil {
		c = newPrefix(true, *spec.Bypass, c, Cause{}.because(CauseBypass, bypassUntil+stampOf(*spec.Bypass)+spec.BypassBy))
	}
	return &Gate{course: c}
}

// bind puts a restrictive namespace above what was decided below it.
func (s Stanza) bind(below, own course) course {
	switch {
	case s.Unread != "", s.Strategy == Restrictive, s.Strategy == RestrictiveUntil && s.Until == nil:
		return own
	case s.Strategy == RestrictiveUntil:
		return newPrefix(false, *s.Until, below, s.explain(Cause{Namespace: true}))
	}
	return below
}
