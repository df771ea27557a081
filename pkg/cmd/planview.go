package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// aPlan is a plan with everything that can be said about it.
type aPlan struct {
	object   *corev1.ConfigMap
	spec     plan.Spec
	faults   plan.Faults
	intent   plan.Intent
	decision plan.Decision // what the core would decide now
	live     []aRun
	ledger   *plan.Ledger
}

// seen says whether the agent speaks of the plan as it stands.
func (p aPlan) seen() bool {
	return p.object.Annotations[annotations.StatusObserved] == annotations.Observed(p.object)
}

// published is a status that the agent wrote.
func (p aPlan) published(key string) string { return p.object.Annotations[key] }

// pausesOf are the switches above the plans of a namespace: its own and the
// cluster's. What may not be read is not known, and not shown.
func (k *cluster) pausesOf(ctx context.Context, agentNamespace string, namespaces ...string) map[string][]plan.Switch {
	read := func(name string) (plan.Switch, bool) {
		ns, err := k.kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return plan.Switch{}, false
		}
		s := annotations.Intent(map[string]string{annotations.Pause: ns.Annotations[annotations.Pause]}).Pause
		return s, s.On
	}
	everywhere, all := read(agentNamespace)
	out := map[string][]plan.Switch{}
	for _, n := range namespaces {
		if _, done := out[n]; done {
			continue
		}
		out[n] = []plan.Switch{}
		if s, on := read(n); on {
			out[n] = append(out[n], s)
		}
		if all && n != agentNamespace {
			out[n] = append(out[n], everywhere)
		}
	}
	return out
}

// know works out what there is to say about a plan: the same pure decision that
// the agent takes, on the same facts.
func know(cm *corev1.ConfigMap, ledger *plan.Ledger, live []aRun, pauses []plan.Switch, book *plan.Book, now time.Time) aPlan {
	p := aPlan{object: cm, intent: annotations.Intent(cm.Annotations), live: live, ledger: ledger}
	p.spec, p.faults = annotations.Plan(cm)
	f := plan.Facts{
		Now: now, LookingSince: cm.CreationTimestamp.Time, Namespace: cm.Namespace, Name: cm.Name, UID: string(cm.UID),
		CreatedAt: cm.CreationTimestamp.Time, EditedAt: annotations.EditedAt(&cm.ObjectMeta), Spec: p.spec.Defaulted(), Faults: p.faults,
		Intent: p.intent, Pauses: pauses, Ready: plan.Readiness{OK: true}, Ledger: ledger,
		NameOf: func(r plan.Request) string { return annotations.RunName(cm.Name, string(cm.UID), r) },
	}
	if book != nil {
		f.Gate = book.Between(p.intent.Query(cm.Namespace, p.spec.Policies))
	}
	for _, r := range live {
		f.Live = append(f.Live, plan.LiveOf(r.run, r.journal))
	}
	p.decision = plan.Decide(f)
	return p
}

// phaseOf is a plan's phase: the agent's word where it speaks of this version.
func (p aPlan) phaseOf() (phase, message string) {
	if len(p.faults) > 0 {
		return string(plan.PhaseInvalid), fmt.Sprintf("%s%s", p.faults[0], andMore(len(p.faults)-1))
	}
	if !p.seen() {
		return "Unseen", "the agent has not looked at this version of the plan yet"
	}
	return p.published(annotations.StatusPhase), p.published(annotations.StatusMessage)
}

func andMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", n)
}

// planLines are a plan's standing: for status what needs eyes, for describe all.
func (v view) planLines(p aPlan, all bool) []string {
	phase, message := p.phaseOf()
	lines := v.labelled(
		"Plan", v.bold(p.object.Name)+" in namespace "+p.object.Namespace,
		"Phase", v.phase(phase)+colon(message),
		"Next", v.next(p),
		"Last", v.last(p),
		"Window", v.gateView(p),
		"Pause", v.pause(p),
		"Skip", v.skip(p.intent.Skip),
		"Waiting", v.waitingToken(p),
		"Notes", strings.Join(intentFaults(p), "\n"),
		"Conditions", strings.Join(v.conditions(p, all), "\n"),
	)
	for _, r := range p.live {
		lines = append(lines, "", v.bold("Run "+r.run.Name)+"  "+v.runHead(r))
		lines = append(lines, indent(v.stepLines(r))...)
	}
	return lines
}

func intentFaults(p aPlan) []string {
	var out []string
	for _, f := range p.intent.Faults {
		out = append(out, f.String())
	}
	return out
}

func (v view) next(p aPlan) string {
	switch {
	case p.decision.Next != nil:
		note := ""
		if n := p.decision.Next.Note; n != "" {
			note = ", " + noteWords(n)
		}
		return v.when(plan.StartsAt(p.spec, p.object.Namespace, p.object.Name, p.decision.Next.At, p.decision.Next.Index)) + note
	case len(p.faults) > 0:
		return "nothing runs while the plan is invalid"
	case len(p.spec.Triggers.Schedules) == 0:
		return ""
	}
	return "no slot that is neither paused nor skipped"
}

func (v view) last(p aPlan) string {
	if p.ledger == nil || p.ledger.Last == nil {
		return ""
	}
	l := p.ledger.Last
	text := fmt.Sprintf("%s %s", v.phase(string(l.Phase)), l.Name)
	if l.StartedAt != nil {
		text += ", started " + v.when(*l.StartedAt)
	}
	if l.SuccessAt != nil && l.Phase != plan.RunSucceeded {
		text += "\nlast success " + v.when(*l.SuccessAt)
	}
	return text
}

func (v view) pause(p aPlan) string {
	if !p.intent.Pause.Holds(v.now) {
		return ""
	}
	text := "until resumed"
	if u := p.intent.Pause.Until; u != nil {
		text = "until " + v.when(*u)
	}
	return text + v.by(p, annotations.Pause)
}

// by says who stands behind an intent, and why.
func (v view) by(p aPlan, intent string) string {
	text := ""
	if who := p.object.Annotations[annotations.Actor(intent)]; who != "" {
		text = ", by " + who + " (unverified)"
	}
	return text + colon(p.object.Annotations[annotations.Reason(intent)])
}

func (v view) skip(s plan.Skip) string {
	switch {
	case s.All:
		return "all slots, until 'unskip'"
	case s.Until != nil && s.Until.After(v.now):
		return "all slots before " + v.both(*s.Until)
	case s.Next:
		return "the next slot"
	}
	var slots []string
	for _, at := range s.Slots {
		slots = append(slots, v.both(at))
	}
	return strings.Join(slots, "\n")
}

func (v view) waitingToken(p aPlan) string {
	if p.intent.Token == "" || handledToken(p.object, p.ledger) {
		return ""
	}
	return "a trigger that the agent has not handled yet" + v.by(p, annotations.Trigger)
}

// conditionsOf are those that the agent published on a document.
func conditionsOf(cm *corev1.ConfigMap) []metav1.Condition {
	var list []metav1.Condition
	if err := json.Unmarshal([]byte(cm.Annotations[annotations.StatusConditions]), &list); err != nil {
		return nil
	}
	return list
}

// conditions are all, or those that say more than that all is well.
func (v view) conditions(p aPlan, all bool) []string {
	var out []string
	for _, c := range conditionsOf(p.object) {
		if !all && (c.Type == "Valid" || c.Type == "Ready") && c.Status == metav1.ConditionTrue {
			continue
		}
		text := fmt.Sprintf("%s=%s", c.Type, c.Status)
		if c.Message != "" {
			text += fmt.Sprintf(" (%s) %s", c.Reason, c.Message)
		}
		out = append(out, text)
	}
	return out
}
