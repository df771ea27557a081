package cmdtest

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Person is a person at a terminal in which a program runs.
type Person struct {
	*Terminal
	Stderr strings.Builder // separate from the screen
	cmd    *exec.Cmd
}

// AtTerminal starts a program at a terminal of a given size.
func AtTerminal(t *testing.T, cmd *exec.Cmd, columns, rows int) *Person {
	t.Helper()
	p := &Person{Terminal: NewTerminal(t, columns, rows), cmd: cmd}
	cmd.Env = append(os.Environ(), "TZ=Europe/Berlin", "TERM=xterm-256color")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, p.TTY, &p.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // so that it gets window sizes and Ctrl-C
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.stuck = p.goroutines
	return p
}

// goroutines ends the program, and is what it wrote to standard error, its goroutines among it.
func (p *Person) goroutines() string {
	if err := p.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		return err.Error() + "\n" + p.Stderr.String()
	}
	_ = p.cmd.Wait() // it was killed
	return p.Stderr.String()
}

// Ends waits until the program has ended, and compares its exit code and the normal screen.
func (p *Person) Ends(code int, words ...string) {
	p.Helper()
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.Fatal(err)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		text, _ := p.Screen()
		p.Errorf("exit code %d, want %d\n%s\n%s", got, code, text, p.Stderr.String())
	}
	p.IsBack(words...)
}

// TakesTheScreen fails the test unless the program uses the alternate screen.
func (p *Person) TakesTheScreen() {
	p.Helper()
	if _, whole := p.Screen(); !whole {
		p.Error("it is not on the alternate screen")
	}
}
