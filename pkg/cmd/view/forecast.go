package view

import (
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// Forecast is the forecast of a node's drain for scripts, see docs/cli.md.
type Forecast struct {
	Node     string               `json:"node"`
	Possible bool                 `json:"possible"`
	Groups   []drain.Group        `json:"groups"`
	Skipped  []drain.RemainingPod `json:"skipped"`
	Refused  []drain.RemainingPod `json:"refused"`
	Blocks   []drain.Block        `json:"blocks"`
	Warnings string               `json:"warnings,omitempty"` // as kubectl drain prints them
	Errors   []string             `json:"errors,omitempty"`   // as kubectl drain prints them
	Total    int                  `json:"total"`              // pods that have to leave
}

// NewForecast converts a forecast for scripts.
func NewForecast(node string, f drain.Forecast) Forecast {
	return Forecast{
		Node: node, Possible: f.Possible(), Groups: filled(f.Groups), Skipped: filled(f.Skipped), Refused: filled(f.Refused), Blocks: filled(f.Blocks),
		Warnings: f.Warnings, Errors: f.Errors, Total: f.Total,
	}
}

// filled is never nil: scripts find an empty list, not null.
func filled[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}
