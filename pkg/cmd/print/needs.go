package print

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Need is something that needs somebody, or that somebody should know.
type Need struct {
	About  string // a plan, a policy, a node, a namespace or the whole cluster
	What   string
	Remedy string // the command that helps
	Failed bool   // something failed: that is told first
}

// NeedLines show needs under a heading; none without needs.
func (v Printer) NeedLines(needs []Need) []string {
	if len(needs) == 0 {
		return nil
	}
	lines := []string{v.Bold("Needs somebody:")}
	for _, n := range needs {
		lines = append(lines, "  "+document.OneLine(v.Bad(n.About)+"  "+n.What), "    "+n.Remedy)
	}
	return append(lines, "")
}

// PlanNeeds are what of a plan needs somebody, the gravest first.
func (v Printer) PlanNeeds(p view.Plan) []Need {
	name := p.Object.Name
	var out []Need
	add := func(what, remedy string) { out = append(out, Need{About: name, What: what, Remedy: remedy}) }
	if fault := p.Kept.Fault(); fault != "" {
		add("its ledger "+fault, v.Suggest().ShowLedger(annotations.LedgerName(name, string(p.Object.UID))))
	}
	all, current := view.Conditions(p.Object), p.Conditions()
	if len(p.Faults) > 0 {
		add("is invalid, so it starts nothing: "+p.Faults[0].String()+view.AndMore(len(p.Faults)-1), v.Suggest().Describe(name))
	} else if why, is := view.FindCondition(current, "Valid", metav1.ConditionFalse); is {
		add("is not Valid: "+v.AgentText(why), v.Suggest().Describe(name))
	} else if why, is := view.FindCondition(current, "Ready", metav1.ConditionFalse); is {
		add("is not Ready: "+v.AgentText(why), v.Suggest().Doctor(name))
	}
	if p.Deleting {
		add("can begin no run: "+view.NamespaceGoes, v.Suggest().DescribeNamespace(p.Object.Namespace))
	}
	for _, gone := range p.Gone {
		add("can begin no run: "+gone, v.Suggest().Doctor(name))
	}
	for _, f := range p.Intent.Faults {
		remedy := v.Suggest().Describe(name)
		switch f.Path {
		case annotations.Skip:
			remedy = v.Suggest().Unskip(name)
		case annotations.Pause:
			remedy = v.Suggest().Resume(name)
		}
		add("annotation "+f.String(), remedy)
	}
	if why, is := view.FindCondition(current, "TriggerLabelReturns", metav1.ConditionTrue); is {
		add("does not run by its label: "+v.AgentText(why), v.Suggest().Describe(name))
	}
	for _, r := range p.ResponsiveRuns() {
		for _, n := range v.RunNeeds(r) {
			add(n.What, n.Remedy)
		}
	}
	if why, is := view.FindCondition(all, "RunStuck", metav1.ConditionTrue); is {
		add(v.AgentText(why), cmp.Or(remedy.CommandIn(why), v.Suggest().Why(name)))
	}
	if refused := p.Decision.Status.Refused; refused != "" {
		add(v.AgentText(refused), v.Suggest().Why(name))
	}
	if failed, said := v.Failed(p); failed != "" && !retried(p) {
		out = append(out, Need{About: name, What: said, Remedy: v.Suggest().Describe(failed), Failed: true})
	}
	if p.Ledger != nil {
		for _, left := range p.Ledger.Left {
			add(v.AgentText(left.Said()), v.Suggest().Resume(left.Run))
		}
	}
	return append(out, v.held(name, p.Intent, v.Suggest().Resume(name), v.Suggest().Unfreeze(name))...)
}

// retried says whether a run of the plan is at work that may make good what failed. One that waits,
// or a dry run, does not.
func retried(p view.Plan) bool {
	return slices.ContainsFunc(p.Active, func(r view.Run) bool { return r.Journal.Phase == run.Running && !r.Run.Request.DryRun })
}

// Failed is the newest run that failed since the last success of a plan, and what is said of
// it, with step and cause; empty: none did. Dry runs count for nothing.
func (v Printer) Failed(p view.Plan) (name, said string) {
	if p.Ledger == nil || p.Ledger.Last == nil {
		return "", ""
	}
	last, failed, since := p.Ledger.Last, p.Ledger.FailuresSinceSuccess(), ""
	switch {
	case last.Phase == run.Failed:
		name, said = last.Name, "its last run "+last.Name+" failed"
		if !last.EndedAt.IsZero() {
			said += " " + v.When(last.EndedAt)
		}
	case failed.Count > 0:
		name, said, since = failed.Run, "run "+failed.Run+" failed", "; no run has succeeded since"
	}
	if failed.Run == name {
		said += view.Prefix(", in step ", failed.Step) + view.Colon(v.AgentText(failed.Message)) + since
	}
	switch {
	case failed.Count < 2:
	case last.SuccessAt != nil:
		said += fmt.Sprintf("; %d runs have failed since the last success", failed.Count)
	default:
		said += fmt.Sprintf("; %d runs have failed, and none has succeeded", failed.Count)
	}
	return name, said
}

// Frozen says until when, by whom and why an object's own annotations forbid change; empty: they do
// not.
func (v Printer) Frozen(in intent.Intent) string {
	s := in.Stanza
	switch {
	case s.Strategy == schedule.Restrictive:
		return "is frozen" + s.By
	case s.Strategy == schedule.RestrictiveUntil && s.Until != nil && s.Until.After(v.Now):
		return "is frozen until " + v.When(*s.Until) + schedule.Clause(s.By)
	}
	return ""
}

// RunNeeds are for what a live run waits that somebody has to give.
func (v Printer) RunNeeds(r view.Run) []Need {
	name, named, j := r.Run.Name, r.Named(), r.Journal
	switch {
	case r.Said("aborted") != nil, j.Phase.Ended():
		return nil
	case j.Waiting == run.WaitApproval && r.AnswerTo("") != nil:
		return nil
	case j.Waiting == run.WaitApproval:
		return []Need{{What: named + " " + v.AgentText(view.ApprovalWords(r.Run, "", j.Message)), Remedy: v.Suggest().Answer(name)}}
	}
	var out []Need
	if said := j.DriftMessage(); said != "" && j.End == nil && r.Said("resumed") == nil && r.Run.Spec.OnDrift != plan.DriftIgnore {
		what := named + " is held: " + v.AgentText(said)
		if ends := v.EndsSuspend(r); ends != "" {
			what = named + " begins no step after its suspend: " + v.AgentText(said) + "; whoever resumes it accepts that, and " + ends
		}
		out = append(out, Need{What: what, Remedy: v.Suggest().Resume(name)})
	}
	for _, rec := range j.Steps {
		switch {
		case rec.Phase != run.StepRunning:
		case rec.Type == plan.TypeApproval && rec.Approval == nil && r.AnswerTo(rec.Path) == nil:
			out = append(out, Need{What: named + " asks in step " + rec.Path + ": " + v.AgentText(view.ApprovalWords(r.Run, rec.Path, rec.Message)), Remedy: v.Suggest().Answer(name + "/" + rec.Path)})
		case rec.Type == "suspend" && rec.ResumeAt == nil && rec.Resumed == nil && r.Said("resumed") == nil:
			out = append(out, Need{What: named + " is suspended in step " + rec.Path, Remedy: v.Suggest().Resume(name)})
		}
	}
	for _, rec := range j.Steps {
		out = append(out, v.drainNeeds(r, rec)...)
	}
	for _, rec := range j.Steps {
		if rec.Waits != "" {
			out = append(out, Need{What: named + ", step " + rec.Path + ", waits: " + v.AgentText(rec.Waits), Remedy: v.Suggest().Doctor(r.Run.Plan)})
			break
		}
	}
	return out
}

// drainNeeds are the nodes of a step whose drain no waiting ends. One that gave its turn away is
// told with its node.
func (v Printer) drainNeeds(r view.Run, rec run.Record) []Need {
	var out []Need
	add := func(t run.DrainTarget, remedy string) {
		if t.Blocked && !t.Yielded && !t.Drained {
			why := cmp.Or(t.Why, rec.Message)
			out = append(out, Need{What: r.Named() + ", step " + rec.Path + ": the drain of node " + t.Name + " is blocked until somebody changes something" + view.Colon(v.AgentText(why)), Remedy: remedy})
		}
	}
	m := rec.Draining()
	for _, t := range m.Nodes {
		add(t, v.In("").Suggest().DrainPlan(t.Name))
	}
	for _, t := range m.Elsewhere {
		add(t, v.Suggest().Describe(r.Run.Name))
	}
	return out
}

// SleeperNeeds are what of a HibernatePlan needs somebody.
func (v Printer) SleeperNeeds(s view.Sleeper) []Need {
	phase, message := s.Phase()
	var out []Need
	if hibernate.Phase(phase) == hibernate.InError || hibernate.Phase(phase) == hibernate.Invalid {
		out = append(out, Need{About: s.Name, What: "is " + phase + view.Colon(v.AgentText(message)), Remedy: v.Suggest().Describe(s.Name), Failed: hibernate.Phase(phase) == hibernate.InError})
	}
	for _, t := range s.Retried() {
		out = append(out, Need{About: s.Name, What: view.RetriedWords(t) + view.Colon(v.AgentText(t.Message)), Remedy: v.Suggest().Doctor(s.Name)})
	}
	if why := s.NotReady(); why != "" {
		out = append(out, Need{About: s.Name, What: "is not Ready: " + v.AgentText(why), Remedy: v.Suggest().Doctor(s.Name)})
	}
	return append(out, v.held(s.Name, s.Intent, v.Suggest().Resume(s.Name), v.Suggest().Unfreeze(s.Name))...)
}

// maxNeedReason is how much of the reason of a node is said beside the command that shows all of it (a guess: two
// lines of a terminal).
const maxNeedReason = 200

// ClaimNeeds are the nodes that nobody goes on with by himself.
func (v Printer) ClaimNeeds(claims []view.NodeClaim) []Need {
	var out []Need
	for _, c := range claims {
		if (!c.Blocked || c.Passes) && (c.Elsewhere || c.Unseen || !slices.Contains([]string{"RequestorFailed", "Uncordoned", "Invalid", "Yielded", "Failed", "Cordoned"}, c.Phase)) {
			continue
		}
		what := c.Phase + " for " + c.By + view.Colon(document.Cut(v.AgentText(c.Reason), maxNeedReason))
		if c.Phase == "Cordoned" {
			what = "is left cordoned for " + c.By + ", and " + c.Reason
		}
		remedy := v.Suggest().Why("node/" + c.Node)
		if c.Uncordon {
			remedy = v.Suggest().Uncordon(c.Node)
		}
		out = append(out, Need{About: "node " + c.Node, What: what, Remedy: remedy})
	}
	return out
}
