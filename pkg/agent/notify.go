package agent

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// mostNews is how many messages wait for the sinks (a guess: more at once is a
// night in which people look at the cluster anyway). What comes then is dropped.
const mostNews = 100

// news is something that the agent tells people by itself.
type news struct {
	on           plan.NotifyFor
	about        types.NamespacedName // a plan or a policy; of a node the name alone
	run          string               // empty where it is about none
	title, words string
}

// herald tells the sinks of the configuration what happened. It does what it can:
// no run waits for it, and what an agent that dies has not told is not told.
type herald struct {
	config   *config
	executor func(stepType string) (executors.Executor, bool)
	dryRun   bool
	log      *slog.Logger
	now      func() time.Time
	waiting  chan news
	results  *prometheus.CounterVec
}

func newHerald(a *Agent) *herald {
	h := &herald{
		config: a.config, executor: a.options.Executor, dryRun: a.options.DryRun, log: a.log, now: a.now, waiting: make(chan news, mostNews),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "maint_notifications_total", Help: "Messages of the agent's own to sinks, by what became of them."}, []string{"result"}),
	}
	a.metrics.registry.MustRegister(h.results)
	return h
}

// ended tells of a run's end. What was only rehearsed is told to nobody.
func (h *herald) ended(l *liveRun, j plan.Journal) {
	on := map[plan.RunPhase]plan.NotifyFor{plan.RunFailed: plan.NotifyRunFailed, plan.RunSucceeded: plan.NotifyRunSucceeded}[j.Phase]
	if on == "" || l.run.Request.DryRun {
		return
	}
	how := strings.ToLower(string(j.Phase))
	h.tell(news{
		on: on, about: l.planKey(), run: l.run.Name, title: fmt.Sprintf("Plan %s %s", l.planKey(), how),
		words: fmt.Sprintf("Run %s (%s) %s: %s", l.run.Name, l.run.Request.Why(), how, plan.Cut(j.Message, plan.MaxMessage)),
	})
}

// missed tells of slots that passed without a run.
func (h *herald) missed(k types.NamespacedName, n int64, last plan.Entry) {
	h.tell(news{
		on: plan.NotifySlotMissed, about: k, title: fmt.Sprintf("Plan %s missed its slot", k),
		words: fmt.Sprintf("%d slot(s) missed up to %s: %s", n, instant(last.Slot), last.Reason),
	})
}

// opens tells of a policy that permits change from now on.
func (h *herald) opens(k types.NamespacedName, v schedule.Verdict) {
	h.tell(news{on: plan.NotifyWindowOpening, about: k, title: fmt.Sprintf("Policy %s permits change", k), words: verdictSentence(v)})
}

// blocked tells of a drain that no waiting ends: that of a request, or of a run.
func (h *herald) blocked(about types.NamespacedName, run, node, words string) {
	h.tell(news{on: plan.NotifyDrainBlocked, about: about, run: run, title: fmt.Sprintf("The drain of node %s is blocked", node), words: plan.Cut(words, plan.MaxMessage)})
}

// drainBlocked says of nodes, on their plan and to the sinks, that a run's drain of
// them is blocked for good.
func (a *Agent) drainBlocked(l *liveRun, path string, names []string, words string) {
	if len(names) == 0 || l.run.Request.DryRun || a.options.DryRun {
		return
	}
	text := plan.Cut(fmt.Sprintf("Run %s, step %s: %s", l.run.Name, path, words), plan.MaxMessage)
	a.events.Event(a.aboutRun(l), corev1.EventTypeWarning, nodes.EventBlocked, text)
	for _, node := range names {
		a.herald.blocked(l.planKey(), l.run.Name, node, text)
	}
}

// tell queues a message where somebody wants it, and never waits.
func (h *herald) tell(n news) {
	if h.dryRun || !slices.Contains(h.config.spec().Notifications.On, n.on) {
		return
	}
	select {
	case h.waiting <- n:
	default:
		h.results.WithLabelValues("dropped").Inc()
		h.log.Warn("a notification was dropped: too many wait for the sinks", "about", n.about.String(), "run", n.run, "what", string(n.on), "waiting", mostNews)
	}
}

// work sends what waits until ctx ends.
func (h *herald) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-h.waiting:
			for _, s := range h.config.spec().Notifications.Sinks {
				h.send(ctx, n, s.Name)
			}
		}
	}
}

// send tells one sink, in the way in which a step does.
func (h *herald) send(ctx context.Context, n news, sink string) {
	executor, known := h.executor("notification")
	if !known || ctx.Err() != nil {
		return
	}
	out := executor.Pass(ctx, executors.Call{
		Run: n.run, Plan: n.about.Name, Namespace: n.about.Namespace, Path: string(n.on), Attempt: 1, Now: h.now(),
		Properties: &plan.NotificationProperties{Title: n.title, Message: n.words, Sinks: []string{sink}},
		Clients:    executors.Clients{Sink: h.config.sink, Fence: h.config.fence.Check},
	})
	if out.State == executors.Done {
		h.results.WithLabelValues("sent").Inc()
		return
	}
	h.results.WithLabelValues("failed").Inc()
	h.log.Warn("a notification was not sent", "about", n.about.String(), "run", n.run, "what", string(n.on), "sink", sink, "reason", out.Reason, "message", out.Message)
}
