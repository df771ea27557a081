// Package docs hands the schemas of the documents to commands that explain them.
package docs

import "embed"

// Schemas are JSON Schemas, schemas/KIND.schema.json, as `make generate` writes them.
//
//go:embed schemas/*.schema.json
var Schemas embed.FS
