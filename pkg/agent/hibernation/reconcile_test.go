package hibernation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

func TestANightAndADay(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.is("Active: awake")
		if got := w.said(annotations.StatusSleeps); got != "2000-01-01T01:00:00Z" {
			t.Errorf("it says that it sleeps %s", got)
		}
		w.until("01:01")
		w.sleeps()
		w.is("Hibernated: 1 of 1 targets sleep")
		if got := w.said(annotations.StatusWakes); got != "2000-01-01T03:00:00Z" {
			t.Errorf("it says that it wakes %s", got)
		}
		if asleep, _ := w.agent.asleep.Load().(map[string]int); asleep[hibernate.TypeNoop] != 2 {
			t.Errorf("metrics say that %v sleep", asleep)
		}
		r := w.record("apps")
		if r == nil || len(r.Resources) != 2 || string(r.Resources[0].Before) != "3" || r.State != hibernate.Asleep {
			t.Fatalf("recorded is %+v", r)
		}
		w.until("02:59")
		w.sleeps()
		w.until("03:01")
		w.awake()
		w.is("Active: ")
		w.closed()
		if got := annotations.ReadTargets(w.said(annotations.StatusTargets)); len(got) != 1 || got[0].State != hibernate.Awake {
			t.Errorf("targets are %+v", got)
		}
		w.until("25:01")
		w.sleeps()
		w.until("27:01")
		w.awake()
		for _, one := range []string{"Normal FallsAsleep nights", "Normal Hibernated nights: 1 of 1", "Normal WakesUp nights", "Normal Awake nights"} {
			w.wantEvent(one)
		}
	})
}

// While it sleeps it is looked at now and then, and not without end.
func TestWhatSleepsCostsLittle(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("01:30")
		looks := w.beds.observed("apps")
		w.api.ClearLog()
		w.until("02:30")
		if n := w.beds.observed("apps") - looks; n < 50 || n > 70 {
			t.Errorf("it was looked at %d times in an hour", n)
		}
		if wrote := w.api.Log(); len(wrote) > 0 {
			t.Errorf("the agent wrote %q", wrote)
		}
	})
}

// crashes plays a story with an agent that dies at each of its writes in a stretch of it,
// which comes or does not, and is followed by another. Of a long one some are left out.
func crashes(t *testing.T, from string, happens, then func(w *world)) {
	t.Helper()
	writes := 0
	stretch := func(w *world) {
		w.deployment("data", "db", 1)
		w.until(from)
		w.api.ClearLog()
	}
	night(t, oneToThree+appsAndDB, func(w *world) {
		stretch(w)
		happens(w)
		writes = len(w.api.Log())
		then(w)
	})
	if writes < 5 {
		t.Fatalf("the story has %d writes", writes)
	}
	for at := 0; at < writes; at += (writes + mostCrashes - 1) / mostCrashes {
		for name, arrives := range map[string]bool{"does not arrive": false, "arrives unheard": true} {
			t.Run(fmt.Sprintf("write %d of %d %s", at+1, writes, name), func(t *testing.T) {
				night(t, oneToThree+appsAndDB, func(w *world) {
					stretch(w)
					w.api.DieAt(at, arrives)
					happens(w)
					w.api.Reconnect()
					w.begins()
					then(w)
				})
			})
		}
	}
}

// Wherever an agent dies, the next brings all back as it was.
func TestWhereverAnAgentDiesAllWakesAsItWas(t *testing.T) {
	crashes(t, "00:59", func(w *world) { w.until("01:03") }, func(w *world) {
		w.until("01:20")
		w.has("data 0, orders 0, web 0")
		w.is("Hibernated: 2 of 2")
		w.until("03:20")
		w.has("data 1, orders 3, web 2")
		w.is("Active: ")
		w.closed()
	})
}

func TestWhereverAnAgentDiesOnWakingAllWakesAsItWas(t *testing.T) {
	crashes(t, "02:59", func(w *world) { w.until("03:03") }, func(w *world) {
		w.until("03:20")
		w.has("data 1, orders 3, web 2")
		w.is("Active: ")
		w.closed()
	})
}

// One that dies while it wakes and sleeps again, and again.
func TestWhereverAnAgentDiesBetweenTwoSleepsAllWakesAsItWas(t *testing.T) {
	crashes(t, "01:30", func(w *world) {
		for _, state := range []string{"awake", "asleep", "awake", "asleep"} {
			w.api.Annotate(shop, "nights", annotations.HoldState, state)
			w.after(50 * time.Millisecond)
		}
		w.after(time.Minute)
	}, func(w *world) {
		w.says(annotations.HoldState, "")
		w.until("02:00")
		w.has("data 0, orders 0, web 0")
		w.until("03:20")
		w.has("data 1, orders 3, web 2")
		w.closed()
	})
}

// One that dies over restore data which somebody deletes.
func TestWhereverAnAgentDiesDeletedRestoreDataIsNotLost(t *testing.T) {
	crashes(t, "01:30", func(w *world) {
		w.api.Delete("configmaps", shop, annotations.RestoreName("nights", "apps"))
		w.after(time.Minute)
	}, func(w *world) {
		w.after(2 * time.Minute)
		w.has("data 0, orders 0, web 0")
		cm := w.api.ConfigMap(shop, annotations.RestoreName("nights", "apps"))
		if cm == nil || cm.DeletionTimestamp != nil || w.record("apps").Sleeping() != 2 {
			w.Fatalf("the restore data is %v", cm)
		}
		if w.api.ConfigMap(shop, annotations.RestoreCopyName("nights", "apps")) != nil {
			w.Error("its copy stays")
		}
		w.until("03:20")
		w.has("data 1, orders 3, web 2")
		w.closed()
	})
}

func TestDeletedRestoreDataIsWrittenAnewAndSaid(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("01:30")
		was := *w.record("apps")
		w.api.Delete("configmaps", shop, annotations.RestoreName("nights", "apps"))
		w.after(time.Second)
		if got := w.record("apps"); got == nil || len(got.Resources) != len(was.Resources) || got.Cycle != was.Cycle {
			t.Fatalf("the restore data is %+v", got)
		}
		w.wantEvent("Warning RestoreDataDeleted nights: Somebody deleted ConfigMap " + annotations.RestoreName("nights", "apps"))
		w.is("Hibernated: ")
		w.until("03:01")
		w.awake()
		w.closed()
	})
}

// Nothing more can be written into restore data that somebody makes immutable: neither that it
// wakes, nor that it is awake.
func TestRestoreDataThatSomebodyMakesImmutableIsWrittenAnew(t *testing.T) {
	immutable := func(w *world) {
		w.api.EditEach("configmaps", shop, annotations.RestoreName("nights", "apps"), func(u *unstructured.Unstructured) { u.Object["immutable"] = true })
	}
	t.Run("it is said, and wakes", func(t *testing.T) {
		night(t, oneToThree+apps, func(w *world) {
			w.until("01:30")
			immutable(w)
			w.after(time.Second)
			if cm := w.api.ConfigMap(shop, annotations.RestoreName("nights", "apps")); cm == nil || cm.Immutable != nil || w.record("apps").Sleeping() != 2 {
				t.Fatalf("the restore data is %v", cm)
			}
			w.wantEvent("Warning RestoreDataImmutable nights: Somebody made ConfigMap " + annotations.RestoreName("nights", "apps") + " immutable")
			w.until("03:01")
			w.awake()
			w.closed()
		})
	})
	t.Run("the plan is deleted", func(t *testing.T) {
		night(t, oneToThree+apps, func(w *world) {
			w.until("01:30")
			w.agent.stop()
			immutable(w)
			w.api.Delete("configmaps", shop, "nights")
			w.begins()
			w.until("01:40")
			w.awake()
			w.closed()
		})
	})
	t.Run("an agent dies over it, and so is its copy", func(t *testing.T) {
		crashes(t, "01:30", func(w *world) {
			immutable(w)
			w.after(time.Minute)
		}, func(w *world) {
			immutable(w)
			w.until("03:20")
			w.has("data 1, orders 3, web 2")
			w.closed()
		})
	})
}

func TestRestoreDataThatIsGoneIsSaidLoudly(t *testing.T) {
	for name, c := range map[string]struct{ at, then string }{"while it sleeps": {"01:30", "02:30"}, "when it is to wake": {"02:59", "03:30"}} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+appsAndDB, func(w *world) {
				w.deployment("data", "db", 1)
				w.until(c.at)
				w.api.DeleteAtOnce("configmaps", shop, annotations.RestoreName("nights", "apps"))
				w.until(c.then)
				w.is("Error: the restore data of apps is gone")
				w.until("03:30")
				w.is("Error: the restore data of apps is gone")
				w.has("data 1, orders 0, web 0") // the rest wakes
				w.scale("orders", 3)
				w.scale("web", 2)
				w.says(annotations.Trigger, "seen-to")
				w.is("Active: ")
				w.closed()
			})
		})
	}
}

// Restore data is needed from the first effect until the last resource is awake.
func TestRestoreDataThatIsGoneHalfwayIsSaidLoudly(t *testing.T) {
	for name, c := range map[string]struct{ refused, at, has string }{
		"while it falls asleep":              {"shutdown web", "01:00", "orders 0, web 2"},
		"when falling asleep has failed":     {"shutdown web", "01:30", "orders 0, web 2"},
		"while it wakes":                     {"wake web", "03:00", "orders 3, web 0"},
		"when waking has failed":             {"wake web", "04:30", "orders 3, web 0"},
		"before it wakes for the first time": {"observe apps", "03:00", "orders 0, web 0"},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				if c.refused == "observe apps" {
					w.until("02:59")
				}
				w.beds.goes(c.refused, "boom")
				w.until(c.at)
				w.after(15 * time.Second)
				if w.record("apps") == nil {
					t.Fatalf("nothing is recorded; the plan says %s", w.phase())
				}
				w.api.DeleteAtOnce("configmaps", shop, annotations.RestoreName("nights", "apps"))
				w.beds.goes(c.refused, "")
				w.after(5 * time.Minute)
				w.is("Error: the restore data of apps is gone")
				w.until("06:00")
				w.is("Error: the restore data of apps is gone")
				w.has(c.has)
				w.says(annotations.Trigger, "seen-to")
				w.is("Active: ")
				w.closed()
			})
		})
	}
}

// What is seen of the plan is older than what is seen of its restore data.
func TestAnOldLookSaysNothingIsMissing(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("02:59")
		w.api.StallWatches("configmaps")
		w.until("03:05")
		w.awake()
		w.agent.Queue.Add(keyOf(w.api.ConfigMap(shop, "nights")))
		w.after(time.Minute)
		w.is("Active: ")
		if said := strings.Join(w.events.All(), "\n"); strings.Contains(said, "HibernationFailed") {
			t.Error(said)
		}
	})
}

func TestWhatBecomesOfThePlanWhileItSleeps(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(w *world)
		until   string
		want    string
		phase   string
	}{
		"it is deleted: it wakes": {func(w *world) { w.api.Delete("configmaps", shop, "nights") }, "01:40", "orders 3, web 2", ": "},
		"it is deleted and made anew: it sleeps on, and wakes as it was": {func(w *world) {
			w.api.Delete("configmaps", shop, "nights")
			w.plan(oneToThree + apps)
		}, "01:45", "orders 0, web 0", "Hibernated: "},
		"it is made anew while it wakes: it sleeps again": {func(w *world) {
			w.api.Delete("configmaps", shop, "nights")
			w.after(time.Minute)
			w.plan(oneToThree + apps)
		}, "01:45", "orders 0, web 0", "Hibernated: "},
		"its target is taken out: it sleeps on": {func(w *world) { w.plan(oneToThree + "targets: [{name: other, type: noop}]\n") }, "01:45", "orders 0, web 0", "Hibernated: "},
		"its off-hours end sooner: it wakes":    {func(w *world) { w.plan(strings.Replace(oneToThree, "03:00", "01:20", 1) + apps) }, "01:45", "orders 3, web 2", "Active: "},
		"it cannot be read: it sleeps on":       {func(w *world) { w.plan("targets: nonsense\n") }, "01:45", "orders 0, web 0", "Hibernated: "},
		"its account is gone: it is said":       {func(w *world) { w.api.Delete("serviceaccounts", shop, "maint-runner") }, "01:45", "orders 0, web 0", "Hibernated: "},
		"it only rehearses now: it sleeps on":   {func(w *world) { w.plan(oneToThree + apps + "dryRun: true\n") }, "01:45", "orders 0, web 0", "Hibernated: "},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.until("01:30")
				w.sleeps()
				c.happens(w)
				w.until(c.until)
				w.has(c.want)
				w.is(c.phase)
				if w.api.Get("serviceaccounts", shop, "maint-runner") == nil {
					w.api.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "maint-runner"}})
				}
				w.until("03:30")
				w.awake()
				w.closed()
			})
		})
	}
}

// fromBackup has the namespace be lost while its plan sleeps, and put back from a backup in
// the order in which that is done: ConfigMaps first, under new uids, and workloads when
// they come. No agent runs while it is lost.
func (w *world) fromBackup(dataFirst bool, comes ...func()) {
	w.agent.stop()
	plan, data := w.api.ConfigMap(shop, "nights"), w.api.ConfigMap(shop, annotations.RestoreName("nights", "apps"))
	for _, name := range w.api.Names("configmaps") {
		namespace, object, _ := strings.Cut(name, "/")
		w.api.DeleteAtOnce("configmaps", namespace, object)
	}
	for _, name := range []string{"orders", "web"} {
		w.api.DeleteAtOnce("deployments", shop, name)
	}
	order := []*corev1.ConfigMap{plan, data}
	if dataFirst {
		slices.Reverse(order)
	}
	w.begins()
	for _, cm := range order {
		cm.UID, cm.ResourceVersion, cm.CreationTimestamp = "", "", metav1.Time{}
		w.api.Put(cm)
		w.after(10 * time.Second)
	}
	for _, c := range comes {
		w.after(time.Minute)
		c()
	}
}

func TestWhatABackupBringsBackAsleepWakesAsItWas(t *testing.T) {
	for name, c := range map[string]struct {
		comes func(w *world) []func()
		want  string
	}{
		"soon": {func(w *world) []func() {
			return []func(){func() { w.deployment("orders", "apps", 0); w.deployment("web", "apps", 0) }}
		}, "orders 3, web 2"},
		"one after the other": {func(w *world) []func() {
			return []func(){func() { w.deployment("orders", "apps", 0) }, func() {}, func() { w.deployment("web", "apps", 0) }}
		}, "orders 3, web 2"},
		"one of them awake, by somebody": {func(w *world) []func() {
			return []func(){func() { w.deployment("orders", "apps", 7); w.deployment("web", "apps", 0) }}
		}, "orders 7, web 2"},
		"one of them never": {func(w *world) []func() { return []func(){func() { w.deployment("web", "apps", 0) }} }, "web 2"},
	} {
		for i, at := range []string{"02:00", "03:30", "02:00", "03:30"} { // while it should sleep, and when it should be awake
			dataFirst := i > 1
			t.Run(fmt.Sprintf("%s, at %s, data first %t", name, at, dataFirst), func(t *testing.T) {
				night(t, oneToThree+apps, func(w *world) {
					w.until("01:30")
					w.sleeps()
					if at != "02:00" {
						w.until("02:59")
					}
					w.agent.stop()
					w.until(at)
					w.fromBackup(dataFirst, c.comes(w)...)
					w.until("04:00")
					w.has(c.want)
					w.closed()
					w.is("Active: ")
				})
			})
		}
	}
}

// Restore data comes back before its plan, so soon after it was written that its age says nothing:
// nothing is given up until the rest can be there.
func TestRestoreDataThatComesBackBeforeItsPlanWaitsForTheRest(t *testing.T) {
	for _, late := range []time.Duration{0, 3 * time.Second, time.Minute} {
		t.Run("its plan comes after "+late.String(), func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.until("01:02")
				w.sleeps()
				w.fromBackup(true, func() { w.after(late) }, func() {
					w.deployment("orders", "apps", 0)
					w.deployment("web", "apps", 0)
				})
				w.until("04:00")
				w.has("orders 3, web 2")
				w.closed()
				w.is("Active: ")
			})
		})
	}
}

// In a namespace that goes nothing can be woken: what it was is kept where it can be read.
func TestANamespaceThatIsDeletedLeavesItsRestoreData(t *testing.T) {
	for name, c := range map[string]struct {
		given func(w *world)
		about string
	}{
		"it counts": {func(*world) {}, "target apps of plan nights"},
		"it does not count": {func(w *world) {
			w.api.Edit("configmaps", shop, annotations.RestoreName("nights", "apps"), func(u *unstructured.Unstructured) { u.SetAnnotations(nil) })
			w.after(time.Minute)
		}, "what shop/" + annotations.RestoreName("nights", "apps") + " speaks of, which does not count,"},
		"it says that it is of a plan that cannot be": {func(w *world) {
			w.api.Edit("configmaps", shop, annotations.RestoreName("nights", "apps"), func(u *unstructured.Unstructured) {
				u.SetLabels(map[string]string{annotations.LabelKind: annotations.KindRestore, annotations.LabelPlan: "A_B"})
			})
			w.after(time.Minute)
		}, "what shop/" + annotations.RestoreName("nights", "apps") + " speaks of, which does not count,"},
		"it is being copied": {func(w *world) {
			w.api.Before(agenttest.When{Verb: "create", Resource: "configmaps"}, func() {
				w.api.Edit("namespaces", "", shop, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"kubernetes"}) })
				w.api.Delete("namespaces", "", shop)
			})
			w.api.Delete("configmaps", shop, annotations.RestoreName("nights", "apps"))
			w.after(time.Minute)
		}, "target apps of plan nights"},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.until("01:30")
				c.given(w)
				w.api.Edit("namespaces", "", shop, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"kubernetes"}) })
				if w.api.Get("namespaces", "", shop).GetDeletionTimestamp() == nil {
					w.api.Delete("namespaces", "", shop)
				}
				w.after(time.Minute)
				var copies []*corev1.ConfigMap
				for _, at := range w.api.Names("configmaps") {
					namespace, object, _ := strings.Cut(at, "/")
					cm := w.api.ConfigMap(namespace, object)
					if cm.Labels[annotations.LabelKind] != annotations.KindRestore {
						continue
					}
					if namespace == shop {
						t.Errorf("%s stays, with finalizers %v", at, cm.Finalizers)
						continue
					}
					copies = append(copies, cm)
				}
				if len(copies) != 1 || !strings.Contains(copies[0].Data[annotations.DataRestore], `"before":3`) || copies[0].Labels[annotations.LabelPlan] != "" {
					t.Fatalf("copies are %v", copies)
				}
				w.wantEvent("Warning RestoreDataCopied shop: The namespace is being deleted while " + c.about + " sleeps: nothing of it is woken; its restore data is copied to ConfigMap maint-system/" + copies[0].Name)
			})
		})
	}
}

// Anybody may write what looks like restore data: of what does not count a few are copied.
func TestWhatDoesNotCountFillsNotTheAgentsNamespace(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("01:30")
		for i := range mostUncounted + 10 {
			w.api.Put(&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: fmt.Sprintf("forged-%d", i), Finalizers: []string{annotations.RestoreFinalizer}, Labels: map[string]string{annotations.LabelKind: annotations.KindRestore, annotations.LabelPlan: "nights"}},
				Data:       map[string]string{annotations.DataRestore: "{}"},
			})
		}
		w.api.Edit("namespaces", "", shop, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"kubernetes"}) })
		w.api.Delete("namespaces", "", shop)
		w.after(5 * time.Minute)
		copies, own := 0, 0
		for _, at := range w.api.Names("configmaps") {
			namespace, name, _ := strings.Cut(at, "/")
			if w.api.ConfigMap(namespace, name).Labels[annotations.LabelKind] != annotations.KindRestore {
				continue
			}
			if namespace == shop {
				t.Errorf("%s stays", at)
			}
			if copies++; strings.Contains(w.api.ConfigMap(namespace, name).Data[annotations.DataRestore], `"before":3`) {
				own++
			}
		}
		if copies != mostUncounted+1 || own != 1 {
			t.Errorf("%d were copied, of them %d of what sleeps, want %d and 1", copies, own, mostUncounted+1)
		}
		w.wantEvent("Warning RestoreDataDropped shop: ConfigMap forged-")
	})
}

func TestRestoreDataThatDoesNotCountIsLeftAsItIs(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(u *unstructured.Unstructured)
		says string
	}{
		"it was changed": {func(u *unstructured.Unstructured) {
			text, _, _ := unstructured.NestedString(u.Object, "data", annotations.DataRestore)
			_ = unstructured.SetNestedField(u.Object, strings.Replace(text, `"before":3`, `"before":300`, 1), "data", annotations.DataRestore)
		}, "changed after the agent had signed it; if it is the agent's own, sign it with 'kubectl maint -n shop adopt "},
		"it has no signature": {func(u *unstructured.Unstructured) { u.SetAnnotations(nil) }, "carries no signature"},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.until("01:30")
				object := annotations.RestoreName("nights", "apps")
				was := w.api.ConfigMap(shop, object)
				w.api.Edit("configmaps", shop, object, c.edit)
				edited := w.api.ConfigMap(shop, object)
				for _, clock := range []string{"01:45", "03:30"} { // while it is to sleep, and to wake
					w.until(clock)
					w.sleeps()
					if got := w.phase(); !strings.HasPrefix(got, "Error: ") || !strings.Contains(got, c.says) {
						t.Errorf("at %s the plan says %q", clock, got)
					}
					if now := w.api.ConfigMap(shop, object); now.ResourceVersion != edited.ResourceVersion {
						t.Errorf("at %s it was written: %v", clock, now.Data)
					}
				}
				was.ResourceVersion = ""
				w.api.Put(was)
				w.until("04:00")
				w.awake()
				w.closed()
			})
		})
	}
}

// Restore data that is signed, and that this version cannot have written.
func TestRestoreDataThatIsNonsenseIsSaid(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("01:30")
		w.api.Rewrite(shop, annotations.RestoreName("nights", "apps"), func(cm *corev1.ConfigMap) {
			cm.Data[annotations.DataRestore] = strings.Replace(cm.Data[annotations.DataRestore], `"state":"Asleep"`, `"state":"Dreaming"`, 1)
		})
		w.until("03:30")
		w.sleeps()
		if got := w.phase(); !strings.Contains(got, `state: "Dreaming" is not a state of a target`) || strings.Contains(got, "adopt") {
			t.Errorf("the plan says %q", got)
		}
	})
}

func TestWhatPeopleSayToAPlan(t *testing.T) {
	const asleep, awake = "orders 0, web 0", "orders 3, web 2"
	for name, c := range map[string]struct {
		given func(w *world)
		want  map[string]string // by clock: replicas, and the beginning of the phase
	}{
		"a pause before it sleeps keeps it awake": {func(w *world) { w.says(annotations.Pause, "true") }, map[string]string{"01:30": awake + " Suspended: paused", "03:30": awake + " Suspended: "}},
		"a pause says who paused, and why": {func(w *world) {
			w.says(annotations.Actor(annotations.Pause), "jane")
			w.says(annotations.Reason(annotations.Pause), "incident 8")
			w.says(annotations.Pause, "true")
		}, map[string]string{"01:30": awake + " Suspended: paused by jane (unverified): incident 8"}},
		"a pause keeps it asleep": {func(w *world) { w.until("01:30"); w.says(annotations.Pause, "true") }, map[string]string{"02:00": asleep + " Hibernated: paused; ", "03:30": asleep + " WakingUp: paused; "}},
		"on resume the level decides": {func(w *world) {
			w.until("01:30")
			w.says(annotations.Pause, "true")
			w.until("03:30")
			w.says(annotations.Pause, "")
		}, map[string]string{"03:40": awake + " Active: "}},
		"a pause with an end": {func(w *world) { w.says(annotations.Pause, "2000-01-01T01:45:00Z") }, map[string]string{"01:30": awake + " Suspended: ", "01:50": asleep + " Hibernated: "}},
		"it is held asleep":   {func(w *world) { w.says(annotations.HoldState, "asleep") }, map[string]string{"00:40": asleep + " Hibernated: ", "03:30": asleep + " Hibernated: "}},
		"it is held awake":    {func(w *world) { w.until("01:30"); w.says(annotations.HoldState, "awake") }, map[string]string{"01:40": awake + " Active: ", "02:30": awake + " Active: "}},
		"it is held awake for a while": {func(w *world) {
			w.until("01:30")
			w.api.Annotate(shop, "nights", annotations.HoldUntil, "2000-01-01T02:00:00Z")
			w.says(annotations.HoldState, "awake")
		}, map[string]string{"01:40": awake + " Active: ", "02:10": asleep + " Hibernated: ", "03:10": awake + " Active: "}},
		"these off-hours are skipped":      {func(w *world) { w.says(annotations.Skip, "2000-01-01T01:00:00Z") }, map[string]string{"01:30": awake + " Active: ", "25:30": asleep + " Hibernated: "}},
		"they are skipped while it sleeps": {func(w *world) { w.until("01:30"); w.says(annotations.Skip, "2000-01-01T01:00:00Z") }, map[string]string{"01:40": awake + " Active: ", "25:30": asleep + " Hibernated: "}},
		"a policy that is not there":       {func(w *world) { w.plan(oneToThree + apps + "policies: [{name: quiet}]\n") }, map[string]string{"01:30": awake + " Active: does not fall asleep: "}},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				c.given(w)
				clocks := []string{}
				for clock := range c.want {
					clocks = append(clocks, clock)
				}
				slices.Sort(clocks)
				for _, clock := range clocks {
					w.until(clock)
					if got := w.replicas() + " " + w.phase(); !strings.HasPrefix(got, c.want[clock]) {
						t.Errorf("at %s: %q, want %q", clock, got, c.want[clock])
					}
				}
			})
		})
	}
}

// No sleep comes while a plan is paused.
func TestWhenAPausedPlanFallsAsleepNextIsPublished(t *testing.T) {
	for name, c := range map[string]struct{ pause, at, want string }{
		"without an end":                             {pause: "true"},
		"without an end, when it is to sleep":        {pause: "true", at: "01:30"},
		"until before it is to sleep":                {pause: "2000-01-01T00:45:00Z", want: "2000-01-01T01:00:00Z"},
		"until it is to sleep":                       {pause: "2000-01-01T02:00:00Z", want: "2000-01-01T02:00:00Z"},
		"until it is to sleep, when it was to sleep": {pause: "2000-01-01T02:00:00Z", at: "01:30", want: "2000-01-01T02:00:00Z"},
		"until it was to wake":                       {pause: "2000-01-01T04:00:00Z", want: "2000-01-02T01:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.says(annotations.Pause, c.pause)
				w.until(cmp.Or(c.at, "00:40"))
				if got := w.said(annotations.StatusSleeps); got != c.want {
					t.Errorf("it says that it sleeps %q, want %q", got, c.want)
				}
				w.awake()
			})
		})
	}
}

// TestWhatPoliciesSayOfSleepIsPublished: who may not read them is told by the plan.
func TestWhatPoliciesSayOfSleepIsPublished(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		if got := w.said(annotations.StatusBehavior); got != "" {
			w.Errorf("nothing stands before it, and it says %s", got)
		}
		windows, faults := policy.Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec: {strategy: MaintenanceSchedule, maintenanceSchedule: {timezone: UTC, windows: [{start: '02:00', end: '04:00'}]}}\n"))
		if len(faults) > 0 {
			w.Fatal(faults)
		}
		w.agent.Stores.Gates.Change(func(b *policy.Resolver) { b.PutPolicy(policy.State{Namespace: shop, Name: "windows", Spec: windows}) })
		w.plan(oneToThree + apps + "policies: [{name: windows}]\n")
		w.until("00:30")
		if got := w.said(annotations.StatusSleeps); got != "2000-01-01T02:00:00Z" {
			w.Errorf("it says that it sleeps %s, before its window opens", got)
		}
		w.until("01:30")
		if got := w.said(annotations.StatusBehavior); !strings.Contains(got, `"current":{"state":"ChangesPaused"`) || !strings.Contains(got, "policy windows") {
			w.Errorf("before the window it says %s", got)
		}
		w.awake()
		w.until("02:30")
		if got := w.said(annotations.StatusBehavior); !strings.Contains(got, `"current":{"state":"ChangesUnpaused"`) {
			w.Errorf("in the window it says %s", got)
		}
		w.sleeps()
		w.plan(oneToThree + apps)
		w.until("02:40")
		if got := w.said(annotations.StatusBehavior); got != "" {
			w.Errorf("nothing stands before it any more, and it says %s", got)
		}
	})
}

// TestAPauseIsToldOfWhatSleepsToo: who may not read the pauses above a plan goes by its condition.
func TestAPauseIsToldOfWhatSleepsToo(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("01:30")
		w.sleeps()
		w.pauses()
		w.until("01:40")
		w.sleeps()
		if got := w.said(annotations.StatusConditions); !strings.Contains(got, `"type":"ChangesPaused","status":"True"`) || !strings.Contains(got, "namespace shop is paused") {
			w.Errorf("under a pause it says %s", got)
		}
		w.api.Edit("namespaces", "", shop, func(u *unstructured.Unstructured) { u.SetAnnotations(nil) })
		w.until("01:50")
		if got := w.said(annotations.StatusConditions); strings.Contains(got, "ChangesPaused") {
			w.Errorf("after the pause it says %s", got)
		}
	})
}

func TestWhatGoesWrongIsTriedAgainAndSaid(t *testing.T) {
	patches := agenttest.When{User: "maint-runner", Verb: "patch", Resource: "deployments"}
	for name, c := range map[string]struct {
		given func(w *world)
		phase string // at 01:30
		sleep string
	}{
		"one failure is tried again":               {func(w *world) { w.api.Refuse(patches, 1, 403, "not today") }, "Hibernated: ", "orders 0, web 0"},
		"after its retries it is an error":         {func(w *world) { w.api.Refuse(patches, 20, 403, "not today") }, "Error: apps failed: orders, web: not today", "orders 3, web 2"},
		"what cannot be looked at is an error":     {func(w *world) { w.api.Deny(runner, "list", "deployments") }, "Error: apps failed: deployments.apps is forbidden", "orders 3, web 2"},
		"what is not valid is an error":            {func(w *world) { w.beds.refuse = errors.New("it is protected") }, "Error: apps failed: it is protected", "orders 3, web 2"},
		"an account that is not there is an error": {func(w *world) { w.api.Delete("serviceaccounts", shop, "maint-runner") }, "Error: apps failed: ", "orders 3, web 2"},
		"replies that are lost are found": {func(w *world) {
			w.api.LoseReply(agenttest.When{Verb: "patch"}, 3)
			w.api.LoseReply(agenttest.When{Verb: "update"}, 3)
		}, "Hibernated: ", "orders 0, web 0"},
		"the API server is away":              {func(w *world) { w.api.Fail(agenttest.When{}, 20) }, "Hibernated: ", "orders 0, web 0"},
		"somebody scales it at the same time": {func(w *world) { w.api.Before(patches, func() { w.scale("orders", 4) }) }, "Hibernated: ", "orders 0, web 0"},
		"nothing is touched that cannot be written": {func(w *world) {
			w.api.Refuse(agenttest.When{User: "agent", Verb: "update", Name: annotations.RestoreName("nights", "apps")}, agenttest.Always, 422, "data: Too long")
		}, "Hibernating: ", "orders 3, web 2"},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				c.given(w)
				w.until("01:30")
				w.is(c.phase)
				w.has(c.sleep)
			})
		})
	}
}

func TestWhatFailedIsTriedAgainAtOnceIfSomebodyAsks(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.api.Deny(runner, "list", "deployments")
		w.until("01:30")
		w.is("Error: ")
		w.wantEvent("Warning TargetFailed nights: shutdown of target apps failed (attempt 4): ")
		w.api.Allow(runner, "list", "deployments")
		w.after(10 * time.Minute)
		w.is("Error: ")
		w.says(annotations.Trigger, "again")
		w.is("Hibernated: ")
		if got := w.said(annotations.StatusTrigger); got != "again" {
			t.Errorf("it answers %q", got)
		}
	})
}

// What sleeps is not given up: it is tried again until it wakes.
func TestWhatDoesNotWakeIsTriedUntilItDoes(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("02:59")
		w.api.Deny(runner, "list", "deployments")
		if told := w.agent.Troubles(); len(told) != 0 {
			t.Errorf("before its time metrics say %v", told)
		}
		w.until("04:59")
		w.is("Error: apps failed: ")
		due := time.Date(2000, 1, 1, 3, 0, 0, 0, time.UTC)
		if told := w.agent.Troubles()[types.NamespacedName{Namespace: shop, Name: "nights"}]; !told.Overdue.Equal(due) || told.NotBack != 1 {
			t.Errorf("metrics say %+v, want what is overdue since %s", told, due)
		}
		w.begins() // who leads now finds it in the records
		w.after(time.Minute)
		if told := w.agent.Troubles()[types.NamespacedName{Namespace: shop, Name: "nights"}]; !told.Overdue.Equal(due) {
			t.Errorf("after a change of leader metrics say %+v", told)
		}
		w.api.Allow(runner, "list", "deployments")
		w.until("05:15")
		w.awake()
		w.closed()
		if told := w.agent.Troubles(); len(told) != 0 {
			t.Errorf("when all is awake metrics say %v", told)
		}
	})
}

func TestWhatIsLeftAloneIsSaid(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.deployment("spot", "apps", 1)
		w.api.Edit("deployments", shop, "spot", func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{"left-out": "it is on spot nodes"})
		})
		w.until("01:30")
		w.has("orders 0, spot 1, web 0")
		w.scale("orders", 7)
		w.after(2 * time.Minute)
		w.wantEvent("Warning ResourceLeft nights: orders of target apps is left alone until the next sleep: somebody changed it while it slept")
		if got := annotations.ReadTargets(w.said(annotations.StatusTargets)); len(got) != 1 || got[0].Message != "orders: somebody changed it while it slept; spot: it is on spot nodes" {
			t.Errorf("targets are %+v", got)
		}
		w.until("03:01")
		w.has("orders 7, spot 1, web 2")
	})
}

// What a run scales while it sleeps, and puts back to what it found, wakes as it was.
func TestWhatIsChangedWhileItSleepsAndUndoneWakesAsItWas(t *testing.T) {
	for name, c := range map[string]struct{ begins, undone, woken string }{
		"during the sleep":               {"01:30", "02:00", "orders 3, web 2"},
		"right before it wakes":          {"02:57", "02:59", "orders 3, web 2"},
		"after another agent took over":  {"01:10", "02:30", "orders 3, web 2"},
		"not at all before it has woken": {"01:30", "", "orders 5, web 2"},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.until(c.begins)
				w.sleeps()
				w.scale("orders", 5)
				if strings.Contains(name, "agent") {
					w.after(2 * time.Minute)
					w.begins()
				}
				if c.undone != "" {
					w.until(c.undone)
					w.scale("orders", 0)
				}
				w.until("03:05")
				w.has(c.woken)
				w.closed()
				if c.undone == "02:00" {
					w.wantEvent("Normal ResourceBack nights: orders of target apps is as the sleep left it again: it wakes with the others")
				}
			})
		})
	}
}

// A controller that puts it back is fought three times, with pauses in which nothing is
// looked at.
func TestAControllerThatPutsItBackIsLeftToIt(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("01:10")
		looks := w.beds.observed("apps")
		for i := range 90 { // it looks once a minute
			w.api.Edit("deployments", shop, "orders", func(u *unstructured.Unstructured) {
				u.SetAnnotations(map[string]string{"revived-by": "kustomize-controller"})
				_ = unstructured.SetNestedField(u.Object, int64(3), "spec", "replicas")
			})
			w.after(time.Minute)
			if i == 3 {
				targets := w.said(annotations.StatusTargets)
				if !strings.Contains(targets, "orders: kustomize-controller puts it back; it was put to sleep again 2 times, the next time not before 2000-01-01T01:1") {
					t.Errorf("while it is awake its targets say %s", targets)
				}
			}
		}
		w.has("orders 3, web 0")
		if n := w.beds.observed("apps") - looks; n > 150 {
			t.Errorf("it was looked at %d times", n)
		}
		w.wantEvent("Warning ResourceLeft nights: orders of target apps is left alone until the next sleep: kustomize-controller puts it back again and again")
		w.until("03:01")
		w.awake()
	})
}

func TestADryRunListsWhatWouldSleep(t *testing.T) {
	for name, given := range map[string]func(w *world){
		"of the plan":  func(w *world) { w.plan(oneToThree + appsAndDB + "dryRun: true\n") },
		"of the agent": func(w *world) { w.plan(oneToThree + appsAndDB); w.dryRun = true; w.begins() },
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				given(w)
				w.after(time.Minute)
				w.is("Active: dry run: it would be awake: ")
				w.until("01:30")
				w.is("Active: dry run: it would put to sleep apps: orders, web; db: nothing")
				w.awake()
				w.api.Deny(runner, "list", "deployments")
				w.after(2 * time.Minute)
				if got := w.phase(); !strings.Contains(got, "apps: deployments.apps is forbidden") {
					t.Errorf("it says %q", got)
				}
				w.closed()
			})
		})
	}
}

// A dry run says what would happen, and so also what keeps a sleep from beginning.
func TestADryRunSaysWhatKeepsASleepFromBeginning(t *testing.T) {
	suspends := "exceptions: [{type: suspend, validFrom: 2000-01-01T02:00:00Z, validUntil: 2000-01-01T02:30:00Z, leadTime: 1h}]\n"
	night(t, oneToThree+suspends+apps+"dryRun: true\n", func(w *world) {
		w.until("01:30")
		w.is("Active: dry run: it would not fall asleep: soon suspended by an exception")
		w.until("02:45")
		w.is("Active: dry run: it would put to sleep apps: orders, web")
		w.awake()
	})
}

// What sleeps when the agent begins to rehearse is still asleep.
func TestAnAgentThatOnlyRehearsesSaysWhatSleeps(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("01:30")
		since := w.said(annotations.StatusAsleep)
		w.dryRun = true
		w.begins()
		w.until("02:00")
		w.sleeps()
		w.is("Hibernated: dry run: 1 of 1 targets sleep")
		if got := w.said(annotations.StatusAsleep); got != since {
			t.Errorf("it says that it sleeps since %q, want %q", got, since)
		}
		w.until("03:30")
		w.sleeps()
		w.is("WakingUp: dry run: ")
		w.dryRun = false
		w.begins()
		w.until("03:40")
		w.awake()
		w.is("Active: ")
		w.closed()
	})
}

// Off-windows of a dry run are in the ledger as such: none was missed.
func TestOffWindowsOfADryRunAreNotMissed(t *testing.T) {
	night(t, oneToThree+apps+"dryRun: true\n", func(w *world) {
		w.until("28:00")
		w.plan(oneToThree + apps)
		w.until("29:00")
		w.ledger("1 01:00 Ran since 1 01:00 dry", "2 01:00 Ran since 2 01:00 dry")
		w.until("49:30")
		w.sleeps()
		w.ledger("1 01:00 Ran since 1 01:00 dry", "2 01:00 Ran since 2 01:00 dry", "3 01:00 Ran since 3 01:00")
	})
}

// A dry run says in the ledger why it would not have slept.
func TestOffWindowsOfADryRunSayWhyItWouldNotHaveSlept(t *testing.T) {
	night(t, oneToThree+apps+"dryRun: true\n", func(w *world) {
		w.says(annotations.HoldState, "awake")
		w.until("03:30")
		w.says(annotations.HoldState, "")
		w.ledger("1 01:00 Skipped hold dry")
		w.says(annotations.Skip, "next")
		w.until("28:00")
		w.ledger("1 01:00 Skipped hold dry", "2 01:00 Skipped skip dry")
		if got := w.said(annotations.Skip); got != "" {
			t.Errorf("the used skip stays: %q", got)
		}
	})
}

// While it sleeps it is looked at, so that what would keep it from waking is known before.
func TestWhatCouldNotBeWokenIsSaidWhileItSleeps(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("01:30")
		w.api.Deny(runner, "list", "deployments")
		w.until("02:00")
		w.is("Hibernated: 1 of 1 targets sleep; target apps could not be woken now: deployments.apps is forbidden")
		w.wantEvent("Warning TargetFailed nights: target apps could not be woken now: deployments.apps is forbidden")
		if got := w.said(annotations.StatusConditions); !strings.Contains(got, `"reason":"NotReady"`) {
			t.Errorf("its conditions are %s", got)
		}
		w.api.Allow(runner, "list", "deployments")
		w.until("02:05")
		if got := w.phase(); got != "Hibernated: 1 of 1 targets sleep" {
			t.Errorf("it says %q", got)
		}
		w.until("03:01")
		w.awake()
		w.closed()
	})
}

func TestHealthChecksComeBeforeItIsActive(t *testing.T) {
	night(t, oneToThree+apps+"healthChecks: [{resource: {apiVersion: apps/v1, kind: Deployment, name: orders}}]\n", func(w *world) {
		w.sick.Store("orders is not ready")
		w.until("03:05")
		w.awake()
		w.is("WakingUp: all targets are awake; waits until they are healthy: orders is not ready")
		w.sick.Store("")
		w.after(time.Minute)
		w.is("Active: ")
		w.closed()
	})
}

// Another agent leads from here on; the first has seen all, and hears no more.
func TestALeaderThatFollowsGoesOn(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		for _, clock := range []string{"00:59", "01:00", "01:01", "02:59", "03:00"} {
			w.until(clock)
			w.begins()
		}
		w.until("03:10")
		w.awake()
		w.closed()
	})
}

// It has what it was written down with, and no more: the plan's account, and its manager.
func TestATargetIsReachedAsThePlansAccount(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("01:01")
		for _, line := range w.api.Log() {
			if strings.Contains(line, "deployments") && !strings.HasPrefix(line, "maint-runner ") {
				t.Error(line)
			}
		}
		if got, want := w.beds.calls[0].Plan.Manager, annotations.PlanManager(shop, "nights"); got != want {
			t.Errorf("its field manager is %s, want %s", got, want)
		}
	})
}

// A plan whose status cannot be written wakes all the same.
func TestWhatCannotBeSaidKeepsNothingAsleep(t *testing.T) {
	night(t, oneToThree+appsAndDB, func(w *world) {
		w.deployment("data", "db", 1)
		w.until("02:00")
		w.api.Deny("", "patch", "configmaps")
		w.until("04:00")
		w.has("data 1, orders 3, web 2")
		if w.record("apps") == nil {
			t.Error("its restore data is gone while its status says that it sleeps")
		}
		w.api.Allow("", "patch", "configmaps")
		w.until("04:30")
		w.is("Active: ")
		w.closed()
	})
}
