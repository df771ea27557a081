//go:build !linux

package cluster

import "syscall"

// dieWithParent has nothing to offer outside Linux: a killed test leaves its
// processes behind there.
func dieWithParent() *syscall.SysProcAttr { return nil }
