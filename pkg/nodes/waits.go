package nodes

import (
	"cmp"
	"fmt"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// stuck says why a request cannot get its node, whoever else asks.
func (r *ranker) stuck(s *site, a *Asked) (Wait, bool) {
	switch {
	case a.Fault != "":
		return said(WaitInvalid, "the request cannot be read: "+document.OneLine(a.Fault)), true
	case a.ended():
		return said(WaitEnded, a.Status.Reason), true
	case s.Deleting:
		return said(WaitDeleting, "the node is being deleted"), true
	case s.blocked(a):
		return said(WaitBlocked, s.blockedText(a)), true
	case !s.Gate.Permitted:
		wait := said(WaitClosed, closedText(s.Gate))
		wait.Next = s.Gate.Next
		return wait, true
	}
	return Wait{}, false
}

func (r *ranker) fix(node, claimant, step string, wait Wait) {
	wait.Node, wait.Claimant, wait.Step = node, claimant, step
	r.turns(node)[claimant] = Turn{Wait: wait.Lasting}
	r.fixed = append(r.fixed, wait)
}

func (r *ranker) wait(e *entry, wait Wait) {
	wait.Node, wait.Claimant, wait.Step = e.Name, e.claimant, e.step
	if !r.turns(e.Name)[e.claimant].Granted { // another step of the claimant may have it
		r.turns(e.Name)[e.claimant] = Turn{Next: e.next, Wait: wait.Lasting}
	}
	r.out.Waits = append(r.out.Waits, wait)
}

// configuration says what of the limits holds all maintenance back.
func (r *ranker) configuration() {
	if len(r.world.Nodes) == 0 {
		return
	}
	if r.parallel == 0 {
		r.out.Conditions = append(r.out.Conditions, Condition{
			Type: ConditionNoParallel, Message: "maxParallelOperations is 0: no maintenance of nodes begins",
		})
	}
	if r.world.Limits.Unavailable != nil && r.limit == 0 {
		r.out.Conditions = append(r.out.Conditions, Condition{
			Type:    ConditionNoUnavailable,
			Message: "maxUnavailable " + r.unavailableLimit() + ": no node that is available begins maintenance; allow at least 1",
		})
	}
}

func (r *ranker) none() (Wait, bool) {
	return said(WaitNone, "maxParallelOperations is 0: no maintenance of nodes begins"), r.parallel == 0
}

// handover is free while no more nodes are in maintenance than may be: past that,
// the node is released, and the next one waits its turn like all others.
func (r *ranker) handover() (Wait, bool) {
	if wait, none := r.none(); none {
		return wait, true
	}
	return said(WaitTurn, "waits its turn: more nodes are in maintenance than maxParallelOperations "+r.parallelLimit()), r.slots < 0
}

func (r *ranker) turn(e *entry) Wait {
	wait := said(WaitTurn, "waits its turn (maxParallelOperations "+r.parallelLimit()+")")
	var now string
	if len(r.out.Maintenance) > 0 {
		now = "; in maintenance: " + some(r.out.Maintenance)
	}
	wait.Message = fmt.Sprintf("waits its turn: %d before it (maxParallelOperations %s)%s", r.queue, r.parallelLimit(), now)
	if !e.queued {
		e.queued = true
		r.queue++
	}
	return wait
}

func (r *ranker) zoneFull(zone string, others []string) Wait {
	wait := said(WaitZone, fmt.Sprintf("zone %s already has as many nodes in maintenance as zoneLimit %d", zone, r.world.Limits.Zone))
	wait.Message = fmt.Sprintf("zone %s already has %d of %d: %s", zone, len(others), r.world.Limits.Zone, some(others))
	return wait
}

func (r *ranker) overBudget() Wait {
	if r.limit == 0 {
		return said(WaitBudget, "the limit maxUnavailable "+r.unavailableLimit())
	}
	wait := said(WaitBudget, "maxUnavailable "+r.unavailableLimit()+", and as many nodes are unavailable")
	wait.Message = fmt.Sprintf("maxUnavailable %s, and %d are unavailable or about to be", r.unavailableLimit(), r.limit-r.budget)
	return wait
}

// parallelLimit reads "2", or "10% of 25 nodes is 3".
func (r *ranker) parallelLimit() string { return r.limitText(r.world.Limits.Parallel, r.parallel) }

func (r *ranker) unavailableLimit() string {
	if !r.world.Limits.Unavailable.Percent {
		return "is " + r.world.Limits.Unavailable.String()
	}
	return r.limitText(*r.world.Limits.Unavailable, r.limit)
}

func (r *ranker) limitText(s document.Share, n int) string {
	if !s.Percent {
		return s.String()
	}
	return fmt.Sprintf("%s of %d nodes is %d", s, len(r.world.Nodes), n)
}

func said(reason WaitReason, message string) Wait {
	return Wait{Reason: reason, Message: message, Lasting: message}
}

func held(by string) Wait {
	if by == "" {
		return said(WaitHeld, "the node is being released")
	}
	return said(WaitHeld, "the node is "+by+"'s; waits until it is released")
}

func releasing() (Wait, bool) { return held(""), true }

func behind(claimant string) Wait {
	return said(WaitHeld, claimant+" waits for the node before it, and does not share it")
}

// blockedText is that of a request; the node may be cordoned for who has it now.
func (n *Node) blockedText(a *Asked) string {
	if n.Cordon != nil {
		return "Blocked: " + cmp.Or(a.Preview.Text, "pods would not leave") + "; it does not take the node over, and others have their turn"
	}
	return BlockedText(a.Preview)
}

// BlockedText says why a node is not taken for a drain that could not end.
func BlockedText(b Block) string {
	return "Blocked: " + cmp.Or(b.Text, "pods would not leave") + "; the node is not cordoned, and others have their turn"
}

func closedText(g Gate) string { return cmp.Or(g.Reason, "no change is permitted now") }

// some are the first few of many names.
func some(names []string) string { return document.Few(names, 3) }
