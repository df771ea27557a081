package walls

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// An oldWord is a private word that had a name in the code, and what Kubernetes' controllers
// call it. Whoever does not know it guesses wrong.
type oldWord struct {
	word, now string
	where     reach
}

// reach says which names an old word may not be in.
type reach int

const (
	anyPart  reach = iota // it is one word of a name: ringRun, nodeRings
	wholly                // it is the whole name, since as a part of others it has an ordinary meaning
	typeOnly              // it is the whole name of a type
	fileOnly              // it is the whole name of a file, without its ending
)

// oldWords are the private words that are forbidden as names, with what stands in their place.
func oldWords() []oldWord {
	return []oldWord{
		{"ring", "enqueue", anyPart},
		{"heed", "observe", anyPart},
		{"heeds", "observe", anyPart},
		{"tell", "record", anyPart},
		{"tells", "record", anyPart},
		{"seat", "slot", anyPart},
		{"spot", "StepKey", anyPart},
		{"spots", "StepKeys", anyPart},
		{"lull", "wait", anyPart},
		{"stir", "Wake", anyPart},
		{"stirs", "wakes", anyPart},
		{"herald", "Notifier", anyPart},
		{"gatekeeper", "gates.Controller", anyPart},
		{"keeper", "Controller", fileOnly},
		{"patience", "timeout", anyPart},
		{"undone", "backoff", wholly},
		{"beat", "heartbeat", anyPart},
		{"bell", "item", anyPart},
		{"crew", "counts", anyPart},
		{"sighting", "inputReader", anyPart},
		{"foresee", "preflight", anyPart},
		{"overtaken", "Superseded", anyPart},
		{"thing", "resource", anyPart},
		{"things", "resources", anyPart},
		{"debt", "ExtraReplica", anyPart},
		{"debts", "extra replicas", anyPart},
		{"banked", "AccumulateSleep", anyPart},
		{"alarm", "RequeueTimer", wholly},
		{"ringRun", "EnqueueRun", wholly},
		{"sawRun", "onRun", wholly},
		{"torn", "orphans", wholly},
		{"knownPlan", "CachedPlan", wholly},
		{"errMoved", "ErrConflict", wholly},
		{"ownWrites", "Expectations", typeOnly},
		{"fly", "inFlight", wholly},
		{"flight", "execution", wholly},
		{"nodeKeeper", "nodemaintenance.Controller", wholly},
		{"caught", "recoverPanic", wholly},
		{"carryOut", "apply", wholly},
		{"cutFor", "Cancel", wholly},
		{"letGo", "release", wholly},
		{"watchedPlan", "subscription", typeOnly},
		{"lazily", "flushDelay", wholly},
		{"inVain", "isNoop", wholly},
		{"givesWay", "Yields", wholly},
		{"aRun", "Run", wholly},
		{"book", "Resolver", typeOnly},
		{"stretch", "Period", typeOnly},
		{"switch", "Pause", typeOnly},
		{"sight", "Inputs", typeOnly},
		{"nodeSight", "NodeState", wholly},
		{"nodeWant", "NodeDemand", wholly},
		{"booking", "LedgerUpdate", typeOnly},
		{"homeAlone", "OwnClusterOnly", wholly},
		{"letsGo", "Releasing", wholly},
		{"calm", "Repeats", wholly},
		{"broughtAlong", "IsCopied", wholly},
		{"noPlace", "BlockedByUnavailable", wholly},
		{"cleansTill", "CleanupWaitsUntil", wholly},
		{"takenUp", "Handled", typeOnly},
		{"places", "tenantsemaphore", fileOnly},
		{"room", "what is limited", fileOnly},
		{"troubles", "metrics", fileOnly},
		{"words", "text", fileOnly},
	}
}

// A named thing is an identifier of the code, or a file.
type named struct {
	name, where string
	isType      bool
	isFile      bool
}

// forbidden is the old word that a name has; empty: none.
func (n named) forbidden(words []oldWord) oldWord {
	parts := partsOf(n.name)
	for _, w := range words {
		whole := strings.EqualFold(n.name, w.word)
		switch w.where {
		case anyPart:
			whole = slices.Contains(parts, w.word)
		case typeOnly:
			whole = whole && n.isType
		case fileOnly:
			whole = whole && n.isFile
		}
		if whole {
			return w
		}
	}
	return oldWord{}
}

// partsOf are the words of a name in CamelCase or with underscores, in small letters. An
// abbreviation is one of them, up to the word that follows: HTTPRing is http and ring.
func partsOf(name string) (parts []string) {
	runes, from := []rune(name), 0
	end := func(i int) {
		if i > from {
			parts = append(parts, strings.ToLower(string(runes[from:i])))
		}
		from = i
	}
	for i, r := range runes {
		switch {
		case r == '_' || r == '-':
			end(i)
			from = i + 1
		case i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(runes[i-1]):
			end(i)
		case i > 0 && unicode.IsUpper(r) && i+1 < len(runes) && unicode.IsLower(runes[i+1]):
			end(i)
		}
	}
	end(len(runes))
	return parts
}

// namesIn are the names that one file declares for others to meet: its own, its package's, and those of
// types, fields, functions, methods, constants and variables outside of functions.
func namesIn(path string) ([]named, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	found := []named{{name: strings.TrimSuffix(filepath.Base(path), ".go"), where: path, isFile: true}}
	add := func(isType bool, ids ...*ast.Ident) {
		for _, id := range ids {
			found = append(found, named{name: id.Name, where: fset.Position(id.Pos()).String(), isType: isType})
		}
	}
	add(false, file.Name)
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			add(false, d.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					add(false, s.Names...)
				case *ast.TypeSpec:
					add(true, s.Name)
					add(false, membersOf(s.Type)...)
				}
			}
		}
	}
	return found, nil
}

// membersOf are the names of fields and methods in a type, also of structs in it.
func membersOf(t ast.Expr) (ids []*ast.Ident) {
	ast.Inspect(t, func(n ast.Node) bool {
		var list *ast.FieldList
		switch x := n.(type) {
		case *ast.FuncType: // its parameters are nobody else's
			return false
		case *ast.StructType:
			list = x.Fields
		case *ast.InterfaceType:
			list = x.Methods
		}
		if list != nil {
			for _, f := range list.List {
				if !namedByJSON(f) {
					ids = append(ids, f.Names...)
				}
			}
		}
		return true
	})
	return ids
}

// namedByJSON says whether a field has the name that it has in JSON: what is stored keeps its name.
func namedByJSON(f *ast.Field) bool {
	if f.Tag == nil || len(f.Names) != 1 {
		return false
	}
	tag, _ := strconv.Unquote(f.Tag.Value)
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	return strings.EqualFold(name, f.Names[0].Name)
}

func TestNoNameIsAPrivateWord(t *testing.T) {
	words, seen := oldWords(), 0
	for _, root := range []string{"../../pkg", "../../cmd"} {
		files, err := goFiles(root)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			names, err := namesIn(path)
			if err != nil {
				t.Fatal(err)
			}
			seen += len(names)
			for _, n := range names {
				if w := n.forbidden(words); w.word != "" {
					t.Errorf("%s: %s has the private word %q: say %s", n.where, n.name, w.word, w.now)
				}
			}
		}
	}
	if seen < 5000 {
		t.Errorf("%d names were read: they are not all looked at", seen)
	}
}

func TestWhichNamesHaveAPrivateWord(t *testing.T) {
	for _, c := range []struct {
		name   string
		isType bool
		isFile bool
		want   string
	}{
		{name: "ringRun", want: "ring"},
		{name: "HTTPRing", want: "ring"},
		{name: "node_ring_test", isFile: true, want: "ring"},
		{name: "Keyring"},
		{name: "String"},
		{name: "compareSpots", want: "spots"},
		{name: "RefusalPatience", want: "patience"},
		{name: "nothing"},
		{name: "thingsIn", want: "things"},
		{name: "readBeat", want: "beat"},
		{name: "readHeartbeat"},
		{name: "inFlight"},
		{name: "flight", want: "flight"},
		{name: "HomeAlone", want: "homeAlone"},
		{name: "Stretch", isType: true, want: "stretch"},
		{name: "Stretch"},
		{name: "stretches", isType: true},
		{name: "room", isFile: true, want: "room"},
		{name: "room"},
	} {
		if got := (named{name: c.name, isType: c.isType, isFile: c.isFile}).forbidden(oldWords()); got.word != c.want {
			t.Errorf("%s (type %t, file %t): %q, not %q", c.name, c.isType, c.isFile, got.word, c.want)
		}
	}
}

// What is declared anywhere in a file is looked at, but for what only one function knows and what JSON names.
func TestWhichNamesOfAFileAreRead(t *testing.T) {
	root := t.TempDir()
	write(t, root, "places.go", `package herald
const lull = 1
var stir, ring int
type seat struct { spot struct{ bell int }; crew func(beat int) }
type stored struct { Undone bool "json:\"undone\""; things int "json:\"all\"" }
type heed interface { tell(patience int) }
func (s seat) foresee(debt int) { thing := 1; _ = thing }
`)
	names, err := namesIn(filepath.Join(root, "places.go"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range names {
		if w := n.forbidden(oldWords()); w.word != "" {
			got = append(got, w.word)
		}
	}
	slices.Sort(got)
	want := []string{"bell", "crew", "foresee", "heed", "herald", "lull", "places", "ring", "seat", "spot", "stir", "tell", "things"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}
