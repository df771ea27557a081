//go:build linux

// Package kubelet joins real nodes to the clusters of tests: a kubelet,
// containerd and runc that run real containers, so that eviction, grace
// periods, Jobs, logs and exec are what users have.
//
// A node needs Linux and root, and what `make tools-node` builds and installs.
// It is not a virtual machine: it shares kernel and network with this one. Its
// processes and mounts are in namespaces of their own, which the kernel takes
// apart when the test ends, however it ends; its cgroups the next node removes
// at the latest. Several nodes, also of several tests, can run side by side.
package kubelet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/test/cluster"
)

// Image is the only image that a node has, see test/kubelet/pod. There is no
// registry: pods need imagePullPolicy Never.
const Image = "docker.io/kubectl-maint/pod:test"

// readyTimeout is for a machine that builds something else at the same time.
// Usually it is three seconds.
const readyTimeout = time.Minute

// notReadyAfter is how long a node must be silent until it is called NotReady.
// On a real cluster that is 50 seconds, which nobody wants to wait for. Its
// kubelet tells that it lives every second, see kubeletConfig.
const notReadyAfter = 10 * time.Second

// Options is a control plane that a real node can join: with a scheduler, and
// with an API server that kubelets believe, which logs and exec need. The
// cluster keeps its files in dir.
func Options(dir string) cluster.Options {
	admin := filepath.Join(dir, "pki", "admin")
	return cluster.Options{
		ControllerManager: true,
		NodeLifecycle:     true,
		Scheduler:         true,
		ControllerManagerArgs: []string{
			"--node-monitor-period=1s",
			"--node-monitor-grace-period=" + notReadyAfter.String(),
		},
		APIServerArgs: []string{
			"--kubelet-client-certificate=" + admin + ".crt",
			"--kubelet-client-key=" + admin + ".key",
			"--kubelet-preferred-address-types=InternalIP", // nobody knows the node by its name
		},
		Dir: dir,
	}
}

// Node is a real node.
type Node struct {
	Name string
	IP   string

	slot    slot
	dir     string // its disk: etc, lib (/var/lib on the node), log (/var/log), run (a mount point)
	parts   parts
	kube    kubernetes.Interface
	machine *machine
}

// Start joins a real node to a cluster made of [Options] and returns when pods
// can start on it. It is gone when the test ends; if that failed, the ends of
// its logs are printed.
func Start(t testing.TB, c *cluster.Cluster) *Node {
	t.Helper()
	n, err := prepare(t.Context(), t.TempDir(), c)
	if err != nil {
		t.Fatalf("prepare a real node: %v", err)
	}
	t.Cleanup(func() {
		if err := n.stop(); err != nil {
			t.Errorf("stop node %s: %v", n.Name, err)
		}
		if t.Failed() {
			t.Log(n.lastWords())
		}
	})
	if err := n.boot(t.Context()); err != nil {
		t.Fatalf("boot node %s: %v", n.Name, err)
	}
	return n
}

// Disk returns an empty directory of the node's disk: where it is on the node,
// as for a hostPath, and where it is here.
func (n *Node) Disk(t testing.TB, name string) (there, here string) {
	t.Helper()
	here = n.path("lib", "test", name)
	if err := os.MkdirAll(here, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join("/var/lib/test", name), here
}

// Reboot is PowerOff and PowerOn.
func (n *Node) Reboot(t testing.TB) {
	t.Helper()
	n.PowerOff(t)
	n.PowerOn(t)
}

// PowerOff cuts the power. Nobody is told: that the node is NotReady, the
// cluster finds out.
func (n *Node) PowerOff(t testing.TB) {
	t.Helper()
	n.machine.kill()
	if err := n.slot.clean(); err != nil {
		t.Fatalf("power off node %s: %v", n.Name, err)
	}
}

// PowerOn boots the node again, with its disk as it was and another boot ID. It
// returns when the node is Ready again.
func (n *Node) PowerOn(t testing.TB) {
	t.Helper()
	if err := n.boot(t.Context()); err != nil {
		t.Fatalf("boot node %s: %v", n.Name, err)
	}
}

// prepare takes a place on this machine and makes the node's disk.
func prepare(ctx context.Context, dir string, c *cluster.Cluster) (_ *Node, err error) {
	n := &Node{dir: dir}
	if n.parts, err = findParts(); err != nil {
		return nil, err
	}
	if n.IP, err = address(); err != nil {
		return nil, err
	}
	if n.kube, err = kubernetes.NewForConfig(c.AdminConfig()); err != nil {
		return nil, err
	}
	for _, part := range []string{"etc", "lib", "log", "run"} {
		if err := os.Mkdir(n.path(part), 0o755); err != nil {
			return nil, err
		}
	}
	if n.slot, err = takeSlot(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.slot.release())
		}
	}()
	n.Name = n.slot.name()
	kubeconfig, err := c.KubeconfigFile(n.Name, n.credentials(c))
	if err != nil {
		return nil, err
	}
	if err := n.writeConfig(c.AdminConfig().CAData, kubeconfig, n.parts.runc, n.parts.plugins); err != nil {
		return nil, err
	}
	return n, n.build(ctx)
}

// credentials are an administrator's who acts as the node: what it may do is
// what the node authorizer says, as for any other.
func (n *Node) credentials(c *cluster.Cluster) *rest.Config {
	config := c.AdminConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + n.Name, Groups: []string{"system:nodes"}}
	return config
}

// boot starts the node's processes and waits until it is Ready in this boot.
func (n *Node) boot(ctx context.Context) (err error) {
	id := rand.Text()
	if err := os.WriteFile(n.path("etc", "boot-id"), []byte(id+"\n"), 0o644); err != nil {
		return err
	}
	if err := n.slot.makeCgroups(); err != nil {
		return fmt.Errorf("make cgroups: %w", err)
	}
	n.machine, err = boot(n.path("boot"), []string{
		n.dir, n.parts.assets,
		"--config=/run/node/etc/kubelet.yaml",
		"--kubeconfig=/run/node/etc/kubelet.kubeconfig",
		"--hostname-override=" + n.Name,
		"--node-ip=" + n.IP,
		"--v=2",
	}, n.path("log", "boot.log"), n.slot.lock)
	if err != nil {
		return err
	}
	return n.waitReady(ctx, id)
}

func (n *Node) waitReady(ctx context.Context, bootID string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := n.ready(ctx, bootID)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil { // else it only says that time is up
			last = err
		}
		select {
		case <-n.machine.gone:
			return errors.New("it ended before it was Ready; see its last words")
		case <-ctx.Done():
			return fmt.Errorf("waited %s: %w", readyTimeout, last)
		case <-tick.C:
		}
	}
}

// ready returns why pods cannot start yet: the node is not Ready in this boot,
// or is still tainted as not being so. A cordon is another matter.
func (n *Node) ready(ctx context.Context, bootID string) error {
	node, err := n.kube.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if got := node.Status.NodeInfo.BootID; got != bootID {
		return fmt.Errorf("its status is of boot %s, and this is %s", got, bootID)
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable {
			return fmt.Errorf("it is tainted %s", taint.ToString())
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("it is not Ready: %+v", node.Status.Conditions)
}

// stop ends the node and gives its place back. The cluster forgets it, and
// with it the pods that nobody would end any more.
func (n *Node) stop() error {
	if n.machine != nil {
		n.machine.kill()
	}
	// The test's context has ended, and maybe the cluster too: no error.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = n.kube.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{})
	return n.slot.release()
}

func (n *Node) lastWords() string {
	const lines = 40
	var out strings.Builder
	for _, name := range []string{"boot", "ctr", "containerd", "kubelet"} {
		fmt.Fprintf(&out, "--- the end of %s.log of %s\n%s\n", name, n.Name, tail(n.path("log", name+".log"), lines))
	}
	return out.String()
}

func (n *Node) path(parts ...string) string {
	return filepath.Join(append([]string{n.dir}, parts...)...)
}
