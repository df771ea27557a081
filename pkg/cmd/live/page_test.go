package live

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// linesOf are lines by their words: name:text is about a plan, what has no colon about nothing.
func linesOf(words ...string) []view.Line {
	var out []view.Line
	for _, w := range words {
		l := view.Line{Text: w}
		for i, r := range w {
			if r == ':' {
				l = planLine(w[:i], w[i+1:])
				break
			}
		}
		out = append(out, l)
	}
	return out
}

// looking is a page with the cursor at a line and another at the top of the screen.
func looking(cursor, top int, words ...string) page {
	p := page{}.show(linesOf(words...))
	p.cursor, p.top = cursor, top
	return p
}

// Who is about to press a key goes on looking at the same thing when the picture changes below
// the hand: the key must not be for another one.
func TestTheCursorIsOnTheSameThingInTheNextPicture(t *testing.T) {
	for _, c := range []struct {
		name     string
		was      page
		is       []string
		cursor   int
		top      int
		thing    string
		filtered string
	}{
		{name: "the first picture: on the first thing", was: page{}, is: []string{"head", "a:1", "b:1"}, cursor: 1, thing: "a"},
		{name: "nothing is there yet", was: page{}, is: []string{"head"}, cursor: 0},
		{name: "something comes before it", was: looking(1, 0, "a:1", "b:1"), is: []string{"c:1", "a:1", "b:1"}, cursor: 2, thing: "b"},
		{name: "something before it goes", was: looking(2, 0, "c:1", "a:1", "b:1"), is: []string{"a:1", "b:1"}, cursor: 1, thing: "b"},
		{name: "it is on the same of its lines, counted from the end", was: looking(3, 0, "a:1", "b:1", "head", "b:2", "b:3"), is: []string{"b:0", "a:1", "b:1", "head", "b:2", "b:3"}, cursor: 4, thing: "b"},
		{name: "that line is gone: the first that is left", was: looking(0, 0, "b:1", "b:2", "b:3", "a:1"), is: []string{"x", "b:3", "a:1"}, cursor: 1, thing: "b"},
		{name: "it is gone: the cursor stays where it was", was: looking(1, 0, "a:1", "b:1", "c:1"), is: []string{"a:1", "c:1", "d:1"}, cursor: 1, thing: "c"},
		{name: "the screen moves with it", was: looking(3, 2, "x", "a:1", "a:2", "b:1", "c:1"), is: []string{"x", "y", "z", "a:1", "a:2", "b:1", "c:1"}, cursor: 5, top: 4, thing: "b"},
		{name: "at the top of the page the screen stays there", was: looking(1, 0, "a:1", "b:1"), is: []string{"x", "y", "a:1", "b:1"}, cursor: 3, top: 0, thing: "b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.was.show(linesOf(c.is...))
			if got.cursor != c.cursor || got.top != c.top || got.resource().Name != c.thing {
				t.Errorf("cursor %d on %q, top %d; want %d on %q, %d", got.cursor, got.resource().Name, got.top, c.cursor, c.thing, c.top)
			}
		})
	}
}

func TestWhatKeysAreFor(t *testing.T) {
	for _, c := range []struct {
		name   string
		words  []string
		things int
		thing  string
	}{
		{"nothing", []string{"x", "y"}, 0, ""},
		{"the only thing, wherever it stands", []string{"x", "a:1", "a:2"}, 1, "a"},
		{"of two the one at the cursor", []string{"x", "a:1", "b:1"}, 2, "a"},
		{"more than two are several, too", []string{"a:1", "b:1", "c:1", "a:2"}, 2, "a"},
	} {
		p := page{}.show(linesOf(c.words...))
		if p.resources != c.things || p.resource().Name != c.thing || p.picks() != (c.things > 1) {
			t.Errorf("%s: %d things, %q", c.name, p.resources, p.resource().Name)
		}
	}
	if got := looking(9, 0, "a:1", "b:1").resource(); got.Name != "" {
		t.Errorf("beyond the end there is nothing: %+v", got)
	}
}

func TestMovingOverAPage(t *testing.T) {
	small := frame{columns: 40, rows: 3}
	gap := []string{"a:1", "1", "2", "3", "b:1", "4", "c:1"}
	for _, c := range []struct {
		name        string
		page        page
		by          int
		cursor, top int
	}{
		{"to the next thing, over a line about nothing", looking(4, 2, gap...), 1, 6, 4},
		{"and back", looking(6, 4, gap...), -1, 4, 4},
		{"the next thing is out of sight: a line further", looking(0, 0, gap...), 1, 1, 0},
		{"until it is in sight", looking(2, 0, gap...), 1, 4, 2},
		{"two at once", looking(2, 0, gap...), 2, 6, 4},
		{"not beyond the end", looking(6, 4, gap...), 1, 6, 4},
		{"not before the beginning", looking(0, 0, gap...), -1, 0, 0},
		{"to the first thing, over lines about nothing", looking(2, 0, gap...), -1, 0, 0},
		{"without a choice the screen moves", looking(0, 0, "1", "2", "3", "4", "5"), 1, 0, 1},
		{"not beyond its last lines", looking(0, 0, "1", "2", "3", "4", "5"), 9, 0, 2},
		{"not before its first line", looking(0, 1, "1", "2", "3", "4", "5"), -9, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.page.tail = true
			got := c.page.move(c.by, small)
			if got.cursor != c.cursor || got.top != c.top || got.tail {
				t.Errorf("cursor %d, top %d, tail %t; want %d, %d", got.cursor, got.top, got.tail, c.cursor, c.top)
			}
		})
	}
}

func TestTheEndsOfAPage(t *testing.T) {
	small := frame{columns: 40, rows: 3}
	several, one := []string{"a:1", "b:1", "c:1", "d:1", "e:1"}, []string{"1", "2", "3", "4", "5"}
	for _, c := range []struct {
		name        string
		page        page
		last        bool
		cursor, top int
		tail        bool
	}{
		{"the last thing", looking(0, 0, several...), true, 4, 2, false},
		{"the first thing", looking(4, 2, several...), false, 0, 0, false},
		{"the end of a log, which goes on there", looking(0, 0, one...), true, 4, 2, true},
		{"its beginning", looking(4, 2, one...), false, 0, 0, false},
		{"of an empty page", looking(0, 0), true, 0, 0, true},
	} {
		got := c.page.end(c.last, small)
		if got.cursor != c.cursor || got.top != c.top || got.tail != c.tail {
			t.Errorf("%s: cursor %d, top %d, tail %t", c.name, got.cursor, got.top, got.tail)
		}
	}
	tailed := looking(0, 0, one...).end(true, small)
	grown := tailed.show(linesOf("1", "2", "3", "4", "5", "6", "7")).within(small)
	if grown.top != 4 {
		t.Errorf("what goes on at its end shows the newest: top %d", grown.top)
	}
	shorter := looking(4, 2, several...).show(linesOf("a:1", "b:1")).within(small)
	if shorter.cursor != 1 || shorter.top != 0 {
		t.Errorf("of a shorter page the cursor stays on it: %d, top %d", shorter.cursor, shorter.top)
	}
}

func TestTheFilterOfAPage(t *testing.T) {
	lines := linesOf("a:Running", "a:step dump", "", "b:Idle", "c:Running")
	lines = append(lines, view.Line{Text: "PLAN PHASE", Head: true}, view.Line{Text: "policy night: paused", Part: 1}, view.Line{Text: "resume it", Part: 1}, view.Line{Text: "namespace shop: frozen", Part: 2})
	for _, c := range []struct {
		words string
		want  []int
	}{
		{"", []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		{"night", []int{5, 6, 7}}, // the whole of a part, which is no resource
		{"frozen", []int{5, 8}},
		{"DUMP", []int{0, 1, 5}}, // the whole block, and heads
		{"running", []int{0, 1, 4, 5}},
		{"nothing of that", []int{5}},
	} {
		if diff := cmp.Diff(c.want, filtered(lines, c.words)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.words, diff)
		}
	}
	p := page{}.show(lines)
	p.cursor, p.top = 4, 3
	if got := p.filterBy("running"); got.resource().Name != "c" || got.cursor != 2 || got.top != 0 {
		t.Errorf("the cursor stays on its thing: %d, %q", got.cursor, got.resource().Name)
	}
	if got := p.filterBy("idle"); got.resource().Name != "b" || got.cursor != 0 {
		t.Errorf("where that is left out, on the first: %d, %q", got.cursor, got.resource().Name)
	}
	if got := p.filterBy("nothing of that"); got.cursor != 0 || got.resource().Name != "" || got.unmatched() != "no line matches" {
		t.Errorf("where all is, on nothing: %d, %q, %q", got.cursor, got.resource().Name, got.unmatched())
	}
	if said := p.filterBy("").unmatched() + p.filterBy("idle").unmatched(); said != "" {
		t.Errorf("of lines that are shown: %q", said)
	}
}

// On a narrow terminal columns go in their order, and no sooner than they must.
func TestWhichColumnsANarrowScreenShows(t *testing.T) {
	table := &view.Table{Spare: []int{3, 1}}
	cells := []string{"orders", "Running", "Sun 02:00", "Succeeded 6d ago", "short"}
	table.Fit(cells)
	table.Fit([]string{"", "", "", "", "a reason that is longer than thirty columns of a terminal"})
	l := view.Line{Cells: cells, Table: table}
	for _, c := range []struct {
		columns int
		want    string
	}{
		{76, "orders  Running  Sun 02:00  Succeeded 6d ago  short"},
		{75, "orders  Running  Sun 02:00  short"},
		{58, "orders  Running  Sun 02:00  short"},
		{57, "orders  Sun 02:00  short"},
		{1, "orders  Sun 02:00  short"},
	} {
		t.Run(fmt.Sprint(c.columns), func(t *testing.T) {
			if got := row(l, c.columns); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// What matters of a row is its phase: on the narrowest screen the namespace goes, then the end of the name.
func TestThePhaseIsSeenOnTheNarrowestScreen(t *testing.T) {
	table := &view.Table{Spare: []int{4, 3}, Keep: 2}
	cells := []string{"production", "orders-weekly", "Running", "Sun 02:00", "Succeeded 6d ago", "short"}
	table.Fit(cells)
	l := view.Line{Cells: cells, Table: table}
	for _, c := range []struct {
		columns int
		want    string
	}{
		{34, "production  orders-weekly  Running  short"}, // the end is cut
		{33, "orders-weekly  Running  short"},
		{22, "orders-weekly  Running  short"},
		{18, "orders-w…  Running  short"},
		{8, "ord…  Running  short"},
	} {
		t.Run(fmt.Sprint(c.columns), func(t *testing.T) {
			if got := row(l, c.columns); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestLinesBreakAtSpacesAlone(t *testing.T) {
	l := view.Line{Text: "waits until 2026-11-30 for somebody ('kubectl maint approve maint-run-ap-ssrabeh5i3')"}
	want := []string{"waits until 2026-11-30 for somebody", "    ('kubectl maint approve", "    maint-run-ap-ssrabeh5i3')"}
	if diff := cmp.Diff(want, frame{columns: 45, rows: 9}.wrapped(page{}, l)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if got := wrap("nightly-restart-of-orders", 8); len(got) < 3 || strings.Join(got, "") != "nightly-restart-of-orders" {
		t.Errorf("a word that is longer than the width: %q", got)
	}
}
