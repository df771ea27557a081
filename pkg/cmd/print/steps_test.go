package print

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func offlineView() Printer {
	return Printer{Name: "kubectl maint", Now: cmdtest.Now(), Zone: "Europe/Berlin"}
}

func TestStepsAreShownBelowWhatHoldsThem(t *testing.T) {
	items := []run.Item{
		{Name: "orders-1", Phase: run.StepSucceeded},
		{Name: "orders-2", Phase: run.StepFailed, Message: "its pods crash"},
		{Name: "orders-3", Namespace: "stock", Phase: run.StepRunning},
		{Name: "orders-4"},
	}
	r := cmdtest.RunOf(
		cmdtest.Record("prepare", plan.TypeGroup, run.StepSucceeded),
		cmdtest.Record("prepare/backup", "job", run.StepSucceeded, cmdtest.Message("Job/x succeeded")),
		cmdtest.Record("prepare/notes", "template/notes", run.StepSkipped),
		cmdtest.Record("prepare/notes/call", "webhook", run.StepSkipped),
		cmdtest.Record("quiet", "silence", run.StepSucceeded, func(rec *run.Record) { rec.KeepAt = cmdtest.After(5 * time.Minute) }),
		cmdtest.Record("roll", plan.TypeForEach, run.StepRunning, cmdtest.Message("takes 4 of kind Deployment"), cmdtest.Looping(items...)),
		cmdtest.Record("ask", plan.TypeApproval, run.StepPending),
		cmdtest.Record("finally/tell", "webhook", run.StepPending),
		cmdtest.Record("roll/stock:orders-3/restart", "restart", run.StepRunning, cmdtest.Message("1 of 2 pods are new")),
		cmdtest.Record("roll/orders-1/label", "label", run.StepSucceeded, func(rec *run.Record) { rec.Restored = run.RestoreDone }),
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
	if diff := cmp.Diff(want, strings.Join(offlineView().StepLines(r), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStepsSayWhoResumedAndWhy(t *testing.T) {
	jane := intent.Actor{Name: "jane", Reason: "the copy is done"}
	resumed := func(rec *run.Record) {
		rec.Resumed, rec.Message, rec.ResumeAt = &jane, "resumed", cmdtest.After(time.Hour)
	}
	accepted := func(rec *run.Record) {
		rec.Drift = &run.Drift{Object: "Deployment/web", Field: "spec.replicas", Want: "1", Value: "2", Manager: "helm", SeenAt: cmdtest.Now(), Accepted: &jane}
	}
	stands := func(rec *run.Record) { accepted(rec); rec.Drift.Accepted = nil }
	r := cmdtest.RunOf(
		cmdtest.Record("tag", "label", run.StepSucceeded, cmdtest.Message("done"), stands),
		cmdtest.Record("down", "scale", run.StepSucceeded, cmdtest.Message("3 to 1"), accepted),
		cmdtest.Record("hold", "suspend", run.StepSucceeded, resumed), cmdtest.Record("also", "suspend", run.StepRunning, resumed),
		cmdtest.Record("late", "suspend", run.StepFailed, resumed, cmdtest.Message("aborted")),
	)
	want := `✓ tag   label    Succeeded      5s  done: helm changed spec.replicas of Deployment/web from 1 to 2 at Sat 2026-11-21 01:00 CET
✓ down  scale    Succeeded      5s  3 to 1: helm changed spec.replicas of Deployment/web from 1 to 2 at Sat 2026-11-21 01:00 CET, accepted by jane (unverified): the copy is done
✓ hold  suspend  Succeeded      5s  resumed by jane (unverified): the copy is done
▶ also  suspend  Running       60s  resumed by jane (unverified): the copy is done
✗ late  suspend  Failed         5s  aborted`
	if diff := cmp.Diff(want, strings.Join(offlineView().StepLines(r), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOfManyItemsTenAreNamed(t *testing.T) {
	var items []run.Item
	for i := range 30 {
		item := run.Item{Name: fmt.Sprintf("n-%02d", i), Phase: run.StepSucceeded}
		if i%2 == 1 {
			item.Phase, item.Message = run.StepFailed, "no"
		}
		items = append(items, item)
	}
	lines := offlineView().StepLines(cmdtest.RunOf(cmdtest.Record("roll", plan.TypeForEach, run.StepFailed, cmdtest.Message("15 of 30 failed"), cmdtest.Looping(items...))))
	if len(lines) != 12 || lines[0] != "✗ roll  for-each  Failed         5s  15 of 30 failed" || lines[10] != "  ✗ n-19: no" || lines[11] != "  … and 5 more" {
		t.Errorf("%d lines\n%s", len(lines), strings.Join(lines, "\n"))
	}
}

func TestABatchThatIsThroughSaysWhatItWaitsFor(t *testing.T) {
	rec := cmdtest.Record("roll", plan.TypeForEach, run.StepRunning, cmdtest.Message("Deployment/a: until is false"), cmdtest.Looping(run.Item{Name: "a", Phase: run.StepSucceeded}, run.Item{Name: "b"}))
	if got := loopCount(rec); got != "1 of 2 done: Deployment/a: until is false" {
		t.Error(got)
	}
}

func TestApprovalsSayWhoAndHow(t *testing.T) {
	jane := intent.Actor{Name: "jane", Reason: "CHG-1"}
	answered := func(approved bool) func(*run.Record) {
		return func(rec *run.Record) { rec.Approval = &run.Approval{Approved: approved, Actor: jane} }
	}
	for _, c := range []struct {
		name, want string
		rec        run.Record
	}{
		{"just begun", "waits for 'kubectl maint approve maint-run-p-x/ask'", cmdtest.Record("ask", plan.TypeApproval, run.StepRunning)},
		{"asking", "waits for approval until Sat 2026-11-21 02:00 CET: switch? (kubectl maint approve maint-run-p-x/ask)", cmdtest.Record("ask", plan.TypeApproval, run.StepRunning, func(rec *run.Record) { rec.ResumeAt = cmdtest.After(time.Hour) }, cmdtest.Message("waits for approval until 2026-11-21T01:00:00Z: switch? (kubectl maint approve maint-run-p-x/ask)"))},
		{"approved, and not noted yet", "approved by jane (unverified): CHG-1", cmdtest.Record("ask", plan.TypeApproval, run.StepRunning, cmdtest.Message("waits"), answered(true))},
		{"rejected, and not noted yet", "rejected by jane (unverified): CHG-1", cmdtest.Record("ask", plan.TypeApproval, run.StepRunning, cmdtest.Message("waits"), answered(false))},
		{"approved", "approved by jane (unverified): CHG-1", cmdtest.Record("ask", plan.TypeApproval, run.StepSucceeded, cmdtest.Message(jane.Said("approved")), answered(true))},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := offlineView().stepDetail(cmdtest.RunOf(c.rec), c.rec); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestTheHeadOfARun(t *testing.T) {
	pending := func(waiting, text string) func(*view.Run) {
		return func(r *view.Run) {
			r.Journal.Phase, r.Journal.StartedAt, r.Journal.Waiting, r.Journal.Message = run.Pending, nil, waiting, text
		}
	}
	for _, c := range []struct {
		name, want string
		edit       func(*view.Run)
	}{
		{"at work", "Running for 1h0m, 1 of 2 steps done", func(*view.Run) {}},
		{"waits for approval", "Pending, waits for approval until Sun 2026-11-22 01:00 CET (kubectl maint approve maint-run-p-x)", pending(run.WaitApproval, "waits for approval until 2026-11-22T00:00:00Z (kubectl maint approve maint-run-p-x)")},
		{"waits for its jitter", "Pending, waits for jitter: starts at Sat 2026-11-21 02:00 CET", pending(run.WaitJitter, "starts at 2026-11-21T01:00:00Z")},
		{"to be tried again", "Running for 1h0m, 1 of 2 steps done: retry 1 of 3 at 01:02 CET: step b failed: no", func(r *view.Run) {
			r.Run.Spec.RetryLimit, r.Journal.Retries, r.Journal.RetryAt, r.Journal.Message = 3, 1, cmdtest.After(2*time.Minute), "retry 1 of 3: step b failed: no"
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := cmdtest.RunOf(cmdtest.Record("a", "webhook", run.StepSucceeded), cmdtest.Record("b", "webhook", run.StepPending))
			c.edit(&r)
			if got := offlineView().RunHead(r); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// The agent writes instants as machines read them; people get them on their own clocks.
func TestWhatStepsSayHasTheTimesOfPeople(t *testing.T) {
	const until, here = "2026-11-21T01:00:00Z", "Sat 2026-11-21 02:00 CET"
	r := cmdtest.RunOf(
		cmdtest.Record("ask", plan.TypeApproval, run.StepRunning, cmdtest.Message("waits for approval until "+until+": go on? ('kubectl maint -n shop approve maint-run-p-x/ask')")),
		cmdtest.Record("late", "approval", run.StepFailed, cmdtest.Message("nobody approved or rejected until "+until)),
		cmdtest.Record("roll", plan.TypeForEach, run.StepRunning, cmdtest.Looping(run.Item{Name: "a", Phase: run.StepRunning, Message: "soaks until " + until})),
	)
	lines := strings.Join(offlineView().StepLines(r), "\n")
	if strings.Contains(lines, until) || strings.Count(lines, here) != 3 {
		t.Errorf("%s", lines)
	}
	r.Journal.Phase, r.Journal.StartedAt, r.Journal.Waiting, r.Journal.Message = run.Pending, nil, run.WaitWindow, "waits for its window, which opens at "+until+" (policy nights)"
	if head := offlineView().RunHead(r); !strings.HasSuffix(head, "opens at "+here+" (policy nights)") {
		t.Error(head)
	}
	for _, need := range offlineView().RunNeeds(r) {
		if strings.Contains(need.What, until) {
			t.Errorf("%s", need.What)
		}
	}
}

// A rollout between two nodes says once how many are done.
func TestALoopThatWaitsCountsOnce(t *testing.T) {
	rec := run.Record{Type: plan.TypeForEachNode, Listed: true, Message: "1 of 3 are done, 2 left; waits: the window is closed", Items: []run.Item{{Phase: run.StepSucceeded}, {Phase: run.StepPending}, {Phase: run.StepPending}}}
	if got, want := loopCount(rec), "1 of 3 done, 2 left; waits: the window is closed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
