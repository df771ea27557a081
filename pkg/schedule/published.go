package schedule

import (
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// Published is a gate of which no more is known than a verdict of somebody else: the period that the
// verdict speaks of, and the one after it. After these the gate is not ready. whose follows each
// reason, and says whose verdict it is. What is not known yet in the verdict is not known of the gate.
func Published(v Verdict, whose string) *Gate {
	beyond := course(&unready{why: explanation{notSaid + whose, Cause{Kind: CauseUnpublished}}})
	first := published{
		permits: v.Permitted, began: secondOf(v.Since, civil.Beginning), until: secondOf(v.Until, civil.Never), then: beyond,
		why: explanation{v.Reason + whose, causeIn(v.Reason)}, holds: saidUntil(v.Reason), later: thenPermitted(v.Permitted, whose), untold: v.Later != "",
	}
	if n := v.Next; n != nil {
		first.then = &published{permits: n.Permitted, began: n.Start.Unix(), until: secondOf(n.End, civil.Never), why: thenPermitted(n.Permitted, whose), holds: civil.Never, untold: n.Later, then: beyond}
	}
	return &Gate{course: &first}
}

func thenPermitted(is bool, whose string) explanation {
	if is {
		return explanation{"permitted then" + whose, Cause{Kind: CausePublished}}
	}
	return explanation{"not permitted then" + whose, Cause{Kind: CausePublished}}
}

// saidUntil is up to when a reason holds that names the end of a strategy, as stanzas do. What
// follows it may permit no more than it did, for a reason that nobody told.
func saidUntil(reason string) int64 {
	for _, strategy := range []Strategy{RestrictiveUntil, PermissiveUntil} {
		_, after, _ := strings.Cut(reason, string(strategy)+" ")
		if at, _, found := cutStamp(after); found {
			return at.Unix()
		}
	}
	return civil.Never
}

// cutStamp takes the instant from the beginning of a text, as stampOf wrote it.
func cutStamp(text string) (at time.Time, rest string, found bool) {
	const length = len("2006-01-02T15:04:05Z")
	if len(text) < length {
		return time.Time{}, text, false
	}
	at, err := time.Parse(time.RFC3339, text[:length])
	return at, text[length:], err == nil
}

// FrozenNamespaceSaid reads back from a published reason that a namespace is frozen. It is false
// where the reason speaks of something else.
func FrozenNamespaceSaid(reason string) (Stanza, bool) {
	text, _ := strings.CutPrefix(reason, OfNamespace)
	if text == reason {
		return Stanza{}, false
	}
	if until, is := strings.CutPrefix(text, string(RestrictiveUntil)+" "); is {
		at, by, found := cutStamp(until)
		return Stanza{Strategy: RestrictiveUntil, Until: &at, By: by}, found
	}
	by, is := strings.CutPrefix(text, string(Restrictive))
	return Stanza{Strategy: Restrictive, By: by}, is
}

const notSaid = "not known beyond what was said"

func secondOf(t *time.Time, otherwise int64) int64 {
	if t == nil {
		return otherwise
	}
	return t.Unix()
}

// published is one period that somebody spoke of, and what comes after it.
type published struct {
	permits      bool
	began, until int64
	why          explanation
	holds        int64       // up to when that is why
	later        explanation // why after that
	untold       bool        // until is not known yet
	then         course
}

func (s *published) open(t int64) bool {
	if t < s.until {
		return s.permits
	}
	return s.then.open(t)
}

func (s *published) change(t int64, e *effort) int64 {
	switch {
	case t >= s.until:
		return s.then.change(t, e)
	case s.untold:
		e.untold = true
		e.notBeyond(t)
		return s.until
	case s.until == civil.Never || s.then.open(s.until) != s.permits:
		return s.until
	case !s.then.ready(s.until): // it ends there, and no more was said
		return s.until
	}
	return s.then.change(s.until, e)
}

func (s *published) since(t int64, e *effort) int64 {
	if t < s.until {
		return min(s.began, t)
	}
	if since := s.then.since(t, e); since != civil.Beginning {
		return since
	}
	return s.until
}

func (s *published) explain(t int64) explanation {
	switch {
	case t >= s.until:
		return s.then.explain(t)
	case t >= s.holds:
		return s.later
	}
	return s.why
}

func (s *published) ready(t int64) bool { return t < s.until || s.then.ready(t) }
