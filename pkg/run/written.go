package run

import (
	"encoding/json"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Written is what a step on an object writes down before it changes that: pkg/executors/object writes it.
type Written struct {
	Object  *plan.ResourceRef `json:"object"` // nil: no step on an object wrote this
	Changes []WrittenField    `json:"changes"`
}

// WrittenField is a field as the step found it, and as it sets it.
type WrittenField struct {
	Path    []WrittenPath   `json:"path"`
	Before  json.RawMessage `json:"before"` // nil: there was none
	After   json.RawMessage `json:"after"`
	Made    bool            `json:"made"` // it holds what the step sets, and nothing else
	Beneath []WrittenStep   `json:"beneath"`
}

// WrittenPath is one part of a field's path: a key, or an item of a list.
type WrittenPath struct {
	Key  string `json:"key"`
	Item string `json:"item"`
}

// WrittenStep is another step that had set the field before this one, and what that had found.
type WrittenStep struct {
	Run    string          `json:"run"`
	Step   string          `json:"step"`
	Before json.RawMessage `json:"before"`
}

// ReadWritten reads what a step wrote down; nil where that cannot be read. What a step of another kind wrote
// down, and null, is read as a Written without an object and without changes.
func ReadWritten(before json.RawMessage) *Written {
	var w Written
	if json.Unmarshal(before, &w) != nil {
		return nil
	}
	return &w
}
