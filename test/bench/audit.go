package main

import (
	"os"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// asked is a line of an audit log.
type asked struct{ harness.AuditEvent }

// counts says whether a line stands for its request: a watch is counted when it
// begins, everything else when it was answered.
func (a asked) counts() bool {
	if a.Verb == "watch" {
		return a.Stage == "ResponseStarted"
	}
	return a.Stage == "ResponseComplete"
}

func (a asked) eviction() bool {
	return a.What() == "pods/eviction"
}

// auditEnd is how long the log is now.
func auditEnd(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// auditSince are the log's requests from a length on.
func auditSince(path string, from int64) ([]asked, error) {
	var out []asked
	_, err := harness.EachAudited(path, from, "", func(e harness.AuditEvent) {
		if a := (asked{e}); a.counts() {
			out = append(out, a)
		}
	})
	return out, err
}

// tally is what somebody asked of the API server.
type tally struct {
	all, pods        int // pods: evictions, gets, lists, watches, deletes
	evicted, refused int
	codes            map[int]int // of the refused evictions
	took             []float64   // milliseconds of the accepted evictions, sorted
	last             time.Time   // answer of an accepted eviction
	first            time.Time
}

func count(log []asked, who func(asked) bool) tally {
	t := tally{codes: map[int]int{}}
	for _, a := range log {
		if !who(a) {
			continue
		}
		t.all++
		if a.Object.Resource == "pods" {
			t.pods++
		}
		switch {
		case a.eviction() && a.Status.Code < 300:
			t.evicted++
			t.took = append(t.took, 1000*a.Answered.Sub(a.Received.Time).Seconds())
			if t.first.IsZero() || a.Received.Time.Before(t.first) {
				t.first = a.Received.Time
			}
			if a.Answered.After(t.last) {
				t.last = a.Answered.Time
			}
		case a.eviction():
			t.refused++
			t.codes[a.Status.Code]++
		}
	}
	slices.Sort(t.took)
	return t
}
