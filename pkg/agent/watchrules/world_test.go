package watchrules

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

const (
	runner   = "system:serviceaccount:shop:maint-runner"
	onConfig = "{apiVersion: v1, kind: ConfigMap, selector: {matchLabels: {app: shop}}, fields: [data]}"
)

// world is a cluster, and an agent that watches for its plans. The plans' own room is as
// short as it can be: what asks for a run is claimed, and noted here.
type world struct {
	*testing.T
	cluster  *agenttest.Cluster
	events   *agenttest.Events
	rules    *Controller
	accounts *client.Impersonator
	plans    *store.Plans
	stop     func()
	late     bool // no body has room: each is read when it is told

	mu        sync.Mutex
	asked     []string          // the requests that were claimed
	requests  []run.Request     // the same, whole
	unwatched map[string]string // why a plan's rule sees nothing
}

func inWorld(t *testing.T, story func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, cluster: agenttest.New(t), events: &agenttest.Events{}, unwatched: map[string]string{}}
		w.cluster.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "maint-runner"}})
		story(w)
	})
}

// plan puts a plan with some watch triggers, and has it looked at.
func (w *world) plan(name string, rules ...string) {
	w.Helper()
	triggers := ""
	if len(rules) > 0 {
		triggers = "  triggers: {watch: [" + strings.Join(rules, ", ") + "]}\n"
	}
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n" + triggers + "  steps:\n  - {name: hold, type: suspend}\n"
	cm := annotations.NewPlan("shop", name, text, "")
	cm.UID = types.UID(name + "-uid")
	w.cluster.Put(cm)
	if w.rules != nil {
		w.rules.Plans.Add(types.NamespacedName{Namespace: "shop", Name: name})
		w.after(time.Second)
	}
}

// object puts a ConfigMap that the rules mean.
func (w *world) object(name, value string) {
	w.Helper()
	w.cluster.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "shop"}}, Data: map[string]string{"a": value}})
	w.after(0)
}

// begins starts an agent that looks at plans; what was one before is stopped.
func (w *world) begins(plans ...string) {
	w.Helper()
	if w.stop != nil {
		w.stop()
	}
	conn, accounts := w.cluster.Connect()
	log, since := slog.New(slog.DiscardHandler), time.Now()
	ledgers := store.NewLedgers(conn.Kube, agenttest.Keys(), func(types.NamespacedName, error) {})
	looks := queue.New(queue.Config{Name: "plans", Now: time.Now, Log: log, OnPanic: func() { w.Error("it panics") }})
	w.plans, w.accounts = store.NewPlans(), accounts
	w.rules = New(Config{Accounts: accounts, Ledgers: ledgers, Runs: store.NewRuns(agenttest.Keys()), Plans: looks, Evaluations: queue.NewEvaluations(time.Now, nil), Events: w.events, Log: log, Now: time.Now})
	if w.late {
		w.rules.backlog.most = 0
	}
	accounts.OnWrite(w.rules.Listen)
	ctx, cancel := context.WithCancel(w.Context())
	var group sync.WaitGroup
	group.Go(func() {
		looks.Work(ctx, 2, func(ctx context.Context, k types.NamespacedName) (time.Time, error) {
			return time.Time{}, w.look(ctx, ledgers, since, k)
		})
	})
	w.stop = func() {
		for _, name := range plans {
			w.rules.Drop(types.NamespacedName{Namespace: "shop", Name: name})
		}
		cancel()
		group.Wait()
	}
	for _, name := range plans {
		looks.Add(types.NamespacedName{Namespace: "shop", Name: name})
	}
	w.after(20 * time.Second)
}

// look is one look at a plan: what is seen, what follows, and what is written of it.
func (w *world) look(ctx context.Context, ledgers *store.Ledgers, since time.Time, k types.NamespacedName) error {
	cm := w.cluster.ConfigMap(k.Namespace, k.Name)
	if cm == nil {
		w.rules.Drop(k)
		return nil
	}
	known, uid := w.plans.Of(cm), string(cm.UID)
	led, err := ledgers.Get(ctx, k, uid)
	if err != nil {
		return err
	}
	f := trigger.Facts{
		Now: time.Now(), LeadingSince: since, Plan: trigger.Plan{
			Namespace: k.Namespace, Name: k.Name, UID: uid, CreatedAt: cm.CreationTimestamp.Time, EditedAt: cm.CreationTimestamp.Time,
			Spec: known.Spec, Faults: known.Faults, Intent: annotations.Intent(cm.Annotations),
		}, Ready: trigger.Readiness{OK: true}, State: trigger.State{Ledger: led},
		NameOf: func(r run.Request) string { return annotations.RunName(k.Name, uid, r) },
	}
	if len(f.Plan.Faults) > 0 {
		return f.Plan.Faults
	}
	if err := w.rules.Observe(ctx, cm, known, &f); err != nil {
		return err
	}
	d := trigger.Decide(f)
	noted, err := w.rules.Note(ctx, k, f, &d)
	if err != nil {
		return err
	}
	if d.Changed {
		if err := ledgers.Put(ctx, k, uid, f.State.Ledger, d.Ledger); err != nil {
			_ = noted(ctx, false)
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unwatched[k.Name] = f.Unwatched
	for _, r := range d.Claims {
		w.asked, w.requests = append(w.asked, fmt.Sprintf("%s: %s %s", k.Name, r.Event, r.Name)), append(w.requests, r)
	}
	if err := noted(ctx, true); err != nil || len(d.Claims) == 0 {
		return err
	}
	w.rules.Plans.AddAfter(k, time.Second)
	return ledgers.Edit(ctx, k, uid, func(led ledger.Ledger) ledger.Ledger { // their runs are short
		for _, e := range led.Open {
			led = led.Close(e.Run, run.Ran, "", &f.Now, f.Now)
		}
		return led
	})
}

func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// claimed fails unless these requests were claimed since the last time.
func (w *world) claimed(want ...string) {
	w.Helper()
	w.after(15 * time.Second)
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.asked)
	if !slices.Equal(w.asked, want) {
		w.Errorf("claimed %q, want %q", w.asked, want)
	}
	w.asked = nil
}

func (w *world) trouble(plan string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unwatched[plan]
}
