package workload

import (
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
			well:   true, why: "2 pods are updated and available",
		},
		"a Deployment that its controller has not seen": {
			object: `{kind: Deployment, metadata: {generation: 3}, spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2}}`,
			why:    "its controller has not seen generation 3 yet",
		},
		"a Deployment that says no number wants one pod": {
			object: `{kind: Deployment, spec: {}, status: {}}`, why: "0 of 1 pods are updated",
		},
		"a Deployment whose pods are updated and not available": {
			object: `{kind: Deployment, spec: {replicas: 2}, status: {replicas: 2, updatedReplicas: 2, availableReplicas: 1}}`, why: "1 of 2 pods are available",
		},
		"a Deployment with old pods left": {
			object: `{kind: Deployment, spec: {replicas: 2}, status: {replicas: 3, updatedReplicas: 2, availableReplicas: 3}}`, why: "1 old pods are still there",
		},
		"a paused Deployment says so": {
			object: `{kind: Deployment, spec: {replicas: 2, paused: true}, status: {replicas: 2, updatedReplicas: 1, availableReplicas: 2}}`, why: "1 of 2 pods are updated (it is paused)",
		},
		"a Deployment past its progress deadline": {
			object: `{kind: Deployment, spec: {replicas: 2}, status: {conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: stuck}]}}`,
			failed: "ProgressDeadlineExceeded", why: "exceeded its progress deadline: stuck",
		},
		"a Deployment that makes progress": {
			object: `{kind: Deployment, spec: {replicas: 2}, status: {replicas: 2, updatedReplicas: 1, availableReplicas: 2, conditions: [{type: Progressing, status: "True", reason: ReplicaSetUpdated}]}}`,
			why:    "1 of 2 pods are updated",
		},
		"a deadline passed in the generation before says nothing": {
			object: `{kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}}`,
			why:    "its controller has not seen generation 2 yet",
		},
		"a Deployment scaled to zero": {object: `{kind: Deployment, spec: {replicas: 0}, status: {}}`, well: true, why: "0 pods are updated and available"},
		"a StatefulSet with all its pods": {
			object: `{kind: StatefulSet, spec: {replicas: 2, updateStrategy: {rollingUpdate: {partition: 0}}}, status: {updatedReplicas: 2, availableReplicas: 2}}`, well: true, why: "2 pods are updated and available",
		},
		"a StatefulSet that its controller has not seen": {
			object: `{kind: StatefulSet, metadata: {generation: 3}, spec: {replicas: 0}, status: {observedGeneration: 2}}`, why: "its controller has not seen generation 3 yet",
		},
		"a StatefulSet with a pod to go": {
			object: `{kind: StatefulSet, spec: {replicas: 2}, status: {updatedReplicas: 1, availableReplicas: 2}}`, why: "1 of 2 pods are updated",
		},
		"a StatefulSet whose partition keeps a pod": {
			object: `{kind: StatefulSet, spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 1}}}, status: {updatedReplicas: 2, availableReplicas: 3}}`, well: true, why: "3 pods are updated and available",
		},
		"a StatefulSet of which nobody counts the updates": {
			object: `{kind: StatefulSet, spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {availableReplicas: 2}}`, well: true, why: "2 pods are updated and available",
		},
		"a DaemonSet with all its pods": {
			object: `{kind: DaemonSet, status: {desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2}}`, well: true, why: "2 pods are updated and available",
		},
		"a DaemonSet that its controller has not seen": {
			object: `{kind: DaemonSet, metadata: {generation: 3}, status: {observedGeneration: 2}}`, why: "its controller has not seen generation 3 yet",
		},
		"a DaemonSet of which nobody counts the updates": {
			object: `{kind: DaemonSet, spec: {updateStrategy: {type: OnDelete}}, status: {desiredNumberScheduled: 2, numberAvailable: 2}}`, well: true, why: "2 pods are updated and available",
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
			if got.Well != c.well || got.Failed != c.failed || got.Why != c.why {
				t.Errorf("%+v", got)
			}
		})
	}
}
