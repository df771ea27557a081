package plans

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/runquota"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

const overlapping = "concurrencyPolicy: Allow\n" + hook

// used has other active runs of the namespace take so many bytes.
func (w *world) used(bytes int) {
	w.Helper()
	w.agent.Stores.Runs.Quota.Set(key("others"), bytes)
	w.after(2 * time.Second)
}

func TestARunWaitsForRoomBesideThoseOfItsNamespace(t *testing.T) {
	const full = "the active runs of namespace shop take as much of the agent's memory as those of one namespace may, 24 MiB; it begins once enough of them have ended"
	trigger := func(w *world) { w.says("nightly", annotations.Trigger, "now") }
	for name, c := range map[string]struct {
		spec    string
		ask     func(w *world)
		message string
		entries []string // while there is no room
		after   []string // once there is
	}{
		"a trigger": {spec: hook, ask: trigger, message: "the trigger waits: " + full, after: []string{"00:00 open manual"}},
		"a slot": {
			spec: tenMins + hook, ask: func(w *world) { w.after(10 * time.Minute) }, message: "the slot 2000-01-01T00:10:00Z waits: " + full, after: []string{"00:10 open schedule"},
		},
		"a slot whose deadline passes": {
			spec: "startDeadline: 5m\n" + tenMins + hook, ask: func(w *world) { w.after(16 * time.Minute) }, message: "next run 2000-01-01T00:20:00Z UTC",
			entries: []string{"00:10 Missed not-ready"}, after: []string{"00:10 Missed not-ready"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.plan("nightly", c.spec)
				w.begins()
				w.after(2 * time.Second)
				w.used(runquota.Max)
				c.ask(w)
				w.after(10 * time.Second)
				w.expect("while there is no room", "nightly", c.entries...)
				if got := w.said("nightly", annotations.StatusMessage); got != c.message || len(w.runs("nightly")) > 0 {
					t.Errorf("it says %q, runs %q", got, w.runs("nightly"))
				}
				if waits := strings.HasSuffix(c.message, full); waits != (w.condition("nightly", "Ready") == "False NotReady") {
					t.Errorf("Ready is %q", w.condition("nightly", "Ready"))
				}
				w.used(runquota.Max - 1)
				w.expect("once there is room", "nightly", c.after...)
				if open := len(w.ledger("nightly").Open); len(w.runs("nightly")) != open || w.condition("nightly", "Ready") != "True Ready" {
					t.Errorf("%d claims, runs %q, Ready %q", open, w.runs("nightly"), w.condition("nightly", "Ready"))
				}
			})
		})
	}
}

func TestARunWaitsForRoomBesideThoseOfAllNamespaces(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", overlapping)
		w.begins()
		w.after(2 * time.Second)
		others := types.NamespacedName{Namespace: "other", Name: "others"}
		w.agent.Stores.Runs.Quota.Set(others, runquota.MaxTotal)
		w.says("nightly", annotations.Trigger, "first")
		if got := w.begun("nightly"); got != "nightly" {
			t.Fatalf("what is reserved for a namespace is not given to it: %q", w.said("nightly", annotations.StatusMessage))
		}
		w.used(runquota.Reserved)
		w.says("nightly", annotations.Trigger, "second")
		w.after(10 * time.Second)
		const full = "the trigger waits: the active runs of all namespaces take as much of the agent's memory as they may together, 64 MiB, and those of namespace shop 1 MiB or more; it begins once enough of them have ended"
		if got := w.said("nightly", annotations.StatusMessage); !strings.HasSuffix(got, full) || len(w.runs("nightly")) != 1 {
			t.Errorf("it says %q, runs %q", got, w.runs("nightly"))
		}
		w.agent.Stores.Runs.Quota.Remove(others)
		w.after(2 * time.Second)
		if len(w.runs("nightly")) != 2 {
			t.Errorf("the plan waits although there is room: %q", w.said("nightly", annotations.StatusMessage))
		}
	})
}

// begun are those of the plans that have a run.
func (w *world) begun(plans ...string) (out string) {
	w.Helper()
	for _, name := range plans {
		out += strings.Repeat(name, len(w.runs(name)))
	}
	return out
}

func TestPlansThatAskTogetherDoNotTakeTheSameRoom(t *testing.T) {
	play(t, func(w *world) {
		for _, name := range []string{"a", "b", "c", "d"} {
			w.plan(name, overlapping)
		}
		w.begins()
		w.after(2 * time.Second)
		w.used(runquota.Max - 1)
		for _, name := range []string{"a", "b", "c", "d"} {
			w.api.Annotate(shop, name, annotations.Trigger, "now")
		}
		w.after(10 * time.Second)
		first := w.begun("a", "b", "c", "d")
		if len(first) != 1 {
			t.Fatalf("runs of %q begin where there is room for one", first)
		}
		if w.used(0); w.begun("a", "b", "c", "d") != "abcd" {
			t.Errorf("with room for all, those of %q have begun", w.begun("a", "b", "c", "d"))
		}
	})
}

func TestAPlanThatWaitsForRoomIsWokenByTheEndOfARunOfAnother(t *testing.T) {
	play(t, func(w *world) {
		w.plan("a", overlapping)
		w.plan("b", overlapping)
		w.plan("c", overlapping)
		w.begins()
		w.after(2 * time.Second)
		w.says("a", annotations.Trigger, "now")
		mine := w.agent.Stores.Runs.Quota.Used(shop)
		w.used(runquota.Max - mine)
		w.says("b", annotations.Trigger, "now")
		w.says("c", annotations.Trigger, "now")
		if got := w.begun("a", "b", "c"); got != "a" {
			t.Fatalf("runs of %q have begun", got)
		}
		w.api.DeleteAtOnce("configmaps", shop, "b") // it waits longest, and is woken for nothing
		w.after(time.Second)
		w.progress(nameOf("a", "now"), run.Succeeded)
		w.after(2 * time.Second)
		if got := w.begun("c"); got != "c" {
			t.Errorf("c waits although there is room: %q", w.said("c", annotations.StatusMessage))
		}
	})
}

func TestAClaimThatTheAPIServerRefusedWaitsForRoomOnceItWouldBeTaken(t *testing.T) {
	play(t, func(w *world) {
		w.plan("nightly", hook)
		w.begins()
		w.after(2 * time.Second)
		mend := w.api.Refuse(agenttest.When{Verb: "create", Resource: "configmaps"}, agenttest.Always, 422, "the object is not taken")
		w.says("nightly", annotations.Trigger, "now")
		w.after(10 * time.Second)
		w.used(runquota.Max)
		mend()
		w.after(2 * time.Minute)
		if got := w.said("nightly", annotations.StatusMessage); len(w.runs("nightly")) > 0 || !strings.HasPrefix(got, "the trigger waits: the active runs of namespace shop") {
			t.Errorf("it says %q, runs %q", got, w.runs("nightly"))
		}
		w.used(0)
		w.after(time.Minute)
		if len(w.runs("nightly")) != 1 || w.condition("nightly", "RunRefused") != "" {
			t.Errorf("runs %q, RunRefused %q", w.runs("nightly"), w.condition("nightly", "RunRefused"))
		}
	})
}
