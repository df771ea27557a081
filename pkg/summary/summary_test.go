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

// A plan has a row as soon as anything is told of it, and no row before.
func TestAPlanHasARowForWhateverHappened(t *testing.T) {
	dry := ran("02:00", 0, time.Hour, run.Succeeded)
	dry.DryRun = true
	for name, c := range map[string]struct {
		plan summary.Plan
		row  bool
	}{
		"nothing":        {summary.Plan{}, false},
		"a run":          {summary.Plan{Entries: []ledger.Entry{ran("02:00", 0, 0, run.Succeeded)}}, true},
		"a dry run":      {summary.Plan{Entries: []ledger.Entry{dry}}, true},
		"a skipped slot": {summary.Plan{Entries: []ledger.Entry{{Slot: at("02:00"), Result: run.Skipped}}}, true},
		"a missed slot":  {summary.Plan{Entries: []ledger.Entry{{Slot: at("02:00"), Result: run.Missed}}}, true},
		"a window":       {summary.Plan{Windows: []summary.Window{{}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := len(summary.Of([]summary.Plan{c.plan}, coretest.Clock("01:00"), coretest.Clock("07:00")).Rows) == 1; got != c.row {
				t.Errorf("it has a row: %t", got)
			}
		})
	}
}

func TestWhichInstantAnEntryBelongsTo(t *testing.T) {
	for name, c := range map[string]struct {
		entry ledger.Entry
		want  string
	}{
		"a slot":                   {ledger.Entry{Slot: at("02:00"), StartedAt: at("03:00"), At: *at("04:00")}, "02:00"},
		"folded slots: their last": {ledger.Entry{First: at("01:00"), Slot: at("01:00"), Last: at("02:00"), At: *at("04:00")}, "02:00"},
		"a run without a slot":     {ledger.Entry{StartedAt: at("03:00"), At: *at("04:00")}, "03:00"},
		"a request without a run":  {ledger.Entry{At: *at("04:00")}, "04:00"},
	} {
		c.entry.Result = run.Missed
		got := summary.Of([]summary.Plan{{Entries: []ledger.Entry{c.entry}}}, coretest.Clock("00:00"), coretest.Clock("07:00")).Endings
		if len(got) != 1 || !got[0].At.Equal(*at(c.want)) {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}

// An entry is folded when it is of more than one slot.
func TestHowManySlotsAnEndingIsOf(t *testing.T) {
	for count, want := range map[int64]int64{0: 0, 1: 0, 2: 2} {
		entry := ledger.Entry{Slot: at("02:00"), Last: at("02:00"), Count: count, Result: run.Missed}
		got := summary.Of([]summary.Plan{{Entries: []ledger.Entry{entry}}}, coretest.Clock("00:00"), coretest.Clock("07:00")).Endings
		if len(got) != 1 || got[0].Slots != want {
			t.Errorf("of %d: %+v, want %d", count, got, want)
		}
	}
}

func TestAWindowIsUsedByARunThatStartedInIt(t *testing.T) {
	dry := ran("02:30", 0, time.Hour, run.Succeeded)
	dry.DryRun = true
	for name, c := range map[string]struct {
		window summary.Window
		entry  ledger.Entry
		used   int
	}{
		"at its first instant":           {summary.Window{Start: at("02:30"), End: at("03:00")}, ran("02:30", 0, 0, run.Failed), 1},
		"before it":                      {summary.Window{Start: at("02:30"), End: at("03:00")}, ran("02:29", 0, 0, run.Failed), 0},
		"at its end":                     {summary.Window{Start: at("02:00"), End: at("02:30")}, ran("02:30", 0, 0, run.Failed), 0},
		"in one without an end":          {summary.Window{Start: at("02:00")}, ran("02:30", 0, 0, run.Failed), 1},
		"in one without a start":         {summary.Window{End: at("03:00")}, ran("02:30", 0, 0, run.Failed), 1},
		"in one that is always open":     {summary.Window{}, ran("02:30", 0, 0, run.Failed), 1},
		"a dry run":                      {summary.Window{}, dry, 0},
		"a slot that was missed":         {summary.Window{}, ledger.Entry{Slot: at("02:30"), StartedAt: at("02:30"), Result: run.Missed}, 0},
		"a run whose start is not known": {summary.Window{}, ledger.Entry{Slot: at("02:30"), Result: run.Ran}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			plan := summary.Plan{Windows: []summary.Window{c.window}, Entries: []ledger.Entry{c.entry}}
			if got := summary.Of([]summary.Plan{plan}, coretest.Clock("00:00"), coretest.Clock("07:00")).Total().WindowsUsed; got != c.used {
				t.Errorf("%d windows are used, want %d", got, c.used)
			}
		})
	}
}

func TestASentenceNamesWhatThereWas(t *testing.T) {
	got := summary.Of([]summary.Plan{{Entries: []ledger.Entry{ran("02:00", 0, 0, run.Succeeded)}}}, coretest.Clock("00:00"), coretest.Clock("07:00")).Sentence()
	if want := "1 run, 1 Succeeded; 0 slots skipped, 0 missed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTablesSayWhatThereIsToSay(t *testing.T) {
	decided := func(d ledger.Override) ledger.Entry {
		return ran("02:00", 0, 0, run.Aborted, func(o *ledger.Outcome) { o.Overrides = []ledger.Override{d} })
	}
	for name, c := range map[string]struct {
		plan  summary.Plan
		table int
		want  []string // the ends of its first row
	}{
		"a plan with nothing to note":        {summary.Plan{Entries: []ledger.Entry{ran("02:00", 0, 0, run.Succeeded)}}, 0, []string{"0s", "0", "", ""}},
		"a plan with a policy":               {summary.Plan{Windows: []summary.Window{{}}, Entries: []ledger.Entry{ran("02:00", 0, 0, run.Succeeded)}}, 0, []string{"1 of 1", ""}},
		"one slot that was missed":           {summary.Plan{Entries: []ledger.Entry{{Slot: at("02:00"), Result: run.Missed}}}, 1, []string{"Missed", "", "", "", ""}},
		"one slot, counted":                  {summary.Plan{Entries: []ledger.Entry{{Slot: at("02:00"), Count: 1, Result: run.Missed}}}, 1, []string{"Missed", "", "", "", ""}},
		"two slots that were missed":         {summary.Plan{Entries: []ledger.Entry{{Slot: at("02:00"), Last: at("02:30"), Count: 2, Result: run.Missed}}}, 1, []string{"Missed (2 slots)", "", "", "", ""}},
		"a person whose name is verified":    {summary.Plan{Entries: []ledger.Entry{decided(ledger.Override{What: "aborted", Actor: "jane", Verified: true})}}, 2, []string{"aborted", "jane", "", "", "r-02:00"}},
		"a person whose name is not":         {summary.Plan{Entries: []ledger.Entry{decided(ledger.Override{What: "aborted", Actor: "jane"})}}, 2, []string{"aborted", "jane (unverified)", "", "", "r-02:00"}},
		"a decision of nobody in particular": {summary.Plan{Entries: []ledger.Entry{decided(ledger.Override{What: "aborted"})}}, 2, []string{"aborted", "somebody unknown", "", "", "r-02:00"}},
		"more decisions than are kept":       {summary.Plan{Entries: []ledger.Entry{ran("02:00", 0, 0, run.Succeeded, func(o *ledger.Outcome) { o.MoreOverrides = 3 })}}, 2, []string{"3 more, which the ledger does not keep", "", "", "", "r-02:00"}},
		"what others changed of a success":   {summary.Plan{Entries: []ledger.Entry{ran("02:00", 0, 0, run.Succeeded, func(o *ledger.Outcome) { o.Message = "while it ran jane changed it" })}}, 3, []string{"while it ran jane changed it", "r-02:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			titles := []string{"Plans", "What did not succeed", "Decisions of people", "What else is to be known of runs that succeeded"}
			for _, s := range summary.Of([]summary.Plan{c.plan}, coretest.Clock("00:00"), coretest.Clock("07:00")).Sections(func(t time.Time) string { return t.Format(time.Kitchen) }) {
				if s.Title != titles[c.table] {
					continue
				}
				if diff := cmp.Diff(c.want, s.Rows[0][len(s.Rows[0])-len(c.want):]); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				return
			}
			t.Error("there is no such table")
		})
	}
}

func TestThePageShowsThePlansWithTheMostFailuresFirst(t *testing.T) {
	named := func(name string, phases ...run.Phase) summary.Plan {
		p := summary.Plan{Namespace: "shop", Name: name}
		for _, phase := range phases {
			p.Entries = append(p.Entries, ran("02:00", 0, 0, phase))
		}
		return p
	}
	page := summary.Of([]summary.Plan{named("a", run.Failed), named("b", run.Succeeded), named("c", run.Failed, run.Failed)}, coretest.Clock("00:00"), coretest.Clock("07:00")).HTML()
	picture, _, _ := strings.Cut(page, "<h2>")
	last := -1
	for _, name := range []string{"shop/c", "shop/a", "shop/b"} {
		if at := strings.Index(picture, name); at > last {
			last = at
		} else {
			t.Errorf("%s stands at %d, after %d", name, at, last)
		}
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
	if got := lines[3][16]; got != "aborted =jane (unverified)" {
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

// Sleeps have no runs: of one that is over it is known whether something slept in it.
func TestSleepsAreCountedByWhatSlept(t *testing.T) {
	apps := []ledger.Slept{{Target: "apps", Kind: "Deployment", Resources: 2, Hours: 4}}
	night := func(slot string, ended *time.Time, slept ...ledger.Slept) ledger.Entry {
		return ledger.Entry{Slot: at(slot), StartedAt: at(slot), Result: run.Ran, Kind: run.BySchedule, EndedAt: ended, Slept: slept}
	}
	hold := ledger.Entry{StartedAt: at("04:00"), Result: run.Ran, Kind: run.ByToken, EndedAt: at("04:01")}
	for name, c := range map[string]struct {
		entries        []ledger.Entry
		want           summary.Row
		note, sentence string
	}{
		"a night":                        {[]ledger.Entry{night("01:00", at("03:00"), apps...)}, summary.Row{Runs: 1, Succeeded: 1}, "", "1 run, 1 Succeeded"},
		"one that goes on":               {[]ledger.Entry{night("01:00", nil)}, summary.Row{Runs: 1, Asleep: 1}, "1 sleep not over", "1 run, 1 asleep now"},
		"a hold that never slept":        {[]ledger.Entry{hold}, summary.Row{Runs: 1, NothingSlept: 1}, "nothing slept in 1 sleep", "1 run, 1 in which nothing slept"},
		"a sleep over several off-hours": {[]ledger.Entry{night("01:00", nil), night("02:00", nil), night("03:00", at("05:00"), apps...)}, summary.Row{Runs: 3, Succeeded: 3}, "", "3 runs, 3 Succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			r := summary.Of([]summary.Plan{{Namespace: "shop", Name: "nights", Entries: c.entries}}, coretest.Clock("00:30"), coretest.Clock("07:00"))
			c.want.Plan = "shop/nights"
			if diff := cmp.Diff([]summary.Row{c.want}, r.Rows, cmpopts.IgnoreUnexported(summary.Row{})); diff != "" {
				t.Error(diff)
			}
			if got := r.Sentence(); got != c.sentence+"; 0 slots skipped, 0 missed" {
				t.Error(got)
			}
			if len(r.Endings) > 0 {
				t.Errorf("%+v did not succeed", r.Endings)
			}
			if got := r.Markdown(); !strings.Contains(got, "| "+c.note+" |") {
				t.Errorf("no note %q in\n%s", c.note, got)
			}
		})
	}
}

func TestOffHoursFromBeforeTheirPlanMakeNothingLate(t *testing.T) {
	nights := summary.Plan{Namespace: "dev", Name: "nights", Created: coretest.Clock("02:00"), Entries: []ledger.Entry{
		{Slot: at("01:00"), StartedAt: at("02:01"), EndedAt: at("03:00"), Result: run.Ran, Kind: run.BySchedule},
		{Slot: at("04:00"), StartedAt: new(coretest.Clock("04:00").Add(30 * time.Second)), EndedAt: at("05:00"), Result: run.Ran, Kind: run.BySchedule},
	}}
	r := summary.Of([]summary.Plan{nights}, coretest.Clock("00:30"), coretest.Clock("07:00"))
	if len(r.Rows) != 1 || r.Rows[0].LateMost != 60 {
		t.Fatalf("%+v", r.Rows)
	}
	table := r.CSV()
	if !strings.Contains(table, ",60,") || !strings.Contains(table, ",30,") {
		t.Error(table)
	}
}

// What somebody asked for, and took back before it began, was no slot.
func TestARequestThatNeverBeganIsNoSlot(t *testing.T) {
	taken := ledger.Entry{Kind: run.ByToken, Result: run.Skipped, Reason: run.ReasonAborted, Run: "r", At: coretest.Clock("02:00")}
	late := ledger.Entry{Kind: run.ByLabel, Result: run.Missed, Reason: run.ReasonDeadline, Run: "s", At: coretest.Clock("03:00")}
	slot := ledger.Entry{Slot: at("04:00"), Kind: run.BySchedule, Result: run.Missed, Reason: run.ReasonWindow, At: coretest.Clock("05:00")}
	r := summary.Of([]summary.Plan{{Namespace: "shop", Name: "orders", Entries: []ledger.Entry{taken, taken, late, slot}}}, coretest.Clock("00:00"), coretest.Clock("07:00"))
	if got, want := r.Sentence(), "0 runs; 0 slots skipped, 1 missed; 3 requests never began"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if row := r.Rows[0]; row.Skipped != 2 || row.Missed != 2 || row.Requests != 3 || !strings.Contains(r.Markdown(), "; 3 requests never began |") {
		t.Errorf("%+v\n%s", row, r.Markdown())
	}
	table, err := csv.NewReader(strings.NewReader(r.CSV())).ReadAll()
	if err != nil || table[0][12] != "slots" || table[1][12] != "0" || table[4][12] != "1" {
		t.Errorf("%v in %v", err, table)
	}
}

// A decision has its own instant; in ledgers that do not have it, that of its run.
func TestWhenSomebodyDecided(t *testing.T) {
	entry := ledger.Entry{
		Slot: at("02:00"), StartedAt: at("02:00"), At: coretest.Clock("05:00"), Result: run.Ran, Run: "r",
		Outcome: &ledger.Outcome{Phase: run.Succeeded, Overrides: []ledger.Override{{What: "resumed", At: at("04:30")}, {What: "approved"}}},
	}
	r := summary.Of([]summary.Plan{{Entries: []ledger.Entry{entry}}}, coretest.Clock("00:00"), coretest.Clock("07:00"))
	var got []string
	for _, d := range r.Decisions {
		got = append(got, d.What+" "+d.At.Format(time.TimeOnly))
	}
	if diff := cmp.Diff([]string{"approved 02:00:00", "resumed 04:30:00"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A report does not count what it could not read, and says so.
func TestAPlanWhoseLedgerCannotBeReadIsInTheReport(t *testing.T) {
	plans := []summary.Plan{{Namespace: "shop", Name: "orders", Hidden: true, LedgerFault: "cannot be read: torn"}, {Namespace: "shop", Name: "idle"}}
	r := summary.Of(plans, *at("00:00"), *at("12:00"))
	if len(r.Rows) != 1 || !r.Rows[0].Unread || r.Sentence() != "0 runs; 0 slots skipped, 0 missed; of 1 plan it is not known, since the ledger cannot be read" {
		t.Errorf("%+v: %s", r.Rows, r.Sentence())
	}
	if note := r.Sections(func(time.Time) string { return "" })[0].Rows[0][13]; note != "its ledger cannot be read: torn" {
		t.Error(note)
	}
}

// Of a ledger that was begun in place of a lost one a report says that it is not all there was.
func TestALedgerThatWasBegunAnewIsInTheReport(t *testing.T) {
	plans := []summary.Plan{{Namespace: "shop", Name: "orders", BegunAnew: at("03:00")}, {Namespace: "shop", Name: "idle"}}
	r := summary.Of(plans, *at("00:00"), *at("12:00"))
	if len(r.Rows) != 1 || r.Rows[0].BegunAnew == nil {
		t.Fatalf("%+v", r.Rows)
	}
	if note := r.Sections(func(t time.Time) string { return t.Format("15:04") })[0].Rows[0][13]; note != "its ledger begins anew at 03:00: what was before is not known" {
		t.Error(note)
	}
	if r := summary.Of(plans, *at("04:00"), *at("12:00")); len(r.Rows) > 0 {
		t.Errorf("of a later time: %+v", r.Rows)
	}
}

// What a report cannot count exactly, it says.
func TestAReportSaysWhatItDoesNotCount(t *testing.T) {
	folded := func(first, last string) ledger.Entry {
		return ledger.Entry{First: at(first), Slot: at(first), Last: at(last), Count: 4, Result: run.Missed, Reason: "deadline"}
	}
	for name, c := range map[string]struct {
		plan summary.Plan
		want string
	}{
		"within":    {summary.Plan{Entries: []ledger.Entry{folded("01:00", "02:00")}}, "Missed(deadline): 4"},
		"before":    {summary.Plan{Entries: []ledger.Entry{folded("00:00", "01:30")}}, "Missed(deadline): 4; 4 slots of one reason lie on both sides of the report's begin or end, and count where the last of them lies"},
		"after":     {summary.Plan{Entries: []ledger.Entry{folded("02:00", "04:30")}}, "4 slots of one reason lie on both sides of the report's begin or end, and count where the last of them lies"},
		"around":    {summary.Plan{Entries: []ledger.Entry{folded("00:00", "06:00")}}, "4 slots of one reason lie on both sides of the report's begin or end, and count where the last of them lies"},
		"elsewhere": {summary.Plan{Entries: []ledger.Entry{folded("05:00", "06:00")}, Windows: []summary.Window{{}}}, ""},
		"windows":   {summary.Plan{Windows: []summary.Window{{}, {}}, MoreWindows: true}, "there are more than 2 windows, and only these are counted"},
	} {
		r := summary.Of([]summary.Plan{c.plan}, coretest.Clock("00:30"), coretest.Clock("04:00"))
		rows := r.Sections(func(t time.Time) string { return t.Format("15:04") })[0].Rows
		if got := rows[0][len(rows[0])-1]; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	decided := ran("01:00", 0, time.Hour, run.Succeeded, func(o *ledger.Outcome) {
		o.Overrides, o.MoreOverrides = []ledger.Override{{What: ledger.OverrideApproved, Actor: "jane"}}, 3
	})
	r := summary.Of([]summary.Plan{{Entries: []ledger.Entry{decided}}}, coretest.Clock("00:30"), coretest.Clock("04:00"))
	if len(r.Decisions) != 2 || r.Decisions[1].What != "3 more, which the ledger does not keep" {
		t.Errorf("%+v", r.Decisions)
	}
}
