// Command bench measures kubectl maint on clusters of its own: many plans due
// at once, beside as many CronJobs due at once on the same API server, the
// agent's requests and memory, the time from a trigger to its effect, the time
// until work goes on after a fault, the drain of many nodes beside kubectl's, and the time of
// commands beside kubectl's. It
// prints a table and leaves nothing behind. There is no randomness in it; what differs
// between two runs is the machine.
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
const longest = 90 * time.Minute

func main() {
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}

type options struct {
	plans, namespaces, rounds, history, triggers int
	drains, fleet, fleetPods, idle, sleepers     int
	manySleepers                                 int
	only, ways                                   []string
	profile                                      string
	agent, before                                string
}

// names are the benchmarks, in their order.
func names() []string {
	return []string{"ratios", "plans-due", "paired", "cronjobs-due", "memory", "trigger-latency", "cronjob-pod", "wide", "restore", "recovery", "idle", "drain", "nodes-memory", "sleep", "sleep-many", "admission", "commands"}
}

func parse(args []string, errOut io.Writer) (options, error) {
	var o options
	var only, ways string
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.SetOutput(errOut)
	set.IntVar(&o.plans, "plans", 1000, "plans, and CronJobs, due at once")
	set.IntVar(&o.namespaces, "namespaces", 20, "namespaces to spread them over")
	set.IntVar(&o.rounds, "rounds", 3, "rounds of a figure that ratios did not measure")
	set.IntVar(&o.history, "history", 10, "runs of each plan before the memory is looked at again")
	set.IntVar(&o.triggers, "triggers", 200, "triggers one after another")
	set.IntVar(&o.drains, "drains", 50, fmt.Sprintf("nodes to drain, of %d pods each", podsPerNode))
	set.IntVar(&o.fleet, "fleet", 5000, "nodes of nodes-memory")
	set.IntVar(&o.fleetPods, "fleet-pods", 50000, "pods on them")
	set.IntVar(&o.idle, "idle", 10000, "plans of idle")
	set.IntVar(&o.sleepers, "sleepers", 500, "Deployments that sleep")
	set.IntVar(&o.manySleepers, "many-sleepers", 10000, fmt.Sprintf("Deployments of sleep-many, of which one in %d is awake", awakeOfMany))
	set.StringVar(&only, "only", "", "only these, by comma (default: all but paired and sleep-many): "+strings.Join(names(), ", "))
	set.StringVar(&ways, "ways", "", "of drain, only these, by comma: "+strings.Join(wayNames(), ", "))
	set.StringVar(&o.profile, "profile", "", "existing folder for CPU profiles of the agent and the API server; plans-due, drain or idle alone")
	set.StringVar(&o.agent, "agent", "", "path of an agent to measure, and of kubectl-maint beside it; default: built from here")
	set.StringVar(&o.before, "before", "", "of paired, the path of the agent to compare with")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	o.only, o.ways = slices.DeleteFunc(names(), func(name string) bool { return name == "paired" || name == "sleep-many" }), wayNames() // one needs another agent, one takes many minutes
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	if ways != "" {
		o.ways = strings.Split(ways, ",")
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
	for _, name := range o.ways {
		if !slices.Contains(wayNames(), name) {
			faults = append(faults, fmt.Errorf("--ways: %q is none of %s", name, strings.Join(wayNames(), ", ")))
		}
	}
	if min(o.plans, o.namespaces, o.rounds, o.history, o.triggers, o.drains, o.fleet, o.fleetPods, o.idle, o.sleepers, o.manySleepers/awakeOfMany) < 1 {
		faults = append(faults, errors.New("--plans, --namespaces, --rounds, --history, --triggers, --drains, --fleet, --fleet-pods, --idle and --sleepers must be at least 1, and --many-sleepers at least 4"))
	}
	if slices.Contains(o.only, "paired") && o.before == "" {
		faults = append(faults, errors.New("--only paired needs --before: the agent to compare with"))
	}
	if o.fleet < fleetDrains {
		faults = append(faults, fmt.Errorf("--fleet: %d nodes are drained, is %d", fleetDrains, o.fleet))
	}
	if o.history > 100 {
		faults = append(faults, fmt.Errorf("--history: a plan keeps at most 100 runs, is %d", o.history))
	}
	if o.profile != "" && (len(o.only) != 1 || !slices.Contains([]string{"plans-due", "drain", "idle"}, o.only[0])) {
		faults = append(faults, errors.New("--profile goes with --only plans-due, drain or idle: a profiled round is no figure"))
	}
	if len(rest) > 0 {
		faults = append(faults, fmt.Errorf("unexpected argument %q", rest[0]))
	}
	return errors.Join(faults...)
}

func execute(args []string, out, errOut io.Writer) int {
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

// part is one benchmark, by its name.
type part struct {
	name string
	run  func(context.Context, io.Writer) error
}

// measure runs what was asked for and prints each table as soon as it stands,
// so that a run that is cut short has said what it knew. Those of nodes have
// clusters of their own, after the one that the others share.
func measure(ctx context.Context, o options, out, progress io.Writer) (err error) {
	b, err := start(ctx, o, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	shared := b.asked([]part{
		{"ratios", b.ratios},
		{"plans-due", b.plansDue},
		{"paired", b.paired},
		{"cronjobs-due", b.cronJobsDue},
		{"memory", b.memory},
		{"trigger-latency", b.latency},
		{"cronjob-pod", b.cronJobPods},
		{"wide", b.wide},
		{"restore", b.restoring},
	})
	if len(shared) > 0 {
		if err := b.openShared(ctx, out); err != nil {
			return err
		}
		if err := inTurn(ctx, out, shared); err != nil {
			return err
		}
		if err := b.close(); err != nil {
			return err
		}
	}
	if err := inTurn(ctx, out, b.asked([]part{{"recovery", b.recovery}, {"idle", b.idleAtSize}, {"drain", b.drain}, {"nodes-memory", b.nodesMemory}, {"sleep", b.sleeping}, {"sleep-many", b.sleepingMany}, {"admission", b.admitted}, {"commands", b.commands}})); err != nil {
		return err
	}
	b.say("done after %s", time.Since(b.began).Round(time.Second))
	return nil
}

// asked are those of the parts that were asked for.
func (b *bench) asked(parts []part) []part {
	return slices.DeleteFunc(parts, func(p part) bool { return !slices.Contains(b.only, p.name) })
}

// inTurn runs one after another, to the first that fails.
func inTurn(ctx context.Context, out io.Writer, parts []part) error {
	for _, p := range parts {
		if err := p.run(ctx, out); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}
