package document

import (
	"bytes"
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Positions says on which line of a document each path stands.
type Positions map[string]int

// Line is the line of a path, or of the nearest parent that the document has.
func (p Positions) Line(path string) int {
	for path != "" {
		if n, ok := p[path]; ok {
			return n
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return p[""]
}

// Decode reads one YAML 1.2 document strictly into out, a pointer to a struct
// with json tags. Unknown fields, duplicate keys, wrong types, aliases and a
// second document are faults, all reported at once with path and line.
func Decode(data []byte, out any) (Positions, Faults) {
	d, faults := decode(data, out)
	return d.lines, faults
}

func decode(data []byte, out any) (decoder, Faults) {
	if len(data) > MaxDocumentBytes {
		return decoder{}, Faults{{Message: fmt.Sprintf("the document has %d bytes; at most %d are allowed", len(data), MaxDocumentBytes)}}
	}
	if Weight(string(data)) > maxMarks {
		return decoder{}, tooMany("marks", maxMarks)
	}
	root, faults := parseOne(data)
	if len(faults) > 0 {
		return decoder{}, faults
	}
	if nodes(root) > MaxValues {
		return decoder{}, tooMany("values", MaxValues)
	}
	d := decoder{lines: Positions{"": root.Line}}
	d.value(root, "", reflect.ValueOf(out).Elem())
	return d, d.faults.sorted()
}

// maxMarks is how many signs a text may have that may part values, those within texts too:
// one with more is not parsed to be counted (a guess: twice as many as a script or a
// dashboard has that fills a document).
const maxMarks = 80_000

// Weight is how many signs a text has that may part values: about how much it takes to
// read it.
func Weight(text string) int {
	sum := 0
	for i := range len(text) {
		switch text[i] {
		case ',', ':', '[', '{', '\n':
			sum++
		}
	}
	return sum
}

func tooMany(what string, most int) Faults {
	return Faults{{Message: fmt.Sprintf("the document has more than %d %s: split it, or move what does not belong to it to another ConfigMap", most, what)}}
}

// nodes is how many values stand in one, keys among them.
func nodes(n *yaml.Node) int {
	sum := 1
	for _, one := range n.Content {
		if sum += nodes(one); sum > MaxValues {
			break
		}
	}
	return sum
}

func parseOne(data []byte) (*yaml.Node, Faults) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, Faults{{Message: "the document is empty"}}
		}
		return nil, Faults{YAMLFault(err, data)}
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, Faults{{Line: second.Line, Message: "a second document begins here; a ConfigMap holds one document"}}
	case !errors.Is(err, io.EOF):
		return nil, Faults{YAMLFault(err, data)}
	}
	if len(doc.Content) == 0 || isNull(doc.Content[0]) {
		return nil, Faults{{Message: "the document is empty"}}
	}
	return doc.Content[0], nil
}

// YAMLFault is what the YAML parser found wrong with a text, and on which line.
func YAMLFault(err error, data []byte) Fault {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	f := Fault{Message: "this is no YAML: " + text}
	var line int
	if n, scanErr := fmt.Sscanf(text, "line %d:", &line); scanErr == nil && n == 1 {
		_, rest, _ := strings.Cut(text, ": ")
		if strings.HasPrefix(rest, "did not find expected") {
			line = min(line+1, 1+bytes.Count(bytes.TrimRight(data, "\n"), []byte("\n"))) // the library counts these from 0, the others from 1
		}
		f = Fault{Line: line, Message: "this is no YAML: " + rest}
	}
	return f
}

// Bounds of a document's shape: paths are kept for every value, so that without
// them a quarter of a megabyte of brackets would become gigabytes of paths.
const (
	maxDepth = 100
	maxPath  = 1000
)

type decoder struct {
	lines     Positions
	faults    Faults
	broken    map[string]bool // paths whose value has the wrong shape
	templates bool            // strings with ${…} may stand for any type
	left      map[string]bool // paths of those strings
	depth     int
}

func (d *decoder) fault(n *yaml.Node, path, format string, args ...any) {
	d.faults = append(d.faults, Fault{Line: n.Line, Path: path, Message: fmt.Sprintf(format, args...)})
}

// unfit reports a value of the wrong shape: what is missing below it is no
// second fault.
func (d *decoder) unfit(n *yaml.Node, path, format string, args ...any) {
	if d.broken == nil {
		d.broken = map[string]bool{}
	}
	d.broken[path] = true
	d.fault(n, path, format, args...)
}

func (d *decoder) value(n *yaml.Node, path string, out reflect.Value) {
	d.lines[path] = n.Line
	if !d.plain(n, path) {
		return
	}
	d.depth++
	defer func() { d.depth-- }()
	if d.leave(n, path, out.Type()) {
		switch { // given, if not yet known
		case out.Kind() == reflect.Map:
			out.Set(reflect.MakeMap(out.Type()))
		case out.Kind() == reflect.Pointer && out.Type().Elem().Kind() == reflect.Struct && !readsText(out.Type()):
			out.Set(reflect.New(out.Type().Elem()))
		}
		return
	}
	if out.Kind() == reflect.Pointer {
		if isNull(n) {
			return
		}
		out.Set(reflect.New(out.Type().Elem()))
		d.value(n, path, out.Elem())
		return
	}
	if u, ok := out.Addr().Interface().(encoding.TextUnmarshaler); ok && !hasLongForm(n, out) {
		d.text(n, path, u)
		return
	}
	switch out.Kind() {
	case reflect.Struct:
		d.object(n, path, out)
	case reflect.Map:
		d.mapping(n, path, out)
	case reflect.Slice:
		d.sequence(n, path, out)
	case reflect.Interface:
		d.free(n, path, out)
	default:
		d.scalar(n, path, out)
	}
}

// plain reports what YAML has and documents have not.
func (d *decoder) plain(n *yaml.Node, path string) bool {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.unfit(n, path, "anchors and aliases are not supported: write the value out")
	case n.Style&yaml.TaggedStyle != 0 && n.Tag != "!!str":
		d.unfit(n, path, "the tag %s is not supported: write the value without it", Cut(n.Tag, 80))
	case d.depth >= maxDepth:
		d.unfit(n, path, "is nested deeper than %d levels", maxDepth)
	default:
		return true
	}
	return false
}

// leave says whether a string with ${…} stands where another type is wanted:
// its value is read when the expression is evaluated.
func (d *decoder) leave(n *yaml.Node, path string, t reflect.Type) bool {
	if !d.templates || !isTemplate(n) {
		return false
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	_, reads := reflect.New(t).Interface().(encoding.TextUnmarshaler)
	if reads && t.Kind() == reflect.Struct && len(fieldsOf(t)) > 0 {
		return false // its short form is a string
	}
	if d.left == nil {
		d.left = map[string]bool{}
	}
	d.left[path] = true
	return t.Kind() != reflect.String && t.Kind() != reflect.Interface
}

// readsText says whether a type reads a string itself.
func readsText(t reflect.Type) bool { return t.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) }

// hasLongForm says whether an object stands where a type reads a string too.
func hasLongForm(n *yaml.Node, out reflect.Value) bool {
	return n.Kind == yaml.MappingNode && out.Kind() == reflect.Struct && len(fieldsOf(out.Type())) > 0
}

func (d *decoder) text(n *yaml.Node, path string, u encoding.TextUnmarshaler) {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		d.fault(n, path, "must be a string, is %s", describe(n))
		return
	}
	if err := u.UnmarshalText([]byte(n.Value)); err != nil {
		d.fault(n, path, "%s", err)
	}
}

// pairs walks a mapping's entries in order, reporting keys that are no strings
// or stand twice.
func (d *decoder) pairs(n *yaml.Node, path string, visit func(key, value *yaml.Node)) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			d.fault(key, path, "a key must be a string, is %s", describe(key))
			continue
		}
		if !d.plain(key, join(path, key.Value)) {
			continue
		}
		if first, twice := seen[key.Value]; twice {
			d.fault(key, join(path, key.Value), "appears twice, first on line %d", first)
			continue
		}
		seen[key.Value] = key.Line
		visit(key, value)
	}
}

func (d *decoder) object(n *yaml.Node, path string, out reflect.Value) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.unfit(n, path, "must be an object, is %s%s", describe(n), formHint(n, path, out.Type()))
		return
	}
	fields := fieldsOf(out.Type())
	var unknown []*yaml.Node
	d.pairs(n, path, func(key, value *yaml.Node) {
		index, known := fields[key.Value]
		if !known {
			unknown = append(unknown, key)
			return
		}
		d.value(value, join(path, key.Value), out.FieldByIndex(index))
	})
	for _, key := range unknown { // the known ones may say where these belong
		d.fault(key, join(path, key.Value), "unknown field%s", cmp.Or(misplaced(key.Value, out), suggestion(key.Value, fields)))
	}
}

func (d *decoder) mapping(n *yaml.Node, path string, out reflect.Value) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.unfit(n, path, "must be an object, is %s", describe(n))
		return
	}
	out.Set(reflect.MakeMap(out.Type()))
	d.pairs(n, path, func(key, value *yaml.Node) {
		item := reflect.New(out.Type().Elem()).Elem()
		d.value(value, join(path, key.Value), item)
		out.SetMapIndex(reflect.ValueOf(key.Value), item)
	})
}

func (d *decoder) sequence(n *yaml.Node, path string, out reflect.Value) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.unfit(n, path, "must be a list, is %s%s", describe(n), formHint(n, path, out.Type()))
		return
	}
	out.Set(reflect.MakeSlice(out.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		d.value(item, Index(path, i), out.Index(i))
	}
}

// free decodes into any: the JSON value that the YAML says.
func (d *decoder) free(n *yaml.Node, path string, out reflect.Value) {
	var v any
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		d.mapping(n, path, reflect.ValueOf(&m).Elem())
		v = m
	case yaml.SequenceNode:
		s := []any{}
		d.sequence(n, path, reflect.ValueOf(&s).Elem())
		v = s
	default:
		v = scalarValue(n)
		if _, ok := v.(string); ok && isPlainNumber(n) {
			d.fault(n, path, "the number %s does not fit in 64 bits: write it in quotes", Cut(n.Value, 80))
		}
	}
	if v != nil {
		out.Set(reflect.ValueOf(v))
	}
}

func (d *decoder) scalar(n *yaml.Node, path string, out reflect.Value) {
	v := scalarValue(n)
	if n.Kind != yaml.ScalarNode {
		v = n
	}
	switch out.Kind() {
	case reflect.String:
		if s, ok := v.(string); ok {
			out.SetString(s)
			return
		}
		d.fault(n, path, "must be a string, is %s%s", describe(n), quoteHint(n))
	case reflect.Bool:
		if b, ok := v.(bool); ok {
			out.SetBool(b)
			return
		}
		d.fault(n, path, "must be true or false, is %s", describe(n))
	case reflect.Int, reflect.Int32, reflect.Int64:
		if i, ok := v.(int64); ok && !out.OverflowInt(i) {
			out.SetInt(i)
			return
		}
		d.fault(n, path, "must be a whole number, is %s", describe(n))
	case reflect.Float64:
		switch f := v.(type) {
		case int64:
			out.SetFloat(float64(f))
		case float64:
			out.SetFloat(f)
		default:
			d.fault(n, path, "must be a number, is %s", describe(n))
		}
	default:
		d.fault(n, path, "cannot be read into %s", out.Type())
	}
}

// scalarValue is what a scalar says by YAML 1.2's core schema: 010 is the number
// ten, 0o10 is eight, and n, y, on and off are strings, unlike in YAML 1.1.
func scalarValue(n *yaml.Node) any {
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 || n.Tag == "!!str" && n.Style&yaml.TaggedStyle != 0 {
		return n.Value
	}
	switch n.Value {
	case "", "~", "null", "Null", "NULL":
		return nil
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	}
	return number(n.Value)
}

// number is a plain scalar as a number, or the scalar itself where it is none,
// or none that JSON can hold.
func number(s string) any {
	if len(s) > 2 && (s[:2] == "0x" || s[:2] == "0o") {
		if i, err := strconv.ParseInt(s[2:], map[byte]int{'x': 16, 'o': 8}[s[1]], 64); err == nil && s[2] != '-' && s[2] != '+' {
			return i
		}
	}
	if strings.Trim(s, "0123456789+-.eE") != "" {
		return s
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && !isWhole(s) {
		return f
	}
	return s
}

func isWhole(s string) bool {
	s = strings.TrimLeft(s, "+-")
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// isPlainNumber says whether a scalar that is no number here would be one to
// most readers.
func isPlainNumber(n *yaml.Node) bool {
	return n.Style == 0 && isWhole(n.Value) && strings.LastIndexAny(n.Value, "+-") <= 0
}

func isTemplate(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && strings.Contains(strings.ReplaceAll(n.Value, "$${", ""), "${")
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && scalarValue(n) == nil }

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	}
	switch scalarValue(n).(type) {
	case nil:
		return "empty"
	case bool:
		return "the boolean " + n.Value
	case int64, float64:
		return "the number " + n.Value
	}
	return fmt.Sprintf("%q", Cut(n.Value, 80))
}

func quoteHint(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && n.Value != "" {
		return fmt.Sprintf(": write it in quotes, %q", n.Value)
	}
	return ""
}

func suggestion(word string, fields map[string][]int) string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	sort.Strings(names)
	return cmp.Or(DidYouMean(word, names), "; known are "+strings.Join(names, ", "))
}

// misplaced suggests where an unknown field belongs, if the object that it stands in knows.
func misplaced(field string, in reflect.Value) string {
	o, knows := in.Addr().Interface().(interface{ Misplaced(field string) string })
	if !knows {
		return ""
	}
	if at := o.Misplaced(field); at != "" {
		return fmt.Sprintf("; did you mean %q?", at)
	}
	return ""
}

// formHint says how a value is written in the form that is wanted: with the fields that it needs. A
// document itself gets no hint.
func formHint(n *yaml.Node, path string, t reflect.Type) string {
	if form := formOf(n, t); path != "" && form != "" {
		return ": write " + form
	}
	return ""
}

func formOf(n *yaml.Node, t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	scalar := n.Kind == yaml.ScalarNode && n.Value != "" && len(n.Value) <= MaxNameLength
	switch {
	case t.Kind() == reflect.Slice:
		if form := formOf(n, t.Elem()); form != "" {
			return "[" + form + "]"
		}
	case t.Kind() == reflect.String && scalar:
		return n.Value
	case t.Kind() == reflect.Struct && !readsText(reflect.PointerTo(t)):
		needs := neededFields(t)
		if len(needs) == 1 && scalar {
			return "{" + needs[0] + ": " + n.Value + "}"
		}
		if len(needs) > 0 {
			return "{" + strings.Join(needs, ": "+Ellipsis+", ") + ": " + Ellipsis + "}"
		}
	}
	return ""
}

// neededFields are the fields of an object that may not be left out.
func neededFields(t reflect.Type) []string {
	var out []string
	for _, f := range reflect.VisibleFields(t) {
		if name, options, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" && !strings.Contains(options, "omitempty") {
			out = append(out, name)
		}
	}
	return out
}

// HasField says whether a document's object, a pointer to a struct with json tags, has a field.
func HasField(object any, name string) bool {
	_, has := fieldsOf(reflect.TypeOf(object).Elem())[name]
	return has
}

func fieldsOf(t reflect.Type) map[string][]int {
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || slices.Contains(strings.Split(options, ","), "inline") {
			continue
		}
		fields[name] = f.Index
	}
	return fields
}

func join(path, key string) string {
	key = Cut(key, maxPath/2)
	switch {
	case path == "":
		return key
	case len(path)+len(key) > maxPath:
		return path
	}
	return path + "." + key
}

// Index is the path of an item of a list.
func Index(path string, i int) string {
	if len(path) > maxPath {
		return path
	}
	return path + "[" + strconv.Itoa(i) + "]"
}

// Ellipsis is the mark at the end of a text that was cut.
const Ellipsis = "…"

// Cut shortens a text to at most n bytes at a rune's edge, with a mark.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[:n-len(Ellipsis)]
	for len(s) > 0 && s[len(s)-1]&0xC0 == 0x80 {
		s = s[:len(s)-1]
	}
	if len(s) > 0 && s[len(s)-1] >= 0xC0 {
		s = s[:len(s)-1]
	}
	return s + Ellipsis
}

// IsList says whether a document is a list, and not an object.
func IsList(text []byte) (bool, Faults) {
	root, faults := parseOne(text)
	return len(faults) == 0 && describe(root) == "a list", faults
}

// TooDeep says whether a parsed value is nested deeper than a document may be: what
// walks it stops there.
func TooDeep(v any) bool { return deeper(v, maxDepth) }

func deeper(v any, levels int) bool {
	if levels == 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for _, child := range v {
			if deeper(child, levels-1) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(child any) bool { return deeper(child, levels-1) })
	}
	return false
}

// DecodeValue reads an already parsed value (the properties of a step) strictly
// into out. With templates, a string that holds ${…} is left for later where
// another type than string is wanted.
func DecodeValue(v any, path string, lines Positions, templates bool, out any) Faults {
	faults, _ := decodeValue(v, path, lines, templates, out)
	return faults
}

// decodeValue tells besides at which paths a string with ${…} was left.
func decodeValue(v any, path string, lines Positions, templates bool, out any) (Faults, map[string]bool) {
	d := decoder{lines: Positions{}, templates: templates}
	d.value(nodeOf(v, path, lines), path, reflect.ValueOf(out).Elem())
	return d.faults.sorted(), d.left
}

// nodeOf is a parsed value as a YAML tree again, with the lines it stood on.
func nodeOf(v any, path string, lines Positions) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: lines.Line(path)}
	switch v := v.(type) {
	case map[string]any:
		n.Kind = yaml.MappingNode
		for _, key := range slices.Sorted(maps.Keys(v)) {
			child := nodeOf(v[key], join(path, key), lines)
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Style: yaml.DoubleQuotedStyle, Value: key, Line: child.Line}, child)
		}
	case []any:
		n.Kind = yaml.SequenceNode
		for i, item := range v {
			n.Content = append(n.Content, nodeOf(item, Index(path, i), lines))
		}
	case string:
		n.Style, n.Value = yaml.DoubleQuotedStyle, v
	case nil:
	default:
		n.Value = fmt.Sprint(v)
	}
	return n
}
