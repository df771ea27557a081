package runs

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

const wholeStory = "steps:\n- " + hook + "}\n- " + down + "\n- " + hold + "\n" + tell

// journalWrites are what the agent writes of the run.
func journalWrites() agenttest.When {
	return agenttest.When{User: "agent", Verb: "update", Resource: "configmaps", Name: runName}
}

// Wherever an agent dies, the next one goes on from what is written: what was done and
// written down is not done again, and what was begun is.
func TestANewAgentGoesOnFromTheJournal(t *testing.T) {
	for name, die := range map[string]func(c *agenttest.Cluster, at int){
		"its write does not arrive":          func(c *agenttest.Cluster, at int) { c.DieAt(at, false) },
		"it never hears that its write came": func(c *agenttest.Cluster, at int) { c.DieAt(at, true) },
	} {
		for at := range 14 {
			t.Run(name+" "+string(rune('a'+at)), func(t *testing.T) {
				inWorld(t, wholeStory, func(w *world) {
					w.steps.does("pass down", gives(`{"uid":"d","replicas":3}`))
					die(w.cluster, at)
					w.begins("a")
					w.after(time.Minute)
					w.cluster.Reconnect()
					w.begins("b")
					w.after(time.Minute)
					w.says(annotations.Resume, runName)
					w.after(5 * time.Minute)
					w.ends(run.Succeeded, "all steps are done")
					if got := w.closed(); got != "Ran manual" || len(w.ledger().Recent) != 1 {
						t.Errorf("its entry ended %q: %+v", got, w.ledger().Recent)
					}
					for _, act := range []string{"pass hook#1", "restore down#1", "pass finally/tell#1"} {
						// The one act whose outcome was not written may be done again.
						if n := w.count(act); n < 1 || n > 2 {
							t.Errorf("%s was done %d times in %q", act, n, w.story())
						}
					}
					acts := w.acts()
					if again := len(acts) - len(slices.Compact(slices.Clone(acts))); again > 2 { // down passes twice by itself
						t.Errorf("more than one act was done again: %q", acts)
					}
				})
			})
		}
	}
}

// A new agent writes itself down before it does anything.
func TestAnotherAgentWritesItselfDownFirst(t *testing.T) {
	inWorld(t, oneHook, func(w *world) {
		w.steps.does("pass hook", notYet(time.Hour), done())
		w.plays()
		w.cluster.ClearLog()
		w.begins("b")
		w.after(time.Second)
		if got := w.story(); slices.Index(got, "journal") < 0 || slices.Index(got, "journal") > slices.Index(got, "pass hook#1") || w.journal().Leader != "b" {
			t.Errorf("it did %q, and the journal is of %q", got, w.journal().Leader)
		}
		w.ends(run.Succeeded, "")
	})
}

func TestAWriteOfTheJournalThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		given func(w *world)
		wait  time.Duration
		stuck string // what the plan is told meanwhile
		acts  []string
	}{
		"somebody wrote on the run since: it is read again": {
			given: func(w *world) {
				w.cluster.Before(journalWrites(), func() { w.cluster.Annotate(shop, runName, "team", "blue") })
			},
			wait: time.Minute, acts: []string{"pass hook#1"},
		},
		"the outcome meets a conflict: it is not lost": {
			given: func(w *world) {
				w.steps.does("pass hook", func(ctx context.Context, call executors.Call) executors.Outcome {
					w.cluster.Annotate(shop, runName, "team", "blue")
					return done()(ctx, call)
				})
			},
			wait: time.Minute, acts: []string{"pass hook#1"},
		},
		"its reply is lost: what was written is found": {
			given: func(w *world) { w.cluster.LoseReply(journalWrites(), 1) }, wait: time.Minute, acts: []string{"pass hook#1"},
		},
		"the reply of the last one is lost: the run has ended": {
			given: func(w *world) {
				w.steps.does("pass hook", func(ctx context.Context, call executors.Call) executors.Outcome {
					w.cluster.LoseReply(agenttest.When{Verb: "update", Resource: "configmaps"}, 3)
					return done()(ctx, call)
				})
			},
			wait: 5 * time.Minute, acts: []string{"pass hook#1"},
		},
		"the API server is away for a while": {
			given: func(w *world) { w.cluster.Fail(journalWrites(), 5) }, wait: time.Minute, acts: []string{"pass hook#1"},
		},
		"it is refused for ever: its plan says so, until it is taken": {
			given: func(w *world) {
				mend := w.cluster.Refuse(journalWrites(), agenttest.Always, 422, "data: Too long")
				time.AfterFunc(30*time.Second, func() {
					w.stuckIs("refuses what it writes")
					mend()
				})
			},
			wait: 2 * time.Minute, acts: []string{"pass hook#1"},
		},
		"the ledger was written by somebody else": {
			given: func(w *world) {
				w.cluster.Before(agenttest.When{Verb: "update", Name: annotations.LedgerName(nightly, planUID)}, func() {
					w.cluster.Annotate(shop, annotations.LedgerName(nightly, planUID), "a", "b")
				})
			},
			wait: time.Minute, acts: []string{"pass hook#1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, oneHook, func(w *world) {
				c.given(w)
				w.begins("a")
				w.after(c.wait)
				w.ends(run.Succeeded, "")
				w.did(c.acts...)
				w.stuckIs("")
				if len(w.ledger().Recent) != 1 {
					t.Errorf("entries %+v", w.ledger().Recent)
				}
			})
		})
	}
}

// stuckIs fails unless the plan is told that of a run that cannot go on.
func (w *world) stuckIs(words string) {
	w.Helper()
	got := w.leads.Load().Stores.Runs.StuckOf(types.NamespacedName{Namespace: shop, Name: nightly})
	if !strings.Contains(got, words) || words == "" && got != "" {
		w.Errorf("the plan is told %q, want %q", got, words)
	}
}

// What a run that was torn away had under way is known by its steps, which lists of runs
// do not keep.
func TestWhatATornRunDidNotPutBackIsNoted(t *testing.T) {
	for name, c := range map[string]struct {
		steps string
		left  []string
	}{
		"a step is to be put back":          {"- " + down + "\n- " + hold, []string{"down"}},
		"no step is, and nothing is undone": {"- " + hold, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "steps:\n"+c.steps+"\n", func(w *world) {
				w.steps.does("pass down", gives(found))
				w.begins("a")
				w.after(time.Minute)
				w.cluster.DeleteAtOnce("configmaps", shop, runName)
				w.after(time.Second)
				if err := w.agent.CloseOrphans(w.Context(), types.NamespacedName{Namespace: shop, Name: nightly}); err != nil {
					t.Fatal(err)
				}
				var left []string
				for _, l := range w.ledger().Left {
					left = append(left, l.Step)
				}
				if !slices.Equal(left, c.left) {
					t.Errorf("left over is %q of %+v", left, w.ledger().Left)
				}
			})
		})
	}
}

func TestARunThatIsTornAwayEndsInTheLedgerAlone(t *testing.T) {
	for name, c := range map[string]struct {
		when   func(w *world)
		closed string
	}{
		"while it waits": {func(w *world) { w.after(time.Minute) }, "Ran manual"},
		"at a write": {func(w *world) {
			w.after(time.Second)
			w.cluster.Before(journalWrites(), func() { w.cluster.DeleteAtOnce("configmaps", shop, runName) })
			w.says(annotations.Resume, runName)
		}, "Ran manual"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "steps:\n- "+hold+"\n- "+hook+"}\n"+tell, func(w *world) {
				w.begins("a")
				c.when(w)
				w.cluster.DeleteAtOnce("configmaps", shop, runName)
				w.after(time.Second)
				plan := types.NamespacedName{Namespace: shop, Name: nightly}
				if n := len(w.agent.Stores.Runs.OrphansOf(plan)); n != 1 {
					t.Fatalf("%d orphans", n)
				}
				if err := w.agent.CloseOrphans(w.Context(), plan); err != nil {
					t.Fatal(err)
				}
				w.after(time.Minute)
				w.did()
				if got := w.closed(); got != c.closed || len(w.ledger().Open) > 0 || len(w.agent.Stores.Runs.OrphansOf(plan)) > 0 {
					t.Errorf("its entry ended %q: %+v", got, w.ledger())
				}
				w.wantEvent("Warning RunTornAway " + runName + ": Run maint-run-nightly-1 was removed against its finalizer; it does not run again; its finally did not run")
				w.wantEvent("Warning RunTornAway nightly: ")
				if last := w.ledger().Last; last == nil || last.Phase != run.Aborted {
					t.Errorf("the last run is %+v", last)
				}
			})
		})
	}
}

// Nothing is left that could tell how a run ended which is torn away while its plan's ledger is lost.
func TestARunThatIsTornAwayWhileItsLedgerIsLostIsTold(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"while it works": {"steps:\n- " + hold + "\n" + tell, "its plan's ledger is lost, too, so its end is recorded nowhere; its finally did not run, and nobody knows how far it came"},
		"while it waits": {"requiresApproval: true\n" + oneHook, "its plan's ledger is lost, too, so its end is recorded nowhere; it had not begun"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, c.spec, func(w *world) {
				w.plays()
				w.cluster.DeleteAtOnce("configmaps", shop, annotations.LedgerName(nightly, planUID))
				w.agent.Stores.Ledgers.Invalidate(types.NamespacedName{Namespace: shop, Name: nightly}, planUID)
				w.cluster.DeleteAtOnce("configmaps", shop, runName)
				w.after(time.Second)
				for range 2 { // once is enough
					if err := w.agent.CloseOrphans(w.Context(), types.NamespacedName{Namespace: shop, Name: nightly}); err != nil {
						t.Fatal(err)
					}
				}
				w.wantEvent("Warning RunTornAway nightly: Run maint-run-nightly-1 was removed against its finalizer; it does not run again; " + c.want)
				if n := strings.Count(strings.Join(w.events.All(), "\n"), "RunTornAway nightly"); n != 1 {
					t.Errorf("it is told %d times", n)
				}
			})
		})
	}
}

// The namespace of a run may be made again for somebody else, with a plan of the same name.
func TestARunThatIsTornAwayIsNotToldOnAnotherPlanOfTheName(t *testing.T) {
	inWorld(t, "steps:\n- "+hold+"\n- "+hook+"}\n"+tell, func(w *world) {
		w.begins("a")
		w.after(time.Minute)
		w.cluster.DeleteAtOnce("configmaps", shop, runName)
		w.cluster.DeleteAtOnce("configmaps", shop, nightly)
		other := annotations.NewPlan(shop, nightly, "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: hold, type: suspend}\n", "")
		other.UID = "another"
		w.cluster.Put(other)
		w.after(time.Second)
		if err := w.agent.CloseOrphans(w.Context(), types.NamespacedName{Namespace: shop, Name: nightly}); err != nil {
			t.Fatal(err)
		}
		w.wantEvent("Warning RunTornAway " + runName + ": ")
		if said := strings.Join(w.events.All(), "\n"); strings.Contains(said, "RunTornAway nightly") {
			t.Errorf("the other plan is told %s", said)
		}
	})
}

// An orphan whose journal cannot be read ended as its label says.
// What looks gone may be there: it is looked at before it is given up, and goes on.
func TestARunThatIsThereIsNotGivenUp(t *testing.T) {
	inWorld(t, "steps:\n- "+hold+"\n- "+hook+"}\n"+tell, func(w *world) {
		w.begins("a")
		w.after(time.Minute)
		plan := types.NamespacedName{Namespace: shop, Name: nightly}
		w.agent.Stores.Runs.MarkVanished(w.agent.Stores.Runs.Get(types.NamespacedName{Namespace: shop, Name: runName}))
		if err := w.agent.CloseOrphans(w.Context(), plan); err != nil {
			t.Fatal(err)
		}
		w.says(annotations.Resume, runName)
		w.after(time.Minute)
		w.ends(run.Succeeded, "")
		if said := strings.Join(w.events.All(), "\n"); strings.Contains(said, "RunTornAway") {
			t.Errorf("it says %s", said)
		}
	})
}

func TestAnOrphanThatCannotBeReadEndsByItsLabel(t *testing.T) {
	for phase, want := range map[string]string{"Pending": "Skipped aborted", "Running": "Ran manual"} {
		t.Run(phase, func(t *testing.T) {
			inWorld(t, oneHook, func(w *world) {
				w.cluster.Edit("configmaps", shop, runName, func(u *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(u.Object, "{", "data", annotations.DataJournal)
					u.SetLabels(map[string]string{annotations.LabelKind: annotations.KindRun, annotations.LabelPlan: nightly, annotations.LabelPhase: phase})
				})
				w.plays()
				w.cluster.DeleteAtOnce("configmaps", shop, runName)
				w.after(time.Second)
				if err := w.agent.CloseOrphans(w.Context(), types.NamespacedName{Namespace: shop, Name: nightly}); err != nil {
					t.Fatal(err)
				}
				if got := w.closed(); got != want {
					t.Errorf("its entry ended %q, want %q", got, want)
				}
			})
		})
	}
}

func TestARunOfANewerFormatIsLeftAloneAndGoesOnWhenItCanBeRead(t *testing.T) {
	inWorld(t, oneHook, func(w *world) {
		w.cluster.Rewrite(shop, runName, func(cm *corev1.ConfigMap) { cm.Data[annotations.DataFormat] = "2" })
		newer := w.cluster.ConfigMap(shop, runName)
		w.plays()
		w.says(annotations.Abort, runName)
		w.after(time.Hour)
		w.did()
		w.wantEvent("Warning RunBroken " + runName + ": This run cannot be read and is left alone: " + shop + "/" + runName + " was written by a newer version")
		w.stuckIs("was written by a newer version: its format is \"2\", and this version reads up to 1; it is left alone until a version runs that can read it")
		if diff := cmp.Diff(newer, w.cluster.ConfigMap(shop, runName)); diff != "" {
			t.Errorf("it was written (-before +after):\n%s", diff)
		}
		w.says(annotations.Abort, "")
		w.cluster.Rewrite(shop, runName, func(cm *corev1.ConfigMap) { delete(cm.Data, annotations.DataFormat) })
		w.after(time.Minute)
		w.did("pass hook#1")
		w.stuckIs("")
	})
}

func TestARunThatCannotBeReadIsLeftAlone(t *testing.T) {
	inWorld(t, oneHook, func(w *world) {
		w.cluster.Rewrite(shop, runName, func(cm *corev1.ConfigMap) { cm.Data[annotations.DataJournal] = "{" })
		w.plays()
		w.did()
		w.wantEvent("Warning RunBroken " + runName + ": This run cannot be read and is left alone")
		w.stuckIs("cannot be read and is left alone")
		if n := w.count("journal"); n > 0 {
			t.Errorf("it was written %d times", n)
		}
	})
}

func TestARunInANamespaceThatIsDeletedIsLetGo(t *testing.T) {
	for name, given := range map[string]func(w *world){
		"at once": func(*world) {},
		"after somebody wrote on it": func(w *world) {
			w.cluster.Before(journalWrites(), func() { w.cluster.Annotate(shop, runName, "team", "blue") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "steps:\n- "+hold+"\n"+tell, func(w *world) {
				w.begins("a")
				w.after(time.Minute)
				given(w)
				w.cluster.Edit("namespaces", "", shop, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"kubernetes"}) })
				w.cluster.Delete("namespaces", "", shop)
				w.after(time.Minute)
				cm := w.cluster.ConfigMap(shop, runName)
				if len(cm.Finalizers) > 0 || len(cm.OwnerReferences) > 0 {
					t.Errorf("finalizers %v, owners %v", cm.Finalizers, cm.OwnerReferences)
				}
				w.did()
				w.wantEvent("Warning RunCutOff shop: The namespace is being deleted: run maint-run-nightly-1 of plan nightly was abandoned after 0 of 2 steps")
			})
		})
	}
}

// The fence stands before every act: an agent that lost its lease sends nothing.
func TestAnAgentThatMayNotLeadDoesNothing(t *testing.T) {
	inWorld(t, "steps:\n- {name: hold, type: suspend, properties: {duration: 30s}}\n- "+hook+"}\n", func(w *world) {
		w.begins("a")
		w.after(10 * time.Second)
		w.cluster.ClearLog()
		w.agent.conn.Fence.Close()
		w.after(10 * time.Minute)
		if got := w.story(); len(got) > 0 {
			t.Errorf("it did %q", got)
		}
		w.begins("b")
		w.after(time.Minute)
		w.ends(run.Succeeded, "")
	})
}

func TestARunThatIsVoidLeavesNoLedgerBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.asked(oneHook, func(*run.Run) {})
		w.cluster.DeleteAtOnce("configmaps", shop, annotations.LedgerName(nightly, planUID))
		w.plays()
		if cm := w.cluster.ConfigMap(shop, annotations.LedgerName(nightly, planUID)); cm != nil {
			t.Error("it made a ledger")
		}
		if j := w.journal(); j.Phase != run.Pending {
			t.Errorf("before its plan has made its ledger anew it is %s", j.Phase)
		}
		w.makesLedger(ledger.Ledger{PlanUID: planUID})
		w.after(time.Minute)
		if cm := w.cluster.ConfigMap(shop, annotations.LedgerName(nightly, planUID)); cm == nil || len(w.ledger().Recent) > 0 {
			t.Error("what was void is in the ledger")
		}
		if j := w.journal(); j.Phase != run.Aborted {
			t.Errorf("it is %s", j.Phase)
		}
	})
}

func TestARunThatTheAgentDidNotSignIsLeftAlone(t *testing.T) {
	for name, edit := range map[string]func(u *unstructured.Unstructured){
		"it has no signature":  func(u *unstructured.Unstructured) { u.SetAnnotations(nil) },
		"it was changed since": func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, "x", "data", "more") },
		"its phase was changed": func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{annotations.LabelKind: annotations.KindRun, annotations.LabelPlan: nightly, annotations.LabelPhase: "Running"})
		},
		"its signature is letters": func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{annotations.StatusSignature: "x"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, oneHook, func(w *world) {
				w.cluster.Edit("configmaps", shop, runName, edit)
				w.plays()
				w.did()
				w.wantEvent("Warning RunBroken " + runName + ": This run is left alone: the run shop/" + runName + " does not count")
				if !strings.Contains(strings.Join(w.events.All(), "\n"), "Or delete it and remove its finalizer: then nothing of it is put back. While its plan's ledger has it open, no other run of that plan starts, unless the plan's concurrencyPolicy is Allow or Replace") {
					t.Errorf("the Event does not say what helps: %q", w.events.All())
				}
				if n := w.count("journal"); n > 0 {
					t.Errorf("it was written %d times", n)
				}
			})
		})
	}
}

// An old state of a run that has ended, with its signature, put back by somebody.
func TestARunWithoutItsOpenEntryBeginsNothing(t *testing.T) {
	inWorld(t, oneHook, func(w *world) {
		old := w.cluster.ConfigMap(shop, runName)
		w.plays()
		w.after(time.Minute)
		w.did("pass hook#1")
		w.cluster.DeleteAtOnce("configmaps", shop, runName)
		w.after(time.Minute)
		r, j, err := annotations.ReadRun(old)
		if err != nil {
			t.Fatal(err)
		}
		w.put(r, j.Start(time.Now()))
		w.after(time.Minute)
		w.did("pass hook#1")
		w.stuckIs("no open entry")
		if !w.agent.Stores.Runs.Unclaimed(types.NamespacedName{Namespace: shop, Name: runName}) {
			t.Error("what its journal says of nodes counts")
		}
	})
}

// An old state of a run in its cleanup, put back after it has ended: what the configuration denies
// since is not done once more.
func TestADeniedStepOfACleanupIsNotDoneOnceMore(t *testing.T) {
	for name, denied := range map[string]bool{"denied since": true, "allowed": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "steps:\n- "+hook+"}\nfinally:\n- {name: over, type: webhook, properties: {url: https://example.org/over}}\n", func(w *world) {
				w.steps.does("pass finally/over", hangs)
				w.plays()
				old := w.cluster.ConfigMap(shop, runName)
				r, j, err := annotations.ReadRun(old)
				if err != nil || j.End == nil {
					t.Fatalf("it is not in its cleanup: %v, %+v", err, j)
				}
				w.steps.does("pass finally/over", done())
				w.begins("b")
				w.after(10 * time.Minute)
				if w.journal().Phase != run.Succeeded {
					t.Fatalf("it is %s", w.journal().Phase)
				}
				w.cluster.DeleteAtOnce("configmaps", shop, runName)
				w.after(time.Minute)
				n := w.count("pass finally/over")
				if denied {
					w.denied = []string{"webhook"}
				}
				w.put(r, j)
				w.after(time.Minute)
				if again := w.count("pass finally/over") > n; again == denied {
					t.Errorf("done once more: %t; %q", again, w.story())
				}
			})
		})
	}
}
