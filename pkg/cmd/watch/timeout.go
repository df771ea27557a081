package watch

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
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

// WithTimeout ends ctx after --timeout; 0 is never. done ends it, too: an error that the timeout
// caused, as of a request that got no answer until then, has its exit code from there on.
func WithTimeout(ctx context.Context, d time.Duration) (limited context.Context, done func(err *error)) {
	if d <= 0 {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, func(*error) { cancel() }
	}
	end := time.Now().Add(d)
	ctx, cancel := context.WithDeadlineCause(ctx, end, factory.TimeoutPassed)
	return ctx, func(err *error) {
		interrupted := ctx.Err() != nil && !errors.Is(context.Cause(ctx), factory.TimeoutPassed)
		if known := new(exit.Error); *err != nil && !errors.As(*err, &known) && !interrupted && !time.Now().Before(end) { // a client may see the end before ctx does
			*err = exit.Errorf(exit.CodeTimeout, "--timeout passed: %w", *err)
		}
		cancel()
	}
}

// EndedEarly tells why a wait ended before what it waited for.
func EndedEarly(ctx context.Context, what string) error {
	if errors.Is(context.Cause(ctx), factory.TimeoutPassed) {
		return exit.Errorf(exit.CodeTimeout, "--timeout passed: %s", what)
	}
	return exit.Errorf(exit.CodeInterrupted, "interrupted: %s", what)
}
