package executors_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/conformance"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func eventuallyDone(t *testing.T, what string, done func() bool) {
	t.Helper()
	eventually(t, what, func(context.Context) (bool, error) { return done(), nil })
}

func TestDeleteConforms(t *testing.T) {
	h := newHouse(t)
	for name, finalizers := range map[string]string{"of what goes at once": "[]", "of what a finalizer holds": "[example.org/hold]"} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, conformance.Case{
				Executor: executor(t, "delete-object"), Rights: rights("", "configmaps", "get", "list", "watch", "delete"), Deletes: true,
				New: func(t *testing.T) conformance.Backend {
					cm := h.thing(t, configMapsGVR(), `{apiVersion: v1, kind: ConfigMap, metadata: {finalizers: `+finalizers+`}}`)
					release := cm.merge(`{metadata: {finalizers: null}}`)
					w := conformance.Backend{
						Call:    h.call(properties[plan.DeleteProperties](t, fmt.Sprintf(`{resource: %s}`, yamlOf(t, cm.ref)))),
						Connect: h.connect, State: cm.stateOrAbsence("kind"),
						Remove: func(t *testing.T) { release(t); cm.remove(t) },
					}
					if finalizers != "[]" {
						w.Settle = func(t *testing.T, _ *executors.Call) { release(t) }
					}
					return w
				},
			})
		})
	}
}

func deleteRights() []conformance.Right {
	return rights("", "configmaps", "get", "list", "watch", "delete")
}

func TestAnObjectThatIsCreatedAnewIsNotDeleted(t *testing.T) {
	h := newHouse(t)
	cm := h.thing(t, configMapsGVR(), `{apiVersion: v1, kind: ConfigMap}`)
	call := h.as(t, h.call(&plan.DeleteProperties{Resource: cm.ref}), deleteRights())
	out := executor(t, "delete-object").Pass(t.Context(), call)
	if out.State != executors.Record {
		t.Fatalf("%+v, want its uid recorded", out)
	}
	call.Recorded.Before = out.Before
	cm.remove(t)
	anew := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+cm.name+`}}`)
	if _, err := cm.in.Create(t.Context(), anew, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	out = pass(t, "delete-object", &call)
	if out.State != executors.Done || !strings.Contains(out.Message, "another one of that name") {
		t.Errorf("%+v", out)
	}
	cm.read(t)
}

func TestADeletionWaitsForFinalizers(t *testing.T) {
	h := newHouse(t)
	cm := h.thing(t, configMapsGVR(), `{apiVersion: v1, kind: ConfigMap, metadata: {finalizers: [example.org/hold]}}`)
	call := h.as(t, h.call(&plan.DeleteProperties{Resource: cm.ref}), deleteRights())
	out := pass(t, "delete-object", &call)
	for out.Reason == "Deleting" {
		out = pass(t, "delete-object", &call)
	}
	want := executors.Watch{Resource: configMapsGVR(), Namespace: h.ns, Name: cm.name}
	if out.State != executors.NotYet || out.Watch == nil || *out.Watch != want || !strings.Contains(out.Message, "example.org/hold") {
		t.Errorf("%+v, want a watch on %+v", out, want)
	}
	cm.merge(`{metadata: {finalizers: null}}`)(t)
	if out := pass(t, "delete-object", &call); out.State != executors.Done || len(out.Changed) != 1 {
		t.Errorf("%+v", out)
	}
}

func TestPreconditionsOfADeletion(t *testing.T) {
	h := newHouse(t)
	cm := h.thing(t, configMapsGVR(), `{apiVersion: v1, kind: ConfigMap}`)
	old := cm.read(t).GetResourceVersion()
	cm.merge(`{data: {a: b}}`)(t)
	with := func(p plan.DeletePreconditions) executors.Call {
		return h.as(t, h.call(&plan.DeleteProperties{Resource: cm.ref, Preconditions: &p}), deleteRights())
	}
	other, older, right := with(plan.DeletePreconditions{UID: "another"}), with(plan.DeletePreconditions{ResourceVersion: old}), with(plan.DeletePreconditions{UID: string(cm.read(t).GetUID()), ResourceVersion: cm.read(t).GetResourceVersion()})
	refused(t, pass(t, "delete-object", &other), true, executors.ReasonReplaced, "preconditions.uid", "another")
	refused(t, pass(t, "delete-object", &older), true, executors.ReasonChangedMeanwhile, "preconditions.resourceVersion", old)
	out := pass(t, "delete-object", &right)
	for out.State == executors.NotYet {
		out = pass(t, "delete-object", &right)
	}
	if out.State != executors.Done || cm.stateOrAbsence()(t) != "absent" {
		t.Errorf("%+v", out)
	}
}

func TestHowADeletionPropagates(t *testing.T) {
	h := newHouse(t)
	for policy, wantChild := range map[string]bool{"": false, "Foreground": false, "Orphan": true} {
		t.Run("policy "+policy, func(t *testing.T) {
			parent := h.thing(t, configMapsGVR(), `{apiVersion: v1, kind: ConfigMap}`)
			child := h.thing(t, configMapsGVR(), fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: %s, uid: %s, blockOwnerDeletion: true}]}}`, parent.name, parent.read(t).GetUID()))
			call := h.as(t, h.call(&plan.DeleteProperties{Resource: parent.ref, PropagationPolicy: policy}), deleteRights())
			eventuallyDone(t, "the parent is gone", func() bool { return pass(t, "delete-object", &call).State == executors.Done })
			if wantChild {
				if owners := child.read(t).GetOwnerReferences(); len(owners) > 0 {
					t.Errorf("the child still has %v", owners)
				}
				return
			}
			eventuallyDone(t, "the child is gone", func() bool {
				_, err := child.in.Get(t.Context(), child.name, metav1.GetOptions{})
				return apierrors.IsNotFound(err)
			})
		})
	}
}
