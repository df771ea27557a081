package check

import (
	"fmt"
	"strings"
)

// Needless finds workloads that an agent told again what somebody had told them last: a
// number of replicas, or whether a CronJob is suspended.
func Needless(h History) []Finding {
	var out []Finding
	told := map[string]string{}
	for _, w := range h.writes() {
		what := level(w)
		if what == "" {
			continue
		}
		key := strings.Join([]string{w.Object.Resource, w.object.Metadata.Namespace, w.object.Metadata.Name}, " ")
		if told[key] == what && byAgent(w.AuditEvent) && levels(w) {
			out = append(out, Finding{"needless", fmt.Sprintf("%s told %s to be %s, as it was", w.process, key, what), w.committed})
		}
		told[key] = what
	}
	return out
}

// level is how a write left a workload; empty: it is none.
func level(w write) string {
	switch {
	case w.Verb == "delete" || w.Object.Subresource != "" && w.Object.Subresource != "scale":
	case w.Object.Resource == "cronjobs":
		return fmt.Sprintf("suspended: %t", w.object.Spec.Suspend != nil && *w.object.Spec.Suspend)
	case w.object.Spec.Replicas != nil:
		return fmt.Sprintf("at %d", *w.object.Spec.Replicas)
	case w.Object.Subresource == "scale": // a Scale says nothing of none
		return "at 0"
	}
	return ""
}

// levels says whether a write is about that alone: a label has nothing to do with it.
func levels(w write) bool {
	text := string(w.Request)
	return w.Object.Subresource == "scale" || strings.Contains(text, `"suspend"`) || strings.Contains(text, `"replicas"`)
}
