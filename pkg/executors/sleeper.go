package executors

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Sleeper puts the resources of one type of target to sleep, and wakes them again. Each
// call is one bounded piece that may be repeated after any crash: it returns within
// seconds, and what is not done yet shows in the next Observe. A call whose context ends
// returns at once.
type Sleeper interface {
	// Validate says what is wrong with a target before anything of it is touched: what
	// cannot be reached, is not supported, or may not be changed. Nil: nothing is.
	Validate(ctx context.Context, call SleepCall) error
	// Observe says how all resources are that the target selects now, and all of
	// call.Recorded, whether they are still selected or not. It changes nothing.
	Observe(ctx context.Context, call SleepCall) ([]hibernate.Observation, error)
	// Shutdown puts resources to sleep, each of which is recorded. One that sleeps
	// already is left alone. A failure of one keeps no other from being asked.
	Shutdown(ctx context.Context, call SleepCall, due []hibernate.Due) []SleepResult
	// Wake gives resources back what they had before.
	Wake(ctx context.Context, call SleepCall, due []hibernate.Due) []SleepResult
}

// SleepTurns is a Sleeper that puts one part of what is due to sleep after the other.
type SleepTurns interface {
	// Turn is what of it Shutdown is to be asked for now: nothing is done of the rest, which is
	// written down before. None: all of it.
	Turn(call SleepCall, due []hibernate.Due) []hibernate.Due
}

// SleepWatcher is a Sleeper whose resources can be watched as the plan's account.
type SleepWatcher interface {
	// Watches are what to watch so that a change of what the target selects is noticed. Where
	// all is false something can change that none of them shows.
	Watches(ctx context.Context, call SleepCall) (list []Watch, all bool, err error)
}

// SleepCall is everything that a sleeper may look at.
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
	Snapshots int    // that are kept of what the target takes snapshots of
}

// SleepResult is what came of asking for one resource, or, without an ID, for all that were due.
// Without an error it was asked for; whether it is so shows in what is observed next.
type SleepResult struct {
	ID  string
	Err error
	// Untouched says that for certain nothing was done of it: it was not its turn, or the one
	// request that was made of it was refused.
	Untouched bool
}

// NotBegun is what came of a pass that could ask for nothing.
func NotBegun(why error) []SleepResult { return []SleepResult{{Err: why, Untouched: true}} }

// NothingDone says whether an API server answered that it did nothing: of any other error, a lost
// reply above all, that is not known.
func NothingDone(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err)
}
