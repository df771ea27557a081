package walls

import (
	"slices"
	"strings"
	"testing"
)

// cmdRooms says of each room of the commands which others of the commands it may
// import, lowest first. Below them each may know the core and the wire spelling.
// What only tests import (cmdtest) is in nobody's line.
func cmdRooms() map[string][]string {
	return map[string][]string{
		"exit":        nil,
		"terminal":    nil,
		"instant":     {"exit"},
		"remedy":      nil,
		"view":        {"exit", "instant"},
		"serverstate": nil,
		"factory":     {"exit", "instant", "remedy", "serverstate", "terminal", "view"},
		"choice":      {"exit", "remedy", "factory"},
		"completion":  {"factory", "view"},
		"rollout":     {"remedy", "view", "factory"},
		"source":      {"exit", "instant", "view", "factory", "rollout"},
		"gitops":      {"source"},
		"print":       {"exit", "instant", "remedy", "terminal", "view", "factory"},
		"stream":      {"print"},
		"live":        {"exit", "instant", "remedy", "terminal", "view", "factory"},
		"watch":       {"exit", "instant", "remedy", "terminal", "view", "factory", "live", "print"},
		"ask":         {"exit", "instant", "remedy", "view", "factory", "choice", "completion", "source", "print", "watch"},
		"override":    {"exit", "instant", "view", "factory", "completion", "source", "print"},
		"node":        {"exit", "remedy", "view", "factory", "choice", "completion", "live", "source", "print", "rollout", "watch"},
		"look":        {"exit", "instant", "view", "factory", "completion", "live", "rollout", "source", "print", "stream", "watch"},
		"logs":        {"exit", "view", "factory", "completion", "print", "watch"},
		"why":         {"exit", "instant", "view", "factory", "completion", "rollout", "source", "gitops", "print"},
		"doctor":      {"exit", "instant", "view", "factory", "completion", "source", "print"},
		"wait":        {"exit", "view", "factory", "choice", "completion", "source", "print", "watch"},
		"write":       {"exit", "instant", "view", "factory", "completion", "source", "gitops", "print"},
		"offline":     {"exit", "instant", "view", "factory", "source", "print"},
		"report":      {"exit", "instant", "view", "factory", "completion", "source", "print"},
		"restore":     {"exit", "instant", "view", "factory", "completion", "print"},
		"adopt":       {"exit", "instant", "view", "factory"},
		"image":       nil,
		"setup":       {"exit", "image", "instant", "remedy", "view", "factory", "print"},
		"cmdtest":     {"view", "factory"},
	}
}

func TestARoomOfTheCommandsKnowsNoMoreThanItsLineSays(t *testing.T) {
	g := load(t)
	rooms := cmdRooms()
	for _, path := range g.matching(packages{"pkg/cmd/..."}) {
		room := strings.TrimPrefix(strings.TrimPrefix(path, module+"/pkg/cmd"), "/")
		if room == "" {
			continue // the root puts the tree of commands together
		}
		may, known := rooms[room]
		if !known {
			t.Errorf("pkg/cmd/%s has no line here: say which rooms it may know", room)
			continue
		}
		for _, imported := range g[path].Imports {
			other, within := strings.CutPrefix(imported, module+"/pkg/cmd/")
			if within && !slices.Contains(may, other) {
				t.Errorf("pkg/cmd/%s imports %s\n  why the wall is there: arrows point down, and a command knows no other command", room, imported)
			}
		}
	}
	for room := range rooms {
		if len(g.matching(packages{"pkg/cmd/" + room})) == 0 {
			t.Errorf("no package is pkg/cmd/%s: take its line away", room)
		}
	}
}
