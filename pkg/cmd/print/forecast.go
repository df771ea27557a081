package print

import (
	"fmt"
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// ForecastLines show a forecast: what leaves in which order, what stays and why, and what blocks
// with what helps.
func (v Printer) ForecastLines(f view.Forecast) []string {
	head := v.Bold("node/"+f.Node) + "  "
	switch {
	case !f.Possible:
		head += v.Bad("blocked until somebody changes something")
	case len(f.Blocks) > 0:
		head += v.Warn("possible, after some waiting")
	default:
		head += v.good("possible")
	}
	lines := []string{fmt.Sprintf("%s: %s would leave, %s would stay", head, view.Counted(f.Total, "pod"), fmt.Sprint(len(f.Skipped)))}
	several := slices.ContainsFunc(f.Groups, func(g drain.Group) bool { return g.Order != f.Groups[0].Order && g.Order != drain.LastOrder })
	for _, g := range f.Groups {
		lines = append(lines, groupLines(g, several)...)
	}
	lines = append(lines, stayLines("stays", f.Skipped)...)
	lines = append(lines, v.refusedLines(f)...)
	for _, b := range f.Blocks {
		if !refuses(f, b) {
			lines = append(lines, v.blockLines(b)...)
		}
	}
	return lines
}

// refusedLines are the pods that may not be evicted, by reason, with what helps.
func (v Printer) refusedLines(f view.Forecast) []string {
	var lines []string
	told := map[string]bool{}
	for _, b := range f.Blocks {
		if !refuses(f, b) {
			continue
		}
		for _, s := range f.Refused {
			if s.Why == b.Why && slices.Contains(b.Pods, s.Pod) {
				told[s.Pod] = true
				lines = append(lines, stayLines(v.Bad("refused"), []drain.RemainingPod{s})...)
			}
		}
		lines = append(lines, "    "+view.FlagWords(b.Remedy))
	}
	rest := slices.DeleteFunc(slices.Clone(f.Refused), func(s drain.RemainingPod) bool { return told[s.Pod] })
	return append(lines, stayLines(v.Bad("refused"), rest)...)
}

// refuses says whether a block is that pods are refused.
func refuses(f view.Forecast, b drain.Block) bool {
	return slices.ContainsFunc(f.Refused, func(s drain.RemainingPod) bool { return s.Why == b.Why && slices.Contains(b.Pods, s.Pod) })
}

func groupLines(g drain.Group, several bool) []string {
	if g.Order == drain.LastOrder {
		return agentLines(g)
	}
	before := ""
	if several {
		before = fmt.Sprintf("order %d, ", g.Order)
	}
	var lines []string
	for _, part := range []struct {
		word string
		pods []string
	}{{"would be evicted", g.Evict}, {"would be replaced, then evicted", g.Surge}, {"would be left to finish", g.Await}, {"shuts down already", g.Leaves}} {
		for _, pod := range part.pods {
			lines = append(lines, fmt.Sprintf("  %s%s: %s", before, part.word, pod))
		}
	}
	return lines
}

// agentLines show the agent's own pod, which leaves last.
func agentLines(g drain.Group) []string {
	var lines []string
	for _, pod := range g.Evict {
		lines = append(lines, fmt.Sprintf("  last, would be evicted: %s (the agent's own pod; another replica is Ready elsewhere)", pod))
	}
	for _, pod := range g.Await {
		lines = append(lines, fmt.Sprintf("  last: %s (the agent's own pod; it is evicted once another replica is Ready elsewhere, and stays where none can be)", pod))
	}
	return lines
}

func stayLines(word string, stays []drain.RemainingPod) []string {
	var lines []string
	for _, s := range stays {
		lines = append(lines, fmt.Sprintf("  %s: %s (%s)", word, s.Pod, s.Why))
	}
	return lines
}

func (v Printer) blockLines(b drain.Block) []string {
	kind := v.Warn("blocked for now")
	if b.Permanent {
		kind = v.Bad("blocked for good")
	}
	pods := b.Pods[0]
	if b.Count > 1 {
		pods += fmt.Sprintf(" and %d more", b.Count-1)
	}
	return []string{fmt.Sprintf("  %s: %s%s: %s", kind, pods, view.PrefixList(" by budget ", b.Budgets), b.Why), "    " + view.FlagWords(b.Remedy)}
}
