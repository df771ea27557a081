package watchrule_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
	"github.com/kubectl-maint/kubectl-maint/pkg/watchrule"
)

// The managers that write in the world below.
const (
	foreigner = "kubectl"
	planner   = "maint-plan"
	agent     = "maint-agent"
)

// field is a cluster of a few objects, a plan that watches them, and the agent
// that looks at it. What is durable outlives the agent, which may die before any
// of its writes.
type field struct {
	spec    plan.Spec
	edits   []coretest.Edit
	now     time.Time
	version uint64
	objects map[string]*thing
	outside map[string]bool // out of the selection

	stored *ledger.Ledger // durable
	shards []ledger.Shard
	runs   []string          // names of all runs that were ever created
	open   map[string]string // live runs, and their phase
	told   []string

	tracker   *watchrule.Tracker
	dieAt     int    // before the n-th write from now; 0: never
	patient   bool   // what nobody waits for is not written yet
	waiting   string // what the live runs wait for
	replyLost bool   // the reply to the next write of the head is lost
	between   func() // happens while a decision is made
	writes    int
}

type thing struct {
	uid     string
	body    map[string]any
	writers map[string]int64
	version uint64
}

type dead struct{}

func newField(rules ...plan.Watch) *field {
	w := &field{now: coretest.Clock("01:00"), version: 100, objects: map[string]*thing{}, outside: map[string]bool{}, open: map[string]string{}}
	for i := range rules {
		if rules[i].Kind == "" {
			rules[i].APIVersion, rules[i].Kind = "example.org/v1", "App"
		}
	}
	w.spec = plan.Spec{Triggers: plan.Triggers{Watch: rules}, MirrorPrefix: "flow.example.org", Steps: []plan.Step{{Name: "a", Type: "suspend"}}}.Defaulted()
	return w
}

func (w *field) ids() []string {
	var out []string
	for _, r := range w.spec.Triggers.Watch {
		out = append(out, plan.RuleID(r, w.spec.MirrorPrefix))
	}
	return out
}

// begin starts an agent, which reads what is there.
func (w *field) begin() {
	w.tracker = watchrule.NewTracker("uid", planner, agent)
	w.tracker.SetUncertainty(watchrule.DoubtEarly)
	w.takeUp()
	w.look()
}

func (w *field) takeUp() {
	w.tracker.SetRules(w.spec.Triggers.Watch, w.spec.MirrorPrefix)
	for _, id := range w.ids() {
		if w.stored != nil && w.stored.Kept(id) {
			w.tracker.Load(id, w.stored.Checkpoints(id, w.shards))
		}
		w.list(id)
	}
}

// list is the first list of a watch, and every one after it.
func (w *field) list(id string) {
	there := map[string]bool{}
	for _, name := range w.names() {
		if !w.outside[name] {
			there[w.objects[name].uid] = true
			w.tracker.Observe(id, w.sighting(name))
		}
	}
	w.tracker.NoteListed(id, func(uid string) bool { return there[uid] })
}

func (w *field) names() []string {
	var out []string
	for name := range w.objects {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

func (w *field) sighting(name string) watchrule.Observation {
	o := w.objects[name]
	s := watchrule.Observation{UID: o.uid, Namespace: "shop", Name: name, Version: o.version, Body: document.Clone(o.body)}
	for _, m := range []string{foreigner, planner, agent} {
		if at, wrote := o.writers[m]; wrote {
			s.Writers = append(s.Writers, watchrule.Writer{Manager: m, At: at})
		}
	}
	return s
}

// show lets the watches deliver what an object is now.
func (w *field) show(name string) {
	for _, id := range w.ids() {
		if w.tracker != nil && !w.outside[name] {
			w.tracker.Observe(id, w.sighting(name))
		}
	}
}

func (w *field) create(name string, size int) {
	w.version++
	w.objects[name] = &thing{
		uid: fmt.Sprintf("%s-%d", name, w.version), version: w.version, writers: map[string]int64{foreigner: w.now.Unix()},
		body: map[string]any{
			"apiVersion": "example.org/v1", "kind": "App", "metadata": map[string]any{"name": name, "namespace": "shop", "labels": map[string]any{"role": "db", "a.b/c": "d"}},
			"spec": map[string]any{"size": int64(size), "list": []any{map[string]any{"n": "x"}, map[string]any{"n": "y"}}},
		},
	}
	w.show(name)
}

// write changes an object under a manager; a run's write is known as its own
// before anybody sees it, unless the agent dies.
func (w *field) write(manager, name string, change func(map[string]any)) {
	w.quietly(manager, name, change)
	if manager == planner && w.tracker != nil {
		w.tracker.BeginWrite()
		w.tracker.NoteWrite("example.org/v1", "App", w.sighting(name))
		w.tracker.EndWrite()
	}
	w.show(name)
}

// traceless is a write that managedFields do not show, as a removal is.
func (w *field) traceless(name string, change func(map[string]any)) {
	writers := maps.Clone(w.objects[name].writers)
	w.quietly(foreigner, name, change)
	w.objects[name].writers = writers
	w.show(name)
}

// takenOver is a run's write on fields that somebody else wrote last: only who
// created the object stands beside it then.
func (w *field) takenOver(name string, n int) {
	w.quietly(planner, name, sized(n))
	w.objects[name].writers[foreigner] = coretest.Clock("01:00").Unix()
}

// quietly is a write that nobody is told of.
func (w *field) quietly(manager, name string, change func(map[string]any)) {
	w.version++
	w.now = w.now.Add(time.Second)
	o := w.objects[name]
	change(o.body)
	o.version, o.writers[manager] = w.version, w.now.Unix()
}

func (w *field) size(manager, name string, n int) { w.write(manager, name, sized(n)) }

func sized(n int) func(map[string]any) {
	return func(o map[string]any) { o["spec"].(map[string]any)["size"] = int64(n) }
}

func (w *field) remove(name string) {
	last := w.sighting(name)
	delete(w.objects, name)
	for _, id := range w.ids() {
		if w.tracker != nil {
			w.tracker.NoteMissing(id, last.UID, last.Body)
		}
	}
}

// leave takes an object out of the selection.
func (w *field) leave(name string) {
	w.outside[name] = true
	for _, id := range w.ids() {
		if w.tracker != nil {
			w.tracker.NoteMissing(id, w.objects[name].uid, w.sighting(name).Body)
		}
	}
}

// step is one durable write, before which the agent may die.
func (w *field) step() {
	w.writes++
	if w.dieAt > 0 {
		w.dieAt--
		if w.dieAt == 0 {
			panic(dead{})
		}
	}
}

// look lets the agent work until nothing more is to be done, and says whether it
// lived.
func (w *field) look() (alive bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, died := p.(dead); !died {
				panic(p)
			}
			w.tracker = nil
			alive = false
		}
	}()
	for range 50 {
		if !w.pass() {
			return true
		}
	}
	panic("the agent does not come to rest")
}

// pass is one look of the agent at the plan, in the order in which it writes.
func (w *field) pass() (more bool) {
	f := coretest.Facts("01:00", append([]coretest.Edit{func(f *trigger.Facts) { f.Now, f.Plan.Spec, f.State.Ledger = w.now, w.spec, w.stored }}, w.edits...)...)
	for name, phase := range w.open {
		entry, _ := w.stored.OpenEntry(name)
		f.Live = append(f.Live, trigger.ActiveRun{Name: name, Phase: run.Phase(phase), Request: *entry.Request, StartedAt: &entry.At, Waiting: w.waiting})
	}
	if w.stored != nil {
		w.tracker.Overlay(w.stored.Seen)
	}
	for _, u := range w.tracker.Unconfirmed() {
		o := w.objects[u.Name]
		w.tracker.Confirm(u, o != nil && o.uid == u.UID)
	}
	f.Watched = candidates(w.tracker)
	for _, failure := range w.tracker.Failures() {
		w.told = append(w.told, "failed "+failure.Event+" "+failure.Name)
	}
	d := trigger.Decide(f)
	if w.between != nil {
		w.between()
		w.between = nil
	}
	b := w.tracker.Update(w.stored, d.Ledger, d.Changed, len(d.Claims) > 0, !w.patient)
	for _, id := range w.ids() {
		w.tracker.UpdateStart(&b, id)
	}
	w.merge(&b)
	if b.Changed {
		w.step()
		head := document.Clone(b.Ledger)
		w.stored = &head
	}
	answered := !w.replyLost || !b.Changed
	w.replyLost = w.replyLost && answered
	w.tracker.Recorded(b, d.Claims, answered)
	if !answered {
		return true
	}
	if b.Prune {
		w.step()
		w.shards, _ = ledger.MergeCheckpoints(w.shards, nil, w.stored.Kept, nil)
	}
	return w.createRuns() || b.Changed
}

func (w *field) merge(b *watchrule.LedgerUpdate) {
	if len(b.Shards)+len(b.Anew) == 0 {
		return
	}
	all, changed := ledger.MergeCheckpoints(w.shards[:min(b.Ledger.Shards, len(w.shards))], b.Shards, b.Keeps, b.Anew)
	for i := range all {
		if changed[i] {
			w.step()
			w.shards = append(w.shards[:i:i], append([]ledger.Shard{document.Clone(all[i])}, w.shards[min(i+1, len(w.shards)):]...)...)
		}
	}
	b.Ledger.Shards = len(all)
}

// createRuns makes the runs that claims call for. A name that was there before is
// the run of old: nothing runs.
func (w *field) createRuns() (made bool) {
	if w.stored == nil {
		return false
	}
	for _, e := range w.stored.Open {
		if w.open[e.Run] != "" {
			continue
		}
		w.step()
		if slices.Contains(w.runs, e.Run) {
			w.told = append(w.told, "AGAIN "+e.Run)
		}
		w.runs, w.open[e.Run] = append(w.runs, e.Run), string(run.Running)
		w.told = append(w.told, strings.TrimSuffix(e.Request.Event+" "+e.Request.Name, " "))
		made = true
	}
	return made
}

// finish ends the live runs.
func (w *field) finish() {
	for name := range w.open {
		l := w.stored.Close(name, run.Ran, "", coretest.On("01:00"), w.now)
		w.stored = &l
		delete(w.open, name)
	}
}

// expect plays until nothing runs any more, and compares what ran since it was
// last asked.
func (w *field) expect(t interface {
	Helper()
	Errorf(string, ...any)
}, want string,
) {
	t.Helper()
	w.look()
	for len(w.open) > 0 {
		w.finish()
		w.look()
	}
	if got := strings.Join(w.told, ", "); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.told = nil
}

func onlyWhen(text string) plan.Watch { return plan.Watch{When: text} }

func selected(w plan.Watch) plan.Watch {
	w.Selector = &selector.LabelSelector{MatchLabels: map[string]string{"role": "db"}}
	return w
}

func TestWatchesAskForRuns(t *testing.T) {
	for name, c := range map[string]struct {
		rule plan.Watch
		play func(*field)
		want string
	}{
		"what is there at first is recorded":  {play: func(w *field) { w.begin() }},
		"a new object is a create":            {play: func(w *field) { w.create("b", 1) }, want: "create b"},
		"another digest is an update":         {play: func(w *field) { w.size(foreigner, "a", 2) }, want: "update a"},
		"an end is a delete":                  {play: func(w *field) { w.remove("a") }, want: "delete a"},
		"an object made anew is both":         {play: func(w *field) { w.remove("a"); w.create("a", 1) }, want: "delete a, create a"},
		"the same again is nothing":           {play: func(w *field) { w.size(foreigner, "a", 1); w.list(w.ids()[0]) }},
		"back and forth is nothing":           {rule: plan.Watch{}, play: func(w *field) { w.size(foreigner, "a", 2); w.size(foreigner, "a", 1) }},
		"many changes are one":                {play: func(w *field) { w.size(foreigner, "a", 2); w.size(foreigner, "a", 3) }, want: "update a"},
		"created and gone is nothing":         {play: func(w *field) { w.create("b", 1); w.remove("b") }},
		"changed and gone is a delete":        {play: func(w *field) { w.size(foreigner, "a", 2); w.remove("a") }, want: "delete a"},
		"only updates":                        {rule: plan.Watch{Events: []string{"update"}}, play: func(w *field) { w.create("b", 1); w.look(); w.size(foreigner, "b", 2); w.remove("a") }, want: "update b"},
		"only creates":                        {rule: plan.Watch{Events: []string{"create"}}, play: func(w *field) { w.create("b", 1); w.size(foreigner, "a", 2); w.remove("a") }, want: "create b"},
		"only deletes":                        {rule: plan.Watch{Events: []string{"delete"}}, play: func(w *field) { w.create("b", 1); w.look(); w.remove("b"); w.size(foreigner, "a", 2) }, want: "delete b"},
		"only deletes, of what lived shortly": {rule: plan.Watch{Events: []string{"delete"}}, play: func(w *field) { w.create("b", 1); w.remove("b") }, want: "delete b"},
		"a restart is nothing":                {play: func(w *field) { w.begin() }},
		"an update while nobody looked":       {play: func(w *field) { w.tracker = nil; w.size(foreigner, "a", 2); w.begin(); w.begin() }, want: "update a"},
		"a create while nobody looked":        {play: func(w *field) { w.tracker = nil; w.create("b", 1); w.begin() }, want: "create b"},
		"a delete while nobody looked":        {play: func(w *field) { w.tracker = nil; w.remove("a"); w.begin() }, want: "delete a"},
		"leaving while nobody looked":         {rule: selected(plan.Watch{}), play: func(w *field) { w.tracker = nil; w.leave("a"); w.begin() }},
		"leaving the selection is nothing":    {rule: selected(plan.Watch{}), play: func(w *field) { w.leave("a") }},
		"coming back is a create": {rule: selected(plan.Watch{}), play: func(w *field) {
			w.leave("a")
			w.look()
			w.outside["a"] = false
			w.size(foreigner, "a", 1)
		}, want: "create a"},
		"coming back before that was written, too": {rule: selected(plan.Watch{}), play: func(w *field) {
			w.patient = true
			w.leave("a")
			w.look()
			w.outside["a"] = false
			w.size(foreigner, "a", 1)
		}, want: "create a"},
		"coming back again and again is a run of its own each time": {rule: selected(plan.Watch{}), play: func(w *field) {
			w.create("b", 1)
			w.expectNow("create b")
			w.leave("b")
			w.look()
			w.outside["b"] = false
			w.size(foreigner, "b", 1)
		}, want: "create b"},
		"an update after coming back, too": {rule: selected(plan.Watch{Events: []string{"update"}}), play: func(w *field) {
			w.create("b", 1)
			w.look()
			w.size(foreigner, "b", 2)
			w.expectNow("update b")
			w.leave("b")
			w.look()
			w.outside["b"] = false
			w.size(foreigner, "b", 3)
			w.look()
			w.size(foreigner, "b", 4)
		}, want: "update b"},
		"coming back at once is nothing": {rule: selected(plan.Watch{}), play: func(w *field) {
			w.leave("a")
			w.outside["a"] = false
			w.show("a")
		}},
		"a delete in a selection is a delete": {rule: selected(plan.Watch{}), play: func(w *field) { w.remove("a") }, want: "delete a"},
		"grown":                               {rule: onlyWhen("object.spec.size > oldObject.spec.size"), play: func(w *field) { w.size(foreigner, "a", 2) }, want: "update a"},
		"shrunk":                              {rule: onlyWhen("object.spec.size > oldObject.spec.size"), play: func(w *field) { w.size(foreigner, "a", 0) }},
		"shrunk, then grown": {rule: onlyWhen("object.spec.size > oldObject.spec.size"), play: func(w *field) {
			w.size(foreigner, "a", 0)
			w.look()
			w.size(foreigner, "a", 1)
		}, want: "update a"},
		"grown, then shrunk by less": {rule: onlyWhen("object.spec.size > oldObject.spec.size"), play: func(w *field) {
			w.size(foreigner, "a", 3)
			w.expectNow("update a")
			w.size(foreigner, "a", 2)
		}},
		"what fails does not run": {rule: onlyWhen("object.spec.size > oldObject.spec.size"), play: func(w *field) { w.create("b", 1); w.look(); w.look() }, want: "failed create b"},
		"old is null at a create": {rule: onlyWhen("oldObject == null"), play: func(w *field) { w.create("b", 1); w.size(foreigner, "a", 2) }, want: "create b"},
		"a delete has what was":   {rule: onlyWhen("object == oldObject && object.spec.size == 1"), play: func(w *field) { w.remove("a") }, want: "delete a"},
		"after a restart a delete has a name alone": {rule: onlyWhen("object.metadata.name == 'a' && !has(object.spec)"), play: func(w *field) {
			w.tracker = nil
			w.remove("a")
			w.begin()
		}, want: "delete a"},
		"after a restart old is null": {rule: onlyWhen("oldObject == null"), play: func(w *field) { w.tracker = nil; w.size(foreigner, "a", 2); w.begin() }, want: "update a"},
		"old is known after a restart where nothing changed meanwhile": {rule: onlyWhen("oldObject.spec.size == 1"), play: func(w *field) {
			w.begin()
			w.size(foreigner, "a", 2)
		}, want: "update a"},

		"a run's own write is nothing":     {play: func(w *field) { w.size(planner, "a", 2) }},
		"nor after a restart":              {play: func(w *field) { w.size(planner, "a", 2); w.tracker = nil; w.begin() }},
		"nor where the agent died with it": {play: func(w *field) { w.quietly(planner, "a", sized(2)); w.begin() }},
		"a foreign write after it counts":  {play: func(w *field) { w.size(planner, "a", 2); w.size(foreigner, "a", 3) }, want: "update a"},
		"a foreign write before it counts": {play: func(w *field) { w.size(foreigner, "a", 3); w.size(planner, "a", 4) }, want: "update a"},
		"also where the agent died with it": {play: func(w *field) {
			w.tracker = nil
			w.size(foreigner, "a", 3)
			w.quietly(planner, "a", sized(4))
			w.begin()
		}, want: "update a"},
		"a run may undo a foreign change": {play: func(w *field) { w.size(foreigner, "a", 3); w.size(planner, "a", 1) }},
		"what a run makes is nothing": {play: func(w *field) {
			w.create("b", 1)
			w.objects["b"].writers = map[string]int64{planner: 1}
			w.show("b")
			w.tracker = nil
			w.begin()
		}},
		"what a run deletes is nothing": {play: func(w *field) { w.tracker.Removed(w.objects["a"].uid); w.remove("a") }},
		"what the agent writes of its own is nothing": {play: func(w *field) {
			w.write(agent, "a", func(o map[string]any) { meta(o)["annotations"] = map[string]any{"status.maint.dev/x": "y"} })
		}},
		"the watch is faster than the answer": {play: func(w *field) {
			w.tracker.BeginWrite()
			w.quietly(planner, "a", sized(2))
			w.show("a")
			w.look()
			w.tracker.NoteWrite("example.org/v1", "App", w.sighting("a"))
			w.tracker.EndWrite()
		}},
		"the answer is faster than a foreign change before it": {play: func(w *field) {
			w.quietly(foreigner, "a", sized(2))
			before := w.sighting("a")
			w.quietly(planner, "a", func(o map[string]any) { o["spec"].(map[string]any)["more"] = "x" })
			w.tracker.NoteWrite("example.org/v1", "App", w.sighting("a"))
			w.look()
			w.tracker.Observe(w.ids()[0], before)
			w.show("a")
		}, want: "update a"},
		"the watch passes the own write over": {play: func(w *field) {
			w.tracker.SetUncertainty(watchrule.NoDoubt)
			w.quietly(planner, "a", sized(2))
			w.tracker.NoteWrite("example.org/v1", "App", w.sighting("a"))
			w.quietly("controller", "a", func(o map[string]any) { o["status"] = "ready" })
			w.show("a")
		}},
		"a lost answer is read off the object": {play: func(w *field) {
			w.tracker.SetUncertainty(watchrule.DoubtLost)
			w.quietly(planner, "a", sized(2))
			w.show("a")
		}},
		"a foreign write under a lost answer counts": {play: func(w *field) {
			w.tracker.SetUncertainty(watchrule.DoubtLost)
			w.size(foreigner, "a", 2)
		}, want: "update a"},
		"a run's write that comes true after the next agent has listed": {play: func(w *field) {
			w.begin()
			w.quietly(planner, "a", sized(2))
			w.show("a")
		}},
		"a person's does, too, and counts": {play: func(w *field) {
			w.begin()
			w.size(foreigner, "a", 2)
		}, want: "update a"},
		"a person's removal after a run's write counts, also while nobody looked": {play: func(w *field) {
			w.size(planner, "a", 2)
			w.look()
			w.tracker = nil
			w.traceless("a", func(o map[string]any) { delete(meta(o)["labels"].(map[string]any), "a.b/c") })
			w.begin()
		}, want: "update a"},
		"a person's removal after an agent began counts": {play: func(w *field) {
			w.size(planner, "a", 2)
			w.look()
			w.begin()
			w.traceless("a", func(o map[string]any) { delete(meta(o)["labels"].(map[string]any), "a.b/c") })
		}, want: "update a"},
		"a run's write takes over what the person's wrote, and the agent dies with it": {play: func(w *field) {
			w.size(foreigner, "a", 2)
			w.expectNow("update a")
			w.tracker = nil
			w.takenOver("a", 3)
			w.begin()
		}},
		"a lost answer to a second write in one second": {play: func(w *field) {
			w.size(planner, "a", 2)
			w.look()
			w.tracker.SetUncertainty(watchrule.DoubtLost)
			w.now = w.now.Add(-time.Second)
			w.quietly(planner, "a", sized(3))
			w.show("a")
		}},
		"a lost answer to a write in the second of a person's before it": {play: func(w *field) {
			w.size(foreigner, "a", 2)
			w.expectNow("update a")
			w.tracker.SetUncertainty(watchrule.DoubtLost)
			w.now = w.now.Add(-time.Second)
			w.quietly(planner, "a", sized(3))
			w.show("a")
		}},
		"a person's removal under a lost answer counts": {play: func(w *field) {
			w.size(planner, "a", 2)
			w.size(foreigner, "a", 3)
			w.expectNow("update a")
			w.tracker.SetUncertainty(watchrule.DoubtLost)
			w.traceless("a", func(o map[string]any) { delete(meta(o)["labels"].(map[string]any), "a.b/c") })
		}, want: "update a"},
		"a write without a trace of anybody, under a lost answer, counts": {play: func(w *field) {
			w.create("b", 1)
			w.objects["b"].writers = map[string]int64{}
			w.tracker, w.stored = nil, nil
			w.begin()
			w.tracker.SetUncertainty(watchrule.DoubtLost)
			w.traceless("b", sized(2))
		}, want: "update b"},
		"a write under the plan's name that no run made counts": {play: func(w *field) {
			w.tracker.SetUncertainty(watchrule.NoDoubt)
			w.quietly(planner, "a", sized(2))
			w.show("a")
		}, want: "update a"},
		"a run's write before this agent that is seen late": {play: func(w *field) {
			w.tracker = watchrule.NewTracker("uid", planner, agent)
			w.tracker.SetRules(w.spec.Triggers.Watch, w.spec.MirrorPrefix)
			w.tracker.Load(w.ids()[0], w.stored.Checkpoints(w.ids()[0], w.shards))
			w.tracker.SetUncertainty(watchrule.NoDoubt)
			w.quietly(planner, "a", sized(2))
			w.show("a")
		}},
		"a lost answer to a deletion": {play: func(w *field) {
			w.tracker.SetUncertainty(watchrule.DoubtLost)
			w.tracker.Removing(w.objects["a"].uid)
			w.remove("a")
		}},
		"a lost answer to a deletion that did not come true": {play: func(w *field) {
			w.tracker.SetUncertainty(watchrule.DoubtLost)
			w.tracker.Removing(w.objects["a"].uid)
			w.tracker.SetUncertainty(watchrule.NoDoubt)
			w.remove("a")
		}, want: "delete a"},
		"a claim that was written without a reply, and a run's write after it": {play: func(w *field) {
			w.replyLost = true
			w.size(foreigner, "a", 2)
			w.between = func() { w.size(planner, "a", 3) }
		}, want: "update a"},
		"a claim that was written without a reply, and a person's and a run's after it": {play: func(w *field) {
			w.replyLost = true
			w.size(foreigner, "a", 2)
			w.between = func() { w.size(foreigner, "a", 3); w.size(planner, "a", 4) }
		}, want: "update a, update a"},
		"a watch that lags behind an earlier agent is not believed": {play: func(w *field) {
			old := w.sighting("a")
			w.size(foreigner, "a", 2)
			w.expectNow("update a")
			w.tracker = watchrule.NewTracker("uid", planner, agent)
			w.tracker.SetRules(w.spec.Triggers.Watch, w.spec.MirrorPrefix)
			w.tracker.Load(w.ids()[0], w.stored.Checkpoints(w.ids()[0], w.shards))
			w.tracker.Observe(w.ids()[0], old)
			w.look()
			w.show("a")
		}},
		"an update whose claim was written without a reply, and another update": {play: func(w *field) {
			w.replyLost = true
			w.size(foreigner, "a", 2)
			w.expectNow("update a")
			w.size(foreigner, "a", 3)
		}, want: "update a"},
		"an update whose claim was written without a reply, and its end": {play: func(w *field) {
			w.replyLost = true
			w.size(foreigner, "a", 2)
			w.between = func() { w.remove("a") }
		}, want: "update a, delete a"},
		"an update whose claim was written without a reply": {play: func(w *field) { w.replyLost = true; w.size(foreigner, "a", 2) }, want: "update a"},
		"a create whose claim was written without a reply":  {play: func(w *field) { w.replyLost = true; w.create("b", 2) }, want: "create b"},
		"a delete whose claim was written without a reply":  {play: func(w *field) { w.replyLost = true; w.remove("a") }, want: "delete a"},
		"a run writes while the change before it is claimed": {play: func(w *field) {
			w.size(foreigner, "a", 2)
			w.between = func() { w.size(planner, "a", 3) }
		}, want: "update a"},
		"a person writes while the change before it is claimed": {play: func(w *field) {
			w.size(foreigner, "a", 2)
			w.between = func() { w.size(foreigner, "a", 3) }
		}, want: "update a, update a"},
		"a rule that went, with a death before its marks did": {play: func(w *field) {
			w.create("b", 1)
			w.stored, w.shards = nil, nil
			w.begin()
			w.spec.Triggers.Watch[0].Kind = "Other"
			w.takeUp()
			w.dieAt = 3 // the shard, the head, and then
			w.look()
			if w.tracker != nil {
				w.told = append(w.told, "lived on")
			}
			w.dieAt = 0
			delete(w.objects, "b")
			w.spec.Triggers.Watch[0].Kind = "App"
			w.begin()
			w.begin()
		}},
		"a rule that was to go, with a death before the head said so": {play: func(w *field) {
			w.spec.Triggers.Watch[0].Kind = "Other"
			w.takeUp()
			w.dieAt = 2
			w.look()
			if w.tracker != nil {
				w.told = append(w.told, "lived on")
			}
			w.dieAt = 0
			w.spec.Triggers.Watch[0].Kind = "App"
			w.begin()
		}},
		"an edited rule records anew": {play: func(w *field) {
			w.size(foreigner, "a", 2)
			w.spec.Triggers.Watch[0].Fields = []string{"spec"}
			w.takeUp()
		}},
		"and looks from then on": {play: func(w *field) {
			w.spec.Triggers.Watch[0].Fields = []string{"spec"}
			w.takeUp()
			w.look()
			w.size(foreigner, "a", 2)
		}, want: "update a"},
		"a rule that comes back begins anew, under new names": {play: func(w *field) {
			w.begin()
			w.size(foreigner, "a", 2)
			w.expectNow("update a")
			w.spec.Triggers.Watch[0].Fields = []string{"spec"}
			w.takeUp()
			w.look()
			w.size(foreigner, "a", 3)
			w.expectNow("update a")
			w.spec.Triggers.Watch[0].Fields = nil
			w.takeUp()
			w.look()
			w.begin()
			w.size(foreigner, "a", 4)
		}, want: "update a"},
		"a rule that went while nobody looked": {play: func(w *field) {
			w.tracker = nil
			w.spec.Triggers.Watch[0].Kind = "Other"
			w.begin()
			w.spec.Triggers.Watch[0].Kind = "App"
			w.size(foreigner, "a", 2)
			w.tracker = nil
			w.begin()
		}},

		"under Forbid one waits for the other": {play: func(w *field) {
			w.size(foreigner, "a", 2)
			w.create("b", 1)
			w.look()
			w.told = append(w.told, fmt.Sprint(len(w.open)))
		}, want: "update a, 1, create b"},
		"what changes during its run runs again, once": {play: func(w *field) {
			w.size(foreigner, "a", 2)
			w.look()
			w.size(foreigner, "a", 3)
			w.size(foreigner, "a", 4)
		}, want: "update a, update a"},
		"under Allow both run": {play: func(w *field) {
			w.spec.ConcurrencyPolicy = plan.Allow
			w.size(foreigner, "a", 2)
			w.create("b", 1)
			w.look()
			w.told = append(w.told, fmt.Sprint(len(w.open)))
		}, want: "update a, create b, 2"},
		"what waits for its window is not claimed twice": {play: func(w *field) {
			w.size(foreigner, "a", 2)
			w.look()
			for name := range w.open {
				w.open[name] = string(run.Pending)
			}
			w.waiting = run.WaitWindow
			w.size(foreigner, "a", 3)
			w.look()
			w.told = append(w.told, fmt.Sprint(len(w.open)))
		}, want: "update a, 1, update a"},
		"a pause holds, and the newest state runs": {play: func(w *field) {
			w.edits = []coretest.Edit{coretest.Paused(schedule.Pause{On: true})}
			w.size(foreigner, "a", 2)
			w.expectNow("")
			w.size(foreigner, "a", 3)
			w.tracker = nil
			w.begin()
			w.expectNow("")
			w.edits = nil
		}, want: "update a"},
		"what was put back during a pause is nothing": {play: func(w *field) {
			w.edits = []coretest.Edit{coretest.Paused(schedule.Pause{On: true})}
			w.size(foreigner, "a", 2)
			w.look()
			w.size(foreigner, "a", 1)
			w.look()
			w.edits = nil
		}},
		"a skip holds, too": {play: func(w *field) {
			w.edits = []coretest.Edit{coretest.Skip(intent.Skip{All: true})}
			w.size(foreigner, "a", 2)
			w.expectNow("")
			w.edits = nil
		}, want: "update a"},
		"a plan that is not ready waits": {play: func(w *field) {
			w.edits = []coretest.Edit{coretest.NotReady("target")}
			w.size(foreigner, "a", 2)
			w.expectNow("")
			w.edits = nil
		}, want: "update a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newField(c.rule)
			w.create("a", 1)
			w.begin()
			w.look()
			c.play(w)
			w.expect(t, c.want)
			w.tracker = nil
			w.begin()
			w.expect(t, "") // and whatever it was, a restart does not bring it back
		})
	}
}

// expectNow is expect in the middle of a play: what differs stands in what is
// told at its end.
func (w *field) expectNow(want string) {
	complain := complaint{}
	w.expect(&complain, want)
	w.told = append(w.told, complain...)
}

type complaint []string

func (c *complaint) Helper() {}

func (c *complaint) Errorf(format string, args ...any) {
	*c = append(*c, fmt.Sprintf(format, args...))
}

// Whatever write the agent dies before, each change has its run, once.
func TestWatchesSurviveADeathBeforeAnyWrite(t *testing.T) {
	full := false // head, so that marks go to the shards
	story := func(w *field) {
		for i := 0; full && i <= plan.MaxSeen; i++ {
			w.size(planner, fmt.Sprintf("filler-%d", i), 2)
			w.look()
		}
		w.size(foreigner, "a", 2)
		rest := func() {
			w.create("c", 1)
			w.remove("b")
		}
		if w.between = rest; !full {
			w.between = nil
			rest()
		}
	}
	for n := 1; ; n++ {
		w := newField(plan.Watch{})
		w.create("a", 1)
		w.create("b", 1)
		if full { // then a claim and marks for the shards come together
			w.spec.ConcurrencyPolicy = plan.Allow
		}
		for i := 0; full && i <= plan.MaxSeen; i++ {
			w.create(fmt.Sprintf("filler-%d", i), 1)
		}
		w.begin()
		w.expect(t, "")
		story(w)
		w.dieAt = n
		for w.look(); w.tracker == nil || len(w.open) > 0; w.look() {
			w.finish()
			if w.tracker == nil {
				w.dieAt = 0
				w.begin()
			}
		}
		got := slices.Sorted(slices.Values(w.told))
		if diff := cmp.Diff([]string{"create c", "delete b", "update a"}, got); diff != "" {
			t.Errorf("death before write %d: %s", n, diff)
		}
		if w.dieAt > 0 {
			t.Logf("%d points", n-1)
			if full {
				return
			}
			n, full = 0, true
		}
	}
}

// Marks that are written in bulk go where the older ones of their objects are.
func TestMarksInBulkAreNotHiddenByOlderOnes(t *testing.T) {
	w := newField(onlyWhen("oldObject == null"))
	w.begin()
	for i := range 120 {
		w.create(fmt.Sprintf("o-%d", i), 1)
	}
	w.tracker = nil
	w.stored = nil
	w.begin()
	w.expect(t, "")
	for round := 2; round < 4; round++ {
		for i := range 20 * (round - 1) * (round - 1) * (round - 1) {
			w.size(foreigner, fmt.Sprintf("o-%d", i%120), round)
		}
		w.look()
	}
	w.tracker = nil
	w.begin()
	w.expect(t, "")
}

func TestEqualObjectsHaveDifferentDigests(t *testing.T) {
	w := newField(fields("spec.size"))
	w.create("a", 1)
	w.create("b", 1)
	w.begin()
	w.look()
	seen := map[string]bool{}
	for _, mark := range w.stored.Checkpoints(w.ids()[0], w.shards) {
		seen[mark.Digest] = true
	}
	if len(seen) != 2 {
		t.Errorf("digests %v", seen)
	}
}

// A rule that starts records all or begins again; nothing runs either way.
func TestAStartSurvivesADeathBeforeAnyWrite(t *testing.T) {
	for n := 1; ; n++ {
		w := newField(plan.Watch{}, plan.Watch{Fields: []string{"spec.size"}})
		for i := range 1700 { // more than one shard
			w.create(fmt.Sprintf("an-object-with-quite-a-name-%d", i), 1)
		}
		w.dieAt = n
		w.begin()
		w.dieAt = 0
		survived := w.tracker != nil
		if !survived {
			w.begin()
		}
		w.expect(t, "")
		w.size(foreigner, "an-object-with-quite-a-name-7", 2)
		w.spec.ConcurrencyPolicy = plan.Allow
		w.expect(t, "update an-object-with-quite-a-name-7, update an-object-with-quite-a-name-7")
		for i, shard := range w.shards {
			if b, _ := json.Marshal(shard); len(b) > plan.MaxShard {
				t.Errorf("shard %d has %d bytes", i, len(b))
			}
		}
		if survived {
			t.Logf("%d shards, %d points", len(w.shards), n-1)
			return
		}
	}
}

// The head stays small, and what it gave to the shards is not lost.
func TestMarksMoveToTheShards(t *testing.T) {
	w := newField(plan.Watch{})
	for i := range 200 {
		w.create(fmt.Sprintf("o-%d", i), 1)
	}
	w.begin()
	for round := 2; round < 5; round++ {
		for i := range 200 {
			w.size(planner, fmt.Sprintf("o-%d", i), round)
			w.look()
			if n := len(w.stored.Seen); n > 2*plan.MaxSeen {
				t.Fatalf("%d marks beside the head", n)
			}
		}
	}
	w.tracker = nil
	w.begin()
	w.expect(t, "")
	w.size(foreigner, "o-3", 9)
	w.expect(t, "update o-3")
}

// What changes while a rule's start is being written is held, and asks for a look
// once it was: nothing else would ask for one.
func TestAChangeWhileARuleStartsAsksForALook(t *testing.T) {
	w := newField(plan.Watch{})
	w.create("a", 1)
	w.tracker = watchrule.NewTracker("uid", planner, agent)
	w.takeUp()
	b := w.tracker.Update(nil, ledger.Ledger{}, false, false, true)
	w.tracker.UpdateStart(&b, w.ids()[0])
	w.quietly(foreigner, "a", sized(2))
	if urgency := w.tracker.Observe(w.ids()[0], w.sighting("a")); urgency != watchrule.UrgencyNone {
		t.Error("it asks for a look before the start is written:", urgency)
	}
	if urgency := w.tracker.Recorded(b, nil, true); urgency != watchrule.UrgencyNow {
		t.Error("the change is not looked at:", urgency)
	}
	if seen := candidates(w.tracker); len(seen) != 1 {
		t.Errorf("%+v ask for a run", seen)
	}
}

func TestTooManyObjectsAreSaidAndNotWatched(t *testing.T) {
	for name, started := range map[string]bool{"at first": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			w := newField(plan.Watch{}, plan.Watch{Fields: []string{"spec.size"}})
			w.create("a", 1)
			w.tracker = watchrule.NewTracker("uid", planner, agent)
			if w.takeUp(); started {
				w.look()
			}
			crowd, other := w.ids()[0], w.ids()[1]
			see := func(n int) {
				w.tracker.Observe(crowd, watchrule.Observation{UID: fmt.Sprint(n), Name: "p", Version: uint64(n + 1000), Body: run.Body{}})
			}
			for n := w.tracker.Watching(); n < plan.MaxWatched; n++ {
				see(n)
			}
			if full := w.tracker.Full(crowd); full != "" {
				t.Fatalf("with %d objects: %s", w.tracker.Watching(), full)
			}
			see(plan.MaxWatched)
			see(plan.MaxWatched + 1)
			if full := w.tracker.Full(crowd); !strings.Contains(full, "more objects than a plan may watch with all its rules, 20000") || w.tracker.Full(other) != "" {
				t.Errorf("%q, and of the other %q", full, w.tracker.Full(other))
			}
			if _, starts := w.tracker.Start(crowd); starts || len(candidates(w.tracker)) > 0 || w.tracker.Watching() > 1 {
				t.Errorf("it goes on: %d objects", w.tracker.Watching())
			}
			w.size(foreigner, "a", 2)
			w.expect(t, map[bool]string{true: "update a"}[started]) // the other rule's
			w.tracker.Forget(crowd)
			w.takeUp()
			w.expect(t, map[bool]string{true: "update a"}[started]) // what changed meanwhile
			w.size(foreigner, "a", 3)
			w.expect(t, "update a, update a")
		})
	}
}

// padded makes an object take about so many bytes.
func padded(n int) func(map[string]any) {
	return func(o map[string]any) { o["spec"].(map[string]any)["pad"] = strings.Repeat("x", n) }
}

// Only what a condition needs for the next change is kept of an object, and what
// is to be told of one that is gone, until it was.
func TestWhatIsKeptOfObjects(t *testing.T) {
	const size = 10_000
	updates := []string{"create", "update"}
	for name, c := range map[string]struct {
		rule       plan.Watch
		kept, gone int // times the size
	}{
		"no condition":                             {gone: 1},
		"no condition, and no deletes":             {rule: plan.Watch{Events: updates}},
		"a condition, and deletes":                 {rule: onlyWhen("!has(object.none)"), kept: 1, gone: 1},
		"a condition on the object alone":          {rule: plan.Watch{When: "object.spec.size > 0", Events: updates}},
		"one that does not hold":                   {rule: plan.Watch{When: "object.spec.size > 9", Events: updates}},
		"a condition on the old object":            {rule: plan.Watch{When: "oldObject == null || object.spec.size > 0", Events: updates}, kept: 1},
		"a condition on both, which does not hold": {rule: onlyWhen("object.spec.size > 9 && oldObject != null"), kept: 1, gone: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newField(c.rule)
			w.edits = []coretest.Edit{coretest.Paused(schedule.Pause{On: true})}
			kept := func(when string, times int) {
				t.Helper()
				if n := w.tracker.Kept(); (n+size/2)/size != times {
					t.Errorf("%s: %d bytes are kept, want %d times %d", when, n, times, size)
				}
			}
			w.create("a", 1)
			w.objects["a"].body["spec"].(map[string]any)["pad"] = strings.Repeat("x", size)
			w.begin()
			kept("at first", c.kept)
			w.edits = nil
			w.size(foreigner, "a", 2)
			w.look()
			w.finish()
			w.look()
			kept("after a change", c.kept)
			w.begin()
			kept("after a restart", c.kept)
			w.remove("a")
			kept("when it is gone", c.gone)
			w.look()
			w.finish()
			w.look()
			kept("when that was told", 0)
		})
	}
}

// What is beyond the bytes that a plan may keep is said, and let go; whoever needs
// no bodies goes on, and so does the rule once there is less of it.
func TestTooManyBytesAreSaidAndNotKept(t *testing.T) {
	w := newField(onlyWhen("object.spec.size > 1"), plan.Watch{Fields: []string{"spec.size"}})
	large, small := w.ids()[0], w.ids()[1]
	for i := range 15 {
		w.create(fmt.Sprintf("o-%d", i), 1)
		padded(1 << 20)(w.objects[fmt.Sprintf("o-%d", i)].body)
	}
	w.begin()
	w.expect(t, "")
	if kept := w.tracker.Kept(); kept < 15<<20 || w.tracker.Full(large) != "" {
		t.Fatal(kept, w.tracker.Full(large))
	}
	w.write(foreigner, "o-3", padded(2<<20))
	if full := w.tracker.Full(large); !strings.Contains(full, "App") || !strings.Contains(full, "16 MiB") || !strings.Contains(full, "narrow its selector") {
		t.Errorf("it says %q", full)
	}
	if w.tracker.Kept() != 0 || w.tracker.Full(small) != "" || w.tracker.Watching() != 15 {
		t.Error(w.tracker.Kept(), w.tracker.Full(small), w.tracker.Watching())
	}
	w.size(foreigner, "o-5", 2)
	w.expect(t, "update o-5")
	w.write(foreigner, "o-3", padded(1))
	w.tracker.Forget(large)
	w.takeUp()
	w.expect(t, "update o-5")
	w.size(foreigner, "o-6", 2)
	w.expect(t, "update o-6, update o-6")
}

// Of many objects that are gone at once, as many are told of in full as there is
// room for, and the others by name.
func TestManyThatAreGoneAtOnceAreToldOfByName(t *testing.T) {
	w := newField(plan.Watch{})
	w.spec.ConcurrencyPolicy = plan.Allow
	names := 2 * plan.MaxWatchedBytes / plan.MaxWatchedClaim
	for i := range names {
		w.create(fmt.Sprintf("o-%d", i), 1)
		padded(plan.MaxWatchedClaim - 1000)(w.objects[fmt.Sprintf("o-%d", i)].body)
	}
	w.begin()
	for _, name := range w.names() {
		w.remove(name)
	}
	full := 0
	seen := candidates(w.tracker)
	for _, o := range seen {
		if o.Body != nil {
			full++
		}
	}
	if len(seen) != names || full < names/3 || full == names || w.tracker.Kept() > plan.MaxWatchedBytes || w.tracker.Full(w.ids()[0]) != "" {
		t.Errorf("%d of %d, %d in full, %d bytes: %s", len(seen), names, full, w.tracker.Kept(), w.tracker.Full(w.ids()[0]))
	}
}

// always evaluates conditions.
type always struct{}

func (always) Left() bool                { return true }
func (always) Evaluate(condition func()) { condition() }

func candidates(t *watchrule.Tracker) []watchrule.Observed {
	found, _ := t.Candidates(always{})
	return found
}

// few evaluates some conditions more.
type few struct{ left int }

func (f *few) Left() bool { return f.left > 0 }
func (f *few) Evaluate(condition func()) {
	f.left--
	condition()
}

// Conditions that may not be evaluated now are evaluated another time, each once, and no change is lost.
func TestChangesAreJudgedAnotherTimeWhereConditionsTakeTooMuch(t *testing.T) {
	w := newField(plan.Watch{When: "object.spec.size > 1"})
	for _, name := range []string{"a", "b", "c", "d"} {
		w.create(name, 1)
	}
	w.begin()
	for _, name := range []string{"a", "b", "c", "d"} {
		w.size(foreigner, name, 2)
	}
	for n := range 4 {
		one := &few{left: 1}
		if found, all := w.tracker.Candidates(one); len(found) != n+1 || all != (n == 3) || one.left != 0 {
			t.Errorf("look %d: %d ask for a run, all: %t", n, len(found), all)
		}
	}
	if found, all := w.tracker.Candidates(&few{}); len(found) != 4 || !all {
		t.Errorf("then %d ask for a run, all: %t", len(found), all)
	}
}
