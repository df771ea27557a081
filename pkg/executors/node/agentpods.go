package node

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/follow"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// agentPods are the agent's own pods on all nodes. One watch serves all drains, and only while a
// drain is on a node with such a pod.
type agentPods struct {
	stop   context.CancelFunc
	synced bool
	err    error
	pods   map[string]drain.Pod // by uid
}

// agent is what the session knows of the agent's replicas; the caller holds the lock.
func (s *session) agent(now time.Time) drain.Agent {
	config := s.d.config
	here := false
	for _, p := range s.seen.pods {
		here = here || annotations.AgentPod(p, config.Namespace, config.own())
	}
	if !here || config.Namespace == "" {
		return drain.Agent{}
	}
	s.d.watchReplicas()
	r := s.d.replicas
	known := make([]drain.Pod, 0, len(s.seen.pods))
	for _, p := range s.seen.pods {
		if annotations.AgentPod(p, config.Namespace, config.own()) {
			known = append(known, p)
		}
	}
	for uid, p := range r.pods {
		if _, seen := s.seen.pods[uid]; !seen {
			known = append(known, p)
		}
	}
	a := drain.AgentOn(s.order.Node, config.own(), known, now)
	switch {
	case r.synced:
	case r.err != nil:
		a.Unknown = document.Cut(r.err.Error(), 200)
	default: // they are being listed
		a.Elsewhere = drain.ComesElsewhere
	}
	return a
}

// watchReplicas begins to watch the agent's pods; the caller holds the lock.
func (d *Drainer) watchReplicas() {
	if d.replicas != nil {
		return
	}
	ctx, cancel := context.WithCancel(d.ctx)
	r := &agentPods{stop: cancel, pods: map[string]drain.Pod{}}
	d.replicas = r
	change := func(f func()) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if ctx.Err() == nil {
			f()
			d.wakeEverybody()
		}
	}
	set := func(p drain.Pod) {
		if annotations.AgentPod(p, d.config.Namespace, d.config.own()) {
			r.pods[p.UID] = p
		}
	}
	kept := follow.Kept[*corev1.Pod, drain.Pod]{
		Turn: annotations.DrainPod, Key: func(p drain.Pod) string { return p.UID },
		Set: func(p drain.Pod) { change(func() { set(p) }) }, Gone: func(p drain.Pod) { change(func() { delete(r.pods, p.UID) }) },
		Replaced: func(all []drain.Pod) {
			change(func() {
				clear(r.pods)
				for _, p := range all {
					set(p)
				}
				r.synced = true
			})
		},
	}
	go follow.Keep(ctx, false, podsIn(d.config.Reads, d.config.Namespace, func(err error) { change(func() { r.err = err }) }), kept)
}

func podsIn(kube kube.Interface, namespace string, heard func(error)) follow.Source[*corev1.PodList] {
	in := kube.CoreV1().Pods(namespace)
	return follow.Source[*corev1.PodList]{List: in.List, Watch: in.Watch, OnAnswer: heard, Small: true, Trim: func(*metav1.ListOptions) {}}
}
