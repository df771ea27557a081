package nodemaintenance

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// eventNotWritten is the reason of the Event about a node that the API server does not take
// as the agent writes it.
const eventNotWritten = "NodeNotWritten"

// invalidNode is a node whose last write the API server refused for good (422): somebody has
// filled its annotations, say. It keeps nobody else from a turn, whether or not it had its own.
type invalidNode struct {
	why   string
	until time.Time // when the write is tried again
}

// noteInvalid notes that a node cannot be written as it is, and says so once. The writer's
// lock is held.
func (nw *nodeWriter) noteInvalid(node string, err error, until time.Time) {
	if _, known := nw.invalid[node]; !known {
		text := "the API server refuses what the agent writes on this node: until that is fixed nothing begins or goes on there, and other nodes have their turn: " + err.Error()
		nw.telemetry.Events.Event(nodeReference(node), corev1.EventTypeWarning, eventNotWritten, document.Cut(text, document.MaxMessage))
	}
	nw.invalid[node] = invalidNode{why: "the API server refuses what the agent writes on the node: " + err.Error(), until: until}
}

// holdBack keeps a node that cannot be written from taking a turn: until the next attempt its
// gate is closed, and a request that was only told to be next waits again until a write succeeds.
// What has begun stops, and has its slot again after a write that says so.
func (nw *nodeWriter) holdBack(f *nodes.Node, now time.Time) {
	nw.mu.Lock()
	is, refused := nw.invalid[f.Name]
	nw.mu.Unlock()
	if !refused {
		return
	}
	for i := range f.Asked {
		if told := f.Asked[i].Status; told != nil && told.Phase == nodes.Scheduled && f.Cordon == nil {
			waits := *told
			waits.Phase, waits.Started = nodes.Pending, nil
			f.Asked[i].Status = &waits
		}
	}
	if f.Gate.Permitted && now.Before(is.until) {
		f.Gate = nodes.Gate{Reason: document.Cut(is.why, document.MaxMessage/2), Next: &is.until}
	}
	if now.Before(is.until) || !slices.ContainsFunc(f.Asked, func(a nodes.Asked) bool { return a.Status != nil && a.Status.Yielded != nil }) {
		f.Gate.Stops = document.Cut(is.why, document.MaxMessage/2)
	}
}

// nodeReference is a node as its Events name it. Its name stands for the uid, as the kubelet has
// it: kubectl describe finds them by it.
func nodeReference(name string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(name)}
}
