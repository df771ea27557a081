package why

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// whySleeper explains why a HibernatePlan sleeps or is awake now.
type whySleeper struct {
	*whyOptions
	sleeper view.Sleeper
	v       print.Printer
	want    hibernate.DesiredState
	// named is the plan as command lines name it.
	named string
	found []obstacle
}

// until says when the last obstacle is over by itself; nil: that is not known.
func (w *whySleeper) until(at *time.Time) { w.found[len(w.found)-1].until = at }

func (w *whySleeper) add(what, format string, args ...any) {
	w.found = append(w.found, obstacle{what: what, remedy: fmt.Sprintf(format, args...)})
}

// whySleep says why a HibernatePlan sleeps or is awake, and what would change that.
func (o *whyOptions) whySleep(ctx context.Context, k *factory.Cluster, agent factory.AgentState, s view.Sleeper) error {
	restores, err := k.RestoresOf(ctx, s.Namespace, s.Name)
	if err != nil {
		fmt.Fprintf(o.ErrOut, "warning: %v; whether restore data is missing is not known\n", err)
	}
	w := &whySleeper{whyOptions: o, sleeper: s, v: o.printer(s.Zone()), named: s.Name}
	if agent.Missing != "" {
		w.found = append(w.found, nobodyActs(agent))
	}
	for _, f := range s.Faults {
		w.add("the plan is invalid: "+f.String(), "fix it; %s shows all faults; what sleeps wakes at its time, or with %s", o.Suggest().Lint(), o.Suggest().Wake(w.named))
	}
	if s.Table != nil {
		w.want = s.Table.DesiredState(o.Now(), s.Overrides())
		w.unready()
		w.wishes()
		w.beginning()
		w.coming()
	}
	w.targets()
	if err == nil {
		w.restores(restores)
	}
	return w.report()
}

// unready is what keeps anything from being put to sleep or woken, by its status.
func (w *whySleeper) unready() {
	if why := w.sleeper.NotReady(); why != "" {
		w.add("the plan is not ready: "+why, "the agent notices within a minute when that exists; %s checks all that it needs", w.Suggest().Doctor(w.named))
	}
	if why := w.sleeper.ClockDoubt(); why != "" {
		w.add("the agent's clock may be wrong, so no sleep begins, and what sleeps wakes as soon as its own clock or the API server's says so: "+why, "set the clock of the node that the agent runs on")
	}
}

// wishes are intents and exceptions that replace the schedule.
func (w *whySleeper) wishes() {
	for _, note := range w.sleeper.Notes() {
		w.add("an annotation is not understood: "+note, "write it anew, or take it away")
	}
	w.paused()
	switch {
	case w.want.By == hibernate.ByHold:
		w.add("it is "+view.HoldWords(w.sleeper.Hold, w.v.Both)+print.ByOf(w.sleeper.Object, annotations.HoldState), "%s; %s", w.Suggest().ReleaseHold(w.named), w.v.Then(w.sleeper))
		w.until(w.sleeper.Hold.Until)
	case w.want.By == hibernate.BySkip:
		w.add("these off-hours are skipped"+print.ByOf(w.sleeper.Object, annotations.Skip), "%s", w.Suggest().Unskip(w.named))
	case w.want.Why != hibernate.InOffHours && w.want.Why != hibernate.Outside:
		w.add("its schedule says: "+w.v.AgentText(w.want.Why), "change spec.schedule or spec.exceptions; or %s", w.other())
	}
}

// paused are its own pause, and those above it.
func (w *whySleeper) paused() {
	for _, p := range w.sleeper.Pauses {
		switch {
		case !p.Holds(w.Now()):
		case p.Of != "":
			for _, n := range w.v.PauseNeeds(p) {
				w.add(n.About+" "+n.What+"; the plan keeps its present state", "%s", n.Remedy)
				w.until(p.Until)
			}
		default:
			until := "until somebody resumes it"
			if p.Until != nil {
				until = "until " + w.v.Both(*p.Until)
			}
			w.add("it is paused "+until+", and keeps its present state"+print.ByOf(w.sleeper.Object, annotations.Pause), "%s", w.Suggest().Resume(w.named))
			w.until(p.Until)
		}
	}
}

// other is the command that holds it in the state opposite to its schedule.
func (w *whySleeper) other() string {
	if w.want.Asleep {
		return w.Suggest().WakeShortly(w.named)
	}
	return w.Suggest().HibernateFor(w.named)
}

// beginning is what delays a sleep that is due.
func (w *whySleeper) beginning() {
	if !w.want.Asleep || w.sleeper.Asleep() {
		return
	}
	if w.want.Forbidden != "" {
		w.add("no sleep begins: "+w.want.Forbidden, "%s", w.Suggest().HibernateFor(w.named))
	}
	if w.sleeper.Spec.DryRun {
		w.add("it is a dry run", "take spec.dryRun out of the plan")
	}
	verdict, asked := w.sleeper.Verdict(w.Now())
	switch {
	case !asked || verdict.Permitted:
	case !verdict.Ready:
		w.add("no sleep may begin: "+w.v.AgentText(verdict.Reason), "%s", notReady(verdict))
	case verdict.Until != nil:
		w.add("no sleep may begin: "+w.v.AgentText(verdict.Why()), "it may from %s", w.v.When(*verdict.Until))
		w.until(verdict.Until)
	default:
		w.add("no sleep may begin: "+w.v.AgentText(verdict.Why()), "%s", stays(verdict))
	}
}

// coming is that policies let no sleep begin in the off-hours that come next, while it is awake as it
// should be.
func (w *whySleeper) coming() {
	s, now := w.sleeper, w.Now()
	if w.want.Asleep || s.Asleep() || s.Gate == nil || s.Deleting {
		return
	}
	for next := range s.Table.Windows(now) {
		if !next.Start.After(now) {
			continue
		}
		if verdict := s.Gate.Verdict(next.Start); !s.Hold.Holds(next.Start) && !s.Table.Named(s.Intent.Skip, now).Covers(next.Start) {
			w.comes(next, verdict)
		}
		return
	}
}

func (w *whySleeper) comes(next hibernate.Window, verdict schedule.Verdict) {
	what := "no sleep may begin in its next off-hours, from " + w.v.When(next.Start) + " on: "
	switch {
	case verdict.Permitted || verdict.Unknown():
	case !verdict.Ready:
		w.add(what+w.v.AgentText(verdict.Reason), "%s", notReady(verdict))
	case verdict.Until == nil:
		w.add(what+w.v.AgentText(verdict.Why()), "%s", stays(verdict))
	case !next.End.IsZero() && !verdict.Until.Before(next.End):
		w.add(what+w.v.AgentText(verdict.Why()), "it may from %s on", w.v.Both(*verdict.Until))
		w.until(verdict.Until)
	}
}

// targets are those that have failed, or wait for a failed one.
func (w *whySleeper) targets() {
	for _, t := range w.sleeper.Targets() {
		switch {
		case t.State == hibernate.Failed:
			w.add(fmt.Sprintf("target %s has failed after %s%s", t.Target, view.Counted(t.Attempts, "attempt"), view.Colon(w.v.AgentText(t.Message))), "fix what it says, then %s; %s checks the account and its rights", w.Suggest().Trigger(w.named), w.Suggest().Doctor(w.named))
		case t.State == hibernate.Aborted:
			w.add("target "+t.Target+" is not tried"+view.Colon(w.v.AgentText(t.Message)), "%s, once the other is mended", w.Suggest().Trigger(w.named))
		case t.State == hibernate.Running && t.Attempts > 0:
			w.add(view.RetriedWords(t)+view.Colon(w.v.AgentText(t.Message)), "at once: %s; %s checks the account and its rights", w.Suggest().Trigger(w.named), w.Suggest().Doctor(w.named))
		}
	}
}

// restores are records that do not count, and sleeping targets without records.
func (w *whySleeper) restores(list []view.Restore) {
	for _, r := range list {
		if r.Fault != "" {
			w.add("restore data "+r.Object.Name+" does not count: "+r.Fault, "if it is the agent's own, sign it with %s", w.Suggest().Adopt(r.Object.Name))
		}
	}
	for _, t := range w.sleeper.Targets() {
		there := slices.ContainsFunc(list, func(r view.Restore) bool {
			return r.Object.Name == annotations.RestoreName(w.sleeper.Name, t.Target)
		})
		if t.MaySleep() && !there {
			w.add("the restore data of target "+t.Target+" is gone: nobody knows how it was before it was put to sleep", "wake it by hand, and say so with %s", w.Suggest().Trigger(w.named))
		}
	}
}

func (w *whySleeper) report() error {
	if !w.out.Lines() {
		return w.reportValue()
	}
	for _, line := range w.standing() {
		fmt.Fprintln(w.Out, line)
	}
	for i, one := range w.found {
		fmt.Fprintf(w.Out, "%d. %s\n   %s\n", i+1, document.OneLine(one.what), one.remedy)
	}
	if len(w.found) == 0 {
		fmt.Fprintln(w.Out, "nothing is in the way")
	}
	if w.sleeper.Table != nil {
		w.next()
	}
	return ended(w.found)
}

// standing is its state, the state that it should have, and the targets that differ.
func (w *whySleeper) standing() []string {
	out := []string{w.v.SleepHead(w.sleeper)}
	if w.sleeper.Table != nil {
		out = append(out, fmt.Sprintf("it is to be %s: %s", map[bool]string{true: "asleep", false: "awake"}[w.want.Asleep], w.v.AgentText(w.sleeper.WhyOf(w.want))))
	}
	for _, t := range w.sleeper.Targets() {
		if t.State == hibernate.Asleep && t.Message != "" {
			out = append(out, fmt.Sprintf("target %s: %s", t.Target, w.v.AgentText(t.Message)))
		}
	}
	return out
}

// reportValue is report for scripts.
func (w *whySleeper) reportValue() error {
	next := []string{}
	if w.sleeper.Table != nil {
		if text := w.nextChange(); text != "" {
			next = append(next, text)
		}
		next = append(next, "by hand: "+w.other())
	}
	var at *time.Time
	if w.sleeper.Table != nil {
		at = w.sleeper.NextChange(w.Now()).At
	}
	if err := w.printWhy(explain(annotations.KindHibernatePlan, w.sleeper.Namespace, w.sleeper.Name, w.standing()).then(next, at), w.found); err != nil {
		return err
	}
	return ended(w.found)
}

// next is when it changes by itself, and the command that changes it now.
func (w *whySleeper) next() {
	if text := w.nextChange(); text != "" {
		fmt.Fprintln(w.Out, text)
	}
	fmt.Fprintf(w.Out, "by hand: %s\n", w.other())
}

// nextChange is when it wakes or falls asleep next; empty: it does not by itself.
func (w *whySleeper) nextChange() string {
	next := w.sleeper.NextChange(w.Now())
	if next.At == nil {
		return ""
	}
	return fmt.Sprintf("it is to %s %s", map[bool]string{true: "wake", false: "sleep"}[next.Wakes], w.v.When(*next.At))
}

// sleeper is the HibernatePlan that is asked about; nil: something else is.
func (o *whyOptions) sleeper(ctx context.Context, k *factory.Cluster, agent factory.AgentState) (*view.Sleeper, error) {
	cm, err := k.HibernatePlan(ctx, o.name)
	if cm == nil || err != nil {
		return nil, err
	}
	if _, err := k.Find(ctx, o.name, annotations.KindHibernatePlan); err != nil { // a node may have the same name
		return nil, err
	}
	s := source.ReadSleeper(ctx, o.Factory, k, agent, cm)
	return &s, nil
}
