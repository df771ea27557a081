package store

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func TestWhatAWatchShowsFromBeforeOurOwnWriteIsStale(t *testing.T) {
	var w Expectations
	w.Expect("u", "7")
	w.Expect("u", "not a number")
	for _, c := range []struct {
		version string
		stale   bool
	}{{"5", true}, {"unreadable", false}, {"6", true}, {"7", false}, {"6", false}} { // once shown it is forgotten
		if got := w.Stale("u", c.version); got != c.stale {
			t.Errorf("version %s is stale: %t, want %t", c.version, got, c.stale)
		}
	}
	w.Expect("u", "9")
	w.Forget("u")
	if w.Stale("u", "8") || w.Stale("other", "1") {
		t.Error("what is gone is waited for")
	}
}

// held is a run whose step has recorded something of an object.
func held(name, uid string, began time.Time) *CachedRun {
	j := run.Journal{Phase: run.Running, Steps: []run.Record{{Path: "down", StartedAt: &began, Before: []byte(`{"uid":"` + uid + `"}`)}, {Path: "plain", Before: []byte(`{}`)}, {Path: "odd", Before: []byte(`[]`)}}}
	cm, err := annotations.RunObject(run.Run{Name: name, Namespace: "shop", Plan: "p"}, j)
	if err != nil {
		panic(err)
	}
	return &CachedRun{Object: cm, Run: run.Run{Name: name, Namespace: "shop", Plan: "p"}, Journal: j}
}

func names(h *Holds, uid string, k types.NamespacedName) (out string) {
	for _, one := range h.Of(uid, k, "down") {
		if out += one.Run; !one.Over.IsZero() {
			out += "(over)"
		}
		out += " "
	}
	return out
}

func TestWhoHoldsAnObject(t *testing.T) {
	now := time.Unix(1000, 0)
	h := NewHolds()
	h.saw(held("b", "u", now))
	h.saw(held("a", "u", now.Add(time.Minute)))
	h.saw(held("a", "u", now.Add(time.Minute))) // twice is once
	h.saw(held("c", "u", now.Add(-time.Minute)))
	h.saw(held("d", "other", now))
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: name} }
	if got := names(h, "u", key("b")); got != "a c " {
		t.Errorf("beside b it is held by %q, the newest first", got)
	}
	h.Release(key("a"), "down", now)
	h.Release(key("a"), "nothing", now)
	if got := names(h, "u", key("b")); got != "a(over) c " {
		t.Errorf("after a put it back: %q", got)
	}
	h.Drop(key("c"), now)
	if got := names(h, "u", key("b")); got != "a(over) c(over) " {
		t.Errorf("after c ended: %q", got)
	}
	h.Drop(key("d"), now.Add(overFor+time.Second))
	if got := names(h, "u", key("b")); got != "" {
		t.Errorf("what was over long ago is kept: %q", got)
	}
	if got := names(h, "none", key("b")); got != "" {
		t.Errorf("an object that nobody holds: %q", got)
	}
}

func TestAStepHoldsWhatItRecordedLast(t *testing.T) {
	now, other := time.Unix(1000, 0), types.NamespacedName{Namespace: "shop", Name: "b"}
	h := NewHolds()
	for _, c := range []struct{ uid, before, want string }{
		{"u", `{"uid":"u","changes":[1]}`, `{"uid":"u","changes":[1]}`},
		{"u", `{"uid":"u","changes":[2]}`, `{"uid":"u","changes":[2]}`},
		{"u", "", ""},
		{"v", `{"uid":"v"}`, `{"uid":"v"}`},
	} {
		l := held("a", c.uid, now)
		l.Journal.Steps[0].Before = []byte(c.before)
		if c.before == "" {
			l.Journal.Steps[0].Before = nil
		}
		h.saw(l)
		got := ""
		for _, one := range h.Of(c.uid, other, "down") {
			got += string(one.Before)
		}
		if got != c.want {
			t.Errorf("recorded %s, it holds %s", c.before, got)
		}
	}
	if got := names(h, "u", other); got != "" {
		t.Errorf("what is over is held by %q", got)
	}
}

// heldMany is a run with so many steps that each recorded so many bytes of an object.
func heldMany(t *testing.T, name string, steps, bytes int) *corev1.ConfigMap {
	t.Helper()
	spec, faults := plan.Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: hold, type: suspend}\n"), "p")
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	r := run.Run{Namespace: "shop", Plan: name, PlanUID: "u", Request: run.Request{Kind: run.ByToken, Token: name}, Spec: spec.Defaulted()}
	r.Name = annotations.RunName(r.Plan, r.PlanUID, r.Request)
	j := run.Journal{Phase: run.Running, Section: plan.SectionSteps}
	for i := range steps {
		before := fmt.Sprintf(`{"uid":"%s-%d","changes":[%q]}`, name, i, strings.Repeat("x", bytes))
		j.Steps = append(j.Steps, run.Record{Path: fmt.Sprint("s-", i), Type: plan.TypeScale, Phase: run.StepSucceeded, Attempt: 1, Before: []byte(before)})
	}
	cm, err := annotations.RunObject(r, j)
	if err != nil {
		t.Fatal(err)
	}
	cm.ResourceVersion, cm.UID = "5", types.UID(r.Name)
	return agenttest.Signed(t, cm)
}

// What steps recorded is packed in the texts of their runs: of loops over thousands of
// objects it is read again from there, and is still there a moment after their end.
func TestWhatStepsRecordedTakesTheMemoryOfTheTexts(t *testing.T) {
	rs, objects := NewRuns(agenttest.Keys()), make([]*corev1.ConfigMap, 8)
	for i := range objects {
		objects[i] = heldMany(t, fmt.Sprint("p", i), 100, 60_000)
	}
	before := agenttest.Heap()
	for _, cm := range objects {
		rs.Observe(cm)
	}
	grown := agenttest.Heap() - before
	t.Logf("%d runs that recorded 6 MB each take %d MiB beside their texts", len(objects), grown>>20)
	if grown > 36<<20 {
		t.Errorf("they take %d MiB", grown>>20)
	}
	for _, when := range []string{"while its run lives", "when it has ended"} {
		for _, cm := range objects[:2] { // the first of its records is kept, and the last is not
			plan := cm.Labels[annotations.LabelPlan]
			for _, step := range []int{0, 99} {
				mark := fmt.Sprintf("%s-%d", plan, step)
				got := rs.Holds.Of(mark, types.NamespacedName{}, "")
				if len(got) != 1 || ObjectIDOf(got[0].Before) != mark || len(got[0].Before) < 60_000 {
					t.Fatalf("%s: of %s it knows %d holders", when, mark, len(got))
				}
			}
		}
		for i, cm := range objects {
			rs.Holds.Drop(keyOf(cm), time.Unix(int64(i), 0))
			rs.Drop(keyOf(cm), 6)
		}
	}
	last := heldMany(t, "last", 1, 1)
	rs.Observe(last)
	rs.Holds.Drop(keyOf(last), time.Unix(0, 0).Add(2*overFor))
	if rs.Holds.kept != len(rs.Holds.Of("last-0", types.NamespacedName{}, "")[0].Before) {
		t.Errorf("it counts %d bytes for what it has forgotten", rs.Holds.kept)
	}
}

// A run may hold thousands of objects, and somebody look at all of them.
func TestALookAtManyObjectsReadsEachJournalOnce(t *testing.T) {
	for name, c := range map[string]struct {
		records bool
		ended   bool
		reads   int
	}{
		"with what was recorded":                         {records: true, reads: 2},
		"with what was recorded by runs that have ended": {records: true, ended: true, reads: 2},
		"who holds them alone":                           {},
		"who holds them alone, by runs that have ended":  {ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			rs, reads := NewRuns(agenttest.Keys()), 0
			whole := rs.Holds.read
			rs.Holds.read = func(cm *corev1.ConfigMap) run.Journal {
				reads++
				return whole(cm)
			}
			for _, name := range []string{"p", "q"} {
				cm := heldMany(t, name, 500, 1_000)
				rs.Observe(cm)
				if c.ended {
					rs.Holds.Drop(keyOf(cm), time.Unix(0, 0))
					rs.Drop(keyOf(cm), 6)
				}
			}
			of := rs.Holds.Lookup(c.records)
			for i := range 1_000 {
				mark := fmt.Sprintf("%s-%d", string("pq"[i%2]), i/2)
				if got := of(mark); len(got) != 1 || c.records && ObjectIDOf(got[0].Before) != mark {
					t.Fatalf("of %s it knows %d holders", mark, len(got))
				}
			}
			if reads != c.reads {
				t.Errorf("%d journals are read", reads)
			}
		})
	}
}

// What a tenant writes over a run does not become the record of what was there.
func TestARunThatIsWrittenOverKeepsItsRecords(t *testing.T) {
	rs := NewRuns(agenttest.Keys())
	cm := heldMany(t, "p", 200, 1_000)
	rs.Observe(cm)
	forged := cm.DeepCopy()
	forged.ResourceVersion = "6"
	forged.Annotations[annotations.StatusSignature] = "x"
	rs.Observe(forged)
	if got := rs.Holds.Of("p-199", types.NamespacedName{}, ""); len(got) != 1 || ObjectIDOf(got[0].Before) != "p-199" {
		t.Errorf("it knows %v", got)
	}
}

// Another API server may say any uid.
func TestAnObjectOfAnotherClusterIsAnother(t *testing.T) {
	h := NewHolds()
	far := held("far", "u", time.Unix(1000, 0))
	far.Journal.Steps[0].Before = []byte(`{"uid":"u","server":"s"}`)
	h.saw(far)
	h.saw(held("here", "u", time.Unix(2000, 0)))
	for mark, want := range map[string]string{"u": "here ", executors.ObjectID("u", "s"): "far ", executors.ObjectID("u", "t"): ""} {
		if got := names(h, mark, types.NamespacedName{Namespace: "shop", Name: "x"}); got != want {
			t.Errorf("%s is held by %q, want %q", mark, got, want)
		}
	}
}

// Restores of one object come one after another.
func TestRestoresOfOneObjectDoNotMeet(t *testing.T) {
	h := NewHolds()
	h.saw(held("a", "u", time.Now()))
	first := h.LockRestore("u")
	second := make(chan struct{})
	go func() {
		defer close(second)
		h.LockRestore("u")()
	}()
	select {
	case <-second:
		t.Error("both put it back at once")
	default:
	}
	first()
	<-second
	h.LockRestore("none")()
}

func TestEndedRunsAreKnownByTheirPlan(t *testing.T) {
	slim := func(name, phase string, version int) *EndedRun {
		o, err := SlimEndedRun(agenttest.Keys())(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name + "-uid"), ResourceVersion: strconv.Itoa(version), CreationTimestamp: metav1.Unix(99, 0),
			Labels: map[string]string{annotations.LabelPlan: "nightly", annotations.LabelPhase: phase},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return o.(*EndedRun)
	}
	h := NewHistory()
	h.Put(slim("a", "Succeeded", 1))
	h.Put(slim("b", "Failed", 2))
	h.Put(slim("b", "Failed", 3)) // shown again
	all := h.Of(pk())
	if len(all) != 2 || !all[0].Succeeded || all[1].Succeeded || all[0].Created != 99 || all[1].GetObjectMeta().GetResourceVersion() != "3" {
		t.Errorf("it has %+v", all)
	}
	h.Drop(slim("a", "", 4))
	h.Drop(slim("b", "", 4))
	if len(h.Of(pk())) != 0 || len(h.Runs) != 0 {
		t.Errorf("what is gone is kept: %v", h.Runs)
	}
	if o, err := SlimEndedRun(agenttest.Keys())("something else"); err != nil || o != "something else" {
		t.Errorf("%v, %v", o, err)
	}
}

func TestARefusalIsFinalWhenItIsSaidForHalfAMinute(t *testing.T) {
	r, now := NewRefusals[string](), time.Unix(1000, 0)
	for _, c := range []struct {
		after time.Duration
		final bool
	}{{0, false}, {29 * time.Second, false}, {30 * time.Second, true}} {
		if _, final := r.Record("a", now.Add(c.after)); final != c.final {
			t.Errorf("after %s it is final: %t", c.after, final)
		}
	}
	r.Clear("a")
	if _, final := r.Record("a", now.Add(time.Minute)); final {
		t.Error("what was over is remembered")
	}
	r.Record("b", now)
	r.Forget(func(k string) bool { return k == "b" })
	if _, final := r.Record("b", now.Add(time.Hour)); final {
		t.Error("what was forgotten is remembered")
	}
}

func observed(t *testing.T, rs *Runs, version int, phase run.Phase) *CachedRun {
	t.Helper()
	rs.Observe(runObject(t, version, phase))
	return rs.Get(runKey())
}

func TestWhatIsKnownOfARunGoesWithIt(t *testing.T) {
	k, plan, rs := runKey(), types.NamespacedName{Namespace: "ns", Name: "p"}, NewRuns(agenttest.Keys())
	l := observed(t, rs, 5, run.Running)
	if news := rs.MarkRecorded([]*LiveRun{l.Live()}); len(news) != 1 || !rs.IsRecorded(k) {
		t.Errorf("shown for the first time: %v", news)
	}
	if news := rs.MarkRecorded([]*LiveRun{l.Live()}); len(news) != 0 {
		t.Errorf("shown again: %v", news)
	}
	if !rs.MarkStuck(k, "too large") || rs.MarkStuck(k, "too large") || rs.StuckOf(plan) == "" {
		t.Errorf("its plan says %q", rs.StuckOf(plan))
	}
	if !rs.MarkStuck(k, "") || rs.StuckOf(plan) != "" {
		t.Errorf("its plan still says %q", rs.StuckOf(plan))
	}
	rs.MarkStuck(k, "too large")
	rs.Drop(k, 6)
	if rs.IsRecorded(k) || rs.StuckOf(plan) != "" || len(rs.OfPlan(plan)) != 0 || len(rs.Filter(func(*LiveRun) bool { return true })) != 0 || len(rs.byPlan) != 0 {
		t.Error("something of it is kept")
	}
	if news := rs.MarkRecorded([]*LiveRun{l.Live()}); len(news) != 0 {
		t.Error("a run that is over is shown")
	}
	rs.Gone(k, 7)
	observed(t, rs, 9, run.Running)
	rs.MarkVanished(rs.Get(k))
	if !rs.IsOrphan(k) || len(rs.OrphansOf(plan)) != 1 {
		t.Error("what vanished is no orphan")
	}
}

func TestTheRunsOfAPlanAreThoseThatWereAskedForFirst(t *testing.T) {
	rs := NewRuns(agenttest.Keys())
	names := map[string]string{}
	for i, token := range []string{"c", "b", "a"} {
		r := run.Run{
			Namespace: "ns", Plan: "p", Request: run.Request{Kind: run.ByToken, Token: token, At: time.Unix(int64(100*min(i, 1)), 0)},
			Spec: plan.Spec{Steps: []plan.Step{{Name: "hold", Type: "suspend"}}}.Defaulted(),
		}
		r.Name = annotations.RunName(r.Plan, r.PlanUID, r.Request)
		names[token] = r.Name
		cm, err := annotations.RunObject(r, run.Journal{Phase: run.Pending, Steps: []run.Record{{Type: plan.TypeDrain}, {Type: plan.TypeForEachNode, Phase: run.StepRunning}}})
		if err != nil {
			t.Fatal(err)
		}
		cm.ResourceVersion = "5"
		rs.Observe(agenttest.Signed(t, cm))
	}
	list := rs.OfPlan(types.NamespacedName{Namespace: "ns", Name: "p"})
	later := []string{names["a"], names["b"]}
	slices.Sort(later)
	if want := fmt.Sprintf("%s=Pending,%s=Pending,%s=Pending", names["c"], later[0], later[1]); FormatRuns(list) != want {
		t.Errorf("they are %s, not %s", FormatRuns(list), want)
	}
	if first := rs.ReadWhole(list[0]); !first.Journal.TakesNodes() || !first.RollsOut() || !list[0].RollsOut() || first.Account() != list[0].Account() || list[0].Account() != (client.Account{Namespace: "ns", Name: "maint-runner"}) {
		t.Errorf("%t %t %v", first.Journal.TakesNodes(), first.RollsOut(), first.Account())
	}
	shown := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotations.StatusRuns: FormatRuns(list)}}}
	if phase, made := WasMade(shown, names["a"]); !made || phase != run.Pending {
		t.Errorf("a: %s, %t", phase, made)
	}
	if _, made := WasMade(shown, "x"); made {
		t.Error("a run that was never made bears a trace")
	}
}

func TestOnlyRunsOfItsPlanAndOfItsTargetAreInTheWayOfARun(t *testing.T) {
	rs := NewRuns(agenttest.Keys())
	keys := map[string]types.NamespacedName{}
	see := func(token, plan, target string, version int, phase run.Phase) {
		r := run.Run{Namespace: "ns", Plan: plan, PlanUID: plan + "-uid", TargetUID: target, Request: run.Request{Kind: run.ByToken, Token: token}, Spec: stepsHold()}
		r.Name = annotations.RunName(r.Plan, r.PlanUID, r.Request)
		keys[token] = types.NamespacedName{Namespace: "ns", Name: r.Name}
		cm, err := annotations.RunObject(r, run.Journal{Phase: phase})
		if err != nil {
			t.Fatal(err)
		}
		cm.ResourceVersion = strconv.Itoa(version)
		rs.Observe(agenttest.Signed(t, cm))
	}
	inTheWay := func(of string) string {
		var out []string
		for _, l := range rs.InTheWay(rs.Get(keys[of])) {
			out = append(out, l.Head.Request.Token)
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	see("a", "p", "web", 1, run.Pending)
	see("b", "p", "", 2, run.Running)
	see("c", "q", "web", 3, run.Running)
	see("d", "q", "db", 4, run.Running)
	see("e", "r", "", 5, run.Running)
	see("c", "q", "web", 6, run.Running) // seen again, it is there once
	for of, want := range map[string]string{"a": "a b c", "b": "a b", "c": "a c d", "e": "e"} {
		if got := inTheWay(of); got != want {
			t.Errorf("in the way of %s are %q, not %q", of, got, want)
		}
	}
	for token := range keys {
		rs.Drop(keys[token], 9)
	}
	if len(rs.byPlan)+len(rs.byTarget) > 0 {
		t.Errorf("what has ended is kept: %v, %v", rs.byPlan, rs.byTarget)
	}
}

// stepsHold is what a run does that waits for somebody.
func stepsHold() plan.Spec {
	return plan.Spec{Steps: []plan.Step{{Name: "hold", Type: "suspend"}}}.Defaulted()
}

func TestWhatIsKnownOfAPlanGoesWithItsText(t *testing.T) {
	p, cm := NewPlans(), documentOf(annotations.KindPlan, "shop", "nightly")
	cm.UID = "u"
	known := p.Of(cm)
	known.NoteResume("run-1", time.Unix(1, 0))
	known.NoteResume("run-1", time.Unix(2, 0))
	if !known.Resume.At.Equal(time.Unix(1, 0)) {
		t.Error("a resume is newer than it is")
	}
	if again := p.Of(cm); again.PlanMemory != known.PlanMemory || again.ParsedPlan != known.ParsedPlan {
		t.Error("the same plan was read twice")
	}
	broken := cm.DeepCopy()
	broken.Data[annotations.DataPlan] = "kind: Plan"
	if other := p.Of(broken); other.PlanMemory == known.PlanMemory || len(other.Faults) == 0 {
		t.Error("what was known of another text is believed")
	}
	if valid, bad := p.Count(); valid != 0 || bad != 1 || p.Size() != 1 || !p.Has(pk()) {
		t.Errorf("%d valid, %d broken", valid, bad)
	}
	drains := documentOf(annotations.KindPlan, "shop", "nodes")
	drains.Data[annotations.DataPlan] = "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  serviceAccountName: drainer\n  steps:\n  - {name: empty, type: drain, properties: {node: n1}}\n"
	drains.Labels[annotations.LabelServiceAccount] = "drainer"
	p.Of(drains)
	if got := p.Draining(); len(got) != 1 || got[types.NamespacedName{Namespace: "shop", Name: "nodes"}].Name != "drainer" {
		t.Errorf("%v drain", got)
	}
	p.Drop(pk())
	if p.Has(pk()) || p.Memory(pk()) != nil {
		t.Error("a plan that is gone is known")
	}
	w := p.WrittenOf(pk())
	if p.WrittenOf(pk()) != w {
		t.Error("what was written is forgotten")
	}
	p.ForgetWritten(pk())
	if p.WrittenOf(pk()) == w {
		t.Error("what was written is remembered")
	}
	for _, c := range []struct {
		pause   string
		deleted bool
		news    bool
	}{{"", false, false}, {"true", false, true}, {"true", false, false}, {"true", true, true}, {"", false, true}} {
		if got := p.NamespaceChanged("shop", c.pause, c.deleted); got != c.news {
			t.Errorf("paused %q, deleted %t is news: %t", c.pause, c.deleted, got)
		}
	}
}

func TestAGateIsKeptUntilTheBookChanges(t *testing.T) {
	g, now := NewGates("maint-system"), time.Unix(1000, 0)
	restrict := func(s schedule.Strategy) {
		g.Change(func(b *policy.Resolver) {
			b.PutPolicy(policy.State{Namespace: "shop", Name: "hours", Spec: policy.PolicySpec{Strategy: s}})
		})
	}
	restrict(schedule.Restrictive)
	q := policy.Query{Namespace: "shop", Policies: []policy.PolicyRef{{Name: "hours"}}}
	var kept policy.KeptGate
	first, asked := g.Of(&kept, q), g.Ask(q)
	if first == nil || first.Verdict(now).Permitted || g.Of(&kept, q) != first || g.Ask(q) != asked || !g.HadGate(&kept) {
		t.Error("a closed gate is open, or made twice")
	}
	g.Change(func(b *policy.Resolver) { b.PutPolicy(policy.State{Namespace: "mall", Name: "hours"}) })
	if g.Of(&kept, q) != first || g.Ask(q) != asked {
		t.Error("what another tenant edits has the gate made again")
	}
	restrict(schedule.Permissive)
	if !g.Of(&kept, q).Verdict(now).Permitted || !g.Ask(q).Verdict(now).Permitted {
		t.Error("the book changed, and the gate did not")
	}
	if other := g.Of(&kept, policy.Query{Namespace: "shop"}); other != nil {
		t.Error("another question has the same gate")
	}
	if _, p := g.Policy("shop", "hours"); p == nil {
		t.Error("the policy is not there")
	}
	if _, p := g.Policy("shop", "none"); p != nil {
		t.Error("a policy that is not there is")
	}
	if len(g.Uses(q)) != 1 || g.Gated(policy.Query{Namespace: "shop"}) || g.Strategy(q, now) != schedule.ByPolicy {
		t.Errorf("uses %v, strategy %v", g.Uses(q), g.Strategy(q, now))
	}
}

func TestWhatMetricsShowOfAPlan(t *testing.T) {
	g, now := NewGates("maint-system"), time.Unix(1000, 0)
	q := policy.Query{Namespace: "shop"}
	open := g.Subject(q, nil)
	if !open.Verdict(now).Permitted || len(open.Uses) != 0 {
		t.Errorf("what nothing stands before is %+v", open.Verdict(now))
	}
	g.Note(pk(), open)
	g.Waiting(pk(), true)
	if got := g.Subjects()[pk()]; !got.Waits || open.Waits || got.Strategy(now) != g.SubjectStrategy(q)(now) {
		t.Errorf("%+v", got)
	}
	g.Waiting(types.NamespacedName{Name: "none"}, true)
	g.Forget(pk())
	if len(g.Subjects()) != 0 {
		t.Error("what is gone is shown")
	}
	g.Change(func(b *policy.Resolver) {
		b.PutPolicy(policy.State{Namespace: "shop", Name: "hours", Spec: policy.PolicySpec{Strategy: schedule.Restrictive}})
	})
	q.Policies = []policy.PolicyRef{{Name: "hours"}}
	if got := g.Subject(q, g.Ask(q)); got.Verdict(now).Permitted || len(got.Uses) != 1 {
		t.Errorf("what a policy stands before is %+v", got)
	}
}

// Our own status on a policy is no news.
func TestAPolicyIsNewsWhenItSaysSomethingElse(t *testing.T) {
	g, cm := NewGates("maint-system"), documentOf(annotations.KindPolicy, "shop", "hours")
	k := types.NamespacedName{Namespace: "shop", Name: "hours"}
	edits := []struct {
		what string
		edit func()
		news bool
	}{
		{"it is new", func() {}, true},
		{"it is shown again", func() {}, false},
		{"it bears our status", func() { cm.Annotations = map[string]string{annotations.StatusMessage: "m"} }, false},
		{"it is paused", func() { cm.Annotations[annotations.Pause] = "true" }, true},
		{"its text changed", func() { cm.Data = map[string]string{annotations.DataPolicy: "x"} }, true},
		{"it was gone meanwhile", func() { g.ForgetContent(k) }, true},
	}
	for _, e := range edits {
		e.edit()
		if got := g.ContentChanged(cm); got != e.news {
			t.Errorf("%s: news %t, want %t", e.what, got, e.news)
		}
	}
}
