package status

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func planOf(said map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", Annotations: said}}
}

// written are the annotations of the plan.
func written(c *agenttest.Cluster) map[string]string {
	return c.ConfigMap("shop", "nightly").Annotations
}

func onPlan(verb string) agenttest.When {
	return agenttest.When{Verb: verb, Resource: "configmaps", Name: "nightly"}
}

func TestAStatusIsWrittenWhereItDiffers(t *testing.T) {
	for name, c := range map[string]struct {
		have, want map[string]string
		given      func(*agenttest.Cluster)
		wrote      bool
		then       map[string]string // nil: as it was
		fails      bool
	}{
		"nothing stands there":        {want: map[string]string{annotations.StatusPhase: "Idle"}, wrote: true, then: map[string]string{annotations.StatusPhase: "Idle"}},
		"the same stands there":       {have: map[string]string{annotations.StatusPhase: "Idle"}, want: map[string]string{annotations.StatusPhase: "Idle"}},
		"nothing is to stand there":   {want: map[string]string{annotations.StatusPhase: ""}},
		"what is empty is taken away": {have: map[string]string{annotations.StatusPhase: "Idle"}, want: map[string]string{annotations.StatusPhase: ""}, wrote: true, then: map[string]string{}},
		"what nobody speaks of stays": {
			have: map[string]string{annotations.StatusPhase: "Idle", annotations.StatusMessage: "old", annotations.Pause: "true", "team": "blue"}, want: map[string]string{annotations.StatusMessage: "new"}, wrote: true,
			then: map[string]string{annotations.StatusPhase: "Idle", annotations.StatusMessage: "new", annotations.Pause: "true", "team": "blue"},
		},
		"somebody wrote something else meanwhile": {
			want: map[string]string{annotations.StatusPhase: "Idle"}, given: func(c *agenttest.Cluster) {
				c.Before(onPlan("patch"), func() { c.Annotate("shop", "nightly", annotations.Pause, "true") })
			}, wrote: true, then: map[string]string{annotations.StatusPhase: "Idle", annotations.Pause: "true"},
		},
		"the plan was made anew meanwhile": {
			want: map[string]string{annotations.StatusPhase: "Idle"}, given: func(c *agenttest.Cluster) {
				c.Before(onPlan("patch"), func() {
					c.Delete("configmaps", "shop", "nightly")
					c.Put(planOf(nil))
				})
			},
		},
		"it is refused for what it says": {want: map[string]string{annotations.StatusPhase: "Idle"}, given: func(c *agenttest.Cluster) { c.Refuse(onPlan("patch"), 1, 422, "no") }},
		"the API server is away":         {want: map[string]string{annotations.StatusPhase: "Idle"}, given: func(c *agenttest.Cluster) { c.Fail(onPlan("patch"), 1) }, fails: true},
		"the agent may not":              {want: map[string]string{annotations.StatusPhase: "Idle"}, given: func(c *agenttest.Cluster) { c.Deny("", "patch", "configmaps") }, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := agenttest.New(t)
			cluster.Put(planOf(c.have))
			conn, _ := cluster.Connect()
			cm := cluster.ConfigMap("shop", "nightly")
			if c.given != nil {
				c.given(cluster)
			}
			var last Written
			wrote, err := NewWriter(conn.Kube, &agenttest.Events{}).Write(context.Background(), cm, &last, func(map[string]string) map[string]string { return c.want })
			if wrote != c.wrote || (err != nil) != c.fails {
				t.Errorf("wrote: %t, %v; want %t, an error: %t", wrote, err, c.wrote, c.fails)
			}
			want := c.then
			if want == nil {
				want = c.have
			}
			if got := written(cluster); len(got)+len(want) > 0 && !cmp.Equal(got, want) {
				t.Error(cmp.Diff(want, got))
			}
			if !c.wrote && len(cluster.Log()) > 0 {
				t.Errorf("it wrote %q", cluster.Log())
			}
			if c.wrote && last.Version != informer.VersionOf(cluster.ConfigMap("shop", "nightly")) {
				t.Errorf("it remembers version %d", last.Version)
			}
		})
	}
}

// What is believed when it is read back is written onto what was seen, or not at all.
func TestAStatusThatIsBelievedIsNotWrittenOverANewerOne(t *testing.T) {
	for name, c := range map[string]struct {
		given func(*agenttest.Cluster)
		then  string
		err   error
	}{
		"nobody wrote":                     {func(*agenttest.Cluster) {}, "Idle", nil},
		"somebody wrote after it was seen": {func(c *agenttest.Cluster) { c.Annotate("shop", "nightly", annotations.StatusPhase, "Running") }, "Running", queue.ErrConflict},
		"somebody writes meanwhile": {func(c *agenttest.Cluster) {
			c.Before(onPlan("patch"), func() { c.Annotate("shop", "nightly", annotations.StatusPhase, "Running") })
		}, "Running", queue.ErrConflict},
		"the plan was made anew meanwhile": {func(c *agenttest.Cluster) {
			c.Before(onPlan("patch"), func() {
				c.Delete("configmaps", "shop", "nightly")
				c.Put(planOf(nil))
			})
		}, "", queue.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := agenttest.New(t)
			cluster.Put(planOf(nil))
			conn, _ := cluster.Connect()
			seen, last := cluster.ConfigMap("shop", "nightly"), Written{}
			c.given(cluster)
			w := NewWriter(conn.Kube, &agenttest.Events{})
			says := func(phase string) error {
				_, err := w.WriteOver(context.Background(), seen, &last, func(map[string]string) map[string]string {
					return map[string]string{annotations.StatusPhase: phase}
				})
				return err
			}
			if err := says("Idle"); !errors.Is(err, c.err) {
				t.Errorf("%v, want %v", err, c.err)
			}
			if got := written(cluster)[annotations.StatusPhase]; got != c.then {
				t.Errorf("it says %s, want %s", got, c.then)
			}
			if err := says("Waiting"); c.err == nil && (err != nil || written(cluster)[annotations.StatusPhase] != "Waiting") {
				t.Errorf("what it wrote itself is in its way: %v", err)
			}
		})
	}
}

// Somebody has filled the annotations of a document: its status stays as it was, and an Event says so.
func TestADocumentWithoutRoomForItsStatusIsSaid(t *testing.T) {
	cluster, events := agenttest.New(t), &agenttest.Events{}
	full := map[string]string{annotations.StatusPhase: "Idle", "example.org/x": ""}
	full["example.org/x"] = strings.Repeat("y", annotations.MaxBytes-annotations.Bytes(full))
	cluster.Put(planOf(full))
	conn, _ := cluster.Connect()
	wrote, err := NewWriter(conn.Kube, events).Write(context.Background(), cluster.ConfigMap("shop", "nightly"), &Written{}, func(map[string]string) map[string]string {
		return map[string]string{annotations.StatusPhase: "Running"}
	})
	if wrote || err != nil {
		t.Errorf("wrote: %t, %v", wrote, err)
	}
	if got := written(cluster)[annotations.StatusPhase]; got != "Idle" {
		t.Errorf("it says %s", got)
	}
	if said := events.All(); len(said) != 1 || !strings.Contains(said[0], "StatusNotWritten") || !strings.Contains(said[0], "remove what fills them") {
		t.Errorf("Events: %q", said)
	}
}

// A watch that has not shown our last write yet does not have it written again.
func TestWhatWasJustWrittenIsNotWrittenAgain(t *testing.T) {
	cluster := agenttest.New(t)
	cluster.Put(planOf(nil))
	conn, _ := cluster.Connect()
	w, old, last := NewWriter(conn.Kube, &agenttest.Events{}), cluster.ConfigMap("shop", "nightly"), &Written{}
	says := func(phase string) func(map[string]string) map[string]string {
		return func(map[string]string) map[string]string { return map[string]string{annotations.StatusPhase: phase} }
	}
	for _, step := range []struct {
		cm    *corev1.ConfigMap
		phase string
		wrote bool
	}{{old, "Idle", true}, {old, "Idle", false}, {old, "Running", true}} {
		if wrote, err := w.Write(context.Background(), step.cm, last, says(step.phase)); err != nil || wrote != step.wrote {
			t.Errorf("%s: wrote %t, %v", step.phase, wrote, err)
		}
	}
	cluster.Annotate("shop", "nightly", annotations.StatusPhase, "mangled")
	if wrote, err := w.Write(context.Background(), cluster.ConfigMap("shop", "nightly"), last, says("Running")); err != nil || !wrote {
		t.Errorf("what somebody mangled was left so: %t, %v", wrote, err)
	}
}

// What a claim stands for is done by one alone: who saw an older state is to look again.
func TestAClaimIsWrittenOnTheNewestStateAlone(t *testing.T) {
	const first, second = "2026-03-01T02:00:00Z", "2026-03-02T02:00:00Z"
	for name, c := range map[string]struct {
		given func(*agenttest.Cluster)
		then  string
		fails error // nil: it does not
	}{
		"nobody wrote since": {then: first},
		"somebody wrote meanwhile": {
			given: func(c *agenttest.Cluster) { c.Annotate("shop", "nightly", annotations.StatusToldAhead, second) },
			then:  second, fails: queue.ErrConflict,
		},
		"it is gone": {
			given: func(c *agenttest.Cluster) {
				c.Delete("configmaps", "shop", "nightly")
				c.Put(planOf(nil))
			},
			fails: queue.ErrConflict,
		},
		"the API server is away": {given: func(c *agenttest.Cluster) { c.Fail(onPlan("patch"), 1) }, fails: errors.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := agenttest.New(t)
			cluster.Put(planOf(nil))
			conn, _ := cluster.Connect()
			w, cm, last := NewWriter(conn.Kube, &agenttest.Events{}), cluster.ConfigMap("shop", "nightly"), &Written{}
			if c.given != nil {
				c.given(cluster)
			}
			err := w.Claim(context.Background(), cm, last, annotations.StatusToldAhead, first)
			if (err != nil) != (c.fails != nil) || errors.Is(c.fails, queue.ErrConflict) != errors.Is(err, queue.ErrConflict) {
				t.Errorf("%v", err)
			}
			if got := written(cluster)[annotations.StatusToldAhead]; got != c.then {
				t.Errorf("%q stands there, want %q", got, c.then)
			}
			if want := map[bool]string{true: first}[err == nil]; AnnouncedAhead(cm, last) != want {
				t.Errorf("it remembers %q, want %q", AnnouncedAhead(cm, last), want)
			}
			if err != nil {
				return
			}
			if err := w.Claim(context.Background(), cm, last, annotations.StatusToldAhead, second); err != nil {
				t.Errorf("on top of its own write, which the watch has not shown: %v", err)
			}
		})
	}
}

func TestWhatWasHandledIsTakenAway(t *testing.T) {
	asked := func() map[string]string {
		return map[string]string{
			annotations.Abort: "run-1", annotations.Actor(annotations.Abort): "jane", annotations.Reason(annotations.Abort): "late", annotations.Pause: "true",
		}
	}
	for name, c := range map[string]struct {
		given func(*agenttest.Cluster)
		then  map[string]string // nil: the plan is gone
		fails error
		any   bool // any error
	}{
		"with who stood behind it": {then: map[string]string{annotations.Pause: "true"}},
		"though somebody wrote on the plan": {
			given: func(c *agenttest.Cluster) {
				c.Before(onPlan("patch"), func() { c.Annotate("shop", "nightly", "team", "blue") })
			}, then: map[string]string{annotations.Pause: "true", "team": "blue"},
		},
		"but not what was asked since": {
			given: func(c *agenttest.Cluster) {
				c.Before(onPlan("patch"), func() { c.Annotate("shop", "nightly", annotations.Abort, "run-2") })
			},
			then: map[string]string{annotations.Abort: "run-2", annotations.Actor(annotations.Abort): "jane", annotations.Reason(annotations.Abort): "late", annotations.Pause: "true"},
		},
		"not from another plan of that name": {
			given: func(c *agenttest.Cluster) {
				c.Before(onPlan("patch"), func() {
					c.Delete("configmaps", "shop", "nightly")
					c.Put(planOf(map[string]string{annotations.Abort: "run-1"}))
				})
			}, then: map[string]string{annotations.Abort: "run-1"},
		},
		"unless the plan is gone": {given: func(c *agenttest.Cluster) { c.Delete("configmaps", "shop", "nightly") }},
		"unless somebody writes all the time": {
			given: func(c *agenttest.Cluster) {
				for i := range 3 {
					c.Before(onPlan("patch"), func() { c.Annotate("shop", "nightly", "team", strings.Repeat("x", i+1)) })
				}
			}, then: with(asked(), "team", "xxx"), fails: queue.ErrConflict,
		},
		"unless the API server is away": {given: func(c *agenttest.Cluster) { c.Fail(onPlan("patch"), 1) }, then: asked(), any: true},
		"unless it cannot be read for now": {given: func(c *agenttest.Cluster) {
			c.Before(onPlan("patch"), func() { c.Annotate("shop", "nightly", "team", "blue") })
			c.Refuse(onPlan("get"), 1, 403, "no")
		}, then: with(asked(), "team", "blue"), any: true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := agenttest.New(t)
			cluster.Put(planOf(asked()))
			conn, _ := cluster.Connect()
			cm := cluster.ConfigMap("shop", "nightly")
			if c.given != nil {
				c.given(cluster)
			}
			_, err := NewWriter(conn.Kube, &agenttest.Events{}).RemoveHandled(context.Background(), cm, map[string]string{annotations.Abort: "run-1"})
			if c.fails != nil && !errors.Is(err, c.fails) || c.fails == nil && (err != nil) != c.any {
				t.Errorf("it said %v", err)
			}
			if c.then == nil {
				return
			}
			if got := written(cluster); !cmp.Equal(got, c.then) {
				t.Error(cmp.Diff(c.then, got))
			}
		})
	}
}

func with(m map[string]string, key, value string) map[string]string {
	m[key] = value
	return m
}

// Of a skip that still has slots to go only the rest stays.
func TestASkipIsShortenedWhereSlotsAreLeft(t *testing.T) {
	for left, want := range map[string]map[string]string{
		"":                     nil,
		"2026-12-02T02:00:00Z": {annotations.Skip: "2026-12-02T02:00:00Z", annotations.Actor(annotations.Skip): "jane"},
	} {
		cluster := agenttest.New(t)
		cluster.Put(planOf(map[string]string{annotations.Skip: "2026-12-01T02:00:00Z,2026-12-02T02:00:00Z", annotations.Actor(annotations.Skip): "jane"}))
		conn, _ := cluster.Connect()
		if err := NewWriter(conn.Kube, &agenttest.Events{}).RemoveIntents(context.Background(), cluster.ConfigMap("shop", "nightly"), map[string]string{annotations.Skip: ""}, left); err != nil {
			t.Fatal(err)
		}
		if got := written(cluster); len(got)+len(want) > 0 && !cmp.Equal(got, want) {
			t.Errorf("left %q: %s", left, cmp.Diff(want, got))
		}
	}
}

// What the agent writes bears its name.
func TestTheAgentWritesUnderItsName(t *testing.T) {
	if got := client.PatchOptions().FieldManager; got != annotations.ManagerAgent {
		t.Errorf("it writes as %q", got)
	}
}

func TestConditionsKeepTheirTimeWhileTheyStand(t *testing.T) {
	then, now := time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC), time.Date(2026, 12, 1, 3, 0, 0, 500, time.UTC)
	was := []metav1.Condition{{Type: "Valid", Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(then)}}
	text, err := json.Marshal(was)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		have   string
		status metav1.ConditionStatus
		at     time.Time
	}{
		"it stands as it was":        {string(text), metav1.ConditionTrue, then},
		"it has changed":             {string(text), metav1.ConditionFalse, now.Truncate(time.Second)},
		"nothing stood there":        {"", metav1.ConditionTrue, now.Truncate(time.Second)},
		"what stood there is broken": {"{", metav1.ConditionTrue, now.Truncate(time.Second)},
	} {
		var got []metav1.Condition
		text := Conditions(c.have, []metav1.Condition{{Type: "Valid", Status: c.status, Reason: "R", Message: "m"}}, now)
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(got) != 1 || !got[0].LastTransitionTime.Time.Equal(c.at) || got[0].Status != c.status {
			t.Errorf("%s: %s, %v; want %s", name, text, err, c.at)
		}
	}
}

func TestTheWordsOfAStatus(t *testing.T) {
	until := time.Date(2026, 12, 1, 6, 0, 0, 0, time.FixedZone("", 3600))
	got := []string{
		VerdictSentence(schedule.Verdict{Permitted: true, Reason: "Permissive", Until: &until}),
		VerdictSentence(schedule.Verdict{Reason: "Restrictive"}),
		Instant(nil), Instant(&until),
	}
	want := []string{"change is permitted until 2026-12-01T05:00:00Z (Permissive)", "change is not permitted (Restrictive)", "", "2026-12-01T05:00:00Z"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if OrNull("") != nil || OrNull("x") != "x" {
		t.Error("an empty value does not take away")
	}
}

// What follows from a verdict is remembered from one write to the next, and what is
// broken is written anew.
func TestABehaviorIsWrittenOnTopOfTheOneBefore(t *testing.T) {
	now := time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC)
	first := Behavior("", schedule.Verdict{Permitted: true, Reason: "Permissive"}, schedule.Permissive, now)
	if !json.Valid([]byte(first)) {
		t.Fatal(first)
	}
	if again := Behavior(first, schedule.Verdict{Permitted: true, Reason: "Permissive"}, schedule.Permissive, now.Add(time.Hour)); again != first {
		t.Errorf("an hour later it is %s, was %s", again, first)
	}
	if anew := Behavior("{", schedule.Verdict{Permitted: true, Reason: "Permissive"}, schedule.Permissive, now); anew != first {
		t.Errorf("written anew it is %s, want %s", anew, first)
	}
	if closed := Behavior(first, schedule.Verdict{Reason: "Restrictive"}, schedule.Restrictive, now.Add(time.Hour)); closed == first {
		t.Error("a closed gate is told as an open one")
	}
}
