package factory

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// Command is implemented by the options of every command: filled in from the command line,
// validated with all faults at once, then run.
type Command interface {
	Complete(cmd *cobra.Command, args []string) error
	Validate() error
	Run(ctx context.Context) error
}

// RunE runs the three stages of a command, and gives its errors their exit codes.
func RunE(o Command) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if err := o.Complete(cmd, args); err != nil {
			return exit.Coded(ctx, err)
		}
		if err := o.Validate(); err != nil {
			return exit.Coded(ctx, err)
		}
		if err := checkSelector(cmd); err != nil {
			return err
		}
		return exit.Coded(ctx, o.Run(ctx))
	}
}

// checkSelector refuses -l that is no label selector, of whatever command: an API server would say
// so too, but not that it is the command line that is wrong.
func checkSelector(cmd *cobra.Command) error {
	f := cmd.Flags().Lookup("selector")
	if f == nil {
		return nil
	}
	if _, err := selector.Parse(f.Value.String()); err != nil {
		return exit.Errorf(exit.CodeUsage, "-l: %w", err)
	}
	return nil
}

// NoNames refuses names where a command takes none.
func NoNames(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return exit.Errorf(exit.CodeUsage, "'%s' takes no names, such as %q: see '%s --help'", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// OneName is the single name that a command takes.
func OneName(args []string, what string, f *exit.Faults) string {
	switch {
	case len(args) == 1 && args[0] != "":
		return args[0]
	case len(args) == 0:
		f.Add("%s is missing; --help shows examples", what)
	default:
		f.Add("one %s at a time, not %d", what, len(args))
	}
	return ""
}
