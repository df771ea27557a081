package live_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/terminal"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// desk is a terminal at which a command line runs, on a cluster in memory.
type desk struct {
	*cmdtest.Terminal
	cluster *cmdtest.Cluster
	errOut  bytes.Buffer
	code    chan int
}

// sits begins a command line at a terminal of a size.
func sits(t *testing.T, columns, rows int, line string, objects ...runtime.Object) *desk {
	t.Helper()
	return sitsAs(t, columns, rows, func(*factory.Env) {}, line, objects...)
}

func sitsAs(t *testing.T, columns, rows int, edit func(*factory.Env), line string, objects ...runtime.Object) *desk {
	t.Helper()
	d := &desk{Terminal: cmdtest.NewTerminal(t, columns, rows), cluster: cmdtest.NewCluster(t, cmd.Run, objects...), code: make(chan int, 1)}
	mark := terminal.NewMark()
	env := factory.Env{
		IOStreams: genericiooptions.IOStreams{In: d.TTY, Out: terminal.NewWriter(d.TTY, mark), ErrOut: terminal.NewWriter(&d.errOut, mark)},
		Name:      "kubectl maint", Version: "v0.1.0", Now: cmdtest.Now, Zone: "Europe/Berlin", InTerminal: true, OutTerminal: true,
		Mark: mark, Color: true, Size: terminal.Size{Columns: columns}, Screen: &factory.Screen{In: d.TTY, Out: d.TTY},
	}
	edit(&env)
	go func() {
		d.code <- cmd.Run(t.Context(), factory.NewFor(env, d.cluster.Connected()), strings.Fields(line))
	}()
	return d
}

// ends waits for the exit code, and what stands on the usual screen then.
func (d *desk) ends(code int, words ...string) {
	d.Helper()
	select {
	case got := <-d.code:
		if got != code {
			d.Errorf("exit code %d, want %d\n%s", got, code, d.errOut.String())
		}
	case <-time.After(time.Minute):
		text, _ := d.Screen()
		d.Fatalf("it does not end:\n%s", text)
	}
	d.IsBack(words...)
}

// asking is plan orders with a run at work that asks, and a quiet plan.
func asking() []runtime.Object {
	r := cmdtest.RunOf(cmdtest.Record("call", "webhook", run.StepSucceeded), cmdtest.Asking("sure"))
	return []runtime.Object{
		cmdtest.Agent(), cmdtest.Plan("orders", "", cmdtest.Noting(annotations.StatusPhase, "Running")), cmdtest.Plan("quiet", "", cmdtest.Noting(annotations.StatusPhase, "Idle")),
		runOfOrders(r),
	}
}

func runOfOrders(r view.Run) *corev1.ConfigMap { return cmdtest.RunObject(r, "maint-run-orders-a") }

func TestStatusOnTheWholeScreen(t *testing.T) {
	d := sits(t, 80, 24, "status -w", asking()...)
	d.Sees("maint-run-orders-a", "▶ sure", "approval", "Running", "PLAN", "quiet", "q quit")
	if _, whole := d.Screen(); !whole {
		t.Error("it is not on the alternate screen")
	}
	d.Types("/quiet\r")
	d.Sees("!▶ sure", "> quiet")
	d.Types("\r")
	d.Sees("Plan:", "esc back")
	d.Types("s")
	d.Sees("run 'kubectl maint skip quiet --next 1'? [y/N]")
	d.Types("n")
	d.Sees("nothing was done")
	d.Types("\x1b")
	d.Sees("> quiet")
	d.Types("\x1b")
	d.Sees("▶ sure")
	d.Types("q")
	d.ends(0, "▶ sure", "quiet")
}

// A command that is proposed means what the view shows, wherever it is pasted.
func TestAProposedCommandNamesTheNamespaceAndTheClusterThatWereGiven(t *testing.T) {
	elsewhere := func(e *factory.Env) { e.Elsewhere, e.ClusterFlags = "shop", "--context prod" }
	d := sitsAs(t, 120, 24, elsewhere, "status -w", asking()...)
	d.Sees("quiet")
	d.Types("/quiet\r")
	d.Sees("> quiet")
	d.Types("s")
	d.Sees("run 'kubectl maint --context prod -n shop skip quiet --next 1'? [y/N]")
	d.Types("y")
	d.Sees("error: plan quiet has no schedule")
	d.Types("q")
	d.ends(0, "quiet")
	if said := d.errOut.String(); !strings.Contains(said, "kubectl maint --context prod -n shop skip quiet --next 1: ") {
		t.Errorf("%q", said)
	}
}

func TestAKeyWritesWhatTheCommandWrites(t *testing.T) {
	d := sits(t, 80, 24, "status run/maint-run-orders-a -w", asking()...)
	d.Sees("▶ sure")
	d.Types("a")
	d.Sees("run 'kubectl maint approve maint-run-orders-a/sure'? [y/N]")
	if v := d.cluster.Notes("orders")[annotations.Approve]; v != "" {
		t.Fatalf("it is approved before anybody said yes: %s", v)
	}
	d.Types("y")
	d.Sees("run/maint-run-orders-a/sure approved")
	if v := d.cluster.Notes("orders")[annotations.Approve]; v != "maint-run-orders-a/sure" {
		t.Errorf("approved: %q", v)
	}
	d.cluster.Forbids("patch", "configmaps", "")
	d.Types("r")
	d.Sees("nothing of it waits to be resumed")
	d.Types("s")
	d.Sees("[y/N]")
	d.Types("y")
	d.Sees("error: ")
	d.Types("\x03")
	d.ends(130, "▶ sure")
	if said := d.errOut.String(); !strings.Contains(said, "kubectl maint approve maint-run-orders-a/sure: run/maint-run-orders-a/sure approved\n") {
		t.Errorf("standard error: %s", said)
	}
}

func TestARunIsFollowedToItsEndOnTheWholeScreen(t *testing.T) {
	d := sits(t, 80, 24, "wait maint-run-orders-a", asking()...)
	d.Sees("▶ sure")
	done := cmdtest.RunOf(cmdtest.Record("call", "webhook", run.StepSucceeded), cmdtest.Record("sure", "approval", run.StepFailed))
	done.Journal.Phase, done.Journal.Message, done.Journal.FinishedAt = run.Failed, "no \x1b[2Jdisk", cmdtest.Before(0)
	d.cluster.Stores("configmaps", runOfOrders(done))
	d.ends(4, "Failed after", "no ^[[2Jdisk", "✗ sure")
	if said := d.errOut.String(); said != "error: run maint-run-orders-a ended Failed: no ^[[2Jdisk\n" {
		t.Errorf("%q", said)
	}
}

// What a dry run would have changed stays on the terminal when the screen is given back.
func TestADryRunShowsWhatItWouldChange(t *testing.T) {
	d := sits(t, 80, 24, "trigger orders --dry-run --wait", cmdtest.Agent(), cmdtest.Plan("orders", ""))
	d.Sees("waiting for run maint-run-orders-")
	token := d.cluster.Notes("orders")[annotations.Trigger]
	done := cmdtest.RunOf(cmdtest.Record("call", "webhook", run.StepSucceeded, cmdtest.Outputs(map[string]any{"difference": "-replicas: 3\n+replicas: 0\n"})))
	done.Run.Request.DryRun, done.Journal.Phase, done.Journal.FinishedAt = true, run.Succeeded, cmdtest.Before(0)
	d.cluster.Creates(cmdtest.RunObject(done, annotations.RunName("orders", "u-orders", run.Request{Kind: run.ByToken, Token: token})))
	d.ends(0, "Succeeded", "Would change:", "step call:", "-replicas: 3", "+replicas: 0")
}

func TestWhoLeavesAWaitIsToldThatItGoesOn(t *testing.T) {
	d := sits(t, 40, 12, "wait maint-run-orders-a", asking()...)
	d.Sees("▶ sure")
	d.Types("q")
	d.ends(130, "sure")
	if said := d.errOut.String(); !strings.Contains(said, "run maint-run-orders-a goes on without you") {
		t.Error(said)
	}
}

func TestWhatIsNotThereTakesNoScreen(t *testing.T) {
	d := sits(t, 80, 24, "status nowhere -w", asking()...)
	d.ends(1)
	if said := d.errOut.String(); !strings.Contains(said, `"nowhere"`) {
		t.Error(said)
	}
	if text, _ := d.Screen(); strings.TrimSpace(text) != "" {
		t.Errorf("%q", text)
	}
}
