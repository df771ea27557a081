package print

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestWhatOfAPlanNeedsSomebody(t *testing.T) {
	failed := &ledger.Ledger{
		Last:   &ledger.LastRun{Name: "maint-run-orders-a", Phase: run.Failed, EndedAt: *cmdtest.Before(22 * time.Hour)},
		Recent: []ledger.Entry{{Run: "maint-run-orders-a", Result: run.Ran, Outcome: &ledger.Outcome{Phase: run.Failed, Step: "dump", Message: "exit code 3"}}},
	}
	ended := func(name string, phase run.Phase, dry bool) ledger.Entry {
		return ledger.Entry{Run: name, Result: run.Ran, DryRun: dry, Outcome: &ledger.Outcome{Phase: phase, Step: "dump", Message: "of " + name}}
	}
	again := &ledger.Ledger{
		Last:   &ledger.LastRun{Name: "d", Phase: run.Failed, SuccessAt: cmdtest.Before(22 * time.Hour)},
		Recent: []ledger.Entry{ended("z", run.Failed, false), ended("a", run.Succeeded, false), ended("b", run.Failed, false), ended("c", run.Aborted, false), ended("d", run.Failed, false), ended("e", run.Succeeded, true)},
	}
	never := &ledger.Ledger{Last: &ledger.LastRun{Name: "d", Phase: run.Failed}, Recent: again.Recent[2:5]}
	aborted := &ledger.Ledger{Last: &ledger.LastRun{Name: "c", Phase: run.Aborted}, Recent: []ledger.Entry{ended("b", run.Failed, false), ended("c", run.Aborted, false)}}
	mended := &ledger.Ledger{Last: &ledger.LastRun{Name: "c", Phase: run.Aborted}, Recent: []ledger.Entry{ended("a", run.Failed, false), ended("b", run.Succeeded, false), ended("c", run.Aborted, false)}}
	uncleaned := &ledger.Ledger{Last: &ledger.LastRun{Name: "maint-run-orders-0", Phase: run.Aborted}, Left: []ledger.Leftover{{Run: "maint-run-orders-0", Step: "finally/up", Message: "answered 404", Cleanup: true}}}
	pruned := &ledger.Ledger{Last: &ledger.LastRun{Name: "maint-run-orders-a", Phase: run.Failed}, Left: []ledger.Leftover{{Run: "maint-run-orders-0", Step: "down", Message: "forbidden"}}}
	signed := func(key, value, reason string, more ...string) []string {
		return append([]string{key, value, annotations.Actor(key), "jane", annotations.Reason(key), reason}, more...)
	}
	live := func(edit func(*view.Run), records ...run.Record) view.Run {
		r := cmdtest.RunOf(records...)
		edit(&r)
		return r
	}
	as := func(*view.Run) {}
	drift := cmdtest.Record("down", "scale", run.StepSucceeded)
	drift.Drift = &run.Drift{Object: "Deployment/orders", Field: "spec.replicas", Want: "0", Value: "3", Manager: "helm", SeenAt: cmdtest.Now()}
	hold := cmdtest.Record("hold", "suspend", run.StepRunning, func(rec *run.Record) { rec.ResumeAt = cmdtest.After(29 * time.Minute) })
	waits := cmdtest.Record("call", "webhook", run.StepRunning)
	waits.Waits = "it may not"
	drain := cmdtest.Record("drain", "drain", run.StepRunning, cmdtest.Message("0 of 2 pods have left; a budget"))
	drain.Memory = []byte(`{"nodes":[{"name":"a","blocked":true,"why":"budget shop/web"},{"name":"b","blocked":true,"yielded":true},{"name":"c","blocked":true,"drained":true},{"name":"d"}],"elsewhere":[{"name":"e","blocked":true}]}`)
	for name, c := range map[string]struct {
		plan view.Plan
		want []string
	}{
		"drains that no waiting ends": {standing(daily, nil, nil, live(as, drain)), []string{
			"orders run maint-run-p-x, step drain: the drain of node a is blocked until somebody changes something: budget shop/web → 'kubectl maint drain a --plan'",
			"orders run maint-run-p-x, step drain: the drain of node e is blocked until somebody changes something: 0 of 2 pods have left; a budget → 'kubectl maint describe maint-run-p-x'",
		}},
		"nothing":                               {standing(daily, nil, nil), nil},
		"its text":                              {standing("startDeadline: soon", nil, nil), []string{`orders is invalid, so it starts nothing: line 1: spec.startDeadline: "soon" is no duration: write it like 90s, 15m, 1h30m or 30d → 'kubectl maint describe orders'`}},
		"what it waits for":                     {standing(daily, []string{annotations.StatusConditions, `[{"type":"Ready","status":"False","reason":"Policy","message":"policy night is not there"}]`}, nil), []string{"orders is not Ready: policy night is not there → 'kubectl maint doctor orders'"}},
		"a run that does not count":             {standing(daily, []string{annotations.StatusConditions, `[{"type":"RunStuck","status":"True","reason":"Signature","message":"run r is left alone: it was changed; sign it with 'kubectl maint -n shop adopt run/r'"}]`}, nil), []string{"orders run r is left alone: it was changed; sign it with 'kubectl maint -n shop adopt run/r' → 'kubectl maint -n shop adopt run/r'"}},
		"a run that is refused":                 {standing(daily, []string{annotations.StatusConditions, `[{"type":"RunStuck","status":"True","reason":"Refused","message":"the run is immutable"}]`}, nil), []string{"orders the run is immutable → 'kubectl maint why orders'"}},
		"a failure":                             {standing(daily, nil, failed), []string{"orders its last run maint-run-orders-a failed Fri 2026-11-20 03:00 CET (2026-11-20T02:00:00Z), 22h0m ago, in step dump: exit code 3 → 'kubectl maint describe maint-run-orders-a'"}},
		"a failure again":                       {standing(daily, nil, again), []string{"orders its last run d failed, in step dump: of d; 2 runs have failed since the last success → 'kubectl maint describe d'"}},
		"no success ever":                       {standing(daily, nil, never), []string{"orders its last run d failed, in step dump: of d; 2 runs have failed, and none has succeeded → 'kubectl maint describe d'"}},
		"a failure, and one aborted":            {standing(daily, nil, aborted), []string{"orders run b failed, in step dump: of b; no run has succeeded since → 'kubectl maint describe b'"}},
		"a failure, mended since":               {standing(daily, nil, mended), nil},
		"a failure, retried":                    {standing(daily, nil, failed, cmdtest.RunOf()), nil},
		"a failure, while a dry run is at work": {standing(daily, nil, failed, live(func(r *view.Run) { r.Run.Request.DryRun = true })), []string{"orders its last run maint-run-orders-a failed Fri 2026-11-20 03:00 CET (2026-11-20T02:00:00Z), 22h0m ago, in step dump: exit code 3 → 'kubectl maint describe maint-run-orders-a'"}},
		"a failure, while the next waits for its window": {standing(daily, nil, failed, live(func(r *view.Run) { r.Journal.Phase, r.Journal.Waiting = run.Pending, run.WaitWindow })), []string{"orders its last run maint-run-orders-a failed Fri 2026-11-20 03:00 CET (2026-11-20T02:00:00Z), 22h0m ago, in step dump: exit code 3 → 'kubectl maint describe maint-run-orders-a'"}},
		"a cleanup that failed":                          {standing(daily, nil, uncleaned), []string{"orders not cleaned up by run maint-run-orders-0, step finally/up: answered 404 → 'kubectl maint resume maint-run-orders-0'"}},
		"what a run left":                                {standing(daily, nil, pruned), []string{"orders its last run maint-run-orders-a failed → 'kubectl maint describe maint-run-orders-a'", "orders not put back by run maint-run-orders-0, step down: forbidden → 'kubectl maint resume maint-run-orders-0'"}},
		"a pause":                                        {standing(daily, signed(annotations.Pause, "true", "disks"), nil), []string{"orders is paused until resumed, by jane (unverified): disks → 'kubectl maint resume orders'"}},
		"a pause that is over":                           {standing(daily, signed(annotations.Pause, "2026-11-20T00:00:00Z", "disks"), nil), nil},
		"a freeze":                                       {standing(daily, signed(annotations.ChangeStrategy, "RestrictiveUntil", "launch", annotations.RestrictiveUntil, "2026-11-22T00:00:00Z"), nil), []string{"orders is frozen until Sun 2026-11-22 01:00 CET (2026-11-22T00:00:00Z), in 24h0m, by jane (unverified): launch → 'kubectl maint freeze orders --end'"}},
		"a freeze that is over":                          {standing(daily, signed(annotations.ChangeStrategy, "RestrictiveUntil", "launch", annotations.RestrictiveUntil, "2026-11-20T00:00:00Z"), nil), nil},
		"an approval of a run": {standing(daily, nil, nil, live(func(r *view.Run) {
			r.Journal.Phase, r.Journal.Waiting, r.Journal.Message = run.Pending, run.WaitApproval, "until noon"
		})), []string{"orders run maint-run-p-x waits for approval: until noon → 'kubectl maint approve maint-run-p-x' or 'kubectl maint reject maint-run-p-x'"}},
		"an approval of a run, whose message says so itself": {standing(daily, nil, nil, live(func(r *view.Run) {
			r.Journal.Phase, r.Journal.Waiting, r.Journal.Message = run.Pending, run.WaitApproval, "waits for approval until noon (kubectl maint approve maint-run-p-x)"
		})), []string{"orders run maint-run-p-x waits for approval until noon → 'kubectl maint approve maint-run-p-x' or 'kubectl maint reject maint-run-p-x'"}},
		"an approval of a run, whose message is the command": {standing(daily, nil, nil, live(func(r *view.Run) {
			r.Journal.Phase, r.Journal.Waiting, r.Journal.Message = run.Pending, run.WaitApproval, "waits for approval: kubectl maint approve maint-run-p-x"
		})), []string{"orders run maint-run-p-x waits for approval → 'kubectl maint approve maint-run-p-x' or 'kubectl maint reject maint-run-p-x'"}},
		"an approval of a run, whose command names its namespace": {standing(daily, nil, nil, live(func(r *view.Run) {
			r.Journal.Phase, r.Journal.Waiting, r.Journal.Message = run.Pending, run.WaitApproval, "waits for approval until noon ('kubectl maint -n shop approve maint-run-p-x')"
		})), []string{"orders run maint-run-p-x waits for approval until noon → 'kubectl maint approve maint-run-p-x' or 'kubectl maint reject maint-run-p-x'"}},
		"an approval of a run between its steps": {standing(daily, nil, nil, live(func(r *view.Run) {
			r.Journal.Phase, r.Journal.Waiting, r.Journal.Message = run.Pending, run.WaitApproval, "waits for approval: 'kubectl maint -n shop approve maint-run-p-x'"
		})), []string{"orders run maint-run-p-x waits for approval → 'kubectl maint approve maint-run-p-x' or 'kubectl maint reject maint-run-p-x'"}},
		"an approval of a step, whose message is the command":     {standing(daily, nil, nil, live(as, cmdtest.Record("ask", "approval", run.StepRunning, cmdtest.Message("waits for approval until noon: switch? ('kubectl maint -n shop approve maint-run-p-x/ask')")))), []string{"orders run maint-run-p-x asks in step ask: waits for approval until noon: switch? → 'kubectl maint approve maint-run-p-x/ask' or 'kubectl maint reject maint-run-p-x/ask'"}},
		"an approval of a step, whose command an old agent wrote": {standing(daily, nil, nil, live(as, cmdtest.Record("ask", "approval", run.StepRunning, cmdtest.Message("waits for approval until noon (kubectl maint approve maint-run-p-x/ask)")))), []string{"orders run maint-run-p-x asks in step ask: waits for approval until noon → 'kubectl maint approve maint-run-p-x/ask' or 'kubectl maint reject maint-run-p-x/ask'"}},
		"an approval of a step that has just begun":               {standing(daily, nil, nil, live(as, cmdtest.Record("ask", "approval", run.StepRunning))), []string{"orders run maint-run-p-x asks in step ask: waits for approval → 'kubectl maint approve maint-run-p-x/ask' or 'kubectl maint reject maint-run-p-x/ask'"}},
		"an approval of a step":                                   {standing(daily, nil, nil, live(as, cmdtest.Record("ask", "approval", run.StepRunning, cmdtest.Message("switch?")))), []string{"orders run maint-run-p-x asks in step ask: switch? → 'kubectl maint approve maint-run-p-x/ask' or 'kubectl maint reject maint-run-p-x/ask'"}},
		"a suspend of a run that no ledger knows":                 {standing(daily, []string{annotations.StatusConditions, `[{"type":"RunStuck","status":"True","message":"run maint-run-p-x cannot go on: it has no open entry in its plan's ledger, so it begins nothing; 'kubectl maint -n shop abort maint-run-p-x' puts back what it changed and ends it"}]`}, nil, live(as, cmdtest.Record("hold", "suspend", run.StepRunning))), []string{"orders run maint-run-p-x cannot go on: it has no open entry in its plan's ledger, so it begins nothing; 'kubectl maint -n shop abort maint-run-p-x' puts back what it changed and ends it → 'kubectl maint -n shop abort maint-run-p-x'"}},
		"a suspend":             {standing(daily, nil, nil, live(as, cmdtest.Record("hold", "suspend", run.StepRunning))), []string{"orders run maint-run-p-x is suspended in step hold → 'kubectl maint resume maint-run-p-x'"}},
		"a suspend with an end": {standing(daily, nil, nil, live(func(r *view.Run) { r.Journal.Steps[0].ResumeAt = new(cmdtest.Now()) }, cmdtest.Record("hold", "suspend", run.StepRunning))), nil},
		"a right":               {standing(daily, nil, nil, live(as, waits)), []string{"orders run maint-run-p-x, step call, waits: it may not → 'kubectl maint doctor p'"}},
		"a drift in a suspend": {standing(daily, nil, nil, live(as, drift, hold)), []string{
			"orders run maint-run-p-x begins no step after its suspend: after step down helm changed spec.replicas of Deployment/orders from 0 to 3 at Sat 2026-11-21 01:00 CET; whoever resumes it accepts that, and ends step hold, 29m0s before its time → 'kubectl maint resume maint-run-p-x'",
		}},
		"a drift that is only told": {standing(daily, nil, nil, live(func(r *view.Run) { r.Run.Spec.OnDrift = plan.DriftIgnore }, drift)), nil},
		"a drift":                   {standing(daily, nil, nil, live(as, drift)), []string{"orders run maint-run-p-x is held: after step down helm changed spec.replicas of Deployment/orders from 0 to 3 at Sat 2026-11-21 01:00 CET → 'kubectl maint resume maint-run-p-x'"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := offlineView()
			var got []string
			for _, n := range v.PlanNeeds(c.plan) {
				got = append(got, n.About+" "+n.What+" → "+n.Remedy)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if head := strings.Join(v.NeedLines(nil), ""); head != "" {
				t.Errorf("of nothing it says %q", head)
			}
		})
	}
}

func TestWhatIsSaidOfANeedBeginsNoOther(t *testing.T) {
	needs := []Need{{About: "a\nb", What: offlineView().AgentText("asks: rotate\n  shop/orders  asks\n    'kubectl maint x'"), Remedy: "'kubectl maint why a'"}}
	want := []string{"Needs somebody:", "  a; b  asks: rotate; shop/orders  asks; 'kubectl maint x'", "    'kubectl maint why a'", ""}
	if diff := cmp.Diff(want, offlineView().NeedLines(needs)); diff != "" {
		t.Error(diff)
	}
}

func TestWhichNodesNeedSomebody(t *testing.T) {
	var got []string
	for _, n := range offlineView().ClaimNeeds([]view.NodeClaim{
		{Node: "a", By: "gpu", Phase: "Draining"},
		{Node: "b", By: "gpu", Phase: "Draining", Blocked: true, Reason: "a budget"},
		{Node: "c", By: "gpu", Phase: "RequestorFailed"},
		{Node: "d", By: "plan shop/roll", Phase: "Yielded", Reason: "r"},
		{Node: "e", By: "gpu", Phase: "Ready"},
		{Node: "f", By: "plan shop/gone", Phase: "Cordoned", Reason: "it is gone", Gone: true, Uncordon: true},
		{Node: "g", By: "plan shop/gone", Phase: "Cordoned", Reason: "it is gone", Gone: true},
	}) {
		got = append(got, n.About+" "+n.What+" → "+n.Remedy)
	}
	if diff := cmp.Diff([]string{
		"node b Draining for gpu: a budget → 'kubectl maint why node/b'",
		"node c RequestorFailed for gpu → 'kubectl maint why node/c'",
		"node d Yielded for plan shop/roll: r → 'kubectl maint why node/d'",
		"node f is left cordoned for plan shop/gone, and it is gone → 'kubectl uncordon f'",
		"node g is left cordoned for plan shop/gone, and it is gone → 'kubectl maint why node/g'",
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
