package executors

import (
	"context"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// DrainOrder asks for one node to be drained. The node is cordoned already: the
// drainer never touches a node.
type DrainOrder struct {
	Node    string
	NodeUID string // another one under the name is another drain
	By      string // claimant: "plan:<namespace>/<name>", or a requestor
	Options drain.Options
	Since   time.Time // the drain's beginning; its timeouts count from here, also after a restart
	Clients Clients   // evictions, and everything that is read of pods
	Manager string    // field manager for what a surge writes
	DryRun  bool      // judge, and evict nothing
}

// The reasons of a DrainStatus.
const (
	DrainListing     = "Listing"     // the node's pods or the budgets are not known yet
	DrainWorking     = "Draining"    // pods are leaving
	DrainBlocked     = "Blocked"     // nothing moves; Blocks say why
	DrainUnavailable = "Unavailable" // the API server does not answer, or refuses what is read
	DrainForbidden   = "Forbidden"   // a right is missing; Message names it
	DrainDone        = "Drained"     // Done
	DrainTimedOut    = "TimedOut"    // Done with pods left, or Aborted
)

// DrainStatus is how a drain stands. It is a snapshot; nobody else holds it.
type DrainStatus struct {
	Done    bool // nothing more will happen: all left, or the rest stays (onTimeout skip, or pods that keep coming back)
	Aborted bool // onTimeout abort: time is over; our cordon is to be undone
	Reason  string
	Message string // one sentence for a person
	// Right is what the API server refused, where Reason is DrainForbidden and that is
	// known: the drain goes on to ask, whoever waits for it has to judge.
	Right *authorizationv1.ResourceAttributes

	Outcome  drain.Outcome
	Total    int // pods that have to leave, those that left included
	Left     int // of them, still there
	Evicted  int // of them, left after an eviction or deletion of ours
	Blocks   []drain.Block
	Pods     []drain.Progress // those still there, at most fifty, the stuck first
	Deadline time.Time        // when onTimeout says how it goes on; zero: never
	Late     bool             // the deadline is over, and it goes on (onTimeout retry; force, where pods are refused)
}

// Drainer drains nodes in the background. Its sessions, one for each node and
// claimant, live in memory only: after a restart Ensure begins again and takes
// everything from the pods and budgets as they are.
//
// Whoever constructs one hands in a function that is called with node and
// claimant whenever a status has changed in a way that a person would notice: a
// tenth of a second after an end or a block, a second after pods left.
type Drainer interface {
	// Ensure starts a session, or goes on with it, and says how it stands. It
	// waits for nothing. An order whose options, Since or NodeUID differ from the
	// session's replaces it; Clients are always taken anew.
	Ensure(ctx context.Context, order DrainOrder) DrainStatus
	// Stop ends a session: nothing more is asked for, and what was accepted goes on
	// in the cluster. Requests in flight have some seconds for their answer: an
	// eviction that is broken off between the API server's two writes is counted by
	// its budget for two minutes. Ending one that is not there does nothing.
	Stop(node, by string)
	// Keep ends the sessions for which wanted is false, as Stop does.
	Keep(wanted func(node, by string) bool)
	// At is a drainer for the nodes of another cluster, with sessions of its own, which
	// reads and writes by these clients alone. by is the claimant with which the one who
	// constructed this drainer hears of changes. A session there ends by itself when it is
	// not ensured for a minute: nobody else calls Keep for it. No replacements are made
	// there for pods that ask for one: they stay, and that is said. It is false where the
	// plans of by's namespace drain on as many other clusters as they may at once.
	At(by string, clients Clients) (Drainer, bool)
	// Sweep gives back the replicas that surges left whose drain is no more: of an
	// agent that died in the middle, while the drain was called off or its node was
	// deleted. It looks as these clients, and at records of this claimant alone.
	// busy says whether a drain of a node is about to be taken up. left are those
	// that are not to be given back yet.
	Sweep(ctx context.Context, clients Clients, manager, by string, busy func(node string) bool) (left int, err error)
	// AwaitRequests waits until nothing is in flight, some seconds at most: for who is
	// about to end the process.
	AwaitRequests()
}
