package executors

import (
	"context"

	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

type evaluationKey struct{}

// WithEvaluation is the context of a pass whose expressions are evaluated by evaluate, which returns an
// error if the context ends before it is their turn.
func WithEvaluation(ctx context.Context, evaluate func(ctx context.Context, expressions func()) error) context.Context {
	return context.WithValue(ctx, evaluationKey{}, evaluate)
}

// Evaluate has expressions of the pass's documents evaluated when it is their turn.
func Evaluate(ctx context.Context, expressions func()) error {
	if evaluate, is := ctx.Value(evaluationKey{}).(func(context.Context, func()) error); is {
		return evaluate(ctx, expressions)
	}
	expressions()
	return nil
}

// Expand evaluates the templates in properties over vars, by Evaluate.
func Expand(ctx context.Context, properties any, vars map[string]any) (expanded any, err error) {
	if !expr.HasTemplates(properties) {
		return expr.Expand(properties, vars)
	}
	if cut := Evaluate(ctx, func() { expanded, err = expr.Expand(properties, vars) }); cut != nil {
		return nil, cut
	}
	return expanded, err
}

// Holds says whether a condition holds over vars, by Evaluate.
func Holds(ctx context.Context, condition string, vars map[string]any) (holds bool, err error) {
	if cut := Evaluate(ctx, func() { holds, err = expr.Bool(condition, vars) }); cut != nil {
		return false, cut
	}
	return holds, err
}
