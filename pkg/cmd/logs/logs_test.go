package logs

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func began(d time.Duration) func(*run.Record) {
	return func(rec *run.Record) { rec.StartedAt = cmdtest.Before(d) }
}

func workingJob(path string) run.Record {
	return cmdtest.Record(path, "job", run.StepRunning, func(rec *run.Record) { rec.Before = json.RawMessage(`{"job":"j","uid":"u-1"}`) }, cmdtest.Message("Job/j: 1 active"))
}

// podOf is a pod of the Job u-1, whose container has begun.
func podOf(uid string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pod-" + uid, UID: "pod", Labels: map[string]string{"batch.kubernetes.io/controller-uid": uid}},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}},
	}
}

type heard struct{ out, err bytes.Buffer }

func (h *heard) printer(step string, follow bool, pods ...*corev1.Pod) *logPrinter {
	kube := fake.NewClientset()
	for _, pod := range pods {
		_ = kube.Tracker().Add(pod)
	}
	env := factory.Env{IOStreams: genericiooptions.IOStreams{Out: &h.out, ErrOut: &h.err}, Now: cmdtest.Now}
	return &logPrinter{env: env, k: &factory.Cluster{Kube: kube}, step: step, follow: follow, printed: map[string]string{}, tails: map[string]*tail{}, out: &logWriter{out: &h.out}}
}

func TestLogsAreInTheOrderInWhichStepsBegan(t *testing.T) {
	r := cmdtest.RunOf(
		cmdtest.Record("late", "exec", run.StepFailed, began(time.Minute), cmdtest.Outputs(map[string]any{"pod": "web-0", "stdout": "tables: 3\n", "stderr": "disk is full\n"}), cmdtest.Message("exit code 1: disk is full")),
		cmdtest.Record("g", plan.TypeGroup, run.StepSucceeded, began(time.Hour)),
		cmdtest.Record("g/job", "job", run.StepSucceeded, began(50*time.Minute), cmdtest.Outputs(map[string]any{"job": "j", "log": "one\ntwo\n"}), cmdtest.Message("Job/j succeeded")),
		cmdtest.Record("g/hook", "webhook", run.StepSucceeded, began(40*time.Minute), cmdtest.Outputs(map[string]any{"status": int64(200), "json": map[string]any{"ok": true}}), cmdtest.Message("answered 200")),
		cmdtest.Record("g/quiet", "job", run.StepSucceeded, began(30*time.Minute), cmdtest.Outputs(map[string]any{"job": "j", "log": ""}), cmdtest.Message("Job/j succeeded")),
		cmdtest.Record("roll", plan.TypeForEach, run.StepFailed, began(20*time.Minute), cmdtest.Looping(run.Item{Name: "a", Phase: run.StepFailed, Message: "crashes"}), cmdtest.Message("1 of 1 failed")),
		cmdtest.Record("never", "webhook", run.StepSkipped),
	)
	var h heard
	h.printer("", false).update(t.Context(), r)
	want := `==> g (step-group, Succeeded)

==> g/job (job, Succeeded)
one
two

==> g/hook (webhook, Succeeded)
answered 200
json:
  ok: true
status: 200

==> g/quiet (job, Succeeded)
Job/j succeeded

==> roll (for-each, Failed)
1 of 1 failed
a: crashes

==> late (exec, Failed)
tables: 3
disk is full
`
	if diff := cmp.Diff(want, h.out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLogsOfOneStepAreThoseOfWhatItHoldsToo(t *testing.T) {
	r := cmdtest.RunOf(cmdtest.Record("g", plan.TypeGroup, run.StepRunning), cmdtest.Record("g/a", "webhook", run.StepSucceeded), cmdtest.Record("g/h", plan.TypeGroup, run.StepRunning), cmdtest.Record("g/h/b", "webhook", run.StepSucceeded), cmdtest.Record("c", "webhook", run.StepSucceeded))
	for step, want := range map[string]string{"g": "g, g/a, g/h, g/h/b", "h": "g/h, g/h/b", "g/h": "g/h, g/h/b", "b": "g/h/b", "c": "c"} {
		var h heard
		h.printer(step, false).update(t.Context(), r)
		var got []string
		for line := range strings.SplitSeq(h.out.String(), "\n") {
			if path, is := strings.CutPrefix(line, "==> "); is {
				got = append(got, strings.Fields(path)[0])
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("of %s: %v, want %s", step, got, want)
		}
	}
}

func TestAJobAtWorkIsHeardInItsPods(t *testing.T) {
	var h heard
	h.printer("", false, podOf("u-1"), podOf("u-2")).update(t.Context(), cmdtest.RunOf(workingJob("work")))
	if want := "==> work (job, Running)\nfake logs\n"; h.out.String() != want || h.err.Len() > 0 {
		t.Errorf("%q, want %q; %s", h.out.String(), want, h.err.String())
	}
	var silent heard
	silent.printer("", false).update(t.Context(), cmdtest.RunOf(workingJob("work")))
	if want := "==> work (job, Running)\nJob/j: 1 active\n"; silent.out.String() != want {
		t.Errorf("%q, want %q", silent.out.String(), want)
	}
}

// The lines of a job at work are one entry of a list, and one each where they are followed.
func TestAJobAtWorkIsHeardByScripts(t *testing.T) {
	r := cmdtest.RunOf(workingJob("work"))
	for stream, want := range map[bool]int{false: 1, true: 2} {
		out := print.NewValues()
		if err := outputFlag(out, "jsonpath={.text}"); err != nil {
			t.Fatal(err)
		}
		var h heard
		logs := h.printer("", false, podOf("u-1"), podOf("u-2"))
		logs.out.entries = &entries{out: out, run: r, stream: stream}
		logs.out.say(r.Journal.Steps[0], "first")
		logs.update(t.Context(), r)
		if err := logs.out.finish(); err != nil {
			t.Fatal(err)
		}
		if n := len(logs.out.entries.list); !stream && (n != want || logs.out.entries.list[0].Text != "first\nfake logs") {
			t.Errorf("%d entries: %+v", n, logs.out.entries.list)
		}
		if lines := strings.Count(h.out.String(), "\n"); stream && lines != want {
			t.Errorf("%d lines: %q", lines, h.out.String())
		}
	}
}

// outputFlag is -o as the command line gives it.
func outputFlag(out *print.Values, format string) error {
	cmd := &cobra.Command{}
	out.AddFlags(cmd)
	return cmd.Flags().Set("output", format)
}

// spoken is a writer whose words are heard one by one.
type spoken chan string

func (s spoken) Write(p []byte) (int, error) {
	s <- string(p)
	return len(p), nil
}

// What was shown while the job was at work is not shown again from its outputs.
func TestWhatWasFollowedIsToldOnce(t *testing.T) {
	var h heard
	words := make(spoken, 100)
	logs := h.printer("", true, podOf("u-1"))
	logs.out.out = words
	logs.update(t.Context(), cmdtest.RunOf(workingJob("work"), cmdtest.Record("other", "webhook", run.StepRunning)))
	got := <-words
	ended := cmdtest.Record("work", "job", run.StepSucceeded, cmdtest.Outputs(map[string]any{"log": "fake logs"}), cmdtest.Message("Job/j succeeded"))
	for range 2 {
		logs.update(t.Context(), cmdtest.RunOf(ended, cmdtest.Record("other", "webhook", run.StepRunning)))
	}
	close(words)
	for more := range words {
		got += more
	}
	if want := "==> work (job, Running)\nfake logs\n\n==> work (job, Succeeded)\nJob/j succeeded\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A run whose agent died ends no more: whoever follows it is told so.
func TestFollowingEndsWhenTheAgentIsSilent(t *testing.T) {
	r := cmdtest.RunOf(cmdtest.Record("hold", "suspend", run.StepRunning))
	synctest.Test(t, func(t *testing.T) {
		agent := cmdtest.Agent()
		agent.Data["heartbeat"] = time.Now().UTC().Format(time.RFC3339)
		o := cmdtest.NewCluster(t, nil, cmdtest.RunObject(r, "maint-run-orders-a"), cmdtest.Plan("orders", ""), agent)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		env := factory.Env{IOStreams: genericiooptions.IOStreams{Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}, Name: "kubectl maint", Now: time.Now}
		l := &logsOptions{Factory: factory.NewFor(env, o.Connected()), name: "maint-run-orders-a", follow: true, out: print.NewValues()}
		begun := time.Now()
		err := l.Run(ctx)
		if took := time.Since(begun); exit.CodeOf(err) != exit.CodeNoAgent || took > 32*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
		if text := cmdtest.ErrText(err); !strings.HasSuffix(text, "; run maint-run-orders-a goes on when an agent is back: see 'kubectl maint status maint-run-orders-a'") {
			t.Error(text)
		}
	})
}
