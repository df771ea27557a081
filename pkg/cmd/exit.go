package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// The exit codes of every command, fixed by the contract in docs/cli.md.
const (
	CodeDone        = 0   // done, permitted, succeeded
	CodeError       = 1   // an error
	CodeUsage       = 2   // the command line is wrong
	CodeNotNow      = 3   // not permitted now, blocked or skipped
	CodeRunFailed   = 4   // the run failed
	CodeNoAgent     = 5   // the agent is missing or too old
	CodeTimeout     = 124 // --timeout passed
	CodeInterrupted = 130 // Ctrl-C
)

// ExitError is an error that knows the exit code a script should see. Without
// an Err everything was already said.
type ExitError struct {
	Code int
	Err  error
}

// Error is what is told to the person.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *ExitError) Unwrap() error { return e.Err }

func exit(code int, format string, args ...any) error {
	return &ExitError{Code: code, Err: fmt.Errorf(format, args...)}
}

// faults gathers everything wrong with a command line, to be told at once.
type faults []string

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

func (f *faults) check(err error) {
	if err != nil {
		*f = append(*f, err.Error())
	}
}

func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return &ExitError{Code: CodeUsage, Err: errors.New(strings.Join(f, "\n"))}
}

// coded gives an error that has none the code of an error.
func coded(ctx context.Context, err error) error {
	var known *ExitError
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled):
		return &ExitError{Code: CodeInterrupted, Err: errors.New("interrupted")}
	}
	return &ExitError{Code: CodeError, Err: err}
}

// codeOf is the exit code of what a command line ended with. What cobra itself
// refused never reached a command: the command line is wrong.
func codeOf(err error) int {
	var known *ExitError
	switch {
	case err == nil:
		return CodeDone
	case errors.As(err, &known):
		return known.Code
	}
	return CodeUsage
}
