package zones_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/zones"
)

func TestEveryNameIsAZone(t *testing.T) {
	names := zones.Names()
	if len(names) < 500 || !slices.IsSorted(names) {
		t.Fatalf("%d names", len(names))
	}
	for _, name := range names {
		if location, err := zones.Load(name); err != nil || location.String() != name {
			t.Errorf("%s: %v, %v", name, location, err)
		}
	}
	names[0] = "changed"
	if zones.Names()[0] == "changed" {
		t.Error("who asks for the names can change them")
	}
}

func TestANameOfNoZoneSuggestsTheNearest(t *testing.T) {
	for name, want := range map[string]string{
		"Berlin":        "; did you mean Europe/Berlin?",
		"europe/berlin": "; did you mean Europe/Berlin?",
		"Europe/Belrin": "; did you mean Europe/Berlin?",
		"New York":      "; did you mean America/New_York?",
		// equally near ones, in order; as many letters too many as may be, and one more
		"Louisville":         "; did you mean America/Kentucky/Louisville or America/Louisville?",
		"Europe/Berlinxxxx":  "; did you mean Europe/Berlin?",
		"Europe/Berlinxxxxx": `; write an IANA name such as "Europe/Berlin" or "UTC"`,
		"Factory":            `; write an IANA name such as "Europe/Berlin" or "UTC"`,
		"":                   `; write an IANA name such as "Europe/Berlin" or "UTC"`,
	} {
		_, err := zones.Load(name)
		if unknown := (*zones.UnknownError)(nil); !errors.As(err, &unknown) || err.Error() != "is not a time zone of the IANA database "+zones.Version+want {
			t.Errorf("%q: %v", name, err)
		}
	}
}
