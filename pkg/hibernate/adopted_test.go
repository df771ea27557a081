package hibernate

import (
	"fmt"
	"testing"
	"time"
)

// What sleeps is known by its uid, and out of a backup it has another.
func TestWhatWasMadeAnewWithItsPlanIsAdopted(t *testing.T) {
	then := time.Date(2026, 3, 4, 1, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		recorded []Resource
		seen     []Observation
		want     string
	}{
		"it sleeps":                           {[]Resource{{ID: "web", UID: "1"}}, []Observation{{ID: "web", UID: "2", Asleep: true}}, "[2]"},
		"it is on its way":                    {[]Resource{{ID: "web", UID: "1"}}, []Observation{{ID: "web", UID: "2"}}, "[2]"},
		"it runs: somebody else's":            {[]Resource{{ID: "web", UID: "1"}}, []Observation{{ID: "web", UID: "2", Awake: true}}, "[1]"},
		"it goes":                             {[]Resource{{ID: "web", UID: "1"}}, []Observation{{ID: "web", UID: "2", Gone: true}}, "[1]"},
		"what slept is still there":           {[]Resource{{ID: "web", UID: "1"}}, []Observation{{ID: "web", UID: "1", Asleep: true}, {ID: "web", UID: "2", Asleep: true}}, "[1]"},
		"another name":                        {[]Resource{{ID: "web", UID: "1"}}, []Observation{{ID: "db", UID: "2", Asleep: true}}, "[1]"},
		"it is recorded by itself":            {[]Resource{{ID: "web", UID: "1"}, {ID: "web", UID: "2"}}, []Observation{{ID: "web", UID: "2", Asleep: true}}, "[1 2]"},
		"it is recorded by itself, and first": {[]Resource{{ID: "web", UID: "2"}, {ID: "web", UID: "1"}}, []Observation{{ID: "web", UID: "2", Asleep: true}}, "[2 1]"},
		"it was left alone":                   {[]Resource{{ID: "web", UID: "1", Left: "x"}}, []Observation{{ID: "web", UID: "2", Asleep: true}}, "[1]"},
		"it was awake again":                  {[]Resource{{ID: "web", UID: "1", RestoredAt: &then}}, []Observation{{ID: "web", UID: "2", Asleep: true}}, "[1]"},
		"its world knows names alone":         {[]Resource{{ID: "web"}}, []Observation{{ID: "web", UID: "2", Asleep: true}}, "[]"},
		"two of them, and one has its own":    {[]Resource{{ID: "web", UID: "1"}, {ID: "db", UID: "3"}}, []Observation{{ID: "web", UID: "2", Asleep: true}, {ID: "db", UID: "3"}}, "[2 3]"},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprint(c.recorded)
			var got []string
			for _, r := range (Record{Resources: c.recorded}).Adopted(c.seen).Resources {
				got = append(got, r.UID)
			}
			if fmt.Sprint(got) != c.want || fmt.Sprint(c.recorded) != before {
				t.Errorf("%v, want %s", got, c.want)
			}
		})
	}
}

func TestWhatMayStillComeIsNotGone(t *testing.T) {
	now := time.Date(2026, 3, 4, 1, 0, 0, 0, time.UTC)
	r := Record{Resources: []Resource{{ID: "web", UID: "u1", AsleepAt: &now}, {ID: "db", UID: "2", Left: goneForGood}}}
	if s := r.ToWake([]Observation{sight(0, 0)}, now).Expecting(r, now, now.Add(time.Minute)); s.Record.Resources[0].WokenAt == nil || !s.Again.IsZero() {
		t.Errorf("what has come is waited for: %s, again %s", said(s), s.Again)
	}
	for name, c := range map[string]struct {
		until time.Time
		left  string
		done  bool
		again time.Time
	}{
		"it is expected": {now.Add(time.Minute), "", false, now.Add(time.Minute)},
		"no more":        {now, goneForGood, true, time.Time{}},
		"never":          {time.Time{}, goneForGood, true, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range []Step{r.ToWake(nil, now), r.ToSleep([]Observation{sight(0, 0, gone)}, now)} {
				s = s.Expecting(r, now, c.until)
				if s.Record.Resources[0].Left != c.left || s.Record.Resources[1].Left != goneForGood || s.Done != c.done || !s.Again.Equal(c.again) {
					t.Errorf("it is %s, again %s", said(s), s.Again)
				}
			}
		})
	}
}
