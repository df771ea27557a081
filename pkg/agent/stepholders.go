package agent

import (
	"encoding/json"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// holders are what a step may know of the others that hold an object.
func (a *Agent) holders(l *store.CachedRun, path string) func(uid string) []executors.Holder {
	return func(uid string) []executors.Holder { return a.runs.Holds.Of(uid, l.Key(), path) }
}

// found says what a step found, for a message; empty where nobody can tell.
func (a *Agent) found(stepType string, before json.RawMessage) string {
	executor, _ := a.options.Executor(stepType)
	if finder, ok := executor.(executors.Finder); ok && before != nil {
		return finder.Found(before)
	}
	return ""
}

// toPutBack says what was to be put back, and why it is not.
func (a *Agent) toPutBack(m workflow.Action, rec *run.Record, why string) string {
	if found := a.found(m.Step.Type, rec.Before); found != "" && why != "" {
		return "put back " + found + ": " + why
	}
	return why
}
