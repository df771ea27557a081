package packages_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

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
	}, "functions": map[string]any{"tlsSecretRef": map[string]any{"name": "maint-function-tls"}}}})
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
	if role := at(t, got["Role/maint-agent"], "rules"); !strings.Contains(mustJSON(t, role), `["maint-sinks","pager","maint-function-tls"]`) {
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

// rendered are the objects of a chart whose values are right.
func rendered(t *testing.T, values map[string]any) objects {
	t.Helper()
	text, said, err := templated(t, values)
	if err != nil {
		t.Fatal(said)
	}
	return read(t, text)
}

func TestTheChartIsLinted(t *testing.T) {
	if out, said, err := tool(t, "helm", "lint", "--strict", path(t, "manifests", "chart")); err != nil {
		t.Errorf("%v: %s%s", err, out, said)
	}
}

func TestWhatAnAdminAddsToThePodsIsThere(t *testing.T) {
	spread := []any{map[string]any{"maxSkew": int64(1), "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}}
	security := map[string]any{"runAsNonRoot": true}
	got := at(t, rendered(t, map[string]any{
		"podLabels": map[string]any{"team": "platform", "y": "yes"}, "podAnnotations": map[string]any{"prometheus.io/scrape": "true"},
		"topologySpreadConstraints": spread, "podSecurityContext": security,
		"env":     []any{map[string]any{"name": "SSL_CERT_DIR", "value": "/authorities"}},
		"volumes": []any{map[string]any{"name": "authorities", "configMap": map[string]any{"name": "ours"}}}, "volumeMounts": []any{map[string]any{"name": "authorities", "mountPath": "/authorities"}},
	})["Deployment/maint-agent"], "spec", "template").(map[string]any)
	want := at(t, installed(t, released())["Deployment/maint-agent"], "spec", "template").(map[string]any)
	want["metadata"] = map[string]any{
		"labels":      map[string]any{"app.kubernetes.io/name": "maint-agent", "team": "platform", "y": "yes"},
		"annotations": map[string]any{"prometheus.io/scrape": "true"},
	}
	spec := want["spec"].(map[string]any)
	spec["topologySpreadConstraints"], spec["securityContext"] = spread, security
	spec["volumes"] = []any{map[string]any{"name": "authorities", "configMap": map[string]any{"name": "ours"}}}
	container := spec["containers"].([]any)[0].(map[string]any)
	container["env"] = append(container["env"].([]any), map[string]any{"name": "SSL_CERT_DIR", "value": "/authorities"})
	container["volumeMounts"] = []any{map[string]any{"name": "authorities", "mountPath": "/authorities"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// everything are the values by which each template of the chart makes its objects.
func everything(labels map[string]any) map[string]any {
	return map[string]any{
		"labels": labels, "admission": true, "cloud": true, "metricsAuth": true, "podDisruptionBudget": map[string]any{"maxUnavailable": 1},
		"monitoring": map[string]any{"serviceMonitor": true, "rules": true, "authorization": map[string]any{"credentials": map[string]any{"name": "token", "key": "token"}}},
	}
}

func TestEachObjectHasTheLabelsOfTheValuesBesideItsOwn(t *testing.T) {
	want, got := rendered(t, everything(map[string]any{})), rendered(t, everything(map[string]any{"team": "platform", "cost-center": "0815"}))
	for name, object := range got {
		metadata := at(t, object, "metadata").(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		if labels["team"] != "platform" || labels["cost-center"] != "0815" {
			t.Errorf("%s has the labels %v", name, labels)
		}
		delete(labels, "team")
		delete(labels, "cost-center")
		if len(labels) == 0 {
			delete(metadata, "labels")
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the labels change more (-without +with):\n%s", diff)
	}
}

func TestTheAccountIsMadeAnnotatedOrThereAlready(t *testing.T) {
	got := rendered(t, map[string]any{"serviceAccount": map[string]any{"annotations": map[string]any{"example.org/owner": "platform"}}})
	if is := at(t, got["ServiceAccount/maint-agent"], "metadata", "annotations", "example.org/owner"); is != "platform" {
		t.Errorf("its annotation is %v", is)
	}
	want, got := rendered(t, nil), rendered(t, map[string]any{"serviceAccount": map[string]any{"create": false}})
	delete(want, "ServiceAccount/maint-agent")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheBudgetIsThatOfKustomize(t *testing.T) {
	if rendered(t, nil)["PodDisruptionBudget/maint-agent"] != nil {
		t.Error("there is a budget that nobody asked for")
	}
	want := customized(t, path(t, "manifests", "kustomize", "overlays", "ha"))["PodDisruptionBudget/maint-agent"]
	got := rendered(t, map[string]any{"podDisruptionBudget": map[string]any{"maxUnavailable": 1}})["PodDisruptionBudget/maint-agent"]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-kustomize +chart):\n%s", diff)
	}
}

// stored are the objects of a file of the repository.
func stored(t *testing.T, parts ...string) objects {
	t.Helper()
	text, err := os.ReadFile(path(t, parts...))
	if err != nil {
		t.Fatal(err)
	}
	return read(t, string(text))
}

func TestMonitoringIsThatOfItsFolderInTheNamespaceOfTheRelease(t *testing.T) {
	for name := range rendered(t, nil) {
		if strings.HasPrefix(name, "Service/") || strings.HasPrefix(name, "ServiceMonitor/") || strings.HasPrefix(name, "PrometheusRule/") {
			t.Errorf("there is a %s that nobody asked for", name)
		}
	}
	want := stored(t, "manifests", "monitoring", "servicemonitor.yaml")
	maps.Copy(want, stored(t, "manifests", "monitoring", "prometheusrule.yaml"))
	token := map[string]any{"credentials": map[string]any{"name": "prometheus-token", "key": "token"}}
	for name, object := range want {
		metadata := at(t, object, "metadata").(map[string]any)
		metadata["namespace"] = "elsewhere"
		if name != "Service/maint-agent-metrics" {
			metadata["labels"].(map[string]any)["release"] = "prometheus"
		}
	}
	spec := at(t, want["ServiceMonitor/maint-agent"], "spec").(map[string]any)
	spec["namespaceSelector"] = map[string]any{"matchNames": []any{"elsewhere"}}
	endpoint := spec["endpoints"].([]any)[0].(map[string]any)
	endpoint["interval"], endpoint["authorization"] = "1m", token
	text, said, err := templatedIn(t, "elsewhere", map[string]any{"metricsAuth": true, "monitoring": map[string]any{
		"serviceMonitor": true, "rules": true, "labels": map[string]any{"release": "prometheus"}, "interval": "1m", "authorization": token,
	}})
	if err != nil {
		t.Fatal(said)
	}
	all := read(t, text)
	got := objects{}
	for name := range want {
		got[name] = all[name]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-folder +chart):\n%s", diff)
	}
}

// 'helm upgrade --reuse-values' gives the values of the former chart, which had fewer.
func TestAValueThatAFormerChartDidNotHaveIsItsDefault(t *testing.T) {
	text, err := os.ReadFile(path(t, "manifests", "chart", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	want := rendered(t, nil)
	for key := range values {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(want, rendered(t, map[string]any{key: nil})); diff != "" {
				t.Errorf("(-default +without):\n%s", diff)
			}
		})
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
		{"a configuration with a field that there is not", map[string]any{"config": map[string]any{"loglevel": "debug"}}, []string{"config", "additional properties 'loglevel' not allowed"}},
		{"a configuration with a wrong type", map[string]any{"config": map[string]any{"notifications": map[string]any{"sinks": "ops"}}}, []string{"config/notifications/sinks", "got string, want array"}},
		{"a number for a label", map[string]any{"labels": map[string]any{"cost-center": 815}}, []string{"labels/cost-center", "got number, want string"}},
		{"a label of the chart's own", map[string]any{"labels": map[string]any{"app.kubernetes.io/name": "maintenance"}}, []string{"labels: app.kubernetes.io/name is a label of the chart"}},
		{"the label that finds the pods", map[string]any{"podLabels": map[string]any{"app.kubernetes.io/name": "maintenance"}}, []string{"podLabels: by app.kubernetes.io/name the Deployment finds its pods"}},
		{"a number for a variable", map[string]any{"env": []any{map[string]any{"name": "GOGC", "value": 50}}}, []string{"env/0/value", "got number, want string"}},
		{"a variable that the chart sets", map[string]any{"env": []any{map[string]any{"name": "POD_NAME", "value": "me"}}}, []string{"env: POD_NAME is set by the chart"}},
		{"a budget of two minds", map[string]any{"podDisruptionBudget": map[string]any{"minAvailable": 1, "maxUnavailable": 1}}, []string{"podDisruptionBudget/maxUnavailable", "false schema"}},
		{"a budget without a limit", map[string]any{"podDisruptionBudget": map[string]any{}}, []string{"podDisruptionBudget", "minProperties"}},
		{"an interval that is none", map[string]any{"monitoring": map[string]any{"interval": "30"}}, []string{"monitoring/interval", "does not match pattern"}},
		{"a scrape without the token that is asked for", map[string]any{"metricsAuth": true, "monitoring": map[string]any{"serviceMonitor": true}}, []string{"give monitoring.authorization"}},
		{"an account of another name", map[string]any{"serviceAccount": map[string]any{"name": "ops"}}, []string{"serviceAccount", "additional properties 'name' not allowed"}},
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
