// Package install_test proves on a real API server what install promises: an upgrade
// leaves an admin's changes alone, and the policies hold the agent's token to what the
// agent does. The plugin is the built binary, of two versions.
package install_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// The versions that are built: the one that install comes from, and the next.
const (
	thisVersion = "v0.1.0"
	nextVersion = "v0.2.0"
)

const home = "maint-system"

func TestMain(m *testing.M) {
	code := m.Run()
	world.stop()
	os.Exit(code)
}

// world is what the tests of this binary share: one API server. The testing package
// hands nothing from TestMain to tests.
var world shared //nolint:gochecknoglobals // see above

type shared struct {
	once    sync.Once
	err     error
	dir     string
	root    string
	cluster *cluster.Cluster
	config  string // kubeconfig of an admin
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	mapper  meta.RESTMapper
}

func (s *shared) start() error {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // the plugin is built first, perhaps from nothing
		defer cancel()
		s.err = s.prepare(ctx)
	})
	return s.err
}

func (s *shared) prepare(ctx context.Context) (err error) {
	if s.root, err = harness.Root(); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "maint-install-test-"); err != nil {
		return err
	}
	for _, version := range []string{thisVersion, nextVersion} {
		build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w -X main.version="+version, "-o", s.plugin(version), "./cmd/kubectl-maint")
		build.Dir, build.Env = s.root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build the plugin: %w\n%s", err, out)
		}
	}
	if s.cluster, err = cluster.Start(ctx, cluster.Options{}); err != nil {
		return err
	}
	config := s.cluster.AdminConfig()
	if s.config, err = s.cluster.KubeconfigFile("admin", config); err != nil {
		return err
	}
	if s.kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.kube.Discovery()))
	s.dynamic, err = dynamic.NewForConfig(config)
	return err
}

func (s *shared) plugin(version string) string {
	return filepath.Join(s.dir, version, "kubectl-maint")
}

func (s *shared) stop() {
	if s.cluster != nil {
		_ = s.cluster.Stop()
	}
	_ = os.RemoveAll(s.dir)
}

// lab is a cluster without an installation, for one test after another: the objects
// without a namespace have one name each.
type lab struct {
	*testing.T
	*shared
	ctx context.Context
}

func newLab(t *testing.T) *lab {
	t.Helper()
	if err := world.start(); err != nil {
		t.Fatalf("start the cluster: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	l := &lab{T: t, shared: &world, ctx: ctx}
	l.wipe()
	t.Cleanup(func() {
		l.wipe()
		cancel()
	})
	return l
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// printed is what a command line ended with.
type printed struct {
	code     int
	out, err string
}

// maint runs the plugin of a version as an admin.
func (l *lab) maint(version string, args ...string) printed {
	l.Helper()
	return l.run(l.plugin(version), nil, append([]string{"--kubeconfig", l.config, "--cache-dir", filepath.Join(l.dir, "cache")}, args...)...)
}

// kubectl runs the real one as an admin, with a text as its input.
func (l *lab) kubectl(in []byte, args ...string) {
	l.Helper()
	p := l.run(filepath.Join(l.root, "bin", "kubectl"), in, append([]string{"--kubeconfig", l.config}, args...)...)
	if p.code != 0 {
		l.Fatalf("kubectl %v: exit %d\n%s%s", args, p.code, p.out, p.err)
	}
}

func (l *lab) run(program string, in []byte, args ...string) printed {
	l.Helper()
	cmd := exec.CommandContext(l.ctx, program, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &errs
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		l.Fatalf("%s %v: %v", program, args, err)
	}
	return printed{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// install has a version applied, and returns what was printed.
func (l *lab) install(version string, flags ...string) string {
	l.Helper()
	p := l.maint(version, append([]string{"install", "--apply"}, flags...)...)
	if p.code != 0 {
		l.Fatalf("install --apply %v: exit %d\n%s%s", flags, p.code, p.out, p.err)
	}
	return p.out
}

// of is where an object is.
func (l *lab) of(kind, name string) (dynamic.ResourceInterface, string) {
	l.Helper()
	return l.in(home, kind), name
}

// in is where the objects of a kind are: in a namespace, if they are in one.
func (l *lab) in(namespace, kind string) dynamic.ResourceInterface {
	l.Helper()
	groups := map[string]string{
		"Deployment": "apps", "Role": "rbac.authorization.k8s.io", "RoleBinding": "rbac.authorization.k8s.io", "ClusterRole": "rbac.authorization.k8s.io",
		"ClusterRoleBinding": "rbac.authorization.k8s.io", "ValidatingAdmissionPolicy": "admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding": "admissionregistration.k8s.io",
		"MutatingAdmissionPolicy": "admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding": "admissionregistration.k8s.io",
	}
	mapping, err := l.mapper.RESTMapping(schema.GroupKind{Group: groups[kind], Kind: kind})
	l.must(err)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return l.dynamic.Resource(mapping.Resource).Namespace(namespace)
	}
	return l.dynamic.Resource(mapping.Resource)
}

// get is an object as it is; nil where there is none.
func (l *lab) get(kind, name string) *unstructured.Unstructured {
	l.Helper()
	to, name := l.of(kind, name)
	u, err := to.Get(l.ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	l.must(err)
	return u
}

// edit is an admin's change of one object, as a JSON merge patch.
func (l *lab) edit(manager, kind, name, patch string) {
	l.Helper()
	l.patch(manager, types.MergePatchType, kind, name, patch)
}

func (l *lab) patch(manager string, how types.PatchType, kind, name, patch string) {
	l.Helper()
	to, name := l.of(kind, name)
	_, err := to.Patch(l.ctx, name, how, []byte(patch), metav1.PatchOptions{FieldManager: manager})
	l.must(err)
}

func (l *lab) remove(kind, name string) {
	l.Helper()
	to, name := l.of(kind, name)
	if err := to.Delete(l.ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		l.Fatal(err)
	}
}

// printedObjects are the objects in a text of YAML documents.
func (l *lab) printedObjects(text string) []*unstructured.Unstructured {
	l.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	var out []*unstructured.Unstructured
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(&u.Object); err != nil {
			if len(out) == 0 {
				l.Fatalf("no objects: %v", err)
			}
			return out
		}
		if len(u.Object) > 0 {
			out = append(out, u)
		}
	}
}

// wipe takes away what any version installs. The namespace stays, as install would have
// made it: nothing here would ever finish deleting it.
func (l *lab) wipe() {
	l.Helper()
	for _, u := range l.printedObjects(l.maint(thisVersion, "install").out) {
		if u.GetKind() != "Namespace" {
			l.remove(u.GetKind(), u.GetName())
		}
	}
	if l.get("Namespace", home) != nil {
		l.patch("test", types.MergePatchType, "Namespace", home, `{"metadata":{"labels":null,"annotations":null,"managedFields":[{}]}}`)
		l.patch(annotations.ManagerCLI, types.MergePatchType, "Namespace", home, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted","pod-security.kubernetes.io/enforce-version":"latest"}}}`)
	}
}

// installed is what stands in the cluster of an installation, without what the API
// server keeps beside it; by kind and name.
func (l *lab) installed() map[string]any {
	l.Helper()
	out := map[string]any{}
	for _, u := range l.printedObjects(l.maint(thisVersion, "install").out) {
		if live := l.get(u.GetKind(), u.GetName()); live != nil {
			out[u.GetKind()+"/"+u.GetName()] = plain(live)
		}
	}
	return out
}

func plain(u *unstructured.Unstructured) map[string]any {
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	if len(u.GetAnnotations()) == 0 {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
	}
	return u.Object
}

// versions are the resource versions of an installation's objects.
func (l *lab) versions() map[string]string {
	l.Helper()
	out := map[string]string{}
	for _, u := range l.printedObjects(l.maint(thisVersion, "install").out) {
		if live := l.get(u.GetKind(), u.GetName()); live != nil {
			out[u.GetKind()+"/"+u.GetName()] = live.GetResourceVersion()
		}
	}
	return out
}

// eventually asks again until it holds.
func (l *lab) eventually(what string, holds func() (bool, string)) {
	l.Helper()
	limit := time.After(30 * time.Second)
	for {
		ok, now := holds()
		if ok {
			return
		}
		select {
		case <-l.ctx.Done():
			l.Fatalf("%s: %s: %v", what, now, l.ctx.Err())
		case <-limit:
			l.Fatalf("%s: not within 30 s: %s", what, now)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
