package admission_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// Before Kubernetes 1.36 nothing stamps: a false actor is refused, and one that is
// absent is allowed.
func TestWithoutStampingAFalseActorIsRefused(t *testing.T) {
	l := newLab(t)
	l.given(document(annotations.KindPlan, "orders"))
	l.given(document(annotations.KindPlan, "held", annotated("maint.dev/pause", "true", "actor.maint.dev/pause", "ann", "maint.dev/skip", "next")))
	l.node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}})
	l.withoutStamps()
	const pause, actor, wrong = "maint.dev/pause", "actor.maint.dev/pause", "who changes the intent, or absent"

	l.table([]row{
		{name: "an intent without an actor", who: editor(), asks: annotates("orders", pause, "true"), stored: map[string]string{pause: "true", actor: ""}},
		{name: "an intent with the user's name, as the CLI writes it", who: editor(), asks: annotates("orders", pause, "true", actor, "eddy"), stored: map[string]string{actor: "eddy"}},
		{name: "another's name is refused", who: editor(), asks: annotates("orders", pause, "true", actor, "ann"), denied: wrong},
		{name: "also when the object is created", who: editor(), asks: creates(document(annotations.KindPlan, "new", annotated(pause, "true", actor, "ann"))), denied: wrong},
		{name: "another's name that is left standing is refused", who: editor(), asks: annotates("held", pause, "2027-01-01T00:00:00Z"), denied: wrong},
		{name: "and may be taken away with the change", who: editor(), asks: annotates("held", pause, "2027-01-01T00:00:00Z", actor, "")},
		{name: "or become the user's", who: editor(), asks: annotates("held", pause, "2027-01-01T00:00:00Z", actor, "eddy")},
		{name: "nor does it stay with another reason", who: editor(), asks: annotates("held", "reason.maint.dev/pause", "mine"), denied: wrong},
		{name: "who changes the reason may be named", who: editor(), asks: annotates("held", "reason.maint.dev/pause", "mine", actor, "eddy")},
		{name: "without a change nobody puts a name there", who: editor(), asks: annotates("held", "actor.maint.dev/skip", "eddy"), denied: wrong},
		{name: "an intent is taken away, and its actor may stay", who: editor(), asks: annotates("held", pause, "")},
		{name: "the text of a plan that bears one is edited as ever", who: editor(), asks: patches("held", `{"data":{"plan.yaml":"x"}}`)},
		{name: "the agent takes intents away", who: withMasters(agent()), asks: annotates("held", pause, "", actor, "")},
		{name: "on a node, too", who: nodeAdmin(), asks: onNode(pause, "true", actor, "ann"), denied: wrong},
		{name: "and on its status", who: nodeAdmin(), asks: onNodeStatus(pause, "true", actor, "nick")},
	})
}

// withoutStamps takes the policies that stamp out of force for the test.
func (l *lab) withoutStamps() {
	l.Helper()
	l.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := world.switchOn(ctx); err != nil {
			l.Fatal(err)
		}
	})
	l.must(world.stopStamping(l.ctx))
	for _, p := range probes() {
		if p.stamps {
			l.must(world.untilProbe(l.ctx, p, false))
		}
	}
}

// Whoever takes the policies away has the cluster that was there before.
func TestWithoutThePoliciesEverythingIsAsBefore(t *testing.T) {
	l := newLab(t)
	l.given(document(annotations.KindPlan, "orders"))
	l.given(document(annotations.KindRun, liveRun, labelled(annotations.LabelPlan, "orders"), alive))
	l.node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}})
	l.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := world.switchOn(ctx); err != nil {
			l.Fatal(err)
		}
	})
	l.must(world.switchOff(l.ctx))

	l.table([]row{
		{name: "a plan is written with the right on ConfigMaps", who: tenant(), asks: creates(document(annotations.KindPlan, "new"))},
		{name: "intents are given with it", who: tenant(), asks: annotates("orders", "maint.dev/pause", "true", "actor.maint.dev/pause", "ann"), stored: map[string]string{"actor.maint.dev/pause": "ann"}},
		{name: "a run is deleted", who: tenant(), asks: deletes(liveRun)},
		{name: "a record is written", who: tenant(), asks: creates(document(annotations.KindRun, "maint-run-orders-cccccccccc"))},
		{name: "a status is", who: tenant(), asks: annotates("orders", annotations.StatusPhase, "x")},
		{name: "a node is asked for with the right on nodes", who: nodeWriter(), asks: onNode("request.maint.dev/evil", "{}")},
		{name: "but not by a kubelet", who: kubelet(), asks: onNode("request.maint.dev/evil", "{}"), denied: kubelets},
	})
}
