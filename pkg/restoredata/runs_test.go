package restoredata

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// scaled is a step that scaled an object, as it wrote it down.
func scaled(run, record string) Step {
	return Step{Run: run, Path: "scale", Record: json.RawMessage(record)}
}

const (
	threeToFive = `{"uid":"1","subresource":"scale","changes":[{"path":[{"key":"spec"},{"key":"replicas"}],"before":3,"after":5}]}`
	sevenToNine = `{"uid":"1","subresource":"scale","changes":[{"path":[{"key":"spec"},{"key":"replicas"}],"before":7,"after":9,"beneath":[{"run":"two","step":"scale","before":5},{"run":"one","step":"scale","before":3}]}]}`
	onAbsent    = `{"uid":"1","subresource":"scale","changes":[{"path":[{"key":"spec"},{"key":"replicas"}],"before":7,"after":9,"beneath":[{"run":"two","step":"scale"},{"run":"one","step":"scale","before":3}]}]}`
	fiveToSeven = `{"uid":"1","subresource":"scale","changes":[{"path":[{"key":"spec"},{"key":"replicas"}],"before":5,"after":7,"beneath":[{"run":"one","step":"scale","before":3,"after":5}]}]}`
)

func TestWhichRunsARecordIsOnTopOf(t *testing.T) {
	one := hibernate.Under{Run: "one", Step: "scale", Before: json.RawMessage(`{"replicas":3}`)}
	two := hibernate.Under{Run: "two", Step: "scale", Before: json.RawMessage(`{"replicas":5}`)}
	three := hibernate.Under{Run: "three", Step: "scale", Before: json.RawMessage(`{"replicas":7}`)}
	for name, c := range map[string]struct {
		before string
		steps  []Step
		want   []hibernate.Under
	}{
		"no run":                              {`{"replicas":5}`, nil, nil},
		"one":                                 {`{"replicas":5}`, []Step{scaled("one", threeToFive)}, []hibernate.Under{one}},
		"two, one above the other":            {`{"replicas":7}`, []Step{scaled("two", fiveToSeven), scaled("one", threeToFive)}, []hibernate.Under{two, one}},
		"three":                               {`{"replicas":9}`, []Step{scaled("three", sevenToNine)}, []hibernate.Under{three, two, one}},
		"one that found nothing hides others": {`{"replicas":9}`, []Step{scaled("three", onAbsent)}, []hibernate.Under{three}},
		"a number that somebody set since":    {`{"replicas":6}`, []Step{scaled("one", threeToFive)}, nil},
		"another field":                       {`{"replicas":5}`, []Step{scaled("one", `{"changes":[{"path":[{"key":"spec"},{"key":"paused"}],"after":5}]}`)}, nil},
		"a field of the same name elsewhere":  {`{"replicas":5}`, []Step{scaled("one", `{"changes":[{"path":[{"key":"metadata"},{"key":"replicas"}],"before":3,"after":5}]}`)}, nil},
		"a field below it of the same name":   {`{"replicas":5}`, []Step{scaled("one", `{"changes":[{"path":[{"key":"spec"},{"key":"replicas"},{"key":"most"}],"before":3,"after":5}]}`)}, nil},
		"all of the spec":                     {`{"replicas":5}`, []Step{scaled("one", `{"changes":[{"path":[{"key":"spec"}],"before":3,"after":5}]}`)}, nil},
		"a field that it took away":           {`{"replicas":5}`, []Step{scaled("one", `{"changes":[{"path":[{"key":"spec"},{"key":"paused"}],"before":true}]}`)}, nil},
		"restore data of two fields":          {`{"replicas":5,"paused":true}`, []Step{scaled("one", threeToFive)}, nil},
		"a CronJob that it resumed":           {`{"suspend":false}`, []Step{scaled("one", `{"changes":[{"path":[{"key":"spec"},{"key":"suspend"}],"before":true,"after":false}]}`)}, []hibernate.Under{{Run: "one", Step: "scale", Before: json.RawMessage(`{"suspend":true}`)}}},
		"a field that was absent":             {`{"suspend":false}`, []Step{scaled("one", `{"changes":[{"path":[{"key":"spec"},{"key":"suspend"}],"after":false}]}`)}, nil},
		"restore data of another shape":       {`3`, []Step{scaled("one", threeToFive)}, nil},
		"a record that nobody understands":    {`{"replicas":5}`, []Step{scaled("one", `[]`)}, nil},
		"a record that was not kept any more": {`{"replicas":5}`, []Step{scaled("one", "")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, underneath(c.steps, json.RawMessage(c.before))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// It is what the lowest of those found that are over, without one between that is at work.
func TestWhatIsPutBackOnceRunsAreOver(t *testing.T) {
	res := hibernate.Resource{ID: "a", UID: "1", Before: json.RawMessage(`{"replicas":7}`), Under: []hibernate.Under{
		{Run: "two", Step: "scale", Before: json.RawMessage(`{"replicas":5}`)}, {Run: "one", Step: "scale", Before: json.RawMessage(`{"replicas":3}`)},
	}}
	for name, c := range map[string]struct {
		steps []Step
		want  string
		under []hibernate.Under // what it still is on top of
	}{
		"both work":              {[]Step{{Run: "two", Path: "scale"}, {Run: "one", Path: "scale"}}, `{"replicas":7}`, res.Under},
		"the upper one is over":  {[]Step{{Run: "one", Path: "scale"}}, `{"replicas":5}`, res.Under[1:]},
		"the lower one is over":  {[]Step{{Run: "two", Path: "scale"}}, `{"replicas":7}`, res.Under},
		"both are over":          {nil, `{"replicas":3}`, nil},
		"both ended just now":    {[]Step{{Run: "two", Path: "scale", Over: true}, {Run: "one", Path: "scale", Over: true}}, `{"replicas":3}`, nil},
		"other steps of the run": {[]Step{{Run: "two", Path: "label"}, {Run: "one", Path: "label"}}, `{"replicas":3}`, nil},
	} {
		other := hibernate.Resource{ID: "b", UID: "2", Before: json.RawMessage(`{"replicas":1}`)}
		was := hibernate.Record{Resources: []hibernate.Resource{res, other, res}}
		got := DropEndedRuns(was, func(string) []Step { return c.steps })
		settled := res
		settled.Before, settled.Under = json.RawMessage(c.want), c.under
		if diff := cmp.Diff([]hibernate.Resource{settled, other, settled}, got.Resources); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if diff := cmp.Diff([]hibernate.Resource{res, other, res}, was.Resources); diff != "" {
			t.Errorf("%s: the record before has changed:\n%s", name, diff)
		}
	}
}

// A run that scales what is on its way to sleep found what the sleep made of it.
func TestWhatARunChangesOnTheWayToSleepStaysAsItWasRecorded(t *testing.T) {
	early, now := time.Date(2026, 3, 2, 20, 0, 0, 0, time.UTC), time.Date(2026, 3, 2, 20, 0, 30, 0, time.UTC)
	was := hibernate.Record{Operation: hibernate.Shutdown, Resources: []hibernate.Resource{{ID: "a", UID: "1", Before: json.RawMessage(`{"replicas":3}`), CapturedAt: early}}}
	seen := []hibernate.Observation{{ID: "a", UID: "1", Awake: true, Before: json.RawMessage(`{"replicas":5}`)}}
	for name, c := range map[string]struct {
		steps []Step
		want  string
	}{
		"a run":    {[]Step{scaled("one", threeToFive)}, `{"replicas":3}`},
		"a person": {nil, `{"replicas":5}`},
	} {
		got := RecordRuns(was, was.ToSleep(seen, now), now, func(string) []Step { return c.steps })
		if before := string(got.Record.Resources[0].Before); before != c.want || len(got.Due) != 1 {
			t.Errorf("%s: %s is recorded, and %d are due", name, before, len(got.Due))
		}
	}
}

// Runs are noted beside what is recorded for the first time, and what is on its way to sleep stays as
// it was recorded.
func TestWhatIsNotedBesideWhatIsRecordedNow(t *testing.T) {
	early, now := time.Date(2026, 3, 2, 20, 0, 0, 0, time.UTC), time.Date(2026, 3, 2, 20, 0, 30, 0, time.UTC)
	three, five := json.RawMessage(`{"replicas":3}`), json.RawMessage(`{"replicas":5}`)
	one := []hibernate.Under{{Run: "one", Step: "scale", Before: three}}
	captured := func(at time.Time, before json.RawMessage, edits ...func(*hibernate.Resource)) []hibernate.Resource {
		r := hibernate.Resource{ID: "a", UID: "1", Before: before, CapturedAt: at}
		for _, edit := range edits {
			edit(&r)
		}
		return []hibernate.Resource{r}
	}
	asleep := func(r *hibernate.Resource) { r.AsleepAt = &early }
	woken := func(r *hibernate.Resource) { r.WokenAt = &early }
	restored := func(r *hibernate.Resource) { r.RestoredAt = &early }
	under := func(r *hibernate.Resource) { r.Under = one }
	for name, c := range map[string]struct {
		was, is, want []hibernate.Resource
	}{
		"recorded for the first time":        {nil, captured(now, five), captured(now, five, under)},
		"recorded before":                    {captured(early, five), captured(early, five), captured(early, five)},
		"recorded at the same instant":       {captured(now, five), captured(now, five), captured(now, five)},
		"recorded before, and asleep":        {captured(early, five, asleep), captured(early, five, asleep), captured(early, five, asleep)},
		"asleep at the same instant":         {captured(now, five, asleep), captured(now, five, asleep), captured(now, five, asleep)},
		"recorded anew on its way to sleep":  {captured(early, three), captured(now, five), captured(early, three)},
		"recorded anew after it slept":       {captured(early, three, asleep), captured(now, five), captured(now, five, under)},
		"recorded anew after it was woken":   {captured(early, three, woken), captured(now, five), captured(now, five, under)},
		"recorded anew after it was awake":   {captured(early, three, restored), captured(now, five), captured(now, five, under)},
		"recorded anew, and by no run so":    {captured(early, five), captured(now, three), captured(now, three)},
		"recorded anew with one of its name": {[]hibernate.Resource{{ID: "a", UID: "2", Before: three, CapturedAt: early}}, captured(now, five), captured(now, five, under)},
	} {
		got := RecordRuns(hibernate.Record{Resources: c.was}, hibernate.Step{Record: hibernate.Record{Resources: c.is}}, now, func(string) []Step { return []Step{scaled("one", threeToFive)} })
		if diff := cmp.Diff(c.want, got.Record.Resources); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// What a run has changed since it fell asleep waits for that run; the rest wakes.
func TestWhatWaitsForARunBeforeItWakes(t *testing.T) {
	asleep, woken := time.Date(2026, 3, 2, 20, 0, 0, 0, time.UTC), time.Date(2026, 3, 3, 6, 0, 0, 0, time.UTC)
	sleeping := hibernate.Resource{ID: "a", UID: "1", AsleepAt: &asleep}
	seen := hibernate.Observation{ID: "a", UID: "1", Awake: true}
	const waits = "waits: run one has changed a, and puts it back at its end: only then it wakes"
	for name, c := range map[string]struct {
		res  hibernate.Resource
		seen []hibernate.Observation
		held bool
		want string
	}{
		"a run has changed it":        {sleeping, []hibernate.Observation{seen}, true, waits},
		"no run has":                  {sleeping, []hibernate.Observation{seen}, false, ""},
		"it still sleeps":             {sleeping, []hibernate.Observation{{ID: "a", UID: "1"}}, true, ""},
		"it is gone":                  {sleeping, nil, true, ""},
		"another has taken its place": {sleeping, []hibernate.Observation{{ID: "a", UID: "2", Awake: true}}, true, ""},
		"it never fell asleep":        {hibernate.Resource{ID: "a", UID: "1"}, []hibernate.Observation{seen}, true, ""},
		"it was told to wake":         {hibernate.Resource{ID: "a", UID: "1", AsleepAt: &asleep, WokenAt: &woken}, []hibernate.Observation{seen}, true, ""},
		"it is as it was":             {hibernate.Resource{ID: "a", UID: "1", AsleepAt: &asleep, RestoredAt: &woken}, []hibernate.Observation{seen}, true, ""},
	} {
		before := hibernate.Record{Resources: []hibernate.Resource{c.res}}
		due := []hibernate.Due{{Resource: hibernate.Resource{ID: "b", UID: "1"}}, {Resource: hibernate.Resource{ID: "a", UID: "2"}}, {Resource: hibernate.Resource{ID: "a", UID: "1"}}}
		step := hibernate.Step{Record: hibernate.Record{Resources: []hibernate.Resource{{ID: "a", UID: "1", WokenAt: &woken}}}, Due: slices.Clone(due), Done: true}
		got, said := WaitForRuns(before, step, c.seen, func(uid string) []Step {
			if !c.held || uid != "1" {
				return nil
			}
			return []Step{{Run: "one"}, {Run: "two"}}
		})
		if said != c.want || got.Done != (c.want == "") {
			t.Errorf("%s: %q, done %t", name, said, got.Done)
		}
		wantDue, wantRecord := due, step.Record.Resources[0]
		if c.want != "" {
			wantDue, wantRecord = due[:2], c.res
		}
		if diff := cmp.Diff(wantDue, got.Due); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(wantRecord, got.Record.Resources[0]); diff != "" && c.want != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestWhatTargetsSayThatWaitForRuns(t *testing.T) {
	const waiting = "waits: run one has changed a, and puts it back at its end: only then it wakes"
	for _, c := range []struct{ is, waiting, want string }{
		{"", waiting, waiting}, {"boom", waiting, waiting}, {waiting, waiting, waiting}, {waiting, "", ""}, {"boom", "", "boom"}, {"", "", ""},
	} {
		if got := WaitMessage(c.is, c.waiting); got != c.want {
			t.Errorf("%q, and now %q: it says %q, want %q", c.is, c.waiting, got, c.want)
		}
	}
	records := []hibernate.Record{
		{Target: "apps", Operation: hibernate.Wake, Message: waiting}, {Target: "db", Operation: hibernate.Wake, Message: "boom"}, {Target: "jobs", Operation: hibernate.Shutdown, Message: waiting},
	}
	if got := WaitMessages(records); got != "; apps "+waiting {
		t.Errorf("the plan adds %q", got)
	}
}

func TestSinceWhenWhatIsDueIsWaitedFor(t *testing.T) {
	at := func(hour int) *time.Time { return new(time.Date(2026, 3, 3, hour, 0, 0, 0, time.UTC)) }
	woken := func(at *time.Time) hibernate.Due { return hibernate.Due{Resource: hibernate.Resource{WokenAt: at}} }
	due := []hibernate.Due{woken(at(7)), woken(at(8)), woken(nil), woken(at(6))}
	for name, c := range map[string]struct {
		record hibernate.Record
		due    []hibernate.Due
		want   time.Time
	}{
		"nothing has begun":                     {hibernate.Record{Operation: hibernate.Wake}, nil, time.Time{}},
		"since it began to wake":                {hibernate.Record{Operation: hibernate.Wake, StartedAt: at(9)}, due, *at(9)},
		"since the last of it was told to wake": {hibernate.Record{Operation: hibernate.Wake, StartedAt: at(6)}, due, *at(8)},
		"on its way to sleep since it began":    {hibernate.Record{Operation: hibernate.Shutdown, StartedAt: at(6)}, due, *at(6)},
	} {
		if got := WaitsSince(c.record, c.due); !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestWhySleepingTargetsCouldNotBeLookedAt(t *testing.T) {
	soon := time.Date(2026, 3, 3, 6, 0, 0, 0, time.UTC)
	for want, r := range map[string]hibernate.Record{
		"target apps could not be woken now: boom": {Target: "apps", State: hibernate.Asleep, NotBefore: &soon, Message: "boom"},
		"": {Target: "apps", State: hibernate.Running, NotBefore: &soon, Message: "boom"},
	} {
		if got := UnreadableMessage(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := UnreadableMessage(hibernate.Record{Target: "apps", State: hibernate.Asleep, Message: "boom"}); got != "" {
		t.Errorf("one that was looked at: %q", got)
	}
}
