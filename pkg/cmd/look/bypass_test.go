package look_test

import (
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

// Who lets a plan pass its policies, and why, stands wherever that is seen.
func TestABypassIsSaidWithItsActorAndReason(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Policy("shut", "{strategy: Restrictive}"),
		cmdtest.Plan("orders", "policies: [{name: shut}], triggers: {schedules: [{cron: '0 2 * * *'}]}", young, cmdtest.Noting(annotations.Bypass, "2026-11-22T06:00:00Z: CHG-7", annotations.Actor(annotations.Bypass), "jane")))
	for _, line := range []string{"check orders", "status orders", "next orders --count 3", "why orders"} {
		got := o.Line(line)
		if want := "bypass until Sun 2026-11-22 06:00 UTC by jane (unverified): CHG-7"; !strings.Contains(got.Out, want) {
			t.Errorf("%s does not say %q:\n%s%s", line, want, got.Out, got.Err)
		}
	}
}

func TestAnAllowIsSaidWhereItLetsAPlanRun(t *testing.T) {
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Policy("shut", "{strategy: Restrictive}"),
		cmdtest.Plan("orders", "policies: [{name: shut}], triggers: {schedules: [{cron: '0 2 * * *'}]}", young, cmdtest.Noting(annotations.ChangeStrategy, "PermissiveUntil", annotations.PermissiveUntil, "2026-11-21T06:00:00Z", annotations.Actor(annotations.ChangeStrategy), "jane", annotations.Reason(annotations.ChangeStrategy), "CHG-8")))
	for line, want := range map[string]string{
		"why orders":            "nothing is in the way\nchange is permitted: PermissiveUntil Sat 2026-11-21 06:00 UTC by jane (unverified): CHG-8\n",
		"next orders --count 1": "permitted: PermissiveUntil Sat 2026-11-21 06:00 UTC by jane (unverified): CHG-8\n",
	} {
		if got := o.Line(line); got.Code != 0 || !strings.Contains(got.Out, want) {
			t.Errorf("%s does not say %q:\n%s%s", line, want, got.Out, got.Err)
		}
	}
}

// Who may not read a plan's policies is not told that they are broken, where it is only not
// known what they say.
func TestWhatNobodySaidOfASlotIsNotKnown(t *testing.T) {
	plan := cmdtest.Plan("orders", "policies: [{name: quiet, namespace: maint-system}], triggers: {schedules: [{cron: '0 2 * * *'}]}", young)
	plan.Annotations = map[string]string{
		annotations.StatusObserved: annotations.Observed(plan),
		annotations.StatusBehavior: `{"current":{"state":"ChangesUnpaused","reason":"policy quiet: in a window","endTime":"2026-11-21T04:00:00Z"}}`,
	}
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), plan)
	o.Forbids("list", "configmaps", "maint-system")
	got := o.Line("next orders --count 2")
	rows := strings.Split(strings.TrimSpace(got.Out), "\n")
	if len(rows) != 3 || !strings.HasSuffix(rows[1], " -") || !strings.HasSuffix(rows[2], " not known whether change is permitted then: you may not read what decides it, and the agent published nothing") {
		t.Errorf("%+v", got)
	}
}
