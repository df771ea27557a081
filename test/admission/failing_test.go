package admission_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// fault is what the API server says of a policy that breakPolicy broke.
const fault = "no such key: b"

// failing breaks policies, waits until requests of each are refused by the fault, and mends them
// when the test is over.
func (l *lab) failing(refused map[string]askedBy) {
	l.Helper()
	policies := world.admin.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	for name, r := range refused {
		was, err := policies.Get(l.ctx, name, metav1.GetOptions{})
		l.must(err)
		l.breakPolicy(name)
		l.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			is, err := policies.Get(ctx, name, metav1.GetOptions{})
			if err == nil {
				is.Spec = was.Spec
				_, err = policies.Update(ctx, is, metav1.UpdateOptions{})
			}
			if err == nil {
				err = eventuallyErr(ctx, func() error { return r.byAFault(l, false) })
			}
			if err != nil {
				l.Fatal(err)
			}
		})
		l.must(eventuallyErr(l.ctx, func() error { return r.byAFault(l, true) }))
	}
}

// askedBy is a request of somebody's.
type askedBy struct {
	who  person
	asks request
}

// byAFault is nil where a fault of a policy refuses the request, or does not, as is wanted.
func (r askedBy) byAFault(l *lab, want bool) error {
	_, err := r.asks(l, world.as(r.who))
	if got := err != nil && strings.Contains(err.Error(), fault); got != want {
		return fmt.Errorf("refused by a fault: %t (%v)", got, err) //nolint:errorlint // there may be none
	}
	return nil
}

func (l *lab) refusedByAFault(rows map[string]askedBy) {
	l.Helper()
	for name, r := range rows {
		if err := r.byAFault(l, true); err != nil {
			l.Errorf("%s: %v", name, err)
		}
	}
}

// A policy of freezes whose evaluation fails refuses every change of what can be frozen, labelled or
// not. The agent goes on, and so do the cluster's own controllers and what is no change.
func TestAPolicyOfFreezesThatFailsRefusesWhatCanBeFrozen(t *testing.T) {
	l := newLab(t)
	l.deployment("web", nil)
	l.statefulSet("db", nil)
	l.given(plain("settings"))
	l.given(document(annotations.KindPlan, "orders"))
	bound, err := readBindings(l.ctx, world.admin)
	l.must(err)
	l.Cleanup(func() { // when the policies are mended
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := bound.keep(ctx, func(string) bool { return true }); err != nil {
			l.Fatal(err)
		}
	})
	const scaled, owned = `{"spec":{"replicas":3}}`, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"mine","uid":"11111111-1111-1111-1111-111111111111"}]}}`
	l.failing(map[string]askedBy{
		"maint-freeze":             {editor(), patchesDeployment("web", scaled)},
		"maint-freeze-autoscalers": {editor(), autoscales("Deployment", "web")},
		"maint-freeze-status":      {admin(), patchesSet("db", owned)},
	})
	l.refusedByAFault(map[string]askedBy{
		"a scale":                   {editor(), scales("web")},
		"a deletion":                {admin(), deletesDeployment("web")},
		"the data of a ConfigMap":   {editor(), patches("settings", `{"data":{"x":"y"}}`)},
		"that of a plan":            {editor(), patches("orders", `{"data":{"plan.yaml":"x"}}`)},
		"a run":                     {withMasters(runOf(l.ns)), patchesDeployment("web", scaled)},
		"an autoscaler, by a run":   {withMasters(runOf(l.ns)), autoscales("Deployment", "web")},
		"and one of another object": {admin(), autoscales("StatefulSet", "web")},
	})
	l.table([]row{
		{name: "an annotation is written", who: editor(), asks: patchesDeployment("web", `{"metadata":{"annotations":{"a":"b"}}}`)},
		{name: "so is an intent", who: nsAdmin(), asks: annotates("orders", annotations.Pause, "true")},
		{name: "and a status", who: admin(), asks: patchesSet("db", `{"status":{"replicas":1}}`)},
		{name: "something is created", who: editor(), asks: creates(plain("mine"))},
		{name: "the cluster's own controllers go on", who: withMasters(account("kube-system", "deployment-controller")), asks: patchesDeployment("web", scaled)},
		{name: "so does the agent", who: agent(), asks: annotates("orders", annotations.StatusPhase, "Paused")},
		{name: "with what it keeps for itself", who: agent(), asks: creates(document(annotations.KindRun, "maint-run-orders-cccccccccc"))},
	})
	l.must(bound.keep(l.ctx, func(policy string) bool { return !strings.HasPrefix(policy, "maint-freeze") })) // as docs/admission.md says
	l.must(eventuallyErr(l.ctx, func() error {
		_, err := patchesDeployment("web", scaled)(l, world.as(editor()))
		return err
	}))
}

// A policy that confines the agent's token and whose evaluation fails refuses requests of the agent
// alone, and of these not what it does all day: its records, and the statuses of documents.
func TestAPolicyOfTheAgentsTokenThatFailsConcernsNobodyElse(t *testing.T) {
	l := newLab(t)
	l.node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}})
	l.given(document(annotations.KindPlan, "orders"))
	l.given(plain("settings"))
	frozen := onNamespace(annotations.StatusFrozen, "deployments.apps/web=frozen")
	secret := func(name string) request {
		return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
			return k.CoreV1().Secrets(annotations.DefaultNamespace).Create(l.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{DryRun: dry})
		}
	}
	cordons := nodePatch(`{"spec":{"unschedulable":true}}`)
	l.failing(map[string]askedBy{
		"maint-agent-configmaps": {withMasters(agent()), patches("settings", `{"data":{"x":"y"}}`)},
		"maint-agent-secrets":    {agent(), secret("another")},
		"maint-agent-namespaces": {withMasters(agent()), frozen},
		"maint-agent-nodes":      {agent(), cordons},
	})
	l.table([]row{
		{name: "the agent makes a run", who: agent(), asks: creates(document(annotations.KindRun, "maint-run-orders-cccccccccc"))},
		{name: "and says how a plan is", who: agent(), asks: annotates("orders", annotations.StatusPhase, "Paused")},
		{name: "an admin cordons a node", who: admin(), asks: cordons},
		{name: "a kubelet writes its node's status", who: kubelet(), asks: nodePatch(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, "status")},
		{name: "an admin writes a Secret of the agent's namespace", who: admin(), asks: secret("another")},
		{name: "an operator pauses a namespace", who: clusterOperator(), asks: onNamespace(annotations.Pause, "true")},
		{name: "a tenant writes what is not ours", who: tenant(), asks: creates(plain("mine"))},
	})
}
