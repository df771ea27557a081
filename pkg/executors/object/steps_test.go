package object

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

const (
	orders = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: orders, labels: {app: orders, old: x}}, spec: {replicas: 3, minReadySeconds: 1, template: {spec: {containers: [{name: web, image: "web:1"}, {name: log, image: "log:1"}]}}}}`
	app    = `{apiVersion: example.org/v1, kind: App, metadata: {name: orders}, spec: {hosts: [a, b]}}`
	secret = `{apiVersion: v1, kind: Secret, metadata: {name: orders}, data: {key: b2xk}}`
)

func ref(kind string) plan.ResourceRef {
	return plan.ResourceRef{APIVersion: map[string]string{"Deployment": "apps/v1", "App": "example.org/v1", "Secret": "v1"}[kind], Kind: kind, Name: "orders"}
}

func number(n int64) *int64 { return &n }

// kinds are the steps that change one object and can put it back, each with what it
// changes and how.
type stepKind struct {
	name     string
	executor interface {
		executors.Executor
		executors.Restorer
		executors.Finder
	}
	properties any
	key        string   // of the object
	path       []string // of what it changes
	was, is    string
	meddle     string // somebody's change of the same
	found      string // what it remembers, for a person
}

func steps() []stepKind {
	deployment := ref("Deployment")
	return []stepKind{
		{"patch-object, strategic", Patcher{}, &plan.PatchProperties{Resource: deployment, RestoreAfter: true, Patch: map[string]any{"spec": map[string]any{"minReadySeconds": int64(9)}}}, "Deployment/orders", []string{"spec", "minReadySeconds"}, "1", "9", `{spec: {minReadySeconds: 5}}`, "spec.minReadySeconds: 1 of Deployment shop/orders"},
		{"patch-object, merge", Patcher{}, &plan.PatchProperties{Resource: ref("App"), PatchType: "merge", RestoreAfter: true, Patch: map[string]any{"spec": map[string]any{"paused": true}}}, "App/orders", []string{"spec", "paused"}, "", "true", `{spec: {paused: false}}`, "spec.paused: absent of App shop/orders"},
		{"patch-object, json", Patcher{}, &plan.PatchProperties{Resource: ref("App"), PatchType: "json", RestoreAfter: true, Patch: []any{map[string]any{"op": "add", "path": "/spec/hosts/-", "value": "c"}}}, "App/orders", []string{"spec", "hosts"}, `["a","b"]`, `["a","b","c"]`, `{spec: {hosts: [z]}}`, `spec.hosts: ["a","b"] of App shop/orders`},
		{"scale", Scaler{}, &plan.ScaleProperties{Resource: deployment, Replicas: number(0), RestoreAfter: true}, "Deployment/orders", []string{"spec", "replicas"}, "3", "0", `{spec: {replicas: 5}}`, "spec.replicas: 3 of Deployment shop/orders"},
		{"label, add", Labels(), &plan.LabelProperties{Operation: "add", Labels: map[string]any{"new": true}, Object: &deployment, RestoreAfter: true}, "Deployment/orders", []string{"metadata", "labels", "new"}, "", `"true"`, `{metadata: {labels: {new: theirs}}}`, "metadata.labels.new: absent of Deployment shop/orders"},
		{"label, remove", Labels(), &plan.LabelProperties{Operation: "remove", Labels: []any{"old"}, Object: &deployment, RestoreAfter: true}, "Deployment/orders", []string{"metadata", "labels", "old"}, `"x"`, "", `{metadata: {labels: {old: theirs}}}`, `metadata.labels.old: "x" of Deployment shop/orders`},
		{"annotate", Annotations(), &plan.AnnotateProperties{Operation: "add", Annotations: map[string]any{"a.org/n": int64(1)}, Object: &deployment, RestoreAfter: true}, "Deployment/orders", []string{"metadata", "annotations", "a.org/n"}, "", `"1"`, `{metadata: {annotations: {a.org/n: theirs}}}`, "metadata.annotations[a.org/n]: absent of Deployment shop/orders"},
	}
}

// eachStep plays a story with every step, on a world of its own.
func eachStep(t *testing.T, story func(*world, stepKind, *executors.Call)) {
	t.Helper()
	for _, k := range steps() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, orders, app)
			call := w.step(k.properties)
			story(w, k, &call)
		})
	}
}

func (w *world) stands(k stepKind, want string) {
	w.Helper()
	if got := w.field(k.key, k.path...); got != want {
		w.Errorf("%v of %s is %s, want %s", k.path, k.key, got, want)
	}
}

func (w *world) wrote(n int) {
	w.Helper()
	if w.writes != n {
		w.Errorf("%d writes, want %d", w.writes, n)
	}
}

func is(t *testing.T, out executors.Outcome, state executors.State, reason string) {
	t.Helper()
	if out.State != state || out.Reason != reason {
		t.Errorf("%s", said(out))
	}
}

func TestAStepRecordsFirstThenWritesOnce(t *testing.T) {
	eachStep(t, func(w *world, k stepKind, call *executors.Call) {
		is(w.T, w.pass(k.executor, call), executors.Record, "")
		w.wrote(0)
		if got := k.executor.Found(call.Recorded.Before); got != k.found {
			w.Errorf("found %q", got)
		}
		out := w.pass(k.executor, call)
		is(w.T, out, executors.Done, "")
		if len(out.Changed) != 1 || out.Changed[0].Name != "orders" {
			w.Errorf("changed %+v", out.Changed)
		}
		w.stands(k, k.is)
		again := w.end(k.executor, call)
		if again.State != executors.Done || said(again) != said(out) {
			w.Errorf("a second time: %s, the first: %s", said(again), said(out))
		}
		w.wrote(1)
	})
}

// The agent dies after its write: what it does again finds the effect.
func TestAStepWhoseAnswerWasLostIsNotDoneTwice(t *testing.T) {
	eachStep(t, func(w *world, k stepKind, call *executors.Call) {
		w.pass(k.executor, call)
		w.lose["patch"] = true
		if out := w.pass(k.executor, call); out.State != executors.NotYet || out.Reason != executors.ReasonUnavailable {
			w.Fatal(said(out))
		}
		w.stands(k, k.is)
		is(w.T, w.end(k.executor, call), executors.Done, "")
		w.wrote(1)
		w.stands(k, k.is)
	})
}

func TestADryRunOfAStepWritesNothing(t *testing.T) {
	eachStep(t, func(w *world, k stepKind, call *executors.Call) {
		call.DryRun = true
		out := w.end(k.executor, call)
		is(w.T, out, executors.Done, "")
		if text, _ := out.Outputs["difference"].(string); text == "" || len(call.Recorded.Before) > 0 {
			w.Errorf("%s: %v, recorded %s", said(out), out.Outputs, call.Recorded.Before)
		}
		w.wrote(0)
	})
}

func TestAStepThatLostARaceLooksAgain(t *testing.T) {
	eachStep(t, func(w *world, k stepKind, call *executors.Call) {
		w.pass(k.executor, call)
		w.meanwhile["patch"] = func() { w.edit(k.key, `{metadata: {annotations: {other: x}}}`) }
		out := w.pass(k.executor, call)
		is(w.T, out, executors.NotYet, executors.ReasonConflict)
		if !out.WakeAt.Equal(now()) {
			w.Errorf("it looks again at %s", out.WakeAt)
		}
		is(w.T, w.end(k.executor, call), executors.Done, "")
		w.stands(k, k.is)
	})
}

func TestAStepLeavesAnObjectAloneThatWasCreatedAnew(t *testing.T) {
	eachStep(t, func(w *world, k stepKind, call *executors.Call) {
		w.pass(k.executor, call)
		w.edit(k.key, `{metadata: {uid: another}}`)
		is(w.T, w.end(k.executor, call), executors.Failed, executors.ReasonReplaced)
		w.wrote(0)
	})
}

func TestAStepThatIsRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		verb  string
		err   error
		may   bool
		state executors.State
		want  string // reason
	}{
		{"the account lacks the right to read", "get", forbidden("get", "x"), false, executors.Failed, executors.ReasonForbidden},
		{"the account lacks the right to write", "patch", forbidden("patch", "x"), false, executors.Failed, executors.ReasonForbidden},
		{"its roles were read in between", "patch", forbidden("patch", "x"), true, executors.NotYet, executors.ReasonDenied},
		{"admission says no", "patch", apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "orders", errors.New("admission webhook says no")), true, executors.Failed, executors.ReasonDenied},
		{"the API server is away", "get", errors.New("connection refused"), true, executors.NotYet, executors.ReasonUnavailable},
		{"the API server is busy", "patch", apierrors.NewTooManyRequests("later", 7), true, executors.NotYet, executors.ReasonUnavailable},
		{"the object is not there", "get", apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, "orders"), true, executors.Failed, executors.ReasonNotFound},
		{"the kind is not served any more", "get", apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{}, "", "", 0, true), true, executors.Failed, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachStep(t, func(w *world, k stepKind, call *executors.Call) {
				w.may = c.may
				if c.verb == "patch" {
					w.pass(k.executor, call)
				}
				w.refuse[c.verb] = c.err
				out := w.pass(k.executor, call)
				want := c.want
				if want == "" {
					want = executors.ReasonUnknownKind
					if _, scaler := k.executor.(Scaler); scaler { // its kind may have no scale
						want = executors.ReasonInvalid
					}
				}
				is(w.T, out, c.state, want)
				w.wrote(0)
				if out.State == executors.NotYet { // and goes on when that is over
					call.Now = out.WakeAt
					is(w.T, w.end(k.executor, call), executors.Done, "")
				}
			})
		})
	}
}

func TestRestorePutsBackWhatWasThere(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(*world, stepKind, *executors.Call) // after the step
		state  executors.State
		reason string
		want   func(stepKind) string
		twice  bool
	}{
		{"as it was", nil, executors.Done, "", func(k stepKind) string { return k.was }, true},
		{"as it was, though the answer gets lost", func(w *world, _ stepKind, _ *executors.Call) { w.lose["patch"] = true }, executors.NotYet, executors.ReasonUnavailable, func(k stepKind) string { return k.was }, true},
		{"not what somebody changed since", func(w *world, k stepKind, _ *executors.Call) { w.edit(k.key, k.meddle) }, executors.Done, executors.ReasonChangedMeanwhile, nil, false},
		{"not into an object of another uid", func(w *world, k stepKind, _ *executors.Call) { w.edit(k.key, `{metadata: {uid: another}}`) }, executors.Done, executors.ReasonGone, func(k stepKind) string { return k.is }, false},
		{"into one of another uid that came out of a backup with the run", func(w *world, k stepKind, call *executors.Call) {
			w.edit(k.key, `{metadata: {uid: another}}`)
			call.Recorded.RecoveredAt = call.Now
		}, executors.Done, "", func(k stepKind) string { return k.was }, true},
		{"not into one of another uid that is not as the step left it", func(w *world, k stepKind, call *executors.Call) {
			w.edit(k.key, `{metadata: {uid: another}}`)
			w.edit(k.key, k.meddle)
			call.Recorded.RecoveredAt = call.Now
		}, executors.Done, executors.ReasonGone, nil, false},
		{"not before an object follows that may be in the backup", func(w *world, k stepKind, call *executors.Call) {
			delete(w.objects, k.key)
			call.Recorded.RecoveredAt = call.Now.Add(-executors.RestoreTimeout + time.Second)
		}, executors.NotYet, "Waiting", func(stepKind) string { return "gone" }, false},
		{"not into an object that did not follow", func(w *world, k stepKind, call *executors.Call) {
			delete(w.objects, k.key)
			call.Recorded.RecoveredAt = call.Now.Add(-executors.RestoreTimeout)
		}, executors.Done, executors.ReasonGone, func(stepKind) string { return "gone" }, false},
		{"not into an object that is gone", func(w *world, k stepKind, _ *executors.Call) { delete(w.objects, k.key) }, executors.Done, executors.ReasonGone, func(stepKind) string { return "gone" }, false},
		{"not without a record", func(_ *world, _ stepKind, call *executors.Call) { call.Recorded.Before = nil }, executors.Done, "", func(k stepKind) string { return k.is }, false},
		{"not from a record that cannot be read", func(_ *world, _ stepKind, call *executors.Call) { call.Recorded.Before = []byte("{") }, executors.Failed, executors.ReasonInvalid, func(k stepKind) string { return k.is }, false},
		{"not without the right", func(w *world, _ stepKind, _ *executors.Call) {
			w.may, w.refuse["patch"] = false, forbidden("patch", "x")
		}, executors.Failed, executors.ReasonForbidden, func(k stepKind) string { return k.is }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachStep(t, func(w *world, k stepKind, call *executors.Call) {
				w.end(k.executor, call)
				if c.before != nil {
					c.before(w, k, call)
				}
				meddled := w.field(k.key, k.path...)
				out := k.executor.Restore(w.Context(), *call)
				is(w.T, out, c.state, c.reason)
				if another := strings.Contains(c.name, "another uid"); c.reason == executors.ReasonGone && strings.Contains(out.Message, "is another one now") != another {
					w.Errorf("it says %q", out.Message)
				}
				want := meddled
				if c.want != nil {
					want = c.want(k)
				}
				w.stands(k, want)
				if c.twice {
					is(w.T, k.executor.Restore(w.Context(), *call), executors.Done, "")
					w.stands(k, want)
					w.wrote(2)
				}
			})
		})
	}
}

func TestAsItWas(t *testing.T) {
	eachStep(t, func(w *world, k stepKind, call *executors.Call) {
		ask := func(want bool) {
			w.Helper()
			if is, err := k.executor.IsRestored(w.Context(), *call); err != nil || is != want {
				w.Errorf("as it was: %v, %v, want %v", is, err, want)
			}
		}
		w.pass(k.executor, call)
		ask(true)
		w.end(k.executor, call)
		ask(false)
		k.executor.Restore(w.Context(), *call)
		ask(true)
		w.edit(k.key, `{metadata: {uid: another}}`)
		ask(true)
		delete(w.objects, k.key)
		ask(true)
		w.refuse["get"] = errors.New("connection refused")
		if _, err := k.executor.IsRestored(w.Context(), *call); err == nil {
			w.Error("what cannot be read is not as it was")
		}
	})
}

// A request that was given up arrives after the run has ended the step: its version is still that of
// the object, so it is taken.
func TestRestoreWaitsForAWriteThatMayStillArrive(t *testing.T) {
	eachStep(t, func(w *world, k stepKind, call *executors.Call) {
		out := k.executor.Pass(w.Context(), *call)
		is(w.T, out, executors.Record, "")
		call.Recorded.Before, call.Recorded.InterruptedAt = out.Before, call.Now
		out = k.executor.Restore(w.Context(), *call)
		is(w.T, out, executors.NotYet, "Waiting")
		if want := call.Now.Add(executors.LateRequest); !out.WakeAt.Equal(want) || out.Watch == nil || out.Watch.Name != "orders" {
			w.Errorf("it wakes at %s by %+v, want %s and the object", out.WakeAt, out.Watch, want)
		}
		untouched := *call
		untouched.Now = out.WakeAt
		is(w.T, k.executor.Restore(w.Context(), untouched), executors.Done, "")
		is(w.T, k.executor.Pass(w.Context(), *call), executors.Done, "") // it arrives
		is(w.T, k.executor.Restore(w.Context(), *call), executors.Done, "")
		w.stands(k, k.was)
	})
}

func TestAStepThatAsksForNoRestoreRemembersNothing(t *testing.T) {
	w := newWorld(t, orders)
	call := w.step(&plan.ScaleProperties{Resource: ref("Deployment"), Replicas: number(0)})
	is(t, w.pass(Scaler{}, &call), executors.Done, "")
	if out := (Scaler{}).Restore(t.Context(), call); len(call.Recorded.Before) > 0 || said(out) != "done: the step asks for no restore" {
		t.Errorf("%s, %s", call.Recorded.Before, said(out))
	}
	is(t, w.pass(Scaler{}, &call), executors.Done, "")
	w.wrote(1)
}

// A patch that counts twice is written down also without restoreAfter.
func TestAPatchThatCountsTwiceIsNotAppliedOnTopOfSomebodysChange(t *testing.T) {
	w := newWorld(t, app)
	call := w.step(&plan.PatchProperties{Resource: ref("App"), PatchType: "json", Patch: []any{map[string]any{"op": "add", "path": "/spec/hosts/-", "value": "c"}}})
	is(t, w.pass(Patcher{}, &call), executors.Record, "")
	w.edit("App/orders", `{spec: {hosts: [z]}}`)
	is(t, w.end(Patcher{}, &call), executors.Failed, executors.ReasonChangedMeanwhile)
	w.wrote(0)
}

func TestWhatAStepCanNeverDo(t *testing.T) {
	deployment := ref("Deployment")
	strategic := func(patch any) *plan.PatchProperties {
		return &plan.PatchProperties{Resource: deployment, Patch: patch}
	}
	for _, c := range []struct {
		name       string
		executor   executors.Executor
		properties any
		want       string
	}{
		{"properties of another type", Scaler{}, &plan.PatchProperties{}, "refused Invalid: step change: properties are *plan.PatchProperties, not *plan.ScaleProperties"},
		{"no replicas", Scaler{}, &plan.ScaleProperties{Resource: deployment}, "refused Invalid: replicas is missing or negative; write a whole number from 0"},
		{"negative replicas", Scaler{}, &plan.ScaleProperties{Resource: deployment, Replicas: number(-1)}, "refused Invalid: replicas is missing or negative; write a whole number from 0"},
		{"an apiVersion that is none", Scaler{}, &plan.ScaleProperties{Resource: plan.ResourceRef{APIVersion: "a/b/c", Kind: "X", Name: "x"}, Replicas: number(1)}, `refused Invalid: X/x: "a/b/c" is no apiVersion`},
		{"a kind that is not served", Patcher{}, &plan.PatchProperties{Resource: plan.ResourceRef{APIVersion: "apps/v1", Kind: "Ghost", Name: "x"}, Patch: map[string]any{}}, "refused UnknownKind: Ghost/x: the cluster serves no kind Ghost in apps/v1; is its CRD installed?"},
		{"a patch type that is none", Patcher{}, &plan.PatchProperties{Resource: deployment, PatchType: "apply", Patch: map[string]any{}}, `refused Invalid: patchType must be strategic, merge or json, is "apply"`},
		{"a list for a strategic patch", Patcher{}, strategic([]any{}), "refused Invalid: patch: a list of operations goes with patchType: json, an object with strategic and merge"},
		{"an object for a JSON patch", Patcher{}, &plan.PatchProperties{Resource: deployment, PatchType: "json", Patch: map[string]any{}}, "refused Invalid: patch: a list of operations goes with patchType: json, an object with strategic and merge"},
		{"a patch without metadata", Patcher{}, strategic(map[string]any{"metadata": nil}), "refused Invalid: patch: metadata must be an object"},
		{"a strategic patch of a custom resource", Patcher{}, &plan.PatchProperties{Resource: ref("App"), Patch: map[string]any{"spec": map[string]any{"size": int64(1)}}}, "refused Invalid: App/orders: its kind has no strategic merge patch, as all custom resources; write patchType: merge or json"},
		{"a JSON patch of what is not there", Patcher{}, &plan.PatchProperties{Resource: ref("App"), PatchType: "json", Patch: []any{map[string]any{"op": "remove", "path": "/spec/never"}}}, "refused Invalid: App/orders: patch[0] cannot be applied: error in remove for path: '/spec/never': Unable to remove nonexistent key: never: missing value"},
		{"a value of a Secret that would be remembered", Patcher{}, &plan.PatchProperties{Resource: ref("Secret"), PatchType: "merge", RestoreAfter: true, Patch: map[string]any{"data": map[string]any{"key": "bmV3"}}}, "refused SecretNotKept: Secret/orders: this step would have to write down what the Secret holds, which is never done; use a merge patch without restoreAfter"},
		{"labels of no operation", Labels(), &plan.LabelProperties{Operation: "replace", Labels: map[string]any{"a": "b"}, Object: &deployment}, "refused Invalid: labels: write operation: add with a map, or operation: remove with a list of keys"},
		{"labels to add as a list", Labels(), &plan.LabelProperties{Operation: "add", Labels: []any{"a"}, Object: &deployment}, "refused Invalid: labels: write operation: add with a map, or operation: remove with a list of keys"},
		{"a label that is a map", Labels(), &plan.LabelProperties{Operation: "add", Labels: map[string]any{"a": map[string]any{}}, Object: &deployment}, "refused Invalid: labels: write operation: add with a map, or operation: remove with a list of keys"},
		{"annotations without keys", Annotations(), &plan.AnnotateProperties{Operation: "remove", Annotations: []any{}, Object: &deployment}, "refused Invalid: annotations: write operation: add with a map, or operation: remove with a list of keys"},
		{"labels of no object", Labels(), &plan.LabelProperties{Operation: "remove", Labels: []any{"a"}}, "refused Invalid: object is missing, and the plan has no target to default to"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, orders, app, secret)
			call := w.step(c.properties)
			if got := said(w.end(c.executor, &call)); got != c.want {
				t.Errorf("%s", got)
			}
			w.wrote(0)
		})
	}
}

func TestLabelsOfTheTargetAreThoseOfTheObjectThatTheRunHolds(t *testing.T) {
	w := newWorld(t, orders)
	call := w.step(&plan.LabelProperties{Operation: "add", Labels: map[string]any{"a": "b"}})
	call.Target.Object, call.Target.UID = &plan.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "orders"}, "another"
	is(t, w.end(Labels(), &call), executors.Failed, executors.ReasonReplaced)
	call.Target.UID = "u"
	is(t, w.end(Labels(), &call), executors.Done, "")
}

func TestASecretIsPatchedAndNotShown(t *testing.T) {
	w := newWorld(t, secret)
	call := w.step(&plan.PatchProperties{Resource: ref("Secret"), PatchType: "merge", Patch: map[string]any{"data": map[string]any{"key": "bmV3"}}})
	if got := said(w.end(Patcher{}, &call)); got != "done: changed Secret/orders: data.key: (hidden) → (hidden)" {
		t.Error(got)
	}
}

// Whatever a step does to a Secret, nothing that stands in it is told, and nothing of it is
// written into a journal.
func TestNothingOfASecretIsToldOrWrittenDown(t *testing.T) {
	const applied = "kubectl.kubernetes.io/last-applied-configuration"
	object := ref("Secret")
	json := func(ops ...any) any {
		return &plan.PatchProperties{Resource: object, PatchType: "json", Patch: ops}
	}
	op := func(fields ...string) any {
		out := map[string]any{}
		for i := 0; i < len(fields); i += 2 {
			out[fields[i]] = fields[i+1]
		}
		return out
	}
	for name, c := range map[string]struct {
		executor   executors.Executor
		properties any
		want       string
	}{
		"kubectl's copy is taken away":                       {Annotations(), &plan.AnnotateProperties{Operation: "remove", Annotations: []any{applied}, Object: &object}, "done: changed Secret/orders: metadata.annotations[" + applied + "]: (hidden) → absent"},
		"kubectl's copy is taken away and would be put back": {Annotations(), &plan.AnnotateProperties{Operation: "remove", Annotations: []any{applied}, Object: &object, RestoreAfter: true}, "SecretNotKept"},
		"another annotation":                                 {Annotations(), &plan.AnnotateProperties{Operation: "add", Annotations: map[string]any{"a": "x"}, Object: &object, RestoreAfter: true}, `done: changed Secret/orders: metadata.annotations.a: absent → "x"`},
		"data is copied into a label":                        {Patcher{}, json(op("op", "copy", "from", "/data/key", "path", "/metadata/labels/key")), "SecretNotKept"},
		"data is moved into an annotation":                   {Patcher{}, json(op("op", "move", "from", "/data/key", "path", "/metadata/annotations/key")), "SecretNotKept"},
		"all is copied":                                      {Patcher{}, json(op("op", "copy", "from", "", "path", "/metadata/annotations/key")), "SecretNotKept"},
		"kubectl's copy is copied":                           {Patcher{}, json(op("op", "copy", "from", "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration", "path", "/metadata/annotations/key")), "SecretNotKept"},
		"all annotations are copied":                         {Patcher{}, json(op("op", "copy", "from", "/metadata/annotations", "path", "/metadata/labels")), "SecretNotKept"},
		"a label is copied":                                  {Patcher{}, json(op("op", "copy", "from", "/metadata/labels/app", "path", "/metadata/labels/was")), `done: changed Secret/orders: metadata.labels.was: absent → "shop"`},
		"data is replaced, with what is put back":            {Patcher{}, &plan.PatchProperties{Resource: object, PatchType: "merge", RestoreAfter: true, Patch: map[string]any{"data": map[string]any{"key": "bmV3"}}}, "SecretNotKept"},
	} {
		for _, rehearsed := range []bool{false, true} {
			w := newWorld(t, `{apiVersion: v1, kind: Secret, metadata: {name: orders, labels: {app: shop}, annotations: {`+applied+`: "b2xk"}}, data: {key: b2xk}}`)
			call := w.step(c.properties)
			call.DryRun = rehearsed
			out := w.end(c.executor, &call)
			told := fmt.Sprint(said(out), out.Outputs, out.Changed, string(call.Recorded.Before))
			if strings.Contains(told, "b2xk") || !rehearsed && !strings.Contains(told, c.want) {
				t.Errorf("%s (rehearsed: %t): %s", name, rehearsed, told)
			}
		}
	}
}

func TestWhatAnEarlierVersionWroteDownOfASecretIsNotTold(t *testing.T) {
	before := []byte(`{"uid":"u","object":{"apiVersion":"v1","kind":"Secret","name":"orders"},"changes":[{"path":[{"key":"metadata"},{"key":"annotations"},{"key":"kubectl.kubernetes.io/last-applied-configuration"}],"before":"b2xk"}]}`)
	if got := (memory{}).Found(before); strings.Contains(got, "b2xk") || !strings.Contains(got, "(hidden)") {
		t.Error(got)
	}
	w := newWorld(t, `{apiVersion: v1, kind: Secret, metadata: {name: orders, annotations: {kubectl.kubernetes.io/last-applied-configuration: "bmV3"}}}`)
	object := ref("Secret")
	call := w.step(&plan.AnnotateProperties{Operation: "remove", Annotations: []any{"a"}, Object: &object, RestoreAfter: true})
	call.Recorded.Before = before
	found, _, err := Annotations().Drift(w.Context(), call)
	if err != nil || found.Drift == nil || strings.Contains(found.Drift.Said(), "bmV3") {
		t.Errorf("%+v, %v", found.Drift, err)
	}
}

func TestDelete(t *testing.T) {
	resource := ref("Deployment")
	for _, c := range []struct {
		name   string
		p      plan.DeleteProperties
		before func(*world, *executors.Call) // the first pass
		after  func(*world, *executors.Call) // the record
		want   string
		stays  bool
		writes int
	}{
		{name: "an object", want: "done: Deployment/orders is deleted", writes: 1},
		{name: "one that is not there", before: func(w *world, _ *executors.Call) { delete(w.objects, "Deployment/orders") }, want: "done NotFound: Deployment/orders was not there"},
		{name: "the answer gets lost", after: func(w *world, _ *executors.Call) { w.lose["delete"] = true }, want: "done: Deployment/orders is deleted", writes: 1},
		{name: "it dies after it, and somebody creates another", after: func(w *world, _ *executors.Call) { w.edit("Deployment/orders", `{metadata: {uid: another}}`) }, want: "done: Deployment/orders is gone; another one of that name was created since, which stays", stays: true},
		{name: "one that finalizers hold", before: func(w *world, _ *executors.Call) {
			w.edit("Deployment/orders", `{metadata: {finalizers: [a.org/x, b]}}`)
		}, want: "not yet Waiting: Deployment/orders is being deleted, held by its finalizers a.org/x, b", stays: true, writes: 1},
		{name: "a dry run", before: func(_ *world, call *executors.Call) { call.DryRun = true }, want: "done: dry run: would delete Deployment/orders", stays: true},
		{name: "another uid is meant", p: plan.DeleteProperties{Preconditions: &plan.DeletePreconditions{UID: "v"}}, want: "refused Replaced: Deployment/orders has the uid u and not v, as preconditions.uid wants it: it stays", stays: true},
		{name: "another version is meant", p: plan.DeleteProperties{Preconditions: &plan.DeletePreconditions{ResourceVersion: "1"}}, want: "refused ChangedMeanwhile: Deployment/orders is at resourceVersion 11 and not 1, as preconditions.resourceVersion wants it: it stays", stays: true},
		{name: "its end may not be watched", before: func(w *world, _ *executors.Call) { w.may = false }, want: "refused Forbidden: serviceaccount shop/maint-runner may not list deployments.apps \"orders\" in namespace shop: grant list on deployments.apps to it", stays: true},
		{name: "it may not be deleted", after: func(w *world, _ *executors.Call) {
			w.may, w.refuse["delete"] = false, forbidden("delete", "deployments")
		}, want: "refused Forbidden: serviceaccount shop/maint-runner may not delete deployments.apps \"orders\" in namespace shop: grant delete on deployments.apps to it", stays: true},
		{name: "what was recorded cannot be read", before: func(_ *world, call *executors.Call) { call.Recorded.Before = []byte("{") }, want: "refused Invalid: step change: what it recorded is not readable: unexpected end of JSON input", stays: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, orders)
			c.p.Resource = resource
			call := w.step(&c.p)
			if c.before != nil {
				c.before(w, &call)
			}
			if c.after != nil {
				is(t, w.pass(Deleter{}, &call), executors.Record, "")
				c.after(w, &call)
			}
			out := w.end(Deleter{}, &call)
			for out.Reason == executors.ReasonUnavailable { // a minute later
				call.Now = out.WakeAt
				out = w.end(Deleter{}, &call)
			}
			if got := said(out); got != c.want {
				t.Errorf("%s", got)
			}
			if _, there := w.objects["Deployment/orders"]; there != c.stays {
				t.Errorf("it is there: %v", there)
			}
			w.wrote(c.writes)
		})
	}
}

func TestWait(t *testing.T) {
	ready := `{status: {observedGeneration: 2, conditions: [{type: Available, status: "True", message: all is well}]}, metadata: {generation: 2}}`
	for _, c := range []struct {
		name  string
		p     plan.WaitProperties
		edit  string
		gone  bool
		dry   bool
		may   bool
		want  string
		watch bool
	}{
		{name: "a condition that is True", p: plan.WaitProperties{Condition: "Available"}, edit: ready, may: true, want: "done: Deployment/orders: condition Available is True: all is well"},
		{name: "a condition that is not there", p: plan.WaitProperties{Condition: "Available"}, may: true, want: "not yet Waiting: Deployment/orders: condition Available is not there yet", watch: true},
		{name: "a condition of an older generation", p: plan.WaitProperties{Condition: "Available"}, edit: `{status: {observedGeneration: 1, conditions: [{type: Available, status: "True"}]}, metadata: {generation: 2}}`, may: true, want: "not yet Waiting: Deployment/orders: condition Available speaks of generation 1, the object is at 2", watch: true},
		{name: "an expression that holds", p: plan.WaitProperties{Until: "object.spec.replicas == 3"}, may: true, want: "done: Deployment/orders: object.spec.replicas == 3 holds"},
		{name: "an expression that does not", p: plan.WaitProperties{Until: "object.spec.replicas == 4"}, may: true, want: "not yet Waiting: Deployment/orders: object.spec.replicas == 4 does not hold yet", watch: true},
		{name: "an object that is not there", p: plan.WaitProperties{Condition: "Available"}, gone: true, may: true, want: "not yet Waiting: Deployment/orders is not there yet", watch: true},
		{name: "a dry run looks once", p: plan.WaitProperties{Condition: "Available"}, dry: true, may: true, want: "done: dry run: not waited for: Deployment/orders: condition Available is not there yet"},
		{name: "who may not watch cannot wait", p: plan.WaitProperties{Condition: "Available"}, want: "refused Forbidden: serviceaccount shop/maint-runner may not list deployments.apps \"orders\" in namespace shop: grant list on deployments.apps to it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, orders)
			if c.edit != "" {
				w.edit("Deployment/orders", c.edit)
			}
			if c.gone {
				delete(w.objects, "Deployment/orders")
			}
			w.may = c.may
			c.p.Resource = ref("Deployment")
			call := w.step(&c.p)
			call.DryRun = c.dry
			out := Waiter{}.Pass(t.Context(), call)
			if got := said(out); got != c.want {
				t.Errorf("%s", got)
			}
			var want *executors.Watch
			if c.watch {
				want = &executors.Watch{Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Namespace: "shop", Name: "orders"}
			}
			if diff := cmp.Diff(want, out.Watch); diff != "" {
				t.Errorf("watches (-want +got):\n%s", diff)
			}
		})
	}
}
