package packages_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/setup"
)

func mustJSON(t testing.TB, value any) string {
	t.Helper()
	b, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// customized is what 'kubectl kustomize' makes of a folder.
func customized(t *testing.T, dir string) objects {
	t.Helper()
	text, said, err := tool(t, "kubectl", "kustomize", dir)
	if err != nil {
		t.Fatal(said)
	}
	return read(t, text)
}

func TestKustomizeBringsWhatInstallBrings(t *testing.T) {
	for _, c := range []struct {
		folder string
		set    func(*setup.Manifests)
	}{
		{"base", func(*setup.Manifests) {}},
		{"overlays/single-namespace", func(m *setup.Manifests) { m.SingleNamespace, m.Namespace = true, "team" }},
		{"overlays/read-only", func(m *setup.Manifests) { m.ReadOnly = true }},
		{"overlays/with-admission", func(m *setup.Manifests) { m.Admission = true }},
		{"overlays/cloud", func(m *setup.Manifests) { m.Cloud = true }},
	} {
		t.Run(c.folder, func(t *testing.T) {
			t.Parallel()
			m := released()
			c.set(&m)
			want := installed(t, m)
			config := want["ConfigMap/maint-agent"]
			delete(want, "ConfigMap/maint-agent")
			got := customized(t, path(t, "manifests", "kustomize", c.folder))
			for _, object := range got { // which kustomize takes for one of a namespace; the API server clears that
				if strings.HasPrefix(object["kind"].(string), "ValidatingAdmissionPolicy") {
					delete(at(t, object, "metadata").(map[string]any), "namespace")
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-install +kustomize):\n%s", diff)
			}
			if m.Namespace != home {
				return
			}
			if diff := cmp.Diff(objects{"ConfigMap/maint-agent": config}, customized(t, path(t, "manifests", "kustomize", "config"))); diff != "" {
				t.Errorf("the configuration (-install +kustomize):\n%s", diff)
			}
		})
	}
}

func TestThreeAgentsStandOnThreeNodes(t *testing.T) {
	m := released()
	m.Replicas = 3
	want := installed(t, m)
	delete(want, "ConfigMap/maint-agent")
	spread := at(t, want["Deployment/maint-agent"], "spec", "template", "spec", "topologySpreadConstraints").([]any)
	spread[0].(map[string]any)["whenUnsatisfiable"] = "DoNotSchedule"
	got := customized(t, path(t, "manifests", "kustomize", "overlays", "ha"))
	budget := got["PodDisruptionBudget/maint-agent"]
	if labels := at(t, budget, "spec", "selector", "matchLabels"); !cmp.Equal(labels, at(t, want["Deployment/maint-agent"], "spec", "selector", "matchLabels")) {
		t.Errorf("the budget is for pods with %v", labels)
	}
	delete(got, "PodDisruptionBudget/maint-agent")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-install +kustomize):\n%s", diff)
	}
}

// Whoever wants two things at once makes an overlay of their own. A newer base under it
// is the upgrade, and what the overlay says holds.
func TestAnOverlayOfOnesOwnCombinesComponentsAndSurvivesANewerBase(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "maint"), os.DirFS(path(t, "manifests", "kustomize"))); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("mine/kustomization.yaml", `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../maint/base, config.yaml, accounts.yaml]
components: [../maint/components/with-admission, ../maint/components/cloud, ../maint/components/ha]
images: [{name: kubectl-maint/agent, newName: registry.example.org/maint/agent}]
patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: maint-agent, namespace: maint-system}
    spec: {template: {spec: {containers: [{name: agent, resources: {limits: {memory: 1Gi}}}]}}}
`)
	write("mine/config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: maint-agent, namespace: maint-system, labels: {maint.dev/kind: agent-config}}\ndata: {config.yaml: '{apiVersion: maint.dev/v1alpha1, kind: AgentConfig, spec: {logLevel: debug}}'}\n")
	write("mine/accounts.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: maint-agent-deployer}\nrules: [{apiGroups: [''], resources: [serviceaccounts], resourceNames: [deployer], verbs: [impersonate]}]\n")

	for _, of := range []string{"v0.1.0", "v0.2.0"} {
		base := filepath.Join(dir, "maint", "base", "agent.yaml")
		text, err := os.ReadFile(base)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(base, []byte(strings.ReplaceAll(string(text), "v0.1.0", of)), 0o600); err != nil {
			t.Fatal(err)
		}
		got := customized(t, filepath.Join(dir, "mine"))
		agent := at(t, got["Deployment/maint-agent"], "spec", "template", "spec", "containers").([]any)[0].(map[string]any)
		memory := at(t, agent, "resources", "limits", "memory")
		if agent["image"] != "registry.example.org/maint/agent:"+of || memory != "1Gi" || at(t, got["Deployment/maint-agent"], "spec", "replicas") != int64(3) {
			t.Errorf("%s: the agent is %v", of, agent)
		}
		for _, name := range []string{"ConfigMap/maint-agent", "ClusterRole/maint-agent-deployer", "ClusterRole/maint-agent-cloud", "ValidatingAdmissionPolicy/maint-intents", "PodDisruptionBudget/maint-agent"} {
			if got[name] == nil {
				t.Errorf("%s: there is no %s", of, name)
			}
		}
	}
}
