package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// way is how the tests of a package are run once.
type way struct {
	flags []string
	limit time.Duration // of processor time
}

// waysOf are how the tests of a folder are run on a change, one after the other until one
// notices it: most are noticed by a few random examples, and the rest is shown all of them.
func waysOf(dir string) ([]way, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all.Write(text)
	}
	var few, whole []string
	if strings.Contains(all.String(), "testing.Short()") {
		few = append(few, "-test.short")
	}
	if strings.Contains(all.String(), `"pgregory.net/rapid"`) {
		// It would keep counterexamples beside the tests, where those of a change would be
		// tried on the code as it is.
		whole = append(whole, "-rapid.nofailfile")
		few = append(few, "-rapid.nofailfile", "-rapid.checks=10")
	}
	if len(few) == 0 {
		return []way{{flags: whole}}, nil
	}
	return []way{{flags: few}, {flags: whole}}, nil
}

// testUnchanged sees to it that the tests pass, and derives a limit for each way from the
// processor time that they need.
func (t *tally) testUnchanged(binary string) error {
	for i := range t.ways {
		w := &t.ways[i]
		w.limit = 10 * time.Minute
		r := w.test(t.tests, binary, 0)
		if r.outcome != passed {
			return fmt.Errorf("the tests of %s fail as they are: %w\n%s", t.tests, r.err, r.out)
		}
		if w.limit = t.limit; w.limit == 0 {
			w.limit = 3*r.used + 5*time.Second
		}
	}
	return nil
}

// outcome is how a run of the tests ended.
type outcome int

const (
	passed  outcome = iota
	failed          // a test noticed the change
	stopped         // it had no end
)

// result is a run of the tests.
type result struct {
	outcome outcome
	err     error
	out     []byte
	used    time.Duration // of processor time
}

// limited runs a command within a limit of processor time, which a busy machine does not
// shorten, and of memory, which a loop without end would take from everybody.
const limited = `ulimit -t "$1" && ulimit -v 8388608 && shift && exec "$@"`

// waiting is how many times its limit of processor time a run may take by the clock: tests
// that wait for what never comes need no processor.
const waiting = 30

// test runs a test binary with one change switched on; a binary of one change has no
// switch.
func (w way) test(dir, binary string, number int) result {
	seconds := int64((w.limit + time.Second - 1) / time.Second)
	args := append([]string{"-c", limited, "sh", strconv.FormatInt(seconds, 10), binary}, w.flags...)
	test := exec.Command("sh", append(args, "-test.failfast", "-test.paniconexit0", "-test.timeout", (waiting*w.limit).String())...) //nolint:gosec // built here
	test.Dir = dir
	test.Env = append(os.Environ(), which+"="+strconv.Itoa(number))
	out, err := test.CombinedOutput()
	r := result{err: err, out: out}
	if test.ProcessState != nil {
		r.used = test.ProcessState.UserTime() + test.ProcessState.SystemTime()
	}
	switch {
	case err == nil:
	case test.ProcessState != nil && !test.ProcessState.Exited(), // by a signal
		strings.Contains(string(out), "SIGXCPU"), strings.Contains(string(out), "panic: test timed out after"):
		r.outcome = stopped
	default:
		r.outcome = failed
	}
	return r
}
