package ledger_test

import (
	"encoding/json"
	"fmt"
	"slices"
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
	want := []string{"00:00 Missed(deadline) ×5 ", "00:05 Missed(superseded) ×0 ", "00:06 Skipped(paused) ×0 ", "00:07 Skipped(paused) ×0 ", "00:08 Missed(deadline) ×3 b"}
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

// What had a run that never started folds as what had none, but for what people decided and where
// another slot is between.
func TestEntriesOfRunsThatNeverStartedFold(t *testing.T) {
	now := coretest.Clock("12:00")
	unstarted := func(l ledger.Ledger, slot int, result run.Result, reason string, by *intent.Actor) ledger.Ledger {
		r := run.Run{Name: fmt.Sprint("run-", slot), Request: slotOf(slot)}
		if _, open := l.OpenEntry(r.Name); !open {
			l = l.Claim(r.Name, r.Request, "")
		}
		j := run.Journal{End: &run.End{Phase: run.Aborted, Result: result, Reason: reason, Message: r.Name, By: by}, FinishedAt: &now}
		return l.CloseRun(r, j, now)
	}
	missed := func(l ledger.Ledger, slot int) ledger.Ledger {
		return unstarted(l, slot, run.Missed, run.ReasonWindow, nil)
	}
	for name, c := range map[string]struct {
		ends func(l ledger.Ledger) ledger.Ledger
		want []string
	}{
		"one after the other": {func(l ledger.Ledger) ledger.Ledger { return missed(missed(missed(l, 1), 2), 3) }, []string{"Missed(window) run-3 ×3 from 1 to 3"}},
		"with one that had none after them": {func(l ledger.Ledger) ledger.Ledger {
			return missed(missed(l, 1), 2).End(slotOf(3), run.Missed, run.ReasonWindow, ledger.Cause{}, now)
		}, []string{"Missed(window) run-2 ×3 from 1 to 3"}},
		"with one that had none before them": {func(l ledger.Ledger) ledger.Ledger {
			return missed(l.End(slotOf(1), run.Missed, run.ReasonWindow, ledger.Cause{}, now), 2)
		}, []string{"Missed(window) run-2 ×2 from 1 to 2"}},
		"another reason": {func(l ledger.Ledger) ledger.Ledger {
			return unstarted(missed(l, 1), 2, run.Missed, run.ReasonSuperseded, nil)
		}, []string{"Missed(window) run-1", "Missed(superseded) run-2"}},
		"what people decided": {func(l ledger.Ledger) ledger.Ledger {
			jane := &intent.Actor{Name: "jane"}
			return unstarted(unstarted(l, 1, run.Skipped, run.ReasonRejected, jane), 2, run.Skipped, run.ReasonRejected, jane)
		}, []string{"Skipped(rejected) run-1", "Skipped(rejected) run-2"}},
		"a slot between is open": {func(l ledger.Ledger) ledger.Ledger {
			return missed(missed(l.Claim("open", slotOf(2), ""), 1), 3)
		}, []string{"Missed(window) run-1", "Missed(window) run-3"}},
		"a slot between has ended before": {func(l ledger.Ledger) ledger.Ledger {
			return missed(missed(l.End(slotOf(2), run.Skipped, run.ReasonSkip, ledger.Cause{}, now), 1), 3)
		}, []string{"Skipped(skip) ", "Missed(window) run-1", "Missed(window) run-3"}},
		"the earlier one ends later": {func(l ledger.Ledger) ledger.Ledger { return missed(missed(l, 2), 1) }, []string{"Missed(window) run-2", "Missed(window) run-1"}},
		"requests without a slot": {func(l ledger.Ledger) ledger.Ledger {
			return l.NotRun("a", run.Request{Kind: run.ByToken}, run.ReasonRefused, "no", now).NotRun("b", run.Request{Kind: run.ByToken}, run.ReasonRefused, "no", now)
		}, []string{"Skipped(refused) a", "Skipped(refused) b"}},
	} {
		var got []string
		for _, e := range c.ends(ledger.Ledger{}).Recent {
			line := fmt.Sprintf("%s(%s) %s", e.Result, e.Reason, e.Run)
			if e.Count > 0 {
				line += fmt.Sprintf(" ×%d from %s to %s", e.Count, number(e.First), number(e.Last))
			}
			if got = append(got, line); e.Outcome != nil && e.Slot != nil && e.Outcome.Message != e.Run {
				t.Errorf("%s: the outcome of %s says %q", name, e.Run, e.Outcome.Message)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// number is the slot that an instant is.
func number(at *time.Time) string {
	for i := range 10 {
		if slotOf(i).Slot.Equal(*at) {
			return fmt.Sprint(i)
		}
	}
	return at.String()
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
	if l.Last.Failures != nil {
		t.Errorf("none is kept as %+v", l.Last.Failures)
	}
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
		if len(s.archive) > ledger.MaxArchived {
			t.Fatalf("the archive holds %d entries", len(s.archive))
		}
		if len(s.archive) == ledger.MaxArchived {
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
	if got := ledger.AppendArchive(nil, batch); len(got) != ledger.MaxArchived || !got[len(got)-1].Slot.Equal(*batch[len(batch)-1].Slot) {
		t.Errorf("%d are kept", len(got))
	}
	if again, none := head.Overflow(); none != nil || cmp.Diff(head, again, cmpopts.EquateEmpty()) != "" {
		t.Error("what fits overflows again")
	}
}

// However many ended, the newest 200 can be read, with those that stand in both objects once.
func TestTheNewestEntriesAreKept(t *testing.T) {
	var s store
	for i := range 400 {
		s.put(s.head.End(slotOf(i), run.Skipped, []string{"a", "b"}[i%2], ledger.Cause{}, slotOf(i).At), false)
		kept := ledger.Kept(s.archive, s.head.Recent)
		if want := min(i+1, 200); len(kept) != want || !kept[len(kept)-1].Slot.Equal(*slotOf(i).Slot) || !kept[0].Slot.Equal(*slotOf(i + 1 - want).Slot) {
			t.Fatalf("of %d entries %d are kept, want %d", i+1, len(kept), want)
		}
	}
	twice := append(slices.Clone(s.archive), s.head.Recent[:3]...)
	if kept := ledger.Kept(twice, s.head.Recent); len(kept) != 200 {
		t.Errorf("%d are kept", len(kept))
	}
}

// An archive that the API server would refuse would hold its plan up.
func TestAnArchiveFitsIntoAnObject(t *testing.T) {
	var archive []ledger.Entry
	for i := range 300 {
		many := make([]ledger.Slept, 40)
		for j := range many {
			many[j] = ledger.Slept{Target: strings.Repeat("t", 63), Executor: "workload", Kind: "Deployment", Resources: i, UnitHours: map[string]float64{"cpu": 1.5, "memoryGiB": 2.5}}
		}
		archive = ledger.AppendArchive(archive, []ledger.Entry{{Slot: slotOf(i).Slot, At: slotOf(i).At, Result: run.Ran, Slept: many}})
	}
	b, err := json.Marshal(archive)
	if err != nil || len(b) > 900<<10 || len(b) < 800<<10 || !archive[len(archive)-1].Slot.Equal(*slotOf(299).Slot) {
		t.Errorf("%d entries of %d bytes, %v", len(archive), len(b), err)
	}
}

func TestAnArchiveHoldsEntriesUpToItsBound(t *testing.T) {
	entry := func(i, bytes int) ledger.Entry {
		e := ledger.Entry{At: slotOf(i).At}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		e.Reason = strings.Repeat("x", bytes-len(text)-len(`"reason":"",`))
		return e
	}
	const half = 450 << 10
	for bytes, want := range map[int]int{half - 1: 2, half: 1} { // a comma follows each
		if got := len(ledger.AppendArchive([]ledger.Entry{entry(1, bytes)}, []ledger.Entry{entry(2, half-1)})); got != want {
			t.Errorf("with one of %d bytes it holds %d, want %d", bytes, got, want)
		}
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

func TestTheClaimsAndTheNumberOfALabelsValue(t *testing.T) {
	asked := run.Request{Kind: run.ByLabel, Label: "k", Value: "v", TargetUID: "t", Ordinal: 3}
	slot := coretest.SlotAt("02:00")
	l := ledger.Ledger{Labels: map[string]ledger.LabelState{"k": {TargetUID: "t", Claimed: 3, Value: "v"}}}.
		Claim("slot", slot, "").Claim("one", asked, "t").Claim("two", asked, "t")
	l.Open = append(l.Open, ledger.Entry{Run: "of an older agent"})
	for name, c := range map[string]struct {
		edit   func(*run.Request)
		runs   []string
		number int64
	}{
		"the same":                       {func(*run.Request) {}, []string{"one", "two"}, 3},
		"under another number":           {func(r *run.Request) { r.Ordinal = 9 }, []string{"one", "two"}, 3},
		"another value":                  {func(r *run.Request) { r.Value = "w" }, nil, 0},
		"another label":                  {func(r *run.Request) { r.Label = "j" }, nil, 0},
		"another object":                 {func(r *run.Request) { r.TargetUID = "u" }, nil, 0},
		"a request that is for no label": {func(r *run.Request) { r.Kind = run.ByToken }, nil, 0},
	} {
		r := asked
		c.edit(&r)
		var runs []string
		for _, e := range l.OpenFor(r) {
			runs = append(runs, e.Run)
		}
		if got := l.NumberOf(r); got != c.number || !slices.Equal(runs, c.runs) {
			t.Errorf("%s: claims %q, number %d; want %q, %d", name, runs, got, c.runs, c.number)
		}
	}
}

func TestWhatQualifiesACauseIsNotPushedOut(t *testing.T) {
	jane := intent.Actor{Name: "jane", Verified: true}
	if got := ledger.CauseBy(jane, "skip").But("as far as is known"); got.Said != "skip by jane, as far as is known" || got.Actor != jane {
		t.Errorf("%+v", got)
	}
	jane.Reason = strings.Repeat("x", 9999)
	long := ledger.CauseBy(jane, "skip").But("as far as is known").Said
	if len(long) != 256 || !strings.HasPrefix(long, "skip by jane: xxx") || !strings.HasSuffix(long, "x…, as far as is known") {
		t.Errorf("%d bytes: %q", len(long), long)
	}
}

func TestWhetherTwoCausesAreOne(t *testing.T) {
	by := func(name string, checked bool, reason string) *ledger.Cause {
		return new(ledger.CauseBy(intent.Actor{Name: name, Verified: checked, Reason: reason}, "paused"))
	}
	for _, c := range []struct {
		name string
		a, b *ledger.Cause
		want bool
	}{
		{"the same", by("jane", true, "CHG-1"), by("jane", true, "CHG-1"), true},
		{"a name that only one has checked", by("jane", true, "CHG-1"), by("jane", false, "CHG-1"), true},
		{"another name", by("jane", true, "CHG-1"), by("joe", true, "CHG-1"), false},
		{"another reason", by("jane", true, "CHG-1"), by("jane", true, "CHG-2"), false},
		{"other people, in the same words", &ledger.Cause{Said: "paused", Actor: intent.Actor{Name: "jane"}}, &ledger.Cause{Said: "paused"}, false},
		{"only one is known", by("jane", true, "CHG-1"), nil, false},
		{"an empty one is known", &ledger.Cause{}, nil, false},
		{"none is known", nil, nil, true},
	} {
		if c.a.Same(c.b) != c.want || c.b.Same(c.a) != c.want {
			t.Errorf("%s: want %t", c.name, c.want)
		}
	}
}

// Before an earlier ledger was lost a run had the number that a claim has taken again.
func TestAClaimOfANumberThatAnotherValueHadIsTakenBack(t *testing.T) {
	had := run.Request{Kind: run.ByLabel, Label: "k", Value: "v", Owner: "argocd", TargetUID: "t", Ordinal: 3}
	now := had
	now.Value = "w"
	l := ledger.Ledger{Labels: map[string]ledger.LabelState{"k": {TargetUID: "t", Claimed: 3, Value: "w", Earned: 7}, "j": {TargetUID: "t", Claimed: 1}}}.Claim("run", now, "t")
	got := l.TakeBack("run", had)
	want := map[string]ledger.LabelState{"k": {TargetUID: "t", Claimed: 3, Value: "v", Owner: "argocd", Removed: true, Earned: 7}, "j": {TargetUID: "t", Claimed: 1}}
	if diff := cmp.Diff(want, got.Labels); diff != "" || len(got.Open) > 0 || len(got.Recent) > 0 {
		t.Errorf("(-want +got) %s, open %v, closed %v", diff, got.Open, got.Recent)
	}
	if len(l.Open) != 1 || l.Labels["k"].Value != "w" {
		t.Errorf("the ledger that was given has changed: %+v", l)
	}
	if got := (ledger.Ledger{}).TakeBack("run", had).Labels["k"].Claimed; got != 3 {
		t.Errorf("without labels it knows number %d", got)
	}
}
