package schedule

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule/internal/civil"
)

func TestEveryZoneTablesWhatItsLocationSays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range ZoneNames() {
		z, err := loadZone(name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for range 200 {
			at := r.Int64N(4e10) - 1e10 // the years 1653 to 3237
			_, want := time.Unix(at, 0).In(z.location).Zone()
			p := z.at(at)
			if p.offset != int64(want) || at < p.start || at >= p.end {
				t.Fatalf("%s at %d: got %+v, want offset %d", name, at, p, want)
			}
		}
	}
}

// The search for a wall clock relies on the order, and what is beyond the table
// on the repetition.
func TestEveryZoneIsInOrderAndRepeatsAfter400Years(t *testing.T) {
	for _, name := range ZoneNames() {
		z, err := loadZone(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(z.starts); i++ {
			if z.starts[i] <= z.starts[i-1] || z.ends[i] <= z.ends[i-1] {
				t.Errorf("%s: change %d is out of order", name, i)
			}
			if z.starts[i] >= tableEnd {
				if p := z.at(z.starts[i] - civil.CycleSeconds); p.start != z.starts[i]-civil.CycleSeconds || p.offset != z.offsets[i] {
					t.Errorf("%s: %d does not repeat %d", name, z.starts[i], p.start)
				}
			}
		}
	}
}

func TestZonesComeFromTheEmbeddedDataAlone(t *testing.T) {
	t.Setenv("ZONEINFO", filepath.Join(t.TempDir(), "none"))
	for _, name := range []string{"Local", "Factory", "posix/Europe/Berlin", "right/UTC", "localtime", "posixrules", "europe/berlin", "../etc/passwd", "Europe/", "/UTC", " UTC"} {
		if _, err := LoadZone(name); err == nil {
			t.Errorf("%q is known", name)
		}
	}
	for _, name := range []string{"", "UTC"} {
		if location, err := LoadZone(name); err != nil || location != time.UTC {
			t.Errorf("%q: got %v, %v, want UTC", name, location, err)
		}
	}
	if len(ZoneNames()) < 500 {
		t.Errorf("only %d zones", len(ZoneNames()))
	}
}

func TestTheArchiveIsThatOfTheGoThatBuildsIt(t *testing.T) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("no go command here")
	}
	script, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "lib", "time", "update.bash"))
	if err != nil {
		t.Skip(err)
	}
	if !strings.Contains(string(script), "DATA="+ZoneVersion()+"\n") {
		t.Errorf("zoneinfo.zip is %s, and Go has another: run go generate ./pkg/schedule/internal/zones", ZoneVersion())
	}
}

func TestCivilDatesAgreeWithPackageTime(t *testing.T) {
	for day := int64(-800_000); day < 800_000; day += 7 {
		year, month, dayOfMonth := civil.DateOf(day)
		want := time.Unix(day*civil.DaySeconds, 0).UTC()
		if int64(want.Year()) != year || int(want.Month()) != month || want.Day() != dayOfMonth || int(want.Weekday()) != civil.WeekdayOf(day) {
			t.Fatalf("day %d: got %d-%d-%d, want %s", day, year, month, dayOfMonth, want)
		}
		if civil.DayOf(year, month, dayOfMonth) != day {
			t.Fatalf("day %d does not come back", day)
		}
	}
}
