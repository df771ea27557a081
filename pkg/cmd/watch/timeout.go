package watch

import (
	"context"
	"errors"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
)

// CheckTimeout refuses a --timeout that nothing waits for.
func CheckTimeout(timeout time.Duration, wait bool, f *exit.Faults) {
	if timeout < 0 {
		f.Add("--timeout must not be negative")
	}
	if timeout > 0 && !wait {
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
