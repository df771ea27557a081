package look_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

const silence = "warning: the agent in namespace maint-system last showed itself 48h0m0s ago"

// What an agent said before it fell silent is not given as present without saying so.
func TestReadsWarnOfASilentAgent(t *testing.T) {
	silent := cmdtest.Agent()
	silent.Data["heartbeat"] = "2026-11-19T00:00:00Z"
	world := objects(silent, cmdtest.Namespace("shop"), cmdtest.Node("a"), seen("orders", daily, annotations.StatusNextRun, "2026-11-19T01:00:00Z"), policed("night", "{strategy: Restrictive}"), live())
	for _, line := range []string{
		"list", "list policies", "list calendars", "list runs", "list requests", "list -o name", "list policies -o json",
		"describe orders", "describe orders night maint-run-orders-a", "describe night", "describe maint-run-orders-a", "describe orders -o json", "describe night -o json",
		"check orders", "check night", "check a", "why night", "history orders", "history -A", "report", "savings", "next orders", "calendar", "status orders -o json",
	} {
		o := cmdtest.NewCluster(t, cmd.Run, world...)
		if got := o.Line(line); strings.Count(got.Err, silence) != 1 || strings.Contains(got.Out, "last showed itself") {
			t.Errorf("%s: exit code %d, standard error %q, standard output %q", line, got.Code, got.Err, got.Out)
		}
	}
	o := cmdtest.NewCluster(t, cmd.Run, world...)
	if got := o.Line("check orders -q"); got.Out+got.Err != "" {
		t.Errorf("%+v", got)
	}
}

// Whoever may not read the heartbeat is not told that nobody knows: next does not say so either.
func TestReadsOfWhoeverMayNotReadTheHeartbeat(t *testing.T) {
	for _, line := range []string{"list", "list policies", "describe orders", "describe night", "check night", "why night", "history orders"} {
		o := cmdtest.NewCluster(t, cmd.Run, objects(cmdtest.Agent(), cmdtest.Namespace("shop"), seen("orders", daily), policed("night", "{strategy: Permissive}"))...)
		o.Forbids("get", "configmaps", "maint-system")
		if got := o.Line(line); got.Code != 0 || strings.Contains(got.Err, "warning") {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// The agent's word of another version of a policy, or of a time that is over, is no word of now.
func TestListLeavesOutWhatIsNoLongerSo(t *testing.T) {
	edited := policed("night", "{strategy: Permissive}")
	edited.Data[annotations.DataPolicy] = cmdtest.Policy("night", "{strategy: Restrictive}").Data[annotations.DataPolicy]
	over := policed("night", "{strategy: Permissive}")
	over.Annotations[annotations.StatusBehavior] = `{"current":{"state":"ChangesUnpaused","endTime":"2026-11-21T00:00:00Z"}}`
	const nothing = "   <none>   <none>   True   <unknown>\n"
	const said = "list policies -o 'jsonpath={.items[0].status.permitted}:{.items[0].status.behavior}'"
	runRows(t, []row{
		{name: "a policy that was edited", line: "list policies --no-headers", world: objects(edited), out: "night   Restrictive" + nothing},
		{name: "a policy that was edited, for a script", line: said, world: objects(edited), out: ":"},
		{name: "a window that is over", line: "list policies --no-headers", world: objects(over), out: "night   Permissive" + nothing},
		{name: "a slot that is past", line: "list --no-headers", world: objects(seen("orders", daily, annotations.StatusNextRun, "2026-11-19T01:00:00Z")), out: "orders   Plan   Idle   <none>   <none>   2d\n"},
		{name: "a slot that is due", line: "list --no-headers", world: objects(seen("orders", daily, annotations.StatusNextRun, "2026-11-21T00:00:00Z")), out: "orders   Plan   Idle   Sat 2026-11-21 01:00 CET   <none>   2d\n"},
	})
}

// What a read costs: the heartbeat is read once.
func TestTheHeartbeatIsReadOnce(t *testing.T) {
	for _, line := range []string{"list", "describe orders night", "check orders", "history orders", "report"} {
		o := cmdtest.NewCluster(t, cmd.Run, objects(cmdtest.Agent(), cmdtest.Namespace("shop"), seen("orders", daily), policed("night", "{strategy: Permissive}"))...)
		o.Line(line)
		if n := o.Asked("get", "configmaps", annotations.HeartbeatName); n != 1 {
			t.Errorf("%s: it was read %d times", line, n)
		}
	}
}

func TestCheckInANamespaceThatIsBeingDeleted(t *testing.T) {
	going := cmdtest.Namespace("shop")
	going.DeletionTimestamp, going.Finalizers = new(metav1.NewTime(cmdtest.Now())), []string{"kubernetes"}
	world := objects(going, seen("orders", daily), policed("night", "{strategy: Permissive}"))
	const warns = "warning: the namespace is being deleted, so that nothing begins in it; the answer is of what else decides over "
	runRows(t, []row{
		{name: "a plan", line: "check orders", world: world, out: "plan/orders: change is permitted (no strategy is set)\nuntil somebody changes it\n", err: warns + "plan/orders\n"},
		{name: "a policy", line: "check night", world: world, out: "policy/night: change is permitted (Permissive)\nuntil somebody changes it\n", err: warns + "policy/night\n"},
		{name: "nothing is printed", line: "check orders -q", world: world},
	})
}

// A slot of which nobody knows whether it starts is not drawn as one that does not.
func TestTheCalendarOfASlotOfWhichNobodyKnows(t *testing.T) {
	const unknown = "not known whether change is permitted then: what decides it may not be read here, and the agent has not said"
	frozen := seen("orders", "policies: [{name: weekly, namespace: maint-system}], triggers: {schedules: [{cron: '0 3 * * *', timezone: UTC}]}",
		annotations.StatusBehavior, `{"current":{"state":"ChangesPaused","reason":"policy weekly: RestrictiveUntil 2026-11-22T00:00:00Z by jane","endTime":"2026-11-22T00:00:00Z"}}`)
	unsaid := frozen.DeepCopy()
	delete(unsaid.Annotations, annotations.StatusBehavior)
	for name, c := range map[string]struct {
		plan  *corev1.ConfigMap
		known string // of the slot on the 21st
		idle  int
	}{
		"the agent has said up to when it is frozen": {frozen, "not permitted then: policy weekly: RestrictiveUntil", 1},
		"the agent has not said":                     {unsaid, unknown, 0},
	} {
		o := cmdtest.NewCluster(t, cmd.Run, objects(cmdtest.Agent(), cmdtest.Namespace("shop"), c.plan)...)
		o.Forbids("list", "configmaps", "maint-system")
		const span = " --from 2026-11-21 --to 2026-11-23 --timezone UTC"
		rows := strings.Split(strings.TrimSpace(o.Line("calendar"+span).Out), "\n")
		rows = slices.DeleteFunc(rows, func(row string) bool { return !strings.Contains(row, " slot ") })
		if len(rows) != 2 || !strings.Contains(rows[0], c.known) || !strings.HasSuffix(rows[1], " "+unknown) {
			t.Errorf("%s: %q", name, rows)
		}
		if next := o.Line("next orders --count 2").Out; strings.Count(next, unknown) != 2-c.idle {
			t.Errorf("%s: next is\n%s", name, next)
		}
		for format, idle := range map[string]string{"json": `"idle": true`, "svg": "<title>idle slot of ", "html": "<title>idle slot of ", "ics": "(does not start)"} {
			got := o.Line("calendar" + span + " -o " + format)
			if strings.Count(got.Out, idle) != c.idle || !strings.Contains(strings.ReplaceAll(got.Out, "\r\n ", ""), "not known whether change is permitted then: what decides it may not be read here") && format != "ics" {
				t.Errorf("%s: %s has %d of %q\n%s", name, format, strings.Count(got.Out, idle), idle, got.Err)
			}
		}
	}
}
