package store

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Gates keep what policies and calendars say, and what metrics say of the
// objects behind it.
type Gates struct {
	mu       sync.Mutex
	resolver *policy.Resolver
	seen     map[types.NamespacedName]*Subject
	open     map[string]*Subject // what nothing stands before, by namespace
	asked    map[string]askedGate
	said     map[types.NamespacedName]string // what each policy and calendar says, to know an echo of our own status from news
}

// Subject is one plan or policy as metrics show it.
type Subject struct {
	Kind, System string
	Verdict      func(time.Time) schedule.Verdict
	Strategy     func(time.Time) schedule.Strategy
	Uses         []policy.PolicyRef
	LastStart    time.Time // of a plan's newest run
	Waits        bool      // something was asked of a plan that cannot be claimed yet
	Pending      int       // change_pending of a node
}

// NewGates knows no policy yet.
func NewGates(agentNamespace string) *Gates {
	return &Gates{resolver: policy.NewResolver(agentNamespace), seen: map[types.NamespacedName]*Subject{}, open: map[string]*Subject{}, asked: map[string]askedGate{}, said: map[types.NamespacedName]string{}}
}

// PlanGate is a plan's gate, kept until its annotations or what it depends on in the resolver
// change: the gate remembers the stretch that it was asked about.
type PlanGate struct {
	Query      policy.Query
	generation int64
	Gate       *schedule.Gate // nil: nothing stands between the plan and its runs
}

// Of is the gate of a plan, kept for it until its question changes or what answers it.
func (g *Gates) Of(known *PlanGate, q policy.Query) *schedule.Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if generation := g.resolver.Generation(q); known.generation != generation+1 || !sameQuery(known.Query, q) {
		*known = PlanGate{Query: q, generation: generation + 1} // the zero value is of no generation
		known.Gate = g.ask(q, generation)
	}
	return known.Gate
}

func sameQuery(a, b policy.Query) bool {
	same := a.Bypass == b.Bypass || a.Bypass != nil && b.Bypass != nil && a.Bypass.Equal(*b.Bypass)
	return same && a.BypassBy == b.BypassBy && a.Namespace == b.Namespace && a.Own.Equal(b.Own) && slices.Equal(a.Policies, b.Policies) && slices.Equal(a.Gates, b.Gates)
}

// Ask is the gate of one question; nil where nothing stands between. Gates are
// kept until what they depend on changes: the same is asked again and again.
func (g *Gates) Ask(q policy.Query) *schedule.Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ask(q, g.resolver.Generation(q))
}

// ask is Ask for who knows the generation. Plans that ask the same share a gate, and with it what
// it remembers: finding when policies that never meet open takes seconds.
func (g *Gates) ask(q policy.Query, generation int64) *schedule.Gate {
	name := q.Key()
	kept, known := g.asked[name]
	if known && kept.generation == generation {
		return kept.gate
	}
	if len(g.asked) >= mostAsked {
		clear(g.asked)
	}
	kept = askedGate{gate: kept.gate.Kept(g.resolver.GateIfAny(q)), generation: generation}
	g.asked[name] = kept
	return kept.gate
}

// askedGate is the gate of one question as the resolver answered it.
type askedGate struct {
	gate       *schedule.Gate
	generation int64
}

// mostAsked bounds the gates that are kept for plans, runs and nodes.
const mostAsked = 20_000

// Change changes what the resolver knows.
func (g *Gates) Change(edit func(*policy.Resolver)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	edit(g.resolver)
}

// Subject is a plan as metrics show it, by its question and its gate. What nothing
// stands before looks the same all over its namespace.
func (g *Gates) Subject(q policy.Query, gate *schedule.Gate) *Subject {
	g.mu.Lock()
	defer g.mu.Unlock()
	strategy := func(now time.Time) schedule.Strategy { return g.resolver.Strategy(q, now) }
	if gate != nil || !sameQuery(q, policy.Query{Namespace: q.Namespace}) {
		if gate == nil {
			gate = schedule.NewGate(schedule.GateSpec{})
		}
		return &Subject{Verdict: gate.Verdict, Strategy: strategy, Uses: g.resolver.Uses(q)}
	}
	if g.open[q.Namespace] == nil {
		g.open[q.Namespace] = &Subject{Verdict: schedule.NewGate(schedule.GateSpec{}).Verdict, Strategy: strategy}
	}
	o := *g.open[q.Namespace]
	return &o
}

// Note notes how metrics show a plan, a policy or a node.
func (g *Gates) Note(k types.NamespacedName, o *Subject) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen[k] = o
}

// Waiting notes whether something was asked of a plan that cannot be claimed yet.
func (g *Gates) Waiting(k types.NamespacedName, waits bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if o := g.seen[k]; o != nil && o.Waits != waits {
		changed := *o
		changed.Waits = waits
		g.seen[k] = &changed
	}
}

// Forget drops what metrics showed of an object that is gone.
func (g *Gates) Forget(k types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.seen, k)
}

// HadGate says whether a gate was found for a plan when it was last looked at.
func (g *Gates) HadGate(known *PlanMemory) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return known.Gate.Gate != nil
}

// ContentChanged says whether a policy or a calendar says something else than before.
func (g *Gates) ContentChanged(cm *corev1.ConfigMap) bool {
	parts := []string{cm.Labels[annotations.LabelKind], cm.Labels[annotations.LabelServiceAccount]}
	for _, name := range []string{annotations.Pause, annotations.ChangeStrategy, annotations.ChangePolicy, annotations.PermissiveUntil, annotations.RestrictiveUntil, annotations.Actor(annotations.Pause), annotations.Reason(annotations.Pause), annotations.Actor(annotations.ChangeStrategy), annotations.Reason(annotations.ChangeStrategy)} {
		parts = append(parts, cm.Annotations[name])
	}
	for _, name := range slices.Sorted(maps.Keys(cm.Data)) {
		parts = append(parts, name, cm.Data[name])
	}
	says := annotations.Hash10(parts...)
	g.mu.Lock()
	defer g.mu.Unlock()
	k := types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}
	was, known := g.said[k]
	g.said[k] = says
	return !known || was != says
}

// AffectsAllNamespaces says whether what a namespace says may matter to objects of every other one.
func (g *Gates) AffectsAllNamespaces(namespace string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.resolver.AffectsAllNamespaces(namespace)
}

// NamespaceSet says whether something stands before all plans of a namespace.
func (g *Gates) NamespaceSet(namespace string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.resolver.Gated(policy.Query{Namespace: namespace})
}

// Uses are the policies that a question leads to.
func (g *Gates) Uses(q policy.Query) []policy.PolicyRef {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.resolver.Uses(q)
}

// ForgetContent forgets what a policy or a calendar said.
func (g *Gates) ForgetContent(k types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.said, k)
}

// Policy is a policy as the resolver has it; nil while it has not.
func (g *Gates) Policy(k types.NamespacedName) (policy.State, *schedule.Policy) {
	g.mu.Lock()
	defer g.mu.Unlock()
	state, there := g.resolver.State(k.Namespace, k.Name)
	if !there {
		return state, nil
	}
	return state, g.resolver.Policy(k.Namespace, k.Name)
}

// Plain is a policy by its document alone, without its pause and its stanza; nil: it is not known.
func (g *Gates) Plain(k types.NamespacedName) *schedule.Policy {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.resolver.Plain(k.Namespace, k.Name)
}

// Strategy is the strategy in force for a question.
func (g *Gates) Strategy(q policy.Query, now time.Time) schedule.Strategy {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.resolver.Strategy(q, now)
}

// Subjects are the plans and policies to be told of.
func (g *Gates) Subjects() map[types.NamespacedName]*Subject {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make(map[types.NamespacedName]*Subject, len(g.seen))
	for k, o := range g.seen {
		out[k] = o
	}
	return out
}

// StrategyOf is the strategy in force for a subject.
func (g *Gates) StrategyOf(o *Subject, now time.Time) schedule.Strategy {
	g.mu.Lock()
	defer g.mu.Unlock()
	return o.Strategy(now)
}

// Behavior is what the status of an object says of a verdict, after what it said before: for
// rooms that write no status of documents, and so do not import status.
func (*Gates) Behavior(have string, v schedule.Verdict, strategy schedule.Strategy, now time.Time) string {
	return status.Behavior(have, v, strategy, now)
}

// Conditions writes those of an object, after those that stand there: for the same rooms.
func (*Gates) Conditions(have string, list []metav1.Condition, now time.Time) string {
	return status.Conditions(have, list, now)
}

// SubjectStrategy is the strategy of one question, for subjects alone: it is asked under
// the lock of the resolver.
func (g *Gates) SubjectStrategy(q policy.Query) func(time.Time) schedule.Strategy {
	return func(now time.Time) schedule.Strategy { return g.resolver.Strategy(q, now) }
}

// Values of change_management_change_pending.
const (
	PendingNone      = 0
	PendingInitiated = 1
	PendingBlocked   = 2
)
