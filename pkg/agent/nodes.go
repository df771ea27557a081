package agent

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// controlPlane are the labels of nodes that run the cluster itself.
func controlPlane() []string {
	return []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}
}

// stripNode keeps of a node what is looked at: our annotations, and its role.
func stripNode(o any) (any, error) {
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return o, nil
	}
	m.ManagedFields, m.OwnerReferences, m.Finalizers = nil, nil, nil
	ours := map[string]string{}
	for key, value := range m.Annotations {
		if strings.HasPrefix(key, annotations.IntentPrefix) {
			ours[key] = value
		}
	}
	roles := map[string]string{}
	for _, label := range append(controlPlane(), annotations.LabelSystem) {
		if value, there := m.Labels[label]; there {
			roles[label] = value
		}
	}
	m.Annotations, m.Labels = ours, roles
	return m, nil
}

// sawNode tells metrics of a node whose stanza says when it may be changed.
func (a *Agent) sawNode(o any) {
	m := o.(*metav1.PartialObjectMetadata)
	k := key{name: m.Name}
	in := annotations.Intent(m.Annotations)
	if !in.Stanza.Set() && !in.Pause.On {
		a.gates.forget(k)
		return
	}
	q := plan.Asked("", in, nil)
	a.gates.note(k, &gated{kind: "Node", system: systemOf(m), verdict: a.nodeVerdict(q, in.Pause), strategy: func(now time.Time) schedule.Strategy {
		if in.Pause.Holds(now) {
			return schedule.Restrictive
		}
		return a.gates.book.Strategy(q, now)
	}, uses: a.gates.uses(q)})
}

func (a *Agent) lostNode(o any) {
	if m, ok := o.(*metav1.PartialObjectMetadata); ok {
		a.gates.forget(key{name: m.Name})
	}
}

// nodeVerdict asks anew each time: the policies behind a node may have changed.
func (a *Agent) nodeVerdict(q plan.Question, pause plan.Switch) func(time.Time) schedule.Verdict {
	return func(now time.Time) schedule.Verdict {
		if pause.Holds(now) {
			until := schedule.Stanza{Strategy: schedule.Restrictive}
			if pause.Until != nil {
				until = schedule.Stanza{Strategy: schedule.RestrictiveUntil, Until: pause.Until}
			}
			return schedule.NewGate(schedule.GateSpec{Own: until}).Verdict(now)
		}
		if gate := a.gates.ask(q); gate != nil {
			return gate.Verdict(now)
		}
		return schedule.NewGate(schedule.GateSpec{}).Verdict(now)
	}
}

// systemOf is a node's role, unless its label says otherwise.
func systemOf(m *metav1.PartialObjectMetadata) string {
	if s := m.Labels[annotations.LabelSystem]; s != "" {
		return s
	}
	for _, label := range controlPlane() {
		if _, there := m.Labels[label]; there {
			return "control-plane"
		}
	}
	return "worker-nodes"
}
