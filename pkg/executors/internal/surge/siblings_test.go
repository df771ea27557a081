package surge

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Whose pods make a replacement superfluous, and what is said of them.
func TestWhenEnoughPodsAreReadyWithoutTheOneThatGoes(t *testing.T) {
	here, there := Sibling{Node: "a", Ready: true}, Sibling{Node: "b", Ready: true}
	for _, c := range []struct {
		name   string
		pods   map[string]Sibling
		wanted int
		enough bool
		why    string
	}{
		{"nobody", map[string]Sibling{}, 1, false, ""},
		{"itself alone", map[string]Sibling{"me": there}, 1, false, ""},
		{"one elsewhere", map[string]Sibling{"me": here, "x": there}, 1, true, ""},
		{"one on the same node", map[string]Sibling{"me": here, "x": here}, 1, false, ""},
		{"one of two that are wanted", map[string]Sibling{"me": here, "x": there}, 2, false, ""},
		{"one here and one elsewhere", map[string]Sibling{"me": here, "x": there, "y": here}, 2, true, ""},
		{"one that starts", map[string]Sibling{"me": here, "x": {Node: "b", Why: "ContainerCreating"}}, 1, false, "ContainerCreating"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if enough, why := Replaced(c.pods, "me", "a", c.wanted); enough != c.enough || why != c.why {
				t.Errorf("%t %q", enough, why)
			}
		})
	}
}

// How a pod of the same Deployment stands, by its conditions.
func TestHowASiblingStands(t *testing.T) {
	waiting := []corev1.ContainerStatus{{}, {State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	pod := func(node string, edits ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}}
		for _, edit := range edits {
			edit(p)
		}
		return p
	}
	ready := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	unscheduled := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse},
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no room"},
		}
	}
	for _, c := range []struct {
		name string
		pod  *corev1.Pod
		want Sibling
	}{
		{"Ready", pod("b", ready), Sibling{Node: "b", Ready: true}},
		{"not Ready", pod("b", ready, func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }), Sibling{Node: "b"}},
		{"Ready and being deleted", pod("b", ready, func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }), Sibling{Node: "b"}},
		{"of no node", pod("", unscheduled), Sibling{Why: "Unschedulable: no room"}},
		{"a container that does not start", pod("b", ready, func(p *corev1.Pod) { p.Status.Conditions, p.Status.ContainerStatuses = nil, waiting }), Sibling{Node: "b", Why: "CrashLoopBackOff"}},
		{"of no Node: that comes before its containers", pod("", unscheduled, func(p *corev1.Pod) { p.Status.ContainerStatuses = waiting }), Sibling{Why: "Unschedulable: no room"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := siblingOf(c.pod); got != c.want {
				t.Errorf("%+v", got)
			}
		})
	}
}
