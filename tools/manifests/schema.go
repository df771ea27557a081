package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/kubectl-maint/kubectl-maint/docs"
)

// valuesSchema is that of the chart's values, but for the configuration in them.
//
//go:embed values.schema.json
var valuesSchema []byte //nolint:gochecknoglobals // embedding needs a variable

// schemaFile is what is looked at of a JSON Schema. What `$defs` holds stays as it is.
type schemaFile struct {
	Schema               string         `json:"$schema"`
	Title                string         `json:"title"`
	Type                 string         `json:"type"`
	AdditionalProperties bool           `json:"additionalProperties"`
	Properties           map[string]any `json:"properties"`
	Defs                 map[string]any `json:"$defs"`
}

// schema writes the schema of the chart's values. Their `config` is the spec of an
// AgentConfig: a fault in it is refused before an agent is installed that cannot start.
func schema(files map[string]string) error {
	var values, config schemaFile
	if err := json.Unmarshal(valuesSchema, &values); err != nil {
		return fmt.Errorf("the schema of the values: %w", err)
	}
	text, err := docs.Schemas.ReadFile("schemas/agentconfig.schema.json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return fmt.Errorf("the schema of the configuration: %w", err)
	}
	spec, ok := config.Defs["AgentConfig"].(map[string]any)
	if !ok {
		return errors.New("the schema of the configuration has no AgentConfig")
	}
	spec["type"] = []string{"object", "null"}
	values.Properties["config"] = spec
	delete(config.Defs, "AgentConfig")
	delete(config.Defs, "AgentConfigDocument")
	maps.Copy(values.Defs, config.Defs)
	text, err = json.MarshalIndent(values, "", "  ")
	files["chart/values.schema.json"] = string(text) + "\n"
	return err
}
