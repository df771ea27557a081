package harness

import (
	"os/exec"
	"syscall"
)

// dieWithParent lets no agent outlive the test that started it.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
