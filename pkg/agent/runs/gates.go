package runs

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// askGates asks what stands before the next step of a run that has begun: its namespace,
// always, and its own gate, where the plan says so.
func (c *Controller) askGates(sig *workflow.Signals, l *store.CachedRun, cm *corev1.ConfigMap, in intent.Intent, now time.Time) {
	if c.Stores.Gates.Gated(policy.Query{Namespace: cm.Namespace}) {
		above := in.Query(cm.Namespace, nil).OfNamespace()
		if sig.Namespace = run.ClosedFor(c.Stores.Gates.Ask(above), l.Run.Name, in.Bypass, now); sig.Namespace == nil {
			above.Bypass = nil
			gate := c.Stores.Gates.Ask(above)
			sig.Passed, sig.Opened.Namespace = run.BypassedBy(gate, run.Request{}, in, now), run.AllowedBy(gate, run.Request{}, now)
		}
	}
	if !asksAgain(l.Run.Spec.OnWindowClose, l.Run.Tree().Loops()) {
		return
	}
	if sig.Hold = c.holdOf(l, cm, in, now); sig.Hold == nil {
		sig.Passed, sig.Opened.Plan = c.passedBy(l, now)
		sig.ClosesAt = c.closesAt(l, cm, in, now)
	}
}

// holdOf asks the gate of a run; nil where it may go on.
func (c *Controller) holdOf(l *store.CachedRun, cm *corev1.ConfigMap, in intent.Intent, now time.Time) *run.ClosedGate {
	return run.ClosedFor(c.Stores.Gates.Ask(in.Query(cm.Namespace, l.Run.Spec.Policies).For(l.Run.Request.OutsideWindow)), l.Run.Name, in.Bypass, now)
}

// closesAt is when the open gate of a run closes; zero where that is not known, and
// where somebody let the run through it.
func (c *Controller) closesAt(l *store.CachedRun, cm *corev1.ConfigMap, in intent.Intent, now time.Time) time.Time {
	gate := c.Stores.Gates.Ask(in.Query(cm.Namespace, l.Run.Spec.Policies).For(l.Run.Request.OutsideWindow))
	if gate == nil {
		return time.Time{}
	}
	if v := gate.Verdict(now); v.Permitted && v.Until != nil {
		return *v.Until
	}
	return time.Time{}
}

// passedBy is who let a run start through a closed gate, if it is closed, and who opened it for a time.
func (c *Controller) passedBy(l *store.CachedRun, now time.Time) (passed, allowed *intent.Actor) {
	cm := c.Stores.Documents.Plan(l.PlanKey())
	if cm == nil {
		return nil, nil
	}
	in := c.Stores.Documents.Intent(cm)
	q := in.Query(cm.Namespace, l.Run.Spec.Policies)
	q.Bypass = nil
	if l.Run.Request.OutsideWindow { // a namespace binds it all the same: only a bypass lets it through
		if by := run.BypassedBy(c.Stores.Gates.Ask(q.OfNamespace()), run.Request{}, in, now); by != nil {
			return by, nil
		}
	}
	gate := c.Stores.Gates.Ask(q)
	return run.BypassedBy(gate, l.Run.Request, in, now), run.AllowedBy(gate, l.Run.Request, now)
}

// AsksGate says whether a live run may be waiting for its gate.
func AsksGate(l *store.LiveRun) bool {
	return l.Broken == nil && (l.Journal.Phase == run.Pending || asksAgain(l.Head.Spec.OnWindowClose, l.Loops))
}

// asksAgain says whether a run that has begun asks its gate between its steps.
func asksAgain(o plan.OnWindowClose, loops bool) bool {
	return o == plan.CloseWait || o == plan.CloseAbort || loops
}
