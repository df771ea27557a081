package agent_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// noticedWithin is how long after an agent's death who waits for it may go on: half a minute, and
// what a busy machine takes to start a process and to look.
const noticedWithin = 35 * time.Second

// Whatever waits for an agent notices that it was killed, says so, and what helps.
func TestWhoeverWaitsNoticesThatTheAgentIsDead(t *testing.T) {
	x := newCrashes(t)
	x.prepare("silent")
	agent := x.direct()
	defer agent.Kill()
	leads(t, x.ctx, agent)
	s := newSilence(x)
	for _, name := range []string{"again", "fresh", "late", "ends", "held"} {
		s.plan(name, "steps: [{name: hold, type: suspend}]")
	}
	for _, name := range []string{"asks", "sure", "nope"} {
		s.plan(name, "requiresApproval: true\n  steps: [{name: hold, type: suspend}]")
	}
	s.plan("fails", "steps: [{name: gone, type: scale, retry: {limit: 0}, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: nowhere}, replicas: 0}}]")
	for name, target := range map[string]string{"nights": "{name: apps, type: workload, parameters: {kinds: [Deployment]}}", "days": "{name: apps, type: noop}", "tried": "{name: apps, type: noop, parameters: {failShutdown: 1000}}"} {
		s.create(annotations.NewHibernatePlan("silent", name, "apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec: {schedule: {offHours: [{start: \"20:00\", end: \"07:00\"}], exclude: [{fromDate: \"2020-01-01\", untilDate: \"2039-12-31\"}]}, targets: ["+target+"]}\n", ""))
	}
	s.create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "shut", Labels: map[string]string{annotations.LabelKind: annotations.KindPolicy}},
		Data:       map[string]string{annotations.DataPolicy: "apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec: {strategy: Restrictive}\n"},
	})
	s.node("worker-1", map[string]string{annotations.Pause: "true", annotations.RequestPrefix + "firmware": "{}"})
	s.node("worker-2", map[string]string{annotations.RequestPrefix + "firmware": "{}"})
	s.maint(0, "wait", "node/worker-2", "--for=ready", "--requestor", "firmware", "--timeout", "60s")
	for range 2 {
		s.holds("again")
		s.maint(0, "resume", s.live("again"))
		s.maint(0, "wait", "again", "--timeout", "30s")
	}
	s.holds("fresh")
	s.holds("ends")
	s.holds("held")
	live, held := s.live("fresh"), s.live("held")
	s.maint(0, "hibernate", "days", "--for", "2h", "--yes", "--wait", "--timeout", "60s")
	s.maint(0, "hibernate", "tried", "--for", "2h", "--yes")
	eventually(t, x.ctx, "it has failed, and can be tried again", func() (bool, string) {
		out := s.maint(0, "status", "tried", "-o", "jsonpath={.targets[0].attempts}")
		return out != "" && out != "0", out
	})
	s.maint(4, "trigger", "fails", "--wait", "--timeout", "60s")
	s.maint(124, "trigger", "asks", "--wait", "--timeout", "3s")
	s.maint(124, "trigger", "sure", "--wait", "--timeout", "3s")
	s.maint(124, "trigger", "nope", "--wait", "--timeout", "3s")

	waits := [][]string{
		{"rollback", "again", "--wait"},
		{"trigger", "late", "--wait"},
		{"approve", "asks", "--wait"},
		{"logs", live, "-f"},
		{"wait", live},
		{"wait", "fresh"},
		{"wait", live, "--for=phase=Succeeded"},
		{"wait", "fresh", "--for=phase=Idle"},
		{"wait", "fresh", "--for=condition=Nothing"},
		{"wait", "shut"},
		{"wait", "nights", "--for=phase=Hibernated"},
		{"wait", "node/worker-1", "--for=ready", "--requestor", "firmware"},
		{"wait", "node/worker-1", "--for=released", "--requestor", "firmware"},
		{"wait", "node/worker-1", "--for=permitted"},
		{"drain", "worker-1", "--requestor", "firmware", "--wait", "--yes"},
	}
	killed := make(chan struct{})
	var group sync.WaitGroup
	for _, args := range waits {
		group.Go(func() { s.noticed(killed, args) })
	}
	eventually(t, x.ctx, "what was asked for runs, so all wait", func() (bool, string) {
		return s.live("again") != "" && s.live("late") != "" && s.live("asks") != "", ""
	})
	agent.Kill()
	close(killed)
	// Half a minute long an agent that is dead looks alive.
	s.annotate("fresh", annotations.Trigger, "nobody-takes-it-up")
	for _, args := range [][]string{
		{"trigger", "fresh", "--wait"},
		{"trigger", "fresh"},
		{"wait", "fresh"},
		{"abort", "ends", "--yes", "--wait"},
		{"approve", "sure", "--wait", "--reason", "CHG-4"},
		{"retry", "fails", "--wait"},
		{"release", "worker-2", "--requestor", "firmware", "--wait"},
		{"hibernate", "nights", "--for", "2h", "--yes", "--wait"},
		{"wake", "days", "--for", "2h", "--yes", "--wait"},
		{"trigger", "tried", "--wait"},
		{"reject", "nope", "--wait", "--reason", "CHG-5"},
		{"resume", held, "--wait"},
	} {
		group.Go(func() { s.noticed(killed, args) })
	}
	group.Wait()
	for _, args := range append(waits, []string{"trigger", "again", "--wait"}) { // and who comes later
		if args[0] == "logs" || args[0] == "approve" { // what is kept is shown, and what is approved asks no more
			continue
		}
		s.said(s.maint(5, args...))
	}
	s.isKept("sure", "approved by ", ": CHG-4; no agent has taken that up yet")
	s.isKept("ends", "aborted by ", "; no agent has taken that up yet")
}

// isKept says whether everybody is told of an answer that no agent has taken up, and nobody is asked
// for it once more.
func (s silence) isKept(plan string, words ...string) {
	s.t.Helper()
	for code, line := range map[int][]string{0: {"status", plan}, 3: {"why", plan}} {
		got := s.maint(code, line...)
		for _, word := range words {
			if !strings.Contains(got, word) {
				s.t.Errorf("%q does not say %q:\n%s", line, word, got)
			}
		}
		if strings.Contains(got, " approve maint-run-") || strings.Contains(got, " resume maint-run-") {
			s.t.Errorf("%q asks once more:\n%s", line, got)
		}
	}
}

// silence is a namespace whose agent dies.
type silence struct {
	*crashes
	config string // kubeconfig of whoever waits
}

func newSilence(x *crashes) silence {
	x.t.Helper()
	config, err := x.c.KubeconfigFile("person", x.c.AdminConfig())
	if err != nil {
		x.t.Fatal(err)
	}
	return silence{x, config}
}

func (s silence) command(ctx context.Context, args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, s.plugin, append([]string{"-n", "silent"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.config, "NO_COLOR=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

func (s silence) maint(code int, args ...string) string {
	s.t.Helper()
	cmd, out := s.command(s.ctx, args...)
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		s.t.Errorf("%q: exit code %d, want %d:\n%s", args, got, code, out)
	}
	return out.String()
}

// noticed runs a command that waits for the agent until it has noticed.
func (s silence) noticed(killed <-chan struct{}, args []string) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	cmd, out := s.command(ctx, args...)
	if err := cmd.Start(); err != nil {
		s.t.Error(err)
		return
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the code tells
		close(ended)
	}()
	select {
	case <-ended:
		s.t.Errorf("%q ends before the agent does", args)
	case <-killed:
		dead := time.Now()
		select {
		case <-ended:
			s.t.Logf("%q noticed it after %s", args, time.Since(dead).Round(time.Second))
		case <-time.After(noticedWithin):
			cancel()
			<-ended
			s.t.Errorf("%q does not notice it within %s:\n%s", args, noticedWithin, out)
			return
		}
	}
	if code := cmd.ProcessState.ExitCode(); code != 5 {
		s.t.Errorf("%q: exit code %d, want 5:\n%s", args, code, out)
	}
	s.said(out.String())
}

func (s silence) said(text string) {
	s.t.Helper()
	if !strings.Contains(text, "the agent in namespace maint-system was last seen ") || !strings.Contains(text, "see 'kubectl -n maint-system get pods'") {
		s.t.Errorf("it does not say so:\n%s", text)
	}
}

func (s silence) create(cm *corev1.ConfigMap) {
	s.t.Helper()
	if _, err := s.admin.CoreV1().ConfigMaps("silent").Create(s.ctx, cm, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s silence) plan(name, spec string) {
	s.t.Helper()
	s.create(annotations.NewPlan("silent", name, "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  "+spec+"\n", ""))
}

func (s silence) node(name string, notes map[string]string) {
	s.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: notes}}
	if _, err := s.admin.CoreV1().Nodes().Create(s.ctx, n, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s silence) annotate(name, key, value string) {
	s.t.Helper()
	cm, err := s.admin.CoreV1().ConfigMaps("silent").Get(s.ctx, name, metav1.GetOptions{})
	if err == nil {
		metav1.SetMetaDataAnnotation(&cm.ObjectMeta, key, value)
		_, err = s.admin.CoreV1().ConfigMaps("silent").Update(s.ctx, cm, metav1.UpdateOptions{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// holds asks for a run of a plan, and returns when it holds.
func (s silence) holds(plan string) {
	s.t.Helper()
	s.maint(0, "trigger", plan)
	eventually(s.t, s.ctx, "the run of "+plan+" holds", func() (bool, string) { return s.live(plan) != "", "" })
}

// live is the run of a plan that holds; empty: there is none.
func (s silence) live(plan string) string {
	runs, err := readRuns(s.ctx, s.admin, "silent", plan)
	if err != nil {
		s.t.Error(err)
	}
	for _, r := range runs {
		if rec := recordOf(r.journal, "hold"); rec != nil && rec.Phase == run.StepRunning {
			return r.run.Name
		}
	}
	return ""
}
