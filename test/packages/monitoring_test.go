package packages_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/setup"
)

// scraped fails unless Prometheus finds the pods of a Deployment: the ServiceMonitor selects
// the Service and names a port of it, and the Service selects the pods and leads to a port of
// theirs. Our series have a `namespace`, which must not become the agent's.
func scraped(t *testing.T, monitoring objects, deployment map[string]any) {
	t.Helper()
	service, monitor := monitoring["Service/maint-agent-metrics"], monitoring["ServiceMonitor/maint-agent"]
	namespace := at(t, deployment, "metadata", "namespace")
	for _, object := range []map[string]any{service, monitor} {
		if got := at(t, object, "metadata", "namespace"); got != namespace {
			t.Errorf("%s is in %v, and the agent in %v", object["kind"], got, namespace)
		}
	}
	if got := at(t, monitor, "spec", "namespaceSelector", "matchNames"); !cmp.Equal(got, []any{namespace}) {
		t.Errorf("the ServiceMonitor looks into %v, and the agent is in %v", got, namespace)
	}
	selects(t, "the ServiceMonitor", at(t, monitor, "spec", "selector", "matchLabels"), at(t, service, "metadata", "labels"))
	selects(t, "the Service", at(t, service, "spec", "selector"), at(t, deployment, "spec", "template", "metadata", "labels"))
	endpoint := at(t, monitor, "spec", "endpoints").([]any)[0].(map[string]any)
	port := at(t, service, "spec", "ports").([]any)[0].(map[string]any)
	if endpoint["port"] != port["name"] || endpoint["path"] != "/metrics" || endpoint["honorLabels"] != true {
		t.Errorf("the endpoint is %v, and the Service's port %v", endpoint, port)
	}
	agent := at(t, deployment, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)
	for _, of := range agent["ports"].([]any) {
		if of.(map[string]any)["name"] == port["targetPort"] {
			return
		}
	}
	t.Errorf("the Service leads to port %v, and the pods have %v", port["targetPort"], agent["ports"])
}

func selects(t *testing.T, who string, selector, labels any) {
	t.Helper()
	for key, value := range selector.(map[string]any) {
		if has := labels.(map[string]any)[key]; has != value {
			t.Errorf("%s selects %s=%v, which is %v there", who, key, value, has)
		}
	}
}

func TestPrometheusFindsTheAgentHoweverItIsInstalled(t *testing.T) {
	folder := stored(t, "manifests", "monitoring", "servicemonitor.yaml")
	for name, set := range map[string]func(*setup.Manifests){
		"install": func(*setup.Manifests) {}, "install --metrics-auth": func(m *setup.Manifests) { m.MetricsAuth = true }, "install --read-only": func(m *setup.Manifests) { m.ReadOnly = true },
	} {
		t.Run(name, func(t *testing.T) {
			m := released()
			set(&m)
			scraped(t, folder, installed(t, m)["Deployment/maint-agent"])
		})
	}
	for _, of := range []string{"base", "overlays/read-only", "overlays/ha", "overlays/with-admission", "overlays/cloud"} {
		t.Run("kustomize "+of, func(t *testing.T) {
			scraped(t, folder, customized(t, path(t, "manifests", "kustomize", filepath.FromSlash(of)))["Deployment/maint-agent"])
		})
	}
	for name, values := range map[string]map[string]any{
		"the chart": {}, "the chart with labels": {"labels": map[string]any{"team": "ops"}, "podLabels": map[string]any{"team": "ops"}},
	} {
		t.Run(name, func(t *testing.T) {
			values["monitoring"] = map[string]any{"serviceMonitor": true}
			text, said, err := templatedIn(t, "elsewhere", values)
			if err != nil {
				t.Fatal(said)
			}
			all := read(t, text)
			scraped(t, all, all["Deployment/maint-agent"])
		})
	}
}

// The overlay for a team's namespace leaves the ServiceMonitor to the team, whose copy names
// that namespace.
func TestACopyOfTheServiceMonitorFollowsTheAgentIntoANamespace(t *testing.T) {
	text, err := os.ReadFile(path(t, "manifests", "monitoring", "servicemonitor.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	copied := read(t, strings.ReplaceAll(string(text), home, "team"))
	scraped(t, copied, customized(t, path(t, "manifests", "kustomize", "overlays", "single-namespace"))["Deployment/maint-agent"])
}
