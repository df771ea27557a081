package nodes

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// Step is the one next thing to do about a node. Statuses, Remove, Unschedulable, Cordon and Progress are one
// patch, to be made only of the version that was read: with uid and resourceVersion. Events are said after
// it. Drain, Watch and Next hold whether or not something is written.
type Step struct {
	Statuses      map[string]Status // that change, by requestor
	Remove        []string          // requestors whose status goes
	Unschedulable *bool             // nil: left as it is
	CordonChanged bool
	Cordon        *Cordon // with CordonChanged: the new record, nil to remove it
	Progress      *string // the new NodeProgress, empty to remove it; nil: left as it is
	Behavior      *string // what is told of the node's gate, empty to remove it; nil: left as it is
	Conditions    *string // the new list of its conditions, empty to remove it; nil: left as it is
	Events        []Event

	Drain *Drain     // the drain that shall run now; nil: none, one that runs is stopped
	Watch []Watch    // pods to be counted, for Asked.Pods
	Next  *time.Time // when to look again at the latest; nil: when something changes
}

// Drain is an order to make pods leave. It stands only where its intent has been written before.
type Drain struct {
	Key        string        // names the order: same pods, same rules, same begin
	Options    drain.Options // Timeout and OnTimeout are set
	Since      time.Time     // Timeout counts from here, also after a restart
	Requestors []string      // for whom, sorted
}

// Watch asks for pods to be counted.
type Watch struct{ Requestor, PodSelector string }

// Event is something to be said about a node, once.
type Event struct {
	Requestor string // empty: about the node itself
	Warning   bool
	Reason    string // CamelCase
	Message   string
}

// Writes says whether there is something to write.
func (s Step) Writes() bool {
	return s.maintains() || s.Behavior != nil || s.Conditions != nil
}

// OnlyGateStatus says whether all that is written is what is told of the node's gate.
func (s Step) OnlyGateStatus() bool { return s.Writes() && !s.maintains() }

func (s Step) maintains() bool {
	return len(s.Statuses) > 0 || len(s.Remove) > 0 || s.Unschedulable != nil || s.CordonChanged || s.Progress != nil
}
