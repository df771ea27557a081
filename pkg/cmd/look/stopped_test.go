package look_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// Of a plan of which nothing begins no command shows a slot as one that starts. What the agent said
// of another version of the document counts for nothing.
func TestSlotsOfAPlanOfWhichNothingBegins(t *testing.T) {
	going := cmdtest.Namespace("shop")
	going.DeletionTimestamp, going.Finalizers = new(metav1.NewTime(cmdtest.Now())), []string{"kubernetes"}
	odd := append(conditions("Valid", "False", "there is no step template hush"), annotations.StatusPhase, "Invalid")
	outdated := seen("orders", daily, odd...)
	outdated.Annotations[annotations.StatusObserved] = "another"
	const nightSchedule = "schedule: {offHours: [{start: '20:00', end: '06:00'}]}"
	sleeper := cmdtest.Sleeper("nights", nightSchedule, func(cm *corev1.ConfigMap) { cm.CreationTimestamp.Time = *cmdtest.Before(1e9) })
	const invalid, deleted = "the plan is invalid", "the namespace is being deleted"
	for _, c := range []struct {
		name  string
		world []runtime.Object
		line  string
		has   []string // of both streams
		lacks []string
	}{
		{"next", objects(cmdtest.Namespace("shop"), seen("orders", daily, odd...)), "next orders --count 2", []string{"warning: the plan is invalid, so it starts nothing: there is no step template hush", " " + invalid + "\nSun", " " + invalid + "\n"}, nil},
		{"next for scripts", objects(cmdtest.Namespace("shop"), seen("orders", daily, odd...)), "next orders --count 2 -o jsonpath={.items[*].note}", []string{invalid + " " + invalid}, nil},
		{"status", objects(cmdtest.Namespace("shop"), seen("orders", daily, odd...)), "status", []string{"is not Valid: there is no step template hush"}, []string{"Sat 2026"}},
		{"status by name", objects(cmdtest.Namespace("shop"), seen("orders", daily, odd...)), "status orders", []string{"nothing runs while the plan is invalid"}, []string{"Sat 2026"}},
		{"status for scripts", objects(cmdtest.Namespace("shop"), seen("orders", daily, odd...)), "status orders -o json", []string{"there is no step template hush"}, []string{`"next"`}},
		{"why", objects(cmdtest.Namespace("shop"), seen("orders", daily, odd...)), "why orders", []string{"1. the plan is invalid: there is no step template hush"}, []string{"next slot: Sat"}},
		{"calendar", objects(cmdtest.Namespace("shop"), seen("orders", daily, odd...)), "calendar --to 2026-11-23", []string{"warning: shop/orders: there is no step template hush", invalid + "\nSun"}, nil},
		{"calendar for scripts", objects(cmdtest.Namespace("shop"), seen("orders", daily, odd...)), "calendar --from 2026-11-21T00:00:00Z --to 2026-11-22T00:00:00Z -o jsonpath={.items[0].idle}", []string{"true"}, nil},
		{"another version: next", objects(cmdtest.Namespace("shop"), outdated), "next orders", nil, []string{invalid}},
		{"another version: status", objects(cmdtest.Namespace("shop"), outdated), "status", []string{"Sat 2026"}, nil},
		{"another version: calendar", objects(cmdtest.Namespace("shop"), outdated), "calendar --to 2026-11-23", nil, []string{invalid}},
		{"deleted: next", objects(going, seen("orders", daily)), "next orders --count 1", []string{"warning: the namespace is being deleted", deleted + "\n"}, nil},
		{"deleted: next of a policy", objects(going, policed("night", nights)), "next night --count 1", []string{"warning: the namespace is being deleted"}, nil},
		{"deleted: status", objects(going, seen("orders", daily)), "status", []string{"namespace shop  is being deleted"}, []string{"Sat 2026", "can begin no run"}},
		{"deleted: status by name", objects(going, seen("orders", daily)), "status orders", []string{"Next:        none: " + deleted}, []string{"Sat 2026"}},
		{"deleted: all for scripts", objects(going, seen("orders", daily)), "status -o json", []string{deleted}, []string{`"next"`}},
		{"deleted: calendar", objects(going, seen("orders", daily)), "calendar --to 2026-11-22", []string{deleted + "\n"}, nil},
		{"deleted: next sleep", objects(going, sleeper), "next nights --count 2", []string{deleted + "\nSat", deleted + "\n"}, nil},
		{"deleted: list", objects(going, seen("orders", daily, annotations.StatusNextRun, "2026-11-21T01:00:00Z"), cmdtest.Sleeper("nights", nightSchedule, cmdtest.Noting(annotations.StatusSleeps, "2026-11-21T19:00:00Z"))), "list", []string{"orders", "nights"}, []string{"Sat 2026"}},
		{"not deleted: list", objects(cmdtest.Namespace("shop"), seen("orders", daily, annotations.StatusNextRun, "2026-11-21T01:00:00Z")), "list", []string{"Sat 2026"}, nil},
		{"deleted: status of a sleep", objects(going, cmdtest.Sleeper("days", "schedule: {offHours: [{start: '10:00', end: '16:00'}]}")), "status", []string{"days"}, []string{"sleeps Sat"}},
		{"deleted: status of a sleep by name", objects(going, cmdtest.Sleeper("days", "schedule: {offHours: [{start: '10:00', end: '16:00'}]}")), "status days", []string{"none: " + deleted}, []string{"sleeps Sat"}},
		{"deleted: a held sleep in the calendar", objects(going, cmdtest.Sleeper("nights", nightSchedule, func(cm *corev1.ConfigMap) { cm.CreationTimestamp.Time = *cmdtest.Before(1e9) }, cmdtest.Noting(annotations.HoldState, "awake"))), "calendar --to 2026-11-23", []string{deleted + "\n"}, []string{"held awake\n"}},
		{"deleted: sleep in the calendar", objects(going, sleeper), "calendar --to 2026-11-23", []string{deleted + "\n"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := cmdtest.NewCluster(t, cmd.Run, append(objects(cmdtest.Agent(), cmdtest.Namespace("maint-system")), c.world...)...).Line(c.line)
			all := got.Err + got.Out
			for _, text := range c.has {
				if !strings.Contains(all, text) {
					t.Errorf("it lacks %q:\n%s", text, all)
				}
			}
			for _, text := range c.lacks {
				if strings.Contains(all, text) {
					t.Errorf("it has %q:\n%s", text, all)
				}
			}
		})
	}
}

// The users of a target skip the plan there: no command shows a slot as one that starts, and each
// says who skips it.
func TestSlotsThatTheTargetSkips(t *testing.T) {
	const by = "the annotation mirror.maint.dev/orders-skip on Deployment/web"
	target := "target: {apiVersion: apps/v1, kind: Deployment, name: web}, " + daily
	skipping := func(value string) *appsv1.Deployment {
		d := cmdtest.Deployment("web")
		d.Annotations = map[string]string{"mirror.maint.dev/orders-skip": value}
		return d
	}
	for _, c := range []struct {
		name, line string
		deployment *appsv1.Deployment
		spec       string
		more       []runtime.Object
		code       int
		has, lacks string
	}{
		{name: "why", line: "why orders", deployment: skipping("true"), code: 3, has: "1. slots are skipped: all, by " + by + "\n   'kubectl -n shop annotate Deployment/web mirror.maint.dev/orders-skip-'\nnext slot: none, since all slots are paused or skipped\n", lacks: "Sat 2026"},
		{name: "status", line: "status orders", deployment: skipping("true"), has: "all slots, by " + by, lacks: "Sat 2026"},
		{name: "status for scripts", line: "status orders -o json", deployment: skipping("true"), has: `"phase"`, lacks: `"next"`},
		{name: "describe", line: "describe orders", deployment: skipping("true"), has: "all slots, by " + by, lacks: "in 1h0m"},
		{name: "next", line: "next orders --count 1", deployment: skipping("true"), has: "skipped by " + by + "\n"},
		{name: "status of all", line: "status", deployment: skipping("true"), has: "orders   Idle    -      -      skips all slots, by " + by + "\n", lacks: "Sat 2026"},
		{name: "status of all for scripts", line: "status -o jsonpath={.items[0].skippedBy}", deployment: skipping("true"), has: "mirror.maint.dev/orders-skip"},
		{name: "calendar", line: "calendar --to 2026-11-22", deployment: skipping("true"), has: "skipped by " + by + "\n"},
		{name: "calendar for scripts", line: "calendar --from 2026-11-21T00:00:00Z --to 2026-11-22T00:00:00Z -o jsonpath={.items[0].idle}", deployment: skipping("true"), has: "true"},
		{name: "calendar, where it is off", line: "calendar --to 2026-11-22", deployment: skipping("false"), has: "orders", lacks: "skipped"},
		{name: "status of all, where it is off", line: "status", deployment: skipping("false"), has: "Sat 2026", lacks: "skips"},
		{name: "while a run lives", line: "status orders", deployment: skipping("true"), more: objects(live(cmdtest.Record("call", "webhook", run.StepRunning))), has: "all slots, by " + by},
		{name: "a prefix of its own", line: "next orders --count 1", deployment: skipping("true"), spec: "mirrorPrefix: a.org, ", has: " -\n", lacks: "skipped"},
		{name: "it is off", line: "why orders", deployment: skipping("false"), has: "nothing is in the way\n", lacks: "skipped"},
		{name: "no target", line: "next orders --count 1", has: " -\n", lacks: "skipped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			world := append(objects(cmdtest.Agent(), cmdtest.Namespace("maint-system"), cmdtest.Namespace("shop"), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "maint-runner"}}, seen("orders", c.spec+target)), c.more...)
			if c.deployment != nil {
				world = append(world, c.deployment)
			}
			got := cmdtest.NewCluster(t, cmd.Run, world...).Line(c.line)
			if got.Code != c.code || !strings.Contains(got.Out, c.has) || c.lacks != "" && strings.Contains(got.Out, c.lacks) {
				t.Errorf("exit code %d, it is to have %q and not %q:\n%s%s", got.Code, c.has, c.lacks, got.Out, got.Err)
			}
		})
	}
}
