package plan

import "time"

// Intent is what people ask of a plan by annotations, already read.
type Intent struct {
	Pause Switch
	Skip  Skip
	Token string
	Asked TriggerOptions // counts only where its token is Token
	// Unclear says that the options could not be read: a trigger waits, for they
	// may say that it is to be a dry run.
	Unclear bool
	Resume  Ask
	Abort   Ask
	Retry   Ask
	// Approve and Reject are read for runs that wait for approval.
	Approve Ask
	Reject  Ask
	// Stanza and Bypass are for the gate.
	Stanza StanzaText
	Bypass Bypass
	// Actors says who stands behind each intent, by its name (trigger, abort, …).
	Actors map[string]Actor
	// Faults are values that were not understood; they hold what they would hold.
	Faults Faults
}

// Query is the question for an object of a namespace whose annotations say this, and
// whose spec names these policies.
func (in Intent) Query(namespace string, policies []PolicyRef) Question {
	return Question{Namespace: namespace, Own: in.Stanza, Policies: policies, Bypass: in.Bypass.Until}
}

// Switch is on, off, or on until an instant.
type Switch struct {
	On    bool       `json:"on"`
	Until *time.Time `json:"until,omitempty"`
}

// Holds says whether the switch is on at an instant.
func (s Switch) Holds(at time.Time) bool { return s.On && (s.Until == nil || at.Before(*s.Until)) }

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
}

// Ask names a run, or one of its steps as <run>/<step>, that an intent is for.
type Ask struct {
	Run  string
	Step string
}

// For says whether the intent is for the run.
func (a Ask) For(run string) bool { return a.Run != "" && a.Run == run }
