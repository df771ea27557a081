//go:build linux

package e2enode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// gpu is what pods ask for that want one.
const gpu = "nvidia.com/gpu"

// driver is the label by which NVIDIA's feature discovery tells a node's driver.
const driver = "nvidia.com/cuda.driver-version.major"

// The script of the example runs here and not in its image, which the node does
// not have. The test plays the driver's DaemonSet.
func TestARequestorUpgradesTheDriverOfANode(t *testing.T) {
	w := start(t)
	w.agent()
	w.kubectl("create", "namespace", home)
	w.kubectl("label", "node", w.node.Name, "accelerator=nvidia")
	w.merge(`{"status": {"capacity": {"`+gpu+`": "1"}}}`, "status")
	w.is("one that has a GPU", func(n *corev1.Node) bool { return n.Status.Allocatable.Name(gpu, resource.DecimalSI).Value() == 1 })
	w.deployment("web", 1)
	w.deployment("model", 1, func(spec *corev1.PodSpec) {
		spec.Containers[0].Resources.Limits = corev1.ResourceList{gpu: resource.MustParse("1")}
	})
	web, model := w.waitReady("web", 1)[0], w.waitReady("model", 1)[0]

	script := w.requestor()
	w.is("labelled for the driver", func(n *corev1.Node) bool { return n.Labels["gpu-driver"] == "560" })
	if w.exists(model) {
		t.Errorf("pod %s, which has the GPU, is still there", model.Name)
	}
	if now := w.waitReady("web", 1)[0]; now.UID != web.UID {
		t.Errorf("pod %s is gone, and it has no GPU", web.Name)
	}
	w.is("cordoned", func(n *corev1.Node) bool { return n.Spec.Unschedulable })
	w.merge(`{"metadata": {"labels": {"` + driver + `": "560"}}}`)

	if said := <-script; !strings.Contains(said, "0 of 1 nodes failed") {
		t.Errorf("the script said %s", said)
	}
	w.is("as it was", untouched)
	w.waitReady("model", 1)
	if said := <-w.requestor(); !strings.Contains(said, "0 of 0 nodes failed") {
		t.Errorf("the script has nothing left to do, and said %s", said)
	}
	w.rightsAreUsed("gpu-driver", "maint-gpu-driver", "")
}

// merge patches the node.
func (w *world) merge(patch string, subresources ...string) {
	w.t.Helper()
	_, err := w.kube.CoreV1().Nodes().Patch(w.t.Context(), w.node.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	w.must(err)
}

// requestor applies the example, but for its Job, and runs the Job's script with
// its account's rights. What it said comes when it has ended.
func (w *world) requestor() <-chan string {
	w.t.Helper()
	root, err := harness.Root()
	w.must(err)
	text, err := os.ReadFile(filepath.Join(root, "examples", "gpu-driver.yaml"))
	w.must(err)
	job := w.jobIn(text)
	account := job.Spec.Template.Spec.ServiceAccountName
	config, err := w.cluster.ServiceAccountConfig(w.t.Context(), home, account)
	w.must(err)
	kubeconfig, err := w.cluster.KubeconfigFile(account, config)
	w.must(err)
	kubectl, err := cluster.Asset("kubectl")
	w.must(err)
	c := job.Spec.Template.Spec.Containers[0]
	cmd := exec.CommandContext(w.t.Context(), c.Command[0], append(c.Command[1:], c.Args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+filepath.Dir(kubectl)+":"+os.Getenv("PATH"))
	for _, e := range c.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	said := make(chan string, 1)
	go func() {
		out, err := cmd.CombinedOutput()
		if err != nil {
			out = fmt.Appendf(out, "%v", err)
		}
		said <- string(out)
	}()
	return said
}

// jobIn applies all of a manifest but its Job, which it returns.
func (w *world) jobIn(text []byte) *batchv1.Job {
	w.t.Helper()
	isJob := func(u *unstructured.Unstructured) bool { return u.GetKind() == "Job" }
	w.must(harness.Apply(w.t.Context(), w.cluster.AdminConfig(), home, text, isJob))
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var u unstructured.Unstructured
		if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
			w.t.Fatal("the example has no Job")
		} else if err != nil {
			w.t.Fatal(err)
		}
		if isJob(&u) {
			var job batchv1.Job
			w.must(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &job))
			return &job
		}
	}
}
