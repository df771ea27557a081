//go:build !race

package store

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// fullLedger is a ledger with as many claims as stand at once, each with the parameters of
// its trigger, and as many closed entries as its head keeps.
func fullLedger(parameters int) ledger.Ledger {
	at := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	led := ledger.Ledger{PlanUID: "u", Watermark: at}
	for i := range ledger.MaxOpen {
		r := run.Request{Kind: run.ByToken, Token: fmt.Sprint("token-", i), At: at, Actor: "jane", Parameters: map[string]string{}}
		for n := range parameters {
			r.Parameters[fmt.Sprint("p", n)] = "v"
		}
		led = led.Claim(fmt.Sprint("maint-run-", i), r, "")
	}
	for i := range ledger.MaxRecent {
		led = led.NotRun(fmt.Sprint("maint-run-closed-", i), run.Request{Kind: run.ByToken, Token: fmt.Sprint("closed-", i), At: at}, "Refused", "it has no right", at)
	}
	return led
}

// The ledgers of a tenant's plans take no more memory than so much, however many and
// however full they are.
func TestFullLedgersPushOutNoMoreThanTheirWeight(t *testing.T) {
	for name, c := range map[string]struct{ plans, parameters int }{
		"triggers with as many parameters as they may have": {20, 1_500},
		"triggers without": {600, 0},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, plans := agenttest.New(t), make([]types.NamespacedName, c.plans)
			size := 0
			for i := range plans {
				plans[i] = types.NamespacedName{Namespace: "shop", Name: fmt.Sprint("p", i)}
				cm, err := annotations.LedgerObject("shop", plans[i].Name, fullLedger(c.parameters))
				if err != nil {
					t.Fatal(err)
				}
				size = len(cm.Data[annotations.DataLedger])
				cluster.Put(agenttest.Signed(t, cm))
			}
			conn, _ := cluster.Connect()
			ledgers := NewLedgers(conn.Kube, agenttest.Keys(), func(types.NamespacedName, error) { t.Error("one is forged") })
			before := agenttest.Heap()
			for range 2 { // what was let go is read again
				for _, k := range plans {
					led, err := ledgers.Get(t.Context(), k, "u")
					if err != nil || led == nil || len(led.Open) != ledger.MaxOpen || len(led.Open[0].Request.Parameters) != c.parameters {
						t.Fatalf("%v: %v", k, err)
					}
				}
			}
			grown := agenttest.Heap() - before
			t.Logf("%d ledgers of %d KiB: %d MiB are held", c.plans, size>>10, grown>>20)
			if grown > 48<<20 {
				t.Errorf("%d ledgers take %d MiB", c.plans, grown>>20)
			}
			runtime.KeepAlive(ledgers)
		})
	}
}
