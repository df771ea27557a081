package transition_test

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/transition"
)

// hour is an instant of one day.
func hour(h int) time.Time { return time.Date(2026, 12, 1, h, 0, 0, 0, time.UTC) }

// ended is the record of a target whose operation ended at an hour; 0: it has not.
func ended(target string, op hibernate.Operation, s hibernate.State, h int) hibernate.Record {
	r := hibernate.Record{Target: target, Operation: op, State: s}
	if h > 0 {
		r.FinishedAt = new(hour(h))
	}
	return r
}

func TestSinceWhenTargetsSleep(t *testing.T) {
	sleeps := func(target string, h int) hibernate.Record {
		return ended(target, hibernate.Shutdown, hibernate.Asleep, h)
	}
	for name, c := range map[string]struct {
		records []hibernate.Record
		closed  []string
		want    string
	}{
		"there are no targets":                    {},
		"one sleeps":                              {records: []hibernate.Record{sleeps("a", 3)}, want: "2026-12-01T03:00:00Z"},
		"of several it is the first":              {records: []hibernate.Record{sleeps("a", 3), sleeps("b", 2), sleeps("c", 4)}, want: "2026-12-01T02:00:00Z"},
		"one is not asleep yet":                   {records: []hibernate.Record{ended("a", hibernate.Shutdown, hibernate.Running, 1), sleeps("b", 2)}, want: "2026-12-01T02:00:00Z"},
		"one was given up":                        {records: []hibernate.Record{ended("a", hibernate.Shutdown, hibernate.Failed, 1)}},
		"nobody wrote when one fell asleep":       {records: []hibernate.Record{sleeps("a", 0), sleeps("b", 5)}, want: "2026-12-01T05:00:00Z"},
		"one is awake, and its record is closed":  {records: []hibernate.Record{sleeps("a", 1), sleeps("b", 2)}, closed: []string{"a"}, want: "2026-12-01T02:00:00Z"},
		"all are awake, and all records are gone": {records: []hibernate.Record{sleeps("a", 1)}, closed: []string{"a"}},
	} {
		if got := transition.AsleepSince(c.records, c.closed); got != c.want {
			t.Errorf("%s: since %q, want %q", name, got, c.want)
		}
	}
}

func TestWhenTheLastTargetWoke(t *testing.T) {
	awake := func(h int) hibernate.Record { return ended("a", hibernate.Wake, hibernate.Awake, h) }
	for name, c := range map[string]struct {
		records []hibernate.Record
		want    time.Time
	}{
		"there are no targets":               {},
		"one is awake":                       {[]hibernate.Record{awake(6)}, hour(6)},
		"of several it is the last":          {[]hibernate.Record{awake(6), awake(8), awake(7)}, hour(8)},
		"one still wakes":                    {[]hibernate.Record{awake(6), ended("b", hibernate.Wake, hibernate.Running, 7)}, time.Time{}},
		"one falls asleep again":             {[]hibernate.Record{ended("b", hibernate.Shutdown, hibernate.Awake, 7), awake(6)}, time.Time{}},
		"one sleeps":                         {[]hibernate.Record{ended("b", hibernate.Shutdown, hibernate.Asleep, 2)}, time.Time{}},
		"nobody wrote when it was awake":     {[]hibernate.Record{awake(0), awake(6)}, time.Time{}},
		"one failed to wake, and gave it up": {[]hibernate.Record{awake(6), ended("b", hibernate.Wake, hibernate.Failed, 7)}, time.Time{}},
	} {
		if got := transition.WokenAt(c.records); !got.Equal(c.want) {
			t.Errorf("%s: at %s, want %s", name, got, c.want)
		}
	}
}
