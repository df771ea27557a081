package summary_test

import (
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/summary"
)

func at(clock string) *time.Time { return new(coretest.Clock(clock)) }

// ran is a slot that ran, so long after it was due.
func ran(slot string, late, took time.Duration, phase run.Phase, more ...func(*ledger.Outcome)) ledger.Entry {
	o := &ledger.Outcome{Phase: phase, Duration: document.Duration{Duration: took}}
	for _, m := range more {
		m(o)
	}
	return ledger.Entry{Slot: at(slot), StartedAt: new(coretest.Clock(slot).Add(late)), Result: run.Ran, Reason: "schedule", Run: "r-" + slot, Outcome: o}
}

func orders() summary.Plan {
	dry := ran("05:30", 0, time.Hour, run.Succeeded)
	dry.DryRun = true
	return summary.Plan{
		Namespace: "shop", Name: "orders", Since: at("01:00"),
		Windows: []summary.Window{{End: at("02:00")}, {Start: at("02:00"), End: at("02:10")}, {Start: at("08:00")}},
		Entries: []ledger.Entry{
			ran("00:00", 0, time.Hour, run.Failed),
			ran("01:00", 5*time.Second, time.Minute, run.Succeeded, func(o *ledger.Outcome) { o.Nodes = 3 }),
			ran("02:00", time.Minute, 2*time.Minute, run.Failed, func(o *ledger.Outcome) { o.Reason, o.Step, o.Message = "StepFailed", "migrate", "exit|code 3" }),
			ran("02:30", 9*time.Second, 0, run.Aborted, func(o *ledger.Outcome) {
				o.Overrides = []ledger.Override{{What: ledger.OverrideAborted, Actor: "=jane", Reason: "wrong one"}}
			}),
			{First: at("03:00"), Slot: at("03:00"), Last: at("04:00"), Count: 3, Result: run.Skipped, Reason: "paused"},
			{Slot: at("05:00"), Result: run.Missed, Reason: "deadline", Run: "r-5"},
			dry,
			{StartedAt: at("06:00"), Result: run.Ran, Run: "r-old", At: coretest.Clock("06:10")},
			ran("07:00", 0, time.Hour, run.Replaced),
		},
	}
}

func TestAReportCountsWhatLiesInItsTime(t *testing.T) {
	r := summary.Of([]summary.Plan{orders(), {Namespace: "shop", Name: "idle"}, {Namespace: "a", Name: "windowed", Windows: []summary.Window{{}}}}, coretest.Clock("00:30"), coretest.Clock("07:00"))
	want := []summary.Row{
		{Plan: "a/windowed", Windows: 1},
		{
			Plan: "shop/orders", Runs: 4, Succeeded: 1, Failed: 1, Aborted: 1, Unknown: 1, DryRuns: 1, Skipped: 3, Missed: 1, Reasons: map[string]int64{"Skipped(paused)": 3, "Missed(deadline)": 1},
			LateMedian: 9, LateMost: 60, Seconds: 180, Nodes: 3, Windows: 3, WindowsUsed: 2, Since: at("01:00"),
		},
	}
	if diff := cmp.Diff(want, r.Rows, cmpopts.IgnoreUnexported(summary.Row{})); diff != "" {
		t.Error(diff)
	}
	endings := []summary.Ending{
		{Plan: "shop/orders", At: *at("02:00"), Result: "Failed", Reason: "StepFailed", Run: "r-02:00", Step: "migrate", Message: "exit|code 3"},
		{Plan: "shop/orders", At: *at("02:30"), Result: "Aborted", Run: "r-02:30"},
		{Plan: "shop/orders", At: *at("04:00"), Result: "Skipped", Reason: "paused", Slots: 3},
		{Plan: "shop/orders", At: *at("05:00"), Result: "Missed", Reason: "deadline", Run: "r-5"},
	}
	if diff := cmp.Diff(endings, r.Endings); diff != "" {
		t.Error(diff)
	}
	decisions := []summary.Decision{{Plan: "shop/orders", At: *at("02:30"), Run: "r-02:30", Override: ledger.Override{What: "aborted", Actor: "=jane", Reason: "wrong one"}}}
	if diff := cmp.Diff(decisions, r.Decisions); diff != "" {
		t.Error(diff)
	}
	if got, want := r.Sentence(), "4 runs, 1 Succeeded, 1 Failed, 1 Aborted, 1 of unknown outcome; 3 slots skipped, 1 missed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAReportBeginsAtItsFirstInstantAndEndsBeforeItsLast(t *testing.T) {
	for _, c := range []struct {
		from, to string
		runs     int64
	}{{"01:00", "02:00", 1}, {"01:00", "02:01", 2}, {"00:59", "01:00", 0}} {
		if got := summary.Of([]summary.Plan{orders()}, coretest.Clock(c.from), coretest.Clock(c.to)).Total().Runs; got != c.runs {
			t.Errorf("[%s, %s) has %d runs, want %d", c.from, c.to, got, c.runs)
		}
	}
	if since := summary.Of([]summary.Plan{orders()}, coretest.Clock("01:00"), coretest.Clock("07:00")).Rows[0].Since; since != nil {
		t.Errorf("a ledger that reaches back far enough is said to begin at %s", since)
	}
}

func TestTotalsAreOverAllPlans(t *testing.T) {
	other := orders()
	other.Name = "other"
	other.Entries = other.Entries[1:2]
	got := summary.Of([]summary.Plan{orders(), other}, coretest.Clock("00:30"), coretest.Clock("07:00")).Total()
	want := summary.Row{Runs: 5, Succeeded: 2, Failed: 1, Aborted: 1, Unknown: 1, DryRuns: 1, Skipped: 3, Missed: 1, LateMedian: 5, LateMost: 60, Seconds: 240, Nodes: 6, Windows: 6, WindowsUsed: 3}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(summary.Row{})); diff != "" {
		t.Error(diff)
	}
}

func TestMarkdownKeepsItsTables(t *testing.T) {
	got := summary.Of([]summary.Plan{orders()}, coretest.Clock("00:30"), coretest.Clock("07:00")).Markdown()
	for _, want := range []string{
		"# Maintenance from ", "4 runs, 1 Succeeded", "## Plans\n\n| Plan | Runs |", "| shop/orders | 4 | 1 | 1 | 1 | 0 | 3 | 1 | 9s | 1m0s | 3m0s | 3 | 2 of 3 | Missed(deadline): 1; Skipped(paused): 3; 1 dry run not counted; 1 run of unknown outcome; its ledger reaches back to ",
		`exit\|code 3`, "| Skipped (3 slots) | paused |", "## Decisions of people", "=jane (unverified) | wrong one |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, line := range strings.Split(got, "\n") {
		if cells := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); strings.HasPrefix(line, "| shop") && cells != 15 {
			t.Errorf("%d bars in %q", cells, line)
		}
	}
	if got := summary.Of(nil, coretest.Clock("00:30"), coretest.Clock("07:00")).Markdown(); strings.Contains(got, "##") {
		t.Errorf("a section without rows:\n%s", got)
	}
}

func TestCSVHasOneLineAnEntryAndNoFormulas(t *testing.T) {
	plan := orders()
	plan.Entries[2].Outcome.Message = "=HYPERLINK(\"x\")"
	lines, err := csv.NewReader(strings.NewReader(summary.Of([]summary.Plan{plan}, coretest.Clock("00:30"), coretest.Clock("07:00")).CSV())).ReadAll()
	if err != nil || len(lines) != 8 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	day := coretest.Clock("00:00").Format("2006-01-02")
	want := []string{"shop/orders", day + "T02:00:00Z", day + "T02:01:00Z", "Ran", "schedule", "Failed", "StepFailed", "migrate", "'=HYPERLINK(\"x\")", "r-02:00", "", "false", "1", "60", "120", "0", ""}
	if diff := cmp.Diff(want, lines[2]); diff != "" {
		t.Error(diff)
	}
	if got := lines[3][16]; got != "aborted =jane" {
		t.Errorf("overrides %q", got)
	}
}

func TestThePageEscapesWhatDocumentsSay(t *testing.T) {
	plan := orders()
	plan.Entries[2].Outcome.Message = "<script>alert(1)</script>"
	got := summary.Of([]summary.Plan{plan}, coretest.Clock("00:30"), coretest.Clock("07:00")).HTML()
	for _, want := range []string{"<h1>Maintenance report</h1>", "&lt;script&gt;alert(1)", `<rect class="good" x="260" y="4" width="47" height="18"/><rect class="bad" x="307" y="4" width="95" height="18"/><rect class="other" x="402" y="4" width="237" height="18"/><text x="647" y="17">1 of 8</text>`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if empty := summary.Of(nil, coretest.Clock("00:30"), coretest.Clock("07:00")).HTML(); !strings.Contains(empty, "Nothing was due in this time") {
		t.Errorf("an empty page says nothing:\n%s", empty)
	}
}
