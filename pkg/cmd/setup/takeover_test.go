package setup

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What the configuration names is read after an upgrade as before it.
func TestTheSecretsOfSinksAreReadOn(t *testing.T) {
	config := func(text string) objectsByKey {
		return objectsByKey{objectKey{"ConfigMap", "maint-agent"}: {Object: map[string]any{"kind": "ConfigMap", "data": map[string]any{"config.yaml": text}}}}
	}
	const head = "apiVersion: maint.dev/v1alpha1\nkind: AgentConfig\nspec: "
	for name, c := range map[string]struct {
		live objectsByKey
		want []string
	}{
		"nothing is there":               {objectsByKey{}, []string{"maint-sinks", "given"}},
		"a configuration names none":     {config(head + "{}"), []string{"maint-sinks", "given"}},
		"a configuration names two":      {config(head + "{notifications: {sinks: [{name: a, urlSecretRef: {name: dba, key: x}}, {name: b, urlSecretRef: {name: given, key: x}}]}}"), []string{"maint-sinks", "given", "dba"}},
		"it names the one for functions": {config(head + "{functions: {tlsSecretRef: {name: fn-tls}}}"), []string{"maint-sinks", "given", "fn-tls"}},
		"it names what is no name":       {config(head + "{notifications: {sinks: [{name: a, urlSecretRef: {name: 'a, b', key: x}}]}}"), []string{"maint-sinks", "given"}},
		"it cannot be read":              {config("{"), []string{"maint-sinks", "given"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := next()
			m.Secrets = []string{"given"}
			m.adopt(c.live, func(string) bool { return false })
			if diff := cmp.Diff(c.want, m.SinkSecrets()); diff != "" {
				t.Errorf("the agent may read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAnUpgradeTakesOver(t *testing.T) {
	type chosen struct {
		Without                                  []string
		ReadOnly, KubeSystem, MetricsAuth, Cloud bool
	}
	deployment := func(live objectsByKey) *unstructured.Unstructured {
		return live[objectKey{"Deployment", "maint-agent"}]
	}
	unrecorded := func(live objectsByKey) { // as versions did that had one role over nodes
		deployment(live).SetAnnotations(nil)
		for _, part := range []string{partForce, partVolumes, partConditions} {
			delete(live, objectKey{"ClusterRoleBinding", bindingOf(part)})
		}
	}
	for _, c := range []struct {
		name  string
		first func(*Manifests)
		since func(live objectsByKey)
		flags []string
		now   func(*Manifests)
		want  chosen
	}{
		{name: "everything, where everything was wanted"},
		{
			name:  "what was left out stays out",
			first: func(m *Manifests) { m.Without = []string{partForce, partConfinement} },
			want:  chosen{Without: []string{partForce, partConfinement}},
		},
		{
			name:  "what the command line leaves out is all that is left out",
			first: func(m *Manifests) { m.Without = []string{partForce} },
			flags: []string{flagWithout}, now: func(m *Manifests) { m.Without = []string{partVolumes} },
			want: chosen{Without: []string{partVolumes}},
		},
		{
			name:  "a binding that somebody deleted stays away",
			since: func(live objectsByKey) { delete(live, objectKey{"ClusterRoleBinding", "maint-agent-volumes"}) },
			want:  chosen{Without: []string{partVolumes}},
		},
		{
			name: "policies that are not there come back: the API server may not have had the kind",
			since: func(live objectsByKey) {
				delete(live, objectKey{"ValidatingAdmissionPolicyBinding", "maint-agent-configmaps"})
			},
		},
		{
			name: "a part that an earlier version did not know is new",
			since: func(live objectsByKey) {
				deployment(live).SetAnnotations(map[string]string{partsKey: "requests,-force"})
				delete(live, objectKey{"ClusterRoleBinding", "maint-agent-volumes"})
			},
			want: chosen{Without: []string{partForce}},
		},
		{name: "from a version that recorded nothing, everything", since: unrecorded},
		{
			name: "from a version that recorded nothing, requests stay away where their binding was deleted",
			since: func(live objectsByKey) {
				unrecorded(live)
				delete(live, objectKey{"ClusterRoleBinding", "maint-agent-nodes"})
			},
			want: chosen{Without: []string{partRequests}},
		},
		{
			name:  "an agent that acts as nobody goes on so, and lacks nothing by choice",
			first: func(m *Manifests) { m.ReadOnly = true },
			want:  chosen{ReadOnly: true},
		},
		{
			name:  "an agent that acted as nobody may act when it is said",
			first: func(m *Manifests) { m.ReadOnly = true },
			flags: []string{flagReadOnly},
		},
		{
			name:  "who may write in kube-system goes on so",
			first: func(m *Manifests) { m.KubeSystem = true },
			want:  chosen{KubeSystem: true},
		},
		{
			name:  "who asks for a token before it shows its metrics goes on so",
			first: func(m *Manifests) { m.MetricsAuth = true },
			want:  chosen{MetricsAuth: true},
		},
		{
			name:  "until it is said that it shall not",
			first: func(m *Manifests) { m.MetricsAuth = true },
			flags: []string{flagMetricsAuth},
		},
		{
			name:  "who may ask for tokens for a cloud goes on so",
			first: func(m *Manifests) { m.Cloud = true },
			want:  chosen{Cloud: true},
		},
		{
			name:  "until it is said that it shall not, too",
			first: func(m *Manifests) { m.Cloud = true },
			flags: []string{flagCloud},
		},
		{
			name: "nothing, where no agent is",
			first: func(m *Manifests) {
				m.Without, m.ReadOnly, m.KubeSystem, m.MetricsAuth = []string{partForce}, true, true, true
			},
			since: func(live objectsByKey) { delete(live, objectKey{"Deployment", "maint-agent"}) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, m := released(), next()
			if c.first != nil {
				c.first(&first)
			}
			objects, err := first.Objects()
			if err != nil {
				t.Fatal(err)
			}
			live := byKey(objects)
			if c.since != nil {
				c.since(live)
			}
			if c.now != nil {
				c.now(&m)
			}
			m.adopt(live, func(flag string) bool { return slices.Contains(c.flags, flag) })
			if diff := cmp.Diff(c.want, chosen{m.Without, m.ReadOnly, m.KubeSystem, m.MetricsAuth, m.Cloud}); diff != "" {
				t.Errorf("it takes over (-want +got):\n%s", diff)
			}
		})
	}
}
