package schedule

import "time"

// Pause is on, off, or on until an instant.
type Pause struct {
	On    bool       `json:"on"`
	Until *time.Time `json:"until,omitempty"`
	Of    string     `json:"-"` // what it is of, where that stands above: "namespace shop"
	By    string     `json:"-"` // who paused and why, as it follows a sentence: " by jane: CHG-1"
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

// Holds says whether the switch is on at an instant.
func (s Pause) Holds(at time.Time) bool { return s.On && (s.Until == nil || at.Before(*s.Until)) }
