package why

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func aView() print.Printer {
	return print.Printer{Name: "kubectl maint", Now: cmdtest.Now(), Zone: "Europe/Berlin"}
}

func TestWhyNamesTheCommandThatAnswers(t *testing.T) {
	held := func(r view.Run, text string) view.Run {
		r.Journal.HeldSince, r.Journal.Message = cmdtest.Before(time.Minute), text
		return r
	}
	slot := cmdtest.Now()
	approvedThen := cmdtest.PendingRun(func(r *view.Run) {
		r.Run.Request.Slot, r.Journal.Approved = &slot, &intent.Actor{Name: "jane"}
		r.Journal.Waiting, r.Journal.Message = run.WaitWindow, "waits for its window"
	})
	retried := cmdtest.RunOf(cmdtest.Record("a", "webhook", run.StepPending))
	retried.Journal.RetryAt, retried.Journal.Message = cmdtest.After(time.Minute), "retry 1 of 3: step a failed: no"
	waiting := cmdtest.Record("roll", plan.TypeForEachNode, run.StepRunning)
	unfit := waiting
	unfit.Message = "1 of 4 are done, 3 left; the next would take about 20m0s, and the window closes at 2026-11-21T00:15:00Z"
	waiting.Message = "1 of 4 are done, 3 left; waits: enough of its nodes are away already: n3"
	ends := func(rec *run.Record) { rec.ResumeAt = cmdtest.After(29 * time.Minute) }
	drifts := func(rec *run.Record) {
		rec.Drift = &run.Drift{Object: "Deployment/web", Field: "spec.replicas", Want: "1", Value: "2", SeenAt: cmdtest.Now()}
	}
	down, hold := cmdtest.Record("down", "scale", run.StepSucceeded, drifts), cmdtest.Record("hold", "suspend", run.StepRunning, ends)
	told := cmdtest.RunOf(down, cmdtest.Record("call", "webhook", run.StepRunning))
	told.Run.Spec.OnDrift = plan.DriftIgnore
	over := cmdtest.Record("hold", "suspend", run.StepRunning, func(rec *run.Record) { rec.ResumeAt = new(cmdtest.Now()) })
	resumed := cmdtest.Record("hold", "suspend", run.StepRunning, ends, func(rec *run.Record) { rec.Resumed = &intent.Actor{Name: "jane"} })
	const changed = "after step down somebody changed spec.replicas of Deployment/web from 1 to 2 at Sat 2026-11-21 01:00 CET"
	for _, c := range []struct {
		name, want string
		run        view.Run
	}{
		{"a run that waits for approval", "run maint-run-p-x will wait for approval → 'kubectl maint approve maint-run-p-x' or 'kubectl maint reject maint-run-p-x'", cmdtest.PendingRun()},
		{"an approved run has met its deadline", "run maint-run-p-x waits for its window → it starts by itself then", approvedThen},
		{"a step that asks", "step g/ask of run maint-run-p-x waits for approval → 'kubectl maint approve maint-run-p-x/g/ask' or 'kubectl maint reject maint-run-p-x/g/ask'", held(cmdtest.AskingOf(cmdtest.Asking("g/ask")), "waits for approval: kubectl maint approve maint-run-p-x")},
		{"a run that its window holds", "run maint-run-p-x is held between two steps: waits for its window → it goes on by itself then; 'kubectl maint abort maint-run-p-x' ends it", held(cmdtest.RunOf(cmdtest.Record("a", "webhook", run.StepPending)), "waits for its window")},
		{"a run that is to be tried again", "run maint-run-p-x is to be tried again: retry 1 of 3: step a failed: no → it begins by itself at Sat 2026-11-21 01:01 CET (2026-11-21T00:01:00Z)", retried},
		{"a suspend without an end", "run maint-run-p-x is suspended at step hold → 'kubectl maint resume maint-run-p-x'", cmdtest.RunOf(cmdtest.Record("hold", "suspend", run.StepRunning))},
		{"a suspend with an end", "run maint-run-p-x is suspended at step hold until Sat 2026-11-21 01:29 CET (2026-11-21T00:29:00Z), in 29m0s → it goes on by itself then; 'kubectl maint resume maint-run-p-x' ends the step before", cmdtest.RunOf(hold)},
		{"a suspend whose time is over", "", cmdtest.RunOf(over)},
		{"a suspend that somebody has resumed", "", cmdtest.RunOf(resumed)},
		{"a drift while a step is at work", "run maint-run-p-x begins no further step: " + changed + " → it goes on when that is as the step left it; 'kubectl maint resume maint-run-p-x' accepts the change; 'kubectl maint abort maint-run-p-x' ends it", cmdtest.RunOf(down, cmdtest.Record("call", "webhook", run.StepRunning))},
		{"a drift that is only told", "", told},
		{"a drift in a suspend", "run maint-run-p-x begins no further step: " + changed + " → it goes on when that is as the step left it; 'kubectl maint resume maint-run-p-x' accepts the change, and ends step hold, 29m0s before its time; 'kubectl maint abort maint-run-p-x' ends it\n" +
			"run maint-run-p-x is suspended at step hold until Sat 2026-11-21 01:29 CET (2026-11-21T00:29:00Z), in 29m0s → it goes on by itself then; 'kubectl maint resume maint-run-p-x' ends the step before", cmdtest.RunOf(down, hold)},
		{"a rollout whose next node does not fit in what is left of the window", "step roll of run maint-run-p-x waits: 1 of 4 are done, 3 left; the next would take about 20m0s, and the window closes at Sat 2026-11-21 01:15 CET → it goes on by itself in the next window; a longer window, or a smaller estimate in the plan, lets later runs begin more nodes", cmdtest.RunOf(unfit)},
		{"a rollout that waits for nodes", "step roll of run maint-run-p-x: 1 of 4 are done, 3 left; waits: enough of its nodes are away already: n3 → it goes on by itself when a node is free; 'kubectl maint why NODE' says what keeps one", cmdtest.RunOf(waiting)},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &whyOptions{Factory: &factory.Factory{Env: factory.Env{Name: "kubectl maint", Now: cmdtest.Now}}}
			var got []string
			for _, found := range o.runObstacles(view.Plan{Active: []view.Run{c.run}}, aView()) {
				got = append(got, found.what+" → "+found.remedy)
			}
			if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
