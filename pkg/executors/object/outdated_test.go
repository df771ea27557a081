package object

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// aim is the merge patch by which somebody sets what the step is about to set; empty where the
// step takes something away.
func (k stepKind) aim() string {
	return map[string]string{
		"patch-object, strategic": `{spec: {minReadySeconds: 9}}`, "patch-object, merge": `{spec: {paused: true}}`, "scale": `{spec: {replicas: 0}}`,
		"label, add": `{metadata: {labels: {new: "true"}}}`, "annotate": `{metadata: {annotations: {a.org/n: "1"}}}`,
	}[k.name]
}

// The agent dies, or is refused, between its record and its write; meanwhile somebody changes the
// same field.
func TestWhatSomebodyChangedBeforeTheWriteComesBack(t *testing.T) {
	eachStep(t, func(w *world, k stepKind, call *executors.Call) {
		if k.name == "patch-object, json" {
			w.Skip("it is never applied on top of somebody's change")
		}
		w.pass(k.executor, call)
		w.editBy("kubectl-scale", k.key, k.meddle)
		want := w.field(k.key, k.path...)
		is(w.T, w.end(k.executor, call), executors.Done, "")
		w.stands(k, k.is)
		is(w.T, k.executor.Restore(w.Context(), *call), executors.Done, "")
		w.stands(k, want)
	})
}

func TestWhatSomebodyChangedStaysWhereItIsNotKnownWhetherTheStepHadWritten(t *testing.T) {
	eachStep(t, func(w *world, k stepKind, call *executors.Call) {
		w.pass(k.executor, call)
		w.edit(k.key, k.meddle)
		theirs := w.field(k.key, k.path...)
		is(w.T, w.end(k.executor, call), executors.Failed, executors.ReasonChangedMeanwhile)
		w.wrote(0)
		is(w.T, k.executor.Restore(w.Context(), *call), executors.Done, executors.ReasonChangedMeanwhile)
		w.stands(k, theirs)
	})
}

// What a later step of the plan wrote, before the run was tried again from this one, was recorded
// there.
func TestWhatThePlanItselfWroteIsNobodysChange(t *testing.T) {
	eachStep(t, func(w *world, k stepKind, call *executors.Call) {
		if k.name == "patch-object, json" {
			w.Skip("it is never applied on top of any change")
		}
		w.pass(k.executor, call)
		w.editBy(call.Plan.Manager, k.key, k.meddle)
		is(w.T, w.end(k.executor, call), executors.Done, "")
		is(w.T, k.executor.Restore(w.Context(), *call), executors.Done, "")
		w.stands(k, k.was)
	})
}

// What the API server refuses then leaves what was recorded as it is.
func TestWhatThePlanItselfWroteIsNobodysChangeAfterARefusal(t *testing.T) {
	eachStep(t, func(w *world, k stepKind, call *executors.Call) {
		w.pass(k.executor, call)
		was := string(call.Recorded.Before)
		w.editBy(call.Plan.Manager, k.key, k.meddle)
		for name, refusal := range map[string]error{
			"conflict": apierrors.NewConflict(schema.GroupResource{Resource: "x"}, "orders", nil),
			"denied":   apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "orders", nil),
		} {
			w.refuse["patch"] = refusal
			if out := w.pass(k.executor, call); out.Anew || string(call.Recorded.Before) != was {
				w.Errorf("%s: %s, recorded is %s", name, said(out), call.Recorded.Before)
			}
		}
	})
}

func TestWhatALaterStepOfTheRunRecordedIsNobodysChange(t *testing.T) {
	w := newWorld(t, orders)
	first, second := w.step(&plan.ScaleProperties{Resource: ref("Deployment"), Replicas: number(0), RestoreAfter: true}), w.step(&plan.ScaleProperties{Resource: ref("Deployment"), Replicas: number(1), RestoreAfter: true})
	second.Path = "later"
	w.end(Scaler{}, &first)
	w.end(Scaler{}, &second)
	first.Objects.Holders = func(string) []executors.Holder {
		return []executors.Holder{{Run: second.Run, Path: second.Path, Before: second.Recorded.Before}}
	}
	is(t, w.end(Scaler{}, &first), executors.Done, "")
	w.wrote(3)
}

// Who may only read an object is above no step of another run: that one would leave to it what it
// cannot restore.
func TestAnAccountThatMayNotWriteKeepsNoOtherRunFromRestoring(t *testing.T) {
	for _, to := range []int64{0, 1} { // what the other run has set, and another value
		w := newWorld(t, orders)
		first, second := w.step(&plan.ScaleProperties{Resource: ref("Deployment"), Replicas: number(0), RestoreAfter: true}), w.step(&plan.ScaleProperties{Resource: ref("Deployment"), Replicas: number(to), RestoreAfter: true})
		second.Run, second.Path = "another", "theirs"
		is(t, w.end(Scaler{}, &first), executors.Done, "")
		second.Objects.Holders = func(string) []executors.Holder {
			return []executors.Holder{{Run: first.Run, Path: first.Path, Before: first.Recorded.Before}}
		}
		w.may = false
		if out := w.pass(Scaler{}, &second); out.State != executors.Failed || out.Reason != executors.ReasonForbidden || second.Recorded.Before != nil {
			t.Errorf("to %d: %s, recorded is %s", to, said(out), second.Recorded.Before)
		}
		w.may = true
		if is(t, w.pass(Scaler{}, &second), executors.Record, ""); second.Recorded.Before == nil {
			t.Errorf("to %d: with the right to write it is not above the other", to)
		}
	}
}

func TestWhatSomebodySetToTheSameValueBeforeTheWriteStays(t *testing.T) {
	for manager, restored := range map[string]bool{"kubectl-scale": false, "maint-plan-x": true, "": true} {
		t.Run(manager, func(t *testing.T) {
			eachStep(t, func(w *world, k stepKind, call *executors.Call) {
				if k.aim() == "" {
					w.Skip("of what is taken away nobody knows who did it")
				}
				w.pass(k.executor, call)
				if w.edit(k.key, k.aim()); manager != "" {
					w.editBy(manager, k.key, k.aim())
				}
				w.stands(k, k.is)
				is(w.T, w.end(k.executor, call), executors.Done, "")
				w.wrote(0)
				is(w.T, k.executor.Restore(w.Context(), *call), executors.Done, "")
				want := k.is
				if restored {
					want = k.was
				}
				w.stands(k, want)
			})
		})
	}
}

func TestAWriteThatLostARaceRemembersWhatTheOtherWrote(t *testing.T) {
	eachStep(t, func(w *world, k stepKind, call *executors.Call) {
		w.pass(k.executor, call)
		theirs := ""
		faster := func() {
			w.edit(k.key, k.meddle)
			theirs = w.field(k.key, k.path...)
		}
		w.meanwhile["patch"] = faster
		if _, rehearses := k.executor.(Patcher); rehearses { // its first patch is a dry run
			w.meanwhile["patch"] = func() { w.meanwhile["patch"] = faster }
		}
		out := w.pass(k.executor, call)
		is(w.T, out, executors.NotYet, executors.ReasonConflict)
		if !out.Anew || len(call.Recorded.Before) > 0 {
			w.Errorf("recorded is still %s", call.Recorded.Before)
		}
		is(w.T, w.end(k.executor, call), executors.Done, "")
		is(w.T, k.executor.Restore(w.Context(), *call), executors.Done, "")
		w.stands(k, theirs)
	})
}

// An attempt that the API server refused wrote nothing: the next one, which may be much later,
// records what is there then.
func TestARefusedAttemptLeavesNoRecord(t *testing.T) {
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "orders", nil)
	eachStep(t, func(w *world, k stepKind, call *executors.Call) {
		w.pass(k.executor, call)
		w.refuse["patch"] = denied
		if out := w.pass(k.executor, call); out.State != executors.Failed {
			w.Fatal(said(out))
		}
		if _, dry := k.executor.(Patcher); !dry && len(call.Recorded.Before) > 0 { // a dry run is refused before
			w.Errorf("recorded is still %s", call.Recorded.Before)
		}
	})
}

func TestAnOwnerThatSomebodySuspendedBeforeTheWriteStaysSuspended(t *testing.T) {
	w := newWorld(t,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: orders, labels: {kustomize.toolkit.fluxcd.io/name: apps, kustomize.toolkit.fluxcd.io/namespace: shop}}}`,
		`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: apps}, spec: {suspend: false}}`)
	call := w.step(&plan.HoldOwnersProperties{Object: &plan.ResourceRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "orders"}, RestoreAfter: true})
	is(t, w.pass(OwnerHolder{}, &call), executors.Record, "")
	w.editBy("flux", "Kustomization/apps", `{spec: {suspend: true}}`)
	is(t, w.end(OwnerHolder{}, &call), executors.Done, "")
	is(t, (OwnerHolder{}).Restore(t.Context(), call), executors.Done, "")
	w.wrote(0)
	if got := w.field("Kustomization/apps", "spec", "suspend"); got != "true" {
		t.Errorf("suspend is %s", got)
	}
}
