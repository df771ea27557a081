package store

import (
	"errors"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/keys"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// runKey names the run of runObject.
func runKey() types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: annotations.RunName("p", "u", run.Request{Kind: run.ByToken, Token: "t"})}
}

func runObject(t *testing.T, version int, phase run.Phase) *corev1.ConfigMap {
	t.Helper()
	r := run.Run{
		Name: runKey().Name, Namespace: "ns", Plan: "p", PlanUID: "u", Request: run.Request{Kind: run.ByToken, Token: "t"},
		Spec: plan.Spec{Steps: []plan.Step{{Name: "hold", Type: "suspend"}}}.Defaulted(),
	}
	cm, err := annotations.RunObject(r, run.Journal{Phase: phase})
	if err != nil {
		t.Fatal(err)
	}
	cm.ResourceVersion = strconv.Itoa(version)
	return agenttest.Signed(t, cm)
}

func TestTheWatchsEchoOfAnOlderStateIsNoNews(t *testing.T) {
	k, rs := runKey(), NewRuns(agenttest.Keys())
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

// The watch keeps what it shows: a run whose text we hold beside that would be in memory twice.
func TestARunThatWeWroteIsHeldAsTheWatchShowsIt(t *testing.T) {
	written := runObject(t, 5, run.Running)
	for name, c := range map[string]struct {
		shown *corev1.ConfigMap
		taken bool
	}{
		"the state that we wrote": {runObject(t, 5, run.Running), true},
		"an older state":          {runObject(t, 4, run.Running), false},
		"another text":            {runObject(t, 5, run.Pending), false},
	} {
		t.Run(name, func(t *testing.T) {
			rs := NewRuns(agenttest.Keys())
			l := &CachedRun{Object: written}
			if l.Run, l.Journal, l.Broken = rs.Read(written); l.Broken != nil {
				t.Fatal(l.Broken)
			}
			rs.Put(l)
			if rs.Observe(c.shown) {
				t.Error("it was news")
			}
			want := written
			if c.taken {
				want = c.shown
			}
			if got := rs.Live(runKey()); got.Object != want || got.Journal.Phase != run.Running {
				t.Errorf("version %s is held, in phase %s", got.Object.ResourceVersion, got.Journal.Phase)
			}
			if got := rs.Get(runKey()); got.Object != want || l.Object != written {
				t.Errorf("version %s is read, and version %s by who had it before", got.Object.ResourceVersion, l.Object.ResourceVersion)
			}
		})
	}
}

// The watch shows an older state at the very moment at which we end the run.
func TestARunThatEndsWhileAnEchoIsReadStaysEnded(t *testing.T) {
	k, before, echo := runKey(), runObject(t, 5, run.Running), runObject(t, 7, run.Running)
	for i := range 500 { // each time a little later
		rs := NewRuns(agenttest.Keys())
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
	k, rs := runKey(), NewRuns(agenttest.Keys())
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
	if _, by := l.Acquire("a", []string{"plan/1", "target/1"}); by != "" {
		t.Fatalf("free locks are held by %q", by)
	}
	if held, by := l.Acquire("b", []string{"plan/2", "target/1"}); held != "target/1" || by != "a" {
		t.Errorf("got %q held by %q", held, by)
	}
	if _, by := l.Acquire("c", []string{"plan/2"}); by != "" {
		t.Errorf("what b failed to take is held by %q", by)
	}
	if _, by := l.Acquire("a", []string{"plan/1"}); by != "" {
		t.Errorf("a is in its own way: %q", by)
	}
	l.Release("a")
	if _, by := l.Acquire("b", []string{"target/1"}); by != "" {
		t.Errorf("after a let go it is held by %q", by)
	}
}

func TestWhichRunsHoldALock(t *testing.T) {
	l := NewLocks()
	holds := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, run := range []string{"a", "b"} {
			if l.Holds(run) {
				got = append(got, run)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s %v hold something, want %v", when, got, want)
		}
	}
	holds("at first")
	for range 2 { // a run asks again at each step
		l.Acquire("a", []string{"plan/1", TargetLock("node")})
	}
	holds("once a has taken two", "a")
	l.Acquire("b", []string{"plan/2", TargetLock("node")})
	holds("when b got none", "a")
	l.MayChange("a", "node", func() (bool, error) { return false, nil })
	l.Acquire("b", []string{TargetLock("node")})
	holds("when a has given back the target", "a", "b")
	l.Release("a")
	holds("when a has ended", "b")
	if _, by := l.Acquire("b", []string{"plan/1"}); by != "" {
		t.Errorf("what a held is held by %q", by)
	}
	l.Release("b")
	holds("at the end")
	if len(l.holder)+len(l.held) > 0 {
		t.Errorf("%v and %v are kept", l.holder, l.held)
	}
	l.Acquire("a", []string{TargetLock("node")})
	l.MayChange("a", "node", func() (bool, error) { return false, nil })
	holds("when a has given back all")
}

// A run of which it is found out late that it may not change its target keeps other namespaces
// from it no longer.
func TestARunThatMayNotChangeItsTargetGivesItsLockBack(t *testing.T) {
	l := NewLocks()
	names := []string{TargetLockIn("a", "node"), TargetLock("node")}
	asked := 0
	ask := func(may bool, err error) func() (bool, error) {
		return func() (bool, error) { asked++; return may, err }
	}
	if !l.MayChange("a/one", "node", ask(false, errors.New("no answer"))) {
		t.Error("without an answer it counts as one that may not")
	}
	l.Acquire("a/one", names)
	if _, by := l.Acquire("b/two", []string{TargetLockIn("b", "node"), TargetLock("node")}); by != "a/one" {
		t.Errorf("it is held by %q", by)
	}
	for range 2 {
		if l.MayChange("a/one", "node", ask(false, nil)) {
			t.Error("it may change it, against the answer")
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times, want once in vain and once more", asked)
	}
	if _, by := l.Acquire("b/two", []string{TargetLockIn("b", "node"), TargetLock("node")}); by != "" {
		t.Errorf("another namespace's run waits for %q", by)
	}
	if _, by := l.Acquire("a/three", names[:1]); by != "a/one" {
		t.Errorf("in its own namespace it is held by %q", by)
	}
}

// A run whose label somebody took off is the agent's own as before, once it has its label again.
func TestARunWithoutItsLabelIsSaidToLackIt(t *testing.T) {
	cm := runObject(t, 5, run.Running)
	rs := NewRuns(agenttest.Keys())
	rs.Observe(cm)
	bare := cm.DeepCopy()
	bare.ResourceVersion = "6"
	delete(bare.Labels, annotations.LabelKind)
	rs.Observe(bare)
	const want = "and its label maint.dev/kind is gone; put it back with 'kubectl -n "
	if got := rs.StuckOf(rs.Get(runKey()).PlanKey()); !strings.Contains(got, want) || strings.Contains(got, " adopt ") {
		t.Errorf("it says %q", got)
	}
	changed := cm.DeepCopy()
	changed.ResourceVersion = "7"
	changed.Data["more"] = "x"
	rs.Observe(changed)
	if got := rs.StuckOf(rs.Get(runKey()).PlanKey()); !strings.Contains(got, " adopt run/") {
		t.Errorf("of one that was changed it says %q", got)
	}
}

// A run that somebody wrote by hand is left alone where no plan could have asked for it.
func TestARunThatNoPlanMayHoldIsBroken(t *testing.T) {
	for name, forge := range map[string]func(*run.Run){
		"a step lacks what it needs": func(r *run.Run) { r.Spec.Steps[0].Type = "webhook" },
		"there is no such step":      func(r *run.Run) { r.Spec.Steps[0].Type = "shell" },
		"two steps are of one name":  func(r *run.Run) { r.Spec.Steps = append(r.Spec.Steps, r.Spec.Steps[0]) },
		"a template holds itself": func(r *run.Run) {
			loop := plan.Step{Name: "again", Type: "template/a"}
			r.Spec.Steps, r.Templates = []plan.Step{loop}, map[string]plan.TemplateSpec{"a": {Steps: []plan.Step{loop}}}
		},
		"a step of a template lacks what it needs": func(r *run.Run) {
			r.Spec.Steps = []plan.Step{{Name: "a", Type: "template/a"}}
			r.Templates = map[string]plan.TemplateSpec{"a": {Steps: []plan.Step{{Name: "b", Type: "webhook"}}}}
		},
	} {
		cm := runObject(t, 5, run.Running)
		r, j, err := NewRuns(agenttest.Keys()).Read(cm)
		if err != nil {
			t.Fatal(err)
		}
		forge(&r)
		forged, err := annotations.RunObject(r, j)
		if err != nil {
			t.Fatal(err)
		}
		forged.ResourceVersion = "6"
		forged = agenttest.Signed(t, forged)
		rs := NewRuns(agenttest.Keys())
		rs.Observe(cm)
		rs.Observe(forged)
		if got := rs.Get(runKey()); got == nil || got.Broken == nil || got.Run.Plan != "" {
			t.Errorf("%s: %+v", name, got)
		}
		rs.Observe(runObject(t, 7, run.Running))
		if got := rs.Get(runKey()); got.Broken != nil || got.Run.Plan != "p" {
			t.Errorf("%s: when it is mended it is read again: %v", name, got.Broken)
		}
	}
}

// What counts as signed is another while a run moves on, or ends.
func TestARunThatIsReadAgainUnderAnotherKey(t *testing.T) {
	other := keys.Fixed(annotations.Keyring{})
	k, signed := runKey(), runObject(t, 5, run.Running)
	t.Run("it counts no longer", func(t *testing.T) {
		rs := NewRuns(agenttest.Keys())
		rs.Observe(signed)
		rs.keys = other
		if rs.Recheck(k); rs.Get(k).Broken == nil || rs.Get(k).Run.Plan != "" {
			t.Errorf("it is %+v", rs.Get(k))
		}
		rs.keys = agenttest.Keys()
		if rs.Recheck(k); rs.Get(k).Broken != nil || rs.Get(k).Run.Plan != "p" {
			t.Errorf("and when it counts again: %v", rs.Get(k).Broken)
		}
	})
	t.Run("it ended meanwhile", func(t *testing.T) {
		rs := NewRuns(agenttest.Keys())
		rs.Observe(signed)
		rs.Drop(k, 9)
		if rs.Recheck(k); rs.Get(k) != nil {
			t.Error("it came back to life")
		}
	})
}

// Whether a run counts that somebody created again depends on which plan is there, and that may
// become known at any moment.
func TestARunThatWasCreatedAgainIsJudgedByThePlanThatIsThereThen(t *testing.T) {
	copied := runObject(t, 5, run.Running)
	copied.UID = "one"
	copied = agenttest.Signed(t, copied)
	copied.UID = "two"
	for name, c := range map[string]struct {
		meanwhile func(rs *Runs, asked int) (planUID string) // while the plan's UID is asked for
		recheck   bool
	}{
		"the plan comes while the run is read, which is not found yet": {func(rs *Runs, asked int) string {
			if asked > 1 {
				return "u"
			}
			if len(rs.OfPlan(types.NamespacedName{Namespace: "ns", Name: "p"})) > 0 {
				t.Error("it is found already")
			}
			return ""
		}, false},
		"who reads it again has asked too early, and is the first": {func(rs *Runs, asked int) string {
			switch {
			case asked <= 2 || asked == 4: // the look that takes it in, and another that overtakes
				return ""
			case asked == 3:
				rs.Recheck(runKey())
			}
			return "u"
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			rs := &Runs{}
			rs = NewRuns(agenttest.Keys().KnowPlans(func(types.NamespacedName) string {
				asked++
				return c.meanwhile(rs, asked)
			}))
			rs.Observe(copied)
			if c.recheck {
				rs.Recheck(runKey())
			}
			if got := rs.Get(runKey()); got == nil || got.Broken == nil || got.Run.Plan != "" {
				t.Errorf("it counts: %t", got != nil)
			}
		})
	}
}
