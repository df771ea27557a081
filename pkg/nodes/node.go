package nodes

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Node is all that is known of a node at an instant.
type Node struct {
	Name, UID     string
	Zone          string // empty: not known, and no zone limit applies
	Unschedulable bool   // spec.unschedulable
	NotReady      bool   // its Ready condition is not True
	Deleting      bool   // has a deletionTimestamp; the slot is freed when it leaves the ClusterState
	Asked         []Asked
	Cordon        *Cordon        // status.maint.dev/cordoned
	Taken         CordonTakeover // by somebody else, since it was cordoned by us
	Foreign       bool           // the record on it is of an earlier node of its name, and counts for nothing
	Progress      string         // status.maint.dev/progress as it stands
	Behavior      string         // status.maint.dev/behavior as it stands
	Conditions    string         // status.maint.dev/conditions as it stands
	Gate          Gate           // whether its stanza permits change; also closed while paused
	Drain         Session        // what the drain of this node says; not remembered anywhere
}

// Asked is one request on a node, or what is left of one.
type Asked struct {
	Request    Request // its Requestor is always set
	Fault      string  // what is wrong with the value; empty: nothing
	Gone       bool    // the request was removed, its status still stands
	Status     *Status // as recorded; nil: none, or not readable
	Pods       Pods    // of waitFor; asked for by Step.Watch
	Preview    Block   // what a look at the pods before any cordon found
	LookFailed string  // why that look failed; the Preview is what was known before it then
}

// CordonTakeover says that somebody else cordoned a node that is cordoned by us: the cordon is
// theirs too. Nobody saw it happen; the node's managed fields tell.
type CordonTakeover struct {
	By     string // field manager; empty: nobody
	Opened bool   // the node was open before that: pods may have come
}

// Gate says whether change may start on a node.
type Gate struct {
	Permitted bool
	Reason    string     // why not, until when: one sentence without a countdown
	Next      *time.Time // when to look again; nil: nothing changes by itself
	Opens     *time.Time // of a closed one: when its window opens or its pause ends; nil: not known
	Stops     string     // why what has begun stops, too: the API server refuses what the agent writes on the node; empty: it goes on
	Cause     schedule.Cause
	Cluster   bool // closed since the whole cluster is paused
}

// Why a node's gate is closed, where no window is the reason.
const (
	clusterPaused = "the whole cluster is paused"
	nodePaused    = "the node is paused"
)

// ClosedBy is the gate of all nodes where the whole cluster is paused; nil: it is not.
func ClosedBy(everywhere []schedule.Pause, now time.Time) *Gate {
	for _, p := range everywhere {
		if p.Holds(now) {
			return &Gate{Reason: document.Cut(clusterPaused+p.By, document.MaxMessage/2), Next: p.Until, Opens: p.Until, Cause: schedule.Cause{Kind: schedule.CausePause}, Cluster: true}
		}
	}
	return nil
}

// GateWith is the gate of a node that has a pause of its own; verdict is what its
// stanza says, and is asked for only where it decides.
func GateWith(own schedule.Pause, verdict func(time.Time) schedule.Verdict, now time.Time) Gate {
	if own.Holds(now) {
		return Gate{Reason: document.Cut(nodePaused+own.By, document.MaxMessage/2), Next: own.Until, Opens: own.Until, Cause: schedule.Cause{Kind: schedule.CausePause}}
	}
	return GateOf(verdict(now))
}

// GateForRun is the gate of a node for a run, and whether that passes it only as a bypass on the
// node names it: what the stanza says, and no pause.
func GateForRun(own schedule.Pause, named bool, verdict func(time.Time) schedule.Verdict, now time.Time) (gate Gate, passes bool) {
	gate = GateWith(own, verdict, now)
	if passes = named && !gate.Permitted && !own.Holds(now); passes {
		gate = Gate{Permitted: true, Next: gate.Next}
	}
	return gate, passes
}

// GateOf is the gate as a stanza's verdict says it.
func GateOf(v schedule.Verdict) Gate {
	gate := Gate{Permitted: v.Permitted && v.Ready, Reason: v.Why(), Next: v.Until, Cause: v.Cause}
	if !gate.Permitted && v.Ready {
		gate.Opens = v.Until
	}
	return gate
}

// Pods are the pods that a waitFor counts: unfinished ones that no DaemonSet owns.
type Pods struct {
	Known bool     // they have been counted; what is not known is not zero
	Left  int      //
	Some  []string // names of a few, namespace/name
}

// Block is what stands in a drain's way.
type Block struct {
	Permanent bool   `json:"permanent"`         // no waiting helps: somebody must change something
	Refused   bool   `json:"refused,omitempty"` // pods may not be evicted at all: force does not delete them either
	Text      string `json:"text"`              // which budget, which pods, what to change; empty: nothing is in the way
	// Since is when a drain that aborts could have begun, and was blocked for good: its timeout counts
	// from there. Zero: it does not count.
	Since time.Time `json:"since,omitzero"`
}

// holds says whether a block holds a drain up for good, also past its timeout.
func (b Block) holds(o drain.Options) bool { return o.Holds(b.Permanent, b.Refused) }

// SessionState is how far a drain has come.
type SessionState string

// The states of a drain.
const (
	SessionNone    SessionState = ""        // there is none, or not yet
	SessionRunning SessionState = "Running" // pods are leaving, or wait to
	SessionDone    SessionState = "Done"    // with skip also: gone on without the pods that stay
	SessionAborted SessionState = "Aborted" // out of time, and onTimeout is abort
)

// Session is what the drain of a node says of itself. It lives in the agent's
// memory; one that is lost in a crash is begun again, with the same Key.
type Session struct {
	State     SessionState
	Key       string // Drain.Key of the order that it carries out; a word about another order does not count
	Left      int    // pods still there; of a done one: left because of onTimeout skip
	Total     int    // pods that were to leave
	Uncounted bool   // the pods are not known yet: Left and Total say nothing
	Block     Block  // what is in its way now
	Waits     string // what it waits for, where nothing blocks it: a pod that completes by itself, volumes
	Text      string // outcome, one sentence
	Note      string // of a done one: what its requestor has to know of what stays
}

// Read puts together what stands on a node: the values of request.maint.dev/…, those of
// status.request.maint.dev/…, and that of status.maint.dev/cordoned. The result is in the order of the
// requestors' names, and misses what annotations do not hold: Pods and Preview.
func Read(requests, statuses map[string]string, cordoned string) ([]Asked, *Cordon) {
	var asked []Asked
	for requestor, value := range requests {
		a := Asked{Request: Request{Requestor: requestor, Identity: identityOf(value)}}
		if r, err := Parse(requestor, value); err != nil {
			a.Fault = err.Error()
		} else {
			a.Request = r
		}
		asked = append(asked, a)
	}
	for requestor := range statuses {
		if _, stands := requests[requestor]; !stands {
			asked = append(asked, Asked{Request: Request{Requestor: requestor}, Gone: true})
		}
	}
	slices.SortFunc(asked, func(a, b Asked) int { return cmp.Compare(a.Request.Requestor, b.Request.Requestor) })
	for i := range asked {
		if s, ok := ParseStatus(statuses[asked[i].Request.Requestor]); ok {
			asked[i].Status = &s
		}
	}
	c, _ := ParseCordon(cordoned)
	return asked, c
}

// ReadCurrent takes in what stands on the node: as Read, but without what speaks of an
// earlier node of its name. A node that is made again with the annotations of the
// one before has not been drained, whatever they say.
func (n *Node) ReadCurrent(requests, statuses map[string]string, cordoned string) {
	n.Asked, n.Cordon = Read(requests, statuses, cordoned)
	for i := range n.Asked {
		switch s := n.Asked[i].Status; {
		case s == nil:
		case s.Node != "" && s.Node != n.UID:
			n.Asked[i].Status = nil
		default:
			s.Node = n.UID
		}
	}
	if c := n.Cordon; c != nil {
		switch {
		case c.Node == "" || c.Node == n.UID:
		case n.Unschedulable: // it was made again as it was: cordoned, for the same claimants
			c.Drained = nil
		default:
			n.Cordon, n.Foreign = nil, true
			return
		}
		c.Node = n.UID
	}
}

// phase is the recorded phase of a request. One whose status was lost while the
// node is cordoned for it goes on where the cordon is, and does not lose it.
func (n *Node) phase(a *Asked) Phase {
	switch {
	case a.Status != nil && a.Status.Ended != nil:
		return Pending
	case a.Status != nil:
		return a.Status.Phase
	case n.cordonedBy(a.Request.Requestor):
		return Cordoning
	}
	return Pending
}

func (n *Node) cordonedBy(claimant string) bool {
	return n.Cordon != nil && slices.Contains(n.Cordon.By, claimant)
}

// inForce says whether the cordon that a request wants is there.
func (n *Node) inForce(a *Asked) bool {
	return !a.Request.Cordon || n.Unschedulable && n.cordonedBy(a.Request.Requestor)
}

// holders are the requests that stand and have the node; leaving says that one
// has it whose request is gone, and which is about to be released.
func (n *Node) holders() (standing []*Asked, leaving bool) {
	for i := range n.Asked {
		a := &n.Asked[i]
		switch {
		case !n.phase(a).Holds():
		case a.Gone:
			leaving = true
		default:
			standing = append(standing, a)
		}
	}
	return standing, leaving
}

// uncordonedByOthers says that somebody else uncordoned the node while requests hold it.
func (n *Node) uncordonedByOthers() bool {
	if n.Cordon == nil || n.Unschedulable {
		return false
	}
	return slices.ContainsFunc(n.Cordon.By, isRequestor)
}

// waits says whether a request stands and waits for a node: it can be read and was not given up.
func (n *Node) waits(a *Asked) bool {
	return !a.Gone && a.Fault == "" && !n.phase(a).Holds() && !a.ended()
}

// ended says whether a request was given up and its value is still the same.
func (a *Asked) ended() bool {
	return a.Status != nil && a.Status.Ended != nil && a.Status.Ended.Value == a.Request.Identity
}

// blocked says whether a request does not begin, since its drain could not end:
// the pods in its way stay, and it would neither leave nor delete them.
func (n *Node) blocked(a *Asked) bool {
	return a.Preview.Permanent && !n.fulfilled(a) && a.Preview.holds(*a.Request.Drain)
}

// Remembered is what stood in the request's way for good, or for a while, when it
// was looked at before its node was cordoned, or while it has yielded its slot: it holds until somebody looks again.
func (a Asked) Remembered() Block {
	if a.Status == nil || a.Status.Phase != Pending && !a.Status.yielded() || a.Status.Blocked == nil {
		return Block{}
	}
	return *a.Status.Blocked
}

// since is the age of a request: the instant at which it was first seen.
func (a *Asked) since(now time.Time) time.Time {
	if a.Status == nil || a.Status.Asked.IsZero() || a.Status.Ended != nil {
		return stamp(now)
	}
	return a.Status.Asked
}
