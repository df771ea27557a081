// Command schemas turns the OpenAPI description that ships with
// k8s.io/kubernetes into one JSON Schema per kind, strict about unknown
// fields, for kubeconform. So the manifests are checked against exactly the
// version that the tests run, and without a network.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
)

type schema = map[string]any

const refPrefix = "#/definitions/"

func main() {
	spec := flag.String("spec", "", "path of swagger.json")
	out := flag.String("o", "", "directory to write to")
	flag.Parse()
	if err := generate(*spec, *out); err != nil {
		log.Fatal(err)
	}
}

func generate(spec, out string) error {
	text, err := os.ReadFile(spec)
	if err != nil {
		return err
	}
	var api struct{ Definitions map[string]schema }
	if err := json.Unmarshal(text, &api); err != nil {
		return fmt.Errorf("read %s: %w", spec, err)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for name, definition := range api.Definitions {
		for _, file := range fileNames(definition) {
			if err := write(filepath.Join(out, file), standalone(api.Definitions, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// fileNames are kind_group_version.json for the kinds that a definition is;
// the core group is spelled like its version, which is what kubeconform's
// template gives for it.
func fileNames(definition schema) []string {
	kinds, _ := definition["x-kubernetes-group-version-kind"].([]any)
	if len(kinds) != 1 {
		return nil // none, or a type that every group shares, like DeleteOptions
	}
	kind, ok := kinds[0].(map[string]any)
	if !ok {
		return nil
	}
	group, version := fmt.Sprint(kind["group"]), fmt.Sprint(kind["version"])
	if group == "" {
		group = version
	}
	return []string{fmt.Sprintf("%s_%s_%s.json", strings.ToLower(fmt.Sprint(kind["kind"])), group, version)}
}

// standalone is the schema of a definition together with all it refers to.
func standalone(all map[string]schema, name string) schema {
	needed := map[string]any{}
	collect(all, name, needed)
	return schema{"$ref": refPrefix + name, "definitions": needed}
}

func collect(all map[string]schema, name string, needed map[string]any) {
	if _, done := needed[name]; done {
		return
	}
	clean := strict(name, all[name])
	needed[name] = clean
	collectRefs(all, clean, needed)
}

func collectRefs(all map[string]schema, node any, needed map[string]any) {
	switch value := node.(type) {
	case []any:
		for _, item := range value {
			collectRefs(all, item, needed)
		}
	case map[string]any:
		if ref, ok := value["$ref"].(string); ok {
			collect(all, strings.TrimPrefix(ref, refPrefix), needed)
		}
		for _, item := range value {
			collectRefs(all, item, needed)
		}
	}
}

// strict copies the parts of a definition that validate, and forbids fields
// that it does not list.
func strict(name string, definition schema) schema {
	switch name {
	case "io.k8s.apimachinery.pkg.util.intstr.IntOrString":
		return schema{"type": []any{"string", "integer"}}
	case "io.k8s.apimachinery.pkg.api.resource.Quantity":
		return schema{"type": []any{"string", "number"}}
	}
	clean := schema{}
	for _, keyword := range []string{"type", "required", "properties", "items", "additionalProperties", "$ref", "enum"} {
		if value, ok := definition[keyword]; ok {
			clean[keyword] = value
		}
	}
	if _, ok := clean["properties"]; ok {
		clean["additionalProperties"] = false
	}
	return clean
}

func write(path string, s schema) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
