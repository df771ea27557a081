//go:build linux

package e2enode

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
	"github.com/kubectl-maint/kubectl-maint/test/kubelet"
)

// home is the namespace of the examples about nodes.
const home = "node-ops"

// The examples are played as they stand there, but for what runs in the Job.
const (
	exampleImage   = "image: busybox:1.37"
	exampleCommand = `command: [sh, -c, "nsenter -t 1 -m -- systemd-run --on-active=60 systemctl reboot >&2 && cat /proc/sys/kernel/random/boot_id"]`
)

func TestTheExamplesRebootANode(t *testing.T) {
	w := start(t)
	w.agent()
	w.kubectl("create", "namespace", home)
	w.kubectl("label", "namespace", home, "pod-security.kubernetes.io/enforce=privileged")
	w.deployment("web", 1)
	w.daemonSet("logs")
	for _, example := range []struct {
		name      string
		elsewhere []string // pairs of what the example says and what is so here
		ask       func(*world)
	}{
		{name: "kernel-reboot", ask: func(w *world) {
			w.kubectl("label", "node", w.node.Name, "pool=workers")
			w.kubectl("maint", "trigger", "kernel-reboot", "-n", home, "--outside-window", "--reason", "first try")
		}},
		{
			name: "reboot-on-label",
			// It is not always night here.
			elsewhere: []string{`start: "22:00", end: "06:00"`, `start: "00:00", end: "24:00"`},
			ask:       func(w *world) { w.kubectl("label", "node", w.node.Name, "reboot-required=true") },
		},
	} {
		t.Run(example.name, func(t *testing.T) {
			w, name := w.in(t), example.name
			before, daemon := w.waitReady("web", 1)[0], w.waitReady("logs", 1)[0]
			there, here := w.node.Disk(t, name)
			w.play(name, append(example.elsewhere,
				exampleImage, "image: "+kubelet.Image,
				exampleCommand, fmt.Sprintf("args: [reboot, %s/asked]", there),
				"securityContext: {privileged: true}", fmt.Sprintf("securityContext: {privileged: true}\n                      volumeMounts: [{name: disk, mountPath: %q}]", there),
				"restartPolicy: Never", fmt.Sprintf("restartPolicy: Never\n                    volumes: [{name: disk, hostPath: {path: %q}}]", there),
			)...)

			example.ask(w)
			w.asksForReboot(filepath.Join(here, "asked"))
			w.waits(name, "back")
			if w.exists(before) {
				t.Errorf("pod %s is still there when its node is to reboot", before.Name)
			}
			if !w.exists(daemon) {
				t.Errorf("pod %s of a DaemonSet is gone", daemon.Name)
			}
			w.node.PowerOff(t)
			w.is("NotReady", func(n *corev1.Node) bool { return !nodeReady(n) && n.Spec.Unschedulable })
			w.node.PowerOn(t)

			if j := w.ended(name); j.Phase != run.Succeeded {
				t.Errorf("the run ended %s: %+v", j.Phase, j.End)
			}
			w.is("as it was", untouched)
			w.waitReady("web", 1)
		})
	}
	if !t.Failed() {
		for _, name := range []string{"kernel-reboot", "reboot-on-label"} {
			w.rightsAreUsed("maint-runner", "maint:"+home+":"+name, "maint:"+name, "batch jobs delete") // after an abort
		}
	}
}

// play applies an example, with pairs of what it says and what is so here.
func (w *world) play(name string, elsewhere ...string) {
	w.t.Helper()
	root, err := harness.Root()
	w.must(err)
	b, err := os.ReadFile(filepath.Join(root, "examples", name+".yaml"))
	w.must(err)
	text := string(b)
	for i := 0; i < len(elsewhere); i += 2 {
		if !strings.Contains(text, elsewhere[i]) {
			w.t.Fatalf("examples/%s.yaml does not say %s any more", name, elsewhere[i])
		}
		text = strings.ReplaceAll(text, elsewhere[i], elsewhere[i+1])
	}
	w.must(harness.Apply(w.t.Context(), w.cluster.AdminConfig(), home, []byte(text), nil))
	w.eventually("plan "+name+" is taken up", func(ctx context.Context) (bool, error) {
		cm, err := w.kube.CoreV1().ConfigMaps(home).Get(ctx, name, metav1.GetOptions{})
		return err == nil && cm.Annotations[annotations.StatusObserved] != "", err
	})
}

// asksForReboot waits until the node was told to reboot, by a Job that saw it
// all: the first process in sight is the node's own.
func (w *world) asksForReboot(file string) {
	w.t.Helper()
	w.eventually("the node is told to reboot", func(context.Context) (bool, error) {
		text, err := os.ReadFile(file)
		if err == nil && !strings.Contains(string(text), "/boot ") {
			w.t.Fatalf("the Job says that the first process in sight is %q; want the node's own", text)
		}
		return err == nil, err
	})
}

// run is how the newest run of an example's plan stands.
func (w *world) run(ctx context.Context, name string) (run.Journal, error) {
	list, err := w.kube.CoreV1().ConfigMaps(home).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=run," + annotations.LabelPlan + "=" + name})
	if err != nil {
		return run.Journal{}, err
	}
	if len(list.Items) != 1 {
		return run.Journal{}, fmt.Errorf("%d runs of %s", len(list.Items), name)
	}
	_, j, err := annotations.ReadRun(&list.Items[0])
	return j, err
}

// waits returns when a step of a node waits for something.
func (w *world) waits(name, step string) {
	w.t.Helper()
	w.eventually("step "+step+" waits", func(ctx context.Context) (bool, error) {
		j, err := w.run(ctx, name)
		if err != nil {
			return false, err
		}
		for _, rec := range j.Steps {
			if strings.HasSuffix(rec.Path, "/"+step) && rec.Phase == run.StepRunning && rec.Message != "" {
				return true, nil
			}
		}
		return false, fmt.Errorf("the run stands so: %s", words(j))
	})
}

func (w *world) ended(name string) run.Journal {
	w.t.Helper()
	var got run.Journal
	w.eventually("the run of "+name+" ends", func(ctx context.Context) (bool, error) {
		var err error
		if got, err = w.run(ctx, name); err != nil {
			return false, err
		}
		if got.Phase.Ended() {
			return true, nil
		}
		return false, fmt.Errorf("the run stands so: %s", words(got))
	})
	return got
}

// words are a run as its journal has it.
func words(j run.Journal) string {
	b, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}
