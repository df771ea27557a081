package plan

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// The step types about nodes.
const (
	TypeCordon      = "cordon"
	TypeDrain       = "drain"
	TypeUncordon    = "uncordon"
	TypeForEachNode = "for-each-node"
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

// DrainOptions say which pods leave a node and what is done when they do not. The
// same words stand in requests and in steps.
type DrainOptions struct {
	Force           bool             `json:"force,omitempty"`           // also pods that no controller brings back
	PodSelector     string           `json:"podSelector,omitempty"`     // as in a list's options; default: all
	Timeout         *Duration        `json:"timeout,omitempty"`         // default 5m; 0s: no limit
	DeleteEmptyDir  bool             `json:"deleteEmptyDir,omitempty"`  // also pods that lose data of an emptyDir
	GracePeriod     *Duration        `json:"gracePeriod,omitempty"`     // default: each pod's own
	EvictionFilters []EvictionFilter `json:"evictionFilters,omitempty"` // default: all pods
	OnTimeout       OnTimeout        `json:"onTimeout,omitempty"`       // default retry
	PodTimeout      *Duration        `json:"podTimeout,omitempty"`      // of one pod, from its first refusal; default none
	WaitForVolumes  bool             `json:"waitForVolumes,omitempty"`  // until VolumeAttachments of evicted pods are gone
}

// EvictionFilter picks pods by the resources that their containers ask for.
type EvictionFilter struct {
	ByResourceNameRegex string `json:"byResourceNameRegex"` // unanchored, Go's syntax
}

// NodeProperties name the nodes of a step: one by name, or all that a selector
// picks. Within for-each-node neither is needed: it is the item's node.
type NodeProperties struct {
	Node     string         `json:"node,omitempty"`
	Selector *LabelSelector `json:"selector,omitempty"`
}

// OnNode has a step that names no node mean this one.
func (p *NodeProperties) OnNode(name string) {
	if p.Node == "" && p.Selector == nil {
		p.Node = name
	}
}

// CordonProperties close nodes for new pods, or open them again.
type CordonProperties struct {
	NodeProperties
}

// DrainProperties make pods leave nodes. A node that is not cordoned is cordoned.
type DrainProperties struct {
	NodeProperties
	DrainOptions
}

// DrainMemory is what the passes of a drain step share: when its attempt began, and
// the nodes, so that one which joins later is not drained too.
type DrainMemory struct {
	Attempt int           `json:"attempt"`
	Since   time.Time     `json:"since"`
	Nodes   []DrainTarget `json:"nodes"`
}

// DrainTarget is one of its nodes.
type DrainTarget struct {
	Name     string    `json:"name"`
	UID      string    `json:"uid"`
	Cordoned bool      `json:"cordoned,omitempty"` // seen so, with our record, by this step
	Drained  bool      `json:"drained,omitempty"`  // its drain has ended
	Blocked  bool      `json:"blocked,omitempty"`  // something stands in its way for good
	Yielded  bool      `json:"yielded,omitempty"`  // others have its slot meanwhile; it stays cordoned, and nothing is evicted
	Why      string    `json:"why,omitempty"`      // what was in its way when it yielded
	Since    time.Time `json:"since,omitzero"`     // when its turn came
}

// NewlyBlocked are the nodes whose drain is blocked for good by what a drain step
// remembers now, and was not by what it remembered before.
func NewlyBlocked(before, now json.RawMessage) []string {
	var was, is DrainMemory
	if json.Unmarshal(now, &is) != nil {
		return nil
	}
	known := map[string]bool{}
	if json.Unmarshal(before, &was) == nil {
		for _, t := range was.Nodes {
			known[t.Name] = t.Blocked
		}
	}
	var out []string
	for _, t := range is.Nodes {
		if t.Blocked && !known[t.Name] {
			out = append(out, t.Name)
		}
	}
	return out
}

// Drains are the nodes of a drain step that is at work; of any other, none.
func (r Record) Drains() []DrainTarget {
	var m DrainMemory
	if r.Type != TypeDrain || r.Phase != StepRunning || json.Unmarshal(r.Memory, &m) != nil {
		return nil
	}
	return m.Nodes
}

// ForEachNodeProperties run steps for each node that a selector picks, some at once.
type ForEachNodeProperties struct {
	Selector       *LabelSelector `json:"selector,omitempty"`
	MaxUnavailable any            `json:"maxUnavailable,omitempty"` // of the selected nodes, rounded down, at least 1; default 1
	When           string         `json:"when,omitempty"`           // CEL over node; a node for which it is false is done
	Canary         *int           `json:"canary,omitempty"`         // default 1; 0: all at once
	Order          string         `json:"order,omitempty"`          // oldest-first (default), name
	Soak           *Duration      `json:"soak,omitempty"`           // after each node, before the next
	Estimate       *Duration      `json:"estimate,omitempty"`       // of one node
	OnError        string         `json:"onError,omitempty"`        // stop (default), continue
	MaxFailures    int            `json:"maxFailures,omitempty"`    // with continue: stop past so many; default: any number
	Steps          []Step         `json:"steps"`
}

// NodeLimits are what an admin sets for all maintenance of nodes.
type NodeLimits struct {
	MaxParallelOperations any       `json:"maxParallelOperations,omitempty"` // number or share, rounded up; default 1; 0: none
	MaxUnavailable        any       `json:"maxUnavailable,omitempty"`        // number or share, rounded down; default: no limit
	ZoneLimit             int       `json:"zoneLimit,omitempty"`             // nodes of one zone at once; default: no limit
	MaxNodeMaintenance    *Duration `json:"maxNodeMaintenanceTime,omitempty"`
	YieldWhenBlocked      *bool     `json:"yieldWhenBlocked,omitempty"`       // a drain that is blocked for good gives its slot to others; default true
	ReleaseExpired        bool      `json:"releaseExpired,omitempty"`         // past maxNodeMaintenanceTime, and its requestor does not work
	PauseMachineConfig    bool      `json:"pauseMachineConfigPool,omitempty"` // of OpenShift, while its nodes are in maintenance
}

// Share is a number of things, or a share of them in per cent.
type Share struct {
	N       int
	Percent bool
}

// ParseShare reads 3, "3" or "10%".
func ParseShare(v any) (Share, error) {
	text := fmt.Sprint(v)
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n > math.MaxInt32 || percent && n > 100 {
		return Share{}, fmt.Errorf("%q is neither a number nor a share: write 3 or 10%%", Cut(text, 50))
	}
	return Share{N: n, Percent: percent}, nil
}

// Up is the share of so many, rounded up.
func (s Share) Up(of int) int {
	if s.Percent {
		return (of*s.N + 99) / 100
	}
	return s.N
}

// Down is the share of so many, rounded down.
func (s Share) Down(of int) int {
	if s.Percent {
		return of * s.N / 100
	}
	return s.N
}

// String is the share as it is written.
func (s Share) String() string {
	if s.Percent {
		return strconv.Itoa(s.N) + "%"
	}
	return strconv.Itoa(s.N)
}

// Check reports what is wrong with drain options; at takes the field's name.
func (o DrainOptions) Check(at func(path, format string, args ...any)) {
	checkSpan("timeout", o.Timeout, 0, Longest, at)
	checkSpan("gracePeriod", o.GracePeriod, 0, Longest, at)
	checkSpan("podTimeout", o.PodTimeout, 0, Longest, at)
	if _, err := selector.Parse(o.PodSelector); err != nil && !expr.IsTemplate(o.PodSelector) {
		at("podSelector", "%s", err)
	}
	switch o.OnTimeout {
	case "", TimeoutRetry, TimeoutSkip, TimeoutForce, TimeoutAbort:
	default:
		at("onTimeout", "must be retry, skip, force or abort, is %q", Cut(string(o.OnTimeout), 100))
	}
	for i, f := range o.EvictionFilters {
		path := fmt.Sprintf("evictionFilters[%d].byResourceNameRegex", i)
		if _, err := regexp.Compile(f.ByResourceNameRegex); err != nil {
			at(path, "%q does not compile: %s", Cut(f.ByResourceNameRegex, 100), err)
		}
		if f.ByResourceNameRegex == "" {
			at(path, "is empty")
		}
	}
}

func checkNodes(p NodeProperties, at Reporter) {
	if p.Node != "" && p.Selector != nil {
		at("selector", "stands beside node: name one node, or pick several")
	}
	if p.Selector != nil {
		p.Selector.Check("selector", at)
	}
	if p.Node != "" && !expr.IsTemplate(p.Node) && !dnsSubdomain(p.Node) {
		at("node", "%q is no name of a node", Cut(p.Node, 100))
	}
}

func checkCordon(p any, at Reporter) { checkNodes(p.(*CordonProperties).NodeProperties, at) }

func checkDrain(p any, at Reporter) {
	props := p.(*DrainProperties)
	checkNodes(props.NodeProperties, at)
	props.DrainOptions.Check(at)
}

func checkForEachNode(p any, at Reporter) {
	props := p.(*ForEachNodeProperties)
	if props.Selector != nil {
		props.Selector.Check("selector", at)
	}
	if props.MaxUnavailable != nil {
		if s, err := ParseShare(props.MaxUnavailable); err != nil {
			at("maxUnavailable", "%s", err)
		} else if s.N == 0 {
			at("maxUnavailable", "is 0: no node would ever be taken")
		}
	}
	if props.When != "" {
		if err := expr.CheckBool(props.When, "node"); err != nil {
			at("when", "%s", err)
		}
	}
	if props.Canary != nil && (*props.Canary < 0 || *props.Canary > MaxItems) {
		at("canary", "must be from 0 to %d, is %d", MaxItems, *props.Canary)
	}
	if !slices.Contains([]string{"", "oldest-first", "name"}, props.Order) {
		at("order", "must be oldest-first or name, is %q", Cut(props.Order, 100))
	}
	checkSpan("soak", props.Soak, 0, Longest, at)
	checkSpan("estimate", props.Estimate, 0, Longest, at)
	if !slices.Contains([]string{"", "stop", "continue"}, props.OnError) {
		at("onError", "must be stop or continue, is %q", Cut(props.OnError, 100))
	}
	if props.MaxFailures < 0 || props.MaxFailures > 0 && props.OnError != "continue" {
		at("maxFailures", "is for onError: continue, and a number of nodes")
	}
}

// Check reports what is wrong with the limits; at takes the field's name.
func (l NodeLimits) Check(at Reporter) {
	for name, value := range map[string]any{"maxParallelOperations": l.MaxParallelOperations, "maxUnavailable": l.MaxUnavailable} {
		if value == nil {
			continue
		}
		if _, err := ParseShare(value); err != nil {
			at(name, "%s", err)
		}
	}
	if l.PauseMachineConfig {
		at("pauseMachineConfigPool", "is not available in this version")
	}
	if l.ZoneLimit < 0 {
		at("zoneLimit", "must be a number of nodes, is %d", l.ZoneLimit)
	}
	if d := l.MaxNodeMaintenance; d != nil && d.Duration < 0 {
		at("maxNodeMaintenanceTime", "must not be negative, is %s", d)
	}
}
