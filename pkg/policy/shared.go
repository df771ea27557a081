package policy

import (
	"slices"
	"sync"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Shared is a Resolver that many ask at once. Nobody waits for its lock while a policy is parsed:
// whoever needs a policy waits for that one, and for no other.
type Shared struct {
	mu       sync.Mutex
	resolver *Resolver
	asked    map[string]askedGate
}

// askedGate is the gate of one question as the resolver answered it.
type askedGate struct {
	gate       *schedule.Gate
	generation int64
}

// KeptGate is a gate that somebody keeps until the question changes or what it depends on in the
// resolver: the gate remembers the stretch that it was asked about.
type KeptGate struct {
	Query      Query
	generation int64
	Gate       *schedule.Gate // nil: nothing stands between the object and its change
}

const (
	// mostAsked bounds the gates that are kept for plans, runs and nodes.
	mostAsked = 20_000
	// mostEdits is how often the policies of a question may be edited while they are parsed for it
	// (a guess). Then they are not ready for this once.
	mostEdits = 5
)

// NewShared is a resolver for many that knows nothing yet.
func NewShared(agentNamespace string) *Shared {
	b := NewResolver(agentNamespace)
	b.shared = true
	return &Shared{resolver: b, asked: map[string]askedGate{}}
}

// answer has a question asked under the lock, and again whenever policies that it depends on were
// parsed. So it is always the answer of what is known now: what was edited meanwhile is parsed, too.
func (s *Shared) answer(question func(b *Resolver)) {
	for range mostEdits {
		lacking := s.try(question)
		if len(lacking) == 0 {
			return
		}
		for _, one := range lacking {
			one.policy()
		}
	}
}

func (s *Shared) try(question func(b *Resolver)) []*reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	question(s.resolver)
	return s.resolver.lacks()
}

// Of is the gate of a question, kept for whoever asks until it changes or what answers it.
func (s *Shared) Of(known *KeptGate, q Query) (gate *schedule.Gate) {
	s.answer(func(b *Resolver) {
		generation := b.Generation(q)
		if known.generation != generation+1 || !q.Same(known.Query) {
			*known = KeptGate{Query: q}
			known.Gate = s.gate(q, generation)
			if len(b.lacking) == 0 {
				known.generation = generation + 1 // the zero value is of no generation
			}
		}
		gate = known.Gate
	})
	return gate
}

// HadGate says whether there was a gate when it was last asked for.
func (s *Shared) HadGate(known *KeptGate) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return known.Gate != nil
}

// Same says whether two questions are the same.
func (q Query) Same(o Query) bool {
	return schedule.SameInstant(q.Bypass, o.Bypass) && q.BypassBy == o.BypassBy && q.Namespace == o.Namespace && q.Own.Equal(o.Own) && slices.Equal(q.Policies, o.Policies) && slices.Equal(q.Gates, o.Gates)
}

// Ask is the gate of one question; nil where nothing stands between. Gates are
// kept until what they depend on changes: the same is asked again and again.
func (s *Shared) Ask(q Query) (gate *schedule.Gate) {
	s.answer(func(b *Resolver) { gate = s.gate(q, b.Generation(q)) })
	return gate
}

// gate is Ask for who knows the generation, and has the lock. Plans that ask the same share a gate,
// and with it what it remembers: finding when policies that never meet open takes seconds.
func (s *Shared) gate(q Query, generation int64) *schedule.Gate {
	name := q.Key()
	kept, known := s.asked[name]
	if known && kept.generation == generation {
		return kept.gate
	}
	gate := s.resolver.GateIfAny(q)
	if len(s.resolver.lacking) > 0 {
		return gate
	}
	if len(s.asked) >= mostAsked {
		clear(s.asked)
	}
	kept = askedGate{gate: kept.gate.Kept(gate), generation: generation}
	s.asked[name] = kept
	return kept.gate
}

// Change changes what the resolver knows.
func (s *Shared) Change(edit func(*Resolver)) { s.try(edit) }

// State is a policy as it was read.
func (s *Shared) State(namespace, name string) (state State, there bool) {
	s.try(func(b *Resolver) { state, there = b.State(namespace, name) })
	return state, there
}

// Policy is a policy with all that stands on it; nil: it is not known.
func (s *Shared) Policy(namespace, name string) (state State, p *schedule.Policy) {
	s.answer(func(b *Resolver) {
		var there bool
		if state, there = b.State(namespace, name); !there {
			p = nil
			return
		}
		p = b.Policy(namespace, name)
	})
	return state, p
}

// Plain is a policy by its document alone, without its pause and its stanza; nil: it is not known.
func (s *Shared) Plain(namespace, name string) (p *schedule.Policy) {
	s.answer(func(b *Resolver) { p = b.Plain(namespace, name) })
	return p
}

// AffectsAllNamespaces says whether what a namespace says may matter to objects of every other one.
func (s *Shared) AffectsAllNamespaces(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resolver.AffectsAllNamespaces(namespace)
}

// Gated says whether anything stands between an object and its change.
func (s *Shared) Gated(q Query) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resolver.Gated(q)
}

// Uses are the policies that a question leads to.
func (s *Shared) Uses(q Query) []PolicyRef {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resolver.Uses(q)
}

// Strategy is the strategy in force for a question.
func (s *Shared) Strategy(q Query, now time.Time) schedule.Strategy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resolver.Strategy(q, now)
}
