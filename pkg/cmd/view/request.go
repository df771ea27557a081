package view

import (
	"fmt"
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// GivenUp says whether a request was given up, and still stands as it was.
func GivenUp(a nodes.Asked) bool {
	return a.Status != nil && a.Status.Ended != nil && a.Status.Ended.Value == a.Request.Identity
}

// AskedBy is what a requestor asks of a node, or what is left of it; nil: nothing.
func AskedBy(n nodes.Node, requestor string) *nodes.Asked {
	i := slices.IndexFunc(n.Asked, func(a nodes.Asked) bool { return a.Request.Requestor == requestor })
	if i < 0 {
		return nil
	}
	return &n.Asked[i]
}

// BlockedForGood is what blocks the drain of a request and does not end by waiting, in the agent's
// words; false: nothing does.
func BlockedForGood(s nodes.Status) (string, bool) {
	if s.Blocked == nil || !s.Blocked.Permanent {
		return "", false
	}
	return s.Blocked.Text, true
}

// RequestWords are how a request stands, as one plain line.
func RequestWords(a *nodes.Asked) string {
	switch {
	case a == nil:
		return "not asked for"
	case a.Gone && a.Status == nil:
		return "being released"
	case a.Gone:
		return "being released, was " + string(a.Status.Phase)
	case a.Status == nil:
		return "requested; the agent has not looked at it yet"
	}
	return string(a.Status.Phase) + Colon(a.Status.Reason)
}

// PodsLeft are the pods that are still to leave; empty where nobody counts.
func PodsLeft(s *nodes.Status) string {
	switch {
	case s == nil || s.Progress == nil:
		return ""
	case s.Progress.Total == 0:
		return fmt.Sprint(s.Progress.Left)
	}
	return fmt.Sprintf("%d/%d", s.Progress.Left, s.Progress.Total)
}
