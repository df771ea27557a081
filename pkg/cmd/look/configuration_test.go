package look_test

import (
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// The agent says it in its log and its metrics, which few people look at first.
func TestStatusAndVersionSayThatTheConfigurationIsInvalid(t *testing.T) {
	const told = `the agent's configuration, ConfigMap maint-system/maint-agent, is invalid: line 1: spec.nodes.maxParallelOperations: "few" is neither a number nor a share: write 3 or 10%; the previous one stays in force until the agent restarts, and after a restart the agent does nothing`
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Configured("{maxParallelOperations: few}"))
	o.Maint("status").Is(t, cmdtest.Printed{Err: "No resources found in shop namespace.\n" + told + "\n\nno plans in namespace shop; 'kubectl maint new' asks for what one needs, 'kubectl maint schedule' writes one\n"})
	o.Maint("status", "-o", "name").Is(t, cmdtest.Printed{Out: "agent/maint-agent\n", Err: "warning: " + told + "\n"})
	if got := o.Maint("version"); got.Code != 0 || !strings.HasSuffix(got.Out, "ago\nagent:     "+told+"\n") {
		t.Errorf("%+v", got)
	}
	if got := o.Maint("version", "-o", "json"); got.Code != 0 || !strings.Contains(got.Out, `"invalidConfiguration": "the agent's configuration, ConfigMap `) {
		t.Errorf("%+v", got)
	}
	o.Forbids("get", "configmaps", annotations.DefaultNamespace)
	if got := o.Maint("status"); strings.Contains(got.Out+got.Err, annotations.AgentConfigName+", is invalid") {
		t.Errorf("who may not read it is told %+v", got)
	}
}

// The agent watches for the label, so an object without it is none to the agent.
func TestStatusVersionAndWhySayThatTheConfigurationHasNoLabel(t *testing.T) {
	const told = "the agent's configuration, ConfigMap maint-system/maint-agent, lacks the label maint.dev/kind=agent-config, so the agent does not read it: what it took up before stays in force until it restarts, and after a restart the defaults hold, without your denied steps and limits; 'kubectl -n maint-system label --overwrite configmap maint-agent maint.dev/kind=agent-config' puts the label back"
	config, agent := cmdtest.Configured("{maxParallelOperations: 2}"), cmdtest.Agent()
	config.Labels = nil
	agent.Data[annotations.HeartbeatConfiguration] = annotations.ConfigurationDeleted
	o := cmdtest.NewCluster(t, cmd.Run, agent, config, cmdtest.Namespace("shop"), cmdtest.Node("a", cmdtest.Asked("gpu", "")), cmdtest.Node("b", cmdtest.Asked("gpu", ""), cmdtest.Stood("gpu", nodes.Draining, "")))
	for _, line := range []string{"status", "version", "why node/a"} {
		if got := o.Line(line); !strings.Contains(got.Out+got.Err, told+"\n") {
			t.Errorf("%s says %+v", line, got)
		}
	}
	if got := o.Maint("doctor"); got.Code != 1 || strings.Contains(got.Out, "is valid") {
		t.Errorf("doctor says %+v", got)
	}
}

// Where there is no object, the heartbeat alone tells that there was one.
func TestStatusAndVersionSayThatTheConfigurationIsGone(t *testing.T) {
	for how, told := range map[string]string{
		annotations.ConfigurationDeleted: "the agent's configuration, ConfigMap maint-system/maint-agent, was deleted: what the agent took up before stays in force until it restarts, and after a restart the defaults hold, without your denied steps and limits; apply yours again, or get the usual one by 'kubectl maint install --apply --namespace maint-system'",
		annotations.ConfigurationLost:    "the agent's configuration, ConfigMap maint-system/maint-agent, is gone, and the defaults are in force, without the denied steps and limits that it may have had; apply yours again, or get the usual one by 'kubectl maint install --apply --namespace maint-system'",
	} {
		agent := cmdtest.Agent()
		agent.Data[annotations.HeartbeatConfiguration] = how
		o := cmdtest.NewCluster(t, cmd.Run, agent, cmdtest.Namespace("shop"))
		for _, line := range []string{"status", "version"} {
			if got := o.Maint(line); got.Code != 0 || !strings.Contains(got.Out+got.Err, told+"\n") {
				t.Errorf("%s: %s says %+v", how, line, got)
			}
		}
		what, remedy, _ := strings.Cut(told, "; ")
		if got := o.Maint("doctor"); got.Code != 1 || !strings.Contains(got.Out, "amiss    "+what+"\n         "+remedy+"\n") {
			t.Errorf("%s: doctor says %+v", how, got)
		}
	}
}
