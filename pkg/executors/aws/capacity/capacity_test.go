package capacity

import "testing"

func TestASizeIsPutBackAsFarAsTheGroupMayBeThatLarge(t *testing.T) {
	for name, c := range map[string]struct {
		was  Size
		most int32
		want Size
		why  string
	}{
		"as it was":                            {Size{2, 5, 10}, 10, Size{2, 5, 10}, ""},
		"its max was raised":                   {Size{2, 5, 10}, 20, Size{2, 5, 20}, ""},
		"its max is what it was at":            {Size{2, 5, 10}, 5, Size{2, 5, 5}, ""},
		"its max is below what it was at":      {Size{2, 5, 10}, 3, Size{2, 3, 3}, "it was at min 2, desired 5 and is put back at min 2, desired 3: its max is 3 by now"},
		"its max is below its min":             {Size{2, 5, 10}, 1, Size{1, 1, 1}, "it was at min 2, desired 5 and is put back at min 1, desired 1: its max is 1 by now"},
		"it may have none":                     {Size{2, 5, 10}, 0, Size{0, 0, 0}, "it was at min 2, desired 5 and cannot be put back: its max is 0 by now"},
		"the restore data says less than min":  {Size{3, 1, 10}, 10, Size{3, 3, 10}, "it was at min 3, desired 1 and is put back at min 3, desired 3: desired cannot be less than min (max is 10)"},
		"it had no instance and a min of none": {Size{0, 0, 4}, 0, Size{0, 0, 0}, ""},
	} {
		got, why := c.was.Within(c.most)
		if got != c.want || why != c.why {
			t.Errorf("%s: %+v, %q", name, got, why)
		}
	}
}

func TestAGroupOfNoInstances(t *testing.T) {
	for s, want := range map[Size]bool{{0, 0, 5}: true, {0, 0, 0}: true, {0, 1, 5}: false, {1, 1, 5}: false} {
		if s.None() != want {
			t.Errorf("%+v: %t", s, !want)
		}
	}
}
