package schedule

import (
	"strings"
	"time"
)

// Pause is on, off, or on until an instant.
type Pause struct {
	On    bool       `json:"on"`
	Until *time.Time `json:"until,omitempty"`
	Of    string     `json:"-"` // what it is of, where that stands above: "namespace shop"
	By    string     `json:"-"` // who paused and why, as it follows a sentence: " by jane: CHG-1"
}

// LongestPause is the one of some pauses that ends last, of those without an end the last; off: none
// is on.
func LongestPause(list ...Pause) Pause {
	var out Pause
	for _, p := range list {
		if p.On && (!out.On || p.Until == nil || out.Until != nil && p.Until.After(*out.Until)) {
			out = p
		}
	}
	return out
}

// Said says what is paused until when, by whom and why, as far as that is known.
func (s Pause) Said() string {
	text := "paused"
	if s.Of != "" {
		text = s.Of + " is paused"
	}
	if s.Until != nil {
		text += " until " + stampOf(*s.Until)
	}
	return text + s.By
}

// Clause is By with a comma, to follow a clause that it must not be read as a part of: until
// resumed, by jane: CHG-1.
func (s Pause) Clause() string { return Clause(s.By) }

// Clause is Pause.Clause of what somebody else than a pause is said to be by.
func Clause(by string) string {
	if strings.HasPrefix(by, " by ") {
		return "," + by
	}
	return by
}

// PauseSaid reads back the pause from a sentence that Said wrote. It is false where the sentence
// speaks of no pause, or does not say what is paused.
func PauseSaid(text string) (Pause, bool) {
	of, rest, found := strings.Cut(text, " is paused")
	if !found {
		return Pause{}, false
	}
	s := Pause{On: true, Of: of[strings.LastIndex(of, "; ")+len("; "):]}
	if !strings.Contains(of, "; ") {
		s.Of = of
	}
	if until, after, _ := strings.Cut(strings.TrimPrefix(rest, " until "), " "); strings.HasPrefix(rest, " until ") {
		at, err := time.Parse(time.RFC3339, until)
		if err != nil {
			return Pause{}, false
		}
		s.Until, rest = &at, strings.TrimSuffix(" "+after, " ")
	}
	s.By = rest
	return s, true
}

// Holds says whether the switch is on at an instant.
func (s Pause) Holds(at time.Time) bool { return s.On && (s.Until == nil || at.Before(*s.Until)) }

// Verdict is what is permitted at an instant where the pause stands above the rest: nothing while it
// holds. ask is what the rest says, and below what it says without a pause that is part of it. When
// a pause began is not known: Since is set if it was closed before.
func (s Pause) Verdict(at time.Time, ask, below func(time.Time) Verdict) Verdict {
	v := ask(at)
	if !s.Holds(at) || !v.Ready {
		return v
	}
	out := Verdict{Ready: true, Reason: s.Said(), Cause: Cause{Kind: CausePause}, NextChangeETA: ForEver}
	if s.Until != nil {
		s.opens(&out, at, ask)
	}
	if v := below(at); v.Ready && !v.Permitted {
		out.Since = v.Since
	}
	return out
}

// opens says in a verdict when it opens: at the end of the pause, or later where the rest is closed
// then, too.
func (s Pause) opens(v *Verdict, at time.Time, ask func(time.Time) Verdict) {
	then, opens := ask(*s.Until), s.Until
	if !then.Permitted {
		opens, v.Later, v.Unfinished = then.Until, then.Later, then.Unfinished
	}
	if v.Later != "" {
		v.NextChangeETA = NotReady
	}
	if opens == nil || !then.Ready {
		return
	}
	v.Until = new(opens.UTC())
	v.Next = &Following{Permitted: true, Start: *v.Until}
	after := ask(*v.Until)
	v.Next.End, v.Next.Later, v.Unfinished = after.Until, after.Later != "", v.Unfinished || after.Unfinished
	v.NextChangeETA = v.Until.Unix() - at.Unix()
}
