package walls

import (
	"slices"
	"strings"
	"testing"
)

// agentRooms says of each room of the agent which others of the agent it may import,
// lowest first. Below the agent each may know the core, the wire spelling, the
// contract of executors, and list and watch.
func agentRooms() map[string][]string {
	return map[string][]string{
		"agenttest":       {"client", "keys"}, // for tests alone: no other line names it
		"client":          nil,
		"queue":           {"client"},
		"metrics":         nil,
		"config":          {"client", "status"},
		"status":          {"client", "queue"},
		"admissionread":   nil,
		"answers":         nil,
		"keys":            {"client"},
		"runquota":        nil,
		"store":           {"client", "keys", "queue", "runquota", "status"},
		"leader":          {"client"},
		"notify":          {"metrics", "queue"},
		"targets":         {"client", "store"},
		"gates":           {"client", "keys", "queue", "status", "store"},
		"watchrules":      {"client", "queue", "store"},
		"freezes":         {"admissionread", "client", "queue", "status", "store"},
		"sleepwatches":    {"client"},
		"hibernation":     {"client", "keys", "notify", "queue", "sleepwatches", "status", "store"},
		"nodemaintenance": {"client", "metrics", "notify", "queue", "store"},
		"stepwatches":     {"client", "store"},
		"steppool":        {"client", "queue", "store"},
		"runs":            {"answers", "client", "keys", "metrics", "notify", "queue", "status", "steppool", "stepwatches", "store", "targets"},
		"policies":        {"gates", "notify", "queue", "status", "store"},
		"plans":           {"client", "keys", "metrics", "notify", "queue", "runquota", "status", "store", "targets", "watchrules"},
	}
}

// below are what every room of the agent may import: all that lies under it.
func below() packages {
	return packages{"!pkg/agent/..."}
}

func TestARoomOfTheAgentKnowsNoMoreThanItsLineSays(t *testing.T) {
	g := load(t)
	rooms := agentRooms()
	for _, path := range g.matching(packages{"pkg/agent/..."}) {
		room := strings.TrimPrefix(strings.TrimPrefix(path, module+"/pkg/agent"), "/")
		if room == "" {
			continue // it wires them, and knows all
		}
		may, known := rooms[room]
		if !known {
			t.Errorf("pkg/agent/%s has no line here: say which rooms it may know", room)
			continue
		}
		for _, imported := range g[path].Imports {
			if !strings.HasPrefix(imported, module+"/") || below().match(imported) {
				continue
			}
			if !slices.Contains(may, strings.TrimPrefix(imported, module+"/pkg/agent/")) {
				t.Errorf("pkg/agent/%s imports %s\n  why the wall is there: who has a line in hand can say by its room what it touches", room, imported)
			}
		}
	}
	for room := range rooms {
		if len(g.matching(packages{"pkg/agent/" + room})) == 0 {
			t.Errorf("no package is pkg/agent/%s: take its line away", room)
		}
	}
}
