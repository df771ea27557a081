package factory_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// A ledger that cannot be read is not one without entries, and one that the agent cannot have written
// is not its record.
func TestWhatIsWrongWithALedgerIsKnownOfItsPlan(t *testing.T) {
	const name = "shop/maint-ledger-orders-"
	head := func() *corev1.ConfigMap {
		return cmdtest.Ledger(ledger.Ledger{Recent: []ledger.Entry{{Run: "new", Result: run.Ran}}})
	}
	archive := func() *corev1.ConfigMap {
		cm, err := annotations.ArchiveObject("shop", "orders", "u-orders", []ledger.Entry{{Run: "old", Result: run.Ran}})
		if err != nil {
			t.Fatal(err)
		}
		return cmdtest.Signed(cm)
	}
	with := func(cm *corev1.ConfigMap, edit func(*corev1.ConfigMap)) *corev1.ConfigMap {
		edit(cm)
		return cm
	}
	newer := func(cm *corev1.ConfigMap) { cm.Data[annotations.DataFormat] = "2" }
	another := func(cm *corev1.ConfigMap) {
		cm.Data[annotations.DataLedger] = strings.ReplaceAll(cm.Data[annotations.DataLedger], "u-orders", "u-else")
	}
	for _, c := range []struct {
		name    string
		objects []runtime.Object
		want    string // the runs that are known, and what is wrong
	}{
		{"none yet", nil, " []"},
		{"both are right", []runtime.Object{head(), archive()}, " [old new]"},
		{"cut short", []runtime.Object{cmdtest.CutShort(head())}, "cannot be read: read ledger " + name + "…: unexpected end of JSON input; what ran of it is not known here []"},
		{"of a newer version", []runtime.Object{with(head(), newer)}, "cannot be read: " + name + "… was written by a newer version: its format is \"2\", and this version reads up to 1; it is left alone; what ran of it is not known here []"},
		{"of another plan by its content", []runtime.Object{with(head(), another)}, "cannot be read: " + name + "… is not ours: it belongs to a plan of uid \"u-else\"; delete or rename it; what ran of it is not known here []"},
		{"its archive is cut short", []runtime.Object{head(), cmdtest.CutShort(archive())}, "cannot be read in full: read ledger " + name + "…: unexpected end of JSON input; what ran of it earlier is not known here [new]"},
		{"without a signature", []runtime.Object{cmdtest.Unsigned(head())}, "is not known to be the agent's record: it carries no signature of the agent's [new]"},
		{"changed since", []runtime.Object{with(head(), func(cm *corev1.ConfigMap) { cm.Data["more"] = "x" })}, "is not known to be the agent's record: it was changed after the agent had signed it [new]"},
		{"of a plan that is gone", []runtime.Object{cmdtest.CutShort(cmdtest.LedgerOf("gone", ledger.Ledger{}))}, " []"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, k := clusterOf(t, c.objects...)
			all, err := k.Ledgers(t.Context(), "shop")
			if err != nil {
				t.Fatal(err)
			}
			kept := all.Of(t.Context(), cmdtest.Plan("orders", ""))
			runs := []string{}
			for _, e := range kept.Closed {
				runs = append(runs, e.Run)
			}
			fault := kept.Fault()
			for _, object := range []string{annotations.LedgerName("orders", "u-orders"), annotations.ArchiveName("orders", "u-orders")} {
				fault = strings.ReplaceAll(fault, "shop/"+object, name+"…")
			}
			if got := fmt.Sprintf("%s %v", fault, runs); got != c.want {
				t.Errorf("%s\nnot %s", got, c.want)
			}
			if _, err := k.Ledger(t.Context(), cmdtest.Plan("orders", "")); cmdtest.ErrText(err) != cmdtest.ErrText(kept.Unread) {
				t.Errorf("alone: %v, among all: %v", err, kept.Unread)
			}
		})
	}
}

// Where a ledger cannot be read, it is not said that there was no such run.
func TestARunThatAnUnreadLedgerMayKnowIsNotDenied(t *testing.T) {
	torn := cmdtest.CutShort(cmdtest.Ledger(ledger.Ledger{Recent: []ledger.Entry{{Run: "maint-run-orders-a", Result: run.Ran}}}))
	_, k := clusterOf(t, cmdtest.Plan("orders", ""), torn)
	_, err := k.Document(t.Context(), "maint-run-orders-a", annotations.KindRun)
	if text := cmdtest.ErrText(err); !strings.Contains(text, "; ledgers that may know it cannot be read, of plan orders") {
		t.Error(text)
	}
	if _, err := k.LeftBy(t.Context(), "maint-run-orders-a"); !strings.HasPrefix(cmdtest.ErrText(err), "look for run maint-run-orders-a in the plans' ledgers: read ledger shop/") {
		t.Error(err)
	}
}
