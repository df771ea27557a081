//go:build linux

package kubelet

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// slots is how many real nodes a machine can have at once; a guessed number.
const slots = 16

// slot is one of the places that a machine has for a node. All that the node
// takes from the machine is derived from its number, so that the next node in
// the same place knows what a crashed one may have left behind.
type slot struct {
	number int
	// lock is an open file, locked for as long as it is open: here, and in the
	// node's first process, so that the place is taken until both are gone.
	lock *os.File
}

func takeSlot() (slot, error) {
	for number := range slots {
		lock, err := os.OpenFile(fmt.Sprintf("/run/maint-node-%d.lock", number), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return slot{}, fmt.Errorf("take a place for a node: %w", err)
		}
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			s := slot{number, lock}
			return s, s.clean()
		}
		lock.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return slot{}, fmt.Errorf("take a place for a node: %w", err)
		}
	}
	return slot{}, fmt.Errorf("all %d places for nodes on this machine are taken: end other tests with nodes", slots)
}

func (s slot) name() string   { return fmt.Sprintf("maint-node-%d", s.number) }
func (s slot) cgroup() string { return "/" + s.name() }

// port is outside of what Linux gives to outgoing connections (from 32768) and
// of what test/cluster takes (20000 to 32000).
func (s slot) port() int { return 19250 + s.number }

// subnet is one of those set aside for benchmarks (RFC 2544, 198.18.0.0/15), in
// which no network that this machine is part of should be.
func (s slot) subnet() string  { return fmt.Sprintf("198.18.%d.0/24", s.number) }
func (s slot) gateway() string { return fmt.Sprintf("198.18.%d.1", s.number) }

// release gives the place back, clean.
func (s slot) release() error {
	return errors.Join(s.clean(), s.lock.Close())
}

// clean removes what the kernel does not remove with a node's last process, and
// waits for what it removes a moment later.
func (s slot) clean() error {
	return eventually(20*time.Second, func() error {
		return errors.Join(s.removeCgroups(), s.noInterfaces())
	})
}

// makeCgroups makes the cgroups that all of the node's pods will be in. A
// kubelet wants to find them.
func (s slot) makeCgroups() error {
	trees, err := s.cgroups()
	if err != nil {
		return err
	}
	if unified() {
		if err := enableControllers(); err != nil {
			return err
		}
	}
	for _, tree := range trees {
		if err := os.Mkdir(tree, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// removeCgroups removes the node's cgroups, which nobody is in any more.
func (s slot) removeCgroups() error {
	trees, err := s.cgroups()
	if err != nil {
		return err
	}
	var all []error
	for _, tree := range trees {
		all = append(all, removeTree(tree))
	}
	return errors.Join(all...)
}

// cgroups are where the node's are: in the one tree of version 2, or in each
// controller's tree of version 1. Some controllers share a tree and have two
// names for it, of which one is a link.
func (s slot) cgroups() ([]string, error) {
	if unified() {
		return []string{filepath.Join(cgroupRoot, s.name())}, nil
	}
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, entry := range entries {
		if entry.IsDir() {
			out = append(out, filepath.Join(cgroupRoot, entry.Name(), s.name()))
		}
	}
	return out, nil
}

const cgroupRoot = "/sys/fs/cgroup"

// unified says whether this machine has cgroups of version 2 alone.
func unified() bool {
	_, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers"))
	return err == nil
}

// enableControllers hands the controllers that a kubelet wants down from the root
// of version 2: systemd hands down only those that it uses itself. They are not
// taken back, which harms nobody.
func enableControllers() error {
	there, err := os.ReadFile(filepath.Join(cgroupRoot, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(there)) {
		if !slices.Contains([]string{"cpu", "cpuset", "memory", "hugetlb", "pids"}, controller) { // as in pkg/kubelet/cm
			continue
		}
		err := os.WriteFile(filepath.Join(cgroupRoot, "cgroup.subtree_control"), []byte("+"+controller), 0)
		if errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("hand down cgroup controller %s: %w: in a container, its processes are in the way: start it with --cgroupns=host, or move them to a cgroup of their own first", controller, err)
		}
		if err != nil {
			return fmt.Errorf("hand down cgroup controller %s: %w", controller, err)
		}
	}
	return nil
}

// removeTree removes directories alone: a cgroup's files go with it.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		if err := removeTree(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("remove cgroup %s: %w", dir, err)
	}
	return nil
}

// noInterfaces tells whether the machine's ends of the pods' networks are gone,
// as they are soon after the pods.
func (s slot) noInterfaces() error {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, a := range addresses {
		if strings.HasPrefix(a.String(), s.gateway()+"/") {
			return fmt.Errorf("a pod's interface with %s is still there", a)
		}
	}
	return nil
}

// eventually tries until there is no error, and returns the last.
func eventually(atMost time.Duration, try func() error) error {
	for deadline := time.Now().Add(atMost); ; time.Sleep(20 * time.Millisecond) {
		err := try()
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
