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
	*policy.Shared
	mu   sync.Mutex
	seen map[types.NamespacedName]*Subject
	open map[string]*Subject             // what nothing stands before, by namespace
	said map[types.NamespacedName]string // what each policy and calendar says, to know an echo of our own status from news
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
	return &Gates{Shared: policy.NewShared(agentNamespace), seen: map[types.NamespacedName]*Subject{}, open: map[string]*Subject{}, said: map[types.NamespacedName]string{}}
}

// Subject is a plan as metrics show it, by its question and its gate. What nothing
// stands before looks the same all over its namespace.
func (g *Gates) Subject(q policy.Query, gate *schedule.Gate) *Subject {
	strategy := g.SubjectStrategy(q)
	if gate != nil || !q.Same(policy.Query{Namespace: q.Namespace}) {
		if gate == nil {
			gate = schedule.NewGate(schedule.GateSpec{})
		}
		return &Subject{Verdict: gate.Verdict, Strategy: strategy, Uses: g.Uses(q)}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
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

// ForgetContent forgets what a policy or a calendar said.
func (g *Gates) ForgetContent(k types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.said, k)
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

// Behavior is what the status of an object says of a verdict, after what it said before: for
// rooms that write no status of documents, and so do not import status.
func (*Gates) Behavior(have string, v schedule.Verdict, strategy schedule.Strategy, now time.Time) string {
	return status.Behavior(have, v, strategy, now)
}

// Conditions writes those of an object, after those that stand there: for the same rooms.
func (*Gates) Conditions(have string, list []metav1.Condition, now time.Time) string {
	return status.Conditions(have, list, now)
}

// SubjectStrategy is the strategy of one question, whenever it is asked for.
func (g *Gates) SubjectStrategy(q policy.Query) func(time.Time) schedule.Strategy {
	return func(now time.Time) schedule.Strategy { return g.Strategy(q, now) }
}

// Values of change_management_change_pending.
const (
	PendingNone      = 0
	PendingInitiated = 1
	PendingBlocked   = 2
)
