package annotations

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFrozenText(t *testing.T) {
	until := time.Date(2026, 12, 18, 0, 0, 0, 0, time.FixedZone("", 3600))
	web := Frozen{Resource: "deployments.apps", Name: "web"}
	for name, c := range map[string]struct {
		all  []Frozen
		want string
	}{
		"nothing":                                {nil, ""},
		"a closed one":                           {[]Frozen{web}, "deployments.apps/web=frozen"},
		"one that is open for good":              {[]Frozen{{Resource: "configmaps", Name: "a.b", Open: true}}, "configmaps/a.b=open"},
		"one that closes":                        {[]Frozen{{Resource: "jobs.batch", Name: "j", Open: true, Until: &until}}, "jobs.batch/j=open/2026-12-17T23:00:00Z"},
		"a run's target":                         {[]Frozen{{Resource: "jobs.batch", Name: "j", Run: "maint-run-x"}}, "jobs.batch/j=run/maint-run-x"},
		"a run's entry counts before a policy's": {[]Frozen{web, {Resource: "deployments.apps", Name: "web", Run: "maint-run-x"}}, "deployments.apps/web=run/maint-run-x"},
		"a closed one counts before an open one": {[]Frozen{{Resource: "deployments.apps", Name: "web", Open: true}, web}, "deployments.apps/web=frozen"},
		"they stand in the order of their names": {[]Frozen{web, {Resource: "configmaps", Name: "z"}, {Resource: "configmaps", Name: "a", Open: true}}, "configmaps/a=open,configmaps/z=frozen,deployments.apps/web=frozen"},
	} {
		t.Run(name, func(t *testing.T) {
			text, left := FrozenText(c.all)
			if text != c.want || len(left) != 0 {
				t.Errorf("says %q and leaves %v, want %q", text, left, c.want)
			}
			if again, _ := FrozenText(ParseFrozen(text)); again != text {
				t.Errorf("read and written it says %q, not %q", again, text)
			}
		})
	}
}

// What has no room is counted: open ones first, then closed ones; what runs hold stays.
func TestFrozenTextIsBounded(t *testing.T) {
	var all []Frozen
	for i := range 3000 {
		name := fmt.Sprintf("%s-%05d", strings.Repeat("x", 30), i)
		all = append(all, Frozen{Resource: "configmaps", Name: "open-" + name, Open: true}, Frozen{Resource: "configmaps", Name: "shut-" + name})
	}
	all = append(all, Frozen{Resource: "configmaps", Name: "zzz", Run: "maint-run-x"})
	text, left := FrozenText(all)
	kept := ParseFrozen(text)
	if len(text) > MaxFrozenBytes || len(left)+len(kept) != len(all) || len(left) == 0 {
		t.Fatalf("%d bytes hold %d of %d, and %d are left out", len(text), len(kept), len(all), len(left))
	}
	if slices.ContainsFunc(kept, func(f Frozen) bool { return f.Open }) || !slices.ContainsFunc(kept, func(f Frozen) bool { return f.Run != "" }) {
		t.Error("an open one is kept, or the run's is not")
	}
}

// What is left out closes only what may be closed: open objects alone leave the others
// open, until the first of them closes.
func TestFrozenTextSaysWhatIsLeftOut(t *testing.T) {
	soon := time.Date(2026, 12, 18, 0, 0, 0, 0, time.FixedZone("", 3600))
	later := soon.Add(time.Hour)
	filler := Frozen{Resource: "configmaps", Name: strings.Repeat("a", MaxFrozenBytes-100), Run: "x"}
	one := func(name string, open bool, until *time.Time) Frozen {
		return Frozen{Resource: "configmaps", Name: name + strings.Repeat("b", 100), Open: open, Until: until}
	}
	for name, c := range map[string]struct {
		left []Frozen
		want string
	}{
		"a closed one":                           {[]Frozen{one("x", false, nil)}, "*=full,"},
		"a closed one beside open ones":          {[]Frozen{one("x", true, &soon), one("y", false, nil), one("z", true, nil)}, "*=full,"},
		"one that is open for good":              {[]Frozen{one("x", true, nil)}, ""},
		"ones that close":                        {[]Frozen{one("x", true, &later), one("y", true, &soon)}, "*=open/2026-12-17T23:00:00Z,"},
		"one that closes and one that not":       {[]Frozen{one("x", true, nil), one("y", true, &later)}, "*=open/2026-12-18T00:00:00Z,"},
		"one that closes, and then one that not": {[]Frozen{one("x", true, &later), one("y", true, nil)}, "*=open/2026-12-18T00:00:00Z,"},
	} {
		t.Run(name, func(t *testing.T) {
			text, left := FrozenText(append(c.left, filler))
			if len(left) != len(c.left) {
				t.Fatalf("%d are left out, want %d", len(left), len(c.left))
			}
			if want := c.want + filler.String(); text != want {
				t.Errorf("it begins with %.60q, want %.60q", text, want)
			}
		})
	}
}

// The last byte is used, and none beyond it.
func TestFrozenTextHasRoomToTheByte(t *testing.T) {
	one := Frozen{Resource: "configmaps", Name: strings.Repeat("a", 1000)}
	rest := MaxFrozenBytes - frozenRestBytes - len(one.String()) - 1
	exact := Frozen{Resource: "configmaps", Name: "b"}
	exact.Name += strings.Repeat("b", rest-len(exact.String())-1)
	for over, want := range map[int]int{-1: 0, 0: 0, 1: 1} {
		last := exact
		last.Name = strings.Repeat("b", len(exact.Name)+over)
		if _, left := FrozenText([]Frozen{one, last}); len(left) != want {
			t.Errorf("with %d bytes more than there is room for, %v are left out, want %d", over, left, want)
		}
	}
}

func TestWhatIsNoEntryIsLeftOut(t *testing.T) {
	if got := ParseFrozen("x,deployments.apps=frozen,configmaps/a=what,configmaps/b=frozen,,="); len(got) != 1 || got[0].Name != "b" {
		t.Errorf("it reads %v", got)
	}
}
