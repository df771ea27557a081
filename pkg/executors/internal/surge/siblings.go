package surge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/follow"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// readAgain is the pause after a Deployment could not be read (a guess).
const readAgain = 2 * time.Second

// Sibling is a pod of the same Deployment.
type Sibling struct {
	Node  string
	Ready bool
	Why   string // it is not Ready
}

// Replaced says whether the pods, by uid, are enough without the one that leaves; if not, why the
// newest is not Ready. At least one has to be on another node.
func Replaced(pods map[string]Sibling, leaving, node string, wanted int) (enough bool, why string) {
	ready, elsewhere := 0, 0
	for uid, other := range pods {
		if uid == leaving {
			continue
		}
		if other.Ready {
			ready++
			if other.Node != node {
				elsewhere++
			}
		} else if other.Why != "" {
			why = other.Why
		}
	}
	return elsewhere > 0 && ready >= wanted, why
}

// Follow sends the pods of the Deployment, by uid, whenever they change, until ctx ends. The channel
// has room for one: only the last is of interest.
func (d ExtraReplica) Follow(ctx context.Context, clients kube.Interface, changed chan map[string]Sibling) {
	send := func(pods map[string]Sibling) {
		select {
		case <-changed: // replace what nobody has received
		default:
		}
		changed <- pods
	}
	dep, err := clients.AppsV1().Deployments(d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
	for err != nil { // the replica is added: an API server that is away, or refuses while it starts, ends nothing
		send(map[string]Sibling{"": {Why: fmt.Sprintf("Deployment/%s cannot be read: %s", d.Name, document.Cut(err.Error(), 200))}})
		select {
		case <-ctx.Done():
			return
		case <-time.After(readAgain):
		}
		dep, err = clients.AppsV1().Deployments(d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
	}
	follow.Keep(ctx, false, podsOf(clients, dep), mirror(send))
}

func podsOf(clients kube.Interface, dep *appsv1.Deployment) follow.Source[*corev1.PodList] {
	selector := metav1.FormatLabelSelector(dep.Spec.Selector)
	in := clients.CoreV1().Pods(dep.Namespace)
	return follow.Source[*corev1.PodList]{
		List: in.List, Watch: in.Watch, OnAnswer: func(error) {}, Trim: func(o *metav1.ListOptions) { o.LabelSelector = selector },
	}
}

// followed is one of these pods.
type followed struct {
	uid string
	Sibling
}

// mirror sends a copy of all pods after each change.
func mirror(send func(map[string]Sibling)) follow.Kept[*corev1.Pod, followed] {
	pods := map[string]Sibling{}
	return follow.Kept[*corev1.Pod, followed]{
		Turn: func(p *corev1.Pod) followed { return followed{string(p.UID), siblingOf(p)} },
		Key:  func(p followed) string { return p.uid },
		Set:  func(p followed) { pods[p.uid] = p.Sibling; send(maps.Clone(pods)) },
		Gone: func(p followed) { delete(pods, p.uid); send(maps.Clone(pods)) },
		Replaced: func(all []followed) {
			clear(pods)
			for _, p := range all {
				pods[p.uid] = p.Sibling
			}
			send(maps.Clone(pods))
		},
	}
}

func siblingOf(p *corev1.Pod) Sibling {
	out := Sibling{Node: p.Spec.NodeName}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady:
			out.Ready = c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			out.Why = c.Reason + ": " + document.Cut(c.Message, 200)
		}
	}
	if i := slices.IndexFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Waiting != nil }); i >= 0 && out.Why == "" {
		out.Why = p.Status.ContainerStatuses[i].State.Waiting.Reason
	}
	return out
}
