package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// GivenUp says whether the agent gave up a request that has not changed since.
func GivenUp(a nodes.Asked) bool {
	return a.Status != nil && a.Status.Ended != nil && a.Status.Ended.Value == a.Request.Identity
}

// AskedBy is a requestor's request for a node, or what remains of it; nil: nothing.
func AskedBy(n nodes.Node, requestor string) *nodes.Asked {
	i := slices.IndexFunc(n.Asked, func(a nodes.Asked) bool { return a.Request.Requestor == requestor })
	if i < 0 {
		return nil
	}
	return &n.Asked[i]
}

// Has is a request whose requestor has its node, as the node stands now: its published phase may be that of
// an earlier request, or the node may have been uncordoned since, which the agent says when it looks. False:
// it has not, and the request has the status that the agent would give it.
func Has(n nodes.Node, a nodes.Asked, now time.Time) (nodes.Asked, bool) {
	if a.Status == nil || a.Status.Phase != nodes.Ready {
		return a, false
	}
	if next, moves := nodes.Advance(n, nil, nodes.Limits{}, now).Statuses[a.Request.Requestor]; moves && next.Phase != nodes.Ready {
		a.Status = &next
		return a, false
	}
	return a, true
}

// BlockedForGood is what blocks the drain of a request for good, in the agent's words; false:
// nothing.
func BlockedForGood(s nodes.Status) (string, bool) {
	if s.Blocked == nil || !s.Blocked.Permanent {
		return "", false
	}
	return s.Blocked.Text, true
}

// HowBlocked is what stands in the way of the drain of a request, in the agent's words, and how
// long that holds it up: for now, for good, or until its time is over. Both are empty where nothing
// does.
func HowBlocked(a nodes.Asked, now time.Time) (text, howLong string) {
	if a.Status == nil || a.Status.Blocked == nil || a.Request.Drain == nil {
		return "", ""
	}
	b := a.Status.Blocked
	return WordsFor(a.Request.Requestor, b.Text), a.Request.Drain.HowLong(b.Permanent, b.Refused, a.Status.Since, now)
}

// PassesBlock says whether the drain of a request goes on when its time is over, in spite of what is
// in its way for good.
func PassesBlock(a nodes.Asked) bool {
	if a.Status == nil || a.Status.Phase != nodes.Draining || a.Status.Blocked == nil || a.Request.Drain == nil {
		return false
	}
	_, limited := drain.Deadline(*a.Request.Drain, a.Status.Since)
	return limited && a.Status.Blocked.Permanent && !a.Request.Drain.Holds(a.Status.Blocked.Permanent, a.Status.Blocked.Refused)
}

// RequestWords are the state of a request, as one plain line.
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
	return string(a.Status.Phase) + Colon(RequestReason(*a))
}

// PodsLeft are the pods that still have to leave; empty if nobody counts.
func PodsLeft(s *nodes.Status) string {
	switch {
	case s == nil || s.Progress == nil:
		return ""
	case s.Progress.Total == 0:
		return fmt.Sprint(s.Progress.Left)
	}
	return fmt.Sprintf("%d/%d", s.Progress.Left, s.Progress.Total)
}

// RequestReason is why a request is in its phase, for whoever types flags in the words of those.
func RequestReason(a nodes.Asked) string { return WordsFor(a.Request.Requestor, a.Status.Reason) }

// WordsFor are the agent's words about a drain for a requestor: those that commands make are asked for with flags.
func WordsFor(requestor, text string) string {
	if strings.HasPrefix(requestor, CLIRequestor) {
		return FlagWords(text)
	}
	return text
}

// FlagWords are the agent's words about a drain for whoever types flags: it speaks of the fields of a
// request or a step.
func FlagWords(text string) string {
	return strings.NewReplacer("set force", "drain it with --force", "set deleteEmptyDir", "drain it with --delete-emptydir-data").Replace(text)
}
