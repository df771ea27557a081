package cluster

import "syscall"

// dieWithParent lets the kernel kill the child when the test process ends,
// also when it is killed or runs into the test timeout and cannot clean up.
// The group of its own keeps a Ctrl-C at the terminal from reaching the
// children before us.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
