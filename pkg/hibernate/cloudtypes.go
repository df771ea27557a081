package hibernate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// CloudSelector picks resources of an account: those that meet all that is said. Names
// and tags are compared letter by letter; nothing in them is a pattern.
type CloudSelector struct {
	IDs         []string          `json:"ids,omitempty"`         // any of these
	Tags        map[string]string `json:"tags,omitempty"`        // all of these
	ExcludeTags map[string]string `json:"excludeTags,omitempty"` // none of these
}

// Picks says whether a resource of an id with such tags is selected.
func (s CloudSelector) Picks(id string, tags map[string]string) bool {
	return (len(s.IDs) == 0 || slices.Contains(s.IDs, id)) && s.PicksTags(tags)
}

// PicksTags says whether a resource with such tags is selected, as far as they decide.
func (s CloudSelector) PicksTags(tags map[string]string) bool {
	for key, want := range s.Tags {
		if got, there := tags[key]; !there || got != want {
			return false
		}
	}
	for key, not := range s.ExcludeTags {
		if got, there := tags[key]; there && got == not {
			return false
		}
	}
	return true
}

// What AWS takes.
const (
	mostIDs       = 500
	mostTags      = 50
	longestTagKey = 128
	longestTag    = 256
)

// checkCloudSelector wants something to be selected: a target that forgot its selector
// would put the whole account to sleep.
func checkCloudSelector(path string, s *CloudSelector, id *regexp.Regexp, what string, at document.Reporter) {
	if s == nil || len(s.IDs) == 0 && len(s.Tags) == 0 {
		at(path, "is missing; write ids or tags: a target never means a whole account")
		return
	}
	if len(s.IDs) > mostIDs {
		at(path+".ids", "has %d; at most %d are read", len(s.IDs), mostIDs)
		return
	}
	for i, one := range s.IDs {
		if !id.MatchString(one) {
			at(fmt.Sprintf("%s.ids[%d]", path, i), "%q cannot name %s", document.Cut(one, 100), what)
		}
	}
	checkTags(path+".tags", s.Tags, at)
	checkTags(path+".excludeTags", s.ExcludeTags, at)
}

func checkTags(path string, tags map[string]string, at document.Reporter) {
	if len(tags) > mostTags {
		at(path, "has %d; a resource has at most %d", len(tags), mostTags)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		switch value := tags[key]; {
		case key == "" || len(key) > longestTagKey:
			at(path, "%q cannot be the key of a tag", document.Cut(key, 100))
		case len(value) > longestTag:
			at(path, "the value of %q is too long for a tag", key)
		}
	}
}

// EC2Parameters say which instances are stopped.
type EC2Parameters struct {
	Selector  *CloudSelector     `json:"selector"`            // ids, as i-0123456789abcdef0, and tags
	Hibernate bool               `json:"hibernate,omitempty"` // their memory is kept on disk; instances that cannot are left out
	Timeout   *document.Duration `json:"timeout,omitempty"`
}

func (p *EC2Parameters) timeout() *document.Duration { return p.Timeout }

func checkEC2(params any, at document.Reporter) {
	p := params.(*EC2Parameters)
	checkCloudSelector("selector", p.Selector, regexp.MustCompile(`^i-[0-9a-f]{8,17}$`), "an instance, as i-0123456789abcdef0 does", at)
	checkTimeout(p.Timeout, at)
}

// RDSParameters say which databases are stopped.
type RDSParameters struct {
	Selector           *CloudSelector     `json:"selector"`                     // ids are names or ARNs of instances and of Aurora clusters
	SnapshotBeforeStop bool               `json:"snapshotBeforeStop,omitempty"` // a database is stopped once there is a snapshot of it
	Timeout            *document.Duration `json:"timeout,omitempty"`            // default 1h: a large snapshot takes its time
}

// defaultRDSTimeout is longer than for others (a guess: of a database that has snapshots
// already, the next one takes minutes).
const defaultRDSTimeout = time.Hour

func (p *RDSParameters) timeout() *document.Duration {
	if p.Timeout == nil {
		return &document.Duration{Duration: defaultRDSTimeout}
	}
	return p.Timeout
}

func checkRDS(params any, at document.Reporter) {
	p := params.(*RDSParameters)
	id := regexp.MustCompile(`^([A-Za-z][A-Za-z0-9-]{0,62}|arn:aws[a-z-]*:rds:[a-z0-9-]+:[0-9]{12}:(db|cluster):[A-Za-z0-9-]+)$`)
	checkCloudSelector("selector", p.Selector, id, "a database", at)
	checkTimeout(p.Timeout, at)
}

// ASGParameters say which Auto Scaling groups have no instances, or have theirs stopped.
type ASGParameters struct {
	Selector *CloudSelector     `json:"selector"`           // ids are the names of groups
	Strategy string             `json:"strategy,omitempty"` // ScaleToZero, the default, or StopInstances: their processes are suspended, and their instances stopped
	Timeout  *document.Duration `json:"timeout,omitempty"`
}

func (p *ASGParameters) timeout() *document.Duration { return p.Timeout }

func checkASG(params any, at document.Reporter) {
	p := params.(*ASGParameters)
	checkCloudSelector("selector", p.Selector, regexp.MustCompile(`^[ -9;-~]{1,255}$`), "an Auto Scaling group", at)
	if p.Strategy != "" && p.Strategy != ScaleToZero && !p.Stops() {
		at("strategy", "%q is not known; there are %s and %s", document.Cut(p.Strategy, 100), ScaleToZero, StopInstances)
	}
	checkTimeout(p.Timeout, at)
}

// Stops says whether groups keep their instances, stopped.
func (p *ASGParameters) Stops() bool { return p.Strategy == StopInstances }

// EKSParameters say which nodes a cluster of EKS does without.
type EKSParameters struct {
	ComputePolicy     *ComputePolicy     `json:"computePolicy,omitempty"`
	ManagedNodeGroups *NodeGroups        `json:"managedNodeGroups,omitempty"`
	Karpenter         *NodePools         `json:"karpenter,omitempty"`
	Timeout           *document.Duration `json:"timeout,omitempty"` // default 30m for each kind of nodes: they are drained
}

// ComputePolicy says which kinds of nodes sleep.
type ComputePolicy struct {
	Mode  string   `json:"mode,omitempty"`  // Both, Karpenter or ManagedNodeGroups; default: what is written beside it
	Order []string `json:"order,omitempty"` // of Both, as they fall asleep; they wake in the reverse. Default: Karpenter, ManagedNodeGroups
}

// NodeGroups are managed node groups: those that meet all that is said.
type NodeGroups struct {
	Names    []string          `json:"names,omitempty"`    // any of these
	Tags     map[string]string `json:"tags,omitempty"`     // all of these
	Strategy string            `json:"strategy,omitempty"` // ScaleToZero, the only one
}

// NodePools are those of Karpenter in a cluster of EKS.
type NodePools struct {
	NodePools []string `json:"nodePools,omitempty"` // empty: all
	Strategy  string   `json:"strategy,omitempty"`  // DeleteNodes, the only one
}

// Which nodes of a cluster of EKS sleep, and how; and how Auto Scaling groups do.
const (
	BothKinds         = "Both"
	KarpenterNodes    = "Karpenter"
	ManagedNodeGroups = "ManagedNodeGroups"
	ScaleToZero       = "ScaleToZero"
	StopInstances     = "StopInstances" // of Auto Scaling groups alone
)

// defaultEKSTimeout is longer than for others (a guess: EKS drains each node, for at most
// fifteen minutes).
const defaultEKSTimeout = 30 * time.Minute

func (p *EKSParameters) timeout() *document.Duration {
	if p.Timeout == nil {
		return &document.Duration{Duration: defaultEKSTimeout * time.Duration(len(p.Kinds()))}
	}
	return p.Timeout
}

// policy is the ComputePolicy, also where none is written.
func (p *EKSParameters) policy() ComputePolicy {
	out := ComputePolicy{}
	if p.ComputePolicy != nil {
		out = *p.ComputePolicy
	}
	switch {
	case out.Mode != "":
	case p.Karpenter != nil && p.ManagedNodeGroups != nil:
		out.Mode = BothKinds
	case p.Karpenter != nil:
		out.Mode = KarpenterNodes
	default:
		out.Mode = ManagedNodeGroups
	}
	return out
}

// Kinds are the kinds of nodes that sleep, KarpenterNodes and ManagedNodeGroups, in the order
// in which they do. Karpenter comes first unless the order says otherwise: it may run on a
// node group itself, and it would make nodes for the pods that leave one.
func (p *EKSParameters) Kinds() []string {
	policy := p.policy()
	if policy.Mode != BothKinds {
		return []string{policy.Mode}
	}
	if len(policy.Order) > 0 && policy.Order[0] == ManagedNodeGroups {
		return []string{ManagedNodeGroups, KarpenterNodes}
	}
	return []string{KarpenterNodes, ManagedNodeGroups}
}

// Pools are the NodePools of the cluster as parameters of the type karpenter.
func (p *EKSParameters) Pools() *KarpenterParameters {
	if p.Karpenter == nil {
		return &KarpenterParameters{}
	}
	return &KarpenterParameters{NodePools: p.Karpenter.NodePools, Strategy: p.Karpenter.Strategy}
}

func checkEKS(params any, at document.Reporter) {
	p := params.(*EKSParameters)
	checkTimeout(p.Timeout, at)
	mode, modes := p.policy().Mode, []string{BothKinds, KarpenterNodes, ManagedNodeGroups}
	if !slices.Contains(modes, mode) {
		at("computePolicy.mode", "%q is not known; there are %s%s", document.Cut(mode, 100), strings.Join(modes, ", "), didYouMean(mode, modes))
		return
	}
	if p.ComputePolicy != nil {
		checkComputeOrder(mode, p.ComputePolicy.Order, at)
	}
	const other = "is not for the mode %s; write computePolicy: {mode: Both}, or leave it out"
	switch {
	case mode != KarpenterNodes:
		checkNodeGroups(p.ManagedNodeGroups, at)
	case p.ManagedNodeGroups != nil:
		at("managedNodeGroups", other, mode)
	}
	switch {
	case p.Karpenter == nil:
	case mode == ManagedNodeGroups:
		at("karpenter", other, mode)
	default:
		checkNodePools("karpenter.", p.Karpenter.NodePools, p.Karpenter.Strategy, at)
	}
}

// checkComputeOrder wants an order of the kinds that sleep. One that is left out comes last.
func checkComputeOrder(mode string, order []string, at document.Reporter) {
	kinds := []string{KarpenterNodes, ManagedNodeGroups}
	if len(order) > 0 && mode != BothKinds {
		at("computePolicy.order", "is for the mode %s; this one is %s", BothKinds, mode)
		return
	}
	for i, one := range order {
		switch {
		case i >= len(kinds):
			at("computePolicy.order", "has %d; there are %s", len(order), strings.Join(kinds, " and "))
			return
		case !slices.Contains(kinds, one):
			at(fmt.Sprintf("computePolicy.order[%d]", i), "%q is not known; there are %s%s", document.Cut(one, 100), strings.Join(kinds, ", "), didYouMean(one, kinds))
		case slices.Contains(order[:i], one):
			at(fmt.Sprintf("computePolicy.order[%d]", i), "%q appears twice", one)
		}
	}
}

// checkNodeGroups wants something to be selected: a target that forgot its names would take
// the nodes away on which the agent itself may run.
func checkNodeGroups(g *NodeGroups, at document.Reporter) {
	const path = "managedNodeGroups"
	switch {
	case g == nil || len(g.Names) == 0 && len(g.Tags) == 0:
		at(path, "is missing; write names or tags: a target never means all nodes of a cluster")
		return
	case len(g.Names) > mostIDs:
		at(path+".names", "has %d; at most %d are read", len(g.Names), mostIDs)
		return
	}
	name := regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{0,62}$`)
	for i, one := range g.Names {
		switch {
		case !name.MatchString(one):
			at(fmt.Sprintf("%s.names[%d]", path, i), "%q cannot name a node group", document.Cut(one, 100))
		case slices.Contains(g.Names[:i], one):
			at(fmt.Sprintf("%s.names[%d]", path, i), "%q appears twice", one)
		}
	}
	checkTags(path+".tags", g.Tags, at)
	if g.Strategy != "" && g.Strategy != ScaleToZero {
		at(path+".strategy", "%q is not known; there is %s", document.Cut(g.Strategy, 100), ScaleToZero)
	}
}
