package main

import (
	"os/exec"
	"runtime"
)

// launch starts a process that ends with this one at the latest; what it
// returns is closed when the process is gone.
func launch(cmd *exec.Cmd) (<-chan struct{}, error) {
	dieWithParent(cmd)
	started, gone := make(chan error), make(chan struct{})
	go func() {
		// The kernel's "die with your parent" means the parent thread: this
		// goroutine keeps its own until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it is we who kill: the status says nothing
			close(gone)
		}
	}()
	return gone, <-started
}
