package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// Where, as whom and how often the API server is written to.
const (
	admissionNamespace = "bench-admission"
	admissionPerson    = "writer" // may do all, but is no member of system:masters
	admissionStranger  = "stranger"
	admissionObjects   = 64
	admissionWrites    = 2000
	admissionActive    = time.Minute // within which policies take effect
)

// admitted measures how many writes the API server takes in a second without and with the
// admission policies: on objects that are nobody's business here, on plans, and on workloads.
func (b *bench) admitted(ctx context.Context, out io.Writer) (err error) {
	if err := b.open(ctx, cluster.Options{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	b.printHead(out, fmt.Sprintf("%d writes of each kind, %d at once", admissionWrites, writers))
	if err := b.makeAdmitted(ctx); err != nil {
		return err
	}
	var samples []sample
	for i := range b.rounds {
		b.say("admission policies, round %d", i+1)
		s, err := b.admissionRound(ctx)
		if err != nil {
			return err
		}
		samples = append(samples, s)
	}
	table(out, "writes in a second, without and with the admission policies", samples, []figure{
		{"config-off", "/s", "a ConfigMap without our labels, without policies"},
		{"config-on", "/s", "… with policies"},
		{"config-ratio", "", "… with by without, of each round"},
		{"plan-off", "/s", "the trigger of a plan, without policies"},
		{"plan-on", "/s", "… with policies"},
		{"plan-ratio", "", "… with by without, of each round"},
		{"workload-off", "/s", "a Deployment's replicas, without policies"},
		{"workload-on", "/s", "… with policies"},
		{"workload-ratio", "", "… with by without, of each round"},
	})
	return nil
}

// admissionRound writes without the policies and then with them.
func (b *bench) admissionRound(ctx context.Context) (sample, error) {
	s := sample{}
	if err := b.switchPolicies(ctx, false); err != nil {
		return nil, err
	}
	if err := b.admissionHalf(ctx, s, "off"); err != nil {
		return nil, err
	}
	if err := b.switchPolicies(ctx, true); err != nil {
		return nil, err
	}
	if err := b.admissionHalf(ctx, s, "on"); err != nil {
		return nil, err
	}
	for _, kind := range []string{"config", "plan", "workload"} {
		s[kind+"-ratio"] = s[kind+"-on"] / s[kind+"-off"]
	}
	return s, nil
}

func (b *bench) admissionHalf(ctx context.Context, s sample, half string) error {
	writer, err := b.as(admissionPerson)
	if err != nil {
		return err
	}
	configs, workloads := writer.CoreV1().ConfigMaps(admissionNamespace), writer.AppsV1().Deployments(admissionNamespace)
	for kind, write := range map[string]func(ctx context.Context, i int) error{
		"config": func(ctx context.Context, i int) error {
			_, err := configs.Patch(ctx, admissionName("config", i), types.MergePatchType, fmt.Appendf(nil, `{"data":{"n":"%d"}}`, i), metav1.PatchOptions{})
			return err
		},
		"plan": func(ctx context.Context, i int) error {
			_, err := configs.Patch(ctx, admissionName("plan", i), types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"n-%d-%s"}}}`, annotations.Trigger, i, half), metav1.PatchOptions{})
			return err
		},
		"workload": func(ctx context.Context, i int) error {
			_, err := workloads.Patch(ctx, admissionName("workload", i), types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, i%7), metav1.PatchOptions{})
			return err
		},
	} {
		began := time.Now()
		if err := each(ctx, admissionWrites, write); err != nil {
			return fmt.Errorf("%s with the policies %s: %w", kind, half, err)
		}
		s[kind+"-"+half] = admissionWrites / time.Since(began).Seconds()
	}
	return nil
}

func admissionName(kind string, i int) string {
	return fmt.Sprintf("%s-%d", kind, i%admissionObjects)
}

// makeAdmitted makes what is written to, and those who write.
func (b *bench) makeAdmitted(ctx context.Context) error {
	if _, err := b.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: admissionNamespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	for person, rule := range map[string]rbacv1.PolicyRule{
		admissionPerson:   {APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		admissionStranger: {APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
	} {
		if err := b.allow(ctx, person, rule); err != nil {
			return err
		}
	}
	return each(ctx, admissionObjects, func(ctx context.Context, i int) error {
		_, err := b.admin.CoreV1().ConfigMaps(admissionNamespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: admissionName("config", i)}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		_, err = b.admin.CoreV1().ConfigMaps(admissionNamespace).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: admissionName("plan", i), Labels: map[string]string{annotations.LabelKind: annotations.KindPlan}},
			Data:       map[string]string{annotations.DataPlan: "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec: {steps: [{name: wait, type: suspend, properties: {duration: 1s}}]}\n"},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		labels, replicas := map[string]string{"app": admissionName("workload", i)}, int32(0)
		_, err = b.admin.AppsV1().Deployments(admissionNamespace).Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: admissionName("workload", i)},
			Spec: appsv1.DeploymentSpec{
				Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}}},
			},
		}, metav1.CreateOptions{})
		return err
	})
}

// allow gives a person a right in the whole cluster.
func (b *bench) allow(ctx context.Context, person string, rule rbacv1.PolicyRule) error {
	named := metav1.ObjectMeta{Name: "bench-" + person}
	if _, err := b.admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: named, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := b.admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: named,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: person}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: named.Name},
	}, metav1.CreateOptions{})
	return err
}

func (b *bench) as(user string) (kubernetes.Interface, error) {
	config := b.cluster.AdminConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return kubernetes.NewForConfig(config)
}

// switchPolicies installs the admission policies, or takes their bindings away, and returns
// when a run that a stranger forges is refused, or is not.
func (b *bench) switchPolicies(ctx context.Context, on bool) error {
	change := b.unbindPolicies
	if on {
		change = func(ctx context.Context) error { return harness.ApplyAdmission(ctx, b.cluster.AdminConfig()) }
	}
	if err := change(ctx); err != nil {
		return err
	}
	stranger, err := b.as(admissionStranger)
	if err != nil {
		return err
	}
	forged := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "forged", Labels: map[string]string{annotations.LabelKind: annotations.KindRun}}}
	for limit := time.Now().Add(admissionActive); time.Now().Before(limit); {
		_, err := stranger.CoreV1().ConfigMaps(admissionNamespace).Create(ctx, forged, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			return err
		}
		if (err != nil) == on {
			return until(ctx, time.Now().Add(2*time.Second)) // the others take effect beside this one
		}
		if err := until(ctx, time.Now().Add(50*time.Millisecond)); err != nil {
			return err
		}
	}
	return fmt.Errorf("after %s a forged run is still refused: %t", admissionActive, !on)
}

// unbindPolicies takes away all bindings, those that confine the agent's token with them:
// the cluster has none but ours.
func (b *bench) unbindPolicies(ctx context.Context) error {
	of := b.admin.AdmissionregistrationV1()
	return errors.Join(
		of.ValidatingAdmissionPolicyBindings().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		of.MutatingAdmissionPolicyBindings().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
	)
}
