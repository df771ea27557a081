package rfc3339_test

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/rfc3339"
)

func TestInstantsAreReadOrRefused(t *testing.T) {
	const like = "is not an RFC 3339 instant; write it like 2026-03-08T02:00:00Z or 2026-03-08T02:00:00-05:00"
	missing := func(wall string) string {
		return "is not an RFC 3339 instant: its offset from UTC is missing; write " + wall + "Z, or " + wall + "+01:00 with the offset meant"
	}
	for text, want := range map[string]struct {
		second int64
		fault  string
	}{
		"1970-01-01T00:00:01Z":           {second: 1},
		" 1970-01-01T01:00:00+01:00 ":    {second: 0},
		"0001-01-01T00:00:00Z":           {second: -62135596800},
		"0000-12-31T23:59:59Z":           {fault: "is before the year 1"},
		"0000-12-31T23:59:59-00:01":      {second: -62135596741},
		"0001-01-01T00:00:00+01:00":      {fault: "is before the year 1"},
		"9999-12-31T23:59:59Z":           {second: 253402300799},
		"9999-12-31T23:59:59-01:00":      {fault: "is after the year 9999"},
		"2026-03-08T02:00:00.5Z":         {fault: "has a fraction of a second; write 2026-03-08T02:00:00Z"},
		"2026-03-08T02:00:00.9+01:00":    {fault: "has a fraction of a second; write 2026-03-08T02:00:00+01:00"},
		"2026-03-08T02:00:07":            {fault: missing("2026-03-08T02:00:07")},
		"2026-03-08T02:00":               {fault: missing("2026-03-08T02:00:00")},
		" 2026-03-08 02:00:07 ":          {fault: missing("2026-03-08T02:00:07")},
		"2026-03-08 02:00":               {fault: missing("2026-03-08T02:00:00")},
		"2026-03-08":                     {fault: missing("2026-03-08T00:00:00")},
		"":                               {fault: like},
		"tomorrow":                       {fault: like},
		"2026-02-30T02:00:00Z":           {fault: like},
		"2026-03-08T02:00:00Z and later": {fault: like},
	} {
		if second, fault := rfc3339.Parse(text); second != want.second || fault != want.fault {
			t.Errorf("%q is second %d, %q; want %+v", text, second, fault, want)
		}
	}
}
