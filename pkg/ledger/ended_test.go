package ledger_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestWhatEndedSince(t *testing.T) {
	type end struct {
		slot   string
		result run.Result
		reason string
		cause  ledger.Cause
		dry    bool
	}
	skip := func(who string) ledger.Cause {
		return ledger.CauseBy(intent.Actor{Name: who, Reason: "CHG-1"}, "skip")
	}
	for name, c := range map[string]struct {
		before, since []end
		want          []string
	}{
		"nothing":                          {before: []end{{slot: "01:00", result: run.Missed, reason: "deadline"}}},
		"one":                              {since: []end{{slot: "01:00", result: run.Missed, reason: "deadline"}}, want: []string{"Missed 1 up to 01:00: deadline"}},
		"a missed one before a skipped":    {since: []end{{slot: "01:00", result: run.Missed, reason: "deadline"}, {slot: "02:00", result: run.Skipped, reason: "busy"}}, want: []string{"Missed 1 up to 01:00: deadline", "Skipped 1 up to 02:00: busy"}},
		"two reasons of one result":        {since: []end{{slot: "01:00", result: run.Missed, reason: "superseded"}, {slot: "02:00", result: run.Missed, reason: "deadline"}}, want: []string{"Missed 1 up to 01:00: superseded", "Missed 1 up to 02:00: deadline"}},
		"those that are folded":            {since: []end{{slot: "01:00", result: run.Missed, reason: "deadline"}, {slot: "02:00", result: run.Missed, reason: "deadline"}}, want: []string{"Missed 2 up to 02:00: deadline"}},
		"those that others are between":    {since: []end{{slot: "01:00", result: run.Skipped, reason: "busy"}, {slot: "02:00", result: run.Missed, reason: "deadline"}, {slot: "03:00", result: run.Skipped, reason: "busy"}}, want: []string{"Skipped 2 up to 03:00: busy", "Missed 1 up to 02:00: deadline"}},
		"one folded into an earlier":       {before: []end{{slot: "01:00", result: run.Skipped, reason: "busy"}}, since: []end{{slot: "02:00", result: run.Skipped, reason: "busy"}}, want: []string{"Skipped 1 up to 02:00: busy"}},
		"two folded into earlier ones":     {before: []end{{slot: "01:00", result: run.Skipped, reason: "busy"}, {slot: "02:00", result: run.Skipped, reason: "busy"}}, since: []end{{slot: "03:00", result: run.Skipped, reason: "busy"}, {slot: "04:00", result: run.Skipped, reason: "busy"}}, want: []string{"Skipped 2 up to 04:00: busy"}},
		"who did it, and why":              {since: []end{{slot: "01:00", result: run.Skipped, reason: "skip", cause: skip("jane")}}, want: []string{"Skipped 1 up to 01:00: skip by jane (unverified): CHG-1"}},
		"two people":                       {since: []end{{slot: "01:00", result: run.Skipped, reason: "skip", cause: skip("jane")}, {slot: "02:00", result: run.Skipped, reason: "skip", cause: skip("joe")}}, want: []string{"Skipped 1 up to 01:00: skip by jane (unverified): CHG-1", "Skipped 1 up to 02:00: skip by joe (unverified): CHG-1"}},
		"what stands above":                {since: []end{{slot: "01:00", result: run.Skipped, reason: "paused", cause: ledger.Cause{Said: "namespace shop is paused by jane: CHG-1"}}}, want: []string{"Skipped 1 up to 01:00: paused (namespace shop is paused by jane: CHG-1)"}},
		"those of a dry run count nowhere": {since: []end{{slot: "01:00", result: run.Missed, reason: "deadline", dry: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			add := func(l ledger.Ledger, ends []end) ledger.Ledger {
				for _, e := range ends {
					r := coretest.SlotAt(e.slot)
					r.DryRun = e.dry
					l = l.End(r, e.result, e.reason, e.cause, coretest.Clock("09:00"))
				}
				return l
			}
			check := func(was *ledger.Ledger, now ledger.Ledger) {
				var got []string
				for _, e := range now.EndedSince(was) {
					got = append(got, fmt.Sprintf("%s %d up to %s: %s", e.Result, e.Count, e.Slot.Format("15:04"), e.Why()))
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
			}
			was := add(ledger.Ledger{}, c.before)
			check(&was, add(was, c.since))
			if c.before == nil {
				check(nil, add(was, c.since))
			}
		})
	}
}

func TestRunsAreNotAmongWhatEndedWithoutOne(t *testing.T) {
	now := coretest.Clock("03:00")
	was := ledger.Ledger{}.Claim("r", coretest.SlotAt("02:00"), "").Claim("q", coretest.SlotAt("02:30"), "")
	began := now.Add(-time.Minute)
	is := was.Close("r", run.Ran, "", &began, now).Close("q", run.Missed, run.ReasonRefused, nil, now)
	if got := is.EndedSince(&was); len(got) != 1 || got[0].Run != "q" || got[0].Count != 1 {
		t.Errorf("got %+v", got)
	}
	// A slot without a run that folds into one that had a run is told all the same.
	more := is.End(coretest.SlotAt("03:00"), run.Missed, run.ReasonRefused, ledger.Cause{}, now)
	if got := more.EndedSince(&is); len(more.Recent) != len(is.Recent) || len(got) != 1 || got[0].Run != "" || got[0].Count != 1 {
		t.Errorf("got %+v", got)
	}
}
