package walls

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tableTime is how people read an instant in tables: with its date, and with its zone.
const tableTime = "Mon 2006-01-02 15:04 MST"

// ownTimes are the folders and files that write times in another way.
func ownTimes() map[string]string {
	return map[string]string{
		"pkg/calendar":                 "draws weeks: a bar stands in its day, and the page names its zone",
		"pkg/cmd/instant":              "holds the forms of times",
		"pkg/cmd/write/hibernate.go":   "speaks of a time of the week",
		"pkg/coretest":                 "is for tests",
		"pkg/executors/notify/mail.go": "writes the header of a mail, by RFC 5322",
		"pkg/schedule":                 "reads and compares what clocks show",
	}
}

// clockLayout is a layout with a time of day. RFC 3339 is not one: it has a name.
var clockLayout = regexp.MustCompile(`15:04|03:04|3:04`) //nolint:gochecknoglobals // compiled once

// namedLayouts are the layouts of package time without a date or without a zone that everybody knows.
// RFC 3339 is what machines get.
func namedLayouts() []string {
	return []string{"ANSIC", "DateTime", "Kitchen", "Layout", "RFC1123", "RFC1123Z", "RFC822", "RFC822Z", "RFC850", "RubyDate", "Stamp", "StampMicro", "StampMilli", "StampNano", "TimeOnly", "UnixDate"}
}

// timesOf are the forms of times that the files below a folder write on their own, each once, by file.
// What only has the length of a form is none.
func timesOf(root, folder string) (map[string][]string, error) {
	found := map[string][]string{}
	err := eachFile(root, folder, func(name string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			form := ""
			switch n := n.(type) {
			case *ast.CallExpr:
				if of, is := n.Fun.(*ast.Ident); is && of.Name == "len" {
					return false
				}
			case *ast.BasicLit:
				if n.Kind == token.STRING && clockLayout.MatchString(n.Value) && strings.Trim(n.Value, `"`) != tableTime {
					form = n.Value
				}
			case *ast.SelectorExpr:
				if of, is := n.X.(*ast.Ident); is && of.Name == "time" && slices.Contains(namedLayouts(), n.Sel.Name) {
					form = "time." + n.Sel.Name
				}
			}
			if form != "" && !slices.Contains(found[name], form) {
				found[name] = append(found[name], form)
			}
			return true
		})
	})
	return found, err
}

// A time without its date, or without its zone, is read wrongly by whoever reads it a day later or
// somewhere else.
func TestTimesAreWrittenInOneWay(t *testing.T) {
	own := ownTimes()
	used := map[string]bool{}
	for _, folder := range []string{"pkg", "cmd"} {
		found, err := timesOf("../..", folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range slices.Sorted(maps.Keys(found)) {
			at := slices.IndexFunc(slices.Sorted(maps.Keys(own)), func(of string) bool { return file == of || strings.HasPrefix(file, of+"/") })
			if at < 0 {
				t.Errorf("%s writes times by %s: use pkg/cmd/instant, RFC 3339 for machines and for messages that a command turns into the reader's zone, or %q", file, strings.Join(found[file], ", "), tableTime)
				continue
			}
			used[slices.Sorted(maps.Keys(own))[at]] = true
		}
	}
	for of := range own {
		if !used[of] {
			t.Errorf("%s writes no times of its own: take its line away", of)
		}
	}
}

func TestTheWallSeesATimeOfItsOwn(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a/one.go", "package a\n\nimport \"time\"\n\nvar t = time.Now().Format(time.TimeOnly) + time.Now().Format(\"15:04\") + time.Now().Format(time.Kitchen) + time.Now().Format(\"15:04\")\n")
	write(t, root, "a/two.go", "package a\n\nimport \"time\"\n\nvar u = time.Now().Format(time.RFC3339) + time.Now().Format(time.DateOnly) + time.Now().Format(\""+tableTime+"\")\n\nconst size = len(\"2006-01-02T15:04:05Z\")\n")
	write(t, root, "a/one_test.go", "package a\n\nconst of = \"15:04\"\n")
	got, err := timesOf(root, "a")
	if want := map[string][]string{"a/one.go": {"time.TimeOnly", `"15:04"`, "time.Kitchen"}}; err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v (%v), not %v", got, err, want)
	}
}
