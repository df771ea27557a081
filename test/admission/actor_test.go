package admission_test

import (
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// Who stands behind an intent is the user of the request that changed it.
func TestActorsAreStamped(t *testing.T) {
	l := newLab(t)
	held := []string{"maint.dev/pause", "true", "actor.maint.dev/pause", "ann", "maint.dev/trigger", "1", "actor.maint.dev/trigger", "ann", "maint.dev/skip", "next"}
	l.given(document(annotations.KindPlan, "orders"))
	l.given(document(annotations.KindPlan, "held", annotated(held...)))
	l.given(plain("later", annotated("maint.dev/pause", "true", "actor.maint.dev/pause", "ann")))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}
	l.node(node)
	const pause, actor = "maint.dev/pause", "actor.maint.dev/pause"

	l.table([]row{
		{name: "an intent without an actor gets one", who: editor(), asks: annotates("orders", pause, "true"), stored: map[string]string{actor: "eddy"}},
		{name: "a false actor becomes the true one", who: editor(), asks: annotates("orders", pause, "true", actor, "ann"), stored: map[string]string{actor: "eddy"}},
		{name: "also when the object is created", who: editor(), asks: creates(document(annotations.KindPlan, "new", annotated(pause, "true", actor, "ann", "actor.maint.dev/skip", "ann"))), stored: map[string]string{actor: "eddy", "actor.maint.dev/skip": ""}},
		{name: "also by server-side apply", who: editor(), asks: applies("someone", document(annotations.KindPlan, "new", annotated(pause, "true", actor, "ann"))), stored: map[string]string{actor: "eddy"}},
		{name: "who changes another's intent stands behind it", who: editor(), asks: annotates("held", pause, "2027-01-01T00:00:00Z"), stored: map[string]string{actor: "eddy", "actor.maint.dev/trigger": "ann"}},
		{name: "who does not change it becomes not its actor", who: nsAdmin(), asks: annotates("held", actor, "nora"), stored: map[string]string{pause: "true", actor: "ann"}},
		{name: "nor takes the actor away", who: nsAdmin(), asks: annotates("held", actor, ""), stored: map[string]string{actor: "ann"}},
		{name: "nor says who it was where nobody knows", who: nsAdmin(), asks: annotates("held", "actor.maint.dev/skip", "ann"), stored: map[string]string{"actor.maint.dev/skip": ""}},
		{name: "an intent that goes takes its actor along", who: editor(), asks: annotates("held", pause, ""), stored: map[string]string{actor: "", "actor.maint.dev/trigger": "ann"}},
		{name: "an actor without an intent is not kept", who: editor(), asks: annotates("orders", actor, "eddy"), stored: map[string]string{actor: ""}},
		{name: "who changes a trigger's options stands behind the trigger", who: editor(), asks: annotates("held", "maint.dev/trigger-options", `{"token":"1","reason":"x"}`), stored: map[string]string{"actor.maint.dev/trigger": "eddy", "actor.maint.dev/trigger-options": "eddy"}},
		{name: "the stanza's actor is that of the strategy", who: nsAdmin(), asks: annotates("orders", "maint.dev/change-strategy", "PermissiveUntil", "maint.dev/permissive-until", "2027-01-01T00:00:00Z", "actor.maint.dev/change-strategy", "ann"), stored: map[string]string{"actor.maint.dev/change-strategy": "nora", "actor.maint.dev/permissive-until": "nora"}},
		{name: "who changes the reason alone stands behind it", who: editor(), asks: annotates("held", "reason.maint.dev/trigger", "mine"), stored: map[string]string{"actor.maint.dev/trigger": "eddy", actor: "ann"}},
		{name: "a reason without an intent has no actor", who: editor(), asks: annotates("orders", "reason.maint.dev/pause", "mine"), stored: map[string]string{actor: ""}},
		{name: "also on a namespace", who: clusterOperator(), asks: onNamespace(pause, "true", actor, "ann", "reason.maint.dev/pause", "mine"), stored: map[string]string{actor: "olga"}},
		{name: "other changes leave actors alone", who: editor(), asks: patches("held", `{"data":{"plan.yaml":"x"}}`), stored: map[string]string{actor: "ann", "actor.maint.dev/trigger": "ann"}},
		{name: "who makes a document of it stands behind what it asks", who: nsAdmin(), asks: patches("later", `{"metadata":{"labels":{"maint.dev/kind":"plan"}}}`), stored: map[string]string{pause: "true", actor: "nora"}},
		{name: "an account of a cluster stands there by its name", who: account(l.ns, "flux"), asks: annotates("orders", pause, "true"), stored: map[string]string{actor: "system:serviceaccount:" + l.ns + ":flux"}},
		{name: "the agent puts half a skip back, and whoever gave it stays", who: withMasters(agent()), asks: annotates("held", "maint.dev/trigger", "2"), stored: map[string]string{"actor.maint.dev/trigger": "ann"}},
		{name: "on a namespace", who: clusterOperator(), asks: onNamespace(pause, "true", actor, "ann"), stored: map[string]string{actor: "olga"}},
		{name: "on a namespace's status", who: clusterOperator(), asks: patchesNamespace(annotationPatch([]string{pause, "true", actor, "ann"}), "status"), stored: map[string]string{actor: "olga"}},
		{name: "at a namespace's end", who: clusterOperator(), asks: finalizesNamespace(pause, "true", actor, "ann"), stored: map[string]string{actor: "olga"}},
		{name: "on a node", who: nodeAdmin(), asks: onNode("maint.dev/restrictive-until", "2027-01-01T00:00:00Z", "actor.maint.dev/restrictive-until", "ann"), stored: map[string]string{"actor.maint.dev/restrictive-until": "nick"}},
		{name: "on a node's status", who: nodeAdmin(), asks: onNodeStatus(pause, "true", actor, "ann"), stored: map[string]string{actor: "nick"}},
	})
}

// Of each intent, the words of its reason are those of its actor.
func TestWhoChangesTheReasonOfAnIntentStandsBehindIt(t *testing.T) {
	l := newLab(t)
	intents := map[string]string{
		"pause": "true", "skip": "next", "trigger": "1", "trigger-options": `{"token":"1","reason":"x"}`, "approve": "r", "reject": "r", "resume": "r", "abort": "r", "retry": "r",
		"bypass": "2027-01-01T00:00:00Z: x", "change-strategy": "PermissiveUntil", "change-policy": "p", "permissive-until": "2027-01-01T00:00:00Z", "restrictive-until": "2027-01-01T00:00:00Z",
		"hold-state": "awake", "hold-until": "2027-01-01T00:00:00Z",
	}
	var all []string
	for intent, value := range intents {
		all = append(all, "maint.dev/"+intent, value, "actor.maint.dev/"+intent, "ann", "reason.maint.dev/"+intent, "hers")
	}
	l.given(document(annotations.KindPlan, "orders", annotated(all...)))
	var rows []row
	for intent := range intents {
		key, stored := "reason.maint.dev/"+intent, map[string]string{"actor.maint.dev/" + intent: "nora"}
		rows = append(rows,
			row{name: "another reason of " + intent, who: nsAdmin(), asks: annotates("orders", key, "his"), stored: stored},
			row{name: "none of " + intent, who: nsAdmin(), asks: annotates("orders", key, ""), stored: stored},
			row{name: "the same of " + intent, who: nsAdmin(), asks: annotates("orders", key, "hers", "example.org/x", "y"), stored: map[string]string{"actor.maint.dev/" + intent: "ann"}},
		)
	}
	l.table(rows)
}

// node puts a node there for the test; what it bears of ours, the agent writes.
func (l *lab) node(n *corev1.Node) {
	l.Helper()
	says := n.Annotations
	n.Annotations = nil
	_, err := world.admin.CoreV1().Nodes().Create(l.ctx, n, metav1.CreateOptions{})
	l.must(err)
	l.Cleanup(func() { _ = world.admin.CoreV1().Nodes().Delete(context.Background(), n.Name, metav1.DeleteOptions{}) })
	if len(says) == 0 {
		return
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": says}})
	l.must(err)
	_, err = world.as(agent()).CoreV1().Nodes().Patch(l.ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	l.must(err)
}
