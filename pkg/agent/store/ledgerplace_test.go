package store_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

// A run that somebody wrote into another namespace names the UID of a plan that is not
// theirs: it comes to no ledger but one of its own place.
func TestALedgerIsReachedFromItsOwnPlaceAlone(t *testing.T) {
	ctx := t.Context()
	ledgers := store.NewLedgers(fake.NewClientset(), agenttest.Keys(), func(types.NamespacedName, error) {})
	theirs := types.NamespacedName{Namespace: "shop", Name: "orders"}
	at := time.Date(2026, 12, 5, 2, 0, 0, 0, time.UTC)
	if err := ledgers.Put(ctx, theirs, "uid", nil, ledger.Ledger{PlanUID: "uid", Watermark: at}); err != nil {
		t.Fatal(err)
	}
	for _, other := range []types.NamespacedName{{Namespace: "tenant", Name: "orders"}, {Namespace: "shop", Name: "payments"}} {
		got, err := ledgers.Get(ctx, other, "uid")
		if err != nil || got != nil {
			t.Errorf("%s has the ledger of %s: %+v, %v", other, theirs, got, err)
		}
		err = ledgers.Edit(ctx, other, "uid", func(l ledger.Ledger) ledger.Ledger {
			l.Watermark = at.AddDate(10, 0, 0)
			return l
		})
		if err != nil {
			t.Errorf("%s: %v", other, err)
		}
	}
	got, err := ledgers.Get(ctx, theirs, "uid")
	if err != nil || got == nil || !got.Watermark.Equal(at) {
		t.Errorf("%+v, %v: it is what its own plan wrote", got, err)
	}
}
