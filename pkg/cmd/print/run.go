package print

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// RunHead is one line about the state of a run.
func (v Printer) RunHead(r view.Run) string {
	j := r.Journal
	p, phase := run.ProgressOf(j), v.Phase(string(j.Phase))+r.DryMark()
	switch {
	case j.Phase == run.Pending && (j.Waiting != "" || len(r.Answers) > 0):
		return phase + ", " + v.AgentText(cmp.Or(r.AnswersSaid(), waitingWords(j)))
	case j.Phase.Ended():
		return phase + v.took(j) + view.Colon(v.AgentText(j.Message)) + v.leftBehind(r)
	case j.StartedAt != nil:
		return fmt.Sprintf("%s %s, %d of %d steps done%s", phase, v.lasts(*j.StartedAt), p.Done, p.Total, view.Colon(v.AgentText(cmp.Or(r.AnswersSaid(), v.ending(r)))))
	}
	return phase + view.Colon(v.AgentText(j.Message))
}

// leftBehind counts failed restores; the steps name each of them.
func (v Printer) leftBehind(r view.Run) string {
	if n := len(view.NotPutBack(r)); n > 0 {
		return "; " + v.Bad(fmt.Sprintf("%d of its steps could not be put back", n))
	}
	return ""
}

// ending says how a run in cleanup will end, and when a run is retried.
func (v Printer) ending(r view.Run) string {
	j := r.Journal
	switch {
	case j.Notice() != j.Message:
		return j.Notice()
	case j.End != nil && j.End.Phase != run.Succeeded:
		return fmt.Sprintf("cleaning up, then %s%s", j.End.Phase, view.Colon(j.Ending()))
	case j.RetryAt != nil && j.RetryAt.After(v.Now):
		try := fmt.Sprintf("retry %d of %d", j.Retries, r.Run.Spec.RetryLimit)
		return try + " at " + v.soon(*j.RetryAt) + strings.TrimPrefix(j.Message, try)
	}
	return j.Message
}

// EndsSuspend says which suspend steps a resume of the run ends, and how long before their time;
// empty: none.
func (v Printer) EndsSuspend(r view.Run) string {
	var steps []string
	for _, rec := range view.Suspends(r) {
		step := "step " + rec.Path
		if rec.ResumeAt != nil && rec.ResumeAt.After(v.Now) {
			early := instant.Approximate(rec.ResumeAt.Sub(v.Now)) + " before its time"
			if v.Fixed {
				early = "before its time, " + v.Both(*rec.ResumeAt)
			}
			step += ", " + early
		}
		steps = append(steps, step)
	}
	return view.Prefix("ends ", strings.Join(steps, ", and "))
}

func (v Printer) took(j run.Journal) string {
	if j.StartedAt == nil || j.FinishedAt == nil {
		return ""
	}
	return " after " + instant.Approximate(j.FinishedAt.Sub(*j.StartedAt))
}

// lineMark gives no tick to a step that left something unrestored.
func (v Printer) lineMark(l stepLine) string {
	if l.left {
		return v.Bad("✗")
	}
	return v.mark(l.phase)
}

func (v Printer) mark(p run.StepPhase) string {
	switch p {
	case run.StepSucceeded:
		return v.good("✓")
	case run.StepFailed:
		return v.Bad("✗")
	case run.StepRunning:
		return v.busy("▶")
	case run.StepSkipped:
		return v.Dim("-")
	}
	return v.Dim("·")
}

func (v Printer) stepTime(s run.Record) string {
	switch {
	case s.StartedAt == nil:
		return ""
	case s.FinishedAt != nil:
		return instant.Approximate(s.FinishedAt.Sub(*s.StartedAt))
	}
	return instant.Approximate(v.Now.Sub(*s.StartedAt))
}

// stepDetail is what a person may have to do, or should know, about a step.
func (v Printer) stepDetail(r view.Run, s run.Record) string {
	var parts []string
	if s.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", s.Attempt))
	}
	switch {
	case s.Phase == run.StepRunning && s.NotBefore != nil && s.NotBefore.After(v.Now):
		parts = append(parts, "tries again in "+instant.Approximate(s.NotBefore.Sub(v.Now)))
	case s.Resumed != nil && s.Phase != run.StepFailed:
		parts = append(parts, s.Resumed.Said("resumed"))
	case s.Phase == run.StepRunning && (s.Type == "suspend" && len(r.Answers) > 0 || s.Type == plan.TypeApproval && r.Said("aborted") != nil): // the run's line says it
	case s.Phase == run.StepRunning && r.Unheard && (s.Type == "suspend" || s.Type == plan.TypeApproval):
		parts = append(parts, "takes no answer: see "+v.Suggest().Why(r.Run.Plan))
	case s.Phase == run.StepRunning && s.Type == "suspend" && s.ResumeAt == nil:
		parts = append(parts, "waits for "+v.Suggest().Resume(r.Run.Name))
	case s.Phase == run.StepRunning && s.Type == plan.TypeApproval:
		parts = append(parts, v.question(r, s))
	case s.Phase == run.StepRunning && s.ResumeAt != nil:
		parts = append(parts, fmt.Sprintf("until %s or %s", v.soon(*s.ResumeAt), v.Suggest().Resume(r.Run.Name)))
	case s.Phase == run.StepFailed && s.Reason != "":
		parts = append(parts, s.Reason)
	}
	holds := s.Phase == run.StepRunning && (s.Type == "suspend" || s.Type == plan.TypeApproval) || s.Phase == run.StepSucceeded && s.Resumed != nil
	switch count := loopCount(s); {
	case !s.Phase.Ended() && count != "":
		parts = append(parts, count)
	case s.Message != "" && !holds:
		parts = append(parts, s.Message)
	}
	parts = append(parts, accepted(s)...)
	if s.Waits != "" && s.Phase.Ended() { // about its cleanup: before, its message says so
		parts = append(parts, "waits: "+s.Waits)
	}
	if s.KeepAt != nil {
		parts = append(parts, "kept until the run ends, renewed at "+v.soon(*s.KeepAt))
	}
	switch how := restoredWords()[s.Restored]; {
	case how == "":
	case s.Restored == run.RestoreDone && s.RestoreMessage != "": // the message says so
		parts = append(parts, s.RestoreMessage)
	case s.Restored == run.RestoreChanged && s.RestoreMessage != "": // the message says who changed what
		parts = append(parts, "not put back: "+s.RestoreMessage)
	default:
		parts = append(parts, how+view.Colon(s.RestoreMessage))
	}
	return v.AgentText(strings.Join(parts, ": "))
}

// accepted is a drift that stands, or who let the run continue in spite of it.
func accepted(s run.Record) []string {
	switch d := s.Drift; {
	case d.IsOpen() && !strings.Contains(s.RestoreMessage, d.Said()):
		return []string{d.Said()}
	case d == nil || d.Accepted == nil:
		return nil
	case strings.Contains(s.RestoreMessage, d.Said()): // mentioned there
		return []string{d.Accepted.Said("the change was accepted")}
	default:
		return []string{d.Accepted.Said(d.Said() + ", accepted")}
	}
}

// question is what an approval waits for, or its latest answer.
func (v Printer) question(r view.Run, s run.Record) string {
	switch {
	case s.Approval != nil && s.Approval.Approved:
		return s.Approval.Said("approved")
	case s.Approval != nil:
		return s.Approval.Said("rejected")
	case r.AnswerTo(s.Path) != nil:
		answer := r.AnswerTo(s.Path)
		return answer.By.Said(answer.Word)
	case s.Message != "": // it names the command
		return s.Message
	}
	return "waits for " + v.Suggest().Approve(r.Run.Name+"/"+s.Path)
}

func restoredWords() map[string]string {
	return map[string]string{
		"done": "put back as it was", "changed": "not put back: somebody changed it meanwhile",
		"gone": "not put back: it is gone", "handed": "left to another run, which puts it back", "failed": "could not be put back",
	}
}

// DifferenceLines show what the steps of a dry run would have changed; none: no step reports it.
func DifferenceLines(r view.Run) []string {
	var lines []string
	for _, s := range r.Journal.Steps {
		if text, is := s.Outputs["difference"].(string); is && text != "" {
			lines = append(lines, "  step "+s.Path+":", IndentText(IndentText(text)))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return append([]string{"", "Would change:"}, lines...)
}
