//go:build linux

package kubelet

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// machine is a booted node: its first process.
type machine struct {
	cmd  *exec.Cmd
	gone chan struct{} // closed when every process of the node has ended
}

// boot starts the first process in PID and mount namespaces of its own. It
// ends with this process at the latest, and everything that it started, shims
// and containers too, ends with it: the kernel sees to both.
func boot(binary string, args []string, log string, lock *os.File) (*machine, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	m := &machine{cmd: exec.Command(binary, args...), gone: make(chan struct{})}
	m.cmd.Dir = "/"
	m.cmd.Stdout, m.cmd.Stderr = output, output
	m.cmd.ExtraFiles = []*os.File{lock}
	m.cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
		Setsid:     true, // a Ctrl-C at the terminal is for us alone
	}
	started := make(chan error)
	go func() {
		// "Die with your parent" means the parent thread: keep it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer output.Close()
		err := m.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		defer close(m.gone)
		_ = m.cmd.Wait() // what it said at the end is in its log
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	return m, nil
}

// kill ends every process of the node, as a power cut would, and returns when
// the last is gone.
func (m *machine) kill() {
	// An error means that it has ended already.
	_ = m.cmd.Process.Kill()
	<-m.gone
}

// tail is the end of a log.
func tail(file string, lines int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
