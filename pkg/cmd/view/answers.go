package view

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// Answer is what somebody said to a run on its plan, and the agent has not taken up yet. It stands
// there until an agent does.
type Answer struct {
	Word    string // approved, rejected, resumed or aborted
	Path    string // of the step; empty: of the run itself
	By      intent.Actor
	Deleted time.Time // aborted: when the run's object was deleted, where it is by that
}

// String is who said what and why.
func (a Answer) String() string {
	if !a.Deleted.IsZero() {
		return "being aborted: it was deleted at " + a.Deleted.UTC().Format(time.RFC3339) + "; no agent has taken that up yet"
	}
	said := a.By.Said(a.Word) + "; no agent has taken that up yet"
	if a.Path != "" {
		return "step " + a.Path + ": " + said
	}
	return said
}

// Answered is a run with the answers that stand for it on its plan, and whether it takes any.
func Answered(r Run, cm *corev1.ConfigMap) Run {
	r.Answers, r.Unheard = r.deletion(), !Responsive(cm, r.Run.Name)
	if len(r.Answers) > 0 || r.Journal.Phase.Ended() || cm == nil || string(cm.UID) != r.Run.PlanUID {
		return r
	}
	in := annotations.Intent(cm.Annotations)
	sig := workflow.SignalsOf(in, r.Run, r.Journal, nil, time.Time{})
	var out []Answer
	for _, question := range Questions(r) {
		_, path, _ := strings.Cut(question, "/")
		switch {
		case sig.Reject.To(path):
			out = append(out, Answer{Word: "rejected", Path: path, By: sig.Reject.Actor})
		case sig.Approve.To(path):
			out = append(out, Answer{Word: "approved", Path: path, By: sig.Approve.Actor})
		}
	}
	if sig.Resume != nil && (len(Suspends(r)) > 0 || r.Journal.DriftMessage() != "") {
		out = append(out, Answer{Word: "resumed", Path: sig.Resume.Step, By: in.Actors["resume"]})
	}
	if sig.Abort != nil && r.Journal.End == nil {
		out = append(out, Answer{Word: "aborted", By: in.Actors["abort"]})
	}
	r.Answers = out
	return r
}

// deletion is that somebody deleted the object of a run, which the agent has not taken up: nothing else that
// is said to the run counts then.
func (r Run) deletion() []Answer {
	if r.Deleted.IsZero() || r.Journal.Phase.Ended() || r.Journal.End != nil {
		return nil
	}
	return []Answer{{Word: "aborted", Deleted: r.Deleted}}
}

// AnswerTo is the approval or the rejection that stands for a step of a run, or with an empty path
// for the run itself; nil: none does.
func (r Run) AnswerTo(path string) *Answer {
	for i, a := range r.Answers {
		if a.Path == path && (a.Word == "approved" || a.Word == "rejected") {
			return &r.Answers[i]
		}
	}
	return nil
}

// Said says whether somebody resumed or aborted a run, and the agent has not taken that up yet.
func (r Run) Said(word string) *Answer {
	for i, a := range r.Answers {
		if a.Word == word {
			return &r.Answers[i]
		}
	}
	return nil
}

// AnswersSaid are all answers that stand for a run, in one line; empty: none does.
func (r Run) AnswersSaid() string {
	said := make([]string, len(r.Answers))
	for i, a := range r.Answers {
		said[i] = a.String()
	}
	return strings.Join(said, "; ")
}

// ApprovalWords say that a run, or a step of it, waits for approval, by the agent's message.
// The command that the message ends with is left out: whoever prints it names the command by
// itself. Agents before this version named it without quotes and without a namespace.
func ApprovalWords(r run.Run, step, message string) string {
	const waits = "waits for approval"
	question := r.Name + Prefix("/", step)
	for _, command := range []string{intent.Command(r.Namespace, "approve", question), "kubectl maint approve " + question} {
		message = strings.TrimSuffix(strings.TrimSuffix(message, " ("+command+")"), ": "+command)
	}
	if step != "" && message != "" || strings.HasPrefix(message, waits) {
		return message
	}
	return waits + Colon(message)
}

// openQuestions are what the journal of a run says that somebody has to approve, as RUN or RUN/STEP.
func openQuestions(r Run) []string {
	j := r.Journal
	if j.Phase == run.Pending && j.Section != plan.SectionClosing {
		if r.Run.Spec.RequiresApproval && j.Approved == nil && !r.Run.Request.DryRun {
			return []string{r.Run.Name}
		}
		return nil
	}
	var out []string
	for _, rec := range j.Steps {
		if j.Phase == run.Running && WaitsForAnswer(rec) {
			out = append(out, r.Run.Name+"/"+rec.Path)
		}
	}
	return out
}
