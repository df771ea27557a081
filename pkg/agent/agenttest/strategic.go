package agenttest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// strategically is a strategic merge patch, after which whoever patched a condition owns it.
func (r Request) strategically(was *unstructured.Unstructured, patch map[string]any) (*unstructured.Unstructured, error) {
	typed, err := scheme.Scheme.New(was.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	merged, err := strategicpatch.StrategicMergeMapPatch(was.Object, patch, typed)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: merged}
	list, _, err := unstructured.NestedSlice(patch, "status", "conditions")
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		t, _, err := unstructured.NestedString(c.(map[string]any), "type")
		if err != nil {
			return nil, err
		}
		if err := own(u, r.query["fieldManager"][0], fmt.Sprintf(`k:{"type":%q}`, t)); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// own makes a condition the field of one manager, and of no other.
func own(u *unstructured.Unstructured, manager, condition string) error {
	conditions := map[string]map[string]bool{} // by manager
	for _, m := range u.GetManagedFields() {
		var fields owned
		if err := json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields); err != nil {
			return err
		}
		conditions[m.Manager] = map[string]bool{}
		for key := range fields.Status.Conditions {
			conditions[m.Manager][key] = key != condition
		}
	}
	if conditions[manager] == nil {
		conditions[manager] = map[string]bool{}
	}
	conditions[manager][condition] = true
	var out []metav1.ManagedFieldsEntry
	for _, m := range slices.Sorted(maps.Keys(conditions)) {
		var fields owned
		fields.Status.Conditions = map[string]map[string]struct{}{}
		for key, has := range conditions[m] {
			if has {
				fields.Status.Conditions[key] = map[string]struct{}{"f:status": {}}
			}
		}
		text, err := json.Marshal(fields)
		if err != nil {
			return err
		}
		out = append(out, metav1.ManagedFieldsEntry{Manager: m, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", FieldsV1: metav1.NewFieldsV1(string(text))})
	}
	u.SetManagedFields(out)
	return nil
}

// owned are the conditions that one manager owns.
type owned struct {
	Status struct {
		Conditions map[string]map[string]struct{} `json:"f:conditions"`
	} `json:"f:status"`
}
