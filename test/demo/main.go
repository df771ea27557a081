// Command demo shows kubectl maint at work on a real Kubernetes: a plan that
// takes a Deployment down and brings it back, once as planned and once with a
// failure; or, as another story, a night in which a staging environment sleeps. What it tells it also checks, and it cleans up after itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(execute(os.Args[1:]))
}

type options struct {
	story   string
	keep    bool
	cluster string
	image   string
}

func execute(args []string) int {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := newScreen(os.Stdout)
	switch err := show(ctx, o, s); {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		s.line("interrupted")
		return 130
	default:
		s.failed(err)
		return 1
	}
}

func parse(args []string) (options, error) {
	var o options
	set := flag.NewFlagSet("demo", flag.ContinueOnError)
	set.StringVar(&o.story, "story", "maintenance", `"maintenance" of a Deployment, or a "night" in which a staging environment sleeps`)
	set.BoolVar(&o.keep, "keep", false, "leave it up to be tried, until Ctrl-C")
	set.StringVar(&o.cluster, "cluster", "", `"existing": the cluster that KUBECONFIG names, in a namespace of its own; default: a cluster of its own`)
	set.StringVar(&o.image, "image", "registry.k8s.io/pause:3.10", "image of the workload; on a cluster of its own nothing is pulled")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	switch {
	case set.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", set.Arg(0))
	case o.story != "maintenance" && o.story != "night":
		return o, fmt.Errorf("--story must be maintenance or night, is %q", o.story)
	case o.story == "night" && (o.keep || o.cluster != ""):
		return o, errors.New("--story night has a cluster of its own, and ends")
	case o.cluster != "" && o.cluster != "existing":
		return o, fmt.Errorf("--cluster must be existing, is %q; without it the demo starts a cluster of its own", o.cluster)
	case o.cluster == "existing" && os.Getenv("KUBECONFIG") == "":
		return o, errors.New("--cluster existing needs KUBECONFIG: it says which cluster may be used")
	}
	return o, nil
}

// show is the demo from beginning to end. Whatever began is ended again, also
// after a failure and after Ctrl-C.
func show(ctx context.Context, o options, s *screen) (err error) {
	s.title(o.title())
	d, err := newDemo(o, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.cleanUp(ctx)) }()
	for _, part := range d.parts() {
		if err := part(ctx); err != nil {
			d.explain(ctx)
			return err
		}
		s.breathe(ctx)
	}
	s.good("All of it was as told.")
	if o.keep {
		d.stayOpen(ctx)
	}
	return nil
}

func (o options) title() string {
	if o.story == "night" {
		return "kubectl maint: a staging environment sleeps at night"
	}
	return "kubectl maint: maintenance of a Deployment, by a plan"
}

// parts are those of the story, in their order.
func (d *demo) parts() []func(context.Context) error {
	if d.story == "night" {
		return []func(context.Context) error{d.openCloud, d.startCluster, d.startAgent, d.openStaging, d.evening, d.morning}
	}
	return []func(context.Context) error{d.startCluster, d.startAgent, d.openShop, d.asPlanned, d.withFailure, d.lookBack, d.permission}
}
