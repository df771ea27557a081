package main

import (
	"github.com/invopop/jsonschema"

	"github.com/kubectl-maint/kubectl-maint/pkg/savings"
)

// pricesSchema is that of a document without an envelope.
func pricesSchema(s source) (*jsonschema.Schema, error) {
	e := reflectAll(s, &savings.Prices{})
	e.schema.Title, e.schema.Description = "Prices of kubectl maint (prices.yaml)", e.at("Prices").Description
	e.at("Prices.currency").Pattern = "^[A-Z]{3}$"
	one := uint64(1)
	hourly := e.at("Prices.hourly")
	hourly.MinProperties = &one
	hourly.AdditionalProperties = &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "number", Minimum: number(0), Maximum: number(savings.MostPrice)}}
	return e.done()
}
