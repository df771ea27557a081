package nodes_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// desk is one node and what stands on it, with the agent at work on nothing else.
type desk struct {
	t                  *testing.T
	node               nodes.Node
	now                time.Time
	limits             nodes.Limits
	requests, statuses map[string]string
	cordoned           string
	pods               map[string]nodes.Pods
	drain              *nodes.Drain // the order in force
	said               []string
	next               *time.Time
	watch              []nodes.Watch
}

func newDesk(t *testing.T, requests ...string) *desk {
	d := &desk{t: t, now: noon, node: one("worker-1"), requests: map[string]string{}, statuses: map[string]string{}, pods: map[string]nodes.Pods{}}
	d.ask(requests...)
	return d
}

// ask takes "name {value}".
func (d *desk) ask(requests ...string) {
	for _, r := range requests {
		name, value, _ := strings.Cut(r, " ")
		d.requests[name] = value
	}
}

func (d *desk) view() nodes.Node {
	n := d.node
	n.ReadCurrent(d.requests, d.statuses, d.cordoned)
	for i := range n.Asked {
		n.Asked[i].Pods = d.pods[n.Asked[i].Request.Requestor]
		n.Asked[i].Preview = d.node.Drain.Block // as good as any place
	}
	return n
}

// step is one pass; grants are names.
func (d *desk) step(grants ...string) nodes.Step {
	s := nodes.Advance(d.view(), nodes.Granted(grants...), d.limits, d.now)
	for name, status := range s.Statuses {
		d.statuses[name] = status.String()
	}
	for _, name := range s.Remove {
		delete(d.statuses, name)
	}
	if s.CordonChanged {
		d.cordoned = ""
		if s.Cordon != nil {
			d.cordoned = s.Cordon.String()
		}
	}
	if s.Unschedulable != nil {
		d.node.Unschedulable = *s.Unschedulable
	}
	if s.Progress != nil {
		d.node.Progress = *s.Progress
	}
	for _, e := range s.Events {
		d.said = append(d.said, strings.TrimPrefix(e.Requestor+" "+e.Reason, " "))
	}
	d.drain, d.next, d.watch = s.Drain, s.Next, s.Watch
	return s
}

// run passes until nothing is written any more.
func (d *desk) run(grants ...string) *desk {
	d.t.Helper()
	for i := 0; d.step(grants...).Writes(); i++ {
		if i > 10 {
			d.t.Fatalf("writes for ever: %s", d)
		}
	}
	return d
}

// session is what the drain says next.
func (d *desk) session(state nodes.SessionState, left int) *desk {
	d.t.Helper()
	if d.drain == nil {
		d.t.Fatalf("no drain is wanted: %s", d)
	}
	d.node.Drain = nodes.Session{State: state, Key: d.drain.Key, Left: left, Total: 5}
	return d
}

func (d *desk) drained() *desk { d.t.Helper(); return d.session(nodes.SessionDone, 0).run() }

func (d *desk) after(by time.Duration) *desk { d.now = d.now.Add(by); return d }

// String is "gpu Ready, net Pending | cordoned by gpu before | unschedulable | drains for gpu".
func (d *desk) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(d.statuses)) {
		s, _ := nodes.ParseStatus(d.statuses[name])
		text := name + " " + string(s.Phase)
		if s.Ended != nil {
			text += " " + s.Ended.Why
		}
		parts = append(parts, text)
	}
	out := []string{strings.Join(parts, ", ")}
	if c, ok := nodes.ParseCordon(d.cordoned); ok {
		text := "cordoned for " + strings.Join(c.By, "+")
		if c.Before {
			text += " and before"
		}
		if c.Undone {
			text += ", undone"
		}
		out = append(out, text)
	}
	if d.node.Unschedulable {
		out = append(out, "unschedulable")
	}
	if d.drain != nil {
		out = append(out, "drains for "+strings.Join(d.drain.Requestors, "+"))
	}
	return strings.TrimPrefix(strings.Join(out, " | "), " | ")
}

func (d *desk) status(name string) nodes.Status {
	s, ok := nodes.ParseStatus(d.statuses[name])
	if !ok {
		d.t.Fatalf("no status of %s", name)
	}
	return s
}

func (d *desk) is(want string) {
	d.t.Helper()
	if got := d.String(); got != want {
		d.t.Fatalf("\n got %s\nwant %s", got, want)
	}
}

func (d *desk) says(name, want string) {
	d.t.Helper()
	if got := d.status(name).Reason; !strings.Contains(got, want) {
		d.t.Fatalf("%s says %q, not %q", name, got, want)
	}
}

func TestOnePhaseAfterTheOther(t *testing.T) {
	d := newDesk(t, `gpu {"waitFor":{"podSelector":"app=a"}}`)
	var got []string
	for range 4 {
		d.step("gpu")
		got = append(got, d.String())
	}
	d.pods["gpu"] = nodes.Pods{Known: true}
	d.step()
	got = append(got, d.String())
	d.step()
	got = append(got, d.String())
	d.session(nodes.SessionDone, 0).step()
	got = append(got, d.String())
	delete(d.requests, "gpu")
	d.step()
	got = append(got, d.String())
	want := []string{
		"gpu Scheduled",
		"gpu Cordoning | cordoned for gpu | unschedulable",
		"gpu WaitingForPods | cordoned for gpu | unschedulable",
		"gpu WaitingForPods | cordoned for gpu | unschedulable",
		"gpu Draining | cordoned for gpu | unschedulable", // the intent first
		"gpu Draining | cordoned for gpu | unschedulable | drains for gpu",
		"gpu Ready | cordoned for gpu | unschedulable",
		"",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"gpu Scheduled", "Cordoned", "gpu Draining", "gpu Drained", "gpu Ready", "gpu Released", "Uncordoned"}, d.said); diff != "" {
		t.Errorf("events, -want +got:\n%s", diff)
	}
}

func TestAStepKnowsWhetherItWritesOnlyOfTheGate(t *testing.T) {
	text := "told"
	for name, c := range map[string]struct {
		step             nodes.Step
		writes, onlyGate bool
	}{
		"nothing":                      {},
		"a drain goes on":              {step: nodes.Step{Drain: &nodes.Drain{}}},
		"how the node behaves":         {step: nodes.Step{Behavior: &text}, writes: true, onlyGate: true},
		"its conditions":               {step: nodes.Step{Conditions: &text}, writes: true, onlyGate: true},
		"its progress":                 {step: nodes.Step{Progress: &text}, writes: true},
		"its progress, and conditions": {step: nodes.Step{Progress: &text, Conditions: &text}, writes: true},
	} {
		if writes, onlyGate := c.step.Writes(), c.step.OnlyGateStatus(); writes != c.writes || onlyGate != c.onlyGate {
			t.Errorf("%s: writes %t, only of the gate %t", name, writes, onlyGate)
		}
	}
}

func TestCordonAndItsRecordAreOneWrite(t *testing.T) {
	d := newDesk(t, "gpu")
	d.step("gpu")
	s := d.step()
	if s.Unschedulable == nil || !*s.Unschedulable || s.Cordon == nil || s.Statuses["gpu"].Phase != nodes.Cordoning {
		t.Errorf("%+v", s)
	}
}

func TestWithoutATurnNothingBegins(t *testing.T) {
	d := newDesk(t, "gpu").run()
	d.is("gpu Pending")
	d.says("gpu", "waits for its turn")
	if s := nodes.Advance(d.view(), nil, d.limits, d.now.Add(time.Hour)); s.Writes() {
		t.Errorf("without a ranking it writes %+v", s)
	}
	s := nodes.Advance(d.view(), nodes.Turns{"gpu": {Wait: "waits its turn (maxParallelOperations 1)"}}, d.limits, d.now)
	if got := s.Statuses["gpu"].Reason; got != "waits its turn (maxParallelOperations 1)" {
		t.Errorf("it says %q", got)
	}
	d.statuses["gpu"] = s.Statuses["gpu"].String()
	if s := nodes.Advance(d.view(), nil, d.limits, d.now.Add(time.Hour)); s.Writes() {
		t.Errorf("without a ranking it says something else: %+v", s)
	}
	if got := nodes.Advance(d.view(), nodes.Turns{}, d.limits, d.now.Add(time.Hour)).Statuses["gpu"].Reason; got != "waits for its turn" {
		t.Errorf("a ranking that has no word for it: it says %q", got)
	}
}

func TestANodeThatRefusesWhatIsWrittenAndThatNobodyHasYieldsNothing(t *testing.T) {
	d := newDesk(t, "gpu")
	d.node.Gate = nodes.Gate{Reason: "the API server refuses it", Stops: "the API server refuses it"}
	if d.run().is("gpu Pending"); len(d.said) > 0 {
		t.Errorf("said %v", d.said)
	}
}

func TestAClosedGate(t *testing.T) {
	ten := noon.Add(10 * time.Hour)
	closed := nodes.Gate{Reason: "window closed until 22:00", Next: &ten}
	t.Run("does not begin, whatever the ranker said, and looks again when it opens", func(t *testing.T) {
		d := newDesk(t, "gpu")
		d.node.Gate = closed
		d.run("gpu").is("gpu Pending")
		d.says("gpu", "window closed until 22:00")
		if d.next == nil || !d.next.Equal(ten) {
			t.Errorf("next look at %v", d.next)
		}
	})
	t.Run("turns back what is scheduled and not cordoned", func(t *testing.T) {
		d := newDesk(t, "gpu")
		d.step("gpu")
		d.node.Gate = closed
		d.run().is("gpu Pending")
	})
	t.Run("does not stop what has begun", func(t *testing.T) {
		d := newDesk(t, "gpu").run("gpu")
		d.node.Gate = closed
		d.drained().is("gpu Ready | cordoned for gpu | unschedulable")
	})
	t.Run("does not stop one that took over a cordon", func(t *testing.T) {
		d := newDesk(t, "gpu", "net").run("gpu").drained()
		delete(d.requests, "gpu")
		d.step("net")
		d.node.Gate = closed
		d.run().is("net Ready | cordoned for net | unschedulable")
	})
	t.Run("lets the next request on the node wait, and the node be uncordoned", func(t *testing.T) {
		d := newDesk(t, "gpu", "net").run("gpu").drained()
		d.node.Gate = closed
		delete(d.requests, "gpu")
		d.run("net").is("net Pending")
	})
}

func TestARequestThatAsksForLess(t *testing.T) {
	for name, c := range map[string]struct{ value, want string }{
		"drain false is Ready when cordoned":        {`{"drain":false}`, "gpu Ready | cordoned for gpu | unschedulable"},
		"cordon false drains a schedulable node":    {`{"cordon":false}`, "gpu Draining | drains for gpu"},
		"neither is Ready at once":                  {`{"cordon":false,"drain":false}`, "gpu Ready"},
		"one that failed before is RequestorFailed": {`{"drain":false,"failed":true}`, "gpu RequestorFailed | cordoned for gpu | unschedulable"},
	} {
		t.Run(name, func(t *testing.T) { newDesk(t, "gpu "+c.value).run("gpu").is(c.want) })
	}
	d := newDesk(t, `gpu {"cordon":false}`).run("gpu").drained()
	d.is("gpu Ready")
	d.run().is("gpu Ready")
	delete(d.requests, "gpu")
	d.run().is("")
}

func TestWhatWasThereBeforeIsThereAfter(t *testing.T) {
	t.Run("a node that a human cordoned stays cordoned", func(t *testing.T) {
		d := newDesk(t, "gpu")
		d.node.Unschedulable = true
		d.run("gpu").drained().is("gpu Ready | cordoned for gpu and before | unschedulable")
		delete(d.requests, "gpu")
		d.run().is("unschedulable")
	})
	t.Run("a node that a failed rollout left stays cordoned", func(t *testing.T) {
		d := newDesk(t, "gpu")
		d.node.Unschedulable, d.cordoned = true, (*nodes.Cordon)(nil).With(thePlan, false, noon).String()
		d.run("gpu").drained().is("gpu Ready | cordoned for gpu+plan:infra/roll | unschedulable")
		delete(d.requests, "gpu")
		d.run().is("cordoned for plan:infra/roll | unschedulable")
	})
	t.Run("one of two requests leaves", func(t *testing.T) {
		d := newDesk(t, `gpu {"shared":true}`, `net {"shared":true}`).run("gpu", "net").drained()
		delete(d.requests, "gpu")
		d.run().is("net Ready | cordoned for net | unschedulable")
		delete(d.requests, "net")
		d.run().is("")
	})
	t.Run("a request that changes its mind about the cordon", func(t *testing.T) {
		d := newDesk(t, `gpu {"drain":false}`).run("gpu")
		d.ask(`gpu {"drain":false,"cordon":false}`)
		d.run().is("gpu Ready")
	})
}

func TestAnUncordonBySomebodyElse(t *testing.T) {
	start := func(t *testing.T) *desk {
		d := newDesk(t, "gpu", "net").run("gpu")
		d.is("gpu Draining, net Pending | cordoned for gpu | unschedulable | drains for gpu")
		d.node.Unschedulable = false
		d.run().is("gpu Draining, net Pending | cordoned for gpu, undone")
		d.says("gpu", "somebody uncordoned the node")
		return d
	}
	t.Run("stops the drain and is not undone", func(t *testing.T) {
		d := start(t)
		d.after(time.Hour).run("net").is("gpu Draining, net Pending | cordoned for gpu, undone")
	})
	t.Run("leaves nothing behind when the request goes", func(t *testing.T) {
		d := start(t)
		delete(d.requests, "gpu")
		d.step("net")
		d.is("net Pending") // net has its own turn later, with a cordon of its own
		d.run("net").is("net Draining | cordoned for net | unschedulable | drains for net")
	})
	t.Run("is over with a second cordon, which stays", func(t *testing.T) {
		d := start(t)
		d.node.Unschedulable = true
		d.run().is("gpu Draining, net Pending | cordoned for gpu and before | unschedulable | drains for gpu")
		d.drained()
		delete(d.requests, "gpu")
		delete(d.requests, "net")
		d.run().is("unschedulable")
	})
	t.Run("a second cordon as the request goes stays too", func(t *testing.T) {
		d := start(t)
		d.node.Unschedulable = true
		delete(d.requests, "gpu")
		delete(d.requests, "net")
		d.run().is("unschedulable")
	})
	t.Run("may have let pods in: all is drained again", func(t *testing.T) {
		d := newDesk(t, `gpu {"shared":true,"priority":1}`, `net {"shared":true,"drain":{"force":true,"timeout":"1m"}}`).run("gpu", "net").drained()
		d.is("gpu Draining, net Draining | cordoned for gpu+net | unschedulable | drains for net")
		d.node.Unschedulable = false
		d.run()
		d.node.Unschedulable = true
		d.run()
		if d.drain == nil || d.drain.Options.Force {
			t.Errorf("gpu's drain comes first: %+v", d.drain)
		}
	})
	t.Run("stops also one that has just taken the node over", func(t *testing.T) {
		d := newDesk(t, "gpu", "net").run("gpu").drained()
		delete(d.requests, "gpu")
		d.step("net")
		d.node.Unschedulable = false
		d.run().is("net Scheduled | cordoned for net, undone")
	})
	t.Run("of what a failed rollout left is the end of the rollout's claim", func(t *testing.T) {
		d := newDesk(t, "gpu")
		d.cordoned = (*nodes.Cordon)(nil).With(thePlan, true, noon).String()
		d.run("gpu").is("gpu Draining | cordoned for gpu | unschedulable | drains for gpu")
		delete(d.requests, "gpu")
		d.run().is("")
	})
	t.Run("takes Ready back, until it is cordoned and drained again", func(t *testing.T) {
		d := newDesk(t, "gpu").run("gpu").drained()
		d.node.Unschedulable = false
		d.run().is("gpu Uncordoned | cordoned for gpu, undone")
		d.says("gpu", "somebody uncordoned the node")
		d.node.Unschedulable = true
		d.after(time.Minute).run().is("gpu Draining | cordoned for gpu and before | unschedulable | drains for gpu")
		d.drained().is("gpu Ready | cordoned for gpu and before | unschedulable")
	})
	t.Run("is said also where the requestor failed", func(t *testing.T) {
		d := newDesk(t, "gpu").run("gpu").drained()
		d.ask(`gpu {"failed":true}`)
		d.run().is("gpu RequestorFailed | cordoned for gpu | unschedulable")
		d.node.Unschedulable = false
		d.run().is("gpu RequestorFailed | cordoned for gpu, undone")
		d.says("gpu", "somebody uncordoned the node")
		d.ask(`gpu {}`)
		d.run().is("gpu Uncordoned | cordoned for gpu, undone")
	})
}

func TestSeveralRequestsOnANode(t *testing.T) {
	t.Run("one that was just cordoned says so, whoever shares the node", func(t *testing.T) {
		d := newDesk(t, `gpu {"shared":true}`, `net {"shared":true}`)
		for range 2 {
			d.step("gpu", "net")
		}
		d.in("gpu", nodes.Cordoning)
		d.says("gpu", "the node takes no new pods")
	})
	t.Run("shared ones are Ready in one write", func(t *testing.T) {
		d := newDesk(t, `gpu {"shared":true}`, `net {"shared":true}`).run("gpu", "net")
		d.is("gpu Draining, net Draining | cordoned for gpu+net | unschedulable | drains for gpu+net")
		d.session(nodes.SessionDone, 0)
		if s := d.step(); s.Statuses["gpu"].Phase != nodes.Ready || s.Statuses["net"].Phase != nodes.Ready {
			t.Errorf("%s", d)
		}
	})
	t.Run("a shared one without a drain joins while the other's pods leave", func(t *testing.T) {
		d := newDesk(t, `gpu {"shared":true}`).run("gpu")
		d.ask(`net {"shared":true,"drain":false}`)
		d.run("net").is("gpu Draining, net Cordoning | cordoned for gpu+net | unschedulable | drains for gpu")
		d.drained().is("gpu Ready, net Ready | cordoned for gpu+net | unschedulable")
	})
	t.Run("one that asks for more does not", func(t *testing.T) {
		d := newDesk(t, `gpu {"shared":true,"drain":{"podSelector":"app=a"}}`).run("gpu")
		d.ask(`net {"shared":true,"drain":{"podSelector":"app=b"}}`)
		d.run("net").is("gpu Draining, net Pending | cordoned for gpu | unschedulable | drains for gpu")
	})
	t.Run("others one after another, without an uncordon or a second drain", func(t *testing.T) {
		d := newDesk(t, "gpu", "net").run("gpu").drained()
		delete(d.requests, "gpu")
		s := d.step("net")
		d.is("net Scheduled | cordoned for net | unschedulable")
		if s.Unschedulable != nil {
			t.Error("the cordon is touched")
		}
		d.run().is("net Ready | cordoned for net | unschedulable")
	})
	t.Run("the next one that asks for more is drained again", func(t *testing.T) {
		d := newDesk(t, "gpu", `net {"drain":{"force":true}}`).run("gpu").drained()
		delete(d.requests, "gpu")
		d.run("net").is("net Draining | cordoned for net | unschedulable | drains for net")
	})
	t.Run("what two ask is drained in two passes, and both are Ready after the second", func(t *testing.T) {
		d := newDesk(t, `gpu {"shared":true,"priority":1}`, `net {"shared":true,"drain":{"force":true,"timeout":"1m"}}`).run("gpu", "net")
		d.is("gpu Draining, net Cordoning | cordoned for gpu+net | unschedulable | drains for gpu")
		began := d.status("gpu").Since
		d.after(time.Minute).session(nodes.SessionDone, 0)
		if d.step(); d.drain != nil {
			t.Error("the second drain is ordered before its intent is written")
		}
		d.run().is("gpu Draining, net Draining | cordoned for gpu+net | unschedulable | drains for net")
		if got := d.drain.Since; !got.Equal(began.Add(time.Minute)) {
			t.Errorf("the second drain counts from %s", got)
		}
		d.drained().is("gpu Ready, net Ready | cordoned for gpu+net | unschedulable")
	})
	t.Run("the wider of two drains serves both", func(t *testing.T) {
		d := newDesk(t, `gpu {"shared":true,"drain":{"evictionFilters":[{"byResourceNameRegex":"gpu"}]}}`, `net {"shared":true}`).run("gpu", "net")
		d.is("gpu Draining, net Draining | cordoned for gpu+net | unschedulable | drains for gpu+net")
		if len(d.drain.Options.EvictionFilters) != 0 {
			t.Errorf("%+v", d.drain.Options)
		}
	})
	t.Run("filters of two are one drain with both", func(t *testing.T) {
		d := newDesk(t, `gpu {"shared":true,"drain":{"evictionFilters":[{"byResourceNameRegex":"gpu"}]}}`, `net {"shared":true,"drain":{"evictionFilters":[{"byResourceNameRegex":"net"}]}}`).run("gpu", "net")
		if len(d.drain.Options.EvictionFilters) != 2 {
			t.Errorf("%+v", d.drain.Options)
		}
	})
	t.Run("no drain begins while a mate waits for its pods", func(t *testing.T) {
		d := newDesk(t, `gpu {"shared":true}`, `net {"shared":true,"waitFor":{"podSelector":"app"}}`).run("gpu", "net")
		d.is("gpu Cordoning, net WaitingForPods | cordoned for gpu+net | unschedulable")
		d.says("gpu", "is to be drained; becomes Ready together with net")
		d.pods["net"] = nodes.Pods{Known: true}
		d.run().is("gpu Draining, net Draining | cordoned for gpu+net | unschedulable | drains for gpu+net")
	})
	t.Run("one that joins a drain does not begin it anew", func(t *testing.T) {
		d := newDesk(t, `net {"shared":true}`).run("net")
		key := d.drain.Key
		d.ask(`gpu {"shared":true,"drain":{"timeout":"1h"}}`)
		d.run("gpu").is("gpu Draining, net Draining | cordoned for gpu+net | unschedulable | drains for gpu+net")
		if d.drain.Key != key {
			t.Error("another order")
		}
	})
	t.Run("one that cannot be read does not affect the others", func(t *testing.T) {
		d := newDesk(t, `gpu {"shared":true}`, `net {"shared":`, `old {"x":1}`).run("gpu", "net")
		d.is("gpu Draining, net Invalid, old Invalid | cordoned for gpu | unschedulable | drains for gpu")
		d.says("old", "unknown field")
		for _, e := range []string{"net Invalid", "old Invalid"} {
			if got := strings.Count(strings.Join(d.said, ","), e); got != 1 {
				t.Errorf("%s is said %d times: %v", e, got, d.said)
			}
		}
		d.drained().is("gpu Ready, net Invalid, old Invalid | cordoned for gpu | unschedulable")
		d.ask(`net {}`)
		d.run().is("gpu Ready, net Pending, old Invalid | cordoned for gpu | unschedulable")
	})
	t.Run("one that cannot be read before its cordon gives its slot back", func(t *testing.T) {
		d := newDesk(t, "gpu")
		d.step("gpu")
		d.ask("gpu {")
		d.run().is("gpu Invalid")
		since := d.status("gpu").Since
		d.ask("gpu {{")
		if d.after(time.Hour).run(); !d.status("gpu").Since.Equal(since) {
			t.Error("another fault begins the phase anew")
		}
	})
	t.Run("one that cannot be read after it took over a cordon keeps the node", func(t *testing.T) {
		d := newDesk(t, "gpu", "net").run("gpu").drained()
		delete(d.requests, "gpu")
		d.step("net")
		d.ask("net {")
		d.run().is("net Scheduled | cordoned for net | unschedulable")
	})
	t.Run("one that wants no cordon and cannot be read any more keeps the node", func(t *testing.T) {
		d := newDesk(t, `gpu {"cordon":false}`).run("gpu")
		d.ask("gpu {")
		d.run().is("gpu Draining")
	})
	t.Run("a turn for two that cannot share is one for the first", func(t *testing.T) {
		newDesk(t, "gpu", "net").run("gpu", "net").is("gpu Draining, net Pending | cordoned for gpu | unschedulable | drains for gpu")
	})
}

func TestAValueThatChanges(t *testing.T) {
	ready := func(t *testing.T) *desk { return newDesk(t, "gpu").run("gpu").drained() }
	for name, c := range map[string]struct{ value, want string }{
		"another reason keeps the phase":               {`{"reason":"x","priority":9,"shared":true}`, "gpu Ready | cordoned for gpu | unschedulable"},
		"less keeps it too":                            {`{"drain":{"podSelector":"app=a"}}`, "gpu Ready | cordoned for gpu | unschedulable"},
		"no drain keeps it too":                        {`{"drain":false}`, "gpu Ready | cordoned for gpu | unschedulable"},
		"more is drained":                              {`{"drain":{"force":true}}`, "gpu Draining | cordoned for gpu | unschedulable | drains for gpu"},
		"one that cannot be read keeps the node":       {`{"drain":`, "gpu Ready | cordoned for gpu | unschedulable"},
		"failed keeps the node out":                    {`{"failed":true}`, "gpu RequestorFailed | cordoned for gpu | unschedulable"},
		"failed is not drained more, whatever it asks": {`{"failed":true,"drain":{"force":true}}`, "gpu RequestorFailed | cordoned for gpu | unschedulable"},
	} {
		t.Run(name, func(t *testing.T) {
			d := ready(t)
			d.ask("gpu " + c.value)
			d.run().is(c.want)
		})
	}
	t.Run("failed goes and it is Ready again", func(t *testing.T) {
		d := ready(t)
		d.ask(`gpu {"failed":true}`)
		d.run()
		d.ask(`gpu {}`)
		d.run().is("gpu Ready | cordoned for gpu | unschedulable")
	})
	t.Run("during a drain it is another order, with the same begin", func(t *testing.T) {
		d := newDesk(t, "gpu").run("gpu")
		was := *d.drain
		d.ask(`gpu {"drain":{"force":true}}`)
		d.after(time.Minute).run()
		if d.drain.Key == was.Key || !d.drain.Since.Equal(was.Since) || !d.drain.Options.Force {
			t.Errorf("%+v", d.drain)
		}
	})
	t.Run("during a drain one that cannot be read stops it", func(t *testing.T) {
		d := newDesk(t, "gpu").run("gpu")
		d.ask(`gpu {"drain":`)
		d.run().is("gpu Draining | cordoned for gpu | unschedulable")
		d.says("gpu", "cannot be read any more")
		d.ask(`gpu {}`)
		d.run().is("gpu Draining | cordoned for gpu | unschedulable | drains for gpu")
	})
	for _, state := range []nodes.SessionState{nodes.SessionRunning, nodes.SessionDone} {
		t.Run("a word about the order before does not count: "+string(state), func(t *testing.T) {
			d := newDesk(t, "gpu").run("gpu").session(state, 0)
			d.ask(`gpu {"drain":{"force":true}}`)
			d.run().is("gpu Draining | cordoned for gpu | unschedulable | drains for gpu")
			d.says("gpu", "pods are about to leave")
		})
	}
}

func TestWaitFor(t *testing.T) {
	d := newDesk(t, `gpu {"waitFor":{"podSelector":"app=a","timeout":"1m"}}`).run("gpu")
	d.is("gpu WaitingForPods | cordoned for gpu | unschedulable")
	if diff := cmp.Diff([]nodes.Watch{{Requestor: "gpu", PodSelector: "app=a"}}, d.watch); diff != "" {
		t.Error(diff)
	}
	d.pods["gpu"] = nodes.Pods{Known: true, Left: 2, Some: []string{"shop/a", "shop/b"}}
	d.run()
	d.says("gpu", "waits for 2 unfinished pods: shop/a, shop/b")
	if want := noon.Add(time.Minute); d.next == nil || !d.next.Equal(want) {
		t.Errorf("next look at %v, want %v", d.next, want)
	}
	d.after(59 * time.Second).run().is("gpu WaitingForPods | cordoned for gpu | unschedulable")
	d.after(time.Second).run().is("gpu Draining | cordoned for gpu | unschedulable | drains for gpu")
	if !slices.Contains(d.said, "gpu WaitTimedOut") {
		t.Errorf("said %v", d.said)
	}
	t.Run("without a timeout waits for ever", func(t *testing.T) {
		d := newDesk(t, `gpu {"waitFor":{}}`).run("gpu")
		d.after(1000 * time.Hour).run().is("gpu WaitingForPods | cordoned for gpu | unschedulable")
	})
	t.Run("does not take pods that are not counted for none", func(t *testing.T) {
		d := newDesk(t, `gpu {"waitFor":{}}`).run("gpu")
		d.pods["gpu"] = nodes.Pods{}
		d.run().is("gpu WaitingForPods | cordoned for gpu | unschedulable")
	})
}

func TestADrainThatTakesTooLong(t *testing.T) {
	start := func(t *testing.T, onTimeout string) *desk {
		d := newDesk(t, fmt.Sprintf(`gpu {"drain":{"timeout":"1m","onTimeout":%q}}`, onTimeout)).run("gpu")
		if want := noon.Add(time.Minute); d.next == nil || !d.next.Equal(want) {
			t.Errorf("next look at %v, want %v", d.next, want)
		}
		return d.after(time.Minute)
	}
	for name, value := range map[string]string{
		"without a limit it takes as long as it takes": `{"drain":{"timeout":"0s"}}`,
		"what goes on without the pods does not wait":  `{"drain":{"timeout":"1m","onTimeout":"skip"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, "gpu "+value).run("gpu").after(time.Hour).session(nodes.SessionRunning, 3)
			d.run().says("gpu", "3 of 5 pods are left")
			if got := d.status("gpu").Reason; strings.Contains(got, "longer than") {
				t.Errorf("it says %q", got)
			}
		})
	}
	t.Run("retry goes on and says so", func(t *testing.T) {
		d := start(t, "retry").session(nodes.SessionRunning, 3)
		d.node.Drain.Block = nodes.Block{Permanent: true, Text: "budget web allows none"}
		d.run().is("gpu Draining | cordoned for gpu | unschedulable | drains for gpu")
		d.says("gpu", "3 of 5 pods are left; takes longer than 1m0s; Blocked for good: budget web allows none")
	})
	t.Run("skip leaves some, and the next who would not is drained again", func(t *testing.T) {
		d := start(t, "skip").session(nodes.SessionDone, 2).run()
		d.is("gpu Ready | cordoned for gpu | unschedulable")
		d.ask("net")
		delete(d.requests, "gpu")
		d.run("net").is("net Draining | cordoned for net | unschedulable | drains for net")
	})
	t.Run("abort gives the node back until the value changes", func(t *testing.T) {
		d := start(t, "abort").session(nodes.SessionAborted, 2).run("gpu")
		d.is("gpu Pending aborted")
		d.says("gpu", "the drain was aborted after 1m0s; not tried again until the request changes")
		d.after(100 * time.Hour).run("gpu").is("gpu Pending aborted")
		d.ask(`gpu {"drain":{"timeout":"1m","onTimeout":"abort"},"reason":"once more"}`)
		d.run("gpu").is("gpu Draining | cordoned for gpu | unschedulable | drains for gpu")
	})
	t.Run("abort leaves a node that was cordoned before", func(t *testing.T) {
		d := newDesk(t, `gpu {"drain":{"onTimeout":"abort"}}`)
		d.node.Unschedulable = true
		d.run("gpu").session(nodes.SessionAborted, 2).run().is("gpu Pending aborted | unschedulable")
	})
	t.Run("abort of one does not give up another", func(t *testing.T) {
		d := newDesk(t, `gpu {"shared":true,"priority":1,"drain":{"timeout":"1m","onTimeout":"abort"}}`, `net {"shared":true}`).run("gpu", "net")
		d.after(time.Minute).session(nodes.SessionAborted, 2)
		if d.step(); d.drain != nil {
			t.Error("the second drain is ordered before its begin is written")
		}
		d.run().is("gpu Pending aborted, net Draining | cordoned for net | unschedulable | drains for net")
		if !d.drain.Since.Equal(d.now) {
			t.Errorf("the drain of net counts from %s", d.drain.Since)
		}
	})
	t.Run("blocked before any cordon it stays Pending", func(t *testing.T) {
		d := newDesk(t, "gpu")
		d.node.Drain.Block = nodes.Block{Permanent: true, Text: "budget web allows none"} // the preview, too
		d.run("gpu").is("gpu Pending")
		d.says("gpu", "Blocked: budget web allows none")
	})
	t.Run("a drain ends without pods that come back, whatever onTimeout says, and remembers it", func(t *testing.T) {
		d := start(t, "retry").session(nodes.SessionDone, 1).run()
		d.is("gpu Ready | cordoned for gpu | unschedulable")
		if !d.status("gpu").Left || !strings.Contains(d.cordoned, `"left":true`) {
			t.Errorf("status %+v, record %s", d.status("gpu"), d.cordoned)
		}
		d.run().is("gpu Ready | cordoned for gpu | unschedulable")
		d.ask("net")
		delete(d.requests, "gpu")
		d.run("net").is("net Draining | cordoned for net | unschedulable | drains for net")
	})
}

func TestADrainThatAbortsIsBlockedBeforeItsCordonForNoLongerThanItsTimeout(t *testing.T) {
	const abort = `gpu {"drain":{"timeout":"5m","onTimeout":"abort"}}`
	blocked := func(d *desk) *desk {
		d.node.Drain.Block = nodes.Block{Permanent: true, Text: "budget web allows none"} // the preview, too
		return d.run("gpu")
	}
	t.Run("it is given up then, and nothing was cordoned", func(t *testing.T) {
		d := blocked(newDesk(t, abort))
		d.is("gpu Pending")
		d.says("gpu", "Blocked: budget web allows none; the node is not cordoned, and others have their turn; given up at 2026-03-01T12:05:00Z")
		if want := noon.Add(5 * time.Minute); d.next == nil || !d.next.Equal(want) {
			t.Errorf("next look at %v, want %v", d.next, want)
		}
		d.after(5*time.Minute - time.Second).run("gpu").is("gpu Pending")
		d.after(time.Second).run("gpu").is("gpu Pending aborted")
		d.says("gpu", "the drain was aborted after 5m0s: budget web allows none; not tried again until the request changes")
		if diff := cmp.Diff([]string{"gpu DrainBlocked", "gpu Aborted"}, d.said); diff != "" {
			t.Errorf("events, -want +got:\n%s", diff)
		}
		d.after(time.Hour).run("gpu").is("gpu Pending aborted")
	})
	t.Run("what the status remembers goes on after a restart", func(t *testing.T) {
		d := blocked(newDesk(t, abort)).after(5 * time.Minute)
		d.node.Drain.Block = nodes.Block{}
		n := d.view()
		n.Asked[0].Preview = n.Asked[0].Remembered()
		if got := nodes.Advance(n, nil, d.limits, d.now).Statuses["gpu"]; got.Ended == nil {
			t.Errorf("%+v", got)
		}
	})
	t.Run("its time ends with the block", func(t *testing.T) {
		d := blocked(newDesk(t, abort)).after(4 * time.Minute)
		d.node.Drain.Block = nodes.Block{}
		d.run().is("gpu Pending")
		blocked(d).after(4 * time.Minute).run("gpu").is("gpu Pending")
	})
	t.Run("no time passes while its window is closed", func(t *testing.T) {
		d := newDesk(t, abort)
		d.node.Gate = nodes.Gate{Reason: "window closed"}
		blocked(d).after(time.Hour).run("gpu").is("gpu Pending")
		d.node.Gate = nodes.Gate{Permitted: true}
		d.run("gpu").is("gpu Pending")
		d.node.Gate = nodes.Gate{Reason: "window closed"} // it goes on as a drain would that has begun
		d.after(5 * time.Minute).run("gpu").is("gpu Pending aborted")
	})
	t.Run("no time passes while another has the node", func(t *testing.T) {
		d := newDesk(t, "net").run("net").drained()
		d.ask(abort)
		d.node.Drain = nodes.Session{}
		blocked(d).after(time.Hour).run("gpu").is("gpu Pending, net Ready | cordoned for net | unschedulable")
	})
	t.Run("no time passes while a run has the node", func(t *testing.T) {
		d := newDesk(t, abort)
		d.node.Drain.Block = nodes.Block{Permanent: true, Text: "budget web allows none"}
		n := d.view()
		turns := nodes.Rank(nodes.ClusterState{Now: d.now, Nodes: []nodes.Node{n}, Holds: []nodes.Hold{{Node: n.Name, Claimant: thePlan}}}).Turns(n.Name)
		got := nodes.Advance(n, turns, d.limits, d.now).Statuses["gpu"]
		if got.Blocked == nil || !got.Blocked.Since.IsZero() || strings.Contains(got.Reason, "given up at") {
			t.Errorf("%s", got)
		}
	})
	for name, value := range map[string]string{
		"without a limit it waits without end": `gpu {"drain":{"timeout":"0s","onTimeout":"abort"}}`,
		"retry waits without end":              `gpu {"drain":{"timeout":"5m"}}`,
	} {
		t.Run(name, func(t *testing.T) { blocked(newDesk(t, value)).after(time.Hour).run("gpu").is("gpu Pending") })
	}
}

func TestMaxNodeMaintenanceTime(t *testing.T) {
	start := func(t *testing.T, release bool, value string) *desk {
		d := newDesk(t, value)
		d.limits = nodes.Limits{MaxTime: time.Hour, ReleaseExpired: release}
		return d.run("gpu")
	}
	t.Run("is reported once", func(t *testing.T) {
		d := start(t, false, "gpu").after(time.Hour).run()
		d.is("gpu Draining | cordoned for gpu | unschedulable | drains for gpu")
		d.says("gpu", "past maxNodeMaintenanceTime 1h0m0s")
		d.after(time.Hour).run()
		if n := len(slices.DeleteFunc(d.said, func(s string) bool { return s != "gpu Overdue" })); n != 1 {
			t.Errorf("said %d times", n)
		}
	})
	t.Run("releases what is not Ready, until the value changes", func(t *testing.T) {
		d := start(t, true, "gpu").after(time.Hour).run("gpu")
		d.is("gpu Pending expired")
		d.ask(`gpu {"reason":"again"}`)
		d.run("gpu").is("gpu Draining | cordoned for gpu | unschedulable | drains for gpu")
	})
	t.Run("does not release one that works", func(t *testing.T) {
		d := start(t, true, "gpu").drained().after(time.Hour).run()
		d.is("gpu Ready | cordoned for gpu | unschedulable")
		d.says("gpu", "past maxNodeMaintenanceTime")
	})
	t.Run("does not release one that failed", func(t *testing.T) {
		start(t, true, `gpu {"failed":true}`).drained().after(time.Hour).run().is("gpu RequestorFailed | cordoned for gpu | unschedulable")
	})
}

func TestTheSlotOfARequestThatDoesNotDrainHasAnEnd(t *testing.T) {
	start := func(t *testing.T, value string) *desk {
		d := newDesk(t, value)
		d.limits = nodes.Limits{WithoutDrain: time.Hour}
		return d.run("gpu").run()
	}
	t.Run("it is said once, and the requestor keeps the node", func(t *testing.T) {
		d := start(t, `gpu {"drain":false}`)
		d.is("gpu Ready | cordoned for gpu | unschedulable")
		if next := d.step().Next; next == nil || !next.Equal(d.status("gpu").Started.Add(time.Hour)) {
			t.Errorf("looks again at %v", next)
		}
		d.after(time.Hour).run().after(time.Hour).run()
		d.is("gpu Ready | cordoned for gpu | unschedulable")
		d.says("gpu", "others have its slot: it does not drain, and maxTimeWithoutDrain 1h0m0s is over")
		if n := len(slices.DeleteFunc(d.said, func(s string) bool { return s != "gpu SlotOver" })); n != 1 {
			t.Errorf("said %d times", n)
		}
	})
	t.Run("one that drains has none", func(t *testing.T) {
		d := start(t, "gpu").drained().after(2 * time.Hour).run()
		if d.status("gpu").SlotOver {
			t.Error("the slot of a request that drained is over")
		}
	})
	t.Run("a longer limit gives the slot back", func(t *testing.T) {
		d := start(t, `gpu {"drain":false}`).after(time.Hour).run()
		d.limits.WithoutDrain = 3 * time.Hour
		if d.run(); d.status("gpu").SlotOver {
			t.Error("still over")
		}
	})
}

func TestWritesAreRare(t *testing.T) {
	d := newDesk(t, "gpu").run("gpu").session(nodes.SessionRunning, 5).run()
	writes := func(left int) bool {
		d.session(nodes.SessionRunning, left)
		return d.step().Writes()
	}
	since := d.status("gpu").Since
	if d.after(3 * time.Second); writes(4) {
		t.Error("writes progress after 3 seconds")
	}
	if want := noon.Add(nodes.ProgressEvery); d.next == nil || !d.next.Equal(want) {
		t.Errorf("next look at %v, want %v", d.next, want)
	}
	if d.after(7 * time.Second); !writes(4) {
		t.Error("does not write progress after 10 seconds")
	}
	if d.after(time.Hour); writes(4) != true { // takes too long now
		t.Error("does not say that it takes too long")
	}
	if d.after(time.Hour); writes(4) {
		t.Error("writes what stands there already")
	}
	if got := d.status("gpu"); !got.Since.Equal(since) || got.Progress.Left != 4 {
		t.Errorf("%+v", got)
	}
	d.node.Drain = nodes.Session{} // the agent restarts
	if s := d.step(); s.Writes() || s.Drain == nil || !s.Drain.Since.Equal(since) {
		t.Errorf("after a restart: %+v", s)
	}
}

func TestADrainWhosePodsAreNotCountedYetCountsNone(t *testing.T) {
	d := newDesk(t, "gpu").run("gpu").session(nodes.SessionRunning, 0)
	d.node.Drain.Total, d.node.Drain.Uncounted = 0, true
	if d.run(); d.status("gpu").Reason != "pods are about to leave" || d.status("gpu").Progress != nil {
		t.Errorf("%+v", d.status("gpu"))
	}
	d.node.Drain.Block.Text = "cannot read pods and budgets: no route to host"
	if d.run(); d.status("gpu").Reason != "pods are not counted yet; Blocked for now: cannot read pods and budgets: no route to host" || d.status("gpu").Progress != nil {
		t.Errorf("%+v", d.status("gpu"))
	}
	d.session(nodes.SessionRunning, 3)
	d.node.Drain.Block = nodes.Block{Permanent: true, Text: "budget web allows none"}
	if d.after(time.Second).run(); d.status("gpu").Reason != "3 of 5 pods are left; Blocked for good: budget web allows none" { // at once, whatever was counted before
		t.Errorf("%+v", d.status("gpu"))
	}
}

func TestThatADrainIsBlockedForGoodDoesNotWaitForItsProgress(t *testing.T) {
	d := newDesk(t, "gpu").run("gpu").session(nodes.SessionRunning, 5).run()
	d.session(nodes.SessionRunning, 5)
	d.node.Drain.Block = nodes.Block{Permanent: true, Text: "budget web allows none"}
	if d.after(time.Second).run(); d.status("gpu").Blocked == nil {
		t.Error("does not say a second later that it is blocked")
	}
	d.session(nodes.SessionRunning, 5)
	if d.after(time.Second); d.step().Writes() {
		t.Error("writes a second later that it is not")
	}
}

func TestADrainThatEndsByItsTimeSaysWhenAndHow(t *testing.T) {
	for onTimeout, want := range map[string]string{
		"skip":  "5 of 5 pods are left; tries until 2026-03-01T12:01:00Z, then leaves the pods that are still there and is Ready; Blocked: budget web allows none",
		"force": "5 of 5 pods are left; tries until 2026-03-01T12:01:00Z, then deletes the pods that may be evicted; Blocked: budget web allows none",
		"abort": "5 of 5 pods are left; tries until 2026-03-01T12:01:00Z, then is given up and undoes its cordon; Blocked for good: budget web allows none",
		"retry": "5 of 5 pods are left; Blocked for good: budget web allows none",
	} {
		d := newDesk(t, `gpu {"drain":{"timeout":"1m","onTimeout":"`+onTimeout+`"}}`).run("gpu").session(nodes.SessionRunning, 5)
		d.node.Drain.Block = nodes.Block{Permanent: true, Text: "budget web allows none"}
		if d.run(); d.status("gpu").Reason != want {
			t.Errorf("%s: %s", onTimeout, d.status("gpu").Reason)
		}
	}
}

func TestProgressOfANode(t *testing.T) {
	d := newDesk(t, "gpu", `net {"shared":true}`)
	stands := func(want string) {
		t.Helper()
		if d.node.Progress != want {
			t.Errorf("progress %s, want %s", d.node.Progress, want)
		}
	}
	stands("")
	d.step("gpu")
	stands(`{"step":"Scheduled","for":["gpu"]}`)
	d.run("gpu").session(nodes.SessionRunning, 5).run()
	stands(`{"step":"Draining","for":["gpu"],"done":0,"total":5,"left":5,"percent":0}`)
	d.session(nodes.SessionRunning, 2).after(nodes.ProgressEvery).run()
	stands(`{"step":"Draining","for":["gpu"],"done":3,"total":5,"left":2,"percent":60}`)
	d.drained()
	stands("")
	d.node.Progress = "somebody else's"
	d.run()
	stands("")

	d = newDesk(t, `gpu {"shared":true}`, `net {"shared":true,"waitFor":{"podSelector":"app=web"}}`)
	d.pods["net"] = nodes.Pods{Known: true, Left: 3}
	d.run("gpu", "net")
	stands(`{"step":"WaitingForPods","for":["gpu","net"],"done":0,"total":0,"left":3,"percent":0}`)
	d.ask(`gpu {"shared":true,"waitFor":{"podSelector":"app=db"}}`) // its pods are not counted yet
	d.run()
	stands(`{"step":"WaitingForPods","for":["gpu","net"],"done":0,"total":0,"left":3,"percent":0}`)
	delete(d.requests, "gpu")
	delete(d.requests, "net")
	d.run()
	stands("")
}

func TestWhatBlocksForGoodIsSaidOnceAndInTheStatus(t *testing.T) {
	said := func(d *desk) int {
		return len(slices.DeleteFunc(slices.Clone(d.said), func(s string) bool { return s != "gpu "+nodes.EventBlocked }))
	}
	d := newDesk(t, "gpu").run("gpu")
	block := func(permanent bool, text string) {
		t.Helper()
		d.session(nodes.SessionRunning, 5)
		d.node.Drain.Block = nodes.Block{Permanent: permanent, Text: text}
		d.after(nodes.ProgressEvery).run()
	}
	block(false, "budget web allows none now")
	if b := d.status("gpu").Blocked; b == nil || b.Permanent || b.Text != "budget web allows none now" || said(d) != 0 {
		t.Errorf("%+v, said %d times", b, said(d))
	}
	for _, text := range []string{"budget web never allows one", "budgets web and db never allow one"} {
		if block(true, text); !d.status("gpu").Blocked.Permanent || d.status("gpu").Blocked.Text != text || said(d) != 1 {
			t.Errorf("%+v, said %d times", d.status("gpu").Blocked, said(d))
		}
	}
	block(false, "")
	if b := d.status("gpu").Blocked; b != nil {
		t.Errorf("still %+v", b)
	}
	if block(true, "again"); said(d) != 2 {
		t.Errorf("said %d times", said(d))
	}
	if d.drained(); d.status("gpu").Blocked != nil {
		t.Errorf("Ready, and %+v", d.status("gpu").Blocked)
	}

	d = newDesk(t, "gpu")
	d.node.Drain.Block = nodes.Block{Permanent: true, Text: "shop/db-0 cannot leave"} // what the preview found
	d.run("gpu").run("gpu")
	if b := d.status("gpu").Blocked; b == nil || !b.Permanent || b.Text != "shop/db-0 cannot leave" || said(d) != 1 || d.status("gpu").Phase != nodes.Pending {
		t.Errorf("%+v, said %d times", d.status("gpu"), said(d))
	}
}

func TestANodeThatGoesAwayIsLeftAlone(t *testing.T) {
	d := newDesk(t, "gpu").run("gpu")
	d.node.Deleting = true
	delete(d.requests, "gpu")
	if s := d.step(); s.Writes() || s.Drain != nil || s.Events != nil {
		t.Errorf("%+v", s)
	}
}

func TestWhatIsLostIsFoundAgain(t *testing.T) {
	t.Run("a status that cannot be read, of one for whom the node is cordoned", func(t *testing.T) {
		d := newDesk(t, "gpu").run("gpu")
		d.statuses["gpu"] = "{nonsense"
		d.run().is("gpu Draining | cordoned for gpu | unschedulable | drains for gpu")
	})
	t.Run("a status without a request goes, readable or not", func(t *testing.T) {
		d := newDesk(t)
		d.statuses["old"], d.statuses["odd"] = nodes.Status{Phase: nodes.Pending}.String(), "nonsense"
		d.run().is("")
	})
	t.Run("a record of nobody goes, and the cordon with it", func(t *testing.T) {
		d := newDesk(t)
		d.node.Unschedulable, d.cordoned = true, nodes.Cordon{By: []string{"gpu"}, At: noon}.String()
		d.run().is("")
	})
	t.Run("a lost record is written anew before anybody waits for pods", func(t *testing.T) {
		d := newDesk(t, `gpu {"waitFor":{}}`)
		for range 2 {
			d.step("gpu")
		}
		d.cordoned = ""
		d.step()
		d.is("gpu Cordoning | cordoned for gpu and before | unschedulable")
		d.run().is("gpu WaitingForPods | cordoned for gpu and before | unschedulable")
	})
	t.Run("a lost record is written anew, and doubts that we cordoned", func(t *testing.T) {
		d := newDesk(t, "gpu").run("gpu")
		d.cordoned = ""
		if d.step(); d.drain != nil {
			t.Error("drains without a record")
		}
		d.run().is("gpu Draining | cordoned for gpu and before | unschedulable | drains for gpu")
	})
}

// A plan's record may be left on a node that is open again.
func TestANodeThatIsOpenUnderARecordOfAPlan(t *testing.T) {
	var none *nodes.Cordon
	for request, want := range map[string]string{
		`gpu`:                                "gpu Draining | cordoned for gpu | unschedulable | drains for gpu",
		`gpu {"cordon":false,"drain":false}`: "gpu Ready | cordoned for " + thePlan,
	} {
		d := newDesk(t, request)
		d.cordoned = none.With(thePlan, false, noon).String()
		d.step("gpu")
		d.is("gpu Scheduled | cordoned for " + thePlan) // the record stays until another cordon
		d.run("gpu").is(want)
	}
}

func TestTheRecordForOthersWhoCordon(t *testing.T) {
	var none *nodes.Cordon
	fresh := none.With(thePlan, false, noon)
	both := fresh.With("gpu", true, noon)
	kept, uncordon := both.Without(thePlan)
	if uncordon || kept == nil || !slices.Equal(kept.By, []string{"gpu"}) {
		t.Errorf("%v %t", kept, uncordon)
	}
	if last, uncordon := kept.Without("gpu"); last != nil || !uncordon {
		t.Errorf("%v %t", last, uncordon)
	}
	if _, uncordon := none.With(thePlan, true, noon).Without(thePlan); uncordon {
		t.Error("undoes the cordon that was there before")
	}
	left := none.With(thePlan, true, noon)
	if again := left.With(thePlan, false, noon); again.Before {
		t.Error("remembers a cordon that somebody took away since")
	}
	if next, uncordon := none.Without(thePlan); next != nil || uncordon {
		t.Error("something of nothing")
	}
}

func TestPassesThatAreDoneAreRememberedOnceAndNotWithoutBound(t *testing.T) {
	d := newDesk(t, `gpu {"drain":{"podSelector":"n=0"}}`).run("gpu").drained()
	for i := range 30 {
		d.ask(fmt.Sprintf(`gpu {"drain":{"podSelector":"n=%d"}}`, i))
		d.run()
		if d.drain != nil {
			d.drained()
		}
		d.is("gpu Ready | cordoned for gpu | unschedulable")
	}
	c, _ := nodes.ParseCordon(d.cordoned)
	if len(c.Drained) != 10 {
		t.Errorf("%d passes are remembered", len(c.Drained))
	}
	d.ask(`gpu {}`)
	d.run().drained()
	if c, _ := nodes.ParseCordon(d.cordoned); len(c.Drained) != 1 {
		t.Errorf("%d passes are remembered where one covers all", len(c.Drained))
	}
}

func TestANodeMadeAgainUnderItsNameIsNotReadyAtOnce(t *testing.T) {
	ready := func(t *testing.T) *desk {
		d := newDesk(t, "os {}")
		for _, phase := range []nodes.Phase{nodes.Scheduled, nodes.Cordoning, nodes.Draining} {
			d.step("os")
			d.in("os", phase)
		}
		d.step()
		d.node.Drain = nodes.Session{State: nodes.SessionDone, Key: d.drain.Key}
		d.step()
		d.in("os", nodes.Ready)
		d.node.UID, d.node.Drain = "u-another", nodes.Session{}
		return d
	}
	t.Run("cordoned as it was", func(t *testing.T) {
		d := ready(t)
		for range 4 {
			d.step("os")
			if s, _ := nodes.ParseStatus(d.statuses["os"]); s.Phase == nodes.Ready {
				t.Fatal("Ready, and nothing of it was drained")
			}
		}
		d.in("os", nodes.Draining)
		d.node.Drain = nodes.Session{State: nodes.SessionDone, Key: d.drain.Key}
		d.step()
		d.in("os", nodes.Ready)
		delete(d.requests, "os")
		d.step()
		if d.node.Unschedulable || d.cordoned != "" {
			t.Errorf("our cordon came back with it, and is not undone: %s", d.cordoned)
		}
	})
	t.Run("and schedulable", func(t *testing.T) {
		d := ready(t)
		d.node.Unschedulable = false
		d.step()
		d.in("os", nodes.Pending)
		if d.cordoned != "" {
			t.Errorf("a record of the node before stands: %s", d.cordoned)
		}
		d.step("os")
		d.step()
		d.in("os", nodes.Cordoning)
		if c, _ := nodes.ParseCordon(d.cordoned); c == nil || c.Before || c.Node != "u-another" {
			t.Errorf("the record is %s", d.cordoned)
		}
	})
}

func TestAStatusSaysWhichVolumesAreWaitedForAndThatABlockEnds(t *testing.T) {
	d := newDesk(t, "os {}")
	for range 4 {
		d.step("os")
	}
	d.node.Drain = nodes.Session{State: nodes.SessionRunning, Key: d.drain.Key, Total: 3, Waits: "volume v of pod shop/db-0 is still attached", Block: nodes.Block{Text: "shop/web is not Ready"}}
	d.step()
	s := d.statuses["os"]
	for _, want := range []string{"0 of 3 pods are left; volume v of pod shop/db-0 is still attached", `"blocked":{"permanent":false,"text":"shop/web is not Ready"}`} {
		if !strings.Contains(s, want) {
			t.Errorf("%s\ndoes not say %s", s, want)
		}
	}
}

func (d *desk) in(requestor string, want nodes.Phase) {
	d.t.Helper()
	if got := d.status(requestor).Phase; got != want {
		d.t.Fatalf("%s is %s, not %s: %s", requestor, got, want, d)
	}
}

// Somebody opens the node and cordons it between two looks, or declares its cordon
// beside ours.
func TestACordonByOthersThatNobodySawIsTheirs(t *testing.T) {
	for name, c := range map[string]struct {
		taken nodes.CordonTakeover
		then  string
	}{
		"of an open node": {nodes.CordonTakeover{By: "kubectl-cordon", Opened: true}, "gpu Draining | cordoned for gpu and before | unschedulable | drains for gpu"},
		"beside ours":     {nodes.CordonTakeover{By: "flux"}, "gpu Ready | cordoned for gpu and before | unschedulable"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, "gpu").run("gpu").drained()
			d.is("gpu Ready | cordoned for gpu | unschedulable")
			d.node.Taken = c.taken
			d.after(time.Minute).run().is(c.then)
			if got := strings.Count(strings.Join(d.said, ","), "CordonedByOthers"); got != 1 {
				t.Errorf("said %d times: %v", got, d.said)
			}
			if d.drain != nil {
				d.drained()
			}
			d.is("gpu Ready | cordoned for gpu and before | unschedulable")
			delete(d.requests, "gpu")
			d.run().is("unschedulable")
		})
	}
	opened := nodes.CordonTakeover{By: "kubectl-cordon", Opened: true}
	for name, c := range map[string]struct{ request, then string }{
		"of one that does not drain":    {`gpu {"drain":false}`, "gpu Ready | cordoned for gpu and before | unschedulable"},
		"of one whose requestor failed": {`gpu {"failed":true,"drain":false}`, "gpu RequestorFailed | cordoned for gpu and before | unschedulable"},
		"of one that waits for pods":    {`gpu {"waitFor":{}}`, "gpu WaitingForPods | cordoned for gpu and before | unschedulable"},
	} {
		t.Run(name+" it does not begin anew", func(t *testing.T) {
			d := newDesk(t, c.request).run("gpu")
			since := d.status("gpu").Since
			d.node.Taken = opened
			d.after(time.Minute).run().is(c.then)
			if got := d.status("gpu").Since; !got.Equal(since) {
				t.Errorf("it begins anew at %s", got)
			}
		})
	}
	t.Run("as its request goes", func(t *testing.T) {
		d := newDesk(t, "gpu").run("gpu").drained()
		d.node.Taken = nodes.CordonTakeover{By: "kubectl-cordon", Opened: true}
		delete(d.requests, "gpu")
		d.run().is("unschedulable")
	})
}

// A requestor leaves a node that a plan is next to have: no pods come in between.
func TestANodeStaysCordonedForThePlanThatIsNext(t *testing.T) {
	left := func(t *testing.T) *desk {
		d := newDesk(t, "gpu").run("gpu").drained()
		delete(d.requests, "gpu")
		return d.run(thePlan)
	}
	kept := "cordoned for " + thePlan + " | unschedulable"
	t.Run("until it claims it", func(t *testing.T) {
		d := left(t)
		d.is(kept)
		d.after(time.Hour).run(thePlan).is(kept)
		record, _ := nodes.ParseCordon(d.cordoned)
		if record.Handed == nil {
			t.Errorf("the record is %s", d.cordoned)
		}
		d.cordoned = record.With(thePlan, true, d.now).String()
		if strings.Contains(d.cordoned, "handed") {
			t.Errorf("it is claimed, and the record is %s", d.cordoned)
		}
		d.after(time.Hour).run().is(kept)
	})
	t.Run("but not for a plan that is no more", func(t *testing.T) {
		d := left(t)
		d.after(10 * time.Second).run().is(kept)
		if d.next == nil {
			t.Error("nobody looks again")
		}
		d.after(21 * time.Second).run().is("")
	})
	t.Run("nor for one that others come before", func(t *testing.T) {
		d := left(t)
		d.ask("net")
		d.after(time.Minute).run("net").is("net Ready | cordoned for net | unschedulable")
		record, _ := nodes.ParseCordon(d.cordoned)
		if record.Handed != nil {
			t.Errorf("the record is %s", d.cordoned)
		}
	})
	t.Run("and stays so afterwards where it was cordoned before", func(t *testing.T) {
		d := newDesk(t, "gpu")
		d.node.Unschedulable = true
		d.run("gpu").drained()
		delete(d.requests, "gpu")
		d.run(thePlan).is("cordoned for " + thePlan + " and before | unschedulable")
		d.after(time.Hour).run().is("unschedulable")
	})
}
