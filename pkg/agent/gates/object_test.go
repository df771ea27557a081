package gates

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

const (
	shut = "{strategy: Restrictive, gates: [" + fluxGate + "]}"
	open = "{strategy: Permissive, gates: [" + fluxGate + "]}"
)

func appPatch() agenttest.When {
	return agenttest.When{User: "maint-runner", Verb: "patch", Resource: "kustomizations"}
}

func TestWhatAPolicyNamesIsHeldWhileChangeIsNotPermitted(t *testing.T) {
	for name, c := range map[string]struct {
		was  any            // spec.suspend before
		then func(w *world) // after it was closed
		held any            // spec.suspend while the policy is restrictive
		left any            // and after it permits change
		said string         // in an Event
	}{
		"what was open is closed, and opened as it was found": {held: true, said: "Normal GateOpened a: Opened, as it was found"},
		"false is given back as false":                        {was: false, held: true, left: false, said: "Normal GateClosed a: Closed by its gate (policy shop/p: "},
		"what somebody closed stays closed":                   {was: true, held: true, left: true},
		"what somebody opens is closed again, and opened at the end": {
			then: func(w *world) { w.sets("a", false) }, held: true, left: false, said: "Warning GateClosedAgain a: Somebody opened it",
		},
		"what somebody else wrote on it stays": {
			then: func(w *world) {
				w.cluster.Edit("kustomizations", "shop", "a", func(u *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(u.Object, "5m", "spec", "interval")
				})
				w.after(time.Second)
			}, held: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.app("a", c.was)
				w.policy("p", shut)
				w.begins()
				w.after(time.Second)
				if c.then != nil {
					c.then(w)
				}
				w.after(time.Minute)
				if got := w.suspended("a"); got != c.held {
					t.Errorf("while change is not permitted it is %v, want %v", got, c.held)
				}
				if got := w.said("a", annotations.StatusPermitted); got != "false" {
					t.Errorf("it says permitted: %q", got)
				}
				if got := w.changes("a"); got != "ChangesPaused=True (Restrictive) ChangesPending=False (Nothing)" {
					t.Errorf("its conditions are %s", got)
				}
				if got := w.condition("p"); got != "Held: 1 objects: 1 closed, 0 open (closed: Kustomization shop/a)" {
					t.Errorf("its policy says %q", got)
				}
				w.policy("p", open)
				w.after(time.Minute)
				if got := w.suspended("a"); got != c.left {
					t.Errorf("in the end it is %v, want %v", got, c.left)
				}
				if got := w.said("a", annotations.StatusPermitted); got != "true" {
					t.Errorf("it says permitted: %q", got)
				}
				if got := w.changes("a"); got != "ChangesPaused=False (Permissive) ChangesPending=False (Nothing)" {
					t.Errorf("its conditions are %s", got)
				}
				if c.said != "" {
					w.wantEvent(c.said)
				}
				w.cluster.ClearLog()
				w.after(10 * time.Minute)
				if n := w.patches("a"); n > 0 {
					t.Errorf("at rest it is written %d times", n)
				}
			})
		})
	}
}

func TestAGateIsLetGo(t *testing.T) {
	for name, then := range map[string]func(w *world){
		"when its policy is deleted":           func(w *world) { w.cluster.Delete("configmaps", "shop", "p") },
		"when its policy names it no longer":   func(w *world) { w.policy("p", "{strategy: Restrictive}") },
		"when its policy names another object": func(w *world) { w.policy("p", strings.Replace(shut, "knob", "name: b, knob", 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.app("a", nil)
				w.policy("p", shut)
				w.begins()
				if w.suspended("a") != true || !w.recorded("p") {
					t.Fatal("it is not held")
				}
				then(w)
				w.after(2 * time.Minute)
				if got := w.suspended("a"); got != nil {
					t.Errorf("it is %v", got)
				}
				for _, key := range []string{annotations.StatusGate, annotations.StatusPermitted, annotations.StatusBehavior, annotations.StatusConditions} {
					if got := w.said("a", key); got != "" {
						t.Errorf("%s stays: %s", key, got)
					}
				}
				if other := strings.Contains(name, "another"); w.recorded("p") != other || w.gates.Count() > 0 != other {
					t.Errorf("the record is there: %t, with %d watches", w.recorded("p"), w.gates.Count())
				}
			})
		})
	}
}

// What it may hold is written down before the first object is closed.
func TestTheRecordIsWrittenBeforeAnythingIsClosed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.app("a", nil)
		w.policy("p", shut)
		w.begins()
		log := w.cluster.Log()
		if len(log) != 2 || !strings.HasPrefix(log[0], "agent create configmaps shop/") || log[1] != "maint-runner patch kustomizations shop/a" {
			t.Errorf("it wrote %q", log)
		}
	})
}

// An agent that finds the record opens what the one before closed, though the policy is
// gone.
func TestAnotherAgentOpensWhatOneBeforeHasClosed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.app("a", nil)
		w.policy("p", shut)
		w.begins()
		w.stop()
		w.cluster.Delete("configmaps", "shop", "p")
		w.begins()
		w.after(2 * time.Minute)
		if got := w.suspended("a"); got != nil || w.recorded("p") {
			t.Errorf("it is %v, and the record there: %t", got, w.recorded("p"))
		}
	})
}

// An earlier version took a kind in lower case. What it has closed by such a gate is opened.
func TestWhatAnEarlierVersionClosedByAnotherSpellingIsOpened(t *testing.T) {
	for name, then := range map[string]func(w *world){
		"its policy is deleted":            func(w *world) { w.cluster.Delete("configmaps", "shop", "p") },
		"its policy names it no longer":    func(w *world) { w.policy("p", "{strategy: Restrictive}") },
		"its policy names it as it should": func(w *world) { w.policy("p", strings.Replace(shut, "Restrictive", "Permissive", 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.app("a", nil)
				w.policy("p", shut)
				w.begins()
				w.stop()
				cm := w.cluster.ConfigMap("shop", annotations.GateName("p"))
				cm.Data[annotations.DataGate] = strings.ReplaceAll(cm.Data[annotations.DataGate], `"Kustomization"`, `"kustomization"`)
				w.cluster.Put(agenttest.Signed(w, cm))
				then(w)
				w.begins()
				w.after(2 * time.Minute)
				if got := w.suspended("a"); got != nil {
					t.Errorf("it is %v", got)
				}
				left := w.recorded("p") && strings.Contains(w.cluster.ConfigMap("shop", annotations.GateName("p")).Data[annotations.DataGate], `"kustomization"`)
				if named := strings.Contains(name, "as it should"); left || w.recorded("p") != named {
					t.Errorf("the record is there: %t, with what has left: %t", w.recorded("p"), left)
				}
			})
		})
	}
}

func TestAGateThatCannotBeWritten(t *testing.T) {
	var taken func() // what it says, from then on
	for name, c := range map[string]struct {
		given     func(w *world)
		soon      string // after ten seconds, of what may pass by itself
		condition string // after ten seconds, or half a minute more
		said      string
		mend      func(w *world)
	}{
		"somebody wrote on the object meanwhile": {
			given: func(w *world) {
				w.cluster.Before(appPatch(), func() {
					w.cluster.Edit("kustomizations", "shop", "a", func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"a": "b"}) })
				})
			}, condition: "Held: 1 objects: 1 closed, 0 open (closed: Kustomization shop/a)",
		},
		"the reply is lost":              {given: func(w *world) { w.cluster.LoseReply(appPatch(), 1) }, condition: "Held: 1 objects: 1 closed, 0 open (closed: Kustomization shop/a)"},
		"the API server is away a while": {given: func(w *world) { w.cluster.Fail(appPatch(), 3) }, condition: "Held: 1 objects: 1 closed, 0 open (closed: Kustomization shop/a)"},
		"its account may not patch": {
			given: func(w *world) { w.cluster.Deny(runner, "patch", "kustomizations") }, condition: "Refused: the ServiceAccount maint-runner of namespace shop may not patch kustomizations.kustomize.toolkit.fluxcd.io in namespace shop: grant patch",
			said: "Warning GateRefused p: the ServiceAccount maint-runner", mend: func(w *world) { w.cluster.Allow(runner, "patch", "kustomizations") },
		},
		"its account may not watch": {
			given: func(w *world) { w.cluster.Deny(runner, "list", "kustomizations") }, soon: "Refused: kustomizations.kustomize.toolkit.fluxcd.io in namespace shop cannot be read yet: ", condition: "Refused: the ServiceAccount maint-runner of namespace shop may not list and watch kustomizations",
			said: "Warning GateRefused p: ", mend: func(w *world) { w.cluster.Allow(runner, "list", "kustomizations") },
		},
		"its account is not there": {
			given: func(w *world) { w.cluster.Delete("serviceaccounts", "shop", "maint-runner") }, condition: "Refused: the ServiceAccount maint-runner does not exist in namespace shop",
			said: "Warning GateRefused p: ", mend: func(w *world) {
				w.cluster.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "maint-runner"}})
			},
		},
		"its kind is not served": {
			given: func(w *world) { w.cluster.Unserve("kustomizations") }, condition: "Refused: kind Kustomization of kustomize.toolkit.fluxcd.io/v1 is not known to this cluster",
			said: "Warning GateRefused p: ", mend: func(w *world) {
				w.cluster.Serve(agenttest.Kind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization", Resource: "kustomizations", Namespaced: true})
			},
		},
		"it is refused for what it says": {
			given: func(w *world) { taken = w.cluster.Refuse(appPatch(), agenttest.Always, 422, "spec.suspend: no") }, condition: "Refused: Kustomization/a cannot be written: spec.suspend: no",
			said: "Warning GateRefused p: Kustomization/a cannot be written", mend: func(*world) { taken() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.app("a", nil)
				w.policy("p", shut)
				c.given(w)
				w.begins()
				w.after(10 * time.Second)
				if c.soon != "" {
					if got := w.condition("p"); !strings.HasPrefix(got, c.soon) || w.heard(c.said) != 0 {
						t.Errorf("its policy says %q, want %q; said: %q", got, c.soon, w.events.All())
					}
					w.after(30 * time.Second)
				}
				if got := w.condition("p"); !strings.HasPrefix(got, c.condition) {
					t.Errorf("its policy says %q, want %q", got, c.condition)
				}
				if c.said != "" && w.heard(c.said) != 1 {
					t.Errorf("said %d times: %q", w.heard(c.said), w.events.All())
				}
				if c.mend != nil {
					c.mend(w)
					w.after(2 * time.Minute)
				}
				if got := w.suspended("a"); got != true {
					t.Errorf("in the end it is %v", got)
				}
				if got := w.condition("p"); got != "Held: 1 objects: 1 closed, 0 open (closed: Kustomization shop/a)" {
					t.Errorf("in the end its policy says %q", got)
				}
			})
		})
	}
}

func TestTwoPoliciesOpenAnObjectTogether(t *testing.T) {
	inWorld(t, func(w *world) {
		w.app("a", nil)
		w.policy("one", shut)
		w.policy("two", shut)
		w.begins()
		if w.gates.Count() != 1 {
			t.Errorf("%d watches for one account and kind", w.gates.Count())
		}
		w.policy("one", open)
		w.after(time.Minute)
		if got := w.suspended("a"); got != true {
			t.Errorf("with one policy left it is %v", got)
		}
		w.cluster.Delete("configmaps", "shop", "two")
		w.after(time.Minute)
		if got := w.suspended("a"); got != nil {
			t.Errorf("it is %v", got)
		}
	})
}

// A broken policy holds what it last named.
// Anybody may write a policy that names what is in another namespace.
func TestAPolicyWhoseAccountMayNotWriteAnObjectHasNoSayInIt(t *testing.T) {
	const attacker, kustomizations = "system:serviceaccount:evil:maint-runner", "kustomizations"
	for name, denied := range map[string][]string{"may do nothing": {"list", "watch", "patch"}, "may look": {"patch"}} {
		for first, order := range map[string]func(theirs, ours func()){
			"they come first": func(theirs, ours func()) { theirs(); ours() },
			"they come later": func(theirs, ours func()) { ours(); theirs() },
		} {
			t.Run(name+", "+first, func(t *testing.T) {
				inWorld(t, func(w *world) {
					w.cluster.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "maint-runner"}})
					for _, verb := range denied {
						w.cluster.Deny(attacker, verb, kustomizations)
					}
					w.app("a", nil)
					w.begins()
					order(
						func() { w.policyOf("evil", "p", named("Restrictive", "namespace: shop, knob: flux")) },
						func() { w.policy("p", named("Permissive", "knob: flux")) },
					)
					w.after(time.Minute)
					wrote := w.patches("a")
					for range 3 {
						w.policyOf("evil", "p", named("Permissive", "namespace: shop, knob: flux"))
						w.after(time.Second)
						w.policyOf("evil", "p", named("Restrictive", "namespace: shop, knob: flux"))
						w.after(time.Second)
					}
					if got := w.said("a", annotations.StatusPermitted); got != "true" || w.suspended("a") != nil {
						t.Errorf("permitted: %q, suspended: %v", got, w.suspended("a"))
					}
					if got := w.changes("a"); !strings.Contains(got, "ChangesPaused=False") {
						t.Error(got)
					}
					if more := w.patches("a") - wrote; more > 0 {
						t.Errorf("their edits had it written %d times more", more)
					}
					for _, h := range w.gates.Objects() {
						if len(h.Uses) != 1 || h.Uses[0].Namespace != "shop" || !h.Verdict(time.Now()).Permitted {
							t.Errorf("the metrics show %s by %v", h.Name, h.Uses)
						}
					}
				})
			})
		}
	}
}

func TestAPolicyWhoseAccountMayWriteAnObjectHasASayInIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.cluster.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "maint-runner"}})
		w.app("a", nil)
		w.begins()
		w.policy("p", named("Permissive", "knob: flux"))
		w.policyOf("ops", "p", named("Restrictive", "namespace: shop, knob: flux"))
		w.after(time.Minute)
		if got := w.said("a", annotations.StatusPermitted); got != "false" || w.suspended("a") != true {
			t.Errorf("permitted: %q, suspended: %v", got, w.suspended("a"))
		}
		w.cluster.Deny("system:serviceaccount:ops:maint-runner", "patch", "kustomizations")
		w.after(5 * time.Minute)
		w.policy("p", named("Permissive", "knob: flux, selector: {}")) // another look at it
		w.after(time.Second)
		if got := w.said("a", annotations.StatusPermitted); got != "false" {
			t.Errorf("it is still held by a policy whose account has lost its right, permitted: %q", got)
		}
	})
}

// Two watches that do not have the same answer write an object's status against each other, since
// each write is a change for the other one.
func TestARightThatComesLaterStartsNoQuarrel(t *testing.T) {
	const other = "system:serviceaccount:ops:maint-runner"
	inWorld(t, func(w *world) {
		w.cluster.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "maint-runner"}})
		w.cluster.Deny(other, "patch", "kustomizations")
		w.app("a", nil)
		w.begins()
		w.policy("p", named("Permissive", "knob: flux"))
		windows := func(end string) {
			w.policyOf("ops", "p", named("MaintenanceSchedule, maintenanceSchedule: {windows: [{start: '00:00', end: '"+end+"'}]}", "namespace: shop, knob: flux"))
		}
		windows("23:00")
		w.after(time.Minute)
		windows("22:00")
		w.after(time.Second)
		w.cluster.Allow(other, "patch", "kustomizations")
		wrote := w.patches("a")
		windows("21:00")
		w.after(3 * time.Minute)
		if more := w.patches("a") - wrote; more > 2 {
			t.Errorf("it was written %d times", more)
		}
		windows("20:00")
		w.after(time.Second)
		if got := w.said("a", annotations.StatusBehavior); !strings.Contains(got, "T20:00:00Z") {
			t.Error(got)
		}
	})
}

// named is a policy of a strategy that holds Kustomizations.
func named(strategy, rest string) string {
	return "{strategy: " + strategy + ", gates: [{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, " + rest + "}]}"
}

func TestABrokenPolicyGoesOnHolding(t *testing.T) {
	inWorld(t, func(w *world) {
		w.app("a", nil)
		w.policy("p", shut)
		w.begins()
		w.policy("p", "{strategy: Unheard}")
		w.after(time.Minute)
		if got := w.suspended("a"); got != true || !w.recorded("p") {
			t.Errorf("it is %v", got)
		}
	})
}

func TestWhatSomebodyKeepsOpeningIsClosedLaterAndLaterAndSaid(t *testing.T) {
	inWorld(t, func(w *world) {
		w.app("a", nil)
		w.policy("p", shut)
		w.begins()
		for range 600 {
			w.sets("a", false)
			w.after(time.Second)
		}
		if n := w.patches("a"); n < 5 || n > 40 {
			t.Errorf("closed %d times in ten minutes", n)
		}
		if got := w.condition("p"); !strings.HasPrefix(got, "Refused: Kustomization/a is opened by somebody again and again") {
			t.Errorf("its policy says %q", got)
		}
	})
}

// Whatever a gate writes, and whatever other gates write, nothing is written as fast as it goes.
func TestGatesThatUndoThemselvesOrEachOtherDoSoSeldomAndSaySo(t *testing.T) {
	gate := func(rest string) string {
		return "{strategy: Restrictive, gates: [{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, " + rest + "}]}"
	}
	for name, c := range map[string]struct {
		policies map[string]string
		said     string
	}{
		"a knob that takes the object out of its own selection": {
			map[string]string{"p": gate("selector: {matchLabels: {app: a}}, knob: {path: /metadata/labels/app, closed: shut, open: a}")},
			"Refused: Kustomization/a does not stay closed, and the agent closes it after longer and longer pauses: the gate sets the label app, by which it selects",
		},
		"a knob that takes a label away by which it selects": {
			map[string]string{"p": gate("selector: {matchExpressions: [{key: app, operator: Exists}]}, knob: {path: /metadata/labels/app, closed: null, open: a}")},
			"Refused: Kustomization/a does not stay closed, and the agent closes it after longer and longer pauses: the gate sets the label app, by which it selects",
		},
		"two gates that want different values": {
			map[string]string{"p": gate("name: a, knob: {path: /spec/mode, closed: v1, open: o}"), "q": gate("name: a, knob: {path: /spec/mode, closed: v2, open: o}")},
			"Refused: Kustomization/a does not stay closed, and the agent closes it after longer and longer pauses: /spec/mode of it is also set by policy shop/",
		},
		"two gates of different fields, one of which permits change": {
			map[string]string{"p": gate("name: a, knob: {path: /spec/mode, closed: v1, open: o}"), "q": strings.Replace(gate("name: a, knob: {path: /spec/other, closed: v2, open: o}"), "Restrictive", "Permissive", 1)},
			"Held: 1 objects: 1 closed, 0 open (closed: Kustomization shop/a)",
		},
		"a gate that closes by the label by which another one selects": {
			map[string]string{
				"p": gate("selector: {matchLabels: {app: a}}, knob: {path: /metadata/labels/tier, closed: shut, open: o}"),
				"q": gate("selector: {matchLabels: {tier: shut}}, knob: {path: /metadata/labels/app, closed: gone, open: a}"),
			},
			"Refused: Kustomization/a does not stay closed, and the agent closes it after longer and longer pauses: does what its policy says or names change",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.app("a", nil)
				for policy, spec := range c.policies {
					w.policy(policy, spec)
				}
				w.begins()
				w.after(10 * time.Second)
				if n := w.patches("a"); n > 40 {
					t.Errorf("it is written %d times in the first ten seconds", n)
				}
				said := map[string]bool{}
				for range 30 {
					w.after(time.Minute)
					for policy := range c.policies {
						said[w.condition(policy)] = true
					}
				}
				before := w.patches("a")
				w.after(10 * time.Minute)
				if n := w.patches("a") - before; n > 24 {
					t.Errorf("after half an hour it is still written %d times in ten minutes", n)
				}
				found := false
				for text := range said {
					found = found || strings.HasPrefix(text, c.said)
				}
				if !found {
					t.Errorf("its policies say %v, want %q", said, c.said)
				}
			})
		})
	}
}

// What the agent tells of documents and nodes is others' to write: a gate that took it away, or
// wrote its own, would do so without end.
func TestAGateLeavesWhatOthersTellOfDocumentsAndNodes(t *testing.T) {
	const gates = "{strategy: Restrictive, gates: [{apiVersion: v1, kind: ConfigMap, NAMED knob: {path: /data/x, closed: a, open: b}}, {apiVersion: v1, kind: Node, NAMED knob: {path: /metadata/annotations/x, closed: a, open: b}}]}"
	told := func() map[string]string {
		return map[string]string{annotations.StatusConditions: `[{"type":"Valid","status":"True"}]`, annotations.StatusBehavior: "{}", annotations.StatusPermitted: "yes"}
	}
	for name, c := range map[string]struct {
		named           []string // by the gate, one after the other
		held, permitted string
	}{
		"a gate that names others": {named: []string{"name: nothing-at-all,"}},
		"a gate that names all":    {named: []string{""}, held: "a", permitted: "false"},
		"a gate that named all":    {named: []string{"", "name: nothing-at-all,"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				documents := append(annotations.RecordKinds(), annotations.KindPlan)
				for _, kind := range documents {
					w.cluster.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "of-" + kind, Labels: map[string]string{annotations.LabelKind: kind}, Annotations: told()}})
				}
				w.cluster.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "plain"}})
				w.cluster.Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: told()}})
				w.begins()
				for _, named := range c.named {
					w.policy("p", strings.ReplaceAll(gates, "NAMED", named))
					w.after(time.Minute)
				}
				for _, kind := range documents {
					if cm := w.cluster.ConfigMap("shop", "of-"+kind); len(cm.Data) > 0 || !maps.Equal(cm.Annotations, told()) {
						t.Errorf("%s has %v and says %v", cm.Name, cm.Data, cm.Annotations)
					}
				}
				node := w.cluster.Get("nodes", "", "n").GetAnnotations()
				if node["x"] != c.held || node[annotations.StatusConditions] != told()[annotations.StatusConditions] || node[annotations.StatusBehavior] != "{}" || node[annotations.StatusPermitted] != c.permitted {
					t.Errorf("the node says %v", node)
				}
				if plain := w.cluster.ConfigMap("shop", "plain"); plain.Data["x"] != c.held || plain.Annotations[annotations.StatusPermitted] != c.permitted {
					t.Errorf("the ConfigMap that is no document has %v and says %v", plain.Data, plain.Annotations)
				}
				if got := w.condition("p"); !strings.HasPrefix(got, "Held: ") {
					t.Errorf("its policy says %q", got)
				}
			})
		})
	}
}

func TestAStatusThatSomebodyTakesAwayAgainAndAgainIsWrittenLaterAndLater(t *testing.T) {
	inWorld(t, func(w *world) {
		w.app("a", true)
		w.policy("p", shut)
		w.begins()
		for range 600 {
			w.cluster.Edit("kustomizations", "shop", "a", func(u *unstructured.Unstructured) {
				said := u.GetAnnotations()
				delete(said, annotations.StatusConditions)
				u.SetAnnotations(said)
			})
			w.after(time.Second)
		}
		if n := w.patches("a"); n < 5 || n > 25 {
			t.Errorf("it is written %d times in ten minutes", n)
		}
		w.after(2 * time.Minute)
		if got := w.changes("a"); got != "ChangesPaused=True (Restrictive) ChangesPending=False (Nothing)" {
			t.Errorf("in the end its conditions are %s", got)
		}
	})
}

// A controller that finds what it made by a label makes another one once that is gone.
func TestAGateChangesNoLabelByWhichAControllerMayFindAnObject(t *testing.T) {
	for name, c := range map[string]struct {
		knob       string
		controlled bool
		want, said string
	}{
		"a label that it has":                {"/metadata/labels/app", true, "a", "Refused: Kustomization/a is not closed: it belongs to Set/a, which might find it by its label app"},
		"a label that it has not":            {"/metadata/labels/other", true, "a", "Held: "},
		"an annotation":                      {"/metadata/annotations/app", true, "a", "Held: "},
		"a label of what no controller made": {"/metadata/labels/app", false, "shut", "Held: "},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.app("a", nil)
				w.cluster.Edit("kustomizations", "shop", "a", func(u *unstructured.Unstructured) {
					if c.controlled {
						u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: "Set", Name: "a", UID: "s", Controller: new(true)}})
					}
				})
				w.policy("p", named("Restrictive", "knob: {path: "+c.knob+", closed: shut, open: x}"))
				w.begins()
				w.after(time.Minute)
				if got := w.cluster.Get("kustomizations", "shop", "a").GetLabels()["app"]; got != c.want {
					t.Errorf("its label is %q, want %q", got, c.want)
				}
				if got := w.condition("p"); !strings.HasPrefix(got, c.said) {
					t.Errorf("its policy says %q", got)
				}
			})
		})
	}
}

func TestWhileTheClockIsDoubtedNothingIsClosedOrOpened(t *testing.T) {
	inWorld(t, func(w *world) {
		w.app("a", nil)
		w.policy("p", shut)
		w.doubt.Store("the clock is an hour behind")
		w.begins()
		w.after(10 * time.Minute)
		if w.suspended("a") != nil || w.patches("a") > 0 {
			t.Error("it is closed")
		}
		w.doubt.Store("")
		w.after(time.Minute)
		if w.suspended("a") != true {
			t.Error("it stays open")
		}
	})
}

func TestARehearsalClosesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.dryRun = true
		w.app("a", nil)
		w.policy("p", shut)
		w.begins()
		w.after(time.Minute)
		if log := w.cluster.Log(); len(log) > 0 {
			t.Errorf("it wrote %q", log)
		}
	})
}

func TestAnObjectIsMeantByNameOrLabels(t *testing.T) {
	for rule, want := range map[string][]string{
		"name: a":                           {"a"},
		"selector: {matchLabels: {app: b}}": {"b"},
		"namespace: other":                  {},
		"namespace: shop":                   {"a", "b"},
	} {
		t.Run(rule, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.app("a", nil)
				w.app("b", nil)
				w.policy("p", strings.Replace(shut, "knob", rule+", knob", 1))
				w.begins()
				got := []string{}
				for _, name := range []string{"a", "b"} {
					if w.suspended(name) == true {
						got = append(got, name)
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("holds %q, want %q", got, want)
				}
			})
		})
	}
}

// An object that comes later is held, and one that goes is forgotten.
func TestObjectsThatComeAndGo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.policy("p", shut)
		w.begins()
		w.app("late", nil)
		w.after(time.Second)
		if w.suspended("late") != true || w.condition("p") != "Held: 1 objects: 1 closed, 0 open (closed: Kustomization shop/late)" {
			t.Errorf("it is %v: %s", w.suspended("late"), w.condition("p"))
		}
		w.cluster.Delete("kustomizations", "shop", "late")
		w.after(time.Minute)
		if got := w.condition("p"); got != "Held: 0 objects: 0 closed, 0 open" {
			t.Errorf("its policy says %q", got)
		}
		if n := len(w.gates.Objects()); n != 0 {
			t.Errorf("metrics show %d", n)
		}
	})
}

// What a tenant says matters to the objects of their namespace, and to those that their
// policies mean.
func TestWhichObjectsAreLookedAtWhenANamespaceSaysSomethingElse(t *testing.T) {
	inWorld(t, func(w *world) {
		w.app("a", nil)
		w.policy("p", shut)
		w.begins()
		w.after(time.Second)
		w.stop()
		lookedAt := func(namespace string) int {
			w.gates.Queue = queue.New(queue.Config{Name: "looked-at", Now: time.Now})
			defer w.gates.Queue.ShutDown()
			w.gates.EnqueueOf(namespace)
			return w.gates.Queue.Len()
		}
		for namespace, want := range map[string]int{"": 1, "shop": 1, "depot": 0} {
			if got := lookedAt(namespace); got != want {
				t.Errorf("of namespace %q it looks at %d objects, want %d", namespace, got, want)
			}
		}
		for _, watch := range w.gates.watches {
			w.gates.policies[types.NamespacedName{Namespace: "depot", Name: "p"}] = &gatePolicy{watches: []*gateWatch{nil, watch}}
		}
		if got := lookedAt("depot"); got != 1 {
			t.Errorf("of the namespace of a policy that means it, it looks at %d objects", got)
		}
		w.stop = nil
	})
}

// Change is pending for what Flux has not applied, and blocked where it is held.
func TestWhetherChangeWaits(t *testing.T) {
	source := func(w *world, revision string) {
		w.cluster.Put(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": map[string]any{"namespace": "shop", "name": "repo"},
			"status": map[string]any{"artifact": map[string]any{"revision": revision}},
		}})
	}
	for name, c := range map[string]struct {
		spec  string
		given func(w *world)
		want  int
	}{
		"nothing new is there":       {shut, func(w *world) { source(w, "main@1") }, store.PendingNone},
		"something new is there":     {open, func(w *world) { source(w, "main@2") }, store.PendingInitiated},
		"something new is held":      {shut, func(w *world) { source(w, "main@2") }, store.PendingBlocked},
		"the source is not there":    {shut, func(*world) {}, store.PendingNone},
		"the source may not be read": {shut, func(w *world) { source(w, "main@2"); w.cluster.Deny(runner, "get", "gitrepositories") }, store.PendingNone},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.app("a", nil)
				w.cluster.Edit("kustomizations", "shop", "a", func(u *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(u.Object, "main@1", "status", "lastAppliedRevision")
				})
				c.given(w)
				w.policy("p", c.spec)
				w.begins()
				all := w.gates.Objects()
				if len(all) != 1 || all[0].Pending() != c.want || all[0].Kind != "Kustomization" {
					t.Errorf("metrics show %+v", all)
				}
				if got, waits := w.changes("a"), c.want != store.PendingNone; strings.Contains(got, "ChangesPending=True (Waits)") != waits {
					t.Errorf("its conditions are %s", got)
				}
				if name != "nothing new is there" {
					return
				}
				source(w, "main@2") // an answer is believed for a minute
				w.after(2 * time.Minute)
				if got := w.gates.Objects()[0].Pending(); got != store.PendingBlocked {
					t.Errorf("two minutes later it is %d", got)
				}
				if got := w.changes("a"); got != "ChangesPaused=True (Restrictive) ChangesPending=True (Waits)" {
					t.Errorf("two minutes later its conditions are %s", got)
				}
				w.cluster.ClearLog()
				w.after(10 * time.Minute)
				if n := w.patches("a"); n > 0 {
					t.Errorf("at rest it is written %d times", n)
				}
			})
		})
	}
}

func TestARecordThatSomebodyRemovesIsWrittenAnew(t *testing.T) {
	inWorld(t, func(w *world) {
		w.app("a", nil)
		w.policy("p", shut)
		w.begins()
		w.cluster.Delete("configmaps", "shop", annotations.GateName("p"))
		w.after(time.Minute)
		if !w.recorded("p") || w.suspended("a") != true || w.gates.Count() != 1 {
			t.Errorf("recorded: %t, held: %v, %d watches", w.recorded("p"), w.suspended("a"), w.gates.Count())
		}
	})
}

func TestARecordThatIsNotOursHoldsThePolicyUp(t *testing.T) {
	inWorld(t, func(w *world) {
		w.cluster.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: annotations.GateName("p")}, Data: map[string]string{"a": "b"}})
		w.app("a", nil)
		w.policy("p", shut)
		w.begins()
		w.after(time.Minute)
		if got := w.suspended("a"); got != nil {
			t.Errorf("it is held, and no record says so: %v", got)
		}
		w.cluster.Delete("configmaps", "shop", annotations.GateName("p"))
		w.after(time.Minute)
		if got := w.suspended("a"); got != true {
			t.Errorf("it is %v", got)
		}
	})
}

// What cannot be read of what we remembered is said, and opens nothing by itself.
func TestAMemoryThatSomebodyBroke(t *testing.T) {
	inWorld(t, func(w *world) {
		w.app("a", nil)
		w.cluster.Edit("kustomizations", "shop", "a", func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{annotations.StatusGate: "{"}) })
		w.policy("p", shut)
		w.begins()
		w.wantEvent("Warning GateMemoryLost a: ")
	})
}

// What a newer version found and is to put back is not known here: it is left to that version.
func TestARecordOfANewerFormatIsLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.app("a", nil)
		w.policy("p", shut)
		w.begins()
		w.stop()
		name := annotations.GateName("p")
		w.cluster.Rewrite("shop", name, func(cm *corev1.ConfigMap) { cm.Data[annotations.DataFormat] = "2" })
		newer := w.cluster.ConfigMap("shop", name)
		w.sets("a", false)
		w.begins()
		w.after(time.Hour)
		if got := w.suspended("a"); got != false || !strings.Contains(w.condition("p"), "RecordNewer") {
			t.Errorf("suspended: %v; it says %q", got, w.condition("p"))
		}
		w.wantEvent("Warning GateRecordNewer p")
		w.wantEvent("Warning GateRecordNewer " + name)
		if n := w.heard("Warning GateRecordNewer"); n != 2 {
			t.Errorf("it is said %d times", n)
		}
		if diff := cmp.Diff(newer, w.cluster.ConfigMap("shop", name)); diff != "" {
			t.Errorf("the record was written (-before +after):\n%s", diff)
		}
		w.cluster.Rewrite("shop", name, func(cm *corev1.ConfigMap) { delete(cm.Data, annotations.DataFormat) })
		w.after(time.Second)
		if w.suspended("a") != true || !strings.HasPrefix(w.condition("p"), "Held") {
			t.Errorf("when it can be read again: suspended: %v; it says %q", w.suspended("a"), w.condition("p"))
		}
	})
}

// Somebody who may write ConfigMaps in the namespace says what was found and is to be
// put back.
func TestARecordThatTheAgentDidNotSign(t *testing.T) {
	closed := func(w *world) {
		w.app("a", nil)
		w.policy("p", shut)
		w.begins()
	}
	forge := func(w *world) *corev1.ConfigMap {
		cm := w.cluster.ConfigMap("shop", annotations.GateName("p"))
		cm.Data[annotations.DataGate] += " "
		return cm
	}
	t.Run("where an agent begins it closes and opens nothing, until it is adopted", func(t *testing.T) {
		inWorld(t, func(w *world) {
			closed(w)
			w.stop()
			w.cluster.Put(forge(w))
			w.sets("a", false)
			w.begins()
			if w.suspended("a") != false || !strings.Contains(w.condition("p"), "RecordUnsigned") {
				t.Errorf("suspended: %v; it says %q", w.suspended("a"), w.condition("p"))
			}
			w.wantEvent("Warning GateRecordUnsigned p")
			w.wantEvent("Warning GateRecordUnsigned " + annotations.GateName("p"))
			w.cluster.Put(agenttest.Signed(w, forge(w)))
			w.after(time.Second)
			if w.suspended("a") != true || !strings.HasPrefix(w.condition("p"), "Held") {
				t.Errorf("adopted: suspended: %v; it says %q", w.suspended("a"), w.condition("p"))
			}
		})
	})
	t.Run("an agent that holds the true one writes it again", func(t *testing.T) {
		inWorld(t, func(w *world) {
			closed(w)
			w.cluster.Put(forge(w))
			w.after(time.Second)
			if err := agenttest.Keys().Check(w.cluster.ConfigMap("shop", annotations.GateName("p"))); err != nil {
				t.Error(err)
			}
			if w.suspended("a") != true {
				t.Errorf("suspended: %v", w.suspended("a"))
			}
		})
	})
}

func TestOneNamespaceOpensSoManyWatchesAndNoMore(t *testing.T) {
	inWorld(t, func(w *world) {
		for p := range 3 {
			var gates []string
			for g := range policy.MaxGates {
				gates = append(gates, fmt.Sprintf("{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, namespace: n%d, knob: flux}", p*policy.MaxGates+g))
			}
			w.policy(fmt.Sprintf("p%d", p), "{strategy: Restrictive, gates: ["+strings.Join(gates, ", ")+"]}")
		}
		w.begins()
		if n := w.gates.Count(); n != maxOpen {
			t.Errorf("%d watches, want %d", n, maxOpen)
		}
		told := false
		for p := range 3 {
			told = told || strings.Contains(w.condition(fmt.Sprintf("p%d", p)), "namespace shop has 128 watches of gates open")
		}
		if !told {
			t.Error("no policy is told why not all of its gates are watched")
		}
	})
}
