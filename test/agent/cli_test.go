package agent_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// said is what one command line printed, and its exit code.
type said struct {
	out, err string
	code     int
}

// maint runs the built plugin as a person would, off a terminal.
func (l *lab) maint(args ...string) said {
	l.Helper()
	return l.maintIn("", args...)
}

func (l *lab) maintIn(stdin string, args ...string) said {
	l.Helper()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(l.ctx, world.plugin, append([]string{"-n", l.ns}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+world.config, "TZ=Europe/Berlin", "NO_COLOR=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		l.Fatal(err)
	}
	return said{out.String(), errOut.String(), cmd.ProcessState.ExitCode()}
}

// expect checks an exit code and words that must be in what was printed.
func (l *lab) expect(s said, code int, words ...string) {
	l.Helper()
	if s.code != code {
		l.Fatalf("exit code %d, want %d\n%s%s", s.code, code, s.out, s.err)
	}
	for _, w := range words {
		if !strings.Contains(s.out+s.err, w) {
			l.Errorf("does not say %q:\n%s%s", w, s.out, s.err)
		}
	}
}

func TestAPersonSchedulesTriggersAndLooks(t *testing.T) {
	l := newLab(t)
	l.runner()
	step := fmt.Sprintf(`{"name":"call","type":"webhook","properties":{"url":%q}}`, l.hooks.URL+"/"+l.ns+"/call")
	l.expect(l.maint("schedule", "nightly", "--cron", "0 2 * * *", "--timezone", "Europe/Berlin", "--step", step, "--dry-run=server"), 0, "plan/nightly written")
	if _, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, "nightly", metav1.GetOptions{}); err == nil {
		t.Fatal("a dry run wrote the plan")
	}
	l.expect(l.maint("schedule", "nightly", "--cron", "0 2 * * *", "--timezone", "Europe/Berlin", "--step", step), 0, "plan/nightly written", "next run")
	l.expect(l.maint("trigger", "nightly", "--reason", "because", "--wait", "--timeout", "60s"), 0, "Succeeded")
	l.eventually("the plan's status says how the run ended", func() (bool, string) {
		s := l.maint("list")
		return strings.Contains(s.out, "Succeeded"), s.out + s.err
	})
	l.expect(l.maint("list"), 0, "nightly", "Succeeded")
	l.expect(l.maint("list", "-o", "name"), 0, "configmap/nightly")
	l.expect(l.maint("status"), 0, "nightly", "Idle")
	l.expect(l.maint("history", "nightly"), 0, "Ran", "because", "maint-run-nightly-")
	run := l.runs("nightly")[0].run.Name
	l.expect(l.maint("describe", run), 0, run, "because", "call", "webhook", "answered 200")
	l.expect(l.maint("describe", "nightly"), 0, "Plan:", "Conditions:", "cron: 0 2 * * *")
	next := l.maint("next", "nightly", "--count", "2", "--from", "2026-12-01T00:00:00Z", "-o", "json")
	want := `{
    "apiVersion": "maint.dev/v1alpha1",
    "items": [
        {
            "utc": "2026-12-01T01:00:00Z",
            "local": "2026-12-01T02:00:00+01:00",
            "schedule": 0,
            "note": ""
        },
        {
            "utc": "2026-12-02T01:00:00Z",
            "local": "2026-12-02T02:00:00+01:00",
            "schedule": 0,
            "note": ""
        }
    ],
    "kind": "SlotList"
}` + "\n"
	if next.out != want {
		t.Errorf("next printed\n%s, want\n%s", next.out, want)
	}
}

func TestTheCalendarTellsHowSlotsEnded(t *testing.T) {
	l := newLab(t)
	l.runner()
	at := time.Now().UTC().Add(5 * time.Second).Truncate(time.Second)
	l.plan("once", "triggers: {schedules: [{at: '"+at.Format(time.RFC3339)+"'}]}\nsteps: [{name: rest, type: suspend, properties: {duration: 1s}}]\n")
	l.ended("once", 1)
	l.eventually("the calendar tells of it", func() (bool, string) {
		got := l.maint("calendar", "--from", at.Add(-time.Hour).Format(time.RFC3339), "--to", at.Add(time.Hour).Format(time.RFC3339))
		return got.code == 0 && strings.Contains(got.out, "Succeeded in"), got.out + got.err
	})
	l.plan("minutely", "triggers: {schedules: [{cron: '* * * * *'}]}\nsteps: [{name: rest, type: suspend}]\n", func(cm *corev1.ConfigMap) {
		cm.Annotations = map[string]string{annotations.Pause: "true"}
	})
	got := l.maint("calendar", "--from", at.Add(-2*time.Hour).Format(time.RFC3339), "--to", time.Now().UTC().Format(time.RFC3339), "--timezone", "UTC")
	if strings.Count(got.out, "minutely") > 2 {
		t.Errorf("slots before the plan was made:\n%s", got.out)
	}
}

func TestExitCodesTellScriptsTheTruth(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.deployment("orders", 1)
	l.plan("breaks", failing)
	l.plan("holds", holding)
	l.seen("breaks")
	l.seen("holds")
	l.expect(l.maint("trigger", "breaks", "--wait"), 4, "Failed")
	l.expect(l.maint("trigger", "holds", "--wait", "--timeout", "2s"), 124)
	run := l.running("holds", "hold").run.Name
	l.expect(l.maint("abort", run), 2, "--yes")
	l.expect(l.maint("uninstall", "--yes", "--namespace", annotations.DefaultNamespace), 3, "is active", "'kubectl maint pause --all -A' keeps others from beginning meanwhile")
	l.expect(l.maint("resume", run), 0, "resumed")
	l.ended("holds", 1)
	l.expect(l.maint("pause", "holds"), 0, "paused")
	l.expect(l.maint("trigger", "holds", "--wait", "--timeout", "5s"), 3, "paused")
	l.expect(l.maint("resume", "holds"), 0)
	l.expect(l.maint("trigger", "absent"), 1, "absent")
	l.expect(l.maint("trigger"), 2)
	l.expect(l.maint("no-such-command"), 2)
	l.expect(l.maint("skip", "holds", "--all"), 0)
	if cm := l.seen("holds"); cm.Annotations[annotations.Skip] != "true" || cm.Annotations[annotations.Actor(annotations.Skip)] == "" {
		t.Errorf("skip wrote %v", cm.Annotations)
	}
	l.expect(l.maint("unskip", "holds"), 0)
	l.expect(l.maint("version"), 0, "client:", "agent:", "zone data:")
}

func TestARetryRunsAFailedRunOnceMore(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.deployment("orders", 1)
	l.plan("breaks", failing)
	l.seen("breaks")
	l.expect(l.maint("trigger", "breaks", "--wait"), 4)
	first := l.ended("breaks", 1)[0].run.Name
	l.expect(l.maint("retry", first), 0)
	for _, r := range l.ended("breaks", 2) {
		if r.run.Name != first && r.run.Request.Reason != "retry of "+first {
			t.Errorf("the second run was asked for by %+v", r.run.Request)
		}
	}
	l.eventually("the intent is taken away", func() (bool, string) {
		cm := l.seen("breaks")
		return cm.Annotations[annotations.Retry] == "", fmt.Sprint(cm.Annotations)
	})
}

func TestBadInputIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	l := newLab(t)
	l.expect(l.maint("schedule", "bad", "--cron", "99 * * * *", "--step", "hold=suspnd"), 2, "nothing was written", "schedules[0].cron", "did you mean")
	if _, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, "bad", metav1.GetOptions{}); err == nil {
		t.Fatal("the plan was written")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "plan.yaml")
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: p\n  labels: {maint.dev/kind: plan}\ndata:\n  plan.yaml: |\n    apiVersion: maint.dev/v1alpha1\n    kind: Plan\n    spec:\n      stepps: []\n      steps:\n      - {name: A, type: suspend}\n"
	l.must(os.WriteFile(file, []byte(text), 0o600))
	got := l.maint("lint", "-f", dir, "-o", "json")
	l.expect(got, 1)
	var list struct {
		Kind  string
		Items []struct {
			File, Path, Message string
			Line                int
		}
	}
	l.must(json.Unmarshal([]byte(got.out), &list))
	if list.Kind != "FaultList" || len(list.Items) != 2 || list.Items[0].Line != 11 || list.Items[1].Line != 13 || list.Items[1].Path != "spec.steps[0].name" {
		t.Errorf("lint said %+v", list)
	}
	l.expect(l.maintIn(text, "lint", "-f", "-"), 1, "did you mean \"steps\"")
	l.expect(l.maint("lint", "-f", filepath.Join("..", "..", "examples")), 0, "without faults")
}

func TestALabelThatGitPutsBackIsNoRequest(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.deployment("orders", 1)
	l.plan("breaks", failing)
	l.seen("breaks")
	apply := func() {
		text := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"orders","labels":{"maintenance.company.org/database-upgrade":"v1"}}}`
		force := true
		_, err := l.admin.AppsV1().Deployments(l.ns).Patch(l.ctx, "orders", "application/apply-patch+yaml", []byte(text), metav1.PatchOptions{FieldManager: "kustomize-controller", Force: &force})
		l.must(err)
	}
	apply()
	l.ended("breaks", 1)
	apply()
	l.eventually("the condition says that it came back", func() (bool, string) {
		text := l.seen("breaks").Annotations[annotations.StatusConditions]
		return strings.Contains(text, "TriggerLabelReturns"), text
	})
	if n := len(l.runs("breaks")); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
}

func TestAPlanWhoseTargetWasNeverReadyWaits(t *testing.T) {
	l := newLab(t)
	l.runner()
	cm := l.plan("waits", "target: {apiVersion: apps/v1, kind: Deployment, name: late}\ntriggers: {onCreate: true}"+quick)
	l.eventually("it says that the target is missing", func() (bool, string) {
		text := l.seen("waits").Annotations[annotations.StatusMessage]
		return strings.Contains(text, "Deployment/late does not exist"), text
	})
	l.deployment("late", 1)
	l.annotate("waits", map[string]string{"example.org/touched": "x"})
	if r := l.ended("waits", 1)[0]; r.journal.Phase != run.Succeeded {
		t.Errorf("ended %s", r.journal.Phase)
	}
	_ = cm
}

func TestAJobStepRunsAJobAndAnAbortTakesItAway(t *testing.T) {
	l := newLab(t)
	l.runner(jobRights())
	l.plan("job", "steps: [{name: work, type: job, properties: {image: example.org/work, command: [work]}}]")
	l.seen("job")
	l.trigger("job", "t")
	r := l.running("job", "work")
	l.eventually("the Job is there", func() (bool, string) {
		jobs, err := l.admin.BatchV1().Jobs(l.ns).List(l.ctx, metav1.ListOptions{})
		l.must(err)
		return len(jobs.Items) == 1, fmt.Sprint(len(jobs.Items))
	})
	l.annotate("job", map[string]string{annotations.Abort: r.run.Name})
	l.ended("job", 1)
	l.eventually("the Job is gone", func() (bool, string) {
		jobs, err := l.admin.BatchV1().Jobs(l.ns).List(l.ctx, metav1.ListOptions{})
		l.must(err)
		return len(jobs.Items) == 0 || jobs.Items[0].DeletionTimestamp != nil, fmt.Sprint(len(jobs.Items))
	})
}
