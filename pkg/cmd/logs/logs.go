// Package logs is the command that shows the output of a run's steps.
package logs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

type logsOptions struct {
	*factory.Factory
	name   string
	step   string
	follow bool
	out    *print.Values
	faults exit.Faults
}

// New shows the output of a run's steps.
func New(c *factory.Factory) *cobra.Command {
	o := &logsOptions{Factory: c, out: print.NewValues()}
	cmd := &cobra.Command{
		Use:   "logs RUN",
		Short: "What the steps of a run printed",
		Long: `What the steps of a run printed, in the order in which they began: the log of a
job, what a command in a container said, else a step's message and outputs. While
a job runs, the log of its pods is read with your own rights.

-f follows until the run has ended; the exit code is 4 if it failed, and 5 if the agent
falls silent meanwhile. What the steps of a loop printed is kept only while they run.

-o json prints a list with an item for each step. With -f it prints an object on a line of
its own, as soon as there is something to print: one for each line of a job's log, and one for
each step that has ended.`,
		Example: `  kubectl maint logs maint-run-orders-weekly-k2x7a
  kubectl maint logs maint-run-orders-weekly-k2x7a --step backup -f
  kubectl maint logs orders-weekly -o jsonpath='{.items[*].text}'`,
		RunE:              factory.RunE(o),
		ValidArgsFunction: completion.Kinds(c, annotations.KindRun, annotations.KindPlan),
	}
	cmd.Flags().StringVar(&o.step, "step", "", "one step, by its path or name, with the steps inside it")
	_ = cmd.RegisterFlagCompletionFunc("step", completion.Steps(c))
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "follow until the run has ended")
	o.out.AddFlags(cmd)
	return cmd
}

// Complete takes the run's name.
func (o *logsOptions) Complete(_ *cobra.Command, args []string) error {
	o.name = factory.OneName(args, "RUN", &o.faults)
	return nil
}

// Validate checks the format.
func (o *logsOptions) Validate() error {
	o.out.Check(&o.faults)
	return o.faults.Err()
}

// Run prints the present output, and follows with -f.
func (o *logsOptions) Run(ctx context.Context) error {
	k, err := o.Connect()
	if err != nil {
		return err
	}
	r, err := o.RunOf(ctx, k, o.name)
	if err != nil {
		return err
	}
	o.warnOfTrigger(ctx, k, r)
	if err := o.known(r); err != nil {
		return err
	}
	t := &logPrinter{env: o.Env, k: k, words: print.New(o.Env, view.PlanZone(r.Run.Spec, o.Zone)), step: o.step, follow: o.follow, printed: map[string]string{}, tails: map[string]*tail{}, out: &logWriter{out: o.Out}}
	if !o.out.Lines() {
		t.out.entries = &entries{out: o.out, run: r, stream: o.follow}
	}
	if !o.follow || r.Journal.Phase.Ended() { // else its silence ends the command
		_, _ = o.AgentBeside(ctx, k)() // whoever may not look for it does without
	}
	if o.follow {
		return o.followLogs(ctx, k, r, t)
	}
	t.update(ctx, r)
	if r.Journal.StartedAt == nil {
		fmt.Fprintf(o.ErrOut, "no step has begun: the run is %s\n", t.words.RunHead(k.Answered(ctx, r)))
	}
	return t.out.finish()
}

// warnOfTrigger says that a newer run is asked for than the newest of a plan that is shown.
func (o *logsOptions) warnOfTrigger(ctx context.Context, k *factory.Cluster, r view.Run) {
	if _, bare := factory.SplitKind(o.name); bare != r.Run.Plan { // a run was named
		return
	}
	if cm, err := k.Plan(ctx, r.Run.Plan); err == nil && watch.TriggerWaits(ctx, k, cm) {
		o.Warn(fmt.Sprintf("run %s is asked for, and has not begun: the trigger of plan %s waits, see %s", view.AskedRun(cm), cm.Name, o.Suggest().Why(cm.Name)))
	}
}

// known refuses a step that the run does not have. Steps of a loop's items are known only while the
// item is running, so -f waits for them.
func (o *logsOptions) known(r view.Run) error {
	if o.step == "" || len(view.StepsNamed(r, o.step)) > 0 {
		return nil
	}
	_, found := r.Run.Tree().Find(o.step)
	r.Run.Tree().Walk(func(s plan.Step) { found = found || s.Name == o.step })
	if found {
		return nil
	}
	return fmt.Errorf("run %s has no step %q; it has %s", r.Run.Name, o.step, strings.Join(view.Paths(r), ", "))
}

// followLogs looks again at each change of the run, until it has ended.
func (o *logsOptions) followLogs(ctx context.Context, k *factory.Cluster, r view.Run, t *logPrinter) error {
	w, err := watch.ConfigMaps(ctx, k, r.Run.Namespace, watch.ByName(r.Run.Name))
	if err != nil {
		return watch.NotFollowed(ctx, r.Run.Name, err)
	}
	defer t.drain()
	agent := o.WatchAgent(k)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		cm := w.ConfigMap(r.Run.Namespace, r.Run.Name)
		if cm == nil {
			return fmt.Errorf("run %s is no longer kept", r.Run.Name)
		}
		if r, err = k.ReadRun(ctx, cm); err != nil {
			return err
		}
		t.update(ctx, r)
		switch {
		case t.out.err != nil:
			return t.out.err
		case r.Journal.Phase.Ended():
			t.drain()
			return watch.RunEnd(t.words, r)
		}
		select {
		case <-ctx.Done():
			return watch.EndedEarly(ctx, "run "+r.Run.Name+" goes on without you")
		case <-w.Changed:
		case <-tick.C: // without an agent, a run no longer changes
			if err := agent.Check(ctx, fmt.Sprintf("run %s goes on when an agent is back: see %s", r.Run.Name, o.Suggest().StatusOf(r.Run.Name))); err != nil {
				return err
			}
		}
	}
}

// logPrinter prints the output of each step once it has ended, and that of running jobs.
type logPrinter struct {
	env     factory.Env
	k       *factory.Cluster
	words   print.Printer
	step    string
	follow  bool
	printed map[string]string // the attempt and phase of each step that was printed last, by path
	tails   map[string]*tail  // logs of running jobs, by path and attempt
	out     *logWriter
}

// update prints what is new in a run.
func (t *logPrinter) update(ctx context.Context, r view.Run) {
	for _, rec := range begun(r.Journal.Steps) {
		if !t.meant(rec.Path) {
			continue
		}
		state := fmt.Sprintf("%d %s", rec.Attempt, rec.Phase)
		if t.printed[rec.Path] == state {
			continue
		}
		job, atWork := jobAtWork(rec)
		switch {
		case atWork:
			t.printed[rec.Path] = state
			t.tail(ctx, r, rec, job)
		case rec.Phase.Ended() || !t.follow:
			t.printed[rec.Path] = state
			streamed := t.endTail(rec)
			t.out.say(rec, printedBy(rec, streamed, t.told))
		}
	}
}

// told is a message of the agent with its instants for people; unchanged for scripts.
func (t *logPrinter) told(message string) string {
	if t.out.entries != nil {
		return message
	}
	return t.words.AgentText(message)
}

// meant says whether a step was asked for.
func (t *logPrinter) meant(path string) bool {
	return t.step == "" || path == t.step || strings.HasPrefix(path, t.step+"/") || strings.HasSuffix(path, "/"+t.step) || strings.Contains(path, "/"+t.step+"/")
}

// begun are the steps that have begun, in that order.
func begun(steps []run.Record) []run.Record {
	out := slices.DeleteFunc(slices.Clone(steps), func(s run.Record) bool { return s.StartedAt == nil })
	slices.SortStableFunc(out, func(a, b run.Record) int { return a.StartedAt.Compare(*b.StartedAt) })
	return out
}

func logHead(rec run.Record) string {
	return fmt.Sprintf("==> %s (%s, %s)", rec.Path, rec.Type, rec.Phase)
}

// printedBy is the output of a step: its texts, or else its message and outputs, without what was
// streamed before.
func printedBy(rec run.Record, streamed bool, told func(string) string) string {
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
		add(told(rec.Message))
		for _, item := range rec.Items {
			if item.Phase == run.StepFailed {
				add(item.Segment() + ": " + told(item.Message))
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
