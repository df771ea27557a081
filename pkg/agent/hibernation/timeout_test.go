package hibernation

import (
	"context"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// deaf takes every request, and nothing comes of it.
type deaf struct{ *beds }

func (deaf) Shutdown(_ context.Context, _ executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	var out []executors.SleepResult
	for _, d := range due {
		out = append(out, executors.SleepResult{ID: d.ID})
	}
	return out
}

func TestATimeoutIsAFailureThatIsTriedAgain(t *testing.T) {
	night(t, oneToThree+"targets: [{name: apps, type: noop, parameters: {timeout: 5m}}]\n", func(w *world) {
		w.agent.Sleepers[hibernate.TypeNoop] = deaf{w.beds}
		w.until("01:04")
		if r := w.record("apps"); r == nil || r.State != hibernate.Running || r.Attempts != 0 {
			t.Errorf("before its time is over it is %+v", r)
		}
		w.until("01:06")
		const late = "it is not asleep after 5m0s: orders, web"
		if r := w.record("apps"); r == nil || r.State == hibernate.Asleep || r.Attempts != 1 || !strings.Contains(r.Message, late) {
			t.Errorf("after it, it is %+v", r)
		}
		w.wantEvent("Warning TargetFailed nights: shutdown of target apps failed (attempt 1): " + late)
		w.agent.Sleepers[hibernate.TypeNoop] = w.beds
		w.until("01:08")
		w.sleeps()
		w.is("Hibernated: 1 of 1 targets sleep")
	})
}
