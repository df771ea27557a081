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
	NodeUID string // another node of the same name is another drain
	By      string // claimant: "plan:<namespace>/<name>", or a requestor
	Options drain.Options
	Since   time.Time // the drain's start; its timeouts count from here, also after a restart
	Clients Clients   // for evictions, and for everything that is read of pods
	Manager string    // field manager of what a surge writes
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

// DrainStatus is the state of a drain: a snapshot that nobody else holds.
type DrainStatus struct {
	Done    bool // nothing more will happen: all pods left, or the rest stays (onTimeout skip, or pods that keep coming back)
	Aborted bool // onTimeout abort: the time is over, and the caller has to undo our cordon
	Reason  string
	Message string // one sentence for people
	// Right is what the API server refused, where Reason is DrainForbidden and the right is known.
	// The drain keeps asking; its caller decides when that is a failure.
	Right *authorizationv1.ResourceAttributes

	Outcome  drain.Outcome
	Total    int // pods that have to leave, including those that left
	Left     int // of Total, those still there
	Evicted  int // of Total, those that left after our eviction or deletion
	Blocks   []drain.Block
	Pods     []drain.Progress // those still there, at most fifty, the stuck ones first
	Deadline time.Time        // when onTimeout takes effect; zero: never
	Late     bool             // the deadline is over and the drain goes on (onTimeout retry; force, where pods are refused)
}

// Drainer drains nodes in the background. Its sessions, one for each node and claimant, live in
// memory only: after a restart, Ensure begins again from the pods and budgets as they are.
//
// Its constructor takes a function that is called with node and claimant whenever a status has
// changed in a way that a person would notice: a tenth of a second after an end or a block, a
// second after pods left.
type Drainer interface {
	// Ensure starts or continues a session, and returns its status without waiting. An order with
	// other options, Since or NodeUID replaces the session's; Clients are always replaced.
	Ensure(ctx context.Context, order DrainOrder) DrainStatus
	// Stop ends a session: it asks for nothing more, and what the API server accepted goes on.
	// Requests in flight get some seconds for their answer: an eviction that is cut off between
	// the two writes of the API server counts against its budget for two minutes. Without a
	// session Stop does nothing.
	Stop(node, by string)
	// Keep stops the sessions for which wanted is false.
	Keep(wanted func(node, by string) bool)
	// ForCluster is a drainer for the nodes of another cluster. It has sessions of its own, and reads and
	// writes with these clients only. Changes are reported to the same function as this drainer's,
	// with claimant by. A session there ends by itself when it is not ensured for a minute, since
	// nobody calls Keep for it. It makes no replacements: pods that ask for one stay, and the
	// status says so. It is false where the plans of by's namespace drain as many other clusters
	// as they may.
	ForCluster(by string, clients Clients) (Drainer, bool)
	// Sweep removes the replicas of surges whose drain no longer exists, because an agent died
	// while the drain was called off or the node was deleted. It looks with these clients, and
	// only at records of this claimant. busy says whether a drain of a node is about to continue.
	// left are those that have to stay for now, or could not be removed; err is about these, too, and
	// does not keep it from the others.
	Sweep(ctx context.Context, clients Clients, manager, by string, busy func(node string) bool) (left int, err error)
	// Unswept are the claimants of drains that ended without having removed what their surges
	// added, since it was last asked. A Sweep for them tries again.
	Unswept() []string
	// Unreplaced are pods of a node, by uid, that a claimant's drain which began at an instant could
	// not replace in the last minutes: also of one that was stopped, and would try again.
	Unreplaced(node, by string, since time.Time) map[string]drain.Replacement
	// AwaitRequests waits some seconds at most until no request is in flight: for a process that
	// is about to end.
	AwaitRequests()
}
