package schedule

import "time"

// Switch is on, off, or on until an instant.
type Switch struct {
	On    bool       `json:"on"`
	Until *time.Time `json:"until,omitempty"`
}

// Holds says whether the switch is on at an instant.
func (s Switch) Holds(at time.Time) bool { return s.On && (s.Until == nil || at.Before(*s.Until)) }
