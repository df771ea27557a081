package backup

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// claimsOf are the names of the claims to back up, unique and sorted.
func claimsOf(ctx context.Context, call executors.Call, p *plan.BackupProperties) ([]string, error) {
	var names []string
	var what string
	var err error
	if p.Selector != nil {
		names, what, err = claimsSelected(ctx, call, *p.Selector)
	} else {
		what = "component " + p.Component
		names, err = claimsOfComponent(ctx, call, p.Component)
	}
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, api.Refuse(executors.ReasonNotFound, "nothing is there to back up: %s has no claim in namespace %s", what, call.Plan.Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func claimsSelected(ctx context.Context, call executors.Call, s selector.LabelSelector) (names []string, what string, err error) {
	sel, err := api.Selector(s)
	if err != nil {
		return nil, "", err
	}
	names, err = listClaims(ctx, call, sel)
	return names, "selector " + sel, err
}

// listClaims are the names of claims: whole ones would be kept page after page.
func listClaims(ctx context.Context, call executors.Call, selector string) ([]string, error) {
	var out []string
	var tooMany error
	err := kube.EachOf(ctx, call.Clients.Kube.CoreV1().PersistentVolumeClaims(call.Plan.Namespace).List, selector, func(c *corev1.PersistentVolumeClaim) error {
		out = append(out, c.Name)
		if err := call.Clients.TooMany(len(out), "PersistentVolumeClaims"); err != nil {
			tooMany = api.Refuse("TooMany", "%v", err)
		}
		return tooMany
	})
	if tooMany != nil {
		return nil, tooMany
	}
	if err != nil {
		return nil, api.Failed(action(call, "list", corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), ""), err)
	}
	return out, nil
}

// claimsOfComponent looks for a StatefulSet, a Deployment and a claim of that name, in this order,
// and takes the first that exists.
func claimsOfComponent(ctx context.Context, call executors.Call, name string) ([]string, error) {
	set, err := call.Clients.Kube.AppsV1().StatefulSets(call.Plan.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err = api.Failed(action(call, "get", appsv1.SchemeGroupVersion.WithResource("statefulsets"), name), err); err == nil {
		return claimsOfSet(ctx, call, set)
	}
	if !api.IsMissing(err) {
		return nil, err
	}
	deployment, err := call.Clients.Kube.AppsV1().Deployments(call.Plan.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err = api.Failed(action(call, "get", appsv1.SchemeGroupVersion.WithResource("deployments"), name), err); err == nil {
		return mounted(deployment.Spec.Template.Spec), nil
	}
	if !api.IsMissing(err) {
		return nil, err
	}
	claim, err := call.Clients.Kube.CoreV1().PersistentVolumeClaims(call.Plan.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err = api.Failed(action(call, "get", corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), name), err); err == nil {
		return []string{claim.Name}, nil
	}
	if !api.IsMissing(err) {
		return nil, err
	}
	return nil, api.Refuse(executors.ReasonNotFound, "component: namespace %s has no StatefulSet, Deployment or PersistentVolumeClaim named %q", call.Plan.Namespace, name)
}

// claimsOfSet are the claims of a StatefulSet that exist, not only those of its replicas: one that
// was scaled down for the backup still has its data.
func claimsOfSet(ctx context.Context, call executors.Call, set *appsv1.StatefulSet) ([]string, error) {
	names := mounted(set.Spec.Template.Spec)
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return names, nil
	}
	claims, err := listClaims(ctx, call, "")
	for _, claim := range claims {
		for _, template := range set.Spec.VolumeClaimTemplates {
			if ordinal, ok := strings.CutPrefix(claim, template.Name+"-"+set.Name+"-"); ok && isNumber(ordinal) {
				names = append(names, claim)
			}
		}
	}
	return names, err
}

func isNumber(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

func mounted(pod corev1.PodSpec) []string {
	var names []string
	for _, v := range pod.Volumes {
		if v.PersistentVolumeClaim != nil {
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return names
}

func action(call executors.Call, verb string, resource schema.GroupVersionResource, name string) api.Action {
	return api.Action{Verb: verb, Resource: resource, Namespace: call.Plan.Namespace, Name: name}
}
