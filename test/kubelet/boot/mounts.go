//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// mounts gives the node a /run, /var/lib, /var/log and /proc of its own. The
// paths are those of any node, containerd's sockets have no other, and the
// machine underneath never sees them.
func mounts(dir, assets string) error {
	run := filepath.Join(dir, "run")
	steps := []func() error{
		// Nothing from here reaches the machine.
		func() error { return mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "") },
		func() error { return mount("tmpfs", run, "tmpfs", 0, "mode=755") },
		func() error { return bind(assets, filepath.Join(run, "node/bin")) },
		func() error { return bind(filepath.Join(dir, "etc"), filepath.Join(run, "node/etc")) },
		// /run is the last to be covered, and what DIR holds is bound before
		// /var/lib is: DIR or ASSETS may themselves lie in one of them.
		func() error { return bind(filepath.Join(dir, "lib"), filepath.Join(run, "node/lib")) },
		func() error { return bind(filepath.Join(dir, "log"), "/var/log") },
		func() error { return mount(filepath.Join(run, "node/lib"), "/var/lib", "", syscall.MS_MOVE, "") },
		func() error { return mount(run, "/run", "", syscall.MS_MOVE, "") },
		func() error { return mount("proc", "/proc", "proc", 0, "") },
		coverSettings,
		// As on a real node: what a pod mounts can be seen by others that ask.
		func() error { return mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, "") },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// coverSettings puts files over the settings of the kernel that a kubelet and
// CNI plugins would change for the whole machine, with the values that they
// want to find, and over the boot's name, which changes when the node boots.
func coverSettings() error {
	for setting, value := range settings() {
		path := "/run/node/sys/" + setting
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := mount(path, "/proc/sys/"+setting, "", syscall.MS_BIND, ""); err != nil {
			return err
		}
	}
	return mount(etc+"/boot-id", "/proc/sys/kernel/random/boot_id", "", syscall.MS_BIND, "")
}

// settings are those that a kubelet sets, see setupKernelTunables in
// k8s.io/kubernetes/pkg/kubelet/cm, and the one that CNI plugins set.
func settings() map[string]string {
	return map[string]string{
		"vm/overcommit_memory":      "1",
		"vm/panic_on_oom":           "0",
		"kernel/panic":              "10",
		"kernel/panic_on_oops":      "1",
		"kernel/keys/root_maxkeys":  "1000000",
		"kernel/keys/root_maxbytes": "25000000",
		"net/ipv4/ip_forward":       "1",
	}
}

// bind shows a directory at a second place, which it makes.
func bind(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	return mount(from, to, "", syscall.MS_BIND|syscall.MS_REC, "")
}

func mount(from, to, kind string, flags uintptr, data string) error {
	if err := syscall.Mount(from, to, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", from, to, err)
	}
	return nil
}
