package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// part is a stretch of a string: literal text, or the expression of one ${…}.
type part struct {
	text string
	code bool
}

// IsTemplate says whether a string holds a ${…}.
func IsTemplate(s string) bool {
	parts, err := split(s)
	if err != nil {
		return true
	}
	for _, p := range parts {
		if p.code {
			return true
		}
	}
	return false
}

// InText are the expressions of a string's ${…}; none where one is not closed.
func InText(s string) []string {
	parts, err := split(s)
	if err != nil {
		return nil
	}
	var out []string
	for _, p := range parts {
		if p.code {
			out = append(out, p.text)
		}
	}
	return out
}

// MaxExpressions is how many ${…} a tree of values may hold (a guess: more is
// no plan but a load).
const MaxExpressions = 1000

// CheckTemplates says what is wrong with each ${…} in a tree of JSON values.
// visit gets the path below the root, like body.text or items[0].
func CheckTemplates(v any, roots []string, visit func(path string, err error)) {
	checked := map[string]error{}
	seen := 0
	walk(v, "", func(path, s string) {
		parts, err := split(s)
		if err != nil {
			visit(path, err)
			return
		}
		for _, p := range parts {
			if !p.code {
				continue
			}
			if seen++; seen > MaxExpressions {
				if seen == MaxExpressions+1 {
					visit(path, fmt.Errorf("is one too many: a step may hold %d expressions", MaxExpressions))
				}
				return
			}
			known, done := checked[p.text]
			if !done {
				known = Check(p.text, roots...)
				checked[p.text] = known
			}
			if known != nil {
				visit(path, known)
			}
		}
	})
}

func walk(v any, path string, visit func(path, s string)) {
	switch v := v.(type) {
	case string:
		visit(path, v)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			walk(v[key], below(path, "."+key), visit)
		}
	case []any:
		for i, item := range v {
			walk(item, below(path, fmt.Sprintf("[%d]", i)), visit)
		}
	}
}

// below is a path one level down, as long as it is one that people read.
func below(path, child string) string {
	if len(path)+len(child) > 1000 {
		return path
	}
	return strings.TrimPrefix(path+child, ".")
}

// HasTemplates says whether a string in a tree of JSON values may have a ${…}.
func HasTemplates(v any) bool {
	switch v := v.(type) {
	case string:
		return IsTemplate(v)
	case map[string]any:
		for _, one := range v {
			if HasTemplates(one) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, HasTemplates)
	}
	return false
}

// Expand evaluates every ${…} in a tree of JSON values and returns a new tree.
// A string that is one ${…} alone keeps the value's type. Nothing that an
// expression yields is looked at again, so a value cannot smuggle in another
// template, nor leave the string it stands in.
func Expand(v any, vars map[string]any) (any, error) {
	e := expander{vars: vars, left: MaxExpanded, cost: MaxStepCost}
	return e.expand(v)
}

type expander struct {
	vars map[string]any
	left int    // bytes that expressions may still yield
	cost uint64 // that they may still have
}

func (e *expander) expand(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return e.text(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			x, err := e.expand(v[key])
			if err != nil {
				return nil, err
			}
			out[key] = x
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			x, err := e.expand(item)
			if err != nil {
				return nil, err
			}
			out[i] = x
		}
		return out, nil
	}
	return v, nil
}

func (e *expander) text(s string) (any, error) {
	parts, err := split(s)
	if err != nil {
		return nil, err
	}
	if len(parts) == 1 && parts[0].code {
		return e.value(parts[0].text)
	}
	var b strings.Builder
	for _, p := range parts {
		if !p.code {
			b.WriteString(p.text)
			continue
		}
		v, err := e.value(p.text)
		if err != nil {
			return nil, err
		}
		b.WriteString(inText(v))
		if b.Len() > MaxResult {
			return nil, fmt.Errorf("%s: %w", p.text, errTooLong)
		}
	}
	return b.String(), nil
}

// value evaluates one expression, and counts what it yields.
func (e *expander) value(expression string) (any, error) {
	limit := min(MaxCost, e.cost)
	raw, cost, err := evalWithin(limit, expression, e.vars, nil)
	if err != nil && limit < MaxCost {
		return nil, fmt.Errorf("%w (all expressions of a step together may cost %d)", err, MaxStepCost)
	}
	if err != nil {
		return nil, err
	}
	e.cost -= min(cost, e.cost)
	v, err := toJSON(expression, raw)
	if err != nil {
		return nil, err
	}
	if e.left -= len(inText(v)); e.left < 0 {
		return nil, fmt.Errorf("%s: the properties grow beyond %d bytes", expression, MaxExpanded)
	}
	return v, nil
}

func inText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

var errOpen = errors.New("a ${ is not closed; write $${ for a literal ${")

// split cuts a string into literal text and expressions. Braces and quotes
// inside an expression are its own.
func split(s string) ([]part, error) {
	var parts []part
	var literal strings.Builder
	for len(s) > 0 {
		switch {
		case strings.HasPrefix(s, "$${"):
			literal.WriteString("${")
			s = s[3:]
		case strings.HasPrefix(s, "${"):
			end := closing(s[2:])
			if end < 0 {
				return nil, errOpen
			}
			if literal.Len() > 0 {
				parts = append(parts, part{text: literal.String()})
				literal.Reset()
			}
			parts = append(parts, part{text: strings.TrimSpace(s[2 : 2+end]), code: true})
			s = s[2+end+1:]
		default:
			literal.WriteByte(s[0])
			s = s[1:]
		}
	}
	if literal.Len() > 0 {
		parts = append(parts, part{text: literal.String()})
	}
	return parts, nil
}

// closing is the index of the brace that closes an expression, or -1.
func closing(s string) int {
	depth, quote := 0, byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '{':
			depth++
		case c == '}' && depth == 0:
			return i
		case c == '}':
			depth--
		}
	}
	return -1
}
