package plan

import (
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// The step types about nodes.
const (
	TypeCordon      = "cordon"
	TypeDrain       = "drain"
	TypeUncordon    = "uncordon"
	TypeDelete      = "delete-object"
	TypeForEachNode = "for-each-node"
)

// NodeProperties name the nodes of a step: one by name, or all that a selector
// picks. Within for-each-node neither is needed: it is the item's node.
type NodeProperties struct {
	Node     string                  `json:"node,omitempty"`     // name of one node; in a for-each-node default: its node
	Selector *selector.LabelSelector `json:"selector,omitempty"` // labels of several nodes, instead of node
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
	drain.Options
}

// ForEachNodeProperties run steps for each node that a selector picks, some at once.
type ForEachNodeProperties struct {
	Selector       *selector.LabelSelector `json:"selector,omitempty"`
	MaxUnavailable any                     `json:"maxUnavailable,omitempty"` // of the selected nodes, rounded down, at least 1; default 1
	When           string                  `json:"when,omitempty"`           // CEL over node; a node for which it is false is done
	Canary         *int                    `json:"canary,omitempty"`         // default 1; 0: all at once
	Order          string                  `json:"order,omitempty"`          // oldest-first (default), name
	Soak           *document.Duration      `json:"soak,omitempty"`           // after each node, before the next
	Estimate       *document.Duration      `json:"estimate,omitempty"`       // of one node
	OnError        string                  `json:"onError,omitempty"`        // stop (default), continue
	MaxFailures    int                     `json:"maxFailures,omitempty"`    // with continue: stop past so many; default: any number
	Steps          []Step                  `json:"steps"`
}

func checkNodes(p NodeProperties, at document.Reporter) {
	if p.Node != "" && p.Selector != nil {
		at("selector", "stands beside node: name one node, or pick several")
	}
	if p.Selector != nil {
		p.Selector.Check("selector", at)
	}
	if p.Node != "" && !expr.IsTemplate(p.Node) && !document.DNSSubdomain(p.Node) {
		at("node", "%q is no name of a node", document.Cut(p.Node, 100))
	}
}

func checkCordon(p any, at document.Reporter) { checkNodes(p.(*CordonProperties).NodeProperties, at) }

func checkDrain(p any, at document.Reporter) {
	props := p.(*DrainProperties)
	checkNodes(props.NodeProperties, at)
	props.Options.Check(at)
}

func checkForEachNode(p any, at document.Reporter) {
	props := p.(*ForEachNodeProperties)
	if props.Selector != nil {
		props.Selector.Check("selector", at)
	}
	if props.MaxUnavailable != nil {
		if _, err := document.ParseShare(props.MaxUnavailable); err != nil {
			at("maxUnavailable", "%s", err)
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
		at("order", "must be oldest-first or name, is %q", document.Cut(props.Order, 100))
	}
	document.CheckSpan("soak", props.Soak, 0, document.Longest, at)
	document.CheckSpan("estimate", props.Estimate, 0, document.Longest, at)
	if !slices.Contains([]string{"", "stop", "continue"}, props.OnError) {
		at("onError", "must be stop or continue, is %q", document.Cut(props.OnError, 100))
	}
	if props.MaxFailures < 0 || props.MaxFailures > 0 && props.OnError != "continue" {
		at("maxFailures", "is for onError: continue, and a number of nodes")
	}
}

// ToPreview are the options of a drain that pods which never leave would hold up
// for ever; nil: it goes on without them.
func (p DrainProperties) ToPreview() *drain.Options {
	if p.OnTimeout == drain.TimeoutSkip {
		return nil
	}
	return &p.Options
}

// DrainToPreview says which drain a step does that can be looked at before its cordon.
func DrainToPreview(properties any, dryRun bool) *drain.Options {
	if p, drains := properties.(*DrainProperties); drains && !dryRun {
		return p.ToPreview()
	}
	return nil
}
