package hibernate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// shapes are the kinds of controllers that are not there: what is asked of them is seen in
// their objects.
const shapes = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: scaledobjects.keda.sh}
spec:
  group: keda.sh
  scope: Namespaced
  names: {kind: ScaledObject, plural: scaledobjects, singular: scaledobject}
  versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: nodepools.karpenter.sh}
spec:
  group: karpenter.sh
  scope: Cluster
  names: {kind: NodePool, plural: nodepools, singular: nodepool}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: nodeclaims.karpenter.sh}
spec:
  group: karpenter.sh
  scope: Cluster
  names: {kind: NodeClaim, plural: nodeclaims, singular: nodeclaim}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rollouts.hibernate.example.org}
spec:
  group: hibernate.example.org
  scope: Namespaced
  names: {kind: Rollout, plural: rollouts, singular: rollout}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {replicas: {type: integer}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {replicas: {type: integer}}}
`

func (l *lab) dynamic() dynamic.Interface {
	l.Helper()
	d, err := dynamic.NewForConfig(world.cluster.AdminConfig())
	l.must(err)
	return d
}

func resourceNamed(group, version, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
}

// serves has the cluster serve the shapes.
func (l *lab) serves() {
	l.Helper()
	l.must(harness.Apply(l.ctx, world.cluster.AdminConfig(), "", []byte(shapes), nil))
	for _, r := range []schema.GroupVersionResource{
		resourceNamed("keda.sh", "v1alpha1", "scaledobjects"), resourceNamed("karpenter.sh", "v1", "nodepools"), resourceNamed("karpenter.sh", "v1", "nodeclaims"), resourceNamed("hibernate.example.org", "v1", "rollouts"),
	} {
		l.eventually(r.Resource+" are served", func() (bool, string) {
			_, err := l.dynamic().Resource(r).List(l.ctx, metav1.ListOptions{})
			return err == nil, fmt.Sprint(err)
		})
	}
}

func (l *lab) apply(text string) {
	l.Helper()
	l.must(harness.Apply(l.ctx, world.cluster.AdminConfig(), l.ns, []byte(text), nil))
}

func (l *lab) get(r schema.GroupVersionResource, name string) *unstructured.Unstructured {
	l.Helper()
	u, err := l.dynamic().Resource(r).Namespace(l.ns).Get(l.ctx, name, metav1.GetOptions{})
	l.must(err)
	return u
}

func (l *lab) hold(state string, phase hibernate.Phase) {
	l.Helper()
	l.annotate("nights", map[string]string{annotations.HoldState: state})
	l.phaseOf("nights", phase, "")
}

func TestAnAutoscalerLetsGoOfWhatSleeps(t *testing.T) {
	l := newLab(t)
	l.runner(sleepRights()...)
	l.deployment("orders", 3)
	l.apply(`
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: orders}
spec: {minReplicas: 2, maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: orders}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}
`)
	l.sleeper("nights", workloads())
	l.hold("asleep", hibernate.Hibernated)
	l.eventually("the autoscaler says that it does nothing", func() (bool, string) {
		u := l.get(resourceNamed("autoscaling", "v2", "horizontalpodautoscalers"), "orders")
		conditions := fmt.Sprint(u.Object["status"])
		return strings.Contains(conditions, "ScalingDisabled"), conditions
	})
	if n := l.replicas("orders"); n != 0 {
		t.Errorf("orders has %d", n)
	}
	l.hold("awake", hibernate.Active)
	if n := l.replicas("orders"); n != 3 {
		t.Errorf("orders has %d", n)
	}
}

// With a floor the autoscaler would scale it up again: it is left out, and said.
func TestAFloorUnderAnAutoscalerIsLeftOut(t *testing.T) {
	l := newLab(t)
	l.runner(append(sleepRights(), rbacv1.PolicyRule{APIGroups: []string{"autoscaling"}, Resources: []string{"horizontalpodautoscalers"}, Verbs: []string{"list"}})...)
	l.deployment("orders", 3)
	l.deployment("web", 4)
	l.apply(`
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: orders}
spec: {minReplicas: 2, maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: orders}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}
`)
	l.sleeper("nights", strings.Replace(workloads(), "type: workload", "type: workload, parameters: {floor: 1}", 1))
	l.hold("asleep", hibernate.Hibernated)
	if orders, web := l.replicas("orders"), l.replicas("web"); orders != 3 || web != 1 {
		t.Errorf("orders has %d, web %d", orders, web)
	}
	l.eventually("it is said", func() (bool, string) {
		text := l.annotationsOf("nights")[annotations.StatusTargets]
		return strings.Contains(text, "HorizontalPodAutoscaler orders scales it"), text
	})
	l.hold("awake", hibernate.Active)
	if orders, web := l.replicas("orders"), l.replicas("web"); orders != 3 || web != 4 {
		t.Errorf("orders has %d, web %d", orders, web)
	}
}

func TestScaledObjectsArePausedAndGoOnAsTheyWere(t *testing.T) {
	l := newLab(t)
	l.serves()
	l.runner(sleepRights()...)
	l.deployment("orders", 3)
	l.deployment("web", 2)
	l.apply(`
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: orders, annotations: {team: blue}}
spec: {scaleTargetRef: {name: orders}}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web, annotations: {autoscaling.keda.sh/paused-replicas: "2"}}
spec: {scaleTargetRef: {kind: Deployment, name: web}}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: other}
spec: {scaleTargetRef: {kind: Queue, name: other}}
`)
	paused := func() string {
		var out []string
		for _, name := range []string{"orders", "web", "other"} {
			value, there := l.get(resourceNamed("keda.sh", "v1alpha1", "scaledobjects"), name).GetAnnotations()["autoscaling.keda.sh/paused-replicas"]
			if !there {
				value = "none"
			}
			out = append(out, name+" "+value)
		}
		return strings.Join(out, ", ")
	}
	l.sleeper("nights", workloads())
	l.hold("asleep", hibernate.Hibernated)
	if got := paused(); got != "orders 0, web 0, other none" || l.replicas("orders") != 0 || l.replicas("web") != 0 {
		t.Errorf("paused at %s; orders has %d, web %d", got, l.replicas("orders"), l.replicas("web"))
	}
	l.hold("awake", hibernate.Active)
	if got := paused(); got != "orders none, web 2, other none" || l.replicas("orders") != 3 || l.replicas("web") != 2 {
		t.Errorf("paused at %s; orders has %d, web %d", got, l.replicas("orders"), l.replicas("web"))
	}
}

func TestADaemonSetSleepsIfAsked(t *testing.T) {
	l := newLab(t)
	l.runner(append(sleepRights(), rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, Verbs: []string{"get", "list", "patch"}})...)
	l.apply(`
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: logs}
spec:
  selector: {matchLabels: {app: logs}}
  template: {metadata: {labels: {app: logs}}, spec: {nodeSelector: {kubernetes.io/os: linux}, containers: [{name: c, image: example.org/none}]}}
`)
	pods := func() int {
		list, err := l.admin.CoreV1().Pods(l.ns).List(l.ctx, metav1.ListOptions{LabelSelector: "app=logs"})
		l.must(err)
		return len(list.Items)
	}
	l.eventually("it runs", func() (bool, string) {
		d, err := l.admin.AppsV1().DaemonSets(l.ns).Get(l.ctx, "logs", metav1.GetOptions{})
		l.must(err)
		return d.Status.NumberReady == 2, fmt.Sprint(d.Status)
	})
	was, err := l.admin.AppsV1().DaemonSets(l.ns).Get(l.ctx, "logs", metav1.GetOptions{})
	l.must(err)
	l.sleeper("nights", strings.Replace(workloads(), "type: workload", "type: workload, parameters: {kinds: [DaemonSet]}", 1))
	l.hold("asleep", hibernate.Hibernated)
	l.eventually("it has no pods", func() (bool, string) { return pods() == 0, fmt.Sprint(pods()) })
	l.hold("awake", hibernate.Active)
	is, err := l.admin.AppsV1().DaemonSets(l.ns).Get(l.ctx, "logs", metav1.GetOptions{})
	l.must(err)
	if diff := cmp.Diff(was.Spec, is.Spec); diff != "" || pods() != 2 {
		t.Errorf("it has %d pods, -was +is:\n%s", pods(), diff)
	}
}

func TestWhatScalesByItsSubresourceSleeps(t *testing.T) {
	l := newLab(t)
	l.serves()
	l.runner(append(sleepRights(),
		rbacv1.PolicyRule{APIGroups: []string{"hibernate.example.org"}, Resources: []string{"rollouts"}, Verbs: []string{"get", "list"}},
		rbacv1.PolicyRule{APIGroups: []string{"hibernate.example.org"}, Resources: []string{"rollouts/scale"}, Verbs: []string{"get", "patch"}})...)
	rollouts := resourceNamed("hibernate.example.org", "v1", "rollouts")
	l.apply("apiVersion: hibernate.example.org/v1\nkind: Rollout\nmetadata: {name: orders}\nspec: {replicas: 4}\n")
	replicas := func() int64 {
		n, _, _ := unstructured.NestedInt64(l.get(rollouts, "orders").Object, "spec", "replicas")
		return n
	}
	runs := func(n int64) { // as its controller would say
		_, err := l.dynamic().Resource(rollouts).Namespace(l.ns).Patch(l.ctx, "orders", types.MergePatchType, []byte(fmt.Sprintf(`{"status":{"replicas":%d}}`, n)), metav1.PatchOptions{}, "status")
		l.must(err)
	}
	runs(4)
	l.sleeper("nights", strings.Replace(workloads(), "type: workload", "type: workload, parameters: {kinds: [{apiVersion: hibernate.example.org/v1, kind: Rollout}]}", 1))
	l.annotate("nights", map[string]string{annotations.HoldState: "asleep"})
	l.eventually("it is told to", func() (bool, string) { return replicas() == 0, fmt.Sprint(replicas()) })
	l.phaseOf("nights", hibernate.Hibernating, "")
	runs(0)
	l.phaseOf("nights", hibernate.Hibernated, "")
	l.annotate("nights", map[string]string{annotations.HoldState: "awake"})
	l.eventually("it is told to wake", func() (bool, string) { return replicas() == 4, fmt.Sprint(replicas()) })
	l.phaseOf("nights", hibernate.WakingUp, "")
	runs(4)
	l.phaseOf("nights", hibernate.Active, "")
}

// What waits for others falls asleep first and wakes last, once they are ready.
func TestKindsSleepAndWakeInTheirOrder(t *testing.T) {
	l := newLab(t)
	l.runner(sleepRights()...)
	l.deployment("orders", 2)
	l.apply(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: example.org/none}]}}
`)
	l.eventually("db is ready", func() (bool, string) {
		s, err := l.admin.AppsV1().StatefulSets(l.ns).Get(l.ctx, "db", metav1.GetOptions{})
		l.must(err)
		return s.Status.ReadyReplicas == 2, fmt.Sprint(s.Status)
	})
	l.sleeper("nights", workloads())
	l.hold("asleep", hibernate.Hibernated)
	l.hold("awake", hibernate.Active)
	var pods []corev1.Pod
	l.eventually("all run", func() (bool, string) {
		list, err := l.admin.CoreV1().Pods(l.ns).List(context.Background(), metav1.ListOptions{})
		l.must(err)
		pods = list.Items
		return len(pods) == 4, fmt.Sprint(len(pods))
	})
	var last, first metav1.Time
	for _, p := range pods {
		switch {
		case p.Labels["app"] == "db" && last.Before(&p.CreationTimestamp):
			last = p.CreationTimestamp
		case p.Labels["app"] == "orders" && (first.IsZero() || p.CreationTimestamp.Before(&first)):
			first = p.CreationTimestamp
		}
	}
	if first.Before(&last) {
		t.Errorf("orders was made at %s, and db at %s", first, last)
	}
}

func TestKarpentersNodesSleep(t *testing.T) {
	l := newLab(t)
	l.serves()
	l.runner(sleepRights()...)
	l.apply(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: karpenter-%[1]s}
rules:
- {apiGroups: [karpenter.sh], resources: [nodepools], verbs: [list, patch]}
- {apiGroups: [karpenter.sh], resources: [nodeclaims], verbs: [list, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: karpenter-%[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: karpenter-%[1]s}
subjects: [{kind: ServiceAccount, namespace: %[1]s, name: maint-runner}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: small}
spec: {weight: 10, limits: {cpu: "1000", memory: 1000Gi}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: free}
spec: {template: {}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: memory}
spec: {limits: {memory: 1000Gi}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: kept}
spec: {limits: {cpu: "8"}}
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: small-1, labels: {karpenter.sh/nodepool: small}, finalizers: [karpenter.sh/termination]}
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: kept-1, labels: {karpenter.sh/nodepool: kept}}
`, l.ns))
	pools, claims := l.dynamic().Resource(resourceNamed("karpenter.sh", "v1", "nodepools")), l.dynamic().Resource(resourceNamed("karpenter.sh", "v1", "nodeclaims"))
	limits := func() string {
		var out []string
		for _, name := range []string{"small", "free", "memory", "kept"} {
			u, err := pools.Get(l.ctx, name, metav1.GetOptions{})
			l.must(err)
			spec := u.Object["spec"].(map[string]any)
			out = append(out, fmt.Sprintf("%s %v", name, spec["limits"]))
		}
		return strings.Join(out, ", ")
	}
	const was = "small map[cpu:1000 memory:1000Gi], free <nil>, memory map[memory:1000Gi], kept map[cpu:8]"
	l.sleeper("nights", strings.Replace(workloads(), "type: workload", "type: karpenter, parameters: {nodePools: [small, free, memory]}", 1))
	l.annotate("nights", map[string]string{annotations.HoldState: "asleep"})
	l.eventually("its nodes are to go", func() (bool, string) {
		u, err := claims.Get(l.ctx, "small-1", metav1.GetOptions{})
		l.must(err)
		return u.GetDeletionTimestamp() != nil, limits()
	})
	l.phaseOf("nights", hibernate.Hibernating, "")
	if got := limits(); got != "small map[cpu:0 memory:1000Gi], free map[cpu:0], memory map[cpu:0 memory:1000Gi], kept map[cpu:8]" {
		t.Errorf("limits are %s", got)
	}
	_, err := claims.Patch(l.ctx, "small-1", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}) // as Karpenter does once it is drained
	l.must(err)
	l.phaseOf("nights", hibernate.Hibernated, "")
	if _, err := claims.Get(l.ctx, "kept-1", metav1.GetOptions{}); err != nil {
		t.Errorf("a node of another pool: %v", err)
	}
	l.hold("awake", hibernate.Active)
	if got := limits(); got != was {
		t.Errorf("limits are %s, were %s", got, was)
	}
}
