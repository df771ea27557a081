package setup

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// sharedWith are the cluster-scoped objects that an agent of another namespace needs: all except
// those that name only the agent of this namespace, and the bindings of such policies.
func sharedWith(live objectsByKey, namespace string) map[objectKey]bool {
	kept := map[objectKey]bool{}
	for key, u := range live {
		of := u
		if policy, _, _ := unstructured.NestedString(u.Object, "spec", "policyName"); policy != "" {
			if of = live[objectKey{strings.TrimSuffix(u.GetKind(), "Binding"), policy}]; of == nil {
				continue // it binds nothing
			}
		}
		if !slices.Equal(agentsIn(of), []string{namespace}) {
			kept[key] = true
		}
	}
	return kept
}

// agentsIn are the namespaces whose agent an object names, each once.
func agentsIn(u *unstructured.Unstructured) []string {
	var out []string
	subjects, _, _ := unstructured.NestedSlice(u.Object, "subjects")
	for _, s := range subjects {
		fields, _ := s.(map[string]any)
		if namespace, _ := fields["namespace"].(string); fields["name"] == annotations.AgentName && namespace != "" {
			out = append(out, namespace)
		}
	}
	out = append(out, annotations.AgentsNamed(u.Object["spec"])...)
	slices.Sort(out)
	return slices.Compact(out)
}

func objectNames(keys map[objectKey]bool) []string {
	var names []string
	for key := range keys {
		names = append(names, key.String())
	}
	slices.Sort(names)
	return names
}
