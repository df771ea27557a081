package watch

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
)

// Waiting are --wait and --timeout of commands that write intents for the agent.
type Waiting struct {
	Wait    bool
	Timeout time.Duration
}

// AddFlags adds --wait, with a description of what it shows, and --timeout.
func (w *Waiting) AddFlags(cmd *cobra.Command, what string) {
	cmd.Flags().BoolVar(&w.Wait, "wait", false, "show "+what)
	cmd.Flags().DurationVar(&w.Timeout, "timeout", 0, "how long to wait (exit code 124); 0 means for ever")
}

// Check refuses --timeout without --wait.
func (w *Waiting) Check(f *exit.Faults) {
	if w.Timeout < 0 {
		f.Add("--timeout must not be negative")
	}
	if w.Timeout > 0 && !w.Wait {
		f.Add("--timeout is for --wait")
	}
}

// WithTimeout ends ctx after --timeout; 0 is never. done ends it, too, and gives an error that the
// timeout caused, such as that of a request without an answer, its exit code.
func WithTimeout(ctx context.Context, d time.Duration) (limited context.Context, done func(err *error)) {
	if d <= 0 {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, func(*error) { cancel() }
	}
	end := time.Now().Add(d)
	ctx, cancel := context.WithDeadlineCause(ctx, end, remedy.TimeoutPassed)
	return ctx, func(err *error) {
		interrupted := ctx.Err() != nil && !errors.Is(context.Cause(ctx), remedy.TimeoutPassed)
		if known := new(exit.Error); *err != nil && !errors.As(*err, &known) && !interrupted && !time.Now().Before(end) { // a client may notice the deadline before ctx does
			*err = exit.Errorf(exit.CodeTimeout, "--timeout passed: %w", *err)
		}
		cancel()
	}
}

// EndedEarly says why a wait ended early.
func EndedEarly(ctx context.Context, what string) error {
	if errors.Is(context.Cause(ctx), remedy.TimeoutPassed) {
		return exit.Errorf(exit.CodeTimeout, "--timeout passed: %s", what)
	}
	return exit.Errorf(exit.CodeInterrupted, "interrupted: %s", what)
}
