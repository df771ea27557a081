package knob_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
)

func TestOwnersAreToldByTheirMarks(t *testing.T) {
	web := knob.Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	for name, c := range map[string]struct {
		labels, annotations map[string]string
		want                string
	}{
		"nobody's":                  {want: ""},
		"a Kustomization's":         {labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}, want: "Kustomization/apps of kustomize.toolkit.fluxcd.io/v1 in [flux-system] by /spec/suspend"},
		"a name without namespace":  {labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps"}, want: ""},
		"a namespace without name":  {labels: map[string]string{"helm.toolkit.fluxcd.io/namespace": "shop"}, want: ""},
		"a release's, by its chart": {labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system", "helm.toolkit.fluxcd.io/name": "web", "helm.toolkit.fluxcd.io/namespace": "shop"}, want: "HelmRelease/web of helm.toolkit.fluxcd.io/v2 in [shop] by /spec/suspend"},
		"an Application's":          {annotations: map[string]string{"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/web"}, want: "Application/shop of argoproj.io/v1alpha1 in [argocd openshift-gitops] or anywhere by /spec/syncPolicy/automated"},
		"one of another namespace":  {annotations: map[string]string{"argocd.argoproj.io/tracking-id": "team_shop:apps/Deployment:shop/web"}, want: "Application/shop of argoproj.io/v1alpha1 in [team] by /spec/syncPolicy/automated"},
		"a mark that was copied":    {annotations: map[string]string{"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/api"}, labels: map[string]string{"app.kubernetes.io/instance": "web"}, want: ""},
		"a mark without name":       {annotations: map[string]string{"argocd.argoproj.io/tracking-id": ":apps/Deployment:shop/web"}, want: ""},
		"a label that may be":       {labels: map[string]string{"app.kubernetes.io/instance": "web"}, want: "Application/web of argoproj.io/v1alpha1 in [argocd openshift-gitops] perhaps by /spec/syncPolicy/automated"},
		"Argo CD's own label":       {labels: map[string]string{"app.kubernetes.io/instance": "web", "argocd.argoproj.io/instance": "shop"}, want: "Application/shop of argoproj.io/v1alpha1 in [argocd openshift-gitops] perhaps by /spec/syncPolicy/automated"},
		"two that both say so": {
			labels:      map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"},
			annotations: map[string]string{"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/web"},
			want:        "Kustomization/apps of kustomize.toolkit.fluxcd.io/v1 in [flux-system] by /spec/suspend; Application/shop of argoproj.io/v1alpha1 in [argocd openshift-gitops] or anywhere by /spec/syncPolicy/automated",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, o := range knob.Owners(web, c.labels, c.annotations) {
				text := fmt.Sprintf("%s of %s in %v", o, o.APIVersion, o.Namespaces)
				if o.Anywhere {
					text += " or anywhere"
				}
				if o.Doubtful {
					text += " perhaps"
				}
				got = append(got, text+" by "+o.Knob.Pointer())
			}
			if have := strings.Join(got, "; "); have != c.want {
				t.Errorf("%s, want %s", have, c.want)
			}
		})
	}
}

func TestAnApplicationOwnsWhatItsStatusNames(t *testing.T) {
	web := knob.Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	argo := knob.Owners(web, map[string]string{"app.kubernetes.io/instance": "web"}, nil)[0]
	of := func(name string) map[string]any {
		return map[string]any{"status": map[string]any{"resources": []any{"odd", map[string]any{"group": "apps", "kind": "Deployment", "namespace": "shop", "name": name}}}}
	}
	flux := knob.Owners(web, map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}, nil)[0]
	if !argo.Owns(of("web"), web) || argo.Owns(of("api"), web) || argo.Owns(nil, web) || !flux.Owns(nil, web) {
		t.Error("it does not go by the status")
	}
}

func TestWhatAnOwnerIsAt(t *testing.T) {
	condition := func(kind, status, reason string) map[string]any {
		return map[string]any{"status": map[string]any{"conditions": []any{"odd", map[string]any{"type": kind, "status": status, "reason": reason}}}}
	}
	flux := knob.Owners(knob.Object{}, map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}, nil)[0]
	helm := knob.Owners(knob.Object{}, map[string]string{"helm.toolkit.fluxcd.io/name": "apps", "helm.toolkit.fluxcd.io/namespace": "shop"}, nil)[0]
	argo := knob.Owners(knob.Object{}, map[string]string{"argocd.argoproj.io/instance": "apps"}, nil)[0]
	atGeneration := func(is map[string]any, generation, observed int64) map[string]any {
		is["metadata"] = map[string]any{"generation": generation}
		is["status"].(map[string]any)["observedGeneration"] = observed
		return is
	}
	phase := func(p string) map[string]any {
		return map[string]any{"status": map[string]any{"operationState": map[string]any{"phase": p}}}
	}
	for name, c := range map[string]struct {
		owner knob.Owner
		is    map[string]any
		busy  bool
	}{
		"Flux applies":                     {flux, condition("Reconciling", "True", "Progressing"), true},
		"Flux waits for a retry":           {flux, condition("Reconciling", "True", "ProgressingWithRetry"), false},
		"Flux has applied":                 {flux, condition("Reconciling", "False", "Progressing"), false},
		"another condition":                {flux, condition("Ready", "True", "Progressing"), false},
		"Flux says nothing":                {flux, nil, false},
		"Helm upgrades":                    {helm, atGeneration(condition("Reconciling", "True", "Progressing"), 2, 1), true},
		"Helm has seen the suspension":     {helm, atGeneration(condition("Reconciling", "True", "Progressing"), 2, 2), false},
		"Helm has seen nothing":            {helm, condition("Reconciling", "True", "Progressing"), true},
		"a Kustomization of an older mark": {flux, atGeneration(condition("Reconciling", "True", "Progressing"), 2, 2), true},
		"Argo CD syncs":                    {argo, phase("Running"), true},
		"Argo CD has synced":               {argo, phase("Succeeded"), false},
		"Argo CD is told to sync":          {argo, map[string]any{"operation": map[string]any{"sync": map[string]any{}}}, true},
		"Argo CD says nothing":             {argo, nil, false},
	} {
		if got := c.owner.Busy(c.is); (got != "") != c.busy {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestArgoCDIsAskedWhetherItHasLooked(t *testing.T) {
	flux := knob.Owners(knob.Object{}, map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}, nil)[0]
	argo := knob.Owners(knob.Object{}, map[string]string{"argocd.argoproj.io/instance": "apps"}, nil)[0]
	annotated := func(key string) map[string]any {
		return map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: "normal"}}}
	}
	if key, _ := flux.RefreshRequest(); key != "" || flux.RefreshPending(annotated("argocd.argoproj.io/refresh")) {
		t.Error("Flux is asked")
	}
	key, value := argo.RefreshRequest()
	if key != "argocd.argoproj.io/refresh" || value != "normal" {
		t.Errorf("it asks by %s=%s", key, value)
	}
	if !argo.RefreshPending(annotated(key)) || argo.RefreshPending(annotated("example.com/refresh")) || argo.RefreshPending(nil) {
		t.Error("it does not go by the annotation")
	}
}

func TestAnEmptySyncPolicyIsTakenOutWithItsAutomation(t *testing.T) {
	argo := knob.Owners(knob.Object{}, map[string]string{"argocd.argoproj.io/instance": "apps"}, nil)[0].Knob
	flux := knob.Owners(knob.Object{}, map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}, nil)[0].Knob
	for _, c := range []struct {
		name string
		knob knob.Knob
		spec string
		want string
	}{
		{"nothing else is in it", argo, `{"spec":{"syncPolicy":{"automated":{}}}}`, "spec syncPolicy"},
		{"something else is in it", argo, `{"spec":{"syncPolicy":{"automated":{},"retry":{}}}}`, "spec syncPolicy automated"},
		{"another thing alone is in it", argo, `{"spec":{"syncPolicy":{"retry":{}}}}`, "spec syncPolicy automated"},
		{"it is empty", argo, `{"spec":{"syncPolicy":{}}}`, "spec syncPolicy automated"},
		{"there is none", argo, `{}`, "spec syncPolicy automated"},
		{"an object of Flux", flux, `{"spec":{"suspend":false}}`, "spec suspend"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(c.knob.RemovedPath(object(t, c.spec)), " "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
