package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/live"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// asked is what a wait is about: nodes that a requestor requests, or releases.
type asked struct {
	requestor string
	names     []string
	uids      map[string]types.UID
	expected  string // the value that was written; empty: none
	left      string // the message when the wait ends early
}

// nodeWait shows a requestor's nodes live, until each of them has settled.
type nodeWait struct {
	env   factory.Env
	c     *factory.Factory
	k     *factory.Cluster
	agent *factory.AgentLiveness
	asked asked

	// settled says whether a node has reached its end, and with which error.
	settled func(name string, n *corev1.Node) (bool, error)

	reportTimeout time.Duration // within which the agent should react
	view          print.Printer
	screen        watch.Screen
	changed       chan struct{}
	nodes         *watch.Cache
	pods          *leavingPods
	seen          map[string]bool // nodes that showed the value that was written
	reported      bool            // the agent has reacted on some node
	warned        map[string]bool
}

func newNodeWait(c *factory.Factory, k *factory.Cluster, requestor string, targets []*corev1.Node) *nodeWait {
	w := &nodeWait{
		env: c.Env, c: c, k: k, agent: c.WatchAgent(k), asked: asked{requestor: requestor, names: namesOf(targets), uids: map[string]types.UID{}},
		screen: watch.Screen{Env: c.Env}, changed: make(chan struct{}, 1), seen: map[string]bool{}, warned: map[string]bool{}, reportTimeout: factory.AgentTimeout,
	}
	for _, n := range targets {
		w.asked.uids[n.Name] = n.UID
	}
	w.pods = &leavingPods{changed: w.changed, byNode: map[string]*podsOf{}, warn: w.warnOnce}
	return w
}

// run shows the nodes until all have settled, on the whole screen where there is one.
func (w *nodeWait) run(ctx context.Context) error {
	return live.Run(ctx, w.c, w.k, live.View{Title: "nodes of " + w.asked.requestor}, func(ctx context.Context, k *factory.Cluster, show func([]view.Line)) error {
		w.k, w.screen.Live = k, show
		return w.follow(ctx)
	})
}

func (w *nodeWait) follow(ctx context.Context) error {
	var err error
	if w.nodes, err = watch.Nodes(ctx, w.k, w.changed, w.asked.names...); err != nil {
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
		case <-tick.C: // the ages change
			if err := w.agent.Check(ctx, w.asked.left); err != nil {
				return err
			}
		case <-silent.C:
			switch {
			case w.asked.expected == "" || w.reported:
			case w.agent.IsLate(ctx):
				silent.Reset(factory.SilentEvery)
			default:
				return exit.Errorf(exit.CodeNoAgent, "the agent writes nothing about %s: it is too old, or watches only one namespace; %s; %s", view.NodeWords(w.asked.names), watch.UpgradeAgent(ctx, w.c, w.k), w.asked.left)
			}
		}
	}
}

// gatherFor is how long a picture waits for further changes (a guess: nobody reads faster).
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
		return watch.EndedEarly(ctx, w.asked.left)
	}
	return err
}

// refresh shows the nodes, and says whether all have settled.
func (w *nodeWait) refresh(ctx context.Context) (over bool, err error) {
	w.view = print.New(w.env, w.env.Zone)
	var picture []view.Line
	var lines []print.Update
	var faults []error
	over = true
	for _, name := range w.asked.names {
		n := w.nodes.Node(name)
		if n != nil && n.UID != w.asked.uids[name] {
			n = nil // another node of the name
		}
		end, err := w.settled(name, n)
		over = over && end
		if err != nil {
			faults = append(faults, err)
		}
		one, said := w.show(ctx, name, n)
		picture, lines = append(picture, view.LinesOf(view.NodeResource(name, n), one...)...), append(lines, said...)
	}
	w.screen.ShowOf(picture, lines)
	w.warn()
	return over, errors.Join(faults...)
}

// show is one node with the pods that have to leave it.
func (w *nodeWait) show(ctx context.Context, name string, n *corev1.Node) ([]string, []print.Update) {
	if n == nil {
		w.pods.close(name)
		return []string{w.view.Bold(name) + "  " + w.view.Bad("is gone")}, []print.Update{{Of: name, Text: "node " + name + ": is gone"}}
	}
	facts := annotations.Node(n)
	a := view.AskedBy(facts, w.asked.requestor)
	if a != nil && a.Status != nil {
		w.reported = true
	}
	picture := []string{w.view.Bold(name) + "  " + view.FlagWords(w.view.Asked(a))}
	states, settled := w.pods.states(ctx, w.k, name, a)
	var said []print.Update
	for _, p := range settled {
		said = append(said, print.Update{Of: name + "/" + p.Of, Text: fmt.Sprintf("pod %s on %s: %s", p.Of, name, p.Text)})
	}
	said = append(said, print.Update{Of: name, Text: "node " + name + ": " + w.view.AgentText(view.FlagWords(view.RequestWords(a)))})
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

// mostPods is how many pods of a node the screen shows (a guess: several nodes must fit).
const mostPods = 10

// warn warns of what waiting will not end.
func (w *nodeWait) warn() {
	var ready, pending []string
	for _, name := range w.asked.names {
		n := w.nodes.Node(name)
		if n == nil || w.asked.expected == "" {
			continue
		}
		a := view.AskedBy(annotations.Node(n), w.asked.requestor)
		switch {
		case a == nil || a.Status == nil:
			continue
		case a.Status.Phase == nodes.Ready:
			ready = append(ready, name)
		case a.Status.Phase == nodes.Pending && a.Status.Ended == nil:
			pending = append(pending, name)
		}
		switch text, blocked := view.BlockedForGood(*a.Status); {
		case w.screen.Live != nil: // it shows that, and no longer once it has passed
		case blocked && view.PassesBlock(*a):
			w.warnOnce(name+text, fmt.Sprintf("node/%s: its drain is blocked: %s; it %s", name, view.FlagWords(text), w.view.AgentText(a.Request.Drain.Ending(a.Status.Since, w.env.Now()))))
		case blocked && (w.env.OutTerminal || !strings.Contains(a.Status.Reason, text)): // else its line says so in full
			w.warnOnce(name+text, fmt.Sprintf("node/%s is blocked until somebody changes something: %s", name, view.FlagWords(text)))
		}
	}
	if len(ready) > 0 && len(ready)+len(pending) == len(w.asked.names) && len(pending) > 0 {
		w.warnOnce("places", fmt.Sprintf("%s is ready and keeps its place until it is released; the others may wait for that: %s", strings.Join(ready, ", "), releases(w.env.Suggest(), strings.Join(ready, " "), w.asked.requestor)))
	}
}

// warnOnce prints a warning once.
func (w *nodeWait) warnOnce(key, text string) {
	if w.warned[key] {
		return
	}
	w.warned[key] = true
	fmt.Fprintln(w.env.ErrOut, text)
	w.screen.Leave()
}

// drained says whether the requestor has the node, or will never get it.
func (w *nodeWait) drained(name string, n *corev1.Node) (bool, error) {
	if n == nil {
		return true, fmt.Errorf("node %s was deleted", name)
	}
	if have, stands := annotations.Requests(n.Annotations)[w.asked.requestor]; stands && sameRequest(w.asked.requestor, have, w.asked.expected) {
		w.seen[name] = true
	}
	if !w.seen[name] { // the node is older than the write
		return false, nil
	}
	facts := annotations.Node(n)
	a := view.AskedBy(facts, w.asked.requestor)
	switch {
	case a == nil || a.Gone:
		return true, fmt.Errorf("node %s: somebody took the request of %s back", name, w.asked.requestor)
	case a.Fault != "":
		return true, fmt.Errorf("node %s: the request of %s cannot be read: %s", name, w.asked.requestor, strings.ReplaceAll(a.Fault, "\n", "; "))
	case view.GivenUp(*a):
		return true, fmt.Errorf("node %s: %s", name, view.FlagWords(a.Status.Reason))
	case a.Status == nil:
		return false, nil
	case a.Status.Phase == nodes.RequestorFailed && a.Request.Failed:
		return true, fmt.Errorf("node %s: %s", name, view.FlagWords(a.Status.Reason))
	}
	_, has := view.Has(facts, *a, w.env.Now())
	return has, nil
}
