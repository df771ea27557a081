package agent

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/leader"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/metrics"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/nodemaintenance"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// runsOf are the phases of a plan's runs as they are stored.
func (w *world) runsOf(name string) []string {
	var out []string
	for _, at := range w.Names("configmaps") {
		namespace, of, _ := strings.Cut(at, "/")
		if cm := w.ConfigMap(namespace, of); cm.Labels[annotations.LabelKind] == annotations.KindRun && cm.Labels[annotations.LabelPlan] == name {
			out = append(out, cm.Labels[annotations.LabelPhase])
		}
	}
	return out
}

// said says whether there is an Event with a reason, and with a message, if one is given.
func (w *world) said(reason string, message ...string) bool {
	return slices.ContainsFunc(w.Names("events"), func(at string) bool {
		namespace, name, _ := strings.Cut(at, "/")
		e := w.Get("events", namespace, name).Object
		return e["reason"] == reason && (len(message) == 0 || e["message"] == message[0])
	})
}

// condition is "Status Reason" of a document's condition; empty: it has none.
func (w *world) condition(namespace, name, kind string) string {
	w.Helper()
	var list []metav1.Condition
	if text := w.ConfigMap(namespace, name).Annotations[annotations.StatusConditions]; text != "" {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			w.Fatal(err)
		}
	}
	for _, c := range list {
		if c.Type == kind {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

// answers is what the agent's handler says under a path.
func (w *world) answers(path string) (int, string) {
	r := httptest.NewRecorder()
	w.agent.Handler().ServeHTTP(r, httptest.NewRequest(http.MethodGet, path, nil))
	return r.Code, r.Body.String()
}

// measured are the values of metrics, each by a regular expression.
func (w *world) measured(names ...string) []string {
	_, text := w.answers("/metrics")
	var out []string
	for _, name := range names {
		out = append(out, regexp.MustCompile(`(?m)^`+name+`.*$`).FindString(text))
	}
	return out
}

func TestWhatAnAgentIsToldAtItsStart(t *testing.T) {
	got := withDefaults(Options{LeaderElection: LeaderElection{RenewDeadline: time.Second}})
	if got.LeaderElection.LeaseDuration != leader.LeaseDuration || got.LeaderElection.RenewDeadline != time.Second || got.LeaderElection.RetryPeriod != leader.RetryPeriod || got.Now == nil {
		t.Errorf("%+v", got)
	}
	then := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	if got := withDefaults(Options{Now: func() time.Time { return then }}).Now(); !got.Equal(then) {
		t.Errorf("another clock says %s", got)
	}
}

func TestWhereAnAgentRunsAndWhatItDrainsWith(t *testing.T) {
	play(t, func(w *world) {
		var reads kube.Interface
		with := w.built(func(o *Options) {
			o.Pod = "agent-0"
			o.Executors.Drainer = func(own kube.Interface, _ func(node, by string)) executors.Drainer { reads = own; return nil }
		})
		without := w.built()
		if got := with.ownPod() + " " + without.ownPod(); got != home+"/agent-0 " {
			t.Errorf("its pods are %q", got)
		}
		if without.nodeConfig().Clients.Drainer != nil || with.nodeConfig().Clients.Drainer == nil || reads != with.conn.Kube {
			t.Error("nodes are drained with something else than was given")
		}
	})
}

// The first reason that an agent ends for is the one that is told.
func TestAnAgentEndsForItsFirstReason(t *testing.T) {
	play(t, func(w *world) {
		a := w.built()
		first := errors.New("the lease is lost")
		a.die(first) // nothing runs yet
		ended := false
		a.lifecycle.shutdown = func() { ended = true }
		a.die(errors.New("another"))
		if a.lifecycle.fatal != first || !ended { //nolint:errorlint // the very one
			t.Errorf("%v, ended %t", a.lifecycle.fatal, ended)
		}
		w.begins()
		w.after(time.Minute)
		w.agent.rewound(9, 3)
		w.after(time.Second)
		want := "the API server's state went back from version 9 to 3, as after a restored backup: the agent begins anew"
		if err := w.ends(); err == nil || err.Error() != want {
			t.Errorf("it ended with %v", err)
		}
	})
}

// What was read of runs is checked one by one, which takes long where the machine is busy. An agent is
// ready meanwhile, and does nothing yet.
func TestAnAgentIsReadyBeforeItHasTakenInRuns(t *testing.T) {
	play(t, func(w *world) {
		var taken atomic.Bool
		ctx, stop := context.WithCancel(w.Context())
		w.agent, w.stop, w.ended = w.built(), stop, make(chan error, 1)
		w.agent.caches.live.Synced = taken.Load
		go func() { w.ended <- w.agent.Run(ctx) }()
		w.after(time.Minute)
		if leads := w.measured("maint_leading "); !w.agent.Ready() || !slices.Equal(leads, []string{"maint_leading 0"}) {
			t.Errorf("before: it is ready %t, %q", w.agent.Ready(), leads)
		}
		taken.Store(true)
		w.after(time.Minute)
		if leads := w.measured("maint_leading "); !w.agent.Ready() || !slices.Equal(leads, []string{"maint_leading 1"}) {
			t.Errorf("afterwards: it is ready %t, %q", w.agent.Ready(), leads)
		}
	})
}

// An agent alone: what it reads, decides, writes and measures.
func TestAWholeAgent(t *testing.T) {
	play(t, func(w *world) {
		w.steps.stands = true
		w.Put(w.document(shop, "orders", "Plan", annotations.KindPlan, every+"target: {apiVersion: apps/v1, kind: Deployment, name: orders}\n"+hook))
		w.Put(agenttest.Object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: orders}, spec: {replicas: 1}, status: {readyReplicas: 1}}`))
		w.begins()
		w.after(time.Minute)
		if code, _ := w.answers("/readyz"); code != http.StatusOK || !w.agent.Ready() {
			t.Errorf("it is ready: %d", code)
		}
		w.after(10 * time.Minute)
		if diff := cmp.Diff([]string{"Running"}, w.runsOf("orders")); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
		want := []string{`maint_runs{phase="Pending"} 0`, `maint_runs{phase="Running"} 1`, `maint_documents{kind="plan",valid="true"} 1`, "maint_leading 1", `maint_internal_errors_total 0`}
		if diff := cmp.Diff(want, w.measured(`maint_runs\{phase="Pending"`, `maint_runs\{phase="Running"`, `maint_documents\{kind="plan",valid="true"`, "maint_leading ", "maint_internal_errors_total")); diff != "" {
			t.Errorf("measured (-want +got):\n%s", diff)
		}
		if !strings.Contains(strings.Join(w.Names("events"), " "), "shop/orders.") {
			t.Errorf("the Events are %q", w.Names("events"))
		}
		if err := w.ends(); err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
}

// Watches as plans' accounts are counted by all who watch.
func TestWatchesAreCountedByAllWhoWatch(t *testing.T) {
	play(t, func(w *world) {
		w.Put(w.document(shop, "orders", "Plan", annotations.KindPlan, "triggers: {watch: [{apiVersion: v1, kind: Secret}]}\n"+hook))
		w.begins()
		w.after(2 * time.Minute)
		if diff := cmp.Diff([]string{`maint_watches{for="targets"} 1`}, w.measured(`maint_watches\{for="targets"`)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// Without its configuration, its key or the API server an agent does nothing, and says so.
func TestAnAgentThatCannotBegin(t *testing.T) {
	secret := func(text string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: annotations.KeyName}, Data: map[string][]byte{annotations.DataKey: []byte(text)}}
	}
	for _, c := range []struct {
		name  string
		world func(*world)
		log   string
		mend  func(*world)
	}{
		{
			"its key is of no use", func(w *world) { w.Put(secret("short")) }, "nothing is done without the agent's key",
			func(w *world) { w.Put(secret(strings.Repeat("k", 32))) },
		},
		{
			"its configuration is broken", func(w *world) {
				w.Put(w.document(home, annotations.AgentConfigName, "AgentConfig", annotations.KindAgentConfig, "color: red"))
			}, "is broken, so nothing starts",
			func(w *world) {
				w.Put(w.document(home, annotations.AgentConfigName, "AgentConfig", annotations.KindAgentConfig, "logLevel: info"))
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(w *world) {
				w.Put(w.document(shop, "orders", "Plan", annotations.KindPlan, every+hook))
				c.world(w)
				w.begins()
				w.after(11 * time.Minute)
				if code, _ := w.answers("/readyz"); code == http.StatusOK || w.agent.Ready() || len(w.runsOf("orders")) != 0 || w.log.count(c.log) == 0 {
					t.Errorf("readyz is %d, runs %q, logged %s", code, w.runsOf("orders"), w.log.text.String())
				}
				c.mend(w)
				w.after(11 * time.Minute)
				if !w.agent.Ready() || len(w.runsOf("orders")) != 2 { // of the slot that was late, and of the next
					t.Errorf("mended it is ready %t, runs %q", w.agent.Ready(), w.runsOf("orders"))
				}
			})
		})
	}
}

// An agent that cannot read the API server waits for it, and ends when it is told to.
func TestAnAgentWithoutAnAPIServer(t *testing.T) {
	play(t, func(w *world) {
		w.Fail(agenttest.When{Verb: "list"}, agenttest.Always)
		w.begins()
		w.after(time.Minute)
		if w.agent.Ready() {
			t.Error("it is ready")
		}
		if err := w.ends(); err == nil || !strings.HasSuffix(err.Error(), "the API server could not be read") {
			t.Errorf("it ended with %v", err)
		}
	})
	play(t, func(w *world) {
		w.Refuse(agenttest.When{Verb: "get", Resource: "secrets"}, 2, http.StatusServiceUnavailable, "etcd is away")
		w.begins()
		w.after(time.Minute)
		if got := w.log.count("the agent's key could not be read"); got != 2 || !w.agent.Ready() {
			t.Errorf("logged %d times, ready %t", got, w.agent.Ready())
		}
	})
}

// A new leader first reaches what is there since it leads, however often it is refused.
func TestANewLeaderReachesTheNewestState(t *testing.T) {
	play(t, func(w *world) {
		lease := agenttest.Object(t, `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: `+home+`, name: maint-agent}, spec: {holderIdentity: other, leaseDurationSeconds: 15, renewTime: "2000-01-01T00:00:00.000000Z"}}`)
		w.Put(lease, w.document(shop, "orders", "Plan", annotations.KindPlan, hook))
		w.begins(func(o *Options) { o.LeaderElection.LeaderElect = true })
		w.after(10 * time.Second)
		if got := w.log.count("the caches are as new as the lease"); got != 0 {
			t.Fatalf("it leads beside another: %s", w.log.text.String())
		}
		w.Refuse(agenttest.When{Verb: "list", Resource: "configmaps"}, 3, http.StatusServiceUnavailable, "etcd is away")
		w.after(5 * time.Minute)
		if got := w.log.count("the newest state could not be read; it is tried again"); got != 3 {
			t.Errorf("it was refused %d times: %s", got, w.log.text.String())
		}
		if w.log.count("the caches are as new as the lease") == 0 || !w.agent.lookingSince().After(time.Date(2000, 1, 1, 0, 0, 15, 0, time.UTC)) {
			t.Errorf("it looks since %s", w.agent.lookingSince())
		}
	})
}

// Another key has everything read again that may count now.
func TestARunCountsOnceItsKeyIsBack(t *testing.T) {
	play(t, func(w *world) {
		w.Put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: annotations.KeyName}, Data: map[string][]byte{annotations.DataKey: []byte(strings.Repeat("o", 32))}})
		w.Put(w.document(shop, "orders", "Plan", annotations.KindPlan, every+hook))
		w.begins()
		w.steps.stands = true
		w.after(11 * time.Minute)
		_ = w.ends()
		passes := w.steps.passes
		good := w.Get("secrets", home, annotations.KeyName)
		w.Put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: annotations.KeyName}, Data: map[string][]byte{annotations.DataKey: []byte(strings.Repeat("n", 32))}})
		w.steps.stands = false
		w.begins()
		w.after(time.Minute)
		if got := w.runsOf("orders"); w.steps.passes != passes || !slices.Contains(got, "Running") {
			t.Errorf("with another key it went on: %q", got)
		}
		w.Put(good)
		w.after(time.Minute)
		if got := w.runsOf("orders"); w.steps.passes == passes || slices.Contains(got, "Running") {
			t.Errorf("with its key it does not go on: %q", got)
		}
	})
}

// Another key has ledgers made anew at once, and not when the next slot is due, which would be lost then; what is
// left alone from then on is said at once, too.
func TestAnotherKeyHasPlansLookedAtAtOnce(t *testing.T) {
	key := func(letter string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: annotations.KeyName}, Data: map[string][]byte{annotations.DataKey: []byte(strings.Repeat(letter, 32))}}
	}
	stuckNow := func(w *world) bool {
		return strings.Contains(w.ConfigMap(shop, "orders").Annotations[annotations.StatusConditions], "RunStuck")
	}
	play(t, func(w *world) {
		w.Put(key("o"), w.document(shop, "orders", "Plan", annotations.KindPlan, every+hook))
		w.begins()
		w.after(time.Minute)
		w.Put(key("n"))
		w.after(time.Minute)
		if !w.said("LedgerLost") {
			t.Error("it is not said at once that the ledger is lost")
		}
		w.after(9 * time.Minute)
		if diff := cmp.Diff([]string{"Succeeded"}, w.runsOf("orders")); diff != "" {
			t.Errorf("the next slot (-want +got):\n%s", diff)
		}
	})
	play(t, func(w *world) {
		w.Put(key("o"), w.document(shop, "orders", "Plan", annotations.KindPlan, every+hook))
		w.begins()
		w.steps.stands = true
		w.after(11 * time.Minute)
		if stuckNow(w) {
			t.Error("its run is said to be left alone")
		}
		w.Put(key("n"))
		w.after(time.Minute)
		if !stuckNow(w) {
			t.Error("it is not said at once that its run is left alone")
		}
	})
}

// What stands under a name decides who looks at it.
func TestADocumentThatBecomesAnother(t *testing.T) {
	play(t, func(w *world) {
		w.Put(w.document(shop, "orders", "Plan", annotations.KindPlan, every+hook), w.document(home, annotations.AgentConfigName, "AgentConfig", annotations.KindAgentConfig, "logLevel: info"))
		w.begins()
		w.after(time.Minute)
		if got := w.condition(home, annotations.AgentConfigName, "Valid"); got == "" {
			t.Errorf("the configuration's annotations are %v", w.ConfigMap(home, annotations.AgentConfigName).Annotations)
		}
		if !w.agent.memory.plans.Has(key("orders")) {
			t.Error("the plan is not known")
		}
		w.Put(w.document(shop, "orders", "Policy", annotations.KindPolicy, "windows: [{days: [Mon], start: '01:00', end: '02:00'}]"))
		w.after(time.Minute)
		if w.agent.memory.plans.Has(key("orders")) {
			t.Error("a policy is known as a plan")
		}
		if cm := w.ConfigMap(shop, "orders"); cm.Annotations[annotations.StatusConditions] == "" {
			t.Errorf("nothing is said on the policy: %v", cm.Annotations)
		}
		w.Put(w.document(shop, "orders", "Plan", annotations.KindPlan, every+hook))
		w.after(time.Minute)
		w.Delete("configmaps", shop, "orders")
		w.after(time.Minute)
		if w.agent.memory.plans.Has(key("orders")) {
			t.Error("a plan that is gone is known")
		}
		if got := w.measured("maint_internal_errors_total"); got[0] != "maint_internal_errors_total 0" {
			t.Error(got)
		}
	})
}

// Nothing is written on a configuration that goes, or whose namespace does.
func TestAConfigurationThatGoesHearsNothing(t *testing.T) {
	for _, c := range []struct {
		name           string
		deleted, going bool
		written        int
	}{{"it stays", false, false, 1}, {"it is being deleted", true, false, 0}, {"its namespace is", false, true, 0}} {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(w *world) {
				a := w.withKey(w.built())
				cm := w.document(home, annotations.AgentConfigName, "AgentConfig", annotations.KindAgentConfig, "logLevel: info")
				w.Put(cm)
				kept := w.ConfigMap(home, annotations.AgentConfigName)
				namespace := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: home}}
				if c.deleted {
					kept.DeletionTimestamp = new(metav1.Now())
				}
				if c.going {
					namespace.DeletionTimestamp = new(metav1.Now())
				}
				w.holds(a, kept)
				if err := a.caches.namespaces.Informer.GetStore().Add(namespace); err != nil {
					t.Fatal(err)
				}
				a.config.Observe(kept)
				if _, err := a.reconcile(w.Context(), types.NamespacedName{Namespace: home, Name: annotations.AgentConfigName}); err != nil {
					t.Error(err)
				}
				if log := w.Log(); len(log) != c.written {
					t.Errorf("written %q", log)
				}
			})
		})
	}
}

// Who may not read the namespace learns from a HibernatePlan, too, that it is being deleted.
func TestAHibernatePlanWhoseNamespaceIsBeingDeletedSaysSo(t *testing.T) {
	play(t, func(w *world) {
		a := w.withKey(w.built())
		cm := w.document(shop, "nights", "HibernatePlan", annotations.KindHibernatePlan, "schedule: {offHours: [{start: '20:00', end: '06:00'}]}")
		cm.Annotations = map[string]string{annotations.StatusSleeps: "2026-11-21T20:00:00Z"}
		w.Put(cm)
		w.holds(a, w.ConfigMap(shop, "nights"))
		if err := a.caches.namespaces.Informer.GetStore().Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: shop, DeletionTimestamp: new(metav1.Now())}}); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time there is nothing to write
			if _, err := a.reconcile(w.Context(), key("nights")); err != nil {
				t.Error(err)
			}
		}
		on := w.ConfigMap(shop, "nights").Annotations
		if len(w.Log()) != 1 || on[annotations.StatusSleeps] != "" || !strings.Contains(on[annotations.StatusConditions], annotations.NamespaceDeleting) {
			t.Errorf("written %q, and it says %v", w.Log(), on)
		}
	})
}

// A ledger that is deleted is made again at once, so that the next slot is not lost; one that
// does not count is said on its plan.
func TestALedgerThatIsLost(t *testing.T) {
	play(t, func(w *world) {
		w.Put(w.document(shop, "orders", "Plan", annotations.KindPlan, every+hook))
		w.begins()
		w.after(time.Minute)
		name := annotations.LedgerName("orders", "uid-orders")
		w.Edit("configmaps", shop, name, func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
		w.after(time.Second)
		if w.ConfigMap(shop, name) == nil {
			t.Fatal("there is no ledger")
		}
		w.DeleteAtOnce("configmaps", shop, name)
		w.after(time.Second)
		if w.ConfigMap(shop, name) == nil {
			t.Error("the ledger is not made again")
		}
		w.agent.ledgerForged(key("orders"), errors.New("its signature is another's"))
		w.agent.ledgerForged(key("nobody"), errors.New("its signature is another's"))
		w.after(time.Minute)
		if !w.said("LedgerLost", "its signature is another's; a new one is created, and slots from before now do not run") {
			t.Errorf("no Event of it among %q", w.Names("events"))
		}
	})
}

// Events wait while there is more to do than a backlog, of plans and of runs together.
func TestEventsWaitForWork(t *testing.T) {
	for _, c := range []struct {
		plans, runs int
		waits       bool
	}{{25, 25, false}, {26, 25, true}, {0, 51, true}} {
		play(t, func(w *world) {
			a := w.built()
			for i := range c.plans {
				a.enqueuePlan(key(strings.Repeat("p", i+1)))
			}
			for i := range c.runs {
				a.enqueueRun(key(strings.Repeat("r", i+1)))
			}
			stop := a.startEvents()
			a.events.recorder.Event(w.document(shop, "orders", "Plan", annotations.KindPlan, hook), corev1.EventTypeNormal, "Said", "so")
			w.after(time.Second)
			if waits := len(w.Names("events")) == 0; waits != c.waits {
				t.Errorf("%d and %d: they wait %t", c.plans, c.runs, waits)
			}
			stop()
		})
	}
}

// With Roles alone the agent may not look at admission policies, and does not.
func TestWhoFollowsTheActorPolicy(t *testing.T) {
	for namespace, want := range map[string]bool{"": true, shop: false} {
		play(t, func(w *world) {
			w.begins(func(o *Options) { o.WatchNamespace = namespace })
			w.after(time.Minute)
			if got := slices.Contains(w.Watches(), "agent validatingadmissionpolicies"); got != want {
				t.Errorf("of namespace %q it watches %q", namespace, w.Watches())
			}
			if got := w.ConfigMap(home, annotations.HeartbeatName).Data[annotations.HeartbeatWatches]; got != namespace {
				t.Errorf("of namespace %q its heartbeat says %q", namespace, got)
			}
			if got := w.ConfigMap(home, annotations.HeartbeatName).Data[annotations.HeartbeatActors]; got != annotations.ActorsUnverified {
				t.Errorf("of namespace %q, without the policy, its heartbeat says of actors %q", namespace, got)
			}
		})
	}
}

// What is wrong with the agent itself, or with its cluster, stands on its configuration for as
// long as it is so.
func TestWhatIsWrongWithAnAgentStandsOnItsConfiguration(t *testing.T) {
	says := func(w *world, kind, want string) {
		t.Helper()
		if got := w.condition(home, annotations.AgentConfigName, kind); got != want {
			t.Errorf("%s is %q, want %q", kind, got, want)
		}
	}
	play(t, func(w *world) { // a clock that is wrong
		var ahead atomic.Int64
		w.Put(w.document(home, annotations.AgentConfigName, "AgentConfig", annotations.KindAgentConfig, "{}"))
		w.begins(func(o *Options) { o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) } })
		for _, c := range []struct {
			by   time.Duration
			want string
		}{{0, ""}, {-6 * time.Minute, "True ClocksDiffer"}, {0, ""}, {6 * time.Minute, "True ClocksDiffer"}, {time.Minute, ""}} {
			ahead.Store(int64(c.by))
			w.after(time.Minute)
			says(w, "Valid", "True InForce")
			says(w, "ClockDoubt", c.want)
			if code, _ := w.answers("/readyz"); code != http.StatusOK { // what sleeps wakes all the same
				t.Errorf("at a distance of %s it says %d", c.by, code)
			}
		}
	})
	play(t, func(w *world) { // an API server before admission policies, which is upgraded
		w.Put(w.document(home, annotations.AgentConfigName, "AgentConfig", annotations.KindAgentConfig, "{}"))
		w.Unserve("validatingadmissionpolicies")
		w.begins()
		w.after(time.Minute)
		says(w, "TokenConfined", "False NoAdmissionPolicies")
		w.Serve(agenttest.Kind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy", Resource: "validatingadmissionpolicies"})
		w.after(10 * time.Minute)
		says(w, "TokenConfined", "")
	})
}

// Actors are certain once all that was written before is seen.
func TestWhenActorsAreSettled(t *testing.T) {
	play(t, func(w *world) {
		w.begins()
		w.after(time.Minute)
		began := time.Now()
		if err := w.agent.awaitActorPolicy(w.Context()); err != nil || time.Since(began) < actorPolicySettles {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		w.Fail(agenttest.When{Verb: "list", Resource: "configmaps"}, agenttest.Always)
		if err := w.agent.awaitActorPolicy(w.Context()); err == nil {
			t.Error("without an answer they are settled")
		}
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		if err := w.agent.awaitActorPolicy(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("when it is over: %v", err)
		}
	})
}

// What the agent itself runs on, as far as it may know.
func TestWhatTheAgentRunsOn(t *testing.T) {
	pod := func(name, node string, ours bool) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}, Spec: corev1.PodSpec{NodeName: node}}
		if ours {
			p.Labels = map[string]string{annotations.AgentLabel: annotations.AgentName}
		}
		return p
	}
	for _, c := range []struct {
		name  string
		world func(*world)
		want  []string
		err   string
	}{
		{"each machine once", func(w *world) {
			w.Put(pod("a", "one", true), pod("b", "one", true), pod("c", "two", true), pod("d", "three", false))
		}, []string{"aws:///i-1", "aws:///i-2"}, ""},
		{"a node that is not known, and one of no machine", func(w *world) { w.Put(pod("a", "ghost", true), pod("b", "bare", true)) }, nil, ""},
		{"pods are none of its business", func(w *world) { w.Deny("", "list", "pods") }, nil, ""},
		{"nobody answers", func(w *world) {
			w.Refuse(agenttest.When{Verb: "list", Resource: "pods"}, agenttest.Always, http.StatusInternalServerError, "etcd is away")
		}, nil, "list the agent's own pods: etcd is away"},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(w *world) {
				a := w.built()
				for name, id := range map[string]string{"one": "aws:///i-1", "two": "aws:///i-2", "three": "aws:///i-3", "bare": ""} {
					slim, err := nodemaintenance.SlimNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id}})
					if err == nil {
						err = a.caches.nodes.Informer.GetStore().Add(slim)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				c.world(w)
				got, err := a.machines(w.Context())
				said := ""
				if err != nil {
					said = err.Error()
				}
				if diff := cmp.Diff(c.want, got); diff != "" || said != c.err {
					t.Errorf("%q (-want +got):\n%s", said, diff)
				}
			})
		})
	}
}

// Which drains are blocked is told of runs that do something, on whatever cluster.
func TestDrainsThatAreBlocked(t *testing.T) {
	draining := func(targets ...run.DrainTarget) func(*run.Run, *run.Journal) {
		return func(_ *run.Run, j *run.Journal) {
			memory, err := json.Marshal(run.DrainMemory{Attempt: 1, Nodes: targets[:1], Elsewhere: targets[1:]})
			if err != nil {
				t.Fatal(err)
			}
			j.Steps = []run.Record{{Path: "drain", Type: plan.TypeDrain, Phase: run.StepRunning, Memory: memory}}
		}
	}
	play(t, func(w *world) {
		a := w.withKey(w.built())
		w.lives(a, shop, "run-a", draining(run.DrainTarget{Name: "one", Blocked: true}, run.DrainTarget{Name: "two"}, run.DrainTarget{Name: "three", Yielded: true}))
		w.lives(a, shop, "run-dry", func(r *run.Run, j *run.Journal) {
			draining(run.DrainTarget{Name: "four", Blocked: true})(r, j)
			r.Request.DryRun = true
		})
		want := []metrics.BlockedDrain{{Namespace: shop, Plan: "orders", Node: "one"}, {Namespace: shop, Plan: "orders", Node: "three"}}
		if diff := cmp.Diff(want, a.blockedDrains()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
