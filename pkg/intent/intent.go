package intent

import (
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Bypass lets a run, or everything until an instant, pass the gate.
type Bypass struct {
	Run    string
	Until  *time.Time
	Reason string
	By     string // who said so and why, as it follows a sentence: " by jane: urgent fix"
}

// Intent is what people ask of a plan by annotations, already read.
type Intent struct {
	Pause schedule.Pause
	Skip  Skip
	Token string
	Asked TriggerOptions // counts only where its token is Token
	// Unclear says that the options could not be read: a trigger waits, for they
	// may say that it is to be a dry run.
	Unclear bool
	Resume  RunRef
	Abort   RunRef
	Retry   RunRef
	// Approve and Reject are read for runs that wait for approval.
	Approve RunRef
	Reject  RunRef
	// Stanza and Bypass are for the gate.
	Stanza policy.StanzaText
	Bypass Bypass
	// Actors says who stands behind each intent, by its name (trigger, abort, …).
	Actors map[string]Actor
	// Faults are values that were not understood; they hold what they would hold.
	Faults document.Faults
}

// Query is the question for an object of a namespace whose annotations say this, and
// whose spec names these policies.
func (in Intent) Query(namespace string, policies []policy.PolicyRef) policy.Query {
	return policy.Query{Namespace: namespace, Own: in.Stanza, Policies: policies, Bypass: in.Bypass.Until, BypassBy: in.Bypass.By}
}

// Skip says which slots do not run.
type Skip struct {
	All   bool
	Until *time.Time
	Next  bool
	Slots []time.Time
}

// Covers says whether a slot is skipped.
func (s Skip) Covers(slot time.Time) bool {
	if s.All || s.Next || s.Until != nil && slot.Before(*s.Until) {
		return true
	}
	for _, at := range s.Slots {
		if at.Equal(slot) {
			return true
		}
	}
	return false
}

// HoldsLabels says whether label requests wait.
func (s Skip) HoldsLabels(now time.Time) bool {
	return s.All || s.Until != nil && now.Before(*s.Until)
}

// TriggerOptions is the JSON of maint.dev/trigger-options.
type TriggerOptions struct {
	Token         string            `json:"token"`
	Reason        string            `json:"reason,omitempty"`
	DryRun        bool              `json:"dryRun,omitempty"`
	OutsideWindow bool              `json:"outsideWindow,omitempty"`
	Parameters    map[string]string `json:"parameters,omitempty"`
	// AsOf names an earlier run of the plan, whose snapshot and parameters run again.
	AsOf string `json:"asOf,omitempty"`
}

// RunRef names a run, or one of its steps as <run>/<step>, that an intent is for.
type RunRef struct {
	Run  string
	Step string
}

// For says whether the intent is for the run.
func (a RunRef) For(run string) bool { return a.Run != "" && a.Run == run }

// Names says whether the step that is named is the one at a path: by all of the path, or by its end.
func (a RunRef) Names(path string) bool {
	return a.Step == path || strings.HasSuffix(path, "/"+a.Step)
}

// Said is the run, or the step of it.
func (a RunRef) Said() string {
	if a.Step != "" {
		return "step " + a.Step + " of run " + a.Run
	}
	return "run " + a.Run
}

// Said is what somebody did, by whom as far as known, and why: aborted by jane
// (unverified): deploy window moved.
func (a Actor) Said(what string) string {
	if who := a.Who(); who != "" {
		what += " by " + who
	}
	if a.Reason != "" {
		what += ": " + a.Reason
	}
	return what
}

// ActorSaid reads back who did something, and why, from what Said put after it.
func ActorSaid(text string) Actor {
	var a Actor
	who, reason, _ := strings.Cut(text, ": ")
	a.Reason = reason
	a.Name, a.Verified = strings.TrimPrefix(who, " by "), true
	if name, marked := strings.CutSuffix(a.Name, Unverified); marked {
		a.Name, a.Verified = name, false
	}
	a.Verified = a.Verified && a.Name != ""
	return a
}

// Unknown stands for who did something where nobody knows that.
const Unknown = "somebody unknown"

// SaidOrUnknown is Said for what somebody has to answer for: where nobody knows who, it says so.
func (a Actor) SaidOrUnknown(what string) string {
	if a.Name == "" {
		a.Name, a.Verified = Unknown, true
	}
	return a.Said(what)
}

// Unverified marks a name that nobody has checked.
const Unverified = " (unverified)"

// Who is the name, marked where nobody has checked it: jane (unverified).
func (a Actor) Who() string {
	if a.Name == "" || a.Verified {
		return a.Name
	}
	return a.Name + Unverified
}

// Actor is who asked for something, and why.
type Actor struct {
	Name     string    `json:"name,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	At       time.Time `json:"at"`
	Verified bool      `json:"verified,omitempty"`
}
