// Package look holds the commands that show what is, was and will be, and write nothing.
package look

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

type checkOptions struct {
	*factory.Factory
	name   string
	files  []string
	atText string
	out    *print.Values
	quiet  bool
	faults exit.Faults
}

// NewCheck says whether change is permitted.
func NewCheck(c *factory.Factory) *cobra.Command {
	o := &checkOptions{Factory: c, out: print.NewValues()}
	cmd := &cobra.Command{
		Use:   "check POLICY|PLAN|NODE | -f FILE [NAME]",
		Short: "Is change permitted? For runbooks: exit code 0 or 3",
		Long: `Say whether change is permitted, now or at a time, and when that changes. The
exit code is 0 if it is, and 3 if it is not or if that is in doubt: if the policy of
a plan is missing or broken, or if you may not read what decides and the agent has
published no verdict. Files with faults are an error, with exit code 1. Where a plan
and a node have one name, write plan/NAME or node/NAME.`,
		Example: `  kubectl maint check weekends && ./upgrade.sh
  kubectl maint check orders-weekly --at "sat 02:00"
  kubectl maint check -f policies/ weekends -o json`,
		RunE:              factory.RunE(o),
		ValidArgsFunction: completion.Both(completion.Kinds(c, annotations.KindPlan, annotations.KindPolicy), completion.Likely(c, completion.Governed)),
	}
	cmd.Flags().StringSliceVarP(&o.files, "filename", "f", nil, "file or folder, or - for standard input; no cluster is asked")
	cmd.Flags().StringVar(&o.atText, "at", "", `the instant to judge: 2h, "sat 02:00", RFC 3339; default now`)
	o.out.AddFlags(cmd)
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "print nothing; the exit code is the answer")
	return cmd
}

// Complete takes the name.
func (o *checkOptions) Complete(_ *cobra.Command, args []string) error {
	switch {
	case len(o.files) == 0:
		o.name = factory.OneName(args, "POLICY, PLAN or NODE", &o.faults)
	case len(args) > 1:
		o.faults.Add("give one NAME, not %d", len(args))
	case len(args) == 1:
		o.name = args[0]
	}
	return nil
}

// Validate checks the flags.
func (o *checkOptions) Validate() error {
	o.out.Check(&o.faults)
	if o.quiet {
		unsaid := *o.Factory
		unsaid.ErrOut = io.Discard
		o.Factory = &unsaid
	}
	if o.atText != "" {
		o.faults.Check(instant.Understood("--at", o.atText, o.Now()))
	}
	return o.faults.Err()
}

func (o *checkOptions) at(zone string) (time.Time, error) {
	if o.atText == "" {
		return o.Now(), nil
	}
	at, err := instant.Parse(o.atText, o.Now(), zone)
	if err != nil {
		return at, exit.Errorf(exit.CodeUsage, "--at: %w", err)
	}
	return at, nil
}

func (o *checkOptions) find(ctx context.Context) (view.Subject, error) {
	if len(o.files) > 0 {
		w, err := source.Read(o.Factory, o.files)
		if err != nil {
			return view.Subject{}, err
		}
		return w.Subject(o.name, o.Zone)
	}
	k, err := o.Connect()
	if err != nil {
		return view.Subject{}, err
	}
	agent, _ := o.Agent(ctx, k)
	o.WarnSilent(agent)
	return source.SubjectOf(ctx, o.Factory, k, agent, o.name)
}

// Run prints the verdict; without permission, the exit code says so, too.
func (o *checkOptions) Run(ctx context.Context) error {
	s, err := o.find(ctx)
	if err != nil {
		return err
	}
	at, err := o.at(s.Zone)
	if err != nil {
		return err
	}
	if o.atText != "" {
		fmt.Fprintf(o.ErrOut, "at %s\n", instant.Both(at, s.Zone))
	}
	source.WarnInvalid(o.Factory, s)
	source.WarnDeleting(o.Factory, s)
	v := s.Verdict(at)
	switch {
	case o.quiet:
	case o.out.Format() == "json":
		if err := o.printJSON(v); err != nil {
			return err
		}
	case !o.out.Lines():
		if err := o.out.Print(o.Out, print.Value{Kind: "Verdict", Name: s.String(), Body: v}); err != nil {
			return err
		}
	default:
		for _, l := range print.VerdictLines(s, v, at) {
			fmt.Fprintln(o.Out, l)
		}
	}
	if !v.Permitted {
		return exit.Errorf(exit.CodeNotNow, "")
	}
	return nil
}

func (o *checkOptions) printJSON(v schedule.Verdict) error {
	return print.JSON(o.Out, struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		schedule.Verdict
	}{document.APIVersion, "Verdict", v})
}
