package cmd

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

// With a zone that there is not, times are in UTC, and that is said; nothing is asked for by one.
func TestAZoneOfTheUserThatThereIsNot(t *testing.T) {
	const warning = `warning: times are shown in UTC: your time zone "Mars/Base" is not a time zone of the IANA database`
	for _, c := range []struct {
		line   string
		code   int
		warned int
		out    string
	}{
		{line: "list", warned: 1},
		{line: "list -o name", warned: 1},
		{line: "pause orders --until 2h", warned: 1, out: "plan/orders paused until Sat 2026-11-21 02:00 UTC (2026-11-21T02:00:00Z)\n"},
		{line: "pause orders --until 08:00", code: exit.CodeUsage, warned: 1},
		{line: "pause orders --until 08:00 --timezone Europe/Berlin", warned: 1, out: "plan/orders paused until Sat 2026-11-21 08:00 CET (2026-11-21T07:00:00Z)\n"},
		{line: "pause weekly --until 'sat 02:00'", warned: 1, out: "plan/weekly paused until Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z)\n"},
		{line: "check orders -q"},
		{line: "completion bash"},
		{line: "explain plan"},
		{line: "__complete describe ord"},
		{line: "__completeNoDesc describe ord"},
	} {
		o := cmdtest.NewCluster(t, Run, cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Plan("orders", ""), cmdtest.Plan("weekly", "triggers: {schedules: [{cron: '0 2 * * 6', timezone: America/New_York}]}"))
		var out, errOut bytes.Buffer
		env := factory.Env{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}, Name: "kubectl maint", Now: cmdtest.Now, Zone: "Mars/Base"}
		code := Run(t.Context(), factory.NewFor(env, o.Connected()), cmdtest.Words(c.line))
		if code != c.code || strings.Count(errOut.String(), warning) != c.warned || c.out != "" && out.String() != c.out {
			t.Errorf("%s: exit code %d, standard error %q, standard output %q", c.line, code, errOut.String(), out.String())
		}
	}
}
