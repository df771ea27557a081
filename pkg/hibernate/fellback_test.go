package hibernate

import (
	"slices"
	"testing"
	"time"
)

// What comes up and sleeps again has fallen back, and that is told once for each attempt.
func TestWhatFallsBackIsToldApartFromWhatHasNotBegun(t *testing.T) {
	now := time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)
	up, down := Observation{ID: "a", UID: "a", Starting: true}, Observation{ID: "a", UID: "a", Asleep: true}
	stopping, again := Observation{ID: "a", UID: "a"}, Observation{ID: "a", UID: "a", Asleep: true, Starting: true}
	for name, c := range map[string]struct {
		seen []Observation // one after the other
		want []bool        // whether it fell back
	}{
		"it sleeps until it is started":            {[]Observation{down, down, up, up}, []bool{false, false, false, false}},
		"it falls back, and comes up":              {[]Observation{down, up, down, up}, []bool{false, false, true, false}},
		"it falls back twice":                      {[]Observation{down, up, down, up, down}, []bool{false, false, true, false, true}},
		"it was still going down":                  {[]Observation{stopping, down, up}, []bool{false, false, false}},
		"it fell back between two looks":           {[]Observation{down, again}, []bool{false, true}},
		"after a fall it sleeps until it is begun": {[]Observation{down, up, down, down}, []bool{false, false, true, false}},
	} {
		r := Record{Operation: Wake, Resources: []Resource{{ID: "a", UID: "a", AsleepAt: &now}}}
		var got []bool
		for _, o := range c.seen {
			step := r.ToWake([]Observation{o}, now)
			r = step.Record
			got = append(got, step.Due[0].FellBack)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
