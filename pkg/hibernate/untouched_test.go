package hibernate

import (
	"fmt"
	"testing"
	"time"
)

// What sleeps and was never put to sleep for certain is left as somebody made it. Where that
// is not known it was our doing: an agent may have died after the request, or lost its reply.
func TestWhoseDoingItIsThatAResourceSleeps(t *testing.T) {
	const refused, unclear = true, false
	for name, c := range map[string]struct {
		answers []bool // to each request to put it to sleep
		theirs  bool
	}{
		"refused":                         {[]bool{refused}, true},
		"refused each time":               {[]bool{refused, refused, refused}, true},
		"no answer":                       {[]bool{unclear}, false},
		"no answer, and refused then":     {[]bool{unclear, refused}, false},
		"refused, and no answer then":     {[]bool{refused, unclear}, false},
		"refused once more in the end":    {[]bool{refused, unclear, refused}, false},
		"no answer however often":         {[]bool{unclear, unclear}, false},
		"refused where no answer was due": {[]bool{refused, refused, unclear}, false},
	} {
		for _, replicas := range []int{0, 2} { // it is stopped, or on its way
			t.Run(fmt.Sprint(name, " ", replicas), func(t *testing.T) {
				now := time.Date(2026, 3, 2, 20, 0, 0, 0, time.UTC)
				var r Record
				for _, certain := range c.answers {
					now = now.Add(time.Minute)
					step := r.ToSleep([]Observation{sight(3, 3)}, now)
					if len(step.Due) != 1 || step.Record.Resources[0].Untouched {
						t.Fatalf("it is asked as %+v", step.Record.Resources)
					}
					was := r
					if r = step.Record; certain {
						r = step.Untouched(was, []string{"web"})
					}
				}
				seen := []Observation{sight(0, replicas)}
				for op, step := range map[Operation]Step{Shutdown: r.ToSleep(seen, now), Wake: r.ToWake(seen, now)} {
					if left := step.Record.Resources[0].Left; (left == stoppedBefore) != c.theirs || c.theirs && len(step.Due) > 0 {
						t.Errorf("%s: left %q, due %d", op, left, len(step.Due))
					}
				}
				if step := r.ToWake([]Observation{sight(3, 3)}, now); step.Done != c.theirs {
					t.Errorf("what may still be done is over: %t, %+v", step.Done, step.Record.Resources)
				}
				if step := r.ToWake([]Observation{sight(3, 3)}, now.Add(LateRequest)); step.Record.Resources[0].RestoredAt == nil {
					t.Errorf("it never slept, and is %+v", step.Record.Resources)
				}
			})
		}
	}
}

// Only of what was seen awake, and of which nothing was done before, it is certain that it is as it was.
func TestWhatIsMarkedAsUntouched(t *testing.T) {
	awake, onItsWay := sight(3, 3), sight(0, 2)
	for name, c := range map[string]struct {
		before []Resource
		due    []Due
		ids    []string
		want   bool
	}{
		"refused":                           {nil, []Due{{Seen: awake}}, []string{"web"}, true},
		"refused once more":                 {[]Resource{{ID: "web", UID: "u1", Untouched: true}}, []Due{{Seen: awake}}, []string{"web"}, true},
		"refused after something was done":  {[]Resource{{ID: "web", UID: "u1"}}, []Due{{Seen: awake}}, []string{"web"}, false},
		"refused while it was on its way":   {nil, []Due{{Seen: onItsWay}}, []string{"web"}, false},
		"not refused":                       {nil, []Due{{Seen: awake}}, nil, false},
		"another is refused":                {nil, []Due{{Seen: awake}}, []string{"db"}, false},
		"refused, and nothing was asked":    {nil, nil, []string{"web"}, false},
		"refused, and another of that name": {nil, []Due{{Seen: sight(3, 3, uid("u2"))}}, []string{"web"}, false},
	} {
		s := Step{Record: Record{Resources: []Resource{{ID: "web", UID: "u1"}}}}
		for _, d := range c.due {
			d.Resource = Resource{ID: d.Seen.ID, UID: d.Seen.UID}
			s.Due = append(s.Due, d)
		}
		if got := s.Untouched(Record{Resources: c.before}, c.ids).Resources[0].Untouched; got != c.want || s.Record.Resources[0].Untouched {
			t.Errorf("%s: %t", name, got)
		}
	}
}
