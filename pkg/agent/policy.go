package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// syncDocument looks at whatever document stands under a name.
func (a *Agent) syncDocument(ctx context.Context, k types.NamespacedName) (time.Time, error) {
	if k == (types.NamespacedName{}) {
		a.lookAtGated()
		return time.Time{}, nil
	}
	o, found, err := a.documents.GetStore().GetByKey(k.String())
	if err != nil || !found {
		a.gates.forget(k)
		a.plans.forgetWritten(k)
		return a.syncGone(ctx, k)
	}
	cm := o.(*corev1.ConfigMap)
	switch cm.Labels[annotations.LabelKind] {
	case annotations.KindPlan:
		return a.syncPlan(ctx, k)
	}
	if a.plans.has(k) { // it was a plan: to its runs it is gone
		if _, err := a.syncPlan(ctx, k); err != nil {
			return time.Time{}, err
		}
	}
	switch cm.Labels[annotations.LabelKind] {
	case annotations.KindPolicy:
		return a.syncPolicy(ctx, k, cm)
	case annotations.KindCalendar:
		return time.Time{}, a.syncCalendar(ctx, k, cm)
	case annotations.KindStepTemplate:
		return time.Time{}, a.syncTemplate(ctx, k, cm)
	case annotations.KindAgentConfig:
		return time.Time{}, a.syncConfig(ctx, k, cm)
	case annotations.KindGate:
		a.sawGates(cm)
		return time.Time{}, nil
	}
	return a.syncPlan(ctx, k)
}

// syncGone looks after what a document leaves behind that is gone.
func (a *Agent) syncGone(ctx context.Context, k types.NamespacedName) (time.Time, error) {
	again, err := a.gatekeeper.sync(ctx, k, nil)
	if err != nil {
		return time.Time{}, err
	}
	wake, err := a.syncPlan(ctx, k)
	return queue.Soonest(wake, again), err
}

// syncPolicy publishes what a policy says now, and looks again when it changes.
func (a *Agent) syncPolicy(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap) (time.Time, error) {
	if cm.DeletionTimestamp != nil || a.terminating(k.Namespace) {
		a.gates.forget(k)
		return a.gatekeeper.sync(ctx, k, nil)
	}
	state, policy := a.gates.policy(k)
	if policy == nil { // the watch is ahead of the book, or behind it: either will ring
		return time.Time{}, nil
	}
	now := a.now()
	v := policy.Verdict(now)
	a.gates.note(k, &gated{kind: "Policy", system: cm.Labels[annotations.LabelSystem], verdict: policy.Verdict, strategy: state.StrategyOf, uses: state.Stanza.Policies})
	wake, gateErr := a.gatekeeper.sync(ctx, k, &state)
	opens := false
	wrote, err := a.writeStatus(ctx, cm, a.plans.writtenOf(k), func(have map[string]string) map[string]string {
		opens = v.Permitted && have[annotations.StatusPermitted] == "false"
		return policyStatus(have, cm, state, v, a.gatekeeper.condition(k), now)
	})
	if wrote && opens {
		a.herald.WindowOpens(k, verdictSentence(v))
	}
	return queue.Soonest(wake, policyWake(state, v, now)), errors.Join(gateErr, err)
}

// policyWake is the next instant at which what is published may differ: also
// where an Until ends and the answer stays the same, its reason changes.
func policyWake(state policy.PolicyState, v schedule.Verdict, now time.Time) time.Time {
	var wake time.Time
	for _, at := range []*time.Time{v.Until, state.Stanza.Until, state.Pause.Until} {
		if at != nil && at.After(now) {
			wake = queue.Soonest(wake, *at)
		}
	}
	return wake
}

func policyStatus(have map[string]string, cm *corev1.ConfigMap, state policy.PolicyState, v schedule.Verdict, gates []metav1.Condition, now time.Time) map[string]string {
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
	message := verdictSentence(v)
	if len(state.Stanza.Faults) > 0 {
		message += "; " + state.Stanza.Faults[0].String()
	}
	return map[string]string{
		annotations.StatusMessage: document.Cut(message, document.MaxMessage), annotations.StatusObserved: annotations.Observed(cm),
		annotations.StatusPermitted: fmt.Sprint(v.Permitted), annotations.StatusBehavior: behavior(have[annotations.StatusBehavior], v, state.StrategyOf(now), now),
		annotations.StatusConditions: conditions(have[annotations.StatusConditions], append([]metav1.Condition{valid, ready, restricted}, gates...), now),
	}
}

func verdictSentence(v schedule.Verdict) string {
	word := "change is not permitted"
	if v.Permitted {
		word = "change is permitted"
	}
	if v.Until != nil {
		word += " until " + v.Until.UTC().Format(time.RFC3339)
	}
	return word + " (" + v.Reason + ")"
}

// syncCalendar publishes which lines of a calendar were not understood.
func (a *Agent) syncCalendar(ctx context.Context, k types.NamespacedName, cm *corev1.ConfigMap) error {
	if cm.DeletionTimestamp != nil || a.terminating(k.Namespace) {
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
	_, err := a.writeStatus(ctx, cm, a.plans.writtenOf(k), func(have map[string]string) map[string]string {
		return map[string]string{
			annotations.StatusMessage: document.Cut(valid.Message, document.MaxMessage), annotations.StatusObserved: annotations.Observed(cm),
			annotations.StatusConditions: conditions(have[annotations.StatusConditions], []metav1.Condition{valid}, a.now()),
		}
	})
	return err
}

// policy is a policy as the book has it; nil while it has not.
func (g *gates) policy(k types.NamespacedName) (policy.PolicyState, *schedule.Policy) {
	g.mu.Lock()
	defer g.mu.Unlock()
	state, there := g.book.State(k.Namespace, k.Name)
	if !there {
		return state, nil
	}
	return state, g.book.Policy(k.Namespace, k.Name)
}

func (g *gates) strategy(q policy.Question, now time.Time) schedule.Strategy {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.book.Strategy(q, now)
}
