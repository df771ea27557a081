package ledger_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// claimed is a ledger with one open entry, whose run is run-1.
func claimed() ledger.Ledger {
	return ledger.Ledger{PlanUID: "uid"}.Claim("run-1", coretest.SlotAt("02:00"), "")
}

func TestARunThatWasTakenAwayWhileNobodyLookedIsNotMadeAgain(t *testing.T) {
	for _, c := range []struct {
		name    string
		started bool
		result  run.Result
		reason  string
		last    run.Phase
		left    int
	}{
		{"its first step had begun: it ran, and nobody knows how far", true, run.Ran, "schedule", run.Aborted, 1},
		{"it had not begun: taking it away was an abort", false, run.Skipped, run.ReasonAborted, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := claimed()
			started := coretest.On("02:00")
			if !c.started {
				started = nil
			}
			l = l.CloseRemoved(l.Open[0], started, coretest.Clock("02:30"))
			if len(l.Open) != 0 || len(l.Recent) != 1 || l.Recent[0].Result != c.result || l.Recent[0].Reason != c.reason || len(l.Left) != c.left {
				t.Errorf("open %d, entry %+v, left %+v", len(l.Open), l.Recent, l.Left)
			}
			if c.last != "" && (l.Last == nil || l.Last.Phase != c.last || l.Last.Name != "run-1") {
				t.Errorf("last %+v", l.Last)
			}
			if again := l.CloseRemoved(ledger.Entry{Run: "run-1"}, started, coretest.Clock("02:31")); len(again.Recent) != 1 {
				t.Errorf("closed twice: %+v", again.Recent)
			}
		})
	}
}

// left is the ledger after a run whose steps could not be put back.
func left(paths ...string) ledger.Ledger {
	l := claimed()
	r := coretest.NewRun()
	r.Name = "run-1"
	j := run.Journal{Phase: run.Running, StartedAt: coretest.On("02:00"), End: &run.End{Phase: run.Aborted}}
	for _, path := range paths {
		j.Steps = append(j.Steps, run.Record{Path: path, Type: "scale", Phase: run.StepSucceeded, Before: []byte(`{"uid":"u"}`), Restored: run.RestoreFailed, RestoreMessage: "spec.replicas of Deployment/orders stays 0, was 7: forbidden"})
	}
	return l.Finish(r, j, coretest.Clock("02:30"))
}

func TestWhatARunDidNotPutBackIsKeptUntilSomebodyKnowsOrItIsAsItWas(t *testing.T) {
	l := left("a", "b")
	message := l.LeftMessage("shop")
	for _, want := range []string{"run run-1, step a", "spec.replicas of Deployment/orders stays 0, was 7: forbidden", "and 1 more", "'kubectl maint -n shop resume run-1'"} {
		if !strings.Contains(message, want) {
			t.Errorf("%q lacks %q", message, want)
		}
	}
	if l = l.PutBack("run-1", "a"); len(l.Left) != 1 || l.Left[0].Step != "b" {
		t.Errorf("after one is as it was: %+v", l.Left)
	}
	f := trigger.Facts{
		Now: coretest.Clock("03:00"), LeadingSince: coretest.Clock("01:00"), Plan: trigger.Plan{Namespace: "shop", Name: "orders", UID: "uid", CreatedAt: coretest.Clock("01:00"), Spec: coretest.NewRun().Spec, Intent: intent.Intent{Resume: intent.RunRef{Run: "another"}}},
		Ready: trigger.Readiness{OK: true}, State: trigger.State{Ledger: &l, ResumeSeen: coretest.Clock("02:45")}, NameOf: func(run.Request) string { return "x" },
	}
	f.State.Ledger.Watermark = coretest.Clock("02:59")
	if d := trigger.Decide(f); len(d.Ledger.Left) != 1 {
		t.Errorf("another run's resume acknowledges it: %+v", d.Ledger.Left)
	}
	f.Plan.Intent.Resume.Run, f.State.ResumeSeen = "run-1", coretest.Clock("02:29")
	if d := trigger.Decide(f); len(d.Ledger.Left) != 1 {
		t.Errorf("a resume that was meant for the run's suspend acknowledges what it left: %+v", d.Ledger.Left)
	}
	f.State.ResumeSeen, f.Plan.Intent.Resume.Step = coretest.Clock("02:31"), "a"
	if d := trigger.Decide(f); len(d.Ledger.Left) != 1 {
		t.Errorf("the resume of a step that left nothing acknowledges what another one left: %+v", d.Ledger.Left)
	}
	f.Plan.Intent.Resume.Step = ""
	d := trigger.Decide(f)
	if !d.Changed || len(d.Ledger.Left) != 0 || d.Ledger.LeftMessage("shop") != "" {
		t.Errorf("acknowledged: changed %t, %+v", d.Changed, d.Ledger.Left)
	}
	if diff := cmp.Diff(1, len(l.Left)); diff != "" {
		t.Errorf("the ledger that was decided on changed (-want +got):\n%s", diff)
	}
}

func TestWhatIsLeftIsBounded(t *testing.T) {
	paths := coretest.Repeat(func(i int) string { return "s" + strings.Repeat("x", i) }, 25)
	l := left(paths...)
	if len(l.Left) != 10 || !strings.Contains(l.Left[9].Message, "and 15 more of this run") {
		t.Errorf("%d: %+v", len(l.Left), l.Left)
	}
}

func TestWhatATornRunLeavesIsOnlyWhatItWouldHaveDoneAtItsEnd(t *testing.T) {
	const scale = "{name: s, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0"
	before := []byte(`{"uid":"u"}`)
	for _, c := range []struct {
		name, spec string
		kind       string
		before     []byte
		want       []string
	}{
		{"a step that puts back", "steps: [" + scale + ", restoreAfter: true}}]", "scale", before, []string{"s"}},
		{"a step that only remembers what it found", "steps: [" + scale + "}}]", "scale", before, nil},
		{"nothing begun, nothing to clean up", "steps: [" + coretest.Hook("s") + "]", "webhook", nil, nil},
		{"a cleanup that did not run", "steps: [" + coretest.Hook("s") + "]\nfinally: [" + coretest.Hook("f") + "]", "webhook", nil, []string{""}},
		{"a node that it cordoned", "steps: [{name: s, type: cordon, properties: {node: n}}]", plan.TypeCordon, nil, []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := coretest.RunOf(t, c.spec)
			r.Name = "run-1"
			j := run.Journal{Phase: run.Running, StartedAt: coretest.On("02:00"), End: &run.End{Phase: run.Aborted, Reason: run.ReasonTornAway}}
			j.Steps = []run.Record{{Path: "s", Type: c.kind, Phase: run.StepSucceeded, Before: c.before}}
			var got []string
			for _, left := range claimed().Finish(r, j, coretest.Clock("02:30")).Left {
				got = append(got, left.Step)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestOfATornRunOnlyStepsThatChangedSomethingLeaveIt(t *testing.T) {
	const spec = "steps: [{name: s, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0, restoreAfter: true}}]"
	torn := &run.End{Phase: run.Aborted, Reason: run.ReasonTornAway}
	before := []byte(`{"uid":"u"}`)
	for _, c := range []struct {
		name   string
		record run.Record
		end    *run.End
		want   int
	}{
		{"it ran", run.Record{Phase: run.StepSucceeded, Before: before}, torn, 1},
		{"it was at work", run.Record{Phase: run.StepRunning, Before: before}, torn, 1},
		{"it failed", run.Record{Phase: run.StepFailed, Before: before}, torn, 1},
		{"it had not begun", run.Record{Phase: run.StepPending, Before: before}, torn, 0},
		{"it was skipped", run.Record{Phase: run.StepSkipped, Before: before}, torn, 0},
		{"it had written nothing down", run.Record{Phase: run.StepSucceeded}, torn, 0},
		{"it was put back before", run.Record{Phase: run.StepSucceeded, Before: before, Restored: run.RestoreDone}, torn, 0},
		{"another end puts it back", run.Record{Phase: run.StepSucceeded, Before: before}, &run.End{Phase: run.Aborted}, 0},
		{"no end is known", run.Record{Phase: run.StepSucceeded, Before: before}, nil, 0},
	} {
		r := coretest.RunOf(t, spec)
		r.Name = "run-1"
		c.record.Path, c.record.Type = "s", "scale"
		j := run.Journal{Phase: run.Running, StartedAt: coretest.On("02:00"), End: c.end, Steps: []run.Record{c.record}}
		if got := claimed().Finish(r, j, coretest.Clock("02:30")).Left; len(got) != c.want {
			t.Errorf("%s: left %+v", c.name, got)
		}
	}
}

// Whoever restores by hand what a torn run left has to know to what.
func TestWhatATornRunLeftNamesWhatWasThere(t *testing.T) {
	const torn = "was not put back: the run's object was removed against its finalizer"
	field := func(key, before string) string {
		return `{"path":[{"KEY":"spec"},{"KEY":"` + key + `"}]` + before + `}`
	}
	record := func(fields ...string) string {
		return strings.ReplaceAll(`{"uid":"u","object":{"apiVersion":"apps/v1","kind":"Deployment","name":"orders"},"changes":[`+strings.Join(fields, ",")+`]}`, "KEY", "key")
	}
	replicas := field("replicas", `,"before":7,"after":0`)
	for name, c := range map[string]struct{ before, want string }{
		"a number":            {record(replicas), "Deployment/orders had spec.replicas 7, and " + torn},
		"none":                {record(field("paused", "")), "Deployment/orders had spec.paused absent, and " + torn},
		"a text":              {record(field("token", `,"before":"s3cret"`)), "Deployment/orders had spec.token (not shown here), and " + torn},
		"many":                {record(replicas, replicas, replicas, replicas, replicas), "Deployment/orders had spec.replicas 7, spec.replicas 7, spec.replicas 7, and 2 more fields, and " + torn},
		"a map that was made": {record(field("x", `,"made":true`)), torn},
		"another world":       {`{"uid":"u"}`, torn},
	} {
		r := coretest.RunOf(t, "steps: [{name: s, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0, restoreAfter: true}}]")
		r.Name = "run-1"
		j := run.Journal{Phase: run.Running, StartedAt: coretest.On("02:00"), End: &run.End{Phase: run.Aborted, Reason: run.ReasonTornAway}, Steps: []run.Record{{Path: "s", Type: "scale", Phase: run.StepSucceeded, Before: []byte(c.before)}}}
		got := claimed().Finish(r, j, coretest.Clock("02:30")).Left
		if len(got) != 1 || got[0].Message != c.want {
			t.Errorf("%s: left %+v", name, got)
		}
	}
}

func TestACleanupThatDidNotRunIsLeftByATornRunAlone(t *testing.T) {
	torn := run.End{Phase: run.Aborted, Reason: run.ReasonTornAway}
	stays := run.Record{Path: "s", Phase: run.StepSucceeded, Restored: run.RestoreFailed, RestoreMessage: "no right"}
	broke := run.Record{Path: "finally/f", Type: "webhook", Phase: run.StepFailed, Message: "answered 404"}
	finally := "steps: [" + coretest.Hook("s") + "]\nfinally: [" + coretest.Hook("f") + "]"
	for _, c := range []struct {
		name, spec string
		end        run.End
		steps      []run.Record
		want       []string
	}{
		{"it has one", finally, torn, nil, []string{""}},
		{"it has none", "steps: [" + coretest.Hook("s") + "]", torn, nil, nil},
		{"another end ran it", finally, run.End{Phase: run.Aborted}, nil, nil},
		{"what was not put back is told alone", finally, torn, []run.Record{stays}, []string{"s"}},
		{"a step of it failed before", finally, torn, []run.Record{broke}, []string{"finally/f", ""}},
		{"what another end did not put back", finally, run.End{Phase: run.Aborted}, []run.Record{stays}, []string{"s"}},
	} {
		r := coretest.RunOf(t, c.spec)
		r.Name = "run-1"
		var got []string
		for _, left := range claimed().Finish(r, run.Journal{StartedAt: coretest.On("02:00"), End: &c.end, Steps: c.steps}, coretest.Clock("02:30")).Left {
			got = append(got, left.Step)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestWhatAStepFoundIsKeptAsFarAsItIsSmall(t *testing.T) {
	for n, kept := range map[int]bool{1024: true, 1025: false} {
		r := coretest.NewRun()
		r.Name = "run-1"
		before := []byte(`"` + strings.Repeat("x", n-2) + `"`)
		j := run.Journal{StartedAt: coretest.On("02:00"), Steps: []run.Record{{Path: "a", Before: before, Restored: run.RestoreFailed}}}
		l := claimed().Finish(r, j, coretest.Clock("02:30"))
		if got := len(l.Left[0].Before) > 0; got != kept {
			t.Errorf("%d bytes are kept: %t", n, got)
		}
		if l.Left[0].Account != plan.Account(r.Spec) || l.Left[0].Message == "" {
			t.Errorf("%+v", l.Left[0])
		}
	}
}

func TestWhoLeftWhatByWhen(t *testing.T) {
	l := left("a", "b")
	for name, c := range map[string]struct {
		run, step string
		at        string
		want      bool
	}{
		"before it left something": {"run-1", "", "02:29", false},
		"at the instant":           {"run-1", "", "02:30", false},
		"after it":                 {"run-1", "", "02:31", true},
		"another run":              {"run-2", "", "02:31", false},
		"no run":                   {"", "", "02:31", false},
		"a step of it":             {"run-1", "b", "02:31", true},
		"a step that left nothing": {"run-1", "c", "02:31", false},
	} {
		if got := l.LeftBy(c.run, c.step, coretest.Clock(c.at)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if got := l.PutBack("run-2", "a").PutBack("run-1", "c").Left; len(got) != 2 {
		t.Errorf("what another run or step put back: %+v", got)
	}
	if got := l.Acknowledge("run-2", "").Left; len(got) != 2 {
		t.Errorf("what another run left is acknowledged: %+v", got)
	}
	if got := l.Acknowledge("run-1", "a").Left; len(got) != 1 || got[0].Step != "b" {
		t.Errorf("one step is acknowledged: %+v", got)
	}
	if got := l.Acknowledge("run-1", "").Left; len(got) != 0 {
		t.Errorf("acknowledged: %+v", got)
	}
	one := l.PutBack("run-1", "b")
	if strings.Contains(one.LeftMessage("shop"), "more") || !strings.Contains(l.LeftMessage("shop"), "(and 1 more)") {
		t.Errorf("%q, %q", one.LeftMessage("shop"), l.LeftMessage("shop"))
	}
	one.Left[0].Step = ""
	if !strings.HasPrefix(one.LeftMessage("shop"), "not put back by run run-1: ") {
		t.Errorf("of the whole run: %q", one.LeftMessage("shop"))
	}
}

func TestExactlyAsManyLeftoversAsAreKept(t *testing.T) {
	l := left(coretest.Repeat(func(i int) string { return "s" + strings.Repeat("x", i) }, 10)...)
	if len(l.Left) != 10 || strings.Contains(l.Left[9].Message, "more of this run") {
		t.Errorf("%d: %s", len(l.Left), l.Left[9].Message)
	}
	r := coretest.NewRun()
	r.Name = "run-2"
	j := run.Journal{StartedAt: coretest.On("02:00"), Steps: []run.Record{{Path: "last", Restored: run.RestoreFailed}}}
	l = l.Claim("run-2", coretest.SlotAt("02:30"), "").Finish(r, j, coretest.Clock("03:00"))
	if len(l.Left) != 10 || l.Left[9].Step != "last" || l.Left[0].Step != "sx" {
		t.Errorf("the oldest goes: %+v", l.Left)
	}
}

func TestAFailedCleanupIsKeptUntilSomebodyKnowsOrALaterRunSucceeds(t *testing.T) {
	l, started := ledger.Ledger{PlanUID: "uid"}, "02:00"
	ended := func(name string, phase run.Phase, dry bool, steps ...run.Record) {
		r := coretest.NewRun()
		r.Name, r.Request.DryRun = name, dry
		l = l.Claim(name, coretest.SlotAt("02:00"), "").Finish(r, run.Journal{StartedAt: coretest.On(started), End: &run.End{Phase: phase}, Steps: steps}, coretest.Clock("02:30"))
	}
	is := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, o := range l.Left {
			got = append(got, o.Said())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	broke := func(path string) run.Record {
		return run.Record{Path: path, Type: "webhook", Phase: run.StepFailed, Message: "answered 404"}
	}
	stays := run.Record{Path: "down", Phase: run.StepSucceeded, Restored: run.RestoreFailed, RestoreMessage: "no right"}

	ended("dry", run.Aborted, true, broke("finally/up"))
	is("a dry run leaves nothing")
	ended("r-1", run.Aborted, false, broke("b"), stays, broke("onFailure/undo"), broke("finally/up"), broke("finally/g"), broke("finally/g/in"))
	is("aborted", "not put back by run r-1, step down: no right", "not cleaned up by run r-1, step onFailure/undo: answered 404", "not cleaned up by run r-1, step finally/up: answered 404", "not cleaned up by run r-1, step finally/g: answered 404")
	ended("r-2", run.Replaced, false, broke("finally/up"))
	is("it failed again", "not put back by run r-1, step down: no right", "not cleaned up by run r-1, step onFailure/undo: answered 404", "not cleaned up by run r-1, step finally/g: answered 404", "not cleaned up by run r-2, step finally/up: answered 404")
	if got := l.Acknowledge("r-1", "").LeftMessage("shop"); got != "not cleaned up by run r-2, step finally/up: answered 404; do it by hand, and acknowledge it: 'kubectl maint -n shop resume r-2'" {
		t.Errorf("when what r-1 left is acknowledged: %q", got)
	}
	ended("r-3", run.Aborted, false)
	if len(l.Left) != 4 {
		t.Errorf("an aborted run makes nothing good: %+v", l.Left)
	}
	ended("r-0", run.Succeeded, false)
	if len(l.Left) != 4 {
		t.Errorf("one that began before it failed makes nothing good: %+v", l.Left)
	}
	started = "02:45"
	ended("r-4", run.Succeeded, false)
	is("a later run succeeded", "not put back by run r-1, step down: no right")
}
