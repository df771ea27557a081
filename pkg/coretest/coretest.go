// Package coretest holds what the tests of several rooms of the core start from: the
// instants of one day, runs and facts that are valid as they are. Only tests import it.
package coretest

import (
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// Clock reads "02:30" as an instant of the tests' day, 5 December 2026, a
// Saturday; "+1 02:30" is the day after.
func Clock(text string) time.Time {
	day := 5
	if rest, ok := strings.CutPrefix(text, "+1 "); ok {
		day, text = 6, rest
	}
	layout := "15:04"
	if strings.Count(text, ":") == 2 {
		layout = "15:04:05"
	}
	at, err := time.Parse(layout, text)
	if err != nil {
		panic(err)
	}
	return time.Date(2026, 12, day, at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
}

// On is Clock's instant where a field may be empty.
func On(text string) *time.Time {
	at := Clock(text)
	return &at
}

// Duration reads "1h30m", as documents write it.
func Duration(text string) *document.Duration {
	d, err := document.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return &d
}

// Repeat writes n lines, each by its number from 0.
func Repeat(line func(int) string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = line(i)
	}
	return out
}
