package annotations_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

func TestAShardReadsBackAndIsItsPlansAlone(t *testing.T) {
	want := ledger.Shard{"rule": {"uid": {Digest: "d", Ordinal: 7, Version: 8, Foreign: 9, Name: "shop/a"}}}
	cm, err := annotations.ShardObject("shop", "orders", "plan-uid", 1, want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := annotations.ReadShard(cm, "plan-uid")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if _, err := annotations.ReadShard(cm, "other"); !errors.Is(err, annotations.ErrForeign) {
		t.Errorf("another plan reads it: %v", err)
	}
	delete(cm.Labels, annotations.LabelKind)
	if _, err := annotations.ReadShard(cm, "plan-uid"); !errors.Is(err, annotations.ErrForeign) {
		t.Errorf("without its label it is read: %v", err)
	}
	names := map[string]bool{annotations.LedgerName("orders", "plan-uid"): true, annotations.ArchiveName("orders", "plan-uid"): true}
	for i := range 20 {
		names[annotations.ShardName("orders", "plan-uid", i)] = true
	}
	if len(names) != 22 {
		t.Error("two parts of a ledger have one name")
	}
}
