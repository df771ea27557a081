package hibernation

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// kept is the restore data of apps as somebody keeps it.
func (w *world) kept() *corev1.ConfigMap {
	w.Helper()
	cm := w.api.ConfigMap(shop, annotations.RestoreName("nights", "apps"))
	if cm == nil {
		w.Fatalf("there is no restore data; the plan says %s", w.phase())
	}
	return cm
}

// putsBack has somebody write what was kept over what is there.
func (w *world) putsBack(was *corev1.ConfigMap) {
	w.Helper()
	w.api.Edit("configmaps", was.Namespace, was.Name, func(u *unstructured.Unstructured) {
		data := map[string]any{}
		for key, text := range was.Data {
			data[key] = text
		}
		u.Object["data"] = data
		u.SetAnnotations(was.Annotations)
	})
	w.after(10 * time.Second)
}

// anEarlierNight keeps restore data of the first night as it slept and as it woke, and goes on
// until the second one, before which orders has got 5 replicas.
func anEarlierNight(t *testing.T, story func(w *world, slept, woke *corev1.ConfigMap)) {
	t.Helper()
	checked := "healthChecks: [{resource: {apiVersion: apps/v1, kind: Deployment, name: orders}}]\n"
	night(t, oneToThree+apps+checked, func(w *world) {
		w.until("01:30")
		slept := w.kept()
		w.sick.Store("orders is not ready")
		w.until("03:05")
		woke := w.kept()
		if got := w.record("apps"); got.State != hibernate.Awake {
			t.Fatalf("it is %s", got.State)
		}
		w.sick.Store("")
		w.until("03:30")
		w.closed()
		w.scale("orders", 5)
		story(w, slept, woke)
	})
}

const ofAnEarlierSleep = "is of an earlier sleep, which began 2000-01-01T01:00:00Z and is over"

// Whoever may write ConfigMaps can keep what the agent signed, and put it back in another night.
func TestRestoreDataOfAnEarlierNightDoesNotCount(t *testing.T) {
	for name, restarts := range map[string]bool{"the agent goes on": false, "another agent leads": true} {
		for _, as := range []string{"as it slept", "as it woke"} {
			t.Run(as+", "+name, func(t *testing.T) {
				anEarlierNight(t, func(w *world, slept, woke *corev1.ConfigMap) {
					w.until("25:30")
					w.sleeps()
					right := w.kept()
					old := map[string]*corev1.ConfigMap{"as it slept": slept, "as it woke": woke}[as]
					w.putsBack(old)
					if restarts {
						w.begins()
						w.after(10 * time.Second)
					}
					for _, clock := range []string{"25:31", "27:30"} {
						w.until(clock)
						w.sleeps()
						w.is("Error: the restore data " + old.Name + " ")
						if got := w.phase(); !strings.Contains(got, ofAnEarlierSleep) || !strings.Contains(got, "adopt "+old.Name) {
							t.Errorf("at %s the plan says %q", clock, got)
						}
					}
					w.wantEvent("Warning HibernationFailed nights: the restore data " + old.Name + " " + ofAnEarlierSleep)
					w.putsBack(right)
					w.until("27:40")
					w.has("orders 5, web 2")
					w.closed()
				})
			})
		}
	}
}

// An older ledger with it changes nothing while the agent lives that knows better.
func TestAnOlderLedgerMakesNoOlderRestoreDataCount(t *testing.T) {
	anEarlierNight(t, func(w *world, slept, _ *corev1.ConfigMap) {
		name := annotations.LedgerName("nights", string(w.api.ConfigMap(shop, "nights").UID))
		before := w.api.ConfigMap(shop, name)
		w.until("25:30")
		w.putsBack(before)
		w.putsBack(slept)
		w.until("27:30")
		w.sleeps()
		if got := w.phase(); !strings.Contains(got, ofAnEarlierSleep) {
			t.Errorf("the plan says %q", got)
		}
	})
}

// What is deleted of an earlier sleep goes, and what is needed is missed.
func TestRestoreDataOfAnEarlierNightCanBeDeleted(t *testing.T) {
	anEarlierNight(t, func(w *world, slept, _ *corev1.ConfigMap) {
		w.until("25:30")
		w.putsBack(slept)
		w.api.Delete("configmaps", shop, slept.Name)
		w.after(2 * time.Minute)
		w.closed()
		w.is("Error: the restore data of apps is gone")
	})
}

// By day it starts nothing that somebody has stopped since.
func TestRestoreDataOfAnEarlierNightStartsNothingByDay(t *testing.T) {
	anEarlierNight(t, func(w *world, slept, woke *corev1.ConfigMap) {
		w.scale("web", 0)
		again := func(cm *corev1.ConfigMap) *corev1.ConfigMap {
			cm = cm.DeepCopy()
			cm.UID, cm.ResourceVersion, cm.CreationTimestamp = "", "", metav1.Time{}
			return cm
		}
		w.api.Put(again(slept))
		w.after(2 * time.Minute)
		w.has("orders 5, web 0")
		w.is("Error: the restore data ")
		w.api.Delete("configmaps", shop, slept.Name)
		w.after(2 * time.Minute)
		w.is("Active: ")
		w.closed()
		w.api.Put(again(woke))
		w.after(2 * time.Minute)
		w.has("orders 5, web 0")
		w.is("Active: ")
		w.closed()
	})
}

// An agent of before wrote no such thing: what it put to sleep wakes.
func TestASleepThatNoLedgerTellsOfWakes(t *testing.T) {
	anEarlierNight(t, func(w *world, _, _ *corev1.ConfigMap) {
		w.until("25:30")
		w.agent.stop()
		name := annotations.LedgerName("nights", string(w.api.ConfigMap(shop, "nights").UID))
		w.api.Rewrite(shop, name, func(cm *corev1.ConfigMap) {
			i, j := strings.Index(cm.Data[annotations.DataLedger], `,"lastSleep":{`), len(cm.Data[annotations.DataLedger])-1
			if i < 0 {
				t.Fatalf("the ledger tells of no sleep: %s", cm.Data[annotations.DataLedger])
			}
			cm.Data[annotations.DataLedger] = cm.Data[annotations.DataLedger][:i] + cm.Data[annotations.DataLedger][j:]
		})
		w.begins()
		w.until("26:00")
		w.sleeps()
		w.until("27:10")
		w.has("orders 5, web 2")
		w.closed()
	})
}

// A leader whose clock is behind that of the one before begins its sleeps after those.
func TestASleepBeginsAfterTheLastOne(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("03:10")
		w.agent.stop()
		name, ahead := annotations.LedgerName("nights", string(w.api.ConfigMap(shop, "nights").UID)), "2000-01-01T03:14:00Z"
		w.api.Rewrite(shop, name, func(cm *corev1.ConfigMap) {
			before, after, found := strings.Cut(cm.Data[annotations.DataLedger], `"lastSleep":{"beganAt":"2000-01-01T01:00:00Z","endedAt":"`)
			if !found {
				t.Fatalf("the ledger tells of no sleep: %s", cm.Data[annotations.DataLedger])
			}
			_, rest, _ := strings.Cut(after, `"`)
			cm.Data[annotations.DataLedger] = before + `"lastSleep":{"beganAt":"2000-01-01T01:00:00Z","endedAt":"` + ahead + `"` + rest
		})
		w.begins()
		w.says(annotations.HoldState, "asleep")
		w.until("03:20")
		w.sleeps()
		w.begins()
		w.says(annotations.HoldState, "")
		w.until("03:30")
		w.awake()
		w.closed()
	})
}

// Whatever of restore data somebody edits, it is told while the plan still sleeps.
func TestEditedRestoreDataIsToldAtOnce(t *testing.T) {
	for name, edit := range map[string]func(u *unstructured.Unstructured){
		"its data": func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, "{}", "data", annotations.DataRestore)
		},
		"its kind": func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{annotations.LabelPlan: "nights"}) },
		"its plan": func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{annotations.LabelKind: annotations.KindRestore, annotations.LabelPlan: "other"})
		},
		"all of its labels":        func(u *unstructured.Unstructured) { u.SetLabels(nil) },
		"its labels and signature": func(u *unstructured.Unstructured) { u.SetLabels(nil); u.SetAnnotations(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				w.until("01:30")
				right := w.kept()
				asked := w.api.Asked(agenttest.When{User: "agent"})
				w.api.Edit("configmaps", shop, right.Name, edit)
				w.after(10 * time.Second)
				w.is("Error: ")
				w.until("01:40")
				w.is("Error: ")
				if n := w.api.Asked(agenttest.When{User: "agent"}) - asked; n > 400 {
					t.Errorf("the agent made %d requests in ten minutes", n)
				}
				w.api.Edit("configmaps", shop, right.Name, func(u *unstructured.Unstructured) { u.SetLabels(right.Labels) })
				w.putsBack(right)
				w.until("03:10")
				w.awake()
				w.closed()
			})
		})
	}
}
