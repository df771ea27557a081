package view

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// StepsNamed are the paths of the steps that a word means: one path, or all steps of that name.
func StepsNamed(r Run, word string) []string {
	if r.Journal.Record(word) != nil {
		return []string{word}
	}
	var out []string
	for _, path := range Paths(r) {
		if strings.HasSuffix(path, "/"+word) {
			out = append(out, path)
		}
	}
	return out
}

// Paths are the paths of a run's steps.
func Paths(r Run) []string {
	out := make([]string, len(r.Journal.Steps))
	for i, rec := range r.Journal.Steps {
		out[i] = rec.Path
	}
	return out
}

// WaitsForAnswer says whether a step waits for an answer.
func WaitsForAnswer(rec run.Record) bool {
	return rec.Type == plan.TypeApproval && rec.Phase == run.StepRunning && rec.Approval == nil
}

// Suspends are the suspend steps that a run is at, and that nobody has resumed yet.
func Suspends(r Run) []run.Record {
	return r.unresumed(func(rec run.Record) bool {
		return rec.Type == "suspend" && rec.Phase == run.StepRunning && rec.Resumed == nil
	})
}

// Drifted are the steps whose effect somebody changed, by which the run is held, and that nobody has
// accepted yet.
func Drifted(r Run) []run.Record { return r.unresumed(r.Run.HeldByDrift) }

// unresumed are the steps of some kind that nobody resumed, or aborted the run instead.
func (r Run) unresumed(of func(run.Record) bool) (out []run.Record) {
	said := r.Said("resumed")
	for _, rec := range r.Journal.Steps {
		if of(rec) && r.Said("aborted") == nil && (said == nil || said.Path != "" && said.Path != rec.Path) {
			out = append(out, rec)
		}
	}
	return out
}

// ResumeHelps says what of a run that has not ended a resume would end; empty: nothing.
func ResumeHelps(r Run) string {
	var held []string
	for _, rec := range Suspends(r) {
		held = append(held, "is suspended in step "+rec.Path)
	}
	for _, rec := range Drifted(r) {
		held = append(held, "is held by what somebody changed after step "+rec.Path)
	}
	return strings.Join(held, " and ")
}

// OfStep is a run with one of its steps alone.
func (r Run) OfStep(rec run.Record) Run {
	r.Journal.Steps = []run.Record{rec}
	return r
}

// SplitStep splits [KIND/]RUN[/STEP]; the kind stays with the name.
func SplitStep(text string) (name, step string) {
	before, rest := "", text
	if kind, bare, found := strings.Cut(text, "/"); found {
		if _, known := KindsBefore(kind); known && kind != "" {
			before, rest = kind+"/", bare
		}
	}
	name, step, _ = strings.Cut(rest, "/")
	return before + name, step
}

// Questions are what a run waits for somebody to approve, as RUN or RUN/STEP. A
// run that the agent has not looked at yet will ask before anything else. Nobody is asked for what
// is answered.
func Questions(r Run) []string {
	if r.Said("aborted") != nil {
		return nil
	}
	var out []string
	for _, question := range openQuestions(r) {
		if _, path, _ := strings.Cut(question, "/"); r.AnswerTo(path) == nil {
			out = append(out, question)
		}
	}
	return out
}

// RunPrefix is the prefix of every run's name; people may omit it.
const RunPrefix = "maint-run-"

// Run is a run as it stands in the cluster.
type Run struct {
	Run     run.Run
	Journal run.Journal
	Answers []Answer  // that stand on its plan, as far as they were looked for, and its deletion
	Deleted time.Time // when somebody deleted its object, by which the agent aborts it; zero: nobody did

	Unclaimed bool // its plan's ledger does not have it open, as far as that was looked for: it begins nothing
	Unheard   bool // its plan says that its ledger does not have it open, or that the agent leaves it alone: it takes no answer
}

// Named is a run in a sentence, which says of a dry run that it is one.
func (r Run) Named() string {
	if r.Run.Request.DryRun {
		return "dry run " + r.Run.Name
	}
	return "run " + r.Run.Name
}

// DryMark follows the phase of a dry run that has not ended; the message of one that has says so.
func (r Run) DryMark() string {
	if r.Run.Request.DryRun && !r.Journal.Phase.Ended() {
		return " (dry run)"
	}
	return ""
}

// BrokenRun is shown if the phase of a run cannot be read.
const BrokenRun = "Broken"

// RunsOf are the runs of a plan, and not those of an earlier one of its name, which was deleted and
// whose run the agent may still be ending.
func RunsOf(cm *corev1.ConfigMap, runs []Run) []Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Run.PlanUID != string(cm.UID) })
}

// SortRuns sorts runs by the time of their request.
func SortRuns(runs []Run) {
	slices.SortFunc(runs, func(a, b Run) int { return run.Compare(a.Run, b.Run) })
}

// itemSays is the message of a step about one of its nodes, else about all.
func (r Run) itemSays(path, node string) string {
	rec := r.Journal.Record(path)
	if rec == nil {
		return ""
	}
	for _, item := range rec.Items {
		if item.Name == node && item.Message != "" {
			return item.Message
		}
	}
	return rec.Message
}

// NotPutBack are the failed restores of a run, each with its step.
func NotPutBack(r Run) []string {
	var out []string
	for i := range r.Journal.Steps {
		if rec := &r.Journal.Steps[i]; rec.Restored == run.RestoreFailed {
			out = append(out, "step "+rec.Path+" could not be put back"+Colon(rec.RestoreMessage))
		}
	}
	return out
}
