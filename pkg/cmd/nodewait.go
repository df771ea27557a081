package cmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// nodeWait shows a requestor's nodes live, until each of them has settled.
type nodeWait struct {
	*cli
	k         *cluster
	requestor string
	names     []string
	uids      map[string]types.UID
	expected  string // the value that was written; empty: none was
	left      string // what is said when the wait ends too early

	// settled says whether a node is at its end, and with which error.
	settled func(name string, n *corev1.Node) (bool, error)

	patience time.Duration // within which the agent says something of what is asked
	view     view
	screen   screen
	bell     chan struct{}
	nodes    *watched
	pods     map[string]*podsOf
	seen     map[string]bool // nodes that showed what was written
	heard    bool            // the agent said something of some node
	warned   map[string]bool
}

// podsOf is the live picture of one node's pods.
type podsOf struct {
	*watched
	stop   context.CancelFunc
	before map[string]bool // that were to leave when last looked at
}

func newNodeWait(c *cli, k *cluster, requestor string, targets []*corev1.Node) *nodeWait {
	w := &nodeWait{
		cli: c, k: k, requestor: requestor, names: namesOf(targets), uids: map[string]types.UID{}, screen: screen{env: c.Env},
		bell: make(chan struct{}, 1), pods: map[string]*podsOf{}, seen: map[string]bool{}, warned: map[string]bool{}, patience: handleWithin,
	}
	for _, n := range targets {
		w.uids[n.Name] = n.UID
	}
	return w
}

// run shows the nodes until all have settled.
func (w *nodeWait) run(ctx context.Context) error {
	var err error
	if w.nodes, err = w.k.watchNodes(ctx, w.bell, w.names...); err != nil {
		return w.ended(ctx, err)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	ages := tick.C
	if !w.OutTerminal {
		ages = nil
	}
	patience := time.NewTimer(w.patience)
	defer patience.Stop()
	for {
		over, err := w.look(ctx)
		if over {
			return err
		}
		select {
		case <-ctx.Done():
			return w.ended(ctx, nil)
		case <-w.bell:
			pauseFor(ctx, gatherFor)
		case <-ages: // the ages run on
		case <-patience.C:
			if w.expected != "" && !w.heard {
				return exit(CodeNoAgent, "the agent says nothing of %s: it is too old for that, or watches one namespace alone; %s", nodeWords(w.names), w.left)
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
		return waited(ctx, w.left)
	}
	return err
}

// look shows how the nodes stand, and says whether all have settled.
func (w *nodeWait) look(ctx context.Context) (over bool, err error) {
	w.view = w.cli.view(w.Zone)
	var picture []string
	var lines []line
	var faults []error
	over = true
	for _, name := range w.names {
		n := w.nodes.node(name)
		if n != nil && n.UID != w.uids[name] {
			n = nil // another one of the name
		}
		end, err := w.settled(name, n)
		over = over && end
		if err != nil {
			faults = append(faults, err)
		}
		one, said := w.show(ctx, name, n)
		picture, lines = append(picture, one...), append(lines, said...)
	}
	w.screen.show(picture, lines)
	w.warn()
	return over, errors.Join(faults...)
}

// show is one node with the pods that are to leave it.
func (w *nodeWait) show(ctx context.Context, name string, n *corev1.Node) ([]string, []line) {
	if n == nil {
		w.closePods(name)
		return []string{w.view.bold(name) + "  " + w.view.bad("is gone")}, []line{{of: name, text: "node " + name + ": is gone"}}
	}
	facts := annotations.Node(n)
	a := askedBy(facts, w.requestor)
	if a != nil && a.Status != nil {
		w.heard = true
	}
	picture := []string{w.view.bold(name) + "  " + w.view.asked(a)}
	states, settled := w.podStates(ctx, name, a)
	var said []line
	for _, p := range settled {
		said = append(said, line{of: name + "/" + p.of, text: fmt.Sprintf("pod %s on %s: %s", p.of, name, p.text)})
	}
	said = append(said, line{of: name, text: "node " + name + ": " + askedWords(a)})
	for i, p := range states {
		if i == mostPods {
			picture = append(picture, fmt.Sprintf("  and %d more", len(states)-i))
			break
		}
		picture = append(picture, "  "+p.of+"  "+w.view.dim(p.text))
	}
	for _, p := range states {
		said = append(said, line{of: name + "/" + p.of, text: fmt.Sprintf("pod %s on %s: %s", p.of, name, p.text)})
	}
	return picture, said
}

// mostPods is how many pods of a node the screen shows (a guess: some nodes at
// once must fit).
const mostPods = 10

// podStates are the pods that are still to leave, each with how it stands, and those
// that were when last looked at and are no more: have left, or stay.
func (w *nodeWait) podStates(ctx context.Context, name string, a *nodes.Asked) (states, settled []line) {
	if a == nil || a.Status == nil || a.Status.Phase != nodes.Draining && a.Status.Phase != nodes.WaitingForPods || a.Request.Drain == nil {
		return nil, w.settledPods(ctx, name)
	}
	p := w.openPods(ctx, name)
	if p == nil {
		return nil, nil
	}
	var pods []drain.Pod
	for _, pod := range p.watched.pods(name) {
		pods = append(pods, annotations.DrainPod(pod))
	}
	// That a DaemonSet is still there is believed: it decides no eviction here.
	judge := drain.NewJudge(*a.Request.Drain, func(string, string) (bool, error) { return true, nil })
	now := map[string]bool{}
	for _, j := range judge.All(pods) {
		if j.Do != drain.Skip {
			now[j.Pod.String()] = true
			states = append(states, line{of: j.Pod.String(), text: podWords(j)})
		}
	}
	maps.DeleteFunc(p.before, func(pod string, _ bool) bool { return now[pod] })
	settled = settledWords(p.before, pods)
	p.before = now
	return states, settled
}

// settledWords say of pods that were to leave what became of them, by those that
// are on the node.
func settledWords(before map[string]bool, on []drain.Pod) []line {
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
	var said []line
	for _, pod := range slices.Sorted(maps.Keys(words)) {
		said = append(said, line{of: pod, text: words[pod]})
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
	live, err := w.k.watchPods(inner, w.bell, name)
	if err != nil {
		stop()
		w.pods[name] = nil
		if ctx.Err() == nil {
			w.tell("pods", fmt.Sprintf("warning: %v; only their number is shown", err))
		}
		return nil
	}
	w.pods[name] = &podsOf{watched: live, stop: stop}
	return w.pods[name]
}

// settledPods ends the look at the pods of a node, and says what became of those that
// were still to leave. They are read once more: the live picture may be older than
// the end of the drain, and what a drain leaves is not gone.
func (w *nodeWait) settledPods(ctx context.Context, name string) []line {
	p := w.closePods(name)
	if p == nil || len(p.before) == 0 {
		return nil
	}
	pods, err := w.k.podsOn(ctx, name)
	if err != nil {
		w.tell("pods", fmt.Sprintf("warning: %v; what became of its pods is not known", err))
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
		n := w.nodes.node(name)
		if n == nil || w.expected == "" {
			continue
		}
		a := askedBy(annotations.Node(n), w.requestor)
		switch {
		case a == nil || a.Status == nil:
			continue
		case a.Status.Phase == nodes.Ready:
			ready = append(ready, name)
		case a.Status.Phase == nodes.Pending && a.Status.Ended == nil:
			pending = append(pending, name)
		}
		if text, blocked := blockedForGood(*a.Status); blocked {
			w.tell(name+text, fmt.Sprintf("node/%s is blocked until somebody changes something: %s", name, text))
		}
	}
	if len(ready) > 0 && len(ready)+len(pending) == len(w.names) && len(pending) > 0 {
		w.tell("places", fmt.Sprintf("%s is ready and keeps its place until it is released; the others may wait for that: '%s release %s%s'", strings.Join(ready, ", "), w.Name, strings.Join(ready, " "), requestorFlag(w.requestor)))
	}
}

// tell says something once, beside what is shown.
func (w *nodeWait) tell(key, text string) {
	if w.warned[key] {
		return
	}
	w.warned[key] = true
	fmt.Fprintln(w.ErrOut, text)
	w.screen.leave()
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
	a := askedBy(facts, w.requestor)
	switch {
	case a == nil || a.Gone:
		return true, fmt.Errorf("node %s: somebody took the request of %s back", name, w.requestor)
	case a.Fault != "":
		return true, fmt.Errorf("node %s: the request of %s cannot be read: %s", name, w.requestor, strings.ReplaceAll(a.Fault, "\n", "; "))
	case ended(*a):
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

// blockedForGood is what no waiting ends, as the agent says it of a request.
func blockedForGood(s nodes.Status) (string, bool) {
	if s.Blocked == nil || !s.Blocked.Permanent {
		return "", false
	}
	return s.Blocked.Text, true
}

// askedWords are how a request stands, as one plain line.
func askedWords(a *nodes.Asked) string {
	switch {
	case a == nil:
		return "not asked for"
	case a.Gone && a.Status == nil:
		return "being released"
	case a.Gone:
		return "being released, was " + string(a.Status.Phase)
	case a.Status == nil:
		return "requested; the agent has not looked at it yet"
	}
	return string(a.Status.Phase) + colon(a.Status.Reason)
}

// asked is how a request stands, with its age.
func (v view) asked(a *nodes.Asked) string {
	if a == nil || a.Gone || a.Status == nil {
		return v.warn(askedWords(a))
	}
	return fmt.Sprintf("%s for %s%s", v.phase(string(a.Status.Phase)), roughly(v.now.Sub(a.Status.Since)), colon(a.Status.Reason))
}

// leftWords are the pods that are still to leave; empty where nobody counts.
func leftWords(s *nodes.Status) string {
	switch {
	case s == nil || s.Progress == nil:
		return ""
	case s.Progress.Total == 0:
		return fmt.Sprint(s.Progress.Left)
	}
	return fmt.Sprintf("%d/%d", s.Progress.Left, s.Progress.Total)
}

// claimantWords are a claimant as people say it.
func claimantWords(claimant string) string {
	if nodes.IsPlan(claimant) {
		return "plan " + strings.TrimPrefix(claimant, "plan:")
	}
	return claimant
}
