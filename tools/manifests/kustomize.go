package main

import (
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/setup"
)

// team is the namespace in the overlay for a single one: whoever copies it writes their
// own.
const team = "team"

// component is a variant of the base: what install prints by a flag.
type component struct {
	name, about string
	of          func(*setup.Manifests)
}

func components() []component {
	return []component{
		{"single-namespace", "The agent looks at its own namespace alone, by a Role there: install --single-namespace.", func(m *setup.Manifests) { m.SingleNamespace = true }},
		{"read-only", "An agent that may act as nobody: install --read-only.", func(m *setup.Manifests) { m.ReadOnly = true }},
		{"with-admission", "Policies that bind everybody: intents and requests for nodes become verbs in RBAC: install --with-admission.", func(m *setup.Manifests) { m.Admission = true }},
		{"cloud", "The agent may ask for tokens of the accounts that it acts as, for AWS: install --cloud.", func(m *setup.Manifests) { m.Cloud = true }},
	}
}

// kustomize writes the base, a component for each variant, and an overlay that is the
// base with one component.
func kustomize(m setup.Manifests, files map[string]string) error {
	text, err := m.Render()
	if err != nil {
		return err
	}
	var base []string
	for _, document := range strings.Split(text, "\n---\n") {
		if strings.Contains(document, "\nkind: ConfigMap\n") || strings.HasPrefix(document, "kind: ConfigMap\n") {
			files["kustomize/config/config.yaml"] = document + "\n"
			continue
		}
		base = append(base, document)
	}
	files["kustomize/base/agent.yaml"] = strings.Join(base, "\n---\n")
	files["kustomize/base/kustomization.yaml"] = kustomization(baseAbout, map[string]any{"resources": []string{"agent.yaml"}})
	files["kustomize/config/kustomization.yaml"] = kustomization(configAbout, map[string]any{"resources": []string{"config.yaml"}})
	for _, c := range components() {
		if err := c.write(m, files); err != nil {
			return err
		}
		files["kustomize/overlays/"+c.name+"/kustomization.yaml"] = overlay(c.name, c.about)
	}
	ha(files)
	return single(m, files)
}

const baseAbout = `The agent, as 'kubectl maint install' prints it, but for its configuration, which is
made once and is yours: kubectl create -k ../config. Changes of yours stand in an overlay,
and an upgrade is a newer base. A field 'namespace' does not change all that names the
namespace: overlays/single-namespace shows what it takes.`

const configAbout = `The agent's first configuration. Create it once, with 'kubectl create -k', or copy it to
your overlay: applied again, it would take back what you changed in the cluster.`

// write puts what differs from the base into the component.
func (c component) write(m setup.Manifests, files map[string]string) error {
	before, err := m.Objects()
	if err != nil {
		return err
	}
	c.of(&m)
	after, err := m.Objects()
	if err != nil {
		return err
	}
	diff, err := difference(before, after)
	if err != nil {
		return err
	}
	dir := "kustomize/components/" + c.name + "/"
	fields := map[string]any{}
	if len(diff.added) > 0 {
		text, err := documents(diff.added)
		if err != nil {
			return err
		}
		files[dir+"added.yaml"] = "# " + generated + "\n" + text
		fields["resources"] = []string{"added.yaml"}
	}
	if len(diff.patches) > 0 {
		fields["patches"] = diff.patches
	}
	files[dir+"kustomization.yaml"] = componentFile(c.about, fields)
	return nil
}

func overlay(name, about string) string {
	return kustomization(about, map[string]any{"resources": []string{"../../base"}, "components": []string{"../../components/" + name}})
}

// ha is what no flag of install gives, beside the number of agents.
func ha(files map[string]string) {
	about := "Three agents on three nodes, of which a drain takes one at a time. One of them leads."
	files["kustomize/components/ha/budget.yaml"] = `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: maint-agent
  namespace: maint-system
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      app.kubernetes.io/name: maint-agent
`
	files["kustomize/components/ha/kustomization.yaml"] = componentFile(about, map[string]any{
		"resources": []string{"budget.yaml"},
		"replicas":  []map[string]any{{"name": "maint-agent", "count": 3}},
		"patches": []patch{{
			Target: &target{Group: "apps", Version: "v1", Kind: "Deployment", Name: "maint-agent"},
			Patch:  "- op: replace\n  path: /spec/template/spec/topologySpreadConstraints/0/whenUnsatisfiable\n  value: DoNotSchedule\n",
		}},
	})
	files["kustomize/overlays/ha/kustomization.yaml"] = overlay("ha", about)
}

// single is the overlay for one namespace: that one has to be said wherever it stands
// inside a text, which kustomize does only by replacements.
func single(m setup.Manifests, files map[string]string) error {
	m.SingleNamespace = true
	objects, err := m.Objects()
	if err != nil {
		return err
	}
	targets, err := mentions(objects, m.Namespace)
	if err != nil {
		return err
	}
	list, err := yaml.Marshal([]map[string]any{{
		"source":  map[string]any{"kind": "ServiceAccount", "name": "maint-agent", "fieldPath": "metadata.namespace"},
		"targets": targets,
	}})
	if err != nil {
		return err
	}
	dir := "kustomize/overlays/single-namespace/"
	files[dir+"replacements.yaml"] = "# " + generated + "\n# The namespace, where it stands inside a text.\n" + string(list)
	files[dir+"kustomization.yaml"] = kustomization("An agent for the namespace of a team. Copy this folder and write your namespace; it is\nlabelled for pod security \"restricted\".", map[string]any{
		"resources": []string{"../../base"}, "components": []string{"../../components/single-namespace"},
		"namespace": team, "replacements": []map[string]any{{"path": "replacements.yaml"}},
	})
	return nil
}

func kustomization(about string, fields map[string]any) string {
	return kustomizeFile(about, "kustomize.config.k8s.io/v1beta1", "Kustomization", fields)
}

func componentFile(about string, fields map[string]any) string {
	return kustomizeFile(about, "kustomize.config.k8s.io/v1alpha1", "Component", fields)
}

func kustomizeFile(about, version, kind string, fields map[string]any) string {
	text, err := yaml.Marshal(fields)
	if err != nil {
		panic(err) // maps of texts and numbers of ours
	}
	return "# " + strings.ReplaceAll(about, "\n", "\n# ") + "\n# " + generated + "\napiVersion: " + version + "\nkind: " + kind + "\n" + string(text)
}
