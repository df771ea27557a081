package override

import (
	"fmt"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// sayReplaced says what a new override took the place of: beside the result, or beside what is
// printed for scripts.
func (o *overrideOptions) sayReplaced(f found) {
	said, to := o.replaced(f), o.Out
	if o.Format() != "" {
		to = o.ErrOut
	}
	if said != "" {
		fmt.Fprintf(to, "  %s\n", said)
	}
}

// replaced says what a new override took the place of, since an object has one strategy and the
// earlier one does not come back when the new one ends; and the command that brings it back. Empty:
// there was none.
func (o *overrideOptions) replaced(f found) string {
	was := o.inForce(f)
	if o.end || was == "" {
		return ""
	}
	s := annotations.Intent(f.meta.GetAnnotations()).Stanza
	hand := o.Suggest()
	if f.meta.GetNamespace() == "" {
		hand = hand.In("")
	}
	again := hand.AllowUntil
	if s.Strategy == schedule.RestrictiveUntil {
		again = hand.FreezeUntil
	}
	reason := annotations.ActorOf(f.meta.GetAnnotations(), annotations.ChangeStrategy).Reason
	return fmt.Sprintf("this replaces what was there: %s; that does not come back by itself: run %s",
		was, again(f.String(), s.Until.UTC().Format(time.RFC3339), repeated(reason)))
}

// longReason is the length above which a reason is not repeated in a command.
const longReason = 100

// repeated is a reason as a command repeats it.
func repeated(reason string) string {
	if reason == "" || len(reason) > longReason {
		return intent.Unsaid
	}
	return reason
}
