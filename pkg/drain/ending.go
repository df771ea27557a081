package drain

import "time"

// Holds says whether what is in a drain's way for good stays so past its timeout, too: skip goes on
// without the pods in the way, force deletes those that are not refused.
func (o Options) Holds(permanent, refused bool) bool {
	return permanent && o.OnTimeout != TimeoutSkip && (refused || o.OnTimeout != TimeoutForce)
}

// Ending says until when a drain that began at an instant tries, and what it does then; empty where
// it only goes on.
func (o Options) Ending(since, now time.Time) string {
	then := map[OnTimeout]string{
		TimeoutSkip: "leaves the pods that are still there and is Ready", TimeoutForce: "deletes the pods that may be evicted", TimeoutAbort: "is given up and undoes its cordon",
	}[o.OnTimeout]
	at, limited := Deadline(o, since)
	if then == "" || !limited || !now.Before(at) {
		return ""
	}
	return "tries until " + stamp(at) + ", then " + then
}

// HowLong says how long something holds up a drain that began at an instant.
func (o Options) HowLong(permanent, refused bool, since, now time.Time) string {
	at, limited := Deadline(o, since)
	switch {
	case !permanent:
		return "for now"
	case !o.Holds(permanent, refused) && limited && now.Before(at):
		return "until " + stamp(at)
	}
	return "for good"
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }
