package live_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
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
	*cmdtest.Cluster
	keyboard, tty *os.File
	errOut        bytes.Buffer
	code          chan int

	mu     sync.Mutex
	screen *vt.Emulator
}

// sits begins a command line at a terminal of a size.
func sits(t *testing.T, columns, rows int, line string, objects ...runtime.Object) *desk {
	t.Helper()
	keyboard, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{Cluster: cmdtest.NewCluster(t, cmd.Run, objects...), keyboard: keyboard, tty: tty, code: make(chan int, 1), screen: vt.NewEmulator(columns, rows)}
	if err := pty.Setsize(tty, &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)}); err != nil { //nolint:gosec // sizes of a screen
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(d, keyboard) }()
	go func() { _, _ = io.Copy(keyboard, d.screen) }() // what a terminal answers to questions
	ctx, stop := context.WithCancel(t.Context())
	d.Ctx = ctx
	mark := terminal.NewMark()
	env := factory.Env{
		IOStreams: genericiooptions.IOStreams{In: tty, Out: terminal.NewWriter(tty, mark), ErrOut: terminal.NewWriter(&d.errOut, mark)},
		Name:      "kubectl maint", Version: "v0.1.0", Now: cmdtest.Now, Zone: "Europe/Berlin", InTerminal: true, OutTerminal: true,
		Mark: mark, Color: true, Width: columns, Screen: &factory.Screen{In: tty, Out: tty},
	}
	go func() { d.code <- cmd.Run(ctx, factory.NewOn(env, d.Connected()), strings.Fields(line)) }()
	t.Cleanup(func() {
		stop()
		_ = tty.Close()
		_ = keyboard.Close()
	})
	return d
}

func (d *desk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.screen.Write(p)
}

func (d *desk) text() (text string, whole bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.screen.String(), d.screen.IsAltScreen()
}

// sees waits until words are on the screen, or are not where they begin with a !.
func (d *desk) sees(words ...string) {
	d.Helper()
	for _, w := range words {
		bare, not := strings.CutPrefix(w, "!")
		d.until(w, func(text string, _ bool) bool { return strings.Contains(text, bare) != not })
	}
}

// until waits until something holds of the screen.
func (d *desk) until(what string, holds func(text string, whole bool) bool) {
	d.Helper()
	limit := time.After(30 * time.Second)
	for {
		text, whole := d.text()
		if holds(text, whole) {
			return
		}
		select {
		case <-limit:
			d.Fatalf("%q is not so:\n%s\n%s", what, text, d.errOut.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (d *desk) types(keys string) {
	d.Helper()
	if _, err := io.WriteString(d.keyboard, keys); err != nil {
		d.Fatal(err)
	}
}

// ends waits for the exit code, and what stands on the usual screen then.
func (d *desk) ends(code int, words ...string) {
	d.Helper()
	select {
	case got := <-d.code:
		if got != code {
			d.Errorf("exit code %d, want %d", got, code)
		}
	case <-time.After(30 * time.Second):
		text, _ := d.text()
		d.Fatalf("it does not end:\n%s", text)
	}
	d.until("it left the alternate screen on", func(_ string, whole bool) bool { return !whole })
	d.sees(words...)
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
	d.sees("maint-run-orders-a", "▶ sure", "approval", "Running", "PLAN", "quiet", "q quit")
	if _, whole := d.text(); !whole {
		t.Error("it is not on the alternate screen")
	}
	d.types("/quiet\r")
	d.sees("!▶ sure", "> quiet")
	d.types("\r")
	d.sees("Plan:", "esc back")
	d.types("s")
	d.sees("carry out 'kubectl maint skip quiet --next 1'? [y/N]")
	d.types("n")
	d.sees("nothing was done")
	d.types("\x1b")
	d.sees("> quiet")
	d.types("\x1b")
	d.sees("▶ sure")
	d.types("q")
	d.ends(0, "▶ sure", "quiet")
}

func TestAKeyWritesWhatTheCommandWrites(t *testing.T) {
	d := sits(t, 80, 24, "status run/maint-run-orders-a -w", asking()...)
	d.sees("▶ sure")
	d.types("a")
	d.sees("carry out 'kubectl maint approve maint-run-orders-a/sure'? [y/N]")
	if v := d.Notes("orders")[annotations.Approve]; v != "" {
		t.Fatalf("it is approved before anybody said yes: %s", v)
	}
	d.types("y")
	d.sees("run/maint-run-orders-a/sure approved")
	if v := d.Notes("orders")[annotations.Approve]; v != "maint-run-orders-a/sure" {
		t.Errorf("approved: %q", v)
	}
	d.Forbids("patch", "configmaps", "")
	d.types("r")
	d.sees("[y/N]")
	d.types("y")
	d.sees("error: ")
	d.types("\x03")
	d.ends(130, "▶ sure")
	if said := d.errOut.String(); !strings.Contains(said, "kubectl maint approve maint-run-orders-a/sure: run/maint-run-orders-a/sure approved\n") {
		t.Errorf("standard error: %s", said)
	}
}

func TestARunIsFollowedToItsEndOnTheWholeScreen(t *testing.T) {
	d := sits(t, 80, 24, "wait maint-run-orders-a", asking()...)
	d.sees("▶ sure")
	done := cmdtest.RunOf(cmdtest.Record("call", "webhook", run.StepSucceeded), cmdtest.Record("sure", "approval", run.StepFailed))
	done.Journal.Phase, done.Journal.Message, done.Journal.FinishedAt = run.Failed, "no \x1b[2Jdisk", cmdtest.Before(0)
	d.Stores("configmaps", runOfOrders(done))
	d.ends(4, "Failed after", "no ^[[2Jdisk", "✗ sure")
	if said := d.errOut.String(); said != "error: run maint-run-orders-a ended Failed: no ^[[2Jdisk\n" {
		t.Errorf("%q", said)
	}
}

func TestWhoLeavesAWaitIsToldThatItGoesOn(t *testing.T) {
	d := sits(t, 40, 12, "wait maint-run-orders-a", asking()...)
	d.sees("▶ sure")
	d.types("q")
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
	if text, _ := d.text(); strings.TrimSpace(text) != "" {
		t.Errorf("%q", text)
	}
}
