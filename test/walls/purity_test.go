package walls

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// coreNames are the rooms of the core, in the order of their table.
func coreNames() []string {
	var names []string
	for _, line := range core() {
		names = append(names, line...)
	}
	return names
}

// clocks are the functions of package time that read the clock, or wait for it.
func clocks() []string {
	return []string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"}
}

// readsClock are the places of a file that read the clock.
func readsClock(name string, source any) ([]string, error) {
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	called := ""
	for _, i := range file.Imports {
		if i.Path.Value == `"time"` {
			called = "time"
			if i.Name != nil {
				called = i.Name.Name
			}
		}
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		s, is := n.(*ast.SelectorExpr)
		if !is {
			return true
		}
		if of, is := s.X.(*ast.Ident); is && called != "" && of.Name == called && slices.Contains(clocks(), s.Sel.Name) {
			found = append(found, positions.Position(s.Pos()).String()+": time."+s.Sel.Name)
		}
		return true
	})
	return found, nil
}

func TestTheCoreReadsNoClock(t *testing.T) {
	seen := 0
	for _, room := range coreNames() {
		files, err := goFiles("../../pkg/" + room)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			seen++
			found, err := readsClock(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range found {
				t.Errorf("%s\n  why the wall is there: an instant is handed in, so that a preview, a test and the agent mean the same one", at)
			}
		}
	}
	if seen == 0 {
		t.Error("no file was looked at")
	}
}

func TestTheWallSeesAClock(t *testing.T) {
	for source, want := range map[string]string{
		"package a\nimport \"time\"\nvar x = time.Now()":                                           "time.Now",
		"package a\nimport clock \"time\"\nfunc f() { <-clock.After(1) }":                          "time.After",
		"package a\nimport \"time\"\nvar f = time.Since":                                           "time.Since",
		"package a\nimport \"time\"\nfunc f(a, b time.Time) bool { return a.After(b) }":            "",
		"package a\ntype clock struct{}\nfunc (clock) Now() {}\nfunc f(time clock) { time.Now() }": "",
	} {
		got, err := readsClock("a.go", source)
		if err != nil || strings.Contains(strings.Join(got, "\n"), "time.") != (want != "") || want != "" && !strings.HasSuffix(got[0], want) {
			t.Errorf("%s: %q, %v", source, got, err)
		}
	}
}

// Three places name the rooms of the core: who forgets one leaves a room without its mutants, or
// without the linter's word while it is written.
func TestTheListsOfTheCoreAreOne(t *testing.T) {
	for file, c := range map[string]struct {
		line, room string
		besides    []string // what the list has more
		lacks      []string // what it has in another place
	}{
		"Makefile":      {`(?m)^CORE := .*$`, `pkg/([a-z]+)`, []string{"annotations"}, nil},
		".golangci.yml": {`pure:\n.*\n.*files: .*`, `pkg/([a-z]+)/\*\.go`, nil, []string{"selector"}},
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, found := range regexp.MustCompile(c.room).FindAllStringSubmatch(string(regexp.MustCompile(c.line).Find(text)), -1) {
			got = append(got, found[1])
		}
		want := append(slices.DeleteFunc(coreNames(), func(name string) bool { return slices.Contains(c.lacks, name) }), c.besides...)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s names the rooms\n%q, and the table of the core has\n%q", file, got, want)
		}
	}
}
