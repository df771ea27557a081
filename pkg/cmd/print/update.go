package print

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Update is one line about something.
type Update struct {
	Of, Text string
	At       *time.Time // since when it is so; nil: not known
}

// RunUpdates are plain lines about a run: its state, and each step that has begun.
func (v Printer) RunUpdates(r view.Run) []Update {
	j := r.Journal
	said := cmp.Or(r.AnswersSaid(), waitingWords(j))
	out := []Update{{Of: r.Run.Name, Text: fmt.Sprintf("run %s: %s%s%s", r.Run.Name, j.Phase, r.DryMark(), view.Colon(v.AgentText(said)))}}
	if said == "" { // else it came later
		out[0].At = j.StartedAt
	}
	for _, s := range j.Steps {
		if s.Phase == run.StepPending {
			continue
		}
		text := fmt.Sprintf("step %s: %s", s.Path, s.Phase)
		if s.Attempt > 1 {
			text += fmt.Sprintf(" (attempt %d)", s.Attempt)
		}
		switch {
		case s.Phase == run.StepFailed, s.Phase == run.StepSucceeded && r.Run.Request.DryRun: // what it would have done
			text += view.Colon(s.Message)
		case r.AnswerTo(s.Path) != nil: // the run's line says it
		case s.Type == plan.TypeApproval && s.Message != "":
			text += view.Colon(s.Message)
		case s.Phase == run.StepRunning:
			text += view.Colon(loopCount(s))
		}
		if s.Waits != "" {
			text += ", and waits: " + s.Waits
		}
		if s.Restored == run.RestoreFailed {
			text += ", " + restoredWords()[s.Restored] + view.Colon(s.RestoreMessage)
		}
		u := Update{Of: r.Run.Name + "/" + s.Path, Text: v.AgentText(text)}
		if s.Waits == "" && s.Restored != run.RestoreFailed && (s.Phase.Ended() || loopCount(s) == "" && s.Attempt < 2) { // else it came later
			u.At = cmp.Or(s.FinishedAt, s.StartedAt, j.FinishedAt) // what never began ends with its run
		}
		out = append(out, u)
	}
	if j.Phase.Ended() { // the end is reported last
		out[0].At = j.FinishedAt
		return append(out[1:], out[0])
	}
	return out
}

func waitingWords(j run.Journal) string {
	switch pending := j.Phase == run.Pending && j.Waiting != ""; {
	case pending && j.Waiting == run.WaitPause:
		return "waits for the end of a pause"
	case pending && strings.HasPrefix(j.Message, "waits for "), !pending && (j.RetryAt != nil || j.Phase.Ended()): // the message says so
		return j.Message
	case pending && (j.Waiting == run.WaitClock || j.Waiting == run.WaitNotReady):
		return "waits: " + j.Message
	case pending:
		return "waits for " + j.Waiting + view.Colon(j.Message)
	}
	return ""
}

// ClaimUpdates are plain lines about claims.
func (v Printer) ClaimUpdates(claims []view.NodeClaim) []Update {
	var out []Update
	for _, c := range claims {
		out = append(out, Update{Of: "node/" + c.Node + "/" + c.By, Text: fmt.Sprintf("node %s: %s: %s%s", c.Node, c.By, c.Phase, view.Colon(v.AgentText(c.Reason)))})
	}
	return out
}

// NodeUpdates are plain lines about the claims of one node.
func (v Printer) NodeUpdates(n view.Node) []Update {
	if out := v.ClaimUpdates(view.ClaimsOfNode(n)); len(out) > 0 {
		return out
	}
	return []Update{{Of: "node/" + n.Name, Text: "node " + n.Name + ": nobody asks for it"}}
}

// PlanUpdates are plain lines about a plan and its live runs.
func (v Printer) PlanUpdates(p view.Plan) []Update {
	phase, message := p.Phase()
	out := []Update{{Of: p.Object.Namespace + "/" + p.Object.Name, Text: fmt.Sprintf("plan %s: %s%s", p.Object.Name, phase, view.Colon(v.AgentText(message)))}}
	for _, r := range p.Active {
		out = append(out, v.RunUpdates(r)...)
	}
	return out
}
