package hibernation

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// An agent that may not watch namespaces knows by the API server's refusal that one is being deleted.
func TestRestoreDataLeavesANamespaceThatNobodySeesBeingDeleted(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("01:30")
		name := annotations.RestoreName("nights", "apps")
		w.api.RefuseTerminating(agenttest.When{Verb: "create", Resource: "configmaps"}, 1)
		w.api.Delete("configmaps", shop, name)
		w.after(time.Minute)
		if w.api.ConfigMap(shop, name) != nil {
			t.Errorf("%s stays, and so does its namespace", name)
		}
		w.wantEvent("Warning RestoreDataCopied shop: The namespace is being deleted while target apps of plan nights sleeps")
	})
}

// Beside another fault restore data that is gone is said as loudly, also when that is mended.
func TestRestoreDataThatIsGoneIsSaidBesideOtherFaults(t *testing.T) {
	const gone = "Error: the restore data of db is gone"
	lose := func(w *world) {
		w.api.DeleteAtOnce("configmaps", shop, annotations.RestoreName("nights", "db"))
		w.until("01:50")
	}
	tamper := func(w *world, target string) {
		w.api.EditEach("configmaps", shop, annotations.RestoreName("nights", target), func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{"was": "signed"})
		})
		w.until("01:40")
	}
	repaired := func(w *world) {
		w.api.Edit("configmaps", shop, "nights", func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, planText(oneToThree+"targets: [{name: db, type: noop}]\n"), "data", annotations.DataPlan)
		})
	}
	for name, c := range map[string]struct {
		spec    string
		happens func(w *world)
		said    string
		mended  func(w *world)
		then    string
		has     string
	}{
		"the plan cannot be read": {
			spec: "targets: [{name: db, type: noop}]\n", happens: func(w *world) { w.unread(); lose(w) }, said: gone,
			mended: repaired, then: gone, has: "data 0, orders 3, web 2",
		},
		"the data of another target does not count": {
			spec: appsAndDB, happens: func(w *world) { tamper(w, "apps"); lose(w) }, said: gone,
			mended: func(w *world) {
				w.api.DeleteAtOnce("configmaps", shop, annotations.RestoreName("nights", "apps"))
				w.until("02:10")
			}, then: "Error: the restore data of apps, db is gone", has: "data 0, orders 0, web 0",
		},
		"its own did not count before, and the plan cannot be read": {
			spec: "targets: [{name: db, type: noop}]\n", happens: func(w *world) { tamper(w, "db"); w.unread(); w.until("01:45"); lose(w) }, said: gone,
			mended: repaired, then: gone, has: "data 0, orders 3, web 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+c.spec, func(w *world) {
				w.deployment("data", "db", 1)
				w.until("01:30")
				c.happens(w)
				w.is(c.said)
				c.mended(w)
				w.until("02:30")
				w.is(c.then)
				w.until("04:00")
				w.is(c.then)
				w.has(c.has)
				w.says(annotations.Trigger, "seen-to")
				w.is("Active: ")
			})
		})
	}
}
