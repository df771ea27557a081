package doctor_test

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

func TestDoctorForScripts(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"the list has its kind": {"doctor -o jsonpath={.apiVersion}/{.kind}", "maint.dev/v1alpha1/FindingList"},
		"how each check ended":  {"doctor -o jsonpath={.items[*].result}", "ok ok ok amiss"},
		"what to do":            {"doctor -o jsonpath={.items[3].remedy}", "install them with 'kubectl maint install --apply'"},
	} {
		t.Run(name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent())
			o.Line(c.line).Is(t, cmdtest.Printed{Code: 1, Out: c.want, Err: "error: 1 problem\n"})
		})
	}
}
