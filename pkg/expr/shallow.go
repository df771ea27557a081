package expr

import (
	"fmt"

	"cel.dev/cel-go/common/ast"
)

// shallow says what is too much about an expression to check its types.
func shallow(e ast.Expr) error {
	var s shape
	s.look(e, 0)
	switch {
	case s.nested > MaxNested:
		return fmt.Errorf("an expression may nest loops, lists and maps %d deep, where map takes two, this one is %d deep", MaxNested, s.nested)
	case s.loops > MaxLoops:
		return fmt.Errorf("an expression may have at most %d loops such as map and all, this one has %d", MaxLoops, s.loops)
	}
	return nil
}

// shape is how far an expression is nested.
type shape struct{ nested, loops int }

// look goes through an expression that stands in so many others. The parser takes none that
// is nested without end.
func (s *shape) look(e ast.Expr, within int) {
	switch e.Kind() {
	case ast.ComprehensionKind:
		s.loops++
		within++
	case ast.ListKind, ast.MapKind, ast.StructKind:
		within++
	}
	s.nested = max(s.nested, within)
	for _, part := range parts(e) {
		s.look(part, within)
	}
}

// parts are what an expression is made of.
func parts(e ast.Expr) []ast.Expr {
	switch e.Kind() {
	case ast.CallKind:
		if call := e.AsCall(); call.IsMemberFunction() {
			return append([]ast.Expr{call.Target()}, call.Args()...)
		}
		return e.AsCall().Args()
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
