package source

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// TestTheCalendarOfAClusterTellsHowThePastEnded, and has nothing before a plan was made.
func TestTheCalendarOfAClusterTellsHowThePastEnded(t *testing.T) {
	at := func(clock string) *time.Time {
		v, err := time.Parse(time.RFC3339, "2026-11-20T"+clock+":00Z")
		if err != nil {
			t.Fatal(err)
		}
		return &v
	}
	made := func(cm *corev1.ConfigMap) { cm.CreationTimestamp.Time = *at("16:30") }
	entries := []ledger.Entry{
		{Slot: at("17:00"), Result: run.Ran, Run: "a", Outcome: &ledger.Outcome{Phase: run.Succeeded, Duration: document.Duration{Duration: 3 * time.Minute}}},
		{Slot: at("18:00"), Result: run.Ran, Run: "b", Outcome: &ledger.Outcome{Phase: run.Failed, Step: "migrate", Message: "exit code 1"}},
		{Slot: at("20:00"), Result: run.Missed, Reason: "deadline", First: at("19:00"), Last: at("20:00"), Count: 2},
		{Slot: at("21:00"), Result: run.Skipped, Reason: "paused"},
	}
	_, k := clusterOf(t, "shop", cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"),
		cmdtest.Plan("orders", "triggers: {schedules: [{cron: '0 * * * *'}]}", made), cmdtest.Plan("unseen", "triggers: {schedules: [{cron: '0 23 * * *'}]}", made),
		cmdtest.Ledger(ledger.Ledger{Watermark: *at("22:30"), Recent: entries, Open: []ledger.Entry{{Slot: at("22:00"), Result: run.Open, Run: "c"}}}),
		cmdtest.Sleeper("nights", "schedule: {timezone: UTC, offHours: [{start: '16:00', end: '18:00'}, {start: '19:00', end: '20:00'}]}", made),
		cmdtest.LedgerOf("nights", ledger.Ledger{Watermark: *at("22:30"), Recent: []ledger.Entry{{Slot: at("19:00"), Result: run.Ran, Slept: []ledger.Slept{{Resources: 2}, {Resources: 1}}}}}))
	w, err := ReadCluster(t.Context(), telling(&bytes.Buffer{}), k, "")
	if err != nil {
		t.Fatal(err)
	}
	a := Agenda{World: w, Now: cmdtest.Now(), From: *at("12:00"), To: cmdtest.Now().Add(90 * time.Minute)}
	if err := a.Gather(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range a.Entries {
		text := line(e)
		if e.Failed {
			text += " !"
		}
		got = append(got, text)
	}
	want := []string{
		"plan shop/orders: slot 11-20 17:00: Succeeded in 3m0s", "plan shop/orders: slot 11-20 18:00: Failed at migrate: exit code 1 !",
		"plan shop/orders: slot 11-20 19:00 idle: Missed: deadline !", "plan shop/orders: slot 11-20 20:00 idle: Missed: deadline !", "plan shop/orders: slot 11-20 21:00 idle: Skipped: paused",
		"plan shop/orders: slot 11-20 22:00: its run is not over: c", "plan shop/orders: slot 11-20 23:00 idle: the agent has not looked at it",
		"plan shop/orders: slot 11-21 00:00", "plan shop/orders: slot 11-21 01:00",
		"plan shop/unseen: slot 11-20 23:00 idle: the agent has not looked at it",
		"hibernate-plan shop/nights: sleep [11-20 16:30, 11-20 18:00)", "hibernate-plan shop/nights: sleep [11-20 19:00, 11-20 20:00): 3 resources slept",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
