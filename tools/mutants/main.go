// Command mutants changes one operator at a time in packages and runs their own
// tests on each change: what no test notices is listed. It says how much a
// package's tests assert, which coverage does not.
//
//	go run ./tools/mutants -n 100 ./pkg/plan ./pkg/nodes
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
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
	seed := set.Uint64("seed", 1, "which of them")
	least := set.Int("least", 0, "fail where fewer of 100 are noticed")
	timeout := set.Duration("timeout", 2*time.Minute, "of the tests of one change; one that hangs is noticed")
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
		t := tally{dir: dir, out: out}
		if err := t.try(all, *n, *timeout); err != nil {
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
	tried, noticed int
}

func (t *tally) share() int { return 100 * t.noticed / max(t.tried, 1) }

// try runs the tests on as many changes as asked that compile.
func (t *tally) try(all []mutant, n int, timeout time.Duration) error {
	work, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if out, err := test(t.dir, "", timeout); err != nil {
		return fmt.Errorf("the tests of %s fail as they are: %w\n%s", t.dir, err, out)
	}
	for _, m := range all {
		if n > 0 && t.tried == n {
			return nil
		}
		overlay, err := overlayOf(work, m)
		if err != nil {
			return err
		}
		out, failed := test(t.dir, overlay, timeout)
		if failed != nil && bytes.Contains(out, []byte("[build failed]")) {
			continue
		}
		t.tried++
		if failed != nil {
			t.noticed++
			continue
		}
		fmt.Fprintln(t.out, "not noticed:", m)
	}
	return nil
}

// overlayOf writes a changed file, and what tells go to take it for the other.
func overlayOf(work string, m mutant) (string, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(work, "changed.go"), filepath.Join(work, "overlay.json")
	if err := os.WriteFile(changed, m.applied(text), 0o600); err != nil {
		return "", err
	}
	file, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, b, 0o600)
}

func test(dir, overlay string, timeout time.Duration) ([]byte, error) {
	args := []string{"test", "-failfast", "-count=1", "-timeout", timeout.String()}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	return exec.Command("go", append(args, "./"+filepath.ToSlash(filepath.Clean(dir)))...).CombinedOutput() //nolint:gosec // packages of this module
}
