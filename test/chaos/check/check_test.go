package check

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// book writes a small audit log: two processes a1 and b1, a run r of plan p, and
// people. Instants are seconds after noon; a request is answered 10 ms after it came.
type book struct {
	History
	version int
}

func noon(seconds float64) time.Time {
	return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

func newBook() *book { return &book{History: History{Sends: map[string]Send{}}} }

// add is a request by a process; an empty one is a person.
func (b *book) add(at float64, process, verb, resource, name string, edit func(*harness.AuditEvent, map[string]any)) *book {
	b.version++
	e := harness.AuditEvent{ID: fmt.Sprintf("%s-%d", process, b.version), Stage: "ResponseComplete", Verb: verb, URI: "/x/" + name}
	e.Object.Resource, e.Object.Namespace, e.Object.Name, e.Status.Code = resource, "ns", name, 200
	e.Received, e.Answered = metav1.NewMicroTime(noon(at)), metav1.NewMicroTime(noon(at+0.01))
	if process != "" {
		e.User.Username = harness.AgentUser
		b.Sends[e.ID] = Send{At: noon(at), Process: process}
	}
	object := map[string]any{"metadata": map[string]any{"namespace": "ns", "name": name, "uid": "uid-" + name, "resourceVersion": fmt.Sprint(b.version)}}
	if edit != nil {
		edit(&e, object)
	}
	e.Response, _ = json.Marshal(object)
	b.Audit = append(b.Audit, e)
	return b
}

func meta(o map[string]any) map[string]any { return o["metadata"].(map[string]any) }

// run is a write of run r: its phase, with a reason after a colon, and steps as path=phase.
func (b *book) run(at float64, process, verb, phase string, steps ...string) *book {
	return b.runOf("r", "slot-1", at, process, verb, phase, steps...)
}

func (b *book) runOf(name, slot string, at float64, process, verb, phase string, steps ...string) *book {
	phase, reason, _ := strings.Cut(phase, ":")
	return b.add(at, process, verb, "configmaps", name, func(_ *harness.AuditEvent, o map[string]any) {
		meta(o)["labels"] = map[string]string{labelKind: "run", labelPlan: "p", labelPh: phase}
		if phase == "Pending" || phase == "Running" {
			meta(o)["finalizers"] = []string{finalizer}
		}
		j := map[string]any{"phase": phase, "reason": reason}
		if phase != "Pending" {
			j["startedAt"] = noon(0)
		}
		var records []map[string]string
		for _, s := range steps {
			path, phase, _ := strings.Cut(s, "=")
			phase, reason, _ := strings.Cut(phase, ":")
			records = append(records, map[string]string{"path": path, "phase": phase, "reason": reason})
		}
		j["steps"] = records
		text, _ := json.Marshal(j)
		o["data"] = map[string]string{"journal.json": string(text), "run.yaml": "plan: p\nplanUID: uid-p\nrequest: {kind: schedule, local: " + slot + "}\nspec: {description: v1}\n"}
	})
}

// act is a change that a process made for run r as the plan's account.
func (b *book) act(at float64, process string) *book {
	return b.add(at, process, "patch", "deployments", "d", func(e *harness.AuditEvent, _ map[string]any) {
		if err := json.Unmarshal([]byte(`{"impersonatedUser":{"username":"runner","extra":{"maint.dev/run":["r"]}}}`), e); err != nil {
			panic(err)
		}
	})
}

// lease is a write of the lease that has this holder.
func (b *book) lease(at float64, process, holder string) *book {
	return b.add(at, process, "update", "leases", "maint-agent", func(_ *harness.AuditEvent, o map[string]any) {
		o["spec"] = map[string]any{"holderIdentity": holder}
	})
}

// plan is a write of plan p: its version, its slots as seconds after noon, a pause.
func (b *book) plan(at float64, version, pause string, slots ...float64) *book {
	return b.add(at, "", "update", "configmaps", "p", func(_ *harness.AuditEvent, o map[string]any) {
		meta(o)["labels"] = map[string]string{labelKind: "plan"}
		if pause != "" {
			meta(o)["annotations"] = map[string]string{pauseKey: pause}
		}
		text := "spec:\n  description: " + version + "\n  triggers:\n    schedules:\n"
		for _, s := range slots {
			text += fmt.Sprintf("    - {at: %q}\n", noon(s).Format(time.RFC3339))
		}
		o["data"] = map[string]string{"plan.yaml": text}
	})
}

// ledger is a write of p's ledger with the runs that are open.
func (b *book) ledger(at float64, process string, open ...string) *book {
	return b.add(at, process, "update", "configmaps", "l", func(_ *harness.AuditEvent, o map[string]any) {
		meta(o)["labels"] = map[string]string{labelKind: "ledger", labelPlan: "p"}
		l := ledger{PlanUID: "uid-p"}
		for _, name := range open {
			l.Open = append(l.Open, entry{Run: name})
		}
		text, _ := json.Marshal(l)
		o["data"] = map[string]string{"ledger.json": string(text)}
	})
}

func (b *book) hook(at float64, process, key string) *book {
	b.Deliveries = append(b.Deliveries, Delivery{At: noon(at), Sent: noon(at), Process: process, Key: key})
	return b
}

// lived is a run that began at 1 and ended at 5, under a1's lease.
func lived() *book {
	return newBook().lease(0, "a1", "a").run(1, "a1", "create", "Pending").run(2, "a1", "update", "Running", "say=Running").
		act(3, "a1").run(4, "a1", "update", "Running", "say=Succeeded").run(5, "a1", "update", "Succeeded", "say=Succeeded")
}

func TestWhatWakesIsOfNoRun(t *testing.T) {
	for value, want := range map[string]string{"shop/maint-run-a": "maint-run-a", "maint-run-a": "maint-run-a", "waking": ""} {
		var e harness.AuditEvent
		if err := json.Unmarshal([]byte(`{"impersonatedUser":{"extra":{"maint.dev/run":["`+value+`"]}}}`), &e); err != nil {
			t.Fatal(err)
		}
		if got := marked(e); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

func TestCheckersSeeWhatIsWrongAndNothingElse(t *testing.T) {
	judge := map[string]func(History) []Finding{
		"ended": Ended, "leader": Leader, "first-write": FirstWrite, "requests": Requests, "refusals": Refusals, "intents": Intents, "needless": Needless,
		"quiet": func(h History) []Finding { return Quiet(h, noon(100), noon(160)) },
	}
	for _, c := range []struct {
		name    string
		checker string
		book    *book
		want    string // part of the one finding; empty: none
	}{
		{"what a run did while it lived is fine", "ended", lived().hook(2.5, "a1", "r/say"), ""},
		{"an act after the end", "ended", lived().act(6, "b1"), "for run ns/r, 990ms after its end"},
		{"an act that was sent before the end and came late", "ended", late(lived().act(6, "b1"), 4), ""},
		{"an act of another's run", "ended", lived().run(7, "a1", "update", "Succeeded"), ""},
		{"a webhook after the end of the run", "ended", lived().hook(7, "b1", "r/over"), "sent webhook r/over"},
		{"a webhook after the end of its step", "ended", lived().hook(4.5, "b1", "r/say"), "after the end of its step"},
		{"a webhook of a step that was begun again", "ended", newBook().run(1, "a1", "create", "Running", "say=Failed").run(2, "a1", "update", "Running", "say=Running").hook(3, "a1", "r/say"), ""},
		{"one leader acts", "leader", lived(), ""},
		{"the standby acts", "leader", lived().act(6, "b1"), "b1 sent patch /x/d (200) and did not hold the lease"},
		{"a deposed leader acts", "leader", lived().lease(20, "b1", "b").act(21, "a1"), "a1 sent"},
		{"a deposed leader's webhook", "leader", lived().lease(20, "b1", "b").hook(21, "a1", "r/say"), "webhook r/say"},
		{"the next leader acts", "leader", lived().lease(20, "b1", "b").act(21, "b1"), ""},
		{"a leader acts after it gave the lease back", "leader", lived().lease(20, "a1", "").act(21, "a1"), "a1 sent"},
		{"a log without a lease proves nothing", "leader", newBook(), "no lease"},
		{"the next leader writes first", "first-write", lived().run(6, "b1", "update", "Running").act(7, "b1"), ""},
		{"the next leader acts first", "first-write", lived().act(6, "b1").run(7, "b1", "update", "Running"), "b1 sent patch /x/d"},
		{"one request, one run", "requests", lived(), ""},
		{"a run that is created again", "requests", lived().run(9, "b1", "create", "Pending"), "created 2 times"},
		{"a run that is created again and void", "requests", lived().run(9, "b1", "create", "Pending").run(10, "b1", "update", "Aborted:Void"), ""},
		{"a run that is created again and begins before it is void", "requests", lived().run(9, "b1", "create", "Pending").run(10, "b1", "update", "Running").run(11, "b1", "update", "Aborted:Void"), "created 2 times"},
		{"two runs of one slot", "requests", lived().runOf("q", "slot-1", 9, "b1", "create", "Pending"), "have one request"},
		{"two runs of two slots", "requests", lived().runOf("q", "slot-2", 9, "b1", "create", "Pending"), ""},
		{"a step that failed by itself", "refusals", newBook().run(1, "a1", "create", "Running", "say=Failed:HTTP500"), ""},
		{"a step that was forbidden", "refusals", newBook().run(1, "a1", "create", "Running", "say=Failed:Forbidden"), "step say of run ns/r"},
		{"a claim in a pause that is new", "intents", newBook().plan(0, "v1", "").plan(20, "v1", "true").ledger(25, "a1", "r"), ""},
		{"a claim in a pause", "intents", newBook().plan(0, "v1", "").plan(20, "v1", "true").ledger(31, "a1", "r"), "claimed run r, paused"},
		{"a claim after a pause", "intents", newBook().plan(0, "v1", "true").plan(20, "v1", "").ledger(21, "a1", "r"), ""},
		{"a claim that stood before", "intents", newBook().plan(0, "v1", "").ledger(19, "a1", "r").plan(20, "v1", "true").ledger(40, "a1", "r"), ""},
		{"a run by a text that was edited away", "intents", newBook().plan(0, "v1", "").plan(20, "v2", "").run(31, "a1", "create", "Pending"), `created with "v1", which had been "v2"`},
		{"a run by a text that was just edited", "intents", newBook().plan(0, "v1", "").plan(20, "v2", "").run(25, "a1", "create", "Pending"), ""},
		{"a run of a plan that was deleted", "intents", gone(newBook().plan(0, "v1", ""), 20).ledger(31, "a1", "r"), "deleted for more"},
		{"a start in a pause", "intents", newBook().plan(0, "v1", "").run(1, "a1", "create", "Pending").plan(2, "v1", "true").run(20, "a1", "update", "Running", "one=Running"), "run r of ns/p started"},
		{"a step in a pause", "intents", newBook().plan(0, "v1", "").run(1, "a1", "create", "Running", "one=Running").plan(2, "v1", "true").run(20, "a1", "update", "Running", "one=Succeeded", "two=Running"), "step two of run r began"},
		{"cleanup in a pause", "intents", newBook().plan(0, "v1", "").run(1, "a1", "create", "Running", "one=Running").plan(2, "v1", "true").run(20, "a1", "update", "Running", "one=Failed", "finally/two=Running"), ""},
		{"a workload that sleeps and wakes", "needless", newBook().scale(1, "", 2).scale(2, "a1", 0).scale(3, "a1", 2).scale(4, "a1", 0), ""},
		{"a workload that is put to sleep twice", "needless", newBook().scale(1, "", 2).scale(2, "a1", 0).scale(3, "b1", 0), "b1 told deployments ns d to be at 0"},
		{"one that somebody woke in between", "needless", newBook().scale(1, "a1", 0).scale(2, "", 1).scale(3, "a1", 0), ""},
		{"somebody who says it again", "needless", newBook().scale(1, "a1", 0).scale(2, "", 0), ""},
		{"a CronJob that is suspended twice", "needless", newBook().suspend(1, "a1", true).suspend(2, "a1", true), "a1 told cronjobs ns c to be suspended: true"},
		{"a CronJob that goes on", "needless", newBook().suspend(1, "a1", true).suspend(2, "a1", false), ""},
		{"another patch of a workload", "needless", newBook().replicas(1, `{"spec":{"replicas":2}}`).replicas(2, `{"metadata":{"labels":{"a":"b"}}}`), ""},
		{"a patch that says how many again", "needless", newBook().replicas(1, `{"spec":{"replicas":2}}`).replicas(2, `{"spec":{"replicas":2}}`), "to be at 2"},
		{"lease and heartbeat in the quiet minute", "quiet", newBook().lease(110, "a1", "a").add(120, "a1", "update", "configmaps", heartbeat, nil), ""},
		{"a person in the quiet minute", "quiet", newBook().plan(110, "v1", ""), ""},
		{"a status in the quiet minute", "quiet", newBook().add(120, "a1", "patch", "configmaps", "p", nil), "a1 sent patch /x/p"},
		{"a status before the quiet minute", "quiet", newBook().add(99, "a1", "patch", "configmaps", "p", nil), ""},
	} {
		t.Run(c.checker+": "+c.name, func(t *testing.T) {
			expect(t, judge[c.checker](c.book.History), c.want)
		})
	}
}

func TestWritesComeInTheOrderOfTheirVersions(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	b := newBook()
	for i := range 400 {
		at := float64(i)
		switch random.IntN(4) {
		case 0: // its answer is not written down
			b.add(at, "a1", "patch", "deployments", "d", func(_ *harness.AuditEvent, o map[string]any) { delete(meta(o), "resourceVersion") })
		case 1: // it changes nothing, long after its version was made
			b.add(at, "a1", "patch", "configmaps", "p", nil)
			if n := len(b.Audit); n > 60 {
				again(b, 1+random.IntN(60))
			}
		default:
			b.add(at, "a1", "patch", "configmaps", "p", nil)
		}
	}
	random.Shuffle(len(b.Audit), func(i, j int) { b.Audit[i], b.Audit[j] = b.Audit[j], b.Audit[i] })
	got := b.writes()
	if len(got) != len(b.Audit) {
		t.Fatalf("%d writes of %d", len(got), len(b.Audit))
	}
	var version uint64
	var at time.Time
	for i, w := range got {
		if w.version > 0 && w.version < version || w.committed.Before(at) {
			t.Fatalf("write %d: version %d of %s after version %d of %s", i, w.version, w.committed, version, at)
		}
		version, at = max(version, w.version), w.committed
	}
}

func expect(t *testing.T, got []Finding, want string) {
	t.Helper()
	switch {
	case want == "" && len(got) > 0:
		t.Errorf("found %v, want nothing", got)
	case want != "" && (len(got) != 1 || !strings.Contains(got[0].String(), want)):
		t.Errorf("found %v, want one that says %q", got, want)
	}
}

// scale sets the replicas of a workload; a Scale says nothing of none.
func (b *book) scale(at float64, process string, to int) *book {
	return b.add(at, process, "patch", "deployments", "d", func(e *harness.AuditEvent, o map[string]any) {
		e.Object.Subresource = "scale"
		o["spec"] = map[string]any{"replicas": to}
		if to == 0 {
			o["spec"] = map[string]any{}
		}
	})
}

// replicas is a patch of a workload, which has two of them.
func (b *book) replicas(at float64, patch string) *book {
	return b.add(at, "a1", "patch", "deployments", "d", func(e *harness.AuditEvent, o map[string]any) {
		e.Request = json.RawMessage(patch)
		o["spec"] = map[string]any{"replicas": 2}
	})
}

func (b *book) suspend(at float64, process string, to bool) *book {
	return b.add(at, process, "patch", "cronjobs", "c", func(e *harness.AuditEvent, o map[string]any) {
		e.Request = json.RawMessage(fmt.Sprintf(`{"spec":{"suspend":%t}}`, to))
		o["spec"] = map[string]any{"suspend": to}
	})
}

// late has the newest request sent at another instant than it came.
func late(b *book, sent float64) *book {
	id := b.Audit[len(b.Audit)-1].ID
	b.Sends[id] = Send{At: noon(sent), Process: b.Sends[id].Process}
	return b
}

// again has the newest write answered with the version of the one so many before it: it
// changed nothing.
func again(b *book, before int) *book {
	newest, old := &b.Audit[len(b.Audit)-1], b.Audit[len(b.Audit)-before]
	newest.Response = old.Response
	return b
}

func gone(b *book, at float64) *book { return b.add(at, "", "delete", "configmaps", "p", nil) }

func TestEverySlotHasOneEnd(t *testing.T) {
	one := func(slot float64, result string) entry {
		at := noon(slot)
		return entry{Slot: &at, Result: result}
	}
	fold := func(first, last float64, count int) entry {
		a, b := noon(first), noon(last)
		return entry{Slot: &a, First: &a, Last: &b, Count: count, Result: "Skipped"}
	}
	plain := newBook().plan(0, "v1", "", 10, 20, 30)
	edited := newBook().plan(0, "v1", "", 10, 20, 30).plan(15, "v2", "", 25)
	for _, c := range []struct {
		name    string
		book    *book
		entries []entry
		want    string
	}{
		{"each one", plain, []entry{one(10, "Ran"), one(20, "Skipped"), one(30, "Missed")}, ""},
		{"one without an end", plain, []entry{one(10, "Ran"), one(30, "Ran")}, "slot 2026-03-04T12:00:20Z of ns/p has 0 ends"},
		{"one with two", plain, []entry{one(10, "Ran"), one(20, "Ran"), one(20, "Missed"), one(30, "Ran")}, "has 2 ends"},
		{"one that no schedule had", plain, []entry{one(10, "Ran"), one(15, "Ran"), one(20, "Ran"), one(30, "Ran")}, "which no schedule had"},
		{"entries that were folded", plain, []entry{one(10, "Ran"), fold(20, 30, 2)}, ""},
		{"an edit takes slots away and brings others", edited, []entry{one(10, "Ran"), one(25, "Ran")}, ""},
		{"a slot that was edited away and ran", edited, []entry{one(10, "Ran"), one(20, "Ran"), one(25, "Ran")}, "which no schedule had"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := json.Marshal(ledger{PlanUID: "uid-p", Recent: c.entries})
			if err != nil {
				t.Fatal(err)
			}
			expect(t, Slots(c.book.History, []Memory{{Plan: "ns/p", UID: "uid-p", Head: string(text)}}, noon(60)), c.want)
		})
	}
}

func TestWhatIsLeftIsFound(t *testing.T) {
	expect(t, Restored(map[string]string{"replicas": "2"}, map[string]string{"replicas": "2"}), "")
	expect(t, Restored(map[string]string{"replicas": "2"}, map[string]string{"replicas": "0"}), `replicas is "0" at the end, and was "2"`)
	expect(t, Restored(nil, map[string]string{"label": "on"}), "was not there")
	expect(t, Leftovers([]Left{{"run r", "has its finalizer"}}), "run r: has its finalizer")
	expect(t, Size(Process{100, 10}, Process{110, 20}), "")
	expect(t, Size(Process{100, 10}, Process{200, 20}), "200 goroutines")
	expect(t, Size(Process{100, 10}, Process{100, 90}), "90.0 MiB")
	expect(t, Tokens(lived().History, nil), "")
	expect(t, Tokens(lived().History, []string{"uid-p/token-1"}), "token-1 had 0 runs")
}
