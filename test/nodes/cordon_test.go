package nodes_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// A person opens a node that is held and cordons it again before the agent looks.
func TestACordonOfAPersonThatNobodySawIsLeft(t *testing.T) {
	l := newLab(t, unlimited)
	l.request("node-2", "os", "{}")
	l.phase("node-2", "os", nodes.Ready)
	l.must(l.agent.Freeze())
	l.cordon("node-2", false)
	l.cordon("node-2", true)
	l.must(l.agent.Thaw())
	l.eventually("the cordon is known to be theirs", func() (bool, string) {
		c, _ := nodes.ParseCordon(l.node("node-2").Annotations["status.maint.dev/cordoned"])
		return c != nil && c.Before, l.node("node-2").Annotations["status.maint.dev/cordoned"]
	})
	l.phase("node-2", "os", nodes.Ready)
	if got := l.events(metav1.NamespaceDefault, "node-2", "CordonedByOthers"); len(got) != 1 || !strings.Contains(got[0], "someone") {
		t.Errorf("events %q", got)
	}
	l.release("node-2", "os")
	l.gone("node-2", "os")
	l.schedulable("node-2", false)
}

func TestACordonOfAPersonThatNobodySawIsLeftByARollout(t *testing.T) {
	l := newLab(t, unlimited)
	l.roller()
	b := newBench(t)
	l.pool("gpu", "node-2")
	l.roll("gpu", "", b)
	l.eventually("node-2 is at work", func() (bool, string) { _, there, _ := b.now(); return len(there) == 1, "" })
	l.agent.Kill()
	l.cordon("node-2", false)
	l.cordon("node-2", true)
	b.letGo()
	l.start()
	if j := l.ends("gpu", 1); j.Phase != plan.RunSucceeded {
		t.Errorf("the run ended %s: %+v", j.Phase, j.End)
	}
	l.schedulable("node-2", false)
}
