// Package rfc3339 reads instants as documents write them.
package rfc3339

import (
	"strings"
	"time"
)

// Parse reads an RFC 3339 instant in whole seconds; fault says what is wrong, and is empty where nothing is.
func Parse(text string) (second int64, fault string) {
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(text))
	switch {
	case err != nil:
		return 0, instead(text)
	case at.Nanosecond() != 0:
		return 0, "has a fraction of a second; write " + at.Truncate(time.Second).Format(time.RFC3339)
	case at.UTC().Year() < 1:
		return 0, "is before the year 1"
	case at.UTC().Year() > 9999:
		return 0, "is after the year 9999"
	}
	return at.Unix(), ""
}

func instead(text string) string {
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			wall := at.Format("2006-01-02T15:04:05")
			return "is not an RFC 3339 instant: its offset from UTC is missing; write " + wall + "Z, or " + wall + "+01:00 with the offset meant"
		}
	}
	return "is not an RFC 3339 instant; write it like 2026-03-08T02:00:00Z or 2026-03-08T02:00:00-05:00"
}
