package hibernate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// specOf is a plan with a schedule, and one target that nothing is done to.
func specOf(t *testing.T, text string) Spec {
	t.Helper()
	if !strings.Contains(text, "targets:") {
		text += "\ntargets: [{name: a, type: noop}]"
	}
	s, faults := Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec:\n  " + strings.ReplaceAll(text, "\n", "\n  ")))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return s
}

// wall is an instant on the clocks of a timetable.
func wall(t *Timetable, at time.Time) string {
	return at.In(t.location).Format("2006-01-02T15:04")
}

func timetableOf(t *testing.T, text string) *Timetable {
	t.Helper()
	tt, err := NewTimetable(specOf(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return tt
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	got, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

const nights = "schedule: {timezone: Asia/Jakarta, offHours: [{start: \"20:00\", end: \"06:00\", daysOfWeek: [MON, TUE, WED, THU, FRI]}]}"

// Jakarta is seven hours ahead of UTC all year; 2026-03-02 is a Monday.
func TestWhenItSleeps(t *testing.T) {
	for name, c := range map[string]struct {
		plan  string
		at    string
		says  string // asleep since until, or awake until
		about string // of why
	}{
		"a weekday's evening":                    {nights, "2026-03-02T13:00:00Z", "asleep 2026-03-02T20:00 2026-03-03T06:00", "off-hours"},
		"a second before":                        {nights, "2026-03-02T12:59:59Z", "awake 2026-02-28T06:00 2026-03-02T20:00", ""},
		"after midnight it is the evening's":     {nights, "2026-03-02T20:00:00Z", "asleep 2026-03-02T20:00 2026-03-03T06:00", ""},
		"its end is awake":                       {nights, "2026-03-02T23:00:00Z", "awake 2026-03-03T06:00 2026-03-03T20:00", ""},
		"Friday's ends on Saturday":              {nights, "2026-03-06T22:59:00Z", "asleep 2026-03-06T20:00 2026-03-07T06:00", ""},
		"nobody sleeps from Saturday on":         {nights, "2026-03-07T13:00:00Z", "awake 2026-03-07T06:00 2026-03-09T20:00", ""},
		"a window over midnight is its first":    {"schedule: {offHours: [{start: \"23:30\", end: \"00:30\", daysOfWeek: [MON]}]}", "2026-03-03T00:10:00Z", "asleep 2026-03-02T23:30 2026-03-03T00:30", ""},
		"a weekend long":                         {"schedule: {offHours: [{start: \"Fri 20:00\", end: \"Mon 06:00\"}]}", "2026-03-08T12:00:00Z", "asleep 2026-03-06T20:00 2026-03-09T06:00", ""},
		"two that meet are one":                  {"schedule: {offHours: [{start: \"20:00\", end: \"23:00\"}, {start: \"23:00\", end: \"06:00\"}]}", "2026-03-02T23:30:00Z", "asleep 2026-03-02T20:00 2026-03-03T06:00", ""},
		"an excluded day is awake":               {"schedule: {offHours: [{start: \"20:00\", end: \"06:00\"}], exclude: [{fromDate: \"2026-03-03\", reason: launch}]}", "2026-03-03T22:00:00Z", "awake 2026-03-03T00:00 2026-03-04T00:00", "launch"},
		"what spills into it ends with midnight": {"schedule: {offHours: [{start: \"20:00\", end: \"06:00\"}], exclude: [{fromDate: \"2026-03-03\"}]}", "2026-03-02T22:00:00Z", "asleep 2026-03-02T20:00 2026-03-03T00:00", ""},
		"an extension sleeps, too":               {nights + "\nexceptions: [{type: extend, validFrom: \"2026-03-02T00:00:00Z\", validUntil: \"2026-03-05T00:00:00Z\", offHours: [{start: \"12:00\", end: \"14:00\"}], reason: lunch}]", "2026-03-03T06:00:00Z", "asleep 2026-03-03T12:00 2026-03-03T14:00", "extended by an exception: lunch"},
		"one that joins on lengthens the night":  {nights + "\nexceptions: [{type: extend, validFrom: \"2026-03-02T00:00:00Z\", validUntil: \"2026-03-05T00:00:00Z\", offHours: [{start: \"06:00\", end: \"09:00\"}]}]", "2026-03-02T23:30:00Z", "asleep 2026-03-02T20:00 2026-03-03T09:00", ""},
		"its validity ends it":                   {nights + "\nexceptions: [{type: extend, validFrom: \"2026-03-02T00:00:00Z\", validUntil: \"2026-03-03T06:30:00Z\", offHours: [{start: \"12:00\", end: \"14:00\"}]}]", "2026-03-03T06:00:00Z", "asleep 2026-03-03T12:00 2026-03-03T13:30", ""},
		"a suspend keeps awake":                  {nights + "\nexceptions: [{type: suspend, validFrom: \"2026-03-02T00:00:00Z\", validUntil: \"2026-03-03T17:00:00Z\", offHours: [{start: \"21:00\", end: \"02:00\"}], reason: tests}]", "2026-03-02T15:00:00Z", "awake 2026-03-02T21:00 2026-03-03T02:00", "suspended by an exception: tests"},
		"and before it and after it is night":    {nights + "\nexceptions: [{type: suspend, validFrom: \"2026-03-02T00:00:00Z\", validUntil: \"2026-03-03T17:00:00Z\", offHours: [{start: \"21:00\", end: \"02:00\"}]}]", "2026-03-02T19:30:00Z", "asleep 2026-03-03T02:00 2026-03-03T06:00", ""},
		"a suspend without hours is all of it":   {nights + "\nexceptions: [{type: suspend, validFrom: \"2026-03-02T14:00:00Z\", validUntil: \"2026-03-02T16:00:00Z\"}]", "2026-03-02T15:00:00Z", "awake 2026-03-02T21:00 2026-03-02T23:00", "suspended"},
		"replaced hours are the only ones":       {nights + "\nexceptions: [{type: replace, validFrom: \"2026-03-02T00:00:00Z\", validUntil: \"2026-03-04T00:00:00Z\", offHours: [{start: \"22:00\", end: \"05:00\"}]}]", "2026-03-02T14:00:00Z", "awake 2026-02-28T06:00 2026-03-02T22:00", "replaced"},
		"replace, extend and suspend together": {
			nights + "\nexceptions:\n- {type: suspend, validFrom: \"2026-03-02T00:00:00Z\", validUntil: \"2026-03-04T00:00:00Z\", offHours: [{start: \"23:00\", end: \"00:00\"}]}\n- {type: extend, validFrom: \"2026-03-02T00:00:00Z\", validUntil: \"2026-03-04T00:00:00Z\", offHours: [{start: \"21:00\", end: \"22:00\"}]}\n- {type: replace, validFrom: \"2026-03-02T00:00:00Z\", validUntil: \"2026-03-04T00:00:00Z\", offHours: [{start: \"22:00\", end: \"05:00\"}]}",
			"2026-03-02T14:30:00Z", "asleep 2026-03-02T21:00 2026-03-02T23:00", "extended",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt := timetableOf(t, c.plan)
			l := tt.At(at(t, c.at))
			got := "awake"
			if l.Asleep {
				got = "asleep"
			}
			got += " " + wall(tt, l.Since) + " " + wall(tt, l.Until)
			if l.Since.IsZero() {
				got = strings.Replace(got, wall(tt, l.Since), "always", 1)
			}
			if got != c.says || !strings.Contains(l.Why, c.about) {
				t.Errorf("it is %s (%s), want %s (%s)", got, l.Why, c.says, c.about)
			}
		})
	}
}

// The level is asked at every minute of three weeks, and compared with Since and Until of
// each other minute: they must tell the same story as a walk does.
func TestSinceAndUntilAreWhatAWalkFinds(t *testing.T) {
	tt := timetableOf(t, nights+"\nexceptions:\n- {type: suspend, validFrom: \"2026-03-03T10:30:00Z\", validUntil: \"2026-03-10T17:10:00Z\", offHours: [{start: \"21:00\", end: \"02:00\"}]}\n- {type: extend, validFrom: \"2026-03-05T00:00:00Z\", validUntil: \"2026-03-12T15:30:00Z\", offHours: [{start: \"Sat 10:00\", end: \"Sun 22:00\"}]}\n- {type: replace, validFrom: \"2026-03-13T00:00:00Z\", validUntil: \"2026-03-14T00:00:00Z\", offHours: [{start: \"01:00\", end: \"13:00\"}]}")
	from, until := at(t, "2026-03-02T00:00:00Z"), at(t, "2026-03-20T00:00:00Z")
	var changes []time.Time
	was := tt.At(from).Asleep
	for now := from; now.Before(until); now = now.Add(time.Minute) {
		if is := tt.At(now).Asleep; is != was {
			changes, was = append(changes, now), is
		}
	}
	if len(changes) < 20 {
		t.Fatalf("only %d changes", len(changes))
	}
	for now, next := from.Add(48*time.Hour), 0; now.Before(until.Add(-72 * time.Hour)); now = now.Add(7 * time.Minute) {
		for !changes[next].After(now) {
			next++
		}
		l := tt.At(now)
		if !l.Until.Equal(changes[next]) || !l.Since.Equal(changes[next-1]) {
			t.Fatalf("at %s it is so since %s until %s, want %s and %s", now, l.Since, l.Until, changes[next-1], changes[next])
		}
	}
	var windows []string
	for w := range tt.Windows(from) {
		if len(windows) == 4 {
			break
		}
		windows = append(windows, wall(tt, w.Start)+" "+wall(tt, w.End))
	}
	if got, want := fmt.Sprint(windows), "[2026-03-02T20:00 2026-03-03T06:00 2026-03-03T20:00 2026-03-03T21:00 2026-03-04T02:00 2026-03-04T06:00 2026-03-04T20:00 2026-03-04T21:00]"; got != want {
		t.Errorf("windows %s\nwant    %s", got, want)
	}
}

// A record of another version may hold a plan that this one would not take.
func TestWhatATimetableCannotRead(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*Spec)
		want string
	}{
		"nothing":                     {func(*Spec) {}, ""},
		"hours of no day":             {func(s *Spec) { s.Schedule.OffHours[0].Start = "25:00" }, "spec.schedule: "},
		"a zone that is not there":    {func(s *Spec) { s.Schedule.Timezone = "Mars/Base" }, "spec.schedule: "},
		"an exception of no hours":    {func(s *Spec) { s.Exceptions[1].OffHours = nil }, "spec.exceptions[1]: "},
		"one with hours of no day":    {func(s *Spec) { s.Exceptions[1].OffHours[0].Start = "25:00" }, "spec.exceptions[1]: "},
		"a suspend with such hours":   {func(s *Spec) { s.Exceptions[0].OffHours = []schedule.OffHours{{Start: "25:00", End: "06:00"}} }, "spec.exceptions[0]: "},
		"one that begins at no time":  {func(s *Spec) { s.Exceptions[0].ValidFrom = "today" }, "spec.exceptions[0]: validFrom: "},
		"one that ends at no instant": {func(s *Spec) { s.Exceptions[1].ValidUntil = "" }, "spec.exceptions[1]: validUntil: "},
	} {
		const from, until = "2026-03-02T00:00:00Z", "2026-03-04T00:00:00Z"
		s := Spec{
			Schedule:   Schedule{OffHours: []schedule.OffHours{{Start: "20:00", End: "06:00"}}},
			Exceptions: []Exception{{Type: Suspend, ValidFrom: from, ValidUntil: until}, {Type: Extend, ValidFrom: from, ValidUntil: until, OffHours: []schedule.OffHours{{Start: "12:00", End: "13:00"}}}},
		}
		c.edit(&s)
		_, err := NewTimetable(s)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestTheLeadTimeOfASuspend(t *testing.T) {
	hours := nights + "\nexceptions: [{type: suspend, validFrom: \"2026-03-02T00:00:00Z\", validUntil: \"2026-03-04T00:00:00Z\", offHours: [{start: \"21:00\", end: \"02:00\"}], leadTime: 30m, reason: tests}]"
	whole := nights + "\nexceptions: [{type: suspend, validFrom: \"2026-03-02T14:00:00Z\", validUntil: \"2026-03-04T00:00:00Z\", leadTime: 2h}]"
	within := nights + "\nexceptions: [{type: suspend, validFrom: \"2026-03-02T14:00:00Z\", validUntil: \"2026-03-04T00:00:00Z\", offHours: [{start: \"20:00\", end: \"02:00\"}], leadTime: 2h}]"
	for name, c := range map[string]struct {
		plan, at, until string
	}{
		"its hours have begun when it does": {within, "2026-03-02T12:30:00Z", "2026-03-02T14:00:00Z"},
		"it does, and its hours have begun": {within, "2026-03-02T14:30:00Z", ""},
		"as it begins, with its lead time":  {whole, "2026-03-02T12:00:00Z", "2026-03-02T14:00:00Z"},
		"it begins":                         {whole, "2026-03-02T14:00:00Z", ""},
		"long before it":                    {hours, "2026-03-02T13:00:00Z", ""},
		"as it begins":                      {hours, "2026-03-02T13:30:00Z", "2026-03-02T14:00:00Z"},
		"in it":                             {hours, "2026-03-02T13:59:00Z", "2026-03-02T14:00:00Z"},
		"the suspend has begun":             {hours, "2026-03-02T14:00:00Z", ""},
		"after its end, before the next":    {hours, "2026-03-02T19:30:00Z", ""},
		"before the next":                   {hours, "2026-03-03T13:40:00Z", "2026-03-03T14:00:00Z"},
		"it is valid no more":               {hours, "2026-03-04T13:40:00Z", ""},
		"of all hours":                      {whole, "2026-03-02T12:30:00Z", "2026-03-02T14:00:00Z"},
		"of all hours, too soon":            {whole, "2026-03-02T11:59:00Z", ""},
		"no exception":                      {nights, "2026-03-02T13:40:00Z", ""},
	} {
		t.Run(name, func(t *testing.T) {
			why, until := timetableOf(t, c.plan).Forbidden(at(t, c.at))
			got := ""
			if !until.IsZero() {
				got = until.UTC().Format(time.RFC3339)
			}
			if got != c.until || (why == "") != (c.until == "") {
				t.Errorf("until %q, %q; want %q", got, why, c.until)
			}
		})
	}
}

// hidden is a plan with as many off-hours as there may be, and an exception that hides them for
// eighty years: fifty minutes of each day, so that a hundred changes of a day are not to be seen.
func hidden(tb testing.TB, kind ExceptionType) *Timetable {
	tb.Helper()
	var hours []schedule.OffHours
	for i := range MaxOffHours {
		hours = append(hours, schedule.OffHours{Start: fmt.Sprintf("%02d:%02d", i/3, 20*(i%3)), End: fmt.Sprintf("%02d:%02d", i/3, 20*(i%3)+1)})
	}
	spec := Spec{Schedule: Schedule{OffHours: hours}, Exceptions: []Exception{{Type: kind, ValidFrom: "2020-01-01T00:00:00Z", ValidUntil: "2100-01-01T00:00:00Z"}}}
	if kind == Extend {
		spec.Exceptions[0].OffHours = []schedule.OffHours{{Start: "00:00", End: "12:00"}, {Start: "12:00", End: "24:00"}}
	}
	table, err := NewTimetable(spec)
	if err != nil {
		tb.Fatal(err)
	}
	return table
}

// What a suspend hides is passed over in one step; of what an extension hides so many changes
// are followed and no more, which is twenty days of a hundred. The instants say how many.
func TestWhatHidesYearsOfOffHoursCostsNothing(t *testing.T) {
	now := at(t, "2026-03-02T01:02:03Z")
	for kind, want := range map[ExceptionType]struct {
		level   Level
		windows string
	}{
		Suspend: {
			Level{Suspended: true, Since: at(t, "2019-12-31T16:21:00Z"), Until: at(t, "2100-01-01T00:00:00Z"), Why: "suspended by an exception"},
			"2100-01-01T00:00 to 2100-01-01T00:01, 2100-01-01T00:20 to 2100-01-01T00:21, 2100-01-01T00:40 to 2100-01-01T00:41",
		},
		Extend: {
			Level{Asleep: true, Until: at(t, "2026-03-22T01:20:00Z"), Why: "extended by an exception"},
			"ever to 2026-03-22T01:20",
		},
	} {
		table := hidden(t, kind)
		if got := table.At(now); got != want.level {
			t.Errorf("%s: got %+v, want %+v", kind, got, want.level)
		}
		var windows []string
		for w := range table.Windows(now) {
			start := "ever"
			if !w.Start.IsZero() {
				start = wall(table, w.Start)
			}
			if windows = append(windows, start+" to "+wall(table, w.End)); len(windows) == 1+strings.Count(want.windows, ",") {
				break
			}
		}
		if got := strings.Join(windows, ", "); got != want.windows {
			t.Errorf("%s: got %s, want %s", kind, got, want.windows)
		}
	}
}

func TestADocumentIsBounded(t *testing.T) {
	list := func(n int, one string) string { return "[" + strings.Repeat(one+", ", n) + one + "]" }
	const target = "targets: [{name: a, type: workload}]"
	for name, c := range map[string]struct{ spec, want string }{
		"off-hours":         {"schedule: {offHours: " + list(50, `{start: "20:00", end: "06:00"}`) + "}\n  " + target, "spec.schedule.offHours: has 51; at most 50"},
		"exclusions":        {`schedule: {offHours: [{start: "20:00", end: "06:00"}], exclude: ` + list(400, "{fromDate: 2026-12-24}") + "}\n  " + target, "spec.schedule.exclude: has 401"},
		"exceptions' hours": {`schedule: {offHours: [{start: "20:00", end: "06:00"}]}` + "\n  exceptions: [{type: extend, validFrom: '2026-01-01T00:00:00Z', validUntil: '2026-01-02T00:00:00Z', offHours: " + list(50, `{start: "20:00", end: "06:00"}`) + "}]\n  " + target, "at most 50 are read"},
		"a reason":          {`schedule: {offHours: [{start: "20:00", end: "06:00"}]}` + "\n  exceptions: [{type: suspend, validFrom: '2026-01-01T00:00:00Z', validUntil: '2026-01-02T00:00:00Z', reason: " + strings.Repeat("x", 1025) + "}]\n  " + target, "spec.exceptions[0].reason: has 1025 bytes"},
		"kinds":             {`schedule: {offHours: [{start: "20:00", end: "06:00"}]}` + "\n  targets: [{name: a, type: workload, parameters: {kinds: " + list(50, "{apiVersion: v, kind: a}") + "}}]", "kinds: has 51; at most 50"},
		"their order":       {`schedule: {offHours: [{start: "20:00", end: "06:00"}]}` + "\n  targets: [{name: a, type: workload, parameters: {order: " + list(4000, "b") + "}}]", "order: has 4001; at most 50"},
		"namespaces":        {`schedule: {offHours: [{start: "20:00", end: "06:00"}]}` + "\n  targets: [{name: a, type: workload, parameters: {namespaces: [a, a]}}]", `namespaces[1]: "a" appears twice`},
		"all of it":         {"description: " + strings.Repeat("x", MaxBytes), "make several of it"},
	} {
		_, faults := Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec:\n  " + c.spec + "\n"))
		if len(faults) == 0 || !strings.Contains(faults.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, faults, c.want)
		}
	}
}
