package nodes

import "time"

// AgeRank is the time of waiting that is worth one rank of priority: a request of priority 0 comes before
// fresh ones of priority 5 after five hours. The number is a guess.
const AgeRank = time.Hour

// ClusterState is all that Rank looks at.
type ClusterState struct {
	Now    time.Time
	Limits Limits
	// Nodes are all nodes, also those that nobody asks for: shares are of them. One
	// that is deleted stays here until its absence is confirmed.
	Nodes []Node
	// Holds are nodes that rollouts have now. An agent whose view of the cluster is
	// older than its own writes adds what it gave and does not see yet, requestors
	// too: otherwise a slot is given twice.
	Holds []Hold
	Wants []Candidate
}

// Hold is a node that a rollout has.
type Hold struct {
	Node, Claimant string
	Path           string // of the step; empty: not known
	Drain          string // path of the drain that is all that is at work on it; empty: none, or other work too
	Step           string // which run and step of the claimant has it
	Cordoned       bool   // it says that the node is cordoned for its claimant, or, of a failed one, that its steps cordon: it counts only where the node's record says so, too
	Failed         bool   // at work no more, left as it was: unavailable, but holds no slot
	Stalled        bool   // all that is at work on it is a drain that is blocked for good: it may yield its slot
	Yielded        bool   // it did; its step wants the node until it has a slot again
}

// Candidate is a node that a rollout would take next.
type Candidate struct {
	Node, Claimant string
	Path           string    // of the step; empty: not known
	Next           bool      // its step may begin it now, as far as its own limits are known
	Step           string    // which run and step of the claimant wants it: two of them never have a node at once
	Order          int       // its place in the rollout's own order: lower first
	Since          time.Time // since when it waits; zero: since now
	Priority       int
	Permitted      bool
	Reason         string // why it is not permitted
	Blocked        Block  // what a look at the pods before any cordon found
}

// Grant is a node given to a claimant; Step is the Want's.
type Grant struct{ Node, Claimant, Step string }

// WaitReason is the kind of reason for which a claimant waits.
type WaitReason string

// What holds a claimant back.
const (
	WaitClosed     WaitReason = "WindowClosed"     // the node's stanza does not permit change now
	WaitBlocked    WaitReason = "Blocked"          // its drain could not end
	WaitEnded      WaitReason = "GivenUp"          // aborted or expired, and not changed since
	WaitInvalid    WaitReason = "Invalid"          // its value cannot be read
	WaitHeld       WaitReason = "NodeHeld"         // another claimant has the node, or gets it first
	WaitDeleting   WaitReason = "NodeDeleting"     // the node goes away
	WaitUnknown    WaitReason = "NodeUnknown"      // there is no such node
	WaitUncordoned WaitReason = "Uncordoned"       // somebody uncordoned the node while it was held
	WaitTurn       WaitReason = "Turn"             // all slots are taken
	WaitNone       WaitReason = "NoParallel"       // maxParallelOperations is 0
	WaitBudget     WaitReason = "UnavailableLimit" // maxUnavailable is reached
	WaitZone       WaitReason = "ZoneLimit"        // zoneLimit is reached
)

// Wait says why a claimant does not have a node yet.
type Wait struct {
	Node, Claimant string
	Step           string // of a Want
	Reason         WaitReason
	Message        string     // one sentence for a person, with the rule and its numbers
	Lasting        string     // the same without what every grant elsewhere changes: for a status
	Next           *time.Time // when it changes by itself; nil: not by time
}

// Condition is something in the configuration that holds maintenance back.
type Condition struct{ Type, Message string }

// Types of conditions.
const (
	ConditionNoParallel    = "NoParallelOperations"
	ConditionNoUnavailable = "MaxUnavailableIsZero"
)

// Ranking says who gets which node now, and why the others do not.
type Ranking struct {
	Grants      []Grant     // in the order of their rank
	Waits       []Wait      // in the order of their rank; those without one last
	Conditions  []Condition // of the configuration
	Maintenance []string    // names of the nodes in maintenance before the grants, sorted
	Slots       int         // before the grants; negative: more are in maintenance than allowed
	Budget      *int        // before the grants; nil: no limit
	Yields      []string    // names of blocked nodes that are to yield their slots, so that others may go
	turns       map[string]Turns
}

// Turn is what Advance must know of the ranking about one request.
type Turn struct {
	Granted bool
	Next    bool   // of a plan: it is to get the node as the last request on it goes
	Yield   bool   // others wait for the slot of its drain, which is blocked
	Resume  bool   // the drain that yielded its slot goes on
	Wait    string // Wait.Lasting of the one that waits
	Held    bool   // of a request that could not get the node, whoever else asks: a run has it
}

// Turns are the turns of a node's claimants.
type Turns map[string]Turn

// Turns are what Advance takes for a node. They hold for the view of the node
// that was ranked, and for no other.
func (r Ranking) Turns(node string) Turns { return r.turns[node] }
