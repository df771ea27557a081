package zones

import "testing"

// TestWhatIsNoPlaceIsNoZone is about archives other than ours too, which some systems have.
func TestWhatIsNoPlaceIsNoZone(t *testing.T) {
	for name, want := range map[string]bool{
		"Europe/Berlin": true, "UTC": true, "Etc/GMT+1": true,
		"Factory": false, "Local": false, "localtime": false, "posixrules": false,
		"Europe/": false, "posix/Europe/Berlin": false, "right/Europe/Berlin": false,
	} {
		if got := isZoneName(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestNamesAreComparedWithoutCaseAndGaps(t *testing.T) {
	if got := plainZoneName(" Port au-Prince "); got != "port_au_prince" {
		t.Error(got)
	}
}

func TestEditsAreCounted(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"abc", "abc", 0},
		{"abc", "abd", 1},
		{"abc", "ab", 1},
		{"ab", "abc", 1},
		{"bc", "abc", 1},
		{"ab", "ba", 1},
		{"abcd", "acbd", 1},
		{"abcd", "badc", 2},
		{"xxab", "xxba", 1},
		{"ax", "ya", 2},
		{"xa", "ay", 2},
		{"kitten", "sitting", 3},
		{"ca", "abc", 3},
	} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d edits, not %d", c.a, c.b, got, c.want)
		}
	}
}
