package freezes

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// world is a cluster with the admission policy, and an agent that publishes for it.
type world struct {
	*testing.T
	cluster *agenttest.Cluster
	events  *agenttest.Events
	freezes *Controller
	book    *store.Gates
	runs    *store.Runs
	stop    func()

	mu    sync.Mutex
	woken int // runs
}

func inWorld(t *testing.T, story func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, cluster: agenttest.New(t), events: &agenttest.Events{}, book: store.NewGates(annotations.DefaultNamespace), runs: store.NewRuns(agenttest.Keys())}
		w.cluster.Serve(agenttest.Kind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy", Resource: "validatingadmissionpolicies"})
		w.cluster.Serve(agenttest.Kind{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespaced: true})
		w.cluster.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "maint-runner"}}, admission("deployments", "deployments/scale"))
		w.deployment("web", "year-end")
		story(w)
		w.stop()
	})
}

// admission is the policy that enforces freezes, of some kinds of apps.
func admission(resources ...string) *admissionv1.ValidatingAdmissionPolicy {
	rule := admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{Rule: admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: resources}}}
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: annotations.FreezePolicyName},
		Spec:       admissionv1.ValidatingAdmissionPolicySpec{MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{rule}}},
	}
}

func (w *world) deployment(name, freeze string) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	if freeze != "" {
		d.Labels = map[string]string{annotations.LabelFreeze: freeze}
	}
	w.cluster.Put(d)
}

// policy has the resolver know a policy, as the spec of its document says.
func (w *world) policy(namespace, name, spec string) {
	w.Helper()
	state := annotations.Policy(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{annotations.LabelKind: annotations.KindPolicy}},
		Data:       map[string]string{annotations.DataPolicy: "apiVersion: " + document.APIVersion + "\nkind: Policy\nspec: " + spec + "\n"},
	})
	w.book.Change(func(b *policy.Resolver) { b.PutPolicy(state) })
	if w.freezes != nil {
		w.freezes.EnqueueAll()
	}
	w.after(0)
}

// begins starts an agent.
func (w *world) begins() {
	w.Helper()
	conn, accounts := w.cluster.Connect()
	namespaces := agenttest.Metadata(conn, "namespaces", store.Strip)
	log := slog.New(slog.DiscardHandler)
	w.freezes = New(Config{
		Clients: Clients{Kube: conn.Kube, Meta: conn.Meta, Accounts: accounts}, Stores: Stores{Namespaces: namespaces.Informer.GetStore(), Gates: w.book, Runs: w.runs}, Scope: Scope{Namespace: annotations.DefaultNamespace},
		Queue: queue.New(queue.Config{Name: "freezes", Now: time.Now, Log: log, OnPanic: func() { w.Error("it panics") }}), Events: w.events, Log: log, Now: time.Now,
		WakeRun: func(types.NamespacedName) { w.mu.Lock(); defer w.mu.Unlock(); w.woken++ },
	})
	namespaces.Handle(func(o any) { w.freezes.NamespaceSeen(o.(*metav1.PartialObjectMetadata)) }, func(any) {})
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	go namespaces.Informer.RunWithContext(ctx)
	synctest.Wait()
	go func() { defer close(done); w.freezes.Run(ctx) }()
	w.stop = func() { cancel(); <-done; synctest.Wait() }
	w.after(0)
}

// after lets some time pass, and then all that follows at once.
func (w *world) after(d time.Duration) {
	time.Sleep(d + 20*time.Second) // a queue has its pauses
	synctest.Wait()
}

func (w *world) says(want string) {
	w.Helper()
	if got := w.cluster.Get("namespaces", "", "shop").GetAnnotations()[annotations.StatusFrozen]; got != want {
		w.Errorf("the namespace says %q, want %q", got, want)
	}
}

func TestWhatALabelNamesIsPublished(t *testing.T) {
	inWorld(t, func(w *world) {
		w.begins()
		w.says("deployments.apps/web=frozen") // the policy is missing
		w.policy("shop", "year-end", "{strategy: Permissive}")
		w.says("deployments.apps/web=open")
		w.policy("shop", "year-end", "{strategy: Restrictive}")
		w.says("deployments.apps/web=frozen")
		w.deployment("api", "shared")
		w.policy(annotations.DefaultNamespace, "shared", "{strategy: Permissive}")
		w.says("deployments.apps/api=open,deployments.apps/web=frozen")
		w.policy(annotations.DefaultNamespace, "shared", "{strategy: Restrictive}")
		w.policy("shop", "shared", "{strategy: Permissive}") // a tenant's own opens nothing that the agent's closes
		w.says("deployments.apps/api=frozen,deployments.apps/web=frozen")
		w.policy(annotations.DefaultNamespace, "shared", "{strategy: Permissive}")
		w.says("deployments.apps/api=open,deployments.apps/web=frozen")
		w.policy("shop", "shared", "{strategy: Restrictive}")
		w.says("deployments.apps/api=frozen,deployments.apps/web=frozen")
		w.policy("shop", "shared", "{strategy: Permissive}")
		w.says("deployments.apps/api=open,deployments.apps/web=frozen")
		w.deployment("web", "")
		w.after(0)
		w.says("deployments.apps/api=open")
		w.cluster.Delete("deployments", "shop", "api")
		w.after(0)
		w.says("")
	})
}

// The instant at which a window closes stands there before, and the namespace says so
// when it has come.
func TestAWindowsEndIsPublished(t *testing.T) {
	inWorld(t, func(w *world) { // time begins on a Saturday, 2000-01-01
		w.policy("shop", "year-end", `{strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{days: [Sat], start: "00:00", end: "01:00"}]}}`)
		w.begins()
		w.says("deployments.apps/web=open/2000-01-01T01:00:00Z")
		w.after(time.Hour)
		w.says("deployments.apps/web=frozen")
		w.after(6 * 24 * time.Hour)
		w.after(23 * time.Hour)
		w.says("deployments.apps/web=open/2000-01-08T01:00:00Z")
	})
}

func TestWhatSomebodyElseWritesIsWrittenOver(t *testing.T) {
	inWorld(t, func(w *world) {
		w.begins()
		w.cluster.Edit("namespaces", "", "shop", func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{annotations.StatusFrozen: "", "mine": "1"})
		})
		w.after(0)
		w.says("deployments.apps/web=frozen")
		if w.cluster.Get("namespaces", "", "shop").GetAnnotations()["mine"] != "1" {
			t.Error("another annotation is gone")
		}
	})
}

// Without the admission policy nothing is watched and nothing said; a kind that it takes
// up is.
func TestTheAdmissionPolicySaysWhatIsWatched(t *testing.T) {
	inWorld(t, func(w *world) {
		w.cluster.Serve(agenttest.Kind{Group: "apps", Version: "v1", Kind: "StatefulSet", Resource: "statefulsets", Namespaced: true})
		w.cluster.Put(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Labels: map[string]string{annotations.LabelFreeze: "year-end"}}})
		w.begins()
		w.says("deployments.apps/web=frozen")
		w.cluster.Put(admission("deployments", "statefulsets"))
		w.after(0)
		w.says("deployments.apps/web=frozen,statefulsets.apps/db=frozen")
		w.cluster.Delete("validatingadmissionpolicies", "", annotations.FreezePolicyName)
		w.after(0)
		w.says("")
		for _, watch := range w.cluster.Watches() {
			if strings.Contains(watch, "deployments") || strings.Contains(watch, "statefulsets") {
				t.Errorf("still watched: %s", watch)
			}
		}
	})
}

// An API server that starts refuses everybody for a while: what is frozen stays so. A right that is
// taken ends the freezes, and one that comes back brings them back.
func TestFreezesOutliveARefusalThatDoesNotLast(t *testing.T) {
	const refusals = 3
	reads := agenttest.When{Resource: "validatingadmissionpolicies"}
	for _, code := range []int{403, 404} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.begins()
				asked := w.cluster.Asked(reads)
				w.cluster.Refuse(reads, refusals, code, "no")
				for range 10 { // a watch lasts minutes
					w.after(time.Minute)
					w.says("deployments.apps/web=frozen")
				}
				if more := w.cluster.Asked(reads) - asked; more <= refusals {
					t.Fatalf("it asked %d times: not all of %d refusals were heard", more, refusals)
				}
				mend := w.cluster.Refuse(reads, agenttest.Always, code, "no")
				w.after(10 * time.Minute)
				w.says("")
				mend()
				w.after(2 * time.Minute)
				w.says("deployments.apps/web=frozen")
			})
		})
	}
}

// Where the objects of a kind cannot be listed, what was said of them stays.
func TestWhatIsNotKnownYetIsNotOpened(t *testing.T) {
	inWorld(t, func(w *world) {
		w.begins()
		w.says("deployments.apps/web=frozen")
		w.stop()
		mend := w.cluster.Refuse(agenttest.When{Resource: "deployments"}, agenttest.Always, 500, "no")
		w.begins()
		w.says("deployments.apps/web=frozen")
		w.policy("shop", "year-end", "{strategy: Permissive}")
		w.says("deployments.apps/web=frozen")
		mend()
		w.after(5 * time.Minute)
		w.says("deployments.apps/web=open")
	})
}

// wakes says how many runs were woken since it was last asked.
func (w *world) wakes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.woken = 0 }()
	return w.woken
}

// runOf puts a run at work of a plan that freezes its target.
func (w *world) runOf(target, phase string) *store.CachedRun {
	r := run.Run{Name: "maint-run-orders-a", Namespace: "shop", Plan: "orders", PlanUID: "1", Spec: plan.Spec{FreezeTarget: true, Target: &plan.ObjectRef{APIVersion: "apps/v1", Kind: target, Name: "web"}}}
	l := &store.CachedRun{
		Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: r.Name, UID: "2", ResourceVersion: "1", Labels: map[string]string{annotations.LabelPlan: "orders"}}},
		Run:    r, Journal: run.Journal{Phase: run.Phase(phase)},
	}
	w.runs.Put(l)
	return l
}

func TestARunsTargetIsHeldWhileItLives(t *testing.T) {
	inWorld(t, func(w *world) {
		w.policy("shop", "year-end", "{strategy: Permissive}")
		w.begins()
		l := w.runOf("Deployment", "Pending")
		w.freezes.RunSeen(l.Key())
		w.after(0)
		w.says("deployments.apps/web=open") // it has not begun
		l = w.runOf("Deployment", "Running")
		if held, why := w.freezes.Holds(w.Context(), l); held || why != "" {
			t.Errorf("before it is written it holds %v, %q", held, why)
		}
		w.after(0)
		w.says("deployments.apps/web=run/maint-run-orders-a")
		if held, why := w.freezes.Holds(w.Context(), l); !held || why != "" {
			t.Errorf("it holds %v, %q", held, why)
		}
		w.runs.Gone(l.Key(), 9)
		w.freezes.RunSeen(l.Key())
		w.after(0)
		w.says("deployments.apps/web=open")
	})
}

// A run that waits for its target to be frozen need not look by itself.
func TestARunHearsThatItsTargetIsFrozen(t *testing.T) {
	inWorld(t, func(w *world) {
		w.policy("shop", "year-end", "{strategy: Permissive}")
		l := w.runOf("Deployment", "Running")
		w.begins()
		if held, why := w.freezes.Holds(w.Context(), l); !held || w.wakes() == 0 {
			w.Errorf("an agent that begins: it holds %t, %q, and nobody was woken", held, why)
		}
		w.freezes.EnqueueAll()
		w.after(0)
		if n := w.wakes(); n != 0 {
			w.Errorf("where nothing is news, %d were woken", n)
		}
		w.runs.Gone(l.Key(), 9)
		w.freezes.RunSeen(l.Key())
		w.after(0)
		w.wakes()
		mend := w.cluster.Refuse(agenttest.When{Resource: "namespaces", Verb: "patch"}, agenttest.Always, 403, "no")
		l = w.runOf("Deployment", "Running")
		w.freezes.Holds(w.Context(), l)
		w.after(0)
		if n := w.wakes(); n != 1 {
			w.Errorf("when it cannot be published, %d were woken", n)
		}
		mend()
	})
}

func TestADryRunFreezesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.policy("shop", "year-end", "{strategy: Permissive}")
		w.begins()
		l := w.runOf("Deployment", "Running")
		l.Run.Request.DryRun = true
		w.runs.Put(l)
		w.freezes.RunSeen(l.Key())
		w.after(0)
		w.says("deployments.apps/web=open")
	})
}

// What the API server cannot be asked about is not opened meanwhile.
func TestARunsTargetStaysHeldWhileNobodyAnswers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.policy("shop", "year-end", "{strategy: Permissive}")
		w.runOf("Deployment", "Running")
		w.begins()
		w.says("deployments.apps/web=run/maint-run-orders-a")
		time.Sleep(5 * time.Minute) // until an answer is believed
		mend := w.cluster.Refuse(agenttest.When{Resource: "selfsubjectaccessreviews"}, agenttest.Always, 500, "no")
		w.freezes.EnqueueAll()
		w.after(0)
		w.says("deployments.apps/web=run/maint-run-orders-a")
		mend()
		w.cluster.Deny("system:serviceaccount:shop:maint-runner", "patch", "deployments")
		w.after(0)
		w.says("deployments.apps/web=open")
	})
}

func TestATargetThatCannotBeFrozenIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		before func(w *world)
		kind   string
		want   string
	}{
		"the admission policy is not there": {func(w *world) { w.cluster.Delete("validatingadmissionpolicies", "", annotations.FreezePolicyName) }, "Deployment", "is not there"},
		"the API server knows none":         {func(w *world) { w.cluster.Unserve("validatingadmissionpolicies") }, "Deployment", "is not there"},
		"it does not look at the kind":      {func(w *world) { w.cluster.Put(admission("statefulsets")) }, "Deployment", "does not look at deployments.apps"},
		"nobody knows the kind":             {func(*world) {}, "Car", "Car"},
		"its account may not change it":     {func(w *world) { w.cluster.Deny("system:serviceaccount:shop:maint-runner", "patch", "deployments") }, "Deployment", "may not patch deployments.apps"},
		"the agent may not write":           {func(w *world) { w.cluster.Deny("", "patch", "namespaces") }, "Deployment", "could not be written"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				c.before(w)
				l := w.runOf(c.kind, "Running")
				w.begins()
				w.freezes.Holds(w.Context(), l)
				w.after(time.Minute) // a refusal has to last
				if held, why := w.freezes.Holds(w.Context(), l); held || !strings.Contains(why, c.want) {
					t.Errorf("it holds %v, %q, want %q", held, why, c.want)
				}
			})
		})
	}
}

// What has no room on the namespace closes the others only where it may not be changed itself.
// Whoever may patch a namespace may fill its annotations, so that nothing longer can be written there.
func TestWhatIsFrozenWithoutRoomOnTheNamespaceStaysFrozen(t *testing.T) {
	inWorld(t, func(w *world) {
		w.policy("shop", "year-end", "{strategy: Permissive}")
		w.begins()
		w.says("deployments.apps/web=open")
		fill := func(value string) {
			w.cluster.Edit("namespaces", "", "shop", func(u *unstructured.Unstructured) {
				on := u.GetAnnotations()
				on["example.org/x"] = ""
				if value != "" {
					on["example.org/x"] = strings.Repeat(value, annotations.MaxBytes-annotations.Bytes(on))
				}
				u.SetAnnotations(on)
			})
			w.after(0)
		}
		fill("y")
		w.policy("shop", "year-end", "{strategy: Restrictive}")
		w.says("*=full")
		if said := strings.Join(w.events.All(), "\n"); !strings.Contains(said, "FreezesNotPublished") || !strings.Contains(said, "a shorter list is there instead, and all labelled objects that it does not name count as frozen: ") || !strings.Contains(said, "Too long") {
			t.Errorf("nobody is told: %s", said)
		}
		w.policy("shop", "year-end", "{strategy: Permissive}")
		w.says("deployments.apps/web=open")
		w.policy("shop", "year-end", "{strategy: Restrictive}")
		w.says("*=full")
		fill("") // there is room again
		w.after(queue.ResyncPeriod)
		w.says("deployments.apps/web=frozen")
	})
}

// Without room for the first list nothing is frozen, and the Event says so.
func TestAFirstListWithoutRoomFreezesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		mend := w.cluster.Refuse(agenttest.When{Verb: "patch", Resource: "namespaces"}, agenttest.Always, 422, "Too long")
		w.begins()
		w.says("")
		if said := strings.Join(w.events.All(), "\n"); !strings.Contains(said, "there was none before, so nothing is frozen: ") {
			t.Errorf("it says %s", said)
		}
		mend()
		w.after(queue.ResyncPeriod)
		w.says("deployments.apps/web=frozen")
	})
}

func TestWhatHasNoRoomIsSaid(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 400 {
			w.deployment(fmt.Sprintf("%s-%d", strings.Repeat("x", 240), i), "year-end")
		}
		w.policy("shop", "year-end", `{strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{days: [Sat], start: "00:00", end: "01:00"}]}}`)
		w.begins() // on a Saturday
		says := func(rest, event string) {
			t.Helper()
			if got := w.cluster.Get("namespaces", "", "shop").GetAnnotations()[annotations.StatusFrozen]; !strings.HasPrefix(got, rest+",deployments.apps/") {
				t.Errorf("the namespace says %.60q, want %q", got, rest)
			}
			if all := strings.Join(w.events.All(), "\n"); !strings.Contains(all, event) {
				t.Errorf("no Event says %q:\n%s", event, all)
			}
		}
		says("*=open/2000-01-01T01:00:00Z", "have no room in status.maint.dev/frozen: their policies permit change now")
		w.after(time.Hour)
		says("*=full", "have no room in status.maint.dev/frozen: they count as frozen, whatever their policies say")
	})
}
