package print

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// PlanLines are a plan's standing: for status what needs eyes, for describe all.
func (v Printer) PlanLines(p view.Plan, all bool) []string {
	phase, message := p.Phase()
	lines := v.Labelled(
		"Plan", v.Bold(p.Object.Name)+" in namespace "+p.Object.Namespace+view.Prefix(": ", p.OnlyDry()),
		"Phase", v.Phase(phase)+view.Colon(v.AgentText(message)),
		"Due", v.Due(p),
		"Cannot run", strings.Join(p.CannotRun(), "\n"),
		"Next", v.Next(p),
		"Last", v.last(p),
		"Ledger", p.Kept.Fault(),
		"Window", v.gate(p),
		"Pause", v.longestPause(p.Pause(v.Now), p.Object),
		"Skip", strings.Join(v.Skips(p), "\n"),
		"Waiting", v.WaitingToken(p),
		"Notes", strings.Join(view.IntentFaults(p), "\n"),
		"Conditions", strings.Join(v.conditions(p, all), "\n"),
	)
	for _, r := range p.Active {
		lines = append(lines, "", v.Bold("Run "+r.Run.Name)+"  "+v.RunHead(r))
		lines = append(lines, Indent(v.StepLines(r))...)
	}
	return lines
}

// Skips say which slots of a plan are skipped, by whom and why.
func (v Printer) Skips(p view.Plan) []string {
	var out []string
	if own := v.Skipped(p.Object, p.Intent.Skip); own != "" {
		out = append(out, own)
	}
	if said := view.SkipSaid(p.Skipped, p.Spec); said != "" {
		out = append(out, "all slots, "+said)
	}
	return out
}

// Next is when a plan starts next, or why it does not.
func (v Printer) Next(p view.Plan) string {
	switch {
	case p.Decision.Status.Next != nil:
		note := ""
		if n := p.Decision.Status.Next.Note; n != "" {
			note = ", " + instant.NoteWords(n)
		}
		return v.When(trigger.StartsAt(p.Spec, p.Object.Namespace, p.Object.Name, p.Decision.Status.Next.At, p.Decision.Status.Next.Index)) + note + v.nextGate(p)
	case p.Kept.Hidden():
		return notKnown
	case len(p.Spec.Triggers.Schedules)+len(p.Faults) == 0:
		return ""
	case p.Deleting:
		return "none: " + view.NamespaceGoes
	case p.Invalid() != "":
		return "nothing runs while the plan is invalid"
	case view.SlotsOver(p.Spec.Triggers.Schedules, v.Now):
		return "none, since its last slot is past"
	}
	return "none, since all slots are paused or skipped"
}

// Due is a slot whose time has come and that waits; empty: none does.
func (v Printer) Due(p view.Plan) string {
	due := p.Decision.Status.Due
	if due == nil {
		return ""
	}
	text := v.When(due.At) + ", waits"
	if due.Why != "" {
		text = trigger.Waits(v.When(due.At)+",", v.AgentText(due.Why))
	}
	return text + "; it is Missed at " + v.Both(due.Missed)
}

// nextGate says that the next start is outside of the window; empty: it is not.
func (v Printer) nextGate(p view.Plan) string {
	if p.Decision.Status.NextGate != nil {
		g := *p.Decision.Status.NextGate
		g.Reason = v.AgentText(g.Reason)
		return ", " + g.Then(v.Both)
	}
	return ""
}

func (v Printer) last(p view.Plan) string {
	if p.Ledger == nil || p.Ledger.Last == nil {
		return ""
	}
	l := p.Ledger.Last
	text := fmt.Sprintf("%s %s", v.Phase(string(l.Phase)), l.Name)
	if l.StartedAt != nil {
		text += ", started " + v.When(*l.StartedAt)
	}
	if said := p.Ledger.LastSaid(); said != "" {
		text += "\n" + v.AgentText(said) + "; see " + v.Suggest().Describe(l.Name)
	}
	if l.SuccessAt != nil && l.Phase != run.Succeeded {
		text += "\nlast success " + v.When(*l.SuccessAt)
	}
	return text
}

// Pause says until when a plan's own pause lasts, and who asked for it; empty: none.
func (v Printer) Pause(p view.Plan) string {
	if !p.Intent.Pause.Holds(v.Now) {
		return ""
	}
	return v.pauseUntil(p.Intent.Pause) + ByOf(p.Object, annotations.Pause)
}

// PauseAbove is the pause of a namespace or of the whole cluster, and who asked for it.
func (v Printer) PauseAbove(p schedule.Pause) string {
	return p.Of + " " + v.Paused(p)
}

// Skip says which coming slots are skipped; empty: none.
func (v Printer) Skip(s intent.Skip) string {
	switch {
	case s.All:
		return "all slots, until 'unskip'"
	case s.Until != nil && s.Until.After(v.Now):
		return "all slots before " + v.Both(*s.Until)
	case s.Next:
		return "the next slot"
	}
	var slots []string
	for _, at := range s.Slots {
		slots = append(slots, v.Both(at))
	}
	return strings.Join(slots, "\n")
}

// Skipped says what a document skips, by whom and why; empty: nothing.
func (v Printer) Skipped(cm *corev1.ConfigMap, s intent.Skip) string {
	text := v.Skip(s)
	if text == "" {
		return ""
	}
	return text + ByOf(cm, annotations.Skip)
}

// WaitingToken describes a trigger that the agent has not handled, its author, and how to take it
// back; empty: none.
func (v Printer) WaitingToken(p view.Plan) string {
	if p.Intent.Token == "" || view.TokenHandled(p.Object, p.Ledger) {
		return ""
	}
	text := "a trigger that the agent has not handled yet"
	if live := p.Decision.Status.WaitsFor; live != "" {
		text = "a trigger, for the end of run " + live
	}
	return text + ByOf(p.Object, annotations.Trigger) + "; " + v.Suggest().Abort(view.AskedRun(p.Object)) + " takes it back"
}

// conditions are all conditions, or only those that report a problem.
func (v Printer) conditions(p view.Plan, all bool) []string {
	var out []string
	for _, c := range view.Conditions(p.Object) {
		if !all && (c.Type == "Valid" || c.Type == "Ready") && c.Status == metav1.ConditionTrue {
			continue
		}
		text := fmt.Sprintf("%s=%s", c.Type, c.Status)
		if c.Message != "" {
			text += fmt.Sprintf(" (%s) %s", c.Reason, v.AgentText(c.Message))
		}
		if c.Type == "Mirrored" && c.Status == metav1.ConditionFalse { // what is missing is optional
			text += "; runs go on without it: see " + v.Suggest().Doctor(p.Object.Name)
		}
		out = append(out, text)
	}
	return out
}

// notKnown stands where the ledger of a plan would say it.
const notKnown = "not known"

// ShortNext is the next start for a cell of a table.
func (v Printer) ShortNext(p view.Plan) string {
	if p.Kept.Hidden() {
		return notKnown
	}
	if p.Decision.Status.Next == nil {
		return ""
	}
	at := trigger.StartsAt(p.Spec, p.Object.Namespace, p.Object.Name, p.Decision.Status.Next.At, p.Decision.Status.Next.Index)
	return fmt.Sprintf("%s (%s)", instant.Local(at, v.Zone), instant.Approximate(at.Sub(v.Now)))
}

// ShortLast is the last run for a cell of a table.
func (v Printer) ShortLast(p view.Plan) string {
	if p.Kept.Hidden() {
		return notKnown
	}
	if p.Ledger == nil || p.Ledger.Last == nil {
		return ""
	}
	l := p.Ledger.Last
	return fmt.Sprintf("%s %s ago", l.Phase, instant.Approximate(v.Now.Sub(l.EndedAt)))
}

// gate describes a plan's gate for status and describe; empty: it has none.
func (v Printer) gate(p view.Plan) string {
	if p.Decision.Status.Window == nil {
		return ""
	}
	return v.window(*p.Decision.Status.Window)
}

// window says whether a window is open, how long it stays so, and why.
func (v Printer) window(w schedule.Verdict) string {
	word := "closed"
	switch {
	case w.Permitted:
		word = "open"
	case w.Hidden():
		word = "not known"
	}
	if w.Until != nil {
		word += " until " + v.Both(*w.Until) + ", in " + instant.Approximate(w.Until.Sub(v.Now))
	}
	return word + " (" + v.AgentText(w.Why()) + ")"
}
