package executors_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// looks is what somebody changed of what an apply-object step did; nil: nothing.
func looks(t *testing.T, call executors.Call) *run.Drift {
	t.Helper()
	found, watch, err := executor(t, "apply-object").(executors.Drifter).Drift(t.Context(), call)
	if err != nil || watch == nil {
		t.Fatalf("%v, and watches %v", err, watch)
	}
	return found.Drift
}

func TestWhatSomebodyChangedOfAnAppliedObject(t *testing.T) {
	h := newHouse(t)
	th := h.nothing(configMapsGVR())
	p := fmt.Sprintf(`{object: {apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {mode: maintenance, banner: "on"}}, remove: [/data/old]}`, th.name)
	call := h.as(t, h.call(properties[plan.ApplyProperties](t, p)), rights("", "configmaps", "get", "create", "patch"))
	for range 3 {
		if pass(t, "apply-object", &call).State == executors.Done {
			break
		}
	}
	patches := func(patch string) {
		t.Helper()
		if _, err := th.in.Patch(t.Context(), th.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "helm-controller"}); err != nil {
			t.Fatal(err)
		}
	}
	version := th.read(t).GetResourceVersion()
	if d := looks(t, call); d != nil {
		t.Errorf("nobody changed anything, and it says %s", d.Said())
	}
	patches(`{"data":{"theirs":"x"}}`)
	if d := looks(t, call); d != nil {
		t.Errorf("a field beside it is changed, and it says %s", d.Said())
	}
	patches(`{"data":{"mode":"open"}}`)
	if d := looks(t, call); d == nil || !strings.HasPrefix(d.Said(), "helm-controller changed data.mode of ConfigMap/"+th.name+` from "maintenance" to "open" at `) {
		t.Errorf("it says %+v", d)
	}
	patches(`{"data":{"mode":"maintenance","banner":null}}`)
	if d := looks(t, call); d == nil || d.Field != "data.banner" || d.Value != "absent" || d.Manager != "" {
		t.Errorf("it says %+v", d)
	}
	patches(`{"data":{"banner":"on","old":"back"}}`)
	if d := looks(t, call); d == nil || d.Field != "data.old" || d.Manager != "helm-controller" {
		t.Errorf("it says %+v", d)
	}
	if th.read(t).GetResourceVersion() == version {
		t.Error("the test changed nothing")
	}
	th.remove(t)
	if d := looks(t, call); d == nil || !strings.HasPrefix(d.Said(), "somebody deleted ConfigMap/"+th.name) {
		t.Errorf("it says %+v", d)
	}
}

func TestADriftOfASecretIsNotShown(t *testing.T) {
	h := newHouse(t)
	th := h.nothing(schema.GroupVersionResource{Version: "v1", Resource: "secrets"})
	p := fmt.Sprintf(`{object: {apiVersion: v1, kind: Secret, metadata: {name: %s}, data: {token: aHVzaA==}}}`, th.name)
	call := h.as(t, h.call(properties[plan.ApplyProperties](t, p)), rights("", "secrets", "get", "create", "patch"))
	for range 3 {
		if pass(t, "apply-object", &call).State == executors.Done {
			break
		}
	}
	th.merge(`{"data":{"token":"bG91ZA=="}}`)(t)
	d := looks(t, call)
	if d == nil || d.Want != "(hidden)" || d.Value != "(hidden)" {
		t.Errorf("it says %+v", d)
	}
}
