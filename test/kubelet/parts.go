//go:build linux

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/test/cluster"
)

// parts are what a node is made of and this package does not build.
type parts struct {
	assets  string // the directory with kubelet, containerd, its shim and ctr
	runc    string
	plugins string // the directory with the CNI plugins
}

// findParts names all that is missing, and what to do: a test that did not run
// proves nothing.
func findParts() (parts, error) {
	if os.Geteuid() != 0 {
		return parts{}, errors.New("a kubelet needs root: run `sudo make e2e-node`, on a machine that may be thrown away")
	}
	var found parts
	var missing []error
	for _, name := range []string{"kubelet", "containerd", "containerd-shim-runc-v2", "ctr"} {
		path, err := cluster.Asset(name)
		if err != nil {
			missing = append(missing, fmt.Errorf("no %s: run `make tools-node`", name))
		}
		found.assets = filepath.Dir(path)
	}
	var err error
	if found.runc, err = exec.LookPath("runc"); err != nil {
		missing = append(missing, errors.New("no runc on PATH: run `make tools-node`, or apt-get install runc"))
	}
	if found.plugins = findPlugins("/usr/lib/cni", "/opt/cni/bin"); found.plugins == "" {
		missing = append(missing, errors.New("no CNI plugins ptp and host-local: run `make tools-node`, or apt-get install containernetworking-plugins"))
	}
	return found, errors.Join(missing...)
}

func findPlugins(dirs ...string) string {
	for _, dir := range dirs {
		_, ptp := os.Stat(filepath.Join(dir, "ptp"))
		_, ipam := os.Stat(filepath.Join(dir, "host-local"))
		if ptp == nil && ipam == nil {
			return dir
		}
	}
	return ""
}

// build compiles the node's first process and its image; with a warm build
// cache that takes a second.
func (n *Node) build(ctx context.Context) error {
	root, err := run(ctx, ".", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	if _, err := run(ctx, root, "build", "-o", n.path("boot"), "./test/kubelet/boot"); err != nil {
		return err
	}
	_, err = run(ctx, filepath.Join(root, "tools", "image"), "run", "./podimage", "-name", Image, "-o", n.path("etc", "image.tar"))
	return err
}

func run(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, &complaints)
	}
	return strings.TrimSpace(string(out)), nil
}

// address is one that this machine has for others. A kubelet refuses loopback
// as its node's address, and without one exec and logs reach nobody.
func address() (string, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil || i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
				return n.IP.String(), nil
			}
		}
	}
	return "", errors.New("this machine has no IPv4 address but loopback, and a kubelet refuses that: give it a network interface, a dummy one will do (ip link add type dummy)")
}
