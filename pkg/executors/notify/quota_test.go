package notify

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func TestANamespaceSendsASinkSoManyMessages(t *testing.T) {
	d := newDesk(t, nil)
	n := New()
	send := func(namespace, sink string, at time.Duration) executors.Outcome {
		call := callFor(&plan.NotificationProperties{Message: "again", Sinks: []string{sink}}, map[string]string{"ops": d.sink("/ops"), "chat": d.sink("/chat")})
		call.Plan.Namespace, call.Now = namespace, call.Now.Add(at)
		return run(t, n, &call)
	}
	for i := range quotaAtOnce {
		if out := send("shop", "ops", 0); out.State != executors.Done {
			t.Fatalf("message %d: %+v", i, out)
		}
	}
	out := send("shop", "ops", 10*time.Second)
	if out.State != executors.NotYet || out.Reason != "Quota" || out.Message != "sink ops: namespace shop has sent 20 messages; the next may go in 20s" {
		t.Errorf("one more: %+v", out)
	}
	if wait := out.WakeAt.Sub(callFor(nil, nil).Now); wait != quotaEvery {
		t.Errorf("looks again after %s", wait)
	}
	for _, other := range [][2]string{{"shop", "chat"}, {"market", "ops"}} {
		if out := send(other[0], other[1], 10*time.Second); out.State != executors.Done {
			t.Errorf("%v has to wait, too: %+v", other, out)
		}
	}
	if out := send("shop", "ops", quotaEvery); out.State != executors.Done {
		t.Errorf("half a minute later: %+v", out)
	}
	if out := send("shop", "ops", quotaEvery); out.State != executors.NotYet {
		t.Errorf("and once more: %+v", out)
	}
	if got := len(d.received()); got != quotaAtOnce+3 {
		t.Errorf("%d messages arrived", got)
	}
}

// What the agent itself says of a namespace waits behind nothing that its steps send, and is no more than
// they may send. What it says of nodes has no quota.
func TestTheAgentsOwnMessagesHaveAQuotaOfTheirOwn(t *testing.T) {
	d := newDesk(t, nil)
	n := New()
	send := func(namespace string, own bool, at time.Duration) executors.Outcome {
		call := callFor(&plan.NotificationProperties{Message: "again", Sinks: []string{"ops"}}, map[string]string{"ops": d.sink("/ops")})
		call.Plan.Namespace, call.Own, call.Now = namespace, own, call.Now.Add(at)
		return run(t, n, &call)
	}
	for _, own := range []bool{false, true} {
		for i := range quotaAtOnce {
			if out := send("shop", own, 0); out.State != executors.Done {
				t.Fatalf("message %d, the agent's own %t: %+v", i, own, out)
			}
		}
	}
	for i := range quotaAtOnce + 1 {
		if out := send("", true, 0); out.State != executors.Done {
			t.Fatalf("the agent's message %d of nodes: %+v", i, out)
		}
	}
	if out := send("shop", true, 10*time.Second); out.State != executors.NotYet || out.Reason != "Quota" || out.Message != "sink ops: the agent has sent 20 messages about namespace shop; the next may go in 20s" {
		t.Errorf("one more of the agent: %+v", out)
	}
	if out := send("shop", false, 0); out.State != executors.NotYet || out.Reason != "Quota" {
		t.Errorf("one more of a step: %+v", out)
	}
	for _, own := range []bool{false, true} {
		if out := send("market", own, 0); out.State != executors.Done {
			t.Errorf("one of another namespace: %+v", out)
		}
	}
	if out := send("shop", true, quotaEvery); out.State != executors.Done {
		t.Errorf("half a minute later: %+v", out)
	}
}

func TestWhoHasNotSentForLongIsForgotten(t *testing.T) {
	q, now := newQuota(), time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	for i := range quotaKept {
		q.take(fmt.Sprintf("ns-%d", i), "ops", now)
	}
	for range quotaAtOnce {
		q.take("busy", "ops", now.Add(quotaEvery))
	}
	if len(q.left) != 1 {
		t.Errorf("%d are remembered", len(q.left))
	}
	if q.take("busy", "ops", now.Add(quotaEvery)) == 0 {
		t.Error("who has sent all forgot it")
	}
}
