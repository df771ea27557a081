package runs

import (
	"encoding/json"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// holders are what a step may know of the others that hold an object.
func (c *Controller) holders(l *store.CachedRun, path string) func(mark string) []executors.Holder {
	return func(mark string) []executors.Holder { return c.Stores.Runs.Holds.Of(mark, l.Key(), path) }
}

// found says what a step found, for a message; empty where nobody can tell.
func (c *Controller) found(stepType string, before json.RawMessage) string {
	executor, _ := c.Executor(stepType)
	if finder, ok := executor.(executors.Finder); ok && before != nil {
		return finder.Found(before)
	}
	return ""
}

// toPutBack says what was to be put back, and why it is not.
func (c *Controller) toPutBack(m workflow.Action, rec *run.Record, why string) string {
	if found := c.found(m.Step.Type, rec.Before); found != "" && why != "" {
		return "put back " + found + ": " + why
	}
	return why
}
