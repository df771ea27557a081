package report_test

import (
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

const sleepsAtNight = "apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec:\n  schedule: {offHours: [{start: '20:00', end: '06:00'}]}\n  targets: [{name: apps, type: workload}]\n"

// nightly is the HibernatePlan orders.
func nightly() *corev1.ConfigMap {
	cm := annotations.NewHibernatePlan("shop", "orders", sleepsAtNight, "")
	cm.UID = "u-orders"
	return cm
}

func restored(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	spec := hibernate.Spec{Schedule: hibernate.Schedule{OffHours: []schedule.OffHours{{Start: "20:00", End: "06:00"}}}, Targets: []hibernate.Target{{Name: "apps", Type: "workload"}}}
	cm, err := annotations.RestoreObject("shop", hibernate.Record{
		Plan: "orders", Cycle: "c", Target: "apps", Executor: "workload", Operation: hibernate.Shutdown, State: hibernate.Asleep,
		Snapshot:  hibernate.Snapshot{Spec: spec, BeganAt: *cmdtest.Before(4 * time.Hour)},
		Resources: []hibernate.Resource{{ID: "deployments.apps/shop/web", Kind: "Deployment", Before: []byte(`{"replicas":2}`), AsleepAt: cmdtest.Before(4 * time.Hour), Units: map[string]float64{"cpu": 2}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return cm
}

// examplePrices are those of examples/, which the page on operations shows as well.
func examplePrices(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	text, err := os.ReadFile("../../../examples/prices.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{}
	if err := yaml.UnmarshalStrict(text, cm); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, data, _ := strings.Cut(string(text), "\ndata:\n"); data == "" || !strings.Contains(string(page), "\ndata:\n"+data+"```\n") {
		t.Error("docs/operations.md shows other prices than examples/prices.yaml")
	}
	cm.Namespace, cm.UID, cm.ResourceVersion = "shop", "u-prices", "1"
	return cm
}

// What is slept of each kind that the example names has its price.
func TestSavingsByThePricesOfTheExample(t *testing.T) {
	slept := func(executor, kind string, unitHours map[string]float64) ledger.Slept {
		return ledger.Slept{Target: executor, Executor: executor, Kind: kind, Resources: 1, Hours: 10, UnitHours: unitHours}
	}
	night := cmdtest.Ledger(ledger.Ledger{Recent: []ledger.Entry{{
		Kind: run.BySchedule, Result: run.Ran, Slot: cmdtest.Before(28 * time.Hour), StartedAt: cmdtest.Before(28 * time.Hour), EndedAt: cmdtest.Before(18 * time.Hour), At: *cmdtest.Before(28 * time.Hour),
		Slept: []ledger.Slept{
			slept("asg", "group", map[string]float64{"m5.large": 30}), slept("ec2", "instance", map[string]float64{"m5.large": 10, "t3.medium": 10}), slept("eks", "nodegroup", map[string]float64{"m5.large": 20, "nodes": 10}),
			slept("rds", "db", map[string]float64{"db.t3.medium": 100}), slept("workload", "Deployment", map[string]float64{"cpu": 100, "memoryGiB": 1000}),
		},
	}}})
	runRows(t, []row{{
		name: "all", line: "savings -o 'jsonpath={range .items[*]}{.executor} {.saved} {.currency} {.unpriced}{\"\\n\"}{end}'", world: objects(nightly(), night, examplePrices(t)),
		out: "asg 3 USD \nec2 1.5 USD \neks 3 USD \nrds 8 USD \nworkload 7 USD \n",
	}})
}

func TestSavings(t *testing.T) {
	slept := cmdtest.Ledger(ledger.Ledger{Recent: []ledger.Entry{
		{
			Kind: run.BySchedule, Result: run.Ran, Slot: cmdtest.Before(28 * time.Hour), StartedAt: cmdtest.Before(28 * time.Hour), EndedAt: cmdtest.Before(18 * time.Hour), At: *cmdtest.Before(28 * time.Hour),
			Slept: []ledger.Slept{{Target: "apps", Executor: "workload", Kind: "Deployment", Resources: 3, Hours: 30, UnitHours: map[string]float64{"cpu": 60, "gpu": 1}}},
		},
	}})
	prices := cmdtest.Map(annotations.KindPrices, "prices", annotations.DataPrices, "currency: USD\nhourly: {workload: {cpu: 0.5}}\n")
	rescued := restored(t)
	rescued.Name = "maint-restore-orders-copy"
	delete(rescued.Labels, annotations.LabelPlan)
	wrong := cmdtest.Map(annotations.KindPrices, "prices", annotations.DataPrices, "currency: USD\nhourly: {workload: {cpu: -1}}\n")
	labelled, elsewhere := nightly(), restored(t)
	labelled.Labels["team"], elsewhere.Namespace = "a", "ops"
	const hint = "some hours have no price: a ConfigMap with the label maint.dev/kind: prices says what an hour costs, in the plan's namespace or the agent's (docs/operations.md, \"Prices\")\n"
	header := "PLAN     TARGET   KIND         RESOURCES   SLEEPS   HOURS   SAVED\n"
	runRows(t, []row{
		{
			name: "what slept, and sleeps", line: "savings", world: objects(nightly(), slept, restored(t), prices),
			out: header + "orders   apps     Deployment   3           2        34.0    34.00 USD\n",
			err: "34.0 hours, 34.00 USD from Thu 2026-10-22 02:00 CEST (2026-10-22T00:00:00Z) to Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z)\n",
		},
		{
			name: "in a range, half of a sleep", line: "savings --from 2026-11-20T01:00:00Z --to 2026-11-20T20:00:00Z -o 'jsonpath={.kind} {.items[0].kind} {.items[0].hours} {.items[0].saved} {.items[0].unpriced[0]}'", world: objects(nightly(), slept, restored(t), prices), err: "from Fri 2026-11-20 02:00 CET (2026-11-20T01:00:00Z) to Fri 2026-11-20 21:00 CET (2026-11-20T20:00:00Z)\n",
			out: "SavingsList Deployment 15 15 gpu",
		},
		{
			name: "without prices", line: "savings --no-headers", world: objects(nightly(), slept), out: "orders   apps   Deployment   3     1     30.0   <none>\n",
			err: "30.0 hours from Thu 2026-10-22 02:00 CEST (2026-10-22T00:00:00Z) to Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z)\n" + hint,
		},
		{name: "of plans with labels that none has", line: "savings -l team=a -o jsonpath={.items}", world: objects(nightly(), slept, restored(t)), out: "[]"},
		{name: "nothing sleeps by a copy out of a deleted namespace", line: "savings --no-headers", world: objects(nightly(), rescued), err: "warning: shop/maint-restore-orders-copy is not counted: its namespace was deleted while this slept: nothing wakes from this copy, and it can be deleted when nobody needs it\nNo resources found in shop namespace.\nnothing slept from Thu 2026-10-22 02:00 CEST (2026-10-22T00:00:00Z) to Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z)\n"},
		{name: "of plans with labels, and not what a plan of that name has elsewhere", line: "savings -A -l team=a -o 'jsonpath={.items[*].namespace} {.items[*].hours}'", world: objects(labelled, restored(t), elsewhere), out: "shop 4"},
		{name: "nothing slept", line: "savings --last 1h", world: objects(nightly(), slept), err: "No resources found in shop namespace.\nnothing slept from Sat 2026-11-21 00:00 CET (2026-11-20T23:00:00Z) to Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z)\n"},
		{
			name: "prices that nobody can read", line: "savings", world: objects(nightly(), slept, wrong), out: "PLAN     TARGET   KIND         RESOURCES   SLEEPS   HOURS   SAVED\norders   apps     Deployment   3           1        30.0    <none>\n",
			err: "warning: prices shop/prices: line 2: hourly.workload.cpu: must be zero or more, is -1; they do not count\n30.0 hours from Thu 2026-10-22 02:00 CEST (2026-10-22T00:00:00Z) to Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z)\n" + hint,
		},
		{name: "a range that is none", line: "savings --from 2026-11-21T01:00:00Z", world: objects(nightly()), code: 2, err: "error: --from Sat 2026-11-21 02:00 CET (2026-11-21T01:00:00Z) is not before now\n"},
		{name: "as a table", line: "savings -o table --no-headers", world: objects(nightly(), slept), out: "orders   apps   Deployment   3     1     30.0   <none>\n", err: "30.0 hours from Thu 2026-10-22 02:00 CEST (2026-10-22T00:00:00Z) to Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z)\n" + hint},
		{name: "the plans by name, each once", line: "savings -o name", world: objects(nightly(), slept, restored(t), prices), out: "configmap/orders\n"},
	})
	page := cmdtest.NewCluster(t, cmd.Run, objects(cmdtest.Agent(), cmdtest.Namespace("maint-system"), nightly(), slept, prices)...).Maint("savings", "-o", "html")
	for _, want := range []string{"<h1>What sleep saved</h1>", "30.0 hours, 30.00 USD", "shop/orders", "no price of gpu", "<rect"} {
		if page.Code != 0 || !strings.Contains(page.Out, want) {
			t.Errorf("exit %d, the page lacks %q:\n%s", page.Code, want, page.Out)
		}
	}
}
