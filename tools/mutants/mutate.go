package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one change of one operator in one file.
type mutant struct {
	file   string
	offset int // of the operator, in bytes
	line   int
	// first and last are the lines on which its expression begins and ends.
	first, last int
	was         string // the operator as it stands
	is          string // what is put in its place; empty takes a negation away
}

func (m mutant) String() string {
	if m.is == "" {
		return fmt.Sprintf("%s:%d: %s taken away", m.file, m.line, m.was)
	}
	return fmt.Sprintf("%s:%d: %s became %s", m.file, m.line, m.was, m.is)
}

// applied is a file's text with the change in it.
func (m mutant) applied(text []byte) []byte {
	return slices.Concat(text[:m.offset], []byte(m.is), text[m.offset+len(m.was):])
}

// flipped are what an operator is changed to: its opposite, or, of an order, its
// neighbour, which differs at the bound alone.
func flipped(op token.Token) (to token.Token, ok bool) {
	to, ok = map[token.Token]token.Token{
		token.EQL: token.NEQ, token.NEQ: token.EQL,
		token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
		token.LAND: token.LOR, token.LOR: token.LAND,
		token.ADD: token.SUB, token.SUB: token.ADD,
	}[op]
	return to, ok
}

// mutantsOf are all changes of one operator in the files of a folder, without its
// tests and what is generated.
func mutantsOf(dir string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var out []mutant
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found, err := mutantsIn(file, text)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func mutantsIn(file string, text []byte) ([]mutant, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(parsed) {
		return nil, nil
	}
	var out []mutant
	add := func(e ast.Expr, at token.Pos, was, is string) {
		p := set.Position(at)
		out = append(out, mutant{file: file, offset: p.Offset, line: p.Line, first: set.Position(e.Pos()).Line, last: set.Position(e.End()).Line, was: was, is: is})
	}
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.CallExpr:
			for _, arg := range withoutCapacity(x) {
				ast.Inspect(arg, visit)
			}
			return false
		case *ast.BinaryExpr:
			if to, ok := flipped(x.Op); ok && !joinsText(x) {
				add(x, x.OpPos, x.Op.String(), to.String())
			}
		case *ast.UnaryExpr:
			if x.Op == token.NOT {
				add(x, x.OpPos, "!", "")
			}
		}
		return true
	}
	ast.Inspect(parsed, visit)
	return out, nil
}

// withoutCapacity are the parts of a call, without how much room a slice or a map is
// made with: no test could notice that.
func withoutCapacity(call *ast.CallExpr) []ast.Expr {
	parts := append([]ast.Expr{call.Fun}, call.Args...)
	if made, ok := call.Fun.(*ast.Ident); !ok || made.Name != "make" {
		return parts
	}
	switch call.Args[0].(type) {
	case *ast.ArrayType:
		return parts[:min(3, len(parts))]
	case *ast.MapType:
		return parts[:2]
	default:
		return parts
	}
}

// joinsText says whether an addition is one of texts, as far as its literals show.
func joinsText(x *ast.BinaryExpr) bool {
	if x.Op != token.ADD {
		return false
	}
	for _, side := range []ast.Expr{x.X, x.Y} {
		switch side := side.(type) {
		case *ast.BasicLit:
			if side.Kind == token.STRING {
				return true
			}
		case *ast.BinaryExpr:
			if joinsText(side) {
				return true
			}
		}
	}
	return false
}
