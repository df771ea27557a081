package setup

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// The flags whose values an installation remembers.
const (
	flagWithout     = "without"
	flagReadOnly    = "read-only"
	flagKubeSystem  = "kube-system"
	flagMetricsAuth = "metrics-auth"
	flagCloud       = "cloud"
	flagTolerate    = "tolerate-cordon"
	flagReplicas    = "replicas"
	flagImage       = "image"
	flagAdmission   = "with-admission"
	flagSingle      = "single-namespace"
)

// adopt takes over what stands in the cluster, where the command line says nothing:
// what an earlier install left out, and what an admin took away since. Without a
// Deployment there is nothing to take over.
func (m *Manifests) adopt(live objectsByKey, given func(flag string) bool) {
	if !given(flagAdmission) {
		m.Admission = m.Admission || hasAdmission(live)
	}
	if !given(flagCloud) {
		m.Cloud = m.Cloud || live[objectKey{"ClusterRoleBinding", cloudRole}] != nil
	}
	m.Secrets = append(m.Secrets, namedSinks(live[objectKey{"ConfigMap", annotations.AgentConfigName}])...)
	deployment := live[objectKey{"Deployment", annotations.AgentName}]
	if deployment == nil {
		return
	}
	if !given(flagWithout) {
		m.Without = leftOut(deployment, live)
	}
	if !given(flagReadOnly) {
		m.ReadOnly = slices.ContainsFunc(argsOf(deployment), func(arg string) bool { return arg == argDryRun || arg == argDryRun+"=true" })
	}
	if !given(flagMetricsAuth) {
		m.MetricsAuth = slices.ContainsFunc(argsOf(deployment), func(arg string) bool { return arg == argMetricsAuth || arg == argMetricsAuth+"=true" })
	}
	if !given(flagSingle) {
		m.SingleNamespace = live[objectKey{"RoleBinding", documentsRole}] != nil
	}
	if policy := live[objectKey{"ValidatingAdmissionPolicy", "maint-agent-configmaps"}]; policy != nil && !given(flagKubeSystem) {
		m.KubeSystem = !speaksOf(policy, kubeSystem)
	}
}

// namedSinks are the Secrets that a configuration names: what an earlier version could
// read goes on being read. A broken one names none, and its agent sends nothing.
func namedSinks(config *unstructured.Unstructured) []string {
	if config == nil {
		return nil
	}
	text, _, _ := unstructured.NestedString(config.Object, "data", annotations.DataConfig)
	spec, _ := agentconfig.Parse([]byte(text))
	var names []string
	for _, sink := range spec.Notifications.Sinks {
		if document.DNSSubdomain(sink.URLSecretRef.Name) {
			names = append(names, sink.URLSecretRef.Name)
		}
	}
	return names
}

// leftOut are the parts that are not wanted. A part that an earlier version did not
// know is new and wanted; one that it knew, and whose binding is gone, somebody took
// away; but where all bindings are gone, it was another installation that took them. The
// policies come back: an API server that had no such kind may have it now.
func leftOut(deployment *unstructured.Unstructured, live objectsByKey) []string {
	known, recorded := deployment.GetAnnotations()[partsKey]
	offered := strings.Split(known, ",")
	if !recorded { // one role had both
		offered = []string{partRequests}
	}
	var out []string
	bound := live[objectKey{"ClusterRoleBinding", annotations.AgentName}] != nil
	for _, part := range parts() {
		binding := bindingOf(part)
		switch {
		case slices.Contains(offered, "-"+part):
			out = append(out, part)
		case bound && slices.Contains(offered, part) && binding != "" && live[objectKey{"ClusterRoleBinding", binding}] == nil && !neverBound(deployment, part):
			out = append(out, part)
		}
	}
	return out
}

// neverBound are the parts that a read-only agent does not get, or one of a namespace.
func neverBound(deployment *unstructured.Unstructured, part string) bool {
	args := argsOf(deployment)
	was := Manifests{ReadOnly: slices.Contains(args, argDryRun), SingleNamespace: slices.Contains(args, argWatch+"="+deployment.GetNamespace())}
	return !was.Has(part)
}

// bindingOf names the ClusterRoleBinding by which a part is given.
func bindingOf(part string) string {
	switch part {
	case partRequests:
		return "maint-agent-nodes"
	case partForce:
		return "maint-agent-force"
	case partVolumes:
		return "maint-agent-volumes"
	case partConditions:
		return "maint-agent-conditions"
	}
	return ""
}

// speaksOf says whether a validation of a policy names something.
func speaksOf(policy *unstructured.Unstructured, what string) bool {
	validations, _, _ := unstructured.NestedSlice(policy.Object, "spec", "validations")
	return slices.ContainsFunc(validations, func(v any) bool {
		fields, _ := v.(map[string]any)
		expression, _ := fields["expression"].(string)
		return strings.Contains(expression, "'"+what+"'")
	})
}

// container is the agent's container in its Deployment.
func container(deployment *unstructured.Unstructured) map[string]any {
	all, _, _ := unstructured.NestedFieldNoCopy(deployment.Object, "spec", "template", "spec", "containers")
	list, _ := all.([]any)
	for _, item := range list {
		if c, _ := item.(map[string]any); c["name"] == "agent" {
			return c
		}
	}
	return nil
}

func argsOf(deployment *unstructured.Unstructured) []string {
	list, _ := container(deployment)["args"].([]any)
	var out []string
	for _, item := range list {
		if arg, ok := item.(string); ok {
			out = append(out, arg)
		}
	}
	return out
}
