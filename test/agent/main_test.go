// Package agent_test proves the promises of the agent on a real API server. The
// agent runs as a process of its own, with its own ServiceAccount.
package agent_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

func TestMain(m *testing.M) {
	code := 1
	defer func() { os.Exit(code) }()
	defer world.stop()
	defer elsewhere.stop()
	sideBySide()
	code = m.Run()
	if code == 0 && world.cluster != nil {
		if err := harness.CheckConfined(world.audit); err != nil {
			fmt.Fprintln(os.Stderr, "--- FAIL: the policies that confine the agent let it do its work\n"+err.Error())
			code = 1
		}
	}
	if code == 0 && flag.Lookup("test.run").Value.String() == "" && world.cluster != nil {
		if err := harness.CheckRights(world.audit, []string{"maint-agent", "maint-agent-key"}, []string{"maint-agent-drains", "maint-agent-nodes", "maint-agent-force", "maint-agent-volumes", "maint-agent-conditions", "maint-surge"}); err != nil {
			fmt.Fprintln(os.Stderr, "--- FAIL: the agent's rights are exactly those that it used\n"+err.Error())
			code = 1
		}
	}
}

// sideBySide has more tests run at once than there are processors, unless the
// command line says how many: each waits most of its time for instants.
func sideBySide() {
	flag.Parse()
	told := false
	flag.Visit(func(f *flag.Flag) { told = told || f.Name == "test.parallel" })
	if !told {
		_ = flag.Set("test.parallel", strconv.Itoa(max(6, runtime.GOMAXPROCS(0))))
	}
}

// world is what the tests of this binary share: one cluster and one agent. The
// testing package hands nothing from TestMain to tests.
var world shared //nolint:gochecknoglobals // see above

type shared struct {
	configuring sync.Mutex // held by who gives the agent a configuration of its own
	once        sync.Once
	err         error
	cluster     *cluster.Cluster
	admin       kubernetes.Interface
	agent       *harness.Process
	hooks       *harness.Receiver
	bin         string
	plugin      string
	config      string // kubeconfig of an admin
	dir         string
	audit       string
}

func (s *shared) start() error {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // the two commands are built first, perhaps from nothing
		defer cancel()
		s.err = s.prepare(ctx)
	})
	return s.err
}

func (s *shared) prepare(ctx context.Context) (err error) {
	if s.dir, err = os.MkdirTemp("", "maint-agent-test-"); err != nil {
		return err
	}
	if s.bin, s.plugin, err = harness.Build(ctx, s.dir); err != nil {
		return err
	}
	options := withoutDeployments()
	s.audit = filepath.Join(s.dir, "audit.log")
	options.AuditLog = s.audit
	if s.cluster, s.admin, err = startCluster(ctx, options); err != nil {
		return err
	}
	if s.config, err = s.cluster.KubeconfigFile("admin", s.cluster.AdminConfig()); err != nil {
		return err
	}
	if s.hooks, err = harness.NewReceiver(nil); err != nil {
		return err
	}
	s.agent, err = harness.StartInstalled(ctx, s.cluster, annotations.DefaultNamespace, s.bin)
	return err
}

// withoutDeployments leaves the Deployment controller out: there are no nodes
// here, so the tests write the status of Deployments themselves.
func withoutDeployments() cluster.Options {
	return cluster.Options{ControllerManager: true, ControllerManagerArgs: []string{"--controllers=*,-deployment-controller"}}
}

func startCluster(ctx context.Context, o cluster.Options) (*cluster.Cluster, kubernetes.Interface, error) {
	c, err := cluster.Start(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	admin, err := kubernetes.NewForConfig(c.AdminConfig())
	if err != nil {
		return c, nil, err
	}
	return c, admin, harness.Install(ctx, c.AdminConfig())
}

func (s *shared) stop() {
	if s.agent != nil {
		_ = s.agent.Stop()
		if os.Getenv("MAINT_TEST_LOG") != "" {
			fmt.Fprintln(os.Stderr, s.agent.Log())
		}
	}
	if s.hooks != nil {
		s.hooks.Close()
	}
	if s.cluster != nil {
		_ = s.cluster.Stop()
	}
	_ = os.RemoveAll(s.dir)
}

// lab is a namespace of its own for one test, on the shared cluster.
type lab struct {
	*testing.T
	ctx   context.Context
	admin kubernetes.Interface
	ns    string
	hooks *harness.Receiver
}

func newLab(t *testing.T) *lab {
	t.Helper()
	return newLabFor(t, 2*time.Minute)
}

// newLabFor is newLab for a story that may take longer. What it has begun is killed after this time.
func newLabFor(t *testing.T, limit time.Duration) *lab {
	t.Helper()
	if err := world.start(); err != nil {
		t.Fatalf("start the cluster and the agent: %v", err)
	}
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	l := &lab{T: t, ctx: ctx, admin: world.admin, ns: world.cluster.Namespace(t), hooks: world.hooks}
	t.Cleanup(func() {
		if t.Failed() {
			l.explain()
		}
		cancel()
	})
	return l
}

// beside is another namespace of the same test.
func (l *lab) beside() *lab {
	l.Helper()
	return &lab{T: l.T, ctx: l.ctx, admin: l.admin, ns: world.cluster.Namespace(l.T), hooks: l.hooks}
}

// explain prints what a person would look at first.
func (l *lab) explain() {
	maps, _ := l.admin.CoreV1().ConfigMaps(l.ns).List(context.Background(), metav1.ListOptions{})
	if maps == nil {
		return
	}
	for _, cm := range maps.Items {
		if cm.Labels[annotations.LabelKind] != "" {
			l.Logf("%s: %v\n%s%s", cm.Name, cm.Annotations, cm.Data[annotations.DataJournal], cm.Data[annotations.DataLedger])
		}
	}
	for _, line := range strings.Split(world.agent.Log(), "\n") {
		if strings.Contains(line, l.ns) || strings.Contains(line, "panic") || strings.Contains(line, "level=ERROR") {
			l.Log(line)
		}
	}
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// deploymentRights are what the story's plan needs.
func deploymentRights() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch", "patch"}}
}

func deploymentRightsWithout(verb string) rbacv1.PolicyRule {
	rule := deploymentRights()
	rule.Verbs = slices.DeleteFunc(rule.Verbs, func(v string) bool { return v == verb })
	return rule
}

// runner gives the namespace its maint-runner.
func (l *lab) runner(rules ...rbacv1.PolicyRule) {
	l.Helper()
	if len(rules) == 0 {
		rules = []rbacv1.PolicyRule{deploymentRights()}
	}
	l.must(harness.Runner(l.ctx, l.admin, l.ns, rules...))
}

// deployment creates a Deployment that says it is ready.
func (l *lab) deployment(name string, replicas int32) *appsv1.Deployment {
	l.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.org/none"}}}},
		},
	}
	d, err := newDeployment(l.ctx, l.admin, l.ns, d)
	l.must(err)
	return d
}

// observed has a Deployment say that its controller has seen its newest generation, which
// every write makes that touches its spec or its annotations.
func (l *lab) observed(d *appsv1.Deployment) {
	l.Helper()
	d.Status.ObservedGeneration = d.Generation
	_, err := l.admin.AppsV1().Deployments(l.ns).UpdateStatus(l.ctx, d, metav1.UpdateOptions{})
	l.must(err)
}

func newDeployment(ctx context.Context, admin kubernetes.Interface, ns string, d *appsv1.Deployment) (*appsv1.Deployment, error) {
	d, err := admin.AppsV1().Deployments(ns).Create(ctx, d, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, ReadyReplicas: n, AvailableReplicas: n, UpdatedReplicas: n}
	return admin.AppsV1().Deployments(ns).UpdateStatus(ctx, d, metav1.UpdateOptions{})
}

// plan creates a plan from the lines of its spec.
func (l *lab) plan(name, spec string, more ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	l.Helper()
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n"
	for _, line := range strings.Split(strings.Trim(strings.ReplaceAll(spec, "HOOK", l.hooks.URL+"/"+l.ns), "\n"), "\n") {
		text += "  " + line + "\n"
	}
	cm := annotations.NewPlan(l.ns, name, text, "")
	for _, edit := range more {
		edit(cm)
	}
	cm, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, cm, metav1.CreateOptions{})
	l.must(err)
	return cm
}

// annotate merges annotations of a plan; an empty value takes one away.
func (l *lab) annotate(name string, values map[string]string) {
	l.Helper()
	l.must(patchAnnotations(l.ctx, l.admin, l.ns, name, values))
}

func patchAnnotations(ctx context.Context, admin kubernetes.Interface, ns, name string, values map[string]string) error {
	var parts []string
	for k, v := range values {
		quoted := fmt.Sprintf("%q", v)
		if v == "" {
			quoted = "null"
		}
		parts = append(parts, fmt.Sprintf("%q:%s", k, quoted))
	}
	patch := `{"metadata":{"annotations":{` + strings.Join(parts, ",") + `}}}`
	_, err := admin.CoreV1().ConfigMaps(ns).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: annotations.ManagerCLI})
	return err
}

// eventually asks again until it holds; the last answer is the failure's text.
func (l *lab) eventually(what string, holds func() (bool, string)) {
	l.Helper()
	eventually(l.T, l.ctx, what, holds)
}

func eventually(t testing.TB, ctx context.Context, what string, holds func() (bool, string)) {
	t.Helper()
	eventuallyWithin(t, ctx, time.Minute, what, holds)
}

func eventuallyWithin(t testing.TB, ctx context.Context, patience time.Duration, what string, holds func() (bool, string)) {
	t.Helper()
	limit := time.After(patience)
	last := ""
	for {
		ok, now := holds()
		if ok {
			return
		}
		last = now
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %s: %v", what, last, ctx.Err())
		case <-limit:
			t.Fatalf("%s: not within %s: %s", what, patience, last)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// seen waits until the agent has taken up a plan's present text.
func (l *lab) seen(name string) *corev1.ConfigMap {
	l.Helper()
	var cm *corev1.ConfigMap
	l.eventually("the agent takes up plan "+name, func() (bool, string) {
		var err error
		cm, err = l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, name, metav1.GetOptions{})
		l.must(err)
		return cm.Annotations[annotations.StatusObserved] == annotations.Hash10(cm.Data[annotations.DataPlan]), fmt.Sprint(cm.Annotations)
	})
	return cm
}

// trigger asks for a run by token.
func (l *lab) trigger(name, token string) {
	l.Helper()
	l.annotate(name, map[string]string{annotations.Trigger: token})
}

type runState struct {
	object  corev1.ConfigMap
	run     run.Run
	journal run.Journal
}

// runs are all runs of a plan, live and ended.
func (l *lab) runs(name string) []runState {
	l.Helper()
	out, err := readRuns(l.ctx, l.admin, l.ns, name)
	l.must(err)
	return out
}

func readRuns(ctx context.Context, admin kubernetes.Interface, ns, name string) ([]runState, error) {
	list, err := admin.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=run," + annotations.LabelPlan + "=" + name})
	if err != nil {
		return nil, err
	}
	var out []runState
	for _, cm := range list.Items {
		r, j, err := annotations.ReadRun(&cm)
		if err != nil {
			return nil, err
		}
		out = append(out, runState{cm, r, j})
	}
	return out, nil
}

// ended waits until a plan has so many runs and all have ended.
func (l *lab) ended(name string, n int) []runState {
	l.Helper()
	var out []runState
	l.eventually(fmt.Sprintf("%d run(s) of %s end", n, name), func() (bool, string) {
		out = l.runs(name)
		done := 0
		for _, r := range out {
			if r.journal.Phase.Ended() && len(r.object.Finalizers) == 0 {
				done++
			}
		}
		return done == n && len(out) == n, fmt.Sprintf("%d of %d", done, len(out))
	})
	return out
}

// running waits until one run of a plan is at the named step.
func (l *lab) running(name, step string) runState {
	l.Helper()
	var got runState
	l.eventually(name+" is at step "+step, func() (bool, string) {
		for _, r := range l.runs(name) {
			for _, rec := range r.journal.Steps {
				if rec.Path == step && rec.Phase == run.StepRunning && r.journal.Phase == run.Running {
					got = r
					return true, ""
				}
			}
		}
		return false, fmt.Sprint(len(l.runs(name)), " runs")
	})
	return got
}

// ledger is a plan's ledger as it stands.
func (l *lab) ledger(cm *corev1.ConfigMap) ledger.Ledger {
	l.Helper()
	object, err := l.admin.CoreV1().ConfigMaps(l.ns).Get(l.ctx, annotations.LedgerName(cm.Name, string(cm.UID)), metav1.GetOptions{})
	l.must(err)
	out, err := annotations.ReadLedger(object, string(cm.UID))
	l.must(err)
	return out
}

func jobRights() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get", "list", "watch", "create", "delete"}}
}

func zero() *resource.Quantity { return resource.NewQuantity(0, resource.DecimalSI) }
