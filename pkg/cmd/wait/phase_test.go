package wait

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

func TestWhatHasNoPhaseYetSaysSo(t *testing.T) {
	o := &options{Factory: factory.New(factory.Env{Zone: "UTC", Now: time.Now}), value: "Hibernated"}
	for got, want := range map[string]string{"": "no phase yet: m", "Active": "phase Active: m"} {
		if so, stands, err := o.reached(annotations.KindHibernatePlan, "office", got, "m"); so || stands != want || err != nil {
			t.Errorf("%q stands as %q: %v", got, stands, err)
		}
	}
}
