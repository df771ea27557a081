package object

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Ledgers and restore data read what a step wrote down, too.
func TestWhatAStepWritesDownIsReadByTheCore(t *testing.T) {
	ref := &plan.ResourceRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	text, err := json.Marshal(record{UID: "u", Object: ref, Changes: []change{{
		Path: fieldPath{{Key: "spec"}, {Item: "web"}}, Before: json.RawMessage("3"), After: json.RawMessage("0"), Made: true,
		Beneath: []beneath{{Run: "r", Step: "s", Before: json.RawMessage("5")}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	want := &run.Written{Object: ref, Changes: []run.WrittenField{{
		Path: []run.WrittenPath{{Key: "spec"}, {Item: "web"}}, Before: json.RawMessage("3"), After: json.RawMessage("0"), Made: true,
		Beneath: []run.WrittenStep{{Run: "r", Step: "s", Before: json.RawMessage("5")}},
	}}}
	if diff := cmp.Diff(want, run.ReadWritten(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := run.ReadWritten(json.RawMessage("no")); got != nil {
		t.Errorf("what cannot be read says %+v", got)
	}
}
