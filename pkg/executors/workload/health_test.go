package workload

import (
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
)

func TestTheHealthOfEachKind(t *testing.T) {
	for name, c := range map[string]struct {
		object string
		well   bool
		failed string
		why    string
	}{
		"a Job that is complete":               {`{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Complete, status: "True"}]}}`, true, "", ""},
		"a Job at work":                        {`{apiVersion: batch/v1, kind: Job, status: {active: 2}}`, false, "", "2 active"},
		"a Job that failed":                    {`{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}}`, false, "JobFailed", "BackoffLimitExceeded"},
		"a Job that is suspended":              {`{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Suspended, status: "True"}]}}`, false, "", "suspended"},
		"a Pod that is Ready":                  {`{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, true, "", ""},
		"a Pod that ended well":                {`{apiVersion: v1, kind: Pod, status: {phase: Succeeded, conditions: [{type: Ready, status: "False"}]}}`, true, "", ""},
		"a Pod that failed":                    {`{apiVersion: v1, kind: Pod, status: {phase: Failed, reason: Evicted}}`, false, "PodFailed", "Evicted"},
		"a Pod that crashes":                   {`{apiVersion: v1, kind: Pod, status: {phase: Running, containerStatuses: [{name: web, state: {waiting: {reason: CrashLoopBackOff}}}]}}`, false, "", "web is waiting: CrashLoopBackOff"},
		"a Pod that is not Ready yet":          {`{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: Initialized, status: "True"}, {type: Ready, status: "False"}], containerStatuses: [{name: web, state: {running: {}}}, {name: side, state: {waiting: {}}}]}}`, false, "", "is Running and not Ready"},
		"a Pod that nobody placed":             {`{apiVersion: v1, kind: Pod, status: {phase: Pending}}`, false, "", "Pending"},
		"a Pod that is being deleted":          {`{apiVersion: v1, kind: Pod, metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, false, "", "being deleted"},
		"a Node that is Ready":                 {`{apiVersion: v1, kind: Node, status: {conditions: [{type: Ready, status: "True"}, {type: DiskPressure, status: "False"}]}}`, true, "", ""},
		"a Node under pressure":                {`{apiVersion: v1, kind: Node, status: {conditions: [{type: Ready, status: "True"}, {type: DiskPressure, status: "True"}]}}`, false, "", "DiskPressure"},
		"a Node of which nobody hears":         {`{apiVersion: v1, kind: Node, status: {conditions: [{type: Ready, status: Unknown}]}}`, false, "", "not Ready"},
		"a cordoned Node":                      {`{apiVersion: v1, kind: Node, spec: {unschedulable: true}, status: {conditions: [{type: Ready, status: "True"}]}}`, true, "", "cordoned"},
		"a claim that is bound":                {`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound}}`, true, "", ""},
		"a claim that waits":                   {`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}`, false, "", "Pending"},
		"a claim that lost its volume":         {`{apiVersion: v1, kind: PersistentVolumeClaim, spec: {volumeName: v1}, status: {phase: Lost}}`, false, "ClaimLost", "v1"},
		"a rollout that is through":            {`{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 0}}`, true, "", ""},
		"another that is Ready":                {`{apiVersion: example.org/v1, kind: App, status: {conditions: [{type: Ready, status: "True"}]}}`, true, "", ""},
		"another that is not":                  {`{apiVersion: example.org/v1, kind: App, status: {conditions: [{type: Ready, status: "False", message: no disk}]}}`, false, "", "no disk"},
		"another with a status and no Ready":   {`{apiVersion: example.org/v1, kind: App, status: {phase: Fine}}`, false, "", "Ready is not there"},
		"another whose condition is old":       {`{apiVersion: example.org/v1, kind: App, metadata: {generation: 3}, status: {conditions: [{type: Ready, status: "True", observedGeneration: 2}]}}`, false, "", "generation 2"},
		"another whose status is old":          {`{apiVersion: example.org/v1, kind: App, metadata: {generation: 3}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True"}]}}`, false, "", "generation 2"},
		"another whose status alone is behind": {`{apiVersion: example.org/v1, kind: App, metadata: {generation: 3}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True", observedGeneration: 3}]}}`, false, "", "generation 2"},
		"another that is stalled":              {`{apiVersion: example.org/v1, kind: App, status: {conditions: [{type: Ready, status: "False"}, {type: Stalled, status: "True", message: no such chart}]}}`, false, "Stalled", "no such chart"},
		"another that is being reconciled":     {`{apiVersion: example.org/v1, kind: App, status: {conditions: [{type: Reconciling, status: "True", message: at step 2}]}}`, false, "", "at step 2"},
		"a Service, which has no conditions":   {`{apiVersion: v1, kind: Service, spec: {type: ClusterIP}, status: {loadBalancer: {}}}`, true, "", ""},
		"a ReplicaSet that lacks a pod":        {`{apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: 2}, status: {replicas: 2, fullyLabeledReplicas: 2, availableReplicas: 1, readyReplicas: 1}}`, false, "", "1/2"},
		"a ReplicaSet with all its pods":       {`{apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: 2}, status: {replicas: 2, fullyLabeledReplicas: 2, availableReplicas: 2, readyReplicas: 2}}`, true, "", ""},
		"a CRD that is served":                 {`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [{type: Established, status: "True"}]}}`, true, "", ""},
		"a CRD whose name is taken":            {`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [{type: NamesAccepted, status: "False", message: taken by another}]}}`, false, "Stalled", "taken by another"},
		"a ConfigMap":                          {`{apiVersion: v1, kind: ConfigMap, data: {a: b}}`, true, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := agenttest.Object(t, c.object)
			got, err := health(t.Context(), executors.Call{}, api.Object{Kind: u.GroupVersionKind()}, u)
			if err != nil || got.Well != c.well || got.Failed != c.failed || !strings.Contains(got.Why, c.why) || c.why == "" && got.Why != "" {
				t.Errorf("%+v (%v)", got, err)
			}
		})
	}
}

func TestAMessageNamesTheFirstFew(t *testing.T) {
	if got := listed(": ", []string{"a", "b", "c", "d", "e", "f", "g"}); got != ": a; b; c; d; e; and 2 more" {
		t.Error(got)
	}
	if got := listed(": ", []string{"a", "b", "c", "d", "e"}); got != ": a; b; c; d; e" {
		t.Error(got)
	}
	if got := listed(": ", nil); got != "" {
		t.Error(got)
	}
}
