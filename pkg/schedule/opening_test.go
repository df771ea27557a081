package schedule

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// How far windows are followed at once decides how much work a verdict is: those that repeat every
// week up to the next change of clocks, and many that touch as runs.
func TestHowFarWindowsAreFollowedAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		window Window
		weekly bool
		runs   int // in a day; 0: each window by itself
		daily  bool
	}{
		"days of a week":                        {Window{Days: []string{"Sat"}, Start: "22:00", End: "06:00"}, true, 0, false},
		"a rule of every week":                  {Window{RRule: "FREQ=WEEKLY;BYDAY=SA", Duration: "8h"}, true, 0, false},
		"a rule of every other week":            {Window{RRule: "FREQ=WEEKLY;INTERVAL=2;BYDAY=SA", Duration: "8h"}, false, 0, false},
		"dates":                                 {Window{Cron: "0 2 1 * *", Duration: "8h"}, false, 0, false},
		"twenty-four in a day":                  {Window{Cron: "0 * * * *", Duration: "1h"}, true, 0, false},
		"every ten minutes, and they touch":     {Window{Cron: "*/10 * * * *", Duration: "10m"}, true, 1, false},
		"every ten minutes, and they do not":    {Window{Cron: "*/10 * * * *", Duration: "9m"}, true, 144, false},
		"every ten minutes of two parts of day": {Window{Cron: "*/10 1-4,8-11 * * *", Duration: "10m"}, true, 2, false},
		"every other hour, and they touch":      {Window{RRule: "FREQ=HOURLY;INTERVAL=2", Duration: "2h"}, true, 0, true},
		"every other hour, and they do not":     {Window{RRule: "FREQ=HOURLY;INTERVAL=2", Duration: "1h"}, true, 0, false},
		"every half hour, and they touch":       {Window{RRule: "FREQ=MINUTELY;INTERVAL=30", Duration: "30m"}, true, 0, true},
		"hours that a week has no whole number": {Window{RRule: "FREQ=HOURLY;INTERVAL=5", Duration: "5h"}, false, 0, true},
	} {
		w, all, err := c.window.source(mustUTC())
		if err != nil || all {
			t.Fatalf("%s: %v, %v", name, all, err)
		}
		if w.weekly != c.weekly || len(w.runs) != c.runs || w.daily != c.daily {
			t.Errorf("%s: weekly %v, %d runs, daily %v", name, w.weekly, len(w.runs), w.daily)
		}
	}
}

// counted is a clock that counts how often it is asked.
type counted struct {
	clock
	times *int
}

func (c counted) Next(local int64) (int64, bool) { *c.times++; return c.clock.Next(local) }

func (c counted) Previous(local int64) (int64, bool) { *c.times++; return c.clock.Previous(local) }

// Windows that together never close say so after a few changes of clocks, and not after those of
// 400 years.
func TestWhatNeverClosesIsFoundAfterAFewChangesOfClocks(t *testing.T) {
	zone, err := loadZone("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	times := 0
	var sources []source
	for _, window := range []Window{{Days: []string{"Mon", "Tue", "Wed", "Thu", "Fri"}, Start: "00:00", End: "24:00"}, {Days: []string{"Sat", "Sun"}, Start: "00:00", End: "24:00"}} {
		w, _, err := window.source(zone)
		if err != nil {
			t.Fatal(err)
		}
		w.opening.clock = counted{w.opening.clock, &times}
		sources = append(sources, w)
	}
	u := newUnion(sources...)
	if until := u.until(1785839400, civil.Never, newEffort(timelineEffort)); until != civil.Never || times > 200 {
		t.Errorf("it closes at %d, found in %d steps", until, times)
	}
}
