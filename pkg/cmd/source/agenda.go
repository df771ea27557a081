package source

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/calendar"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Agenda turns the documents of a Set into calendar entries between two instants. The core decides;
// Agenda has no rules of its own.
type Agenda struct {
	World    Set
	Now      time.Time
	From, To time.Time
	// Zone is the zone of instants in notes for people; empty: UTC, for scripts.
	Zone     string
	Owners   []calendar.Owner
	Entries  []calendar.Entry
	Warnings []string
}

// mostEntries limits the windows or slots of one document: about ten a day for the longest range,
// and every five minutes for five weeks (a guess: nobody reads more).
const mostEntries = 12000

// Gather fills the agenda: namespaces first, since they bind the rest, then policies, plans and
// HibernatePlans by name.
func (a *Agenda) Gather() error {
	policies, plans := slices.Clone(a.World.policies), slices.Clone(a.World.Plans)
	slices.SortStableFunc(policies, func(x, y policy.State) int {
		return cmp.Or(strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
	})
	slices.SortStableFunc(plans, func(x, y Plan) int {
		return cmp.Or(strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
	})
	for _, name := range a.namespaces() {
		a.namespace(name)
	}
	for _, p := range policies {
		a.policy(p)
	}
	for _, p := range plans {
		if err := a.plan(p); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	sleepers := slices.Clone(a.World.Sleepers)
	slices.SortStableFunc(sleepers, func(x, y HibernatePlan) int {
		return cmp.Or(strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
	})
	for _, p := range sleepers {
		a.sleeper(p)
	}
	return nil
}

// stamp formats an instant within a note.
func (a *Agenda) stamp(at time.Time) string {
	if a.Zone == "" {
		return instant.InUTC(at)
	}
	return instant.Local(at, a.Zone)
}

func (a *Agenda) add(e calendar.Entry) {
	if a.Zone != "" {
		e.Note = instant.InText(e.Note, a.Zone)
	}
	a.Entries = append(a.Entries, e)
}

func (a *Agenda) namespaces() []string {
	var out []string
	for _, p := range a.World.Plans {
		out = append(out, p.Namespace)
	}
	for _, p := range a.World.policies {
		out = append(out, p.Namespace)
	}
	for _, p := range a.World.Sleepers {
		out = append(out, p.Namespace)
	}
	for name := range a.World.Pauses {
		out = append(out, name)
	}
	out = append(out, a.World.namespaces...)
	slices.Sort(out)
	return slices.Compact(out)
}

// namespace adds the times in which a namespace is frozen or paused, whatever the objects in it
// say.
func (a *Agenda) namespace(name string) {
	owner := calendar.Owner{Kind: "namespace", Name: name}
	before := len(a.Entries)
	gate := a.World.Resolver.Gate(policy.Query{Namespace: name, Own: policy.StanzaText{Strategy: schedule.Permissive}})
	for s := range closed(gate.At, a.From, a.To) {
		note := strings.TrimPrefix(s.Reason, schedule.OfNamespace)
		if s.HasUntil { // the entry has the end
			note = strings.Replace(note, " "+s.Until.UTC().Format(time.RFC3339), "", 1)
		}
		a.add(a.period(owner, s, note))
	}
	a.paused(owner, schedule.LongestPause(a.World.PausesAbove(name)...))
	if len(a.Entries) > before {
		a.Owners = append(a.Owners, owner)
	}
}

// policy adds the windows of a policy that are in force, and the reasons for which there are none.
func (a *Agenda) policy(p policy.State) {
	owner := calendar.Owner{Kind: "policy", Namespace: p.Namespace, Name: p.Name}
	a.Owners = append(a.Owners, owner)
	first := len(a.Entries)
	a.policyAlways(owner, p)
	made := a.World.created[policy.PolicyRef{Name: p.Name, Namespace: p.Namespace}]
	a.Entries = append(a.Entries[:first], after(made, a.Entries[first:])...)
}

// policyAlways adds the entries of a policy as if it had always existed.
func (a *Agenda) policyAlways(owner calendar.Owner, p policy.State) {
	inForce := a.World.Resolver.Policy(p.Namespace, p.Name)
	windows := a.windows(owner, inForce)
	for i, e := range windows {
		at := e.Start
		if at.Before(a.From) {
			at = a.From
		}
		if s := inForce.At(at); s.Granted() {
			windows[i].Note = view.JoinNote(e.Note, afterName(s.Reason, p.Name))
		}
	}
	a.Entries = append(a.Entries, windows...)
	for _, e := range a.excluded(owner, p) {
		a.Entries = append(a.Entries, without(e, windows)...)
	}
	a.held(owner, p.Stanza)
	a.paused(owner, p.Pause)
	switch last := a.To.Add(-time.Second); {
	case !inForce.Ready(last):
		a.add(a.always(owner, afterName(inForce.At(last).Reason, p.Name)))
	case p.Spec.Strategy == schedule.Restrictive && !p.Stanza.Set():
		a.add(a.always(owner, string(schedule.Restrictive)))
	}
}

// after are entries without what was before the creation of their policy.
func after(made time.Time, entries []calendar.Entry) []calendar.Entry {
	var out []calendar.Entry
	for _, e := range entries {
		if !e.End.After(made) {
			continue
		}
		if e.Start.Before(made) {
			e.Start, e.Unbegun = made, false
		}
		out = append(out, e)
	}
	return out
}

func (a *Agenda) windows(owner calendar.Owner, p *schedule.Policy) []calendar.Entry {
	about := "policy " + owner.Name + ": excluded"
	words := strings.NewReplacer(about+": ", "cut short by ", about, "cut short by an exclusion")
	var out []calendar.Entry
	for w := range p.Intervals(a.From) {
		e := calendar.Entry{Kind: calendar.Window, Owner: owner, Start: a.From, End: a.To, Unbegun: w.Start == nil, Unending: w.End == nil}
		if w.Start != nil {
			e.Start = *w.Start
		}
		if w.End != nil {
			e.End = *w.End
		}
		if !e.Start.Before(a.To) {
			break
		}
		if len(out) == mostEntries {
			a.tooMany(owner, "windows", e.Start)
			break
		}
		e.Note = words.Replace(w.Note)
		out = append(out, e)
	}
	return out
}

func (a *Agenda) tooMany(owner calendar.Owner, what string, at time.Time) {
	a.Warnings = append(a.Warnings, fmt.Sprintf("%s has more than %d %s: those from %s on are left out; ask for a shorter time with --to", owner, mostEntries, what, a.stamp(at)))
}

// excluded are the exclusions of a policy, each with its own reason. Each is resolved as a policy
// of its own, so that calendars are found in the same way.
func (a *Agenda) excluded(owner calendar.Owner, p policy.State) []calendar.Entry {
	s := p.Spec.MaintenanceSchedule
	if p.Spec.Strategy != schedule.MaintenanceScheduled || s == nil || len(p.Faults) > 0 {
		return nil
	}
	var out []calendar.Entry
	for i, exclusion := range s.Exclude {
		// No policy can have this name.
		alone := policy.State{Namespace: p.Namespace, Name: fmt.Sprintf("%s/exclude[%d]", p.Name, i), Spec: policy.PolicySpec{
			Strategy:            schedule.MaintenanceScheduled,
			MaintenanceSchedule: &schedule.MaintenanceSchedule{Timezone: s.Timezone, Exclude: []schedule.Exclusion{exclusion}},
		}}
		a.World.Resolver.PutPolicy(alone)
		at := a.World.Resolver.Policy(p.Namespace, alone.Name)
		for stretch := range closed(at.At, a.From, a.To) {
			if !at.Ready(a.From) {
				break // the policy itself fails in the same way, and reports it
			}
			for _, part := range byReason(at.At, stretch, a.From) {
				reason := strings.TrimPrefix(afterName(part.Reason, alone.Name), "excluded")
				out = append(out, a.period(owner, part, strings.TrimPrefix(reason, ": ")))
			}
		}
		a.World.Resolver.DropPolicy(p.Namespace, alone.Name)
	}
	return unique(out)
}

func afterName(reason, policy string) string {
	return strings.TrimPrefix(reason, "policy "+policy+": ")
}

// closed are the intervals between two instants in which something is restrictive, with their real
// bounds.
func closed(at func(time.Time) schedule.State, from, to time.Time) iter.Seq[schedule.State] {
	return func(yield func(schedule.State) bool) {
		for t := from; t.Before(to); {
			s := at(t)
			if !s.Open && !yield(s) || !s.HasUntil {
				return
			}
			t = s.Until
		}
	}
}

// probe is the resolution for changes of reasons; two changes within it are seen as one. Holidays
// change at midnight.
const probe = 15 * time.Minute

// byReason splits an interval where its reason changes, as for adjacent days of a calendar. What is
// more than a year before the page is not searched.
func byReason(at func(time.Time) schedule.State, s schedule.State, from time.Time) []schedule.State {
	if !s.HasSince || !s.HasUntil {
		return []schedule.State{s}
	}
	reason := func(t time.Time) string { return at(t).Reason }
	start := s.Since
	if early := from.AddDate(-1, 0, 0); start.Before(early) {
		start = early
	}
	parts := []schedule.State{{Since: s.Since, HasSince: true, Reason: reason(start)}}
	for t := start; t.Before(s.Until); t = t.Add(probe) {
		last := &parts[len(parts)-1]
		if reason(t) == last.Reason {
			continue
		}
		change := firstOther(reason, last.Reason, t)
		last.Until, last.HasUntil = change, true
		parts = append(parts, schedule.State{Since: change, HasSince: true, Reason: reason(t)})
	}
	parts[len(parts)-1].Until, parts[len(parts)-1].HasUntil = s.Until, true
	return slices.DeleteFunc(parts, func(s schedule.State) bool { return !s.Until.After(from) })
}

// firstOther is the second up to t at which the reason changes.
func firstOther(reason func(time.Time) string, was string, t time.Time) time.Time {
	low, high := t.Add(-probe), t
	for high.Sub(low) > time.Second {
		if middle := low.Add(high.Sub(low) / 2).Truncate(time.Second); reason(middle) == was {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// period is a closed interval as an entry, cut where it has no bound.
func (a *Agenda) period(owner calendar.Owner, s schedule.State, note string) calendar.Entry {
	e := a.always(owner, note)
	if s.HasSince {
		e.Start, e.Unbegun = s.Since, false
	}
	if s.HasUntil {
		e.End, e.Unending = s.Until, false
	}
	return e
}

func (a *Agenda) always(owner calendar.Owner, note string) calendar.Entry {
	return calendar.Entry{Kind: calendar.Freeze, Owner: owner, Start: a.From, End: a.To, Unbegun: true, Unending: true, Note: note}
}

// held adds the freeze that an object's annotations put on it.
func (a *Agenda) held(owner calendar.Owner, s policy.StanzaText) {
	switch {
	case s.Strategy == schedule.Restrictive:
		a.until(owner, nil, string(s.Strategy)+s.By)
	case s.Strategy == schedule.RestrictiveUntil && s.Until != nil:
		a.until(owner, s.Until, string(s.Strategy)+s.By)
	}
}

func (a *Agenda) paused(owner calendar.Owner, pause schedule.Pause) {
	if !pause.On {
		return
	}
	note := "paused" + pause.By
	if pause.Of != "" && pause.Of != annotations.NamespaceNamed(owner.Name) {
		note = pause.Of + " is " + note
	}
	a.until(owner, pause.Until, note)
}

// until adds a freeze whose beginning is not known.
func (a *Agenda) until(owner calendar.Owner, end *time.Time, note string) {
	e := a.always(owner, note)
	if end != nil {
		if !end.After(a.From) {
			return
		}
		e.End, e.Unending = *end, false
	}
	a.add(e)
}

// without is a freeze less the windows that an override opened.
func without(freeze calendar.Entry, windows []calendar.Entry) []calendar.Entry {
	var out []calendar.Entry
	for _, w := range windows {
		if !w.Start.Before(freeze.End) || !w.End.After(freeze.Start) {
			continue
		}
		if w.Start.After(freeze.Start) && !w.Unbegun {
			before := freeze
			before.End, before.Unending = w.Start, false
			out = append(out, before)
		}
		freeze.Start, freeze.Unbegun = w.End, false
	}
	if freeze.Start.Before(freeze.End) {
		out = append(out, freeze)
	}
	return out
}

// unique removes exclusions with the same entry.
func unique(entries []calendar.Entry) []calendar.Entry {
	seen := map[calendar.Entry]bool{}
	return slices.DeleteFunc(entries, func(e calendar.Entry) bool {
		again := seen[e]
		seen[e] = true
		return again
	})
}

// plan adds the slots of a plan, with the reasons why nothing starts at some of them.
func (a *Agenda) plan(p Plan) error {
	owner := calendar.Owner{Kind: "plan", Namespace: p.Namespace, Name: p.Name}
	set, err := plan.ParseSchedules(p.Spec.Triggers.Schedules)
	if err != nil {
		return err
	}
	a.Owners = append(a.Owners, owner)
	a.held(owner, p.Intent.Stanza)
	a.paused(owner, p.Intent.Pause)
	a.paused(owner, p.told)
	outcome := a.outcomes(p, set)
	count := 0
	for slot, ok := set.Next(p.past.after(a.From).Add(-time.Nanosecond)); ok && slot.At.Before(a.To); slot, ok = set.Next(slot.At) {
		if count++; count > mostEntries {
			a.tooMany(owner, "slots", slot.At)
			break
		}
		e := calendar.Entry{Kind: calendar.Slot, Owner: owner, Start: slot.At, End: slot.At, Key: slot.Identity()}
		if p.past.covers(slot.At, a.Now) {
			p.past.note(&e)
			a.add(e)
			continue
		}
		of := outcome(slot)
		e.Idle, e.Note = of.idle, slotNote(slot, of)
		if p.Spec.DryRun {
			e.Note = strings.TrimSuffix(view.DryRun+"; "+e.Note, "; ")
		}
		a.add(e)
	}
	return nil
}

// outcome is what becomes of a slot to come.
type outcome struct {
	idle  bool          // nothing starts
	why   string        // so; or who permits it, when it starts, or that nobody knows
	delay time.Duration // up to its start
}

// outcomes says what becomes of the slots of a plan.
func (a *Agenda) outcomes(p Plan, set schedule.Set) func(schedule.Slot) outcome {
	gate, gated := a.World.GateOf(p), a.World.Gated(p)
	passed := a.withoutRun(p, set)
	return func(slot schedule.Slot) outcome {
		if why := passed(slot.At); why != "" {
			return outcome{idle: true, why: why}
		}
		start := view.StartOf(p.Spec, p.Namespace, p.Name, slot.At, slot.Index, gate)
		if !gated || start.Gate.Permitted {
			of := outcome{delay: start.Jitter}
			if gated && start.Gate.Granted() {
				of.why = "permitted: " + start.Gate.Reason
			}
			return of
		}
		return a.whenClosed(start, func(opens time.Time) bool {
			newer, ok := set.Next(slot.At)
			for ok && passed(newer.At) != "" {
				newer, ok = set.Next(newer.At)
			}
			return ok && !newer.At.After(opens)
		})
	}
}

// whenClosed is that of a slot whose gate is closed when it is due. superseded says whether a newer
// slot falls due before an instant: it takes the place of one that waits.
func (a *Agenda) whenClosed(start view.SlotStart, superseded func(time.Time) bool) outcome {
	v, opens := start.Gate, start.Opens()
	why := "not permitted then: " + v.Why()
	if v.Cause.Kind == schedule.CausePublished { // its reason says so itself
		why = v.Reason
	}
	switch {
	case v.Unknown():
		return outcome{why: view.NotKnownThen, delay: start.Jitter}
	case opens == nil:
		return outcome{idle: true, why: why}
	case superseded(*opens):
		return outcome{idle: true, why: why + "; a later slot takes its place"}
	}
	return outcome{why: "waits for its window, and starts at " + a.stamp(*opens) + " (" + v.Why() + ")"}
}

// withoutRun says why the slot at an instant ends without a run, whatever its gate says; empty: it
// does not.
func (a *Agenda) withoutRun(p Plan, set schedule.Set) func(time.Time) string {
	skip, above := a.skipOf(p, set), a.World.above(p)
	return func(at time.Time) string {
		switch {
		case p.stopped != "":
			return p.stopped
		case p.Intent.Pause.Holds(at):
			return "the plan is paused" + p.Intent.Pause.By
		case above.Holds(at):
			return above.Of + " is paused" + above.By
		case skip.Covers(at):
			return "skipped" + p.Intent.Actors["skip"].Said("")
		case p.skipped != "":
			return "skipped " + view.SkipSaid(p.skipped, p.Spec)
		}
		return ""
	}
}

// skipOf is the skip of a plan with the next slot resolved: the first from now on that no pause
// holds, wherever the agenda begins.
func (a *Agenda) skipOf(p Plan, set schedule.Set) intent.Skip {
	skip := p.Intent.Skip
	if !skip.Next {
		return skip
	}
	skip.Next = false
	from, pause := a.Now, schedule.LongestPause(p.Intent.Pause, a.World.above(p))
	if pause.Holds(from) {
		if pause.Until == nil {
			return skip
		}
		from = *pause.Until
	}
	if slot, ok := set.Next(from.Add(-time.Nanosecond)); ok {
		skip.Slots = append(slices.Clone(skip.Slots), slot.At)
	}
	return skip
}

func slotNote(slot schedule.Slot, of outcome) string {
	var parts []string
	if of.why != "" {
		parts = append(parts, of.why)
	}
	if slot.Note != "" {
		parts = append(parts, instant.NoteWords(slot.Note))
	}
	if of.delay > 0 {
		parts = append(parts, "starts "+of.delay.String()+" later (jitter)")
	}
	return strings.Join(parts, "; ")
}
