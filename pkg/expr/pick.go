package expr

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// OrNull is what an expression sees of an object: null where there is none.
func OrNull(object map[string]any) any {
	if object == nil {
		return nil
	}
	return object
}

// PathStep is one step of a JSONPath: into a name, into an item, or into all.
type PathStep struct {
	Name  string
	index int // where name is empty and all is false
	All   bool
}

// ParsePath reads the part of JSONPath that names fields: dotted names, quoted
// names in brackets, an index, and [*]. The spellings of kubectl are taken, too:
// {.spec.size}, $.spec.size, and a dot within a name as \. .
func ParsePath(text string) ([]PathStep, error) {
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
	var steps []PathStep
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
func nextStep(text string) (PathStep, string, error) {
	if text[0] == '[' {
		return bracket(text[1:])
	}
	if text[0] != '.' {
		return PathStep{}, "", fmt.Errorf("after a ] comes a . or a [, not %q", text[:1])
	}
	var name strings.Builder
	i := 1
	for ; i < len(text) && text[i] != '.' && text[i] != '['; i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		} else if strings.IndexByte(" \t\n]{}()?'\",", text[i]) >= 0 {
			return PathStep{}, "", fmt.Errorf("%q cannot stand in a name without quotes", text[i:i+1])
		}
		name.WriteByte(text[i])
	}
	switch name.String() {
	case "":
		return PathStep{}, "", errors.New("a name is empty")
	case "*":
		return PathStep{All: true}, text[i:], nil
	}
	return PathStep{Name: name.String()}, text[i:], nil
}

// bracket reads a step after its [.
func bracket(text string) (PathStep, string, error) {
	if text != "" && (text[0] == '\'' || text[0] == '"') {
		name, rest, closed := strings.Cut(text[1:], text[:1]+"]")
		if !closed || name == "" {
			return PathStep{}, "", errors.New("a quoted name is empty or not closed")
		}
		return PathStep{Name: name}, rest, nil
	}
	inner, rest, closed := strings.Cut(text, "]")
	if !closed {
		return PathStep{}, "", errors.New("a bracket is not closed")
	}
	if inner == "*" {
		return PathStep{All: true}, rest, nil
	}
	index, err := strconv.Atoi(inner)
	if err != nil || index < 0 {
		return PathStep{}, "", fmt.Errorf("[%s] is neither an index from 0, nor [*], nor a quoted name", inner)
	}
	return PathStep{index: index}, rest, nil
}

// Pick is every value that a path leads to, in order. What is not there is none.
func Pick(v any, steps []PathStep) []any {
	if len(steps) == 0 {
		return []any{v}
	}
	step, out := steps[0], []any{}
	switch v := v.(type) {
	case map[string]any:
		if step.All {
			for _, key := range slices.Sorted(maps.Keys(v)) {
				out = append(out, Pick(v[key], steps[1:])...)
			}
		} else if inner, there := v[step.Name]; there && step.Name != "" {
			out = Pick(inner, steps[1:])
		}
	case []any:
		for i, item := range v {
			if step.All || step.Name == "" && step.index == i {
				out = append(out, Pick(item, steps[1:])...)
			}
		}
	}
	return out
}
