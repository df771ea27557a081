package cmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// answerOptions are those of approve and of reject.
type answerOptions struct {
	*cli
	dryRun
	intent, other string // the annotations of this answer and of the opposite one
	word          string // approved, rejected
	name, step    string
	reason        string
	wait          bool
	timeout       time.Duration
	faults        faults
}

func newApprove(c *cli) *cobra.Command {
	o := &answerOptions{cli: c, intent: annotations.Approve, other: annotations.Reject, word: "approved"}
	cmd := o.command("approve", "Let a run begin, or go on, that waits for approval", `Approve a run that waits for approval before it begins, or a step of it that asks.
RUN alone is enough where one thing waits. Who may do this is who may annotate
the plan.`)
	cmd.Flags().BoolVar(&o.wait, "wait", false, "show the run until it ends")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "how long to wait (exit code 124); 0 means for ever")
	return cmd
}

func newReject(c *cli) *cobra.Command {
	o := &answerOptions{cli: c, intent: annotations.Reject, other: annotations.Approve, word: "rejected"}
	return o.command("reject", "Say no to a run, or a step of it, that waits for approval", `Reject a run that waits for approval: it ends without a step, and its slot is
Skipped. A step that is rejected fails, and is not tried again: the run goes on
with onFailure and finally. RUN alone is enough where one thing waits.`)
}

func (o *answerOptions) command(verb, short, long string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   verb + " RUN[/STEP]",
		Short: short,
		Long:  long,
		Example: fmt.Sprintf(`  kubectl maint %[1]s maint-run-orders-weekly-k2x7a --reason "CHG-1234"
  kubectl maint %[1]s maint-run-orders-weekly-k2x7a/before-switch`, verb),
		RunE:              run(o),
		ValidArgsFunction: o.completeQuestions,
	}
	o.dryRun.addFlag(cmd)
	cmd.Flags().StringVar(&o.reason, "reason", "", "why; it is kept with the run")
	return cmd
}

// Complete takes the run's name apart from the step's.
func (o *answerOptions) Complete(_ *cobra.Command, args []string) error {
	name := oneName(args, "RUN", &o.faults)
	o.name, o.step, _ = strings.Cut(bareName(name), "/")
	return nil
}

// Validate checks the flags.
func (o *answerOptions) Validate() error {
	o.dryRun.check(&o.faults)
	checkTimeout(o.timeout, o.wait, &o.faults)
	return o.faults.err()
}

// checkTimeout refuses a --timeout that nothing waits for.
func checkTimeout(timeout time.Duration, wait bool, f *faults) {
	if timeout < 0 {
		f.add("--timeout must not be negative")
	}
	if timeout > 0 && !wait {
		f.add("--timeout is for --wait")
	}
}

// Run writes the answer on the run's plan.
func (o *answerOptions) Run(ctx context.Context) error {
	ctx, cancel := withTimeout(ctx, o.timeout)
	defer cancel()
	k, err := o.connect()
	if err != nil {
		return err
	}
	r, err := k.run(ctx, o.name)
	if err != nil {
		return err
	}
	wanted, err := o.asked(r)
	if err != nil {
		return err
	}
	if !o.client() {
		if err := o.needAgent(ctx, k); err != nil {
			return err
		}
	}
	if err := o.askRun(ctx, k, r, o.intent, wanted, o.reason, &o.dryRun, o.other); err != nil {
		return err
	}
	if !o.wait || o.mark() != "" {
		fmt.Fprintf(o.Out, "run/%s %s%s\n", wanted, o.word, o.mark())
		return nil
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.run.Namespace, Name: r.run.Plan, UID: uidOf(r.run.PlanUID)}}
	return o.followRun(ctx, k, cm, r.run.Name)
}

// asked is what the answer is for, as the annotation names it.
func (o *answerOptions) asked(r aRun) (string, error) {
	if o.step != "" {
		return o.askedStep(r)
	}
	switch open := questions(r); len(open) {
	case 0:
		return "", exit(CodeNotNow, "run %s does not wait for approval: it is %s", r.run.Name, o.view(zoneOf(r.run.Spec, o.Zone)).runHead(r))
	case 1:
		return open[0], nil
	default:
		return "", exit(CodeUsage, "run %s waits for %d approvals: name one of %s", r.run.Name, len(open), strings.Join(open, ", "))
	}
}

// askedStep finds the step by its path, or by its name where one step has it.
func (o *answerOptions) askedStep(r aRun) (string, error) {
	paths := stepsNamed(r, o.step)
	switch {
	case len(paths) == 0:
		return "", fmt.Errorf("run %s has no step %q; it has %s", r.run.Name, o.step, strings.Join(pathsOf(r), ", "))
	case len(paths) > 1:
		return "", exit(CodeUsage, "run %s has %d steps %q: name one of %s", r.run.Name, len(paths), o.step, strings.Join(paths, ", "))
	}
	rec := r.journal.Record(paths[0])
	if !asks(*rec) || r.journal.Phase != plan.RunRunning {
		return "", exit(CodeNotNow, "step %s of run %s does not wait for approval: it is %s (type %s)", rec.Path, r.run.Name, rec.Phase, rec.Type)
	}
	return r.run.Name + "/" + rec.Path, nil
}

// stepsNamed are the paths of the steps that a word means: one path, or all steps
// of that name.
func stepsNamed(r aRun, word string) []string {
	if r.journal.Record(word) != nil {
		return []string{word}
	}
	var out []string
	for _, path := range pathsOf(r) {
		if strings.HasSuffix(path, "/"+word) {
			out = append(out, path)
		}
	}
	return out
}

func pathsOf(r aRun) []string {
	out := make([]string, len(r.journal.Steps))
	for i, rec := range r.journal.Steps {
		out[i] = rec.Path
	}
	return out
}

// asks says whether a step waits for somebody's answer.
func asks(rec plan.Record) bool {
	return rec.Type == plan.TypeApproval && rec.Phase == plan.StepRunning && rec.Approval == nil
}

// questions are what a run waits for somebody to approve, as RUN or RUN/STEP. A
// run that the agent has not looked at yet will ask before anything else.
func questions(r aRun) []string {
	j := r.journal
	if j.Phase == plan.RunPending && j.Section != plan.SectionClosing {
		if r.run.Spec.RequiresApproval && j.Approved == nil && !r.run.Request.DryRun {
			return []string{r.run.Name}
		}
		return nil
	}
	var out []string
	for _, rec := range j.Steps {
		if j.Phase == plan.RunRunning && asks(rec) {
			out = append(out, r.run.Name+"/"+rec.Path)
		}
	}
	return out
}

// completeQuestions offers what waits for approval. It reads whole runs, for
// only their journals tell; of live ones there are few.
func (o *answerOptions) completeQuestions(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	k, err := o.connect()
	if err != nil || len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	runs, err := k.runsOf(ctx, k.namespace, "", liveOnly)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, r := range runs {
		out = append(out, questions(r)...)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
