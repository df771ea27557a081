package policies

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// ReconcilePolicy publishes what a policy says now, and looks again when it changes.
func (p *Controller) ReconcilePolicy(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap) (time.Time, error) {
	if cm.DeletionTimestamp != nil || p.Documents.Terminating(k.Namespace) {
		p.Store.Forget(k)
		return p.Gates.Reconcile(ctx, k, nil)
	}
	state, below := p.Store.Policy(k.Namespace, k.Name)
	if below == nil { // the watch is ahead of the resolver, or behind it: either will enqueue it
		return time.Time{}, nil
	}
	now := p.Now()
	verdict, strategy := p.paused(state, below)
	v := verdict(now)
	p.Store.Note(k, &store.Subject{Kind: "Policy", System: cm.Labels[annotations.LabelSystem], Verdict: verdict, Strategy: strategy, Uses: state.Stanza.Policies})
	wake, gateErr := p.Gates.Reconcile(ctx, k, &state)
	short, tomorrow := p.minimum(k, now)
	wake = queue.Soonest(wake, tomorrow)
	opens := false
	wrote, err := p.Status.Write(ctx, cm, p.Plans.WrittenOf(k), func(have map[string]string) map[string]string {
		opens = v.Permitted && have[annotations.StatusPermitted] == "false"
		return policyStatus(have, cm, state, v, strategy(now), append(p.Gates.Condition(k), short...), now)
	})
	if wrote && opens {
		p.Notify.WindowOpens(k, status.VerdictSentence(v))
	}
	wake = queue.Soonest(wake, p.notifyAhead(ctx, cm, v))
	return queue.Soonest(wake, policyWake(state, p.Pause(), v, now)), errors.Join(gateErr, err)
}

// paused is what is published of a policy: what it says itself, and nothing is permitted while the
// whole cluster is paused. Gates go by the policy alone. Of two pauses the longer one is said.
func (p *Controller) paused(state policy.State, below *schedule.Policy) (func(time.Time) schedule.Verdict, func(time.Time) schedule.Strategy) {
	verdict := func(at time.Time) schedule.Verdict {
		cluster := p.Pause()
		if longest := schedule.LongestPause(cluster, state.Pause); longest != cluster {
			return below.Verdict(at)
		}
		return cluster.Verdict(at, below.Verdict, below.Verdict)
	}
	return verdict, func(at time.Time) schedule.Strategy {
		if p.Pause().Holds(at) {
			return schedule.Restrictive
		}
		return state.StrategyOf(at)
	}
}

// notifyAhead tells sinks of a window that comes, and returns when it is to be told.
func (p *Controller) notifyAhead(ctx context.Context, cm *corev1.ConfigMap, v schedule.Verdict) time.Time {
	k := types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}
	written := p.Plans.WrittenOf(k)
	coming := notify.Upcoming{
		About: k, What: "permits change", Announced: status.AnnouncedAhead(cm, written),
		Claim: func(told string) error {
			return p.Status.Claim(ctx, cm, written, annotations.StatusToldAhead, told)
		},
	}
	if v.Next != nil && v.Next.Permitted {
		coming.At = v.Next.Start
		coming.Words = "Change is permitted from " + status.Instant(&v.Next.Start)
		if v.Next.End != nil {
			coming.Words += " until " + status.Instant(v.Next.End)
		}
	}
	return p.Notify.Ahead("Policy", coming)
}

// policyWake is the next instant at which what is published may differ: also
// where an Until ends and the answer stays the same, its reason changes.
func policyWake(state policy.State, cluster schedule.Pause, v schedule.Verdict, now time.Time) time.Time {
	var wake time.Time
	for _, at := range []*time.Time{policy.AskAgain(v, now), state.Stanza.Until, state.Pause.Until, cluster.Until} {
		if at != nil && at.After(now) {
			wake = queue.Soonest(wake, *at)
		}
	}
	return wake
}

func policyStatus(have map[string]string, cm *corev1.ConfigMap, state policy.State, v schedule.Verdict, strategy schedule.Strategy, more []metav1.Condition, now time.Time) map[string]string {
	valid := metav1.Condition{Type: "Valid", Status: metav1.ConditionTrue, Reason: "Understood", Message: "the policy is valid"}
	if len(state.Faults) > 0 {
		valid.Status, valid.Reason, valid.Message = metav1.ConditionFalse, "Faults", document.Cut(state.Faults.Error(), 4*document.MaxMessage)
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", Message: "the policy is in force"}
	if !v.Ready {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "NotReady", document.Cut(v.Reason, document.MaxMessage)
	}
	restricted := metav1.Condition{Type: "ChangesRestricted", Status: metav1.ConditionTrue, Reason: "Restrictive", Message: document.Cut(v.Reason, document.MaxMessage)}
	if v.Permitted {
		restricted.Status, restricted.Reason = metav1.ConditionFalse, "Permissive"
	}
	message := status.VerdictSentence(v)
	if len(state.Stanza.Faults) > 0 {
		message += "; " + state.Stanza.Faults[0].String()
	}
	return map[string]string{
		annotations.StatusMessage: document.Cut(message, document.MaxMessage), annotations.StatusObserved: annotations.Observed(cm),
		annotations.StatusPermitted: fmt.Sprint(v.Permitted), annotations.StatusBehavior: status.Behavior(have[annotations.StatusBehavior], v, strategy, now),
		annotations.StatusConditions: status.Conditions(have[annotations.StatusConditions], append([]metav1.Condition{valid, ready, restricted}, more...), now),
	}
}

// ReconcileCalendar publishes which lines of a calendar were not understood.
func (p *Controller) ReconcileCalendar(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap) error {
	if cm.DeletionTimestamp != nil || p.Documents.Terminating(k.Namespace) {
		return nil
	}
	c, faults := annotations.Calendar(cm)
	valid := metav1.Condition{Type: "Valid", Status: metav1.ConditionTrue, Reason: "Understood", Message: "the calendar is valid"}
	switch {
	case c == nil:
		valid.Status, valid.Reason, valid.Message = metav1.ConditionFalse, "Faults", faults.Error()
	case len(faults) > 0:
		valid.Status, valid.Reason, valid.Message = metav1.ConditionFalse, "SomeFaults", "the rest works: "+faults.Error()
	}
	valid.Message = document.Cut(valid.Message, 4*document.MaxMessage)
	_, err := p.Status.Write(ctx, cm, p.Plans.WrittenOf(k), func(have map[string]string) map[string]string {
		return map[string]string{
			annotations.StatusMessage: document.Cut(valid.Message, document.MaxMessage), annotations.StatusObserved: annotations.Observed(cm),
			annotations.StatusConditions: status.Conditions(have[annotations.StatusConditions], []metav1.Condition{valid}, p.Now()),
		}
	})
	return err
}

// Observe takes in a policy or a calendar.
func (p *Controller) Observe(cm *corev1.ConfigMap) {
	if !p.Store.ContentChanged(cm) {
		p.Enqueue(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}) // somebody may have taken the status off
		return
	}
	if cm.Labels[annotations.LabelKind] == annotations.KindPolicy {
		state := annotations.Policy(cm)
		p.Store.Change(func(b *policy.Resolver) { b.PutPolicy(state) })
	} else {
		c, _ := annotations.Calendar(cm)
		p.Store.Change(func(b *policy.Resolver) { b.PutCalendar(cm.Namespace, cm.Name, c) })
	}
	p.Enqueue(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	p.Changed(cm.Namespace)
}

// Lost hears that a policy or a calendar is gone.
func (p *Controller) Lost(cm *corev1.ConfigMap) {
	p.Store.Change(func(b *policy.Resolver) {
		if cm.Labels[annotations.LabelKind] == annotations.KindPolicy {
			b.DropPolicy(cm.Namespace, cm.Name)
			return
		}
		b.DropCalendar(cm.Namespace, cm.Name)
	})
	p.Store.ForgetContent(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	p.Store.Forget(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	p.Enqueue(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	p.Changed(cm.Namespace)
}

// GatesSeen hears of a record: there may be something to open of a policy that
// is gone.
func (p *Controller) GatesSeen(cm *corev1.ConfigMap) {
	if r, err := annotations.ReadGates(cm); err == nil {
		p.Enqueue(types.NamespacedName{Namespace: cm.Namespace, Name: r.Policy})
	}
}

// GatesLost hears that a record is gone. One that we did not remove ourselves is
// written again as long as its policy is there; without policy and record nobody
// can say any more what is to be opened.
func (p *Controller) GatesLost(cm *corev1.ConfigMap) {
	r, err := annotations.ReadGates(cm)
	if err != nil {
		return
	}
	k := types.NamespacedName{Namespace: cm.Namespace, Name: r.Policy}
	if p.Documents.Any(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}) == nil {
		p.Gates.RecordLost(k)
	}
	p.Enqueue(k)
}
