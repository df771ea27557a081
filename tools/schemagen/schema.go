package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// What texts look like. The first two mirror document.ParseDuration and
// document.DNSLabel, which the tests compare them with.
const (
	durationPattern = `^([0-9]+d|([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+)$`
	namePattern     = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	templatePattern = `\$\{`
)

// editor shapes a reflected schema further. Faults are gathered: a field that is
// not there any more means that this program is behind the types.
type editor struct {
	source source
	schema *jsonschema.Schema
	faults []error
}

// reflectAll is the schema of a document and of whatever else is named, with
// every type a definition.
func reflectAll(s source, document any, more ...any) *editor {
	r := jsonschema.Reflector{Anonymous: true, LookupComment: s.comment, Mapper: s.mapped}
	e := &editor{source: s, schema: r.Reflect(document)}
	for _, m := range more {
		for name, d := range r.Reflect(m).Definitions {
			e.schema.Definitions[name] = d
		}
	}
	return e
}

// mapped are the types that are written otherwise than they are kept.
func (s source) mapped(t reflect.Type) *jsonschema.Schema {
	switch {
	case t == reflect.TypeFor[document.Duration]():
		return &jsonschema.Schema{Type: "string", Pattern: durationPattern, Description: s.comments["Duration"]}
	case len(s.values[t.Name()]) > 0 && s.rooms[path.Base(t.PkgPath())]:
		return &jsonschema.Schema{Type: "string", Enum: anyList(s.values[t.Name()]), Description: s.comments[t.Name()]}
	}
	return nil
}

func anyList[T any](values []T) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

// at is a field of a definition: "Spec.steps". One that is not there is a fault.
func (e *editor) at(path string) *jsonschema.Schema {
	name, field, _ := strings.Cut(path, ".")
	d := e.schema.Definitions[name]
	if d == nil {
		e.faults = append(e.faults, fmt.Errorf("there is no type %s", name))
		return &jsonschema.Schema{}
	}
	if field == "" {
		return d
	}
	s, there := d.Properties.Get(field)
	if !there {
		e.faults = append(e.faults, fmt.Errorf("%s has no field %s", name, field))
		return &jsonschema.Schema{}
	}
	return s
}

// replace puts another schema in a field's place and keeps its description.
func (e *editor) replace(path string, with *jsonschema.Schema) {
	if with.Description == "" {
		with.Description = e.at(path).Description
	}
	name, field, _ := strings.Cut(path, ".")
	if d := e.schema.Definitions[name]; d != nil {
		d.Properties.Set(field, with)
	}
}

// span bounds a whole number.
func (e *editor) span(path string, low, high int) {
	s := e.at(path)
	s.Minimum, s.Maximum = number(low), number(high)
}

func number(n int) json.Number { return json.Number(fmt.Sprint(n)) }

// oneOf wants exactly one of some fields.
func (e *editor) oneOf(name string, fields ...string) {
	d := e.at(name)
	for _, f := range fields {
		e.at(name + "." + f)
		d.OneOf = append(d.OneOf, &jsonschema.Schema{Required: []string{f}})
	}
}

// dnsLabel is a field that names a document or a step.
func (e *editor) dnsLabel(path string) {
	s, longest := e.at(path), uint64(document.MaxNameLength)
	s.Pattern, s.MaxLength = namePattern, &longest
}

// envelope fixes what a document begins with. The schema's top is the
// document's definition itself, for editors that show no definition behind $ref.
func (e *editor) envelope(name, kind, title string) {
	e.replace(name+".apiVersion", &jsonschema.Schema{Const: document.APIVersion})
	e.replace(name+".kind", &jsonschema.Schema{Const: kind})
	e.schema.Title, e.schema.Description = title, e.at(name).Description
}

// defaults writes down what a field is when it is not given.
func (e *editor) defaults(name string, values any) error {
	b, err := json.Marshal(values)
	if err != nil {
		return err
	}
	var fields map[string]any
	if err := json.Unmarshal(b, &fields); err != nil {
		return err
	}
	for field, value := range fields {
		switch value := value.(type) {
		case string:
			e.at(name + "." + field).Default = shortDuration(value)
		case float64, bool:
			e.at(name + "." + field).Default = value
		}
	}
	return nil
}

// shortDuration is a duration as people write it: 1h and not 1h0m0s.
func shortDuration(s string) string {
	if d, err := document.ParseDuration(s); err != nil || d.String() != s {
		return s
	}
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func (e *editor) done() (*jsonschema.Schema, error) { return e.schema, errors.Join(e.faults...) }
