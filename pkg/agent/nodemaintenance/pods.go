package nodemaintenance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// previewTTL is how long what was found on a node before its cordon is believed: as
// long as something there stands in the way for good, nobody need hear of every pod
// (a guess: who mends it waits no longer than this).
const previewTTL = time.Minute

// mostUnread is how long counts what was found, while no look says more (a guess: an outage is over by
// then). After that the drain itself says what stands in its way.
const mostUnread = 10 * time.Minute

// nodePods knows what is asked about pods of nodes: of those alone that are to be
// drained or waited for, and of no others.
type nodePods struct {
	kube      kube.Interface // the agent's own
	telemetry notify.Telemetry
	scope     Scope
	now       func() time.Time
	enqueue   func()
	wake      func(claimant string) // the steps of a plan
	looks     *semaphore.Weighted   // bounds looks under way
	drainer   executors.Drainer     // nil: there is none

	mu       sync.Mutex
	watches  map[string]*podWatch
	drains   map[string]nodes.Session
	stalled  map[string]time.Time // nodes whose drain is blocked for good, and since when
	previews map[previewKey]*preview
	budgets  context.CancelFunc // of the watch on budgets; nil: there is none
	watched  time.Time          // since when that watch shows every change; zero: not yet
}

// previewKey names one value of one request for a node.
type previewKey struct{ node, requestor, identity string }

// preview is what a look at the node's pods found for it, or the last one before it that did not fail.
type preview struct {
	at        time.Time // when the look ended
	block     nodes.Block
	budgets   []string         // that are in the way for good, namespace/name
	found     time.Time        // when that was found, or the drain said it
	changed   bool             // one of them has moved since then
	stale     bool             // one of them has moved since the look, or may have
	unsettled bool             // a budget was changed, and is not computed yet
	looking   bool             // again, or for the first time
	moved     []string         // budgets that moved during the look
	failure   string           // why the look failed
	failed    workflow.Refusal // looks one after another that failed; zero: the last did not
	final     bool             // they failed for so long that nobody waits for another
}

// unknown says that nobody knows yet what is in the way.
func (f *preview) unknown() bool { return f.fails() && !f.block.Permanent }

// fails says that the last look failed, and that another follows soon.
func (f *preview) fails() bool { return f.failed.Times > 0 && !f.final }

type podWatch struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
}

func newNodePods(c Config, enqueue func(), wake func(claimant string)) *nodePods {
	return &nodePods{kube: c.Clients.Kube, telemetry: c.Telemetry, scope: c.Scope, now: c.Now, enqueue: enqueue, wake: wake, looks: semaphore.NewWeighted(nodeWriters), watches: map[string]*podWatch{}, drains: map[string]nodes.Session{}, stalled: map[string]time.Time{}, previews: map[previewKey]*preview{}}
}

// session is how the drain of a node stood when it was last asked.
func (p *nodePods) session(node string) nodes.Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.drains[node]
}

// sessions are the nodes that are being drained for requestors.
func (p *nodePods) sessions() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.drains))
}

// noteSession takes in how a drain stands; where that is news, its node is looked
// at again.
func (p *nodePods) noteSession(node string, order *nodes.Drain, status executors.DrainStatus) {
	now := status.Session(order.Key)
	p.mu.Lock()
	news := p.drains[node] != now
	ends := news && status.Done && p.drains[node].State != nodes.SessionDone
	p.drains[node] = now
	if _, stalled := p.stalled[node]; !now.Block.Permanent {
		delete(p.stalled, node)
	} else if !stalled {
		p.stalled[node] = p.now()
	}
	p.mu.Unlock()
	if ends {
		p.telemetry.Metrics.DrainEnded(order.Since, p.now(), status.Outcome)
	}
	if news {
		p.enqueue()
	}
}

func (p *nodePods) dropSession(node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.drains, node)
	delete(p.stalled, node)
}

// watch keeps a watch on the pods of a node while somebody counts them.
func (p *nodePods) watch(ctx context.Context, node string, wanted []nodes.Watch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := p.watches[node]
	switch {
	case len(wanted) > 0 && open == nil:
		p.watches[node] = p.open(ctx, node)
	case len(wanted) == 0 && open != nil:
		open.stop()
		delete(p.watches, node)
	}
}

// open watches the pods of one node. It is no member of an informer.Set: that bounds what
// the accounts of a namespace watch, and this is the agent's own watch, one for each node
// that somebody waits for, with nobody to share it.
func (p *nodePods) open(ctx context.Context, node string) *podWatch {
	ctx, stop := context.WithCancel(ctx)
	from := informer.ForMany(&corev1.Pod{}, p.kube.CoreV1().Pods(metav1.NamespaceAll), podsOn(node), nil)
	from.Page = kube.FewObjects
	w := &podWatch{stop: stop}
	w.informer, _ = informer.New(from, slimPod, cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { p.enqueue() }, UpdateFunc: func(any, any) { p.enqueue() }, DeleteFunc: func(any) { p.enqueue() },
	})
	go informer.Run(ctx, w.informer)
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), w.informer.HasSynced) {
			p.enqueue()
		}
	}()
	return w
}

const tooLarge = "\x00" // stands in the place of labels that are not kept: no label has such a key

func podsOn(node string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()}
}

// slimPod keeps of a pod what is counted. One that is too large is counted, whatever its labels are.
func slimPod(o any) (any, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	slim := &corev1.Pod{Status: corev1.PodStatus{Phase: pod.Status.Phase}}
	kept := annotations.DrainPod(pod)
	slim.Name, slim.Namespace, slim.UID, slim.ResourceVersion, slim.Labels = pod.Name, pod.Namespace, pod.UID, pod.ResourceVersion, kept.Labels
	if kept.TooLarge {
		slim.Labels = map[string]string{tooLarge: ""}
	}
	if kept.Controller != nil {
		slim.OwnerReferences = []metav1.OwnerReference{{Kind: kept.Controller.Kind, Controller: new(true)}}
	}
	return slim, nil
}

// counted are the unfinished pods that a request waits for. What is not known yet
// is not zero.
func (p *nodePods) counted(node string, r nodes.Request) nodes.Pods {
	p.mu.Lock()
	w := p.watches[node]
	p.mu.Unlock()
	if w == nil || !w.informer.HasSynced() || r.WaitFor == nil {
		return nodes.Pods{}
	}
	picked, err := selector.Parse(r.WaitFor.PodSelector)
	if err != nil { // the request was read
		return nodes.Pods{}
	}
	var names []string
	for _, o := range w.informer.GetStore().List() {
		pod := o.(*corev1.Pod)
		owner := metav1.GetControllerOf(pod)
		finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if _, unread := pod.Labels[tooLarge]; !finished && (owner == nil || owner.Kind != "DaemonSet") && (unread || picked.Matches(pod.Labels)) {
			names = append(names, pod.Namespace+"/"+pod.Name)
		}
	}
	slices.Sort(names)
	return nodes.Pods{Known: true, Left: len(names), Some: names[:min(len(names), 3)]}
}

// preview is what a look at the pods found before anything was cordoned, and why it failed; as long
// as there was none, what the request's status remembers of the last one.
func (p *nodePods) preview(node string, a nodes.Asked) (found nodes.Block, failure string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.previews[previewOf(node, a.Request)]
	if seen == nil || seen.at.IsZero() {
		return a.Remembered(), ""
	}
	return seen.block, seen.failure // the last known one, while a new look is under way
}

func previewOf(node string, r nodes.Request) previewKey {
	return previewKey{node, r.Requestor, r.Identity}
}

// previewed says whether the pods of a node have been looked at for a request whose
// turn has come; if not, the look begins, and the nodes are looked at when it is done. What the ranking
// makes of what was found stands in Asked.Preview.
func (p *nodePods) previewed(ctx context.Context, n nodes.Node, requestor string, now time.Time) bool {
	i := slices.IndexFunc(n.Asked, func(a nodes.Asked) bool { return a.Request.Requestor == requestor })
	if i < 0 || n.Asked[i].Fault != "" || n.Asked[i].Request.Drain == nil {
		return true
	}
	d := p.requestDrain(n.Name, n.Asked[i])
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.previews[d.previewKey]
	if seen != nil && (seen.looking || seen.fresh(now)) {
		return !seen.looking && !seen.unknown()
	}
	p.begin(ctx, d)
	return false
}

// begin has the pods of a node looked at, for the first time or again; its caller
// holds the lock.
func (p *nodePods) begin(ctx context.Context, d nodeDrain) *preview {
	seen := cmp.Or(p.previews[d.previewKey], &preview{})
	p.previews[d.previewKey], seen.looking, seen.moved = seen, true, nil
	go p.runPreview(ctx, d, d.since())
	return seen
}

// refresh looks again at what stood in a request's way for good, once that is old.
func (p *nodePods) refresh(ctx context.Context, node string, a nodes.Asked, now time.Time) (next time.Time) {
	k := previewOf(node, a.Request)
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.previews[k]
	switch {
	case seen == nil && (!a.Remembered().Permanent || a.Fault != "" || a.Request.Drain == nil):
		return time.Time{}
	case seen == nil: // it is remembered from an agent before
	case seen.looking || !seen.block.Permanent:
		return time.Time{}
	case seen.fresh(now):
		return seen.due()
	}
	looks := p.begin(ctx, p.requestDrain(node, a))
	if seen == nil {
		looks.block, looks.found = a.Remembered(), now
	}
	return time.Time{}
}

func (p *nodePods) runPreview(ctx context.Context, d nodeDrain, since time.Time) {
	defer p.telemetry.RecoverPanic("over the pods of a node")
	if p.looks.Acquire(ctx, 1) != nil {
		return
	}
	defer p.looks.Release(1)
	ctx, cancel := context.WithTimeout(ctx, nodeWrite)
	defer cancel()
	began := p.now()
	found, err := p.preflight(ctx, d, since)
	p.mu.Lock()
	found.at, found.found = p.now(), p.now()
	if err != nil { // no verdict is no obstacle for long: the drain itself says what stands in its way
		late := time.Duration(0)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			late = nodeWrite
		}
		found.failure = drain.LookFailed(err, late, !since.IsZero())
		found.keepsOf(p.previews[d.previewKey], d, began)
		p.telemetry.Log.Warn("pods could not be looked at for a drain", "node", d.node, "error", err.Error(), "drains", !found.unknown() && !found.block.Permanent)
	}
	p.storePreview(d.previewKey, &found, began)
	p.mu.Unlock()
	p.wakeAll(map[string]bool{d.requestor: true})
}

// preflight is what stands in the way of a drain for good: of one that has not begun, before
// anything is cordoned; of one that began at an instant, whether it would go on.
func (p *nodePods) preflight(ctx context.Context, d nodeDrain, since time.Time) (preview, error) {
	client, err := d.kube()
	if err != nil {
		return preview{}, err
	}
	pods, err := kube.Reduced(ctx, client.CoreV1().Pods(metav1.NamespaceAll), podsOn(d.node), annotations.DrainPod)
	if err != nil {
		return preview{}, fmt.Errorf("list the pods of node %s: %w", d.node, err)
	}
	var budgets []drain.Budget
	for namespace := range drain.NamespacesOf(pods) {
		some, err := kube.Reduced(ctx, p.kube.PolicyV1().PodDisruptionBudgets(namespace), metav1.ListOptions{}, annotations.DrainBudget)
		if err != nil {
			return preview{}, fmt.Errorf("list the budgets of namespace %s: %w", namespace, err)
		}
		budgets = append(budgets, some...)
	}
	judge := drain.NewJudge(d.options, kube.DaemonSets(ctx, client)).WithAgent(p.ownReplicas(ctx, d.node, pods)).Begun(since, p.now())
	forecast := judge.WithFailed(p.unreplaced(d, since)).Forecast(pods, budgets, p.now())
	var out preview
	var texts []string
	for _, b := range drain.Permanent(forecast.Blocks, d.options) {
		texts = append(texts, b.String())
		out.budgets = append(out.budgets, b.Budgets...)
		out.block.Refused = out.block.Refused || b.Refused
	}
	out.unsettled = slices.ContainsFunc(budgets, func(b drain.Budget) bool { return !b.Current })
	out.block.Permanent, out.block.Text = len(texts) > 0, strings.Join(texts, "; ")
	return out, nil
}

// unreplaced are the pods that a drain has tried to replace, and could not.
func (p *nodePods) unreplaced(d nodeDrain, since time.Time) map[string]drain.Replacement {
	by := d.requestor
	if !nodes.IsPlan(by) {
		by = requestsClaimant
	}
	if p.drainer == nil || since.IsZero() {
		return nil
	}
	return p.drainer.Unreplaced(d.node, by, since)
}

// ownReplicas is what is known of the agent's replicas, where the node has one.
func (p *nodePods) ownReplicas(ctx context.Context, node string, pods []drain.Pod) drain.Agent {
	namespace, own := p.scope.Namespace, p.scope.Pod
	is := func(pod drain.Pod) bool { return annotations.AgentPod(pod, namespace, own) }
	if !slices.ContainsFunc(pods, is) {
		return drain.Agent{}
	}
	others := func(pod drain.Pod) bool { return !is(pod) }
	replicas, err := kube.Reduced(ctx, p.kube.CoreV1().Pods(namespace), metav1.ListOptions{}, annotations.DrainPod)
	if err != nil {
		known := drain.AgentOn(node, own, slices.DeleteFunc(slices.Clone(pods), others), p.now())
		known.Unknown = err.Error()
		return known
	}
	return drain.AgentOn(node, own, slices.DeleteFunc(replicas, others), p.now())
}

// keepOnly forgets what is known of pods of nodes that nobody asks for any more.
func (p *nodePods) keepOnly(ctx context.Context, asked func(node string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, w := range p.watches {
		if !asked(name) {
			w.stop()
			delete(p.watches, name)
		}
	}
	for k, seen := range p.previews {
		if !seen.looking && (!asked(k.node) && !nodes.IsPlan(k.requestor) || p.now().Sub(seen.at) > 3*previewTTL) {
			delete(p.previews, k)
		}
	}
	p.watchBudgets(ctx)
}

// stop ends the watches.
func (p *nodePods) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.budgets != nil {
		p.budgets()
		p.budgets = nil
	}
	for name, w := range p.watches {
		w.stop()
		delete(p.watches, name)
	}
}
