package object

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestWhatSomebodyChangedAfterAStep(t *testing.T) {
	eachStep(t, func(w *world, k stepKind, call *executors.Call) {
		drifter := k.executor.(executors.Drifter)
		look := func(want string) executors.Drifted {
			w.Helper()
			found, watch, err := drifter.Drift(w.Context(), *call)
			got := ""
			if found.Drift != nil {
				got = found.Drift.Field
			}
			if err != nil || watch == nil || watch.Name != "orders" || watch.Every == 0 || got != want {
				w.Errorf("it found a change of %q (%v), want %q, and watches %+v", got, err, want, watch)
			}
			return found
		}
		w.pass(k.executor, call)
		w.end(k.executor, call)
		look("")
		w.edit(k.key, `{metadata: {labels: {unrelated: x}}, status: {n: 1}}`)
		look("")

		left := w.objects[k.key].DeepCopy()
		w.edit(k.key, k.meddle)
		changed := touched(w.recordOf(call).Changes)[0].String()
		if d := look(changed).Drift; d != nil && (d.Want == d.Value || d.Manager != "") {
			w.Errorf("it says %s", d.Said())
		}
		meddled := w.objects[k.key].DeepCopy()
		w.objects[k.key] = left
		w.edit(k.key, `{metadata: {uid: another}}`) // created again as the step left it
		look("")
		w.objects[k.key] = meddled
		w.edit(k.key, `{metadata: {uid: another}}`)
		look(changed)
		delete(w.objects, k.key)
		look("")
		w.refuse["get"] = errors.New("connection refused")
		if _, _, err := drifter.Drift(w.Context(), *call); err == nil {
			w.Error("what cannot be read has not changed")
		}
	})
}

// What the plan itself wrote since, in a later step, hides nothing that somebody changed beside it.
func TestWhatSomebodyChangedBesideWhatThePlanWrote(t *testing.T) {
	w := newWorld(t, orders)
	call := w.step(&plan.LabelProperties{Object: new(ref("Deployment")), Operation: "add", Labels: map[string]any{"a.org/a": "1", "a.org/b": "1"}, RestoreAfter: true})
	w.end(Labels(), &call)
	w.editBy(call.Plan.Manager, "Deployment/orders", `{metadata: {labels: {a.org/a: "2"}}}`)
	look := func() *run.Drift {
		found, _, err := Labels().Drift(w.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		return found.Drift
	}
	if d := look(); d != nil {
		t.Errorf("the plan's own write: %s", d.Said())
	}
	plans := w.objects["Deployment/orders"].GetManagedFields()
	w.editBy("kubectl-edit", "Deployment/orders", `{metadata: {labels: {a.org/b: "2"}}}`)
	w.objects["Deployment/orders"].SetManagedFields(append(plans, w.objects["Deployment/orders"].GetManagedFields()...))
	if d := look(); d == nil || d.Field != "metadata.labels[a.org/b]" || d.Manager != "kubectl-edit" {
		t.Errorf("found %+v", d)
	}
}

// What somebody accepted hides no other change of the same step.
func TestWhatSomebodyChangedBesideWhatWasAccepted(t *testing.T) {
	w := newWorld(t, orders)
	call := w.step(&plan.LabelProperties{Object: new(ref("Deployment")), Operation: "add", Labels: map[string]any{"a.org/a": "1", "a.org/b": "1"}, RestoreAfter: true})
	w.end(Labels(), &call)
	w.editBy("helm", "Deployment/orders", `{metadata: {labels: {a.org/a: "2"}}}`)
	look := func() *run.Drift {
		found, _, err := Labels().Drift(w.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		return found.Drift
	}
	first := look()
	if first == nil || first.Field != "metadata.labels[a.org/a]" {
		t.Fatalf("found %+v", first)
	}
	first.Accepted = &intent.Actor{Name: "jane"}
	call.Recorded.Drift = first
	if d := look(); d != nil {
		t.Errorf("the accepted change: %s", d.Said())
	}
	w.editBy("kubectl-edit", "Deployment/orders", `{metadata: {labels: {a.org/b: "2"}}}`)
	if d := look(); d == nil || d.Field != "metadata.labels[a.org/b]" {
		t.Errorf("found %+v", d)
	}
	call.Recorded.Drift = nil
	both := look()
	if both == nil || both.Field != "metadata.labels[a.org/a]" || len(both.Also) != 1 || both.Also[0].Field != "metadata.labels[a.org/b]" {
		t.Fatalf("found %+v", both)
	}
	both.Accepted = &intent.Actor{Name: "jane"}
	call.Recorded.Drift = both
	if d := look(); d != nil {
		t.Errorf("both are accepted: %s", d.Said())
	}
}

func (w *world) recordOf(call *executors.Call) *record {
	w.Helper()
	rec, err := recorded(*call)
	if err != nil || rec == nil {
		w.Fatal("nothing is recorded: ", err)
	}
	return rec
}

func TestWhoWroteAField(t *testing.T) {
	fields := metav1.NewFieldsV1
	at := func(minute int) *metav1.Time {
		return &metav1.Time{Time: time.Date(2026, 1, 1, 2, minute, 0, 0, time.UTC)}
	}
	entries := []metav1.ManagedFieldsEntry{
		{Manager: "helm", Time: at(1), FieldsV1: fields(`{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{}}}}}}}`)},
		{Manager: "hpa", Time: at(3), FieldsV1: fields(`{"f:spec":{"f:replicas":{}}}`)},
		{Manager: "late", Time: at(9), FieldsV1: fields(`{"f:metadata":{"f:labels":{"f:a/b":{}}}}`)},
		{Manager: "broken", Time: at(9), FieldsV1: fields(`[]`)},
		{Manager: "none", Time: at(9)},
		{Manager: "made it", Time: at(5), FieldsV1: fields(`{"f:spec":{}}`)},
		{Manager: "whole", Time: at(5), FieldsV1: fields(`{"f:spec":{"f:selector":{}}}`)},
	}
	image := fieldPath{{Key: "spec"}, {Key: "template"}, {Key: "spec"}, {Key: "containers"}, {Item: "web"}, {Key: "image"}}
	for name, c := range map[string]struct {
		path fieldPath
		want string
	}{
		"the last":              {replicasPath(), "hpa"},
		"of an item of a list":  {image, "helm"},
		"of another item":       {append(image[:4:4], segment{Item: "log"}, segment{Key: "image"}), ""},
		"a label with a domain": {fieldPath{{Key: "metadata"}, {Key: "labels"}, {Key: "a/b"}}, "late"},
		"in an atomic map":      {fieldPath{{Key: "spec"}, {Key: "selector"}, {Key: "app"}}, ""},
		"nobody":                {fieldPath{{Key: "spec"}, {Key: "paused"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := writer(entries, c.path); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
