package print

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/savings"
)

// SleepHead is the phase of a HibernatePlan, with the agent's message.
func (v Printer) SleepHead(s view.Sleeper) string {
	phase, message := s.Phase()
	return v.Phase(phase) + view.Colon(v.AgentText(message))
}

// TargetLines are the targets of a HibernatePlan, a line each.
func (v Printer) TargetLines(list []hibernate.TargetStatus) []string {
	if len(list) == 0 {
		return nil
	}
	var b strings.Builder
	w := printers.GetNewTabWriter(&b)
	for _, t := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", t.Target, t.Executor, v.Phase(string(t.State)), v.targetTime(t), view.OrDash(targetMessage(t)))
	}
	_ = w.Flush() // a Builder accepts everything
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

// SleptLines show how long the resources of a HibernatePlan slept in the last 30 days, a line for
// each kind of a target; err is why that is not known.
func (v Printer) SleptLines(rows []savings.Row, err error) []string {
	if err == nil && len(rows) == 0 {
		return nil
	}
	lines := []string{"", v.Bold("Slept in the last 30 days")}
	if err != nil {
		return append(lines, "  not known: "+err.Error())
	}
	var b strings.Builder
	w := printers.GetNewTabWriter(&b)
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%.1f hours\t%s\n", r.Target, r.Kind, r.Hours, view.Counted(r.Resources, "resource"))
	}
	_ = w.Flush() // a Builder accepts everything
	return append(lines, Indent(strings.Split(strings.TrimRight(b.String(), "\n"), "\n"))...)
}

// targetTime is how long a target has been in transition, or since when it has its state.
func (v Printer) targetTime(t hibernate.TargetStatus) string {
	switch {
	case t.FinishedAt != nil:
		return instant.Approximate(v.Now.Sub(*t.FinishedAt)) + " ago"
	case t.StartedAt != nil:
		return "for " + instant.Approximate(v.Now.Sub(*t.StartedAt))
	}
	return "-"
}

func targetMessage(t hibernate.TargetStatus) string {
	if t.Attempts == 0 || t.State == hibernate.Asleep || t.State == hibernate.Awake { // earlier failures no longer matter
		return t.Message
	}
	return strings.TrimSuffix(fmt.Sprintf("%s failed: %s", view.Counted(t.Attempts, "attempt"), t.Message), ": ")
}

// SleepUpdates are plain lines about a HibernatePlan and its targets.
func (v Printer) SleepUpdates(s view.Sleeper) []Update {
	phase, message := s.Phase()
	of := s.Namespace + "/" + s.Name
	var out []Update
	for _, t := range s.Targets() {
		out = append(out, Update{Of: of + "/" + t.Target, Text: fmt.Sprintf("%s: target %s: %s%s", s.Name, t.Target, t.State, view.Colon(v.AgentText(targetMessage(t))))})
	}
	return append(out, Update{Of: of, Text: fmt.Sprintf("plan %s: %s%s", s.Name, phase, view.Colon(v.AgentText(message)))})
}

// Then is what follows after the hold, or now if there is none.
func (v Printer) Then(s view.Sleeper) string {
	at, begins, stays := v.Now, "it sleeps by its schedule", "it is awake by its schedule"
	if h := s.Hold; h.Holds(v.Now) {
		if h.Until == nil {
			return "its schedule is ignored until then"
		}
		at, begins, stays = *h.Until, "then it falls asleep by its schedule", "then it stays awake by its schedule"
		if h.Asleep {
			begins, stays = "then it sleeps on by its schedule", "then it wakes"
		}
	}
	want := s.Table.DesiredState(at, s.Overrides())
	if why := s.ForbiddenAt(at); why != "" && want.Asleep {
		return "it is to sleep by its schedule, but no sleep may begin: " + v.AgentText(why)
	}
	text := stays
	if want.Asleep {
		text = begins
	}
	if want.Asleep && s.UnknownAt(at) {
		text += ", if policies permit it, which cannot be read"
	}
	if want.By == hibernate.BySkip {
		text += " (" + want.Why + ")"
	}
	switch {
	case want.Until == nil:
		return text
	case want.Asleep:
		return text + " until " + v.Both(*want.Until)
	}
	return text + "; it sleeps next from " + v.Both(*want.Until) + " on"
}

// HoldWords describe a hold and its end.
func (v Printer) HoldWords(name string, h hibernate.Hold) string {
	text := "held awake"
	if h.Asleep {
		text = "held asleep"
	}
	if h.Until == nil {
		return text + " until released with " + v.Suggest().ReleaseHold(name)
	}
	return text + " until " + v.Both(*h.Until)
}

// SleepPicture shows a HibernatePlan with its targets during a wait.
func (v Printer) SleepPicture(s view.Sleeper) []string {
	return append([]string{v.Bold(s.Name) + "  " + v.SleepHead(s)}, Indent(v.TargetLines(s.Targets()))...)
}

// ByOf names the author and the reason of an intent.
func ByOf(cm *corev1.ConfigMap, intent string) string {
	text, by := "", annotations.ActorOf(cm.Annotations, intent)
	if by.Name != "" {
		text = ", by " + by.Name + " (unverified)"
	}
	return text + view.Colon(by.Reason)
}
