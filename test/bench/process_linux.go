package main

import (
	"os/exec"
	"syscall"
)

// dieWithParent also keeps a Ctrl-C at the terminal from reaching the child
// before us.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
