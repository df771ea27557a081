package print

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// SleeperLines show a HibernatePlan: for status what needs attention, for describe everything.
func (v Printer) SleeperLines(s view.Sleeper, all bool) []string {
	asleep, then := "", ""
	if at := s.Instant(annotations.StatusAsleep); at != nil {
		asleep = "since " + v.When(*at)
	}
	if s.Table != nil {
		then = v.sleepNext(s)
	}
	lines := v.Labelled(
		"Plan", v.Bold(s.Name)+" in namespace "+s.Namespace+", a HibernatePlan"+view.Prefix(": ", s.OnlyDry()),
		"Phase", v.SleepHead(s),
		"Asleep", asleep,
		"Next", then,
		"Why", v.sleepWhy(s),
		"Hold", v.hold(s),
		"Gate", v.sleepGate(s),
		"Pause", v.longestPause(s.Pause(v.Now), s.Object),
		"Skip", v.Skipped(s.Object, s.Intent.Skip),
		"Notes", strings.Join(s.Notes(), "\n"),
		"Conditions", strings.Join(v.conditionsOf(s.Object, all), "\n"),
	)
	if targets := v.TargetLines(s.Targets()); len(targets) > 0 {
		lines = append(append(lines, "", v.Bold("Targets")), Indent(targets)...)
	}
	return lines
}

// sleepNext is when it wakes or falls asleep next by its schedule.
func (v Printer) sleepNext(s view.Sleeper) string {
	next := s.NextChange(v.Now)
	if next.At == nil {
		return next.Why
	}
	return next.Verb() + " " + v.When(*next.At)
}

func (v Printer) sleepWhy(s view.Sleeper) string {
	if s.Table == nil {
		return ""
	}
	want := s.Table.DesiredState(v.Now, s.Overrides())
	if want.Asleep {
		return "to be asleep: " + v.AgentText(s.WhyOf(want))
	}
	return "to be awake: " + v.AgentText(s.WhyOf(want))
}

func (v Printer) hold(s view.Sleeper) string {
	if !s.Hold.Holds(v.Now) {
		return ""
	}
	return v.HoldWords(s.Name, s.Hold) + ByOf(s.Object, annotations.HoldState)
}

// sleepGate is what policies say about falling asleep, if that is relevant now.
func (v Printer) sleepGate(s view.Sleeper) string {
	if verdict, asked := s.Verdict(v.Now); asked && !verdict.Permitted {
		text := "no sleep may begin: " + v.AgentText(verdict.Why())
		if verdict.Until != nil {
			text += ", until " + v.When(*verdict.Until)
		}
		return text
	}
	return ""
}

func (v Printer) longestPause(p schedule.Pause, of *corev1.ConfigMap) string {
	switch {
	case !p.On:
		return ""
	case p.Of != "": // the pause above lasts longer, and belongs to somebody else
		return v.PauseAbove(p)
	default:
		return v.pauseUntil(p) + ByOf(of, annotations.Pause)
	}
}

func (v Printer) pauseUntil(p schedule.Pause) string {
	if p.Until == nil {
		return "until resumed"
	}
	return "until " + v.When(*p.Until)
}

// ShortSleep is when it wakes or falls asleep next, for a cell of a table.
func (v Printer) ShortSleep(s view.Sleeper) string {
	if s.Table == nil {
		return ""
	}
	next := s.NextChange(v.Now)
	if next.At == nil {
		return ""
	}
	return fmt.Sprintf("%s %s (%s)", next.Verb(), instant.Local(*next.At, v.Zone), instant.Approximate(next.At.Sub(v.Now)))
}

// ShortSince is since when it sleeps, for a cell of a table.
func (v Printer) ShortSince(s view.Sleeper) string {
	at := s.Instant(annotations.StatusAsleep)
	if at == nil {
		return ""
	}
	return instant.Approximate(v.Now.Sub(*at)) + " ago"
}

// conditionsOf are all conditions of a document, or only those that report a problem.
func (v Printer) conditionsOf(cm *corev1.ConfigMap, all bool) []string {
	return v.conditions(view.Plan{Object: cm}, all)
}

// busy says whether a target is in transition, or has failed.
func busy(list []hibernate.TargetStatus) bool {
	for _, t := range list {
		if t.State == hibernate.Running || t.State == hibernate.Failed || t.State == hibernate.Aborted {
			return true
		}
	}
	return false
}

// SleepBusy shows a HibernatePlan with its targets if one of them is in transition or has failed;
// else nothing.
func (v Printer) SleepBusy(s view.Sleeper) []string {
	if !busy(s.Targets()) {
		return nil
	}
	return append([]string{v.Bold(s.Namespace+"/"+s.Name) + "  " + v.SleepHead(s)}, append(Indent(v.TargetLines(s.Targets())), "")...)
}
