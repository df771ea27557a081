package main

import (
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
)

// templates lets a text with ${…} stand wherever something else than a text is
// wanted in the properties of a step: it is evaluated when the step begins.
func (e *editor) templates(name string) {
	d := e.at(name)
	for pair := d.Properties.Oldest(); pair != nil; pair = pair.Next() {
		field := pair.Value
		if isText(field) || isAnything(field) {
			if next, isRef := strings.CutPrefix(field.Ref, "#/$defs/"); isRef {
				e.templates(next)
			}
			continue
		}
		if next, isRef := strings.CutPrefix(field.Ref, "#/$defs/"); isRef && e.schema.Definitions[next].Properties != nil && !e.templated(next) {
			e.templates(next)
		}
		if len(field.AnyOf) > 0 {
			continue // met before, by another type's properties
		}
		was := *field
		was.Description, was.Default = "", nil
		d.Properties.Set(pair.Key, &jsonschema.Schema{
			Description: field.Description, Default: field.Default,
			AnyOf: []*jsonschema.Schema{&was, {Type: "string", Pattern: templatePattern}},
		})
	}
}

// templated says whether a definition was met before.
func (e *editor) templated(name string) bool {
	for pair := e.at(name).Properties.Oldest(); pair != nil; pair = pair.Next() {
		if len(pair.Value.AnyOf) > 0 {
			return true
		}
	}
	return false
}

func isText(s *jsonschema.Schema) bool {
	return s.Type == "string" && s.Pattern != durationPattern
}

func isAnything(s *jsonschema.Schema) bool {
	return s.Type == "" && s.Ref == "" && len(s.Enum) == 0 && s.Const == nil
}

func nameOf(v any) string { return reflect.TypeOf(v).Elem().Name() }
