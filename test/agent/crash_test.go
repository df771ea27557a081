package agent_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// crashes is a cluster whose agent is killed again and again, through a proxy
// that knows each of its writes.
type crashes struct {
	t      *testing.T
	ctx    context.Context
	c      *cluster.Cluster
	admin  kubernetes.Interface
	hooks  *harness.Receiver
	proxy  *harness.Proxy
	bin    string
	plugin string
	config string
	story  string   // the plan that is played
	once   []string // the webhooks that are sent under one key
}

func newCrashes(t *testing.T) *crashes {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute) // some 3 min alone; a guess for a busy machine
	t.Cleanup(cancel)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	x := &crashes{t: t, ctx: ctx, story: story, once: []string{"start", "end", "over"}}
	var err error
	x.bin, x.plugin, err = harness.Build(ctx, t.TempDir())
	must(err)
	x.c, x.admin, err = startCluster(ctx, withoutDeployments())
	t.Cleanup(func() { _ = x.c.Stop() })
	must(err)
	x.hooks, err = harness.NewReceiver(nil)
	must(err)
	t.Cleanup(x.hooks.Close)
	own, err := x.c.ServiceAccountConfig(ctx, annotations.DefaultNamespace, "maint-agent")
	must(err)
	x.proxy, err = harness.NewProxy(own)
	must(err)
	t.Cleanup(x.proxy.CloseClientConnections)
	x.config, err = x.c.KubeconfigFile("crashing", x.proxy.Config(own))
	must(err)
	return x
}

func (x *crashes) agent() *harness.Process {
	x.t.Helper()
	p, err := harness.StartAgent(x.bin, x.config, "--leader-elect=false")
	if err != nil {
		x.t.Fatal(err)
	}
	return p
}

// prepare sets the story up in a namespace of its own.
func (x *crashes) prepare(ns string) {
	x.t.Helper()
	_, err := x.admin.CoreV1().Namespaces().Create(x.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
	if err == nil {
		err = harness.Runner(x.ctx, x.admin, ns, deploymentRights(), rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"get", "patch"}})
	}
	if err == nil {
		replicas, labels := int32(3), map[string]string{"app": "orders"}
		_, err = newDeployment(x.ctx, x.admin, ns, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "orders"},
			Spec: appsv1.DeploymentSpec{
				Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.org/none"}}}},
			},
		})
	}
	if err == nil {
		text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  " + strings.ReplaceAll(strings.Trim(strings.ReplaceAll(x.story, "HOOK", x.hooks.URL+"/"+ns), "\n"), "\n", "\n  ")
		_, err = x.admin.CoreV1().ConfigMaps(ns).Create(x.ctx, annotations.NewPlan(ns, "orders-weekly", text, ""), metav1.CreateOptions{})
	}
	if err != nil {
		x.t.Fatal(err)
	}
}

// crash plays the story once in a namespace, kills the agent where the point
// says, starts another, and says what the point was.
func (x *crashes) crash(ns string, at func(kill func(what string))) string {
	x.prepare(ns)
	victim := x.agent()
	var once sync.Once
	where := ""
	killed := make(chan struct{})
	at(func(what string) {
		once.Do(func() {
			where = what
			victim.Kill()
			close(killed)
		})
	})
	x.label(ns)
	x.play(ns, killed, 30*time.Second)
	x.proxy.At(nil)
	x.hooks.Heard(nil)
	select {
	case <-killed:
	default:
		victim.Kill()
		if runs, err := readRuns(x.ctx, x.admin, ns, "orders-weekly"); err != nil || len(runs) == 0 {
			x.t.Fatalf("the agent did nothing:\n%s", victim.Log())
		}
		return ""
	}
	heir := x.agent()
	x.play(ns, nil, 60*time.Second)
	heir.Kill()
	return where
}

func (x *crashes) label(ns string) {
	patch := []byte(`{"metadata":{"labels":{"maintenance.company.org/database-upgrade":"go"}}}`)
	if _, err := x.admin.AppsV1().Deployments(ns).Patch(x.ctx, "orders", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		x.t.Fatal(err)
	}
}

// play resumes the run when it holds, and returns when it has ended, or when
// the agent was killed.
func (x *crashes) play(ns string, killed <-chan struct{}, limit time.Duration) {
	over := time.After(limit)
	for {
		runs, err := readRuns(x.ctx, x.admin, ns, "orders-weekly")
		if err != nil {
			x.t.Fatal(err)
		}
		for _, r := range runs {
			if r.journal.Phase.Ended() && len(r.object.Finalizers) == 0 && x.settled(ns, r) {
				return
			}
			if rec := recordOf(r.journal, "hold"); rec != nil && rec.Phase == run.StepRunning {
				if err := patchAnnotations(x.ctx, x.admin, ns, "orders-weekly", map[string]string{annotations.Resume: r.run.Name}); err != nil {
					x.t.Fatal(err)
				}
			}
		}
		select {
		case <-killed:
			return
		case <-over:
			return // what is wrong is found by the checks
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// settled says whether the plan's status speaks of the run's end: there is
// nothing left for the agent to write.
func (x *crashes) settled(ns string, r runState) bool {
	cm, err := x.admin.CoreV1().ConfigMaps(ns).Get(x.ctx, "orders-weekly", metav1.GetOptions{})
	return err == nil && cm.Annotations[annotations.StatusPhase] == string(trigger.PhaseIdle) && cm.Annotations[annotations.StatusLastRunName] == r.run.Name
}

func recordOf(j run.Journal, path string) *run.Record {
	for i := range j.Steps {
		if j.Steps[i].Path == path {
			return &j.Steps[i]
		}
	}
	return nil
}

// check finds what the crash must not have changed.
func (x *crashes) check(ns, where string) {
	x.t.Helper()
	runs, err := readRuns(x.ctx, x.admin, ns, "orders-weekly")
	if err != nil {
		x.t.Fatal(err)
	}
	if len(runs) != 1 || runs[0].journal.Phase != run.Succeeded {
		x.t.Errorf("killed at %s: %d runs, %s", where, len(runs), describeRuns(runs))
	}
	for _, path := range x.once {
		if keys := x.hooks.Keys("/" + ns + "/" + path); len(keys) != 1 {
			x.t.Errorf("killed at %s: webhook %s was sent with the keys %v, want one", where, path, keys)
		}
	}
	d, err := x.admin.AppsV1().Deployments(ns).Get(x.ctx, "orders", metav1.GetOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	if *d.Spec.Replicas != 3 || len(d.Labels) != 0 {
		x.t.Errorf("killed at %s: replicas %d, want 3; labels %v, want none", where, *d.Spec.Replicas, d.Labels)
	}
}

func describeRuns(runs []runState) string {
	var out []string
	for _, r := range runs {
		out = append(out, fmt.Sprintf("%s %s: %s", r.run.Name, r.journal.Phase, r.journal.Message))
	}
	return strings.Join(out, "; ")
}

// counted says whether a write is one of the story's: leases, heartbeats and
// Events are not.
func counted(req *http.Request, ns string) bool {
	return strings.Contains(req.URL.Path, "/namespaces/"+ns+"/") && !strings.Contains(req.URL.Path, "/events")
}

// strideOfCrashes is which of a story's writes the agent is killed at: one in some, or every
// one with MAINT_CRASHES=all, as `make crashes` sets it.
func strideOfCrashes(some int) int {
	if os.Getenv("MAINT_CRASHES") == "all" {
		return 1
	}
	return some
}

// killAtWrites plays the story again and again, each time with the agent killed at
// another of its writes, every stride-th: before the write is sent on, and after it
// with the reply lost.
func (x *crashes) killAtWrites(stride int) []string {
	x.t.Helper()
	var points []string
	for _, lost := range []bool{false, true} {
		for n := 1; ; n += stride {
			ns := fmt.Sprintf("crash-%d-%t", n, lost)
			where := x.crash(ns, func(kill func(string)) {
				var mu sync.Mutex
				seen := 0
				x.proxy.At(func(req *http.Request, answered bool) bool {
					if answered != lost || !counted(req, ns) {
						return true
					}
					mu.Lock()
					seen++
					hit := seen == n
					mu.Unlock()
					if hit {
						kill(fmt.Sprintf("write %d (reply lost: %t): %s %s", n, lost, req.Method, req.URL.Path))
					}
					return !hit
				})
			})
			x.check(ns, where)
			if where == "" { // the story ended before its n-th write
				break
			}
			points = append(points, where)
		}
	}
	return points
}

// killAtHooks does so when a webhook has come and was not answered yet.
func (x *crashes) killAtHooks() []string {
	x.t.Helper()
	var points []string
	for _, path := range x.once {
		ns := "crash-hook-" + strings.ReplaceAll(path, "/", "-")
		where := x.crash(ns, func(kill func(string)) {
			x.hooks.Heard(func(d harness.Delivery) {
				if d.Path == "/"+ns+"/"+path {
					kill("webhook " + path + " before its answer")
				}
			})
		})
		x.check(ns, where)
		points = append(points, where)
	}
	return points
}

func TestAKillAtEveryWriteOfTheStoryChangesNothingOfItsEnd(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Fatal("this test has no short form")
	}
	x := newCrashes(t)
	points := append(x.killAtWrites(strideOfCrashes(3)), x.killAtHooks()...)
	if len(points) < 12 {
		t.Errorf("only %d points were tried", len(points))
	}
	t.Logf("killed at %d points", len(points))
	if os.Getenv("MAINT_TEST_LOG") != "" {
		t.Log(strings.Join(points, "\n"))
	}
}

// treeStory does what the story does, with steps that hold steps: side by side, and
// for each of some objects.
const treeStory = `
target: {apiVersion: apps/v1, kind: Deployment, name: orders}
triggers: {labels: [maintenance.company.org/database-upgrade]}
steps:
- name: begin
  type: step-group
  properties:
    mode: parallel
    steps:
    - {name: announce, type: webhook, properties: {url: "HOOK/start"}}
    - {name: mark, type: label, properties: {operation: add, labels: {maintenance.company.org/paused: "true"}, restoreAfter: true}}
    - name: down
      type: patch-object
      dependsOn: [announce, mark]
      properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, patch: {spec: {replicas: 0}}, restoreAfter: true}
- name: each-one
  type: for-each
  properties:
    apiVersion: apps/v1
    kind: Deployment
    until: object.spec.replicas == 0
    steps:
    - {name: tell, type: webhook, properties: {url: "HOOK/each/${each.metadata.name}"}}
- name: hold
  type: suspend
- name: report
  type: webhook
  properties: {url: "HOOK/end"}
finally:
- name: tidy
  type: step-group
  properties:
    steps: [{name: say, type: webhook, properties: {url: "HOOK/over"}}]
`

func TestAKillAmidStepsThatHoldStepsChangesNothingOfTheirEnd(t *testing.T) {
	t.Parallel()
	x := newCrashes(t)
	x.story, x.once = treeStory, []string{"start", "each/orders", "end", "over"}
	points := append(x.killAtWrites(strideOfCrashes(5)), x.killAtHooks()...)
	if len(points) < 10 {
		t.Errorf("only %d points were tried", len(points))
	}
	t.Logf("killed at %d points", len(points))
}
