package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// Building a package's tests takes longer than running them. So all changes are
// built into one test binary, each behind a switch that an environment variable
// turns on; only those that do not compile that way are built by themselves.

// which is the environment variable that names the change to be made.
const which = "MUTANT"

// switches is the file that is added to a package, with what its rewritten operators
// call. Their names are none that a package would have.
const switches = `package %s

import (
	mutantCmp "cmp"
	mutantOS "os"
	mutantStrconv "strconv"
)

var mutantChosen = func() int { n, _ := mutantStrconv.Atoi(mutantOS.Getenv("MUTANT")); return n }()

func mutantIs(n int) bool { return n == mutantChosen }

func mutantAnd(n int, a bool, b func() bool) bool {
	if mutantIs(n) {
		return a || b()
	}
	return a && b()
}

func mutantOr(n int, a bool, b func() bool) bool {
	if mutantIs(n) {
		return a && b()
	}
	return a || b()
}

func mutantLess[T mutantCmp.Ordered](n int, a, b T) bool { return a < b || mutantIs(n) && a == b }

func mutantLessEqual[T mutantCmp.Ordered](n int, a, b T) bool { return a < b || !mutantIs(n) && a == b }

func mutantGreater[T mutantCmp.Ordered](n int, a, b T) bool { return a > b || mutantIs(n) && a == b }

func mutantGreaterEqual[T mutantCmp.Ordered](n int, a, b T) bool { return a > b || !mutantIs(n) && a == b }

type mutantNumber interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

func mutantAdd[T mutantNumber](n int, a, b T) T {
	if mutantIs(n) {
		return a - b
	}
	return a + b
}

func mutantSubtract[T mutantNumber](n int, a, b T) T {
	if mutantIs(n) {
		return a + b
	}
	return a - b
}
`

// edit puts a text in the place of a few bytes of a file.
type edit struct {
	offset, length int
	text           string
}

// rewritten is a file with a switch at each of the operators that numbers names;
// its lines stay where they are.
func rewritten(file string, text []byte, numbers map[int]int) ([]byte, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	offset := func(p token.Pos) int { return set.Position(p).Offset }
	var edits []edit
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		at, operands := operator(e)
		number, chosen := numbers[offset(at)]
		if !at.IsValid() || !chosen {
			return true
		}
		before, between, after := switched(e, number)
		edits = append(edits, edit{offset(e.Pos()), 0, before})
		for i, x := range operands {
			if i == len(operands)-1 {
				edits = append(edits, edit{offset(at), len(opOf(e)), between})
			}
			ast.Inspect(x, visit)
		}
		edits = append(edits, edit{offset(e.End()), 0, after})
		return false
	}
	ast.Inspect(parsed, visit)
	return edited(text, edits), nil
}

// edited makes changes that are given in the order in which they stand in the text.
func edited(text []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.offset, b.offset) })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, text[at:e.offset]...), e.text...)
		at = e.offset + e.length
	}
	return append(out, text[at:]...)
}

// operator is where an expression's operator stands, and what it works on.
func operator(e ast.Expr) (at token.Pos, operands []ast.Expr) {
	switch x := e.(type) {
	case *ast.BinaryExpr:
		return x.OpPos, []ast.Expr{x.X, x.Y}
	case *ast.UnaryExpr:
		return x.OpPos, []ast.Expr{x.X}
	default:
		return token.NoPos, nil
	}
}

func opOf(e ast.Expr) string {
	if x, ok := e.(*ast.BinaryExpr); ok {
		return x.Op.String()
	}
	return "!"
}

// switched are the texts before, in the place of and after an operator that let an
// environment variable flip it.
func switched(e ast.Expr, number int) (before, between, after string) {
	call := func(name string) (string, string, string) {
		return "mutant" + name + "(" + strconv.Itoa(number) + ", ", ",", ")"
	}
	lazily := func(name string) (string, string, string) {
		before, _, _ := call(name)
		return before, ", func() bool { return (", ") })"
	}
	is := "mutantIs(" + strconv.Itoa(number) + "))"
	x, binary := e.(*ast.BinaryExpr)
	if !binary {
		return "(", "(", ") == " + is
	}
	switch x.Op {
	case token.LAND:
		return lazily("And")
	case token.LOR:
		return lazily("Or")
	case token.LSS:
		return call("Less")
	case token.LEQ:
		return call("LessEqual")
	case token.GTR:
		return call("Greater")
	case token.GEQ:
		return call("GreaterEqual")
	case token.ADD:
		return call("Add")
	case token.SUB:
		return call("Subtract")
	default: // == and !=
		return "((", x.Op.String(), ") != " + is
	}
}

// build makes one test binary of the package in the folder tests, with all changes of the
// package in dir that compile behind a switch, and says which those are, by their number.
func build(work, dir, tests string, all []mutant) (binary string, within map[int]bool, err error) {
	within = map[int]bool{}
	for i := range all {
		within[i+1] = true
	}
	binary = filepath.Join(work, "switched.test")
	for len(within) > 0 {
		overlay, err := overlayOfSwitches(work, dir, all, within)
		if err != nil {
			return "", nil, err
		}
		out, failed := compile(tests, overlay, binary)
		if failed == nil {
			return binary, within, nil
		}
		if !dropped(out, all, within) {
			return "", nil, fmt.Errorf("build the tests of %s with switches: %w\n%s", tests, failed, out)
		}
	}
	return "", within, nil
}

// dropped takes the changes away that stand on a line which does not compile; false:
// there is none.
func dropped(out []byte, all []mutant, within map[int]bool) bool {
	before := len(within)
	for _, found := range regexp.MustCompile(`(?m)([^/\s]+\.go):(\d+):\d+: `).FindAllSubmatch(out, -1) {
		line, _ := strconv.Atoi(string(found[2]))
		for i, m := range all {
			if filepath.Base(m.file) == string(found[1]) && m.first <= line && line <= m.last {
				delete(within, i+1)
			}
		}
	}
	return len(within) < before
}

// overlayOfSwitches writes the files of a package with their switches.
func overlayOfSwitches(work, dir string, all []mutant, within map[int]bool) (string, error) {
	numbers := map[string]map[int]int{}
	for i, m := range all {
		if !within[i+1] {
			continue
		}
		if numbers[m.file] == nil {
			numbers[m.file] = map[int]int{}
		}
		numbers[m.file][m.offset] = i + 1
	}
	texts := map[string][]byte{}
	for file, operators := range numbers {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		if texts[file], err = rewritten(file, text, operators); err != nil {
			return "", err
		}
		name := regexp.MustCompile(`(?m)^package (\w+)`).FindSubmatch(text)[1]
		texts[filepath.Join(dir, "mutant_switches.go")] = fmt.Appendf(nil, switches, name)
	}
	return writeOverlay(work, texts)
}

// writeOverlay writes files, and what tells go to take each for the one of its name.
func writeOverlay(work string, texts map[string][]byte) (string, error) {
	replace := map[string]string{}
	for file, text := range texts {
		place, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		replace[place] = filepath.Join(work, filepath.Base(file))
		if err := os.WriteFile(replace[place], text, 0o600); err != nil {
			return "", err
		}
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(work, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o600)
}
