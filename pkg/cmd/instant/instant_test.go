package instant

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
)

// A Saturday in Berlin, an hour after midnight; in New York it is still Friday.
func aSaturday() time.Time { return time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC) }

func TestTimesAsPeopleWriteThem(t *testing.T) {
	for _, c := range []struct{ text, zone, want string }{
		{"2026-12-24T18:00:00Z", "Europe/Berlin", "2026-12-24T18:00:00Z"},
		{"2026-12-24T18:00:00+01:00", "UTC", "2026-12-24T17:00:00Z"},
		{"now", "UTC", "2026-11-21T00:00:00Z"},
		{"2h", "UTC", "2026-11-21T02:00:00Z"},
		{"in 90m", "UTC", "2026-11-21T01:30:00Z"},
		{"30d", "UTC", "2026-12-21T00:00:00Z"},
		{" tomorrow 08:00 ", "Europe/Berlin", "2026-11-22T07:00:00Z"},
		{"tomorrow", "Europe/Berlin", "2026-11-21T23:00:00Z"},
		{"tomorrow 08:00", "America/New_York", "2026-11-21T13:00:00Z"},
		{"today 18:00", "Europe/Berlin", "2026-11-21T17:00:00Z"},
		{"today 00:30", "Europe/Berlin", "2026-11-20T23:30:00Z"}, // past: who asks says whether that makes sense
		{"08:00", "Europe/Berlin", "2026-11-21T07:00:00Z"},
		{"0:30", "Europe/Berlin", "2026-11-21T23:30:00Z"},
		{"sat 02:00", "Europe/Berlin", "2026-11-21T01:00:00Z"},
		{"sat 01:00", "Europe/Berlin", "2026-11-28T00:00:00Z"}, // that is now, so the next is in a week
		{"Saturday 02:00", "America/New_York", "2026-11-21T07:00:00Z"},
		{"fri 22:00", "America/New_York", "2026-11-21T03:00:00Z"},
		{"SUN", "UTC", "2026-11-22T00:00:00Z"},
		{"2026-12-24", "Europe/Berlin", "2026-12-23T23:00:00Z"},
		{"2026-12-24 18:00", "Europe/Berlin", "2026-12-24T17:00:00Z"},
		{"2024-02-29 12:00", "UTC", "2024-02-29T12:00:00Z"},
	} {
		got, err := Parse(c.text, aSaturday(), c.zone)
		if err != nil {
			t.Errorf("%q in %s: %v", c.text, c.zone, err)
			continue
		}
		if got.UTC().Format(time.RFC3339) != c.want {
			t.Errorf("%q in %s is %s, want %s", c.text, c.zone, got.UTC().Format(time.RFC3339), c.want)
		}
	}
}

// What asks for the past gets the last one of what recurs, and not the next.
func TestTimesThatLieInThePast(t *testing.T) {
	for _, c := range []struct{ text, zone, want string }{
		{"2h", "UTC", "2026-11-20T22:00:00Z"},
		{"30d", "UTC", "2026-10-22T00:00:00Z"},
		{"now", "UTC", "2026-11-21T00:00:00Z"},
		{"sat 01:00", "Europe/Berlin", "2026-11-21T00:00:00Z"}, // that is now
		{"sat 02:00", "Europe/Berlin", "2026-11-14T01:00:00Z"},
		{"sat 02:00", "America/New_York", "2026-11-14T07:00:00Z"},
		{"fri 22:00", "America/New_York", "2026-11-14T03:00:00Z"},
		{"friday", "America/New_York", "2026-11-20T05:00:00Z"},
		{"sun", "UTC", "2026-11-15T00:00:00Z"},
		{"08:00", "Europe/Berlin", "2026-11-20T07:00:00Z"},
		{"0:30", "Europe/Berlin", "2026-11-20T23:30:00Z"},
		{"2026-11-14T02:00:00Z", "Europe/Berlin", "2026-11-14T02:00:00Z"},
		{"2026-11-14 02:00", "Europe/Berlin", "2026-11-14T01:00:00Z"},
		{"tomorrow", "UTC", "2026-11-22T00:00:00Z"}, // who asks refuses it
	} {
		got, err := Past(c.text, aSaturday(), c.zone)
		if err != nil || got.UTC().Format(time.RFC3339) != c.want {
			t.Errorf("%q in %s is %s, %v, want %s", c.text, c.zone, got.UTC().Format(time.RFC3339), err, c.want)
		}
	}
}

func TestWhatIsWrongWithATimeIsWrongWithTheCommandLine(t *testing.T) {
	for _, text := range []string{"soon", "today 00:30"} {
		if _, err := Future("--until", text, aSaturday(), "Europe/Berlin"); exit.CodeOf(err) != exit.CodeUsage || !strings.HasPrefix(err.Error(), "--until: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := Understood("--until", "today 00:30", aSaturday()); err != nil {
		t.Errorf("whether it has passed is not known yet: %v", err)
	}
	if err := NotPassed("--until", "today 00:30", aSaturday(), "Europe/Berlin"); err != nil {
		t.Errorf("nor of one that must lie ahead: %v", err)
	}
	if err := NotPassed("--until", "2020-01-01T00:00:00Z", aSaturday(), "Europe/Berlin"); err == nil || !strings.HasSuffix(err.Error(), "has passed") {
		t.Errorf("an instant that is the same in all zones: %v", err)
	}
	if err := Understood("--until", "soon", aSaturday()); err == nil || !strings.HasPrefix(err.Error(), `--until: "soon" is no time: `) {
		t.Errorf("%v", err)
	}
}

func TestAnUnknownZoneIsNamedWithTheNearest(t *testing.T) {
	const want = `--timezone: timezone: "Europe/Berln": is not a time zone of the IANA database`
	if err := KnownZone("Europe/Berln"); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "did you mean Europe/Berlin?") {
		t.Errorf("%v", err)
	}
	const warns = `times are shown in UTC: your time zone "Mars/Base" is not a time zone of the IANA database`
	if got := UnknownZone("Mars/Base"); !strings.HasPrefix(got, warns) {
		t.Errorf("%q", got)
	}
	for _, known := range []string{"", "UTC", "Europe/Berlin"} {
		if err := KnownZone(known); err != nil || UnknownZone(known) != "" {
			t.Errorf("%q: %v, %q", known, err, UnknownZone(known))
		}
	}
}

func TestTimesWhereClocksChangeFollowTheRulesOfSlots(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a time in a gap is the first instant after it", "2026-03-29 02:30", "2026-03-29T01:00:00Z"},
		{"a time that comes twice is the first of the two", "2026-10-25 02:30", "2026-10-25T00:30:00Z"},
	} {
		got, err := Parse(c.text, aSaturday(), "Europe/Berlin")
		if err != nil || got.UTC().Format(time.RFC3339) != c.want {
			t.Errorf("%s: %s, %v, want %s", c.name, got.UTC().Format(time.RFC3339), err, c.want)
		}
	}
}

func TestWhatIsNoTimeIsRefusedWithTheForms(t *testing.T) {
	for _, text := range []string{"", "soon", "25:00", "08:60", "8", "sa 02:00", "sat", "tomorrow at 8", "tomorrow 8am", "2026-02-30 08:00", "2026-13-01", "sat 02:00 UTC"} {
		got, err := Parse(text, aSaturday(), "UTC")
		if text == "sat" { // a day alone is its first moment
			if err != nil || !got.Equal(aSaturday().AddDate(0, 0, 7)) {
				t.Errorf("%q is %s, %v", text, got, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "tomorrow 08:00") {
			t.Errorf("%q: got %s and %v, want an error with the forms", text, got, err)
		}
	}
	if _, err := Parse("tomorrow 08:00", aSaturday(), "Europe/Berln"); err == nil || !strings.Contains(err.Error(), "Europe/Berlin") {
		t.Errorf("an unknown zone: %v", err)
	}
}

func TestAnInstantIsShownInBothZones(t *testing.T) {
	at := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		at   time.Time
		zone string
		want string
	}{
		{at, "America/New_York", "Sat 2026-11-21 02:00 EST (2026-11-21T07:00:00Z)"},
		{at, "UTC", "Sat 2026-11-21 07:00 UTC (2026-11-21T07:00:00Z)"},
		{at.Add(time.Second), "Europe/Berlin", "Sat 2026-11-21 08:00:01 CET (2026-11-21T07:00:01Z)"},
	} {
		if got := Both(c.at, c.zone); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// What a run took is the same in history, which ledgers keep to the nearest second, and in describe.
func TestADistanceIsToTheNearestSecond(t *testing.T) {
	for d, want := range map[time.Duration]string{
		400 * time.Millisecond:               "0s",
		2600 * time.Millisecond:              "3s",
		-2600 * time.Millisecond:             "3s",
		2*time.Minute - 400*time.Millisecond: "2m0s",
		2*time.Minute - 600*time.Millisecond: "119s",
		90*time.Minute + 5*time.Second:       "1h30m",
		2*time.Hour - 2*time.Second:          "1h59m",
		time.Hour - 2*time.Second:            "59m58s",
		30*time.Hour + 59*time.Minute:        "30h59m",
		50 * time.Hour:                       "2d2h",
	} {
		if got := Approximate(d); got != want {
			t.Errorf("%s is %s, want %s", d, got, want)
		}
	}
}

func TestInstantsInATextAreShownOnPeoplesClocks(t *testing.T) {
	for text, want := range map[string]string{
		"next run 2040-01-01T02:00:00+01:00 Europe/Berlin":                                                                     "next run Sun 2040-01-01 02:00 CET",
		"next run 2026-12-05T02:00:00Z UTC, outside of its window, which opens at 2026-12-05T22:00:00Z (policy night: closed)": "next run Sat 2026-12-05 02:00 UTC, outside of its window, which opens at Sat 2026-12-05 17:00 EST (policy night: closed)",
		"paused until 2026-12-05T22:00:00Z by jane: CHG-1":                                                                     "paused until Sat 2026-12-05 17:00 EST by jane: CHG-1",
		"(until 2026-12-05T22:00:00Z)":                                                                                         "(until Sat 2026-12-05 17:00 EST)",
		"next run 2026-12-05T02:00:00+01:00 Europe/Berlin, outside of its window":                                              "next run Sat 2026-12-05 02:00 CET, outside of its window",
		"since 2026-12-05T22:00:00Z apps/v1 is gone":                                                                           "since Sat 2026-12-05 17:00 EST apps/v1 is gone",
		"give 'kubectl maint skip orders --slot 2026-12-05T22:00:00Z'":                                                         "give 'kubectl maint skip orders --slot 2026-12-05T22:00:00Z'",
		"kubectl maint pause orders --until 2026-12-05T22:00:00Z then":                                                         "kubectl maint pause orders --until 2026-12-05T22:00:00Z then",
		"spec.at: \"2026-12-05T22:00:00Z\" is past":                                                                            "spec.at: \"2026-12-05T22:00:00Z\" is past",
		"no time  in it\n2026-12-05":                                                                                           "no time  in it; 2026-12-05",
		"":                                                                                                                     "",
	} {
		if got := InText(text, "America/New_York"); got != want {
			t.Errorf("%q\nis  %q\nnot %q", text, got, want)
		}
	}
}

func FuzzParseInstant(f *testing.F) {
	for _, seed := range []string{"tomorrow 08:00", "sat 02:00", "2h", "2026-12-24T18:00:00Z", "00:00", "9999-12-31 23:59", "99999999d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := Parse(text, aSaturday(), "America/New_York")
		if err == nil && at.IsZero() {
			t.Errorf("%q is the zero instant", text)
		}
	})
}
