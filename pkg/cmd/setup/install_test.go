package setup

import (
	"os"
	"path/filepath"
	"slices"
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
	if _, faults := agentconfig.Parse([]byte(configurationOf(t, released()))); len(faults) > 0 {
		t.Error(faults)
	}
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

func TestWhatIsLeftOutIsNotInTheManifests(t *testing.T) {
	binding := func(name string) objectKey { return objectKey{"ClusterRoleBinding", name} }
	policies := []objectKey{{"ValidatingAdmissionPolicyBinding", "maint-agent-configmaps"}, {"ValidatingAdmissionPolicyBinding", "maint-agent-nodes"}, {"ValidatingAdmissionPolicyBinding", "maint-agent-secrets"}}
	optional := append([]objectKey{binding("maint-agent-nodes"), binding("maint-agent-force"), binding("maint-agent-volumes"), binding("maint-agent-conditions")}, policies...)
	for _, c := range []struct {
		name string
		m    func(*Manifests)
		out  []objectKey
	}{
		{"nothing is left out unless it is said", func(*Manifests) {}, nil},
		{"requests, and with them the deleting of their pods", func(m *Manifests) { m.Without = []string{partRequests} }, optional[:2]},
		{"the deleting of pods", func(m *Manifests) { m.Without = []string{partForce} }, optional[1:2]},
		{"volumes", func(m *Manifests) { m.Without = []string{partVolumes} }, optional[2:3]},
		{"conditions", func(m *Manifests) { m.Without = []string{partConditions} }, optional[3:4]},
		{"policies", func(m *Manifests) { m.Without = []string{partConfinement} }, policies},
		{"an agent that acts as nobody deletes no pods and writes no conditions", func(m *Manifests) { m.ReadOnly = true }, []objectKey{optional[1], optional[3]}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := released()
			c.m(&m)
			objects, err := m.Objects()
			if err != nil {
				t.Fatal(err)
			}
			there := byKey(objects)
			for _, key := range optional {
				if (there[key] == nil) != slices.Contains(c.out, key) {
					t.Errorf("%s is there: %v", key, there[key] != nil)
				}
			}
		})
	}
}

// A pod that drains leave is a right of its own: the roles that every installation has
// must not hold it.
func TestNoRoleButTheOneForForceMayDeletePods(t *testing.T) {
	m := released()
	m.Without = []string{partForce}
	text, err := m.Render()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := readObjects(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range objects {
		if u.GetKind() != "Role" && u.GetKind() != "ClusterRole" {
			continue
		}
		rules, err := rulesOf(u)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rules {
			if slices.Contains(r.Resources, "pods") && slices.Contains(r.Verbs, "delete") {
				t.Errorf("%s: %s", named(u), ruleWords(r))
			}
		}
	}
}

func TestInKubeSystemTheAgentMayWriteItsOwn(t *testing.T) {
	m := released()
	m.Namespace = kubeSystem
	text, err := m.Render()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "request.namespace != 'kube-system'") {
		t.Error("an agent that lives in kube-system could not write its heartbeat")
	}
}

func TestAStrictConfigurationDeniesPrivateAddresses(t *testing.T) {
	for outbound, want := range map[string]int{"": 0, outboundOpen: 0, outboundStrict: 8} {
		m := released()
		m.Outbound = outbound
		spec, faults := agentconfig.Parse([]byte(configurationOf(t, m)))
		if len(faults) > 0 || len(spec.Outbound.Deny) != want {
			t.Errorf("%q: denies %q, %v", outbound, spec.Outbound.Deny, faults)
		}
	}
}

// configurationOf is the AgentConfig that manifests bring.
func configurationOf(t *testing.T, m Manifests) string {
	t.Helper()
	text, err := m.Render()
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
		return config
	}
	t.Fatal("there is no configuration")
	return ""
}
