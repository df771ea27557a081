package trigger

import "github.com/kubectl-maint/kubectl-maint/pkg/run"

// full says whether no more runs may be claimed.
func (d *decider) full() bool { return d.f.Room != nil && len(d.out.Claims) >= d.f.Room.Runs }

// hasRoom says whether a request may become a run beside those that are active; when not, it waits.
func (d *decider) hasRoom(what string, dry bool) bool {
	if !d.full() {
		return true
	}
	d.wait(dry, "%s waits: %s", what, d.f.Room.Full)
	d.out.Status.NoRoom = true
	d.out.Status.Ready = Readiness{Reason: run.ReasonNotReady, Message: d.f.Room.Full}
	return false
}
