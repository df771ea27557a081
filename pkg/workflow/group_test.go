package workflow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// picks is a for-each's first pass.
func picks(names ...string) workflow.StepResult {
	items := make([]run.Item, len(names))
	for i, name := range names {
		items[i] = run.Item{Name: name, UID: "uid-" + name}
	}
	return workflow.StepResult{Items: workflow.ItemList{Listed: true, List: items, APIVersion: "apps/v1", Kind: "Deployment"}, Message: fmt.Sprintf("takes %d", len(items))}
}

func parallel(most int, steps ...string) string {
	text := "{name: g, type: step-group, properties: {mode: parallel"
	if most > 0 {
		text += fmt.Sprintf(", maxConcurrency: %d", most)
	}
	return text + ", steps: [" + strings.Join(steps, ", ") + "]}}"
}

func loopOf(more string, steps ...string) string {
	return "{name: roll, type: for-each, properties: {apiVersion: apps/v1, kind: Deployment" + more + ", steps: [" + strings.Join(steps, ", ") + "]}}"
}

// endsOf are the phases of a journal's steps, and its end.
func endsOf(j run.Journal) map[string]string {
	out := map[string]string{}
	for _, rec := range j.Steps {
		out[rec.Path] = string(rec.Phase)
	}
	if j.End != nil {
		out["END"] = string(j.End.Phase) + " " + j.End.Reason
	}
	return out
}

func TestStepsThatHoldSteps(t *testing.T) {
	for _, c := range []struct {
		name, spec string
		edits      []func(*stage)
		acts       []string
		ends       map[string]string
	}{
		{
			name: "a sequential group runs in order, and the step after it sees it",
			spec: "steps: [{name: g, type: step-group, properties: {steps: [" + coretest.Hook("a") + ", " + coretest.Hook("b") + "]}}, " + coretest.Hook("c", `if: "steps['a'].phase == 'Succeeded' && steps.g.phase == 'Succeeded'"`) + "]",
			acts: []string{"g/a #1", "g/b #1", "c #1"},
			ends: map[string]string{"g": "Succeeded", "g/a": "Succeeded", "g/b": "Succeeded", "c": "Succeeded", "END": "Succeeded "},
		},
		{
			name:  "a failed step in a group fails the group, and those after it are skipped",
			spec:  "steps: [{name: g, type: step-group, properties: {steps: [" + coretest.Hook("a") + ", " + coretest.Hook("b") + "]}}, " + coretest.Hook("c") + "]",
			edits: []func(*stage){script("g/a", failed("Boom"))},
			acts:  []string{"g/a #1"},
			ends:  map[string]string{"g": "Failed", "g/a": "Failed", "g/b": "Skipped", "c": "Skipped", "END": "Failed StepFailed"},
		},
		{
			name: "a group that is skipped skips what it holds",
			spec: "steps: [{name: g, type: step-group, if: 'false', properties: {steps: [" + coretest.Hook("a") + "]}}, " + coretest.Hook("c") + "]",
			acts: []string{"c #1"},
			ends: map[string]string{"g": "Skipped", "g/a": "Skipped", "c": "Succeeded", "END": "Succeeded "},
		},
		{
			name: "side by side they begin together",
			spec: "steps: [" + parallel(0, coretest.Hook("a"), coretest.Hook("b"), coretest.Hook("c", "dependsOn: [a, b]")) + "]",
			acts: []string{"g/a #1", "g/b #1", "g/c #1"},
			ends: map[string]string{"g": "Succeeded", "g/a": "Succeeded", "g/b": "Succeeded", "g/c": "Succeeded", "END": "Succeeded "},
		},
		{
			name:  "one that stands before what it depends on waits for it",
			spec:  "steps: [" + parallel(0, coretest.Hook("c", "dependsOn: [b]"), coretest.Hook("b", "dependsOn: [a]"), coretest.Hook("a")) + "]",
			edits: nil,
			acts:  []string{"g/a #1", "g/b #1", "g/c #1"},
			ends:  map[string]string{"g": "Succeeded", "g/a": "Succeeded", "g/b": "Succeeded", "g/c": "Succeeded", "END": "Succeeded "},
		},
		{
			name:  "a failure skips only what depends on it",
			spec:  "steps: [" + parallel(0, coretest.Hook("a"), coretest.Hook("b"), coretest.Hook("c", "dependsOn: [a]"), coretest.Hook("d", "dependsOn: [c]"), coretest.Hook("e", "dependsOn: [b]"), coretest.Hook("f", "dependsOn: [d]", "if: always")) + "]",
			edits: []func(*stage){script("g/a", failed("Boom"))},
			acts:  []string{"g/a #1", "g/b #1", "g/e #1", "g/f #1"},
			ends:  map[string]string{"g": "Failed", "g/a": "Failed", "g/b": "Succeeded", "g/c": "Skipped", "g/d": "Skipped", "g/e": "Succeeded", "g/f": "Succeeded", "END": "Failed StepFailed"},
		},
		{
			name: "maxConcurrency",
			spec: "steps: [" + parallel(1, coretest.Hook("a"), coretest.Hook("b")) + "]",
			acts: []string{"g/a #1", "g/b #1"},
			ends: map[string]string{"g": "Succeeded", "g/a": "Succeeded", "g/b": "Succeeded", "END": "Succeeded "},
		},
		{
			name:  "a group's retry begins what failed anew, with attempts that count on",
			spec:  "steps: [" + strings.Replace(parallel(0, coretest.Hook("a"), coretest.Hook("b")), "type: step-group", "type: step-group, retry: {limit: 1, backoff: 1m}", 1) + "]",
			edits: []func(*stage){script("g/b", failed("Boom"), workflow.StepResult{Done: true})},
			acts:  []string{"g/a #1", "g/b #1", "wait until 02:01:02", "g/b #2"},
			ends:  map[string]string{"g": "Succeeded", "g/a": "Succeeded", "g/b": "Succeeded", "END": "Succeeded "},
		},
		{
			name:  "a group that is out of time stops what works in it",
			spec:  "steps: [" + strings.Replace(parallel(0, coretest.Hook("a"), coretest.Hook("b", "dependsOn: [a]")), "type: step-group", "type: step-group, timeout: 5m", 1) + "]\nfinally: [" + coretest.Hook("z") + "]",
			edits: []func(*stage){script("g/a", notYet)},
			acts:  []string{"g/a #1", "stop g/a", "finally/z #1"},
			ends:  map[string]string{"g": "Failed", "g/a": "Failed", "g/b": "Skipped", "finally/z": "Succeeded", "END": "Failed StepFailed"},
		},
		{
			name:  "a run's retry begins again from its failed step",
			spec:  "retryLimit: 2\nsteps: [" + coretest.Hook("a") + ", " + coretest.Hook("b") + ", " + coretest.Hook("c", "if: always") + "]\nonFailure: [" + coretest.Hook("of") + "]",
			edits: []func(*stage){script("b", failed("Boom"), failed("Boom"), workflow.StepResult{Done: true})},
			acts:  []string{"a #1", "b #1", "c #1", "wait until 02:00:13", "b #2", "c #2", "wait until 02:00:35", "b #3", "c #3"},
			ends:  map[string]string{"a": "Succeeded", "b": "Succeeded", "c": "Succeeded", "onFailure/of": "Pending", "END": "Succeeded "},
		},
		{
			name:  "a run whose retries are used up fails",
			spec:  "retryLimit: 1\nsteps: [" + coretest.Hook("a") + ", " + coretest.Hook("b", "retry: {limit: 1, backoff: 1s}") + "]\nonFailure: [" + coretest.Hook("of") + "]",
			edits: []func(*stage){script("b", failed("Boom"))},
			acts:  []string{"a #1", "b #1", "wait until 02:00:03", "b #2", "wait until 02:00:14", "b #3", "wait until 02:00:16", "b #4", "onFailure/of #1"},
			ends:  map[string]string{"a": "Succeeded", "b": "Failed", "onFailure/of": "Succeeded", "END": "Failed StepFailed"},
		},
		{
			name:  "in a group the run's retry begins with what failed there",
			spec:  "retryLimit: 1\nsteps: [{name: g, type: step-group, properties: {steps: [" + coretest.Hook("a") + ", " + coretest.Hook("b") + "]}}]",
			edits: []func(*stage){script("g/b", failed("Boom"), workflow.StepResult{Done: true})},
			acts:  []string{"g/a #1", "g/b #1", "wait until 02:00:12", "g/b #2"},
			ends:  map[string]string{"g": "Succeeded", "g/a": "Succeeded", "g/b": "Succeeded", "END": "Succeeded "},
		},
		{
			name:  "a loop does one object after another, each through all steps",
			spec:  "steps: [" + loopOf("", coretest.Hook("x"), coretest.Hook("y")) + "]",
			edits: []func(*stage){script("roll", picks("a", "b"))},
			acts:  []string{"roll #1", "roll/a/x #1", "roll/a/y #1", "roll/b/x #1", "roll/b/y #1"},
			ends:  map[string]string{"roll": "Succeeded", "END": "Succeeded "},
		},
		{
			name:  "in batches, with a look at each",
			spec:  "steps: [" + loopOf(", batches: [1, 50%], until: 'true', maxConcurrency: 2", coretest.Hook("x")) + "]",
			edits: []func(*stage){script("roll", picks("a", "b", "c", "d"), workflow.StepResult{Done: true})},
			acts:  []string{"roll #1", "roll/a/x #1", "roll #1", "roll/b/x #1", "roll #1", "roll/c/x #1", "roll/d/x #1", "roll #1"},
			ends:  map[string]string{"roll": "Succeeded", "END": "Succeeded "},
		},
		{
			name:  "in batches of which a later one would be smaller",
			spec:  "steps: [" + loopOf(", batches: [2, 50%, 100%], maxConcurrency: 9", coretest.Hook("x")) + "]",
			edits: []func(*stage){script("roll", picks("a", "b", "c")), script("roll/a/x", failed("Broken"))},
			acts:  []string{"roll #1", "roll/a/x #1", "roll/b/x #1"},
			ends:  map[string]string{"roll": "Failed", "END": "Failed StepFailed"},
		},
		{
			name:  "a loop over nothing is done",
			spec:  "steps: [" + loopOf(", until: 'false'", coretest.Hook("x")) + "]",
			edits: []func(*stage){script("roll", picks())},
			acts:  []string{"roll #1"},
			ends:  map[string]string{"roll": "Succeeded", "END": "Succeeded "},
		},
		{
			name:  "an object that fails stops the loop",
			spec:  "steps: [" + loopOf("", coretest.Hook("x"), coretest.Hook("y")) + "]",
			edits: []func(*stage){script("roll", picks("a", "b")), script("roll/a/x", failed("Boom"))},
			acts:  []string{"roll #1", "roll/a/x #1"},
			ends:  map[string]string{"roll": "Failed", "END": "Failed StepFailed"},
		},
		{
			name:  "or the others go on",
			spec:  "steps: [" + loopOf(", onError: continue", coretest.Hook("x")) + "]",
			edits: []func(*stage){script("roll", picks("a", "b")), script("roll/a/x", failed("Boom"))},
			acts:  []string{"roll #1", "roll/a/x #1", "roll/b/x #1"},
			ends:  map[string]string{"roll": "Failed", "END": "Failed StepFailed"},
		},
		{
			name:  "a run's retry does the objects that failed, under attempts of their own",
			spec:  "retryLimit: 1\nsteps: [" + loopOf(", onError: continue", coretest.Hook("x")) + "]",
			edits: []func(*stage){script("roll", picks("a", "b")), script("roll/a/x", failed("Boom"), workflow.StepResult{Done: true})},
			acts:  []string{"roll #1", "roll/a/x #1", "roll/b/x #1", "wait until 02:00:13", "roll/a/x #2"},
			ends:  map[string]string{"roll": "Succeeded", "END": "Succeeded "},
		},
		{
			name:  "what an object's steps found is put back after the loop",
			spec:  "steps: [" + loopOf("", "{name: x, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: '${each.metadata.name}'}, replicas: 0, restoreAfter: true}}") + "]",
			edits: []func(*stage){script("roll", picks("a", "b")), script("roll/a/x", workflow.StepResult{Before: []byte("{}")}, workflow.StepResult{Done: true}), script("roll/b/x", workflow.StepResult{Before: []byte("{}")}, workflow.StepResult{Done: true})},
			acts:  []string{"roll #1", "roll/a/x #1", "roll/b/x #1", "restore roll/b/x", "restore roll/a/x"},
			ends:  map[string]string{"roll": "Succeeded", "roll/a/x": "Succeeded", "roll/b/x": "Succeeded", "END": "Succeeded "},
		},
		{
			name:  "a lease of an object is given back at the run's end, after its loop",
			spec:  "steps: [" + loopOf("", "{name: quiet, type: silence, properties: {alertmanager: 'https://am.example.org', matchers: [{name: a, value: b}]}}", coretest.Hook("x")) + "]\nfinally: [" + coretest.Hook("z") + "]",
			edits: []func(*stage){script("roll", picks("a")), script("roll/a/quiet", workflow.StepResult{Done: true, KeepAt: coretest.On("02:05")})},
			acts:  []string{"roll #1", "roll/a/quiet #1", "roll/a/x #1", "finally/z #1", "release roll/a/quiet"},
			ends:  map[string]string{"roll": "Succeeded", "roll/a/quiet": "Succeeded", "finally/z": "Succeeded", "END": "Succeeded "},
		},
		{
			name:  "what an object's steps found stays where nobody wants it back, since what others change is told under onDrift: ignore, too",
			spec:  "onDrift: ignore\nsteps: [" + loopOf("", "{name: x, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: '${each.metadata.name}'}, replicas: 0}}") + "]",
			edits: []func(*stage){script("roll", picks("a")), script("roll/a/x", workflow.StepResult{Before: []byte("{}")}, workflow.StepResult{Done: true})},
			acts:  []string{"roll #1", "roll/a/x #1"},
			ends:  map[string]string{"roll": "Succeeded", "roll/a/x": "Succeeded", "END": "Succeeded "},
		},
		{
			name:  "a run's retry goes through a loop of a failed group anew, and puts back what the first time found",
			spec:  "retryLimit: 1\nsteps: [{name: g, type: step-group, properties: {steps: [" + coretest.Hook("b") + ", " + loopOf("", "{name: x, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: '${each.metadata.name}'}, replicas: 0, restoreAfter: true}}") + "]}}]",
			edits: []func(*stage){script("g/b", failed("Boom"), workflow.StepResult{Done: true}), script("g/roll", picks("a"))},
			acts:  []string{"g/b #1", "wait until 02:00:11", "g/b #2", "g/roll #1", "g/roll/a/x #1"},
			ends:  map[string]string{"g": "Succeeded", "g/b": "Succeeded", "g/roll": "Succeeded", "g/roll/a/x": "Succeeded", "END": "Succeeded "},
		},
		{
			name: "an abort in a loop stops the object at work, and finally runs",
			spec: "steps: [" + loopOf("", coretest.Hook("x")) + "]\nfinally: [" + coretest.Hook("z") + "]",
			edits: []func(*stage){script("roll", picks("a", "b")), when("roll/b/x", func(s *stage) {
				s.sig.Abort = &run.End{Phase: run.Aborted, Reason: "Aborted", Message: "by jane"}
			})},
			acts: []string{"roll #1", "roll/a/x #1", "stop roll/b/x", "finally/z #1"},
			ends: map[string]string{"roll": "Failed", "roll/b/x": "Failed", "finally/z": "Succeeded", "END": "Aborted Aborted"},
		},
		{
			name: "a loop within a group within a loop",
			spec: "steps: [{name: out, type: for-each, properties: {apiVersion: v1, kind: Namespace, steps: [" + parallel(0, strings.Replace(loopOf("", coretest.Hook("x")), "name: roll", "name: in", 1)) + "]}}]",
			edits: []func(*stage){
				script("out", picks("n1", "n2")), script("out/n1/g/in", picks("a")), script("out/n2/g/in", picks("b")),
			},
			acts: []string{"out #1", "out/n1/g/in #1", "out/n1/g/in/a/x #1", "out/n2/g/in #1", "out/n2/g/in/b/x #1"},
			ends: map[string]string{"out": "Succeeded", "END": "Succeeded "},
		},
		{
			name:  "a lease is renewed while the run lives, and given back at its end",
			spec:  "steps: [{name: quiet, type: silence, properties: {alertmanager: 'https://am.example.org', matchers: [{name: a, value: b}]}}, {name: nap, type: suspend, properties: {duration: 7m}}]\nfinally: [" + coretest.Hook("z") + "]",
			edits: []func(*stage){script("quiet", workflow.StepResult{Done: true, KeepAt: coretest.On("02:05")}), script("nap", workflow.StepResult{ResumeAt: coretest.On("02:07")}, workflow.StepResult{Done: true})},
			acts:  []string{"quiet #1", "nap #1", "finally/z #1", "release quiet"},
			ends:  map[string]string{"quiet": "Succeeded", "nap": "Succeeded", "finally/z": "Succeeded", "END": "Succeeded "},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := played(t, coretest.RunOf(t, c.spec), c.edits...)
			if diff := cmp.Diff(c.acts, s.acts); diff != "" {
				t.Errorf("acts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.ends, endsOf(s.j)); diff != "" {
				t.Errorf("ends (-want +got):\n%s", diff)
			}
		})
	}
}

func TestApprovals(t *testing.T) {
	spec := "maxDuration: 30m\nsteps: [" + coretest.Hook("a") + ", {name: ask, type: approval}, " + coretest.Hook("b") + "]"
	ask := script("ask", workflow.StepResult{ResumeAt: coretest.On("+1 02:00"), Message: "waits"})
	jane := workflow.Answer{Step: "ask", Actor: intent.Actor{Name: "jane", Reason: "fine"}}
	r := coretest.RunOf(t, spec)
	s := &stage{t: t, run: r, now: coretest.Clock("02:00"), j: workflow.NewJournal(r).Start(coretest.Clock("02:00")), script: map[string][]workflow.StepResult{}, restore: run.RestoreDone}
	ask(s)
	for range 4 {
		j, m := workflow.Advance(r, s.j, s.now, s.sig)
		s.j = j
		s.did(m)
	}
	asked := s.j
	look := func(t *testing.T, now string, sig workflow.Signals) (run.Journal, workflow.Action) {
		t.Helper()
		j, m := workflow.Advance(r, asked, coretest.Clock(now), sig)
		return j, m
	}
	t.Run("the time in which it asks does not count", func(t *testing.T) {
		if j, m := look(t, "20:00", workflow.Signals{}); j.End != nil || m.Act != workflow.ActPass || m.Path != "ask" {
			t.Errorf("%+v %+v", j.End, m)
		}
	})
	t.Run("an approval is written down before the step is called", func(t *testing.T) {
		j, m := look(t, "20:00", workflow.Signals{Approve: &jane})
		if rec := j.Record("ask"); rec.Approval == nil || !rec.Approval.Approved || rec.Approval.Name != "jane" || m.Path != "ask" {
			t.Errorf("%+v %+v", rec, m)
		}
		j = workflow.Note(r, j, "ask", workflow.StepResult{Done: true}, coretest.Clock("20:00"))
		if j, m = workflow.Advance(r, j, coretest.Clock("20:00"), workflow.Signals{}); m.Path != "b" || j.HeldSeconds < 17*3600 {
			t.Errorf("%+v after %d held seconds", m, j.HeldSeconds)
		}
	})
	t.Run("where both stand it is rejected", func(t *testing.T) {
		j, _ := look(t, "20:00", workflow.Signals{Approve: &jane, Reject: &workflow.Answer{Step: "ask"}})
		if rec := j.Record("ask"); rec.Approval == nil || rec.Approval.Approved {
			t.Errorf("%+v", rec)
		}
	})
	t.Run("an answer to another step counts for nothing", func(t *testing.T) {
		if j, _ := look(t, "20:00", workflow.Signals{Approve: &workflow.Answer{Step: "b"}}); j.Record("ask").Approval != nil {
			t.Error("was taken")
		}
	})
	t.Run("the first answer counts", func(t *testing.T) {
		j, _ := look(t, "20:00", workflow.Signals{Approve: &jane})
		j, _ = workflow.Advance(r, j, coretest.Clock("20:01"), workflow.Signals{Reject: &workflow.Answer{Step: "ask"}})
		if rec := j.Record("ask"); !rec.Approval.Approved || rec.Approval.Name != "jane" {
			t.Errorf("%+v", rec.Approval)
		}
	})
	t.Run("a step that asks nothing has no answer", func(t *testing.T) {
		j := workflow.NewJournal(r).Start(coretest.Clock("02:00"))
		for range 2 {
			j, _ = workflow.Advance(r, j, coretest.Clock("02:00"), workflow.Signals{Approve: &workflow.Answer{Step: "a"}, Reject: &workflow.Answer{Step: "a"}})
		}
		if rec := j.Record("a"); rec.Phase != run.StepRunning || rec.Approval != nil {
			t.Errorf("%s, %+v", rec.Phase, rec.Approval)
		}
	})
	t.Run("what is rejected is not tried again by the run's retry", func(t *testing.T) {
		again := r
		again.Spec.RetryLimit = 3
		j, _ := workflow.Advance(again, asked, coretest.Clock("02:30"), workflow.Signals{Reject: &jane})
		j = workflow.Note(again, j, "ask", workflow.StepResult{Failed: true, Permanent: true, Reason: "Rejected"}, coretest.Clock("02:30"))
		if j, _ = workflow.Advance(again, j, coretest.Clock("02:30"), workflow.Signals{}); j.End == nil || j.End.Phase != run.Failed {
			t.Errorf("%+v", j.End)
		}
	})
}

func TestAJournalThatOutgrowsItsPlaceLosesItsLargestOutputs(t *testing.T) {
	j := run.Journal{Steps: []run.Record{
		{Path: "a", Outputs: map[string]any{"text": strings.Repeat("a", 5000)}},
		{Path: "b", Outputs: map[string]any{"text": strings.Repeat("b", 9000)}},
		{Path: "c", Outputs: map[string]any{"ok": true}},
	}}
	got := j.WithoutOutputs(4000)
	if !got.Truncated || len(fmt.Sprint(got.Steps[0].Outputs)) < 5000 || fmt.Sprint(got.Steps[1].Outputs) != "map[truncated:true]" || j.Truncated {
		t.Errorf("%v", got.Steps[1].Outputs)
	}
	if got = j.WithoutOutputs(1 << 20); fmt.Sprint(got.Steps[2].Outputs) != "map[ok:true]" || fmt.Sprint(got.Steps[0].Outputs) != "map[truncated:true]" {
		t.Errorf("%v", got.Steps)
	}
}

func TestOneBranchsTimeoutDoesNotCutThePassOfAnother(t *testing.T) {
	r := coretest.RunOf(t, "steps: ["+parallel(0, "{name: short, type: step-group, timeout: 1m, properties: {steps: ["+coretest.Hook("a")+"]}}", coretest.Hook("b"))+"]")
	_, m := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
	limits := map[string]time.Time{}
	for _, one := range m.All() {
		if one.Act == workflow.ActPass {
			limits[one.Path] = one.WakeAt
		}
	}
	if want := coretest.Clock("02:01"); !limits["g/short/a"].Equal(want) {
		t.Errorf("a is given until %s, want %s", limits["g/short/a"], want)
	}
	if !limits["g/b"].Equal(coretest.Clock("03:00")) {
		t.Errorf("b is given until %s, want the run's own end", limits["g/b"])
	}
}

func TestAnApprovalMeansOneStep(t *testing.T) {
	r := coretest.RunOf(t, "steps: ["+loopOf(", maxConcurrency: 2", "{name: sure, type: approval}")+"]")
	j := workflow.NewJournal(r).Start(coretest.Clock("02:00"))
	j, _ = workflow.Advance(r, j, coretest.Clock("02:00"), workflow.Signals{})
	j = workflow.Note(r, j, "roll", picks("a", "b"), coretest.Clock("02:00"))
	j, _ = workflow.Advance(r, j, coretest.Clock("02:00"), workflow.Signals{})
	approved := func(step string) []bool {
		got, _ := workflow.Advance(r, j, coretest.Clock("02:01"), workflow.Signals{Approve: &workflow.Answer{Step: step}})
		return []bool{got.Record("roll/a/sure").Approval != nil, got.Record("roll/b/sure").Approval != nil}
	}
	if got := approved("sure"); got[0] || got[1] {
		t.Errorf("one word approved %v", got)
	}
	if got := approved("roll/b/sure"); got[0] || !got[1] {
		t.Errorf("its path approved %v", got)
	}
}

// One of that name which is answered, or does not ask yet, is not meant.
func TestAnApprovalByNameMeansTheOneThatAsks(t *testing.T) {
	r := coretest.RunOf(t, "steps: ["+loopOf(", maxConcurrency: 2", coretest.Hook("work"), "{name: sure, type: approval}", coretest.Hook("after"))+"]")
	now := coretest.Clock("02:00")
	j, _ := workflow.Advance(r, workflow.NewJournal(r).Start(now), now, workflow.Signals{})
	j = workflow.Note(r, j, "roll", picks("a", "b"), now)
	for _, item := range []string{"roll/a", "roll/b"} {
		j, _ = workflow.Advance(r, j, now, workflow.Signals{})
		j = workflow.Note(r, j, item+"/work", workflow.StepResult{Done: true}, now)
		j, _ = workflow.Advance(r, j, now, workflow.Signals{})
		if j, _ = workflow.Advance(r, j, now, workflow.Signals{Approve: &workflow.Answer{Step: "sure"}}); j.Record(item+"/sure").Approval == nil {
			t.Fatalf("%s/sure is not approved: %s", item, phases(j))
		}
		j = workflow.Note(r, j, item+"/sure", workflow.StepResult{Done: true}, now)
	}
}

func TestALoopThatWouldLeaveTooMuchToRestoreDoesNotBegin(t *testing.T) {
	restoring := "{name: x, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: '${each.metadata.name}'}, replicas: 0, restoreAfter: true}}"
	two := restoring + ", " + strings.Replace(restoring, "name: x", "name: y", 1)
	names := make([]string, plan.MaxItems)
	for i := range names {
		names[i] = fmt.Sprintf("d-%04d", i)
	}
	s := played(t, coretest.RunOf(t, "steps: ["+loopOf("", two)+"]"), script("roll", picks(names...)))
	if rec := s.j.Record("roll"); rec.Reason != "TooMany" || s.j.End.Phase != run.Failed {
		t.Errorf("%s: %s", rec.Reason, rec.Message)
	}
	s = played(t, coretest.RunOf(t, "steps: ["+loopOf("", restoring)+"]"), script("roll", picks(names[:100]...)))
	if s.j.End.Phase != run.Succeeded {
		t.Errorf("%+v", s.j.End)
	}
}

// A list that comes late, of an agent that stood still, changes nothing.
func TestALoopKeepsItsFirstList(t *testing.T) {
	restoring := "{name: x, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: '${each.metadata.name}'}, replicas: 0, restoreAfter: true}}"
	for name, late := range map[string]workflow.StepResult{
		"another":      picks("c"),
		"one too long": picks(coretest.Repeat(func(i int) string { return fmt.Sprintf("d-%04d", i) }, 2*plan.MaxItems)...),
	} {
		t.Run(name, func(t *testing.T) {
			s := begun(t, "steps: ["+loopOf("", restoring)+"]", 0)
			s.advance("02:00")
			s.j = workflow.Note(s.run, s.j, "roll", picks("a", "b"), s.now)
			s.j = workflow.Note(s.run, s.j, "roll", late, s.now)
			if rec := s.j.Record("roll"); rec.Phase != run.StepRunning || len(rec.Items) != 2 || rec.Items[0].Name != "a" {
				t.Errorf("%s: %+v", rec.Phase, rec.Items)
			}
		})
	}
}

// When other steps ended stands in their records.
func TestALoopNotesUntilWhenItLooked(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		path string
		rep  workflow.StepResult
		want bool
	}{
		"a list":                    {loopOf("", coretest.Hook("x")), "roll", picks("a"), true},
		"a batch that is done":      {loopOf("", coretest.Hook("x")), "roll", workflow.StepResult{Done: true}, true},
		"a list that failed":        {loopOf("", coretest.Hook("x")), "roll", failed("Denied"), true},
		"a list that comes later":   {loopOf("", coretest.Hook("x")), "roll", workflow.StepResult{Message: "not yet"}, false},
		"another step that is done": {coretest.Hook("a"), "a", workflow.StepResult{Done: true}, false},
		"another step that failed":  {coretest.Hook("a"), "a", failed("Boom"), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := begun(t, "steps: ["+c.spec+"]", 0)
			s.advance("02:00")
			j := workflow.Note(s.run, s.j, c.path, c.rep, s.now)
			if got := j.WorkedAt != nil; got != c.want {
				t.Errorf("noted: %t", got)
			}
		})
	}
}

// What a loop says of those that failed: how many, and why the first did.
func TestALoopSaysWhichOfItsObjectsFailed(t *testing.T) {
	for name, c := range map[string]struct {
		fail []string
		want string
	}{
		"none":          {nil, "3 of 3 are done"},
		"the first":     {[]string{"a"}, "1 of 3 failed, 2 are done; a: step x: Boom of a"},
		"two, in order": {[]string{"b", "c"}, "2 of 3 failed, 1 are done; b: step x: Boom of b"},
		"all":           {[]string{"a", "b", "c"}, "3 of 3 failed, 0 are done; a: step x: Boom of a"},
	} {
		t.Run(name, func(t *testing.T) {
			edits := []func(*stage){script("roll", picks("a", "b", "c"))}
			for _, one := range c.fail {
				edits = append(edits, script("roll/"+one+"/x", failed("Boom of "+one)))
			}
			s := played(t, coretest.RunOf(t, "steps: ["+loopOf(", onError: continue", coretest.Hook("x"))+"]"), edits...)
			rec := s.j.Record("roll")
			if rec.Message != c.want {
				t.Errorf("it says %q, want %q", rec.Message, c.want)
			}
			outputs := map[string]any{"items": int64(3), "succeeded": int64(3 - len(c.fail)), "failed": int64(len(c.fail))}
			if diff := cmp.Diff(outputs, rec.Outputs); diff != "" {
				t.Errorf("outputs (-want +got):\n%s", diff)
			}
		})
	}
}

// A step is resumed once: who came first is written down.
func TestTheFirstWhoResumesASuspendIsWrittenDown(t *testing.T) {
	r := coretest.RunOf(t, "steps: [{name: hold, type: suspend}]")
	j := workflow.NewJournal(r).Start(coretest.Clock("02:00"))
	for _, name := range []string{"", "jane", "ann"} {
		sig := workflow.Signals{}
		if name != "" {
			sig.Resume = &workflow.Answer{Actor: intent.Actor{Name: name}}
		}
		j, _ = workflow.Advance(r, j, coretest.Clock("02:00"), sig)
	}
	if got := j.Record("hold").Resumed; got == nil || got.Name != "jane" {
		t.Errorf("resumed by %+v", got)
	}
}

// A group that is out of time is woken for, whatever else is waited for.
func TestARunWakesWhenTheFirstOfItsStepsIsOutOfTime(t *testing.T) {
	group := func(name, timeout string, steps ...string) string {
		return "{name: " + name + ", type: step-group, timeout: " + timeout + ", properties: {steps: [" + strings.Join(steps, ", ") + "]}}"
	}
	waiting := workflow.StepResult{Failed: true, Reason: "Boom"}
	for name, c := range map[string]struct {
		spec string
		note string // a step that failed, and is tried again in ten minutes
		want map[string]string
	}{
		"a step at work is given the time of what holds it":     {spec: group("g", "5m", coretest.Hook("a")), want: map[string]string{"g/a": "02:05"}},
		"a step that waits beside it wakes the run":             {spec: parallel(0, group("h", "5m", coretest.Hook("a", "retry: {limit: 1, backoff: 10m, maxBackoff: 10m}")), coretest.Hook("b")), note: "g/h/a", want: map[string]string{"g/b": "03:00", "": "02:05"}},
		"a step alone that waits for longer":                    {spec: group("g", "5m", coretest.Hook("a", "retry: {limit: 1, backoff: 10m, maxBackoff: 10m}")), note: "g/a", want: map[string]string{"": "02:05"}},
		"a step alone that waits for less":                      {spec: group("g", "30m", coretest.Hook("a", "retry: {limit: 1, backoff: 10m, maxBackoff: 10m}")), note: "g/a", want: map[string]string{"": "02:10"}},
		"no longer than the run may last, whatever the group's": {spec: group("g", "5h", coretest.Hook("a")), want: map[string]string{"g/a": "03:00", "": "03:00"}},
		"a step with no time of its own":                        {spec: coretest.Hook("a"), want: map[string]string{"a": "03:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := coretest.RunOf(t, "maxDuration: 1h\nsteps: ["+c.spec+"]")
			j, m := workflow.Advance(r, workflow.NewJournal(r).Start(coretest.Clock("02:00")), coretest.Clock("02:00"), workflow.Signals{})
			if c.note != "" {
				j = workflow.Note(r, j, c.note, waiting, coretest.Clock("02:00"))
				_, m = workflow.Advance(r, j, coretest.Clock("02:00"), workflow.Signals{})
			}
			wakes := map[string]string{}
			for _, one := range m.All() {
				path := one.Path
				if one.Act == workflow.ActWait {
					path = ""
				}
				if at := one.WakeAt.Format("15:04"); wakes[path] == "" || at < wakes[path] {
					wakes[path] = at
				}
			}
			for path, want := range c.want {
				if wakes[path] != want {
					t.Errorf("%q wakes at %s, want %s; all: %v", path, wakes[path], want, wakes)
				}
			}
		})
	}
}

func TestAStepInATemplateBeginsByTheParametersOfIt(t *testing.T) {
	r := coretest.RunOf(t, "steps: [{name: t, type: template/t, properties: {mode: '${run.name}'}}]")
	r.Templates = map[string]plan.TemplateSpec{"t": {Parameters: []plan.TemplateParameter{{Name: "mode"}}, Steps: []plan.Step{
		{Name: "yes", Type: "suspend", If: "params.mode == 'r'"}, {Name: "no", Type: "suspend", If: "params.mode == 'x'"},
	}}}
	now := coretest.Clock("02:00")
	j, m := workflow.Advance(r, workflow.NewJournal(r).Start(now), now, workflow.Signals{})
	if m.Path != "t/yes" {
		t.Fatalf("%+v", m)
	}
	j = workflow.Note(r, j, "t/yes", workflow.StepResult{Done: true}, now)
	j, _ = workflow.Advance(r, j, now, workflow.Signals{})
	if got := j.Record("t/no"); got.Phase != run.StepSkipped || got.Reason != "Condition" || j.End == nil || j.End.Phase != run.Succeeded {
		t.Errorf("%+v, end %+v", got, j.End)
	}
}
