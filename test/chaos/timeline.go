package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// timeline writes down who did what when: people, faults, and what came of them.
type timeline struct {
	mu    sync.Mutex
	began time.Time
	out   io.Writer
}

func newTimeline(out io.Writer) *timeline { return &timeline{began: time.Now(), out: out} }

// say adds a line: who, and what was done.
func (t *timeline) say(who, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	fmt.Fprintf(t.out, "%s +%6.1fs %-8s %s\n", now.Format("15:04:05.000"), now.Sub(t.began).Seconds(), who, fmt.Sprintf(format, args...))
}
