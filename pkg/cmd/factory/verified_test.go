package factory_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// agentSays is an agent's heartbeat with what it says of actors.
func agentSays(namespace, actors string) *corev1.ConfigMap {
	cm := cmdtest.Agent()
	cm.Namespace, cm.Data[annotations.HeartbeatActors] = namespace, actors
	return cm
}

// A run with a signature may be false all the same: no command has the key. Who did what in it
// is known where the agent says that nobody else could have written it.
func TestWhomRecordsNameIsBelievedWhereTheAgentSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		agent []runtime.Object
		want  bool
	}{
		"an agent with the policies":        {[]runtime.Object{agentSays(annotations.DefaultNamespace, annotations.ActorsVerified)}, true},
		"an agent without":                  {[]runtime.Object{agentSays(annotations.DefaultNamespace, annotations.ActorsUnverified)}, false},
		"an agent that does not say":        {[]runtime.Object{cmdtest.Agent()}, false},
		"no agent":                          {nil, false},
		"a heartbeat that a tenant made up": {[]runtime.Object{agentSays("shop", annotations.ActorsVerified)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := cmdtest.RunOf()
			r.Journal.Approved = &intent.Actor{Name: "jane", Verified: true}
			ended := ledger.Entry{Run: "maint-run-orders-b", Result: run.Ran, Outcome: &ledger.Outcome{Overrides: []ledger.Override{{What: ledger.OverrideApproved, Actor: "jane", Verified: true}}}}
			book, plan := cmdtest.Ledger(ledger.Ledger{Recent: []ledger.Entry{ended}}), cmdtest.Plan("orders", "")
			_, k := clusterOf(t, append(c.agent, cmdtest.RunObject(r, "maint-run-orders-a"), book, plan)...)
			runs, err := k.Runs(t.Context(), "shop", "orders")
			if err != nil || len(runs) != 1 {
				t.Fatalf("%d runs, %v", len(runs), err)
			}
			if got := runs[0].Journal.Approved.Said("approved"); strings.Contains(got, "unverified") == c.want {
				t.Errorf("the run says: %s", got)
			}
			kept, err := k.Ledger(t.Context(), plan)
			if err != nil || kept.Head == nil {
				t.Fatal(kept, err)
			}
			if got := kept.Head.Recent[0].Outcome.Overrides[0].Said("approved"); strings.Contains(got, "unverified") == c.want {
				t.Errorf("the ledger says: %s", got)
			}
		})
	}
}

// A ledger that the agent cannot have written names nobody for certain.
func TestAForgedLedgerNamesNobodyForCertain(t *testing.T) {
	ended := ledger.Entry{Run: "maint-run-orders-b", Outcome: &ledger.Outcome{Overrides: []ledger.Override{{What: ledger.OverrideApproved, Actor: "jane", Verified: true}}}}
	book, plan := cmdtest.Ledger(ledger.Ledger{Recent: []ledger.Entry{ended}}), cmdtest.Plan("orders", "")
	delete(book.Annotations, annotations.StatusSignature)
	_, k := clusterOf(t, agentSays(annotations.DefaultNamespace, annotations.ActorsVerified), book, plan)
	kept, err := k.Ledger(t.Context(), plan)
	if err != nil || kept.Head == nil || kept.Doubt == nil || kept.Head.Recent[0].Outcome.Overrides[0].Verified {
		t.Errorf("it says %+v, %v", kept, err)
	}
}
