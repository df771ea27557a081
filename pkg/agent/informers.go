package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/nodemaintenance"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/runs"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

// informers sets up what the agent watches as itself: labelled ConfigMaps and
// nodes and the metadata of namespaces, nothing else.
func (a *Agent) informers() {
	const documents = annotations.LabelKind + " in (" + annotations.KindPlan + "," + annotations.KindHibernatePlan + "," + annotations.KindPolicy + "," + annotations.KindCalendar + "," + annotations.KindStepTemplate + "," + annotations.KindConnector + "," + annotations.KindGate + "," + annotations.KindAgentConfig + ")"
	const live = annotations.LabelKind + "=" + annotations.KindRun + "," + annotations.LabelPhase + " in (Pending,Running)"
	const ended = annotations.LabelKind + "=" + annotations.KindRun + "," + annotations.LabelPhase + " in (Succeeded,Failed,Aborted,Replaced)"
	a.caches.words = informer.NewInterner()
	a.caches.documents = informer.NewCache(a.configMaps(documents), annotations.LabelKind, a.slimDocument)
	a.caches.live = informer.NewCache(a.configMaps(live), annotations.LabelKind, a.slimRun)
	a.caches.ended = informer.NewCache(a.metadata("configmaps", a.options.WatchNamespace, ended), annotations.LabelKind, store.SlimEndedRun(a.keys))
	a.caches.namespaces = informer.NewCache(a.metadata("namespaces", "", ""), annotations.LabelKind, a.slimNamespace)
	a.caches.nodes = informer.NewCache(a.everyNode(), annotations.LabelKind, nodemaintenance.SlimNode)
	a.caches.key = informer.NewCache(a.keySecret(), annotations.LabelKind, store.Strip)
	a.caches.key.Handle(a.keys.Observe, a.keys.Lost)
	a.caches.restores = informer.NewCache(a.configMaps(annotations.LabelKind+"="+annotations.KindRestore), annotations.LabelKind, a.slimRun)
	a.caches.restores.Handle(a.observeRestore, func(o any) { a.controllers.hibernation.RecordLost(o) })
	a.caches.ledgers = a.metadata("configmaps", a.options.WatchNamespace, annotations.LabelKind+"="+annotations.KindLedger)
	a.caches.documents.Handle(a.observeDocument, a.documentLost)
	a.caches.live.Handle(a.observeRun, a.runLost)
	a.caches.ended.Handle(func(o any) { a.controllers.plans.RunEnded(o) }, func(o any) { a.controllers.plans.EndedRunGone(o) })
	a.caches.namespaces.Handle(a.observeNamespace, func(any) {})
	a.caches.nodes.Handle(func(o any) { a.controllers.nodes.Observe(o) }, func(o any) { a.controllers.nodes.Lost(o) })
}

// keptLabels are what has to be known of an object whose deletion nobody saw.
func keptLabels() [2]string { return [2]string{annotations.LabelKind, annotations.LabelPlan} }

func (a *Agent) configMaps(selector string) *informer.ListWatch {
	l := informer.ForClient(&corev1.ConfigMap{}, a.conn.Kube.CoreV1().ConfigMaps(a.options.WatchNamespace), metav1.ListOptions{LabelSelector: selector})
	l.Labels, l.Words, l.Page = keptLabels(), a.caches.words, configMapPage
	return l
}

// configMapPage is how many ConfigMaps are listed at once: each may have 1 MiB, and a
// page is in memory twice while it is read.
const configMapPage = 16

func (a *Agent) metadata(resource, namespace, selector string) *informer.ListWatch {
	from := a.conn.Meta.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(namespace)
	l := informer.ForClient(&metav1.PartialObjectMetadata{}, from, metav1.ListOptions{LabelSelector: selector})
	if selector != "" {
		l.Labels, l.Words = keptLabels(), a.caches.words
	}
	return l
}

// keySecret is the one Secret that the agent watches.
func (a *Agent) keySecret() *informer.ListWatch {
	name := fields.OneTermEqualSelector("metadata.name", annotations.KeyName)
	return informer.ForClient(&corev1.Secret{}, a.conn.Kube.CoreV1().Secrets(a.options.Namespace), metav1.ListOptions{FieldSelector: name.String()})
}

func (a *Agent) everyNode() *informer.ListWatch {
	return informer.ForClient(&corev1.Node{}, a.conn.Kube.CoreV1().Nodes(), metav1.ListOptions{})
}

// slimDocument drops of a document what is never looked at, and keeps the texts of a plan once:
// most that is written on a plan is our status, beside which the rest is as it was.
func (a *Agent) slimDocument(o any) (any, error) {
	cm, ok := o.(*corev1.ConfigMap)
	switch {
	case !ok:
	case cm.Labels[annotations.LabelKind] == annotations.KindGate:
		if annotations.SizeOf(cm) > document.MaxDocumentBytes {
			a.keys.Empty(cm)
		}
	default:
		annotations.Shorten(cm, a.caches.placeholder.Of)
	}
	if ok {
		dropForeign(cm.Annotations)
		a.boundMetadata(&cm.ObjectMeta)
	}
	if !ok || cm.Labels[annotations.LabelKind] != annotations.KindPlan {
		return store.Strip(o)
	}
	annotations.KeepEdits(&cm.ObjectMeta)
	boundEdits(&cm.ObjectMeta)
	found, there, err := a.caches.documents.Informer.GetStore().GetByKey(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}.String())
	if err != nil || !there {
		cm.Annotations = a.caches.words.Keys(cm.Annotations)
		cm.Labels = a.caches.words.Keys(cm.Labels)
		cm.Data = a.caches.words.Keys(cm.Data)
		cm.Namespace = a.caches.words.Intern(cm.Namespace)
		return cm, nil
	}
	was := found.(*corev1.ConfigMap)
	cm.Namespace = was.Namespace
	cm.Data, cm.Labels, cm.Annotations = shared(was.Data, cm.Data), shared(was.Labels, cm.Labels), a.caches.words.Keys(shared(was.Annotations, cm.Annotations))
	return cm, nil
}

// shared is a map with the texts of an older one where they are the same; the older
// one itself where all are.
func shared(was, is map[string]string) map[string]string {
	if maps.Equal(was, is) {
		return was
	}
	for k, v := range is {
		if old, there := was[k]; there && old == v {
			is[k] = old
		}
	}
	return is
}

func (a *Agent) observeDocument(o any) {
	cm := o.(*corev1.ConfigMap)
	a.memory.documents.Actors.Seen(cm)
	switch cm.Labels[annotations.LabelKind] {
	case annotations.KindAgentConfig:
		was := a.config.Spec()
		a.config.Observe(cm)
		a.controllers.nodes.Enqueue()
		a.enqueueConfigured(was, a.config.Spec())
	case annotations.KindPolicy, annotations.KindCalendar:
		a.controllers.policies.Observe(cm)
		return
	case annotations.KindGate:
		a.rereadEmptied(a.caches.documents, cm)
		a.controllers.policies.GatesSeen(cm)
		return
	case annotations.KindStepTemplate:
		a.controllers.plans.EnqueueTemplated(cm.Namespace)
	case annotations.KindConnector:
		a.controllers.plans.EnqueueConnected(cm.Namespace)
	case annotations.KindHibernatePlan:
		a.controllers.hibernation.Queue.Add(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
		return
	case annotations.KindPlan:
		a.recheckRecreated(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	}
	a.enqueuePlan(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
}

func (a *Agent) observeRestore(o any) {
	a.rereadEmptied(a.caches.restores, o)
	a.controllers.hibernation.RecordSeen(o)
}

func (a *Agent) documentLost(o any) {
	cm := o.(*corev1.ConfigMap)
	a.memory.documents.Actors.Gone(cm.UID)
	a.memory.documents.Forget(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	switch cm.Labels[annotations.LabelKind] {
	case annotations.KindAgentConfig:
		a.config.Removed(cm)
	case annotations.KindPolicy, annotations.KindCalendar:
		a.controllers.policies.Lost(cm)
		return
	case annotations.KindGate:
		a.controllers.policies.GatesLost(cm)
		return
	case annotations.KindStepTemplate:
		a.controllers.plans.EnqueueTemplated(cm.Namespace)
	case annotations.KindConnector:
		a.controllers.plans.EnqueueConnected(cm.Namespace)
	case annotations.KindHibernatePlan:
		a.controllers.hibernation.Queue.Add(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
		return
	case annotations.KindPlan:
		a.recheckRecreated(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
	}
	a.enqueuePlan(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
}

func (a *Agent) observeRun(o any) {
	a.rereadEmptied(a.caches.live, o)
	a.controllers.runs.Observe(o)
	cm := o.(*corev1.ConfigMap)
	a.controllers.freezes.RunSeen(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
}

// runLost hears of a run that has ended, or is gone.
func (a *Agent) runLost(o any) {
	a.controllers.runs.Lost(o)
	cm := o.(*corev1.ConfigMap)
	a.controllers.freezes.RunSeen(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
}

// observeNamespace looks at a namespace's plans and runs again: it may be paused, or
// on its way out.
func (a *Agent) observeNamespace(o any) {
	m := o.(*metav1.PartialObjectMetadata)
	a.controllers.freezes.NamespaceSeen(m)
	var closed bool
	a.memory.gates.Change(func(b *policy.Resolver) { closed = b.PutNamespace(m.Name, annotations.Stanza(m.Annotations)) })
	if closed {
		a.enqueueGated(m.Name)
		for _, l := range a.memory.runs.Filter(func(l *store.LiveRun) bool { return l.Object.Namespace == m.Name }) { // each asks it before its next step
			a.enqueueRun(l.Key())
		}
	}
	if !a.memory.plans.NamespaceChanged(m.Name, annotations.PauseText(m.Annotations), m.DeletionTimestamp != nil) {
		return
	}
	everywhere := m.Name == a.options.Namespace
	a.controllers.nodes.Enqueue()
	for _, o := range a.caches.documents.Informer.GetStore().List() {
		if cm := o.(*corev1.ConfigMap); everywhere || cm.Namespace == m.Name {
			a.enqueuePlan(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name})
		}
	}
	for _, l := range a.memory.runs.Filter(func(l *store.LiveRun) bool { return everywhere || l.Object.Namespace == m.Name }) {
		a.enqueueRun(l.Key())
	}
}

// watched are the caches that the agent fills. With Roles alone neither namespaces
// nor nodes can be watched: pauses and stanzas on them are not seen then.
func (a *Agent) watched() []*informer.Cache {
	all := []*informer.Cache{a.caches.documents, a.caches.live, a.caches.ended, a.caches.key, a.caches.restores}
	if a.options.WatchNamespace == "" {
		all = append(all, a.caches.namespaces, a.caches.nodes)
	}
	return all
}

// rewound ends an agent whose API server was put back from a backup: the next one knows
// nothing of what is no longer so.
func (a *Agent) rewound(was, is uint64) {
	a.die(fmt.Errorf("the API server's state went back from version %d to %d, as after a restored backup: the agent begins anew", was, is))
}

// sync starts the watches and waits for their first lists.
func (a *Agent) sync(ctx context.Context) error {
	a.readKey(ctx)
	var synced []cache.InformerSynced
	for _, c := range a.watched() {
		c.From.Rewound = a.rewound
		go informer.Run(ctx, c.Informer)
		synced = append(synced, c.Informer.HasSynced)
		if !slices.Contains(a.recorded(), c) {
			synced = append(synced, c.Synced) // what was read has also been taken in: the resolver and the configuration know all of it
		}
	}
	var ledgers atomic.Bool
	a.caches.ledgers.Rewound = a.rewound
	go a.watchLedgers(ctx, &ledgers)
	synced = append(synced, ledgers.Load)
	a.options.Log.Info("reading documents and runs")
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return errors.Join(ctx.Err(), errors.New("the API server could not be read"))
	}
	return nil
}

// recorded are the caches of what the agent has written down of its work.
func (a *Agent) recorded() []*informer.Cache {
	return []*informer.Cache{a.caches.live, a.caches.ended, a.caches.restores}
}

// takeIn waits until what was read of runs is taken in, or ctx ends. Each is checked like a user's
// document, of which there may be thousands: an agent is ready before, and leads after it.
func (a *Agent) takeIn(ctx context.Context) {
	var taken []cache.InformerSynced
	for _, c := range a.recorded() {
		taken = append(taken, c.Synced)
	}
	cache.WaitForCacheSync(ctx.Done(), taken...)
}

// eventsHeld is how many kinds of Events are remembered, so that the same one is
// counted and not written again (a guess: 4096, as it comes, are some 10 MiB).
const eventsHeld = 512

// newEvents prepares to record Events; none is sent before startEvents.
func newEvents(log *slog.Logger) events {
	broadcaster := record.NewBroadcasterWithCorrelatorOptions(record.CorrelatorOptions{BurstSize: 100, QPS: 1, LRUCacheSize: eventsHeld})
	return events{broadcaster, notify.NewRecorder(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: annotations.ManagerAgent}), log)}
}

// backlog is how many plans and runs that are to be looked at keep Events back (a guess: more
// than are due together where they are not due at once).
const backlog = 50

// startEvents begins to send Events; the function returned ends it after what is
// queued was sent.
func (a *Agent) startEvents() func() {
	a.events.broadcaster.StartRecordingToSink(a.events.recorder.Sink(&typedcorev1.EventSinkImpl{Interface: a.conn.Kube.CoreV1().Events("")}))
	go a.events.recorder.Run(func() bool { return a.queues.plans.Len()+a.queues.runs.Len() > backlog })
	return func() {
		a.events.recorder.Stop()
		a.events.broadcaster.Shutdown()
	}
}

// barrier returns when every cache holds what was there after this agent began to
// lead: only then may it decide anything. A watch that hangs holds it up no longer
// than a list takes.
func (a *Agent) barrier(ctx context.Context) {
	began := a.options.Now()
	var group sync.WaitGroup
	for _, c := range a.watched() {
		group.Go(func() {
			for failures := (informer.Failures{}); ctx.Err() == nil; {
				err := c.ReachLatest(ctx)
				if err == nil {
					return
				}
				a.options.Log.Warn("the newest state could not be read; it is tried again", "error", err.Error())
				informer.Sleep(ctx, informer.Backoff(failures.Count(err), err))
			}
		})
	}
	group.Wait()
	a.options.Log.Info("the caches are as new as the lease", "took", a.options.Now().Sub(began).String())
}

// rereadDelay is how long a plan waits for its runs to be read again (a guess): one that comes has it looked at, too.
const rereadDelay = 10 * time.Second

// enqueueDocuments has every plan and policy looked at again; later are those whose runs are still to be read.
func (a *Agent) enqueueDocuments(later map[types.NamespacedName]bool) {
	for _, o := range a.caches.documents.Informer.GetStore().List() {
		cm := o.(*corev1.ConfigMap)
		k := types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}
		switch kind := cm.Labels[annotations.LabelKind]; {
		case kind == annotations.KindPlan && later[k]:
			a.queues.plans.AddAfter(k, rereadDelay)
		case kind == annotations.KindPlan, kind == annotations.KindPolicy:
			a.enqueuePlan(k)
		case kind == annotations.KindHibernatePlan:
			a.controllers.hibernation.Queue.Add(k)
		}
	}
}

// enqueueConfigured has looked at again what a change of the agent's configuration is about.
func (a *Agent) enqueueConfigured(was, is agentconfig.AgentConfig) {
	steps := !reflect.DeepEqual(was.Steps, is.Steps)
	window := !reflect.DeepEqual(was.MinimumWindow, is.MinimumWindow)
	if steps || window || is.Notifications.Before.Or(0) != was.Notifications.Before.Or(0) {
		a.enqueueDocuments(nil)
	}
	if !steps {
		return
	}
	for _, l := range a.memory.runs.Filter(func(*store.LiveRun) bool { return true }) { // each asks before its next step
		a.enqueueRun(l.Key())
	}
}

// enqueueGated has everything looked at again that a policy, a calendar or the stanza of
// a namespace may gate.
func (a *Agent) enqueueGated(namespace string) {
	a.queues.plans.Add(types.NamespacedName{Namespace: namespace})
}

// reconcileGated enqueues what is behind a gate, and what waits for one: that of a
// namespace, or all of it where the namespace is the agent's own.
func (a *Agent) reconcileGated(namespace string) {
	everywhere := a.memory.gates.AffectsAllNamespaces(namespace)
	if everywhere {
		a.controllers.nodes.Enqueue()
		namespace = ""
	}
	a.controllers.gates.EnqueueOf(namespace)
	a.controllers.freezes.EnqueueOf(namespace)
	for _, o := range a.caches.documents.Informer.GetStore().List() {
		if cm := o.(*corev1.ConfigMap); everywhere || cm.Namespace == namespace {
			a.enqueueGatedDocument(cm)
		}
	}
	for _, l := range a.memory.runs.Filter(runs.AsksGate) {
		if everywhere || l.Object.Namespace == namespace {
			a.enqueueRun(l.Key())
		}
	}
}

// enqueueGatedDocument looks at a document again, if a gate may stand before what it says.
func (a *Agent) enqueueGatedDocument(cm *corev1.ConfigMap) {
	k := types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}
	switch cm.Labels[annotations.LabelKind] {
	case annotations.KindPolicy:
		a.enqueuePlan(k)
	case annotations.KindHibernatePlan:
		a.controllers.hibernation.Queue.Add(k)
	case annotations.KindPlan:
		known := a.memory.plans.Memory(k)
		if known == nil || known.Policed || annotations.Stanza(cm.Annotations).Set() || a.memory.gates.Gated(policy.Query{Namespace: cm.Namespace}) || a.memory.gates.HadGate(&known.Gate) {
			a.enqueuePlan(k)
		}
	}
}

// watchLedgers looks at plans whose ledger is deleted, at once: it is made anew from
// then on, and the next slot is not lost. Nothing is kept of a ledger but what tells
// its deletion. begun is set when those that are there are known.
func (a *Agent) watchLedgers(ctx context.Context, begun *atomic.Bool) {
	w, err := a.caches.ledgers.WatchWithContext(ctx, metav1.ListOptions{})
	if err != nil { // it begins nothing that could fail
		return
	}
	for event := range w.ResultChan() {
		m, err := meta.Accessor(event.Object)
		if err != nil {
			continue
		}
		if event.Type == watch.Deleted {
			a.controllers.plans.LedgerLost(m)
		}
		if event.Type == watch.Bookmark && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "" {
			begun.Store(true)
		}
	}
}
