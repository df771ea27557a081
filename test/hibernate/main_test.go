// Package hibernate_test proves what the agent promises of hibernation on a real API server
// with the real controllers; KWOK plays the kubelets. The agent runs as a process of its
// own, with its own ServiceAccount.
package hibernate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
	"github.com/kubectl-maint/kubectl-maint/test/moto"
)

func TestMain(m *testing.M) {
	code := 1
	defer func() { os.Exit(code) }()
	defer world.stop()
	code = m.Run()
	if code == 0 && world.cluster != nil {
		if err := harness.CheckConfined(world.audit); err != nil {
			fmt.Fprintln(os.Stderr, "--- FAIL: the policies that confine the agent let it do its work\n"+err.Error())
			code = 1
		}
	}
}

// world is what the tests of this binary share: one cluster and one agent. The testing
// package hands nothing from TestMain to tests.
var world shared //nolint:gochecknoglobals // see above

type shared struct {
	once    sync.Once
	err     error
	cluster *cluster.Cluster
	admin   kubernetes.Interface
	bin     string
	plugin  string
	agent   string // kubeconfig of the agent
	dir     string
	audit   string
	aws     *moto.Server // nil: there is none

	mu      sync.Mutex
	process *harness.Process
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
	if s.dir, err = os.MkdirTemp("", "maint-hibernate-test-"); err != nil {
		return err
	}
	if err = s.startAWS(); err != nil {
		return err
	}
	if s.bin, s.plugin, err = harness.Build(ctx, s.dir); err != nil {
		return err
	}
	s.audit = filepath.Join(s.dir, "audit.log")
	if s.cluster, err = cluster.Start(ctx, cluster.Options{ControllerManager: true, Scheduler: true, Kwok: true, Nodes: 2, AuditLog: s.audit}); err != nil {
		return err
	}
	if s.admin, err = kubernetes.NewForConfig(s.cluster.AdminConfig()); err != nil {
		return err
	}
	if err = harness.Install(ctx, s.cluster.AdminConfig()); err != nil {
		return err
	}
	own, err := s.cluster.ServiceAccountConfig(ctx, annotations.DefaultNamespace, "maint-agent")
	if err != nil {
		return err
	}
	if s.agent, err = s.cluster.KubeconfigFile("agent", own); err != nil {
		return err
	}
	return s.launch()
}

// launch starts the agent, after one that was killed.
func (s *shared) launch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	s.process, err = harness.StartAgent(s.bin, s.agent, "--leader-elect=false")
	return err
}

func (s *shared) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process.Log()
}

func (s *shared) stop() {
	if s.process != nil {
		_ = s.process.Stop()
	}
	if s.cluster != nil {
		_ = s.cluster.Stop()
	}
	if s.aws != nil {
		s.aws.Stop()
	}
	_ = os.RemoveAll(s.dir)
}

// lab is one test's namespace.
type lab struct {
	*testing.T
	ctx   context.Context
	admin kubernetes.Interface
	ns    string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	if err := world.start(); err != nil {
		t.Fatalf("start the cluster: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	l := &lab{T: t, ctx: ctx, admin: world.admin, ns: world.cluster.Namespace(t)}
	t.Cleanup(func() {
		if t.Failed() {
			l.explain()
		}
		cancel()
	})
	return l
}

// explain prints what a person would look at first.
func (l *lab) explain() {
	maps, err := l.admin.CoreV1().ConfigMaps(l.ns).List(context.Background(), metav1.ListOptions{LabelSelector: annotations.LabelKind})
	if err != nil {
		return
	}
	for _, cm := range maps.Items {
		l.Logf("%s %v %s", cm.Name, cm.Annotations, cm.Data[annotations.DataRestore])
	}
	for line := range strings.SplitSeq(world.log(), "\n") {
		if strings.Contains(line, l.ns) {
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

func (l *lab) eventually(what string, holds func() (bool, string)) {
	l.Helper()
	end := time.Now().Add(time.Minute)
	for {
		ok, detail := holds()
		if ok {
			return
		}
		if time.Now().After(end) {
			l.Fatalf("%s: not within a minute: %s", what, detail)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// runner is the account of the namespace's plans, with these rights there.
func (l *lab) runner(rules ...rbacv1.PolicyRule) {
	l.Helper()
	l.must(harness.Runner(l.ctx, l.admin, l.ns, rules...))
}

// deployment makes a Deployment, and waits until all of its pods are ready.
// deployment makes one, and waits until its pods are ready.
func (l *lab) deployment(name string, replicas int32) {
	l.Helper()
	l.newDeployment(name, replicas)
	l.eventually(name+" is ready", func() (bool, string) {
		d, err := l.admin.AppsV1().Deployments(l.ns).Get(l.ctx, name, metav1.GetOptions{})
		l.must(err)
		return d.Status.ReadyReplicas == replicas && d.Status.ObservedGeneration == d.Generation, fmt.Sprint(d.Status.ReadyReplicas)
	})
}

// newDeployment makes one that may be asleep before its pods are ready.
func (l *lab) newDeployment(name string, replicas int32) {
	l.Helper()
	labels := map[string]string{"app": name}
	_, err := l.admin.AppsV1().Deployments(l.ns).Create(l.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.org/none"}}},
		}},
	}, metav1.CreateOptions{})
	l.must(err)
}

func (l *lab) replicas(name string) int32 {
	l.Helper()
	d, err := l.admin.AppsV1().Deployments(l.ns).Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	return *d.Spec.Replicas
}

func (l *lab) annotate(name string, set map[string]string) {
	l.Helper()
	text := ""
	for key, value := range set {
		text += fmt.Sprintf(",%q:%q", key, value)
	}
	_, err := l.admin.CoreV1().ConfigMaps(l.ns).Patch(l.ctx, name, types.MergePatchType, []byte(`{"metadata":{"annotations":{`+strings.TrimPrefix(text, ",")+`}}}`), metav1.PatchOptions{})
	l.must(err)
}
