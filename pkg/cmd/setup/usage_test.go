package setup_test

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

func TestACommandLineOfInstallThatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		told string
	}{
		{"shows and applies", []string{"--apply", "--diff"}, "--diff changes nothing, and --apply does: give one of them"},
		{"a dry run of what is only printed", []string{"--dry-run=client"}, "--dry-run is for --apply; without --apply nothing is changed"},
		{"a dry run of what there is not", []string{"--apply", "--dry-run=maybe"}, `--dry-run: "maybe" is not one of none, client, server`},
		{"a part that is none", []string{"--without", "requests,pods"}, `--without takes requests, force, volumes, conditions, confinement, kubelets, or none alone; not "pods"`},
		{"none beside a part", []string{"--without", "none,force"}, `--without takes requests, force, volumes, conditions, confinement, kubelets, or none alone; not "none"`},
		{"no replicas", []string{"--replicas", "0"}, "--replicas must be at least 1, is 0"},
		{"an account by its namespace", []string{"--impersonate", "ops/deployer"}, `--impersonate "ops/deployer" cannot name a ServiceAccount`},
		{"acting as one and as nobody", []string{"--read-only", "--impersonate", "deployer"}, "--impersonate lets the agent act as an account, and --read-only as none: give one of them"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run)
			o.Maint(append([]string{"install"}, c.args...)...).Is(t, cmdtest.Printed{Code: 2, Err: "error: " + c.told + "\n"})
		})
	}
}

// Whoever may edit ConfigMaps where the agent runs is its admin, but for the admission policies.
func TestInstallSaysWhatATeamCanTakeOut(t *testing.T) {
	const warning = "warning: --outbound strict is in ConfigMap shop/maint-agent, and whoever may edit ConfigMaps of the namespace can remove it: with --with-admission only those with the verb override on plans.maint.dev can\n"
	for line, want := range map[string]string{
		"install -n shop --single-namespace --outbound strict":                  warning,
		"install -n shop --single-namespace --outbound strict --with-admission": "",
		"install -n shop --single-namespace":                                    "",
		"install -n shop --outbound strict":                                     "",
	} {
		if got := cmdtest.NewCluster(t, cmd.Run).Line(line); got.Code != 0 || got.Err != want || got.Out == "" {
			t.Errorf("%s: exit code %d, %q", line, got.Code, got.Err)
		}
	}
}

// README has the image tagged so.
func TestAScriptLearnsTheVersion(t *testing.T) {
	cmdtest.Offline(t, cmd.Run, "", "version", "--client", "-o", "jsonpath={.client}").Is(t, cmdtest.Printed{Out: "v0.1.0"})
}
