package schedule

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

// Month is the name of a month, full or three letters in any case. A document
// may also write its number, 1 to 12.
type Month string

// UnmarshalJSON takes a number as well as a name.
func (m *Month) UnmarshalJSON(data []byte) error {
	var number int
	if json.Unmarshal(data, &number) == nil {
		*m = Month(fmt.Sprint(number))
		return nil
	}
	return json.Unmarshal(data, (*string)(m))
}

// UnmarshalText takes what a document of another format wrote.
func (m *Month) UnmarshalText(text []byte) error {
	*m = Month(text)
	return nil
}

func monthNumber(name string) (int, bool) {
	if n, err := decimal(name); err == nil {
		return n, n >= 1 && n <= 12
	}
	for month := time.January; month <= time.December; month++ {
		if namesIt(name, month.String()) {
			return int(month), true
		}
	}
	return 0, false
}

// weekdayNumber is 0 for Sunday.
func weekdayNumber(name string) (int, bool) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if namesIt(name, day.String()) {
			return int(day), true
		}
	}
	return 0, false
}

func namesIt(name, full string) bool {
	return strings.EqualFold(name, full) || strings.EqualFold(name, full[:3])
}

// readWeekdays reads names of days into a set; field is the path of the list.
func readWeekdays(field string, names []string) (uint8, error) {
	var all faults
	var set uint8
	for i, name := range names {
		day, ok := weekdayNumber(name)
		if !ok {
			all.add(fmt.Sprintf("%s[%d]", field, i), name, "write a day, Monday to Sunday or Mon to Sun")
			continue
		}
		set |= 1 << day
	}
	return set, all.err()
}

// readTimeOfDay reads HH:MM in seconds; 24:00 only where it is an end.
func readTimeOfDay(text string, end bool) (int64, error) {
	hours, minutes, ok := strings.Cut(text, ":")
	hour, err := decimal(hours)
	minute, err2 := decimal(minutes)
	high := "23:59"
	if end {
		high = "24:00"
	}
	at := int64(hour)*civil.HourSeconds + int64(minute)*civil.MinuteSeconds
	if !ok || err != nil || err2 != nil || len(hours) != 2 || len(minutes) != 2 || minute > 59 || at > civil.DaySeconds || at == civil.DaySeconds && !end {
		return 0, fmt.Errorf("write a time of day as HH:MM in quotes, from \"00:00\" to %q", high)
	}
	return at, nil
}
