package cluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-maint/kubectl-maint/test/cluster"
)

// victimDir, when set, makes this binary start a cluster in that directory and
// wait to be killed.
const victimDir = "MAINT_TEST_CLUSTER_VICTIM_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		beVictim(dir)
	}
	cluster.Main(m)
}

func beVictim(dir string) {
	if _, err := cluster.Start(context.Background(), cluster.Options{Dir: dir}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("up")
	select {}
}

func TestAServiceAccountMayDoWhatRBACGrantsAndNoMore(t *testing.T) {
	c := cluster.Shared(t)
	ns := c.Namespace(t)
	admin := clientset(t, c.AdminConfig())
	grantReadingConfigMaps(t, admin, ns)

	config, err := c.ServiceAccountConfig(t.Context(), ns, "default")
	if err != nil {
		t.Fatal(err)
	}
	account := clientset(t, config)

	// The authorizer learns of a new binding through a watch.
	eventually(t, "the account may list ConfigMaps", func(ctx context.Context) (bool, error) {
		_, err := account.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	})
	_, err = account.CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("list Secrets: %v, want forbidden", err)
	}
	_, err = account.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("list ConfigMaps of another namespace: %v, want forbidden", err)
	}
}

func TestAKubeconfigFileActsAsItsConfig(t *testing.T) {
	c := cluster.Shared(t)
	ns := c.Namespace(t)
	account, err := c.ServiceAccountConfig(t.Context(), ns, "default")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		config *rest.Config
		may    bool
	}{
		"admin-by-certificate": {c.AdminConfig(), true},
		"account-by-token":     {account, false},
	} {
		path, err := c.KubeconfigFile(name, want.config)
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = clientset(t, config).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if may := err == nil; may != want.may {
			t.Errorf("%s lists nodes: %v, want allowed=%t", name, err, want.may)
		}
	}
}

func TestTheGarbageCollectorDeletesWhatADeletedOwnerLeaves(t *testing.T) {
	c := cluster.Shared(t)
	ns := c.Namespace(t)
	maps := clientset(t, c.AdminConfig()).CoreV1().ConfigMaps(ns)
	owner, err := maps.Create(t.Context(), configMap("owner"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := configMap("owned")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
	if _, err := maps.Create(t.Context(), owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the owned ConfigMap is gone", func(ctx context.Context) (bool, error) {
		_, err := maps.Get(ctx, owned.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

func TestTheJobControllerCreatesPods(t *testing.T) {
	c := cluster.Shared(t)
	ns := c.Namespace(t)
	client := clientset(t, c.AdminConfig())
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "step"}, Spec: batchv1.JobSpec{Template: podTemplate()}}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	if _, err := client.BatchV1().Jobs(ns).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Job has a pod", func(ctx context.Context) (bool, error) {
		pods, err := client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 1, err
	})
}

func TestTheAuditLogHasOneLineForARequest(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "audit.log")
	c := start(t, cluster.Options{AuditLog: log})
	maps := clientset(t, c.AdminConfig()).CoreV1().ConfigMaps(metav1.NamespaceDefault)
	if _, err := maps.Create(t.Context(), configMap("audited"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// Written after the answer has gone out.
	eventually(t, "the create is in the audit log", func(context.Context) (bool, error) {
		return countAudited(t, log, "create", "audited") == 1, nil
	})
}

func TestARestartOfTheAPIServerKeepsDataAddressAndTokens(t *testing.T) {
	t.Parallel()
	c := start(t, cluster.Options{})
	ns := c.Namespace(t)
	admin := clientset(t, c.AdminConfig())
	grantReadingConfigMaps(t, admin, ns)
	config, err := c.ServiceAccountConfig(t.Context(), ns, "default")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap("kept"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	c.StopAPIServer()
	if _, err := admin.CoreV1().ConfigMaps(ns).Get(t.Context(), "kept", metav1.GetOptions{}); err == nil {
		t.Fatal("a stopped API server answered")
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := clientset(t, config).CoreV1().ConfigMaps(ns).Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("after the restart, with the token from before it: %v", err)
	}
	if err := c.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CoreV1().ConfigMaps(ns).Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("after the second restart: %v", err)
	}
}

func TestADeploymentBecomesAvailableOnSimulatedNodes(t *testing.T) {
	t.Parallel()
	c := start(t, cluster.Options{ControllerManager: true, Scheduler: true, Kwok: true, Nodes: 3})
	ns := c.Namespace(t)
	client := clientset(t, c.AdminConfig())
	three := int32(3)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &three,
			Selector: &metav1.LabelSelector{MatchLabels: podTemplate().Labels},
			Template: podTemplate(),
		},
	}
	if _, err := client.AppsV1().Deployments(ns).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "three replicas are available", func(ctx context.Context) (bool, error) {
		d, err := client.AppsV1().Deployments(ns).Get(ctx, "web", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == 3, err
	})
}

func TestStopLeavesNoProcessAndNoDirectory(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	began := time.Now()
	c, err := cluster.Start(t.Context(), cluster.Options{ControllerManager: true, Scheduler: true, Kwok: true, Nodes: 1, Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("everything was up after %s:\n%s", time.Since(began).Round(time.Millisecond), &log)
	path, err := c.KubeconfigFile("probe", c.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(filepath.Dir(path))
	if got := processesIn(t, dir); len(got) != 5 {
		t.Errorf("processes while it runs: %q, want five", got)
	}

	for range 2 { // the second Stop finds nothing to do
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if got := processesIn(t, dir); len(got) != 0 {
		t.Errorf("processes after Stop: %q", got)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("directory after Stop: %v, want none", err)
	}
}

func TestNothingOutlivesATestProcessThatIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), victimDir+"="+dir)
	output, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer victim.Wait() //nolint:errcheck // killed, so it always says so
	line, err := bufio.NewReader(output).ReadString('\n')
	if line != "up\n" {
		t.Fatalf("the victim says %q (%v)", line, err)
	}
	if got := processesIn(t, dir); len(got) != 2 {
		t.Errorf("processes while it runs: %q, want two", got)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its processes are gone", func(context.Context) (bool, error) {
		return len(processesIn(t, dir)) == 0, nil
	})
}

func TestStartSaysWhatToRunWhenABinaryIsMissing(t *testing.T) {
	t.Setenv("MAINT_ASSETS", t.TempDir())
	_, err := cluster.Start(t.Context(), cluster.Options{Scheduler: true})
	if err == nil || !strings.Contains(err.Error(), "no etcd, kube-apiserver, kube-scheduler") ||
		!strings.Contains(err.Error(), "make tools-kube") {
		t.Errorf("got %v, want the missing binaries and the command that builds them", err)
	}
}

func TestStartShowsTheLastWordsOfAPartThatEnds(t *testing.T) {
	t.Parallel()
	_, err := cluster.Start(t.Context(), cluster.Options{APIServerArgs: []string{"--no-such-flag"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("got %v, want the complaint of kube-apiserver", err)
	}
}

func start(t *testing.T, o cluster.Options) *cluster.Cluster {
	t.Helper()
	began := time.Now()
	c, err := cluster.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("cluster started in %s", time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Errorf("stop cluster: %v", err)
		}
	})
	return c
}

func clientset(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func eventually(t *testing.T, what string, done wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, done); err != nil {
		t.Fatalf("wait until %s: %v", what, err)
	}
}

func grantReadingConfigMaps(t *testing.T, admin kubernetes.Interface, ns string) {
	t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "default"}},
	}
	if _, err := admin.RbacV1().Roles(ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.RbacV1().RoleBindings(ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func podTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.test/web:1"}}},
	}
}

func countAudited(t *testing.T, path, verb, name string) int {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	count := 0
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Level, Verb string
			ObjectRef   struct{ Name string }
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			continue // the last line may be half-written
		}
		if event.Level == "Metadata" && event.Verb == verb && event.ObjectRef.Name == name {
			count++
		}
	}
	return count
}

// processesIn returns the command names of the processes that work in dir.
func processesIn(t *testing.T, dir string) []string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("looks at /proc")
	}
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, link := range links {
		// Errors are processes that have ended meanwhile.
		target, err := os.Readlink(link)
		if err != nil || strings.TrimSuffix(target, " (deleted)") != dir {
			continue
		}
		name, err := os.ReadFile(filepath.Join(filepath.Dir(link), "comm"))
		if err == nil {
			names = append(names, strings.TrimSpace(string(name)))
		}
	}
	return names
}
