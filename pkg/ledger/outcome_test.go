package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestAnEntryKeepsHowItsRunEnded(t *testing.T) {
	began, end, later := coretest.Clock("02:00"), coretest.Clock("02:03").Add(400*time.Millisecond), coretest.Clock("02:02")
	took := document.Duration{Duration: 3 * time.Minute}
	jane, joe := intent.Actor{Name: "jane", Reason: "CHG-1", Verified: true}, intent.Actor{Name: "joe"}
	drift := run.Drift{Object: "Deployment/web", Field: "spec.replicas", Want: "1", Value: "2", SeenAt: began, Accepted: &jane}
	const changed = "while it ran somebody changed spec.replicas of Deployment/web from 1 to 2 at 2026-12-05T02:00:00Z"
	step := func(path, message string) run.Record {
		return run.Record{Path: path, Phase: run.StepFailed, Message: message}
	}
	for _, c := range []struct {
		name    string
		request run.Request
		j       run.Journal
		want    ledger.Outcome
	}{
		{
			"success",
			run.Request{Parameters: map[string]string{"size": "secret", "mode": "fast"}},
			run.Journal{StartedAt: &began, End: &run.End{Phase: run.Succeeded}},
			ledger.Outcome{Phase: run.Succeeded, Duration: took, Parameters: []string{"mode", "size"}},
		},
		{
			"the step that failed says why",
			run.Request{},
			run.Journal{StartedAt: &began, End: &run.End{Phase: run.Failed, Reason: "StepFailed", Step: "migrate", Message: "step migrate failed"}, Steps: []run.Record{step("prepare", "fine"), step("migrate", "exit code 3")}},
			ledger.Outcome{Phase: run.Failed, Reason: "StepFailed", Step: "migrate", Message: "exit code 3", Duration: took},
		},
		{
			"a step without words leaves them to the run",
			run.Request{},
			run.Journal{StartedAt: &began, End: &run.End{Phase: run.Failed, Reason: "Timeout", Step: "migrate", Message: "did not end"}, Steps: []run.Record{step("migrate", "")}},
			ledger.Outcome{Phase: run.Failed, Reason: "Timeout", Step: "migrate", Message: "did not end", Duration: took},
		},
		{
			"the step whose effect somebody changed did not fail itself",
			run.Request{},
			run.Journal{StartedAt: &began, End: &run.End{Phase: run.Failed, Reason: run.ReasonDrift, Step: "down", Message: "after step down jane changed it"}, Steps: []run.Record{{Path: "down", Phase: run.StepSucceeded, Message: "changed it to 0"}}},
			ledger.Outcome{Phase: run.Failed, Reason: run.ReasonDrift, Step: "down", Message: "after step down jane changed it", Duration: took},
		},
		{
			"a cleanup that failed, too",
			run.Request{},
			run.Journal{StartedAt: &began, End: &run.End{Phase: run.Failed, Reason: "StepFailed", Step: "migrate", Message: "step migrate failed"}, Steps: []run.Record{step("migrate", "exit code 3"), step("finally/up", "answered 404")}},
			ledger.Outcome{Phase: run.Failed, Reason: "StepFailed", Step: "migrate", Message: "exit code 3; finally/up failed: answered 404", Duration: took},
		},
		{
			"a cleanup that failed is told however long the reason is",
			run.Request{},
			run.Journal{StartedAt: &began, End: &run.End{Phase: run.Aborted, Reason: "Aborted", Message: strings.Repeat("x", 1000)}, Steps: []run.Record{step("finally/up", "answered 404")}},
			ledger.Outcome{Phase: run.Aborted, Reason: "Aborted", Message: strings.Repeat("x", 256-len("…; finally/up failed: answered 404")) + "…; finally/up failed: answered 404", Duration: took},
		},
		{
			"steps that succeeded, and a cleanup that failed",
			run.Request{},
			run.Journal{StartedAt: &began, End: &run.End{Phase: run.Failed, Reason: "CleanupFailed", Step: "finally/up", Message: "the steps succeeded, but finally/up failed: answered 404"}, Steps: []run.Record{step("finally/up", "answered 404")}},
			ledger.Outcome{Phase: run.Failed, Reason: "CleanupFailed", Step: "finally/up", Message: "answered 404", Duration: took},
		},
		{
			"people decided",
			run.Request{OutsideWindow: true, Actor: "ann", Reason: "urgent"},
			run.Journal{
				StartedAt: &began, Approved: &jane, Passed: &joe, End: &run.End{Phase: run.Aborted, Reason: "Aborted", Actor: "bob", Message: "aborted by bob"},
				Steps: []run.Record{{Path: "hold", Resumed: &joe}, {Path: "ask", Approval: &run.Approval{Approved: true, Actor: jane}}, {Path: "again", Approval: &run.Approval{Actor: joe}}},
			},
			ledger.Outcome{Phase: run.Aborted, Reason: "Aborted", Message: "aborted by bob", Duration: took, Overrides: []ledger.Override{
				{What: "approved", Actor: "jane", Verified: true, Reason: "CHG-1"},
				{What: "bypass", Actor: "joe"},
				{What: "outside-window", Actor: "ann", Reason: "urgent"},
				{What: "aborted", Actor: "bob"},
				{What: "resumed", Step: "hold", Actor: "joe"},
				{What: "approved", Step: "ask", Actor: "jane", Verified: true, Reason: "CHG-1"},
				{What: "rejected", Step: "again", Actor: "joe"},
			}},
		},
		{
			"when and why they did",
			run.Request{OutsideWindow: true, Actor: "ann", Reason: "urgent", At: began},
			run.Journal{
				StartedAt: &began, Passed: &intent.Actor{Name: "ann", Reason: "fire", At: later},
				End: &run.End{Phase: run.Aborted, Reason: "Aborted", Actor: "bob", Message: "aborted by bob: enough", By: &intent.Actor{Name: "bob", Reason: "enough", Verified: true, At: later}},
			},
			ledger.Outcome{Phase: run.Aborted, Reason: "Aborted", Message: "aborted by bob: enough", Duration: took, Overrides: []ledger.Override{
				{What: "bypass", Actor: "ann", Reason: "fire", At: &later},
				{What: "outside-window", Actor: "ann", Reason: "urgent", At: &began},
				{What: "aborted", Actor: "bob", Reason: "enough", Verified: true, At: &later},
			}},
		},
		{
			"somebody rejected it",
			run.Request{},
			run.Journal{End: &run.End{Phase: run.Aborted, Result: run.Skipped, Reason: run.ReasonRejected, Message: "rejected by jane: CHG-1", By: &jane}},
			ledger.Outcome{Phase: run.Aborted, Reason: run.ReasonRejected, Message: "rejected by jane: CHG-1", Overrides: []ledger.Override{{What: "rejected", Actor: "jane", Verified: true, Reason: "CHG-1"}}},
		},
		{
			"who resumed it accepted a change, and ended no suspend",
			run.Request{},
			run.Journal{StartedAt: &began, Steps: []run.Record{{Path: "down", Phase: run.StepSucceeded, Drift: &drift}}, End: &run.End{Phase: run.Succeeded}},
			ledger.Outcome{Phase: run.Succeeded, Message: changed, Duration: took, Overrides: []ledger.Override{{What: "resumed", Actor: "jane", Verified: true, Reason: "CHG-1"}}},
		},
		{
			"who resumed it accepted a change, and ended a suspend",
			run.Request{},
			run.Journal{StartedAt: &began, Message: "all steps are done; " + changed, Steps: []run.Record{{Path: "down", Phase: run.StepSucceeded, Drift: &drift}, {Path: "hold", Resumed: &jane}}, End: &run.End{Phase: run.Succeeded}},
			ledger.Outcome{Phase: run.Succeeded, Message: changed, Duration: took, Overrides: []ledger.Override{{What: "resumed", Step: "hold", Actor: "jane", Verified: true, Reason: "CHG-1"}}},
		},
		{
			"what others changed was not put back",
			run.Request{},
			run.Journal{StartedAt: &began, End: &run.End{Phase: run.Succeeded}, Steps: []run.Record{
				{Path: "tag", Phase: run.StepSucceeded, Restored: run.RestoreChanged, RestoreMessage: "somebody changed tier of Deployment/web meanwhile, which stays; while the run lived somebody changed spec.replicas of Deployment/web from 1 to 2 at 2026-12-05T02:00:00Z", Drift: &run.Drift{Object: "Deployment/web", Field: "spec.replicas", Want: "1", Value: "2", SeenAt: began}},
				{Path: "down", Phase: run.StepSucceeded, Restored: run.RestoreDone, RestoreMessage: "put back"},
			}},
			ledger.Outcome{Phase: run.Succeeded, Duration: took, Message: "what step tag found was not put back: somebody changed tier of Deployment/web meanwhile, which stays; " + changed},
		},
		{
			"what is gone was not put back, unless the run itself deleted it",
			run.Request{},
			run.Journal{StartedAt: &began, End: &run.End{Phase: run.Succeeded}, Steps: []run.Record{
				{Path: "tag", Phase: run.StepSucceeded, Restored: run.RestoreGone, RestoreMessage: "Deployment/web is not there any more", Changed: []run.Change{{Kind: "Deployment", Name: "web", What: "tier"}}},
				{Path: "mark", Phase: run.StepSucceeded, Restored: run.RestoreGone, RestoreMessage: "Pod/a is not there any more", Changed: []run.Change{{Kind: "Pod", Name: "a", What: "tier"}}},
				{Path: "rm", Phase: run.StepSucceeded, Changed: []run.Change{{Kind: "Pod", Name: "a", What: "deleted"}}},
			}},
			ledger.Outcome{Phase: run.Succeeded, Duration: took, Message: "what step tag found was not put back: Deployment/web is not there any more"},
		},
		{
			"an abort, and what others changed meanwhile",
			run.Request{},
			run.Journal{StartedAt: &began, Steps: []run.Record{{Path: "down", Phase: run.StepSucceeded, Drift: &run.Drift{Object: "Deployment/web", Field: "spec.replicas", Want: "1", Value: "2", SeenAt: began}}}, End: &run.End{Phase: run.Aborted, Reason: "Aborted", Message: "aborted by bob"}},
			ledger.Outcome{Phase: run.Aborted, Reason: "Aborted", Message: "aborted by bob; " + changed, Duration: took},
		},
		{
			"a run that failed by a change says it once",
			run.Request{},
			run.Journal{StartedAt: &began, Steps: []run.Record{{Path: "down", Phase: run.StepSucceeded, Drift: &run.Drift{Object: "Deployment/web", Field: "spec.replicas", Want: "1", Value: "2", SeenAt: began}}}, End: &run.End{Phase: run.Failed, Reason: run.ReasonDrift, Step: "down", Message: "after step down " + strings.TrimPrefix(changed, "while it ran ")}},
			ledger.Outcome{Phase: run.Failed, Reason: run.ReasonDrift, Step: "down", Message: "after step down " + strings.TrimPrefix(changed, "while it ran "), Duration: took},
		},
		{
			"it started outside of its window, as it was asked to",
			run.Request{OutsideWindow: true, Actor: "ann", Reason: "urgent"},
			run.Journal{StartedAt: &began, Passed: &intent.Actor{Name: "ann", Reason: "urgent", At: began}, End: &run.End{Phase: run.Succeeded}},
			ledger.Outcome{Phase: run.Succeeded, Duration: took, Overrides: []ledger.Override{{What: "outside-window", Actor: "ann", Reason: "urgent"}}},
		},
		{
			"the nodes that its rollout went through with success",
			run.Request{},
			run.Journal{StartedAt: &began, End: &run.End{Phase: run.Succeeded}, Steps: []run.Record{{Path: "roll", Type: "for-each-node", Items: []run.Item{{Name: "a", Phase: run.StepSucceeded, At: &later}, {Name: "b", Phase: run.StepFailed, At: &later}, {Name: "c", Phase: run.StepSucceeded, At: &later}, {Name: "d"}}}}},
			ledger.Outcome{Phase: run.Succeeded, Duration: took, Nodes: 2},
		},
		{
			"somebody else let it through, for the same reason",
			run.Request{OutsideWindow: true, Actor: "ann", Reason: "urgent"},
			run.Journal{StartedAt: &began, Passed: &intent.Actor{Name: "joe", Reason: "urgent"}, End: &run.End{Phase: run.Succeeded}},
			ledger.Outcome{Phase: run.Succeeded, Duration: took, Overrides: []ledger.Override{{What: "bypass", Actor: "joe", Reason: "urgent"}, {What: "outside-window", Actor: "ann", Reason: "urgent"}}},
		},
		{
			"who asked for it let it through, for another reason",
			run.Request{OutsideWindow: true, Actor: "ann", Reason: "urgent"},
			run.Journal{StartedAt: &began, Passed: &intent.Actor{Name: "ann", Reason: "CHG-1"}, End: &run.End{Phase: run.Succeeded}},
			ledger.Outcome{Phase: run.Succeeded, Duration: took, Overrides: []ledger.Override{{What: "bypass", Actor: "ann", Reason: "CHG-1"}, {What: "outside-window", Actor: "ann", Reason: "urgent"}}},
		},
		{
			"who asked for it let it through afterwards",
			run.Request{Actor: "ann", Reason: "urgent"},
			run.Journal{StartedAt: &began, Passed: &intent.Actor{Name: "ann", Reason: "urgent"}, End: &run.End{Phase: run.Succeeded}},
			ledger.Outcome{Phase: run.Succeeded, Duration: took, Overrides: []ledger.Override{{What: "bypass", Actor: "ann", Reason: "urgent"}}},
		},
		{
			"its ledger is written later than it ends",
			run.Request{},
			run.Journal{StartedAt: &began, FinishedAt: new(began.Add(2600 * time.Millisecond)), End: &run.End{Phase: run.Succeeded}},
			ledger.Outcome{Phase: run.Succeeded, Duration: document.Duration{Duration: 3 * time.Second}},
		},
		{
			"it never started",
			run.Request{},
			run.Journal{End: &run.End{Phase: run.Aborted, Result: run.Missed, Reason: run.ReasonDeadline, Message: "too late"}},
			ledger.Outcome{Phase: run.Aborted, Reason: run.ReasonDeadline, Message: "too late"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run.Run{Name: "r", Request: c.request}
			l := ledger.Ledger{}.Claim("r", c.request, "").CloseRun(r, c.j, end)
			if diff := cmp.Diff(&c.want, l.Recent[0].Outcome); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnOutcomeIsBounded(t *testing.T) {
	began := coretest.Clock("02:00")
	request := run.Request{Parameters: map[string]string{}, Actor: strings.Repeat("a", 9999)}
	j := run.Journal{Phase: run.Failed, StartedAt: &began, End: &run.End{Phase: run.Failed, Step: "x", Message: strings.Repeat("m", 9999)}}
	for i := range 99 {
		request.Parameters[fmt.Sprint(i, strings.Repeat("p", 9999))] = "v"
		j.Steps = append(j.Steps, run.Record{Path: strings.Repeat("s", 999), Resumed: &intent.Actor{Name: request.Actor, Reason: request.Actor}})
	}
	got := ledger.OutcomeOf(run.Run{Request: request}, j)
	if len(got.Message) != 256 || len(got.Parameters) != 16 || len(got.Overrides) != 8 || got.MoreOverrides != 91 {
		t.Errorf("message of %d bytes, %d parameters, %d overrides", len(got.Message), len(got.Parameters), len(got.Overrides))
	}
	if o := got.Overrides[0]; len(o.Actor) > 128 || len(o.Reason) > 128 || len(o.Step) > 128 || len(got.Parameters[0]) > 128 {
		t.Errorf("an override or a name is longer than 128 bytes: %+v", o)
	}
}

func TestADecisionIsSaidWithWhoTookIt(t *testing.T) {
	for _, c := range []struct {
		override ledger.Override
		want     string
	}{
		{ledger.Override{What: ledger.OverrideApproved, Actor: "ann", Verified: true, Reason: "CHG-1"}, "done by ann: CHG-1"},
		{ledger.Override{What: ledger.OverrideApproved, Actor: "ann"}, "done by ann (unverified)"},
		{ledger.Override{What: ledger.OverrideApproved}, "done"},
		{ledger.Override{What: ledger.OverrideResumed, Reason: "CHG-1"}, "done: CHG-1"},
		{ledger.Override{What: ledger.OverrideBypass, Actor: "ann", Verified: true}, "done by ann"},
		{ledger.Override{What: ledger.OverrideBypass}, "done by somebody unknown"},
		{ledger.Override{What: ledger.OverrideAllowed, Reason: "CHG-2"}, "done by somebody unknown: CHG-2"},
		{ledger.Override{What: ledger.OverrideOutsideWindow, Reason: "CHG-1"}, "done by somebody unknown: CHG-1"},
	} {
		if got := c.override.Said("done"); got != c.want {
			t.Errorf("%+v: %q, want %q", c.override, got, c.want)
		}
	}
}

func TestHowLongARunTook(t *testing.T) {
	began := coretest.Clock("02:00")
	for took, want := range map[time.Duration]time.Duration{
		0: 0, 1234 * time.Microsecond: time.Millisecond, time.Second: time.Second, 1700 * time.Millisecond: 2 * time.Second, -time.Hour: 0, time.Hour: time.Hour,
	} {
		end := began.Add(took)
		if got := ledger.OutcomeOf(run.Run{}, run.Journal{Phase: run.Succeeded, StartedAt: &began, FinishedAt: &end}).Duration.Duration; got != want {
			t.Errorf("%s becomes %s, want %s", took, got, want)
		}
	}
}

func TestADryRunCountsNowhere(t *testing.T) {
	began := coretest.Clock("02:00")
	end := func(l ledger.Ledger, name string, phase run.Phase, dry bool) ledger.Ledger {
		r := run.Run{Name: name, Request: run.Request{Kind: run.ByToken, Token: name, DryRun: dry}}
		return l.Claim(name, r.Request, "").Finish(r, run.Journal{StartedAt: &began, End: &run.End{Phase: phase}}, coretest.Clock("03:00"))
	}
	l := end(end(end(ledger.Ledger{}, "a", run.Succeeded, false), "b", run.Failed, true), "c", run.Failed, false)
	l = end(l, "d", run.Succeeded, true)
	if l.Last.Name != "c" || l.Last.SuccessAt == nil || l.Last.Phase != run.Failed {
		t.Errorf("last %+v", l.Last)
	}
	if diff := cmp.Diff(map[run.Result]int64{run.Ran: 2}, l.Totals); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[run.Phase]int64{run.Succeeded: 1, run.Failed: 1}, l.Outcomes); diff != "" {
		t.Error(diff)
	}
	if e := l.Recent[1]; !e.DryRun || e.Outcome.Phase != run.Failed {
		t.Errorf("%+v", e)
	}
}

func TestWhatIsSaidOfTheLastRun(t *testing.T) {
	began := coretest.Clock("02:00")
	last := func(end run.End, steps ...run.Record) ledger.Ledger {
		r := run.Run{Name: "r"}
		l := ledger.Ledger{}.Claim("r", run.Request{}, "").Finish(r, run.Journal{StartedAt: &began, End: &end, Steps: steps}, coretest.Clock("03:00"))
		return l.End(run.Request{Slot: &began}, run.Skipped, run.ReasonSkip, ledger.Cause{}, coretest.Clock("04:00"))
	}
	left := run.Record{Path: "tag", Phase: run.StepSucceeded, Restored: run.RestoreChanged, RestoreMessage: "somebody changed tier"}
	for name, c := range map[string]struct {
		l    ledger.Ledger
		want string
	}{
		"none ran":                                   {ledger.Ledger{}, ""},
		"it succeeded, and nothing else is so":       {last(run.End{Phase: run.Succeeded}), ""},
		"it succeeded, and left what others changed": {last(run.End{Phase: run.Succeeded}, left), "what step tag found was not put back: somebody changed tier"},
		"another never started since":                {last(run.End{Phase: run.Succeeded}, left).NotRun("other", run.Request{}, run.ReasonRefused, "no quota", coretest.Clock("05:00")), "what step tag found was not put back: somebody changed tier"},
		"a step failed":                              {last(run.End{Phase: run.Failed, Step: "x", Message: "exit code 3"}), "in step x: exit code 3"},
		"it failed":                                  {last(run.End{Phase: run.Failed, Message: "too long"}), "too long"},
	} {
		if got := c.l.LastSaid(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
