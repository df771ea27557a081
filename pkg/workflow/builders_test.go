package workflow_test

import (
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// clock reads "02:30" as an instant of the tests' day, 5 December 2026, a
// Saturday; "+1 02:30" is the day after.
func clock(text string) time.Time {
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

func on(text string) *time.Time {
	at := clock(text)
	return &at
}

func duration(text string) *document.Duration {
	d, err := document.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return &d
}

func slotAt(t string) run.Request {
	return run.Request{Kind: run.BySchedule, Slot: on(t), Local: clock(t).Format(time.RFC3339) + "[UTC]", At: clock(t)}
}

func repeat(line func(int) string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = line(i)
	}
	return out
}
