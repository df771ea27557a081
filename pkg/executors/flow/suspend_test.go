package flow

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func TestSuspend(t *testing.T) {
	now := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	later := now.Add(10 * time.Minute)
	tenMinutes := &document.Duration{Duration: 10 * time.Minute}
	for name, c := range map[string]struct {
		duration *document.Duration
		call     executors.Call
		want     executors.Outcome
	}{
		"with a duration its end is recorded first": {
			duration: tenMinutes, call: executors.Call{Now: now},
			want: executors.Outcome{State: executors.Record, ResumeAt: &later, Message: "held until 2026-03-01T02:10:00Z"},
		},
		"it waits until the recorded end, whatever the duration says by then": {
			duration: &document.Duration{Duration: time.Hour}, call: executors.Call{Now: now, Recorded: executors.Recorded{ResumeAt: &later}},
			want: executors.Outcome{State: executors.NotYet, Reason: "Suspended", WakeAt: later, Message: "held until 2026-03-01T02:10:00Z"},
		},
		"it is over at its end": {
			duration: tenMinutes, call: executors.Call{Now: later, Recorded: executors.Recorded{ResumeAt: &later}},
			want: executors.Outcome{State: executors.Done, Message: "held for 10m0s"},
		},
		"it is over long after its end, as after an outage": {
			duration: tenMinutes, call: executors.Call{Now: later.Add(time.Hour), Recorded: executors.Recorded{ResumeAt: &later}},
			want: executors.Outcome{State: executors.Done, Message: "held for 10m0s"},
		},
		"without a duration it waits for somebody": {
			call: executors.Call{Now: now, Plan: executors.PlanRef{Namespace: "shop"}, Run: "r"},
			want: executors.Outcome{State: executors.NotYet, Reason: "Suspended", Message: "held until somebody resumes it: 'kubectl maint -n shop resume r'"},
		},
		"somebody's resume ends it without a duration": {
			call: executors.Call{Now: now, Recorded: executors.Recorded{Resumed: true}},
			want: executors.Outcome{State: executors.Done, Reason: "Resumed", Message: "resumed"},
		},
		"somebody's resume ends it before its time": {
			duration: tenMinutes, call: executors.Call{Now: now, Recorded: executors.Recorded{ResumeAt: &later, Resumed: true}},
			want: executors.Outcome{State: executors.Done, Reason: "Resumed", Message: "resumed"},
		},
		"a dry run says so and goes on": {
			duration: tenMinutes, call: executors.Call{Now: now, DryRun: true},
			want: executors.Outcome{State: executors.Done, Message: "dry run: would hold the run for 10m0s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.call.Properties = &plan.SuspendProperties{Duration: c.duration}
			if diff := cmp.Diff(c.want, Suspender{}.Pass(t.Context(), c.call)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
