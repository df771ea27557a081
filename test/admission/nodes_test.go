package admission_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// kubelets is what the policy that install always brings tells a kubelet.
const kubelets = "a kubelet writes no annotation of maint.dev"

// Requests for nodes take a verb of the requestor's name, and the rest is the agent's
// or takes override: kubelets may write their own node, and its status.
func TestWhoAsksForNodes(t *testing.T) {
	l := newLab(t)
	l.node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1", Annotations: map[string]string{
		"request.maint.dev/ours": "{}", "status.request.maint.dev/ours": `{"phase":"Ready"}`, annotations.StatusCordoned: "broken", "maint.dev/pause": "true",
	}}})
	const ask, agents = "verb create on noderequests.maint.dev", "only the agent says"
	forced := `{"drain":{"force":true}}`

	l.table([]row{
		{name: "who may write nodes does not ask for one", who: nodeWriter(), asks: onNode("request.maint.dev/evil", "{}"), denied: ask},
		{name: "nor by its status", who: nodeWriter(), asks: onNodeStatus("request.maint.dev/evil", "{}"), denied: ask},
		{name: "nor for more requestors than are looked at one by one", who: nodeWriter(), asks: onNode(many(5, "request.maint.dev/evil-")...), denied: "more than two requestors"},
		{name: "nor under so many annotations that looking is dear", who: nodeWriter(), asks: onNode(append(many(600, "maint.dev/x"), "request.maint.dev/evil", "{}")...), denied: "500 annotations at most"},
		{name: "nor among so many of others", who: nodeWriter(), asks: onNode(append(many(600, "k"), "request.maint.dev/evil", "{}")...), denied: "500 annotations at most"},
		{name: "nor takes another's request away", who: nodeWriter(), asks: onNode("request.maint.dev/ours", ""), denied: ask},
		{name: "nor opens its own gate", who: nodeWriter(), asks: onNode("maint.dev/change-strategy", "Permissive"), denied: "verb override on nodes.maint.dev"},
		{name: "nor ends a pause", who: nodeWriter(), asks: onNodeStatus("maint.dev/pause", ""), denied: "verb override"},
		{name: "nor says that it is ready", who: nodeWriter(), asks: onNodeStatus("status.request.maint.dev/ours", `{"phase":"Draining"}`), denied: agents},
		{name: "nor takes the record of a cordon away", who: nodeWriter(), asks: onNode(annotations.StatusCordoned, ""), denied: agents},
		{name: "a kubelet does not ask for its node, whatever it may", who: withMasters(kubelet()), asks: onNode("request.maint.dev/evil", "{}"), denied: kubelets},
		{name: "nor by its status", who: withMasters(kubelet()), asks: onNodeStatus("request.maint.dev/evil", "{}"), denied: kubelets},
		{name: "nor under many annotations", who: kubelet(), asks: onNode(append(many(1100, "k"), "request.maint.dev/evil", "{}")...), denied: "ValidatingAdmissionPolicy 'maint-"}, // of two that refuse it one is named
		{name: "nor takes another's request away", who: withMasters(kubelet()), asks: onNode("request.maint.dev/ours", ""), denied: kubelets},
		{name: "nor opens its own gate", who: withMasters(kubelet()), asks: onNode("maint.dev/change-strategy", "Permissive"), denied: kubelets},
		{name: "nor registers with a request", who: withMasters(kubelet()), asks: registers(nil, map[string]string{"request.maint.dev/evil": "{}"}), denied: kubelets},
		{name: "but writes its status", who: kubelet(), asks: nodePatch(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, "status")},
		{name: "and its annotations", who: kubelet(), asks: onNode("volumes.kubernetes.io/controller-managed-attach-detach", "true")},
		{name: "and registers, with a label of ours too", who: kubelet(), asks: registers(map[string]string{"maint.dev/system": "gpu"}, nil)},
		{name: "and with no request", who: nodeWriter(), asks: registers(nil, map[string]string{"request.maint.dev/evil": "{}"}), denied: ask},

		{name: "a bot asks by its name", who: bot(), asks: onNode("request.maint.dev/rebooter", `{"reason":"kernel <6.1 & \"force\" it"}`)},
		{name: "says that it forces nothing", who: bot(), asks: onNode("request.maint.dev/rebooter", `{"drain":{"force": false,"onTimeout":"skip"}}`)},
		{name: "and for nobody else", who: bot(), asks: onNode("request.maint.dev/other", "{}"), denied: ask},
		{name: "nor for both at once", who: bot(), asks: onNode("request.maint.dev/rebooter", "{}", "request.maint.dev/other", "{}"), denied: ask},
		{name: "nor by force", who: bot(), asks: onNode("request.maint.dev/rebooter", forced), denied: "verb force"},
		{name: "however it is written", who: bot(), asks: onNode("request.maint.dev/rebooter", `{"drain":{"Force" : true}}`), denied: "verb force"},
		{name: "or escaped", who: bot(), asks: onNode("request.maint.dev/rebooter", `{"drain":{"f\u006Frce":true}}`), denied: "verb force"},
		{name: "or at its deadline", who: bot(), asks: onNode("request.maint.dev/rebooter", `{"drain":{"onTimeout":"force"}}`), denied: "verb force"},
		{name: "nor writes a status", who: bot(), asks: onNode("status.request.maint.dev/rebooter", `{"phase":"Ready"}`), denied: agents},
		{name: "but labels as ever", who: bot(), asks: nodePatch(`{"metadata":{"labels":{"pool":"a"}}}`)},
		{name: "who may create any asks for many at once", who: driver(), asks: onNode(many(5, "request.maint.dev/gpu-")...)},
		{name: "who may pause nodes pauses one", who: pauser(), asks: onNode("maint.dev/pause", "2027-01-01T00:00:00Z")},
		{name: "and overrides nothing", who: pauser(), asks: onNode("maint.dev/pause", "true", "maint.dev/change-strategy", "Permissive"), denied: "verb override"},
		{name: "maint-admin asks by force", who: nodeAdmin(), asks: onNode("request.maint.dev/cli.nick", forced)},
		{name: "overrides", who: nodeAdmin(), asks: onNode("maint.dev/permissive-until", "2027-01-01T00:00:00Z")},
		{name: "takes a record away that nobody can read", who: nodeAdmin(), asks: onNode(annotations.StatusCordoned, "")},
		{name: "and writes none", who: nodeAdmin(), asks: onNode(annotations.StatusCordoned, "{}"), denied: agents},
		{name: "a run cordons as its plan's account", who: withMasters(runOf(l.ns)), asks: nodePatch(`{"metadata":{"annotations":{"status.maint.dev/cordoned":"{}"}},"spec":{"unschedulable":true}}`)},
		{name: "and says nothing of requests", who: withMasters(runOf(l.ns)), asks: onNode("status.request.maint.dev/ours", "x"), denied: agents},
		{name: "the agent says what it did", who: withMasters(agent()), asks: onNode("status.request.maint.dev/ours", `{"phase":"Ready"}`, annotations.StatusCordoned, "{}")},
		{name: "an admin asks and cordons", who: admin(), asks: onNode("request.maint.dev/cli.root", forced)},
	})
}

// registers creates a node, as a kubelet that starts does.
func registers(labels, annotations map[string]string) request {
	return func(l *lab, k kubernetes.Interface) (metav1.Object, error) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-9", Labels: labels, Annotations: annotations}}
		return k.CoreV1().Nodes().Create(l.ctx, n, metav1.CreateOptions{DryRun: dry})
	}
}
