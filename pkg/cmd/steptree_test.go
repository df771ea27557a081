package cmd

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// saturday is when tests play.
func saturday() time.Time { return time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC) }

// before is an instant so long before the tests' now.
func before(d time.Duration) *time.Time {
	at := saturday().Add(-d)
	return &at
}

func after(d time.Duration) *time.Time { return before(-d) }

// aRunOf is a run at work with the records that are given.
func aRunOf(records ...plan.Record) aRun {
	return aRun{
		run:     plan.Run{Name: "maint-run-p-x", Namespace: "shop", Plan: "p"},
		journal: plan.Journal{Phase: plan.RunRunning, StartedAt: before(time.Hour), Steps: records},
	}
}

func record(path, kind string, phase plan.StepPhase, edits ...func(*plan.Record)) plan.Record {
	rec := plan.Record{Path: path, Type: kind, Phase: phase, Attempt: 1}
	if phase != plan.StepPending && phase != plan.StepSkipped {
		rec.StartedAt = before(time.Minute)
	}
	if phase.Ended() && rec.StartedAt != nil {
		rec.FinishedAt = before(time.Minute - 5*time.Second)
	}
	for _, edit := range edits {
		edit(&rec)
	}
	return rec
}

func message(text string) func(*plan.Record) {
	return func(rec *plan.Record) { rec.Message = text }
}

func looping(items ...plan.Item) func(*plan.Record) {
	return func(rec *plan.Record) { rec.Listed, rec.Items = true, items }
}

func offlineView() view { return view{name: "kubectl maint", now: saturday(), zone: "Europe/Berlin"} }

func TestStepsAreShownBelowWhatHoldsThem(t *testing.T) {
	items := []plan.Item{
		{Name: "orders-1", Phase: plan.StepSucceeded},
		{Name: "orders-2", Phase: plan.StepFailed, Message: "its pods crash"},
		{Name: "orders-3", Namespace: "stock", Phase: plan.StepRunning},
		{Name: "orders-4"},
	}
	r := aRunOf(
		record("prepare", plan.TypeGroup, plan.StepSucceeded),
		record("prepare/backup", "job", plan.StepSucceeded, message("Job/x succeeded")),
		record("prepare/notes", "template/notes", plan.StepSkipped),
		record("prepare/notes/call", "webhook", plan.StepSkipped),
		record("quiet", "silence", plan.StepSucceeded, func(rec *plan.Record) { rec.KeepAt = after(5 * time.Minute) }),
		record("roll", plan.TypeForEach, plan.StepRunning, message("takes 4 of kind Deployment"), looping(items...)),
		record("ask", plan.TypeApproval, plan.StepPending),
		record("finally/tell", "webhook", plan.StepPending),
		record("roll/stock:orders-3/restart", "restart", plan.StepRunning, message("1 of 2 pods are new")),
		record("roll/orders-1/label", "label", plan.StepSucceeded, func(rec *plan.Record) { rec.Restored = plan.RestoreDone }),
	)
	want := `✓ prepare       step-group      Succeeded      5s
  ✓ backup      job             Succeeded      5s  Job/x succeeded
  - notes       template/notes  Skipped
    - call      webhook         Skipped
✓ quiet         silence         Succeeded      5s  kept until the run ends, renewed at 01:05 CET
▶ roll          for-each        Running       60s  1 of 4 done, 1 failed
  ▶ stock:orders-3
    ▶ restart   restart         Running       60s  1 of 2 pods are new
  ✗ orders-2: its pods crash
· ask           approval        Pending
· finally/tell  webhook         Pending`
	if diff := cmp.Diff(want, strings.Join(offlineView().stepLines(r), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOfManyItemsTenAreNamed(t *testing.T) {
	var items []plan.Item
	for i := range 30 {
		item := plan.Item{Name: fmt.Sprintf("n-%02d", i), Phase: plan.StepSucceeded}
		if i%2 == 1 {
			item.Phase, item.Message = plan.StepFailed, "no"
		}
		items = append(items, item)
	}
	lines := offlineView().stepLines(aRunOf(record("roll", plan.TypeForEach, plan.StepFailed, message("15 of 30 failed"), looping(items...))))
	if len(lines) != 12 || lines[0] != "✗ roll  for-each  Failed         5s  15 of 30 failed" || lines[10] != "  ✗ n-19: no" || lines[11] != "  … and 5 more" {
		t.Errorf("%d lines\n%s", len(lines), strings.Join(lines, "\n"))
	}
}

func TestABatchThatIsThroughSaysWhatItWaitsFor(t *testing.T) {
	rec := record("roll", plan.TypeForEach, plan.StepRunning, message("Deployment/a: until is false"), looping(plan.Item{Name: "a", Phase: plan.StepSucceeded}, plan.Item{Name: "b"}))
	if got := loopCount(rec); got != "1 of 2 done: Deployment/a: until is false" {
		t.Error(got)
	}
}

func TestApprovalsSayWhoAndHow(t *testing.T) {
	jane := plan.Actor{Name: "jane", Reason: "CHG-1"}
	answered := func(approved bool) func(*plan.Record) {
		return func(rec *plan.Record) { rec.Approval = &plan.Approval{Approved: approved, Actor: jane} }
	}
	for _, c := range []struct {
		name, want string
		rec        plan.Record
	}{
		{"just begun", "waits for 'kubectl maint approve maint-run-p-x/ask'", record("ask", plan.TypeApproval, plan.StepRunning)},
		{"asking", "waits for approval until 2026-11-21T01:00:00Z: switch? (kubectl maint approve maint-run-p-x/ask)", record("ask", plan.TypeApproval, plan.StepRunning, func(rec *plan.Record) { rec.ResumeAt = after(time.Hour) }, message("waits for approval until 2026-11-21T01:00:00Z: switch? (kubectl maint approve maint-run-p-x/ask)"))},
		{"approved, and not noted yet", "approved by jane (unverified): CHG-1", record("ask", plan.TypeApproval, plan.StepRunning, message("waits"), answered(true))},
		{"rejected, and not noted yet", "rejected by jane (unverified): CHG-1", record("ask", plan.TypeApproval, plan.StepRunning, message("waits"), answered(false))},
		{"approved", "approved by jane (unverified): CHG-1", record("ask", plan.TypeApproval, plan.StepSucceeded, message(jane.Said("approved")), answered(true))},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := offlineView().stepDetail(aRunOf(c.rec), c.rec); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestTheHeadOfARun(t *testing.T) {
	pending := func(waiting, text string) func(*aRun) {
		return func(r *aRun) {
			r.journal.Phase, r.journal.StartedAt, r.journal.Waiting, r.journal.Message = plan.RunPending, nil, waiting, text
		}
	}
	for _, c := range []struct {
		name, want string
		edit       func(*aRun)
	}{
		{"at work", "Running for 60m0s, 1 of 2 steps done", func(*aRun) {}},
		{"waits for approval", "Pending, waits for approval until 2026-11-22T00:00:00Z (kubectl maint approve maint-run-p-x)", pending(plan.WaitApproval, "waits for approval until 2026-11-22T00:00:00Z (kubectl maint approve maint-run-p-x)")},
		{"waits for its jitter", "Pending, waits for jitter: starts at 2026-11-21T01:00:00Z", pending(plan.WaitJitter, "starts at 2026-11-21T01:00:00Z")},
		{"to be tried again", "Running for 60m0s, 1 of 2 steps done: retry 1 of 3 at 01:02 CET: step b failed: no", func(r *aRun) {
			r.run.Spec.RetryLimit, r.journal.Retries, r.journal.RetryAt, r.journal.Message = 3, 1, after(2*time.Minute), "retry 1 of 3: step b failed: no"
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := aRunOf(record("a", "webhook", plan.StepSucceeded), record("b", "webhook", plan.StepPending))
			c.edit(&r)
			if got := offlineView().runHead(r); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
