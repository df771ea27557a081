package hibernate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
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
		at(path, "is missing; write ids or tags: a target never is all of an account")
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

// ASGParameters say which Auto Scaling groups have no instances.
type ASGParameters struct {
	Selector *CloudSelector     `json:"selector"` // ids are the names of groups
	Timeout  *document.Duration `json:"timeout,omitempty"`
}

func (p *ASGParameters) timeout() *document.Duration { return p.Timeout }

func checkASG(params any, at document.Reporter) {
	p := params.(*ASGParameters)
	checkCloudSelector("selector", p.Selector, regexp.MustCompile(`^[ -9;-~]{1,255}$`), "an Auto Scaling group", at)
	checkTimeout(p.Timeout, at)
}

// EKSParameters say which nodes a cluster of EKS does without.
type EKSParameters struct {
	ComputePolicy     *ComputePolicy     `json:"computePolicy,omitempty"`
	ManagedNodeGroups *NodeGroups        `json:"managedNodeGroups,omitempty"`
	Karpenter         map[string]any     `json:"karpenter,omitempty"`
	Timeout           *document.Duration `json:"timeout,omitempty"` // default 30m: nodes are drained
}

// ComputePolicy says which kinds of nodes sleep.
type ComputePolicy struct {
	Mode  string   `json:"mode,omitempty"` // ManagedNodeGroups, the only one
	Order []string `json:"order,omitempty"`
}

// NodeGroups are managed node groups: those that meet all that is said.
type NodeGroups struct {
	Names    []string          `json:"names,omitempty"`    // any of these
	Tags     map[string]string `json:"tags,omitempty"`     // all of these
	Strategy string            `json:"strategy,omitempty"` // ScaleToZero, the only one
}

// How the nodes of a cluster of EKS sleep.
const (
	ManagedNodeGroups = "ManagedNodeGroups"
	ScaleToZero       = "ScaleToZero"
)

// defaultEKSTimeout is longer than for others (a guess: EKS drains each node, for at most
// fifteen minutes).
const defaultEKSTimeout = 30 * time.Minute

func (p *EKSParameters) timeout() *document.Duration {
	if p.Timeout == nil {
		return &document.Duration{Duration: defaultEKSTimeout}
	}
	return p.Timeout
}

func checkEKS(params any, at document.Reporter) {
	p := params.(*EKSParameters)
	const pools = "a target of type eks puts managed node groups to sleep; NodePools of Karpenter are a target of type karpenter"
	if c := p.ComputePolicy; c != nil {
		switch c.Mode {
		case "", ManagedNodeGroups:
		case "Karpenter", "Both":
			at("computePolicy.mode", "%q is not for this type: %s", c.Mode, pools)
		default:
			at("computePolicy.mode", "%q is not known; there is %s", document.Cut(c.Mode, 100), ManagedNodeGroups)
		}
		if len(c.Order) > 0 {
			at("computePolicy.order", "is for nodes of several kinds: %s, and the plan's strategy orders targets", pools)
		}
	}
	if p.Karpenter != nil {
		at("karpenter", "is not for this type: %s", pools)
	}
	checkNodeGroups(p.ManagedNodeGroups, at)
	checkTimeout(p.Timeout, at)
}

// checkNodeGroups wants something to be selected: a target that forgot its names would take
// the nodes away on which the agent itself may run.
func checkNodeGroups(g *NodeGroups, at document.Reporter) {
	const path = "managedNodeGroups"
	switch {
	case g == nil || len(g.Names) == 0 && len(g.Tags) == 0:
		at(path, "is missing; write names or tags: a target never is all nodes of a cluster")
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
			at(fmt.Sprintf("%s.names[%d]", path, i), "%q stands twice", one)
		}
	}
	checkTags(path+".tags", g.Tags, at)
	if g.Strategy != "" && g.Strategy != ScaleToZero {
		at(path+".strategy", "%q is not known; there is %s", document.Cut(g.Strategy, 100), ScaleToZero)
	}
}
