package view_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/stuck"
)

func TestWhichStepsAWordMeans(t *testing.T) {
	r := cmdtest.RunOf(
		cmdtest.Record("dump", "job", run.StepSucceeded), cmdtest.Record("all", plan.TypeGroup, run.StepRunning),
		cmdtest.Record("all/dump", "job", run.StepRunning), cmdtest.Record("all/redump", "job", run.StepRunning), cmdtest.Record("finally/wake", "scale", run.StepPending),
	)
	for word, want := range map[string][]string{
		"dump":         {"dump"}, // a path is meant before a name
		"all/dump":     {"all/dump"},
		"wake":         {"finally/wake"},
		"redump":       {"all/redump"},
		"ump":          nil,
		"":             nil,
		"finally":      nil, // it is a section, and no step
		"finally/wake": {"finally/wake"},
	} {
		if diff := cmp.Diff(want, view.StepsNamed(r, word)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", word, diff)
		}
	}
	if diff := cmp.Diff([]string{"dump", "all", "all/dump", "all/redump", "finally/wake"}, view.Paths(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhichStepsWaitForAnAnswer(t *testing.T) {
	with := func(phase run.StepPhase, kind string, a *run.Approval) run.Record {
		return cmdtest.Record("ask", kind, phase, func(rec *run.Record) { rec.Approval = a })
	}
	for _, c := range []struct {
		name string
		rec  run.Record
		want bool
	}{
		{"it waits", with(run.StepRunning, plan.TypeApproval, nil), true},
		{"it was approved", with(run.StepRunning, plan.TypeApproval, &run.Approval{Approved: true}), false},
		{"it was rejected", with(run.StepRunning, plan.TypeApproval, &run.Approval{}), false},
		{"it has not begun", with(run.StepPending, plan.TypeApproval, nil), false},
		{"it ran out of time", with(run.StepFailed, plan.TypeApproval, nil), false},
		{"a suspend waits for somebody, and not for an answer", with(run.StepRunning, "suspend", nil), false},
	} {
		if got := view.WaitsForAnswer(c.rec); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestAPendingRunAsksBeforeItBegins(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*view.Run)
		want []string
	}{
		{"nobody has approved it", func(*view.Run) {}, []string{"maint-run-p-x"}},
		{"somebody has", func(r *view.Run) { r.Journal.Approved = &intent.Actor{Name: "jane"} }, nil},
		{"it was given up, and is being closed", func(r *view.Run) { r.Journal.Section = plan.SectionClosing }, nil},
		{"its plan asks nobody: its steps will ask when they begin", func(r *view.Run) { r.Run.Spec.RequiresApproval = false }, nil},
		{"it changes nothing", func(r *view.Run) { r.Run.Request.DryRun = true }, nil},
		{"it was replaced before it began", func(r *view.Run) { r.Journal.Phase = run.Replaced }, nil},
	} {
		if diff := cmp.Diff(c.want, view.Questions(cmdtest.PendingRun(c.edit))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestRunsAreSortedByWhenTheyWereAskedFor(t *testing.T) {
	at := func(name string, ago time.Duration) view.Run {
		return view.Run{Run: run.Run{Name: name, Request: run.Request{At: *cmdtest.Before(ago)}}}
	}
	list := []view.Run{at("b", time.Hour), at("late", time.Minute), at("a", time.Hour), at("early", 2*time.Hour)}
	view.SortRuns(list)
	var names []string
	for _, r := range list {
		names = append(names, r.Run.Name)
	}
	if diff := cmp.Diff([]string{"early", "a", "b", "late"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatWasNotPutBack(t *testing.T) {
	restored := func(path, how, message string) run.Record {
		return cmdtest.Record(path, "scale", run.StepSucceeded, func(rec *run.Record) { rec.Restored, rec.RestoreMessage = how, message })
	}
	r := cmdtest.RunOf(restored("a", run.RestoreFailed, "forbidden"), restored("b", "done", "back at 3"), restored("c", run.RestoreFailed, ""), restored("d", "", ""))
	want := []string{"step a could not be put back: forbidden", "step c could not be put back"}
	if diff := cmp.Diff(want, view.NotPutBack(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := view.NotPutBack(cmdtest.RunOf()); got != nil {
		t.Errorf("%q", got)
	}
}

func TestARunIsReadFromItsObject(t *testing.T) {
	cm := cmdtest.RunObject(cmdtest.RunOf(cmdtest.Record("dump", "job", run.StepRunning)), "maint-run-orders-a")
	r, err := view.ReadRun(cm)
	if err != nil || r.Run.Name != "maint-run-orders-a" || r.Run.Plan != "orders" || len(r.Journal.Steps) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	cm.Data[annotations.DataJournal] = "{"
	if _, err := view.ReadRun(cm); err == nil {
		t.Error("a journal that is none is read")
	}
}

func TestWhatALineIsAbout(t *testing.T) {
	asking := cmdtest.AskingOf(cmdtest.Asking("ask"), cmdtest.Asking("again"))
	quiet := cmdtest.RunOf(cmdtest.Record("dump", "job", run.StepRunning))
	cm := cmdtest.Plan("orders", "")
	unclaimed := cmdtest.Plan("p", "", cmdtest.Noting(annotations.StatusConditions, `[{"type":"RunStuck","status":"True","reason":"Stuck","message":"`+stuck.CannotGoOn("maint-run-p-x", stuck.NoOpenEntry)+`","lastTransitionTime":"2026-11-20T00:00:00Z"}]`))
	unheard := view.Answered(asking, unclaimed)
	torn := view.Answered(cmdtest.RunOf(cmdtest.Record("hold", "suspend", run.StepRunning)), unclaimed)
	for _, c := range []struct {
		name      string
		got, want view.Resource
		key       string
	}{
		{"a run that asks", view.RunResource(asking), view.Resource{Kind: "run", Namespace: "shop", Name: "maint-run-p-x", Plan: "p", Question: "maint-run-p-x/ask"}, "run/shop/maint-run-p-x"},
		{"a run that asks, and takes no answer", view.RunResource(unheard), view.Resource{Kind: "run", Namespace: "shop", Name: "maint-run-p-x", Plan: "p"}, "run/shop/maint-run-p-x"},
		{"a run that is suspended, and takes no answer", view.RunResource(torn), view.Resource{Kind: "run", Namespace: "shop", Name: "maint-run-p-x", Plan: "p"}, "run/shop/maint-run-p-x"},
		{"a run that asks nothing", view.RunResource(quiet), view.Resource{Kind: "run", Namespace: "shop", Name: "maint-run-p-x", Plan: "p"}, "run/shop/maint-run-p-x"},
		{"a plan of which the second run asks", view.PlanResource(view.Plan{Object: cm, Active: []view.Run{quiet, asking}}), view.Resource{Kind: "plan", Namespace: "shop", Name: "orders", Question: "maint-run-p-x/ask"}, "plan/shop/orders"},
		{"a plan without a run", view.PlanResource(view.Plan{Object: cm}), view.Resource{Kind: "plan", Namespace: "shop", Name: "orders"}, "plan/shop/orders"},
		{"a HibernatePlan", view.SleeperResource(view.Sleeper{Namespace: "shop", Name: "office"}), view.Resource{Kind: "hibernate-plan", Namespace: "shop", Name: "office"}, "hibernate-plan/shop/office"},
		{"a node, by its name", view.NodeResource("a", cmdtest.Node("a")), view.Resource{Kind: "node", Name: "a"}, "node//a"},
		{"a node that is paused", view.NodeResource("a", cmdtest.Node("a", cmdtest.Noted(annotations.Pause, "true"))), view.Resource{Kind: "node", Name: "a", Resumes: "node/a"}, "node//a"},
		{"a node, as a line says it", view.NodeResource("node a", nil), view.Resource{Kind: "node", Name: "a"}, "node//a"},
		{"nothing", view.Resource{}, view.Resource{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := c.got.Key(); got != c.key {
				t.Errorf("key %q, want %q", got, c.key)
			}
		})
	}
}

func TestATableIsAsWideAsItsWidestCells(t *testing.T) {
	var table view.Table
	for _, row := range [][]string{{"NAME", "AT"}, {"Größe", "-", "more"}, {"a", "12:00"}} {
		table.Fit(row)
	}
	if diff := cmp.Diff([]int{5, 5, 4}, table.Widths); diff != "" { // of runes, and not of bytes
		t.Errorf("(-want +got):\n%s", diff)
	}
	lines := view.LinesOf(view.NodeResource("a", nil), "one", "two")
	if diff := cmp.Diff([]string{"one", "two"}, view.Texts(lines)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if lines[1].Of.Name != "a" {
		t.Errorf("%+v", lines[1])
	}
}

func TestADifferenceIsThatOfDiff(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"of what is alike there is none", "a\nb\n", "a\nb\n", ""},
		{"of nothing there is none", "", "", ""},
		{"a changed line", "a\nb\nc\n", "a\nB\nc\n", "--- old\n+++ new\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"},
		{"the first text", "", "a\n", "--- old\n+++ new\n@@ -0,0 +1 @@\n+a\n"},
		{"all is gone", "a\n", "", "--- old\n+++ new\n@@ -1 +0,0 @@\n-a\n"},
		{"three lines around it", "1\n2\n3\n4\n5\n", "1\n2\n3\n4\n5\n6\n", "--- old\n+++ new\n@@ -3,3 +3,4 @@\n 3\n 4\n 5\n+6\n"},
	} {
		got, err := view.Difference("old", c.before, "new", c.after)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
