package gitops_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// lab is a cluster with the agent and a controller of Flux, which applies what a source of
// the namespace holds.
type lab struct {
	*testing.T
	fluxController
	ctx    context.Context
	ns     string
	config string
	plugin string
	admin  kubernetes.Interface
	dyn    dynamic.Interface
	repo   *repository
	log    *harness.Output
}

// fluxController is a controller of Flux, and what it applies from.
type fluxController struct {
	name       string // of its binary, of its repository, and as a field manager
	module     string // the folder of tools that pins it
	definition string // the file of its module that defines what it reconciles
	owns       schema.GroupVersionResource
	kind       string
	source     source
	// files are what is delivered as the n-th commit, and settled says whether the owner has
	// applied a revision.
	files   func(commit int) map[string]string
	settled func(owner *unstructured.Unstructured, revision string) bool
}

func newLab(t *testing.T, f fluxController) *lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // some 2 min alone; the commands may be built first
	t.Cleanup(cancel)
	l := &lab{T: t, ctx: ctx, fluxController: f}
	c, err := cluster.Start(ctx, cluster.Options{ControllerManager: true, ControllerManagerArgs: []string{"--controllers=*,-deployment-controller"}})
	l.must(err)
	t.Cleanup(func() { _ = c.Stop() })
	l.admin, err = kubernetes.NewForConfig(c.AdminConfig())
	l.must(err)
	l.dyn, err = dynamic.NewForConfig(c.AdminConfig())
	l.must(err)
	l.must(harness.Install(ctx, c.AdminConfig()))
	l.config, err = c.KubeconfigFile("admin", c.AdminConfig())
	l.must(err)
	agent, plugin, err := harness.Build(ctx, t.TempDir())
	l.must(err)
	l.plugin = plugin
	l.ns = c.Namespace(t)
	process, err := harness.StartInstalled(ctx, c, annotations.DefaultNamespace, agent)
	l.must(err)
	t.Cleanup(func() { _ = process.Stop() })
	for _, text := range append(kinds(), l.ownerKind()) {
		l.must(harness.Apply(ctx, c.AdminConfig(), "", []byte(text), nil))
	}
	l.served()
	l.startFlux()
	l.repo, err = newRepository(ctx, l.dyn, l.source, l.ns)
	l.must(err)
	t.Cleanup(l.repo.server.Close)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the controller says:\n%s", l.log.Tail(shown))
		}
	})
	return l
}

// kinds are the sources that controllers of Flux watch, without their schemas.
func kinds() []string {
	var out []string
	for _, kind := range []string{"GitRepository", "OCIRepository", "Bucket", "HelmChart", "ExternalArtifact"} {
		lower := strings.ToLower(kind)
		plural := strings.TrimSuffix(lower, "y") + map[bool]string{true: "ies", false: "s"}[strings.HasSuffix(lower, "y")]
		out = append(out, fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[1]s.source.toolkit.fluxcd.io},
spec: {group: source.toolkit.fluxcd.io, scope: Namespaced, names: {plural: %[1]s, singular: %[2]s, kind: %[3]s, listKind: %[3]sList},
versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`, plural, lower, kind))
	}
	return out
}

// ownerKind is the controller's own definition of what it reconciles, from its module.
func (l *lab) ownerKind() string {
	l.Helper()
	root, err := harness.Root()
	l.must(err)
	cmd := exec.CommandContext(l.ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/fluxcd/"+l.name)
	cmd.Dir, cmd.Env = filepath.Join(root, "tools", l.module), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	out, err := cmd.Output()
	l.must(err)
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "config", "crd", "bases", l.definition))
	l.must(err)
	return string(text)
}

// served waits until the API server serves the kinds: the controller ends where one is not.
func (l *lab) served() {
	l.Helper()
	for group, n := range map[string]int{l.source.resource.GroupVersion().String(): len(kinds()), l.owns.GroupVersion().String(): 1} {
		l.eventually(group+" is served", func() (bool, string) {
			list, err := l.admin.Discovery().ServerResourcesForGroupVersion(group)
			if err != nil {
				return false, err.Error()
			}
			return len(list.APIResources) >= 2*n, fmt.Sprint(list.APIResources) // each with its status
		})
	}
}

// startFlux starts the controller with an admin's rights, as Flux is installed.
func (l *lab) startFlux() {
	l.Helper()
	binary, err := cluster.Asset(l.name)
	if err != nil {
		l.Fatalf("no %s in bin: run `make tools-flux`", l.name)
	}
	l.log = &harness.Output{}
	cmd := exec.CommandContext(l.ctx, binary, "--watch-all-namespaces", "--enable-leader-election=false", "--events-addr=", "--metrics-addr=127.0.0.1:0", "--health-addr=127.0.0.1:0", "--log-encoding=console", "--min-retry-delay=100ms", "--requeue-dependency=1s")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.config, "RUNTIME_NAMESPACE="+l.ns, "TMPDIR="+l.TempDir())
	cmd.Stdout, cmd.Stderr = l.log, l.log
	l.must(cmd.Start())
	l.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// shown are how many lines of the controller's log are looked at.
const shown = 12

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// maint runs the built plugin, and fails where it ends with another exit code.
func (l *lab) maint(code int, args ...string) string {
	l.Helper()
	got, out, err := harness.Plugin(l.ctx, l.plugin, l.config, append([]string{"-n", l.ns}, args...)...)
	l.must(err)
	if got != code {
		l.Fatalf("%s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, out)
	}
	return out
}

func (l *lab) eventually(what string, holds func() (bool, string)) {
	l.Helper()
	limit := time.After(time.Minute)
	for {
		ok, said := holds()
		if ok {
			return
		}
		select {
		case <-limit:
			l.Fatalf("%s: not within a minute: %s", what, said)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
