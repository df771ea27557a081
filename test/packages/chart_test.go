package packages_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/setup"
)

// switched is a flag of install, and the values that say the same.
type switched struct {
	name   string
	set    func(*setup.Manifests)
	values map[string]any
}

func without(parts ...string) func(*setup.Manifests) {
	return func(m *setup.Manifests) { m.Without = append(m.Without, parts...) }
}

// switches are combined with one another, each with each.
func switches() []switched {
	return []switched{
		{"read-only", func(m *setup.Manifests) { m.ReadOnly = true }, map[string]any{"readOnly": true}},
		{"single-namespace", func(m *setup.Manifests) { m.SingleNamespace = true }, map[string]any{"singleNamespace": true}},
		{"cloud", func(m *setup.Manifests) { m.Cloud = true }, map[string]any{"cloud": true}},
		{"metrics-auth", func(m *setup.Manifests) { m.MetricsAuth = true }, map[string]any{"metricsAuth": true}},
		{"without force and volumes", without("force", "volumes"), map[string]any{"nodes": map[string]any{"force": false, "volumes": false}}},
		{"without confinement", without("confinement"), map[string]any{"confinement": false}},
	}
}

// alone are tried by themselves.
func alone() []switched {
	return []switched{
		{"with-admission", func(m *setup.Manifests) { m.Admission = true }, map[string]any{"admission": true}},
		{"with-admission, single-namespace", func(m *setup.Manifests) { m.Admission, m.SingleNamespace = true, true }, map[string]any{"admission": true, "singleNamespace": true}},
		{"kube-system", func(m *setup.Manifests) { m.KubeSystem = true }, map[string]any{"kubeSystem": true}},
		{"tolerate-cordon", func(m *setup.Manifests) { m.TolerateCordon = true }, map[string]any{"tolerateCordon": true}},
		{"without requests", without("requests"), map[string]any{"nodes": map[string]any{"requests": false}}},
		{"without conditions and kubelets", without("conditions", "kubelets"), map[string]any{"nodes": map[string]any{"conditions": false}, "kubelets": false}},
		{"replicas", func(m *setup.Manifests) { m.Replicas = 3 }, map[string]any{"replicas": 3}},
		{"outbound strict", func(m *setup.Manifests) { m.Outbound = "strict" }, map[string]any{"outbound": "strict"}},
		{"secret", func(m *setup.Manifests) { m.Secrets = []string{"ops"} }, map[string]any{"sinkSecrets": []string{"ops"}}},
		{"impersonate", func(m *setup.Manifests) { m.Impersonate = []string{"deployer", "dba"} }, map[string]any{"impersonate": []string{"deployer", "dba"}}},
		{"impersonate, cloud", func(m *setup.Manifests) { m.Impersonate, m.Cloud = []string{"deployer"}, true }, map[string]any{"impersonate": []string{"deployer"}, "cloud": true}},
		{"image", func(m *setup.Manifests) { m.Image = "example.org/mirror/agent:stable" }, map[string]any{"image": map[string]any{"repository": "example.org/mirror/agent", "tag": "stable"}}},
	}
}

// combinations are all that install does not refuse.
func combinations() []switched {
	out := alone()
	for bits := range 1 << len(switches()) {
		c := switched{values: map[string]any{}}
		var sets []func(*setup.Manifests)
		var names []string
		for i, s := range switches() {
			if bits&(1<<i) == 0 {
				continue
			}
			names, sets = append(names, s.name), append(sets, s.set)
			maps.Copy(c.values, s.values)
		}
		c.name = strings.Join(names, ", ")
		c.set = func(m *setup.Manifests) {
			for _, set := range sets {
				set(m)
			}
		}
		m := released()
		c.set(&m)
		if m.Cloud && (m.ReadOnly || slices.Contains(m.Without, "confinement")) {
			continue
		}
		out = append(out, c)
	}
	return out
}

func TestTheChartBringsWhatInstallBrings(t *testing.T) {
	for _, c := range combinations() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := released()
			c.set(&m)
			want := installed(t, m)
			delete(want, "Namespace/"+home) // which is the release's
			text, said, err := templated(t, c.values)
			if err != nil {
				t.Fatal(said)
			}
			got := read(t, text)
			ownConfig(t, got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("with %v (-install +chart):\n%s", c.values, diff)
			}
		})
	}
}

// ownConfig takes away how the chart marks its hook.
func ownConfig(t *testing.T, got objects) {
	t.Helper()
	metadata := at(t, got["ConfigMap/maint-agent"], "metadata").(map[string]any)
	if hook := at(t, got["ConfigMap/maint-agent"], "metadata", "annotations", "helm.sh/hook"); hook != "pre-install" {
		t.Errorf("the configuration is made at %v: every upgrade would write it", hook)
	}
	delete(metadata, "annotations")
	delete(metadata["labels"].(map[string]any), "app.kubernetes.io/managed-by")
}

func TestAConfigurationInTheValuesIsThatOfTheRelease(t *testing.T) {
	text, said, err := templated(t, map[string]any{"config": map[string]any{"logLevel": "debug", "notifications": map[string]any{
		"sinks": []any{map[string]any{"name": "ops", "urlSecretRef": map[string]any{"name": "pager", "key": "url"}}},
	}}})
	if err != nil {
		t.Fatal(said)
	}
	got := read(t, text)
	config := at(t, got["ConfigMap/maint-agent"], "data", "config.yaml").(string)
	if !strings.Contains(config, "logLevel: debug") || !strings.Contains(config, "kind: AgentConfig") {
		t.Errorf("the configuration is\n%s", config)
	}
	annotations := at(t, got["ConfigMap/maint-agent"], "metadata", "annotations").(map[string]any)
	if annotations["helm.sh/hook"] != nil || annotations["helm.sh/resource-policy"] != "keep" {
		t.Errorf("its annotations are %v: the release does not hold it, or takes it away with the value", annotations)
	}
	if role := at(t, got["Role/maint-agent"], "rules"); !strings.Contains(mustJSON(t, role), `["maint-sinks","pager"]`) {
		t.Errorf("the Secret that the configuration names cannot be read: %v", role)
	}
}

func TestWhereThePodsGoIsInTheirSpec(t *testing.T) {
	text, said, err := templated(t, map[string]any{
		"nodeSelector": map[string]any{"pool": "system"}, "priorityClassName": "system-cluster-critical", "tolerateCordon": true,
		"tolerations": []any{map[string]any{"key": "system", "operator": "Exists"}}, "affinity": map[string]any{"nodeAffinity": map[string]any{}},
		"image":     map[string]any{"digest": "sha256:" + strings.Repeat("0a", 32), "pullSecrets": []string{"mirror"}},
		"resources": map[string]any{"limits": map[string]any{"memory": "1Gi"}},
	})
	if err != nil {
		t.Fatal(said)
	}
	spec := at(t, read(t, text)["Deployment/maint-agent"], "spec", "template", "spec").(map[string]any)
	container := spec["containers"].([]any)[0].(map[string]any)
	got := map[string]any{"image": container["image"], "resources": container["resources"]}
	for _, field := range []string{"nodeSelector", "priorityClassName", "tolerations", "affinity", "imagePullSecrets"} {
		got[field] = spec[field]
	}
	want := map[string]any{
		"image":        "kubectl-maint/agent@sha256:" + strings.Repeat("0a", 32),
		"resources":    map[string]any{"limits": map[string]any{"memory": "1Gi"}},
		"nodeSelector": map[string]any{"pool": "system"}, "priorityClassName": "system-cluster-critical", "affinity": map[string]any{"nodeAffinity": map[string]any{}},
		"tolerations":      []any{map[string]any{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}, map[string]any{"key": "system", "operator": "Exists"}},
		"imagePullSecrets": []any{map[string]any{"name": "mirror"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWrongValuesAreRefusedInWords(t *testing.T) {
	for _, c := range []struct {
		name   string
		values map[string]any
		words  []string
	}{
		{"a text for a number", map[string]any{"replicas": "two"}, []string{"replicas", "got string, want"}},
		{"no agent at all", map[string]any{"replicas": 0}, []string{"replicas", "minimum"}},
		{"a text for a switch", map[string]any{"readOnly": "yes"}, []string{"readOnly", "got string, want boolean"}},
		{"one account where a list is wanted", map[string]any{"impersonate": "deployer"}, []string{"impersonate", "got string, want"}},
		{"what cannot name an account", map[string]any{"impersonate": []string{"Deployer!"}}, []string{"impersonate", "does not match pattern"}},
		{"an image that is none", map[string]any{"image": map[string]any{"repository": "my image"}}, []string{"image/repository", "does not match pattern"}},
		{"a tag that is none", map[string]any{"image": map[string]any{"tag": "a b"}}, []string{"image/tag", "does not match pattern"}},
		{"a digest that is none", map[string]any{"image": map[string]any{"digest": "sha256:12"}}, []string{"image/digest", "does not match pattern"}},
		{"a value that there is not", map[string]any{"replica": 3}, []string{"additional properties 'replica' not allowed"}},
		{"a right over nodes that there is not", map[string]any{"nodes": map[string]any{"taints": true}}, []string{"nodes", "additional properties 'taints' not allowed"}},
		{"a configuration as a text", map[string]any{"config": "logLevel: debug"}, []string{"config", "got string, want"}},
		{"an outbound that there is not", map[string]any{"outbound": "closed"}, []string{"outbound", "must be one of 'open', 'strict'"}},
		{"an account for an agent that acts as none", map[string]any{"readOnly": true, "impersonate": []string{"deployer"}}, []string{"readOnly as none: give one of them"}},
		{"tokens for an agent that acts as none", map[string]any{"readOnly": true, "cloud": true}, []string{"readOnly lets it act as none: give one of them"}},
		{"tokens that nothing confines", map[string]any{"confinement": false, "cloud": true}, []string{"without confinement nothing says for whom"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, said, err := templated(t, c.values)
			if err == nil {
				t.Fatalf("it is taken:\n%.300s", text)
			}
			for _, words := range c.words {
				if !strings.Contains(said, words) {
					t.Errorf("it says %q, without %q", said, words)
				}
			}
		})
	}
}
