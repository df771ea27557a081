package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// driftRun has scaled down with restoreAfter, and is about to begin the next step.
func driftRun(on plan.OnDrift) (run.Run, run.Journal, time.Time) {
	now := time.Date(2026, 1, 1, 2, 0, 0, 0, time.UTC)
	spec := plan.Spec{OnDrift: on, Steps: []plan.Step{
		{Name: "down", Type: "scale", Properties: map[string]any{"restoreAfter": true}}, {Name: "migrate", Type: "webhook"},
	}}.Defaulted()
	r := run.Run{Name: "r", Namespace: "shop", Spec: spec}
	j := workflow.NewJournal(r)
	j.Phase, j.StartedAt = run.Running, &now
	down := &j.Steps[0]
	down.Phase, down.StartedAt, down.FinishedAt, down.Before = run.StepSucceeded, &now, &now, []byte(`{"uid":"u"}`)
	return r, j, now
}

func drifted(at time.Time) *run.Drift {
	return &run.Drift{Object: "Deployment/orders", Field: "spec.replicas", Want: "0", Value: "3", Manager: "kustomize-controller", At: &at}
}

func looksAt(m workflow.Action) (paths []string) {
	for _, one := range m.All() {
		if one.Act == workflow.ActCheckDrift {
			paths = append(paths, one.Path)
		}
	}
	return paths
}

func TestWhatAStepDidIsLookedAtWhileTheRunLives(t *testing.T) {
	for name, c := range map[string]struct {
		on   plan.OnDrift
		edit func(*run.Run, *run.Journal)
		want string
	}{
		"after it succeeded":             {want: "down"},
		"also where drift fails the run": {on: plan.DriftFail, want: "down"},
		"and where it is only told":      {on: plan.DriftIgnore, want: "down"},
		"not in a dry run":               {edit: func(r *run.Run, _ *run.Journal) { r.Request.DryRun = true }},
		"not where it failed":            {edit: func(_ *run.Run, j *run.Journal) { j.Steps[0].Phase = run.StepFailed }},
		"not when the steps are over": {edit: func(_ *run.Run, j *run.Journal) {
			j.End, j.Section = &run.End{Phase: run.Succeeded}, plan.SectionRestore
		}},
		"also once somebody accepted a change": {edit: func(_ *run.Run, j *run.Journal) { j.Steps[0].Drift = &run.Drift{Accepted: &intent.Actor{Name: "jane"}} }, want: "down"},
		"of a scale that will not be put back": {edit: func(r *run.Run, j *run.Journal) { j.Steps[0].Before, r.Spec.Steps[0].Properties = nil, nil }, want: "down"},
		"not of a patch that will not put back": {edit: func(r *run.Run, j *run.Journal) {
			r.Spec.Steps[0].Type, j.Steps[0].Type, r.Spec.Steps[0].Properties = "patch-object", "patch-object", nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r, j, now := driftRun(c.on)
			if c.edit != nil {
				c.edit(&r, &j)
			}
			_, m := workflow.Advance(r, j, now, workflow.Signals{})
			if got := strings.Join(looksAt(m), " "); got != c.want {
				t.Errorf("it looks at %q, want %q", got, c.want)
			}
		})
	}
}

func TestDriftHoldsTheNextStep(t *testing.T) {
	r, j, now := driftRun(plan.DriftHold)
	j = workflow.NoteDrift(j, "down", drifted(now), now)
	held, m := workflow.Advance(r, j, now.Add(time.Minute), workflow.Signals{})
	const says = "after step down kustomize-controller changed spec.replicas of Deployment/orders from 0 to 3 at 2026-01-01T02:00:00Z: no new step begins until it is as the step left it, or somebody resumes the run: 'kubectl maint -n shop resume r'"
	if held.Steps[1].Phase != run.StepPending || held.Message != says || len(looksAt(m)) != 1 {
		t.Fatalf("migrate is %s; it says %q; it looks at %q", held.Steps[1].Phase, held.Message, looksAt(m))
	}
	if _, m := workflow.Advance(r, held, now.Add(3*time.Hour), workflow.Signals{}); m.Act != workflow.ActWait {
		t.Errorf("a hold counts against maxDuration: act %d", m.Act)
	}

	again := workflow.NoteDrift(held, "down", drifted(now), now.Add(2*time.Minute))
	if !again.Steps[0].Drift.SeenAt.Equal(now) {
		t.Error("the same drift is news again")
	}
	over := workflow.NoteDrift(held, "down", nil, now.Add(2*time.Minute))
	j, m = workflow.Advance(r, over, now.Add(2*time.Minute), workflow.Signals{})
	if m.Act != workflow.ActPass || m.Path != "migrate" || j.Message != "" {
		t.Errorf("once it is over: act %d on %q, %q", m.Act, m.Path, j.Message)
	}
	if d := workflow.NoteDrift(over, "down", drifted(now), now.Add(time.Hour)).Steps[0].Drift; !d.IsOpen() {
		t.Error("a second drift does not stand")
	}
}

func TestWhoeverResumesAcceptsADrift(t *testing.T) {
	r, j, now := driftRun(plan.DriftHold)
	j = workflow.NoteDrift(j, "down", drifted(now), now)
	in := intent.Intent{Resume: intent.RunRef{Run: "r"}, Actors: map[string]intent.Actor{"resume": {Name: "jane", Reason: "it is fine"}}}
	sig := workflow.SignalsOf(in, r, j, nil, now)
	j, m := workflow.Advance(r, j, now, sig)
	if m.Act != workflow.ActPass || m.Path != "migrate" || j.Steps[0].Drift.Accepted == nil || j.Steps[0].Drift.Accepted.Name != "jane" {
		t.Fatalf("act %d on %q, accepted by %+v", m.Act, m.Path, j.Steps[0].Drift.Accepted)
	}
	if sig := workflow.SignalsOf(in, r, j, nil, now); sig.Resume != nil {
		t.Error("the same word counts twice")
	}
}

// Where drift is ignored, it is told like any other, and nothing waits for it.
func TestADriftThatIsIgnoredIsToldAndHoldsNothing(t *testing.T) {
	r, j, now := driftRun(plan.DriftIgnore)
	seen := workflow.NoteDrift(j, "down", drifted(now), now)
	if events := seen.DriftEvents(j, "runner"); len(events) != 1 || events[0].Reason != "Drift" || events[0].Type != "Warning" {
		t.Errorf("Events %+v", events)
	}
	in := intent.Intent{Resume: intent.RunRef{Run: "r"}}
	sig := workflow.SignalsOf(in, r, seen, nil, now)
	if sig.Resume != nil {
		t.Error("a resume counts, though nothing waits for it")
	}
	on, m := workflow.Advance(r, seen, now, sig)
	const says = "after step down kustomize-controller changed spec.replicas of Deployment/orders from 0 to 3 at 2026-01-01T02:00:00Z"
	if m.Act != workflow.ActPass || m.Path != "migrate" || on.HeldSince != nil || on.Notice() != says {
		t.Errorf("act %d on %q, held since %v; it says %q", m.Act, m.Path, on.HeldSince, on.Notice())
	}
}

// A resume of one step accepts what was changed after that step alone.
func TestAResumeOfAStepAcceptsNoOtherDrift(t *testing.T) {
	r, j, now := driftRun(plan.DriftHold)
	j = workflow.NoteDrift(j, "down", drifted(now), now)
	for step, accepted := range map[string]bool{"": true, "down": true, "migrate": false, "nonsense": false} {
		sig := workflow.SignalsOf(intent.Intent{Resume: intent.RunRef{Run: "r", Step: step}}, r, j, nil, now)
		got, m := workflow.Advance(r, j, now, sig)
		if len(got.OpenDrifts()) == 0 != accepted || (m.Path == "migrate") != accepted {
			t.Errorf("r/%s: %d drifts are open, act on %q", step, len(got.OpenDrifts()), m.Path)
		}
	}
}

// Who resumes a run accepts what it said, and nothing that is changed later by somebody else.
func TestAnotherChangeAfterAResumeIsDriftAgain(t *testing.T) {
	r, j, now := driftRun(plan.DriftHold)
	j = workflow.NoteDrift(j, "down", drifted(now), now)
	j, _ = workflow.Advance(r, j, now, workflow.Signals{Resume: &workflow.Answer{Actor: intent.Actor{Name: "jane"}}, Held: "paused by joe"})
	change := func(edit func(*run.Drift)) *run.Drift {
		d := drifted(now)
		edit(d)
		return d
	}
	for name, c := range map[string]struct {
		drift *run.Drift
		open  bool
	}{
		"the same":                           {drift: drifted(now)},
		"the same value by somebody else":    {drift: change(func(d *run.Drift) { d.Manager = "helm" })},
		"another value by the same manager":  {drift: change(func(d *run.Drift) { d.Value = "5" })},
		"another value by somebody else":     {drift: change(func(d *run.Drift) { d.Value, d.Manager = "5", "helm" }), open: true},
		"another value, nobody says by whom": {drift: change(func(d *run.Drift) { d.Value, d.Manager = "5", "" }), open: true},
		"the object is gone":                 {drift: &run.Drift{Object: "Deployment/orders"}, open: true},
		"another field":                      {drift: change(func(d *run.Drift) { d.Field = "spec.paused" }), open: true},
	} {
		got := workflow.NoteDrift(j, "down", c.drift, now.Add(time.Minute))
		if open := len(got.OpenDrifts()) == 1; open != c.open {
			t.Errorf("%s: it is open: %v", name, open)
		}
		if rec := got.Record("down"); c.open && !rec.Drift.Accepts(*drifted(now)) {
			t.Errorf("%s: what was accepted before is forgotten", name)
		}
	}
	second := workflow.NoteDrift(j, "down", change(func(d *run.Drift) { d.Field = "spec.paused" }), now.Add(time.Minute))
	if _, m := workflow.Advance(r, second, now.Add(time.Minute), workflow.Signals{}); m.Path == "migrate" {
		t.Error("a step begins after the second change")
	}
	second, _ = workflow.Advance(r, second, now.Add(time.Minute), workflow.Signals{Resume: &workflow.Answer{Actor: intent.Actor{Name: "joe"}}})
	if rec := second.Record("down"); !rec.Drift.Accepts(*drifted(now)) || len(second.OpenDrifts()) != 0 {
		t.Errorf("after the second resume: %+v", rec.Drift)
	}
}

// However many fields somebody changed, one resume accepts what one look saw, and no number of
// resumes begins again from the first.
func TestAResumeAcceptsAllThatALookSaw(t *testing.T) {
	_, j, now := driftRun(plan.DriftHold)
	field := func(name, value string) run.Drift {
		return run.Drift{Object: "ConfigMap/a", Field: name, Want: "x", Value: value, Manager: "m-" + name + value}
	}
	many := field("data.a", "1")
	many.Also = []run.Drift{field("data.b", "1"), field("data.c", run.HiddenValue)}
	resume := func(d run.Drift) {
		j = workflow.NoteDrift(j, "down", &d, now)
		rec := j.Record("down")
		accepted := *rec.Drift
		accepted.Accepted = &intent.Actor{Name: "jane", At: now}
		rec.Drift = &accepted
	}
	resume(many)
	accepts := func(d run.Drift) bool { return j.Record("down").Drift.Accepts(d) }
	if said := j.Record("down").Drift.Said(); !strings.Contains(said, "changed data.a of ConfigMap/a from x to 1 (and data.b, data.c)") {
		t.Errorf("it says %q", said)
	}
	if list, _ := j.Record("down").Drift.AcceptedChanges(); len(list) != 3 || !list[2].SeenAt.Equal(now) {
		t.Errorf("accepted: %+v", list)
	}
	partly := field("data.a", "1")
	partly.Also = []run.Drift{field("data.z", "1")}
	if d := workflow.NoteDrift(j, "down", &partly, now).Record("down").Drift; !d.IsOpen() || d.Field != "data.z" || len(d.Also) != 0 {
		t.Errorf("beside what is accepted: %+v", d)
	}
	hidden := field("data.c", run.HiddenValue)
	hidden.Manager = "mallory"
	if !accepts(field("data.a", "1")) || !accepts(field("data.b", "1")) || accepts(field("data.d", "1")) || accepts(hidden) {
		t.Errorf("%+v", j.Record("down").Drift)
	}
	for i := range 40 {
		resume(field(fmt.Sprint("data.more-", i), "1"))
	}
	d := j.Record("down").Drift
	if list, all := d.AcceptedChanges(); !all || len(list) > 32 || !accepts(field("data.a", "1")) {
		t.Errorf("%d are kept, all: %v", len(list), all)
	}
	if d.Earlier[0].Accepted == nil || d.Earlier[0].Accepted.Name != "jane" {
		t.Error("who accepted is forgotten")
	}
}

// Of a manager that nobody knows, another value is another change; one that is not shown in full is
// the same only by the same manager.
func TestWhichChangeIsTheOneThatWasAccepted(t *testing.T) {
	change := func(value, manager string) run.Drift {
		return run.Drift{Object: "ConfigMap/a", Field: "data.a", Value: value, Manager: manager}
	}
	cut := strings.Repeat("x", 100) + "…"
	for _, c := range []struct {
		accepted, other run.Drift
		want            bool
	}{
		{change("1", "helm"), change("1", "flux"), true},
		{change("1", "helm"), change("2", "helm"), true},
		{change("1", "helm"), change("2", "flux"), false},
		{change("1", ""), change("1", ""), true},
		{change("1", ""), change("2", ""), false},
		{change(run.HiddenValue, "helm"), change(run.HiddenValue, "flux"), false},
		{change(run.HiddenValue, ""), change(run.HiddenValue, ""), true},
		{change(cut, "helm"), change(cut, "flux"), false},
		{change(cut, "helm"), change(cut, "helm"), true},
	} {
		c.accepted.Accepted = &intent.Actor{Name: "jane"}
		if got := c.accepted.Accepts(c.other); got != c.want {
			t.Errorf("%+v accepts %+v: %v", c.accepted, c.other, got)
		}
	}
}

// That nobody can check what a step did is told once, and at the end where that is still so.
func TestWhatCannotBeCheckedIsSaid(t *testing.T) {
	r, j, now := driftRun(plan.DriftHold)
	reasons := func(before, after run.Journal) (list []string) {
		for _, e := range after.DriftEvents(before, "system:serviceaccount:shop:runner") {
			list = append(list, e.Reason)
		}
		return list
	}
	unchecked := workflow.NoteUnchecked(j, "down", "runner may not get deployments")
	again := workflow.NoteUnchecked(unchecked, "down", "another cause")
	checked := workflow.NoteUnchecked(again, "down", "")
	for i, c := range []struct {
		before, after run.Journal
		want          []string
	}{
		{j, unchecked, []string{"DriftUnchecked"}},
		{unchecked, again, nil},
		{again, checked, []string{"DriftChecked"}},
		{j, workflow.NoteDrift(j, "down", drifted(now), now), []string{"Drift"}},
		{j, workflow.NoteUnwatched(j, "down", true), []string{"DriftUnwatched"}},
	} {
		if got := reasons(c.before, c.after); !slices.Equal(got, c.want) {
			t.Errorf("%d: Events %q, want %q", i, got, c.want)
		}
	}
	again.End = &run.End{Phase: run.Succeeded}
	if got := r.Finished(again, now).Message; got != "all steps are done; what step down did could not be checked: runner may not get deployments" {
		t.Errorf("the run says %q", got)
	}
}

func TestDriftFailsARunThatSaysSo(t *testing.T) {
	r, j, now := driftRun(plan.DriftFail)
	j = workflow.NoteDrift(j, "down", drifted(now), now)
	j, m := workflow.Advance(r, j, now, workflow.Signals{})
	if j.End == nil || j.End.Phase != run.Failed || j.End.Reason != run.ReasonDrift || j.End.Step != "down" || m.Act != workflow.ActRestore {
		t.Fatalf("it ends %+v, then act %d", j.End, m.Act)
	}
	j = workflow.NoteRestore(j, "down", run.RestoreDone, "Deployment/orders is as it was before", nil)
	if got := j.Steps[0].RestoreMessage; !strings.Contains(got, "is as it was before; while the run lived kustomize-controller changed spec.replicas") {
		t.Errorf("the restore says %q", got)
	}
	if got := r.Finished(j, now).Message; strings.Count(got, "kustomize-controller changed spec.replicas of Deployment/orders from 0 to 3") != 1 {
		t.Errorf("the run says %q, want it once", got)
	}
	r, j, now = driftRun(plan.DriftFail)
	j = workflow.NoteDrift(j, "down", drifted(now), now)
	j, _ = workflow.Advance(r, j, now, workflow.Signals{Abort: &run.End{Phase: run.Aborted, Reason: "Aborted"}})
	if j.End.Phase != run.Aborted {
		t.Errorf("an abort comes first, and it ends %s", j.End.Phase)
	}
}

func TestWhatTheRunItselfSetIsNoDrift(t *testing.T) {
	label := func(properties map[string]any) plan.Step {
		return plan.Step{Name: "other", Type: "label", Properties: properties}
	}
	of := func(kind, name string) map[string]any {
		return map[string]any{"object": map[string]any{"kind": kind, "name": name}}
	}
	applying := func(kind, name string) plan.Step {
		return plan.Step{Name: "other", Type: plan.TypeApply, Properties: map[string]any{"object": map[string]any{"kind": kind, "metadata": map[string]any{"name": name}}}}
	}
	changed := func(what string) func(*run.Record) {
		return func(rec *run.Record) {
			rec.Changed = []run.Change{{Kind: "Deployment", Name: "orders", What: what}}
		}
	}
	for name, c := range map[string]struct {
		step plan.Step
		edit func(*run.Record)
		want bool
	}{
		"a later step changed the field":           {step: label(nil), edit: changed("metadata.labels.a, spec.replicas"), want: true},
		"a later step deleted the object":          {step: label(nil), edit: changed("deleted"), want: true},
		"a later step changed another field":       {step: label(nil), edit: changed("metadata.labels.a")},
		"one that found it so, on the object":      {step: label(of("Deployment", "orders")), want: true},
		"one that found it so, on a template":      {step: label(of("Deployment", "${run.name}")), want: true},
		"one that found it so, on the target":      {step: label(nil), want: true},
		"one that found it so, elsewhere":          {step: label(of("Deployment", "web"))},
		"one that applied it so":                   {step: applying("Deployment", "orders"), want: true},
		"one that found it so, on another kind":    {step: label(of("Service", "orders"))},
		"one that applied another kind so":         {step: applying("Service", "orders")},
		"one that applied another object so":       {step: applying("Deployment", "web")},
		"one that has not begun":                   {step: label(nil), edit: func(rec *run.Record) { rec.Phase = run.StepPending }},
		"one that ended before":                    {step: label(nil), edit: func(rec *run.Record) { rec.FinishedAt = new(rec.FinishedAt.Add(-time.Hour)) }},
		"one that changes no object by its nature": {step: plan.Step{Name: "other", Type: "webhook"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, now := driftRun(plan.DriftHold)
			r.Spec.Target = &plan.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "orders"}
			r.Spec.Steps[1] = c.step
			other := run.Record{Path: "other", Type: c.step.Type, Phase: run.StepSucceeded, FinishedAt: &now}
			if c.edit != nil {
				c.edit(&other)
			}
			j := run.Journal{Steps: []run.Record{{Path: "down", Type: "scale", Phase: run.StepSucceeded, FinishedAt: &now}, other}}
			if got := workflow.SetByRun(r, j, "down", "Deployment", "orders", "spec.replicas"); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}

func TestWhatIsToBeLeftAsItIsWhileTheRunLives(t *testing.T) {
	restoring := plan.Step{Name: "a", Type: "label", Properties: map[string]any{"restoreAfter": true}}
	plain := plan.Step{Name: "a", Type: "label"}
	for name, c := range map[string]struct {
		step plan.Step
		rec  run.Record
		want bool
	}{
		"a scale":                               {plain, run.Record{Path: "a", Type: plan.TypeScale, Phase: run.StepSucceeded}, true},
		"what was applied":                      {plain, run.Record{Path: "a", Type: plan.TypeApply, Phase: run.StepSucceeded}, true},
		"a scale at work":                       {plain, run.Record{Path: "a", Type: plan.TypeScale, Phase: run.StepRunning}, false},
		"a scale that failed":                   {plain, run.Record{Path: "a", Type: plan.TypeScale, Phase: run.StepFailed}, false},
		"a scale that cleans up":                {plain, run.Record{Path: "finally/a", Type: plan.TypeScale, Phase: run.StepSucceeded}, false},
		"a label that is put back":              {restoring, run.Record{Path: "a", Type: "label", Phase: run.StepSucceeded, Before: []byte("{}")}, true},
		"a label that found nothing to be kept": {restoring, run.Record{Path: "a", Type: "label", Phase: run.StepSucceeded}, false},
		"a label that stays":                    {plain, run.Record{Path: "a", Type: "label", Phase: run.StepSucceeded, Before: []byte("{}")}, false},
	} {
		if got := workflow.Holding(c.step, c.rec); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Whoever resumes a run accepts all that it says was changed, so that it says all.
func TestAllThatStandsIsNamed(t *testing.T) {
	r, j, now := driftRun(plan.DriftHold)
	two := drifted(now)
	for i := range run.MaxFields - 1 {
		two.Also = append(two.Also, run.Drift{Object: two.Object, Field: fmt.Sprint("spec.field", i)})
	}
	j = workflow.NoteDrift(j, "down", two, now)
	for i := range 6 {
		j.Steps = append(j.Steps, run.Record{Path: fmt.Sprint("tag", i), Phase: run.StepSucceeded, Drift: &run.Drift{Object: "Deployment/web", Field: fmt.Sprint("metadata.labels.", i), Want: strings.Repeat("x", 999), Value: "b", Manager: "flux", SeenAt: now}})
	}
	held, _ := workflow.Advance(r, j, now, workflow.Signals{})
	for _, want := range []string{"after step down kustomize-controller changed spec.replicas", "after step tag0 flux changed metadata.labels.0", "after step tag3 flux", "; and after 2 more steps; describe of the run tells all of it: no new step", "'kubectl maint -n shop resume r'"} {
		if !strings.Contains(held.Message, want) {
			t.Errorf("%q is not in %q", want, held.Message)
		}
	}
	if len(held.Message) > document.MaxMessage || strings.Contains(held.Message, "tag4") {
		t.Errorf("%d bytes: %q", len(held.Message), held.Message)
	}
	if got := j.Steps[0].Drift.Said(); !strings.Contains(got, "(and spec.field0, spec.field1, spec.field2, spec.field3, spec.field4, spec.field5, spec.field6)") {
		t.Errorf("%q does not name all fields", got)
	}
}

// loopRun has a for-each whose items are through, but for the last, after which another step comes.
func loopRun(t *testing.T, items int, steps ...plan.Step) (run.Run, run.Journal, time.Time) {
	t.Helper()
	now := time.Date(2026, 1, 1, 2, 0, 0, 0, time.UTC)
	inner := make([]any, len(steps))
	for i, s := range steps {
		inner[i] = map[string]any{"name": s.Name, "type": s.Type, "properties": s.Properties}
	}
	r := run.Run{Name: "r", Namespace: "shop", Spec: plan.Spec{Steps: []plan.Step{
		{Name: "roll", Type: plan.TypeForEach, Properties: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "steps": inner}}, {Name: "migrate", Type: "webhook"},
	}}.Defaulted()}
	j := workflow.NewJournal(r).Start(now)
	for {
		now = now.Add(time.Second)
		next, m := workflow.Advance(r, j, now, workflow.Signals{})
		j = next
		switch path := m.Path; {
		case m.Act != workflow.ActPass:
			t.Fatalf("act %d on %q: %s", m.Act, m.Path, j.Message)
		case path == "migrate":
			return r, j, now
		case path == "roll":
			list := make([]run.Item, items)
			for i := range list {
				list[i] = run.Item{Name: fmt.Sprintf("d%03d", i), UID: fmt.Sprint(i)}
			}
			j = workflow.Note(r, j, path, workflow.StepResult{Items: workflow.ItemList{Listed: true, List: list, APIVersion: "apps/v1", Kind: "Deployment"}}, now)
		default:
			rep := workflow.StepResult{Done: true, Message: "it is done", Outputs: map[string]any{"said": strings.Repeat("x", 1000*len(steps))}}
			if kind := j.Record(path).Type; kind == plan.TypeScale || kind == plan.TypeApply || kind == "label" {
				rep.Changed = []run.Change{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: run.SegmentIn("roll", path), What: "spec.replicas"}}
			}
			j = workflow.Note(r, j, path, rep, now)
		}
	}
}

// What the steps of items did is looked after as what other steps did, up to the same bound.
func TestWhatTheStepsOfFinishedItemsDidIsLookedAt(t *testing.T) {
	scale := func(replicas any) plan.Step {
		return plan.Step{Name: "down", Type: plan.TypeScale, Properties: map[string]any{"resource": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "${each.metadata.name}"}, "replicas": replicas}}
	}
	ask := plan.Step{Name: "ask", Type: "webhook"}
	within := func(s plan.Step) plan.Step {
		return plan.Step{Name: "g", Type: plan.TypeGroup, Properties: map[string]any{"steps": []any{map[string]any{"name": s.Name, "type": s.Type, "properties": s.Properties}}}}
	}
	for name, c := range map[string]struct {
		items int
		steps []plan.Step
		edit  func(*run.Run)
		looks int
		keeps int // records of items
	}{
		"each of them":                    {items: 2, steps: []plan.Step{scale(0.0)}, looks: 2, keeps: 2},
		"beside a step that is forgotten": {items: 2, steps: []plan.Step{ask, scale(0.0)}, looks: 2, keeps: 2},
		"with a step that it speaks of":   {items: 2, steps: []plan.Step{ask, scale("${steps.ask.outputs.replicas}")}, looks: 2, keeps: 4},
		"but not the group it stands in":  {items: 2, steps: []plan.Step{ask, within(scale("${steps.ask.outputs.replicas}"))}, looks: 2, keeps: 4},
		"not where that put out too much": {items: 2, steps: []plan.Step{ask, {Name: "more", Type: "webhook"}, scale("${steps.ask.outputs.replicas}")}},
		"not one whose name it only has":  {items: 2, steps: []plan.Step{ask, scale("ask")}, looks: 2, keeps: 2},
		"of the first fifty":              {items: 60, steps: []plan.Step{scale(0.0)}, looks: 50, keeps: 50},
		"not what others may change":      {items: 2, steps: []plan.Step{{Name: "mark", Type: "label"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r, j, now := loopRun(t, c.items, c.steps...)
			_, m := workflow.Advance(r, j, now, workflow.Signals{})
			if got := looksAt(m); len(got) != c.looks {
				t.Errorf("it looks at %q, want %d", got, c.looks)
			}
			if kept := len(j.Steps) - 2; kept != c.keeps {
				t.Errorf("%d records of items are kept, want %d", kept, c.keeps)
			}
			if c.looks == 0 {
				return
			}
			path := looksAt(m)[0]
			if rec := j.Record(path); rec == nil || rec.Message != "" || rec.Memory != nil {
				t.Fatalf("kept is %+v", rec)
			}
			if workflow.SetByRun(r, j, path, "Deployment", "d000", "spec.replicas") {
				t.Error("the change of the step itself counts as one of another step")
			}
			if held := workflow.NoteDrift(j, path, drifted(now), now); !strings.HasPrefix(held.DriftMessage(), "after step "+path+" ") {
				t.Errorf("it says %q", held.DriftMessage())
			}
		})
	}
}

// Steps of other items that changed nothing are about their own objects.
func TestAStepOfAnotherItemIsAboutItsOwnObject(t *testing.T) {
	r, j, _ := loopRun(t, 2, plan.Step{Name: "down", Type: plan.TypeScale, Properties: map[string]any{"resource": map[string]any{"kind": "Deployment", "name": "${each.metadata.name}"}, "replicas": 0.0}})
	j.Record("roll/d001/down").Changed = nil
	if workflow.SetByRun(r, j, "roll/d000/down", "Deployment", "d000", "spec.replicas") {
		t.Error("that of d001 counts for d000")
	}
	if !workflow.SetByRun(r, j, "roll/d000/down", "Deployment", "d001", "spec.replicas") {
		t.Error("that of d001 does not count for d001")
	}
}
