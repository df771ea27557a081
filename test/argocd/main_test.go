package argocd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// asked is the variable without which nothing here runs.
const asked = "MAINT_ARGOCD"

// patience is for things that take seconds; a guess for a busy machine.
const patience = 90 * time.Second

// argoNamespace is where Argo CD is at home.
const argoNamespace = "argocd"

func applications() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}
}

// lab is a cluster with the agent and Argo CD.
type lab struct {
	*testing.T
	ctx    context.Context
	dir    string // what Argo CD writes
	config string // kubeconfig of an admin
	rest   *rest.Config
	plugin string
	admin  kubernetes.Interface
	dyn    dynamic.Interface
	log    *harness.Output
	render *gate // between the controller and the repository server
}

func newLab(t *testing.T) *lab {
	t.Helper()
	if os.Getenv(asked) == "" {
		t.Skip("Argo CD takes long to build, and is tried where it is asked for: make argocd-test")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 14*time.Minute)
	t.Cleanup(cancel)
	l := &lab{T: t, ctx: ctx, log: &harness.Output{}}
	l.scratch()
	c, err := cluster.Start(ctx, cluster.Options{ControllerManager: true, ControllerManagerArgs: []string{"--controllers=*,-deployment-controller"}})
	l.must(err)
	t.Cleanup(func() { _ = c.Stop() })
	l.rest = c.AdminConfig()
	l.admin, err = kubernetes.NewForConfig(l.rest)
	l.must(err)
	l.dyn, err = dynamic.NewForConfig(l.rest)
	l.must(err)
	l.must(harness.Install(ctx, l.rest))
	l.config, err = c.KubeconfigFile("admin", l.rest)
	l.must(err)
	agent, plugin, err := harness.Build(ctx, t.TempDir())
	l.must(err)
	l.plugin = plugin
	process, err := harness.StartInstalled(ctx, c, annotations.DefaultNamespace, agent)
	l.must(err)
	t.Cleanup(func() { _ = process.Stop() })
	l.installArgo()
	l.startArgo()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Argo CD's log: %s\n%s", l.keep(), l.log.Tail(40))
		}
	})
	return l
}

// scratch is a folder for Argo CD, which takes rights from folders of its own.
func (l *lab) scratch() {
	l.Helper()
	var err error
	l.dir, err = os.MkdirTemp("", "maint-argocd-")
	l.must(err)
	l.Cleanup(func() {
		_ = exec.Command("chmod", "-R", "u+rwX", l.dir).Run()
		_ = os.RemoveAll(l.dir)
	})
}

// module is the folder of Argo CD's module.
func (l *lab) module() string {
	l.Helper()
	root, err := harness.Root()
	l.must(err)
	cmd := exec.CommandContext(l.ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/argoproj/argo-cd/v3")
	cmd.Dir, cmd.Env = filepath.Join(root, "tools", "argocd"), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	out, err := cmd.Output()
	l.must(err)
	return strings.TrimSpace(string(out))
}

// installArgo brings what Argo CD's own manifests and image do: its kinds, its settings,
// the project that its API server would make, and the script by which it looks at commits.
func (l *lab) installArgo() {
	l.Helper()
	_, err := l.admin.CoreV1().Namespaces().Create(l.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: argoNamespace}}, metav1.CreateOptions{})
	l.must(err)
	module := l.module()
	const script = "git-verify-wrapper.sh"
	text, err := os.ReadFile(filepath.Join(module, "hack", script))
	l.must(err)
	l.must(os.Mkdir(filepath.Join(l.dir, "bin"), 0o755))
	l.must(os.WriteFile(filepath.Join(l.dir, "bin", script), text, 0o755)) //nolint:gosec // it is run
	for _, kind := range []string{"application", "appproject", "applicationset"} {
		text, err := os.ReadFile(filepath.Join(module, "manifests", "crds", kind+"-crd.yaml"))
		l.must(err)
		l.must(harness.Apply(l.ctx, l.rest, "", text, nil))
	}
	l.eventually("the kinds of Argo CD are served", func() (bool, string) {
		list, err := l.admin.Discovery().ServerResourcesForGroupVersion(applications().GroupVersion().String())
		if err != nil {
			return false, err.Error()
		}
		return len(list.APIResources) >= 3, fmt.Sprint(list.APIResources)
	})
	l.configure("")
	l.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-rbac-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: argocd-secret, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}, stringData: {server.secretkey: a-key-of-this-test-alone}}
---
{apiVersion: argoproj.io/v1alpha1, kind: AppProject, metadata: {name: default, namespace: argocd}, spec: {sourceRepos: ['*'], sourceNamespaces: ['*'], destinations: [{server: '*', namespace: '*'}], clusterResourceWhitelist: [{group: '*', kind: '*'}]}}
`)
}

// configure writes Argo CD's settings.
func (l *lab) configure(data string) {
	l.Helper()
	l.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}, data: {` + data + `}}`)
}

// startArgo starts Redis, the repository server and the application controller, with an
// admin's rights, as Argo CD is installed.
func (l *lab) startArgo() {
	l.Helper()
	binary, err := cluster.Asset("argocd")
	if err != nil {
		l.Fatalf("no argocd in bin: run `make tools-argocd`")
	}
	redis, server, metrics, more := l.address(), l.address(), l.address(), l.address()
	l.render = newGate(l.T, server)
	port := func(address string) string { _, p, _ := net.SplitHostPort(address); return p }
	l.start(binary, "redis", redis)
	l.start(binary, "repo-server", "--address", "127.0.0.1", "--port", port(server), "--metrics-address", "127.0.0.1", "--metrics-port", port(metrics), "--redis", redis, "--disable-tls", "--client-ca-path", "", "--logformat", "text")
	l.start(binary, "controller", "--kubeconfig", l.config, "--namespace", argoNamespace, "--repo-server", l.render.address(), "--repo-server-plaintext", "--redis", redis,
		"--metrics-port", port(more), "--application-namespaces", "*", "--logformat", "text")
}

// address is one of loopback where nobody listens.
func (l *lab) address() string {
	l.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	l.must(err)
	defer func() { _ = free.Close() }()
	return free.Addr().String()
}

// start runs a part of Argo CD until the test ends.
func (l *lab) start(binary string, args ...string) {
	l.Helper()
	cmd := exec.CommandContext(l.ctx, binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.config, "PATH="+filepath.Join(l.dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"), "TMPDIR="+l.dir, "HOME="+l.dir, "ARGOCD_FAKE_IN_CLUSTER=true", "ARGOCD_GPG_ENABLED=false",
		"ARGOCD_ASK_PASS_SOCK="+filepath.Join(l.dir, "ask"), "ARGOCD_TLS_DATA_PATH="+filepath.Join(l.dir, "tls"), "ARGOCD_SSH_DATA_PATH="+filepath.Join(l.dir, "ssh"), "ARGOCD_PLUGINSOCKFILEPATH="+filepath.Join(l.dir, "plugins"))
	cmd.Stdout, cmd.Stderr = l.log, l.log
	l.must(cmd.Start())
	l.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// keep writes Argo CD's log where the test does not take it away, and returns where.
func (l *lab) keep() string {
	l.Helper()
	file, err := os.CreateTemp("", "argocd-*.log")
	if err != nil {
		return err.Error()
	}
	_, err = file.WriteString(l.log.String())
	if err = errors.Join(err, file.Close()); err != nil {
		return err.Error()
	}
	return file.Name()
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lab) apply(text string) {
	l.Helper()
	l.must(harness.Apply(l.ctx, l.rest, "", []byte(text), nil))
}

// maint runs the built plugin in a namespace, and fails where it ends with another exit code.
func (l *lab) maint(code int, namespace string, args ...string) string {
	l.Helper()
	got, out, err := harness.Plugin(l.ctx, l.plugin, l.config, append([]string{"-n", namespace}, args...)...)
	l.must(err)
	if got != code {
		l.Fatalf("%s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, out)
	}
	return out
}

func (l *lab) eventually(what string, holds func() (bool, string)) {
	l.Helper()
	limit := time.After(patience)
	for {
		ok, said := holds()
		if ok {
			return
		}
		select {
		case <-limit:
			l.Fatalf("%s: not within %s: %s", what, patience, said)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// application is one of Argo CD.
func (l *lab) application(name, namespace string) *unstructured.Unstructured {
	l.Helper()
	u, err := l.dyn.Resource(applications()).Namespace(namespace).Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	return u
}

// ask has the controller look at an Application now.
func (l *lab) ask(name, namespace string) {
	l.Helper()
	_, err := l.dyn.Resource(applications()).Namespace(namespace).Patch(l.ctx, name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"normal"}}}`), metav1.PatchOptions{})
	l.must(err)
}

// synced waits until an Application is as a revision has it, and nothing is under way.
func (l *lab) synced(name, namespace, revision string) {
	l.Helper()
	l.eventually("the controller syncs "+revision, func() (bool, string) {
		u := l.application(name, namespace)
		synced := field(u, "status", "sync", "status") == "Synced" && field(u, "status", "sync", "revision") == revision
		return synced && field(u, "status", "operationState", "phase") == "Succeeded" && field(u, "operation") == "null", field(u, "status")
	})
}

// field is one of an object, as text.
func field(u *unstructured.Unstructured, path ...string) string {
	got, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	b, err := json.Marshal(got)
	if err != nil {
		return err.Error()
	}
	return strings.Trim(string(b), `"`)
}
