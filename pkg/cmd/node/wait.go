package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/live"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// podsOn reads the pods of a node.
func podsOn(ctx context.Context, k *factory.Cluster, node string) ([]drain.Pod, error) {
	found, err := k.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	if err != nil {
		return nil, factory.Explain("list the pods of node "+node, err)
	}
	var pods []drain.Pod
	for i := range found.Items {
		if p := &found.Items[i]; p.Spec.NodeName == node {
			pods = append(pods, annotations.DrainPod(p))
		}
	}
	return pods, nil
}

// nodeWait shows a requestor's nodes live, until each of them has settled.
type nodeWait struct {
	factory.Env
	c         *factory.Factory
	k         *factory.Cluster
	agent     *factory.Attendance
	requestor string
	names     []string
	uids      map[string]types.UID
	expected  string // the value that was written; empty: none was
	left      string // what is said when the wait ends too early

	// settled says whether a node is at its end, and with which error.
	settled func(name string, n *corev1.Node) (bool, error)

	reportTimeout time.Duration // within which the agent says something of what is asked
	view          print.Printer
	screen        watch.Screen
	changed       chan struct{}
	nodes         *watch.Cache
	pods          map[string]*podsOf
	seen          map[string]bool // nodes that showed what was written
	reported      bool            // the agent said something of some node
	warned        map[string]bool
}

// podsOf is the live picture of one node's pods.
type podsOf struct {
	*watch.Cache
	stop   context.CancelFunc
	before map[string]bool // that were to leave when last looked at
}

func newNodeWait(c *factory.Factory, k *factory.Cluster, requestor string, targets []*corev1.Node) *nodeWait {
	w := &nodeWait{
		Env: c.Env, c: c, k: k, agent: c.Attend(k), requestor: requestor, names: namesOf(targets), uids: map[string]types.UID{}, screen: watch.Screen{Env: c.Env},
		changed: make(chan struct{}, 1), pods: map[string]*podsOf{}, seen: map[string]bool{}, warned: map[string]bool{}, reportTimeout: factory.AgentTimeout,
	}
	for _, n := range targets {
		w.uids[n.Name] = n.UID
	}
	return w
}

// run shows the nodes until all have settled, on the whole screen where there is one.
func (w *nodeWait) run(ctx context.Context) error {
	return live.Run(ctx, w.c, w.k, live.View{Title: "nodes of " + w.requestor}, func(ctx context.Context, k *factory.Cluster, show func([]view.Line)) error {
		w.k, w.screen.Live = k, show
		return w.follow(ctx)
	})
}

func (w *nodeWait) follow(ctx context.Context) error {
	var err error
	if w.nodes, err = watch.Nodes(ctx, w.k, w.changed, w.names...); err != nil {
		return w.ended(ctx, err)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	silent := time.NewTimer(w.reportTimeout)
	defer silent.Stop()
	for {
		over, err := w.refresh(ctx)
		if over {
			return err
		}
		select {
		case <-ctx.Done():
			return w.ended(ctx, nil)
		case <-w.changed:
			pauseFor(ctx, gatherFor)
		case <-tick.C: // the ages run on
			if err := w.agent.Check(ctx, w.left); err != nil {
				return err
			}
		case <-silent.C:
			if w.expected != "" && !w.reported {
				return exit.Errorf(exit.CodeNoAgent, "the agent says nothing of %s: it is too old for that, or watches one namespace alone; %s", view.NodeWords(w.names), w.left)
			}
		}
	}
}

// gatherFor is how long a picture waits for more to change (a guess: nobody reads
// faster).
const gatherFor = 50 * time.Millisecond

func pauseFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (w *nodeWait) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return watch.EndedEarly(ctx, w.left)
	}
	return err
}

// refresh shows how the nodes stand, and says whether all have settled.
func (w *nodeWait) refresh(ctx context.Context) (over bool, err error) {
	w.view = print.New(w.Env, w.Zone)
	var picture []view.Line
	var lines []print.Update
	var faults []error
	over = true
	for _, name := range w.names {
		n := w.nodes.Node(name)
		if n != nil && n.UID != w.uids[name] {
			n = nil // another one of the name
		}
		end, err := w.settled(name, n)
		over = over && end
		if err != nil {
			faults = append(faults, err)
		}
		one, said := w.show(ctx, name, n)
		picture, lines = append(picture, view.LinesOf(view.NodeThing(name), one...)...), append(lines, said...)
	}
	w.screen.ShowOf(picture, lines)
	w.warn()
	return over, errors.Join(faults...)
}

// show is one node with the pods that are to leave it.
func (w *nodeWait) show(ctx context.Context, name string, n *corev1.Node) ([]string, []print.Update) {
	if n == nil {
		w.closePods(name)
		return []string{w.view.Bold(name) + "  " + w.view.Bad("is gone")}, []print.Update{{Of: name, Text: "node " + name + ": is gone"}}
	}
	facts := annotations.Node(n)
	a := view.AskedBy(facts, w.requestor)
	if a != nil && a.Status != nil {
		w.reported = true
	}
	picture := []string{w.view.Bold(name) + "  " + w.view.Asked(a)}
	states, settled := w.podStates(ctx, name, a)
	var said []print.Update
	for _, p := range settled {
		said = append(said, print.Update{Of: name + "/" + p.Of, Text: fmt.Sprintf("pod %s on %s: %s", p.Of, name, p.Text)})
	}
	said = append(said, print.Update{Of: name, Text: "node " + name + ": " + view.RequestWords(a)})
	for i, p := range states {
		if i == mostPods {
			picture = append(picture, fmt.Sprintf("  and %d more", len(states)-i))
			break
		}
		picture = append(picture, "  "+p.Of+"  "+w.view.Dim(p.Text))
	}
	for _, p := range states {
		said = append(said, print.Update{Of: name + "/" + p.Of, Text: fmt.Sprintf("pod %s on %s: %s", p.Of, name, p.Text)})
	}
	return picture, said
}

// mostPods is how many pods of a node the screen shows (a guess: some nodes at
// once must fit).
const mostPods = 10

// podStates are the pods that are still to leave, each with how it stands, and those
// that were when last looked at and are no more: have left, or stay.
func (w *nodeWait) podStates(ctx context.Context, name string, a *nodes.Asked) (states, settled []print.Update) {
	if a == nil || a.Status == nil || a.Status.Phase != nodes.Draining && a.Status.Phase != nodes.WaitingForPods || a.Request.Drain == nil {
		return nil, w.settledPods(ctx, name)
	}
	p := w.openPods(ctx, name)
	if p == nil {
		return nil, nil
	}
	var pods []drain.Pod
	for _, pod := range p.Cache.Pods(name) {
		pods = append(pods, annotations.DrainPod(pod))
	}
	// That a DaemonSet is still there is believed: it decides no eviction here.
	judge := drain.NewJudge(*a.Request.Drain, func(string, string) (bool, error) { return true, nil })
	now := map[string]bool{}
	for _, j := range judge.All(pods) {
		if j.Do != drain.Skip {
			now[j.Pod.String()] = true
			states = append(states, print.Update{Of: j.Pod.String(), Text: podWords(j)})
		}
	}
	maps.DeleteFunc(p.before, func(pod string, _ bool) bool { return now[pod] })
	settled = settledWords(p.before, pods)
	p.before = now
	return states, settled
}

// settledWords say of pods that were to leave what became of them, by those that
// are on the node.
func settledWords(before map[string]bool, on []drain.Pod) []print.Update {
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

// openPods begins to look at the pods of a node. Who may not do that sees the
// agent's count alone, and is told so once.
func (w *nodeWait) openPods(ctx context.Context, name string) *podsOf {
	if p, open := w.pods[name]; open {
		return p
	}
	inner, stop := context.WithCancel(ctx)
	live, err := watch.PodsOn(inner, w.k, w.changed, name)
	if err != nil {
		stop()
		w.pods[name] = nil
		if ctx.Err() == nil {
			w.warnOnce("pods", fmt.Sprintf("warning: %v; only their number is shown", err))
		}
		return nil
	}
	w.pods[name] = &podsOf{Cache: live, stop: stop}
	return w.pods[name]
}

// settledPods ends the look at the pods of a node, and says what became of those that
// were still to leave. They are read once more: the live picture may be older than
// the end of the drain, and what a drain leaves is not gone.
func (w *nodeWait) settledPods(ctx context.Context, name string) []print.Update {
	p := w.closePods(name)
	if p == nil || len(p.before) == 0 {
		return nil
	}
	pods, err := podsOn(ctx, w.k, name)
	if err != nil {
		w.warnOnce("pods", fmt.Sprintf("warning: %v; what became of its pods is not known", err))
		return nil
	}
	return settledWords(p.before, pods)
}

// closePods ends the look at the pods of a node.
func (w *nodeWait) closePods(name string) *podsOf {
	p := w.pods[name]
	if p != nil {
		p.stop()
	}
	delete(w.pods, name)
	return p
}

// warn tells what will not end by waiting.
func (w *nodeWait) warn() {
	var ready, pending []string
	for _, name := range w.names {
		n := w.nodes.Node(name)
		if n == nil || w.expected == "" {
			continue
		}
		a := view.AskedBy(annotations.Node(n), w.requestor)
		switch {
		case a == nil || a.Status == nil:
			continue
		case a.Status.Phase == nodes.Ready:
			ready = append(ready, name)
		case a.Status.Phase == nodes.Pending && a.Status.Ended == nil:
			pending = append(pending, name)
		}
		if text, blocked := view.BlockedForGood(*a.Status); blocked {
			w.warnOnce(name+text, fmt.Sprintf("node/%s is blocked until somebody changes something: %s", name, text))
		}
	}
	if len(ready) > 0 && len(ready)+len(pending) == len(w.names) && len(pending) > 0 {
		w.warnOnce("places", fmt.Sprintf("%s is ready and keeps its place until it is released; the others may wait for that: %s", strings.Join(ready, ", "), releases(w.Suggest(), strings.Join(ready, " "), w.requestor)))
	}
}

// warnOnce says something once, beside what is shown.
func (w *nodeWait) warnOnce(key, text string) {
	if w.warned[key] {
		return
	}
	w.warned[key] = true
	fmt.Fprintln(w.ErrOut, text)
	w.screen.Leave()
}

// drained says whether a node is its requestor's, or never will be.
func (w *nodeWait) drained(name string, n *corev1.Node) (bool, error) {
	if n == nil {
		return true, fmt.Errorf("node %s was deleted", name)
	}
	if have, stands := annotations.Requests(n.Annotations)[w.requestor]; stands && sameRequest(w.requestor, have, w.expected) {
		w.seen[name] = true
	}
	if !w.seen[name] { // what is shown is older than what was written
		return false, nil
	}
	facts := annotations.Node(n)
	a := view.AskedBy(facts, w.requestor)
	switch {
	case a == nil || a.Gone:
		return true, fmt.Errorf("node %s: somebody took the request of %s back", name, w.requestor)
	case a.Fault != "":
		return true, fmt.Errorf("node %s: the request of %s cannot be read: %s", name, w.requestor, strings.ReplaceAll(a.Fault, "\n", "; "))
	case view.GivenUp(*a):
		return true, fmt.Errorf("node %s: %s", name, a.Status.Reason)
	case a.Status == nil:
		return false, nil
	case a.Status.Phase == nodes.RequestorFailed && a.Request.Failed:
		return true, fmt.Errorf("node %s: %s", name, a.Status.Reason)
	}
	return w.stays(facts, *a), nil
}

// stays says whether a node is its requestor's, and the agent would leave it so:
// a phase that stands there may be that of what was asked before.
func (w *nodeWait) stays(facts nodes.Node, a nodes.Asked) bool {
	if a.Status.Phase != nodes.Ready {
		return false
	}
	next, moves := nodes.Advance(facts, nil, nodes.Limits{}, w.Now()).Statuses[a.Request.Requestor]
	return !moves || next.Phase == nodes.Ready
}
