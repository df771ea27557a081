package object

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// holdLease is for how long a HibernatePlan is held when nobody renews (a guess: longer than any
// outage of the agent, but a forgotten run must not keep a plan asleep for a day).
const holdLease = time.Hour

// takeOverLook is how often a step looks at a hold of a person, which may end at any time, and how long
// before its end it takes its place. A guess: each look is a write of the journal, and targets begin
// to wake in the time between the end of a hold and the look.
const takeOverLook = time.Minute

// maxSharers is how many steps a hold names (a guess). Those that have not renewed it for longest are
// left out: a run that is torn away leaves its name.
const maxSharers = 20

// Holder executes the step types hibernate and wake: it holds a HibernatePlan of the plan's
// namespace asleep or awake, waits until it is, and ends the hold with the run. It needs get, watch
// and patch on the ConfigMap. The hold is a lease that ends by itself, even when the agent dies.
//
// Steps of several runs share one hold: its reason names them all, each renews it, and the last one
// to leave ends it. A hold of a person is not changed before it ends. Where it holds the same
// state, the step waits behind it, and takes its place a minute before it ends.
type Holder struct{ asleep bool }

// Hibernates executes the step type hibernate.
func Hibernates() Holder { return Holder{asleep: true} }

// Wakes executes the step type wake.
func Wakes() Holder { return Holder{} }

// held is a HibernatePlan and its hold.
type held struct {
	object api.Object
	live   *unstructured.Unstructured
	hold   hibernate.Hold
	steps  []string // that share the hold; none: it is a person's
	ours   bool     // this step is one of them
	whose  string   // the holder, if it is somebody else
}

func (h Holder) read(ctx context.Context, call executors.Call) (held, error) {
	p, err := api.PropertiesAs[plan.HoldProperties](call)
	if err != nil {
		return held{}, err
	}
	o, err := api.Resolve(call, plan.ResourceRef{APIVersion: "v1", Kind: "ConfigMap", Name: p.Plan})
	if err != nil {
		return held{}, err
	}
	live, err := o.Get(ctx, "")
	if err != nil {
		return held{}, err
	}
	if live.GetLabels()[annotations.LabelKind] != annotations.KindHibernatePlan {
		return held{}, api.Refuse(executors.ReasonInvalid, "ConfigMap %s is no HibernatePlan", p.Plan)
	}
	notes := live.GetAnnotations()
	out := held{object: o, live: live, steps: sharers(notes[annotations.Reason(annotations.HoldState)]), whose: notes[annotations.Actor(annotations.HoldState)]}
	out.ours = slices.Contains(out.steps, reasonOf(call))
	out.hold, _ = annotations.ReadHold(notes) // a hold that cannot be read holds nothing
	return out, nil
}

// reasonOf marks a hold as that of a step.
func reasonOf(call executors.Call) string { return "step " + call.Path + " of run " + call.Run }

const separator = "; "

// sharers are the steps that a hold's reason names; none where it is a person's.
func sharers(reason string) []string {
	steps := strings.Split(reason, separator)
	for _, s := range steps {
		if !strings.HasPrefix(s, "step ") || !strings.Contains(s, " of run ") {
			return nil
		}
	}
	return steps
}

// waitsBehind says whether the hold is that of a person, and goes on for a while.
func (n held) waitsBehind(now time.Time) bool {
	return n.hold.Holds(now) && len(n.steps) == 0 && (n.hold.Until == nil || n.hold.Until.Sub(now) > takeOverLook)
}

// nextLook is when the hold has to be looked at again.
func (n held) nextLook(now time.Time) time.Time {
	switch {
	case n.ours:
		return n.hold.Until.Add(-holdLease / 2)
	case n.hold.Until != nil && n.hold.Until.Sub(now) > takeOverLook:
		return schedule.Earliest(now.Add(takeOverLook), n.hold.Until.Add(-takeOverLook))
	}
	return now.Add(takeOverLook)
}

// Pass makes sure that the plan is held, and says when it has reached the state.
func (h Holder) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	out, err := h.pass(ctx, call)
	return api.Finish(ctx, call, out, err)
}

func (h Holder) pass(ctx context.Context, call executors.Call) (executors.Outcome, error) {
	now, err := h.read(ctx, call)
	if err != nil {
		return executors.Outcome{}, err
	}
	standing := now.hold.Holds(call.Now)
	if standing && !now.ours && now.hold.Asleep != h.asleep {
		return executors.Outcome{}, api.Refuse(executors.ReasonConflict, "HibernatePlan %s is held %s%s: release it first", now.object.Name, annotations.FormatHold(now.hold), by(now.whose))
	}
	if call.DryRun {
		return api.Done("dry run: would hold HibernatePlan %s %s", now.object.Name, h.word()), nil
	}
	if !now.ours && !now.waitsBehind(call.Now) || now.ours && (!standing || now.hold.Asleep != h.asleep || due(now.hold, call.Now)) {
		if now, err = h.renew(ctx, call, now); err != nil {
			return executors.Outcome{}, err
		}
	}
	return h.arrived(call, now), nil
}

// due says whether half of a lease is over.
func due(h hibernate.Hold, now time.Time) bool {
	return h.Until == nil || h.Until.Sub(now) <= holdLease/2
}

// renew holds the plan for another lease, beside the steps that hold it already.
func (h Holder) renew(ctx context.Context, call executors.Call, now held) (held, error) {
	until := call.Now.Add(holdLease).UTC().Truncate(time.Second)
	steps := []string{reasonOf(call)}
	if now.hold.Holds(call.Now) && (now.ours || now.hold.Asleep == h.asleep) {
		steps = append(slices.DeleteFunc(slices.Clone(now.steps), func(s string) bool { return s == steps[0] }), steps[0])
		steps = steps[max(0, len(steps)-maxSharers):]
		if now.hold.Until != nil && now.hold.Until.After(until) && len(now.steps) > 0 {
			until = *now.hold.Until
		}
	}
	notes := map[string]any{annotations.HoldState: h.word(), annotations.HoldUntil: until.Format(time.RFC3339), annotations.Reason(annotations.HoldState): strings.Join(steps, separator)}
	was := now.live.GetAnnotations()
	if was[annotations.HoldState] != notes[annotations.HoldState] || was[annotations.HoldUntil] != notes[annotations.HoldUntil] { // admission lets only who changes a hold sign it
		notes[annotations.Actor(annotations.HoldState)] = call.User()
	}
	live, err := now.patch(ctx, notes)
	if err != nil {
		return now, err
	}
	now.live, now.hold, now.steps, now.ours = live, hibernate.Hold{On: true, Asleep: h.asleep, Until: &until}, steps, true
	return now, nil
}

func (n held) patch(ctx context.Context, notes map[string]any) (*unstructured.Unstructured, error) {
	return n.object.Patch(ctx, n.live, api.Patch{Type: types.MergePatchType, Body: map[string]any{"metadata": map[string]any{"annotations": notes}}})
}

// arrived says whether the plan has reached the state of its hold.
func (h Holder) arrived(call executors.Call, now held) executors.Outcome {
	notes := now.live.GetAnnotations()
	phase := hibernate.Phase(notes[annotations.StatusPhase])
	var out executors.Outcome
	switch {
	case notes[annotations.StatusHold] != annotations.FormatHold(now.hold):
		out = api.Waiting(now.object.Watch(""), "HibernatePlan %s is held %s; the agent has not looked at it yet", now.object.Name, h.word())
	case h.asleep && phase == hibernate.Hibernated, !h.asleep && (phase == hibernate.Active || phase == hibernate.Suspended):
		out = api.Done("HibernatePlan %s is held %s", now.object.Name, h.word())
		out.Changed = []run.Change{now.object.Change("held " + h.word())}
	case phase == hibernate.InError || phase == hibernate.Invalid:
		out = executors.Fail("Failed", "HibernatePlan %s is not %s: %s", now.object.Name, h.word(), notes[annotations.StatusMessage])
		out.Memory = now.memory()
		return out
	default:
		out = api.Waiting(now.object.Watch(""), "HibernatePlan %s is not %s yet: %s", now.object.Name, h.word(), notes[annotations.StatusMessage])
	}
	return now.lookedAt(call, out)
}

// lookedAt is an outcome with what the step remembers: whether it waits behind a person's hold. A hold of
// its own that is gone was released by somebody, and stays so; one that it waited on, it replaces.
func (n held) lookedAt(call executors.Call, out executors.Outcome) executors.Outcome {
	out.WakeAt = n.nextLook(call.Now)
	out.Memory = n.memory()
	return out
}

// memory says that the step has found the plan held, and whether by a person.
func (n held) memory() json.RawMessage { return raw(!n.ours, true) }

func (h Holder) word() string {
	if h.asleep {
		return "asleep"
	}
	return "awake"
}

func by(whose string) string {
	if whose == "" {
		return " by somebody else"
	}
	return fmt.Sprintf(" by %s", whose)
}

// Keep renews the hold, or takes the place of the one that the step waits behind, and of one in the
// same state that took its place meanwhile and is over. One that somebody has released or turned is
// left alone.
func (h Holder) Keep(ctx context.Context, call executors.Call) executors.Outcome {
	now, err := h.read(ctx, call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	standing, waited := now.hold.Holds(call.Now), string(call.Recorded.Memory) == "true"
	wanted := now.hold.On && now.hold.Asleep == h.asleep // which may be over
	switch {
	case call.DryRun:
		return api.Done("dry run: nothing to renew")
	case !now.ours && !wanted && (standing || !waited):
		out := api.Done("the hold is not ours to renew")
		out.WakeAt = now.nextLook(call.Now)
		return out
	case now.waitsBehind(call.Now):
		return now.lookedAt(call, api.Done("HibernatePlan %s is held %s%s", now.object.Name, annotations.FormatHold(now.hold), by(now.whose)))
	}
	if now, err = h.renew(ctx, call, now); err != nil {
		return api.Outcome(ctx, call, err)
	}
	return now.lookedAt(call, api.Done("held until %s", now.hold.Until.Format(time.RFC3339)))
}

// Release ends the hold: the schedule of the plan decides again. Where other steps share it, it
// leaves the hold to them.
func (h Holder) Release(ctx context.Context, call executors.Call) executors.Outcome {
	said, err := h.release(ctx, call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	return api.Done("%s", said)
}

func (h Holder) release(ctx context.Context, call executors.Call) (said string, err error) {
	now, err := h.read(ctx, call)
	switch {
	case api.IsMissing(err):
		return "the HibernatePlan is gone", nil
	case err != nil:
		return "", err
	case call.DryRun || !now.ours:
		if late := executors.Late(call.Recorded.InterruptedAt, call.Now); late != nil && !call.DryRun && len(call.Recorded.Memory) == 0 { // no pass has seen its hold
			return "", late
		}
		return "the hold is not ours to release", nil
	}
	others := slices.DeleteFunc(now.steps, func(s string) bool { return s == reasonOf(call) })
	notes, said := map[string]any{annotations.Reason(annotations.HoldState): strings.Join(others, separator)}, "left to "+strings.Join(others, separator)
	if len(others) == 0 {
		notes, said = map[string]any{
			annotations.HoldState: nil, annotations.HoldUntil: nil, annotations.Reason(annotations.HoldState): nil, annotations.Actor(annotations.HoldState): nil,
		}, "released"
	}
	if _, err = now.patch(ctx, notes); err != nil {
		return "", err
	}
	return "HibernatePlan " + now.object.Name + " is " + said, nil
}

// Stop ends the hold when the step ends before the plan has reached the state. Also a conflict is
// an error: the plan is still held.
func (h Holder) Stop(ctx context.Context, call executors.Call) error {
	if _, err := h.release(ctx, call); err != nil {
		return fmt.Errorf("release the HibernatePlan: %w", err)
	}
	return nil
}
