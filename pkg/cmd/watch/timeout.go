package watch

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
)

// Waiting is the --wait and --timeout of commands that ask the agent for something.
type Waiting struct {
	Wait    bool
	Timeout time.Duration
}

// AddFlags adds --wait, which shows what, and --timeout.
func (w *Waiting) AddFlags(cmd *cobra.Command, what string) {
	cmd.Flags().BoolVar(&w.Wait, "wait", false, "show "+what)
	cmd.Flags().DurationVar(&w.Timeout, "timeout", 0, "how long to wait (exit code 124); 0 means for ever")
}

// Check refuses a --timeout that nothing waits for.
func (w *Waiting) Check(f *exit.Faults) {
	if w.Timeout < 0 {
		f.Add("--timeout must not be negative")
	}
	if w.Timeout > 0 && !w.Wait {
		f.Add("--timeout is for --wait")
	}
}

// errTimeout is why a wait ended that was given a --timeout.
var errTimeout = errors.New("--timeout passed") //nolint:gochecknoglobals // a sentinel for errors.Is

// WithTimeout ends ctx after --timeout; 0 is never.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, errTimeout)
}

// EndedEarly tells why a wait ended before what it waited for.
func EndedEarly(ctx context.Context, what string) error {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return exit.Errorf(exit.CodeTimeout, "--timeout passed: %s", what)
	}
	return exit.Errorf(exit.CodeInterrupted, "interrupted: %s", what)
}
