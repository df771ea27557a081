// Package notify tells the sinks of the configuration what happened.
package notify

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// queueLength is how many messages wait for the sinks (a guess: more at once is a
// night in which people look at the cluster anyway). What comes then is dropped.
const queueLength = 100

// namespaceQueue is how many of these are of one namespace, so that none takes the place
// of what is said of others and of nodes.
const namespaceQueue = 20

// message is something that the agent tells people by itself.
type message struct {
	on          agentconfig.NotifyFor
	about       types.NamespacedName // a plan or a policy; of a node the name alone
	run         string               // empty where it is about none
	title, text string
}

// Notifier tells the sinks of the configuration what happened. It does what it can:
// no run waits for it, and what an agent that dies has not told is not told.
type Notifier struct {
	Config
	own     chan message // about the cluster: it waits behind no namespace's
	queue   chan message
	mu      sync.Mutex
	waiting map[string]int // messages, by namespace
	results *prometheus.CounterVec
}

// Config is what a notifier works with.
type Config struct {
	Settings func() agentconfig.Notifications // in force
	Sink     func(ctx context.Context, namespace, name string) (string, error)
	Fence    func() error
	Executor func(stepType string) (executors.Executor, bool)
	DryRun   bool
	Log      *slog.Logger
	Now      func() time.Time
	Register func(prometheus.Collector)
}

// New has nothing to tell.
func New(c Config) *Notifier {
	h := &Notifier{
		Config: c, own: make(chan message, queueLength), queue: make(chan message, queueLength), waiting: map[string]int{},
		results: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "maint_notifications_total", Help: "The agent's own messages to sinks, by result."}, []string{"result"}),
	}
	c.Register(h.results)
	return h
}

// RunEnded tells of the end of a plan's run, or of the slot that one missed which never began. What
// was only rehearsed is told to nobody.
func (h *Notifier) RunEnded(about types.NamespacedName, r run.Run, j run.Journal) {
	if j.StartedAt == nil && !r.Request.DryRun && r.Request.Slot != nil {
		if result, reason := ledger.NotStarted(j); result == run.Missed {
			h.SlotMissed(about, ledger.Entry{Count: 1, Slot: r.Request.Slot, Reason: reason, Said: j.Message})
		}
	}
	on := map[run.Phase]agentconfig.NotifyFor{run.Failed: agentconfig.NotifyRunFailed, run.Succeeded: agentconfig.NotifyRunSucceeded}[j.Phase]
	if on == "" || r.Request.DryRun {
		return
	}
	how := strings.ToLower(string(j.Phase))
	h.enqueue(message{
		on: on, about: about, run: r.Name, title: fmt.Sprintf("Plan %s %s", about, how),
		text: fmt.Sprintf("Run %s (%s) %s: %s", r.Name, r.Request.Why(), how, document.Cut(j.Message, document.MaxMessage)),
	})
}

// SlotMissed tells of slots that passed without a run, for one reason.
func (h *Notifier) SlotMissed(k types.NamespacedName, e ledger.Entry) {
	h.enqueue(message{
		on: agentconfig.NotifySlotMissed, about: k, title: fmt.Sprintf("Plan %s missed its slot", k),
		text: fmt.Sprintf("%d slot(s) missed up to %s: %s", e.Count, e.Slot.UTC().Format(time.RFC3339), e.Why()),
	})
}

// WindowOpens tells of a policy that permits change from now on, in these words.
func (h *Notifier) WindowOpens(k types.NamespacedName, words string) {
	h.enqueue(message{on: agentconfig.NotifyWindowOpening, about: k, title: fmt.Sprintf("Policy %s permits change", k), text: words})
}

// DrainBlocked tells of a drain that no waiting ends: that of a request, or of a run.
func (h *Notifier) DrainBlocked(about types.NamespacedName, run, node, words string) {
	h.enqueue(message{on: agentconfig.NotifyDrainBlocked, about: about, run: run, title: fmt.Sprintf("The drain of node %s is blocked", node), text: document.Cut(words, document.MaxMessage)})
}

// enqueue queues a message where somebody wants it, and never waits.
func (h *Notifier) enqueue(n message) {
	if h.DryRun || n.on != ahead && !slices.Contains(h.Settings().On, n.on) {
		return
	}
	if !h.admit(n.about.Namespace) {
		h.results.WithLabelValues("dropped").Inc()
		h.Log.Warn("a notification was dropped: too many of its namespace wait for the sinks", "about", n.about.String(), "run", n.run, "what", string(n.on), "waiting", namespaceQueue)
		return
	}
	n.title, n.text = document.OneLine(n.title), document.OneLine(n.text) // the agent says it: nobody else's words begin a line of it
	queue := h.queue
	if n.about.Namespace == "" {
		queue = h.own
	}
	select {
	case queue <- n:
	default:
		h.release(n.about.Namespace)
		h.results.WithLabelValues("dropped").Inc()
		h.Log.Warn("a notification was dropped: too many wait for the sinks", "about", n.about.String(), "run", n.run, "what", string(n.on), "waiting", queueLength)
	}
}

// admit counts a message of a namespace, where it may wait; what is said of the cluster
// always may.
func (h *Notifier) admit(namespace string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if namespace != "" && h.waiting[namespace] >= namespaceQueue {
		return false
	}
	h.waiting[namespace]++
	return true
}

func (h *Notifier) release(namespace string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting[namespace]--; h.waiting[namespace] <= 0 {
		delete(h.waiting, namespace)
	}
}

// Run sends what waits until ctx ends: first what is about the cluster.
func (h *Notifier) Run(ctx context.Context) {
	for {
		n, more := h.next(ctx)
		if !more {
			return
		}
		h.release(n.about.Namespace)
		for _, s := range h.Settings().Sinks {
			if s.Takes(n.about.Namespace) {
				h.send(ctx, n, s.Name)
			}
		}
	}
}

// next waits for a message; false when ctx has ended.
func (h *Notifier) next(ctx context.Context) (message, bool) {
	select {
	case n := <-h.own:
		return n, true
	default:
	}
	select {
	case <-ctx.Done():
		return message{}, false
	case n := <-h.own:
		return n, true
	case n := <-h.queue:
		return n, true
	}
}

// send tells one sink, in the way in which a step does.
func (h *Notifier) send(ctx context.Context, n message, sink string) {
	executor, known := h.Executor("notification")
	if !known || ctx.Err() != nil {
		return
	}
	out := executor.Pass(ctx, executors.Call{
		Run: n.run, Plan: executors.PlanRef{Name: n.about.Name, Namespace: n.about.Namespace}, Path: string(n.on), Attempt: 1, Now: h.Now(), Own: true,
		Properties: &plan.NotificationProperties{Title: n.title, Message: n.text, Sinks: []string{sink}},
		Clients:    executors.Clients{Sinks: executors.Sinks{URL: func(ctx context.Context, name string) (string, error) { return h.Sink(ctx, n.about.Namespace, name) }}, Fence: h.Fence},
	})
	if out.State == executors.Done {
		h.results.WithLabelValues("sent").Inc()
		return
	}
	result := "failed"
	if out.State == executors.NotYet && out.Reason == "Quota" { // nothing is kept for later: by then it is no news
		result = "dropped"
	}
	h.results.WithLabelValues(result).Inc()
	h.Log.Warn("a notification was not sent", "about", n.about.String(), "run", n.run, "what", string(n.on), "sink", sink, "reason", out.Reason, "message", out.Message)
}
