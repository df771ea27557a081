package trigger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/pkg/watchrule"
)

// changed is an object of the rule "pods" that has changed.
func changed(uid string, edits ...func(*watchrule.Observed)) edit {
	o := watchrule.Observed{Rule: "pods", Kind: "Pod", Namespace: "shop", Name: uid, UID: uid, Event: plan.EventUpdate, Checkpoint: ledger.Checkpoint{Digest: "new", Ordinal: 2}}
	for _, e := range edits {
		e(&o)
	}
	return func(f *trigger.Facts) { f.Watched = append(f.Watched, o) }
}

// asks is the request of a change of an object.
func asks(rule, uid string) run.Request {
	return run.Request{Kind: run.ByWatch, Rule: rule, UID: uid, Ordinal: 1, At: coretest.Clock("00:30")}
}

func TestChangesOfWatchedObjects(t *testing.T) {
	allow := policy(plan.Allow)
	has := func(phase run.Phase, r run.Request) edit {
		return live(trigger.ActiveRun{Name: "old", Phase: phase, Request: r})
	}
	// claimed is a claim whose run is not there yet.
	claimed := func(r run.Request) edit {
		return func(f *trigger.Facts) { *f.State.Ledger = f.State.Ledger.Claim("old", r, "") }
	}
	tooMany := func(o *watchrule.Observed) {
		o.Checkpoint.Earned = coretest.Clock("01:00").Add(ledger.WatchBurst * ledger.WatchPeriod).Unix()
	}
	for name, c := range map[string]struct {
		f    trigger.Facts
		want []string
		why  string // it waits
	}{
		"one":                              {f: coretest.Facts("01:00", changed("a")), want: []string{"a"}},
		"two, one after the other":         {f: coretest.Facts("01:00", changed("a"), changed("b")), want: []string{"a"}, why: "the change of Pod/b waits"},
		"two, side by side":                {f: coretest.Facts("01:00", allow, changed("a"), changed("b")), want: []string{"a", "b"}},
		"its earlier change is claimed":    {f: coretest.Facts("01:00", allow, claimed(asks("pods", "a")), changed("a"), changed("b")), want: []string{"b"}},
		"its earlier run has not begun":    {f: coretest.Facts("01:00", allow, has(run.Pending, asks("pods", "a")), changed("a")), want: []string{}},
		"its earlier run has begun":        {f: coretest.Facts("01:00", allow, has(run.Running, asks("pods", "a")), changed("a")), want: []string{"a"}},
		"another object's has not begun":   {f: coretest.Facts("01:00", allow, has(run.Pending, asks("pods", "b")), changed("a")), want: []string{"a"}},
		"another rule's has not begun":     {f: coretest.Facts("01:00", allow, has(run.Pending, asks("nodes", "a")), changed("a")), want: []string{"a"}},
		"a claim that tells of no request": {f: coretest.Facts("01:00", allow, ledgerWith(func(l *ledger.Ledger) { l.Open = append(l.Open, ledger.Entry{Run: "old"}) }), changed("a")), want: []string{"a"}},
		"skipped until":                    {f: coretest.Facts("01:00", allow, coretest.Skip(intent.Skip{Until: coretest.On("02:00")}), changed("a")), want: []string{}, why: "the change of Pod/a waits: skipped"},
		"skipped until before":             {f: coretest.Facts("03:00", allow, coretest.Skip(intent.Skip{Until: coretest.On("02:00")}), changed("a")), want: []string{"a"}},
		"not ready":                        {f: coretest.Facts("01:00", allow, coretest.NotReady("target"), changed("a")), want: []string{}},
		"too many of one object":           {f: coretest.Facts("01:00", allow, changed("a", tooMany), changed("b")), want: []string{"b"}, why: fmt.Sprintf("the change of Pod/a waits until %s: the object changes again and again", coretest.Clock("01:00").Add(ledger.WatchPeriod).Format(time.RFC3339))},
	} {
		t.Run(name, func(t *testing.T) {
			d := trigger.Decide(c.f)
			got := []string{}
			for _, r := range d.Claims {
				got = append(got, r.UID)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if cut := min(len(c.why), len(d.Status.Waiting)); d.Status.Waiting[:cut] != c.why || (c.why == "") != (d.Status.Waiting == "") {
				t.Errorf("it waits: %q, want %q", d.Status.Waiting, c.why)
			}
			lawful(t, c.f, d)
		})
	}
}

func TestWhatAChangeOfAWatchedObjectAsksFor(t *testing.T) {
	gone := func(o *watchrule.Observed) {
		o.APIVersion, o.Event, o.Body = "v1", plan.EventDelete, []byte(`{"kind":"Pod"}`)
	}
	f := coretest.Facts("01:00", changed("a", gone), func(f *trigger.Facts) { f.Plan.Spec.DryRun = true })
	d := trigger.Decide(f)
	want := run.Request{
		Kind: run.ByWatch, Rule: "pods", APIVersion: "v1", ObjectKind: "Pod", Namespace: "shop", Name: "a", UID: "a", Event: plan.EventDelete,
		Ordinal: 2, Body: []byte(`{"kind":"Pod"}`), At: coretest.Clock("01:00"), DryRun: true,
	}
	if diff := cmp.Diff([]run.Request{want}, d.Claims); diff != "" {
		t.Error(diff)
	}
	mark := ledger.Checkpoint{Digest: "new", Ordinal: 2, Earned: f.Now.Add(ledger.WatchPeriod).Unix()}
	noted := ledger.ObjectCheckpoint{Rule: "pods", UID: "a", Gone: true, Checkpoint: mark}
	if diff := cmp.Diff([]ledger.ObjectCheckpoint{noted}, d.Ledger.Seen); diff != "" {
		t.Errorf("the ledger notes: %s", diff)
	}
}

// Two plans, each of which makes an object that the other watches, a new one with each run:
// they slow down to what is earned, and say why.
func TestTwoPlansThatMakeNewObjectsForEachOtherComeToRest(t *testing.T) {
	allow := policy(plan.Allow)
	watches := func(f *trigger.Facts) { f.Plan.Spec.Triggers.Watch = []plan.Watch{{Kind: "Pod"}} }
	now := coretest.Clock("01:00")
	ledgers := [2]*ledger.Ledger{coretest.Facts("01:00").State.Ledger, coretest.Facts("01:00").State.Ledger}
	waits, runs, made := [2][]string{{"0"}, nil}, 0, 0
	said := ""
	minute := func() (began int) {
		for end := now.Add(time.Minute); now.Before(end); now = now.Add(time.Second) {
			for i := range ledgers {
				edits := []edit{allow, watches}
				for _, uid := range waits[i] {
					edits = append(edits, changed(uid))
				}
				f := coretest.Facts("01:00", edits...)
				f.Now, f.State.Ledger = now, ledgers[i]
				d := trigger.Decide(f)
				n := len(d.Ledger.Open)
				d.Ledger.Open = nil // each run ends at once
				ledgers[i] = &d.Ledger
				if n < len(waits[i]) {
					said = d.Status.Message
				}
				waits[i] = waits[i][n:]
				began += n
				for range n {
					made++
					waits[1-i] = append(waits[1-i], fmt.Sprint(made))
				}
			}
		}
		return began
	}
	for range 30 {
		runs += minute()
	}
	if most := 2*ledger.PlanBurst + 2*30*60/int(ledger.PlanPeriod.Seconds()); runs > most || runs < ledger.PlanBurst {
		t.Errorf("%d runs in half an hour, at most %d", runs, most)
	}
	if n := minute(); n > 2*60/int(ledger.PlanPeriod.Seconds()) {
		t.Errorf("%d runs in a minute, and they have been at it for half an hour", n)
	}
	if !strings.Contains(said, "watch what each other makes") {
		t.Errorf("it says %q", said)
	}
}
