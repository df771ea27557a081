package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

const (
	namespace = "chaos"
	trigger   = "chaos.example.org/upgrade" // the label that asks for a run
)

// A plan is written anew at each edit: V is its version, SLOTS its schedules, HOOK
// the receiver. What they do together is every trigger, and every kind of step that
// needs no cloud and no kubelet.
func texts() map[string]string {
	return map[string]string{
		"steady": `
description: V
target: {apiVersion: apps/v1, kind: Deployment, name: shop}
triggers: {schedules: SLOTS}
steps:
- {name: begin, type: webhook, retry: {limit: 20, backoff: 1s, maxBackoff: 2s}, properties: {url: "HOOK/steady/begin"}}
- {name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: shop}, replicas: 0, restoreAfter: true}}
- {name: mark, type: label, properties: {operation: add, labels: {chaos.example.org/steady: "on"}, restoreAfter: true}}
- {name: hold, type: suspend, properties: {duration: 6s}}
- {name: end, type: webhook, retry: {limit: 20, backoff: 1s, maxBackoff: 2s}, properties: {url: "HOOK/steady/slow"}}
finally:
- {name: over, type: webhook, retry: {limit: 20, backoff: 1s, maxBackoff: 2s}, properties: {url: "HOOK/steady/over"}}
`,
		"ticks": `
description: V
concurrencyPolicy: Queue
catchUp: all
triggers: {schedules: SLOTS}
steps:
- {name: note, type: annotate, properties: {operation: add, object: {apiVersion: apps/v1, kind: Deployment, name: stock}, annotations: {chaos.example.org/ticks: "on"}, restoreAfter: true}}
- {name: patch, type: patch-object, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: stock}, patch: {spec: {minReadySeconds: 7}}, restoreAfter: true}}
- {name: make, type: apply-object, properties: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: ticks-made}, data: {from: "${run.name}"}}}}
- {name: there, type: wait, properties: {resource: {apiVersion: v1, kind: ConfigMap, name: ticks-made}, until: "object.data.from != ''"}}
- {name: say, type: webhook, retry: {limit: 20, backoff: 1s, maxBackoff: 2s}, properties: {url: "HOOK/ticks/flaky"}}
finally:
- {name: unmake, type: delete-object, properties: {resource: {apiVersion: v1, kind: ConfigMap, name: ticks-made}}}
`,
		"labelled": `
description: V
target: {apiVersion: apps/v1, kind: Deployment, name: orders}
triggers: {labels: [chaos.example.org/upgrade]}
steps:
- {name: down, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0, restoreAfter: true}}
- {name: is-down, type: wait, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, until: "object.spec.replicas == 0"}}
- {name: again, type: restart, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: stock}}}
- {name: hold, type: suspend, properties: {duration: 4s}}
- {name: say, type: webhook, retry: {limit: 20, backoff: 1s, maxBackoff: 2s}, properties: {url: "HOOK/labelled/flaky"}}
`,
		"watched": `
description: V
triggers: {watch: [{apiVersion: v1, kind: ConfigMap, selector: {matchLabels: {chaos.example.org/source: "yes"}}, fields: [data.v], events: [create, update]}]}
steps:
- {name: say, type: webhook, retry: {limit: 20, backoff: 1s, maxBackoff: 2s}, properties: {url: "HOOK/watched/${watched.metadata.name}"}}
- {name: copy, type: apply-object, properties: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: watched-copy}, data: {v: "${watched.data.v}"}}}}
finally:
- {name: tidy, type: delete-object, properties: {resource: {apiVersion: v1, kind: ConfigMap, name: watched-copy}}}
`,
		"asked": `
description: V
retryLimit: 1
steps:
- name: together
  type: step-group
  properties:
    mode: parallel
    steps:
    - {name: one, type: webhook, retry: {limit: 20, backoff: 1s, maxBackoff: 2s}, properties: {url: "HOOK/asked/one"}}
    - {name: two, type: webhook, dependsOn: [one], retry: {limit: 20, backoff: 1s, maxBackoff: 2s}, properties: {url: "HOOK/asked/two/slow"}}
    - {name: well, type: health-check, timeout: 2m, properties: {selector: {matchLabels: {tier: each}}}}
- name: each
  type: for-each
  properties:
    apiVersion: apps/v1
    kind: Deployment
    selector: {matchLabels: {tier: each}}
    maxConcurrency: 2
    steps:
    - {name: note, type: annotate, properties: {operation: add, object: {apiVersion: apps/v1, kind: Deployment, name: "${each.metadata.name}"}, annotations: {chaos.example.org/asked: "on"}, restoreAfter: true}}
    - {name: say, type: webhook, retry: {limit: 20, backoff: 1s, maxBackoff: 2s}, properties: {url: "HOOK/asked/each/${each.metadata.name}"}}
- {name: may-i, type: approval, properties: {timeout: 5m}}
- {name: work, type: job, timeout: 2m, properties: {image: example.org/none, command: [work]}}
onFailure:
- {name: failed, type: webhook, retry: {limit: 20, backoff: 1s, maxBackoff: 2s}, properties: {url: "HOOK/asked/failed"}}
finally:
- {name: over, type: webhook, retry: {limit: 20, backoff: 1s, maxBackoff: 2s}, properties: {url: "HOOK/asked/over"}}
`,
		"rollout": `
description: V
steps:
- name: roll
  type: for-each-node
  properties:
    selector: {matchLabels: {pool: roll}}
    steps:
    - {name: drain, type: drain, timeout: 2m}
    - {name: work, type: webhook, retry: {limit: 20, backoff: 1s, maxBackoff: 2s}, properties: {url: "HOOK/rollout/${node.metadata.name}"}}
    - {name: back, type: uncordon}
`,
		"newborn": `
description: V
triggers: {onCreate: true}
steps:
- {name: hello, type: webhook, retry: {limit: 20, backoff: 1s, maxBackoff: 2s}, properties: {url: "HOOK/newborn/hello"}}
- {name: hold, type: suspend, properties: {duration: 3s}}
finally:
- {name: bye, type: webhook, retry: {limit: 20, backoff: 1s, maxBackoff: 2s}, properties: {url: "HOOK/newborn/bye"}}
`,
	}
}

// none is a plan without schedules; the others begin with theirs.
const none = "[]"

// everyMinute is what steady begins with.
const everyMinute = `[{cron: "* * * * *"}]`

// instants are slots every few seconds from an instant on, for a while.
func instants(from time.Time, every, length time.Duration) string {
	var out []string
	for at := from.Truncate(time.Second).Add(every); at.Before(from.Add(length)); at = at.Add(every) {
		out = append(out, fmt.Sprintf("{at: %q}", at.UTC().Format(time.RFC3339)))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// document is a plan's text at a version with its schedules.
func (w *world) document(plan string, version int, slots string) string {
	text := texts()[plan]
	if slots == none {
		text = strings.Replace(text, "triggers: {schedules: SLOTS}\n", "", 1)
	}
	text = strings.NewReplacer("description: V", fmt.Sprintf("description: v%d", version), "SLOTS", slots, "HOOK", w.hooks.URL).Replace(text)
	return "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  " + strings.ReplaceAll(strings.Trim(text, "\n"), "\n", "\n  ") + "\n"
}

// lay puts the ground under the plans: accounts, workloads, nodes of a pool.
func (w *world) lay(ctx context.Context) error {
	if _, err := w.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := w.accounts(ctx); err != nil {
		return err
	}
	for name, labels := range map[string]map[string]string{"shop": nil, "orders": nil, "stock": nil, "each-1": {"tier": "each"}, "each-2": {"tier": "each"}, "web": nil} {
		if err := w.deploy(ctx, name, labels); err != nil {
			return err
		}
	}
	one := intstr.FromInt32(1)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}}
	if _, err := w.admin.PolicyV1().PodDisruptionBudgets(namespace).Create(ctx, budget, metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, node := range []string{"node-0", "node-1"} {
		if err := w.mergeNode(ctx, node, `{"metadata":{"labels":{"pool":"roll"}}}`); err != nil {
			return err
		}
	}
	source := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "source", Labels: map[string]string{"chaos.example.org/source": "yes"}}, Data: map[string]string{"v": "0"}}
	_, err := w.admin.CoreV1().ConfigMaps(namespace).Create(ctx, source, metav1.CreateOptions{})
	return err
}

func (w *world) accounts(ctx context.Context) error {
	rule := func(group, resources, verbs string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: strings.Fields(resources), Verbs: strings.Fields(verbs)}
	}
	err := harness.Runner(ctx, w.admin, namespace,
		rule("apps", "deployments deployments/scale statefulsets daemonsets", "get list watch patch"), rule("batch", "jobs", "get list watch create delete"), rule("batch", "cronjobs", "get list watch patch"),
		rule("", "configmaps", "get list watch create patch delete"), rule("", "pods pods/log", "get list"), rule("maint.dev", "plans", "override"))
	if err != nil {
		return err
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "chaos-roller"}, Rules: []rbacv1.PolicyRule{
		rule("", "nodes", "get list watch patch"), rule("", "pods", "list watch delete"), rule("", "pods/eviction", "create"), rule("apps", "daemonsets", "get"),
	}}
	if _, err := w.admin.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err = w.admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "maint-runner", Namespace: namespace}},
	}, metav1.CreateOptions{})
	return err
}

func (w *world) deploy(ctx context.Context, name string, labels map[string]string) error {
	replicas, app := int32(2), map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: app},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.org/none"}}}},
	}}
	if _, err := w.admin.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{}); err != nil {
		return err
	}
	return w.until(ctx, name+" is ready", time.Minute, func(ctx context.Context) (bool, error) {
		now, err := w.admin.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && now.Status.ReadyReplicas == replicas, err
	})
}

// plant creates a plan at its first version.
func (w *world) plant(ctx context.Context, name, slots string) error {
	w.edits++
	cm := annotations.NewPlan(namespace, name, w.document(name, w.edits, slots), "")
	_, err := w.admin.CoreV1().ConfigMaps(namespace).Create(ctx, cm, metav1.CreateOptions{})
	return err
}
