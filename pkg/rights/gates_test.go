package rights

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

func TestOfGates(t *testing.T) {
	const flux, source = "kustomize.toolkit.fluxcd.io/v1", "source.toolkit.fluxcd.io/v1"
	needs, open := OfGates(policy.PolicySpec{Gates: []policy.GateRule{
		{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Knob: "deployment"},
		{APIVersion: flux, Kind: "Kustomization", Namespace: "flux-system", Knob: "flux"},
		{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Knob: "machineconfigpool"},
	}}, "shop")
	want := []Need{
		{Namespace: "shop", APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Verbs: []string{"patch"}, For: "gate Deployment/web"},
		{Namespace: "shop", APIVersion: "apps/v1", Kind: "Deployment", Verbs: []string{"list", "watch"}, For: "gate Deployment/web"},
		{Namespace: "flux-system", APIVersion: flux, Kind: "Kustomization", Verbs: []string{"list", "watch", "patch"}, For: "gate every Kustomization"},
		{Namespace: "flux-system", APIVersion: source, Kind: "GitRepository", Verbs: []string{"get"}, For: "gate every Kustomization"},
		{Namespace: "flux-system", APIVersion: source, Kind: "OCIRepository", Verbs: []string{"get"}, For: "gate every Kustomization"},
		{Namespace: "flux-system", APIVersion: source, Kind: "Bucket", Verbs: []string{"get"}, For: "gate every Kustomization"},
		{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Verbs: []string{"list", "watch", "patch"}, For: "gate every MachineConfigPool"},
	}
	if diff := cmp.Diff(want, needs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"gate every Kustomization: get on its source (GitRepository, OCIRepository, Bucket), if that is in another namespace"}, open); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOpenScopes(t *testing.T) {
	const managed = "s3.aws.upbound.io/v1beta1"
	field := map[string]any{"path": "/spec/paused", "closed": true, "open": false}
	for name, c := range map[string]struct {
		gate policy.GateRule
		open bool
	}{
		"a managed resource of Crossplane":       {policy.GateRule{APIVersion: managed, Kind: "Bucket", Knob: "crossplane"}, true},
		"one whose namespace the gate names":     {policy.GateRule{APIVersion: managed, Kind: "Bucket", Namespace: "shop", Knob: "crossplane"}, false},
		"a kind that nobody here knows":          {policy.GateRule{APIVersion: "example.org/v1", Kind: "Tenant", Name: "a", Knob: field}, true},
		"a kind of Kubernetes":                   {policy.GateRule{APIVersion: "batch/v1", Kind: "CronJob", Knob: field}, false},
		"a kind that is known to have none":      {policy.GateRule{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Knob: field}, false},
		"a kind of a controller known by a name": {policy.GateRule{APIVersion: "helm.toolkit.fluxcd.io/v2", Kind: "HelmRelease", Knob: "flux"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OpenScopes(policy.PolicySpec{Gates: []policy.GateRule{c.gate}}); len(got) > 0 != c.open {
				t.Errorf("%q", got)
			}
		})
	}
}
