package hibernation

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// lacksIt is what a plan says whose account is not there.
const lacksIt = "Active: awake, and cannot fall asleep: the ServiceAccount maint-runner does not exist in namespace shop"

func (w *world) unready(want bool) {
	w.Helper()
	got := w.said(annotations.StatusConditions)
	if has := strings.Contains(got, `"type":"Ready","status":"False"`) && strings.Contains(got, `"NotReady"`); has != want {
		w.Errorf("at %s its conditions are %s", time.Now().UTC().Format("15:04"), got)
	}
}

func (w *world) lacksAccount(lacks bool) {
	w.Helper()
	if lacks {
		w.is(lacksIt)
	} else {
		w.is("Active: awake: outside of the off-hours")
	}
	w.unready(lacks)
}

func account() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "maint-runner"}}
}

// That the account is missing is said while the plan is awake, long before the night, and is
// over soon after somebody has created it.
func TestAMissingAccountIsSaidBeforeTheNight(t *testing.T) {
	play(t, func(w *world) {
		w.deployment("orders", "apps", 3)
		w.api.Delete("serviceaccounts", shop, "maint-runner")
		w.plan("schedule: {offHours: [{start: \"06:00\", end: \"08:00\"}]}\n" + apps)
		w.begins()
		w.until("00:01")
		w.lacksAccount(true)
		w.api.ClearLog()
		asked := agenttest.When{Resource: "serviceaccounts"}
		before := w.api.Asked(asked)
		w.until("01:01")
		if wrote := w.api.Log(); len(wrote) > 0 {
			t.Errorf("the agent wrote %q", wrote)
		}
		if n := w.api.Asked(asked) - before; n > 130 {
			t.Errorf("the account was asked for %d times in an hour", n)
		}
		w.api.Put(account())
		w.until("01:02")
		w.lacksAccount(false)
		w.until("06:01")
		w.has("orders 0")
	})
}

// One that is deleted later is missed an hour before the plan falls asleep.
func TestAnAccountThatIsDeletedIsMissedAnHourBefore(t *testing.T) {
	play(t, func(w *world) {
		w.deployment("orders", "apps", 3)
		w.plan("schedule: {offHours: [{start: \"06:00\", end: \"08:00\"}]}\n" + apps)
		w.begins()
		w.until("00:30")
		w.lacksAccount(false)
		w.api.Delete("serviceaccounts", shop, "maint-runner")
		w.until("05:01")
		w.lacksAccount(true)
		w.api.Put(account())
		w.until("06:01")
		w.has("orders 0")
		w.unready(false)
	})
}

// An API server that does not answer the question changes nothing of what was known, and
// keeps nothing asleep.
func TestAnAccountThatCannotBeAskedForChangesNothing(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.api.Refuse(agenttest.When{Resource: "serviceaccounts"}, 3, 500, "later")
		w.says("example.com/note", "x")
		w.lacksAccount(false)
		w.until("03:10")
		w.awake()
		w.closed()
	})
}

// What a plan says of an account that was created follows what its targets do.
func TestAnAccountThatIsCreatedShortlyBeforeTheNightIsNotMissed(t *testing.T) {
	play(t, func(w *world) {
		w.deployment("orders", "apps", 3)
		w.api.Delete("serviceaccounts", shop, "maint-runner")
		w.plan(oneToThree + apps)
		w.begins()
		w.until("00:59")
		w.after(50 * time.Second)
		w.api.Put(account())
		w.after(20 * time.Second)
		w.has("orders 0")
		if got := w.phase(); got != "Hibernated: 1 of 1 targets sleep" {
			t.Errorf("it says %q", got)
		}
		w.unready(false)
	})
}

// One that is created in the night has what failed for it go on.
func TestAnAccountThatIsCreatedInTheNightIsNotWaitedFor(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.api.Delete("serviceaccounts", shop, "maint-runner")
		w.until("01:30")
		w.is("Error: apps failed: ")
		w.awake()
		w.api.Put(account())
		w.until("01:32")
		w.sleeps()
		if got := w.phase(); got != "Hibernated: 1 of 1 targets sleep" {
			t.Errorf("it says %q", got)
		}
		w.api.Delete("serviceaccounts", shop, "maint-runner")
		w.until("01:40")
		w.is("Hibernated: 1 of 1 targets sleep; ")
		w.api.Put(account())
		w.after(40 * time.Second)
		if got := w.phase(); got != "Hibernated: 1 of 1 targets sleep" {
			t.Errorf("it says %q", got)
		}
	})
}
