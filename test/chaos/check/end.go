package check

import (
	"fmt"
	"strings"
	"time"
)

// heartbeat is the object by which everybody sees that an agent runs.
const heartbeat = "maint-agent-status"

// Quiet finds changes that the agents asked for between two instants in which
// nothing was to be done: all but the lease and the heartbeat.
func Quiet(h History, from, to time.Time) []Finding {
	var out []Finding
	for _, e := range h.Audit {
		sent, process := h.sentAt(e)
		if !byAgent(e) || e.Stage != "ResponseComplete" || !mutates(e.Verb) || sent.Before(from) || sent.After(to) || review(e) {
			continue
		}
		if e.Object.Resource == "leases" || e.Object.Resource == "configmaps" && e.Object.Name == heartbeat {
			continue
		}
		out = append(out, Finding{"quiet", fmt.Sprintf("%s sent %s %s (%d) in the quiet minute", process, e.Verb, e.URI, e.Status.Code), sent})
	}
	return out
}

// Restored finds fields that differ at the end from what they were at the
// beginning.
func Restored(before, after map[string]string) []Finding {
	var out []Finding
	for _, key := range keys(before) {
		if after[key] != before[key] {
			out = append(out, Finding{Checker: "restored", What: fmt.Sprintf("%s is %q at the end, and was %q", key, after[key], before[key])})
		}
	}
	for _, key := range keys(after) {
		if _, known := before[key]; !known {
			out = append(out, Finding{Checker: "restored", What: fmt.Sprintf("%s is %q at the end, and was not there", key, after[key])})
		}
	}
	return out
}

// Left is what is still there when all should be over.
type Left struct {
	What string
	Why  string
}

// Leftovers finds what was left behind: every one of them is.
func Leftovers(left []Left) []Finding {
	var out []Finding
	for _, l := range left {
		out = append(out, Finding{Checker: "leftovers", What: strings.TrimSpace(l.What + ": " + l.Why)})
	}
	return out
}

// Process is what an agent takes at one time.
type Process struct {
	Goroutines, HeapMiB float64
}

// Slack is how much more an agent may take at the end than at the beginning: open
// connections and what a cache of the history of the runs needs.
const (
	slackGoroutines = 25
	slackHeapMiB    = 24
)

// Size finds an agent that did not come back to what it took at the beginning.
func Size(before, after Process) []Finding {
	var out []Finding
	if after.Goroutines > before.Goroutines+slackGoroutines {
		out = append(out, Finding{Checker: "size", What: fmt.Sprintf("%.0f goroutines at the end, %.0f at the beginning", after.Goroutines, before.Goroutines)})
	}
	if after.HeapMiB > before.HeapMiB+slackHeapMiB {
		out = append(out, Finding{Checker: "size", What: fmt.Sprintf("%.1f MiB of heap at the end, %.1f at the beginning", after.HeapMiB, before.HeapMiB)})
	}
	return out
}
