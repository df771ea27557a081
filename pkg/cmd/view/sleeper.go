package view

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/offwindow"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Sleeper is a HibernatePlan with everything about it.
type Sleeper struct {
	Namespace, Name string
	Object          *corev1.ConfigMap // nil: it is in a file
	Spec            hibernate.Spec
	Faults          document.Faults      // of the document
	HoldFaults      document.Faults      // of the hold's annotations
	Table           *hibernate.Timetable // nil: the plan cannot be read
	Intent          intent.Intent
	Hold            hibernate.Hold
	Pauses          []schedule.Pause // its own, and those above it
	Gate            *schedule.Gate   // of its sleep
	Recorded        bool             // a ledger has its past sleep windows
	Deleting        bool             // its namespace is being deleted: nothing begins in it
	Unattended      time.Time        // when it is looked at, where no agent is at work; zero: one is
}

// NewSleeper reads a HibernatePlan from its object; pauses are those above it, gate is that of its
// sleep.
func NewSleeper(cm *corev1.ConfigMap, pauses []schedule.Pause, gate *schedule.Gate) Sleeper {
	spec, faults := annotations.HibernatePlan(cm)
	hold, misheld := annotations.ReadHold(cm.Annotations)
	s := SleeperOf(cm.Namespace, cm.Name, spec, annotations.Intent(cm.Annotations), hold, nil)
	s.Gate, s.Recorded = gate, true
	s.Object, s.Faults, s.HoldFaults, s.Pauses = cm, faults, misheld, append(pauses, s.Intent.Pause)
	if len(faults) > 0 {
		s.Table = nil
	}
	return s
}

// SleeperOf is a HibernatePlan with the intents of people.
func SleeperOf(namespace, name string, spec hibernate.Spec, in intent.Intent, hold hibernate.Hold, resolver *policy.Resolver) Sleeper {
	s := Sleeper{Namespace: namespace, Name: name, Spec: spec, Intent: in, Hold: hold, Pauses: []schedule.Pause{in.Pause}}
	if table, err := hibernate.NewTimetable(spec); err == nil {
		s.Table = table
	}
	if resolver != nil {
		s.Gate = resolver.Gate(in.Query(namespace, spec.Policies))
	}
	return s
}

// Zone is the zone of its off-hours.
func (s Sleeper) Zone() string { return cmp.Or(s.Spec.Schedule.Timezone, "UTC") }

// Overrides are the intents of people.
func (s Sleeper) Overrides() hibernate.Overrides {
	return hibernate.Overrides{Hold: s.Hold, Skip: s.Intent.Skip}
}

// Pause is the one of its pauses that lasts longest; off if none is on.
func (s Sleeper) Pause(now time.Time) schedule.Pause {
	return holding(now, s.Pauses...)
}

// holding is the one of some pauses that lasts longest, if it holds; off: none does.
func holding(now time.Time, list ...schedule.Pause) schedule.Pause {
	if longest := schedule.LongestPause(list...); longest.Holds(now) {
		return longest
	}
	return schedule.Pause{}
}

// OnlyDry says that the plan only runs dry; empty: it does not.
func (s Sleeper) OnlyDry() string {
	if !s.Spec.DryRun {
		return ""
	}
	return "it is a dry run (spec.dryRun): nothing is put to sleep"
}

// Verdict is what policies say about falling asleep, if that is relevant now: the schedule or
// somebody wants it, and it does not sleep yet.
func (s Sleeper) Verdict(now time.Time) (verdict schedule.Verdict, asked bool) {
	if s.Table == nil || s.Gate == nil || s.Asleep() || !s.Table.DesiredState(now, s.Overrides()).Asleep {
		return verdict, false
	}
	return s.Gate.Verdict(now), true
}

// Notes are the faults of its annotations.
func (s Sleeper) Notes() []string {
	var out []string
	for _, f := range append(s.Intent.Faults, s.HoldFaults...) {
		out = append(out, f.String())
	}
	return out
}

// Observed says whether the agent has seen this version of the plan.
func (s Sleeper) Observed() bool {
	return s.Object.Annotations[annotations.StatusObserved] == annotations.Observed(s.Object)
}

// Published is a status that the agent wrote.
func (s Sleeper) Published(key string) string { return s.Object.Annotations[key] }

// Instant is an instant in its status; nil: none.
func (s Sleeper) Instant(key string) *time.Time {
	at, err := time.Parse(time.RFC3339, s.Object.Annotations[key])
	if err != nil {
		return nil
	}
	return &at
}

// Phase is the plan's phase: the agent's, if it has seen this version.
func (s Sleeper) Phase() (phase, message string) {
	if !s.Observed() {
		if len(s.Faults) > 0 {
			return string(hibernate.Invalid), fmt.Sprintf("%s%s", s.Faults[0], AndMore(len(s.Faults)-1))
		}
		return "Unseen", "the agent has not looked at this version of the plan yet"
	}
	if phase, message, is := s.pausedSince(); is {
		return string(phase), message
	}
	message = s.Published(annotations.StatusMessage)
	if h := s.Hold; h.On && (intent.SaysHeld(message, h.Asleep, h.Until) || s.Table == nil && intent.SaysHeld(message, h.Asleep, nil)) { // else it speaks of another hold
		message += s.HeldBy()
	}
	return s.Published(annotations.StatusPhase), message
}

// pausedSince is the phase of a plan that does not sleep and was paused, or resumed, while no agent is at work:
// what the agent published is older than that.
func (s Sleeper) pausedSince() (phase hibernate.Phase, message string, is bool) {
	if s.Unattended.IsZero() || s.Table == nil || s.Deleting {
		return "", "", false
	}
	pause, was := s.Pause(s.Unattended), hibernate.Phase(s.Published(annotations.StatusPhase))
	switch {
	case pause.On && was == hibernate.Active:
		return hibernate.Suspended, pause.Said(), true
	case pause.On || was != hibernate.Suspended || s.condition(policy.ChangesPaused, metav1.ConditionTrue, policy.ReasonPaused) == "":
		return "", "", false
	}
	want := s.Table.DesiredState(s.Unattended, s.Overrides())
	switch {
	case want.By == hibernate.BySchedule && want.Level.Suspended:
		return was, s.WhyOf(want), true
	case want.Asleep:
		return hibernate.Active, "awake, though it is to sleep: no agent is at work", true
	}
	return hibernate.Active, "awake: " + s.WhyOf(want), true
}

// HeldBy says who holds it and why, as it follows a sentence; empty: that is not known.
func (s Sleeper) HeldBy() string {
	if s.Object == nil || s.Hold == (hibernate.Hold{}) {
		return ""
	}
	return annotations.ActorOf(s.Object.Annotations, annotations.HoldState).Said("")
}

// NotReady says why nothing can be put to sleep or woken, by its status; empty: no reason. Failures
// are reported by its targets.
func (s Sleeper) NotReady() string { return s.condition("Ready", metav1.ConditionFalse, "NotReady") }

// ClockDoubt says why the agent's clock is doubtful, by its status; empty: it is not.
func (s Sleeper) ClockDoubt() string {
	return s.condition("ClockDoubt", metav1.ConditionTrue, "ClocksDiffer")
}

// condition is the message of a condition with a given status; empty: there is none.
func (s Sleeper) condition(kind string, status metav1.ConditionStatus, reason string) string {
	if !s.Observed() {
		return ""
	}
	for _, c := range Conditions(s.Object) {
		if c.Type == kind && c.Status == status && c.Reason == reason {
			return c.Message
		}
	}
	return ""
}

// Targets are the states of its targets, by its status.
func (s Sleeper) Targets() []hibernate.TargetStatus {
	return annotations.ReadTargets(s.Published(annotations.StatusTargets))
}

// Retried are the targets that have failed, and are tried again by themselves.
func (s Sleeper) Retried() []hibernate.TargetStatus {
	return slices.DeleteFunc(s.Targets(), func(t hibernate.TargetStatus) bool { return t.State != hibernate.Running || t.Attempts == 0 })
}

// RetriedWords say how often such a target has failed.
func RetriedWords(t hibernate.TargetStatus) string {
	return fmt.Sprintf("target %s has failed %s, and is tried again by itself", t.Target, Counted(t.Attempts, "time"))
}

// SleepWindow is a coming sleep window, with notes.
type SleepWindow struct {
	hibernate.Window
	Note string
	// Awake: nothing falls asleep in it, as far as that is known.
	Awake bool
}

// SleepWindows are those from an instant on, beginning with the present one. Their notes format
// instants with clock.
func (s Sleeper) SleepWindows(now, from time.Time, clock func(time.Time) string) iter.Seq[SleepWindow] {
	return func(yield func(SleepWindow) bool) {
		skip := s.Table.Named(s.Intent.Skip, now) // the next one from now, wherever the look begins
		for w := range s.Table.Windows(from) {
			if !yield(s.sleepWindow(now, w, skip, clock)) {
				return
			}
		}
	}
}

// sleepWindow adds what is not obvious about one. For a plan that already sleeps, pauses and
// policies do not matter.
func (s Sleeper) sleepWindow(now time.Time, w hibernate.Window, skip intent.Skip, clock func(time.Time) string) (out SleepWindow) {
	out.Window = w
	note := func(text string) { out.Note = JoinNote(out.Note, text) }
	if w.Why != hibernate.InOffHours {
		note(w.Why)
	}
	if w.Ends != "" && w.Ends != hibernate.Outside {
		note("ends: " + w.Ends)
	}
	begins := w.Start
	if now.After(begins) && (w.End.IsZero() || now.Before(w.End)) {
		begins = now
	}
	over := !w.End.IsZero() && !w.End.After(now) // whether it was held or paused then is not known
	if s.Spec.DryRun && (!over || !s.Recorded) && (!s.Asleep() || w.Start.After(now)) {
		note(DryRun)
		defer func() { out.Awake = true }()
	}
	if s.Deleting && !over && (!s.Asleep() || w.Start.After(now)) {
		note(NamespaceGoes)
		out.Awake = true
		return out
	}
	if s.Hold.Holds(begins) && !over {
		out.Awake = !s.Hold.Asleep && (s.Hold.Until == nil || !w.End.IsZero() && !s.Hold.Until.Before(w.End))
		note(HoldWords(s.Hold, clock) + s.HeldBy())
		return out
	}
	if over && s.Recorded {
		return out
	}
	if skip.Covers(w.Start) {
		note(s.Intent.Actors["skip"].Said("skipped"))
		out.Awake = true
		return out
	}
	if over || s.Asleep() && !w.Start.After(now) {
		return out
	}
	if pause := s.Pause(begins); pause.On {
		note(PausedSaid(pause))
		out.Awake = true
		return out
	}
	s.gated(&out, begins, clock, note)
	return out
}

// DryRun marks a slot or a sleep that changes nothing.
const DryRun = "dry run"

// PausedSaid says what is paused, by whom and why, without its end: for a note at a time in it.
func PausedSaid(p schedule.Pause) string {
	if p.Of == "" {
		return "paused" + p.By
	}
	return p.Of + " is paused" + p.By
}

// gated notes what prevents or delays a sleep.
func (s Sleeper) gated(out *SleepWindow, begins time.Time, clock func(time.Time) string, note func(string)) {
	if why, until := s.Table.Forbidden(begins); why != "" {
		out.Awake = !out.End.IsZero() && !until.Before(out.End)
		note("does not begin: " + why)
		return
	}
	if s.Gate == nil {
		return
	}
	switch v := s.Gate.Verdict(begins); {
	case v.Permitted:
	case v.Unknown():
		out.Awake = begins.After(out.Start) // it was to begin before, and has not
		note("not known whether it begins: you may not read what decides it")
	case v.Later != "":
		out.Awake = begins.After(out.Start)
		note("not known yet whether it begins: window closed (" + v.Why() + ")")
	case !v.Ready:
		out.Awake = true
		note("does not begin: " + v.Reason)
	case v.Until != nil:
		out.Awake = !out.End.IsZero() && !v.Until.Before(out.End)
		note("does not begin before " + clock(*v.Until) + ": window closed (" + v.Why() + ")")
	default:
		out.Awake = true
		note("does not begin: window closed (" + v.Reason + ")")
	}
}

// NothingBegins says that a plan which does not sleep stays as it is: its namespace is being deleted.
func (s Sleeper) NothingBegins(want hibernate.DesiredState) bool {
	return s.Deleting && (!want.Asleep || !s.Asleep())
}

// WhyOf is why it is to be as it is to be, with who holds it.
func (s Sleeper) WhyOf(want hibernate.DesiredState) string {
	if want.By == hibernate.ByHold {
		return want.Why + s.HeldBy()
	}
	return want.Why
}

// ForbiddenAt is why policies let no sleep begin at an instant; empty: they do, or it sleeps.
func (s Sleeper) ForbiddenAt(at time.Time) string {
	if s.Gate == nil || s.Asleep() {
		return ""
	}
	if v := s.Gate.Verdict(at); !v.Permitted && !v.Unknown() {
		return v.Why()
	}
	return ""
}

// UnknownAt says whether it cannot be read whether it may fall asleep at an instant.
func (s Sleeper) UnknownAt(at time.Time) bool {
	return s.Gate != nil && !s.Asleep() && s.Gate.Verdict(at).Unknown()
}

// NextChange is when it wakes or falls asleep next, by its schedule and by what keeps it as it is
// meanwhile: a pause, and policies that do not let it fall asleep.
func (s Sleeper) NextChange(now time.Time) offwindow.Change {
	course := offwindow.NewTimeline(s.Table, s.Overrides(), s.Gate, now)
	want := course.At(now)
	if s.NothingBegins(want) {
		return offwindow.Change{Why: "none: " + NamespaceGoes}
	}
	if pause := s.Pause(now); pause.On {
		return course.Paused(pause, s.Asleep())
	}
	if verdict, asked := s.Verdict(now); asked && !verdict.Permitted || want.Forbidden != "" && !s.Asleep() {
		return course.Begin(now, want)
	}
	next := course.After(want)
	if at := s.Instant(annotations.StatusSleeps); next.Unknown && at != nil && s.Observed() {
		return offwindow.Change{At: at} // as the agent knows it, which may read the policies
	}
	return next
}

// FallsAsleepAt is when it falls asleep next; nil: it does not, or that is not known.
func (s Sleeper) FallsAsleepAt(now time.Time) *time.Time {
	if s.Deleting {
		return nil
	}
	return s.changesAt(now, annotations.StatusSleeps, false)
}

// WakesAt is when it wakes next; nil: it does not, or that is not known.
func (s Sleeper) WakesAt(now time.Time) *time.Time {
	return s.changesAt(now, annotations.StatusWakes, true)
}

// changesAt is its next change, if that is of a kind. Where the plan cannot be read, here or by the agent,
// what the agent published counts.
func (s Sleeper) changesAt(now time.Time, published string, wakes bool) *time.Time {
	if phase, _ := s.Phase(); s.Table == nil || phase == string(hibernate.Invalid) {
		return s.Instant(published)
	}
	if next := s.NextChange(now); next.Wakes == wakes {
		return next.At
	}
	return nil
}

// Asleep says whether it sleeps, or is about to, by its status.
func (s Sleeper) Asleep() bool {
	if s.Object == nil {
		return false
	}
	phase := hibernate.Phase(s.Object.Annotations[annotations.StatusPhase])
	return phase == hibernate.Hibernated || phase == hibernate.Hibernating || s.Object.Annotations[annotations.StatusAsleep] != ""
}

// HoldWords describe a hold and its end.
func HoldWords(h hibernate.Hold, clock func(time.Time) string) string {
	text := "held awake"
	if h.Asleep {
		text = "held asleep"
	}
	if h.Until != nil {
		text += " until " + clock(*h.Until)
	}
	return text
}

// JoinNote appends a note to another.
func JoinNote(note, more string) string {
	if note == "" {
		return more
	}
	return note + ", " + more
}
