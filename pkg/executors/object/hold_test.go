package object

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

const nights = "ConfigMap/nights"

// newHold is a world with HibernatePlan nights, whose annotations are given, and the call of
// a step that holds it.
func newHold(t *testing.T, notes map[string]string) (*world, executors.Call) {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "nights", "labels": map[string]string{annotations.LabelKind: annotations.KindHibernatePlan}, "annotations": notes},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, string(text))
	call := w.step(&plan.HoldProperties{Plan: "nights"})
	call.Plan.Account = "maint-runner"
	return w, call
}

func (w *world) note(key string) string {
	return strings.Trim(w.field(nights, "metadata", "annotations", key), `"`)
}

// follows is the agent, which looks at what is held.
func (w *world) follows(phase string) {
	h, _ := annotations.ReadHold(w.objects[nights].GetAnnotations())
	w.edit(nights, fmt.Sprintf(`{metadata: {annotations: {%q: %q, %q: %q, %q: "so it is"}}}`, annotations.StatusHold, annotations.FormatHold(h), annotations.StatusPhase, phase, annotations.StatusMessage))
}

func TestAStepHoldsAHibernatePlanWhileItsRunLives(t *testing.T) {
	for name, c := range map[string]struct {
		do           Holder
		state, phase string
	}{
		"hibernate": {Hibernates(), "asleep", "Hibernated"},
		"wake":      {Wakes(), "awake", "Active"},
	} {
		t.Run(name, func(t *testing.T) {
			w, call := newHold(t, map[string]string{annotations.StatusPhase: c.phase}) // as it was, and not by this hold
			out := c.do.Pass(t.Context(), call)
			if out.State != executors.NotYet || out.Watch == nil || !strings.Contains(out.Message, "has not looked at it yet") || w.note(annotations.HoldState) != c.state {
				t.Fatalf("%+v, held %q", out, w.note(annotations.HoldState))
			}
			w.follows("WakingUp")
			if out = c.do.Pass(t.Context(), call); out.State != executors.NotYet || !strings.Contains(out.Message, "so it is") {
				t.Errorf("on its way: %+v", out)
			}
			w.follows(c.phase)
			out = c.do.Pass(t.Context(), call)
			if out.State != executors.Done || len(out.Changed) != 1 || !out.WakeAt.Equal(call.Now.Add(holdLease/2).UTC().Truncate(time.Second)) {
				t.Errorf("arrived: %+v", out)
			}
			w.wrote(1)
			call.Now = call.Now.Add(holdLease / 2)
			if out = c.do.Keep(t.Context(), call); out.State != executors.Done || w.note(annotations.HoldUntil) != call.Now.Add(holdLease).UTC().Format(time.RFC3339) {
				t.Errorf("kept up: %+v, until %s", out, w.note(annotations.HoldUntil))
			}
			for range 2 { // the second time after a crash
				if out = c.do.Release(t.Context(), call); out.State != executors.Done || w.note(annotations.HoldState) != "" || w.note(annotations.Actor(annotations.HoldState)) != "" {
					t.Errorf("released: %+v, held %q", out, w.note(annotations.HoldState))
				}
			}
			w.wrote(3)
		})
	}
}

func TestWhatSomebodyElseHoldsIsNeverChanged(t *testing.T) {
	theirs := func(state, until string) map[string]string {
		out := map[string]string{annotations.HoldState: state, annotations.Actor(annotations.HoldState): "jane"}
		if until != "" {
			out[annotations.HoldUntil] = until
		}
		return out
	}
	for name, c := range map[string]struct {
		notes  map[string]string
		state  executors.State
		says   string
		writes int
	}{
		"otherwise":             {theirs("awake", ""), executors.Failed, "is held awake by jane: release it first", 0},
		"so, for good":          {theirs("asleep", ""), executors.NotYet, "", 0},
		"otherwise, until then": {theirs("awake", "2020-01-01T00:00:00Z"), executors.NotYet, "", 1},
		"something unreadable":  {map[string]string{annotations.HoldState: "dozing"}, executors.NotYet, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, call := newHold(t, c.notes)
			out := Hibernates().Pass(t.Context(), call)
			if out.State != c.state || !strings.Contains(out.Message, c.says) {
				t.Errorf("%+v", out)
			}
			w.wrote(c.writes)
			if c.writes == 0 {
				if out := Hibernates().Release(t.Context(), call); out.State != executors.Done || w.note(annotations.HoldState) != c.notes[annotations.HoldState] {
					t.Errorf("released: %+v", out)
				}
			}
		})
	}
	w, call := newHold(t, nil)
	Hibernates().Pass(t.Context(), call)
	w.edit(nights, fmt.Sprintf(`{metadata: {annotations: {%q: awake, %q: "I need it"}}}`, annotations.HoldState, annotations.Reason(annotations.HoldState)))
	if out := Hibernates().Keep(t.Context(), call); out.State != executors.Done || w.note(annotations.HoldState) != "awake" {
		t.Errorf("taken over by somebody: %+v", out)
	}
	if err := Hibernates().Stop(t.Context(), call); err != nil || w.note(annotations.HoldState) != "awake" {
		t.Errorf("stopped: %v", err)
	}
}

func TestAHoldThatFails(t *testing.T) {
	w, call := newHold(t, nil)
	Hibernates().Pass(t.Context(), call)
	w.follows("Error")
	if out := Hibernates().Pass(t.Context(), call); out.State != executors.Failed || out.Permanent || !strings.Contains(out.Message, "HibernatePlan nights is not asleep: so it is") {
		t.Errorf("%+v", out)
	}
	if err := Hibernates().Stop(t.Context(), call); err != nil || w.note(annotations.HoldState) != "" {
		t.Errorf("stopped: %v, held %q", err, w.note(annotations.HoldState))
	}
	delete(w.objects, nights)
	if out := Hibernates().Release(t.Context(), call); out.State != executors.Done {
		t.Errorf("released what is gone: %+v", out)
	}
	if out := Hibernates().Pass(t.Context(), call); out.State != executors.Failed {
		t.Errorf("held what is gone: %+v", out)
	}
	w.put(`{apiVersion: v1, kind: ConfigMap, metadata: {name: nights}}`)
	if out := Wakes().Pass(t.Context(), call); out.State != executors.Failed || !out.Permanent || !strings.Contains(out.Message, "is no HibernatePlan") {
		t.Errorf("a ConfigMap of another kind: %+v", out)
	}
}

func TestAHoldThatCannotBeReleasedNowIsNotStopped(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(w *world)
		refuse    error
		refused   bool
	}{
		"somebody wrote in between":   {meanwhile: func(w *world) { w.follows("Hibernating") }},
		"the API server is broken":    {refuse: apierrors.NewInternalError(errors.New("etcd is away"))},
		"the API server is busy":      {refuse: apierrors.NewTooManyRequests("later", 7)},
		"the account lost its rights": {refuse: forbidden("patch", "configmaps"), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, call := newHold(t, nil)
			Hibernates().Pass(t.Context(), call)
			w.refuse["patch"] = c.refuse
			if c.meanwhile != nil {
				w.meanwhile["patch"] = func() { c.meanwhile(w) }
			}
			err := Hibernates().Stop(t.Context(), call)
			if err == nil || w.note(annotations.HoldState) != "asleep" || (executors.RefusalOf(err, call.User()) != executors.NotRefused) != c.refused {
				t.Errorf("stopped: %v", err)
			}
			if err := Hibernates().Stop(t.Context(), call); err != nil || w.note(annotations.HoldState) != "" {
				t.Errorf("then: %v, held %q", err, w.note(annotations.HoldState))
			}
		})
	}
}

func TestARehearsedHold(t *testing.T) {
	w, call := newHold(t, nil)
	call.DryRun = true
	if out := Hibernates().Pass(t.Context(), call); out.State != executors.Done || out.Message != "dry run: would hold HibernatePlan nights asleep" {
		t.Errorf("%+v", out)
	}
	w.wrote(0)
}

// other is the same step of another run, a while later.
func other(call executors.Call, after time.Duration) executors.Call {
	call.Run, call.Now = "maint-run-orders-b", call.Now.Add(after)
	return call
}

func TestTwoRunsShareAHoldUntilTheLastEnds(t *testing.T) {
	for name, firstEnds := range map[string]bool{"the first ends first": true, "the second ends first": false} {
		t.Run(name, func(t *testing.T) {
			w, a := newHold(t, nil)
			b := other(a, 5*time.Minute)
			for _, call := range []executors.Call{a, b} {
				Hibernates().Pass(t.Context(), call)
				w.follows("Hibernated")
				if out := Hibernates().Pass(t.Context(), call); out.State != executors.Done {
					t.Fatal(said(out))
				}
			}
			w.wrote(2)
			if !firstEnds {
				a, b = b, a
			}
			for range 2 { // the second time after a crash
				if out := Hibernates().Release(t.Context(), a); out.State != executors.Done {
					t.Error(said(out))
				}
				if w.note(annotations.HoldState) != "asleep" || w.note(annotations.Reason(annotations.HoldState)) != reasonOf(b) {
					t.Fatalf("held %q by %q", w.note(annotations.HoldState), w.note(annotations.Reason(annotations.HoldState)))
				}
			}
			b.Now = b.Now.Add(holdLease / 2)
			if out := Hibernates().Keep(t.Context(), b); out.State != executors.Done || !out.WakeAt.Equal(b.Now.Add(holdLease/2)) {
				t.Errorf("kept up: %s", said(out))
			}
			if out := Hibernates().Release(t.Context(), b); out.State != executors.Done || w.note(annotations.HoldState) != "" {
				t.Errorf("held %q: %s", w.note(annotations.HoldState), said(out))
			}
		})
	}
}

func TestARunThatComesWhileTheOtherLetsGoLosesNothing(t *testing.T) {
	w, a := newHold(t, nil)
	b := other(a, 0)
	b.Clients = w.clients()
	Hibernates().Pass(t.Context(), a)
	actor := w.note(annotations.Actor(annotations.HoldState))
	w.meanwhile["patch"] = func() {
		b.Plan.Account = "another"
		Hibernates().Pass(t.Context(), b)
	}
	if out := Hibernates().Release(t.Context(), a); out.State != executors.NotYet {
		t.Error(said(out))
	}
	if got := w.note(annotations.Actor(annotations.HoldState)); got != actor { // nothing but the reason has changed
		t.Errorf("signed by %q", got)
	}
	if out := Hibernates().Release(t.Context(), a); out.State != executors.Done || w.note(annotations.HoldState) != "asleep" {
		t.Errorf("held %q: %s", w.note(annotations.HoldState), said(out))
	}
}

func TestARunRidesOnAPersonsHoldAndTakesItsPlace(t *testing.T) {
	begins := now()
	for name, c := range map[string]struct {
		until     time.Duration // of jane's hold; zero: for good
		look      time.Duration // after the begin
		meanwhile string        // what jane does
		want      string        // who holds it then
	}{
		"while it stands":                      {0, time.Minute, "", "jane"},
		"once it is gone":                      {0, time.Minute, `{metadata: {annotations: null}}`, "us"},
		"while it has an end":                  {30 * time.Minute, time.Minute, "", "jane"},
		"right before its end":                 {30 * time.Minute, 29 * time.Minute, "", "us"},
		"after its end, where nobody looked":   {30 * time.Minute, 40 * time.Minute, "", "us"},
		"not while she wants it otherwise":     {0, time.Minute, fmt.Sprintf(`{metadata: {annotations: {%q: awake}}}`, annotations.HoldState), "jane"},
		"nor where it ends before we had come": {30 * time.Second, 0, "", "us"},
	} {
		t.Run(name, func(t *testing.T) {
			notes := map[string]string{annotations.HoldState: "asleep", annotations.Actor(annotations.HoldState): "jane"}
			if c.until > 0 {
				notes[annotations.HoldUntil] = begins.Add(c.until).Format(time.RFC3339)
			}
			w, call := newHold(t, notes)
			w.follows("Hibernated")
			out := Hibernates().Pass(t.Context(), call)
			if c.look > 0 && (out.State != executors.Done || !out.WakeAt.Equal(begins.Add(time.Minute))) {
				t.Fatalf("%s, looks at %s", said(out), out.WakeAt)
			}
			call.Recorded.Memory = out.Memory
			if c.meanwhile != "" {
				w.edit(nights, c.meanwhile)
				w.edit(nights, fmt.Sprintf(`{metadata: {labels: {%q: %q}}}`, annotations.LabelKind, annotations.KindHibernatePlan))
			}
			call.Now = begins.Add(c.look)
			if out = Hibernates().Keep(t.Context(), call); out.State != executors.Done || !out.WakeAt.After(call.Now) {
				t.Errorf("%s, looks at %s", said(out), out.WakeAt)
			}
			who := map[string]string{"jane": "jane", call.User(): "us"}[w.note(annotations.Actor(annotations.HoldState))]
			if who != c.want {
				t.Errorf("held by %q: %s", who, said(out))
			}
			Hibernates().Release(t.Context(), call)
			if held := w.note(annotations.HoldState) != ""; held != (c.want == "jane") {
				t.Errorf("held at the end: %t", held)
			}
		})
	}
}

func TestAHoldOfOursThatSomebodyReleasedStaysReleased(t *testing.T) {
	w, call := newHold(t, nil)
	Hibernates().Pass(t.Context(), call)
	w.follows("Hibernated")
	call.Recorded.Memory = Hibernates().Pass(t.Context(), call).Memory
	w.edit(nights, `{metadata: {annotations: null}}`)
	if out := Hibernates().Keep(t.Context(), call); out.State != executors.Done || !out.WakeAt.After(call.Now) || w.note(annotations.HoldState) != "" {
		t.Errorf("%s, held %q", said(out), w.note(annotations.HoldState))
	}
}

// Somebody's own hold, in the same state, took the place of ours, and is over before it is looked at.
func TestAHoldThatTookThePlaceOfOursAndIsOverIsTakenAgain(t *testing.T) {
	for state, again := range map[string]bool{"asleep": true, "awake": false} {
		t.Run(state, func(t *testing.T) {
			w, call := newHold(t, nil)
			Hibernates().Pass(t.Context(), call)
			w.follows("Hibernated")
			call.Recorded.Memory = Hibernates().Pass(t.Context(), call).Memory
			w.edit(nights, fmt.Sprintf(`{metadata: {annotations: {%q: %q, %q: %q, %q: null, %q: jane}}}`, annotations.HoldState, state, annotations.HoldUntil, call.Now.Add(10*time.Minute).Format(time.RFC3339), annotations.Reason(annotations.HoldState), annotations.Actor(annotations.HoldState)))
			call.Now = call.Now.Add(holdLease / 2)
			out := Hibernates().Keep(t.Context(), call)
			if taken := w.note(annotations.Reason(annotations.HoldState)) == reasonOf(call); out.State != executors.Done || taken != again {
				t.Errorf("taken again: %t; %s", taken, said(out))
			}
		})
	}
}

// A plan may take hours to fall asleep: the lease is renewed in time.
func TestALeaseIsRenewedBeforeThePlanHasArrived(t *testing.T) {
	w, call := newHold(t, nil)
	out := Hibernates().Pass(t.Context(), call)
	if !out.WakeAt.Equal(call.Now.Add(holdLease / 2)) {
		t.Fatalf("it looks at %s", out.WakeAt)
	}
	call.Now = out.WakeAt
	if out = Hibernates().Pass(t.Context(), call); !out.WakeAt.Equal(call.Now.Add(holdLease / 2)) {
		t.Errorf("it looks at %s", out.WakeAt)
	}
	w.wrote(2)
}

// A hold that was asked for and not answered may arrive after the step has ended.
func TestAHoldThatMayStillArriveIsWaitedFor(t *testing.T) {
	w, call := newHold(t, nil)
	call.Recorded.InterruptedAt = call.Now
	var late *executors.LateError
	if err := Hibernates().Stop(t.Context(), call); !errors.As(err, &late) || !late.Until.Equal(call.Now.Add(executors.LateRequest)) {
		t.Fatalf("stop: %v", err)
	}
	over := call
	over.Now = late.Until
	if err := Hibernates().Stop(t.Context(), over); err != nil {
		t.Errorf("it never came: %v", err)
	}
	arrives := call
	arrives.Recorded.InterruptedAt = time.Time{}
	Hibernates().Pass(t.Context(), arrives)
	if got := w.note(annotations.HoldState); got != "asleep" {
		t.Fatalf("held %q", got)
	}
	if err := Hibernates().Stop(t.Context(), call); err != nil || w.note(annotations.HoldState) != "" {
		t.Errorf("stop: %v, held %q", err, w.note(annotations.HoldState))
	}
}

// A step that waits behind somebody's hold has sent none of its own.
func TestAStepBehindAPersonsHoldIsStoppedAtOnce(t *testing.T) {
	_, call := newHold(t, map[string]string{annotations.HoldState: "asleep"})
	out := Hibernates().Pass(t.Context(), call)
	call.Recorded.Memory, call.Recorded.InterruptedAt = out.Memory, call.Now
	if err := Hibernates().Stop(t.Context(), call); err != nil || len(out.Memory) == 0 {
		t.Errorf("%v, remembers %s", err, out.Memory)
	}
}
