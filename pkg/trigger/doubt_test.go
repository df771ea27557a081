package trigger_test

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

func TestWhatADoubtCovers(t *testing.T) {
	from, until := coretest.Clock("02:00"), coretest.Clock("03:00")
	for name, c := range map[string]struct {
		doubt trigger.Doubt
		at    string
		want  bool
	}{
		"there was none":                  {trigger.Doubt{}, "02:00", false},
		"its begin":                       {trigger.Doubt{From: from, Until: until}, "02:00", true},
		"not its end":                     {trigger.Doubt{From: from, Until: until}, "03:00", false},
		"nothing before it":               {trigger.Doubt{From: from, Until: until}, "01:59:59", false},
		"all that comes while it lasts":   {trigger.Doubt{From: from}, "09:00", true},
		"nothing, where clocks went back": {trigger.Doubt{From: until, Until: from}, "02:30", false},
	} {
		if got := c.doubt.Covers(coretest.Clock(c.at)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// While the clock is in doubt nothing starts and nothing is recorded: a slot whose deadline passes
// then is missed by it.
func TestASlotWhoseDeadlinePassedInDoubtIsMissedByTheClock(t *testing.T) {
	hourly := scheduled("0 * * * *")
	doubted := func(from, until string) edit {
		return func(f *trigger.Facts) {
			f.Doubted = trigger.Doubt{From: coretest.Clock(from), Until: coretest.Clock(until)}
		}
	}
	check(t, []decideCase{
		{"missed by the clock", coretest.Facts("02:50", hourly, at("01:00"), deadline("10m"), doubted("01:50", "02:50")), []string{"02:00 Missed(clock)"}},
		{"also where it was not ready", coretest.Facts("02:50", hourly, at("01:00"), deadline("10m"), doubted("01:50", "02:50"), coretest.NotReady(run.ReasonTarget)), []string{"02:00 Missed(clock)"}},
		{"not where its deadline passed before", coretest.Facts("02:50", hourly, at("01:00"), deadline("10m"), doubted("02:20", "02:50")), []string{"02:00 Missed(deadline)"}},
		{"nor where it may still start", coretest.Facts("02:05", hourly, at("01:00"), deadline("10m"), doubted("01:50", "02:04")), []string{"claim slot 02:00"}},
		{"a slot in a pause is skipped by that", coretest.Facts("02:50", hourly, at("01:00"), deadline("10m"), doubted("01:50", "02:50"), coretest.Paused(schedule.Pause{On: true})), []string{"02:00 Skipped(paused)"}},
	})
}

// A run that a pause or a doubt of the clock held back may not have been looked at since: if its window
// is closed it waits for that, and keeps no slot busy.
func TestARunThatWasHeldBackWaitsForItsWindowNow(t *testing.T) {
	hourly := scheduled("0 * * * *")
	closed := gated(t, schedule.PolicySpec{Strategy: schedule.Restrictive})
	held := func(waiting string, edits ...func(*trigger.ActiveRun)) edit {
		l := trigger.ActiveRun{Request: coretest.SlotAt("01:00"), Phase: run.Pending, Waiting: waiting}
		for _, e := range edits {
			e(&l)
		}
		return live(l)
	}
	outside := func(l *trigger.ActiveRun) { l.Name, l.Request.OutsideWindow = "asked", true }
	first := "supersede " + coretest.NameOf(coretest.SlotAt("01:00"))
	check(t, []decideCase{
		{"by a pause", coretest.Facts("02:00", hourly, at("01:00"), closed, held(run.WaitPause)), []string{"claim slot 02:00", first}},
		{"by a doubt of the clock", coretest.Facts("02:00", hourly, at("01:00"), closed, held(run.WaitClock)), []string{"claim slot 02:00", first}},
		{"an open window: it is about to begin", coretest.Facts("02:00", hourly, at("01:00"), held(run.WaitPause)), []string{"02:00 Skipped(busy)"}},
		{"it passes its window", coretest.Facts("02:00", hourly, at("01:00"), closed, held(run.WaitPause, outside)), []string{"02:00 Skipped(busy)"}},
		{"what waits for another run is busy", coretest.Facts("02:00", hourly, at("01:00"), closed, held(run.WaitLock)), []string{"02:00 Skipped(busy)"}},
	})
}

func TestARunInDoubtOfTheClockThatNobodyApprovedWaitsForApproval(t *testing.T) {
	j := run.Journal{Phase: run.Pending, Waiting: run.WaitClock}
	asks := run.Run{Spec: plan.Spec{RequiresApproval: true}}
	if got := trigger.ActiveRunOf(asks, j).Waiting; got != run.WaitApproval {
		t.Errorf("it waits for %q", got)
	}
	j.Approved = &intent.Actor{Name: "jane"}
	if got := trigger.ActiveRunOf(asks, j).Waiting; got != run.WaitClock {
		t.Errorf("once it is approved it waits for %q", got)
	}
}
