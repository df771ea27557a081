package executors

import (
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// Session is what the drain says of itself to those who look after its node: of the order with that key.
func (s DrainStatus) Session(key string) nodes.Session {
	out := nodes.Session{State: nodes.SessionRunning, Key: key, Left: s.Left, Total: s.Total, Text: s.Message}
	out.Uncounted = !s.Done && s.Total == 0 && slices.Contains([]string{DrainListing, DrainUnavailable, DrainForbidden}, s.Reason)
	switch {
	case s.Done:
		out.State, out.Text = nodes.SessionDone, s.Outcome.String()
		out.Note = noteOf(s.Outcome)
	case s.Aborted:
		out.State = nodes.SessionAborted
	}
	for _, p := range s.Pods {
		switch {
		case p.Pod == drain.Volumes:
			out.Waits = p.Why
		case p.State == drain.Waiting && p.Why != "" && out.Waits == "" && len(s.Blocks) == 0:
			out.Waits = p.Pod + " waits: " + p.Why
		}
	}
	var texts []string
	for _, b := range s.Blocks {
		out.Block.Permanent, out.Block.Refused = out.Block.Permanent || b.Permanent, out.Block.Refused || b.Refused
		texts = append(texts, b.String())
	}
	if len(texts) == 0 && (s.Reason == DrainForbidden || s.Reason == DrainUnavailable) {
		texts = append(texts, s.Message)
	}
	out.Block.Text = strings.Join(texts, "; ")
	return out
}

// noteOf is what a requestor has to know of the pods that stay on its node.
func noteOf(o drain.Outcome) string {
	var notes []string
	if o.Agent != nil {
		notes = append(notes, o.Agent.Pod+": "+o.Agent.Why)
	}
	for i, s := range o.LeftPods {
		before := ""
		if i == 0 {
			before = "left: "
		}
		notes = append(notes, before+s.Pod+" ("+s.Why+")")
	}
	return strings.Join(notes, "; ")
}
