package schedule

import (
	"errors"
	"fmt"
	"strings"
)

// FieldError is one fault of one field, told to the person who wrote it: the
// field, what was found, and what is allowed or what to write instead. Field is
// a path below the value that was parsed ("cron", "exdate[1]",
// "weekly.interval"), so that a caller puts its own path before it with Under.
type FieldError struct {
	Field   string
	Value   string
	Message string
	Cause   error // what errors.Is finds, if there is more to know
}

func (e *FieldError) Unwrap() error { return e.Cause }

func (e *FieldError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("%s: %s", e.Field, e.Message)
	}
	return fmt.Sprintf("%s: %q: %s", e.Field, e.Value, e.Message)
}

// Faults lists the field errors that err is or joins, in the order in which
// they were found. Other errors come along as a FieldError without a field, so
// that nothing is lost.
func Faults(err error) []*FieldError {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*FieldError
		for _, one := range joined.Unwrap() {
			all = append(all, Faults(one)...)
		}
		return all
	}
	var fault *FieldError
	if errors.As(err, &fault) {
		return []*FieldError{fault}
	}
	return []*FieldError{{Message: err.Error(), Cause: err}}
}

// Under puts path before the field of every fault in err; nil stays nil.
func Under(path string, err error) error {
	if err == nil {
		return nil
	}
	var under faults
	for _, fault := range Faults(err) {
		under = append(under, fault.under(path))
	}
	return under.err()
}

func (e *FieldError) under(path string) *FieldError {
	moved := *e
	moved.Field = joinPath(path, e.Field)
	return &moved
}

func joinPath(path, field string) string {
	switch {
	case field == "":
		return path
	case path == "" || strings.HasPrefix(field, "["):
		return path + field
	}
	return path + "." + field
}

// faults gathers field errors so that all of them are told at once.
type faults []error

func (f *faults) add(field, value, format string, args ...any) {
	*f = append(*f, &FieldError{Field: field, Value: value, Message: fmt.Sprintf(format, args...)})
}

func (f *faults) join(path string, err error) {
	for _, fault := range Faults(err) {
		*f = append(*f, fault.under(path))
	}
}

func (f faults) err() error { return errors.Join(f...) }
