package offline_test

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

func TestSimulatePlaysTemplates(t *testing.T) {
	hourly := []string{"      steps:", "      triggers: {schedules: [{cron: '0 * * * *'}]}\n      maxDuration: 3h\n      steps:"}
	both := "---\n" + cmdtest.StepTemplate("  labels:", "  annotations: {maint.dev/permitted-contexts: 'maintenance'}\n  labels:")
	cmdtest.WriteFiles(t, map[string]string{"f.yaml": cmdtest.Using("long: 90m", hourly...) + both, "g.yaml": cmdtest.Using("long: 90m", hourly...)})
	const span = "from Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z) to Sat 2026-11-21 05:00 CET (2026-11-21T04:00:00Z)\n"
	got := cmdtest.Offline(t, cmd.Run, "", "simulate", "-f", "f.yaml", "--to", "4h")
	if want := span + "2 ran, 2 skipped, 0 missed\n"; got.Code != 0 || got.Err != want {
		t.Errorf("%d, %s", got.Code, got.Err)
	}
	got = cmdtest.Offline(t, cmd.Run, "", "simulate", "-f", "g.yaml", "--to", "4h")
	if want := "warning: g.yaml:16: spec.steps[0].type: there is no step template \"hush\" among the files: it must be in the cluster; its steps count as done at once\n" + span + "4 ran, 0 skipped, 0 missed\n"; got.Code != 0 || got.Err != want {
		t.Errorf("%d, %s", got.Code, got.Err)
	}
}
