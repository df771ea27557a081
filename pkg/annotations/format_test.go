package annotations_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

// What a newer version writes otherwise is refused, and not read for half: the next write
// would lose the rest.
func TestANewerFormatIsRefused(t *testing.T) {
	readers := map[string]func(*corev1.ConfigMap) error{
		annotations.KindRun: func(cm *corev1.ConfigMap) error {
			_, _, err := annotations.ReadRun(cm)
			return err
		},
		annotations.KindLedger: func(cm *corev1.ConfigMap) error {
			_, err := annotations.ReadLedger(cm, "u-1")
			return err
		},
		annotations.KindRestore: func(cm *corev1.ConfigMap) error {
			_, err := annotations.ReadRestore(cm)
			return err
		},
		annotations.KindGate: func(cm *corev1.ConfigMap) error {
			_, err := annotations.ReadGates(cm)
			return err
		},
	}
	for kind, cm := range ofTheAgent(t) {
		for text, newer := range map[string]bool{"": true, "0": true, "1": false, "2": true, "1.1": true} {
			changed := cm.DeepCopy()
			changed.Data[annotations.DataFormat] = text
			if err := readers[kind](changed); errors.Is(err, annotations.ErrNewer) != newer {
				t.Errorf("a %s of format %q: %v", kind, text, err)
			}
		}
		if err := readers[kind](cm); err != nil {
			t.Errorf("a %s as this version writes it: %v", kind, err)
		}
	}
}

// A run is read by its journal alone where the rest is known already.
func TestANewerFormatOfARunThatIsKnownIsRefused(t *testing.T) {
	cm := ofTheAgent(t)[annotations.KindRun]
	r, _, err := annotations.ReadRun(cm)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := annotations.WithRun(cm, r); err != nil {
		t.Errorf("as this version writes it: %v", err)
	}
	cm.Data[annotations.DataFormat] = "2"
	if got, _, err := annotations.WithRun(cm, r); !errors.Is(err, annotations.ErrNewer) || got.Name != "" {
		t.Errorf("of format 2: %q, %v", got.Name, err)
	}
}

// ofTheAgent is one object of each kind as this version writes it.
func ofTheAgent(t *testing.T) map[string]*corev1.ConfigMap {
	t.Helper()
	r, j := newRun()
	ran, err := annotations.RunObject(r, j)
	if err != nil {
		t.Fatal(err)
	}
	led, err := annotations.LedgerObject("shop", "orders", ledger.Ledger{PlanUID: "u-1"})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := annotations.GateObject("shop", policy.GateRecord{Policy: "hours"})
	if err != nil {
		t.Fatal(err)
	}
	restore := restoreObject(t, restored(func(*hibernate.Record) {}))
	return map[string]*corev1.ConfigMap{annotations.KindRun: ran, annotations.KindLedger: led, annotations.KindRestore: restore, annotations.KindGate: gate}
}
