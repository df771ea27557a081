package admission_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// Both tenants' plans are about a node, which outlives their namespaces.
const (
	plansOfNode = "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  target: {apiVersion: v1, kind: Node, name: %s}\n"
	firstSteps  = plansOfNode + `  steps:
  - {name: mark, type: annotate, properties: {object: {apiVersion: v1, kind: ConfigMap, name: app}, operation: add, annotations: {example.org/marked: "first"}}}
  - {name: hold, type: suspend}
  finally:
  - {name: clear, type: annotate, properties: {object: {apiVersion: v1, kind: ConfigMap, name: app}, operation: remove, annotations: [example.org/marked]}}
`
	secondSteps = plansOfNode + `  steps:
  - {name: touch, type: annotate, properties: {object: {apiVersion: v1, kind: ConfigMap, name: app}, operation: add, annotations: {example.org/touched: "second"}}}
`
)

// A namespace is deleted in the middle of a run, and made again under its name for somebody
// else, whose plan has the name of the one before.
func TestANamespaceThatIsMadeAgainHasNothingOfTheOneBefore(t *testing.T) {
	for i, c := range []struct {
		name  string
		goes  func(w *town, run string) // the namespace
		after func(w *town)
	}{
		{"the agent sees it go", func(w *town, _ string) { w.namespaceGoes() }, func(*town) {}},
		{"it goes by force while no agent runs", func(w *town, run string) {
			w.agent.Kill()
			w.tears(run)
			w.namespaceGoes()
		}, func(w *town) { w.begins() }},
		{"it goes by force while the agent stands still", func(w *town, run string) {
			w.must(w.agent.Freeze())
			w.tears(run)
			w.namespaceGoes()
		}, func(w *town) { w.must(w.agent.Thaw()) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, node := newTown(t), fmt.Sprint("worker-again-", i)
			w.node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
			w.mayRead(node)
			w.writes(plain("app"), fmt.Sprintf(firstSteps, node))
			w.takesUp()
			w.does(editor(), "trigger", "orders")
			first := w.new(nil)
			w.holds(first)

			c.goes(w, first)
			w.namespaceComes()
			w.writes(plain("app", annotated("example.org/marked", "second")), fmt.Sprintf(secondSteps, node))
			c.after(w)
			if w.ended() { // it could not keep its lease
				w.begins()
			}
			w.takesUp()
			w.does(editor(), "trigger", "orders")
			second := w.new(nil)
			w.ends(second, run.Succeeded)
			app, orders := w.get("app"), w.get("orders")
			if app.Annotations["example.org/marked"] != "second" || app.Annotations["example.org/touched"] != "second" {
				t.Errorf("what the second wrote is %v", app.Annotations)
			}
			w.tellsNothingOf(first, orders)
			if _, err := w.ofKind(annotations.KindLedger, orders.UID); err != nil {
				t.Error(err)
			}
		})
	}
}

// mayRead lets the account of plans read a node, as a binding of the cluster does that
// nobody took away.
func (w *town) mayRead(node string) {
	w.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: node}, Rules: []rbacv1.PolicyRule{rule("", "nodes", nil, "get", "list", "watch")}}
	_, err := world.admin.RbacV1().ClusterRoles().Create(w.ctx, role, metav1.CreateOptions{})
	w.must(err)
	w.must(world.bindCluster(w.ctx, node, account(w.ns, "maint-runner")))
}

func (w *town) writes(app *corev1.ConfigMap, text string) {
	w.Helper()
	for _, cm := range []*corev1.ConfigMap{app, annotations.NewPlan(w.ns, "orders", text, "")} {
		_, err := world.as(editor()).CoreV1().ConfigMaps(w.ns).Create(w.ctx, cm, metav1.CreateOptions{})
		w.must(err)
	}
}

// tears takes a run's finalizer off, as an admin does who is tired of waiting.
func (w *town) tears(name string) {
	w.Helper()
	_, err := world.admin.CoreV1().ConfigMaps(w.ns).Patch(w.ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	w.must(err)
}

func (w *town) namespaceGoes() {
	w.Helper()
	w.must(world.admin.CoreV1().Namespaces().Delete(w.ctx, w.ns, metav1.DeleteOptions{}))
	w.until("the namespace is gone", func() error {
		_, err := world.admin.CoreV1().Namespaces().Get(w.ctx, w.ns, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
}

func (w *town) namespaceComes() {
	w.Helper()
	_, err := world.admin.CoreV1().Namespaces().Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}, metav1.CreateOptions{})
	w.must(err)
	w.people()
	w.must(harness.Runner(w.ctx, world.admin, w.ns, rule("", "configmaps", nil, "get", "list", "watch", "patch")))
}

func (w *town) ended() bool {
	select {
	case <-w.agent.Ended():
		return true
	default:
		return false
	}
}

// tellsNothingOf says that no Event of a plan names a run of the namespace before.
func (w *town) tellsNothingOf(run string, plan *corev1.ConfigMap) {
	w.Helper()
	events, err := world.admin.CoreV1().Events(w.ns).List(w.ctx, metav1.ListOptions{})
	w.must(err)
	for _, e := range events.Items {
		if e.InvolvedObject.UID == plan.UID && strings.Contains(e.Message, run) {
			w.Errorf("%s is told on the plan of the second: %s", e.Reason, e.Message)
		}
	}
}

// ofKind are the agent's own objects of a kind, all of which belong to a plan.
func (w *town) ofKind(kind string, plan types.UID) (names []string, err error) {
	w.Helper()
	list, err := world.admin.CoreV1().ConfigMaps(w.ns).List(w.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + kind})
	w.must(err)
	for _, cm := range list.Items {
		names = append(names, cm.Name)
		if len(cm.OwnerReferences) != 1 || cm.OwnerReferences[0].UID != plan {
			err = errors.Join(err, fmt.Errorf("%s is of %v", cm.Name, cm.OwnerReferences))
		}
	}
	return names, err
}
