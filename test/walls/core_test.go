package walls

import (
	"slices"
	"strings"
	"testing"
)

// A room of the core, and what it holds.
type room struct{ name, holds string }

// core are the rooms of the core, line by line, the lowest first. A room imports only
// rooms of the lines above its own: never one of its own line, and none below.
// docs/architecture.md is made from this table.
func core() [][]room {
	return [][]room{
		{
			{"schedule", "time alone: recurrences, windows, calendars, gates"},
			{"expr", "CEL, ${…} in texts, JSON paths"},
			{"knob", "the switches with which other controllers are told to wait"},
			{"outbound", "which hosts the agent may call"},
		},
		{{"document", "strict YAML, faults, what every document has in common"}},
		{
			{"selector", "label selectors, in Kubernetes' own grammar"},
			{"connector", "how accounts of clouds and other clusters are reached"},
		},
		{
			{"policy", "Policy, Calendar, the rules of gates, and what follows for an object"},
			{"drain", "which pods leave a node, and what stands in their way"},
		},
		{
			{"intent", "what people ask by annotations"},
			{"nodes", "requests to maintain a node, and whose turn it is"},
		},
		{
			{"plan", "Plan, StepTemplate, the types of steps, the tree of steps"},
			{"stuck", "which runs of a plan cannot go on, as it stands on the plan"},
		},
		{{"reference", "the step templates and connectors that a plan names"}},
		{
			{"run", "one execution: what asked for it, its journal"},
			{"agentconfig", "the agent's configuration"},
			{"hibernate", "HibernatePlan, when it sleeps, in which order, what is recorded of each resource"},
		},
		{
			{"ledger", "how each slot and request ended, what is still open"},
			{"workflow", "what a run does next, and what came of it"},
		},
		{
			{"watchrule", "which changes of watched objects ask for a run"},
			{"lifecycle", "which lifecycle conditions a node has, as KEP-5683 names them"},
		},
		{
			{"trigger", "when a plan runs, and which run may start"},
			{"calendar", "slots and windows over weeks"},
			{"savings", "what slept, for how long, and what that saved"},
			{"offwindow", "how each off-window of a HibernatePlan ended, and which skips are used up"},
			{"transition", "how the targets of a HibernatePlan are together, and since when"},
			{"amendment", "which edits of restore data can be taken"},
			{"restoredata", "what counts of restore data beside runs that hold the same, and where its cluster is now"},
			{"rights", "what an account needs for what its plans do"},
			{"summary", "what ran over a time, as a report"},
		},
		{{"simulate", "a plan's future, by the functions that the agent calls"}},
	}
}

func TestARoomOfTheCoreImportsOnlyWhatStandsAboveItInTheTable(t *testing.T) {
	for _, b := range upward(load(t), core()) {
		t.Errorf("%s imports %s, which does not stand above it in the table of test/walls/core_test.go", b[0], b[1])
	}
}

// upward are the imports of rooms that do not stand above the one that imports them.
func upward(g graph, lines [][]room) (breaches [][2]string) {
	above := map[string]bool{}
	for _, line := range lines {
		for _, r := range line {
			for _, path := range g.matching(packages{"pkg/" + r.name + "/..."}) {
				if g[path].Name == "main" {
					continue // a generator
				}
				for _, imported := range g[path].Imports {
					if other := coreRoom(imported); other != "" && other != r.name && !above[other] {
						breaches = append(breaches, [2]string{path, imported})
					}
				}
			}
		}
		for _, r := range line {
			above[r.name] = true
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
	got := upward(g, [][]room{{{"low", ""}, {"beside", ""}}, {{"high", ""}}})
	want := [][2]string{{module + "/pkg/low", module + "/pkg/high"}, {module + "/pkg/beside", module + "/pkg/low"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEveryRoomOfTheCoreHasItsLine(t *testing.T) {
	g := load(t)
	var named []string
	for _, line := range core() {
		for _, r := range line {
			named = append(named, r.name)
			if len(g.matching(packages{"pkg/" + r.name})) == 0 {
				t.Errorf("there is no pkg/%s: its line guards nothing", r.name)
			}
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
	return packages{"pkg/coretest", "pkg/cmd/cmdtest", "pkg/executors/function/functiontest", "pkg/executors/sleepertest"}
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
