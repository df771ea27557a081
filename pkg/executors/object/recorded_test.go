package object

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// An earlier version took other spellings of a kind. A run that it left is put back, and begins no other
// step by them.
func TestWhatAnEarlierVersionChangedByAnotherSpellingIsPutBack(t *testing.T) {
	for _, spelt := range []struct{ apiVersion, kind string }{{"apps/v1", "deployment"}, {"apps/", "Deployment"}, {"apps/__internal", "deployment"}} {
		t.Run(spelt.kind+" of "+spelt.apiVersion, func(t *testing.T) {
			w := newWorld(t, orders)
			properties := &plan.PatchProperties{Resource: ref("Deployment"), RestoreAfter: true, Patch: map[string]any{"spec": map[string]any{"minReadySeconds": int64(9)}}}
			call := w.step(properties)
			is(t, w.end(Patcher{}, &call), executors.Done, "")
			properties.Resource.APIVersion, properties.Resource.Kind = spelt.apiVersion, spelt.kind
			var rec map[string]any
			if err := json.Unmarshal(call.Recorded.Before, &rec); err != nil {
				t.Fatal(err)
			}
			rec["object"].(map[string]any)["kind"] = spelt.kind
			call.Recorded.Before, _ = json.Marshal(rec)
			if so, err := (Patcher{}).IsRestored(t.Context(), call); so || err != nil {
				t.Errorf("before: %t, %v", so, err)
			}
			if out := (Patcher{}).Pass(t.Context(), call); out.State != executors.Failed || !out.Permanent {
				t.Errorf("the step is taken: %s", said(out))
			}
			is(t, Patcher{}.Restore(t.Context(), call), executors.Done, "")
			if got := w.field("Deployment/orders", "spec", "minReadySeconds"); got != "1" {
				t.Errorf("it is %s", got)
			}
			if so, err := (Patcher{}).IsRestored(t.Context(), call); !so || err != nil {
				t.Errorf("afterwards: %t, %v", so, err)
			}
		})
	}
}

func TestWhatAnEarlierVersionRecordedOfASecretIsNotTold(t *testing.T) {
	for _, kind := range []string{"Secret", "secret"} {
		before := `{"uid":"u","object":{"apiVersion":"v1","kind":"` + kind + `","namespace":"shop","name":"db"},"changes":[{"path":[{"key":"data"},{"key":"pw"}],"before":"aGlkZGVu","after":"bmV3"}]}`
		if diff := cmp.Diff("data.pw: (hidden) of "+kind+" shop/db", Patcher{}.Found([]byte(before))); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}
