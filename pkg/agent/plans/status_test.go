package plans

import "testing"

func TestASlotIsToldInItsZoneAndInUTCOnceWhereTheseAreTheSame(t *testing.T) {
	for _, c := range []struct{ name, wall, zone, utc, want string }{
		{"UTC", "2026-11-28T19:31:00Z", "UTC", "2026-11-28T19:31:00Z", "2026-11-28T19:31:00Z UTC"},
		{"another zone", "2026-11-28T20:31:00+01:00", "Europe/Berlin", "2026-11-28T19:31:00Z", "2026-11-28T20:31:00+01:00 Europe/Berlin (2026-11-28T19:31:00Z)"},
	} {
		if got := slotWords(c.wall, c.zone, c.utc); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}
