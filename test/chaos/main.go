// Command chaos runs two agents on a real Kubernetes, breaks what can break, and
// judges by the API server's audit log and a receiver's whether each promise was
// kept. What it does follows from a seed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kubectl-maint/kubectl-maint/test/chaos/check"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

type options struct {
	seed     uint64
	length   time.Duration
	quiet    time.Duration
	agent    string // its binary; empty: built from this tree
	dir      string
	scenario string
	expect   string // the checkers of which one must find something
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func parse(args []string, out io.Writer) (options, error) {
	o := options{}
	set := flag.NewFlagSet("chaos", flag.ContinueOnError)
	set.SetOutput(out)
	set.Uint64Var(&o.seed, "seed", 0, "what is done, and when, follows from it; 0: one by the clock")
	set.DurationVar(&o.length, "for", 10*time.Minute, "how long things break")
	set.DurationVar(&o.quiet, "quiet", time.Minute, "how long nothing may be written at the end")
	set.StringVar(&o.agent, "agent", "", "the agent's binary; default: built from this tree")
	set.StringVar(&o.dir, "dir", "", "where logs are kept; default: a temporary directory, which stays when something was found")
	set.StringVar(&o.scenario, "scenario", "", "one short story instead: "+strings.Join(scenarioNames(), ", "))
	set.StringVar(&o.expect, "expect", "", "checkers, with commas, of which one must find something: it is the agent that is wrong on purpose")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano() % 1_000_000)
	}
	if set.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if o.scenario != "" && !slices.Contains(scenarioNames(), o.scenario) {
		return o, fmt.Errorf("--scenario: %q is none of %s", o.scenario, strings.Join(scenarioNames(), ", "))
	}
	return o, nil
}

func run(args []string, out, errOut io.Writer) int {
	o, err := parse(args, errOut)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(errOut, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.length+o.quiet+12*time.Minute)
	defer cancel()
	findings, dir, err := play(ctx, o, out)
	if err != nil {
		fmt.Fprintf(errOut, "chaos: seed %d: %v\nlogs: %s\n", o.seed, err, dir)
		return 1
	}
	return report(o, findings, dir, out)
}

// play does all of it and says what the checkers found.
func play(ctx context.Context, o options, out io.Writer) (findings []check.Finding, dir string, err error) {
	if dir, err = directory(o); err != nil {
		return nil, dir, err
	}
	file, err := os.Create(filepath.Join(dir, "timeline.log"))
	if err != nil {
		return nil, dir, err
	}
	defer file.Close()
	fmt.Fprintf(out, "chaos: seed %d, for %s, logs in %s\n", o.seed, o.length, dir)
	if o.agent == "" {
		if o.agent, _, err = harness.Build(ctx, dir); err != nil {
			return nil, dir, err
		}
	}
	w, err := open(ctx, o, newTimeline(file), dir)
	defer func() {
		if err := w.close(); err != nil {
			fmt.Fprintln(out, "chaos: stop:", err)
		}
	}()
	if err == nil {
		err = w.story(ctx)
	}
	return w.findings, dir, err
}

func directory(o options) (string, error) {
	if o.dir == "" {
		return os.MkdirTemp("", "maint-chaos-")
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// report prints what was found and says how the command ends.
func report(o options, findings []check.Finding, dir string, out io.Writer) int {
	counts := map[string]int{}
	for _, f := range findings {
		if counts[f.Checker]++; counts[f.Checker] <= 15 {
			fmt.Fprintln(out, f)
		}
	}
	if o.expect != "" {
		return reportExpected(o, counts, dir, out)
	}
	if len(findings) == 0 {
		fmt.Fprintf(out, "chaos: seed %d: nothing was found\n", o.seed)
		if o.dir == "" {
			_ = os.RemoveAll(dir)
		}
		return 0
	}
	fmt.Fprintf(out, "chaos: seed %d: %d findings %v; again with CHAOS_SEED=%d; logs in %s\n", o.seed, len(findings), counts, o.seed, dir)
	return 1
}

func reportExpected(o options, counts map[string]int, dir string, out io.Writer) int {
	for _, name := range strings.Split(o.expect, ",") {
		if counts[name] > 0 {
			fmt.Fprintf(out, "chaos: %s: seen by the checker %q, as it should be\n", o.scenario, name)
			if o.dir == "" {
				_ = os.RemoveAll(dir)
			}
			return 0
		}
	}
	fmt.Fprintf(out, "chaos: %s: none of the checkers %s has seen the fault, found %v; logs in %s\n", o.scenario, o.expect, counts, dir)
	return 1
}
