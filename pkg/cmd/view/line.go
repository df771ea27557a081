package view

import (
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// Line is one line of output, and the resource that it is about. A line of a table also has its
// cells, so that a narrow screen can omit columns.
type Line struct {
	Text  string
	Of    Resource
	Cells []string
	Table *Table // nil: not a line of a table
	Head  bool   // a heading
	Aside bool   // stands for what is not there: to be said beside what is printed
	Part  int    // the same for lines that belong together, beside those of one resource; 0: none
}

// Resource is what a line is about, as a command line would name it. The zero value is nothing.
type Resource struct {
	Kind, Namespace, Name string
	Plan                  string // of a run
	Question              string // RUN or RUN/STEP that waits for an answer; empty: none does
	Resumes               string // what of it somebody may resume, as KIND/NAME; empty: nothing is known to wait for that
}

// Together says whether two lines are about the same, so that a filter that finds one keeps both.
func (l Line) Together(other Line) bool {
	if key := l.Of.Key(); key != "" || other.Of.Key() != "" {
		return key == other.Of.Key()
	}
	return l.Part != 0 && l.Part == other.Part
}

// Key identifies the resource in every state; empty for none.
func (t Resource) Key() string {
	if t.Kind == "" {
		return ""
	}
	return t.Kind + "/" + t.Namespace + "/" + t.Name
}

// Table is what the lines of a table share.
type Table struct {
	Spare  []int // columns that a narrow screen omits, in this order
	Keep   int   // the column that the narrowest screen shows beside that before it; 0: none
	Widths []int // of the widest cell of each column
}

// Fit widens the columns for a row.
func (t *Table) Fit(cells []string) {
	for len(t.Widths) < len(cells) {
		t.Widths = append(t.Widths, 0)
	}
	for i, cell := range cells {
		t.Widths[i] = max(t.Widths[i], utf8.RuneCountInString(cell))
	}
}

// LinesOf are lines about one thing.
func LinesOf(of Resource, texts ...string) []Line {
	out := make([]Line, len(texts))
	for i, text := range texts {
		out[i] = Line{Text: text, Of: of}
	}
	return out
}

// Texts are lines as plain text.
func Texts(lines []Line) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l.Text
	}
	return out
}

// RunResource is a run as something that commands are given for; none that the run would not obey.
func RunResource(r Run) Resource {
	of := Resource{Kind: annotations.KindRun, Namespace: r.Run.Namespace, Name: r.Run.Name, Plan: r.Run.Plan}
	if !r.Unheard {
		of.Question, of.Resumes = firstOf(Questions(r)), resumable(r)
	}
	return of
}

// resumable is a run that goes on when somebody resumes it; empty: it does not wait for that.
func resumable(r Run) string {
	if r.Journal.Phase.Ended() || ResumeHelps(r) == "" {
		return ""
	}
	return annotations.KindRun + "/" + r.Run.Name
}

// PlanResource is a plan as something that commands are given for. A question that one of its runs
// asks is the plan's, too.
func PlanResource(p Plan) Resource {
	var open, waits []string
	if p.Intent.Pause.On {
		waits = append(waits, annotations.KindPlan+"/"+p.Object.Name)
	}
	for _, r := range p.ResponsiveRuns() {
		open = append(open, Questions(r)...)
		if one := resumable(r); one != "" {
			waits = append(waits, one)
		}
	}
	if p.Ledger != nil && len(p.Ledger.Left) > 0 {
		waits = append(waits, annotations.KindRun+"/"+p.Ledger.Left[0].Run)
	}
	return Resource{Kind: annotations.KindPlan, Namespace: p.Object.Namespace, Name: p.Object.Name, Question: firstOf(open), Resumes: firstOf(waits)}
}

// SleeperResource is a HibernatePlan as something that commands are given for.
func SleeperResource(s Sleeper) Resource {
	out := Resource{Kind: annotations.KindHibernatePlan, Namespace: s.Namespace, Name: s.Name}
	if s.Intent.Pause.On {
		out.Resumes = annotations.KindHibernatePlan + "/" + s.Name
	}
	return out
}

// NodeResource is a node as something that commands are given for. n is the node itself; nil: it is
// not there.
func NodeResource(name string, n *corev1.Node) Resource {
	out := Resource{Kind: "node", Name: strings.TrimPrefix(name, "node ")}
	if n != nil && annotations.Intent(n.Annotations).Pause.On {
		out.Resumes = "node/" + out.Name
	}
	return out
}

func firstOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
