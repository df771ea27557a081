package node

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// leavingPods are the pods of nodes that are being drained.
type leavingPods struct {
	changed chan struct{}
	byNode  map[string]*podsOf // nil: pods may not be read
	warn    func(key, text string)
}

// podsOf is the live picture of one node's pods.
type podsOf struct {
	*watch.Cache
	stop   context.CancelFunc
	before map[string]bool // those that had to leave at the last look
}

// states are the pods that still have to leave, with their states, and those of the last look that
// no longer have to: they left, or stay.
func (l *leavingPods) states(ctx context.Context, k *factory.Cluster, name string, a *nodes.Asked) (states, settled []print.Update) {
	if a == nil || a.Status == nil || a.Status.Phase != nodes.Draining && a.Status.Phase != nodes.WaitingForPods || a.Request.Drain == nil {
		return nil, l.finish(ctx, k, name)
	}
	p := l.open(ctx, k, name)
	if p == nil {
		return nil, nil
	}
	var pods []drain.Pod
	for _, pod := range p.Cache.Pods(name) {
		pods = append(pods, annotations.DrainPod(pod))
	}
	// A DaemonSet is assumed to exist: nothing is evicted here.
	judge := drain.NewJudge(*a.Request.Drain, func(string, string) (bool, error) { return true, nil })
	now := map[string]bool{}
	for _, j := range judge.All(pods) {
		if j.Do != drain.Skip {
			now[j.Pod.String()] = true
			states = append(states, print.Update{Of: j.Pod.String(), Text: podWords(j)})
		}
	}
	maps.DeleteFunc(p.before, func(pod string, _ bool) bool { return now[pod] })
	settled = departures(p.before, pods)
	p.before = now
	return states, settled
}

// departures says what happened to pods that had to leave, by the pods that are still on the node.
func departures(before map[string]bool, on []drain.Pod) []print.Update {
	words := map[string]string{}
	for pod := range before {
		words[pod] = "has left"
	}
	for _, p := range on {
		switch {
		case !before[p.String()]:
		case p.Deleting:
			words[p.String()] = "shuts down, and is not waited for"
		default:
			words[p.String()] = "stays on the node"
		}
	}
	var said []print.Update
	for _, pod := range slices.Sorted(maps.Keys(words)) {
		said = append(said, print.Update{Of: pod, Text: words[pod]})
	}
	return said
}

func podWords(j drain.Judged) string {
	switch {
	case j.Deleting:
		return "shuts down"
	case j.Do == drain.Await:
		return "is left to finish by itself"
	case j.Do == drain.Refuse:
		return "may not leave: " + j.Reason()
	}
	return "is still there"
}

// open begins to watch the pods of a node. Where that is not allowed, only the agent's count is
// shown, and a warning is printed once.
func (l *leavingPods) open(ctx context.Context, k *factory.Cluster, name string) *podsOf {
	if p, open := l.byNode[name]; open {
		return p
	}
	inner, stop := context.WithCancel(ctx)
	live, err := watch.PodsOn(inner, k, l.changed, name)
	if err != nil {
		stop()
		l.byNode[name] = nil
		if ctx.Err() == nil {
			l.warn("pods", fmt.Sprintf("warning: %v; only their number is shown", err))
		}
		return nil
	}
	l.byNode[name] = &podsOf{Cache: live, stop: stop}
	return l.byNode[name]
}

// finish ends the watch of a node's pods, and says what happened to those that still had to leave.
// They are read once more: the live picture may be older than the end of the drain, and pods that a
// drain leaves are not gone.
func (l *leavingPods) finish(ctx context.Context, k *factory.Cluster, name string) []print.Update {
	p := l.close(name)
	if p == nil || len(p.before) == 0 {
		return nil
	}
	pods, err := podsOn(ctx, k, name)
	if err != nil {
		l.warn("pods", fmt.Sprintf("warning: %v; what became of its pods is not known", err))
		return nil
	}
	return departures(p.before, pods)
}

// close ends the watch of a node's pods.
func (l *leavingPods) close(name string) *podsOf {
	p := l.byNode[name]
	if p != nil {
		p.stop()
	}
	delete(l.byNode, name)
	return p
}

// podsOn reads the pods of a node.
func podsOn(ctx context.Context, k *factory.Cluster, node string) ([]drain.Pod, error) {
	found, err := k.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	if err != nil {
		return nil, k.Explain("list the pods of node "+node, err)
	}
	var pods []drain.Pod
	for i := range found.Items {
		if p := &found.Items[i]; p.Spec.NodeName == node {
			pods = append(pods, annotations.DrainPod(p))
		}
	}
	return pods, nil
}
