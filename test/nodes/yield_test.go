package nodes_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// marked sets an annotation on a Deployment's pods.
func marked(key, value string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		if d.Spec.Template.Annotations == nil {
			d.Spec.Template.Annotations = map[string]string{}
		}
		d.Spec.Template.Annotations[key] = value
	}
}

// restart ends the agent at once, and starts it again.
func (l *lab) restart() {
	l.Helper()
	l.agent.Kill()
	l.start()
}

// why is what 'kubectl maint why' says of a node.
func (l *lab) why(node string) string {
	l.Helper()
	out, _ := exec.Command(world.plugin, "--kubeconfig", world.config, "why", "node/"+node).CombinedOutput()
	return string(out)
}

func TestABlockedDrainYieldsItsSlotAndComesBackFirst(t *testing.T) {
	l := newLab(t, "{nodes: {maxParallelOperations: 1, yieldWhenBlocked: false}}")
	l.label("node-3", "pool", "three")
	l.deployment("web", 2, only("three"))
	l.deployment("late", 1, only("three"))
	l.request("node-3", "os", `{"waitFor":{"podSelector":"app=late"}}`)
	l.phase("node-3", "os", nodes.WaitingForPods)
	l.budget("web", intstr.FromInt32(0)) // after the cordon
	l.must(l.admin.AppsV1().Deployments(l.ns).Delete(l.ctx, "late", deleteNow()))
	l.eventually("the drain is blocked for good", func() (bool, string) {
		s, _ := l.status("node-3", "os")
		return s.Phase == nodes.Draining && s.Blocked != nil && s.Blocked.Permanent, s.String()
	})
	l.request("node-5", "net", "{}")
	l.eventually("net waits for the slot", func() (bool, string) {
		s, _ := l.status("node-5", "net")
		return s.Phase == nodes.Pending && strings.Contains(s.Reason, "waits its turn"), s.String()
	})
	if s, _ := l.status("node-3", "os"); s.Yielded != nil {
		t.Errorf("it may not yield: %s", s)
	}

	l.configure("{nodes: {maxParallelOperations: 1}}")
	l.phase("node-5", "net", nodes.Ready)
	yielded := func() (bool, string) {
		s, _ := l.status("node-3", "os")
		return s.Phase == nodes.Draining && s.Yielded != nil && strings.Contains(s.Reason, l.ns+"/web") && strings.Contains(s.Reason, "others have its turn meanwhile"), s.String()
	}
	l.eventually("the blocked one says that it yielded", yielded)
	l.schedulable("node-3", false)
	if got := l.why("node-3"); !strings.Contains(got, "others have its turn meanwhile") || !strings.Contains(got, l.ns+"/web") {
		t.Errorf("why says\n%s", got)
	}
	if got := l.events(metav1.NamespaceDefault, "node-3", "DrainYielded"); len(got) != 1 {
		t.Errorf("events %q", got)
	}

	l.restart()
	l.request("node-6", "sky", `{"priority":1000}`)
	l.eventually("sky waits its turn", func() (bool, string) {
		s, _ := l.status("node-6", "sky")
		return s.Phase == nodes.Pending && strings.Contains(s.Reason, "waits its turn"), s.String()
	})
	if ok, now := yielded(); !ok {
		t.Errorf("after a restart: %s", now)
	}
	if got := l.podsOn("node-3"); len(got) != 2 {
		t.Errorf("pods on node-3: %v", got)
	}
	l.mend("web", 5*time.Second, "the mended budget is noticed", func() (bool, string) {
		s, _ := l.status("node-3", "os")
		return s.Yielded != nil && strings.Contains(s.Reason, "waits its turn"), s.String()
	})
	if s, _ := l.status("node-6", "sky"); s.Phase != nodes.Pending {
		t.Errorf("sky is %s", s)
	}
	l.release("node-5", "net")
	if s := l.phase("node-3", "os", nodes.Ready); s.Yielded != nil || s.Blocked != nil {
		t.Errorf("it is %s", s)
	}
	if s, _ := l.status("node-6", "sky"); s.Phase != nodes.Pending {
		t.Errorf("sky came before the one that yielded: %s", s)
	}
	l.release("node-3", "os")
	l.phase("node-6", "sky", nodes.Ready)
	l.schedulable("node-3", true)
}

func TestAPodThatIsWaitedForHoldsTheSlotNoLongerThanTheDrainsTime(t *testing.T) {
	l := newLab(t, "{nodes: {maxParallelOperations: 1}}")
	l.label("node-3", "pool", "three")
	l.deployment("late", 1, only("three"), marked(annotations.DrainHow, "wait-completed"))
	l.request("node-3", "os", `{"drain":{"timeout":"8s"}}`)
	l.eventually("the pod is named", func() (bool, string) {
		s, _ := l.status("node-3", "os")
		return s.Phase == nodes.Draining && strings.Contains(s.Reason, l.ns+"/late") && strings.Contains(s.Reason, "until it has completed"), s.String()
	})
	l.request("node-5", "net", "{}")
	l.phase("node-5", "net", nodes.Ready)
	s, _ := l.status("node-3", "os")
	if s.Yielded == nil || !strings.Contains(s.Reason, l.ns+"/late") || !strings.Contains(s.Reason, "has not completed") {
		t.Errorf("it is %s", s)
	}
	if got := l.why("node-3"); !strings.Contains(got, l.ns+"/late") {
		t.Errorf("why says\n%s", got)
	}
	l.release("node-5", "net")
	l.must(l.admin.AppsV1().Deployments(l.ns).Delete(l.ctx, "late", deleteNow()))
	l.within(90, "the drain goes on", func() (bool, string) {
		s, _ := l.status("node-3", "os")
		return s.Phase == nodes.Ready && s.Yielded == nil, s.String()
	})
}

func TestABlockedRolloutYieldsItsSlotAndComesBackFirst(t *testing.T) {
	l := newLab(t, "{nodes: {maxParallelOperations: 1}, outbound: {allow: [127.0.0.1]}}")
	l.roller()
	b := newBench(t)
	b.letGo()
	l.pool("gpu", "node-0")
	// The drain has begun, and waits for what leaves first.
	l.deployment("late", 1, only("gpu"), marked(annotations.DrainHow, "wait-completed"))
	l.deployment("web", 2, only("gpu"), marked(annotations.DrainOrder, "10"))
	l.roll("gpu", "", b)
	l.schedulable("node-0", false)
	l.budget("web", intstr.FromInt32(0))
	l.must(l.admin.AppsV1().Deployments(l.ns).Delete(l.ctx, "late", deleteNow()))
	l.request("node-7", "net", "{}")
	l.phase("node-7", "net", nodes.Ready)
	yielded := func() (bool, string) {
		rec := l.journals("gpu")[0].Record("roll/node-0/drain")
		if rec == nil || len(rec.Drains()) != 1 {
			return false, "no drain"
		}
		return rec.Drains()[0].Yielded && strings.Contains(rec.Message, l.ns+"/web") && strings.Contains(rec.Message, "others have its turn meanwhile"), rec.Message
	}
	l.eventually("the run says that it yielded", yielded)
	l.schedulable("node-0", false)
	if got := l.why("node-0"); !strings.Contains(got, "others have its turn meanwhile") {
		t.Errorf("why says\n%s", got)
	}

	l.restart()
	l.request("node-8", "sky", "{}")
	l.eventually("sky waits its turn", func() (bool, string) {
		s, _ := l.status("node-8", "sky")
		return s.Phase == nodes.Pending && strings.Contains(s.Reason, "waits its turn"), s.String()
	})
	if ok, now := yielded(); !ok {
		t.Errorf("after a restart: %s", now)
	}
	l.mend("web", 5*time.Second, "the mended budget is noticed", func() (bool, string) {
		m := l.journals("gpu")[0].Record("roll/node-0/drain").Message
		return strings.Contains(m, "waits its turn"), m
	})
	l.release("node-7", "net")
	if j := l.ends("gpu", 1); j.Phase != run.Succeeded {
		t.Errorf("the run ended %s: %+v", j.Phase, j.End)
	}
	l.schedulable("node-0", true)
	l.phase("node-8", "sky", nodes.Ready)
}
