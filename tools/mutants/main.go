// Command mutants changes one operator at a time in packages and runs their own
// tests on each change: what no test notices is listed. It says how much a
// package's tests assert, which coverage does not.
//
//	go run ./tools/mutants -n 100 ./pkg/plan ./pkg/nodes
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	set := flag.NewFlagSet("mutants", flag.ContinueOnError)
	n := set.Int("n", 100, "how many changes are tried in each package; 0: all of them")
	skip := set.Int("skip", 0, "how many are passed over first, so that a long run can be made in pieces")
	seed := set.Uint64("seed", 1, "which of them")
	least := set.Int("least", 0, "fail where fewer of 100 are noticed")
	timeout := set.Duration("timeout", 0, "of the tests of one change, which is noticed if it hangs; 0: three times what they take, and 20s")
	atOnce := set.Int("at-once", 2, "how many changes are tested side by side")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() == 0 {
		return errors.New("name packages, as ./pkg/plan")
	}
	var few []string
	for _, dir := range set.Args() {
		all, err := mutantsOf(dir)
		if err != nil {
			return err
		}
		random := rand.New(rand.NewPCG(*seed, 0)) //nolint:gosec // the same choice each time
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		t := tally{dir: dir, out: out, skip: *skip, timeout: *timeout, atOnce: *atOnce}
		if err := t.try(all, *n); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %d of %d noticed (%d of 100)\n", dir, t.noticed, t.tried, t.share())
		if t.share() < *least {
			few = append(few, dir)
		}
	}
	if len(few) > 0 {
		return fmt.Errorf("fewer than %d of 100 are noticed in %s", *least, strings.Join(few, ", "))
	}
	return nil
}

// tally counts what the tests of one package notice.
type tally struct {
	dir            string
	out            io.Writer
	skip           int // how many changes that compile are still to be passed over
	timeout        time.Duration
	flags          []string // of the tests, beside those of each package
	atOnce         int
	tried, noticed int
}

func (t *tally) share() int { return 100 * t.noticed / max(t.tried, 1) }

// try runs the tests on as many changes as asked that compile.
func (t *tally) try(all []mutant, n int) error {
	work, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	binary, within, err := build(work, t.dir, all)
	if err != nil {
		return err
	}
	if t.flags, err = flagsOf(t.dir); err != nil {
		return err
	}
	if binary == "" { // no change compiles behind a switch
		binary = filepath.Join(work, "unchanged.test")
		if out, failed := compile(t.dir, "", binary); failed != nil {
			return fmt.Errorf("build the tests of %s: %w\n%s", t.dir, failed, out)
		}
	}
	if err := t.testUnchanged(binary); err != nil {
		return err
	}
	if n == 0 {
		n = len(all)
	}
	for number := 1; number <= len(all) && t.tried < n; {
		var some []change
		for ; number <= len(all) && len(some) < min(t.atOnce, n-t.tried); number++ {
			c := change{mutant: all[number-1], number: number, binary: binary}
			if !within[number] {
				if c.binary, err = buildAlone(work, t.dir, c); err != nil {
					return err
				}
			}
			switch {
			case c.binary == "":
			case t.skip > 0:
				t.skip--
			default:
				some = append(some, c)
			}
		}
		t.count(some)
	}
	return nil
}

// flagsOf are what the tests of a folder are told: rapid keeps the counterexamples that it
// finds beside the tests, where those of a change would be tried on the code as it is.
func flagsOf(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if strings.Contains(string(text), `"pgregory.net/rapid"`) {
			return []string{"-rapid.nofailfile"}, nil
		}
	}
	return nil, nil
}

// testUnchanged sees to it that the tests pass, and derives a timeout from how long
// that takes.
func (t *tally) testUnchanged(binary string) error {
	limit := t.timeout
	if limit == 0 {
		t.timeout = 10 * time.Minute
	}
	began := time.Now()
	if out, failed := t.test(binary, 0); failed != nil {
		return fmt.Errorf("the tests of %s fail as they are: %w\n%s", t.dir, failed, out)
	}
	if limit == 0 {
		t.timeout = 3*time.Since(began) + 20*time.Second
	}
	return nil
}

// change is a mutant, and the test binary that holds it.
type change struct {
	mutant
	number int
	binary string
}

// count runs the tests on a few changes side by side.
func (t *tally) count(some []change) {
	failed := make([]bool, len(some))
	var wg sync.WaitGroup
	for i, c := range some {
		wg.Go(func() {
			_, err := t.test(c.binary, c.number)
			failed[i] = err != nil
		})
	}
	wg.Wait()
	for i, c := range some {
		t.tried++
		if failed[i] {
			t.noticed++
			continue
		}
		fmt.Fprintln(t.out, "not noticed:", c.mutant)
	}
}

// buildAlone makes the test binary of one change; none if that does not compile.
func buildAlone(work, dir string, c change) (binary string, err error) {
	text, err := os.ReadFile(c.file)
	if err != nil {
		return "", err
	}
	overlay, err := writeOverlay(work, map[string][]byte{c.file: c.applied(text)})
	if err != nil {
		return "", err
	}
	binary = filepath.Join(work, fmt.Sprintf("%d.test", c.number))
	if _, err := compile(dir, overlay, binary); err != nil {
		return "", nil //nolint:nilerr // a change that does not compile is none
	}
	return binary, nil
}

func compile(dir, overlay, binary string) ([]byte, error) {
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-gcflags=-e", "-overlay", overlay, "-o", binary}
	return exec.Command("go", append(args, "./"+filepath.ToSlash(filepath.Clean(dir)))...).CombinedOutput() //nolint:gosec // packages of this module
}

// test runs a test binary with one change switched on; a binary of one change has no
// switch.
func (t *tally) test(binary string, number int) ([]byte, error) {
	test := exec.Command(binary, append(t.flags, "-test.failfast", "-test.paniconexit0", "-test.timeout", t.timeout.String())...) //nolint:gosec // built above
	test.Dir = t.dir
	test.Env = append(os.Environ(), which+"="+strconv.Itoa(number))
	return test.CombinedOutput()
}
