package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// screen is where the demo tells what happens: plain lines, coloured on a
// terminal. Watchers and the story speak at the same time.
type screen struct {
	out      io.Writer
	terminal bool
	color    bool

	mu    sync.Mutex
	blank bool // the last line printed was empty: one is enough
	chap  int
	since time.Time
}

func newScreen(out *os.File) *screen {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &screen{out: out, terminal: terminal, color: terminal && os.Getenv("NO_COLOR") == "", since: time.Now()}
}

const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	cyan  = "36"
)

func (s *screen) paint(code, text string) string {
	if !s.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s *screen) print(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blank {
		line = strings.TrimPrefix(line, "\n")
	}
	fmt.Fprintln(s.out, line)
	s.blank = strings.HasSuffix(line, "\n") || line == ""
}

func (s *screen) title(text string) { s.print(s.paint(bold, text)) }

// chapter begins a part of the story and numbers it.
func (s *screen) chapter(format string, args ...any) {
	s.mu.Lock()
	s.chap++
	n := s.chap
	s.mu.Unlock()
	s.print("\n" + s.paint(bold, fmt.Sprintf("%d. %s", n, fmt.Sprintf(format, args...))))
}

func (s *screen) line(format string, args ...any) {
	s.print(strings.TrimRight("   "+fmt.Sprintf(format, args...), " "))
}

func (s *screen) good(format string, args ...any) {
	s.print("\n" + s.paint(green, fmt.Sprintf(format, args...)))
}

func (s *screen) failed(err error) {
	s.print("\n" + s.paint(red, "The demo failed: "+err.Error()))
}

// checked is a claim that was found to be true.
func (s *screen) checked(what string) { s.print("   " + s.paint(green, "✓ ") + what) }

// command is what a person would type; answer is what they would see.
func (s *screen) command(text string) { s.print("\n   " + s.paint(bold, "$ "+text)) }

func (s *screen) answer(output string) {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(output, "\n"), "\n") {
		lines = append(lines, strings.TrimRight("     "+line, " "))
	}
	s.print(strings.Join(lines, "\n") + "\n")
}

// breathe leaves somebody at a terminal a moment to read.
func (s *screen) breathe(ctx context.Context) {
	if !s.terminal {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(1500 * time.Millisecond):
	}
}

// clock sets the instant that the times of observations count from.
func (s *screen) clock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Now()
}

// saw is something observed on the cluster or at the receiver.
func (s *screen) saw(where, format string, args ...any) {
	s.mu.Lock()
	after := time.Since(s.since)
	s.mu.Unlock()
	s.print(fmt.Sprintf("   %s  %s %s", s.paint(dim, fmt.Sprintf("%6.2fs", after.Seconds())), s.paint(cyan, fmt.Sprintf("%-10s", where)), fmt.Sprintf(format, args...)))
}
