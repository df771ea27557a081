package workload

import (
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
)

func TestWhenARolloutIsThrough(t *testing.T) {
	for name, c := range map[string]struct {
		object string
		well   bool
		failed string
		why    string
	}{
		"a Deployment with all its pods": {
			object: `{kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2}}`,
			well:   true, why: "2 pods",
		},
		"a Deployment that its controller has not seen": {
			object: `{kind: Deployment, metadata: {generation: 3}, spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2}}`,
			why:    "generation 3",
		},
		"a Deployment that says no number wants one pod": {
			object: `{kind: Deployment, spec: {}, status: {}}`, why: "0 of 1 pods are updated",
		},
		"a Deployment whose pods are updated and not available": {
			object: `{kind: Deployment, spec: {replicas: 2}, status: {replicas: 2, updatedReplicas: 2, availableReplicas: 1}}`, why: "1 of 2 pods are available",
		},
		"a Deployment with old pods left": {
			object: `{kind: Deployment, spec: {replicas: 2}, status: {replicas: 3, updatedReplicas: 2, availableReplicas: 3}}`, why: "1 old pods",
		},
		"a paused Deployment says so": {
			object: `{kind: Deployment, spec: {replicas: 2, paused: true}, status: {replicas: 2, updatedReplicas: 1, availableReplicas: 2}}`, why: "(it is paused)",
		},
		"a Deployment past its progress deadline": {
			object: `{kind: Deployment, spec: {replicas: 2}, status: {conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: stuck}]}}`,
			failed: "ProgressDeadlineExceeded", why: "stuck",
		},
		"a deadline passed in the generation before says nothing": {
			object: `{kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}}`,
			why:    "generation 2",
		},
		"a Deployment scaled to zero": {object: `{kind: Deployment, spec: {replicas: 0}, status: {}}`, well: true, why: "0 pods"},
		"a StatefulSet with all its pods": {
			object: `{kind: StatefulSet, spec: {replicas: 2, updateStrategy: {rollingUpdate: {partition: 0}}}, status: {updatedReplicas: 2, availableReplicas: 2}}`, well: true, why: "2 pods",
		},
		"a StatefulSet with a pod to go": {
			object: `{kind: StatefulSet, spec: {replicas: 2}, status: {updatedReplicas: 1, availableReplicas: 2}}`, why: "1 of 2 pods are updated",
		},
		"a StatefulSet whose partition keeps a pod": {
			object: `{kind: StatefulSet, spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 1}}}, status: {updatedReplicas: 2, availableReplicas: 3}}`, well: true, why: "3 pods",
		},
		"a StatefulSet of which nobody counts the updates": {
			object: `{kind: StatefulSet, spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {availableReplicas: 2}}`, well: true, why: "2 pods",
		},
		"a DaemonSet with all its pods": {
			object: `{kind: DaemonSet, status: {desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2}}`, well: true, why: "2 pods",
		},
		"a DaemonSet with a node to go": {
			object: `{kind: DaemonSet, status: {desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2}}`, why: "1 of 2 pods are updated",
		},
		"a DaemonSet that is not available everywhere": {
			object: `{kind: DaemonSet, status: {desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 1}}`, why: "1 of 2 pods are available",
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := agenttest.Object(t, c.object)
			u.SetAPIVersion("apps/v1")
			got := rollouts()[u.GroupVersionKind().GroupKind()](u)
			if got.Well != c.well || got.Failed != c.failed || !strings.Contains(got.Why, c.why) {
				t.Errorf("%+v", got)
			}
		})
	}
}
