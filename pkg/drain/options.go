package drain

import (
	"fmt"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// OnTimeout says what becomes of pods that did not leave a node in time.
type OnTimeout string

// The ways on when a drain's time is over.
const (
	TimeoutRetry OnTimeout = "retry" // default: go on, and say that it takes too long
	TimeoutSkip  OnTimeout = "skip"  // leave them and go on
	TimeoutForce OnTimeout = "force" // delete them, past their budgets; not those that are refused
	TimeoutAbort OnTimeout = "abort" // stop, and undo our cordon
)

// DefaultDrainTimeout is how long a drain takes before OnTimeout says how it goes on.
const DefaultDrainTimeout = 5 * time.Minute

// Options say which pods leave a node and what is done when they do not. The
// same words stand in requests and in steps.
type Options struct {
	Force           bool               `json:"force,omitempty"`           // also pods that no controller brings back
	PodSelector     string             `json:"podSelector,omitempty"`     // as in a list's options; default: all
	Timeout         *document.Duration `json:"timeout,omitempty"`         // default 5m; 0s: no limit
	DeleteEmptyDir  bool               `json:"deleteEmptyDir,omitempty"`  // also pods that lose data of an emptyDir
	GracePeriod     *document.Duration `json:"gracePeriod,omitempty"`     // default: each pod's own
	EvictionFilters []EvictionFilter   `json:"evictionFilters,omitempty"` // default: all pods
	OnTimeout       OnTimeout          `json:"onTimeout,omitempty"`       // default retry
	PodTimeout      *document.Duration `json:"podTimeout,omitempty"`      // of one pod, from its first refusal; default none
	WaitForVolumes  bool               `json:"waitForVolumes,omitempty"`  // until VolumeAttachments of evicted pods are gone
}

// EvictionFilter picks pods by the resources that their containers ask for.
type EvictionFilter struct {
	ByResourceNameRegex string `json:"byResourceNameRegex"` // unanchored, Go's syntax
}

// maxFilters is how many filters a drain may have: each is a program in memory (a guess).
const maxFilters = 50

// Check reports what is wrong with drain options; at takes the field's name.
func (o Options) Check(at func(path, format string, args ...any)) {
	document.CheckSpan("timeout", o.Timeout, 0, document.Longest, at)
	document.CheckSpan("gracePeriod", o.GracePeriod, 0, document.Longest, at)
	document.CheckSpan("podTimeout", o.PodTimeout, 0, document.Longest, at)
	if _, err := selector.Parse(o.PodSelector); err != nil && !expr.IsTemplate(o.PodSelector) {
		at("podSelector", "%s", err)
	}
	switch o.OnTimeout {
	case "", TimeoutRetry, TimeoutSkip, TimeoutForce, TimeoutAbort:
	default:
		at("onTimeout", "must be retry, skip, force or abort, is %q", document.Cut(string(o.OnTimeout), 100))
	}
	if n := len(o.EvictionFilters); n > maxFilters {
		at("evictionFilters", "has %d; at most %d", n, maxFilters)
		return
	}
	for i, f := range o.EvictionFilters {
		path := fmt.Sprintf("evictionFilters[%d].byResourceNameRegex", i)
		if _, err := expr.CompilePattern(f.ByResourceNameRegex); err != nil {
			at(path, "%q does not compile: %s", document.Cut(f.ByResourceNameRegex, 100), err)
		}
		if f.ByResourceNameRegex == "" {
			at(path, "is empty")
		}
	}
}
