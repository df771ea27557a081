package setup

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// policyFiles are the admission policies, one concern a file.
//
//go:embed manifests/admission/*.yaml
var policyFiles embed.FS //nolint:gochecknoglobals // embedding needs a variable

// policyOrder is the order in which they are applied. The roles come first, so that nobody who may
// edit a namespace loses access to its plans in between.
func policyOrder() []string {
	return []string{"roles", "actor", "actor-check", "documents", "freeze", "intents", "nodes", "records", "status"}
}

// renderPolicy renders a file of policies for an agent in a namespace, which determines its user
// name.
func renderPolicy(name, namespace string) (string, error) {
	text, err := policyFiles.ReadFile("manifests/admission/" + name + ".yaml")
	if err != nil {
		return "", fmt.Errorf("read the policies: %w", err)
	}
	t, err := template.New(name).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return "", fmt.Errorf("read the policies in %s: %w", name, err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, map[string]string{"Namespace": namespace}); err != nil {
		return "", fmt.Errorf("write the policies in %s: %w", name, err)
	}
	return b.String(), nil
}

// renderPolicies renders all of them, each after a document separator.
func renderPolicies(namespace string) (string, error) {
	var out string
	for _, name := range policyOrder() {
		text, err := renderPolicy(name, namespace)
		if err != nil {
			return "", err
		}
		out += "---\n" + text
	}
	return out, nil
}

// ofAdmission says whether an object is one of these policies, their bindings or roles. The policy
// that confines the agent's own token has the agent's name instead.
func ofAdmission(u *unstructured.Unstructured) bool {
	if strings.HasPrefix(u.GetName(), annotations.AgentName) {
		return false
	}
	roles := []string{"maint-viewer", "maint-operator", "maint-approver", "maint-admin", "maint-restorer", freezesRole}
	switch u.GetKind() {
	case "ClusterRole":
		return slices.Contains(roles, u.GetName())
	case "ClusterRoleBinding":
		return u.GetName() == freezesRole
	}
	return policyKind(u.GetKind())
}

// freezesRole has the rights for publishing freezes.
const freezesRole = "maint-freezes"

// policyKind says whether a kind is that of an admission policy or its binding.
func policyKind(kind string) bool {
	return strings.HasPrefix(kind, "ValidatingAdmissionPolicy") || strings.HasPrefix(kind, "MutatingAdmissionPolicy")
}

// hasAdmission says whether an earlier install applied any of the policies.
func hasAdmission(live objectsByKey) bool {
	for _, u := range live {
		if policyKind(u.GetKind()) && ofAdmission(u) {
			return true
		}
	}
	return false
}
