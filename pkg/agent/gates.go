package agent

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// gates keep the book of policies and calendars, and what metrics say of the
// objects behind it.
type gates struct {
	mu      sync.Mutex
	book    *policy.Book
	seen    map[types.NamespacedName]*gated
	open    map[string]*gated // what nothing stands before, by namespace
	asked   map[string]*schedule.Gate
	askedAt int64
	said    map[types.NamespacedName]string // what each policy and calendar says, to know an echo of our own status from news
}

// gated is one plan or policy as metrics show it.
type gated struct {
	kind, system string
	verdict      func(time.Time) schedule.Verdict
	strategy     func(time.Time) schedule.Strategy
	uses         []policy.PolicyRef
	lastStart    time.Time // of a plan's newest run
	waits        bool      // something was asked of a plan that cannot be claimed yet
}

func newGates(agentNamespace string) *gates {
	return &gates{book: policy.NewBook(agentNamespace), seen: map[types.NamespacedName]*gated{}, open: map[string]*gated{}, said: map[types.NamespacedName]string{}}
}

// planGate is a plan's gate, kept until its annotations or the book change: the
// gate remembers the stretch that it was asked about.
type planGate struct {
	question   policy.Question
	generation int64
	gate       *schedule.Gate // nil: nothing stands between the plan and its runs
}

func (g *gates) of(known *planGate, q policy.Question) *schedule.Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if generation := g.book.Generation(); known.generation != generation+1 || !sameQuestion(known.question, q) {
		*known = planGate{question: q, generation: generation + 1} // the zero value is of no generation
		known.gate = g.book.Between(q)
	}
	return known.gate
}

func sameQuestion(a, b policy.Question) bool {
	same := a.Bypass == b.Bypass || a.Bypass != nil && b.Bypass != nil && a.Bypass.Equal(*b.Bypass)
	return same && a.Namespace == b.Namespace && a.Own.Equal(b.Own) && slices.Equal(a.Policies, b.Policies) && slices.Equal(a.Gates, b.Gates)
}

// ask is the gate of one question; nil where nothing stands between. Gates are
// kept until the book changes: the same is asked again and again.
func (g *gates) ask(q policy.Question) *schedule.Gate {
	name := q.Key()
	g.mu.Lock()
	defer g.mu.Unlock()
	if generation := g.book.Generation(); g.asked == nil || g.askedAt != generation || len(g.asked) > mostAsked {
		g.asked, g.askedAt = map[string]*schedule.Gate{}, generation
	}
	gate, known := g.asked[name]
	if !known {
		gate = g.book.Between(q)
		g.asked[name] = gate
	}
	return gate
}

// mostAsked bounds the gates that are kept for runs and nodes.
const mostAsked = 20_000

// change changes the book.
func (g *gates) change(edit func(*policy.Book)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	edit(g.book)
}

// gated is a plan as metrics show it, by its question and its gate. What nothing
// stands before looks the same all over its namespace.
func (g *gates) gated(q policy.Question, gate *schedule.Gate) *gated {
	g.mu.Lock()
	defer g.mu.Unlock()
	strategy := func(now time.Time) schedule.Strategy { return g.book.Strategy(q, now) }
	if gate != nil || !sameQuestion(q, policy.Question{Namespace: q.Namespace}) {
		if gate == nil {
			gate = schedule.NewGate(schedule.GateSpec{})
		}
		return &gated{verdict: gate.Verdict, strategy: strategy, uses: g.book.Uses(q)}
	}
	if g.open[q.Namespace] == nil {
		g.open[q.Namespace] = &gated{verdict: schedule.NewGate(schedule.GateSpec{}).Verdict, strategy: strategy}
	}
	o := *g.open[q.Namespace]
	return &o
}

func (g *gates) note(k types.NamespacedName, o *gated) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen[k] = o
}

// waiting notes whether something was asked of a plan that cannot be claimed yet.
func (g *gates) waiting(k types.NamespacedName, waits bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if o := g.seen[k]; o != nil && o.waits != waits {
		changed := *o
		changed.waits = waits
		g.seen[k] = &changed
	}
}

func (g *gates) forget(k types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.seen, k)
}

// holdOf asks the gate of a run; nil where it may go on.
func (a *Agent) holdOf(l *liveRun, cm *corev1.ConfigMap, in intent.Intent, now time.Time) *run.Hold {
	return run.HeldBy(a.gates.ask(in.Query(cm.Namespace, l.run.Spec.Policies).For(l.run.Request.OutsideWindow)), l.run.Name, in.Bypass, now)
}

// closesAt is when the open gate of a run closes; zero where that is not known, and
// where somebody let the run through it.
func (a *Agent) closesAt(l *liveRun, cm *corev1.ConfigMap, in intent.Intent, now time.Time) time.Time {
	gate := a.gates.ask(in.Query(cm.Namespace, l.run.Spec.Policies).For(l.run.Request.OutsideWindow))
	if gate == nil {
		return time.Time{}
	}
	if v := gate.Verdict(now); v.Permitted && v.Until != nil {
		return *v.Until
	}
	return time.Time{}
}

// passedBy is who let a run start through a closed gate, if it is closed.
func (a *Agent) passedBy(l *liveRun, now time.Time) *intent.Actor {
	cm := a.document(l.planKey())
	if cm == nil {
		return nil
	}
	in := annotations.Intent(cm.Annotations)
	q := in.Query(cm.Namespace, l.run.Spec.Policies)
	q.Bypass = nil
	return run.PassedBy(a.gates.ask(q), l.run.Request, in, now)
}

// looksAtGate says whether a live run may be waiting for its gate.
func looksAtGate(l *liveRun) bool {
	return l.broken == nil && (l.journal.Phase == run.RunPending || l.run.Spec.OnWindowClose == plan.CloseWait || l.run.Spec.OnWindowClose == plan.CloseAbort || l.run.Tree().Loops())
}

// ringGated has everything looked at again that a policy, a calendar or a
// namespace may have to do with; many changes at once are one look.
func (a *Agent) ringGated() { a.planQueue.Add(types.NamespacedName{}) }

// lookAtGated rings what is behind a gate, and what waits for one.
func (a *Agent) lookAtGated() {
	a.gatekeeper.ringAll()
	a.keeper.ring()
	for _, o := range a.documents.GetStore().List() {
		cm := o.(*corev1.ConfigMap)
		switch cm.Labels[annotations.LabelKind] {
		case annotations.KindPolicy:
			a.ringPlan(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
		case annotations.KindPlan:
			known := a.plans.memory(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
			if known == nil || known.policed || annotations.Stanza(cm.Annotations).Set() || a.gates.namespaceSet(cm.Namespace) || a.gates.kept(known) {
				a.ringPlan(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
			}
		}
	}
	for _, l := range a.runs.where(looksAtGate) {
		a.ringRun(l.key())
	}
}

// kept says whether a gate was found for a plan when it was last looked at.
func (g *gates) kept(known *planMemory) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return known.gate.gate != nil
}

// news says whether a policy or a calendar says something else than before.
func (g *gates) news(cm *corev1.ConfigMap) bool {
	parts := []string{cm.Labels[annotations.LabelKind], cm.Labels[annotations.LabelServiceAccount]}
	for _, name := range []string{annotations.Pause, annotations.ChangeStrategy, annotations.ChangePolicy, annotations.PermissiveUntil, annotations.RestrictiveUntil} {
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

func (g *gates) namespaceSet(namespace string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.book.Gated(policy.Question{Namespace: namespace})
}

// sawPolicy takes in a policy or a calendar.
func (a *Agent) sawPolicy(cm *corev1.ConfigMap) {
	if !a.gates.news(cm) {
		a.ringPlan(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}) // somebody may have torn the status off
		return
	}
	if cm.Labels[annotations.LabelKind] == annotations.KindPolicy {
		state := annotations.Policy(cm)
		a.gates.change(func(b *policy.Book) { b.PutPolicy(state) })
	} else {
		c, _ := annotations.Calendar(cm)
		a.gates.change(func(b *policy.Book) { b.PutCalendar(cm.Namespace, cm.Name, c) })
	}
	a.ringPlan(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	a.ringGated()
}

func (a *Agent) lostPolicy(cm *corev1.ConfigMap) {
	a.gates.change(func(b *policy.Book) {
		if cm.Labels[annotations.LabelKind] == annotations.KindPolicy {
			b.DropPolicy(cm.Namespace, cm.Name)
			return
		}
		b.DropCalendar(cm.Namespace, cm.Name)
	})
	a.gates.unsaid(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	a.gates.forget(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	a.ringPlan(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	a.ringGated()
}

func (g *gates) uses(q policy.Question) []policy.PolicyRef {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.book.Uses(q)
}

func (g *gates) unsaid(k types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.said, k)
}
