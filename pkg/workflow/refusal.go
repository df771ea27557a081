package workflow

import (
	"strings"
	"time"
)

// RefusalTimeout is how long a missing right has to be missing before that is
// believed. An API server that has just started refuses everybody until it has
// read its roles and bindings, and says so in access reviews too (a guess: that
// takes seconds, and a person who waits for a verdict is told the right at once).
const RefusalTimeout = 30 * time.Second

// Pauses between two questions to an API server that refused.
const (
	shortestRefusalPause = 2 * time.Second
	longestRefusalPause  = 30 * time.Second
)

// Refusal is since when something has been refused without a break.
type Refusal struct {
	Since time.Time
	Times int
}

// Again counts another refusal at an instant. final says that it was said at least
// twice, with RefusalTimeout in between.
func (r Refusal) Again(now time.Time) (next Refusal, final bool) {
	if r.Times == 0 {
		r.Since = now
	}
	r.Times++
	return r, r.Times > 1 && !now.Before(r.Since.Add(RefusalTimeout))
}

// RetryAt is when to ask again: soon at first, then more and more rarely.
func (r Refusal) RetryAt(now time.Time) time.Time {
	pause := min(max(now.Sub(r.Since)/2, shortestRefusalPause), longestRefusalPause)
	return now.Add(pause)
}

// VerdictAt is when the next refusal would be final, or the next question before
// that.
func (r Refusal) VerdictAt(now time.Time) time.Time {
	at, verdict := r.RetryAt(now), r.Since.Add(RefusalTimeout)
	if verdict.After(now) && verdict.Before(at) {
		return verdict
	}
	return at
}

// What is said after the want of a step that waits. It is about the time to come: a step that failed
// says it no more.
const (
	failsBy      = "; unless that is so by "
	cleanupWaits = "; cleanup waits for it until "
)

// FailsBy says when a step fails that waits for something.
func FailsBy(at time.Time) string {
	return failsBy + at.UTC().Format(time.RFC3339) + ", the step fails"
}

// CleanupWaitsUntil says until when a cleanup waits for something.
func CleanupWaitsUntil(at time.Time) string { return cleanupWaits + at.UTC().Format(time.RFC3339) }

// wantOf is what a step waited for, without what was to come.
func wantOf(waits string) string {
	waits, _, _ = strings.Cut(waits, failsBy)
	waits, _, _ = strings.Cut(waits, cleanupWaits)
	return waits
}
