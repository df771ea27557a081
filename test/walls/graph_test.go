package walls

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// listed is what `go list` says about a package.
type listed struct {
	ImportPath string
	Name       string
	Doc        string // the first sentence of its comment
	Imports    []string
}

// graph is every package that the module is built from, by import path.
type graph map[string]listed

func (g graph) add(path string, imports ...string) {
	g[module+"/"+path] = listed{ImportPath: module + "/" + path, Imports: imports}
}

func load(t *testing.T) graph {
	t.Helper()
	// -e: a package that does not compile still says what it imports, and is
	// the compiler's to complain about.
	command := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Name,Doc,Imports", module+"/...")
	var complaints bytes.Buffer
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &complaints)
	}
	g := graph{}
	decoder := json.NewDecoder(bytes.NewReader(output))
	for {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return g
		}
		if err != nil {
			t.Fatalf("read what go list printed: %v", err)
		}
		g[p.ImportPath] = p
	}
}

// matching returns the packages that one of the patterns means, in order.
func (g graph) matching(patterns packages) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(g)), func(path string) bool {
		return !patterns.match(path)
	})
}

// breaches returns, for every package behind the wall, the shortest chain of
// imports to something forbidden, if there is one.
func (g graph) breaches(w wall) [][]string {
	var chains [][]string
	for _, path := range g.matching(w.from) {
		// A command below a package (a generator) is not part of the room.
		generator := g[path].Name == "main" && !strings.HasPrefix(path, module+"/cmd/")
		if generator || w.except.match(path) {
			continue
		}
		if chain := g.chain(path, w); chain != nil {
			chains = append(chains, chain)
		}
	}
	return chains
}

// chain searches breadth first, so what it finds is the shortest way.
func (g graph) chain(from string, w wall) []string {
	cameFrom := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, imported := range g[queue[0]].Imports {
			if _, seen := cameFrom[imported]; seen {
				continue
			}
			cameFrom[imported] = queue[0]
			if w.forbidden.match(imported) {
				return wayTo(imported, cameFrom)
			}
			if !w.direct && !w.doors.match(imported) {
				queue = append(queue, imported)
			}
		}
	}
	return nil
}

func wayTo(path string, cameFrom map[string]string) []string {
	var way []string
	for ; path != ""; path = cameFrom[path] {
		way = append(way, path)
	}
	slices.Reverse(way)
	return way
}

// except means everything of this module but the pattern.
func except(pattern string) packages { return packages{"!" + pattern} }

func (ps packages) match(path string) bool {
	return slices.ContainsFunc(ps, func(pattern string) bool { return matches(pattern, path) })
}

func matches(pattern, path string) bool {
	if excluded, ok := strings.CutPrefix(pattern, "!"); ok {
		return strings.HasPrefix(path, module+"/") && !matches(excluded, path)
	}
	if strings.HasPrefix(pattern, "pkg/") || strings.HasPrefix(pattern, "cmd/") {
		pattern = module + "/" + pattern
	}
	if parent, ok := strings.CutSuffix(pattern, "/*/..."); ok {
		return strings.HasPrefix(path, parent+"/")
	}
	if parent, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == parent || strings.HasPrefix(path, parent+"/")
	}
	return path == pattern
}
