package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// tenure is a time in which one process was the leader.
type tenure struct {
	process  string
	from, to time.Time // to: when the next one had it, or it was given back; zero: never
}

// tenures reads who led from the writes of the lease.
func tenures(writes []write) []tenure {
	var out []tenure
	holder := ""
	for _, w := range writes {
		if w.Object.Resource != "leases" || w.object.Spec.HolderIdentity == nil || w.process == "" {
			continue
		}
		now := *w.object.Spec.HolderIdentity
		if now == holder {
			continue
		}
		if n := len(out); n > 0 && out[n-1].to.IsZero() {
			out[n-1].to = w.committed
		}
		if now != "" {
			out = append(out, tenure{process: w.process, from: w.sent})
		}
		holder = now
	}
	return out
}

// leads says whether a process led at an instant, or may have.
func leads(all []tenure, process string, at time.Time) bool {
	for _, t := range all {
		if t.process == process && !at.Before(t.from) && (t.to.IsZero() || !at.After(t.to)) {
			return true
		}
	}
	return false
}

// Leader finds changes and webhooks that a process sent while another held the
// lease, or nobody did: of two replicas one acts.
func Leader(h History) []Finding {
	all := tenures(h.writes())
	if len(all) == 0 {
		return []Finding{{Checker: "leader", What: "the audit log has no lease"}}
	}
	var out []Finding
	for _, e := range h.Audit {
		if !byAgent(e) || e.Stage != "ResponseComplete" || !mutates(e.Verb) || e.Object.Resource == "leases" || e.Object.Resource == "events" || review(e) || dry(e) {
			continue
		}
		if sent, process := h.sentAt(e); process != "" && !leads(all, process, sent) {
			out = append(out, Finding{"leader", fmt.Sprintf("%s sent %s %s (%d) and did not hold the lease", process, e.Verb, e.URI, e.Status.Code), sent})
		}
	}
	for _, d := range h.Deliveries {
		if d.Process != "" && d.Key != "" && !leads(all, d.Process, d.Sent) {
			out = append(out, Finding{"leader", fmt.Sprintf("%s sent webhook %s and did not hold the lease", d.Process, d.Key), d.At})
		}
	}
	return out
}

// FirstWrite finds acts of a process on a run that it had not written before: what
// it knew of the run may have been old, and nothing made sure.
func FirstWrite(h History) []Finding {
	wrote := map[string]time.Time{} // process and run: answer of the first write of its object
	for _, w := range h.writes() {
		if w.process == "" || w.object.Metadata.Labels[labelKind] != "run" {
			continue
		}
		// The earliest: writes of other kinds, without a version to go by, can stand
		// between those of one run in another order than that of time.
		key := w.process + " " + w.object.Metadata.Name
		if was := wrote[key]; was.IsZero() || w.committed.Before(was) {
			wrote[key] = w.committed
		}
	}
	var out []Finding
	told := map[string]bool{}
	for _, e := range h.Audit {
		run := marked(e)
		if run == "" || e.Stage != "ResponseComplete" || !mutates(e.Verb) || review(e) || dry(e) {
			continue
		}
		sent, process := h.sentAt(e)
		key := process + " " + run
		first := wrote[key]
		if process == "" || told[key] || !first.IsZero() && !sent.Before(first) {
			continue
		}
		told[key] = true
		out = append(out, Finding{"first-write", fmt.Sprintf("%s sent %s %s (%d) for run %s before it had written that run's journal", process, e.Verb, pathOf(e), e.Status.Code, run), sent})
	}
	return out
}

func pathOf(e harness.AuditEvent) string {
	path, _, _ := strings.Cut(e.URI, "?")
	return path
}
