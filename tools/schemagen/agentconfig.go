package main

import (
	"github.com/invopop/jsonschema"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

func agentConfigSchema(s source) (*jsonschema.Schema, error) {
	e := reflectAll(s, &plan.AgentConfigDocument{})
	e.envelope("AgentConfigDocument", "AgentConfig", "Configuration of kubectl maint's agent (config.yaml)")
	e.words("AgentConfig.logLevel", "debug", "info", "warn", "error")
	return e.done()
}
