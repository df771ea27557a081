package admission_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

const storyText = `apiVersion: maint.dev/v1alpha1
kind: Plan
spec:
  target: {apiVersion: v1, kind: ConfigMap, name: app}
  triggers: {labels: [example.org/upgrade]}
  requiresApproval: true
  steps:
  - {name: mark, type: annotate, properties: {operation: add, annotations: {example.org/marked: "yes"}}}
  - {name: hold, type: suspend}
  finally:
  - {name: clear, type: annotate, properties: {operation: remove, annotations: [example.org/marked]}}
`

// town is a lab with an agent at work.
type town struct {
	*lab
	agent *harness.Process
}

func newTown(t *testing.T) *town {
	t.Helper()
	if err := world.build(); err != nil { // before the test's time begins
		t.Fatal(err)
	}
	l := newLab(t)
	w := &town{lab: l}
	w.begins()
	t.Cleanup(func() {
		_ = w.agent.Stop()
		if t.Failed() && os.Getenv("MAINT_TEST_LOG") != "" {
			t.Log(w.agent.Log())
		}
	})
	l.must(harness.Runner(l.ctx, world.admin, l.ns, rule("", "configmaps", nil, "get", "list", "watch", "patch")))
	return w
}

// begins starts an agent with the rights that were installed.
func (w *town) begins() {
	w.Helper()
	process, err := harness.StartInstalled(w.ctx, world.cluster, annotations.DefaultNamespace, world.agent)
	w.must(err)
	w.agent = process
}

// maint runs the command as somebody in the test's namespace.
func (w *town) maint(who person, args ...string) (string, error) {
	w.Helper()
	config := world.cluster.AdminConfig()
	config.Impersonate.UserName = who.name
	path, err := world.cluster.KubeconfigFile(who.name, config)
	w.must(err)
	cmd := exec.CommandContext(w.ctx, world.plugin, append(args, "--kubeconfig", path, "-n", w.ns)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err = cmd.Run()
	return said.String(), err
}

func (w *town) does(who person, args ...string) {
	w.Helper()
	if said, err := w.maint(who, args...); err != nil {
		w.Fatalf("%s: kubectl maint %s: %v\n%s", who.name, strings.Join(args, " "), err, said)
	}
}

func (w *town) mayNot(who person, verb string, args ...string) {
	w.Helper()
	said, err := w.maint(who, args...)
	if err == nil || !strings.Contains(said, "verb "+verb) {
		w.Fatalf("%s: kubectl maint %s: %v\n%s", who.name, strings.Join(args, " "), err, said)
	}
}

func (w *town) until(what string, ask func() error) {
	w.Helper()
	if err := eventuallyErr(w.ctx, ask); err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

// runs are the runs of the plan orders, by name.
func (w *town) runs() map[string]run.Journal {
	w.Helper()
	list, err := world.admin.CoreV1().ConfigMaps(w.ns).List(w.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindRun})
	w.must(err)
	out := map[string]run.Journal{}
	for _, cm := range list.Items {
		_, journal, err := annotations.ReadRun(&cm)
		w.must(err)
		out[cm.Name] = journal
	}
	return out
}

// new waits for a run that was not there before.
func (w *town) new(before map[string]run.Journal) string {
	w.Helper()
	found := ""
	w.until("a run is created", func() error {
		for name := range w.runs() {
			if _, had := before[name]; !had {
				found = name
				return nil
			}
		}
		return errors.New("there is none")
	})
	return found
}

// holds waits until a run is at its step hold.
func (w *town) holds(name string) {
	w.Helper()
	w.until(name+" holds", func() error {
		journal := w.runs()[name]
		for _, s := range journal.Steps {
			if s.Path == "hold" && s.Phase == run.StepRunning {
				return nil
			}
		}
		return fmt.Errorf("%s: %s", journal.Phase, journal.Notice())
	})
}

func (w *town) ends(name string, phase run.Phase) {
	w.Helper()
	w.until(name+" ends "+string(phase), func() error {
		journal := w.runs()[name]
		if journal.Phase == phase {
			return nil
		}
		return fmt.Errorf("%s: %s", journal.Phase, journal.Notice())
	})
}

func (w *town) label(who person, name, key string) {
	w.Helper()
	_, err := world.as(who).CoreV1().ConfigMaps(w.ns).Patch(w.ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"`+key+`":"now"}}}`), metav1.PatchOptions{})
	w.must(err)
}

// plan has the editor write the story's plan and its target.
func (w *town) plan() {
	w.Helper()
	maps := world.as(editor()).CoreV1().ConfigMaps(w.ns)
	_, err := maps.Create(w.ctx, plain("app"), metav1.CreateOptions{})
	w.must(err)
	_, err = maps.Create(w.ctx, annotations.NewPlan(w.ns, "orders", storyText, ""), metav1.CreateOptions{})
	w.must(err)
	w.takesUp()
}

// takesUp waits until the agent has taken the plan up.
func (w *town) takesUp() {
	w.Helper()
	w.until("the agent has taken the plan up", func() error {
		cm, err := world.admin.CoreV1().ConfigMaps(w.ns).Get(w.ctx, "orders", metav1.GetOptions{})
		if err == nil && (cm.Annotations[annotations.StatusObserved] != annotations.Observed(cm) || cm.Annotations[annotations.StatusPhase] == "Invalid") {
			err = fmt.Errorf("%v", cm.Annotations)
		}
		return err
	})
}

// An agent with its own rights works under the policies as without them: it claims,
// journals, approves, takes intents and labels away, cleans up and collects.
func TestAnAgentGoesOnUnderThePolicies(t *testing.T) {
	w := newTown(t)
	w.plan()

	before := w.runs()
	w.label(editor(), "app", "example.org/upgrade")
	first := w.new(before)
	w.mayNot(editor(), "approve", "approve", first)
	w.does(nsAdmin(), "approve", first, "--reason", "looks good")
	w.holds(first)
	w.does(editor(), "resume", first)
	w.ends(first, run.Succeeded)
	w.until("what was asked is taken away", func() error {
		app, orders := w.get("app"), w.get("orders")
		for _, key := range []string{annotations.Approve, annotations.Actor(annotations.Approve), annotations.Resume, annotations.Actor(annotations.Resume)} {
			if value, there := orders.Annotations[key]; there {
				return fmt.Errorf("%s is %s", key, value)
			}
		}
		if _, marked := app.Annotations["example.org/marked"]; marked || app.Labels["example.org/upgrade"] != "" {
			return fmt.Errorf("app is %v %v", app.Labels, app.Annotations)
		}
		return nil
	})

	before = w.runs()
	w.does(editor(), "trigger", "orders", "--reason", "again")
	second := w.new(before)
	if who := w.request(second).Actor; who != "eddy" {
		t.Errorf("the run was asked for by %q", who)
	}
	w.does(nsAdmin(), "approve", second)
	w.holds(second)
	w.must(world.as(editor()).CoreV1().ConfigMaps(w.ns).Delete(w.ctx, second, metav1.DeleteOptions{})) // which aborts it
	w.until("the run is aborted, cleaned up and gone", func() error {
		if _, marked := w.get("app").Annotations["example.org/marked"]; marked {
			return errors.New("app is marked")
		}
		return w.gone(second)
	})

	w.must(world.as(editor()).CoreV1().ConfigMaps(w.ns).Delete(w.ctx, "orders", metav1.DeleteOptions{}))
	w.until("ledger and history go with the plan", func() error {
		list, err := world.admin.CoreV1().ConfigMaps(w.ns).List(w.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d are left, %s among them", len(list.Items), list.Items[0].Name)
		}
		return err
	})
}

func (w *town) request(name string) run.Request {
	w.Helper()
	r, _, err := annotations.ReadRun(w.get(name))
	w.must(err)
	return r.Request
}

// A bot asks for a node, has it, and gives it back.
func TestANodeIsGivenUnderThePolicies(t *testing.T) {
	w := newTown(t)
	w.node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-7"}})
	ask := func(value string) {
		w.Helper()
		_, err := world.as(bot()).CoreV1().Nodes().Patch(w.ctx, "worker-7", types.MergePatchType, []byte(annotationPatch([]string{"request.maint.dev/rebooter", value})), metav1.PatchOptions{})
		w.must(err)
	}
	ask("{}")
	w.until("the node is ready for the bot", func() error {
		n, err := world.admin.CoreV1().Nodes().Get(w.ctx, "worker-7", metav1.GetOptions{})
		if err == nil && (!n.Spec.Unschedulable || !strings.Contains(n.Annotations["status.request.maint.dev/rebooter"], "Ready")) {
			err = fmt.Errorf("unschedulable %v, %v", n.Spec.Unschedulable, n.Annotations)
		}
		return err
	})
	ask("")
	w.until("the node is free again", func() error {
		n, err := world.admin.CoreV1().Nodes().Get(w.ctx, "worker-7", metav1.GetOptions{})
		if err == nil && (n.Spec.Unschedulable || len(annotations.OfNode(n.Annotations)) > 0) {
			err = fmt.Errorf("unschedulable %v, %v", n.Spec.Unschedulable, n.Annotations)
		}
		return err
	})
}

// Policies that come while a run lives, and go again, break nothing.
func TestThePoliciesComeAndGoWhileARunLives(t *testing.T) {
	w := newTown(t)
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := world.switchOn(ctx); err != nil {
			w.Fatal(err)
		}
	})
	w.must(world.switchOff(w.ctx))
	w.plan()
	before := w.runs()
	w.label(editor(), "app", "example.org/upgrade")
	name := w.new(before)
	w.must(world.switchOn(w.ctx))
	w.mayNot(editor(), "approve", "approve", name)
	w.does(nsAdmin(), "approve", name)
	w.holds(name)
	w.must(world.switchOff(w.ctx))
	w.does(editor(), "resume", name)
	w.ends(name, run.Succeeded)
}
