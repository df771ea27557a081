//go:build linux

package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
)

// containerdConfig: the native snapshotter copies files, which works on every
// file system, and the image has one. Without restrict_oom_score_adj, runc
// cannot start a pod where root lacks CAP_SYS_RESOURCE, as in many containers.
// The image's tag never moves, so that nothing is ever pulled.
const containerdConfig = `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "/run/containerd/containerd.sock"

[plugins."io.containerd.cri.v1.images"]
snapshotter = "native"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = %q

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
disable_apparmor = true
enable_selinux = false
tolerate_missing_hugetlb_controller = true
netns_mounts_under_state_dir = true

[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "runc"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
snapshotter = "native"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = %q
SystemdCgroup = false

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = [%q]
conf_dir = "/run/node/etc/cni"
use_internal_loopback = true
`

// cniConfig joins each pod to the node by a pair of interfaces that end with
// the pod: no bridge and no packet filter is left behind. Pods and the node
// reach one another; pods reach neither each other nor the outside.
const cniConfig = `{
  "cniVersion": "1.0.0",
  "name": "maint",
  "plugins": [{
    "type": "ptp",
    "ipMasq": false,
    "ipam": {"type": "host-local", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}
  }]
}
`

// kubeletConfig leaves the machine's own resources alone: nothing is reserved,
// nothing is evicted for lack of disk, and pods of a test are not limited.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
port: %[2]d
healthzPort: 0
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: false}
  x509: {clientCAFile: /run/node/etc/ca.crt}
authorization: {mode: AlwaysAllow} # for those whom the cluster's own authority vouches for
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: %[3]s
cgroupsPerQOS: true
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
nodeLeaseDurationSeconds: 4 # renewed every second, see notReadyAfter
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
oomScoreAdj: 0
resolvConf: ""
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.available: "0%%", imagefs.inodesFree: "0%%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
`

// writeConfig writes what boot, containerd and the kubelet read.
func (n *Node) writeConfig(ca []byte, kubeconfig, runc, plugins string) error {
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"containerd.toml":    fmt.Sprintf(containerdConfig, Image, runc, plugins),
		"cni/node.conflist":  fmt.Sprintf(cniConfig, n.slot.subnet()),
		"kubelet.yaml":       fmt.Sprintf(kubeletConfig, n.IP, n.slot.port(), n.slot.cgroup()),
		"kubelet.kubeconfig": string(text),
		"ca.crt":             string(ca),
	} {
		path := filepath.Join(n.dir, "etc", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
