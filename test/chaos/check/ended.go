package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// readsAfter is how long after a run's end its watches may still be closing.
const readsAfter = 5 * time.Second

// Ended finds what was done for a run or a step that had ended: requests that bear
// the run's mark, and webhooks with its key, which were sent after the write that
// ended it was answered.
func Ended(h History) []Finding {
	all := runs(h.writes())
	return slices.Concat(h.requestsAfter(all), h.deliveriesAfter(all))
}

func (h History) requestsAfter(all map[string]*run) []Finding {
	var out []Finding
	for _, e := range h.Audit {
		name := marked(e)
		r := all[name]
		if r == nil || r.ended == nil || e.Stage != "ResponseComplete" && e.Verb != "watch" || review(e) {
			continue
		}
		sent, process := h.sentAt(e)
		limit := r.ended.committed
		if !mutates(e.Verb) || dry(e) {
			limit = limit.Add(readsAfter)
		}
		if sent.After(limit) {
			out = append(out, Finding{"ended", fmt.Sprintf("%s sent %s %s (%d) for run %s/%s, %s after its end was written by %s",
				process, e.Verb, e.URI, e.Status.Code, r.namespace, name, sent.Sub(r.ended.committed).Round(time.Millisecond), r.ended.process), sent})
		}
	}
	return out
}

// marked is the run that a request is made for.
func marked(e harness.AuditEvent) string {
	if e.Impersonated == nil {
		return ""
	}
	values := e.Impersonated.Extra[runExtra]
	if len(values) == 0 || values[0] == wakingExtra { // the write of a HibernatePlan, not of a run
		return ""
	}
	return values[0][strings.LastIndex(values[0], "/")+1:]
}

func (h History) deliveriesAfter(all map[string]*run) []Finding {
	var out []Finding
	for _, d := range h.Deliveries {
		name, path := d.split()
		r := all[name]
		if r == nil {
			continue
		}
		if r.ended != nil && d.Sent.After(r.ended.committed) {
			out = append(out, Finding{"ended", fmt.Sprintf("%s sent webhook %s %s after the end of its run was written", d.Process, d.Key, d.Sent.Sub(r.ended.committed).Round(time.Millisecond)), d.At})
		} else if at, ended := r.stepEnded(path, d.Sent); ended {
			out = append(out, Finding{"ended", fmt.Sprintf("%s sent webhook %s %s after the end of its step was written", d.Process, d.Key, d.Sent.Sub(at).Round(time.Millisecond)), d.At})
		}
	}
	return out
}

// stepEnded says whether, at an instant, the newest journal that was surely written
// had a step as ended, and no journal that may have been written has it at work
// again.
func (r *run) stepEnded(path string, at time.Time) (since time.Time, ended bool) {
	for _, s := range r.states {
		if s.sent.After(at) {
			break
		}
		i := slices.IndexFunc(s.Steps, func(s step) bool { return s.Path == path })
		switch {
		case i < 0 || !s.Steps[i].ended():
			ended = false
		case !ended && s.committed.Before(at):
			since, ended = s.committed, true
		}
	}
	return since, ended
}
