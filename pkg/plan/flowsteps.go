package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// The step types that hold other steps, and those that hold a HibernatePlan.
const (
	TypeGroup     = "step-group"
	TypeForEach   = "for-each"
	TypeHibernate = "hibernate"
	TypeWake      = "wake"
)

// TypeApproval is the step type that asks a person.
const TypeApproval = "approval"

// ApprovalProperties hold a run until somebody approves or rejects.
type ApprovalProperties struct {
	Message string             `json:"message,omitempty"`
	Timeout *document.Duration `json:"timeout,omitempty"` // default: the plan's approvalTimeout
}

// GroupProperties hold steps that run one after another, or side by side in the
// order that their dependsOn demands.
type GroupProperties struct {
	Mode           string `json:"mode,omitempty"`           // sequential (default), parallel
	MaxConcurrency int    `json:"maxConcurrency,omitempty"` // of a parallel group; default: all
	Steps          []Step `json:"steps"`
}

// ForEachProperties run steps for each object that selector and when pick, in batches.
// Batches are how many objects are done when each of them is through, as a number
// or a share rounded up; what is left after the last is a batch of its own.
type ForEachProperties struct {
	APIVersion     string                  `json:"apiVersion"`
	Kind           string                  `json:"kind"`
	Namespace      string                  `json:"namespace,omitempty"` // default: the plan's; "*" for all
	Selector       *selector.LabelSelector `json:"selector,omitempty"`
	When           string                  `json:"when,omitempty"` // CEL over each, asked once, when the objects are listed; those for which it is false are left out
	Batches        []any                   `json:"batches,omitempty"`
	Until          string                  `json:"until,omitempty"`          // CEL over object, for each one done so far, after each batch; the last one, too
	Order          string                  `json:"order,omitempty"`          // name (default), oldest, newest
	MaxConcurrency int                     `json:"maxConcurrency,omitempty"` // objects at once, default 1
	OnError        string                  `json:"onError,omitempty"`        // stop (default), continue
	Steps          []Step                  `json:"steps"`
}

// MaxItems is how many objects a for-each takes (a guess: their names have to fit
// into the run beside everything else).
const MaxItems = 2000

func checkApproval(p any, at document.Reporter) {
	props := p.(*ApprovalProperties)
	document.CheckSpan("timeout", props.Timeout, 1, document.Longest, at)
}

func checkGroup(p any, at document.Reporter) {
	props := p.(*GroupProperties)
	if !slices.Contains([]string{"", "sequential", "parallel"}, props.Mode) {
		at("mode", "must be sequential or parallel, is %q", document.Cut(props.Mode, 100))
	}
	if props.MaxConcurrency != 0 && props.Mode != "parallel" {
		at("maxConcurrency", "is for mode: parallel")
	}
	checkConcurrency(props.MaxConcurrency, at)
}

func checkConcurrency(n int, at document.Reporter) {
	if n < 0 || n > MaxSteps {
		at("maxConcurrency", "must be from 1 to %d, is %d", MaxSteps, n)
	}
}

func checkForEach(p any, at document.Reporter) {
	props := p.(*ForEachProperties)
	if n := props.Namespace; n != "" && n != AllNamespaces && !document.DNSLabel(n) {
		at("namespace", "%q is no namespace", document.Cut(n, 100))
	}
	if props.Selector != nil {
		props.Selector.Check("selector", at)
	}
	if props.When != "" {
		if err := expr.CheckBool(props.When, "each"); err != nil {
			at("when", "%s", err)
		}
	}
	checkBatches(props.Batches, at)
	if props.Until != "" {
		if err := expr.CheckBool(props.Until, "object"); err != nil {
			at("until", "%s", err)
		}
	}
	if !slices.Contains([]string{"", "name", "oldest", "newest"}, props.Order) {
		at("order", "must be name, oldest or newest, is %q", document.Cut(props.Order, 100))
	}
	if !slices.Contains([]string{"", "stop", "continue"}, props.OnError) {
		at("onError", "must be stop or continue, is %q", document.Cut(props.OnError, 100))
	}
	checkConcurrency(props.MaxConcurrency, at)
}

// checkBatches compares numbers with numbers and shares with shares: which of a number and a
// share is larger is known only with the objects.
func checkBatches(batches []any, at document.Reporter) {
	last := map[bool]document.Share{}
	for i, value := range batches {
		b, err := batchOf(value)
		if err != nil {
			at(document.Index("batches", i), "%s", err)
			return
		}
		if before := last[b.Percent]; b.N <= before.N {
			at("batches", "each must be larger than the one before: %v comes after %v", b, before)
			return
		}
		last[b.Percent] = b
	}
}

// BatchEnds are how many of n items are done when each batch is through. One that would end no
// later than the one before is no batch.
func BatchEnds(batches []any, n int) []int {
	var out []int
	last := 0
	for _, value := range batches {
		b, err := batchOf(value)
		if err != nil { // the validator refused it
			continue
		}
		if end := b.Up(n); end > last && end < n {
			out, last = append(out, end), end
		}
	}
	return append(out, n)
}

// batchOf is how many items are done when a batch is through, or what share of all.
func batchOf(value any) (document.Share, error) {
	b, err := document.ParseShare(value)
	if err != nil || b.N < 1 {
		return b, fmt.Errorf("%q is no batch: write a number of objects, or a share like 10%%", document.Cut(fmt.Sprint(value), 50))
	}
	return b, nil
}

// IsLoop says whether a step type runs its steps for each of several objects.
func IsLoop(stepType string) bool { return stepType == TypeForEach || stepType == TypeForEachNode }

// Holds says whether a step holds other steps.
func (s Step) Holds() bool {
	return s.Type == TypeGroup || IsLoop(s.Type) || strings.HasPrefix(s.Type, TemplatePrefix)
}

// Parallel says whether the steps that a step holds run side by side, and how
// many at once.
func (s Step) Parallel() (bool, int) {
	if s.Type != TypeGroup || s.Properties["mode"] != "parallel" {
		return false, 0
	}
	return true, s.Concurrency(MaxSteps)
}

// Concurrency is how many of what a step holds are at work at once; def where the step does not
// say. Earlier versions took a 0, by which nothing would ever begin.
func (s Step) Concurrency(def int) int {
	if n := s.Whole("maxConcurrency", def); n > 0 {
		return n
	}
	return def
}

// Whole is a whole number of a step's properties.
func (s Step) Whole(name string, def int) int {
	switch n := s.Properties[name].(type) {
	case int64:
		return int(n)
	case int:
		return n
	case float64:
		return int(n)
	}
	return def
}

// inner are the steps that stand in a step's properties.
func (s Step) inner() []Step {
	list, ok := s.Properties["steps"].([]any)
	if !ok {
		return nil
	}
	var props struct {
		Steps []Step `json:"steps"`
	}
	if faults := document.DecodeValue(map[string]any{"steps": list}, "", nil, true, &props); len(faults) > 0 {
		return nil // the validator refused it
	}
	return props.Steps
}
