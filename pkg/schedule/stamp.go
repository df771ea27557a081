package schedule

import (
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// stamp is a time as people and iCalendar write it: an instant if it has a
// zone, else a wall-clock time or a whole day wherever it is read.
type stamp struct {
	second   int64
	zoned    bool
	wholeDay bool
}

// parseStamp reads dates, wall-clock times and instants in the basic form of
// iCalendar or the extended one of RFC 3339; "" means no fault.
func parseStamp(text string) (stamp, string) {
	text = strings.ToUpper(strings.TrimSpace(text))
	for _, form := range []struct {
		layout string
		kind   stamp
	}{
		{"20060102", stamp{wholeDay: true}},
		{"20060102T150405", stamp{}},
		{"20060102T150405Z", stamp{zoned: true}},
		{time.DateOnly, stamp{wholeDay: true}},
		{"2006-01-02T15:04:05", stamp{}},
		{"2006-01-02T15:04", stamp{}},
		{time.RFC3339, stamp{zoned: true}},
	} {
		at, err := time.Parse(form.layout, text)
		if err == nil && at.Year() >= 1 && at.Nanosecond() == 0 {
			form.kind.second = at.Unix()
			return form.kind, ""
		}
	}
	return stamp{}, "is not a time; write it like 2026-03-08T02:00:00 on the clocks of timezone, or 2026-03-08T02:00:00Z"
}

// local is the wall-clock time in a zone; a whole day begins at 00:00.
func (s stamp) local(z *zone) int64 {
	if s.zoned {
		return s.second + z.at(s.second).offset
	}
	return s.second
}

// instant is when a wall clock in a zone first shows the time.
func (s stamp) instant(z *zone) int64 {
	if s.zoned {
		return s.second
	}
	return z.instant(s.second)
}

// lastLocal is the last wall-clock second that an inclusive bound covers: all
// of a whole day.
func (s stamp) lastLocal() int64 {
	if s.wholeDay {
		return s.second + civil.DaySeconds - 1
	}
	return s.second
}
