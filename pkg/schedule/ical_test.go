package schedule_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

const christmas = "2026-12-24 00:00 to 2026-12-25 00:00 excluded: calendar c"

// What is told of a file, and what it excludes all the same.
func TestWhatIsToldOfAnICalendarFile(t *testing.T) {
	const day = "DTSTART;VALUE=DATE:20261224"
	eighty := strings.Repeat("x", 80)
	for name, c := range map[string]struct {
		text string
		told []string // parts of what is told, one of each fault
		want string
	}{
		"a colon and a semicolon in quotes":     {vevent(`DTSTART;X-A="b:c;d";VALUE=DATE:20261224`), nil, christmas},
		"two values in quotes":                  {vevent(`DTSTART;X-A="b","c:d";VALUE="DATE":20261224`), nil, christmas},
		"a parameter without a value":           {vevent(day, "SUMMARY;X:y"), []string{"line 4: \"SUMMARY;X:y\": is not NAME:VALUE"}, christmas},
		"no name":                               {vevent(day, ":y"), []string{"line 4: \":y\": is not NAME:VALUE"}, christmas},
		"a name with a blank":                   {vevent(day, "X Y:z"), []string{"line 4: \"X Y:z\": is not NAME:VALUE"}, christmas},
		"a byte order mark":                     {"\ufeff" + vevent(day), nil, christmas},
		"a fold at the very beginning":          {" " + vevent(day), nil, christmas},
		"a line of blanks":                      {strings.Replace(vevent(day), "BEGIN:VEVENT", "\nBEGIN:VEVENT", 1), nil, christmas},
		"a long line, as it is":                 {vevent(day, eighty), []string{`"` + eighty + `"`}, christmas},
		"a longer line, cut":                    {vevent(day, eighty+"x"), []string{`"` + eighty + `…"`}, christmas},
		"a line outside":                        {"X:y\n" + vevent(day), []string{"line 1: \"X:y\": is outside of BEGIN:VCALENDAR"}, christmas},
		"an end without a beginning":            {vevent(day) + "END:VEVENT\n", []string{"line 6: \"END:VEVENT\": ends what was not begun"}, christmas},
		"an event that its calendar ends":       {"BEGIN:VCALENDAR\nBEGIN:VEVENT\n" + day + "\nEND:VCALENDAR\n", []string{"line 2: \"BEGIN:VEVENT\": is not ended before END:VCALENDAR in line 4"}, christmas},
		"an event that the file ends":           {"BEGIN:VCALENDAR\nBEGIN:VEVENT\n" + day + "\n", []string{"line 1: \"BEGIN:VCALENDAR\": is never ended; write END:VCALENDAR", "line 2: \"BEGIN:VEVENT\": is never ended; write END:VEVENT"}, christmas},
		"a second rule":                         {vevent(day, "RRULE:FREQ=YEARLY;COUNT=1", "RRULE:FREQ=DAILY"), []string{"is a second RRULE"}, christmas},
		"a period":                              {vevent("DTSTART:20261224T120000", "DURATION:PT1H", "RDATE:20261226T120000/PT5H"), []string{"periods are not supported"}, "2026-12-24 12:00 to 2026-12-24 13:00 excluded: calendar c\n2026-12-26 12:00 to 2026-12-26 13:00 excluded: calendar c"},
		"a change of this and later ones":       {vevent("UID:1", "DTSTART:20261224T110000Z", "DURATION:PT1H", "END:VEVENT", "BEGIN:VEVENT", "UID:1", "RECURRENCE-ID;RANGE=THISANDFUTURE:20261224T110000Z", "DTSTART:20261224T120000Z", "DURATION:PT1H"), []string{"RANGE is not supported"}, "2026-12-24 13:00 to 2026-12-24 14:00 excluded: calendar c"},
		"an end at its start takes no time":     {vevent("DTSTART:20261224T120000", "DTEND:20261224T120000"), nil, ""},
		"an end before its start is a day":      {vevent("DTSTART:20261224T120000", "DTEND:20261224T115959"), []string{"the event does not end after it starts"}, "2026-12-24 12:00 to 2026-12-25 12:00 excluded: calendar c"},
		"an end a second after its start":       {vevent("DTSTART:20261224T120000", "DTEND:20261224T120100"), nil, "2026-12-24 12:00 to 2026-12-24 12:01 excluded: calendar c"},
		"a day that ends as it begins is a day": {vevent(day, "DTEND;VALUE=DATE:20261224"), []string{"the event does not end after it starts"}, christmas},
		"a duration of none is a day":           {vevent("DTSTART:20261224T120000", "DURATION:PT0S"), []string{"is not a duration"}, "2026-12-24 12:00 to 2026-12-25 12:00 excluded: calendar c"},
		"an end in another zone":                {vevent("DTSTART:20261224T120000Z", "DTEND;TZID=America/New_York:20261224T080000"), nil, "2026-12-24 13:00 to 2026-12-24 14:00 excluded: calendar c"},
		"an end in another zone, and too early": {vevent("DTSTART:20261224T120000Z", "DTEND;TZID=Asia/Tokyo:20261224T130000"), nil, ""},
		"a zone of a day does not count":        {vevent("DTSTART;TZID=America/New_York;VALUE=DATE:20261224"), nil, christmas},
		"a fraction of a second":                {vevent(day, "EXDATE:20261224T120000.5"), []string{"is not a date or time"}, christmas},
	} {
		t.Run(name, func(t *testing.T) {
			calendar, err := schedule.ParseICalendar(c.text)
			var told []string
			if err != nil {
				told = strings.Split(err.Error(), "\n")
			}
			if len(told) != len(c.told) {
				t.Fatalf("told %q, want %q", told, c.told)
			}
			for i, want := range c.told {
				if !strings.Contains(told[i], want) {
					t.Errorf("told %q, want %q", told[i], want)
				}
			}
			if diff := cmp.Diff(c.want, excludedBy(t, calendar, "2026-01-01T00:00Z", 10)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
