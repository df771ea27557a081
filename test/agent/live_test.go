package agent_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"

	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// person sits at a terminal in which the built plugin runs.
type person struct {
	*lab
	cmd      *exec.Cmd
	keyboard *os.File
	screen   *vt.SafeEmulator
	shown    chan struct{} // closed when all that the plugin wrote is on the screen
	stderr   strings.Builder
}

// sits begins a command line at a terminal of a size. Standard error is kept apart.
func (l *lab) sits(columns, rows int, args ...string) *person {
	l.Helper()
	p := &person{lab: l, screen: vt.NewSafeEmulator(columns, rows), shown: make(chan struct{})}
	p.cmd = exec.CommandContext(l.ctx, world.plugin, append([]string{"-n", l.ns}, args...)...)
	p.cmd.Env = append(os.Environ(), "KUBECONFIG="+world.config, "TZ=Europe/Berlin", "TERM=xterm-256color")
	p.cmd.Stderr = &p.stderr
	var err error
	p.keyboard, err = pty.StartWithSize(p.cmd, &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)}) //nolint:gosec // sizes of a screen
	l.must(err)
	go func() {
		defer close(p.shown)
		_, _ = io.Copy(p.screen, p.keyboard) // ends with an error when the plugin has
	}()
	go func() { _, _ = io.Copy(p.keyboard, p.screen) }() // what a terminal answers to questions
	l.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.keyboard.Close()
	})
	return p
}

// sees waits until words are on the screen.
func (p *person) sees(words ...string) {
	p.Helper()
	p.eventually("the screen shows "+strings.Join(words, ", "), func() (bool, string) {
		text := p.screen.String()
		for _, w := range words {
			if !strings.Contains(text, w) {
				return false, "it has no " + w + ":\n" + text
			}
		}
		return true, ""
	})
}

func (p *person) types(keys string) {
	p.Helper()
	_, err := io.WriteString(p.keyboard, keys)
	p.must(err)
}

// resizes is what a window manager does.
func (p *person) resizes(columns, rows int) {
	p.Helper()
	p.screen.Resize(columns, rows)
	p.must(pty.Setsize(p.keyboard, &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)})) //nolint:gosec // sizes of a screen
}

// ends waits until the command has ended, and compares its exit code.
func (p *person) ends(code int) {
	p.Helper()
	err := p.cmd.Wait()
	<-p.shown
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.Fatal(err)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.Errorf("exit code %d, want %d\n%s\n%s", got, code, p.screen.String(), p.stderr.String())
	}
	if p.screen.IsAltScreen() {
		p.Error("it left the alternate screen on")
	}
}

func TestStatusIsWatchedAtATerminal(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("holds", holding)
	l.seen("holds")
	l.trigger("holds", "1")
	name := l.running("holds", "hold").run.Name

	p := l.sits(80, 24, "status", "-w")
	p.sees("> holds", "run "+name+" is suspended", "▶ hold", "suspend", "Running", "PLAN", "q quit")
	if !p.screen.IsAltScreen() {
		t.Error("it is not on the alternate screen")
	}
	p.types("/no such thing")
	p.sees("/no such thing")
	p.eventually("the filter leaves nothing", func() (bool, string) {
		return !strings.Contains(p.screen.String(), "suspend"), p.screen.String()
	})
	p.types("\x1b")
	p.sees("▶ hold")
	p.types("\r")
	p.sees("Plan:", "holds in namespace "+l.ns, "esc back", "▶ hold")
	p.types("s")
	p.sees("carry out 'kubectl maint skip holds --next 1'? [y/N]")
	p.types("n")
	p.sees("nothing was done")
	p.types("r")
	p.sees("resume plan/holds'? [y/N]")
	p.types("y")
	p.sees("plan/holds was not paused")
	p.resizes(20, 8)
	p.sees("Plan:")
	p.resizes(120, 30)
	p.sees("Plan:", "a approve")
	p.types("\x1b")
	p.sees("> holds", "PLAN")
	p.types("q")
	p.ends(0)
	p.sees("is suspended", "PLAN") // stays on the terminal
	l.expect(said{err: p.stderr.String()}, 0, "kubectl maint resume plan/holds: plan/holds was not paused")

	p = l.sits(80, 24, "status", name, "-w")
	p.sees("▶ hold")
	p.types("r")
	p.sees("resume run/" + name + "'? [y/N]")
	p.types("y")
	p.sees("run/"+name+" resumed", "Succeeded")
	p.types("\x03")
	p.ends(130)
	if r := l.ended("holds", 1)[0]; r.journal.Phase != run.Succeeded {
		t.Errorf("%s: %s", r.journal.Phase, r.journal.Message)
	}
}

func TestARunIsWaitedForAtATerminal(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("rests", "steps: [{name: rest, type: suspend, properties: {duration: 3s}}]\n")
	l.plan("holds", holding)
	l.seen("rests")
	l.seen("holds")

	p := l.sits(80, 24, "trigger", "rests", "--wait")
	p.sees("▶ rest", "Running")
	if !p.screen.IsAltScreen() {
		t.Error("it is not on the alternate screen")
	}
	p.ends(0)
	p.sees(l.runs("rests")[0].run.Name, "Succeeded after", "✓ rest")

	p = l.sits(80, 24, "trigger", "holds", "--wait")
	p.sees("▶ hold")
	p.types("q")
	p.ends(130)
	l.expect(said{err: p.stderr.String()}, 0, "run "+l.runs("holds")[0].run.Name+" goes on without you")
	p.sees("▶ hold")

	off := l.sits(80, 24, "trigger", "rests", "--wait") // of the same terminal, without its skills
	off.ends(0)
}

func TestARunIsApprovedByAKey(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("asks", "requiresApproval: true\nsteps: [{name: rest, type: suspend, properties: {duration: 1s}}]\n")
	l.seen("asks")
	p := l.sits(80, 24, "trigger", "asks", "--wait")
	p.sees("waits for approval")
	name := l.runs("asks")[0].run.Name
	p.types("a")
	p.sees("carry out 'kubectl maint approve " + name + "'? [y/N]")
	p.types("x")
	p.sees("nothing was done")
	if r := l.runs("asks")[0]; r.journal.Approved != nil || r.journal.Phase != run.Pending {
		t.Fatalf("a no approved it: %+v", r.journal)
	}
	p.types("ay")
	p.ends(0)
	p.sees("Succeeded after", "✓ rest")
	l.expect(said{err: p.stderr.String()}, 0, "kubectl maint approve "+name+": run/"+name+" approved")
}
