package schedule

import "time"

// Pause is on, off, or on until an instant.
type Pause struct {
	On    bool       `json:"on"`
	Until *time.Time `json:"until,omitempty"`
}

// Holds says whether the switch is on at an instant.
func (s Pause) Holds(at time.Time) bool { return s.On && (s.Until == nil || at.Before(*s.Until)) }
