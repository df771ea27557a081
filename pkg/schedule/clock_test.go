package schedule

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// previous must be next seen from the other side: the time it finds is asked
// for, and the next one after it is later than the time it was asked at.
func TestPreviousMirrorsNext(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2026))
	found, rules := 0, 800
	if testing.Short() {
		rules = 100
	}
	for range rules {
		clock, words := drawClock(r)
		if clock == nil {
			continue
		}
		for range 20 {
			local := int64(1577836800) + r.Int64N(20*366*civil.DaySeconds)
			before, ok := clock.Previous(local)
			if !ok {
				if at, ok := clock.Next(local - 30*366*civil.DaySeconds); ok && at <= local {
					t.Fatalf("%s: nothing before %d, but there is %d", words, local, at)
				}
				continue
			}
			if at, ok := clock.Next(before); before > local || !ok || at != before {
				t.Fatalf("%s: %d before %d is not asked for", words, before, local)
			}
			if at, ok := clock.Next(before + 1); ok && at <= local {
				t.Fatalf("%s: %d before %d is not the last, there is %d", words, before, local, at)
			}
			found++
		}
	}
	t.Logf("%d times mirrored", found)
}

// drawClock draws rules with every kind of part.
func drawClock(r *rand.Rand) (clock, string) {
	start := r.Int64N(60 * 366 * civil.DaySeconds)
	frequency := strings.Fields("YEARLY MONTHLY WEEKLY DAILY HOURLY MINUTELY")[r.IntN(6)]
	text := "FREQ=" + frequency
	some := func(one int, part string, args ...any) {
		if r.IntN(one) == 0 {
			text += fmt.Sprintf(part, args...)
		}
	}
	some(2, ";INTERVAL=%d", 1+r.IntN(40))
	some(4, ";WKST=SU")
	some(4, ";BYMONTH=%d,%d", 1+r.IntN(12), 1+r.IntN(12))
	some(4, ";BYHOUR=%d,%d", r.IntN(24), r.IntN(24))
	some(4, ";BYMINUTE=%d,%d", r.IntN(60), r.IntN(60))
	some(6, ";BYSECOND=%d,%d", r.IntN(60), r.IntN(60))
	if frequency != "WEEKLY" {
		some(4, ";BYMONTHDAY=%d,%d", 1+r.IntN(31), -1-r.IntN(31))
	}
	if frequency == "MONTHLY" || frequency == "YEARLY" {
		some(4, ";BYDAY=%dMO,%dFR,TU", 1+r.IntN(5), -1-r.IntN(5))
	} else {
		some(4, ";BYDAY=MO,SA")
	}
	some(4, ";BYSETPOS=%d,%d", 1+r.IntN(5), -1-r.IntN(5))
	rule, err := parseRRule(text)
	if err != nil {
		return nil, text
	}
	c := rule.clockFrom(start)
	if _, ok := c.Next(start); !ok {
		return nil, text // refused by Parse
	}
	return c, fmt.Sprintf("%s from %d", text, start)
}
