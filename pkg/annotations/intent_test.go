package annotations_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func instant(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return at
}

func until(text string) *time.Time {
	at := instant(text)
	return &at
}

// A switch that is not understood holds.
func TestPauseIsOffOnOrHolds(t *testing.T) {
	for value, want := range map[string]struct {
		is    schedule.Pause
		fault bool
	}{
		"":                          {},
		"false":                     {},
		"true":                      {is: schedule.Pause{On: true}},
		"2026-12-01T06:00:00Z":      {is: schedule.Pause{On: true, Until: until("2026-12-01T06:00:00Z")}},
		"2026-12-01T06:00:00+02:00": {is: schedule.Pause{On: true, Until: until("2026-12-01T06:00:00+02:00")}},
		"False":                     {is: schedule.Pause{On: true}, fault: true},
		"TRUE":                      {is: schedule.Pause{On: true}, fault: true},
		"no":                        {is: schedule.Pause{On: true}, fault: true},
		" ":                         {is: schedule.Pause{On: true}, fault: true},
		"0":                         {is: schedule.Pause{On: true}, fault: true},
		"2026-12-01":                {is: schedule.Pause{On: true}, fault: true},
		"2026-12-01T06:00:00":       {is: schedule.Pause{On: true}, fault: true},
		"2026-13-01T06:00:00Z":      {is: schedule.Pause{On: true}, fault: true},
		strings.Repeat("x", 5000):   {is: schedule.Pause{On: true}, fault: true},
	} {
		in := annotations.Intent(map[string]string{annotations.Pause: value})
		if want.fault {
			want.is.By = fmt.Sprintf(" (maint.dev/pause: %q is not understood)", document.Cut(value, 80))
		}
		if diff := cmp.Diff(want.is, in.Pause); diff != "" || want.fault != (len(in.Faults) == 1) {
			t.Errorf("pause %q: %s %v", document.Cut(value, 40), diff, in.Faults)
		}
		if want.fault && (in.Faults[0].Path != annotations.Pause || len(in.Faults[0].Message) > 300) {
			t.Errorf("pause %q is reported as %s", document.Cut(value, 40), in.Faults[0])
		}
	}
}

func TestSkipForms(t *testing.T) {
	slot := instant("2026-12-05T02:00:00Z")
	for value, want := range map[string]struct {
		is    intent.Skip
		fault bool
	}{
		"":                           {},
		"false":                      {},
		"true":                       {is: intent.Skip{All: true}},
		"next":                       {is: intent.Skip{Next: true}},
		"until:2026-12-05T02:00:00Z": {is: intent.Skip{Until: &slot}},
		"2026-12-05T02:00:00Z":       {is: intent.Skip{Slots: []time.Time{slot}}},
		"2026-12-05T02:00:00Z, 2026-12-12T02:00:00Z": {is: intent.Skip{Slots: []time.Time{slot, instant("2026-12-12T02:00:00Z")}}},
		"Next":                      {is: intent.Skip{All: true}, fault: true},
		"until:tomorrow":            {is: intent.Skip{All: true}, fault: true},
		"until: 2026-12-05":         {is: intent.Skip{All: true}, fault: true},
		"2026-12-05T02:00:00Z,":     {is: intent.Skip{All: true}, fault: true},
		"2026-12-05T02:00:00Z,next": {is: intent.Skip{All: true}, fault: true},
	} {
		in := annotations.Intent(map[string]string{annotations.Skip: value})
		if diff := cmp.Diff(want.is, in.Skip); diff != "" || want.fault != (len(in.Faults) == 1) {
			t.Errorf("skip %q: %s %v", value, diff, in.Faults)
		}
		again := annotations.Intent(map[string]string{annotations.Skip: annotations.FormatSkip(in.Skip)})
		if diff := cmp.Diff(in.Skip, again.Skip); diff != "" {
			t.Errorf("skip %q does not survive being written: %s", value, diff)
		}
	}
}

func TestTriggerOptions(t *testing.T) {
	long := strings.Repeat("t", 300)
	for name, c := range map[string]struct {
		token, options string
		want           intent.TriggerOptions
		unclear, fault bool
	}{
		"none":                        {token: "a"},
		"all":                         {token: "a", options: `{"token":"a","reason":"why","dryRun":true,"outsideWindow":true,"parameters":{"mode":"fast"}}`, want: intent.TriggerOptions{Token: "a", Reason: "why", DryRun: true, OutsideWindow: true, Parameters: map[string]string{"mode": "fast"}}},
		"as an earlier run":           {token: "a", options: `{"token":"a","asOf":"maint-run-x"}`, want: intent.TriggerOptions{Token: "a", AsOf: "maint-run-x"}},
		"as that, with parameters":    {token: "a", options: `{"token":"a","asOf":"maint-run-x","parameters":{"mode":"fast"}}`, unclear: true, fault: true},
		"outside without a reason":    {token: "a", options: `{"token":"a","outsideWindow":true}`, want: intent.TriggerOptions{Token: "a"}, fault: true},
		"an unknown field":            {token: "a", options: `{"token":"a","dryrunn":true}`, unclear: true, fault: true},
		"no JSON":                     {token: "a", options: `token=a dryRun`, unclear: true, fault: true},
		"cut off":                     {token: "a", options: `{"token":"a","dryRun":true`, unclear: true, fault: true},
		"two objects":                 {token: "a", options: `{"token":"a"}{"dryRun":true}`, unclear: true, fault: true},
		"a list":                      {token: "a", options: `[]`, unclear: true, fault: true},
		"parameters beyond any sense": {token: "a", options: `{"token":"a","parameters":{"x":"` + strings.Repeat("y", 20000) + `"}}`, unclear: true, fault: true},
		"a long token, by its hash":   {token: long, options: `{"token":"` + long + `","dryRun":true}`, want: intent.TriggerOptions{Token: annotations.Intent(map[string]string{annotations.Trigger: long}).Token, DryRun: true}},
	} {
		t.Run(name, func(t *testing.T) {
			in := annotations.Intent(map[string]string{annotations.Trigger: c.token, annotations.TriggerOptions: c.options})
			if diff := cmp.Diff(c.want, in.Asked); diff != "" || in.Unclear != c.unclear || (len(in.Faults) > 0) != c.fault {
				t.Errorf("%s unclear %v, faults %v", diff, in.Unclear, in.Faults)
			}
		})
	}
	one, two := annotations.Intent(map[string]string{annotations.Trigger: long}).Token, annotations.Intent(map[string]string{annotations.Trigger: long + "2"}).Token
	if len(one) > 128 || one == two {
		t.Errorf("long tokens are kept as %q and %q", one, two)
	}
}

func TestAsksAndActors(t *testing.T) {
	in := annotations.Intent(map[string]string{
		annotations.Abort: "run-1", annotations.Resume: "run-1/pause", annotations.Retry: "", annotations.Approve: "run/a/b",
		"actor.maint.dev/abort": "jane", "reason.maint.dev/abort": " too\n  loud", "actor.maint.dev/trigger": strings.Repeat("x", 1000),
	})
	if !in.Abort.For("run-1") || in.Abort.For("run-2") || in.Retry.For("") || in.Resume != (intent.RunRef{Run: "run-1", Step: "pause"}) || in.Approve != (intent.RunRef{Run: "run", Step: "a/b"}) {
		t.Errorf("%+v", in)
	}
	if a := in.Actors["abort"]; a.Name != "jane" || a.Reason != "too loud" || a.Verified || len(in.Actors["trigger"].Name) > 256 {
		t.Errorf("%+v", in.Actors)
	}
}

func TestAPauseIsToldApartByWhoAndWhy(t *testing.T) {
	on := map[string]string{annotations.Pause: "true"}
	seen := map[string]bool{}
	for _, a := range []map[string]string{{}, {annotations.Reason(annotations.Pause): "left over"}, on, {annotations.Pause: "true", annotations.Actor(annotations.Pause): "jane"}, {annotations.Pause: "true", annotations.Reason(annotations.Pause): "jane"}, {annotations.Pause: "2026-11-22T00:00:00Z"}} {
		seen[annotations.PauseText(a)] = true
	}
	if len(seen) != 5 || annotations.PauseText(on) == "" {
		t.Errorf("%d differ", len(seen))
	}
}
