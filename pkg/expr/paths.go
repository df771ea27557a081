package expr

import (
	"slices"

	"cel.dev/cel-go/common/ast"
)

// Paths are the fields that an expression reads below one of its roots, each as a
// chain of names: of node.status.phase, "status" and "phase". What follows an index
// or a call is not followed, and one that does not compile has none.
func Paths(text, root string, roots ...string) [][]string {
	compiled, err := parse(text, roots, nil)
	if err != nil {
		return nil
	}
	var out [][]string
	for _, e := range ast.MatchDescendants(ast.NavigateAST(compiled.NativeRep()), ast.KindMatcher(ast.SelectKind)) {
		if path := chain(e, root); len(path) > 0 {
			out = append(out, path)
		}
	}
	return out
}

// chain is the path from a root to a selection, empty where it begins elsewhere.
func chain(e ast.Expr, root string) []string {
	var path []string
	for e.Kind() == ast.SelectKind {
		path = append(path, e.AsSelect().FieldName())
		e = e.AsSelect().Operand()
	}
	if e.Kind() != ast.IdentKind || e.AsIdent() != root {
		return nil
	}
	slices.Reverse(path)
	return path
}
