package agent

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

const (
	shop  = "shop"
	home  = annotations.DefaultNamespace // the agent's
	hook  = "steps:\n- {name: hook, type: webhook, properties: {url: 'https://hooks.test'}}\n"
	every = "triggers: {schedules: [{cron: '*/10 * * * *', timezone: UTC}]}\n"
)

// world is a cluster and a whole agent in it. Its time is that of a synctest bubble.
type world struct {
	*testing.T
	*agenttest.Cluster
	agent *Agent
	made  []*Agent
	log   lines
	ended chan error
	stop  context.CancelFunc
	steps steps
}

// lines are what an agent logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(of string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), of)
}

// steps executes steps: each is done at once, or stands until a test says so.
type steps struct {
	mu     sync.Mutex
	stands bool
	passes int
}

func (s *steps) Pass(context.Context, executors.Call) executors.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passes++
	if s.stands {
		return executors.Outcome{State: executors.NotYet, Reason: "Waiting", Message: "it stands"}
	}
	return executors.Outcome{State: executors.Done}
}

// play has a story happen in a cluster with two namespaces, before an agent begins.
func play(t *testing.T, story func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, Cluster: agenttest.New(t)}
		w.Serve(
			agenttest.Kind{Version: "v1", Kind: "Event", Resource: "events", Namespaced: true},
			agenttest.Kind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy", Resource: "validatingadmissionpolicies"},
			agenttest.Kind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding", Resource: "validatingadmissionpolicybindings"},
		)
		for _, name := range []string{shop, home} {
			w.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "maint-runner"}})
		}
		story(w)
		if w.agent != nil {
			_ = w.ends()
		}
		for _, a := range w.made {
			a.putAway()
		}
	})
}

// built is an agent that does not run yet, told what is said.
func (w *world) built(told ...func(*Options)) *Agent {
	w.Helper()
	o := Options{
		Config: &rest.Config{Host: "http://cluster.test", Transport: w.Cluster, QPS: -1}, Namespace: home, LeaderElection: LeaderElection{Identity: "agent-1"}, Version: "test", Log: slog.New(slog.NewTextHandler(&w.log, nil)), LogLevel: &slog.LevelVar{},
		Executors: Executors{Executor: func(string) (executors.Executor, bool) { return &w.steps, true }},
		Outbound:  Outbound{HTTPClient: func(agentconfig.Outbound) *http.Client { return &http.Client{} }},
	}
	for _, tell := range told {
		tell(&o)
	}
	a, err := New(o)
	if err != nil {
		w.Fatal(err)
	}
	w.made = append(w.made, a)
	return a
}

// putAway ends what an agent has that never ran.
func (a *Agent) putAway() {
	for _, q := range []*queue.Queue{a.queues.plans, a.queues.runs, a.controllers.gates.Queue, a.controllers.freezes.Queue, a.controllers.hibernation.Queue} {
		q.ShutDown()
	}
	a.events.broadcaster.Shutdown()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	a.controllers.plans.Run(ctx)
}

// begins has an agent run.
func (w *world) begins(told ...func(*Options)) {
	w.Helper()
	ctx, stop := context.WithCancel(w.Context())
	w.agent, w.stop, w.ended = w.built(told...), stop, make(chan error, 1)
	go func() { w.ended <- w.agent.Run(ctx) }()
}

// ends stops the agent, and says what it ended with.
func (w *world) ends() error {
	w.stop()
	err := <-w.ended
	w.agent = nil
	return err
}

// after lets time go by, and what is to happen then.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func key(name string) types.NamespacedName { return types.NamespacedName{Namespace: shop, Name: name} }

// document is the ConfigMap of a document.
func (w *world) document(namespace, name, kind, label, spec string) *corev1.ConfigMap {
	text := "apiVersion: " + document.APIVersion + "\nkind: " + kind + "\nspec:\n  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
	at := map[string]string{
		annotations.KindPlan: annotations.DataPlan, annotations.KindHibernatePlan: annotations.DataPlan, annotations.KindPolicy: annotations.DataPolicy,
		annotations.KindCalendar: annotations.DataDates, annotations.KindStepTemplate: annotations.DataTemplate, annotations.KindAgentConfig: annotations.DataConfig,
	}[label]
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{annotations.LabelKind: label}},
		Data:       map[string]string{at: text},
	}
}
