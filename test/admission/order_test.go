package admission_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// flux is an account that is bound to cluster-admin.
func flux() person { return account("flux-system", "kustomize-controller") }

// restored puts the policies and their roles back when the test is over.
func (l *lab) restored() {
	l.Helper()
	l.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := world.switchOn(ctx); err != nil {
			l.Fatal(err)
		}
	})
}

// quick has somebody write a plan that ends by itself, and its target.
func (w *town) quick(who person) {
	w.Helper()
	maps := world.as(who).CoreV1().ConfigMaps(w.ns)
	_, err := maps.Create(w.ctx, plain("app"), metav1.CreateOptions{})
	w.must(err)
	_, err = maps.Create(w.ctx, annotations.NewPlan(w.ns, "orders", quickText, ""), metav1.CreateOptions{})
	w.must(err)
	w.takesUp()
}

// works has somebody trigger the plan, and waits until its run has succeeded.
func (w *town) works(who person) {
	w.Helper()
	before := w.runs()
	w.does(who, "trigger", "orders", "--reason", "again")
	w.ends(w.new(before), run.Succeeded)
}

// othersGoOn are rows of those whom no policy concerns.
func (l *lab) othersGoOn() {
	l.Helper()
	l.table([]row{
		{name: "a kubelet writes its node's status", who: kubelet(), asks: nodePatch(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, "status")},
		{name: "a tenant writes what is not ours", who: tenant(), asks: creates(plain("mine"))},
		{name: "an admin of the cluster writes plans", who: admin(), asks: creates(document(annotations.KindPlan, "new"))},
	})
}

// Policies that are applied before the roles that name their verbs refuse those who get their
// verbs by these roles, until they come, and nobody else: neither the agent, nor an admin of
// the cluster, nor Flux.
func TestPoliciesThatComeBeforeTheirRolesLockNobodyOut(t *testing.T) {
	w := newTown(t)
	w.node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}})
	w.restored()
	w.must(world.switchOff(w.ctx))
	w.quick(editor())
	for _, name := range []string{"maint-viewer", "maint-operator", "maint-approver", "maint-admin", "maint-restorer"} {
		w.must(world.admin.RbacV1().ClusterRoles().Delete(w.ctx, name, metav1.DeleteOptions{}))
	}
	pauses := annotates("orders", annotations.Pause, "true")
	w.must(world.mayNot(w.ctx, editor(), w.ns, "write", "maint.dev", "plans"))

	files, err := harness.AdmissionFiles()
	w.must(err)
	policies := slices.DeleteFunc(slices.Clone(files), func(f string) bool { return f == "roles.yaml" })
	w.must(harness.ApplyAdmissionFiles(w.ctx, world.cluster.AdminConfig(), policies...))
	w.must(world.untilProbes(w.ctx, true))
	if _, err := pauses(w.lab, world.as(editor())); err == nil || !strings.Contains(err.Error(), "verb pause") {
		t.Errorf("before the roles an editor pauses: %v", err)
	}
	w.works(flux())
	w.othersGoOn()

	w.must(harness.ApplyAdmissionFiles(w.ctx, world.cluster.AdminConfig(), "roles.yaml"))
	w.until("with the roles, an editor may again", func() error {
		_, err := pauses(w.lab, world.as(editor()))
		return err
	})
	w.must(harness.ApplyAdmissionFiles(w.ctx, world.cluster.AdminConfig(), files...)) // once more, as kubectl apply -f takes them
	w.works(editor())
	w.othersGoOn()
}

// mayNot waits until the API server knows that somebody lacks a right.
func (s *shared) mayNot(ctx context.Context, who person, ns, verb, group, resource string) error {
	return eventuallyErr(ctx, func() error {
		asking, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if s.may(asking, who, ns, verb, group, resource, "x") == nil {
			return fmt.Errorf("%s may %s %s.%s", who.name, verb, resource, group)
		}
		return nil
	})
}

// breakPolicy has a policy fail whenever it is evaluated to the end.
func (l *lab) breakPolicy(name string) {
	l.Helper()
	client := world.admin.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	p, err := client.Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	p.Spec.Validations = []admissionv1.Validation{{Expression: "dyn({'a': 1}).b == 1"}}
	_, err = client.Update(l.ctx, p, metav1.UpdateOptions{})
	l.must(err)
}

// A policy whose evaluation fails refuses what it is about, of documents alone: nodes are
// written, and so is what is not ours. The agent goes on. Without its binding it is gone.
func TestAPolicyThatFailsLocksNobodyOut(t *testing.T) {
	w := newTown(t)
	w.node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}})
	w.restored()
	maps := world.as(editor()).CoreV1().ConfigMaps(w.ns)
	_, err := maps.Create(w.ctx, plain("app"), metav1.CreateOptions{})
	w.must(err)
	slow := strings.Replace(quickText, "  - {name: note,", "  - {name: rest, type: suspend, properties: {duration: 15s}}\n  - {name: note,", 1)
	_, err = maps.Create(w.ctx, annotations.NewPlan(w.ns, "orders", slow, ""), metav1.CreateOptions{})
	w.must(err)
	w.takesUp()
	w.does(editor(), "trigger", "orders", "--reason", "before")
	live := w.new(nil)

	pauses := annotates("orders", annotations.Pause, "true")
	asks := onNode("request.maint.dev/unknown", "{}")
	for _, name := range []string{"maint-documents", "maint-intents", "maint-records", "maint-status", "maint-actor-check", "maint-nodes", "maint-actor-check-nodes"} {
		w.breakPolicy(name)
	}
	w.until("an intent is refused by a fault", func() error {
		if _, err := pauses(w.lab, world.as(tenant())); err == nil || !strings.Contains(err.Error(), "no such key") {
			return fmt.Errorf("%v", err)
		}
		return nil
	})
	w.until("a fault lets what is asked of a node pass", func() error {
		_, err := asks(w.lab, world.as(nodeWriter()))
		return err
	})
	w.Run("others go on", func(t *testing.T) {
		(&lab{T: t, ctx: w.ctx, ns: w.ns}).table([]row{
			{name: "a kubelet writes its node's status", who: kubelet(), asks: nodePatch(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, "status")},
			{name: "a tenant writes what is not ours", who: tenant(), asks: creates(plain("mine"))},
			{name: "who has the verb pauses", who: nsAdmin(), asks: pauses},
			{name: "the agent writes its own", who: withMasters(agent()), asks: creates(document(annotations.KindRun, "maint-run-orders-cccccccccc"))},
		})
	})
	w.until("the run ends under them", func() error {
		if phase := w.runs()[live].Phase; phase != run.Succeeded {
			return errors.New(string(phase))
		}
		return nil
	})
	w.must(world.switchOff(w.ctx)) // as docs/admission.md says
	if _, err := pauses(w.lab, world.as(tenant())); err != nil {
		t.Errorf("without the bindings: %v", err)
	}
}

// Who is bound to view sees plans, runs and their Events, and changes nothing.
func TestWhoIsBoundToViewSeesPlansAndChangesNothing(t *testing.T) {
	l := newLab(t)
	viewer := person{name: "vic"}
	l.bind("view", viewer)
	l.given(document(annotations.KindPlan, "orders"))
	for _, resource := range []string{"configmaps", "events"} {
		for _, verb := range []string{"get", "list", "watch"} {
			l.must(world.may(l.ctx, viewer, l.ns, verb, "", resource, "orders"))
		}
	}
	l.must(world.may(l.ctx, viewer, l.ns, "get", "maint.dev", "plans", "orders"))
	l.table([]row{
		{name: "they do not pause", who: viewer, asks: annotates("orders", annotations.Pause, "true"), denied: "cannot patch resource"},
		{name: "nor write a plan", who: viewer, asks: creates(document(annotations.KindPlan, "new")), denied: "cannot create resource"},
	})
}
