package trigger_test

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

func room(runs int) edit {
	return func(f *trigger.Facts) { f.Quota = &trigger.RunQuota{Runs: runs, Full: "no room"} }
}

func TestWhatThereIsNoRoomForWaits(t *testing.T) {
	hourly := scheduled("0 * * * *")
	allow := policy(plan.Allow)
	refused := func(r run.Request) edit {
		return ledgerWith(func(l *ledger.Ledger) {
			*l = l.Claim(coretest.NameOf(r), r, "").Refuse(coretest.NameOf(r), "exceeded quota: few")
		})
	}
	pausedForever := coretest.Paused(schedule.Pause{On: true})
	check(t, []decideCase{
		{"a trigger", coretest.Facts("01:30", token("t"), room(0)), nil},
		{"a trigger, with room", coretest.Facts("01:30", token("t"), room(1)), []string{"claim token t"}},
		{"a slot", coretest.Facts("02:04", hourly, at("01:00"), deadline("5m"), room(0)), nil},
		{"a slot, with room", coretest.Facts("02:04", hourly, at("01:00"), deadline("5m"), room(1)), []string{"claim slot 02:00"}},
		{"a slot after its deadline", coretest.Facts("02:06", hourly, at("01:00"), deadline("5m"), room(0)), []string{"02:00 Missed(not-ready)"}},
		{"a slot that is paused", coretest.Facts("02:00", hourly, at("01:00"), pausedForever, room(0)), []string{"02:00 Skipped(paused)"}},
		{"a slot that is skipped", coretest.Facts("02:00", hourly, at("01:00"), coretest.Skip(intent.Skip{All: true}), room(0)), []string{"02:00 Skipped(skip)"}},
		{"a slot beside a run of a plan that forbids it", coretest.Facts("02:00", hourly, at("01:00"), running("01:00"), room(0)), []string{"02:00 Skipped(busy)"}},
		{"an older slot, where a newer one could start", coretest.Facts("03:00", hourly, at("01:00"), deadline("3h"), room(0)), []string{"02:00 Missed(superseded)"}},
		{"overdue slots, as many as there is room for", coretest.Facts("04:00", hourly, at("01:00"), allow, catchUp(plan.CatchUpAll), deadline("6h"), room(2)), []string{"claim slot 02:00", "claim slot 03:00"}},
		{"a trigger before a slot", coretest.Facts("02:00", hourly, at("01:00"), allow, token("t"), room(1)), []string{"claim token t"}},
		{"a run that would take the place of another", coretest.Facts("02:00", hourly, at("01:00"), policy(plan.Replace), running("01:00"), room(0)), nil},
		{"a run at creation", coretest.Facts("01:30", ledgerWith(func(l *ledger.Ledger) { l.Created = false }), func(f *trigger.Facts) { f.Plan.Spec.Triggers.OnCreate = true }, room(0)), nil},
	})
	for name, c := range map[string]struct {
		f            trigger.Facts
		phase        trigger.Phase
		message, due string
		overQuota    bool
	}{
		"a trigger": {f: coretest.Facts("01:30", token("t"), room(0)), phase: trigger.PhaseWaiting, message: "the trigger waits: no room", overQuota: true},
		"a trigger beside a run": {
			f: coretest.Facts("01:30", token("t"), allow, running("01:00"), room(0)), phase: trigger.PhaseRunning, overQuota: true,
			message: "run " + coretest.NameOf(coretest.SlotAt("01:00")) + " is at work; the trigger waits: no room",
		},
		"a slot": {f: coretest.Facts("02:04", hourly, at("01:00"), deadline("5m"), room(0)), phase: trigger.PhaseWaiting, message: "the slot 2026-12-05T02:00:00Z waits: no room", due: "no room", overQuota: true},
		"a claim that the API server refused": {
			f: coretest.Facts("01:30", refused(run.Request{Kind: run.ByToken, Token: "a", At: coretest.Clock("00:30")}), room(0)), phase: trigger.PhaseWaiting, message: "the trigger waits: no room", overQuota: true,
		},
		"nothing": {f: coretest.Facts("01:30", room(0)), phase: trigger.PhaseIdle, message: "waits to be triggered: 'kubectl maint -n shop trigger orders'"},
	} {
		t.Run("what is said of "+name, func(t *testing.T) {
			d := trigger.Decide(c.f)
			due := ""
			if d.Status.Due != nil {
				due = d.Status.Due.Why
			}
			if d.Status.Phase != c.phase || d.Status.Message != c.message || due != c.due || d.Status.OverQuota != c.overQuota || d.Status.Refused != "" {
				t.Errorf("%s: %q, due %q, refused %q", d.Status.Phase, d.Status.Message, due, d.Status.Refused)
			}
			if ready := d.Status.Ready; ready.OK == c.overQuota || c.overQuota && ready.Message != "no room" {
				t.Errorf("ready is %+v", ready)
			}
		})
	}
}
