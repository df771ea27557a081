package annotations

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// Keys on nodes and pods.
const (
	RequestPrefix       = "request.maint.dev/"
	StatusRequestPrefix = "status.request.maint.dev/"
	StatusCordoned      = "status.maint.dev/cordoned"
	DrainHow            = "maint.dev/drain"       // on pods: skip, wait-completed, surge
	DrainOrder          = "maint.dev/drain-order" // on pods: an integer, low first
)

// Node is a node as the decisions over nodes see it, without what its object does not say: its
// gate, its pods and its drain.
func Node(n *corev1.Node) nodes.Node {
	out := nodes.Node{
		Name: n.Name, UID: string(n.UID), Zone: n.Labels[corev1.LabelTopologyZone],
		Unschedulable: n.Spec.Unschedulable, NotReady: !NodeReady(n), Deleting: n.DeletionTimestamp != nil,
		Progress: n.Annotations[StatusProgress], Behavior: n.Annotations[StatusBehavior], Conditions: n.Annotations[StatusConditions],
	}
	out.ReadCurrent(Requests(n.Annotations), RequestStatuses(n.Annotations), n.Annotations[StatusCordoned])
	if out.Cordon != nil && out.Unschedulable && !out.Cordon.Before {
		out.Taken = takenCordon(n)
	}
	return out
}

// NodePatch is the JSON merge patch of what a step writes on a node: statuses, the record of the
// cordon, and the cordon itself. All of it is written or nothing, and only on the version that was
// read. So a crash leaves no part of it.
func NodePatch(uid types.UID, version string, step nodes.Step) ([]byte, error) {
	body := map[string]any{"metadata": map[string]any{"uid": uid, "resourceVersion": version, "annotations": changesOf(step)}}
	if step.Unschedulable != nil {
		body["spec"] = map[string]any{"unschedulable": nil}
		if *step.Unschedulable {
			body["spec"] = map[string]any{"unschedulable": true}
		}
	}
	return json.Marshal(body)
}

// changesOf are the annotations that a step changes; nil takes a key away.
func changesOf(step nodes.Step) map[string]any {
	on := map[string]any{}
	for requestor, status := range step.Statuses {
		on[StatusRequestPrefix+requestor] = status.String()
	}
	for _, requestor := range step.Remove {
		on[StatusRequestPrefix+requestor] = nil
	}
	if step.CordonChanged {
		on[StatusCordoned] = nil
		if step.Cordon != nil {
			on[StatusCordoned] = step.Cordon.String()
		}
	}
	for key, text := range map[string]*string{StatusProgress: step.Progress, StatusBehavior: step.Behavior, StatusConditions: step.Conditions} {
		if text == nil {
			continue
		}
		on[key] = nil
		if *text != "" {
			on[key] = *text
		}
	}
	return on
}

// MaxBytes is how many bytes all annotations of an object may have, keys and values together, as
// the API server counts them.
const MaxBytes = 256 << 10

// Bytes are those that the annotations of an object have.
func Bytes(on map[string]string) int {
	n := 0
	for key, value := range on {
		n += len(key) + len(value)
	}
	return n
}

// Grows is by how many bytes a step makes the annotations of a node longer; negative: shorter.
func Grows(on map[string]string, step nodes.Step) int {
	n := 0
	for key, value := range changesOf(step) {
		if old, there := on[key]; there {
			n -= len(key) + len(old)
		}
		if text, stays := value.(string); stays {
			n += len(key) + len(text)
		}
	}
	return n
}

// NodeReady says whether a node's Ready condition is True.
func NodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// Requests are the requests that stand on a node, by requestor: what each asks,
// unread.
func Requests(on map[string]string) map[string]string { return under(RequestPrefix, on) }

// RequestStatuses are what the agent said of them, by requestor, unread.
func RequestStatuses(on map[string]string) map[string]string { return under(StatusRequestPrefix, on) }

func under(prefix string, on map[string]string) map[string]string {
	var out map[string]string
	for key, value := range on {
		if name, ours := strings.CutPrefix(key, prefix); ours && name != "" {
			if out == nil {
				out = map[string]string{}
			}
			out[name] = value
		}
	}
	return out
}

// OfNode are the annotations of a node that are looked at: ours, those of people
// and of requestors.
func OfNode(on map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range on {
		if prefix, _, _ := strings.Cut(key, "/"); prefix == "maint.dev" || strings.HasSuffix(prefix, ".maint.dev") {
			out[key] = value
		}
	}
	return out
}
