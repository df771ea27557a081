package expr

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Paths are the fields that an expression reads below one of its roots, each as a
// chain of names: of node.status.phase and of node.status['phase'], "status" and
// "phase". What follows another index or a call is not followed, and one that does not
// compile has none.
func Paths(text, root string, roots ...string) [][]string {
	compiled, err := parse(text, roots, nil)
	if err != nil {
		return nil
	}
	var out [][]string
	for _, e := range ast.MatchDescendants(ast.NavigateAST(compiled.NativeRep()), ast.AllMatcher()) {
		if path := chain(e, root); len(path) > 0 {
			out = append(out, path)
		}
	}
	return out
}

// chain is the path from a root to a selection, empty where it begins elsewhere.
func chain(e ast.Expr, root string) []string {
	var path []string
	for {
		operand, name, selects := selection(e)
		if !selects {
			break
		}
		path = append(path, name)
		e = operand
	}
	if e.Kind() != ast.IdentKind || e.AsIdent() != root {
		return nil
	}
	slices.Reverse(path)
	return path
}

// selection is what an expression selects by a name: a.b, or a['b'].
func selection(e ast.Expr) (operand ast.Expr, name string, selects bool) {
	switch {
	case e.Kind() == ast.SelectKind:
		return e.AsSelect().Operand(), e.AsSelect().FieldName(), true
	case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Index && len(e.AsCall().Args()) == 2:
		key := e.AsCall().Args()[1]
		if key.Kind() != ast.LiteralKind {
			return nil, "", false
		}
		text, is := key.AsLiteral().(types.String)
		return e.AsCall().Args()[0], string(text), is
	}
	return nil, "", false
}
