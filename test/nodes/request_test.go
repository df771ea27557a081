package nodes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

const unlimited = "{nodes: {maxParallelOperations: 100%}, outbound: {allow: [127.0.0.1]}}"

func TestARequestIsCarriedOutAndReleased(t *testing.T) {
	l := newLab(t, unlimited)
	l.deployment("web", 24)
	if len(l.podsOn("node-0")) == 0 {
		t.Fatal("no pod is on node-0: nothing would be shown")
	}
	l.request("node-0", "gpu-operator", `{"reason":"driver 560"}`)
	l.phase("node-0", "gpu-operator", nodes.Ready)
	l.schedulable("node-0", false)
	if left := l.podsOn("node-0"); len(left) > 0 {
		t.Errorf("these pods are still there: %v", left)
	}
	l.release("node-0", "gpu-operator")
	l.gone("node-0", "gpu-operator")
	l.schedulable("node-0", true)
	l.eventually("nothing is left behind", func() (bool, string) {
		on := annotations.OfNode(l.node("node-0").Annotations)
		return len(on) == 0, fmt.Sprint(on)
	})
}

func TestWhatAHumanCordonedStaysCordoned(t *testing.T) {
	l := newLab(t, unlimited)
	l.cordon("node-1", true)
	l.request("node-1", "os", "{}")
	l.phase("node-1", "os", nodes.Ready)
	l.release("node-1", "os")
	l.gone("node-1", "os")
	time.Sleep(300 * time.Millisecond) // long enough for an uncordon that is wrong to be seen
	l.schedulable("node-1", false)
}

func TestAHumansUncordonIsNotUndone(t *testing.T) {
	l := newLab(t, unlimited)
	l.label("node-2", "pool", "two")
	l.deployment("batch", 2, only("two"))
	l.request("node-2", "os", `{"waitFor":{"podSelector":"app=batch"}}`)
	l.phase("node-2", "os", nodes.WaitingForPods)
	l.cordon("node-2", false)
	l.eventually("the uncordon is reported", func() (bool, string) {
		s, _ := l.status("node-2", "os")
		return strings.Contains(s.Reason, "uncordon"), s.Reason
	})
	l.schedulable("node-2", true)
	if n := len(l.podsOn("node-2")); n != 2 {
		t.Errorf("%d of 2 pods are there", n)
	}
	l.release("node-2", "os")
	l.gone("node-2", "os")
	l.schedulable("node-2", true)
}

func TestRequestsOfOneNodeTakeTurnsWithoutAnUncordon(t *testing.T) {
	l := newLab(t, unlimited)
	l.request("node-3", "bios", "{}")
	l.phase("node-3", "bios", nodes.Ready)
	l.request("node-3", "nic", "{}")
	l.eventually("nic waits", func() (bool, string) {
		s, there := l.status("node-3", "nic")
		return there && s.Phase != nodes.Ready && s.Reason != "", fmt.Sprintf("%+v", s)
	})
	l.release("node-3", "bios")
	l.phase("node-3", "nic", nodes.Ready)
	l.schedulable("node-3", false)
	l.release("node-3", "nic")
	l.gone("node-3", "nic")
	l.schedulable("node-3", true)
}

func TestSharedRequestsAreReadyTogether(t *testing.T) {
	l := newLab(t, unlimited)
	l.request("node-3", "bios", `{"shared":true}`)
	l.request("node-3", "nic", `{"shared":true}`)
	l.phase("node-3", "bios", nodes.Ready)
	l.phase("node-3", "nic", nodes.Ready)
	l.request("node-3", "nic", `{"shared":true,"failed":true}`)
	l.phase("node-3", "nic", nodes.RequestorFailed)
	l.release("node-3", "bios")
	l.gone("node-3", "bios")
	l.schedulable("node-3", false)
	l.release("node-3", "nic")
	l.gone("node-3", "nic")
	l.schedulable("node-3", true)
}

func TestABadRequestHurtsNobodyElse(t *testing.T) {
	l := newLab(t, unlimited)
	for requestor, value := range map[string]string{
		"broken": "{", "unknown": `{"colour":"red"}`, "regex": `{"drain":{"evictionFilters":[{"byResourceNameRegex":"("}]}}`,
	} {
		l.request("node-4", requestor, value)
	}
	l.request("node-4", "good", "{}")
	l.phase("node-4", "good", nodes.Ready)
	for requestor, want := range map[string]string{"broken": "JSON", "unknown": "colour", "regex": "does not compile"} {
		if s := l.phase("node-4", requestor, nodes.Invalid); !strings.Contains(s.Reason, want) {
			t.Errorf("%s says %q, and not %q", requestor, s.Reason, want)
		}
	}
	l.release("node-4", "good")
	l.schedulable("node-4", true)
}

func TestADeadlockIsNamedBeforeACordon(t *testing.T) {
	l := newLab(t, unlimited)
	l.label("node-5", "pool", "five")
	l.deployment("stuck", 2, only("five"))
	l.budget("stuck", intstr.FromInt32(0))
	l.request("node-5", "os", "{}")
	var reason string
	l.eventually("the budget is named", func() (bool, string) {
		s, _ := l.status("node-5", "os")
		reason = s.Reason
		return s.Phase == nodes.Pending && strings.Contains(s.Reason, l.ns+"/stuck"), s.Reason
	})
	l.schedulable("node-5", true)
	l.Log(reason)
	l.must(l.admin.PolicyV1().PodDisruptionBudgets(l.ns).Delete(l.ctx, "stuck", deleteNow()))
	l.request("node-5", "os", `{"reason":"mended"}`) // looked at again at once, and not in a minute
	l.phase("node-5", "os", nodes.Ready)
}
