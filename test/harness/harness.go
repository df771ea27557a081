// Package harness puts kubectl maint on a cluster the way an admin would (the
// manifests, the agent's own ServiceAccount, never an admin's rights) and
// watches what comes of it. Tests, the demo and the benchmarks share it.
package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
)

// Root is the folder of the repository that the working directory lies in.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}

// Build compiles the two commands into a folder, with the tags of the Makefile, and
// returns their paths.
func Build(ctx context.Context, dir string) (agent, plugin string, err error) {
	root, err := Root()
	if err != nil {
		return "", "", err
	}
	if err := dependOnProduct(root); err != nil {
		return "", "", err
	}
	agent, plugin = filepath.Join(dir, "agent"), filepath.Join(dir, "kubectl-maint")
	for path, pkg := range map[string]string{agent: "./cmd/agent", plugin: "./cmd/kubectl-maint"} {
		cmd := exec.CommandContext(ctx, "go", "build", "-tags", "grpcnotrace", "-o", path, pkg)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
		}
	}
	return agent, plugin, nil
}

// dependOnProduct looks at all that the commands are built from. Go answers from its cache of test
// results as long as what a test imports or looks at is the same, and of what is compiled by a
// command it would see nothing.
func dependOnProduct(root string) error {
	for _, part := range []string{"go.mod", "go.sum", "cmd", "pkg", "manifests"} {
		err := filepath.WalkDir(filepath.Join(root, part), func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			_, err = os.Stat(path)
			return err
		})
		if err != nil {
			return fmt.Errorf("look at what is built: %w", err)
		}
	}
	return nil
}

// Install applies the agent's manifests but for its Deployment: the agent runs
// as a process beside the cluster, with the same ServiceAccount. Outside
// requests to loopback are allowed, since the receivers listen there.
func Install(ctx context.Context, admin *rest.Config) error {
	root, err := Root()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "manifests", "agent.yaml"))
	if err != nil {
		return err
	}
	skip := func(u *unstructured.Unstructured) bool {
		return u.GetKind() == "Deployment" || u.GetKind() == "ConfigMap" && u.GetName() == annotations.AgentConfigName
	}
	if err := Apply(ctx, admin, "", text, skip); err != nil {
		return err
	}
	return Configure(ctx, admin, `{outbound: {allow: ["127.0.0.1/32"]}}`)
}

// Configure writes the agent's configuration; spec is YAML on one line.
func Configure(ctx context.Context, admin *rest.Config, spec string) error {
	text := fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s, labels: {%s: %s}}, data: {%s: %q}}`,
		annotations.AgentConfigName, annotations.DefaultNamespace, annotations.LabelKind, annotations.KindAgentConfig, annotations.DataConfig,
		"apiVersion: maint.dev/v1alpha1\nkind: AgentConfig\nspec: "+spec+"\n")
	return Apply(ctx, admin, "", []byte(text), nil)
}

// Apply server-side applies a multi-document manifest. Objects without a
// namespace go to the given one; skip leaves objects out.
func Apply(ctx context.Context, config *rest.Config, namespace string, text []byte, skip func(*unstructured.Unstructured) bool) error {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kube.Discovery()))
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read manifest: %w", err)
		}
		if len(u.Object) == 0 || skip != nil && skip(u) {
			continue
		}
		if err := applyOne(ctx, dyn, mapper, namespace, u); err != nil {
			return err
		}
	}
}

// rolesFile is what names the verbs of the admission policies.
const rolesFile = "roles.yaml"

// ApplyAdmission applies the admission policies, with the roles that name their verbs first.
func ApplyAdmission(ctx context.Context, config *rest.Config) error {
	files, err := AdmissionFiles()
	if err != nil {
		return err
	}
	roles := slices.Index(files, rolesFile)
	if roles < 0 {
		return errors.New("there are no roles of policies")
	}
	return ApplyAdmissionFiles(ctx, config, slices.Concat(files[roles:roles+1], files[:roles], files[roles+1:])...)
}

// AdmissionFiles are the names of the files of manifests/admission, in the order in which
// kubectl apply -f takes them.
func AdmissionFiles() ([]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "manifests", "admission", "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(errors.New("there are no manifests of policies"), err)
	}
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	return files, nil
}

// ApplyAdmissionFiles applies some of these files, in this order.
func ApplyAdmissionFiles(ctx context.Context, config *rest.Config, files ...string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, "manifests", "admission", file))
		if err != nil {
			return err
		}
		if err := Apply(ctx, config, "", text, nil); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func applyOne(ctx context.Context, dyn dynamic.Interface, mapper meta.RESTMapper, namespace string, u *unstructured.Unstructured) error {
	gvk := u.GroupVersionKind()
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return fmt.Errorf("%s %s: %w", gvk.Kind, u.GetName(), err)
	}
	b, err := json.Marshal(u)
	if err != nil {
		return err
	}
	var to dynamic.ResourceInterface = dyn.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if u.GetNamespace() != "" {
			namespace = u.GetNamespace()
		}
		to = dyn.Resource(mapping.Resource).Namespace(namespace)
	}
	force := true
	if _, err := to.Patch(ctx, u.GetName(), types.ApplyPatchType, b, metav1.PatchOptions{FieldManager: annotations.ManagerCLI, Force: &force}); err != nil {
		return fmt.Errorf("apply %s %s: %w", gvk.Kind, u.GetName(), err)
	}
	return nil
}

// Runner creates the ServiceAccount maint-runner in a namespace, with the rules.
func Runner(ctx context.Context, admin kubernetes.Interface, namespace string, rules ...rbacv1.PolicyRule) error {
	const name = "maint-runner"
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := admin.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if _, err := admin.RbacV1().Roles(namespace).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return err
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: namespace}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}
	_, err := admin.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{})
	return err
}

// Process is an agent at work.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	log  *Output
	err  error
}

// StartAgent starts an agent as a process of its own.
func StartAgent(binary, kubeconfig string, args ...string) (*Process, error) {
	args = append([]string{"--kubeconfig", kubeconfig, "--metrics-address", "127.0.0.1:0", "--log-format", "text"}, args...)
	p := &Process{cmd: exec.Command(binary, args...), done: make(chan struct{}), log: &Output{}}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	dieWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// StartInstalled starts an agent with the rights of the account that was installed in a
// namespace, and no others.
func StartInstalled(ctx context.Context, c *cluster.Cluster, namespace, binary string, args ...string) (*Process, error) {
	own, err := c.ServiceAccountConfig(ctx, namespace, annotations.AgentName)
	if err != nil {
		return nil, err
	}
	path, err := c.KubeconfigFile("agent-"+namespace, own)
	if err != nil {
		return nil, err
	}
	return StartAgent(binary, path, args...)
}

// PID is the process's.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// MemoryOf is a line of what the kernel says of the agent's memory, in bytes: "VmHWM:" is the most that
// it had, with the pages of its binary. Only Linux says it.
func (p *Process) MemoryOf(field string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, err
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if rest, found := strings.CutPrefix(line, field); found {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("the agent's status does not say %s", field)
}

// OwnMemory is what the agent has of its own (RssAnon), in bytes: what a container's limit counts
// and the kernel cannot take back, as it can the pages of the binary. Only Linux says it.
func (p *Process) OwnMemory() (int64, error) { return p.MemoryOf("RssAnon:") }

// memoryLook is between two looks at the agent's memory (a guess: little is allocated and freed in it).
const memoryLook = 20 * time.Millisecond

// FollowMemory looks at the agent's own memory until the agent ends: the kernel does not keep the most
// that it was. peak is that, so far; 0 where it cannot be read.
func (p *Process) FollowMemory() (peak func() int64) {
	var most atomic.Int64
	go func() {
		for {
			now, err := p.OwnMemory()
			if err != nil {
				return
			}
			most.Store(max(most.Load(), now))
			select {
			case <-p.done:
				return
			case <-time.After(memoryLook):
			}
		}
	}()
	return most.Load
}

// Kill ends the agent at once, as a lost machine would.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Dump has the agent write what its goroutines do into its log, and end: for a test that failed.
func (p *Process) Dump() {
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		p.Kill()
	}
}

// Stop asks the agent to end and waits until it has, at most 20 seconds.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-time.After(20 * time.Second):
		p.Kill()
		return errors.New("the agent did not end within 20 s of SIGTERM")
	}
}

// Freeze stops the process where it is; Thaw lets it go on.
func (p *Process) Freeze() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw lets a frozen process go on.
func (p *Process) Thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Ended is closed when the process is gone.
func (p *Process) Ended() <-chan struct{} { return p.done }

// Log is all that the agent has said.
func (p *Process) Log() string { return p.log.String() }

// Address is where the agent serves metrics and health, once it says so.
func (p *Process) Address() string {
	for _, line := range strings.Split(p.Log(), "\n") {
		if _, rest, found := strings.Cut(line, "address="); found {
			return strings.Fields(rest)[0]
		}
	}
	return ""
}
