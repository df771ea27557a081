package check

import (
	"fmt"
	"strings"
)

// Requests finds requests that had more than one run: two runs of one identity, or
// a run that was created again after it had been there. A create that a network held
// for so long that its run had ended and gone is none of these where the agent took
// what came of it away unbegun.
func Requests(h History) []Finding {
	var out []Finding
	byIdentity := map[string]*run{}
	for _, r := range sorted(runs(h.writes())) {
		if len(r.creations) > 1 && !r.isVoidSince(r.creations[1]) {
			out = append(out, Finding{"requests", fmt.Sprintf("run %s/%s was created %d times", r.namespace, r.name, len(r.creations)), r.creations[1].committed})
		}
		if r.fixed.PlanUID == "" {
			continue
		}
		if other := byIdentity[r.fixed.identity()]; other != nil {
			out = append(out, Finding{"requests", fmt.Sprintf("runs %s and %s of plan %s/%s have one request, %s", other.name, r.name, r.namespace, r.fixed.Plan, r.fixed.identity()), r.states[0].committed})
		}
		byIdentity[r.fixed.identity()] = r
	}
	return out
}

// isVoidSince says whether all that came of a run from a creation on was that it was void.
func (r *run) isVoidSince(created write) bool {
	ended := false
	for _, s := range r.states {
		if s.committed.Before(created.committed) {
			continue
		}
		ended = s.Phase == "Aborted" && s.Reason == "Void"
		if !ended && s.Phase != "Pending" {
			return false
		}
	}
	return ended
}

// Tokens finds tokens that people set on a plan, and that had no run or more than
// one. asked are those that were committed, by the uid of their plan and a slash.
func Tokens(h History, asked []string) []Finding {
	count := map[string]int{}
	for _, r := range runs(h.writes()) {
		if r.fixed.Request.Token != "" {
			count[r.fixed.PlanUID+"/"+r.fixed.Request.Token]++
		}
	}
	var out []Finding
	for _, token := range asked {
		if n := count[token]; n != 1 {
			_, name, _ := strings.Cut(token, "/")
			out = append(out, Finding{Checker: "requests", What: fmt.Sprintf("token %s had %d runs, want 1", name, n)})
		}
	}
	return out
}

// Refusals finds steps and restores that failed although nothing was ever forbidden:
// every account has all its rights from the beginning to the end, so that a 403 is
// an API server that starts.
func Refusals(h History) []Finding {
	var out []Finding
	for _, r := range sorted(runs(h.writes())) {
		told := map[string]bool{}
		for _, s := range r.states {
			for _, rec := range s.Steps {
				forbidden := rec.Phase == "Failed" && (rec.Reason == "Forbidden" || strings.Contains(rec.Message, "forbidden"))
				if told[rec.Path] || !forbidden && rec.Restored != "failed" {
					continue
				}
				told[rec.Path] = true
				out = append(out, Finding{"refusals", fmt.Sprintf("step %s of run %s/%s: %s %s %s, restored: %q", rec.Path, r.namespace, r.name, rec.Phase, rec.Reason, rec.Message, rec.Restored), s.committed})
			}
		}
	}
	return out
}
