package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

type logsOptions struct {
	*cli
	name   string
	step   string
	follow bool
	faults faults
}

func newLogs(c *cli) *cobra.Command {
	o := &logsOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "logs RUN",
		Short: "What the steps of a run printed",
		Long: `What the steps of a run printed, in the order in which they began: the log of a
job, what a command in a container said, else a step's message and outputs. Of a
job at work it is the log of its pods, read with your own rights.

-f goes on until the run has ended; the exit code is 4 when it failed. What the
steps of a loop's items printed is kept only while they are at work.`,
		Example: `  kubectl maint logs maint-run-orders-weekly-k2x7a
  kubectl maint logs maint-run-orders-weekly-k2x7a --step backup -f`,
		RunE:              run(o),
		ValidArgsFunction: c.completeKinds(annotations.KindRun),
	}
	cmd.Flags().StringVar(&o.step, "step", "", "one step, by its path or name, with what it holds")
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on until the run has ended")
	return cmd
}

// Complete takes the run's name.
func (o *logsOptions) Complete(_ *cobra.Command, args []string) error {
	o.name = oneName(args, "RUN", &o.faults)
	return nil
}

// Validate has nothing else to check.
func (o *logsOptions) Validate() error { return o.faults.err() }

// Run prints what there is, and goes on with -f.
func (o *logsOptions) Run(ctx context.Context) error {
	k, err := o.connect()
	if err != nil {
		return err
	}
	r, err := k.run(ctx, o.name)
	if err != nil {
		return err
	}
	if err := o.known(r); err != nil {
		return err
	}
	t := &teller{cli: o.cli, k: k, step: o.step, follow: o.follow, told: map[string]string{}, tails: map[string]*tail{}, out: &transcript{out: o.Out}}
	if !o.follow {
		t.look(ctx, r)
		if r.journal.StartedAt == nil {
			fmt.Fprintf(o.ErrOut, "no step has begun: the run is %s\n", o.view(zoneOf(r.run.Spec, o.Zone)).runHead(r))
		}
		return t.out.err
	}
	return o.followLogs(ctx, k, r, t)
}

// known refuses a step that the run does not have. Those of a loop's items are
// known only while the items are at work, so that -f waits for them.
func (o *logsOptions) known(r aRun) error {
	if o.step == "" || len(stepsNamed(r, o.step)) > 0 {
		return nil
	}
	_, found := r.run.Tree().Find(o.step)
	r.run.Tree().Walk(func(s plan.Step) { found = found || s.Name == o.step })
	if found {
		return nil
	}
	return fmt.Errorf("run %s has no step %q; it has %s", r.run.Name, o.step, strings.Join(pathsOf(r), ", "))
}

// followLogs looks again whenever the run changes, until it has ended.
func (o *logsOptions) followLogs(ctx context.Context, k *cluster, r aRun, t *teller) error {
	w, err := k.watch(ctx, r.run.Namespace, byName(r.run.Name))
	if err != nil {
		return o.notFollowed(ctx, r.run.Name, err)
	}
	defer t.drain()
	for {
		cm := w.get(r.run.Namespace, r.run.Name)
		if cm == nil {
			return fmt.Errorf("run %s is no longer kept", r.run.Name)
		}
		if r, err = readRun(cm); err != nil {
			return err
		}
		t.look(ctx, r)
		switch {
		case t.out.err != nil:
			return t.out.err
		case r.journal.Phase.Ended():
			t.drain()
			return runEnd(r)
		}
		select {
		case <-ctx.Done():
			return waited(ctx, "run "+r.run.Name+" goes on without you")
		case <-w.changed:
		}
	}
}

// teller tells each step once when it has ended, and what jobs at work say.
type teller struct {
	*cli
	k      *cluster
	step   string
	follow bool
	told   map[string]string // the attempt and phase in which each step was told last, by path
	tails  map[string]*tail  // logs of jobs at work, by path and attempt
	out    *transcript
}

// look tells what is new in a run.
func (t *teller) look(ctx context.Context, r aRun) {
	for _, rec := range begun(r.journal.Steps) {
		if !t.meant(rec.Path) {
			continue
		}
		state := fmt.Sprintf("%d %s", rec.Attempt, rec.Phase)
		if t.told[rec.Path] == state {
			continue
		}
		job, atWork := jobAtWork(rec)
		switch {
		case atWork:
			t.told[rec.Path] = state
			t.tail(ctx, r, rec, job)
		case rec.Phase.Ended() || !t.follow:
			t.told[rec.Path] = state
			streamed := t.endTail(rec)
			t.out.say(logHead(rec), printedBy(rec, streamed))
		}
	}
}

// meant says whether a step is one of those that were asked for.
func (t *teller) meant(path string) bool {
	return t.step == "" || path == t.step || strings.HasPrefix(path, t.step+"/") || strings.HasSuffix(path, "/"+t.step) || strings.Contains(path, "/"+t.step+"/")
}

// begun are the steps that have begun, in the order in which they did.
func begun(steps []plan.Record) []plan.Record {
	out := slices.DeleteFunc(slices.Clone(steps), func(s plan.Record) bool { return s.StartedAt == nil })
	slices.SortStableFunc(out, func(a, b plan.Record) int { return a.StartedAt.Compare(*b.StartedAt) })
	return out
}

func logHead(rec plan.Record) string {
	return fmt.Sprintf("==> %s (%s, %s)", rec.Path, rec.Type, rec.Phase)
}

// printedBy is what a step printed: its texts, or else its message and outputs.
// What was shown while it was at work is not shown again.
func printedBy(rec plan.Record, streamed bool) string {
	var parts []string
	add := func(text string) {
		if text = strings.TrimRight(text, "\n"); text != "" {
			parts = append(parts, text)
		}
	}
	for _, key := range []string{"log", "stdout", "stderr"} {
		if text, is := rec.Outputs[key].(string); is && (!streamed || key != "log") {
			add(text)
		}
	}
	if len(parts) == 0 {
		add(rec.Message)
		for _, item := range rec.Items {
			if item.Phase == plan.StepFailed {
				add(item.Segment() + ": " + item.Message)
			}
		}
	}
	if !hasText(rec.Outputs) {
		add(outputsText(rec.Outputs))
	}
	return strings.Join(parts, "\n")
}

func hasText(outputs map[string]any) bool {
	for _, key := range []string{"log", "stdout", "stderr"} {
		if _, there := outputs[key]; there {
			return true
		}
	}
	return false
}

func outputsText(outputs map[string]any) string {
	if len(outputs) == 0 {
		return ""
	}
	b, err := yaml.Marshal(outputs)
	if err != nil {
		return ""
	}
	return string(b)
}
