package calendar

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// manyPlans is a page of five weeks with so many plans, each with a slot a day, in so many
// namespaces; a policy has a window a day.
func manyPlans(plans, namespaces int) Page {
	p := Page{Title: "Many", Zone: "Europe/Berlin", From: utc("2026-03-23 00:00"), To: utc("2026-04-27 00:00"), Now: utc("2026-03-25 09:30")}
	night := Owner{"policy", "maint-system", "night"}
	p.Owners = append(p.Owners, night)
	for i := range plans {
		p.Owners = append(p.Owners, Owner{"plan", fmt.Sprintf("team-%02d", i%namespaces), fmt.Sprintf("plan-%04d", i)})
	}
	for at := p.From; at.Before(p.To); at = at.AddDate(0, 0, 1) {
		p.Entries = append(p.Entries, Entry{Kind: Window, Owner: night, Start: at, End: at.Add(4 * time.Hour)})
		for i, o := range p.Owners[1:] {
			start := at.Add(time.Duration(i%240) * time.Minute)
			// Slots of documents have a name of their own.
			p.Entries = append(p.Entries, Entry{Kind: Slot, Owner: o, Start: start, End: start, Key: start.Format("2006-01-02T15:04:05-07:00") + "[UTC]"})
		}
	}
	return p
}

// twoThousand are so many plans, and fewer where tests are to be short.
func twoThousand() int {
	if testing.Short() {
		return 400
	}
	return 2000
}

func TestTwoThousandPlansFitOnAPage(t *testing.T) {
	const most = 5 << 20 // bytes
	plans := twoThousand()
	for _, namespaces := range []int{1, 20, 400} {
		p, lane, count := manyPlans(plans, namespaces), "each namespace", plans/namespaces
		if namespaces > mostLanes {
			lane, count = "all", plans
		}
		html, svg := p.HTML(), p.SVG()
		if len(html) > most || len(svg) > most {
			t.Errorf("in %d namespaces the page has %d KiB, the picture %d KiB", namespaces, len(html)>>10, len(svg)>>10)
		}
		t.Logf("in %d namespaces the page has %d KiB, the picture %d KiB", namespaces, len(html)>>10, len(svg)>>10)
		for _, text := range []string{html, svg} {
			if !strings.Contains(text, fmt.Sprintf("%d plans: one lane for %s, choose a namespace with -n, or plans with -l", plans, lane)) {
				t.Error("nobody is told that plans were folded")
			}
			if !strings.Contains(text, fmt.Sprintf("%d plans", count)) {
				t.Error("no lane says for how many plans it stands")
			}
		}
	}
}

func TestPlansAreFoldedWhereNobodyLooksThroughThem(t *testing.T) {
	few := manyPlans(mostLanes, 2)
	if got := few.folded(); len(got.Owners) != len(few.Owners) || got.lead != "" {
		t.Errorf("%d plans have %d owners: %s", mostLanes, len(got.Owners), got.lead)
	}
	many := manyPlans(mostLanes+1, 2)
	kept := len(many.Entries)
	got := many.folded()
	want := []Owner{{"policy", "maint-system", "night"}, {KindPlans, "team-00", "101 plans"}, {KindPlans, "team-01", "100 plans"}}
	if diff := cmp.Diff(want, got.Owners); diff != "" {
		t.Error(diff)
	}
	if len(got.Entries) != kept {
		t.Errorf("%d entries of %d are left", len(got.Entries), kept)
	}
	notes := map[string]bool{}
	for _, e := range got.Entries {
		if !slices.Contains(want, e.Owner) {
			t.Fatalf("an entry of %s", e.Owner)
		}
		if e.Kind == Slot {
			notes[e.Note] = true
		}
	}
	if len(notes) != mostLanes+1 || !notes["plan-0007"] {
		t.Errorf("%d plans are named", len(notes))
	}
	if many.Owners[1].Kind != "plan" || many.Entries[1].Note != "" {
		t.Error("the page that was given has changed")
	}
}

func TestWhereThereAreManyNamespacesAllPlansAreOne(t *testing.T) {
	for namespaces, c := range map[int]struct {
		owner Owner
		note  string // of the first plan
	}{
		mostLanes:     {Owner{KindPlans, "team-00", "2 plans"}, "plan-0000"},
		mostLanes + 1: {Owner{KindPlans, "", "201 plans in 201 namespaces"}, "team-00/plan-0000"},
	} {
		got := manyPlans(mostLanes+1, namespaces).folded()
		if got.Owners[1] != c.owner || got.Entries[1].Owner != c.owner || got.Entries[1].Note != c.note {
			t.Errorf("of %d namespaces: %+v, the first is %+v", namespaces, got.Owners[1], got.Entries[1])
		}
	}
}

func TestSleepsOfOneTimeAreOne(t *testing.T) {
	p := manyPlans(mostLanes, 1)
	for i := range 3 {
		o := Owner{"hibernate-plan", "team-00", fmt.Sprint("nights-", i)}
		p.Owners = append(p.Owners, o)
		p.Entries = append(p.Entries, Entry{Kind: Sleep, Owner: o, Start: utc("2026-03-24 20:00"), End: utc("2026-03-25 06:00"), Note: "late"})
	}
	p.Entries = append(p.Entries, Entry{Kind: Sleep, Owner: p.Owners[len(p.Owners)-1], Start: utc("2026-03-25 20:00"), End: utc("2026-03-26 06:00")})
	var got []string
	for _, e := range p.folded().Entries {
		if e.Kind == Sleep {
			got = append(got, e.Owner.Name+", "+e.Note)
		}
	}
	if diff := cmp.Diff([]string{"203 plans, 3 plans", "203 plans, nights-2"}, got); diff != "" {
		t.Error(diff)
	}
}
