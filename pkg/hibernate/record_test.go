package hibernate

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// sight is one look at the resource web, of which so many replicas are wanted and running.
func sight(replicas, running int, edit ...func(*Observation)) Observation {
	before, _ := json.Marshal(replicas)
	o := Observation{ID: "web", UID: "u1", Asleep: replicas == 0 && running == 0, Awake: replicas > 0, Ready: replicas > 0 && running == replicas, Before: before}
	for _, e := range edit {
		e(&o)
	}
	return o
}

func by(manager string) func(*Observation) { return func(o *Observation) { o.RevivedBy = manager } }

func often(o *Observation) { o.Often = true }

func late(o *Observation) { o.Lag = 2 * time.Minute }

func uid(u string) func(*Observation) { return func(o *Observation) { o.UID = u } }

func gone(o *Observation) { o.Gone = true }

// look is one pass, and what it comes to: what is due, and what is recorded.
type look struct {
	op    Operation
	after time.Duration // since the evening
	seen  []Observation
	want  string
}

func sees(after time.Duration, want string, seen ...Observation) look {
	return look{Shutdown, after, seen, want}
}

func wakes(after time.Duration, want string, seen ...Observation) look {
	return look{Wake, after, seen, want}
}

// said is "due a b, web was 3 asleep woken restored; …".
func said(s Step) string {
	var due, all []string
	for _, d := range s.Due {
		due = append(due, d.ID)
	}
	for _, r := range s.Record.Resources {
		line := r.ID + " was " + string(r.Before)
		if r.AsleepAt != nil {
			line += " asleep"
		}
		if r.WokenAt != nil {
			line += " woken"
		}
		if r.RestoredAt != nil {
			line += " restored"
		}
		if r.Revived > 0 {
			line += fmt.Sprintf(" revived %d", r.Revived)
		}
		if r.Left != "" {
			line += " left: " + r.Left
		}
		all = append(all, line)
	}
	text := strings.Join(all, "; ")
	if len(due) > 0 {
		text = "due " + strings.Join(due, " ") + ", " + text
	}
	if s.Done {
		text = "done, " + text
	}
	return strings.TrimSuffix(text, ", ")
}

func TestWhatIsRecordedOfAResource(t *testing.T) {
	const minute, hour = time.Minute, time.Hour
	for name, looks := range map[string][]look{
		"it is recorded, put to sleep, and woken": {
			sees(0, "due web, web was 3", sight(3, 3)), sees(1, "due web, web was 3", sight(0, 2)), sees(2, "done, web was 3 asleep", sight(0, 0)),
			wakes(hour, "due web, web was 3 asleep woken", sight(0, 0)), wakes(hour+1, "due web, web was 3 asleep woken", sight(3, 1)), wakes(hour+2, "done, web was 3 asleep woken restored", sight(3, 3)),
		},
		"what sleeps already is nobody's":  {sees(0, "done", sight(0, 0))},
		"what is on its way is waited for": {sees(0, "", sight(0, 2)), sees(1, "done", sight(0, 0))},
		"what is gone is not recorded":     {sees(0, "done", sight(3, 3, gone))},
		"what is left out is not recorded": {sees(0, "done", sight(3, 3, func(o *Observation) { o.LeftOut = "spot" }))},
		"what is recorded sleeps, though it is left out by now": {
			sees(0, "due web, web was 3", sight(3, 3)), sees(1, "due web, web was 3", sight(3, 3, func(o *Observation) { o.LeftOut = "spot" })),
		},
		"its world knows it by its name alone": {
			sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 asleep", sight(0, 0, uid(""))),
		},
		"another of the same name, and why it was left stays said": {
			sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 asleep", sight(0, 0)), sees(2, "done, web was 3 asleep left: somebody changed it while it slept", sight(5, 5)),
			sees(3, "due web, web was 3 asleep left: somebody changed it while it slept; web was 7", sight(7, 7, uid("u2"))),
		},
		"another of the same name after it was awake again": {
			sees(0, "due web, web was 3", sight(3, 3)), wakes(minute, "done, web was 3 restored", sight(3, 3)), sees(minute+1, "due web, web was 3 restored; web was 7", sight(7, 7, uid("u2"))),
		},
		"somebody changed it while it slept, and it is deleted then": {
			sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 asleep", sight(0, 0)), sees(2, "done, web was 3 asleep left: somebody changed it while it slept", sight(5, 5)),
			wakes(3, "done, web was 3 asleep left: somebody changed it while it slept", sight(0, 0, gone)),
		},
		"one that is made meanwhile sleeps, too":   {sees(0, "done"), sees(1, "due web, web was 2", sight(2, 2))},
		"it was changed before anything was done":  {sees(0, "due web, web was 3", sight(3, 3)), sees(1, "due web, web was 5", sight(5, 3))},
		"a change on the way is nobody's original": {sees(0, "due web, web was 3", sight(3, 3)), sees(1, "due web, web was 3", sight(0, 3))},
		"the spelling is no change":                {sees(0, "due web, web was {\"a\":1}", sight(3, 3, spelled(`{"a":1}`))), sees(1, "due web, web was {\"a\":1}", sight(3, 3, spelled(`{"a": 1}`)))},
		"it cannot be looked at when it is to wake": {
			sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 asleep", sight(0, 0)), wakes(2, "due web, web was 3 asleep", Observation{ID: "web", UID: "u1", Unseen: errors.New("no answer")}),
			wakes(3, "due web, web was 3 asleep woken", sight(0, 0)), wakes(4, "done, web was 3 asleep woken restored", sight(3, 3)),
		},
		"it never slept, and is not ready when it is to wake": {sees(0, "due web, web was 3", sight(3, 3)), wakes(minute, "done, web was 3 restored", sight(3, 1))},
		"it wakes while it falls asleep, and takes a while":   {sees(0, "due web, web was 3", sight(3, 3)), wakes(1, "due web, web was 3 woken", sight(0, 2)), wakes(2, "due web, web was 3 woken", sight(3, 1)), wakes(3, "done, web was 3 woken restored", sight(3, 3))},
		"it never slept when it is to wake":                   {sees(0, "due web, web was 3", sight(3, 3)), wakes(minute, "done, web was 3 restored", sight(3, 3))},
		"the request to sleep arrives when it is to wake":     {sees(0, "due web, web was 3", sight(3, 3)), wakes(minute-1, "web was 3", sight(3, 3)), wakes(minute, "due web, web was 3 woken", sight(0, 0)), wakes(minute+1, "done, web was 3 woken restored", sight(3, 3))},
		"the request to wake arrives when it is to sleep": {
			sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 asleep", sight(0, 0)), wakes(2, "due web, web was 3 asleep woken", sight(0, 0)),
			sees(3, "web was 3 asleep woken", sight(0, 0)), sees(4, "due web, web was 3", sight(3, 1)), sees(5, "done, web was 3 asleep", sight(0, 0)),
		},
		"it wakes while it falls asleep": {sees(0, "due web, web was 3", sight(3, 3)), wakes(1, "due web, web was 3 woken", sight(0, 2)), wakes(2, "done, web was 3 woken restored", sight(3, 3))},
		"it does not show yet that it was asked to sleep": {
			sees(0, "due web, web was 3", sight(3, 3, late)), wakes(1, "web was 3", sight(3, 3, late)), wakes(2, "due web, web was 3 woken", sight(0, 2, late)), wakes(3, "done, web was 3 woken restored", sight(3, 3, late)),
		},
		"it is asked again while it does not show": {
			sees(0, "due web, web was 3", sight(3, 3, late)), sees(100*time.Second, "due web, web was 3", sight(3, 3, late)), wakes(140*time.Second, "web was 3", sight(3, 3, late)),
		},
		"it was asked to sleep long ago, and did not": {sees(0, "due web, web was 3", sight(3, 3, late)), wakes(2*minute, "done, web was 3 restored", sight(3, 3, late))},
		"something put it back, and it does not show that it was asked again": {
			sees(0, "due web, web was 3", sight(3, 3, late)), sees(1, "done, web was 3 asleep", sight(0, 0, late)),
			sees(hour, "due web, web was 3 revived 1", sight(3, 3, by("AWS"), often, late)), wakes(hour+1, "web was 3 revived 1", sight(3, 3, by("AWS"), often, late)),
		},
		"it does not show yet that it was asked to wake": {
			sees(0, "due web, web was 3", sight(3, 3, late)), sees(1, "done, web was 3 asleep", sight(0, 0, late)), wakes(2, "due web, web was 3 asleep woken", sight(0, 0, late)),
			sees(3, "web was 3 asleep woken", sight(0, 0, late)), sees(4, "due web, web was 3", sight(3, 1, late)), sees(5, "done, web was 3 asleep", sight(0, 0, late)),
		},
		"its waking never came, and it showed that": {
			sees(0, "due web, web was 3", sight(3, 3, late)), sees(1, "done, web was 3 asleep", sight(0, 0, late)), wakes(2, "due web, web was 3 asleep woken", sight(0, 0, late)),
			sees(2+2*minute, "done, web was 3 asleep", sight(0, 0, late)),
		},
		"it sleeps again while it wakes":         {sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 asleep", sight(0, 0)), wakes(2, "due web, web was 3 asleep woken", sight(0, 0)), sees(3, "due web, web was 3", sight(3, 1)), sees(4, "done, web was 3 asleep", sight(0, 0))},
		"its waking never came":                  {sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 asleep", sight(0, 0)), wakes(2, "due web, web was 3 asleep woken", sight(0, 0)), sees(minute+2, "done, web was 3 asleep", sight(0, 0)), wakes(minute+3, "due web, web was 3 asleep woken", sight(0, 0))},
		"somebody stopped it after it was woken": {sees(0, "due web, web was 3", sight(3, 3)), wakes(minute, "done, web was 3 restored", sight(3, 3)), sees(minute+1, "done, web was 3 restored left: somebody stopped it", sight(0, 0)), wakes(minute+2, "done, web was 3 restored left: somebody stopped it", sight(0, 0))},
		"somebody changed it while it slept":     {sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 asleep", sight(0, 0)), sees(2, "done, web was 3 asleep left: somebody changed it while it slept", sight(5, 5)), wakes(3, "done, web was 3 asleep left: somebody changed it while it slept", sight(5, 5))},
		"a run changes it while it sleeps, and undoes that": {
			sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 asleep", sight(0, 0)), sees(2, "done, web was 3 asleep left: somebody changed it while it slept", sight(5, 5)),
			sees(3, "done, web was 3 asleep left: somebody changed it while it slept", sight(0, 2)), sees(4, "done, web was 3 asleep", sight(0, 0)),
			wakes(5, "due web, web was 3 asleep woken", sight(0, 0)), wakes(6, "done, web was 3 asleep woken restored", sight(3, 3)),
		},
		"a run undoes that right before it wakes": {
			sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 asleep", sight(0, 0)), sees(2, "done, web was 3 asleep left: somebody changed it while it slept", sight(5, 5)),
			wakes(3, "due web, web was 3 asleep woken", sight(0, 5)), wakes(4, "due web, web was 3 asleep woken", sight(3, 1)), wakes(5, "done, web was 3 asleep woken restored", sight(3, 3)),
		},
		"a run undoes that only when it has woken": {
			sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 asleep", sight(0, 0)), sees(2, "done, web was 3 asleep left: somebody changed it while it slept", sight(5, 5)),
			wakes(3, "done, web was 3 asleep left: somebody changed it while it slept", sight(5, 5)), wakes(4, "due web, web was 3 asleep woken", sight(0, 0)),
		},
		"a run changed it before the sleep, and holds it at zero until then": {
			sees(0, "done", sight(0, 0)), sees(1, "due web, web was 3", sight(3, 3)), sees(2, "done, web was 3 asleep", sight(0, 0)), wakes(3, "due web, web was 3 asleep woken", sight(0, 0)),
		},
		"a run changed it before the sleep, and undoes that before it wakes": {
			sees(0, "due web, web was 5", sight(5, 5)), sees(1, "done, web was 5 asleep", sight(0, 0)), sees(2, "done, web was 5 asleep left: somebody changed it while it slept", sight(3, 3)), wakes(3, "done, web was 5 asleep left: somebody changed it while it slept", sight(3, 3)),
		},
		"somebody changed it, and it cannot be looked at when it is to wake": {
			sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 asleep", sight(0, 0)), sees(2, "done, web was 3 asleep left: somebody changed it while it slept", sight(5, 5)),
			wakes(3, "due web, web was 3 asleep", Observation{ID: "web", UID: "u1", Unseen: errors.New("no answer")}), wakes(4, "done, web was 3 asleep left: somebody changed it while it slept", sight(5, 5)),
		},
		"somebody did so right before it wakes":       {sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 asleep", sight(0, 0)), wakes(2, "done, web was 3 asleep left: somebody changed it while it slept", sight(5, 5))},
		"somebody woke it to what it was":             {sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 asleep", sight(0, 0)), wakes(2, "due web, web was 3 asleep", sight(3, 1)), wakes(3, "done, web was 3 asleep restored", sight(3, 3))},
		"it is deleted while it sleeps":               {sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 left: it is gone", sight(0, 0, gone)), wakes(2, "done, web was 3 left: it is gone", sight(0, 0, gone))},
		"it is not found when it is to wake":          {sees(0, "due web, web was 3", sight(3, 3)), wakes(1, "done, web was 3 left: it is gone")},
		"another of the same name is another":         {sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 asleep", sight(0, 0)), sees(2, "due web, web was 3 asleep left: it is gone; there is another of that name; web was 7", sight(7, 7, uid("u2"))), wakes(3, "due web, web was 3 asleep left: it is gone; there is another of that name; web was 7 woken", sight(0, 0, uid("u2")))},
		"another of the same name when it is to wake": {sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 asleep", sight(0, 0)), wakes(2, "done, web was 3 asleep left: it is gone", sight(7, 7, uid("u2")))},
		"a controller that puts it back, three times with growing pauses": {
			sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 asleep", sight(0, 0)),
			sees(hour, "due web, web was 3 revived 1", sight(3, 3, by("flux"))), sees(hour+1, "done, web was 3 asleep revived 1", sight(0, 0)),
			sees(hour+30*time.Second, "web was 3 asleep revived 1", sight(3, 3, by("flux"))), sees(hour+time.Minute, "due web, web was 3 revived 2", sight(3, 3, by("flux"))),
			sees(hour+2*time.Minute, "done, web was 3 asleep revived 2", sight(0, 0)), sees(hour+5*time.Minute, "web was 3 asleep revived 2", sight(3, 3, by("flux"))),
			sees(hour+6*time.Minute, "due web, web was 3 revived 3", sight(3, 3, by("flux"))), sees(hour+7*time.Minute, "done, web was 3 asleep revived 3", sight(0, 0)),
			sees(2*hour, "done, web was 3 asleep revived 3 left: flux puts it back again and again", sight(3, 3, by("flux"))),
			wakes(3*hour, "done, web was 3 asleep revived 3 left: flux puts it back again and again", sight(3, 3)),
			wakes(3*hour+1, "due web, web was 3 asleep woken revived 3", sight(0, 0)),
		},
		"what it puts back is what wakes": {
			sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 asleep", sight(0, 0)),
			sees(hour, "due web, web was 3 revived 1", sight(4, 4, by("flux"))), sees(hour+1, "due web, web was 4 revived 1", sight(4, 4, by("flux"))),
		},
		"what does so by its nature is never given in to": {
			sees(0, "due web, web was 3", sight(3, 3)), sees(1, "done, web was 3 asleep", sight(0, 0)),
			sees(1*hour, "due web, web was 3 revived 1", sight(3, 3, by("AWS"), often)), sees(1*hour+1, "done, web was 3 asleep revived 1", sight(0, 0)),
			sees(3*hour, "due web, web was 3 revived 2", sight(3, 3, by("AWS"), often)), sees(3*hour+1, "done, web was 3 asleep revived 2", sight(0, 0)),
			sees(5*hour, "due web, web was 3 revived 3", sight(3, 3, by("AWS"), often)), sees(5*hour+1, "done, web was 3 asleep revived 3", sight(0, 0)),
			sees(7*hour, "due web, web was 3 revived 4", sight(3, 3, by("AWS"), often)), sees(7*hour+1, "done, web was 3 asleep revived 4", sight(0, 0)),
		},
	} {
		t.Run(name, func(t *testing.T) { seenBy(t, Record{Plan: "nights", Target: "apps"}, looks) })
	}
}

// seenBy is a record after several looks, each of which comes to what it wants.
func seenBy(t *testing.T, r Record, looks []look) Record {
	t.Helper()
	for i, l := range looks {
		step := r.ToSleep(l.seen, evening.Add(l.after))
		if l.op == Wake {
			step = r.ToWake(l.seen, evening.Add(l.after))
		}
		if got := said(step); got != l.want {
			t.Fatalf("look %d: %q, want %q", i+1, got, l.want)
		}
		r = step.Record
	}
	return r
}

func spelled(text string) func(*Observation) {
	return func(o *Observation) { o.Before = json.RawMessage(text) }
}

// While the next attempt is not due, it says when it is.
// While something that put it back keeps it awake, a resource does not sleep, and its hours do
// not count.
func TestHoursEndWhenAResourceIsSeenAwake(t *testing.T) {
	const hour = time.Hour
	putBack := []look{
		sees(0, "due web, web was 3", sight(3, 3)), sees(0, "done, web was 3 asleep", sight(0, 0)),
		sees(2*hour, "due web, web was 3 revived 1", sight(3, 3, by("flux"))), sees(2*hour+10*time.Second, "done, web was 3 asleep revived 1", sight(0, 0)),
		sees(2*hour+20*time.Second, "web was 3 asleep revived 1", sight(3, 3, by("flux"))), sees(2*hour+40*time.Second, "web was 3 asleep revived 1", sight(3, 3, by("flux"))),
	}
	const before = 2*hour + 10*time.Second // that it slept
	for name, c := range map[string]struct {
		then   []look
		asleep int
		slept  time.Duration // at the fourth hour
	}{
		"it is awake still":         {nil, 0, before},
		"it is put to sleep again":  {[]look{sees(2*hour+time.Minute, "due web, web was 3 revived 2", sight(3, 3, by("flux"))), sees(3*hour, "done, web was 3 asleep revived 2", sight(0, 0))}, 1, before + hour},
		"what put it back stops it": {[]look{sees(2*hour+50*time.Second, "done, web was 3 asleep revived 1", sight(0, 0)), sees(3*hour, "done, web was 3 asleep revived 1", sight(0, 0))}, 1, before + 2*hour - 50*time.Second},
		"it stays awake to the end": {[]look{wakes(3*hour, "done, web was 3 asleep restored revived 1", sight(3, 3))}, 0, before},
		"it has to be woken":        {[]look{wakes(3*hour, "due web, web was 3 asleep woken revived 1", sight(0, 0))}, 0, before},
		"a run changes it and back": {[]look{sees(3*hour, "done, web was 3 asleep revived 1 left: somebody changed it while it slept", sight(5, 5)), sees(3*hour+30*time.Minute, "done, web was 3 asleep revived 1", sight(0, 0))}, 1, before + 30*time.Minute},
		"somebody changes it":       {[]look{sees(3*hour, "done, web was 3 asleep revived 1 left: somebody changed it while it slept", sight(5, 5))}, 0, before},
	} {
		t.Run(name, func(t *testing.T) {
			r := seenBy(t, Record{Plan: "nights", Target: "apps"}, append(slices.Clone(putBack), c.then...))
			if got := r.Resources[0].SleptFor(evening.Add(4 * hour)); got != c.slept || r.Asleep() != c.asleep {
				t.Errorf("%d are asleep, and it slept %s, want %d and %s", r.Asleep(), got, c.asleep, c.slept)
			}
			if got := r.Resources[0].RevivedNow(); got != (len(c.then) == 0) {
				t.Errorf("that it is put back is %t", got)
			}
		})
	}
}

func TestAPauseSaysWhenItEnds(t *testing.T) {
	r := Record{Resources: []Resource{{ID: "web", UID: "u1", Before: json.RawMessage("3"), AsleepAt: &evening, Revived: 1, NotBefore: new(evening.Add(time.Minute))}}}
	if s := r.ToSleep([]Observation{sight(3, 3, by("flux"))}, evening); !s.Again.Equal(evening.Add(time.Minute)) || len(s.Due) > 0 {
		t.Errorf("again at %s, due %v", s.Again, s.Due)
	}
}

// What is recorded is handed on, and never written into.
func TestALookLeavesTheRecordAsItWas(t *testing.T) {
	r := Record{Resources: []Resource{{ID: "web", UID: "u1", Before: json.RawMessage("3")}}}
	r.ToSleep([]Observation{sight(0, 0)}, evening)
	r.ToWake([]Observation{sight(0, 0)}, evening)
	if got := r.Resources[0]; got.AsleepAt != nil || got.WokenAt != nil {
		t.Errorf("it became %+v", got)
	}
}

func TestWhatIsLeftOutIsSaid(t *testing.T) {
	var seen []Observation
	for i := range 7 {
		seen = append(seen, Observation{ID: fmt.Sprint("i-", i), Awake: true, LeftOut: "a spot instance"})
	}
	r := Record{Operation: Shutdown}.ToSleep(seen, evening).Record.Passed(true, "", 3, evening)
	want := "i-0: a spot instance; i-1: a spot instance; i-2: a spot instance; i-3: a spot instance; i-4: a spot instance; and 2 more"
	if r.Message != want {
		t.Errorf("it says %q", r.Message)
	}
}

func TestOfWhatIsLeftOutOnlyTheFirstAreRecorded(t *testing.T) {
	for n, want := range map[int]string{mostLeftOut: "20, the last i-19: spot", mostLeftOut + 1: "21, the last and others", mostLeftOut + 5: "21, the last and others"} {
		var seen []Observation
		for i := range n {
			seen = append(seen, Observation{ID: fmt.Sprint("i-", i), Awake: true, LeftOut: "spot"})
		}
		out := Record{Operation: Shutdown}.ToSleep(seen, evening).Record.LeftOut
		if got := fmt.Sprintf("%d, the last %s", len(out), out[len(out)-1]); got != want {
			t.Errorf("of %d: %s, want %s", n, got, want)
		}
	}
}

// Of something that sleeps somebody may start a part, or all: that is said as long as it runs, and
// does not count as asleep from when it is seen until it is stopped again.
func TestWhatSomebodyStartsOfWhatSleepsIsSaidAndNotCounted(t *testing.T) {
	const hour = time.Hour
	running := func(asleep float64) Observation {
		return sight(0, 0, func(o *Observation) {
			o.StartedInPart, o.Units = "somebody started some", map[string]float64{}
			if asleep > 0 {
				o.Units["m5.large"] = asleep
			}
		})
	}
	type seen struct {
		after time.Duration
		Observation
	}
	for name, c := range map[string]struct {
		seen         []seen
		hours, units float64 // at the tenth hour
		asleep       int
	}{
		"nothing":                   {[]seen{{9 * hour, sight(0, 0)}}, 10, 40, 1},
		"one, late":                 {[]seen{{9 * hour, running(3)}}, 10, 9*4 + 3, 1},
		"one, and stops it again":   {[]seen{{1 * hour, running(3)}, {2 * hour, running(3)}, {5 * hour, sight(0, 0)}}, 10, 4 + 4*3 + 5*4, 1},
		"one after the other":       {[]seen{{1 * hour, running(3)}, {2 * hour, running(2)}}, 10, 4 + 3 + 8*2, 1},
		"all":                       {[]seen{{4 * hour, running(0)}, {6 * hour, running(0)}}, 4, 16, 0},
		"all, and stops them again": {[]seen{{4 * hour, running(0)}, {5 * hour, sight(0, 0)}}, 9, 36, 1},
		"all, and stops one again":  {[]seen{{4 * hour, running(0)}, {5 * hour, running(1)}}, 9, 16 + 5, 1},
		"one, and then all":         {[]seen{{1 * hour, running(3)}, {2 * hour, running(0)}}, 2, 4 + 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := Record{Operation: Shutdown, Resources: []Resource{{ID: "web", UID: "u1", Before: json.RawMessage("3"), AsleepAt: &evening, Units: map[string]float64{"m5.large": 4}}}}
			for _, one := range c.seen {
				step := r.ToSleep([]Observation{one.Observation}, evening.Add(one.after))
				r = step.Record.Passed(step.Done, "", 3, evening)
				if got := r.Resources[0]; !step.Done || len(step.Due) > 0 || got.Left != "" || (r.Message == "web: somebody started some") != (one.StartedInPart != "") {
					t.Errorf("it says %q of %+v", r.Message, step)
				}
			}
			res := r.Resources[0]
			for _, now := range []time.Time{evening.Add(10 * hour), evening.Add(12 * hour)} {
				if now.After(evening.Add(10 * hour)) { // nothing is counted from the morning on
					res.WokenAt = new(evening.Add(10 * hour))
				}
				if got, units := res.SleptFor(now).Hours(), res.UnitSeconds(now)["m5.large"]/3600; got != c.hours || units != c.units || r.Asleep() != c.asleep || res.Units["m5.large"] != 4 {
					t.Errorf("%d sleep, and slept %v hours and %v of the units, want %d, %v and %v: %+v", r.Asleep(), got, units, c.asleep, c.hours, c.units, res)
				}
			}
			if step := r.ToWake([]Observation{running(2)}, evening.Add(10*hour)); len(step.Due) != 1 {
				t.Errorf("it does not wake: %+v", step)
			}
		})
	}
}

// What has slept stays counted by the units that it had then.
func TestWhatIsPutToSleepAnewWithOtherUnitsCountsEachForItsTime(t *testing.T) {
	cpu := func(n float64) func(*Observation) {
		return func(o *Observation) { o.Units = map[string]float64{"cpu": n} }
	}
	r := seenBy(t, Record{Plan: "nights", Target: "apps"}, []look{
		sees(0, "due web, web was 3", sight(3, 3, cpu(1))), sees(0, "done, web was 3 asleep", sight(0, 0)),
		wakes(time.Hour, "due web, web was 3 asleep woken", sight(0, 0)), wakes(time.Hour, "done, web was 3 asleep woken restored", sight(3, 3)),
		sees(2*time.Hour, "due web, web was 6", sight(6, 6, cpu(2))), sees(2*time.Hour, "done, web was 6 asleep", sight(0, 0)),
	})
	if got := r.Resources[0].UnitSeconds(evening.Add(3 * time.Hour)); got["cpu"] != 3600+2*3600 {
		t.Errorf("it counts %v", got)
	}
}

func TestHowManySleep(t *testing.T) {
	r := Record{Resources: []Resource{{ID: "a"}, {ID: "b", Left: "gone"}, {ID: "c", RestoredAt: &evening}, {ID: "d", AsleepAt: &evening}}}
	if n := r.Sleeping(); n != 2 {
		t.Errorf("%d sleep", n)
	}
}

// What a resource is worth is a tenant's word, and another one in each sleep: what is written of it stays
// a number, and does not grow without end.
func TestUnitsThatSleptHaveABound(t *testing.T) {
	r := Resource{AsleepAt: &evening, Units: map[string]float64{"cpu": math.MaxFloat64}}
	for i := range 3 * mostUnitsSlept {
		r = r.AccumulateSleep(evening.Add(time.Duration(i+1) * time.Hour))
		r.AsleepAt, r.Units = new(evening.Add(time.Duration(i+1)*time.Hour)), map[string]float64{"cpu": math.MaxFloat64, fmt.Sprintf("type-%d", i): 1}
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
	if n := len(r.UnitSlept); n != mostUnitsSlept || r.UnitSlept["cpu"] != mostUnitSeconds || r.UnitSlept["type-0"] != 3600 {
		t.Errorf("%d units slept, cpu %g s, type-0 %g s", n, r.UnitSlept["cpu"], r.UnitSlept["type-0"])
	}
}
