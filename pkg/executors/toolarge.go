package executors

import "errors"

// ReasonTooLarge is the reason of a step that would have to read more than the agent has memory
// for.
const ReasonTooLarge = "TooLarge"

// TooLargeError means that an answer of an API server was too large to read. Retrying does not
// help: the request has to be narrower.
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

// TooLarge is the outcome for such an answer; ok is false for every other error.
func TooLarge(err error) (out Outcome, ok bool) {
	var large *TooLargeError
	if !errors.As(err, &large) {
		return Outcome{}, false
	}
	return Refuse(ReasonTooLarge, "%s", large), true
}
