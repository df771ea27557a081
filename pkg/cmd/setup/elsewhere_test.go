package setup

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

// One agent is all that the cluster-scoped objects have room for, however it runs.
func TestInstallRefusesASecondAgent(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	heartbeat := func(age time.Duration) runtime.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: annotations.HeartbeatName}, Data: map[string]string{"heartbeat": now.Add(-age).Format(time.RFC3339)}}
	}
	led := func(since, renewed time.Duration) runtime.Object {
		holder, at := "agent-a", func(ago time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: now.Add(-ago)} }
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: annotations.LeaseName}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: at(since), RenewTime: at(renewed)}}
	}
	binding := installedObject("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", annotations.AgentName)
	binding.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": annotations.AgentName, "namespace": "ops"}}
	policy := installedObject("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", annotations.AgentPolicy)
	policy.Object["spec"] = map[string]any{"matchConditions": []any{map[string]any{"expression": "request.userInfo.username == 'system:serviceaccount:ops:maint-agent'"}}}
	forged := installedObject("rbac.authorization.k8s.io/v1", "RoleBinding", "ops", annotations.AgentName)
	forged.Object["subjects"] = binding.Object["subjects"]
	deployment := installedObject("apps/v1", "Deployment", "ops", annotations.AgentName)
	const (
		installed = "an agent is installed in namespace ops: give --namespace ops to upgrade it, or uninstall it first: 'kubectl maint uninstall --apply --namespace ops'"
		runs      = "an agent runs in namespace ops without a Deployment: stop it where it runs, and remove its objects: 'kubectl maint uninstall --apply --namespace ops'; or give --namespace ops to install it there"
	)
	for name, c := range map[string]struct {
		live  *unstructured.Unstructured // of the cluster
		there []*unstructured.Unstructured
		shows []runtime.Object
		into  string
		want  string
	}{
		"its Deployment is there":                                 {live: binding, there: []*unstructured.Unstructured{deployment}, want: installed},
		"a policy alone names it":                                 {live: policy, there: []*unstructured.Unstructured{deployment}, want: installed},
		"it has no Deployment, and shows itself":                  {live: binding, shows: []runtime.Object{heartbeat(5 * time.Second)}, want: runs},
		"a policy alone names one without a Deployment":           {live: policy, shows: []runtime.Object{heartbeat(5 * time.Second)}, want: runs},
		"it has a Lease, and no heartbeat yet":                    {live: binding, shows: []runtime.Object{led(time.Second, time.Second)}, want: runs},
		"it holds its Lease, and never wrote a heartbeat":         {live: binding, shows: []runtime.Object{led(time.Hour, time.Second)}, want: runs},
		"it holds its Lease, and writes no more heartbeats":       {live: binding, shows: []runtime.Object{led(time.Hour, time.Second), heartbeat(time.Hour)}, want: runs},
		"it held its Lease long ago":                              {live: binding, shows: []runtime.Object{led(2*time.Hour, time.Hour), heartbeat(time.Hour)}},
		"it was last seen long ago":                               {live: binding, shows: []runtime.Object{heartbeat(time.Hour)}},
		"nothing is left of it but its rights":                    {live: binding},
		"it is the one to upgrade":                                {live: binding, shows: []runtime.Object{heartbeat(5 * time.Second)}, into: "ops"},
		"nothing of the cluster names what a tenant forged":       {there: []*unstructured.Unstructured{deployment}, shows: []runtime.Object{heartbeat(5 * time.Second)}},
		"nor does a RoleBinding of his name it for the cluster's": {live: forged, there: []*unstructured.Unstructured{deployment}, shows: []runtime.Object{heartbeat(5 * time.Second)}},
	} {
		t.Run(name, func(t *testing.T) {
			f := factory.NewFor(factory.Env{Version: "v0.1.0", Name: "kubectl maint", Now: func() time.Time { return now }}, &factory.Cluster{Kube: fake.NewClientset(c.shows...)})
			o := &installOptions{Factory: f}
			if o.manifests.Namespace = c.into; c.into == "" {
				o.manifests.Namespace = "maint-system"
			}
			client, mapper := fakeOf(t, &uninstallOptions{Factory: f, namespace: "maint-system"}, c.there)
			live := objectsByKey{}
			if c.live != nil {
				live[keyOf(c.live)] = c.live
			}
			got := ""
			if err := o.elsewhere(t.Context(), &applier{client: client, mapper: mapper}, live); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}
