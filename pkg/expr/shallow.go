package expr

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/common/ast"
)

// shallow says what is too much about an expression to check its types.
func shallow(e ast.Expr) error {
	var s shape
	s.look(e, 0)
	switch {
	case s.nested > MaxNested:
		return fmt.Errorf("an expression may nest loops, calls, lists and maps %d deep (map counts as two); this one is %d deep", MaxNested, s.nested)
	case s.loops > MaxLoops:
		return fmt.Errorf("an expression may have at most %d loops such as map and all, this one has %d", MaxLoops, s.loops)
	}
	return nil
}

// shape is how far an expression is nested.
type shape struct{ nested, loops int }

// look goes through an expression that stands in so many others. The parser takes none that
// is nested without end. Calls in the arguments of calls count, since the type of optional.of(x)
// holds the type of x; calls one after another, a.b().c(), and operators do not.
func (s *shape) look(e ast.Expr, within int) {
	switch e.Kind() {
	case ast.ComprehensionKind:
		s.loops++
		within++
	case ast.ListKind, ast.MapKind, ast.StructKind:
		within++
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			s.look(call.Target(), within)
		}
		if !operator(call.FunctionName()) {
			within++
		}
		for _, part := range call.Args() {
			s.look(part, within)
		}
		return
	}
	s.nested = max(s.nested, within)
	for _, part := range parts(e) {
		s.look(part, within)
	}
}

// operator says whether a function is one that is written as a sign, such as _+_ and !_, or that the
// parser made.
func operator(function string) bool { return strings.ContainsAny(function[:1], "_!-@") }

// parts are what an expression is made of.
func parts(e ast.Expr) []ast.Expr {
	switch e.Kind() {
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		return []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}
	case ast.ListKind:
		return e.AsList().Elements()
	case ast.MapKind:
		return values(e.AsMap().Entries())
	case ast.StructKind:
		return values(e.AsStruct().Fields())
	case ast.SelectKind:
		return []ast.Expr{e.AsSelect().Operand()}
	}
	return nil
}

func values(entries []ast.EntryExpr) []ast.Expr {
	var out []ast.Expr
	for _, e := range entries {
		switch e.Kind() {
		case ast.MapEntryKind:
			out = append(out, e.AsMapEntry().Key(), e.AsMapEntry().Value())
		case ast.StructFieldKind:
			out = append(out, e.AsStructField().Value())
		}
	}
	return out
}
