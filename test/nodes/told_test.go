package nodes_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// whyAs is what 'kubectl maint why' says of a node to whoever a kubeconfig is of, and its exit code.
func (l *lab) whyAs(config, node string) (code int, out string) {
	l.Helper()
	code, out, err := harness.Plugin(l.ctx, world.plugin, config, "-n", l.ns, "why", "node/"+node)
	l.must(err)
	return code, out
}

// prints waits until a command line of the built plugin prints all of some words.
func (l *lab) prints(line string, words ...string) {
	l.Helper()
	l.eventually(line+" says it", func() (bool, string) {
		_, out, err := harness.Plugin(l.ctx, world.plugin, world.config, append([]string{"-n", l.ns}, strings.Fields(line)...)...)
		l.must(err)
		for _, word := range words {
			if !strings.Contains(out, word) {
				return false, fmt.Sprintf("%q is not in\n%s", word, out)
			}
		}
		return true, ""
	})
}

// A tenant may not read the agent's namespace, where the whole cluster may be paused.
func TestATenantIsToldWhetherAPlansDrainMayBegin(t *testing.T) {
	l := newLab(t, "{nodes: {maxParallelOperations: 1}}")
	l.roller()
	own, err := world.cluster.ServiceAccountConfig(l.ctx, l.ns, "maint-runner")
	l.must(err)
	tenant, err := world.cluster.KubeconfigFile("tenant-"+l.ns, own)
	l.must(err)
	l.request("node-2", "os", `{"drain":false}`)
	l.phase("node-2", "os", nodes.Ready)
	text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: drain, type: drain, properties: {node: node-3}}\n  - {name: uncordon, type: uncordon, properties: {node: node-3}}\n"
	_, err = l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, annotations.NewPlan(l.ns, "drains", text, ""), metav1.CreateOptions{})
	l.must(err)
	l.trigger("drains", "one")
	l.eventually("node-3 says that it may be changed", func() (bool, string) {
		got := l.node("node-3").Annotations
		return strings.Contains(got[annotations.StatusBehavior], "ChangesUnpaused"), fmt.Sprint(got)
	})
	_, asAdmin := l.whyAs(world.config, "node-3")
	_, asTenant := l.whyAs(tenant, "node-3")
	const verdict = "node/node-3: change is permitted (no strategy is set"
	if !strings.Contains(asAdmin, verdict+")") || !strings.Contains(asTenant, verdict+", says the agent)") {
		t.Errorf("an admin is told\n%s\nand a tenant\n%s", asAdmin, asTenant)
	}
	l.release("node-2", "os")
	l.ends("drains", 1)
	l.eventually("nothing is said of node-3 any more", func() (bool, string) {
		got := annotations.OfNode(l.node("node-3").Annotations)
		return len(got) == 0, fmt.Sprint(got)
	})
}

func TestTheConditionsOfANodeCanBeWaitedFor(t *testing.T) {
	l := newLab(t, "{}")
	maint := func(args ...string) {
		l.Helper()
		if out, err := exec.CommandContext(l.ctx, world.plugin, append([]string{"--kubeconfig", world.config}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	maint("pause", "node/node-4")
	maint("wait", "node/node-4", "--for=condition=ChangesPaused", "--timeout", "30s")
	l.request("node-4", "os", `{"drain":false}`)
	maint("wait", "node/node-4", "--for=condition=ChangesPending", "--timeout", "30s")
	maint("resume", "node/node-4")
	maint("wait", "node/node-4", "--for=condition=ChangesPending=False", "--timeout", "30s")
	l.release("node-4", "os")
	l.eventually("nothing is said of it any more", func() (bool, string) {
		got := annotations.OfNode(l.node("node-4").Annotations)
		return len(got) == 0, fmt.Sprint(got)
	})
}
