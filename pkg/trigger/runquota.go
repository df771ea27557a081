package trigger

import "github.com/kubectl-maint/kubectl-maint/pkg/run"

// full says whether no more runs may be claimed.
func (d *decider) full() bool { return d.f.Quota != nil && len(d.out.Claims) >= d.f.Quota.Runs }

// isWithinQuota says whether a request may become a run beside those that are active; when not, it waits.
func (d *decider) isWithinQuota(what string, dry bool) bool {
	if !d.full() {
		return true
	}
	d.wait(dry, "%s waits: %s", what, d.f.Quota.Full)
	d.out.Status.OverQuota = true
	d.out.Status.Ready = Readiness{Reason: run.ReasonNotReady, Message: d.f.Quota.Full}
	return false
}
