package run

// Result is how a slot, or a run without one, ended.
type Result string

// The ends of a slot. Open is not an end: it is the claim on one.
const (
	Open    Result = "Open"
	Ran     Result = "Ran"
	Skipped Result = "Skipped"
	Missed  Result = "Missed"
)

// The reasons that the ledger gives for a slot that did not run.
const (
	ReasonPaused     = "paused"
	ReasonSkip       = "skip"
	ReasonBusy       = "busy"
	ReasonAborted    = "aborted"
	ReasonRejected   = "rejected"
	ReasonDeadline   = "deadline"
	ReasonSuperseded = "superseded"
	ReasonWindow     = "window"
	ReasonNotReady   = "not-ready"
	ReasonTarget     = "target"
	ReasonLock       = "lock"
	ReasonApproval   = "approval"
	ReasonCatchUp    = "catch-up"
	ReasonEdited     = "edited"
	ReasonClock      = "clock"
	ReasonRefused    = "refused"
	ReasonHold       = "hold" // somebody held it awake
)

// Reasons are those that the ledger gives for the slots of plans that ended so: of one that
// ran, what asked for it.
func Reasons(result Result) []string {
	switch result {
	case Ran:
		return []string{string(BySchedule), string(ByLabel), string(ByToken), string(ByCreation), string(ByWatch)}
	case Skipped:
		return []string{ReasonPaused, ReasonSkip, ReasonBusy, ReasonAborted, ReasonRejected, ReasonRefused}
	case Missed:
		return []string{
			ReasonDeadline, ReasonSuperseded, ReasonWindow, ReasonNotReady, ReasonTarget, ReasonLock, ReasonApproval, ReasonCatchUp, ReasonEdited, ReasonClock, ReasonRefused,
		}
	}
	return nil
}

// ReasonDrift is why a run failed that somebody changed the effects of.
const ReasonDrift = "Drift"
