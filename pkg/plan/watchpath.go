package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// pathStep is one step of a JSONPath: into a name, into an item, or into all.
type pathStep struct {
	name  string
	index int // where name is empty and all is false
	all   bool
}

// parsePath reads the part of JSONPath that names fields: dotted names, quoted
// names in brackets, an index, and [*]. The spellings of kubectl are taken, too:
// {.spec.size}, $.spec.size, and a dot within a name as \. .
func parsePath(text string) ([]pathStep, error) {
	if inner, braced := strings.CutPrefix(text, "{"); braced {
		closed := false
		if text, closed = strings.CutSuffix(inner, "}"); !closed {
			return nil, errors.New("its brace is not closed")
		}
	}
	rest := strings.TrimPrefix(text, "$")
	if rest != "" && rest[0] != '.' && rest[0] != '[' {
		rest = "." + rest
	}
	var steps []pathStep
	for rest != "" {
		step, left, err := nextStep(rest)
		if err != nil {
			return nil, err
		}
		steps, rest = append(steps, step), left
	}
	if len(steps) == 0 {
		return nil, errors.New("it names nothing")
	}
	return steps, nil
}

// nextStep cuts the first step off; what is given begins with a dot or a bracket.
func nextStep(text string) (pathStep, string, error) {
	if text[0] == '[' {
		return bracket(text[1:])
	}
	if text[0] != '.' {
		return pathStep{}, "", fmt.Errorf("after a ] comes a . or a [, not %q", text[:1])
	}
	var name strings.Builder
	i := 1
	for ; i < len(text) && text[i] != '.' && text[i] != '['; i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		} else if strings.IndexByte(" \t\n]{}()?'\",", text[i]) >= 0 {
			return pathStep{}, "", fmt.Errorf("%q cannot stand in a name without quotes", text[i:i+1])
		}
		name.WriteByte(text[i])
	}
	switch name.String() {
	case "":
		return pathStep{}, "", errors.New("a name is empty")
	case "*":
		return pathStep{all: true}, text[i:], nil
	}
	return pathStep{name: name.String()}, text[i:], nil
}

// bracket reads a step after its [.
func bracket(text string) (pathStep, string, error) {
	if text != "" && (text[0] == '\'' || text[0] == '"') {
		name, rest, closed := strings.Cut(text[1:], text[:1]+"]")
		if !closed || name == "" {
			return pathStep{}, "", errors.New("a quoted name is empty or not closed")
		}
		return pathStep{name: name}, rest, nil
	}
	inner, rest, closed := strings.Cut(text, "]")
	if !closed {
		return pathStep{}, "", errors.New("a bracket is not closed")
	}
	if inner == "*" {
		return pathStep{all: true}, rest, nil
	}
	index, err := strconv.Atoi(inner)
	if err != nil || index < 0 {
		return pathStep{}, "", fmt.Errorf("[%s] is neither an index from 0, nor [*], nor a quoted name", inner)
	}
	return pathStep{index: index}, rest, nil
}

// pick is every value that a path leads to, in order. What is not there is none.
func pick(v any, steps []pathStep) []any {
	if len(steps) == 0 {
		return []any{v}
	}
	step, out := steps[0], []any{}
	switch v := v.(type) {
	case map[string]any:
		if step.all {
			for _, key := range slices.Sorted(maps.Keys(v)) {
				out = append(out, pick(v[key], steps[1:])...)
			}
		} else if inner, there := v[step.name]; there && step.name != "" {
			out = pick(inner, steps[1:])
		}
	case []any:
		for i, item := range v {
			if step.all || step.name == "" && step.index == i {
				out = append(out, pick(item, steps[1:])...)
			}
		}
	}
	return out
}
