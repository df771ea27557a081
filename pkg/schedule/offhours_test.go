package schedule_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func TestOffHours(t *testing.T) {
	for _, c := range []struct {
		name, want string
		list       []schedule.OffHours
	}{
		{
			"a night belongs to the day on which it starts", "Mon 2026-08-03 23:30 to Tue 2026-08-04 00:30, Mon 2026-08-10 23:30 to Tue 2026-08-11 00:30",
			[]schedule.OffHours{{Start: "23:30", End: "00:30", DaysOfWeek: []string{"MON"}}},
		},
		{
			"a weekend is one sleep", "Fri 2026-08-07 20:00 to Mon 2026-08-10 06:00, Fri 2026-08-14 20:00 to Mon 2026-08-17 06:00",
			[]schedule.OffHours{{Start: "Fri 20:00", End: "Mon 06:00"}},
		},
		{
			"nights from Monday to Friday wake on Saturday", "Thu 2026-08-06 20:00 to Fri 2026-08-07 06:00, Fri 2026-08-07 20:00 to Sat 2026-08-08 06:00, Mon 2026-08-10 20:00 to Tue 2026-08-11 06:00",
			[]schedule.OffHours{{Start: "20:00", End: "06:00", DaysOfWeek: []string{"MON", "TUE", "WED", "THU", "FRI"}}},
		},
		{"from a Sunday", "Sun 2026-08-09 20:00 to Mon 2026-08-10 06:00, Sun 2026-08-16 20:00 to Mon 2026-08-17 06:00", []schedule.OffHours{{Start: "Sun 20:00", End: "Mon 06:00"}}},
		{"to a Sunday", "Sat 2026-08-08 20:00 to Sun 2026-08-09 06:00, Sat 2026-08-15 20:00 to Sun 2026-08-16 06:00", []schedule.OffHours{{Start: "Sat 20:00", End: "Sun 06:00"}}},
		{"to the same time of another day", "Fri 2026-07-31 20:00 to Mon 2026-08-03 20:00, Fri 2026-08-07 20:00 to Mon 2026-08-10 20:00", []schedule.OffHours{{Start: "Fri 20:00", End: "Mon 20:00"}}},
		{"to a later time of the same day", "Fri 2026-08-07 08:00 to Fri 2026-08-07 20:00, Fri 2026-08-14 08:00 to Fri 2026-08-14 20:00", []schedule.OffHours{{Start: "Fri 08:00", End: "Fri 20:00"}}},
		{"to an earlier time of the same day, a week later", "Fri 2026-07-31 20:00 to Fri 2026-08-07 08:00, Fri 2026-08-07 20:00 to Fri 2026-08-14 08:00", []schedule.OffHours{{Start: "Fri 20:00", End: "Fri 08:00"}}},
		{
			"several are a union", "Fri 2026-08-07 18:00 to Mon 2026-08-10 06:00, Fri 2026-08-14 18:00 to Mon 2026-08-17 06:00",
			[]schedule.OffHours{{Start: "Fri 20:00", End: "Mon 06:00"}, {Start: "18:00", End: "22:00", DaysOfWeek: []string{"friday"}}},
		},
	} {
		timeline, err := schedule.ParseOffHours("Asia/Jakarta", c.list, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		from, count := "2026-08-03T00:00Z", 2
		if c.list[0].Start == "20:00" {
			from, count = "2026-08-06T00:00Z", 3
		}
		if diff := cmp.Diff(c.want, intervals(t, timeline, "Asia/Jakarta", from, count)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestFaultsOfOffHours(t *testing.T) {
	_, err := schedule.ParseOffHours("Mars", []schedule.OffHours{
		{Start: "20:00", End: "20:00"},
		{Start: "Fri 20:00", End: "06:00"},
		{Start: "Fri 20:00", End: "Fri 20:00"},
		{Start: "Foo 20:00", End: "6"},
		{Start: "20:00", End: "06:00", DaysOfWeek: []string{"M"}},
		{Start: "Sun 20:00", End: "Mon 06:00", DaysOfWeek: []string{"MON"}},
	}, nil, nil)
	var got []string
	for _, fault := range schedule.Faults(err) {
		got = append(got, fault.Field)
	}
	want := []string{"timezone", "offHours[0].end", "offHours[1].end", "offHours[2].end", "offHours[3].start", "offHours[3].end", "offHours[4].daysOfWeek[0]", "offHours[5].daysOfWeek"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}
