package nodes_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

// A pause holds the drain; who leaves the screen leaves the drain as it is, and finds it again.
func TestADrainIsWaitedForAtATerminal(t *testing.T) {
	l := newLab(t, "{}")
	l.label("node-5", "pool", "terminal")
	l.deployment("web", 2, only("terminal"))
	l.annotate("node-5", map[string]any{annotations.Pause: "true"})
	l.eventually("the agent shows itself", func() (bool, string) {
		_, err := l.admin.CoreV1().ConfigMaps(annotations.DefaultNamespace).Get(l.ctx, annotations.HeartbeatName, metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
	sits := func(columns, rows int) *cmdtest.Person {
		return cmdtest.AtTerminal(t, exec.CommandContext(l.ctx, world.plugin, "--kubeconfig", world.config, "drain", "node-5", "--requestor", "firmware", "--wait", "--yes", "--timeout", "2m"), columns, rows)
	}
	p := sits(80, 24)
	p.Sees("node-5", "Pending", "the node is paused", "q quit")
	p.TakesTheScreen()
	p.Resizes(40, 12)
	p.Sees("node-5")
	p.Types("q")
	p.Ends(130)
	if said := p.Stderr.String(); !strings.Contains(said, "the request of firmware stays") {
		t.Errorf("it does not say that the request stays: %q", said)
	}
	p = sits(200, 50)
	p.Sees("node-5", "the node is paused")
	l.annotate("node-5", map[string]any{annotations.Pause: nil})
	p.Ends(0, "node-5")
	if pods := l.podsOn("node-5"); len(pods) != 0 {
		t.Errorf("left on the node: %v", pods)
	}
	l.release("node-5", "firmware")
	l.gone("node-5", "firmware")
	l.schedulable("node-5", true)
}
