package offline_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
)

func TestSimulateShowsWhatTheAgentWouldDecide(t *testing.T) {
	cmdtest.WriteFiles(t, map[string]string{"plans/world.yaml": cmdtest.SimulatedWorld})
	cmdtest.Offline(t, cmd.Run, "", "simulate", "-f", "plans", "-n", "ops", "--to", "24h").Is(t, cmdtest.Printed{Code: 0, Out: `PLAN          LOCAL                      UTC                        RESULT    REASON     STARTED
ops/reports   -                          -                          Ran       create     Sat 2026-11-21 01:00 CET
ops/reports   Sat 2026-11-21 00:00 UTC   Sat 2026-11-21 00:00 UTC   Skipped   busy       -
shop/orders   Sat 2026-11-21 07:00 UTC   Sat 2026-11-21 07:00 UTC   Missed    window     -
ops/reports   Sat 2026-11-21 08:00 UTC   Sat 2026-11-21 08:00 UTC   Skipped   busy       -
ops/reports   Sat 2026-11-21 16:00 UTC   Sat 2026-11-21 16:00 UTC   Ran       schedule   Sat 2026-11-21 16:00 UTC
shop/orders   Sat 2026-11-21 21:00 CET   Sat 2026-11-21 20:00 UTC   Ran       schedule   Sat 2026-11-21 22:00 CET
shop/orders   Sat 2026-11-21 23:00 CET   Sat 2026-11-21 22:00 UTC   Ran       schedule   Sat 2026-11-21 23:00 CET
`, Err: `from Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z) to Sun 2026-11-22 01:00 CET (2026-11-22T00:00:00Z)
note: plan ops/reports: nobody resumes step hold here: it lasts until maxDuration 9h0m0s
4 ran, 2 skipped, 1 missed
`})
}

func TestSimulateForMachines(t *testing.T) {
	cmdtest.WriteFiles(t, map[string]string{"world.yaml": cmdtest.SimulatedWorld})
	got := cmdtest.Offline(t, cmd.Run, "", "simulate", "-f", "world.yaml", "--from", "2026-11-21T19:00:00Z", "--to", "5h", "--outage", "2026-11-21T21:30:00Z/3h", "-o", "json")
	got.Is(t, cmdtest.Printed{Code: 0, Out: cmdtest.JSON(strings.Join([]string{
		`{"apiVersion":"maint.dev/v1alpha1","items":[{"plan":"default/reports","result":"Ran","reason":"create","run":"maint-run-reports-huqiyzt5vb","startedAt":"2026-11-21T19:00:00Z"}`,
		`{"plan":"shop/orders","slot":"2026-11-21T20:00:00Z","result":"Ran","reason":"schedule","run":"maint-run-orders-jfrmrejvfk","startedAt":"2026-11-21T21:00:00Z"}`,
		`{"plan":"shop/orders","slot":"2026-11-21T22:00:00Z","result":"Missed","reason":"deadline"}],"kind":"LedgerList"}`,
	}, ",")), Err: `from Sat 2026-11-21 20:00 CET (2026-11-21T19:00:00Z) to Sun 2026-11-22 01:00 CET (2026-11-22T00:00:00Z)
no agent runs from Sat 2026-11-21 22:30 CET (2026-11-21T21:30:00Z) to Sun 2026-11-22 01:30 CET (2026-11-22T00:30:00Z)
note: plan default/reports: nobody resumes step hold here: it lasts until maxDuration 9h0m0s
`})
	var list struct{ Kind string }
	if err := json.Unmarshal([]byte(got.Out), &list); err != nil || list.Kind != "LedgerList" {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestSimulateObeysPausesAbovePlans(t *testing.T) {
	plan := cmdtest.Manifest("      steps:", "      triggers: {schedules: [{cron: \"0 2 * * *\"}]}\n      steps:", "name: nightly", "name: nightly\n  namespace: shop")
	paused := func(namespace string) string {
		return plan + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + ", annotations: {maint.dev/pause: \"2026-11-22T12:00:00Z\"}}\n"
	}
	for name, c := range map[string]struct {
		text  string
		flags []string
		want  string
	}{
		"its namespace":          {text: paused("shop"), want: "1 ran, 1 skipped, 0 missed\n"},
		"the agent's":            {text: paused("maint-system"), want: "1 ran, 1 skipped, 0 missed\n"},
		"the agent's, elsewhere": {text: paused("tools"), flags: []string{"--agent-namespace", "tools"}, want: "1 ran, 1 skipped, 0 missed\n"},
		"another":                {text: paused("other"), want: "2 ran, 0 skipped, 0 missed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := cmdtest.Offline(t, cmd.Run, c.text, append([]string{"simulate", "-f", "-", "--from", "2026-11-22T00:00:00Z", "--to", "2d"}, c.flags...)...)
			if got.Code != 0 || !strings.HasSuffix(got.Err, "\n"+c.want) {
				t.Errorf("%d\n%s%s", got.Code, got.Out, got.Err)
			}
		})
	}
}

func TestSimulateOfNothing(t *testing.T) {
	cmdtest.WriteFiles(t, map[string]string{"policy.yaml": strings.Split(cmdtest.SimulatedWorld, "---\n")[1], "f.yaml": cmdtest.Manifest()})
	const span = "from Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z) to Sat 2026-11-28 01:00 CET (2026-11-28T00:00:00Z)\n"
	cmdtest.Offline(t, cmd.Run, "", "simulate", "-f", "policy.yaml").Is(t, cmdtest.Printed{Code: 0, Out: "", Err: "warning: no plan was found in policy.yaml\n" + span + "no slot lies between\n"})
	cmdtest.Offline(t, cmd.Run, "", "simulate", "-f", "policy.yaml", "-o", "json").Is(t, cmdtest.Printed{Code: 0, Out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[],"kind":"LedgerList"}`), Err: "warning: no plan was found in policy.yaml\n" + span})
}

func TestSimulateRefuses(t *testing.T) {
	cmdtest.WriteFiles(t, map[string]string{"a/f.yaml": cmdtest.Manifest(), "b/f.yaml": cmdtest.Manifest(), "bad.yaml": cmdtest.Manifest("suspend", "suspnd")})
	for _, c := range []struct {
		name string
		args []string
		code int
		err  string
	}{
		{"all that is wrong", []string{"--from", "soon", "--outage", "now", "-o", "xml"}, 2, "error: --from: \"soon\" is no time: " + instant.Forms + "\nerror: --outage \"now\": write it FROM/TO\nerror: -f is missing: name a file or folder, or - for standard input\nerror: -o must be json, yaml, name, jsonpath=…, custom-columns=… or go-template=…, is \"xml\"\n"},
		{"an interval of nothing", []string{"-f", "a", "--to", "now"}, 2, "error: --to Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z) is not after --from Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z)\n"},
		{"an outage that ends first", []string{"-f", "a", "--outage", "2h/2026-11-21T01:00:00Z"}, 2, "error: --outage ends at Sat 2026-11-21 02:00 CET (2026-11-21T01:00:00Z), which is not after its beginning Sat 2026-11-21 03:00 CET (2026-11-21T02:00:00Z)\n"},
		{"one name twice", []string{"-f", "a,b"}, 1, "error: plan default/nightly stands in a/f.yaml and in b/f.yaml: a cluster can have only one\n"},
		{"faults", []string{"-f", "bad.yaml"}, 1, "error: bad.yaml:14: spec.steps[0].type: unknown step type \"suspnd\"; did you mean \"suspend\"?\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmdtest.Offline(t, cmd.Run, "", append([]string{"simulate"}, c.args...)...).Is(t, cmdtest.Printed{Code: c.code, Out: "", Err: c.err})
		})
	}
}

func TestSimulateOfSleep(t *testing.T) {
	cmdtest.WriteFiles(t, map[string]string{
		"f.yaml":     cmdtest.SleeperOf("nights", "maint.dev/skip: '2026-11-22T23:00:00Z'", sleepsAtNight) + cmdtest.SleeperOf("tries", "", sleepsAtNight+", dryRun: true"),
		"twice.yaml": cmdtest.SleeperOf("nights", "", sleepsAtNight) + cmdtest.SleeperOf("nights", "", sleepsAtNight),
	})
	const times = "from Sat 2026-11-21 13:00 CET (2026-11-21T12:00:00Z) to Mon 2026-11-23 13:00 CET (2026-11-23T12:00:00Z)\n"
	const rehearses = "note: plan shop/tries is a dry run (spec.dryRun): nothing is put to sleep\n"
	span := []string{"--from", "2026-11-21T12:00:00Z", "--to", "2026-11-23T12:00:00Z"}
	for _, c := range []struct {
		args []string
		want cmdtest.Printed
	}{
		{[]string{"simulate", "-f", "f.yaml"}, cmdtest.Printed{
			Out: "PLAN          LOCAL                      UTC                        RESULT    REASON     STARTED                    WOKEN\nshop/nights   Sat 2026-11-21 18:00 EST   Sat 2026-11-21 23:00 UTC   Ran       schedule   Sat 2026-11-21 18:00 EST   Sun 2026-11-22 06:00 EST\nshop/nights   Sun 2026-11-22 18:00 EST   Sun 2026-11-22 23:00 UTC   Skipped   skip       -                          -\n",
			Err: rehearses + times + "1 ran, 1 skipped, 0 missed\n",
		}},
		{[]string{"simulate", "-f", "f.yaml", "-o", "json"}, cmdtest.Printed{
			Out: cmdtest.JSON(`{"apiVersion":"maint.dev/v1alpha1","items":[{"plan":"shop/nights","slot":"2026-11-21T23:00:00Z","result":"Ran","reason":"schedule","startedAt":"2026-11-21T23:00:00Z","wokenAt":"2026-11-22T11:00:00Z"},{"plan":"shop/nights","slot":"2026-11-22T23:00:00Z","result":"Skipped","reason":"skip"}],"kind":"LedgerList"}`),
			Err: rehearses + times,
		}},
		{[]string{"simulate", "-f", "twice.yaml"}, cmdtest.Printed{Code: 1, Err: "error: plan shop/nights stands in twice.yaml and in twice.yaml: a cluster can have only one\n"}},
	} {
		cmdtest.Offline(t, cmd.Run, "", append(c.args, span...)...).Is(t, c.want)
	}
}

func TestSimulateNamesAPolicyThatIsNotReady(t *testing.T) {
	cmdtest.WriteFiles(t, map[string]string{"plan.yaml": cmdtest.PlanOf("orders", "", "triggers: {schedules: [{cron: '0 2 * * *'}]}, policies: [{name: weekends}]")})
	for _, format := range [][]string{nil, {"-o", "json"}} {
		got := cmdtest.Offline(t, cmd.Run, "", append([]string{"simulate", "-f", "plan.yaml", "--to", "2d"}, format...)...)
		if want := "warning: plan shop/orders: policy weekends: not ready: no file that was given holds it; give that, too, with -f\n"; got.Code != 0 || !strings.Contains(got.Err, want) {
			t.Errorf("%v: standard error lacks %q: %+v", format, want, got)
		}
	}
}
