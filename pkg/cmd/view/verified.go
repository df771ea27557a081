package view

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

// ReadRun reads a run from its object. A live run without the agent's signature is an error: the
// agent ignores it. An ended one says so in its message, and its actors are unverified.
func ReadRun(cm *corev1.ConfigMap) (Run, error) {
	r, j, err := annotations.ReadRun(cm)
	if err != nil {
		return Run{Run: r, Journal: j}, err
	}
	out := Run{Run: r, Journal: j}
	if cm.DeletionTimestamp != nil {
		out.Deleted = cm.DeletionTimestamp.Time
		out.Answers = out.deletion()
	}
	err = annotations.CheckForm(cm)
	if err == nil {
		return out, nil
	}
	if !j.Phase.Ended() {
		return Run{}, err
	}
	out.Journal.Message = doubtful(err) + Prefix("; ", j.Message)
	Doubt(out.Verified())
	return out, nil
}

// Verified are the fields of a run that say whether an actor is verified.
func (r *Run) Verified() []*bool {
	out := []*bool{&r.Run.Request.Verified}
	j := &r.Journal
	if j.Approved != nil {
		out = append(out, &j.Approved.Verified)
	}
	if j.Passed != nil {
		out = append(out, &j.Passed.Verified)
	}
	if j.Allowed != nil {
		out = append(out, &j.Allowed.Verified)
	}
	if j.End != nil && j.End.By != nil {
		out = append(out, &j.End.By.Verified)
	}
	for i := range j.Steps {
		rec := &j.Steps[i]
		if rec.Resumed != nil {
			out = append(out, &rec.Resumed.Verified)
		}
		if rec.Approval != nil {
			out = append(out, &rec.Approval.Verified)
		}
		if rec.Drift == nil {
			continue
		}
		if rec.Drift.Accepted != nil {
			out = append(out, &rec.Drift.Accepted.Verified)
		}
		for _, d := range rec.Drift.Earlier {
			if d.Accepted != nil {
				out = append(out, &d.Accepted.Verified)
			}
		}
	}
	return out
}

// LedgerVerified are the fields of a ledger that say so.
func LedgerVerified(l *ledger.Ledger) []*bool {
	var out []*bool
	for _, entries := range [][]ledger.Entry{l.Open, l.Recent} {
		for i := range entries {
			if q := entries[i].Request; q != nil {
				out = append(out, &q.Verified)
			}
			if o := entries[i].Outcome; o != nil {
				for at := range o.Overrides {
					out = append(out, &o.Overrides[at].Verified)
				}
			}
		}
	}
	return out
}

// Doubt marks all of them as unverified.
func Doubt(verified []*bool) {
	for _, v := range verified {
		*v = false
	}
}
