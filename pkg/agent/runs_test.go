package agent

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func runObject(t *testing.T, version int, phase run.RunPhase) *corev1.ConfigMap {
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
	k, rs := types.NamespacedName{Namespace: "ns", Name: "maint-run-p-x"}, newRuns()
	if !rs.saw(runObject(t, 5, run.RunPending)) {
		t.Error("the first sight was no news")
	}
	for _, version := range []int{3, 5} {
		if rs.saw(runObject(t, version, run.RunRunning)) {
			t.Errorf("version %d after 5 was news", version)
		}
	}
	if got := rs.get(k).journal.Phase; got != run.RunPending {
		t.Errorf("an older state replaced a newer one: %s", got)
	}
	if !rs.saw(runObject(t, 7, run.RunRunning)) || rs.get(k).journal.Phase != run.RunRunning {
		t.Error("a newer state was not taken in")
	}
	rs.drop(k, 9)
	if rs.saw(runObject(t, 8, run.RunRunning)) || rs.get(k) != nil {
		t.Error("an echo brought an ended run back to life")
	}
}

func TestARunThatVanishesWithoutUsIsTornUntilItsEntryIsClosed(t *testing.T) {
	k, rs := types.NamespacedName{Namespace: "ns", Name: "maint-run-p-x"}, newRuns()
	rs.saw(runObject(t, 5, run.RunRunning))
	rs.gone(k, 6)
	if !rs.isTorn(k) || len(rs.tornOf(types.NamespacedName{Namespace: "ns", Name: "p"})) != 1 || rs.get(k) != nil {
		t.Error("it is not known as torn")
	}
	rs.mended(k)
	if rs.isTorn(k) {
		t.Error("it stays torn")
	}
	rs.saw(runObject(t, 8, run.RunRunning))
	rs.drop(k, 9)
	rs.gone(k, 9)
	if rs.isTorn(k) {
		t.Error("a run that we ended counts as torn")
	}
}

func TestLocksAreTakenAllOrNone(t *testing.T) {
	l := &locks{holder: map[string]string{}}
	if _, by := l.take("a", []string{"plan/1", "target/1"}); by != "" {
		t.Fatalf("free locks are held by %q", by)
	}
	if held, by := l.take("b", []string{"plan/2", "target/1"}); held != "target/1" || by != "a" {
		t.Errorf("got %q held by %q", held, by)
	}
	if _, by := l.take("c", []string{"plan/2"}); by != "" {
		t.Errorf("what b failed to take is held by %q", by)
	}
	if _, by := l.take("a", []string{"plan/1"}); by != "" {
		t.Errorf("a is in its own way: %q", by)
	}
	l.free("a")
	if _, by := l.take("b", []string{"target/1"}); by != "" {
		t.Errorf("after a let go it is held by %q", by)
	}
}
