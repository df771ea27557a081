// Command bench measures kubectl maint on a cluster of its own: many plans due
// at once, beside as many CronJobs due at once on the same API server, the
// agent's requests and memory, and the time from a trigger to its effect. It
// prints a table and leaves nothing behind. There is no randomness in it; what
// differs between two runs is the machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// longest is when the whole is given up.
const longest = 20 * time.Minute

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

type options struct {
	plans, namespaces, rounds, history, triggers int
	only                                         []string
	profile                                      string
	agent                                        string
}

// names are the benchmarks, in their order.
func names() []string {
	return []string{"ratios", "plans-due", "cronjobs-due", "memory", "trigger-latency", "cronjob-pod", "wide"}
}

func parse(args []string, errOut io.Writer) (options, error) {
	var o options
	var only string
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.SetOutput(errOut)
	set.IntVar(&o.plans, "plans", 1000, "plans, and CronJobs, due at once")
	set.IntVar(&o.namespaces, "namespaces", 20, "namespaces to spread them over")
	set.IntVar(&o.rounds, "rounds", 3, "rounds of a figure that ratios did not measure")
	set.IntVar(&o.history, "history", 10, "runs of each plan before the memory is looked at again")
	set.IntVar(&o.triggers, "triggers", 200, "triggers one after another")
	set.StringVar(&only, "only", "", "only these, by comma: "+strings.Join(names(), ", "))
	set.StringVar(&o.profile, "profile", "", "existing folder for CPU profiles of the agent and the API server; plans-due only")
	set.StringVar(&o.agent, "agent", "", "path of an agent to measure; default: built from here")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	o.only = names()
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	return o, o.validate(set.Args())
}

func (o options) validate(rest []string) error {
	var faults []error
	for _, name := range o.only {
		if !slices.Contains(names(), name) {
			faults = append(faults, fmt.Errorf("--only: %q is none of %s", name, strings.Join(names(), ", ")))
		}
	}
	if min(o.plans, o.namespaces, o.rounds, o.history, o.triggers) < 1 {
		faults = append(faults, errors.New("--plans, --namespaces, --rounds, --history and --triggers must be at least 1"))
	}
	if o.history > 100 {
		faults = append(faults, fmt.Errorf("--history: a plan keeps at most 100 runs, is %d", o.history))
	}
	if o.profile != "" && !slices.Equal(o.only, []string{"plans-due"}) {
		faults = append(faults, errors.New("--profile goes with --only plans-due: a profiled round is no figure"))
	}
	if len(rest) > 0 {
		faults = append(faults, fmt.Errorf("unexpected argument %q", rest[0]))
	}
	return errors.Join(faults...)
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
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if err := measure(ctx, o, out, errOut); err != nil {
		fmt.Fprintln(errOut, "bench:", err)
		return 1
	}
	return 0
}

// measure runs what was asked for and prints each table as soon as it stands,
// so that a run that is cut short has said what it knew.
func measure(ctx context.Context, o options, out, progress io.Writer) (err error) {
	b, err := start(ctx, o, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	b.printHead(out)
	for _, part := range []struct {
		name string
		run  func(context.Context, io.Writer) error
	}{
		{"ratios", b.ratios},
		{"plans-due", b.plansDue},
		{"cronjobs-due", b.cronJobsDue},
		{"memory", b.memory},
		{"trigger-latency", b.latency},
		{"cronjob-pod", b.cronJobPods},
		{"wide", b.wide},
	} {
		if !slices.Contains(o.only, part.name) {
			continue
		}
		if err := part.run(ctx, out); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	b.say("done after %s", time.Since(b.began).Round(time.Second))
	return nil
}
