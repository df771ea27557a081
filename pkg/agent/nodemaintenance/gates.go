package nodemaintenance

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/claims"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Gates say when nodes may be changed.
type Gates struct {
	Store      *store.Gates
	Pauses     func() []schedule.Pause            // of the whole cluster
	Check      func() func(context.Context) error // as store.Documents.GateCheck
	ClockDoubt func() string
}

// note tells metrics of a node whose stanza says when it may be changed, or which somebody
// asked for.
func (g Gates) note(n *nodeObject, pending int) {
	k := types.NamespacedName{Name: n.Name}
	in := annotations.Intent(n.Annotations)
	if !governed(in) && len(annotations.Requests(n.Annotations)) == 0 {
		g.Store.Forget(k)
		return
	}
	q := in.Query("", nil)
	strategy, below := g.Store.SubjectStrategy(q), g.verdict(q, in.Pause)
	verdict := func(at time.Time) schedule.Verdict {
		return schedule.LongestPause(g.Pauses()...).Verdict(at, below, below)
	}
	g.Store.Note(k, &store.Subject{Kind: "Node", System: systemOf(n), Verdict: verdict, Strategy: func(now time.Time) schedule.Strategy {
		if in.Pause.Holds(now) {
			return schedule.Restrictive
		}
		return strategy(now)
	}, Uses: g.Store.Uses(q), Pending: pending})
}

// pending is what change_pending says of a node, from the requests on it. What plans have
// and want of it they say themselves.
func pending(n *nodeObject) int {
	facts := annotations.Node(&n.Node)
	switch atWork, waits := facts.Demand(); {
	case waits:
		return store.PendingBlocked
	case atWork:
		return store.PendingInitiated
	}
	return store.PendingNone
}

// verdict asks anew each time: the policies behind a node may have changed.
func (g Gates) verdict(q policy.Query, pause schedule.Pause) func(time.Time) schedule.Verdict {
	return func(now time.Time) schedule.Verdict {
		if pause.Holds(now) {
			until := schedule.Stanza{Strategy: schedule.Restrictive}
			if pause.Until != nil {
				until = schedule.Stanza{Strategy: schedule.RestrictiveUntil, Until: pause.Until}
			}
			return schedule.NewGate(schedule.GateSpec{Own: until}).Verdict(now)
		}
		if gate := g.Store.Ask(q); gate != nil {
			return gate.Verdict(now)
		}
		return schedule.NewGate(schedule.GateSpec{}).Verdict(now)
	}
}

// node says whether change may start on a node now.
func (g Gates) node(n *nodeObject, everywhere *nodes.Gate, now time.Time) nodes.Gate {
	return claims.Gate(everywhere, g.claimsNode(n), now)
}

func (g Gates) claimsNode(n *nodeObject) claims.Node {
	in := annotations.Intent(n.Annotations)
	return claims.Node{Intent: in, Verdict: g.verdict(in.Query("", nil), in.Pause)}
}

// forRun is the gate of a node for a run's work, and who lets that pass it although it is closed:
// somebody whose bypass on the node names the run.
func (g Gates) forRun(n *nodeObject, w claims.Work, everywhere *nodes.Gate, now time.Time) (nodes.Gate, *intent.Actor) {
	one := g.claimsNode(n)
	gate, passes := claims.GateForRun(everywhere, one, w, now)
	if !passes {
		return gate, nil
	}
	return gate, run.BypassedBy(g.Store.Ask(one.Intent.Query("", nil)), run.Request{}, one.Intent, now)
}

// notePassed says on a node that a run has it although change is not permitted there.
func (k *Controller) notePassed(node string, s store.StepKey, by *intent.Actor) {
	k.Telemetry.Events.Event(nodeReference(node), corev1.EventTypeWarning, "GateBypassed", document.Cut(fmt.Sprintf("Run %s has the node although change is not permitted: %s", s.Run.Name, by.SaidOrUnknown("let through")), document.MaxMessage))
}
