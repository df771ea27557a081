package look_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

const silence = "warning: the agent in namespace maint-system was last seen 48h0m0s ago"

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
		if got := o.Line(line); strings.Count(got.Err, silence) != 1 || strings.Contains(got.Out, "was last seen") {
			t.Errorf("%s: exit code %d, standard error %q, standard output %q", line, got.Code, got.Err, got.Out)
		}
	}
	for _, line := range []string{"status", "status orders", "status maint-run-orders-a", "why orders", "why a", "why maint-run-orders-a", "why orders -o json"} { // whose answer says so, too
		o := cmdtest.NewCluster(t, cmd.Run, world...)
		if got := o.Line(line); strings.Count(got.Err, silence) != 1 || strings.Count(got.Out, "was last seen") != 1 {
			t.Errorf("%s: exit code %d, standard error %q, standard output %q", line, got.Code, got.Err, got.Out)
		}
	}
	for _, line := range []string{"logs maint-run-orders-a", "restore list", "restore list -o name", "restore show night", "drain a --plan", "drain a --plan -o json"} {
		o := cmdtest.NewCluster(t, cmd.Run, world...)
		if got := o.Line(line); strings.Count(got.Err, silence) != 1 || strings.Contains(got.Out, "was last seen") {
			t.Errorf("%s: exit code %d, standard error %q, standard output %q", line, got.Code, got.Err, got.Out)
		}
	}
	o := cmdtest.NewCluster(t, cmd.Run, world...)
	if got := o.Line("check orders -q"); got.Out+got.Err != "" {
		t.Errorf("%+v", got)
	}
}

// What was paused since the agent fell silent is listed as paused, as status has it.
func TestListShowsWhatWasPausedWhileNoAgentIsAtWork(t *testing.T) {
	silent := cmdtest.Agent()
	silent.Data["heartbeat"] = "2026-11-19T00:00:00Z"
	orders, office := seen("orders", daily, annotations.Pause, "true", annotations.StatusNextRun, "2026-11-21T01:00:00Z"), cmdtest.Sleeper("office", "schedule: {timezone: UTC, offHours: [{start: '04:00', end: '05:00'}]}", cmdtest.Noting(annotations.Pause, "true", annotations.StatusPhase, "Active"))
	for line, want := range map[string][]string{
		"list":           {"orders Plan Paused", "office HibernatePlan Suspended"},
		"list -o json":   {`"phase":"Paused"`, `"phase":"Suspended"`},
		"status -o json": {`"phase":"Paused"`, `"phase":"Suspended"`},
	} {
		got := cmdtest.NewCluster(t, cmd.Run, objects(silent, cmdtest.Namespace("shop"), orders, office)...).Line(line)
		flat := strings.ReplaceAll(strings.Join(strings.Fields(got.Out), " "), `": "`, `":"`)
		if strings.Contains(got.Out, "2026-11-21") {
			t.Errorf("%s: it says when what is paused begins: %s", line, got.Out)
		}
		for _, one := range want {
			if !strings.Contains(flat, one) {
				t.Errorf("%s: without %s: %s", line, one, got.Out)
			}
		}
	}
}

// On a terminal standard output and standard error are one place to a person.
func TestStatusOnATerminalWarnsOnTheScreenAlone(t *testing.T) {
	silent := cmdtest.Agent()
	silent.Data["heartbeat"] = "2026-11-19T00:00:00Z"
	o := cmdtest.NewCluster(t, cmd.Run, silent, cmdtest.Namespace("shop"), cmdtest.Plan("orders", daily))
	var out, errOut bytes.Buffer
	env := factory.Env{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}, Name: "kubectl maint", Now: cmdtest.Now, Zone: "Europe/Berlin", OutTerminal: true}
	code := cmd.Run(t.Context(), factory.NewFor(env, o.Connected()), []string{"status"})
	if code != 0 || errOut.Len() > 0 || strings.Count(out.String(), "was last seen") != 1 {
		t.Errorf("exit code %d, standard error %q, standard output %q", code, errOut.String(), out.String())
	}
}

// Reads end as they would with an agent that lives.
func TestTheSilenceOfTheAgentChangesNoExitCode(t *testing.T) {
	for _, line := range []string{"status", "list", "list runs", "next orders", "check orders", "check night", "history orders", "describe orders", "why orders", "why orders -o json", "why a", "why a -o name", "why office", "why office -o yaml", "why night", "why shut", "calendar", "logs maint-run-orders-a", "restore list"} {
		code := map[bool]int{}
		for _, silent := range []bool{false, true} {
			agent := cmdtest.Agent()
			if silent {
				agent.Data["heartbeat"] = "2026-11-19T00:00:00Z"
			}
			office := cmdtest.Sleeper("office", "schedule: {timezone: UTC, offHours: [{start: '20:00', end: '21:00'}]}")
			shut := seen("shut", daily+", policies: [{name: night}]")
			o := cmdtest.NewCluster(t, cmd.Run, objects(agent, cmdtest.Namespace("shop"), cmdtest.Node("a"), seen("orders", daily), shut, office, policed("night", "{strategy: Restrictive}"), ended("maint-run-orders-a", run.Succeeded, time.Hour))...)
			code[silent] = o.Line(line).Code
		}
		if code[true] != code[false] {
			t.Errorf("%s: exit code %d with a silent agent, %d with one that lives", line, code[true], code[false])
		}
	}
}

// An agent that was there and shows itself in no way that counts is silent, too.
func TestReadsWarnOfAnAgentThatShowsItselfInNoWay(t *testing.T) {
	beating := func(beat string) runtime.Object {
		cm := cmdtest.Agent()
		cm.Data["heartbeat"] = beat
		return cm
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "maint-system", Name: annotations.LeaseName}}
	deployed := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "maint-system", Name: annotations.AgentName, Labels: map[string]string{"app.kubernetes.io/name": annotations.AgentName}}}
	for name, c := range map[string]struct {
		there []runtime.Object
		warns string
	}{
		"a heartbeat that cannot be read":    {objects(beating("never")), "warning: the heartbeat of the agent in namespace maint-system cannot be read\n"},
		"a heartbeat of a time to come":      {objects(beating("2026-11-21T00:02:00Z")), "warning: the heartbeat of the agent in namespace maint-system is in the future ("},
		"a heartbeat that was deleted":       {objects(deployed), "warning: the agent in namespace maint-system is installed, but sends no heartbeat: "},
		"nothing but the Lease that it held": {objects(lease), "warning: no agent runs in namespace maint-system: "},
		"nothing: there never was one":       {nil, ""},
	} {
		for _, line := range []string{"list", "next orders", "check orders", "history orders", "describe orders", "why orders", "status", "status orders", "logs maint-run-orders-a", "logs maint-run-orders-a -f", "restore list", "report", "calendar"} {
			world := append(objects(cmdtest.Namespace("shop"), seen("orders", daily), ended("maint-run-orders-a", run.Succeeded, time.Hour)), c.there...)
			got := cmdtest.NewCluster(t, cmd.Run, world...).Line(line)
			if n := strings.Count(got.Err, "warning: "); c.warns == "" && n > 0 || c.warns != "" && (n != 1 || !strings.Contains(got.Err, c.warns)) {
				t.Errorf("%s: %s: standard error is %q", name, line, got.Err)
			}
		}
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
	const warns = "warning: the namespace is being deleted, so nothing begins in it; apart from that, this is the answer for "
	runRows(t, []row{
		{name: "a plan", line: "check orders", world: world, out: "plan/orders: change is permitted (no strategy is set)\nuntil somebody changes it\n", err: warns + "plan/orders\n"},
		{name: "a policy", line: "check night", world: world, out: "policy/night: change is permitted (Permissive)\nuntil somebody changes it\n", err: warns + "policy/night\n"},
		{name: "nothing is printed", line: "check orders -q", world: world},
	})
}

// A slot of which nobody knows whether it starts is not drawn as one that does not.
func TestTheCalendarOfASlotOfWhichNobodyKnows(t *testing.T) {
	const unknown = "not known whether change is permitted then: you may not read what decides it, and the agent published nothing"
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
			if strings.Count(got.Out, idle) != c.idle || !strings.Contains(strings.ReplaceAll(got.Out, "\r\n ", ""), "not known whether change is permitted then: you may not read what decides it") && format != "ics" {
				t.Errorf("%s: %s has %d of %q\n%s", name, format, strings.Count(got.Out, idle), idle, got.Err)
			}
		}
	}
}

// An agent that watches one namespace is missing in the others alone, wherever the command is.
func TestReadsOfAllNamespacesSayOnceWhatAnAgentOfOneNamespaceWatches(t *testing.T) {
	for watched, want := range map[string][]string{
		"shop": {"NAMESPACE NAME KIND PHASE", "shop orders Plan Idle", "team orders Plan Paused"},
		"team": {"NAMESPACE NAME KIND PHASE", "shop orders Plan Paused", "team orders Plan Idle"},
	} {
		others := "the agent in namespace maint-system watches only namespace " + watched + ", and nothing acts in the others: it watches all after 'kubectl maint install --apply --namespace maint-system --single-namespace=false'"
		agent := cmdtest.Agent()
		agent.Data[annotations.HeartbeatWatches] = watched
		in := func(namespace string) *corev1.ConfigMap {
			cm := seen("orders", daily, annotations.Pause, "true", annotations.StatusPhase, "Idle", annotations.StatusNextRun, "2026-11-21T01:00:00Z")
			cm.Namespace = namespace
			return cm
		}
		world := objects(agent, cmdtest.Namespace("shop"), cmdtest.Namespace("team"), in("shop"), in("team"))
		for _, line := range []string{"list -A", "status -A", "status -A -o json", "calendar -A", "history -A", "report -A", "savings -A", "restore list -A"} {
			got := cmdtest.NewCluster(t, cmd.Run, world...).Line(line)
			if strings.Count(got.Err, others) != 1 || strings.Contains(got.Err+got.Out, "nothing acts in namespace") {
				t.Errorf("it watches %s, %s: standard error %q, standard output %q", watched, line, got.Err, got.Out)
			}
		}
		var phases []string
		for line := range strings.Lines(cmdtest.NewCluster(t, cmd.Run, world...).Line("list -A").Out) {
			phases = append(phases, strings.Join(strings.Fields(line)[:4], " "))
		}
		if !slices.Equal(phases, want) {
			t.Errorf("it watches %s: %q, want %q", watched, phases, want)
		}
	}
}
