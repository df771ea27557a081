package annotations_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	var o T
	if err := yaml.UnmarshalStrict([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return &o
}

func TestADrainSeesOfAPodWhatItNeeds(t *testing.T) {
	got := annotations.DrainPod(read[corev1.Pod](t, `
metadata:
  namespace: shop
  name: web-1
  uid: u1
  resourceVersion: "42"
  labels: {app: web}
  creationTimestamp: "2026-01-01T00:00:00Z"
  deletionTimestamp: "2026-01-02T00:00:00Z"
  annotations: {maint.dev/drain: surge, maint.dev/drain-order: "-5", karpenter.sh/do-not-disrupt: "true", kubernetes.io/config.mirror: x}
  ownerReferences:
  - {apiVersion: v1, kind: Other, name: o, uid: u2}
  - {apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: u3, controller: true}
spec:
  nodeName: n1
  tolerations: [{key: node.kubernetes.io/unschedulable, operator: Exists, effect: NoSchedule}]
  initContainers: [{name: i, resources: {requests: {memory: 1Gi}}}]
  containers: [{name: c, resources: {requests: {nvidia.com/gpu: 1, cpu: 1}}}]
  volumes:
  - {name: a, emptyDir: {}}
  - {name: b, persistentVolumeClaim: {claimName: data}}
  - {name: c, ephemeral: {}}
status:
  phase: Running
  conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-01-01T01:00:00Z"}]
  containerStatuses: [{name: c, state: {waiting: {reason: CrashLoopBackOff}}}]
`))
	want := drain.Pod{
		UID: "u1", Namespace: "shop", Name: "web-1", Node: "n1", Version: 42, Labels: map[string]string{"app": "web"},
		Created: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Phase: "Running", Trouble: "CrashLoopBackOff", NotReady: time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC),
		Deleting: true, DeleteBy: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), Mirror: true,
		Controller: &drain.Owner{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "u3"},
		EmptyDir:   true, Resources: []string{"cpu", "memory", "nvidia.com/gpu"}, Claims: []string{"data", "web-1-c"}, Tolerates: true,
		How: "surge", Order: -5, Kept: `karpenter.sh/do-not-disrupt: "true"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestHowAPodWantsToBeDrained(t *testing.T) {
	for name, c := range map[string]struct {
		annotations, labels map[string]string
		how, fault, kept    string
	}{
		"nothing":                          {},
		"ours":                             {map[string]string{"maint.dev/drain": "skip"}, nil, "skip", "", ""},
		"ours, misspelt, is kept as it is": {map[string]string{"maint.dev/drain": "Skip"}, nil, "Skip", "", ""},
		"Cluster API's, in any case":       {nil, map[string]string{"cluster.x-k8s.io/drain": "SKIP"}, "skip", "", ""},
		"Cluster API's wait-completed":     {nil, map[string]string{"cluster.x-k8s.io/drain": "wait-completed"}, "wait-completed", "", ""},
		"Cluster API's WaitCompleted":      {nil, map[string]string{"cluster.x-k8s.io/drain": "WaitCompleted"}, "wait-completed", "", ""},
		"Cluster API's, unknown":           {nil, map[string]string{"cluster.x-k8s.io/drain": "later"}, "", "", ""},
		"ours wins":                        {map[string]string{"maint.dev/drain": "surge"}, map[string]string{"cluster.x-k8s.io/drain": "skip"}, "surge", "", ""},
		"an order that is no number":       {map[string]string{"maint.dev/drain-order": "1.5"}, nil, "", "1.5", ""},
		"an order that is too large":       {map[string]string{"maint.dev/drain-order": "99999999999"}, nil, "", "99999999999", ""},
		"an order that is empty":           {map[string]string{"maint.dev/drain-order": ""}, nil, "", "empty", ""},
		"not safe to evict":                {map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}, nil, "", "", `cluster-autoscaler.kubernetes.io/safe-to-evict: "false"`},
		"safe to evict":                    {map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}, nil, "", "", ""},
		"may be disrupted":                 {map[string]string{"karpenter.sh/do-not-disrupt": "false"}, nil, "", "", ""},
	} {
		got := annotations.DrainPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations, Labels: c.labels}})
		if got.How != c.how || got.OrderFault != c.fault || got.Kept != c.kept {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestADrainSeesOfABudgetWhatItNeeds(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	got := annotations.DrainBudget(read[policyv1.PodDisruptionBudget](t, `
metadata: {namespace: shop, name: web, resourceVersion: "7", generation: 3}
spec:
  maxUnavailable: 25%
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector: {matchLabels: {app: web}, matchExpressions: [{key: tier, operator: In, values: [front]}]}
status:
  observedGeneration: 3
  disruptionsAllowed: 1
  currentHealthy: 4
  desiredHealthy: 3
  expectedPods: 4
  disruptedPods: {web-2: "2026-01-01T00:00:00Z", web-1: "2026-01-01T00:00:00Z"}
  conditions: [{type: DisruptionAllowed, status: "False", reason: SyncFailed, message: no scale, lastTransitionTime: "2026-01-01T00:00:00Z"}]
`))
	want := drain.Budget{
		Namespace: "shop", Name: "web", Version: 7, MaxUnavailable: "25%", AlwaysAllow: true, Current: true, SyncFailed: "no scale",
		Selector: &selector.LabelSelector{
			MatchLabels:      map[string]string{"app": "web"},
			MatchExpressions: []selector.SelectorRequirement{{Key: "tier", Operator: "In", Values: []string{"front"}}},
		},
		Allowed: 1, CurrentHealthy: 4, DesiredHealthy: 3, ExpectedPods: 4, Disrupted: map[string]time.Time{"web-1": at, "web-2": at},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestABudgetThatSaysLess(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                        {`{}`, ""},
		"a status of an older text":      {`{metadata: {generation: 4}, status: {observedGeneration: 3}}`, "old"},
		"a status of this text":          {`{metadata: {generation: 4}, status: {observedGeneration: 4}}`, ""},
		"pods that are not well stay":    {`{spec: {unhealthyPodEvictionPolicy: IfHealthyBudget}}`, ""},
		"pods that are not well may go":  {`{spec: {unhealthyPodEvictionPolicy: AlwaysAllow}}`, "always"},
		"it permits, whatever its words": {`{status: {conditions: [{type: DisruptionAllowed, status: "True", reason: SufficientPods, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`, ""},
		"a condition of somebody else's": {`{status: {conditions: [{type: Other, status: "False", reason: SyncFailed, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`, ""},
		"a selector of no expressions":   {`{spec: {selector: {matchLabels: {app: web}}}}`, "selects"},
	} {
		b := annotations.DrainBudget(read[policyv1.PodDisruptionBudget](t, c.text))
		got := ""
		for _, one := range []struct {
			is   bool
			word string
		}{{!b.Current, "old"}, {b.AlwaysAllow, "always"}, {b.SyncFailed != "", "failed"}, {b.Selector != nil, "selects"}, {b.Disrupted != nil, "disrupts"}, {b.MinAvailable+b.MaxUnavailable != "", "bounds"}} {
			if one.is {
				got += one.word
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
