package plans

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
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// What becomes of the slots of a plan that is due every ten minutes. The world begins
// at midnight.
func TestSlots(t *testing.T) {
	for name, c := range map[string]struct {
		spec  string
		story func(w *world)
		want  []string
		event string // about slots; empty: there is none
	}{
		"a slot is claimed at its time": {
			story: func(w *world) { w.begins(); w.after(11 * time.Minute) },
			want:  []string{"00:10 open schedule"},
		},
		"one that falls while a run lives is skipped": {
			story: func(w *world) { w.begins(); w.after(31 * time.Minute) },
			want:  []string{"00:10 open schedule", "00:20 Skipped busy x2"}, event: "Normal SlotSkipped nightly: 1 slot(s) skipped up to 2000-01-01T00:20:00Z: busy",
		},
		"after an outage the newest runs, and the others are missed": {
			story: func(w *world) { w.seen(); w.after(35 * time.Minute); w.begins(); w.after(time.Second) },
			want:  []string{"00:30 open schedule", "00:10 Missed superseded x2"}, event: "Warning SlotMissed nightly: 2 slot(s) missed",
		},
		"after an outage all run, where that is asked, one after the other": {
			spec:  "catchUp: all\nstartDeadline: 2h\n",
			story: func(w *world) { w.seen(); w.after(35 * time.Minute); w.begins(); w.after(time.Second) },
			want:  []string{"00:10 open schedule"},
		},
		"after an outage none runs, where that is asked": {
			spec:  "catchUp: none\n",
			story: func(w *world) { w.seen(); w.after(35 * time.Minute); w.begins(); w.after(time.Second) },
			want:  []string{"00:10 Missed catch-up x3"},
		},
		"those in a queue keep their turn when another agent leads": {
			spec:  "concurrencyPolicy: Queue\nstartDeadline: 2h\n",
			story: func(w *world) { w.begins(); w.after(35 * time.Minute); w.begins(); w.after(time.Second) },
			want:  []string{"00:10 open schedule"},
		},
		"those that wait for their plan keep it where none of an outage runs": {
			spec: "catchUp: none\n",
			story: func(w *world) {
				w.api.Delete("serviceaccounts", shop, "maint-runner")
				w.begins()
				w.after(12 * time.Minute)
				w.begins()
				w.after(time.Minute)
				w.api.Put(account())
				w.after(2 * time.Minute)
			},
			want: []string{"00:10 open schedule"},
		},
		"those that fell in a pause are skipped, and resuming starts none": {
			story: func(w *world) {
				w.begins()
				w.after(time.Minute)
				w.says("nightly", annotations.Pause, "true")
				w.after(25 * time.Minute)
				w.says("nightly", annotations.Pause, "")
			},
			want: []string{"00:10 Skipped paused x2"},
		},
		"the namespace's pause counts": {
			story: func(w *world) { w.pauses(shop); w.begins(); w.after(25 * time.Minute) },
			want:  []string{"00:10 Skipped paused x2"},
		},
		"the cluster's pause counts": {
			story: func(w *world) { w.pauses(annotations.DefaultNamespace); w.begins(); w.after(25 * time.Minute) },
			want:  []string{"00:10 Skipped paused x2"},
		},
		"the next is skipped where somebody says so": {
			story: func(w *world) { w.begins(); w.says("nightly", annotations.Skip, "next"); w.after(21 * time.Minute) },
			want:  []string{"00:20 open schedule", "00:10 Skipped skip"},
		},
		"after an outage each that ended is told with its own reason": {
			spec: "catchUp: all\nstartDeadline: 12m\n",
			story: func(w *world) {
				w.seen()
				w.api.Annotate(shop, "nightly", annotations.Skip, "2000-01-01T00:30:00Z")
				w.after(35 * time.Minute)
				w.begins()
				w.after(time.Second)
			},
			want: []string{"00:10 Missed deadline x2", "00:30 Skipped skip"}, event: "Warning SlotMissed nightly: 2 slot(s) missed up to 2000-01-01T00:20:00Z: deadline",
		},
		"the last that was skipped is told, though others were missed before": {
			spec: "catchUp: all\nstartDeadline: 12m\n",
			story: func(w *world) {
				w.seen()
				w.api.Annotate(shop, "nightly", annotations.Skip, "2000-01-01T00:30:00Z")
				w.after(35 * time.Minute)
				w.begins()
				w.after(time.Second)
			},
			want: []string{"00:10 Missed deadline x2", "00:30 Skipped skip"}, event: "Normal SlotSkipped nightly: 1 slot(s) skipped up to 2000-01-01T00:30:00Z: skip",
		},
		"who skipped a slot is told, and why": {
			story: func(w *world) {
				w.begins()
				w.api.Annotate(shop, "nightly", annotations.Actor(annotations.Skip), "jane")
				w.api.Annotate(shop, "nightly", annotations.Reason(annotations.Skip), "CHG-1")
				w.says("nightly", annotations.Skip, "next")
				w.after(11 * time.Minute)
			},
			want: []string{"00:10 Skipped skip"}, event: "Normal SlotSkipped nightly: 1 slot(s) skipped up to 2000-01-01T00:10:00Z: skip by jane (unverified): CHG-1",
		},
		"whose pause skipped a slot is told": {
			story: func(w *world) { w.pauses(shop); w.begins(); w.after(11 * time.Minute) },
			want:  []string{"00:10 Skipped paused"}, event: "Normal SlotSkipped nightly: 1 slot(s) skipped up to 2000-01-01T00:10:00Z: paused (namespace shop is paused)",
		},
		"one whose plan is not ready until its deadline is missed": {
			spec: "startDeadline: 5m\n",
			story: func(w *world) {
				w.api.Delete("serviceaccounts", shop, "maint-runner")
				w.begins()
				w.after(19 * time.Minute)
			},
			want: []string{"00:10 Missed not-ready"},
		},
		"one whose plan is ready before its deadline runs": {
			story: func(w *world) {
				w.api.Delete("serviceaccounts", shop, "maint-runner")
				w.begins()
				w.after(12 * time.Minute)
				w.api.Put(account())
				w.after(2 * time.Minute)
			},
			want: []string{"00:10 open schedule"},
		},
		"the users of its target skip it there": {
			spec: orders,
			story: func(w *world) {
				d := deployment(true, nil)
				d.Annotations = map[string]string{annotations.Mirror("mirror.maint.dev", "nightly", "skip"): "true"}
				w.api.Put(d)
				w.begins()
				w.after(11 * time.Minute)
			},
			want: []string{"00:10 Skipped skip"},
		},
		"nothing is recorded while the clock is doubted": {
			story: func(w *world) { w.seen(); w.doubt.Store("the clocks are apart"); w.begins(); w.after(25 * time.Minute) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.plan("nightly", tenMins+c.spec+hook)
				c.story(w)
				w.expect("then", "nightly", c.want...)
				told := slices.ContainsFunc(w.events.All(), func(e string) bool { return strings.Contains(e, " Slot") })
				if c.event != "" {
					w.wantEvent(c.event)
				} else if len(c.want) == 1 && strings.Contains(c.want[0], "open") && told {
					w.Errorf("Events %q", w.events.All())
				}
				if open := len(w.ledger("nightly").Open); len(w.runs("nightly")) != open {
					w.Errorf("%d claims are open, and there are the runs %q", open, w.runs("nightly"))
				}
			})
		})
	}
}

// seen has an agent look at the plans and die.
func (w *world) seen() {
	w.begins()
	w.after(time.Second)
	w.agent.stop()
}

func (w *world) pauses(namespace string) {
	w.api.Edit("namespaces", "", namespace, func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{annotations.Pause: "true"}) })
}

func TestAClaimStandsInTheLedgerBeforeItsRunIsMade(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", hook)
		w.begins()
		w.after(time.Second)
		w.api.ClearLog()
		w.says("nightly", annotations.Trigger, "now")
		got, want := w.logged("nightly"), []string{"agent update configmaps ledger", "agent create configmaps shop/", "agent patch configmaps plan"}
		if diff := cmp.Diff(want, got); diff != "" {
			w.Errorf("-want +got:\n%s", diff)
		}
		if got, want := w.runs("nightly"), []string{nameOf("nightly", "now")}; !slices.Equal(got, want) || !slices.Contains(w.rung, want[0]) {
			w.Errorf("runs %q, want %q; enqueued %q", got, want, w.rung)
		}
		w.says("nightly", annotations.Trigger, "now ") // the same
		w.after(time.Minute)
		if got := len(w.runs("nightly")); got != 1 {
			w.Errorf("%d runs of one token", got)
		}
	})
}

func TestATokenThatAPlanBearsWhenItIsFirstSeenIsNoRequest(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", hook)
		w.api.Annotate(shop, "nightly", annotations.Trigger, "old")
		w.begins()
		w.after(time.Minute)
		if got := w.runs("nightly"); len(got) > 0 || w.said("nightly", annotations.StatusTrigger) != "old" {
			w.Errorf("runs %q, handled %q", got, w.said("nightly", annotations.StatusTrigger))
		}
	})
}

// The same holds of a plan that was copied with all that the agent had said of the first one, or that came
// back from a backup: its token was never seen on it, whether the first one had handled it or not.
func TestATokenThatCameWithACopyIsNoRequest(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", hook)
		w.begins()
		w.after(time.Minute)
		w.after(time.Hour)
		first := w.api.ConfigMap(shop, "nightly")
		duplicate := annotations.NewPlan(shop, "copy", first.Data[annotations.DataPlan], "")
		duplicate.UID, duplicate.Annotations = "uid-copy", maps.Clone(first.Annotations)
		duplicate.Annotations[annotations.Trigger] = "not-handled-yet"
		w.api.Put(duplicate)
		w.after(time.Minute)
		if got := w.runs("copy"); len(got) > 0 || w.said("copy", annotations.StatusTrigger) != "not-handled-yet" {
			w.Errorf("runs %q, handled %q", got, w.said("copy", annotations.StatusTrigger))
		}
		w.says("copy", annotations.Trigger, "new")
		w.after(time.Minute)
		if got := w.runs("copy"); len(got) != 1 {
			w.Errorf("a new token makes %q", got)
		}
	})
}

// Plans with one target say so as long as there are two.
func TestPlansWithOneTargetSaySo(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", orders+hook)
		w.plan("alone", hook)
		w.begins()
		w.after(time.Minute)
		says := func(when string, want map[string]string) {
			w.Helper()
			for name, condition := range want {
				if got := w.condition(name, "SharedTarget"); got != condition {
					w.Errorf("%s: %s says %q, want %q", when, name, got, condition)
				}
			}
		}
		says("one plan", map[string]string{"nightly": "", "alone": ""})
		w.plan("weekly", orders+hook)
		w.after(time.Minute)
		says("two plans", map[string]string{"nightly": "True AnotherPlan", "weekly": "True AnotherPlan", "alone": ""})
		w.api.ClearLog()
		w.plan("yearly", orders+hook)
		w.after(time.Minute)
		for _, line := range w.api.Log() {
			if strings.Contains(line, "nightly") || strings.Contains(line, "weekly") {
				w.Errorf("the third plan has another written: %s", line)
			}
		}
		w.api.Delete("configmaps", shop, "weekly")
		w.api.Delete("configmaps", shop, "yearly")
		w.after(time.Minute)
		says("one again", map[string]string{"nightly": ""})
	})
}

// A run is made once, wherever the agent or its connection breaks.
func TestARunIsMadeOnce(t *testing.T) {
	create, ledgers := agenttest.When{Verb: "create", Resource: "configmaps"}, agenttest.When{Verb: "update", Resource: "configmaps", Name: "maint-ledger"}
	for name, breaks := range map[string]func(w *world){
		"although the reply to its creation was lost": func(w *world) { w.api.LoseReply(create, 1) },
		"although its creation was lost":              func(w *world) { w.api.Fail(create, 1) },
		"although the reply to its claim was lost":    func(w *world) { w.api.LoseReply(ledgers, 1) },
		"although its claim was lost":                 func(w *world) { w.api.Fail(ledgers, 1) },
		"although somebody wrote the ledger before":   func(w *world) { w.api.Refuse(ledgers, 1, 409, "it has moved on") },
		"although no watch shows it, and the reply was lost": func(w *world) {
			w.api.Before(ledgers, func() { w.api.StallWatches("configmaps") })
			w.api.LoseReply(create, 1)
		},
		"by the next leader, when its agent dies after the claim": func(w *world) {
			mend := w.api.Fail(create, agenttest.Always)
			w.says("nightly", annotations.Trigger, "now")
			w.agent.stop()
			mend()
			w.begins()
		},
		"by the next leader, when its agent dies after the creation": func(w *world) {
			mend := w.api.LoseReply(create, agenttest.Always)
			w.says("nightly", annotations.Trigger, "now")
			w.agent.stop()
			mend()
			w.begins()
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.plan("nightly", hook)
				w.begins()
				w.after(time.Second)
				breaks(w)
				w.says("nightly", annotations.Trigger, "now")
				w.after(10 * time.Second)
				if got, want := w.runs("nightly"), []string{nameOf("nightly", "now")}; !slices.Equal(got, want) {
					w.Errorf("runs %q, want %q", got, want)
				}
				w.expect("the claim", "nightly", "00:00 open manual")
				w.progress(nameOf("nightly", "now"), run.Running)
				w.progress(nameOf("nightly", "now"), run.Succeeded)
				w.after(time.Minute)
				w.expect("at the end", "nightly", "00:00 Ran manual")
				if got := w.said("nightly", annotations.StatusLastResult); got != "Succeeded" {
					w.Errorf("last result %q", got)
				}
			})
		})
	}
}

func TestAStatusIsWrittenOnlyWhenItChanged(t *testing.T) {
	for name, spec := range map[string]string{"a plan that is ready": tenMins + hook, "one that waits for its target": orders + hook, "one that cannot be read": "steps: none\n"} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.plan("nightly", spec)
				w.begins()
				w.after(5 * time.Second)
				w.api.ClearLog()
				w.says("nightly", "example.org/touched", "1")
				w.after(time.Minute)
				w.agent.Queue.Add(key("nightly"))
				w.after(time.Minute)
				if got := w.api.Log(); len(got) > 0 {
					w.Errorf("writes %q", got)
				}
				w.begins() // nor does the next leader
				w.after(time.Minute)
				if got := w.api.Log(); len(got) > 0 {
					w.Errorf("writes of another leader %q", got)
				}
			})
		})
	}
}

func TestAPlanThatIsDeletedIsForgotten(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", orders+hook)
		a := w.begins()
		w.after(2 * time.Second)
		if n := a.Watches.Targets.Count(); n != 1 {
			w.Fatalf("%d watches on its target", n)
		}
		w.api.ClearLog()
		w.api.Delete("configmaps", shop, "nightly")
		w.after(2 * time.Second)
		if !slices.Contains(w.gone, "nightly") || a.Watches.Targets.Count() != 0 || a.Stores.Plans.Has(key("nightly")) {
			w.Errorf("its runs heard %q, %d watches, known: %t", w.gone, a.Watches.Targets.Count(), a.Stores.Plans.Has(key("nightly")))
		}
		if got := w.api.Log(); len(got) > 0 {
			w.Errorf("writes %q", got)
		}
	})
}

// Who may not read the namespace learns from the plan that it is being deleted, once.
func TestAPlanWhoseNamespaceIsBeingDeletedSaysSo(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", tenMins+hook)
		w.begins()
		w.after(time.Minute)
		if w.said("nightly", annotations.StatusNextRun) == "" {
			t.Fatal("there is no next run")
		}
		w.api.Edit("namespaces", "", shop, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"kubernetes"}) })
		w.api.Delete("namespaces", "", shop)
		w.after(time.Minute)
		if w.condition("nightly", annotations.NamespaceDeleting) != "True Deleted" || w.condition("nightly", "Valid") != "True Understood" || w.said("nightly", annotations.StatusNextRun) != "" || w.said("nightly", annotations.StatusMessage) != "the namespace is being deleted: nothing begins in it" {
			w.Errorf("it says %v", w.api.ConfigMap(shop, "nightly").Annotations)
		}
		w.api.ClearLog()
		w.says("nightly", "example.org/touched", "1")
		w.after(time.Hour)
		if got := w.api.Log(); len(got) > 0 {
			w.Errorf("writes again %q", got)
		}
	})
}

func TestWhatKeepsAPlanFromBeingReady(t *testing.T) {
	var mend func()
	for name, c := range map[string]struct {
		spec         string
		before, mend func(w *world)
		says         string
	}{
		"its account is missing": {
			spec: hook, before: func(w *world) { w.api.Delete("serviceaccounts", shop, "maint-runner") }, mend: func(w *world) { w.api.Put(account()) },
			says: "the ServiceAccount maint-runner does not exist",
		},
		"its target is missing": {
			spec: orders + hook, before: func(*world) {}, mend: func(w *world) { w.api.Put(deployment(true, nil)) }, says: "Deployment/orders does not exist",
		},
		"its target was never ready": {
			spec: orders + hook, before: func(w *world) { w.api.Put(deployment(false, nil)) }, mend: func(w *world) { w.api.Put(deployment(true, nil)) }, says: "0 of 1 replicas are ready",
		},
		"its account may not read the target": {
			spec: orders + hook, before: func(w *world) { w.api.Put(deployment(true, nil)); w.api.Deny(runner, "get", "deployments") },
			mend: func(w *world) { w.api.Allow(runner, "get", "deployments") }, says: "forbidden",
		},
		"the agent may not act as its account": {
			spec: orders + hook, before: func(w *world) {
				w.api.Put(deployment(true, nil))
				mend = w.api.Refuse(agenttest.When{User: "maint-runner"}, agenttest.Always, 403, `serviceaccounts "maint-runner" is forbidden: User "system:serviceaccount:maint-system:maint-agent" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "shop"`)
			},
			mend: func(*world) { mend() }, says: "the agent may not act as the ServiceAccount maint-runner; 'kubectl maint install --read-only=false --apply' lets it (",
		},
		"the kind of its target is not served": {
			spec: "target: {apiVersion: example.org/v1, kind: App, name: orders}\n" + hook, before: func(*world) {},
			mend: func(w *world) {
				w.api.Serve(agenttest.Kind{Group: "example.org", Version: "v1", Kind: "App", Resource: "apps", Namespaced: true})
				w.api.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "App", "metadata": map[string]any{"namespace": shop, "name": "orders"}}})
			},
			says: "App",
		},
		"its account may not take the trigger's label away": {
			spec: orders + "triggers: {labels: [example.org/go]}\n" + hook, before: func(w *world) { w.api.Put(deployment(true, nil)); w.api.Deny(runner, "patch", "deployments") },
			mend: func(w *world) { w.api.Allow(runner, "patch", "deployments") }, says: "may not patch",
		},
		"its account may not watch the target of a label trigger": {
			spec: orders + "triggers: {labels: [example.org/go]}\n" + hook, before: func(w *world) { w.api.Put(deployment(true, nil)); w.api.Deny(runner, "list", "deployments") },
			mend: func(w *world) { w.api.Allow(runner, "list", "deployments") }, says: "deployments.apps in namespace shop cannot be read yet: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				c.before(w)
				w.plan("nightly", c.spec)
				w.begins()
				w.after(5 * time.Second)
				if got := w.condition("nightly", "Ready"); got != "False NotReady" || !strings.Contains(w.said("nightly", annotations.StatusConditions), c.says) {
					w.Errorf("Ready is %q: %s", got, w.said("nightly", annotations.StatusConditions))
				}
				w.says("nightly", annotations.Trigger, "now")
				if got := w.runs("nightly"); len(got) > 0 {
					w.Errorf("it runs: %q", got)
				}
				c.mend(w)
				w.after(time.Minute)
				if got := w.condition("nightly", "Ready"); got != "True Ready" || len(w.runs("nightly")) != 1 {
					w.Errorf("when it was mended Ready is %q, runs %q", got, w.runs("nightly"))
				}
			})
		})
	}
}

func TestALabelOnTheTargetIsARequest(t *testing.T) {
	play(t, func(w *world) {
		w.api.Put(deployment(true, nil))
		w.plan("nightly", orders+"triggers: {labels: [example.org/go]}\n"+hook)
		w.begins()
		w.after(2 * time.Second)
		w.api.Put(deployment(true, map[string]string{"example.org/go": "yes"}))
		w.after(2 * time.Second)
		w.expect("then", "nightly", "00:00 open label:example.org/go")
		if e := w.ledger("nightly").Open[0]; e.Kind != run.ByLabel || e.Request.Label != "example.org/go" || e.Request.Value != "yes" {
			w.Errorf("claimed %+v", e)
		}
	})
}

// What a message suggests can be typed as it stands, and tells also what lint cannot know.
func TestThatThereAreMoreFaultsIsSaidWithTheCommandThatTellsThem(t *testing.T) {
	for name, spec := range map[string]string{
		"faults of the document":                      "startDeadline: soon\njitter: later\n" + hook,
		"steps that the agent's configuration denies": "steps:\n- {name: a, type: webhook, properties: {url: 'https://hooks.test'}}\n- {name: b, type: webhook, properties: {url: 'https://hooks.test'}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				if strings.HasPrefix(spec, "steps") {
					w.settings.Steps = []agentconfig.StepUse{{Namespaces: []string{"*"}, Deny: []string{"webhook"}}}
				}
				w.plan("nightly", spec)
				w.begins()
				w.after(2 * time.Second)
				if got := w.said("nightly", annotations.StatusMessage); !strings.HasSuffix(got, " (and 1 more: 'kubectl maint -n shop describe nightly')") {
					w.Errorf("it says %q", got)
				}
			})
		})
	}
}

func TestALedgerThatIsNotThePlansOwn(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", hook)
		w.api.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: annotations.LedgerName("nightly", "uid-nightly")}})
		w.begins()
		w.after(2 * time.Second)
		if got := w.condition("nightly", "Valid"); got != "False Faults" || !strings.Contains(w.said("nightly", annotations.StatusMessage), "delete or rename it") {
			w.Errorf("Valid is %q: %s", got, w.said("nightly", annotations.StatusMessage))
		}
		w.says("nightly", annotations.Trigger, "now")
		if got := w.runs("nightly"); len(got) > 0 {
			w.Errorf("it runs: %q", got)
		}
	})
}

func TestALedgerOfANewerFormatIsLeftAloneAndItsSlotsRunWhenItCanBeRead(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", tenMins+hook)
		w.begins()
		w.after(2 * time.Second)
		name := annotations.LedgerName("nightly", "uid-nightly")
		w.api.Rewrite(shop, name, func(cm *corev1.ConfigMap) { cm.Data[annotations.DataFormat] = "2" })
		newer := w.api.ConfigMap(shop, name)
		w.begins()
		w.says("nightly", annotations.Trigger, "now")
		w.after(11 * time.Minute)
		if got := w.said("nightly", annotations.StatusMessage); !strings.Contains(got, "was written by a newer version") || w.condition("nightly", "Valid") != "False Faults" {
			w.Errorf("it says %q, and Valid is %q", got, w.condition("nightly", "Valid"))
		}
		w.wantEvent("Warning PlanInvalid nightly")
		if got := w.runs("nightly"); len(got) > 0 {
			w.Errorf("it runs: %q", got)
		}
		if diff := cmp.Diff(newer, w.api.ConfigMap(shop, name)); diff != "" {
			w.Errorf("the ledger was written (-before +after):\n%s", diff)
		}
		w.api.Rewrite(shop, name, func(cm *corev1.ConfigMap) { delete(cm.Data, annotations.DataFormat) })
		w.after(2 * time.Minute)
		if got := w.runs("nightly"); len(got) == 0 {
			w.Errorf("when it can be read nothing runs; the ledger says %q", w.entries("nightly"))
		}
	})
}

func TestALedgerThatIsNotTaken(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", hook)
		w.begins()
		w.after(2 * time.Second)
		mend := w.api.Refuse(agenttest.When{Verb: "update", Resource: "configmaps", Name: "maint-ledger"}, agenttest.Always, 422, "it is immutable")
		w.says("nightly", annotations.Trigger, "now")
		w.after(2 * time.Second)
		if got := w.said("nightly", annotations.StatusMessage); !strings.Contains(got, "nothing of this plan starts or ends") || len(w.runs("nightly")) > 0 {
			w.Errorf("it says %q, runs %q", got, w.runs("nightly"))
		}
		mend()
		w.after(2 * time.Minute)
		if got := len(w.runs("nightly")); got != 1 {
			w.Errorf("when it was mended there are %d runs", got)
		}
	})
}

// A quota that is full is said on a plan that has no ledger yet, and nothing of it is lost.
func TestAFirstLedgerThatAQuotaRefusesIsSaid(t *testing.T) {
	play(t, func(w *world) {
		mend := w.api.Refuse(agenttest.When{Verb: "create", Resource: "configmaps"}, agenttest.Always, 403, "exceeded quota: q")
		w.plan("nightly", "triggers: {onCreate: true}\n"+hook)
		w.begins()
		w.after(2 * time.Second)
		if got := w.said("nightly", annotations.StatusMessage); !strings.Contains(got, "its ledger cannot be written") || !strings.Contains(got, "exceeded quota") {
			w.Errorf("it says %q", got)
		}
		mend()
		w.after(2 * time.Minute)
		if got := len(w.runs("nightly")); got != 1 {
			w.Errorf("when there is room there are %d runs", got)
		}
	})
}

func TestALedgerThatIsLostIsMadeAnew(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", tenMins+hook)
		a := w.begins()
		w.after(2 * time.Second)
		name := annotations.LedgerName("nightly", "uid-nightly")
		lost := w.api.ConfigMap(shop, name)
		w.api.Delete("configmaps", shop, name)
		a.LedgerLost(&lost.ObjectMeta)
		w.after(2 * time.Second)
		anew := w.api.ConfigMap(shop, name)
		if anew == nil {
			w.Fatal("there is none")
		}
		if l, err := annotations.ReadLedger(anew, "uid-nightly"); err != nil || l.BegunAnew == nil {
			w.Errorf("it does not say that it begins anew: %+v (%v)", l, err)
		}
		w.after(10 * time.Minute)
		w.expect("the next slot", "nightly", "00:10 open schedule")
		other := lost.DeepCopy()
		other.Name = "maint-ledger-other"
		w.api.ClearLog()
		a.LedgerLost(&other.ObjectMeta)
		w.after(2 * time.Second)
		if got := w.api.Log(); len(got) > 0 {
			w.Errorf("another plan's ledger is lost, and: %q", got)
		}
	})
}

// A HibernatePlan's ledger that is deleted is not believed any longer either.
func TestTheLedgerOfAHibernatePlanIsReadAnewOnceItIsLost(t *testing.T) {
	play(t, func(w *world) {
		nights := annotations.NewHibernatePlan(shop, "nights", "apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\n", "")
		nights.UID = "uid-nights"
		w.api.Put(nights)
		a := w.begins()
		k := types.NamespacedName{Namespace: shop, Name: "nights"}
		if err := a.Stores.Ledgers.Put(w.Context(), k, "uid-nights", nil, ledger.Ledger{PlanUID: "uid-nights"}); err != nil {
			w.Fatal(err)
		}
		lost := w.api.ConfigMap(shop, annotations.LedgerName("nights", "uid-nights"))
		w.api.Delete("configmaps", shop, lost.Name)
		a.LedgerLost(&lost.ObjectMeta)
		if got, err := a.Stores.Ledgers.Get(w.Context(), k, "uid-nights"); got != nil || err != nil {
			w.Errorf("it is still %v, %v", got, err)
		}
	})
}

// A token whose run is there asks for nothing any more, although the agent that made it died before
// it said so on the plan; one that came after is new.
func TestATokenOfALostLedgerWhoseRunIsThereIsNotClaimedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		unread bool   // its run does not count any more
		later  string // another token
		want   []string
	}{
		"its run goes on":              {want: []string{"00:00 open manual"}},
		"its run cannot be read":       {unread: true},
		"another one came meanwhile":   {unread: true, later: "again", want: []string{"00:00 open manual"}},
		"the same one is written anew": {unread: true, later: "now"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.plan("nightly", hook)
				w.begins()
				w.after(2 * time.Second)
				mend := w.api.Refuse(agenttest.When{Verb: "patch", Resource: "configmaps", Name: "nightly"}, agenttest.Always, 500, "not now")
				w.says("nightly", annotations.Trigger, "now")
				w.agent.stop()
				mend()
				if said := w.said("nightly", annotations.StatusTrigger); said != "" || w.api.ConfigMap(shop, nameOf("nightly", "now")) == nil {
					w.Fatalf("the status names %q, and its run is there: %v", said, w.runs("nightly"))
				}
				w.api.Delete("configmaps", shop, annotations.LedgerName("nightly", "uid-nightly"))
				if c.unread {
					w.api.Annotate(shop, nameOf("nightly", "now"), annotations.StatusSignature, "of another key")
				}
				if c.later != "" {
					w.says("nightly", annotations.Trigger, c.later)
				}
				w.begins()
				w.after(3 * time.Second)
				w.expect("under the next agent", "nightly", c.want...)
				if !w.ledger("nightly").KnowsToken("now") && c.later != "again" {
					w.Errorf("its token is not known: %v", w.ledger("nightly").Tokens)
				}
			})
		})
	}
}

// A run ends without a number on its target where the value was changed meanwhile. Whoever counts anew
// after its ledger is lost comes to that run again: it answered another value.
func TestALabelOfALostLedgerIsNotAnsweredByTheRunOfAnotherValue(t *testing.T) {
	for name, c := range map[string]struct {
		value string // that stands now
		want  []string
	}{
		"another value":  {"again", []string{"00:00 open label:example.org/go"}},
		"the same value": {"now", []string{"00:00 Ran label:example.org/go"}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.api.Put(deployment(true, map[string]string{"example.org/go": "now"}))
				w.plan("nightly", orders+"triggers: {labels: [example.org/go]}\n"+hook)
				w.begins()
				w.after(2 * time.Second)
				runs := w.runs("nightly")
				if len(runs) != 1 {
					w.Fatalf("runs %q", runs)
				}
				w.progress(runs[0], run.Succeeded)
				w.agent.stop()
				w.api.Edit("deployments", shop, "orders", func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"example.org/go": c.value}) })
				w.api.Delete("configmaps", shop, annotations.LedgerName("nightly", "uid-nightly"))
				w.begins()
				w.after(5 * time.Second)
				w.expect("under the next agent", "nightly", c.want...)
				if state := w.ledger("nightly").Labels["example.org/go"]; state.Value != c.value || state.Claimed != int64(len(w.runs("nightly"))) {
					w.Errorf("it knows %+v, of runs %q", state, w.runs("nightly"))
				}
			})
		})
	}
}

func TestARunThatTheAPIServerDoesNotTake(t *testing.T) {
	create := agenttest.When{Verb: "create", Resource: "configmaps"}
	for name, c := range map[string]struct {
		spec      string
		ask       func(w *world)
		code      int
		entries   []string // while it is refused
		condition string
		mended    []string // when it would be taken
		said      string   // of the run
	}{
		"a dry run": {
			spec: "dryRun: true\n" + hook, ask: func(w *world) { w.says("nightly", annotations.Trigger, "now") }, code: 422, said: "The API server refuses run " + nameOf("nightly", "now") + " (manual, dry run), and ",
			entries: []string{"00:00 open manual"}, condition: "True NotTaken", mended: []string{"00:00 open manual"},
		},
		"a token waits while it is refused as it is": {
			spec: hook, ask: func(w *world) { w.says("nightly", annotations.Trigger, "now") }, code: 422, said: "The API server refuses run " + nameOf("nightly", "now") + " (manual), and ",
			entries: []string{"00:00 open manual"}, condition: "True NotTaken", mended: []string{"00:00 open manual"},
		},
		"a slot that would never be taken is missed": {
			spec: tenMins + hook, ask: func(w *world) { w.after(10 * time.Minute) }, code: 422,
			entries: []string{"00:10 Missed refused"}, mended: []string{"00:10 Missed refused"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.plan("nightly", c.spec)
				w.begins()
				w.after(2 * time.Second)
				mend := w.api.Refuse(create, agenttest.Always, c.code, "the object is not taken")
				c.ask(w)
				w.after(40 * time.Second)
				w.expect("while it is refused", "nightly", c.entries...)
				if got := w.condition("nightly", "RunRefused"); got != c.condition || len(w.runs("nightly")) > 0 {
					w.Errorf("RunRefused is %q, runs %q", got, w.runs("nightly"))
				}
				w.wantEvent("Warning RunRefused nightly: " + c.said)
				mend()
				w.after(time.Minute)
				w.expect("when it would be taken", "nightly", c.mended...)
				if open := len(w.ledger("nightly").Open); len(w.runs("nightly")) != open || w.condition("nightly", "RunRefused") != "" {
					w.Errorf("%d claims, runs %q, RunRefused %q", open, w.runs("nightly"), w.condition("nightly", "RunRefused"))
				}
			})
		})
	}
}

func TestARunThatWasTakenAwayWhileNobodyLookedIsNotMadeAgain(t *testing.T) {
	for name, begun := range map[string]bool{"it had begun": true, "it had not begun": false} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.plan("nightly", hook)
				w.begins()
				w.after(time.Second)
				w.says("nightly", annotations.Trigger, "now")
				name := nameOf("nightly", "now")
				if begun {
					w.progress(name, run.Running)
				}
				w.after(time.Second)
				w.agent.stop()
				w.api.DeleteAtOnce("configmaps", shop, name)
				w.begins()
				w.after(5 * time.Second)
				if got := w.runs("nightly"); len(got) > 0 || len(w.ledger("nightly").Open) > 0 {
					w.Errorf("runs %q, %d claims", got, len(w.ledger("nightly").Open))
				}
				if len(w.orphans) != 1 || strings.Contains(w.orphans[0], "had not begun") == begun {
					w.Errorf("said %q", w.orphans)
				}
			})
		})
	}
}

func TestARunThatStandsInItsPlansStatusMayAct(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", hook)
		w.begins()
		w.after(time.Second)
		w.says("nightly", annotations.Trigger, "now")
		name := nameOf("nightly", "now")
		w.rung = nil
		w.progress(name, run.Running)
		if got := w.said("nightly", annotations.StatusRuns); got != name+"=Running" {
			w.Errorf("it says %q", got)
		}
		if !slices.Contains(w.rung, name) || !w.agent.Stores.Runs.IsRecorded(key(name)) {
			w.Errorf("enqueued %q", w.rung)
		}
	})
}

func TestEndedRunsArePruned(t *testing.T) {
	for name, c := range map[string]struct {
		limits string
		ages   map[string]time.Duration // by name; those with an f failed, those with an x are not the agent's, those with dry changed nothing
		want   []string
	}{
		"the newest of each kind stay": {
			limits: "successfulRunsHistoryLimit: 1\nfailedRunsHistoryLimit: 1\n",
			ages:   map[string]time.Duration{"a": time.Hour, "b": 2 * time.Hour, "f-a": 3 * time.Hour, "f-b": 4 * time.Hour}, want: []string{"a", "f-a"},
		},
		"none is kept for longer than the configuration says": {
			limits: "successfulRunsHistoryLimit: 5\n", ages: map[string]time.Duration{"a": time.Hour, "b": 31 * 24 * time.Hour}, want: []string{"a"},
		},
		"what the agent has not signed stays, and takes nobody's place": {
			limits: "successfulRunsHistoryLimit: 1\n", ages: map[string]time.Duration{"x-a": time.Minute, "x-b": 40 * 24 * time.Hour, "a": time.Hour}, want: []string{"a", "x-a", "x-b"},
		},
		"the newest dry runs stay beside the limits": {
			limits: "successfulRunsHistoryLimit: 1\nfailedRunsHistoryLimit: 1\n",
			ages:   map[string]time.Duration{"a": 9 * time.Hour, "f-a": 9 * time.Hour, "dry-a": time.Hour, "dry-b": 2 * time.Hour, "dry-c": 3 * time.Hour, "dry-d": 4 * time.Hour},
			want:   []string{"a", "dry-a", "dry-b", "dry-c", "f-a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.plan("nightly", c.limits+hook)
				a := w.begins()
				w.after(time.Second)
				for name, age := range c.ages {
					phase := run.Succeeded
					if strings.HasPrefix(name, "f") {
						phase = run.Failed
					}
					w.api.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
						Namespace: shop, Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{annotations.LabelKind: annotations.KindRun, annotations.LabelPlan: "nightly", annotations.LabelPhase: string(phase)},
					}})
					a.RunEnded(&store.EndedRun{Namespace: shop, Name: name, Plan: "nightly", Made: !strings.HasPrefix(name, "x"), Uid: "uid-" + name, Created: time.Now().Add(-age).Unix(), Succeeded: phase == run.Succeeded, DryRun: strings.HasPrefix(name, "dry")})
				}
				w.after(2 * time.Second)
				if diff := cmp.Diff(c.want, w.runs("nightly")); diff != "" {
					w.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

// Another run of the name is not deleted in the place of one that is known.
func TestAnEndedRunIsDeletedByItsUID(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", "successfulRunsHistoryLimit: 0\n"+hook)
		a := w.begins()
		w.after(time.Second)
		w.api.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "a", UID: "another", Labels: map[string]string{annotations.LabelKind: annotations.KindRun, annotations.LabelPlan: "nightly"}}})
		ended := &store.EndedRun{Namespace: shop, Name: "a", Plan: "nightly", Made: true, Uid: "uid-a", Created: time.Now().Unix(), Succeeded: true}
		a.RunEnded(ended)
		w.after(2 * time.Second)
		if got := w.runs("nightly"); !slices.Equal(got, []string{"a"}) {
			w.Errorf("left are %q", got)
		}
		a.EndedRunGone(ended)
		if left := a.Stores.History.Of(key("nightly")); len(left) > 0 {
			w.Errorf("it remembers %v", left)
		}
	})
}

func TestTheMirrorOnTheTarget(t *testing.T) {
	mirror := func(w *world, suffix string) string {
		return w.api.Get("deployments", shop, "orders").GetAnnotations()[annotations.Mirror("mirror.maint.dev", "nightly", suffix)]
	}
	play(t, func(w *world) {
		w.api.Put(deployment(true, nil))
		w.plan("nightly", orders+tenMins+hook)
		w.begins()
		w.after(2 * time.Second)
		if got := mirror(w, "next-run"); got != "2000-01-01T00:10:00Z" {
			w.Errorf("the next run is %q", got)
		}
		if got := w.api.Log(); !slices.Contains(got, "maint-runner patch deployments shop/orders") {
			w.Errorf("it is not written as the plan's account: %q", got)
		}
		w.api.Deny(runner, "patch", "deployments")
		w.says("nightly", annotations.Trigger, "now")
		w.progress(nameOf("nightly", "now"), run.Running)
		w.after(5 * time.Second)
		if got := w.condition("nightly", "Mirrored"); got != "False Refused" {
			w.Errorf("Mirrored is %q", got)
		}
		w.api.Allow(runner, "patch", "deployments")
		w.progress(nameOf("nightly", "now"), run.Succeeded)
		w.after(5 * time.Second) // not as late as what has been refused for minutes
		if got := w.condition("nightly", "Mirrored"); got != "" || mirror(w, "status") != "completed" {
			w.Errorf("Mirrored is %q, the status %q", got, mirror(w, "status"))
		}
	})
}

func TestTheMirrorLeavesWithItsPlan(t *testing.T) {
	mirrored := func(w *world) (out []string) {
		for key := range w.api.Get("deployments", shop, "orders").GetAnnotations() {
			if strings.HasPrefix(key, "mirror.maint.dev/nightly-") {
				out = append(out, strings.TrimPrefix(key, "mirror.maint.dev/nightly-"))
			}
		}
		slices.Sort(out)
		return out
	}
	play(t, func(w *world) {
		w.api.Put(deployment(true, nil))
		w.plan("nightly", orders+tenMins+hook)
		w.begins()
		w.after(2 * time.Second)
		w.says("nightly", annotations.Trigger, "now")
		w.progress(nameOf("nightly", "now"), run.Running)
		w.after(5 * time.Second)
		if got := mirrored(w); !slices.Equal(got, []string{"last-run", "next-run", "status"}) {
			w.Fatalf("the mirror is %q", got)
		}
		w.api.Delete("configmaps", shop, "nightly")
		w.after(2 * time.Second)
		if got := mirrored(w); len(got) > 0 {
			w.Errorf("%q stay", got)
		}
	})
}

// A dry run did nothing to the target: whoever looks there sees what really ran.
// Whoever takes a mirror away may be refused, or not answered, for a while.
func TestTheMirrorLeavesWhenItCan(t *testing.T) {
	const key = "mirror.maint.dev/nightly-next-run"
	for name, c := range map[string]struct {
		refused time.Duration // so long
		then    func(w *world)
		stays   bool
	}{
		"the API server comes back":   {refused: 3 * time.Minute, then: func(w *world) { w.api.Delete("configmaps", shop, "nightly") }},
		"it does not":                 {refused: time.Hour, stays: true, then: func(w *world) { w.api.Delete("configmaps", shop, "nightly") }},
		"the plan has another prefix": {refused: 3 * time.Minute, then: func(w *world) { w.plan("nightly", orders+"mirrorPrefix: example.org\n"+tenMins+hook) }},
		"the plan is made anew, of the name": {refused: 3 * time.Minute, then: func(w *world) {
			w.api.Delete("configmaps", shop, "nightly")
			w.after(time.Second)
			w.plan("nightly", orders+"mirrorPrefix: example.org\n"+tenMins+hook)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.api.Put(deployment(true, nil))
				w.plan("nightly", orders+tenMins+hook)
				w.begins()
				w.after(5 * time.Second)
				stands := func() bool { return w.api.Get("deployments", shop, "orders").GetAnnotations()[key] != "" }
				if !stands() {
					w.Fatal("there is no mirror")
				}
				mend := w.api.Refuse(agenttest.When{Verb: "patch", Resource: "deployments"}, agenttest.Always, 503, "not now")
				c.then(w)
				w.after(c.refused)
				if !stands() {
					w.Fatal("it left although that was refused")
				}
				mend()
				w.after(2 * time.Minute)
				if stands() != c.stays {
					w.Errorf("it stands: %t", stands())
				}
			})
		})
	}
}

func TestADryRunLeavesTheMirrorAlone(t *testing.T) {
	mirrored := func(w *world) map[string]string {
		out := map[string]string{}
		for key, value := range w.api.Get("deployments", shop, "orders").GetAnnotations() {
			if name, is := strings.CutPrefix(key, "mirror.maint.dev/nightly-"); is {
				out[name] = value
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		ran  bool
		want []string
	}{
		"of a plan that never ran":  {false, []string{"next-run"}},
		"of a plan that ran before": {true, []string{"last-run", "next-run", "status"}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.api.Put(deployment(true, nil))
				w.plan("nightly", orders+tenMins+hook)
				w.begins()
				w.after(2 * time.Second)
				if c.ran {
					w.says("nightly", annotations.Trigger, "now")
					w.progress(nameOf("nightly", "now"), run.Running)
					w.progress(nameOf("nightly", "now"), run.Succeeded)
					w.after(5 * time.Second)
				}
				before := mirrored(w)
				if got := slices.Sorted(maps.Keys(before)); !slices.Equal(got, c.want) {
					w.Fatalf("the mirror is %q", got)
				}
				w.says("nightly", annotations.TriggerOptions, `{"token":"dry","dryRun":true}`)
				w.says("nightly", annotations.Trigger, "dry")
				for _, phase := range []run.Phase{run.Running, run.Failed} {
					w.progress(nameOf("nightly", "dry"), phase)
					w.after(5 * time.Second)
					if diff := cmp.Diff(before, mirrored(w)); diff != "" {
						w.Errorf("while the dry run is %s the mirror changes: %s", phase, diff)
					}
				}
			})
		})
	}
}

// A plan that was deleted while no agent ran left its mirror: one that is written under its
// name since takes what it does not say itself away.
func TestTheMirrorOfAnEarlierPlanOfTheNameGoes(t *testing.T) {
	play(t, func(w *world) {
		d, left := deployment(true, nil), map[string]string{"example.org/kept": "yes"}
		for _, suffix := range []string{"status", "last-run", "next-run", "step"} {
			left[annotations.Mirror("mirror.maint.dev", "nightly", suffix)] = "of the earlier plan"
		}
		d.SetAnnotations(left)
		w.api.Put(d)
		w.plan("nightly", orders+tenMins+hook)
		w.begins()
		w.after(2 * time.Second)
		want := map[string]string{"example.org/kept": "yes", "mirror.maint.dev/nightly-next-run": "2000-01-01T00:10:00Z"}
		if diff := cmp.Diff(want, w.api.Get("deployments", shop, "orders").GetAnnotations()); diff != "" {
			w.Error(diff)
		}
	})
}

// So does one that has nothing to say itself: it has no schedule, and never ran. Where nothing
// stands it writes nothing.
func TestAPlanThatSaysNothingTakesTheMirrorOfAnEarlierOneAway(t *testing.T) {
	labels := "triggers: {labels: [example.org/restart]}\n"
	for name, c := range map[string]struct {
		triggers string
		left     string // of which plan
		late     bool   // its target is ready later
		writes   bool
	}{
		"a manual plan":                         {left: "nightly", writes: true},
		"a manual plan, of a target to come":    {left: "nightly", late: true, writes: true},
		"a plan with labels":                    {triggers: labels, left: "nightly", writes: true},
		"a manual plan beside another's mirror": {left: "other"},
		"a plan with labels beside another's":   {triggers: labels, left: "other"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				key := annotations.Mirror("mirror.maint.dev", c.left, "status")
				mirror := map[string]string{key: "running"}
				d := deployment(!c.late, nil)
				d.SetAnnotations(mirror)
				w.api.Put(d)
				w.plan("nightly", orders+c.triggers+hook)
				w.begins()
				w.after(2 * time.Second)
				if c.late {
					d := deployment(true, nil)
					d.SetAnnotations(mirror)
					w.api.Put(d)
					w.after(5 * time.Minute)
				}
				if c.writes {
					mirror = nil
				}
				w.begins() // writes nothing again
				w.after(time.Minute)
				patches := 0
				for _, line := range w.api.Log() {
					if line == "maint-runner patch deployments shop/orders" {
						patches++
					}
				}
				if got := w.api.Get("deployments", shop, "orders").GetAnnotations(); got[key] != mirror[key] || c.writes != (patches == 1) || patches > 1 {
					t.Errorf("the target says %v after %d patches", got, patches)
				}
			})
		})
	}
}

// A plan may take another prefix or another target: the former mirror would say for ever that
// something runs.
func TestTheMirrorMovesWithItsPlan(t *testing.T) {
	moved := strings.Replace(orders, "name: orders", "name: other", 1)
	for name, next := range map[string]string{
		"to another prefix": orders + "mirrorPrefix: kept.example.org\n",
		"to another target": moved,
		"to no target":      "",
	} {
		t.Run(name, func(t *testing.T) {
			mirrored := func(w *world, object, prefix string) (n int) {
				for key := range w.api.Get("deployments", shop, object).GetAnnotations() {
					if strings.HasPrefix(key, prefix) {
						n++
					}
				}
				return n
			}
			play(t, func(w *world) {
				other := deployment(true, nil)
				other.SetName("other")
				w.api.Put(deployment(true, nil))
				w.api.Put(other)
				w.plan("nightly", orders+tenMins+hook)
				w.begins()
				w.after(2 * time.Second)
				if mirrored(w, "orders", "mirror.maint.dev/nightly-") == 0 {
					w.Fatal("there is no mirror")
				}
				w.plan("nightly", "steps: 1\n") // while nobody understands it, all stays
				w.after(5 * time.Second)
				if mirrored(w, "orders", "mirror.maint.dev/nightly-") == 0 {
					w.Error("an invalid plan loses its mirror")
				}
				w.plan("nightly", next+tenMins+hook)
				w.after(5 * time.Second)
				if n := mirrored(w, "orders", "mirror.maint.dev/nightly-"); n > 0 {
					w.Errorf("%d of it stay", n)
				}
				if next == moved && mirrored(w, "other", "mirror.maint.dev/nightly-") == 0 || strings.Contains(next, "kept") && mirrored(w, "orders", "kept.example.org/nightly-") == 0 {
					w.Error("it is not where the plan wants it")
				}
			})
		})
	}
}

func TestStepTemplates(t *testing.T) {
	template := func(text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "ring", Labels: map[string]string{annotations.LabelKind: annotations.KindStepTemplate}},
			Data:       map[string]string{annotations.DataTemplate: text},
		}
	}
	good := "apiVersion: maint.dev/v1alpha1\nkind: StepTemplate\nspec:\n  steps:\n  - {name: hook, type: webhook, properties: {url: 'https://hooks.test'}}\n"
	play(t, func(w *world) {
		w.plan("nightly", "steps:\n- {name: ring, type: template/ring}\n")
		w.begins()
		w.after(2 * time.Second)
		if got := w.condition("nightly", "Valid"); got != "False Faults" {
			w.Errorf("without its template Valid is %q", got)
		}
		w.api.Put(template("kind: nothing\n"))
		w.after(2 * time.Second)
		if got := w.condition("ring", "Valid"); got != "False Faults" {
			w.Errorf("of a broken template Valid is %q", got)
		}
		w.api.Put(template(good))
		w.after(2 * time.Second)
		if got, used := w.condition("ring", "Valid"), w.condition("nightly", "Valid"); got != "True Understood" || used != "True Understood" {
			w.Errorf("of the template Valid is %q, of its plan %q: %s", got, used, w.said("ring", annotations.StatusMessage))
		}
		w.api.Delete("configmaps", shop, "ring")
		w.after(2 * time.Second)
		if got := w.condition("nightly", "Valid"); got != "False Faults" {
			w.Errorf("when its template is gone Valid is %q", got)
		}
	})
}

func TestAStepThatTheConfigurationDenies(t *testing.T) {
	play(t, func(w *world) {
		w.settings.Steps = []agentconfig.StepUse{{Namespaces: []string{"sh*"}, Deny: []string{"webhook"}}}
		w.plan("nightly", "steps:\n- name: both\n  type: step-group\n  properties:\n    steps:\n    - {name: hook, type: webhook, properties: {url: 'https://hooks.test'}}\n- {name: again, type: webhook, properties: {url: 'https://hooks.test'}}\n")
		w.begins()
		w.after(2 * time.Second)
		if got := w.said("nightly", annotations.StatusMessage); !strings.Contains(got, "does not allow in namespace shop") {
			w.Errorf("it says %q", got)
		}
		for _, step := range []string{"hook", "again"} {
			if got := w.said("nightly", annotations.StatusConditions); !strings.Contains(got, "step "+step+" is of type webhook") {
				w.Errorf("of step %s its condition does not speak: %q", step, got)
			}
		}
	})
}

func TestWhatARunLeftIsForgottenOnceItIsAsItWas(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", hook)
		a := w.begins()
		w.after(time.Second)
		left := ledger.Leftover{Run: "maint-run-x", Step: "down", Type: "scale", Account: "maint-runner", Before: []byte("{}"), At: time.Now()}
		err := a.Stores.Ledgers.Edit(w.Context(), key("nightly"), "uid-nightly", func(l ledger.Ledger) ledger.Ledger { l.Left = append(l.Left, left); return l })
		if err != nil {
			w.Fatal(err)
		}
		a.Queue.Add(key("nightly"))
		w.after(2 * time.Second)
		if got := w.condition("nightly", "Restored"); got != "False NotPutBack" {
			w.Errorf("Restored is %q", got)
		}
		w.asItWas.Store(true)
		w.after(time.Minute)
		if got := w.condition("nightly", "Restored"); got != "" || len(w.ledger("nightly").Left) > 0 {
			w.Errorf("Restored is %q, left %v", got, w.ledger("nightly").Left)
		}
		w.wantEvent("Normal PutBack nightly: What run maint-run-x, step down")
	})
}

func TestIntentsThatMeanNothingAreTakenAway(t *testing.T) {
	for _, annotation := range []string{annotations.Abort, annotations.Approve, annotations.Reject, annotations.Resume} {
		t.Run(annotation, func(t *testing.T) {
			play(t, func(w *world) {
				w.plan("nightly", hook)
				w.begins()
				w.after(time.Second)
				w.says("nightly", annotation, "maint-run-none")
				w.after(time.Second)
				if got := w.said("nightly", annotation); got != "" {
					w.Errorf("there is %q", got)
				}
				w.wantEvent(fmt.Sprintf("Warning IntentIgnored nightly: %s: maint-run-none", annotation))
			})
		})
	}
}

// Those who may not read the pauses above a plan go by its status, and metrics by what check says.
func TestAPauseIsPublishedWhateverTheRunIsAt(t *testing.T) {
	for name, strategy := range map[string]string{"without a gate": "", "with one that is open": "Permissive"} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.plan("nightly", hook)
				w.begins()
				w.says("nightly", annotations.ChangeStrategy, strategy)
				w.says("nightly", annotations.Trigger, "now")
				w.progress(nameOf("nightly", "now"), run.Running)
				w.after(time.Second)
				if got := w.condition("nightly", policy.ChangesPaused); got == "True Paused" || w.said("nightly", annotations.StatusPhase) != "Running" {
					w.Errorf("not paused, %s: %q", w.said("nightly", annotations.StatusPhase), got)
				}
				w.says("nightly", annotations.Pause, "2000-01-01T01:00:00Z")
				w.pauses(annotations.DefaultNamespace)
				w.after(2 * time.Second)
				got, phase, said := w.condition("nightly", policy.ChangesPaused), w.said("nightly", annotations.StatusPhase), w.said("nightly", annotations.StatusConditions)
				if got != "True Paused" || phase == "Paused" || !strings.Contains(said, `"message":"the whole cluster is paused"`) {
					w.Errorf("%s: %q, %s", phase, got, said)
				}
				v := w.agent.Stores.Gates.Subjects()[key("nightly")].Verdict(w.agent.Now())
				if v.Permitted || v.NextChangeETA != schedule.ForEver || v.PermissiveRemaining != 0 {
					w.Errorf("metrics: %+v", v)
				}
			})
		})
	}
}

func TestAPlanIsMadeSureOfBeforeItIsClaimed(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", tenMins+hook)
		w.begins()
		w.after(9*time.Minute + 59*time.Second)
		w.api.StallWatches("configmaps")
		w.api.StallWatches("namespaces")
		w.api.Annotate(shop, "nightly", annotations.Pause, "true") // no watch shows it
		w.after(2 * time.Second)
		w.expect("the slot", "nightly", "00:10 Skipped paused")
	})
}

// An agent that dies between the last writes of a run leaves its claim open.
func TestTheClaimOfARunThatHasEndedIsClosed(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", hook)
		w.begins()
		w.after(time.Second)
		w.says("nightly", annotations.Trigger, "now")
		name := nameOf("nightly", "now")
		w.progress(name, run.Running)
		w.agent.stop()
		w.api.Rewrite(shop, name, func(cm *corev1.ConfigMap) {
			cm.Labels[annotations.LabelPhase] = string(run.Succeeded)
			cm.Data[annotations.DataJournal] = strings.Replace(cm.Data[annotations.DataJournal], `"phase":"Running"`, `"phase":"Succeeded","finishedAt":"2000-01-01T00:00:30Z"`, 1)
		})
		w.begins()
		w.after(5 * time.Second)
		w.expect("then", "nightly", "00:00 Ran manual")
		if len(w.orphans) > 0 {
			w.Errorf("it is taken for an orphan: %q", w.orphans)
		}
	})
}

func TestWhatAGatedPlanSaysOfChange(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", hook)
		w.begins()
		w.says("nightly", annotations.ChangeStrategy, "Permissive")
		is := func(when, paused, pending string) {
			w.Helper()
			if got, waits := w.condition("nightly", "ChangesPaused"), w.condition("nightly", "ChangesPending"); got != paused || waits != pending {
				w.Errorf("%s: ChangesPaused %q, ChangesPending %q", when, got, waits)
			}
		}
		is("while change is permitted", "False Permissive", "False Nothing")
		w.says("nightly", annotations.ChangeStrategy, "Restrictive")
		is("while it is not", "True Restrictive", "False Nothing")
		w.says("nightly", annotations.Trigger, "now")
		w.api.Rewrite(shop, nameOf("nightly", "now"), func(cm *corev1.ConfigMap) {
			cm.Data[annotations.DataJournal] = strings.Replace(cm.Data[annotations.DataJournal], `"phase":"Pending"`, `"phase":"Pending","waiting":"window","message":"it is closed"`, 1)
		})
		w.after(2 * time.Second)
		is("while a run waits for it", "True Restrictive", "True RunWaits")
		w.says("nightly", annotations.Pause, "true")
		is("while the plan is paused", "True Paused", "True RunWaits")
		w.says("nightly", annotations.Pause, "")
		w.says("nightly", annotations.ChangeStrategy, "")
		is("when nothing stands before it", "", "")
		if got := w.said("nightly", annotations.StatusBehavior); got != "" {
			w.Errorf("it says still %q", got)
		}
	})
}

// What was claimed before the clock was doubted is begun after it.
func TestAClaimWaitsWhileTheClockIsDoubted(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", hook)
		w.begins()
		w.after(time.Second)
		mend := w.api.Fail(agenttest.When{Verb: "create", Resource: "configmaps"}, agenttest.Always)
		w.says("nightly", annotations.Trigger, "now")
		w.doubt.Store("the clocks are apart")
		mend()
		w.begins()
		w.after(2 * time.Minute)
		if got := w.runs("nightly"); len(got) > 0 || w.condition("nightly", "ClockDoubt") != "True ClocksDiffer" {
			w.Errorf("runs %q, ClockDoubt %q", got, w.condition("nightly", "ClockDoubt"))
		}
		w.doubt.Store("")
		w.after(2 * time.Minute)
		if got := w.runs("nightly"); len(got) != 1 || w.condition("nightly", "ClockDoubt") != "" {
			w.Errorf("when it is believed: runs %q, ClockDoubt %q", got, w.condition("nightly", "ClockDoubt"))
		}
	})
}

// A slot that could not begin in time since the clock was doubted has that as its reason.
func TestASlotIsMissedByTheClock(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", "triggers: {schedules: [{cron: '0 * * * *'}]}\nstartDeadline: 5m\n"+hook)
		w.begins()
		w.after(time.Second)
		from := time.Now()
		w.doubt.Store("the clocks are apart")
		w.after(70 * time.Minute)
		w.doubted = [2]time.Time{from, time.Now()}
		w.doubt.Store("")
		w.after(time.Minute)
		if got := w.ledger("nightly").Recent; len(got) != 1 || got[0].Result != run.Missed || got[0].Reason != run.ReasonClock {
			w.Errorf("the slot ended as %+v", got)
		}
	})
}

func TestMetricsSayThatSomethingWaitsForAPlan(t *testing.T) {
	play(t, func(w *world) {
		w.api.Delete("serviceaccounts", shop, "maint-runner")
		w.plan("nightly", tenMins+hook)
		w.plan("rehearsed", "dryRun: true\n"+tenMins+hook)
		a := w.begins()
		waits := func(when string, want bool) {
			if o := a.Stores.Gates.Subjects()[key("rehearsed")]; o == nil || o.Waits {
				w.Errorf("%s: of a plan that changes nothing %+v", when, o)
			}
			o := a.Stores.Gates.Subjects()[key("nightly")]
			if o == nil || o.Kind != "Plan" || o.Waits != want {
				w.Errorf("%s: %+v", when, o)
			}
		}
		w.after(5 * time.Second)
		waits("before its slot", false)
		w.after(10 * time.Minute)
		waits("while its slot waits", true)
		w.api.Put(account())
		w.after(2 * time.Minute)
		waits("when it was claimed", false)
		w.progress(w.runs("nightly")[0], run.Running)
		w.progress(w.runs("nightly")[0], run.Failed)
		if at := a.Stores.Gates.Subjects()[key("nightly")].LastStart; at.IsZero() {
			w.Error("they do not say when it last began")
		}
	})
}

func TestAnEndedRunThatCannotBeDeletedIsTriedAgain(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", "successfulRunsHistoryLimit: 0\n"+hook)
		a := w.begins()
		w.after(time.Second)
		w.api.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "a", UID: "uid-a", Labels: map[string]string{annotations.LabelKind: annotations.KindRun, annotations.LabelPlan: "nightly"}}})
		w.api.Refuse(agenttest.When{Verb: "delete", Resource: "configmaps"}, 2, 500, "broken")
		a.RunEnded(&store.EndedRun{Namespace: shop, Name: "a", Plan: "nightly", Made: true, Uid: "uid-a", Created: time.Now().Unix(), Succeeded: true})
		w.after(20 * time.Second)
		if got := w.runs("nightly"); len(got) > 0 {
			w.Errorf("left are %q", got)
		}
	})
}

// A target of a kind that can be created and not read is said, and waited for as a kind that is not there.
func TestATargetThatNobodyCanReadIsSaid(t *testing.T) {
	for name, code := range map[string]int{"its path is served for creating": 405, "its path is not served": 404} {
		for triggers, says := range map[string]string{
			"schedules: [{cron: \"*/10 * * * *\"}]": "the API server lets nobody read a Binding of v1, so Binding/orders can be no target",
			"labels: [example.org/rotate]":          "the API server lets nobody",
		} {
			if code == 404 && strings.HasPrefix(triggers, "labels") {
				continue // a watch is tried on
			}
			t.Run(name+", "+triggers, func(t *testing.T) {
				play(t, func(w *world) {
					w.api.Serve(agenttest.Kind{Version: "v1", Kind: "Binding", Resource: "bindings", Namespaced: true})
					w.api.Refuse(agenttest.When{Resource: "bindings"}, agenttest.Always, code, "the server does not do that")
					w.plan("nightly", "target: {apiVersion: v1, kind: Binding, name: orders}\ntriggers: {"+triggers+"}\n"+hook)
					w.begins()
					w.after(15 * time.Minute)
					if got := w.said("nightly", annotations.StatusPhase) + ": " + w.said("nightly", annotations.StatusMessage); !strings.Contains(got, says) {
						t.Errorf("the plan says %q", got)
					}
				})
			})
		}
	}
}
