package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func slotOf(i int) run.Request {
	at := coretest.Clock("00:00").Add(time.Duration(i) * time.Minute)
	return run.Request{Kind: run.BySchedule, Slot: &at, Local: at.Format(time.RFC3339) + "[UTC]", At: at}
}

func TestAdjacentEntriesOfOneReasonFold(t *testing.T) {
	now := coretest.Clock("12:00")
	l := ledger.Ledger{}
	for i := range 5 {
		l = l.End(slotOf(i), run.Missed, run.ReasonDeadline, ledger.Cause{}, now)
	}
	l = l.End(slotOf(5), run.Missed, run.ReasonSuperseded, ledger.Cause{}, now)
	l = l.End(slotOf(6), run.Skipped, run.ReasonPaused, ledger.Cause{}, now)
	dry := slotOf(7)
	dry.DryRun = true
	l = l.End(dry, run.Skipped, run.ReasonPaused, ledger.Cause{}, now)
	l = l.End(slotOf(8), run.Missed, run.ReasonDeadline, ledger.Cause{}, now)
	l = l.Claim("a", slotOf(9), "").Close("a", run.Missed, run.ReasonDeadline, nil, now)
	l = l.Claim("b", slotOf(10), "").Close("b", run.Missed, run.ReasonDeadline, nil, now)
	var got []string
	for _, e := range l.Recent {
		got = append(got, fmt.Sprintf("%s %s(%s) ×%d %s", e.Slot.Format("15:04"), e.Result, e.Reason, e.Count, e.Run))
	}
	want := []string{"00:00 Missed(deadline) ×5 ", "00:05 Missed(superseded) ×0 ", "00:06 Skipped(paused) ×0 ", "00:07 Skipped(paused) ×0 ", "00:08 Missed(deadline) ×0 ", "00:09 Missed(deadline) ×0 a", "00:10 Missed(deadline) ×0 b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if e := l.Recent[0]; !e.First.Equal(coretest.Clock("00:00")) || !e.Last.Equal(coretest.Clock("00:04")) {
		t.Errorf("%s to %s", e.First, e.Last)
	}
	if diff := cmp.Diff(map[run.Result]int64{run.Missed: 9, run.Skipped: 1}, l.Totals); diff != "" {
		t.Error(diff)
	}
}

// Slots that different people kept from running stand apart, each with who did.
func TestASlotSaysWhoKeptItFromRunning(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC) }
	paused := func(by, why string) ledger.Cause {
		actor := intent.Actor{Name: by, Verified: true, Reason: why}
		return ledger.Cause{Said: actor.Said("paused"), Actor: actor}
	}
	var l ledger.Ledger
	for minute, by := range []ledger.Cause{paused("jane", "CHG-1"), paused("jane", "CHG-1"), paused("jane", "CHG-2"), paused("joe", "CHG-2"), {}} {
		slot := at(minute)
		l = l.End(run.Request{Kind: run.BySchedule, Slot: &slot}, run.Skipped, run.ReasonPaused, by, slot)
	}
	var got []string
	for _, e := range l.Recent {
		got = append(got, fmt.Sprintf("%s ×%d %s: %s", e.Slot.Format("04"), e.Count, e.Who(), e.Said))
	}
	want := []string{"00 ×2 jane: paused by jane: CHG-1", "02 ×0 jane: paused by jane: CHG-2", "03 ×0 joe: paused by joe: CHG-2", "04 ×0 : "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	long := l.End(run.Request{}, run.Skipped, run.ReasonPaused, paused(strings.Repeat("j", 1000), strings.Repeat("y", 9000)), at(9)).Recent[4]
	if len(long.Said) > 256 || len(long.Actor) > 128 {
		t.Errorf("it keeps %d and %d bytes", len(long.Said), len(long.Actor))
	}
}

func TestAClaimIsOneHoweverOftenItIsMadeOrClosed(t *testing.T) {
	now := coretest.Clock("12:00")
	l := ledger.Ledger{}.Claim("a", slotOf(1), "t").Claim("a", slotOf(1), "t")
	if len(l.Open) != 1 || l.Open[0].Request == nil || l.Open[0].Result != run.Open {
		t.Fatalf("%+v", l.Open)
	}
	l = l.Close("a", run.Ran, "", &now, now).Close("a", run.Missed, "x", nil, now).Close("other", run.Ran, "", nil, now)
	if len(l.Open) != 0 || len(l.Recent) != 1 || l.Totals[run.Ran] != 1 || l.Recent[0].Request != nil || l.Recent[0].StartedAt == nil {
		t.Errorf("%+v", l)
	}
}

func TestTheLastRunIsRemembered(t *testing.T) {
	start, end := coretest.Clock("01:00"), coretest.Clock("02:00")
	r := run.Run{Name: "a", Request: slotOf(60)}
	j := run.Journal{Phase: run.Running, StartedAt: &start, End: &run.End{Phase: run.Succeeded}}
	l := ledger.Ledger{}.Claim("a", r.Request, "").Finish(r, j, end)
	if l.Last.Phase != run.Succeeded || !l.Last.SuccessAt.Equal(end) {
		t.Errorf("%+v", l.Last)
	}
	r.Name, j.End = "b", &run.End{Phase: run.Failed}
	l = l.Claim("b", r.Request, "").Finish(r, j, end.Add(time.Hour)).Finish(r, j, end.Add(2*time.Hour))
	if l.Last.Name != "b" || l.Last.Phase != run.Failed || !l.Last.SuccessAt.Equal(end) || l.Totals[run.Ran] != 2 {
		t.Errorf("%+v", l.Last)
	}
	// A journal that says how the run ended only by its phase (edited by hand).
	l = ledger.Ledger{}.Claim("a", r.Request, "").Finish(run.Run{Name: "a"}, run.Journal{Phase: run.Failed, StartedAt: &start}, end)
	if l.Last.Phase != run.Failed {
		t.Errorf("%+v", l.Last)
	}
}

// A failure is known until a run succeeds, however many ends come after it.
func TestFailuresAreKnownUntilARunSucceeds(t *testing.T) {
	start := coretest.Clock("01:00")
	var l ledger.Ledger
	end := func(name string, phase run.Phase, dry bool) {
		r := run.Run{Name: name, Request: run.Request{Kind: run.ByToken, DryRun: dry}}
		j := run.Journal{Phase: run.Running, StartedAt: &start, End: &run.End{Phase: phase, Step: "migrate", Message: "exit code 1 of " + name}}
		l = l.Claim(name, r.Request, "").Finish(r, j, start)
		l, _ = l.Overflow()
	}
	want := func(count int64, name string) {
		t.Helper()
		failed := ledger.Failures{Count: count}
		if name != "" {
			failed = ledger.Failures{Count: count, Run: name, Step: "migrate", Message: "exit code 1 of " + name}
		}
		if diff := cmp.Diff(failed, l.FailuresSinceSuccess()); diff != "" {
			t.Error(diff)
		}
	}
	want(0, "")
	end("ok", run.Succeeded, false)
	end("one", run.Failed, false)
	end("two", run.Failed, false)
	want(2, "two")
	for i := range 3 * ledger.MaxRecent {
		end(fmt.Sprint("aborted-", i), run.Aborted, false)
	}
	want(2, "two")
	end("dry", run.Succeeded, true)
	end("three", run.Failed, false)
	want(3, "three")
	l.Last.Failures = nil // as an older agent wrote it
	want(1, "three")
	end("good", run.Succeeded, false)
	want(0, "")
	end("aborted", run.Aborted, false)
	want(0, "")
}

func TestTokensAreCapped(t *testing.T) {
	l := ledger.Ledger{}
	for i := range 250 {
		l = l.WithToken(fmt.Sprint(i))
	}
	if len(l.Tokens) != ledger.MaxTokens || l.KnowsToken("149") || !l.KnowsToken("150") || !l.KnowsToken("249") {
		t.Errorf("%d, %s", len(l.Tokens), l.Tokens[0])
	}
}

// store is what the agent does with a ledger that grew: the archive first, then
// the head. It may die between the two.
type store struct {
	head    ledger.Ledger
	archive []ledger.Entry
}

func (s *store) put(l ledger.Ledger, dies bool) {
	head, batch := l.Overflow()
	if len(batch) > 0 {
		s.archive = ledger.AppendArchive(s.archive, batch)
	}
	if !dies {
		s.head = head
	}
}

// What goes to the archive is neither lost nor doubled, wherever the agent dies.
func TestArchiveLosesAndDoublesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s store
		next := 0
		for range rapid.IntRange(1, 60).Draw(t, "writes") {
			l, before := s.head, next
			for range rapid.IntRange(1, 8).Draw(t, "entries") {
				reason := rapid.SampledFrom([]string{run.ReasonPaused, run.ReasonBusy, run.ReasonSkip}).Draw(t, "reason")
				l = l.End(slotOf(next), run.Skipped, reason, ledger.Cause{}, slotOf(next).At)
				next++
			}
			dies := rapid.Bool().Draw(t, "dies")
			s.put(l, dies)
			if dies { // the same is decided again
				next = before
				continue
			}
			if len(s.head.Recent) > ledger.MaxRecent {
				t.Fatalf("the head holds %d entries", len(s.head.Recent))
			}
		}
		var all []ledger.Entry
		for _, e := range append(append([]ledger.Entry(nil), s.archive...), s.head.Recent...) {
			all = ledger.AppendArchive(all, []ledger.Entry{e}) // entries that stand in both after a crash are one
		}
		if len(s.archive) > ledger.MaxLedgerEntries-ledger.MaxRecent {
			t.Fatalf("the archive holds %d entries", len(s.archive))
		}
		if len(s.archive) == ledger.MaxLedgerEntries-ledger.MaxRecent {
			return // the oldest have gone
		}
		counted, last := int64(0), time.Time{}
		for _, e := range all {
			if !e.Slot.After(last) {
				t.Fatalf("slot %s appears twice, or out of order", e.Slot)
			}
			last = *e.Slot
			if e.Last != nil {
				last = *e.Last
			}
			counted += max(e.Count, 1)
		}
		if counted != s.head.Totals[run.Skipped] || counted != int64(next) {
			t.Fatalf("%d slots stand there, %d were ended, the total is %d", counted, next, s.head.Totals[run.Skipped])
		}
	})
}

func TestABurstOfEntriesGoesToTheArchiveAtOnce(t *testing.T) {
	l := ledger.Ledger{}
	for i := range 500 {
		l = l.End(slotOf(i), run.Skipped, []string{"a", "b"}[i%2], ledger.Cause{}, coretest.Clock("12:00"))
	}
	head, batch := l.Overflow()
	if len(head.Recent) > ledger.MaxRecent || len(head.Recent)+len(batch) != 500 {
		t.Errorf("%d stay, %d go", len(head.Recent), len(batch))
	}
	if got := ledger.AppendArchive(nil, batch); len(got) != ledger.MaxLedgerEntries-ledger.MaxRecent || !got[len(got)-1].Slot.Equal(*batch[len(batch)-1].Slot) {
		t.Errorf("%d are kept", len(got))
	}
	if again, none := head.Overflow(); none != nil || cmp.Diff(head, again, cmpopts.EquateEmpty()) != "" {
		t.Error("what fits overflows again")
	}
}

func TestLabelTaken(t *testing.T) {
	l := ledger.Ledger{Labels: map[string]ledger.LabelState{"k": {TargetUID: "t", Claimed: 3}, "j": {TargetUID: "t", Claimed: 2}, "i": {TargetUID: "t2", Claimed: 3}}}
	r := func(key string) run.Request {
		return run.Request{Kind: run.ByLabel, Label: key, TargetUID: "t", Ordinal: 3}
	}
	taken := l.LabelTaken(r("k")).LabelTaken(r("k")).LabelTaken(r("unknown")).LabelTaken(r("j")).LabelTaken(r("i"))
	if !taken.Labels["k"].Removed || taken.Labels["j"].Removed || taken.Labels["i"].Removed || l.Labels["k"].Removed || len(taken.Labels) != 3 {
		t.Errorf("%+v, before %+v", taken.Labels, l.Labels)
	}
}

func TestWhyTheAPIServerTakesNoRunStandsOnItsClaimAlone(t *testing.T) {
	l := ledger.Ledger{}.Claim("a", slotOf(1), "").Claim("b", slotOf(2), "")
	refused := l.Refuse("b", "quota")
	if refused.Open[0].Refused != "" || refused.Open[1].Refused != "quota" || l.Open[1].Refused != "" {
		t.Errorf("%+v, before %+v", refused.Open, l.Open)
	}
	if again := refused.Refuse("b", ""); again.Open[1].Refused != "" {
		t.Errorf("it is taken now: %+v", again.Open[1])
	}
	if closed := refused.Close("b", run.Missed, run.ReasonRefused, nil, coretest.Clock("12:00")); closed.Recent[0].Refused != "" {
		t.Errorf("it has ended: %+v", closed.Recent[0])
	}
}

func TestAnEntryInTheArchiveIsTheSameByItsRunItsSlotAndItsEnd(t *testing.T) {
	now := coretest.Clock("12:00")
	entry := ledger.Entry{Slot: slotOf(1).Slot, Run: "a", At: now}
	for name, c := range map[string]struct {
		edit func(*ledger.Entry)
		want int
	}{
		"the same":     {func(*ledger.Entry) {}, 1},
		"another run":  {func(e *ledger.Entry) { e.Run = "b" }, 2},
		"another slot": {func(e *ledger.Entry) { e.Slot = slotOf(2).Slot }, 2},
		"no slot":      {func(e *ledger.Entry) { e.Slot = nil }, 2},
		"another end":  {func(e *ledger.Entry) { e.At = now.Add(time.Second) }, 2},
	} {
		other := entry
		c.edit(&other)
		if got := len(ledger.AppendArchive([]ledger.Entry{entry}, []ledger.Entry{other})); got != c.want {
			t.Errorf("%s: %d are kept, want %d", name, got, c.want)
		}
	}
}

func TestTheHeadOverflowsInBatches(t *testing.T) {
	entries := func(n int) ledger.Ledger {
		return ledger.Ledger{Recent: make([]ledger.Entry, n)}
	}
	for n, stay := range map[int]int{ledger.MaxRecent: ledger.MaxRecent, ledger.MaxRecent + 1: ledger.MaxRecent + 1 - ledger.ArchiveBatch, ledger.MaxRecent + ledger.ArchiveBatch: ledger.MaxRecent, ledger.MaxRecent + ledger.ArchiveBatch + 1: ledger.MaxRecent + 1 - ledger.ArchiveBatch} {
		head, batch := entries(n).Overflow()
		if len(head.Recent) != stay || len(head.Recent)+len(batch) != n {
			t.Errorf("of %d entries %d stay and %d go, want %d to stay", n, len(head.Recent), len(batch), stay)
		}
	}
}
