package agent_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// sits begins a command line at a terminal of a size.
func (l *lab) sits(columns, rows int, args ...string) *cmdtest.Person {
	l.Helper()
	return cmdtest.AtTerminal(l.T, exec.CommandContext(l.ctx, world.plugin, append([]string{"--kubeconfig", world.config, "-n", l.ns}, args...)...), columns, rows)
}

func TestStatusIsWatchedAtATerminal(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("holds", holding)
	l.seen("holds")
	l.trigger("holds", "1")
	name := l.running("holds", "hold").run.Name

	p := l.sits(80, 24, "status", "-w")
	p.Sees(">   holds", "run "+name+" is suspended", "▶ hold", "suspend", "Running", "PLAN", "q quit")
	p.TakesTheScreen()
	p.Types("/no such thing")
	p.Sees("/no such thing", "no line matches")
	p.Sees("!suspend")
	p.Types("\x1b")
	p.Sees("▶ hold")
	p.Types("\r")
	p.Sees("Plan:", "holds in namespace", "esc back", "▶ hold")
	p.Types("s")
	p.Reads("skip holds --next 1'? [y/N]")
	p.Types("n")
	p.Sees("nothing was done")
	p.Types("r")
	p.Reads("resume run/" + name + "'? [y/N]") // what waits is the run
	p.Types("n")
	p.Sees("nothing was done")
	p.Resizes(20, 8)
	p.Sees("Plan:")
	p.Resizes(120, 30)
	p.Sees("Plan:", "r resume")
	p.Types("\x1b")
	p.Sees(">   holds", "PLAN")
	p.Types("q")
	p.Ends(0, "is suspended", "PLAN")

	p = l.sits(80, 24, "status", name, "-w")
	p.Sees("▶ hold")
	p.Types("r")
	p.Reads("resume run/" + name + "'? [y/N]")
	p.Types("y")
	p.Sees("run/"+name+" resumed", "Succeeded")
	p.Types("\x03")
	p.Ends(130)
	if r := l.ended("holds", 1)[0]; r.journal.Phase != run.Succeeded {
		t.Errorf("%s: %s", r.journal.Phase, r.journal.Message)
	}
}

func TestARunIsWaitedForAtATerminal(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("rests", "steps: [{name: rest, type: suspend}]\n")
	l.plan("holds", holding)
	l.seen("rests")
	l.seen("holds")

	p := l.sits(80, 24, "trigger", "rests", "--wait")
	p.Sees("▶ rest", "Running")
	p.TakesTheScreen()
	name := l.runs("rests")[0].run.Name
	l.expect(l.maint("resume", name), 0, "resumed")
	p.Ends(0, name, "Succeeded after", "✓ rest")

	p = l.sits(80, 24, "trigger", "holds", "--wait")
	p.Sees("▶ hold")
	p.Types("q")
	p.Ends(130)
	l.expect(said{err: p.Stderr.String()}, 0, "run "+l.runs("holds")[0].run.Name+" goes on without you")
	p.IsBack("▶ hold")
}

func TestARunIsApprovedByAKey(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("asks", "requiresApproval: true\nsteps: [{name: rest, type: suspend, properties: {duration: 1s}}]\n")
	l.seen("asks")
	p := l.sits(80, 24, "trigger", "asks", "--wait")
	p.Sees("waits for approval")
	name := l.runs("asks")[0].run.Name
	p.Types("a")
	p.Reads("approve " + name + "'? [y/N]")
	p.Types("x")
	p.Sees("nothing was done")
	if r := l.runs("asks")[0]; r.journal.Approved != nil || r.journal.Phase != run.Pending {
		t.Fatalf("a no approved it: %+v", r.journal)
	}
	p.Types("ay")
	p.Ends(0, "Succeeded after", "✓ rest")
	l.expect(said{err: p.Stderr.String()}, 0, " approve "+name+": run/"+name+" approved")
}

func TestAnApprovedRunIsWaitedForAtATerminal(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("asks", "requiresApproval: true\nsteps: [{name: rest, type: suspend}]\n")
	l.seen("asks")
	l.trigger("asks", "1")
	l.eventually("the run asks", func() (bool, string) {
		runs := l.runs("asks")
		return len(runs) == 1 && runs[0].journal.Phase == run.Pending, describeRuns(runs)
	})
	p := l.sits(80, 24, "approve", "asks", "--wait")
	p.Sees("▶ rest", "Running")
	p.TakesTheScreen()
	name := l.runs("asks")[0].run.Name
	l.expect(l.maint("resume", name), 0, "resumed")
	p.Ends(0, name, "Succeeded after", "✓ rest")
}

// written counts what the plugin has written in the namespace.
func (l *lab) written() (n int) {
	l.Helper()
	_, err := harness.EachAudited(world.audit, 0, l.ns, func(e harness.AuditEvent) {
		if e.Object.Namespace == l.ns && strings.HasPrefix(e.UserAgent, "kubectl-maint/") && !slices.Contains([]string{"get", "list", "watch"}, e.Verb) {
			n++
		}
	})
	l.must(err)
	return n
}

func TestASlotIsSkippedByAKey(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("nightly", "triggers: {schedules: [{cron: '0 2 * * *', timezone: Europe/Berlin}]}\nsteps: [{name: rest, type: suspend, properties: {duration: 1s}}]\n")
	l.seen("nightly")
	before := l.written()
	p := l.sits(160, 24, "status", "nightly", "-w")
	p.Sees("Plan:", "nightly in namespace")
	p.Types("s")
	p.Reads("skip nightly --next 1'? [y/N]")
	p.Types("n")
	p.Sees("nothing was done")
	if n := l.written() - before; n != 0 {
		t.Errorf("a no has written %d times", n)
	}
	p.Types("sy")
	p.Sees("plan/nightly skips ", "Skip:")
	p.Types("q")
	p.Ends(0, "Skip:")
	l.expect(said{err: p.Stderr.String()}, 0, " skip nightly --next 1: plan/nightly skips ")
	if got := l.seen("nightly").Annotations[annotations.Skip]; got == "" {
		t.Error("no slot is skipped")
	}
}

// sleeper makes a HibernatePlan of a Deployment, orders, that sleeps by hand alone. There is no
// controller, so orders is at no replicas once the test says so.
func (l *lab) sleeper(name string) {
	l.Helper()
	l.runner(deploymentRights(), rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"get", "patch"}})
	l.deployment("orders", 2)
	text := "apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec: {behavior: {retries: 0}, schedule: {offHours: [{start: '20:00', end: '07:00'}], exclude: [{fromDate: '2020-01-01', untilDate: '2039-12-31'}]}, targets: [{name: apps, type: workload, parameters: {kinds: [Deployment]}}]}\n"
	cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewHibernatePlan(l.ns, name, text, ""), metav1.CreateOptions{})
	l.must(err)
	l.eventually(name+" is taken up", func() (bool, string) {
		got, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, name, metav1.GetOptions{})
		l.must(err)
		return got.Annotations[annotations.StatusObserved] == annotations.Observed(cm), fmt.Sprint(got.Annotations)
	})
}

// scales waits until orders is scaled, and does what a controller would do then.
func (l *lab) scales(to int32) {
	l.Helper()
	l.eventually(fmt.Sprintf("orders is scaled to %d", to), func() (bool, string) {
		d, err := l.admin.AppsV1().Deployments(l.ns).Get(l.ctx, "orders", metav1.GetOptions{})
		l.must(err)
		if *d.Spec.Replicas != to {
			return false, fmt.Sprint(*d.Spec.Replicas)
		}
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: to, ReadyReplicas: to, AvailableReplicas: to, UpdatedReplicas: to}
		_, err = l.admin.AppsV1().Deployments(l.ns).UpdateStatus(l.ctx, d, metav1.UpdateOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

// What is waited for goes on when somebody leaves: who comes back sees how it ends.
func TestSleepIsWaitedForAtATerminal(t *testing.T) {
	l := newLab(t)
	l.sleeper("nights")
	for _, one := range []struct {
		command, under, to string
		replicas           int32
	}{{"hibernate", "Hibernating", "Hibernated", 0}, {"wake", "WakingUp", "Active", 2}} {
		p := l.sits(80, 24, one.command, "nights", "--yes", "--wait")
		p.Sees("nights", one.under, "apps", "Running", "q quit")
		p.TakesTheScreen()
		p.Resizes(40, 12)
		p.Sees("apps")
		p.Types("q")
		p.Ends(130)
		l.expect(said{err: p.Stderr.String()}, 0, "the request is kept, and goes on without you")
		p.IsBack("apps")

		p = l.sits(80, 24, one.command, "nights", "--yes", "--wait")
		p.Sees(one.under, "Running")
		p.TakesTheScreen()
		l.scales(one.replicas)
		p.Ends(0, "nights", one.to)
	}
}

func TestSleepThatFailsIsWaitedForAtATerminal(t *testing.T) {
	l := newLab(t)
	l.sleeper("nights")
	l.must(l.admin.RbacV1().RoleBindings(l.ns).Delete(l.ctx, "maint-runner", metav1.DeleteOptions{}))
	p := l.sits(120, 24, "hibernate", "nights", "--yes", "--wait")
	p.Ends(4, "nights", "Error")
	l.expect(said{err: p.Stderr.String()}, 0, "error: plan nights: Error: apps failed: ", "forbidden")
}

func TestLogsAreReadByAKey(t *testing.T) {
	l := newLab(t)
	l.runner()
	spec := "steps:\n"
	for i := range 12 {
		spec += fmt.Sprintf("- {name: call-%d, type: webhook, properties: {url: \"HOOK/call\"}}\n", i)
	}
	l.plan("calls", spec+"- {name: hold, type: suspend}\n")
	l.plan("quiet", holding)
	l.seen("calls")
	l.seen("quiet")
	l.trigger("calls", "1")
	name := l.running("calls", "hold").run.Name
	before := l.written()

	p := l.sits(100, 12, "status", "-w")
	p.Sees("calls", "q quit")
	p.Types("/▶ hold\r") // a line of the run
	p.Sees("> ", "!quiet")
	p.Types("l")
	p.Sees("==> call-11 (webhook, Succeeded)", "esc back")
	p.Sees("!==> call-0 ") // the end of a log comes first
	p.TakesTheScreen()
	p.Types("g")
	p.Sees("==> call-0 (webhook, Succeeded)", "POST "+l.hooks.URL, "!==> call-11 ")
	p.Types(" ")
	p.Sees("!==> call-0 ", "==> call-3 ")
	p.Types("G")
	p.Sees("==> call-11 (webhook, Succeeded)", "!is the newest of")
	p.Types("\x1b")
	p.Sees("▶ hold", "q quit", "!esc back")
	p.Types("\x1b") // the filter is cleared
	p.Sees("call-2 ", "!/▶ hold")
	p.Types("q")
	p.Ends(0)
	if said := p.Stderr.String(); said != "" {
		t.Errorf("standard error: %q", said)
	}
	if n := l.written() - before; n != 0 {
		t.Errorf("who reads logs has written %d times", n)
	}
	if r := l.runs("calls"); len(r) != 1 || r[0].run.Name != name || r[0].journal.Phase != run.Running {
		t.Errorf("the run is no longer as it was: %s", describeRuns(r))
	}
}
