package logs_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// stored is a run of plan orders as its object.
func stored(edit func(*view.Run), records ...run.Record) *corev1.ConfigMap {
	r := cmdtest.RunOf(records...)
	r.Run.Spec.Steps = []plan.Step{{Name: "dump", Type: "webhook"}, {Name: "roll", Type: plan.TypeForEach, Properties: map[string]any{"steps": []any{map[string]any{"name": "inner", "type": "webhook"}}}}}
	if edit != nil {
		edit(&r)
	}
	return cmdtest.RunObject(r, "maint-run-orders-a")
}

func ends(phase run.Phase, message string) func(*view.Run) {
	return func(r *view.Run) {
		r.Journal.Phase, r.Journal.Message, r.Journal.FinishedAt = phase, message, cmdtest.Before(0)
	}
}

func world(list ...runtime.Object) []runtime.Object {
	return append(list, cmdtest.Plan("orders", ""), cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"))
}

func TestLogs(t *testing.T) {
	dumped := cmdtest.Record("dump", "webhook", run.StepSucceeded, cmdtest.Message("answered 200"))
	atWork := cmdtest.Record("dump", "webhook", run.StepRunning, cmdtest.Message("asks"))
	failed := cmdtest.Record("copy", "exec", run.StepFailed, cmdtest.Outputs(map[string]any{"stdout": "one\n", "stderr": "disk is full\n"}), func(rec *run.Record) {
		rec.Attempt, rec.StartedAt, rec.FinishedAt = 2, cmdtest.Before(30*time.Second), cmdtest.Before(20*time.Second)
	})
	const dumpedEntry = `{"apiVersion":"maint.dev/v1alpha1","attempt":1,"finishedAt":"2026-11-20T23:59:05Z","kind":"LogEntry","namespace":"shop","phase":"Succeeded","plan":"orders","run":"maint-run-orders-a","startedAt":"2026-11-20T23:59:00Z","step":"dump","text":"answered 200","type":"webhook"}`
	const failedEntry = `{"apiVersion":"maint.dev/v1alpha1","attempt":2,"finishedAt":"2026-11-20T23:59:40Z","kind":"LogEntry","namespace":"shop","phase":"Failed","plan":"orders","run":"maint-run-orders-a","startedAt":"2026-11-20T23:59:30Z","step":"copy","text":"one\ndisk is full","type":"exec"}`
	const done = "==> dump (webhook, Succeeded)\nanswered 200\n"
	for _, c := range []struct {
		name, line string
		world      []runtime.Object
		code       int
		out, err   string
	}{
		{name: "of a run", line: "logs orders-a", world: world(stored(nil, dumped)), out: done},
		{name: "of the newest run of a plan", line: "logs plan/orders", world: world(stored(nil, dumped)), out: done, err: "run maint-run-orders-a is the newest of plan orders\n"},
		{name: "a step at work says how it stands", line: "logs orders-a", world: world(stored(nil, atWork)), out: "==> dump (webhook, Running)\nasks\n"},
		{name: "that a run failed is no failure of its log", line: "logs orders-a", world: world(stored(ends(run.Failed, "no disk"), dumped)), out: done},
		{
			name: "no step has begun", line: "logs orders-a", world: world(stored(func(r *view.Run) {
				r.Journal.Phase, r.Journal.StartedAt, r.Journal.Waiting = run.Pending, nil, run.WaitQueue
			}, cmdtest.Record("dump", "webhook", run.StepPending))),
			err: "no step has begun: the run is Pending, waits for queue\n",
		},
		{name: "one step by its name", line: "logs orders-a --step dump", world: world(stored(nil, dumped, cmdtest.Record("other", "webhook", run.StepSucceeded))), out: done},
		{name: "a step that the run has not", line: "logs orders-a --step drop", world: world(stored(nil, dumped, cmdtest.Record("roll", plan.TypeForEach, run.StepPending))), code: 1, err: "error: run maint-run-orders-a has no step \"drop\"; it has dump, roll\n"},
		{name: "a step of a loop's items, none of which is at work", line: "logs orders-a --step inner", world: world(stored(nil, dumped))},
		{name: "no run", line: "logs ghost", world: world(), code: 1, err: "error: there is no run or plan \"ghost\" in namespace shop; see 'kubectl maint list runs'\n"},
		{name: "no name", line: "logs", code: 2, err: "error: RUN is missing; --help shows examples\n"},
		{name: "an unknown format", line: "logs orders-a -o wide", code: 2, err: "error: -o must be json, yaml, name, jsonpath=…, custom-columns=… or go-template=…, is \"wide\"\n"},
		{
			name: "for scripts, a list", line: "logs orders-a -o json", world: world(stored(nil, dumped, failed)),
			out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[` + dumpedEntry + `,` + failedEntry + `],"kind":"LogEntryList"}`),
		},
		{name: "steps by name", line: "logs orders-a -o name", world: world(stored(nil, dumped, failed)), out: "dump\ncopy\n"},
		{name: "in columns", line: "logs plan/orders -o custom-columns=STEP:.step,TEXT:.text", world: world(stored(nil, dumped)), out: "STEP   TEXT\ndump   answered 200\n", err: "run maint-run-orders-a is the newest of plan orders\n"},
		{name: "messages for scripts keep their instants", line: "logs orders-a -o jsonpath={.items[0].text}", world: world(stored(nil, cmdtest.Record("dump", "webhook", run.StepRunning, cmdtest.Message("waits until 2026-11-21T01:00:00Z")))), out: "waits until 2026-11-21T01:00:00Z"},
		{
			name: "no step has begun, for scripts", line: "logs orders-a -o json", world: world(stored(func(r *view.Run) {
				r.Journal.Phase, r.Journal.StartedAt, r.Journal.Waiting = run.Pending, nil, run.WaitQueue
			}, cmdtest.Record("dump", "webhook", run.StepPending))),
			out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[],"kind":"LogEntryList"}`), err: "no step has begun: the run is Pending, waits for queue\n",
		},
		{name: "followed for scripts, an object a line", line: "logs orders-a -f -o json", world: world(stored(ends(run.Failed, "no disk"), dumped, failed)), code: 4, out: dumpedEntry + "\n" + failedEntry + "\n", err: "error: run maint-run-orders-a ended Failed: no disk\n"},
		{name: "followed in columns, one line of headers", line: "logs orders-a -f -o custom-columns=STEP:.step", world: world(stored(ends(run.Succeeded, "done"), dumped, failed)), out: "STEP\ndump\ncopy\n"},
		{name: "followed to an end that was", line: "logs orders-a -f", world: world(stored(ends(run.Succeeded, "done"), dumped)), out: done},
		{name: "followed to an end that failed", line: "logs orders-a -f", world: world(stored(ends(run.Failed, "no disk"), dumped)), code: 4, out: done, err: "error: run maint-run-orders-a ended Failed: no disk\n"},
		{name: "followed to an end without a start", line: "logs orders-a -f", world: world(stored(func(r *view.Run) { ends(run.Aborted, "by jane")(r); r.Journal.StartedAt = nil }, cmdtest.Record("dump", "webhook", run.StepSkipped))), code: 3, err: "error: run maint-run-orders-a did not start: by jane\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, c.world...)
			o.Line(c.line).Is(t, cmdtest.Printed{Code: c.code, Out: c.out, Err: c.err})
		})
	}
}

// What is followed ends with what it follows, and says each step once, when it has ended.
func TestLogsAreFollowed(t *testing.T) {
	first := cmdtest.Record("dump", "webhook", run.StepSucceeded, cmdtest.Message("answered 200"))
	second := func(phase run.StepPhase, attempt int, message string) run.Record {
		return cmdtest.Record("copy", "webhook", phase, cmdtest.Message(message), func(rec *run.Record) {
			rec.Attempt, rec.StartedAt = attempt, cmdtest.Before(30*time.Second)
		})
	}
	const told = "==> dump (webhook, Succeeded)\nanswered 200\n"
	stores := func(cm *corev1.ConfigMap) func(*cmdtest.Cluster) {
		return func(o *cmdtest.Cluster) { o.Stores("configmaps", cm) }
	}
	for _, c := range []struct {
		name     string
		then     []func(*cmdtest.Cluster) // a second after one another
		code     int
		out, err string
	}{
		{
			name: "to its end", out: told + "\n==> copy (webhook, Succeeded)\nanswered 201\n",
			then: []func(*cmdtest.Cluster){stores(stored(nil, first, second(run.StepRunning, 1, "asks"))), stores(stored(ends(run.Succeeded, "done"), first, second(run.StepSucceeded, 1, "answered 201")))},
		},
		{
			name: "each attempt that fails", out: told + "\n==> copy (webhook, Failed)\nanswered 500\nanswered 502\n", code: 4, err: "error: run maint-run-orders-a ended Failed: copy failed\n",
			then: []func(*cmdtest.Cluster){stores(stored(nil, first, second(run.StepFailed, 1, "answered 500"))), stores(stored(nil, first, second(run.StepRunning, 2, "asks"))), stores(stored(ends(run.Failed, "copy failed"), first, second(run.StepFailed, 2, "answered 502")))},
		},
		{name: "until it is no longer kept", out: told, code: 1, err: "error: run maint-run-orders-a is no longer kept\n", then: []func(*cmdtest.Cluster){func(o *cmdtest.Cluster) { o.Deletes("configmaps", "maint-run-orders-a") }}},
		{name: "until somebody interrupts it", out: told, code: 130, err: "error: interrupted: run maint-run-orders-a goes on without you\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, interrupt := context.WithTimeout(t.Context(), time.Minute)
				defer interrupt()
				o := cmdtest.NewCluster(t, cmd.Run, world(stored(nil, first, cmdtest.Record("copy", "webhook", run.StepPending)))...)
				o.Ctx = ctx
				o.Told(map[string]func(){"dump": func() {
					for _, then := range c.then {
						cmdtest.Later(func() { then(o) })()
					}
				}})
				o.Line("logs orders-a -f").Is(t, cmdtest.Printed{Code: c.code, Out: c.out, Err: c.err})
			})
		})
	}
}
