package schedule

import "strings"

// Cause is what a verdict follows from, for those who act on it. Its sentence, for people, is the
// Reason.
type Cause struct {
	Kind      CauseKind
	Namespace bool   // the annotations of the object's namespace say so: that binds whatever is asked
	Policy    string // the name of the policy that says so; empty: none does
	// PolicyNamespace is that policy's, if somebody paused, froze or opened it; empty in what is
	// read from somebody else's reason, which has the name alone.
	PolicyNamespace string
}

// CauseKind is what kind of a rule it is.
type CauseKind string

// Kinds of causes. A strategy or a schedule is the empty one.
const (
	CauseAllow       CauseKind = "Allow"  // permitted by somebody up to an instant
	CauseFreeze      CauseKind = "Freeze" // restricted by somebody up to an instant
	CauseBypass      CauseKind = "Bypass" // one plan may start whatever its policies say
	CausePause       CauseKind = "Pause"  // paused by somebody
	CauseUnpublished CauseKind = "Untold" // what decides may not be read, and nobody said what it decides
	CauseHidden      CauseKind = "Hidden" // what decides may not be read by whoever asks
	CausePublished   CauseKind = "Told"   // somebody said whether it is permitted then, and not why
)

// Granted says whether change is permitted because somebody permitted it until an instant, by an
// allow or a bypass. The reason then says who.
func (v Verdict) Granted() bool { return v.Permitted && v.Cause.grants() }

// Granted is Verdict.Granted of a state.
func (s State) Granted() bool { return s.Open && s.Cause.grants() }

func (c Cause) grants() bool { return c.Kind == CauseAllow || c.Kind == CauseBypass }

// Unknown says that what decides may not be read, and that the agent has not said what it decides.
func (v Verdict) Unknown() bool { return !v.Ready && v.Cause.unknown() }

// Unknown is Verdict.Unknown of a state.
func (s State) Unknown() bool { return !s.Open && s.Cause.unknown() }

func (c Cause) unknown() bool { return c.Kind == CauseUnpublished || c.Kind == CauseHidden }

// Hidden says that it is so since whoever asks may not read all that decides. What is broken is
// another case: it can be mended.
func (v Verdict) Hidden() bool { return !v.Ready && v.Cause.Kind == CauseHidden }

// explanation is a reason for people beside its cause.
type explanation struct {
	text  string
	cause Cause
}

// OfNamespace begins the reason of a verdict that the annotations of a namespace give.
const OfNamespace = "namespace: "

// because is what a namespace, a policy or the object itself says, with whose word it is.
func (c Cause) because(kind CauseKind, text string) explanation {
	c.Kind = kind
	return explanation{c.prefix() + text, c}
}

// prefix begins what a namespace or a policy says.
func (c Cause) prefix() string {
	switch {
	case c.Namespace:
		return OfNamespace
	case c.Policy != "":
		return ofPolicy + c.Policy + ": "
	}
	return ""
}

const (
	ofPolicy    = "policy "
	bypassUntil = "bypass until "
)

// causeIn reads the cause back from a reason that somebody else published: of a verdict on the
// wire there is no more.
func causeIn(reason string) Cause {
	var c Cause
	text, isNamespace := strings.CutPrefix(reason, OfNamespace)
	c.Namespace = isNamespace
	if rest, isPolicy := strings.CutPrefix(reason, ofPolicy); isPolicy {
		c.Policy, text, _ = strings.Cut(rest, ": ")
	}
	said, _, _ := strings.Cut(text, " by ") // what people wrote comes after it
	for begin, kind := range map[string]CauseKind{
		bypassUntil: CauseBypass, string(PermissiveUntil) + " ": CauseAllow, string(RestrictiveUntil) + " ": CauseFreeze, "paused": CausePause, notSaid: CauseUnpublished,
	} {
		if strings.HasPrefix(said, begin) && !strings.HasSuffix(said, isOver) {
			c.Kind = kind
		}
	}
	return c
}
