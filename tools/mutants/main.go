// Command mutants changes one operator at a time in packages and runs their own
// tests on each change: what no test notices is listed. It says how much a
// package's tests assert, which coverage does not.
//
//	go run ./tools/mutants -n 100 ./pkg/plan ./pkg/nodes
//
// What an inner package does may be tested by the package around it alone:
//
//	go run ./tools/mutants -n 100 -tests ./pkg/schedule ./pkg/schedule/internal/civil
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
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
	limit := set.Duration("limit", 0, "of the processor time of one run of the tests; a change that needs more is noticed; 0: three times what they need as they are, and 5s")
	atOnce := set.Int("at-once", 2, "how many changes are tested side by side")
	only := set.String("only", "", "try those alone that this regular expression finds, as timeline.go:(120|203):")
	tests := set.String("tests", "", "the folder whose tests are run on the changes; none: the tests of each package itself")
	few := set.Bool("few", false, "show each change a few random examples alone: fast, and misses what only many of them notice")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() == 0 {
		return errors.New("name packages, as ./pkg/plan")
	}
	found, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	var short []string
	for _, dir := range set.Args() {
		all, err := mutantsOf(dir)
		if err != nil {
			return err
		}
		random := rand.New(rand.NewPCG(*seed, 0)) //nolint:gosec // the same choice each time
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		t := tally{dir: dir, tests: cmp.Or(*tests, dir), out: out, skip: *skip, only: found, few: *few, limit: *limit, atOnce: *atOnce}
		if err := t.try(all, *n); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %d of %d noticed (%d of 100)\n", dir, t.noticed, t.tried, t.share())
		if t.share() < *least {
			short = append(short, dir)
		}
	}
	if len(short) > 0 {
		return fmt.Errorf("fewer than %d of 100 are noticed in %s", *least, strings.Join(short, ", "))
	}
	return nil
}

// tally counts what the tests of one package notice.
type tally struct {
	dir            string
	tests          string // the folder whose tests are run
	out            io.Writer
	skip           int            // how many changes that compile are still to be passed over
	only           *regexp.Regexp // finds those that are tried
	few            bool           // show a few examples alone
	limit          time.Duration
	ways           []way
	atOnce         int
	tried, noticed int
}

func (t *tally) share() int { return 100 * t.noticed / max(t.tried, 1) }

// try runs the tests on as many changes as asked.
func (t *tally) try(all []mutant, n int) error {
	work, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	binary, within, err := build(work, t.dir, t.tests, all)
	if err != nil {
		return err
	}
	if t.ways, err = waysOf(t.tests); err != nil {
		return err
	}
	if t.few {
		t.ways = t.ways[:1]
	}
	if binary == "" { // no change compiles behind a switch
		binary = filepath.Join(work, "unchanged.test")
		if out, failed := compile(t.tests, "", binary); failed != nil {
			return fmt.Errorf("build the tests of %s: %w\n%s", t.tests, failed, out)
		}
	}
	if err := t.testUnchanged(binary); err != nil {
		return err
	}
	if n == 0 {
		n = len(all)
	}
	chosen, err := t.choose(work, binary, all, within, n)
	if err != nil {
		return err
	}
	t.count(chosen)
	return nil
}

// choose takes as many changes as asked that compile.
func (t *tally) choose(work, binary string, all []mutant, within map[int]bool, n int) (chosen []change, err error) {
	for number := 1; number <= len(all) && len(chosen) < n; number++ {
		c := change{mutant: all[number-1], number: number, binary: binary}
		if !t.only.MatchString(c.String()) {
			continue
		}
		if !within[number] {
			if c.binary, err = buildAlone(work, t.tests, c); err != nil {
				return nil, err
			}
		}
		switch {
		case c.binary == "":
		case t.skip > 0:
			t.skip--
		default:
			chosen = append(chosen, c)
		}
	}
	return chosen, nil
}

// change is a mutant, and the test binary that holds it.
type change struct {
	mutant
	number int
	binary string
}

// count runs the tests on changes, a few of them side by side.
func (t *tally) count(chosen []change) {
	outcomes := make([]chan outcome, len(chosen))
	for i := range outcomes {
		outcomes[i] = make(chan outcome, 1)
	}
	next := make(chan int)
	for range t.atOnce {
		go func() {
			for i := range next {
				outcomes[i] <- t.test(chosen[i])
			}
		}()
	}
	go func() {
		defer close(next)
		for i := range chosen {
			next <- i
		}
	}()
	for i, c := range chosen {
		t.tell(c, <-outcomes[i])
	}
}

func (t *tally) tell(c change, o outcome) {
	t.tried++
	switch o {
	case passed:
		fmt.Fprintln(t.out, "not noticed:", c.mutant)
		return
	case stopped:
		fmt.Fprintln(t.out, "stopped, as it came to no end:", c.mutant)
	}
	t.noticed++
}

// test runs the tests on a change, in one way after the other until one notices it.
func (t *tally) test(c change) outcome {
	for _, w := range t.ways {
		if r := w.test(t.tests, c.binary, c.number); r.outcome != passed {
			return r.outcome
		}
	}
	return passed
}

// buildAlone makes the test binary of one change; none if that does not compile.
func buildAlone(work, tests string, c change) (binary string, err error) {
	text, err := os.ReadFile(c.file)
	if err != nil {
		return "", err
	}
	overlay, err := writeOverlay(work, map[string][]byte{c.file: c.applied(text)})
	if err != nil {
		return "", err
	}
	binary = filepath.Join(work, fmt.Sprintf("%d.test", c.number))
	if _, err := compile(tests, overlay, binary); err != nil {
		return "", nil //nolint:nilerr // a change that does not compile is none
	}
	return binary, nil
}

func compile(dir, overlay, binary string) ([]byte, error) {
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-gcflags=-e", "-overlay", overlay, "-o", binary}
	return exec.Command("go", append(args, "./"+filepath.ToSlash(filepath.Clean(dir)))...).CombinedOutput() //nolint:gosec // packages of this module
}
