package agent_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestAPersonApprovesAndRejects(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("asks", `
requiresApproval: true
steps:
- name: both
  type: step-group
  properties:
    mode: parallel
    steps:
    - {name: left, type: approval, properties: {message: "left?"}}
    - {name: right, type: approval}
- {name: call, type: webhook, properties: {url: "HOOK/call"}}
`)
	l.seen("asks")
	l.expect(l.maint("approve", "absent"), 1, `there is no run or plan "absent"`)
	one := l.waitsForApproval("asks", "one")
	l.expect(l.maint("__complete", "approve", ""), 0, one+"\n")
	l.expect(l.maint("status", "asks"), 0, "Pending, waits for approval until", "('kubectl maint -n "+l.ns+" approve "+one+"')")
	l.expect(l.maint("why", "asks"), 3, "approve "+one+"' or '", "reject "+one+"'")
	l.expect(l.maint("approve", one, "--dry-run=server"), 0, "run/"+one+" approved (server dry run)")
	l.expect(l.maint("approve", one+"/left"), 3, "does not wait for approval", "Pending")
	l.expect(l.maint("approve", strings.TrimPrefix(one, "maint-run-"), "--reason", "CHG-1"), 0, "run/"+one+" approved\n")
	l.running("asks", "both/right")
	l.eventually("the answer was taken up", func() (bool, string) {
		cm := l.seen("asks")
		return cm.Annotations[annotations.Approve] == "", fmt.Sprint(cm.Annotations)
	})
	l.expect(l.maint("approve", one), 2, "waits for 2 approvals: name one of "+one+"/both/left, "+one+"/both/right")
	l.expect(l.maint("approve", one+"/call"), 3, "step call of run "+one+" does not wait for approval: it is Pending (type webhook)")
	l.expect(l.maint("approve", one+"/absent"), 1, `has no step "absent"; it has both, both/left, both/right, call`)
	l.expect(l.maint("__complete", "reject", ""), 0, one+"/both/left\n"+one+"/both/right\n")
	l.expect(l.maint("status", one), 0, "▶ both     step-group  Running", "\n    ▶ left   approval", "left? ('kubectl maint -n "+l.ns+" approve "+one+"/both/left')")
	l.expect(l.maint("approve", one+"/left"), 0, "run/"+one+"/both/left approved")
	l.eventually("left is approved", func() (bool, string) {
		r := l.running("asks", "both/right")
		return r.journal.Record("both/left").Phase == run.StepSucceeded, ""
	})
	l.expect(l.maint("approve", one, "--wait", "--timeout", "60s"), 0, "step both/right: Succeeded: approved by ", "(unverified)", "run "+one+": Succeeded")
	l.ended("asks", 1)
	l.expect(l.maint("approve", one), 3, "does not wait for approval: it is Succeeded")
	l.expect(l.maint("describe", one), 0, "Approved:", "(unverified): CHG-1", "✓ both     step-group", "  ✓ left   approval")
	l.expect(l.maint("history", "asks"), 0, "Succeeded after", "approved by", "(unverified): CHG-1")

	second := l.waitsForApproval("asks", "two")
	l.expect(l.maint("reject", second, "--reason", "wrong week"), 0, "run/"+second+" rejected\n")
	l.ended("asks", 2)
	l.expect(l.maint("history", "asks"), 0, "Skipped", "rejected", "Aborted, rejected by", "wrong week")
	if n := len(l.hooks.Keys("/" + l.ns + "/call")); n != 1 {
		t.Errorf("call was sent %d times, want once", n)
	}
}

// waitsForApproval asks for a run and waits until it waits for approval.
func (l *lab) waitsForApproval(name, token string) string {
	l.Helper()
	l.trigger(name, token)
	one := ""
	l.eventually("a run of "+name+" waits for approval", func() (bool, string) {
		for _, r := range l.runs(name) {
			if r.journal.Waiting == run.WaitApproval {
				one = r.run.Name
			}
		}
		return one != "", fmt.Sprint(len(l.runs(name)), " runs")
	})
	return one
}

func TestAPersonReadsWhatTheStepsPrinted(t *testing.T) {
	l := newLab(t)
	l.runner(jobRights())
	l.plan("prints", `
steps:
- {name: call, type: webhook, properties: {url: "HOOK/call"}}
- name: all
  type: step-group
  properties: {steps: [{name: work, type: job, properties: {image: example.org/work, command: [work]}}]}
- {name: hold, type: suspend}
`)
	l.seen("prints")
	l.expect(l.maint("logs", "absent"), 1, `there is no run or plan "absent"`)
	l.trigger("prints", "t")
	run := l.running("prints", "all/work").run.Name
	k := l.kubelet()
	pod := k.begins(l.podOfJob())
	l.expect(l.maint("logs", run), 0, "==> call (webhook, Succeeded)\nPOST "+l.hooks.URL, "==> all/work (job, Running)\nhello\n")
	l.expect(l.maint("logs", run, "--step", "absent"), 1, `has no step "absent"`)

	follow := exec.CommandContext(l.ctx, world.plugin, "-n", l.ns, "logs", run, "-f", "--step", "all")
	follow.Env = append(os.Environ(), "KUBECONFIG="+world.config)
	out, err := follow.StdoutPipe()
	l.must(err)
	l.must(follow.Start())
	var text strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		text.WriteString(lines.Text() + "\n")
		switch lines.Text() {
		case "hello":
			close(k.over)
			k.ends(pod)
		case "==> all/work (job, Succeeded)":
			l.running("prints", "hold")
			l.expect(l.maint("resume", run), 0)
		}
	}
	if err := follow.Wait(); err != nil {
		t.Errorf("logs -f: %v", err)
	}
	for _, want := range []string{"==> all/work (job, Running)\nhello\nbye\n", "==> all/work (job, Succeeded)\nJob/", "==> all (step-group, Succeeded)\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("logs -f did not say %q:\n%s", want, text.String())
		}
	}
	l.ended("prints", 1)
	l.expect(l.maint("logs", run, "-f"), 0, "==> hold (suspend, Succeeded)")
}

func TestLogsOfARunThatFailedEndWithItsCode(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.deployment("orders", 1)
	l.plan("breaks", failing)
	l.seen("breaks")
	l.trigger("breaks", "t")
	run := l.ended("breaks", 1)[0].run.Name
	l.expect(l.maint("logs", run), 0, "Failed)")
	l.expect(l.maint("logs", run, "-f"), 4, "Failed)")
}

// kubelet is a node whose containers say hello, and bye once they are over.
type kubelet struct {
	*lab
	node string
	over chan struct{}
}

func (l *lab) kubelet() *kubelet {
	l.Helper()
	k := &kubelet{lab: l, node: l.ns + "-node", over: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", k.log)
	server := httptest.NewTLSServer(mux)
	l.Cleanup(server.CloseClientConnections)
	node, err := l.admin.CoreV1().Nodes().Create(l.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.node}}, metav1.CreateOptions{})
	l.must(err)
	l.Cleanup(func() { _ = l.admin.CoreV1().Nodes().Delete(context.Background(), k.node, metav1.DeleteOptions{}) })
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(server.Listener.Addr().(*net.TCPAddr).Port)
	node.ResourceVersion = "" // the controllers write on it, too
	_, err = l.admin.CoreV1().Nodes().UpdateStatus(l.ctx, node, metav1.UpdateOptions{})
	l.must(err)
	return k
}

func (k *kubelet) log(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintln(w, "hello")
	if r.URL.Query().Get("follow") != "true" {
		return
	}
	w.(http.Flusher).Flush()
	select {
	case <-k.over:
		fmt.Fprintln(w, "bye")
	case <-r.Context().Done():
	}
}

// podOfJob is the pod of the namespace's only Job.
func (l *lab) podOfJob() *corev1.Pod {
	l.Helper()
	var pod *corev1.Pod
	l.eventually("the Job has a pod", func() (bool, string) {
		pods, err := l.admin.CoreV1().Pods(l.ns).List(l.ctx, metav1.ListOptions{})
		l.must(err)
		if len(pods.Items) > 0 {
			pod = &pods.Items[0]
		}
		return pod != nil, ""
	})
	return pod
}

// begins puts a pod on the node, where its container runs.
func (k *kubelet) begins(pod *corev1.Pod) *corev1.Pod {
	k.Helper()
	k.must(k.admin.CoreV1().Pods(k.ns).Bind(k.ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: k.node}}, metav1.CreateOptions{}))
	k.Cleanup(func() {
		now := int64(0)
		_ = k.admin.CoreV1().Pods(k.ns).Delete(context.Background(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	})
	return k.stands(pod, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
}

// ends lets a pod's container end well.
func (k *kubelet) ends(pod *corev1.Pod) {
	k.Helper()
	k.stands(pod, corev1.PodSucceeded, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})
}

func (k *kubelet) stands(pod *corev1.Pod, phase corev1.PodPhase, state corev1.ContainerState) *corev1.Pod {
	k.Helper()
	pod, err := k.admin.CoreV1().Pods(k.ns).Get(k.ctx, pod.Name, metav1.GetOptions{})
	k.must(err)
	pod.Status.Phase = phase
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, State: state}}
	pod, err = k.admin.CoreV1().Pods(k.ns).UpdateStatus(k.ctx, pod, metav1.UpdateOptions{})
	k.must(err)
	return pod
}
