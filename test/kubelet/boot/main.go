//go:build linux

// Command boot is the first process of a test's node, in PID and mount
// namespaces of its own, as systemd is the first of a real one: it mounts what
// a node has of its own, starts containerd and the kubelet, and reaps orphans.
//
//	boot DIR ASSETS [KUBELET-FLAG...]
//
// DIR is the node's disk, see package kubelet; ASSETS has the binaries. When
// boot ends, for any reason, the kernel ends every process of the node and
// with the last of them its mounts are gone.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

const (
	bin = "/run/node/bin" // ASSETS, on the node
	etc = "/run/node/etc" // DIR/etc, on the node

	socket = "/run/containerd/containerd.sock"
	// containerd answers after half a second; a guess for a busy machine.
	socketTimeout = time.Minute
)

func main() {
	if len(os.Args) < 3 {
		fail(errors.New("want DIR ASSETS [KUBELET-FLAG...]"))
	}
	fail(run(os.Args[1], os.Args[2], os.Args[3:]))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "boot:", err)
	os.Exit(1)
}

// run returns when the node cannot go on, with the reason.
func run(dir, assets string, kubeletFlags []string) error {
	// Whoever holds this open says that the node lives, and that is us alone.
	syscall.CloseOnExec(3)
	if os.Getpid() != 1 {
		return errors.New("not the first process of a PID namespace: package kubelet starts this")
	}
	if err := mounts(dir, assets); err != nil {
		return err
	}
	containerd, err := start("containerd", "--config="+etc+"/containerd.toml")
	if err != nil {
		return err
	}
	if err := waitForSocket(containerd); err != nil {
		return err
	}
	if err := importImage(); err != nil {
		return err
	}
	kubelet, err := start("kubelet", kubeletFlags...)
	if err != nil {
		return err
	}
	return reap(containerd, kubelet)
}

// start runs a binary of the node with its output in /var/log.
func start(name string, args ...string) (process, error) {
	// Appended to, so that a node that boots again keeps its earlier log.
	log, err := os.OpenFile("/var/log/"+name+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return process{}, fmt.Errorf("start %s: %w", name, err)
	}
	defer log.Close()
	p, err := os.StartProcess(filepath.Join(bin, name), append([]string{name}, args...), &os.ProcAttr{
		Dir: "/", Files: []*os.File{nil, log, log}, Env: environment(),
	})
	if err != nil {
		return process{}, fmt.Errorf("start %s: %w", name, err)
	}
	return process{name, p.Pid}, nil
}

// environment lets containerd find its shim, and runc.
func environment() []string {
	return []string{"PATH=" + bin + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
}

// process is not an [os.Process], whose Wait would race with reap.
type process struct {
	name string
	pid  int
}

func waitForSocket(containerd process) error {
	for deadline := time.Now().Add(socketTimeout); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			return nil
		}
		if pid, status, _ := waitAny(syscall.WNOHANG); pid == containerd.pid {
			return fmt.Errorf("containerd ended: %s", describe(status))
		}
	}
	return fmt.Errorf("containerd does not listen after %s", socketTimeout)
}

// importImage puts the only image of the node where the kubelet looks for it.
func importImage() error {
	ctr, err := start("ctr", "--namespace=k8s.io", "images", "import", "--local", "--snapshotter=native",
		"--platform=linux/"+runtime.GOARCH, etc+"/image.tar")
	if err != nil {
		return err
	}
	for {
		pid, status, err := waitAny(0)
		switch {
		case err != nil:
			return fmt.Errorf("wait for ctr: %w", err)
		case pid == ctr.pid && status == 0:
			return nil
		case pid == ctr.pid:
			return fmt.Errorf("import the image: ctr ended: %s; see ctr.log", describe(status))
		}
	}
}

// reap waits for every child and for every orphan that became one, until one
// of the given processes is among them.
func reap(vital ...process) error {
	for {
		pid, status, err := waitAny(0)
		if err != nil {
			return fmt.Errorf("wait for processes: %w", err)
		}
		for _, p := range vital {
			if p.pid == pid {
				return fmt.Errorf("%s ended: %s", p.name, describe(status))
			}
		}
	}
}

func waitAny(options int) (int, syscall.WaitStatus, error) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, options, nil)
		if !errors.Is(err, syscall.EINTR) {
			return pid, status, err
		}
	}
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}
