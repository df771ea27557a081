package annotations

import (
	"encoding/json"
	"regexp"
)

// AgentLabel and AgentName are the label by which the agent's replicas are known in
// its namespace, and its value in the manifests.
const (
	AgentLabel = "app.kubernetes.io/name"
	AgentName  = "maint-agent"
)

// AgentPolicy is the ValidatingAdmissionPolicy that confines the agent's token to its own ConfigMaps.
const AgentPolicy = "maint-agent-configmaps"

// AgentsNamed are the namespaces whose agent's ServiceAccount a specification names, with
// repetitions.
func AgentsNamed(spec any) []string {
	text, _ := json.Marshal(spec) // what was decoded has an encoding
	var out []string
	for _, match := range regexp.MustCompile(`system:serviceaccount:([a-z0-9-]+):`+AgentName+`(?:[^a-z0-9-]|$)`).FindAllSubmatch(text, -1) {
		out = append(out, string(match[1]))
	}
	return out
}
