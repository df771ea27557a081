package store

import (
	"runtime"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func runObject(t *testing.T, version int, phase run.Phase) *corev1.ConfigMap {
	t.Helper()
	r := run.Run{Name: "maint-run-p-x", Namespace: "ns", Plan: "p", PlanUID: "u", Request: run.Request{Kind: run.ByToken, Token: "t"}}
	cm, err := annotations.RunObject(r, run.Journal{Phase: phase})
	if err != nil {
		t.Fatal(err)
	}
	cm.ResourceVersion = strconv.Itoa(version)
	return cm
}

func TestTheWatchsEchoOfAnOlderStateIsNoNews(t *testing.T) {
	k, rs := types.NamespacedName{Namespace: "ns", Name: "maint-run-p-x"}, NewRuns()
	if !rs.Observe(runObject(t, 5, run.Pending)) {
		t.Error("the first sight was no news")
	}
	for _, version := range []int{3, 5} {
		if rs.Observe(runObject(t, version, run.Running)) {
			t.Errorf("version %d after 5 was news", version)
		}
	}
	if got := rs.Get(k).Journal.Phase; got != run.Pending {
		t.Errorf("an older state replaced a newer one: %s", got)
	}
	if !rs.Observe(runObject(t, 7, run.Running)) || rs.Get(k).Journal.Phase != run.Running {
		t.Error("a newer state was not taken in")
	}
	rs.Drop(k, 9)
	if rs.Observe(runObject(t, 8, run.Running)) || rs.Get(k) != nil {
		t.Error("an echo brought an ended run back to life")
	}
}

// The watch shows an older state at the very moment at which we end the run.
func TestARunThatEndsWhileAnEchoIsReadStaysEnded(t *testing.T) {
	k, before, echo := types.NamespacedName{Namespace: "ns", Name: "maint-run-p-x"}, runObject(t, 5, run.Running), runObject(t, 7, run.Running)
	for i := range 500 { // each time a little later
		rs := NewRuns()
		rs.Observe(before)
		var both sync.WaitGroup
		both.Go(func() { rs.Observe(echo) })
		both.Go(func() {
			for range 200 * i {
				runtime.KeepAlive(i)
			}
			rs.Drop(k, 9)
		})
		both.Wait()
		if rs.Get(k) != nil {
			t.Fatal("the echo brought it back to life")
		}
	}
}

func TestARunThatVanishesWithoutUsIsTornUntilItsEntryIsClosed(t *testing.T) {
	k, rs := types.NamespacedName{Namespace: "ns", Name: "maint-run-p-x"}, NewRuns()
	rs.Observe(runObject(t, 5, run.Running))
	rs.Gone(k, 6)
	if !rs.IsOrphan(k) || len(rs.OrphansOf(types.NamespacedName{Namespace: "ns", Name: "p"})) != 1 || rs.Get(k) != nil {
		t.Error("it is not known as torn")
	}
	rs.OrphanClosed(k)
	if rs.IsOrphan(k) {
		t.Error("it stays torn")
	}
	rs.Observe(runObject(t, 8, run.Running))
	rs.Drop(k, 9)
	rs.Gone(k, 9)
	if rs.IsOrphan(k) {
		t.Error("a run that we ended counts as torn")
	}
}

func TestLocksAreTakenAllOrNone(t *testing.T) {
	l := NewLocks()
	if _, by := l.Take("a", []string{"plan/1", "target/1"}); by != "" {
		t.Fatalf("free locks are held by %q", by)
	}
	if held, by := l.Take("b", []string{"plan/2", "target/1"}); held != "target/1" || by != "a" {
		t.Errorf("got %q held by %q", held, by)
	}
	if _, by := l.Take("c", []string{"plan/2"}); by != "" {
		t.Errorf("what b failed to take is held by %q", by)
	}
	if _, by := l.Take("a", []string{"plan/1"}); by != "" {
		t.Errorf("a is in its own way: %q", by)
	}
	l.Free("a")
	if _, by := l.Take("b", []string{"target/1"}); by != "" {
		t.Errorf("after a let go it is held by %q", by)
	}
}
