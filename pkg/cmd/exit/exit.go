package exit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Error is an error with the exit code for scripts. Without an Err, everything was printed already.
type Error struct {
	Code int
	Err  error
}

// Error is what is told to the person.
func (e *Error) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf is an error with its exit code.
func Errorf(code int, format string, args ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// helped is an error with advice.
type helped struct {
	error
	help string
}

// Unwrap is the cause.
func (h *helped) Unwrap() error { return h.error }

// WithHelp adds advice to an error. It is printed where the error ends a command; text that quotes
// the error omits it. Of nested advice the outer counts.
func WithHelp(err error, help string) error { return &helped{err, help} }

// Faults collects everything wrong with a command line.
type Faults []string

// Add adds a fault.
func (f *Faults) Add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// Check adds an error, if there is one.
func (f *Faults) Check(err error) {
	if err != nil {
		*f = append(*f, err.Error())
	}
}

// Err is all faults as one usage error; nil without any.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return &Error{Code: CodeUsage, Err: errors.New(strings.Join(f, "\n"))}
}

// Coded gives an error without an exit code that of another error.
func Coded(ctx context.Context, err error) error {
	var known *Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled):
		return &Error{Code: CodeInterrupted, Err: errors.New("interrupted")}
	}
	return &Error{Code: CodeError, Err: err}
}

// CodeOf is the exit code for the error of a command line. Errors of cobra itself mean that the
// command line is wrong.
func CodeOf(err error) int {
	var known *Error
	switch {
	case err == nil:
		return CodeDone
	case errors.As(err, &known):
		return known.Code
	}
	return CodeUsage
}

// Lines are an error for people, one line for each of its errors. An error about rights or credentials
// begins as kubectl's do. Advice follows the first line of the error that it is about; login is that for
// who has to log in.
func Lines(err error, login string) []string {
	var out []string
	for _, one := range apart(err) {
		out = append(out, linesOf(one, login)...)
	}
	return out
}

// apart are the errors that were joined to one.
func apart(err error) []error {
	if known, is := err.(*Error); is && known.Err != nil { //nolint:errorlint // what stands around it is part of the text
		err = known.Err
	}
	joined, are := err.(interface{ Unwrap() []error }) //nolint:errorlint // an error that wraps several has a text of its own
	if !are {
		return []error{err}
	}
	var texts []string
	for _, one := range joined.Unwrap() {
		texts = append(texts, one.Error())
	}
	if err.Error() != strings.Join(texts, "\n") {
		return []error{err}
	}
	var out []error
	for _, one := range joined.Unwrap() {
		out = append(out, apart(one)...)
	}
	return out
}

func linesOf(err error, login string) []string {
	head, tail, text, known := "error: ", "", err.Error(), new(helped)
	if apierrors.IsForbidden(err) {
		head = "Error from server (Forbidden): "
	}
	if errors.As(err, &known) {
		tail = "; " + known.help
	}
	if said := loggedOut(err); said != "" {
		text, tail = said, "; "+login
	}
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" {
			out = append(out, head+line+tail)
			head, tail = "error: ", ""
		}
	}
	return out
}
