package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

func released() Manifests {
	return Manifests{Version: "v0.1.0", Namespace: annotations.DefaultNamespace, Image: "kubectl-maint/agent:v0.1.0"}
}

func TestTheManifestsInTheRepositoryAreWhatInstallPrints(t *testing.T) {
	kept, err := os.ReadFile(filepath.Join("..", "..", "..", "manifests", "agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := released().Render()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, string(kept)); diff != "" {
		t.Errorf("manifests/agent.yaml is stale, run make generate (-install +kept):\n%s", diff)
	}
}

func TestTheAgentsPodIsRestrictedAndTwice(t *testing.T) {
	text, err := released().Render()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := readObjects(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range objects {
		if u.GetKind() != "Deployment" {
			continue
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, &d, true); err != nil {
			t.Fatal(err)
		}
		pod := d.Spec.Template.Spec
		c := pod.Containers[0].SecurityContext
		if *d.Spec.Replicas != 2 || !*pod.SecurityContext.RunAsNonRoot || !*c.ReadOnlyRootFilesystem || *c.AllowPrivilegeEscalation || len(c.Capabilities.Drop) != 1 {
			t.Errorf("the Deployment is %+v", d.Spec)
		}
		return
	}
	t.Error("there is no Deployment")
}

func TestTheDefaultConfigurationIsValid(t *testing.T) {
	text, err := released().Render()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := readObjects(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range objects {
		if u.GetName() != annotations.AgentConfigName || u.GetKind() != "ConfigMap" {
			continue
		}
		config, _, err := unstructured.NestedString(u.Object, "data", annotations.DataConfig)
		if err != nil {
			t.Fatal(err)
		}
		if _, faults := agentconfig.Parse([]byte(config)); len(faults) > 0 {
			t.Error(faults)
		}
		return
	}
	t.Error("there is no configuration")
}

func TestAReadOnlyAgentMayActAsNobody(t *testing.T) {
	m := released()
	m.ReadOnly = true
	text, err := m.Render()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "impersonate") || !strings.Contains(text, "--dry-run") {
		t.Error("a read-only agent can impersonate, or is not in dry run")
	}
}
