package cmd_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// The agent leaves such a run alone as one with a false signature: what is asked of it is not heard.
func TestEveryCommandSaysThatARunWithoutASignatureIsLeftAlone(t *testing.T) {
	const (
		name  = "maint-run-orders-a"
		helps = "; the agent leaves it alone: if it is the agent's own, from a backup say, sign it with 'kubectl maint -n shop adopt run/" + name + "', which needs the right to read the agent's key\n"
		stuck = `[{"type":"RunStuck","status":"True","message":"run ` + name + ` is left alone, and nothing of it is put back: false"}]`
	)
	for why, edit := range map[string]func(*corev1.ConfigMap){
		"it carries no signature of the agent's": func(cm *corev1.ConfigMap) { cmdtest.Unsigned(cm) },
		"its signature cannot be read":           func(cm *corev1.ConfigMap) { cm.Annotations[annotations.StatusSignature] = "jane" },
	} {
		held := cmdtest.RunObject(cmdtest.RunOf(cmdtest.Record("hold", "suspend", run.StepRunning)), name)
		edit(held)
		plan := cmdtest.Plan("orders", "", cmdtest.Noting(annotations.StatusConditions, stuck))
		cmdtest.Noting(annotations.StatusObserved, annotations.Observed(plan))(plan)
		for _, line := range []string{
			"approve " + name, "reject " + name, "resume " + name, "abort " + name + " --yes", "retry " + name,
			"wait " + name, "wait " + name + " --for=phase=Succeeded", "wait " + name + " --for=condition=Succeeded",
			"status " + name, "status " + name + " -o json", "describe " + name, "logs " + name, "why " + name,
			"abort orders --yes", "approve orders", "wait orders",
		} {
			t.Run(why+": "+line, func(t *testing.T) {
				world := []runtime.Object{plan.DeepCopy(), held.DeepCopy(), cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace(annotations.DefaultNamespace)}
				got := cmdtest.NewCluster(t, cmd.Run, world...).Maint(append(strings.Fields(line), "-n", "shop")...)
				if got.Code != 3 || got.Out != "" || got.Err != "error: the run shop/"+name+" does not count: "+why+helps {
					t.Errorf("%+v", got)
				}
			})
		}
	}
}
