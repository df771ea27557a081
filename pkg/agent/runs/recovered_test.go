package runs

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestARunThatIsOlderThanItsObjectCameBack(t *testing.T) {
	made := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	before := func(d time.Duration) *time.Time { return new(made.Add(-d)) }
	for name, c := range map[string]struct {
		started *time.Time
		want    time.Time
	}{
		"it has not begun":              {nil, time.Time{}},
		"it began after it was made":    {before(-time.Second), time.Time{}},
		"it began before, by its clock": {before(5 * time.Minute), time.Time{}},
		"it began long before":          {before(5*time.Minute + time.Second), made},
	} {
		t.Run(name, func(t *testing.T) {
			if got := recoveredAt(made, c.started); !got.Equal(c.want) {
				t.Errorf("it came back %s, want %s", got, c.want)
			}
		})
	}
}

// A namespace that is put back from a backup has its plan and its run under new uids: the
// run ends by its cleanup, and whoever puts back what it had found knows where it came from.
func TestARunOutOfABackupPutsBackWhatItHadFound(t *testing.T) {
	inWorld(t, "steps:\n- "+down+"\n- "+hold+"\n", func(w *world) {
		w.steps.does("pass down", gives(found))
		w.plays()
		w.agent.stop()
		plan, one := w.cluster.ConfigMap(shop, nightly), w.cluster.ConfigMap(shop, runName)
		w.after(time.Hour)
		for _, cm := range []*corev1.ConfigMap{plan, one} {
			w.cluster.DeleteAtOnce("configmaps", shop, cm.Name)
			cm.UID, cm.ResourceVersion, cm.CreationTimestamp = types.UID("another-"+cm.Name), "", metav1.Time{}
			w.cluster.Put(cm)
		}
		back := time.Now()
		w.begins("b")
		w.after(time.Minute)
		w.ends(run.Aborted, "its plan was deleted")
		w.did("pass down#1", "pass down#1", "restore down#1")
		if got := w.steps.last("down"); !got.Recorded.RecoveredAt.Equal(back.Truncate(time.Second)) || w.record("down").Restored != run.RestoreDone {
			t.Errorf("it came back %s, want %s; restored %q", got.Recorded.RecoveredAt, back, w.record("down").Restored)
		}
	})
}

// Whoever may write ConfigMaps has a run's cleanup done once, and not again with a copy of it, also where
// he takes the ledger away that knows of its end.
func TestARunThatSomebodyCreatesAgainIsLeftAlone(t *testing.T) {
	inWorld(t, "steps:\n- "+hold+"\n"+tell, func(w *world) {
		w.plays()
		one := w.cluster.ConfigMap(shop, runName)
		w.says(annotations.Abort, runName)
		w.after(time.Minute)
		w.ends(run.Aborted, "")
		once := w.acts()
		w.agent.stop()
		w.cluster.DeleteAtOnce("configmaps", shop, runName)
		w.cluster.DeleteAtOnce("configmaps", shop, annotations.LedgerName(nightly, planUID))
		one.UID, one.ResourceVersion, one.CreationTimestamp = "another", "", metav1.Time{}
		w.cluster.Put(one)
		w.begins("b")
		w.after(10 * time.Second)
		w.makesLedger(ledger.Ledger{PlanUID: planUID})
		w.says(annotations.Abort, runName)
		w.after(5 * time.Minute)
		w.did(once...)
		w.wantEvent("Warning RunBroken " + runName + ": This run is left alone: the run shop/" + runName + " does not count: it was deleted, and somebody created it again from what the agent had signed; if it is the agent's own, from a backup say, sign it with 'kubectl maint -n shop adopt run/" + runName)
	})
}

// A key that takes another's place makes a run one that is left alone, or takes it up again: its plan says so then.
func TestAPlanIsLookedAtWhenARunOfItCountsNoMoreOrAgain(t *testing.T) {
	inWorld(t, "steps:\n- "+hold, func(w *world) {
		w.plays()
		w.agent.Stores.Keys.Log = slog.New(slog.DiscardHandler)
		for _, key := range []string{"n", "k"} {
			w.after(time.Minute)
			before := w.agent.plans.asked.Load()
			w.agent.Stores.Keys.Observe(&corev1.Secret{Data: map[string][]byte{annotations.DataKey: []byte(strings.Repeat(key, 32))}})
			w.agent.Recheck(types.NamespacedName{Namespace: shop, Name: runName})
			w.after(time.Second)
			if got := w.agent.plans.asked.Load() - before; got != 1 {
				t.Errorf("with key %s the plan is looked at %d times", key, got)
			}
		}
	})
}
