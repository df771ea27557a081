package transcripts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "terminal" { // called so by a transcript
		os.Exit(terminal(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// terminal runs a command in a terminal of so many columns, and passes on what it shows.
func terminal(args []string) int {
	columns, err := strconv.ParseUint(args[0], 10, 16)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Env = os.Environ()
	if os.Getenv("TERM") == "" {
		cmd.Env = append(cmd.Env, "TERM=xterm")
	}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(columns), Rows: 40})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	go func() { _, _ = io.Copy(tty, os.Stdin) }() // what is typed; nothing where nobody types
	shown, _ := io.ReadAll(tty)                   // ends with an error once nobody has the terminal open
	fmt.Print(strings.ReplaceAll(string(shown), "\r\n", "\n"))
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// stage is what the transcripts run on.
type stage struct {
	*testing.T
	ctx     context.Context
	cluster *cluster.Cluster
	admin   kubernetes.Interface
	bin     string // the folder with kubectl, its plugin and terminal
	agent   string
	running *harness.Process
}

func TestTranscriptsWithoutACluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // most of it to build, perhaps from nothing
	t.Cleanup(cancel)
	s := &stage{T: t, ctx: ctx, bin: t.TempDir()}
	s.build()
	s.folder("offline")
}

func TestTranscriptsOfACluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // most of it to build, perhaps from nothing
	t.Cleanup(cancel)
	s := &stage{T: t, ctx: ctx, bin: t.TempDir()}
	s.build()
	s.startCluster()
	s.folder("bare")
	s.must(harness.Install(ctx, s.cluster.AdminConfig()))
	s.startAgent()
	s.folder("installed") // while nothing runs yet
	s.folder("agent")
	s.folder("shared") // which write in the agent's namespace, where others would see it
	s.folder("alone")  // which see what those write
	s.folder("nodes")  // which others would see
	s.running.Kill()
	s.folder("silent")
}

// older is the last commit whose agent knows neither requests for nodes nor HibernatePlans.
const older = "d3eb7eb9"

// TestTranscriptsBesideAnOlderAgent builds that agent from the repository's history, so it runs only where it
// is asked to (`make upgrade-test`). Asked, it never skips.
func TestTranscriptsBesideAnOlderAgent(t *testing.T) {
	if os.Getenv("MAINT_UPGRADE") == "" {
		t.Skip("MAINT_UPGRADE is not set: `make upgrade-test` builds the older agent")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 14*time.Minute) // most of it to build, perhaps from nothing
	t.Cleanup(cancel)
	s := &stage{T: t, ctx: ctx, bin: t.TempDir()}
	s.build()
	manifests := s.buildOlder()
	s.startCluster()
	s.must(harness.Apply(ctx, s.cluster.AdminConfig(), "", manifests, func(u *unstructured.Unstructured) bool { return u.GetKind() == "Deployment" }))
	s.startAgent()
	s.folder("older")
}

// buildOlder replaces the agent by the older one, and returns the manifests of that. MAINT_OLDER names a folder
// where it was built before.
func (s *stage) buildOlder() []byte {
	s.Helper()
	dir := os.Getenv("MAINT_OLDER")
	if dir == "" {
		dir = s.TempDir()
		root, err := harness.Root()
		s.must(err)
		script := fmt.Sprintf("set -o pipefail; git archive %s | tar -x -C %q && cd %q && CGO_ENABLED=0 go build -ldflags '-X main.version=v0.0.0-before' -o agent-of-before ./cmd/agent", older, dir, dir)
		cmd := exec.CommandContext(s.ctx, "bash", "-c", script)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			s.Fatalf("build %s (it takes the whole history of the repository): %v\n%s", older, err, out)
		}
	}
	s.agent = filepath.Join(dir, "agent-of-before")
	manifests, err := os.ReadFile(filepath.Join(dir, "manifests", "agent.yaml"))
	s.must(err)
	return manifests
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) build() {
	s.Helper()
	var err error
	if built := os.Getenv("MAINT_BIN"); built != "" {
		s.agent = filepath.Join(built, "agent")
		s.must(os.Symlink(filepath.Join(built, "kubectl-maint"), filepath.Join(s.bin, "kubectl-maint")))
	} else {
		s.agent, _, err = harness.Build(s.ctx, s.bin)
		s.must(err)
	}
	kubectl, err := cluster.Asset("kubectl")
	s.must(err)
	self, err := os.Executable()
	s.must(err)
	s.must(os.Symlink(kubectl, filepath.Join(s.bin, "kubectl")))
	s.must(os.Symlink(self, filepath.Join(s.bin, "terminal")))
}

func (s *stage) startCluster() {
	s.Helper()
	c, err := cluster.Start(s.ctx, cluster.Options{ControllerManager: true, ControllerManagerArgs: []string{"--controllers=*,-deployment-controller"}})
	s.must(err)
	s.Cleanup(func() { _ = c.Stop() })
	s.cluster = c
	s.admin, err = kubernetes.NewForConfig(c.AdminConfig())
	s.must(err)
}

func (s *stage) startAgent() {
	s.Helper()
	var err error
	s.running, err = harness.StartInstalled(s.ctx, s.cluster, annotations.DefaultNamespace, s.agent)
	s.must(err)
	s.Cleanup(func() { _ = s.running.Stop() })
	for {
		_, err := s.admin.CoreV1().ConfigMaps(annotations.DefaultNamespace).Get(s.ctx, annotations.HeartbeatName, metav1.GetOptions{})
		if err == nil {
			return
		}
		select {
		case <-s.ctx.Done():
			s.Fatalf("the agent does not show itself: %v\n%s", err, s.running.Log())
		case <-s.running.Ended():
			s.Fatalf("the agent ended:\n%s", s.running.Log())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// folder runs the transcripts of a folder side by side, each in a namespace of its own.
func (s *stage) folder(name string) {
	s.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", name, "*.txt"))
	s.must(err)
	s.Run(name, func(t *testing.T) {
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
				t.Parallel()
				s.transcript(t, file)
			})
		}
	})
}

func (s *stage) transcript(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sh := s.shell(t, strings.TrimSuffix(filepath.Base(file), ".txt"))
	exchanges, after := parse(string(text))
	for i := range exchanges {
		if pipedOnce.MatchString(exchanges[i].command) {
			t.Fatalf("%s: %q gives again only what stands before the pipe: make a function of it", file, exchanges[i].command)
		}
		exchanges[i].answer = sh.run(exchanges[i].command)
	}
	got := render(exchanges, after)
	if got == string(text) {
		return
	}
	if os.Getenv("MAINT_WRITE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s (-want +got), written anew by MAINT_WRITE=1:\n%s", file, cmp.Diff(strings.Split(string(text), "\n"), strings.Split(got, "\n")))
}

// pipedOnce is a command whose answer goes through a pipe once, after eventually is done with it.
var pipedOnce = regexp.MustCompile(`^eventually [^"']*(('[^']*'|"[^"]*")[^"']*)*\|`)

// shell gives the commands of one transcript.
type shell struct {
	*testing.T
	ctx   context.Context
	work  string
	env   []string
	words *words
}

func (s *stage) shell(t *testing.T, namespace string) *shell {
	t.Helper()
	sh := &shell{T: t, ctx: s.ctx, work: t.TempDir()}
	sh.words = newWords(sh.work)
	sh.env = []string{
		"PATH=" + s.bin + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + sh.work, "TZ=Europe/Berlin", "LC_ALL=C", "NAMESPACE=" + namespace, "KUBECONFIG=" + filepath.Join(sh.work, "kubeconfig"),
	}
	if s.cluster == nil {
		return sh
	}
	labels := map[string]string{"transcript": namespace}
	if _, err := s.admin.CoreV1().Namespaces().Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: labels}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.kubeconfig(filepath.Join(sh.work, "kubeconfig"), namespace); err != nil {
		t.Fatal(err)
	}
	if s.running == nil {
		return sh
	}
	if err := harness.Runner(s.ctx, s.admin, namespace, rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch", "patch"}}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.running.Ended():
	default:
		sh.env = append(sh.env, "AGENT=1")
	}
	return sh
}

// kubeconfig is an admin's, in a namespace.
func (s *stage) kubeconfig(path, namespace string) error {
	from, err := s.cluster.KubeconfigFile("admin-"+namespace, s.cluster.AdminConfig())
	if err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return err
	}
	for _, one := range config.Contexts {
		one.Namespace = namespace
	}
	return clientcmd.WriteToFile(*config, path)
}

// prelude is what a transcript's commands find in their shell. That kubectl runs its plugin
// is left out where nothing but time would come of it.
const prelude = `
kubectl() {
	if [ "$1" = maint ]; then shift; kubectl-maint "$@"; else command kubectl "$@"; fi
}
eventually() {
	for try in $(seq 300); do
		if "$@" >said 2>complained; then cat said; cat complained >&2; return 0; fi
		sleep 0.1
	done
	cat said; cat complained >&2; return 1
}
plan() { document "$1" plan Plan plan.yaml "$2" "$3"; }
policy() { document "$1" policy Policy policy.yaml "$2" "$3"; }
sleeper() { document "$1" hibernate-plan HibernatePlan plan.yaml "$2" "$3"; }
document() {
	command kubectl apply -f - >/dev/null <<END || return
apiVersion: v1
kind: ConfigMap
metadata:
  name: $1
  labels: {maint.dev/kind: $2, transcript: $NAMESPACE, $6}
data:
  $4: |
    apiVersion: maint.dev/v1alpha1
    kind: $3
    spec: $5
END
	[ -z "$AGENT" ] || eventually taken "$1"
}
plans() { # so many, by several clients at once: each may send only some requests a second
	seq "$1" | split -l 250 - part
	for part in part*; do
		while read -r i; do
			printf -- '---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: plan-%s, labels: {maint.dev/kind: plan}}\ndata:\n  plan.yaml: |\n    apiVersion: maint.dev/v1alpha1\n    kind: Plan\n    spec: %s\n' "$i" "$2"
		done <"$part" | command kubectl create -n "$3" -f - >/dev/null &
	done
	wait
	rm part*
}
taken() { command kubectl get configmap "$1" -o yaml | grep -q status.maint.dev/observed; }
made() { command kubectl get configmap "$(grep -o 'maint-run-[a-z0-9.-]*' "$1")" >/dev/null 2>&1; }
`

const patience = 2 * time.Minute

// run gives a command, and returns the answer.
func (sh *shell) run(command string) string {
	sh.Helper()
	ctx, cancel := context.WithTimeout(sh.ctx, patience)
	defer cancel()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", prelude+command)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = sh.work, sh.env, &out, &errOut
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	begun := time.Now()
	err := cmd.Run()
	if took := time.Since(begun).Round(10 * time.Millisecond); took > time.Second {
		sh.Logf("%s: %s", took, command)
	}
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		sh.Fatalf("%s: %v", command, err)
	}
	if ctx.Err() != nil {
		sh.Errorf("does not end within %s: %s", patience, command)
	}
	return sh.words.replace(answer(out.String(), errOut.String(), cmd.ProcessState.ExitCode()))
}
