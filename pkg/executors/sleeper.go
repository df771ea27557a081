package executors

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Sleeper puts the resources of one type of target to sleep, and wakes them. Each call is one
// bounded piece that may be repeated after any crash: it returns within seconds, and the next
// Observe shows what is left. A call whose context ends returns at once.
type Sleeper interface {
	// Validate says what is wrong with a target before anything of it is touched: what cannot be
	// reached, is not supported, or may not be changed. Nil: nothing is.
	Validate(ctx context.Context, call SleepCall) error
	// Observe reports all resources that the target selects now, and all of call.Recorded,
	// selected or not. It changes nothing.
	Observe(ctx context.Context, call SleepCall) ([]hibernate.Observation, error)
	// Shutdown puts resources to sleep, all of which are recorded. One that sleeps already is left
	// alone. A failure of one does not stop the others.
	Shutdown(ctx context.Context, call SleepCall, due []hibernate.Due) []SleepResult
	// Wake restores the previous state of resources.
	Wake(ctx context.Context, call SleepCall, due []hibernate.Due) []SleepResult
}

// SleepTurns is a Sleeper that puts the due resources to sleep part by part.
type SleepTurns interface {
	// Turn is the part that the next Shutdown should get: nothing is done to the rest, although
	// all of it is recorded. None: all of it.
	Turn(call SleepCall, due []hibernate.Due) []hibernate.Due
}

// SleepWatcher is a Sleeper whose resources can be watched as the plan's account.
type SleepWatcher interface {
	// Watches are what to watch so that changes of the target's selection are noticed. all is
	// false where some changes appear in none of them.
	Watches(ctx context.Context, call SleepCall) (list []Watch, all bool, err error)
}

// SleepCall is everything that a Sleeper may look at.
type SleepCall struct {
	Plan      PlanRef // the HibernatePlan
	Cycle     string  // names the sleep; the same after any crash
	Target    string
	Operation hibernate.Operation
	Params    any                  // a pointer to the parameters of the target's type
	Recorded  []hibernate.Resource // of this cycle
	Failures  int                  // attempts of the operation that have failed
	StartedAt time.Time            // of the operation; zero in Validate and Observe before it begins
	DryRun    bool
	Now       time.Time
	Clients   Clients
	Cloud     *Cloud // of the target's connector; nil: it has none
	Snapshots int    // to keep, where the target takes snapshots
	// AttemptsBefore are those that failed before somebody had it tried at once: Failures are without them.
	AttemptsBefore int
	AgentNamespace string // where the agent itself runs
}

// SleepResult is the result for one resource, or, without an ID, for all that were due. No error
// means that the change was requested; the next observation shows whether it happened.
type SleepResult struct {
	ID  string
	Err error
	// Untouched says that nothing was done to it for certain: it was not its turn, or the only
	// request for it was refused.
	Untouched bool
}

// NotBegun is the result of a pass that could request nothing.
func NotBegun(why error) []SleepResult { return []SleepResult{{Err: why, Untouched: true}} }

// NothingDone says that an API server answered and did nothing. After any other error, such as a
// lost reply, that is not known.
func NothingDone(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err)
}
