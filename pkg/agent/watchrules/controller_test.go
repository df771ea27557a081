package watchrules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/watchrule"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

func account() client.Account { return client.Account{Namespace: "shop", Name: "maint-runner"} }

func TestWhichChangesAskForARun(t *testing.T) {
	for name, c := range map[string]struct {
		rule    string // in place of onConfig
		changes func(w *world)
		want    []string
	}{
		"none, of what is there when the rule starts": {changes: func(*world) {}},
		"an object that comes":                        {changes: func(w *world) { w.object("new", "1") }, want: []string{"p: create new"}},
		"an object that changes":                      {changes: func(w *world) { w.object("old", "2") }, want: []string{"p: update old"}},
		"an object that goes":                         {changes: func(w *world) { w.cluster.Delete("configmaps", "shop", "old") }, want: []string{"p: delete old"}},
		"not what no rule looks at":                   {changes: func(w *world) { w.cluster.Annotate("shop", "old", "team", "blue") }},
		"not what has other labels": {changes: func(w *world) {
			w.cluster.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other", Labels: map[string]string{"app": "bank"}}})
		}},
		"not what is in another namespace": {changes: func(w *world) {
			w.cluster.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "new", Labels: map[string]string{"app": "shop"}}})
		}},
		"what is in any namespace, where that is meant": {
			rule: strings.Replace(onConfig, "kind: ConfigMap", "kind: ConfigMap, namespace: '*'", 1), changes: func(w *world) {
				w.cluster.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "new", Labels: map[string]string{"app": "shop"}}})
			}, want: []string{"p: create new"},
		},
		"only the events that are meant": {
			rule: strings.Replace(onConfig, "fields", "events: [delete], fields", 1), changes: func(w *world) {
				w.object("new", "1")
				w.object("old", "2")
				w.cluster.Delete("configmaps", "shop", "old")
			}, want: []string{"p: delete old"},
		},
		"only where the condition holds": {
			rule: strings.Replace(onConfig, "fields", "when: 'object.data.a == \"go\"', fields", 1), changes: func(w *world) {
				w.object("new", "stay")
				w.object("old", "go")
			}, want: []string{"p: update old"},
		},
		"what is made anew under its name": {changes: func(w *world) {
			w.cluster.Delete("configmaps", "shop", "old")
			w.object("old", "1")
		}, want: []string{"p: create old", "p: delete old"}},
		"not what the agent keeps its books in": {
			rule: "{apiVersion: v1, kind: ConfigMap, fields: [data]}", changes: func(w *world) {
				w.cluster.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "books", Labels: map[string]string{annotations.LabelKind: annotations.KindLedger}}})
			},
		},
	} {
		for how, late := range map[string]bool{"": false, ", and bodies have no room": true} {
			t.Run(name+how, func(t *testing.T) {
				inWorld(t, func(w *world) {
					rule := onConfig
					if c.rule != "" {
						rule = c.rule
					}
					w.late = late
					w.object("old", "1")
					w.plan("p", rule)
					w.begins("p")
					w.claimed()
					c.changes(w)
					w.claimed(c.want...)
					w.after(10 * time.Minute)
					w.claimed()
				})
			})
		}
	}
}

// The next agent knows what this one has seen: a change asks once, whoever looks.
func TestAChangeAsksOnceWhateverRestartsBetween(t *testing.T) {
	inWorld(t, func(w *world) {
		w.object("old", "1")
		w.object("gone", "1")
		w.plan("p", onConfig)
		w.begins("p")
		w.object("old", "2")
		w.claimed("p: update old")
		w.begins("p")
		w.claimed()
		w.stop()
		w.object("old", "3")
		w.object("new", "1")
		w.cluster.Delete("configmaps", "shop", "gone")
		w.stop = nil
		w.begins("p")
		w.claimed("p: create new", "p: delete gone", "p: update old")
		w.begins("p")
		w.claimed()
	})
}

func TestAChangeWhoseClaimWasNotWrittenAsksAgain(t *testing.T) {
	onLedger := agenttest.When{User: "agent", Verb: "update", Resource: "configmaps", Name: "maint-ledger-"}
	for name, breaks := range map[string]func(c *agenttest.Cluster){
		"it is refused":          func(c *agenttest.Cluster) { c.Refuse(onLedger, 2, 403, "quota") },
		"it meets a conflict":    func(c *agenttest.Cluster) { c.Refuse(onLedger, 1, 409, "written since") },
		"the API server is away": func(c *agenttest.Cluster) { c.Fail(onLedger, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.object("old", "1")
				w.plan("p", onConfig)
				w.begins("p")
				breaks(w.cluster)
				w.object("old", "2")
				w.claimed("p: update old")
				w.after(time.Minute)
				w.claimed()
			})
		})
	}
}

func TestWhatARuleMayNotSeeIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		rule  string
		soon  string // is said of what may pass by itself
		given func(w *world)
		said  string
		mend  func(w *world)
	}{
		"its account may not list": {
			given: func(w *world) { w.cluster.Deny(runner, "list", "configmaps") }, soon: "configmaps in namespace shop cannot be read yet: ", said: "the ServiceAccount maint-runner may not list and watch configmaps in namespace shop",
			mend: func(w *world) { w.cluster.Allow(runner, "list", "configmaps") },
		},
		"an object is too large": {
			given: func(w *world) { w.object("big", tooLarge()) }, said: "the watch of ConfigMap sees nothing, for ConfigMap shop/big cannot be read: the answer of the API server is too large: to read it would take more than 16 MiB of the agent's memory; make it smaller, or have",
			mend: func(w *world) { w.object("big", "1") },
		},
		"one is too large that goes": {
			given: func(w *world) { w.object("big", tooLarge()) }, said: "for ConfigMap shop/big cannot be read",
			mend: func(w *world) { w.cluster.Delete("configmaps", "shop", "big") },
		},
		"one is too large that leaves the selection": {
			given: func(w *world) { w.object("big", tooLarge()) }, said: "for ConfigMap shop/big cannot be read",
			mend: func(w *world) {
				w.cluster.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "big"}, Data: map[string]string{"a": tooLarge()}})
			},
		},
		"the kind is not served": {
			given: func(w *world) { w.cluster.Unserve("configmaps2") }, rule: "{apiVersion: v1, kind: Unheard}", said: "kind Unheard of v1 is not known to this cluster",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				rule := onConfig
				if c.rule != "" {
					rule = c.rule
				}
				w.object("old", "1")
				w.plan("p", rule)
				c.given(w)
				w.begins("p")
				if c.soon != "" {
					if got := w.trouble("p"); !strings.HasPrefix(got, c.soon) {
						t.Errorf("the plan is told %q, want %q", got, c.soon)
					}
					w.after(31 * time.Second)
				}
				if got := w.trouble("p"); !strings.Contains(got, c.said) {
					t.Errorf("the plan is told %q, want %q", got, c.said)
				}
				if c.mend == nil {
					return
				}
				c.mend(w)
				w.after(2 * time.Minute)
				if got := w.trouble("p"); got != "" {
					t.Errorf("it is still told %q", got)
				}
				w.claimed()
				w.object("old", "2")
				w.claimed("p: update old")
			})
		})
	}
}

func tooLarge() string { return strings.Repeat("x", 6<<20) }

// While an object is too large nothing is seen, and nothing is lost: what changed meanwhile
// runs when it is over. The plan says so all the time, also while pages before it are read.
func TestAnObjectThatGrowsTooLargeIsSaidUntilItIsOver(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 600 { // more than a page
			w.cluster.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("a%d", i), Labels: map[string]string{"app": "shop"}}})
		}
		w.object("big", "1")
		w.object("old", "1")
		w.object("gone", "1")
		w.plan("p", onConfig)
		w.begins("p")
		w.claimed()
		w.object("big", tooLarge())
		w.object("old", "2")
		w.cluster.Delete("configmaps", "shop", "gone")
		w.claimed()
		for range 100 {
			w.after(time.Second)
			if got := w.trouble("p"); !strings.Contains(got, "for ConfigMap shop/big cannot be read") {
				t.Fatalf("the plan is told %q", got)
			}
		}
		before := w.cluster.Asked(agenttest.When{User: "maint-runner", Verb: "list"})
		w.after(10 * time.Minute)
		if n := w.cluster.Asked(agenttest.When{User: "maint-runner", Verb: "list"}) - before; n > 1000 {
			t.Errorf("in ten minutes it lists %d pages", n)
		}
		w.object("big", "2")
		w.after(time.Minute)
		w.claimed("p: delete gone", "p: update big", "p: update old")
		if got := w.trouble("p"); got != "" {
			t.Errorf("it is still told %q", got)
		}
	})
}

// An object that could not be read when it was told of is tried again: its change is not lost.
func TestAnObjectThatCannotBeReadIsSaidAndTriedAgain(t *testing.T) {
	reads := agenttest.When{User: "maint-runner", Verb: "list"}
	for name, c := range map[string]struct {
		code int
		mend func(w *world)
		want []string
	}{
		"and is read later":         {403, func(*world) {}, []string{"p: update old"}},
		"and was away for a minute": {500, func(*world) {}, []string{"p: update old"}},
		"and is gone":               {403, func(w *world) { w.cluster.Delete("configmaps", "shop", "old") }, []string{"p: delete old"}},
		"and has left the selection": {403, func(w *world) {
			w.cluster.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "old"}, Data: map[string]string{"a": "2"}})
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.late = true
				w.object("old", "1")
				w.plan("p", onConfig)
				w.begins("p")
				mend := w.cluster.Refuse(reads, agenttest.Always, c.code, "no")
				w.object("old", "2")
				w.after(time.Minute)
				if got := w.trouble("p"); !strings.Contains(got, "the watch of ConfigMap does not see ConfigMap shop/old: ") {
					t.Errorf("the plan is told %q", got)
				}
				c.mend(w)
				mend()
				w.after(time.Minute)
				w.claimed(c.want...)
				if got := w.trouble("p"); got != "" {
					t.Errorf("it is still told %q", got)
				}
			})
		})
	}
}

func TestWhatARuleDoesNotSeeInWords(t *testing.T) {
	rule := plan.Watch{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop"}
	large := &executors.TooLargeError{What: "it is too large"}
	for want, refusal := range map[string]error{
		"no": errors.New("no"),
		"the watch of ConfigMap in namespace shop sees nothing: it is too large; " + smallerAdvice:                                        large,
		"the watch of ConfigMap in namespace shop sees nothing, for ConfigMap shop/big cannot be read: it is too large; " + smallerAdvice: &executors.TooLargeError{What: large.What, Object: "shop/big"},
	} {
		if got := blind(rule, refusal); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
	wp := &subscription{unread: map[unreadableKey]unreadable{}}
	tell := func(name string, why error, news bool) {
		t.Helper()
		if got := wp.miss(watchrule.ObjectKey{Rule: "r", UID: name, Namespace: "shop", Name: name}, why); got != news {
			t.Errorf("%s: %v is news: %t", name, why, got)
		}
	}
	tell("b", errors.New("no"), true)
	tell("b", errors.New("no"), false)
	tell("b", nil, true)
	tell("b", nil, false)
	tell("b", errors.New("no"), true)
	tell("a", fmt.Errorf("look: %w", large), true)
	if got, want := wp.unseen(rule, "r"), "the watch of ConfigMap in namespace shop does not see ConfigMap shop/a, and 1 more: look: it is too large; "+smallerAdvice; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if got := wp.unseen(rule, "another"); got != "" {
		t.Errorf("another rule says %q", got)
	}
}

func TestRulesThatLookAtTheSameShareOneWatch(t *testing.T) {
	inWorld(t, func(w *world) {
		w.object("old", "1")
		w.plan("one", onConfig)
		w.plan("two", onConfig)
		w.begins("one", "two")
		if w.rules.Count() != 1 || w.rules.Watching(types.NamespacedName{Namespace: "shop", Name: "two"}) != "1" {
			t.Errorf("%d watches", w.rules.Count())
		}
		w.object("old", "2")
		w.claimed("one: update old", "two: update old")
		w.plan("late", onConfig) // it joins a watch that has told others
		w.claimed()
		w.object("old", "3")
		w.claimed("late: update old", "one: update old", "two: update old")
		w.plan("one") // its rule is gone
		w.cluster.Delete("configmaps", "shop", "two")
		w.rules.Plans.Add(types.NamespacedName{Namespace: "shop", Name: "two"})
		w.after(time.Second)
		if w.rules.Count() != 1 {
			t.Errorf("%d watches", w.rules.Count())
		}
		w.object("old", "4")
		w.claimed("late: update old")
		w.rules.Drop(types.NamespacedName{Namespace: "shop", Name: "late"})
		w.after(time.Second)
		if w.rules.Count() != 0 {
			t.Errorf("%d watches of nobody", w.rules.Count())
		}
		for _, watch := range w.cluster.Watches() {
			t.Errorf("still open: %s", watch)
		}
	})
}

func TestOneNamespaceOpensSoManyWatchesAndNoMore(t *testing.T) {
	inWorld(t, func(w *world) {
		var all []string
		rules := func(from, n int) []string {
			var out []string
			for i := range n {
				out = append(out, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, selector: {matchLabels: {app: shop-%d}}}", from+i))
			}
			return out
		}
		for i := range 4 {
			name := fmt.Sprintf("p%d", i)
			w.plan(name, rules(16*i, 16)...)
			all = append(all, name)
		}
		w.begins(all...)
		w.plan("late", rules(64, 1)...)
		if w.rules.Count() != maxOpen || !strings.Contains(w.trouble("late"), "namespace shop has 64 watches of watch rules open, as many as one may") {
			t.Errorf("%d watches; the plan is told %q", w.rules.Count(), w.trouble("late"))
		}
		w.rules.Drop(types.NamespacedName{Namespace: "shop", Name: "p0"})
		w.rules.Plans.Add(types.NamespacedName{Namespace: "shop", Name: "late"})
		w.after(2 * time.Minute)
		if w.trouble("late") != "" {
			t.Errorf("after another was closed the plan is told %q", w.trouble("late"))
		}
	})
}

// What a run of the plan writes is no event of the plan; the same by anybody else is.
func TestWhatAPlansRunWritesIsNoEventOfIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.object("old", "1")
		w.plan("p", onConfig)
		w.plan("q", onConfig)
		w.begins("p", "q")
		asked := run.Request{Kind: run.ByToken, Token: "t"}
		r := run.Run{Name: annotations.RunName("p", "p-uid", asked), Namespace: "shop", Plan: "p", PlanUID: "p-uid", Request: asked, Spec: plan.Spec{Steps: []plan.Step{{Name: "hold", Type: "suspend"}}}}
		cm, err := annotations.RunObject(r, workflow.NewJournal(r))
		if err != nil {
			t.Fatal(err)
		}
		cm.ResourceVersion = "1"
		w.rules.Runs.Observe(agenttest.Signed(t, cm))
		home, err := w.accounts.Access(t.Context(), account(), r.Name, nil)
		if err != nil {
			t.Fatal(err)
		}
		to, err := home.Resource(plan.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Name: "old"})
		if err != nil {
			t.Fatal(err)
		}
		write := func(value string) {
			t.Helper()
			if _, err := to.Patch(context.Background(), "old", types.MergePatchType, []byte(`{"data":{"a":"`+value+`"}}`), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		write("2")
		w.claimed("q: update old")
		w.object("old", "3")
		w.claimed("p: update old", "q: update old")
	})
}

func TestTheObjectOfARequest(t *testing.T) {
	k := types.NamespacedName{Namespace: "shop", Name: "p"}
	for name, c := range map[string]struct {
		given func(w *world)
		kind  string // of the request
		event string
		want  any // data.a of it; nil: nothing is known of it
		fails bool
		later bool // nothing, when it is asked again half a minute later
	}{
		"is read as it is":                                {want: "2"},
		"is nothing, where it is gone":                    {given: func(w *world) { w.cluster.Delete("configmaps", "shop", "old") }},
		"is nothing, where it is another":                 {given: func(w *world) { w.cluster.Delete("configmaps", "shop", "old"); w.object("old", "9") }},
		"is nothing, where its kind is gone":              {kind: "Unheard"},
		"is nothing but who it is, where it is too large": {given: func(w *world) { w.object("old", tooLarge()) }},
		"is waited for, where the API server is away": {
			given: func(w *world) {
				w.cluster.Refuse(agenttest.When{User: "maint-runner", Verb: "list"}, agenttest.Always, 500, "no")
			}, fails: true,
		},
		"is nothing, where it was hidden for half a minute": {
			given: func(w *world) { w.cluster.Deny(runner, "list", "configmaps") }, fails: true, later: true,
		},
		"of a deletion is what was last seen": {event: plan.EventDelete},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.object("old", "1")
				w.plan("p", onConfig)
				w.begins("p")
				w.object("old", "2")
				w.claimed("p: update old")
				request := w.requests[0]
				w.rules.Drop(k) // what is kept in memory is not asked for
				if c.given != nil {
					c.given(w)
				}
				if c.kind != "" {
					request.ObjectKind = c.kind
				}
				if c.event != "" {
					request.Event = c.event
				}
				body, err := w.rules.Watched(w.Context(), k, account(), request)
				if (err != nil) != c.fails {
					t.Fatalf("it said %v", err)
				}
				got, _, _ := unstructured.NestedFieldNoCopy(body, "data", "a")
				if got != c.want {
					t.Errorf("it is %v, want %v", got, c.want)
				}
				if c.later {
					w.after(31 * time.Second)
					if _, err := w.rules.Watched(w.Context(), k, account(), request); err != nil {
						t.Errorf("half a minute later it said %v", err)
					}
				}
			})
		})
	}
}

// A condition that cannot be evaluated starts nothing, and says so, once a minute: what is watched may change as
// often as somebody likes.
func TestAConditionThatFailsIsSaid(t *testing.T) {
	inWorld(t, func(w *world) {
		w.plan("p", strings.Replace(onConfig, "fields", "when: 'object.data.none == \"go\"', fields", 1))
		w.begins("p")
		said := func() (out []string) {
			for _, e := range w.events.All() {
				if _, of, is := strings.Cut(e, "Warning WatchConditionFailed p: The create of ConfigMap/"); is {
					name, _, _ := strings.Cut(of, " ")
					_, more, _ := strings.Cut(of, "; ")
					out = append(out, strings.TrimSpace(name+" "+more))
				}
			}
			return out
		}
		for i := range 5 {
			w.object(fmt.Sprintf("new-%d", i), "1")
			w.after(time.Second)
		}
		w.claimed()
		w.after(time.Minute)
		if diff := cmp.Diff([]string{"new-0"}, said()); diff != "" {
			t.Errorf("in a minute (-want +got):\n%s", diff)
		}
		w.object("late", "1")
		w.after(time.Second)
		if diff := cmp.Diff([]string{"new-0", "late 4 more changes since the last such Event started none either"}, said()); diff != "" {
			t.Errorf("after it (-want +got):\n%s", diff)
		}
	})
}
