package walls

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	pathpkg "path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	mapPage   = "../../docs/architecture.md"
	mapBegins = "<!-- written by test/walls from the imports: MAINT_WRITE=1 go test ./test/walls -->\n"
	mapEnds   = "<!-- end of what is written -->\n"
)

// worlds is the floor of which a room may lie below another: aws/rds is one of many of one cloud.
const worlds = "pkg/executors/"

// floors are the pictures of the page, and whose rooms each shows.
func floors() []struct{ title, under string } {
	return []struct{ title, under string }{
		{"The core", "pkg/"},
		{"The agent", "pkg/agent/"},
		{"The commands", "pkg/cmd/"},
		{"The executors", worlds},
	}
}

func TestTheMapShowsTheImports(t *testing.T) {
	g := load(t)
	var want strings.Builder
	for _, f := range floors() {
		rooms := g.roomsOf(f.under)
		fmt.Fprintf(&want, "\n### %s\n\n%s\n%s", f.title, picture(rooms), g.legend(f.under, rooms))
	}
	want.WriteString("\n")
	b, err := os.ReadFile(mapPage)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begun := strings.Cut(string(b), mapBegins)
	got, tail, ended := strings.Cut(rest, mapEnds)
	if !begun || !ended {
		t.Fatalf("%s lacks the line %q or %q", mapPage, mapBegins, mapEnds)
	}
	if got == want.String() {
		return
	}
	if os.Getenv("MAINT_WRITE") == "" {
		t.Fatalf("%s does not show the imports: run MAINT_WRITE=1 go test ./test/walls and look at what changed", mapPage)
	}
	if err := os.WriteFile(mapPage, []byte(head+mapBegins+want.String()+mapEnds+tail), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A page that sends people to files that are not there is worse than none.
func TestTheMapNamesFilesThatExist(t *testing.T) {
	for _, page := range []string{mapPage, "../../CONTRIBUTING.md"} {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile("`((?:pkg|cmd|test|tools|docs|manifests|examples)/[\\w./-]+)`").FindAllStringSubmatch(string(b), -1) {
			if _, err := os.Stat("../../" + strings.TrimSuffix(found[1], ".")); err != nil {
				t.Errorf("%s names %s: %v", page, found[1], err)
			}
		}
	}
}

// Who tries a command of a page and finds that there is no such test trusts the page no more.
func TestThePagesNameTestsThatExist(t *testing.T) {
	word := regexp.MustCompile(`\bTest[A-Z]\w*`)
	have := map[string]bool{}
	err := fs.WalkDir(os.DirFS("../.."), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile("../../" + path)
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(b), -1) {
			have[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/runbooks/*.md"} {
		pages, err := fs.Glob(os.DirFS("../.."), pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			b, err := os.ReadFile("../../" + page)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range word.FindAllString(string(b), -1) {
				whole := func(test string) bool { return test == name || strings.HasPrefix(test, name) }
				if !slices.ContainsFunc(slices.Collect(maps.Keys(have)), whole) {
					t.Errorf("%s names %s, and there is no such test", page, name)
				}
			}
		}
	}
}

// roomsOf are the rooms of a floor, and which others of it each imports. The core's
// floor is all that is no edge.
func (g graph) roomsOf(under string) map[string][]string {
	name := func(path string) string {
		if under == "pkg/" {
			return coreRoom(path)
		}
		below, ok := strings.CutPrefix(path, module+"/"+under)
		if !ok || testRooms().match(path) {
			return ""
		}
		if under == worlds {
			return below
		}
		room, _, _ := strings.Cut(below, "/")
		return room
	}
	rooms := map[string][]string{}
	for path, p := range g {
		room := name(path)
		if room == "" || p.Name == "main" {
			continue
		}
		rooms[room] = append(rooms[room], nil...)
		for _, imported := range p.Imports {
			if other := name(imported); other != "" && other != room && !slices.Contains(rooms[room], other) {
				rooms[room] = append(rooms[room], other)
			}
		}
	}
	return rooms
}

// picture draws an arrow for each import that no longer way says already.
func picture(rooms map[string][]string) string {
	var out strings.Builder
	out.WriteString("```mermaid\nflowchart BT\n")
	for _, room := range sortedKeys(rooms) {
		direct := slices.Sorted(slices.Values(rooms[room]))
		drawn := 0
		for _, to := range direct {
			longer := slices.ContainsFunc(direct, func(over string) bool { return over != to && reaches(rooms, over, to) })
			if !longer {
				fmt.Fprintf(&out, "  %s --> %s\n", room, to)
				drawn++
			}
		}
		if drawn == 0 {
			fmt.Fprintf(&out, "  %s\n", room)
		}
	}
	out.WriteString("```\n")
	return out.String()
}

func reaches(rooms map[string][]string, from, to string) bool {
	return slices.ContainsFunc(rooms[from], func(next string) bool { return next == to || reaches(rooms, next, to) })
}

// legend says of each room what its package's first sentence says.
func (g graph) legend(under string, rooms map[string][]string) string {
	var out strings.Builder
	out.WriteString("| room | |\n|---|---|\n")
	for _, room := range sortedKeys(rooms) {
		says := strings.TrimPrefix(g[module+"/"+under+room].Doc, "Package "+pathpkg.Base(room)+" ")
		fmt.Fprintf(&out, "| [`%s`](../%s%s) | %s |\n", room, under, room, strings.ReplaceAll(says, "|", "\\|"))
	}
	return out.String()
}

func sortedKeys(rooms map[string][]string) []string {
	keys := make([]string, 0, len(rooms))
	for room := range rooms {
		keys = append(keys, room)
	}
	slices.Sort(keys)
	return keys
}
