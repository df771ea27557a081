package walls

import (
	"slices"
	"strings"
	"testing"
)

// core are the rooms of the core, line by line, the lowest first. A room imports only
// rooms of the lines above its own: never one of its own line, and none below.
func core() [][]string {
	return [][]string{
		{"schedule", "expr", "knob", "outbound"},
		{"document"},
		{"selector", "connector"},
		{"policy", "drain"},
		{"intent", "nodes"},
		{"plan", "stuck"},
		{"reference"},
		{"run", "agentconfig", "hibernate"},
		{"claims", "ledger", "workflow"},
		{"watchrule", "lifecycle"},
		{"trigger", "calendar", "savings", "offwindow", "transition", "amendment", "restoredata", "rights", "summary"},
		{"simulate"},
	}
}

func TestARoomOfTheCoreImportsOnlyWhatStandsAboveItInTheTable(t *testing.T) {
	for _, b := range upward(load(t), core()) {
		t.Errorf("%s imports %s, which does not stand above it in the table of test/walls/core_test.go", b[0], b[1])
	}
}

// upward are the imports of rooms that do not stand above the one that imports them.
func upward(g graph, lines [][]string) (breaches [][2]string) {
	above := map[string]bool{}
	for _, line := range lines {
		for _, r := range line {
			for _, path := range g.matching(packages{"pkg/" + r + "/..."}) {
				if g[path].Name == "main" {
					continue // a generator
				}
				for _, imported := range g[path].Imports {
					if other := coreRoom(imported); other != "" && other != r && !above[other] {
						breaches = append(breaches, [2]string{path, imported})
					}
				}
			}
		}
		for _, r := range line {
			above[r] = true
		}
	}
	return breaches
}

// A wall that never breaks proves nothing: this house is built wrong.
func TestTheTableSeesAnImportUpwardsAndOneWithinALine(t *testing.T) {
	g := graph{}
	g.add("pkg/low", module+"/pkg/high", "k8s.io/elsewhere")
	g.add("pkg/beside", module+"/pkg/low")
	g.add("pkg/high", module+"/pkg/low", module+"/pkg/high/below")
	g.add("pkg/high/below", module+"/pkg/beside")
	got := upward(g, [][]string{{"low", "beside"}, {"high"}})
	want := [][2]string{{module + "/pkg/low", module + "/pkg/high"}, {module + "/pkg/beside", module + "/pkg/low"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEveryRoomOfTheCoreHasItsLine(t *testing.T) {
	g := load(t)
	named := coreNames()
	for _, r := range named {
		if len(g.matching(packages{"pkg/" + r})) == 0 {
			t.Errorf("there is no pkg/%s: its line guards nothing", r)
		}
	}
	for path := range g {
		if r := coreRoom(path); r != "" && !slices.Contains(named, r) {
			t.Errorf("%s is neither in the table of the core nor one of the edges", path)
		}
	}
}

// testRooms hold what the tests of several rooms start from. They may know the rooms
// that they build for, up to the last line, since no program is built with them.
func testRooms() packages {
	return packages{"pkg/coretest", "pkg/agent/agenttest", "pkg/cmd/cmdtest", "pkg/executors/conformance", "pkg/executors/function/functiontest", "pkg/executors/sleepertest"}
}

func TestWhatTestsStartFromIsImportedByTestsAlone(t *testing.T) {
	g := load(t)
	for _, room := range testRooms() {
		if len(g.matching(packages{room})) == 0 {
			t.Errorf("no package is %s: take its line away", room)
		}
	}
	for _, b := range startsFromTests(g) {
		t.Errorf("%s imports %s, which is there for tests", b[0], b[1])
	}
}

// startsFromTests are the imports of test rooms by what is no test.
func startsFromTests(g graph) (breaches [][2]string) {
	for _, path := range g.matching(packages{"pkg/...", "cmd/..."}) {
		for _, imported := range g[path].Imports {
			if testRooms().match(imported) {
				breaches = append(breaches, [2]string{path, imported})
			}
		}
	}
	return breaches
}

func TestTheTableSeesAnImportOfWhatIsThereForTests(t *testing.T) {
	g := graph{}
	g.add("pkg/coretest", module+"/pkg/low")
	g.add("pkg/low", module+"/pkg/coretest")
	want := [][2]string{{module + "/pkg/low", module + "/pkg/coretest"}}
	if got := startsFromTests(g); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// coreRoom is the room of the core that a package belongs to; empty for those of
// others, of the edges and of tests.
func coreRoom(path string) string {
	below, ok := strings.CutPrefix(path, module+"/pkg/")
	if !ok || edges().match(path) || testRooms().match(path) {
		return ""
	}
	name, _, _ := strings.Cut(below, "/")
	return name
}
