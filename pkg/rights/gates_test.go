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
