package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/teambition/rrule-go"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Where no clocks change, every part of a rule means what it means to rrule-go.
func TestRRulesAgreeWithRRuleGoInUTC(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 2026))
	fired, silent := 0, 0
	for range draws(800, 20_000) {
		rule, start := drawRule(r)
		until := start.AddDate(40, 0, 0)
		if strings.Contains(rule, "HOURLY") || strings.Contains(rule, "MINUTELY") {
			until = start.AddDate(0, 3, 0) // rrule-go walks
		}
		s, err := schedule.Parse(schedule.Spec{RRule: rule, DTStart: start.Format("2006-01-02T15:04:05")})
		if subDaily := strings.Contains(rule, "HOURLY") || strings.Contains(rule, "MINUTELY"); subDaily {
			if slot, ok := nextOf(s, start); !ok || slot.At.After(until) {
				continue // rrule-go may not come back
			}
		}
		want, refused := expandWithRRuleGo(rule, start, until, 12)
		if refused != nil {
			continue // rrule-go bounds some lists more tightly
		}
		if err != nil {
			if strings.Contains(err.Error(), "can never fire") && len(want) == 0 {
				silent++
				continue
			}
			t.Fatalf("%s from %s: %v; rrule-go: %v", rule, start, err, want)
		}
		if got := firstSlots(s, start.Add(-time.Second), until, 12); !cmp.Equal(got, want) {
			t.Fatalf("%s from %s: %s", rule, start, cmp.Diff(want, got))
		}
		fired++
	}
	t.Logf("%d rules agree, %d more never fire", fired, silent)
}

func nextOf(s *schedule.Schedule, start time.Time) (schedule.Slot, bool) {
	if s == nil {
		return schedule.Slot{}, false
	}
	return s.Next(start.Add(-time.Second))
}

func expandWithRRuleGo(text string, start, until time.Time, most int) ([]time.Time, error) {
	option, err := rrule.StrToROption(text)
	if err != nil {
		return nil, err
	}
	option.Dtstart = start
	if option.Until.IsZero() || option.Until.After(until) {
		option.Until = until
	}
	rule, err := rrule.NewRRule(*option)
	if err != nil {
		return nil, err
	}
	var list []time.Time
	next := rule.Iterator()
	for len(list) < most {
		at, ok := next()
		if !ok {
			break
		}
		list = append(list, at)
	}
	return list, nil
}

func firstSlots(s *schedule.Schedule, after, until time.Time, most int) []time.Time {
	var list []time.Time
	for slot, ok := s.Next(after); ok && len(list) < most && !slot.At.After(until); slot, ok = s.Next(slot.At) {
		list = append(list, slot.At)
	}
	return list
}

func drawRule(r *rand.Rand) (string, time.Time) {
	start := time.Date(1990+r.IntN(40), time.Month(1+r.IntN(12)), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(3)*15, 0, time.UTC)
	frequency := []string{"YEARLY", "YEARLY", "MONTHLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY"}[r.IntN(8)]
	parts := []string{"FREQ=" + frequency}
	add := func(one int, format string, args ...any) {
		if r.IntN(one) == 0 {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(2, "INTERVAL=%d", 1+r.IntN(6))
	add(4, "WKST=%s", icalDays[r.IntN(7)])
	add(4, "BYMONTH=%d,%d", 1+r.IntN(12), 1+r.IntN(12))
	add(4, "BYHOUR=%d,%d", r.IntN(12), 12+r.IntN(12)) // rrule-go's BYSETPOS wants them in order
	add(4, "BYMINUTE=%d,%d", r.IntN(30), 30+r.IntN(30))
	if r.IntN(2) == 0 {
		add(4, "COUNT=%d", 1+r.IntN(20))
	} else {
		add(4, "UNTIL=%s", start.AddDate(r.IntN(5), r.IntN(12), 3).Format("20060102T150405"))
	}
	monthly, yearly, weekly := frequency == "MONTHLY", frequency == "YEARLY", frequency == "WEEKLY"
	if !weekly {
		add(4, "BYMONTHDAY=%d,%d", 1+r.IntN(31), -1-r.IntN(31))
	}
	if !weekly && !monthly && frequency != "DAILY" {
		add(6, "BYYEARDAY=%d,%d", 1+r.IntN(366), -1-r.IntN(366))
	}
	switch r.IntN(4) {
	case 0:
		add(1, "BYDAY=%s,%s", icalDays[r.IntN(7)], icalDays[r.IntN(7)])
	case 1:
		if monthly || yearly {
			add(1, "BYDAY=%d%s,%d%s", 1+r.IntN(5), icalDays[r.IntN(7)], -1-r.IntN(5), icalDays[r.IntN(7)])
		}
	case 2:
		if yearly {
			// in weeks that two years share rrule-go goes astray: it lacks
			// 2050-01-02 in week 52; for those see ISOWeek below
			parts = append(parts, fmt.Sprintf("BYWEEKNO=%d,%d;BYDAY=%s", 2+r.IntN(50), -2-r.IntN(50), icalDays[r.IntN(7)]))
		}
	}
	// rrule-go counts the positions of the first week from dtstart, and not from
	// the start of the week
	if len(parts) > 1 && !weekly && frequency != "HOURLY" && frequency != "MINUTELY" && strings.Contains(strings.Join(parts, ";"), "BYDAY=") {
		add(3, "BYSETPOS=%d,%d", 1+r.IntN(4), -1-r.IntN(3))
	}
	return strings.Join(parts, ";"), start
}

func TestWeeksOfTheYearAreThoseOfISO8601(t *testing.T) {
	for week := 1; week <= 53; week++ {
		s, err := schedule.Parse(schedule.Spec{RRule: fmt.Sprintf("FREQ=YEARLY;BYWEEKNO=%d;BYDAY=MO,TU,WE,TH,FR,SA,SU", week)})
		if err != nil {
			t.Fatal(err)
		}
		var want []time.Time
		for day := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2060; day = day.AddDate(0, 0, 1) {
			if _, n := day.ISOWeek(); n == week {
				want = append(want, day)
			}
		}
		if got := firstSlots(s, time.Date(1999, 12, 31, 23, 0, 0, 0, time.UTC), time.Date(2059, 12, 31, 0, 0, 0, 0, time.UTC), 1000); !cmp.Equal(got, want) {
			t.Fatalf("week %d: %s", week, cmp.Diff(want, got))
		}
	}
}
