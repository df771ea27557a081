package view

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

// Ledger is what is known of the ledger of a plan. The zero value is a plan at which the agent has
// not looked.
type Ledger struct {
	Head   *ledger.Ledger // nil: there is none yet, or it cannot be read
	Closed []ledger.Entry // oldest first, those of its archive included
	Unread error          // why it, or its archive, cannot be read; nil: both can, or are not there
	Doubt  error          // why the agent cannot have written it or its archive; nil: it may have
}

// Claimed says whether a run is claimed that has not ended.
func (l Ledger) Claimed(name string) bool {
	return l.Head != nil && slices.ContainsFunc(l.Head.Open, func(e ledger.Entry) bool { return e.Run == name })
}

// Hidden says whether there is a ledger that cannot be read: what ran is not known.
func (l Ledger) Hidden() bool { return l.Head == nil && l.Unread != nil }

// Fault says, after "its ledger", what is wrong with it; empty: nothing is known to be.
func (l Ledger) Fault() string {
	switch {
	case l.Hidden():
		return fmt.Sprintf("cannot be read: %v; what ran of it is not known here", l.Unread)
	case l.Unread != nil:
		return fmt.Sprintf("cannot be read in full: %v; what ran of it earlier is not known here", l.Unread)
	case l.Doubt != nil:
		return "is " + doubtful(l.Doubt)
	}
	return ""
}

// doubtful says why a record cannot count as the agent's.
func doubtful(err error) string {
	why := err.Error()
	if forged := new(annotations.SignatureError); errors.As(err, &forged) {
		why = forged.Why
	}
	return "not known to be the agent's record: " + why
}
