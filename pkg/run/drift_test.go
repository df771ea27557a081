package run_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// wrote is a change by a manager of what a step left.
func wrote(manager, field, value string) run.Drift {
	return run.Drift{Object: "Deployment/web", Field: field, Want: "0", Value: value, Manager: manager, SeenAt: coretest.Clock("02:00")}
}

// by is a change that somebody accepted.
func by(name string, d run.Drift) run.Drift {
	d.Accepted = &intent.Actor{Name: name}
	return d
}

// fluxSaid is what is said of flux's change of a field to 3.
func fluxSaid(field string) string {
	return "flux changed " + field + " of Deployment/web from 0 to 3 at 2026-12-05T02:00:00Z"
}

func changes(n int) (out []run.Drift) {
	for i := range n {
		out = append(out, wrote("flux", fmt.Sprintf("f%02d", i), "3"))
	}
	return out
}

func TestTheAcceptedChangesOfAStep(t *testing.T) {
	a, b := wrote("flux", "a", "3"), wrote("flux", "b", "4")
	with := func(d run.Drift, edit func(*run.Drift)) *run.Drift {
		edit(&d)
		return &d
	}
	accepted := func(list []run.Drift) (out []run.Drift) {
		for _, d := range list {
			out = append(out, by("ann", d))
		}
		return out
	}
	for _, c := range []struct {
		name  string
		drift *run.Drift
		want  []run.Drift
		all   bool
	}{
		{"nothing changed", nil, nil, false},
		{"an open change is none", &a, nil, false},
		{"an open change after one that was accepted", with(a, func(d *run.Drift) { d.Earlier = []run.Drift{by("ann", b)} }), []run.Drift{by("ann", b)}, false},
		{"all that one look saw", with(by("ann", a), func(d *run.Drift) { d.Also = []run.Drift{b} }), []run.Drift{by("ann", a), by("ann", b)}, false},
		{"what the others were seen at is that of the look", with(by("ann", a), func(d *run.Drift) { d.Also = []run.Drift{{Field: "b"}} }), []run.Drift{by("ann", a), by("ann", run.Drift{Field: "b", SeenAt: a.SeenAt})}, false},
		{"of a field that one manager changed again the newest", with(by("joe", a), func(d *run.Drift) { d.Earlier = []run.Drift{by("ann", wrote("flux", "a", "2")), by("ann", b)} }), []run.Drift{by("ann", b), by("joe", a)}, false},
		{"of a field that two managers changed both", with(by("joe", a), func(d *run.Drift) { d.Earlier = []run.Drift{by("ann", wrote("argo", "a", "2"))} }), []run.Drift{by("ann", wrote("argo", "a", "2")), by("joe", a)}, false},
		{"as many as are kept", with(by("ann", changes(32)[31]), func(d *run.Drift) { d.Earlier = accepted(changes(31)) }), accepted(changes(32)), false},
		{"one more: the oldest goes, and every change is accepted", with(by("ann", changes(33)[32]), func(d *run.Drift) { d.Earlier = accepted(changes(32)) }), accepted(changes(33)[1:]), true},
		{"there were more before", with(a, func(d *run.Drift) { d.Earlier, d.AllAccepted = []run.Drift{by("ann", b)}, true }), []run.Drift{by("ann", b)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, all := c.drift.AcceptedChanges()
			if diff := cmp.Diff(c.want, list); diff != "" || all != c.all {
				t.Errorf("all %t, -want +got:\n%s", all, diff)
			}
		})
	}
}

func TestWhichChangesAreAcceptedWithOne(t *testing.T) {
	d := by("ann", wrote("flux", "a", "3"))
	cut := "3" + document.Ellipsis
	for _, c := range []struct {
		name  string
		drift run.Drift
		other run.Drift
		want  bool
	}{
		{"the same again", d, wrote("flux", "a", "3"), true},
		{"another value by the same manager", d, wrote("flux", "a", "4"), true},
		{"the same value by another manager", d, wrote("argo", "a", "3"), true},
		{"another value by another manager", d, wrote("argo", "a", "4"), false},
		{"another field", d, wrote("flux", "b", "3"), false},
		{"nobody says who wrote either", by("ann", wrote("", "a", "3")), wrote("", "a", "4"), false},
		{"nobody says who wrote either, and the value is the same", by("ann", wrote("", "a", "3")), wrote("", "a", "3"), true},
		{"a secret value by another manager", by("ann", wrote("flux", "a", run.HiddenValue)), wrote("argo", "a", run.HiddenValue), false},
		{"a secret value by the same manager", by("ann", wrote("flux", "a", run.HiddenValue)), wrote("flux", "a", run.HiddenValue), true},
		{"a secret value, and nobody says who wrote it", by("ann", wrote("", "a", run.HiddenValue)), wrote("", "a", run.HiddenValue), true},
		{"a value that is not shown in full by another manager", by("ann", wrote("flux", "a", cut)), wrote("argo", "a", cut), false},
		{"nobody accepted it", wrote("flux", "a", "3"), wrote("flux", "a", "3"), false},
		{"every change was accepted", run.Drift{AllAccepted: true}, wrote("argo", "b", "4"), true},
	} {
		if got := c.drift.Accepts(c.other); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestWhatIsLeftOfALook(t *testing.T) {
	look := run.DriftOf(changes(3))
	want := wrote("flux", "f00", "3")
	want.Also = changes(3)[2:]
	if diff := cmp.Diff(&want, look.Without(func(d run.Drift) bool { return d.Field == "f01" })); diff != "" {
		t.Error(diff)
	}
	if got := look.Without(func(run.Drift) bool { return true }); got != nil {
		t.Errorf("without all: %+v", got)
	}
	if got := (*run.Drift)(nil).Without(func(run.Drift) bool { return false }); got != nil {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestWhetherTwoLooksSawTheSame(t *testing.T) {
	look := func(edit func(*run.Drift)) run.Drift {
		d := *run.DriftOf(changes(2))
		edit(&d)
		return d
	}
	first := look(func(*run.Drift) {})
	for _, c := range []struct {
		name string
		edit func(*run.Drift)
		want bool
	}{
		{"they did", func(*run.Drift) {}, true},
		{"at another time", func(d *run.Drift) { d.SeenAt = coretest.Clock("03:00") }, true},
		{"another field", func(d *run.Drift) { d.Field = "x" }, false},
		{"another value", func(d *run.Drift) { d.Value = "x" }, false},
		{"another manager", func(d *run.Drift) { d.Manager = "x" }, false},
		{"another change besides", func(d *run.Drift) { d.Also = changes(3)[2:] }, false},
		{"no change besides", func(d *run.Drift) { d.Also = nil }, false},
	} {
		if got := first.Same(look(c.edit)); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestAChangeIsSaidInASentence(t *testing.T) {
	several := func(n int) run.Drift { return *run.DriftOf(changes(n)) }
	long := strings.Repeat("x", document.MaxMessage)
	for _, c := range []struct {
		name  string
		drift run.Drift
		want  string
	}{
		{"who, what and when it was seen", wrote("flux", "a", "3"), fluxSaid("a")},
		{"when it was written, if that is known", run.Drift{Object: "Deployment/web", Field: "a", Want: "0", Value: "3", Manager: "flux", At: coretest.On("01:00"), SeenAt: coretest.Clock("02:00")}, "flux changed a of Deployment/web from 0 to 3 at 2026-12-05T01:00:00Z"},
		{"nobody says who", wrote("", "a", "3"), "somebody" + strings.TrimPrefix(fluxSaid("a"), "flux")},
		{"a deletion", wrote("", "", ""), "somebody deleted Deployment/web at 2026-12-05T02:00:00Z"},
		{"other fields besides", several(3), "flux changed f00 of Deployment/web from 0 to 3 (and f01, f02) at 2026-12-05T02:00:00Z"},
		{"all fields that a look tells", several(8), "flux changed f00 of Deployment/web from 0 to 3 (and f01, f02, f03, f04, f05, f06, f07) at 2026-12-05T02:00:00Z"},
		{"and more", several(10), "flux changed f00 of Deployment/web from 0 to 3 (and f01, f02, f03, f04, f05, f06, f07, 2 more) at 2026-12-05T02:00:00Z"},
		{"a long one keeps its time", wrote("flux", long, "3"), document.Cut("flux changed "+long, document.MaxMessage/2) + " at 2026-12-05T02:00:00Z"},
	} {
		if got := c.drift.Said(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestWhichChangesHoldARun(t *testing.T) {
	open, over := wrote("flux", "a", "3"), wrote("flux", "a", "3")
	over.Over = coretest.On("03:00")
	for _, c := range []struct {
		name  string
		on    plan.OnDrift
		drift *run.Drift
		want  bool
	}{
		{"an open one", plan.DriftHold, &open, true},
		{"one that fails the run", plan.DriftFail, &open, true},
		{"one that is only told", plan.DriftIgnore, &open, false},
		{"one that somebody accepted", plan.DriftHold, new(by("ann", open)), false},
		{"one that is over", plan.DriftHold, &over, false},
		{"none", plan.DriftHold, nil, false},
	} {
		rec := run.Record{Path: "down", Drift: c.drift}
		if got := (run.Run{Spec: plan.Spec{OnDrift: c.on}}).HeldByDrift(rec); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestTheMessageOfDriftsNamesTheStepsAndIsBounded(t *testing.T) {
	const rest = "; describe of the run tells all of it"
	steps := func(n int, field string) (out []run.Record) {
		for i := range n {
			out = append(out, run.Record{Path: fmt.Sprint("s", i), Drift: new(wrote("flux", field, "3"))})
		}
		return out
	}
	said := func(n int) string {
		var parts []string
		for i := range n {
			parts = append(parts, fmt.Sprintf("after step s%d %s", i, fluxSaid("a")))
		}
		return strings.Join(parts, "; ")
	}
	ended := steps(3, "a")
	ended[1].Drift.Over, ended[2].Drift = coretest.On("03:00"), nil
	for _, c := range []struct {
		name  string
		steps []run.Record
		want  string
	}{
		{"none", nil, ""},
		{"one stands", ended, said(1)},
		{"five", steps(5, "a"), said(5)},
		{"seven", steps(7, "a"), said(5) + "; and after 2 more steps" + rest},
	} {
		if got := (run.Journal{Steps: c.steps}).DriftMessage(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	for _, n := range []int{2, 5, 7} {
		long := steps(n, strings.Repeat("x", document.MaxMessage))
		long[1].Drift.Field = "a"
		got := run.Journal{Steps: long}.DriftMessage()
		if len(got) > document.MaxMessage*3/4 || !strings.HasSuffix(got, rest) || !strings.Contains(got, "; after step s1 "+fluxSaid("a")) {
			t.Errorf("of %d long ones %d bytes: %q", n, len(got), got)
		}
		long[1].Drift.Field = long[0].Drift.Field
		if got := (run.Journal{Steps: long}).DriftMessage(); len(got) > document.MaxMessage*3/4 || strings.Count(got, "after step ") != min(n, 5) {
			t.Errorf("of %d that are all long %d bytes: %q", n, len(got), got)
		}
	}
}

func TestWhetherAnotherStepMayBeWriting(t *testing.T) {
	for _, c := range []struct {
		name string
		rec  run.Record
		want bool
	}{
		{"another that scales", run.Record{Path: "b", Type: "scale", Phase: run.StepRunning}, true},
		{"another that only calls somebody", run.Record{Path: "b", Type: "webhook", Phase: run.StepRunning}, false},
		{"another that has ended", run.Record{Path: "b", Type: "scale", Phase: run.StepSucceeded}, false},
		{"the step itself", run.Record{Path: "a", Type: "scale", Phase: run.StepRunning}, false},
	} {
		if got := (run.Journal{Steps: []run.Record{c.rec}}).Writing("a"); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestWhetherALaterStepOfTheRunChangedAField(t *testing.T) {
	other := func(path, what string, ended string) run.Record {
		rec := run.Record{Path: path, Changed: []run.Change{{Kind: "Deployment", Name: "web", What: what}}}
		if ended != "" {
			rec.FinishedAt = coretest.On(ended)
		}
		return rec
	}
	for _, c := range []struct {
		name              string
		rec               run.Record
		kind, named, with string
		want              bool
	}{
		{"one that ended later", other("b", "spec.replicas", "03:00"), "Deployment", "web", "spec.replicas", true},
		{"one that ended at the same second", other("b", "spec.replicas", "02:00"), "Deployment", "web", "spec.replicas", true},
		{"one that has not ended", other("b", "spec.replicas", ""), "Deployment", "web", "spec.replicas", true},
		{"one that ended before", other("b", "spec.replicas", "01:00"), "Deployment", "web", "spec.replicas", false},
		{"the step itself", other("a", "spec.replicas", "02:00"), "Deployment", "web", "spec.replicas", false},
		{"among other fields", other("b", "metadata.labels, spec.replicas", "03:00"), "Deployment", "web", "spec.replicas", true},
		{"another field", other("b", "spec.paused", "03:00"), "Deployment", "web", "spec.replicas", false},
		{"any field", other("b", "spec.paused", "03:00"), "Deployment", "web", "", true},
		{"its creation", other("b", "created", "03:00"), "Deployment", "web", "spec.replicas", true},
		{"its deletion", other("b", "deleted", "03:00"), "Deployment", "web", "spec.replicas", true},
		{"another name", other("b", "spec.replicas", "03:00"), "Deployment", "db", "spec.replicas", false},
		{"another kind", other("b", "spec.replicas", "03:00"), "StatefulSet", "web", "spec.replicas", false},
		{"another name, any field", other("b", "spec.replicas", "03:00"), "Deployment", "db", "", false},
		{"another kind, any field", other("b", "spec.replicas", "03:00"), "StatefulSet", "web", "", false},
	} {
		j := run.Journal{Steps: []run.Record{{Path: "a", FinishedAt: coretest.On("02:00")}, c.rec}}
		if c.rec.Path == "a" {
			j.Steps = j.Steps[1:]
		}
		if got := j.ChangedSince("a", c.kind, c.named, c.with); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	if later := (run.Journal{Steps: []run.Record{other("b", "spec.replicas", "03:00")}}); later.ChangedSince("a", "Deployment", "web", "spec.replicas") {
		t.Error("a step without a record: true")
	}
	if unended := (run.Journal{Steps: []run.Record{{Path: "a"}, other("b", "spec.replicas", "03:00")}}); !unended.ChangedSince("a", "Deployment", "web", "spec.replicas") {
		t.Error("a step that has not ended: false")
	}
}

func TestWhatEventsSayOfDrift(t *testing.T) {
	open := wrote("flux", "spec.replicas", "3")
	over := func(edit func(*run.Drift)) *run.Drift {
		d := open
		d.Over = coretest.On("03:00")
		edit(&d)
		return &d
	}
	all := by("ann", open)
	all.AllAccepted = true
	for _, c := range []struct {
		name    string
		was, is run.Record
		want    []run.DriftEvent
	}{
		{"nothing", run.Record{}, run.Record{}, nil},
		{"a change", run.Record{}, run.Record{Drift: &open}, []run.DriftEvent{{"Warning", "Drift", "step down: " + fluxSaid("spec.replicas")}}},
		{"it stands", run.Record{Drift: &open}, run.Record{Drift: new(wrote("flux", "spec.replicas", "3"))}, nil},
		{"somebody accepted it", run.Record{Drift: &open}, run.Record{Drift: new(by("ann", open))}, []run.DriftEvent{{"Normal", "DriftAccepted", "step down: " + fluxSaid("spec.replicas") + "; resumed by ann (unverified)"}}},
		{"after too many", run.Record{Drift: &open}, run.Record{Drift: &all}, []run.DriftEvent{{"Normal", "DriftAccepted", "step down: " + fluxSaid("spec.replicas") + "; resumed by ann (unverified); after so many changes the step is not checked any more"}}},
		{"it is over", run.Record{Drift: &open}, run.Record{Drift: over(func(*run.Drift) {})}, []run.DriftEvent{{"Normal", "DriftOver", "step down: spec.replicas of Deployment/web is 0 again"}}},
		{"it is over, or as it was accepted", run.Record{Drift: &open}, run.Record{Drift: over(func(d *run.Drift) { d.Earlier = []run.Drift{by("ann", open)} })}, []run.DriftEvent{{"Normal", "DriftOver", "step down: spec.replicas of Deployment/web is as the step left it, or as somebody accepted it"}}},
		{"what was deleted is there again", run.Record{Drift: &open}, run.Record{Drift: over(func(d *run.Drift) { d.Field = "" })}, []run.DriftEvent{{"Normal", "DriftOver", "step down: Deployment/web is there again"}}},
		{"the account may not watch", run.Record{}, run.Record{Unwatched: true}, []run.DriftEvent{{"Normal", "DriftUnwatched", "step down: what it did is checked once a minute, because ServiceAccount shop/maint may not watch it"}}},
		{"that is known", run.Record{Unwatched: true}, run.Record{Unwatched: true}, nil},
		{"it may again", run.Record{Unwatched: true}, run.Record{}, nil},
		{"it cannot be read", run.Record{}, run.Record{Unchecked: "forbidden"}, []run.DriftEvent{{"Warning", "DriftUnchecked", "step down: it is not known whether what it changed is still as it left it: forbidden"}}},
		{"that is known, too", run.Record{Unchecked: "forbidden"}, run.Record{Unchecked: "no answer"}, nil},
		{"it can be read again", run.Record{Unchecked: "forbidden"}, run.Record{}, []run.DriftEvent{{"Normal", "DriftChecked", "step down: what it did is checked again"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.was.Path, c.is.Path = "down", "down"
			was, is := run.Journal{Steps: []run.Record{c.was}}, run.Journal{Steps: []run.Record{{Path: "new", Drift: &open}, c.is}}
			if diff := cmp.Diff(c.want, is.DriftEvents(was, "shop/maint")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatOthersDidWhileARunLived(t *testing.T) {
	changed := run.Change{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", What: "spec.replicas"}
	deleted := changed
	deleted.What = "deleted"
	record := func(path string, edit func(*run.Record)) run.Record {
		rec := run.Record{Path: path, Phase: run.StepSucceeded, Changed: []run.Change{changed}}
		edit(&rec)
		return rec
	}
	drifts := func(field string) run.Record {
		return record("d"+field, func(r *run.Record) { r.Drift = new(wrote("flux", field, "3")) })
	}
	stays := func(path, restored, why string) run.Record {
		return record(path, func(r *run.Record) { r.Restored, r.RestoreMessage = restored, why })
	}
	unread := func(path string) run.Record {
		return record(path, func(r *run.Record) { r.Unchecked = "forbidden" })
	}
	replaced := func(path string) run.Record { return stays(path, run.RestoreChanged, "ann changed it") }
	const notBack = " found was not put back: ann changed it"
	for _, c := range []struct {
		name    string
		message string
		steps   []run.Record
		want    string
	}{
		{"nothing", "done", []run.Record{record("a", func(*run.Record) {})}, ""},
		{"a change", "done", []run.Record{drifts("a")}, "while it ran " + fluxSaid("a")},
		{"a change that the run's message tells", "after step da " + fluxSaid("a"), []run.Record{drifts("a"), drifts("b")}, "while it ran " + fluxSaid("b")},
		{"one that was accepted before", "done", []run.Record{record("a", func(r *run.Record) {
			r.Drift = new(wrote("flux", "b", "3"))
			r.Drift.Earlier = []run.Drift{by("ann", wrote("flux", "a", "3"))}
		})}, "while it ran " + fluxSaid("a") + "; " + fluxSaid("b")},
		{"of many the first three", "done", []run.Record{drifts("a"), drifts("b"), drifts("c"), drifts("d")}, "while it ran " + fluxSaid("a") + "; " + fluxSaid("b") + "; " + fluxSaid("c")},
		{"what could not be read", "done", []run.Record{unread("a"), record("b", func(*run.Record) {}), unread("c")}, "what step a did could not be checked: forbidden; what step c did could not be checked: forbidden"},
		{"of many that could not be read the first three", "done", []run.Record{unread("a"), unread("b"), unread("c"), unread("d")}, "what step a did could not be checked: forbidden; what step b did could not be checked: forbidden; what step c did could not be checked: forbidden"},
		{"what was not put back since somebody changed it", "done", []run.Record{replaced("a")}, "what step a" + notBack},
		{"the change is told once", "done", []run.Record{record("a", func(r *run.Record) {
			r.Drift, r.Restored = new(wrote("flux", "a", "3")), run.RestoreChanged
			r.RestoreMessage = "flux changed it" + r.Drift.DuringRun()
		})}, "what step a found was not put back: flux changed it; while it ran " + fluxSaid("a")},
		{"what was put back, and what could not be", "done", []run.Record{stays("a", run.RestoreDone, "it was put back"), stays("b", run.RestoreFailed, "forbidden")}, ""},
		{"what is gone", "done", []run.Record{stays("a", run.RestoreGone, "it is gone")}, "what step a found was not put back: it is gone"},
		{"what is gone, and no step changed", "done", []run.Record{record("a", func(r *run.Record) { r.Restored, r.Changed = run.RestoreGone, nil })}, ""},
		{"what a later step deleted", "done", []run.Record{stays("a", run.RestoreGone, "it is gone"), record("b", func(r *run.Record) { r.Changed = []run.Change{deleted} })}, ""},
		{"of three not put back all", "done", []run.Record{replaced("a"), replaced("b"), replaced("c")}, "what step a" + notBack + "; what step b" + notBack + "; what step c" + notBack},
		{"of five not put back the first three", "done", []run.Record{replaced("a"), replaced("b"), replaced("c"), replaced("d"), replaced("e")}, "what step a" + notBack + "; what step b" + notBack + "; what step c" + notBack + "; nor what 2 more steps found"},
		{"all of it", "done", []run.Record{unread("x"), drifts("a"), replaced("b")}, "what step b" + notBack + "; while it ran " + fluxSaid("a") + "; what step x did could not be checked: forbidden"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := run.Journal{Message: c.message, Steps: c.steps}
			if diff := cmp.Diff(c.want, j.ForeignChanges()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if got := (*run.Drift)(nil).DuringRun(); got != "" {
		t.Errorf("of no change %q", got)
	}
}
