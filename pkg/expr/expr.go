// Package expr evaluates what documents say in CEL: conditions, and the ${…}
// in the properties of steps. It is pure and bounded: an expression that costs
// too much is an error, not a stall.
package expr

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
)

// Bounds of one expression. The cost is in steps: one for each value that is looked up and each call,
// and more for what they look at or make (work.go), so that 5e4 take 0.5 to 75 ms
// (BenchmarkDearest; the tests bound it from above).
const (
	MaxLength = 4096
	MaxCost   = 50_000
	// MaxStepCost is what all expressions of a step may cost together: a step may hold a
	// thousand, and each of them at its own bound would take minutes.
	MaxStepCost = 4 * MaxCost
	// MaxResult is the most bytes that one expression, or one string with ${…},
	// may grow to.
	MaxResult = 256 << 10
	// MaxExpanded is the most bytes that all properties of a step may grow to.
	MaxExpanded = 1 << 20
	// MaxNested is how many loops (macros such as map and all), lists and maps may stand in one
	// another or follow on one another, and MaxLoops how many loops there may be: the time that
	// it takes to check types grows with the cube of the one, and the square of the other.
	MaxNested = 20
	MaxLoops  = 20
	// MaxItems is the most items that a list may have, and the most values that a
	// result may hold.
	MaxItems = 5_000
)

// Names are the roots an expression in a step may speak of.
func Names() []string {
	return []string{"run", "plan", "target", "steps", "required", "watched", "trigger_reason", "context", "each", "params", "node"}
}

// CheckBool says what is wrong with a condition over the given roots, if anything.
func CheckBool(text string, roots ...string) error {
	_, err := parse(text, roots, cel.BoolType)
	return err
}

// Check says what is wrong with an expression of any type over the given roots.
func Check(text string, roots ...string) error {
	_, err := parse(text, roots, nil)
	return err
}

// Bool evaluates a condition. A missing value is an error.
func Bool(text string, vars map[string]any) (bool, error) {
	v, err := eval(text, vars, cel.BoolType)
	if err != nil {
		return false, err
	}
	b, ok := v.Value().(bool)
	if !ok {
		return false, fmt.Errorf("%s: must give true or false, gives %s", text, v.Type().TypeName())
	}
	return b, nil
}

// Value evaluates an expression to a JSON value; whole numbers are int64.
func Value(text string, vars map[string]any) (any, error) {
	v, err := eval(text, vars, nil)
	if err != nil {
		return nil, err
	}
	return toJSON(text, v)
}

func eval(text string, vars map[string]any, want *cel.Type) (ref.Val, error) {
	v, _, err := evalWithin(MaxCost, text, vars, want)
	return v, err
}

// evalWithin evaluates an expression that may cost so much, and says what it did cost.
func evalWithin(limit uint64, text string, vars map[string]any, want *cel.Type) (ref.Val, uint64, error) {
	roots := make([]string, 0, len(vars))
	for name := range vars {
		roots = append(roots, name)
	}
	ast, err := parse(text, roots, want)
	if err != nil {
		return nil, 0, err
	}
	env, err := environment(roots)
	if err != nil {
		return nil, 0, err
	}
	done := newWork(limit)
	program, err := env.Program(ast, cel.CustomDecoratorV2(done.decorate))
	if err != nil {
		return nil, 0, fmt.Errorf("%q: %w", text, err)
	}
	v, _, err := program.Eval(vars)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", text, err)
	}
	return v, done.cost(), nil
}

// parse reads an expression and checks its types.
func parse(text string, roots []string, want *cel.Type) (*cel.Ast, error) {
	if len(text) > MaxLength {
		return nil, fmt.Errorf("an expression may have at most %d characters, this one has %d", MaxLength, len(text))
	}
	env, err := environment(roots)
	if err != nil {
		return nil, err
	}
	read, issues := env.Parse(text)
	if issues.Err() != nil {
		return nil, fmt.Errorf("%q does not compile: %s", text, firstLine(issues.Err().Error()))
	}
	if err := shallow(read.NativeRep().Expr()); err != nil {
		return nil, err
	}
	ast, issues := env.Check(read)
	if issues.Err() != nil {
		return nil, fmt.Errorf("%q does not compile: %s", text, firstLine(issues.Err().Error()))
	}
	if out := ast.OutputType(); want != nil && !out.IsExactType(want) && !out.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("%q must give %s, gives %s", text, want, out)
	}
	return ast, nil
}

// environments are what CEL prepares for a set of roots: half a millisecond
// each, and there are three such sets.
var environments sync.Map //nolint:gochecknoglobals // a cache of pure values

func environment(roots []string) (*cel.Env, error) {
	roots = slices.Sorted(slices.Values(roots))
	key := strings.Join(roots, " ")
	if made, ok := environments.Load(key); ok {
		return made.(*cel.Env), nil
	}
	standard := cel.StdLib(cel.StdLibSubset(env.NewLibrarySubset().AddExcludedFunctions(env.NewFunction(overloads.Matches)))) // bounded as ours
	options := append([]cel.EnvOption{standard, ext.Strings(), ext.Lists(ext.ListsMaxRangeSize(MaxItems)), cel.OptionalTypes()}, append(bounds(), searches()...)...)
	for _, name := range roots {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	made, err := cel.NewCustomEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("prepare CEL: %w", err)
	}
	environments.Store(key, made)
	return made, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimPrefix(line, "ERROR: <input>:1:")
}

// Whole turns the json.Numbers in a decoded value into int64 where they are
// whole and float64 where they are not, all the way down.
func Whole(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return Whole(f)
	case float64:
		if i := int64(v); float64(i) == v {
			return i
		}
	case map[string]any:
		for key := range v {
			v[key] = Whole(v[key])
		}
	case []any:
		for i := range v {
			v[i] = Whole(v[i])
		}
	}
	return v
}
