package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// A line is: zone | schedule | after (local or Z) | the slots that follow, in
// UTC, a note behind each where there is one. A last "none" says that there are
// no more.
func TestSlotsWhereClocksChange(t *testing.T) {
	for _, line := range []string{
		// gap: at the first valid instant after it
		"America/New_York | 30 2 * * *      | 2026-03-07T08:00Z | 2026-03-08T07:00Z gap, 2026-03-09T06:30Z",
		"America/New_York | 0,30 2 * * *    | 2026-03-08T06:59Z | 2026-03-08T07:00Z gap, 2026-03-09T06:00Z",
		"America/New_York | 0 2,3 * * *     | 2026-03-08T06:59Z | 2026-03-08T07:00Z gap, 2026-03-09T06:00Z",
		"America/New_York | 0 */2 * * *     | 2026-03-08T04:59Z | 2026-03-08T05:00Z, 2026-03-08T07:00Z gap, 2026-03-08T08:00Z",
		// overlap: once, at the first
		"America/New_York | 30 1 * * *      | 2026-11-01T04:00Z | 2026-11-01T05:30Z overlap, 2026-11-02T06:30Z",
		"America/New_York | 30 1 * * *      | 2026-11-01T05:30Z | 2026-11-02T06:30Z",
		// hours that cover all 24 follow real time
		"America/New_York | 15 * * * *      | 2026-03-08T05:59Z | 2026-03-08T06:15Z, 2026-03-08T07:15Z",
		"America/New_York | 15 */1 * * *    | 2026-11-01T04:59Z | 2026-11-01T05:15Z overlap, 2026-11-01T06:15Z overlap, 2026-11-01T07:15Z",
		"America/New_York | 15 0-23 * * *   | 2026-11-01T04:59Z | 2026-11-01T05:15Z overlap, 2026-11-01T06:15Z overlap, 2026-11-01T07:15Z",
		"America/New_York | FREQ=HOURLY     | 2026-11-01T04:59Z | 2026-11-01T05:00Z overlap, 2026-11-01T06:00Z overlap, 2026-11-01T07:00Z",
		// a day that is missing from the calendar
		"Pacific/Apia     | 0 2 * * *       | 2011-12-29T11:00Z | 2011-12-29T12:00Z, 2011-12-30T12:00Z",
		// 29 February, over the missing leap year 2100
		"UTC              | 0 2 29 2 *      | 2096-03-01T00:00Z | 2104-02-29T02:00Z",
		"Europe/Berlin    | 2026-05-01T12:00:00+02:00 | 2026-01-01T00:00Z | 2026-05-01T10:00Z, none",
	} {
		part := strings.Split(line, "|")
		for i := range part {
			part[i] = strings.TrimSpace(part[i])
		}
		t.Run(part[0]+" "+part[1]+" after "+part[2], func(t *testing.T) {
			s, err := schedule.Parse(specOf(part[0], part[1]))
			if err != nil {
				t.Fatal(err)
			}
			after := instant(t, part[2])
			for _, want := range strings.Split(part[3], ", ") {
				slot, ok := s.Next(after)
				if got := describe(slot, ok); got != want {
					t.Fatalf("after %s: got %q, want %q", after, got, want)
				}
				after = slot.At
			}
		})
	}
}

func specOf(zone, text string) schedule.Spec {
	spec := schedule.Spec{Timezone: zone}
	switch {
	case strings.Contains(text, "FREQ="):
		spec.RRule = text
	case strings.Contains(text, "T") && strings.HasPrefix(text, "2"):
		spec.At = text
	default:
		spec.Cron = text
	}
	return spec
}

func describe(slot schedule.Slot, ok bool) string {
	if !ok {
		return "none"
	}
	return strings.TrimSpace(slot.At.Format("2006-01-02T15:04Z07:00") + " " + slot.Note)
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	for _, layout := range []string{"2006-01-02T15:04Z07:00", time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}
	t.Fatalf("%q is no instant", text)
	return time.Time{}
}
