package walls

import (
	"slices"
	"strings"
	"testing"
)

// executorRooms says of each room of the executors which others of them it may import, lowest
// first. Each may know the contract (pkg/executors), the core and the wire spelling. What only tests
// import is in nobody's line.
func executorRooms() map[string][]string {
	return map[string][]string{
		"internal/api":    nil,
		"internal/mask":   nil,
		"internal/follow": nil,
		"internal/surge":  {"internal/follow"},
		"object":          {"internal/api"},
		"workload":        {"internal/api"},
		"flow":            {"internal/api"},
		"backup":          {"internal/api"},
		"karpenter":       {"internal/api"},
		"http":            {"internal/api", "internal/mask"},
		"notify":          {"internal/api", "internal/mask"},
		"node":            {"internal/api", "internal/follow", "internal/surge"},
		"function/fnv1":   nil,
		"function":        {"function/fnv1", "internal/api", "internal/mask"},
		"aws/effect":      nil,
		"aws/observe":     nil,
		"aws/session":     {"aws/effect"},
		"aws/capacity":    {"aws/effect"},
		"aws/ec2":         {"aws/effect", "aws/observe", "aws/session"},
		"aws/rds":         {"aws/effect", "aws/observe", "aws/session", "internal/api"},
		"aws/eks":         {"aws/capacity", "aws/effect", "aws/observe", "aws/session"},
		"aws/asg":         {"aws/capacity", "aws/ec2", "aws/effect", "aws/observe", "aws/session"},
		"builtin": {
			"aws/asg", "aws/ec2", "aws/eks", "aws/rds", "aws/session", "backup", "flow", "function", "http", "karpenter",
			"node", "notify", "object", "workload",
		},
	}
}

func TestARoomOfTheExecutorsKnowsNoMoreThanItsLineSays(t *testing.T) {
	g := load(t)
	rooms := executorRooms()
	for _, path := range g.matching(packages{"pkg/executors/*/..."}) {
		room := strings.TrimPrefix(path, module+"/pkg/executors/")
		if testRooms().match(path) {
			continue
		}
		may, known := rooms[room]
		if !known {
			t.Errorf("pkg/executors/%s has no line here: say which rooms it may know", room)
			continue
		}
		for _, imported := range g[path].Imports {
			other, within := strings.CutPrefix(imported, module+"/pkg/executors/")
			if within && !slices.Contains(may, other) {
				t.Errorf("pkg/executors/%s imports %s\n  why the wall is there: a world is added, replaced and left out alone", room, imported)
			}
		}
	}
	for room, may := range rooms {
		for _, one := range append(slices.Clone(may), room) {
			if len(g.matching(packages{"pkg/executors/" + one})) == 0 {
				t.Errorf("no package is pkg/executors/%s: take it out of the table", one)
			}
		}
	}
}
