package admission_test

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// prober may write everything that the policies look at, and has no verb of ours.
func prober() person { return person{name: "prober"} }

func (s *shared) bindProber(ctx context.Context) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test-prober"}, Rules: []rbacv1.PolicyRule{rule("", "configmaps,nodes", nil, "create")}}
	if _, err := s.admin.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		return nil
	} else if err != nil {
		return err
	}
	if err := s.bindCluster(ctx, role.Name, prober()); err != nil {
		return err
	}
	return s.may(ctx, prober(), "", "create", "", "nodes", "")
}

// probe is a request of the prober's that one policy, and no other, refuses or changes.
type probe struct {
	policy string
	kind   string // ConfigMap, where it is empty
	meta   metav1.ObjectMeta
	stamps bool // it is not refused: the actor mallory does not stay
}

func probes() []probe {
	forged := map[string]string{"maint.dev/pause": "true", "actor.maint.dev/pause": "mallory"}
	return []probe{
		{policy: "maint-documents", meta: metav1.ObjectMeta{Labels: map[string]string{"maint.dev/kind": "calendar"}}},
		{policy: "maint-records", meta: metav1.ObjectMeta{Name: "maint-run-probe-aaaaaaaaaa"}},
		{policy: "maint-status", meta: metav1.ObjectMeta{Annotations: map[string]string{"status.maint.dev/phase": "Idle"}}},
		{policy: "maint-intents", meta: metav1.ObjectMeta{Annotations: map[string]string{"maint.dev/skip": "true"}}},
		{policy: "maint-nodes", kind: "Node", meta: metav1.ObjectMeta{Annotations: map[string]string{"request.maint.dev/probe": "{}"}}},
		{policy: "maint-actor", meta: metav1.ObjectMeta{Annotations: forged}, stamps: true},
		{policy: "maint-actor-nodes", kind: "Node", meta: metav1.ObjectMeta{Annotations: forged}, stamps: true},
	}
}

// inForce says whether a policy is: nothing is kept.
func (p probe) inForce(ctx context.Context, s *shared) (bool, error) {
	who := prober()
	if p.stamps {
		who = admin() // whom no other policy refuses
	}
	if p.meta.Name == "" {
		p.meta.Name = "probe"
	}
	got, err := p.create(ctx, s.as(who))
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "'"+p.policy+"'"):
		return true, nil
	case p.stamps && apierrors.IsForbidden(err) && strings.Contains(err.Error(), "'maint-actor-check"):
		return false, nil // the forged actor came through to the policy that only looks
	case err != nil:
		return false, err
	case p.stamps:
		return got.GetAnnotations()["actor.maint.dev/pause"] != "mallory", nil
	}
	return false, nil
}

func (p probe) create(ctx context.Context, k kubernetes.Interface) (metav1.Object, error) {
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if p.kind == "Node" {
		return k.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: p.meta}, dry)
	}
	return k.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, &corev1.ConfigMap{ObjectMeta: p.meta}, dry)
}

// untilProbes waits until each policy is in force, or none is: the API server takes
// them up a moment after they were written. Where stamping is off, the policy that
// looks at actors refuses the forged one.
func (s *shared) untilProbes(ctx context.Context, want bool) error {
	for _, p := range probes() {
		if err := s.untilProbe(ctx, p, want); err != nil {
			return err
		}
	}
	return nil
}

func (s *shared) untilProbe(ctx context.Context, p probe, want bool) error {
	err := eventuallyErr(ctx, func() error {
		is, err := p.inForce(ctx, s)
		if err == nil && is != want {
			err = fmt.Errorf("in force: %v", is)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("policy %s: %w", p.policy, err)
	}
	return nil
}
