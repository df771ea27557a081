package executors

import "errors"

// ReasonTooLarge is a step that would have to read more than the agent has room for.
const ReasonTooLarge = "TooLarge"

// TooLargeError is an answer of an API server that is not read to its end. Asking again
// does not help: narrow what is asked for.
type TooLargeError struct {
	What   string
	Object string // namespace/name of the one object that is too large, where it is known
}

func (e *TooLargeError) Error() string {
	if e.Object == "" {
		return e.What
	}
	return e.What + ": it is " + e.Object
}

// TooLarge is what such an answer means for a step; ok is false for every other error.
func TooLarge(err error) (out Outcome, ok bool) {
	var large *TooLargeError
	if !errors.As(err, &large) {
		return Outcome{}, false
	}
	return Refuse(ReasonTooLarge, "%s", large), true
}
