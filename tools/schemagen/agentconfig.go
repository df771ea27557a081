package main

import (
	"github.com/invopop/jsonschema"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
)

func agentConfigSchema(s source) (*jsonschema.Schema, error) {
	e := reflectAll(s, &agentconfig.AgentConfigDocument{})
	e.envelope("AgentConfigDocument", "AgentConfig", "Configuration of kubectl maint's agent (config.yaml)")
	e.words("AgentConfig.logLevel", "debug", "info", "warn", "error")
	e.share("NodeLimits.maxParallelOperations")
	e.share("NodeLimits.maxUnavailable")
	e.at("NodeLimits.zoneLimit").Minimum = number(0)
	e.at("MinimumWindow.hours").ExclusiveMinimum = number(0)
	return e.done()
}
