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
	Stderr strings.Builder // separate from the screen; to be read once the program has ended
	cmd    *exec.Cmd
	ended  chan struct{} // closed once the program has ended
	err    error         // how it did
}

// AtTerminal starts a program at a terminal of a given size.
func AtTerminal(t *testing.T, cmd *exec.Cmd, columns, rows int) *Person {
	t.Helper()
	p := &Person{Terminal: NewTerminal(t, columns, rows), cmd: cmd, ended: make(chan struct{})}
	cmd.Env = append(os.Environ(), "TZ=Europe/Berlin", "TERM=xterm-256color")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, p.TTY, &p.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // so that it gets window sizes and Ctrl-C
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.over, p.stuck = p.ended, p.goroutines
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p
}

// goroutines ends the program, and is how it ended and what it wrote to standard error, its goroutines among it.
func (p *Person) goroutines() string {
	_ = p.cmd.Process.Signal(syscall.SIGQUIT) // it may have ended
	<-p.ended
	return p.cmd.ProcessState.String() + "\n" + p.Stderr.String()
}

// Ends waits until the program has ended, and compares its exit code and the normal screen.
func (p *Person) Ends(code int, words ...string) {
	p.Helper()
	<-p.ended
	if p.err != nil && !errors.As(p.err, new(*exec.ExitError)) {
		p.Fatal(p.err)
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
