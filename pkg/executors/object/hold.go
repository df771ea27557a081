package object

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// holdLease is for how long a HibernatePlan is held when nobody renews (a guess: longer than any
// outage of the agent, but a forgotten run must not keep a plan asleep for a day).
const holdLease = time.Hour

// Holder executes the step types hibernate and wake: it holds a HibernatePlan of the plan's
// namespace asleep or awake, waits until it is, and ends the hold with the run. It needs get, watch
// and patch on the ConfigMap. The hold is a lease that ends by itself, even when the agent dies. A
// hold of somebody else is never changed.
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
	ours   bool
	whose  string // the holder, if it is somebody else
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
	out := held{object: o, live: live, ours: notes[annotations.Reason(annotations.HoldState)] == reasonOf(call), whose: notes[annotations.Actor(annotations.HoldState)]}
	out.hold, _ = annotations.ReadHold(notes) // a hold that cannot be read holds nothing
	return out, nil
}

// reasonOf marks a hold as that of a step.
func reasonOf(call executors.Call) string { return "step " + call.Path + " of run " + call.Run }

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
	if !standing || now.ours && (now.hold.Asleep != h.asleep || due(now.hold, call.Now)) {
		if now, err = h.renew(ctx, call, now); err != nil {
			return executors.Outcome{}, err
		}
	}
	return h.arrived(call, now), nil
}

// due says whether half of a lease is over.
func due(h hibernate.Hold, now time.Time) bool {
	return h.Until == nil || h.Until.Sub(now) < holdLease/2
}

func (h Holder) renew(ctx context.Context, call executors.Call, now held) (held, error) {
	until := call.Now.Add(holdLease).UTC().Truncate(time.Second)
	live, err := now.patch(ctx, map[string]any{
		annotations.HoldState: h.word(), annotations.HoldUntil: until.Format(time.RFC3339),
		annotations.Reason(annotations.HoldState): reasonOf(call), annotations.Actor(annotations.HoldState): "system:serviceaccount:" + call.Plan.Namespace + ":" + call.Plan.Account,
	})
	if err != nil {
		return now, err
	}
	now.live, now.hold, now.ours = live, hibernate.Hold{On: true, Asleep: h.asleep, Until: &until}, true
	return now, nil
}

func (n held) patch(ctx context.Context, notes map[string]any) (*unstructured.Unstructured, error) {
	return n.object.Patch(ctx, n.live, api.Patch{Type: types.MergePatchType, Body: map[string]any{"metadata": map[string]any{"annotations": notes}}})
}

// arrived says whether the plan has reached the state of its hold.
func (h Holder) arrived(call executors.Call, now held) executors.Outcome {
	notes := now.live.GetAnnotations()
	phase := hibernate.Phase(notes[annotations.StatusPhase])
	watch := now.object.Watch("")
	switch {
	case notes[annotations.StatusHold] != annotations.FormatHold(now.hold):
		return api.Waiting(watch, "HibernatePlan %s is held %s; the agent has not looked at it yet", now.object.Name, h.word())
	case h.asleep && phase == hibernate.Hibernated, !h.asleep && (phase == hibernate.Active || phase == hibernate.Suspended):
		out := api.Done("HibernatePlan %s is held %s", now.object.Name, h.word())
		out.Changed = []run.Change{now.object.Change("held " + h.word())}
		if now.ours {
			out.WakeAt = now.hold.Until.Add(-holdLease / 2)
		}
		return out
	case phase == hibernate.InError || phase == hibernate.Invalid:
		return executors.Fail("Failed", "HibernatePlan %s is not %s: %s", now.object.Name, h.word(), notes[annotations.StatusMessage])
	}
	return api.Waiting(watch, "HibernatePlan %s is not %s yet: %s", now.object.Name, h.word(), notes[annotations.StatusMessage])
}

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

// Keep renews the hold. One that somebody has changed is left alone.
func (h Holder) Keep(ctx context.Context, call executors.Call) executors.Outcome {
	now, err := h.read(ctx, call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if call.DryRun || !now.ours {
		return api.Done("the hold is not ours to renew")
	}
	if now, err = h.renew(ctx, call, now); err != nil {
		return api.Outcome(ctx, call, err)
	}
	out := api.Done("held until %s", now.hold.Until.Format(time.RFC3339))
	out.WakeAt = now.hold.Until.Add(-holdLease / 2)
	return out
}

// Release ends the hold: the schedule of the plan decides again.
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
		return "the hold is not ours to release", nil
	}
	_, err = now.patch(ctx, map[string]any{
		annotations.HoldState: nil, annotations.HoldUntil: nil, annotations.Reason(annotations.HoldState): nil, annotations.Actor(annotations.HoldState): nil,
	})
	if err != nil {
		return "", err
	}
	return "HibernatePlan " + now.object.Name + " is released", nil
}

// Stop ends the hold when the step ends before the plan has reached the state. Also a conflict is
// an error: the plan is still held.
func (h Holder) Stop(ctx context.Context, call executors.Call) error {
	if _, err := h.release(ctx, call); err != nil {
		return fmt.Errorf("release the HibernatePlan: %w", err)
	}
	return nil
}
