package live

import (
	"cmp"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// page is one page, with the position on it.
type page struct {
	id        int
	title     string
	lines     []view.Line
	shown     []int // indexes of the lines that pass the filter
	resources int   // number of different resources on it: 0, 1, or 2 for more
	filter    string
	top       int  // the first visible line, as an index of shown
	cursor    int  // the line that keys are for, as an index of shown, where there are several resources
	tail      bool // it follows its end, as for logs
	opens     bool // a single resource can be opened, too, since it is shown in short
	over      bool // nothing more comes
}

// picks says whether there is a choice of resources, and so a cursor.
func (p page) picks() bool { return p.resources > 1 }

// resource is the resource that keys are for.
func (p page) resource() view.Resource {
	if p.picks() {
		return p.at(p.cursor).Of
	}
	for _, l := range p.lines {
		if l.Of.Kind != "" {
			return l.Of
		}
	}
	return view.Resource{}
}

func (p page) at(i int) view.Line {
	if i < 0 || i >= len(p.shown) {
		return view.Line{}
	}
	return p.lines[p.shown[i]]
}

// show takes new lines. The cursor stays on its resource, wherever that is now.
func (p page) show(lines []view.Line) page {
	was, nth, row := p.at(p.cursor).Of.Key(), p.nth(), p.cursor-p.top
	p.lines = lines
	p.resources = resourcesIn(lines)
	p.shown = filtered(lines, p.filter)
	if !p.picks() {
		return p
	}
	if was == "" && p.cursor == 0 {
		p.cursor = max(0, p.next(-1, 1))
		return p
	}
	if at, found := p.find(was, nth); found {
		p.cursor = at
		if p.top > 0 {
			p.top = at - row
		}
	}
	return p
}

// nth is the line of the cursor among those of its resource, counted from the end: lines about what
// needs somebody come and go at the beginning.
func (p page) nth() (n int) {
	key := p.at(p.cursor).Of.Key()
	for i := p.cursor + 1; i < len(p.shown); i++ {
		if p.at(i).Of.Key() == key {
			n++
		}
	}
	return n
}

// find is the nth line of a resource from the end, or its first one.
func (p page) find(key string, nth int) (at int, found bool) {
	if key == "" {
		return 0, false
	}
	for i := len(p.shown) - 1; i >= 0; i-- {
		if p.at(i).Of.Key() != key {
			continue
		}
		at, found = i, true
		if nth--; nth < 0 {
			break
		}
	}
	return at, found
}

func resourcesIn(lines []view.Line) int {
	first := ""
	for _, l := range lines {
		switch key := l.Of.Key(); {
		case key == "" || key == first:
		case first == "":
			first = key
		default:
			return 2
		}
	}
	return min(len(first), 1)
}

// filtered are the lines with the words of the filter, with the other lines of the same resource,
// and with headings.
func filtered(lines []view.Line, filter string) []int {
	out := make([]int, 0, len(lines))
	words := strings.ToLower(filter)
	for i := 0; i < len(lines); {
		end := i + 1
		for end < len(lines) && lines[i].Together(lines[end]) {
			end++
		}
		if words == "" || slices.ContainsFunc(lines[i:end], func(l view.Line) bool { return l.Head || strings.Contains(plain(l), words) }) {
			for ; i < end; i++ {
				out = append(out, i)
			}
		}
		i = end
	}
	return out
}

// unmatched says that no line has the words of the filter; empty: one has, or there are none.
func (p page) unmatched() string {
	if p.filter == "" || slices.ContainsFunc(p.shown, func(i int) bool { return !p.lines[i].Head }) {
		return ""
	}
	return "no line matches"
}

// plain is the text of a line for the filter.
func plain(l view.Line) string { return strings.ToLower(ansi.Strip(l.Text)) }

// filterBy sets the filter.
func (p page) filterBy(words string) page {
	was, nth := p.at(p.cursor).Of.Key(), p.nth()
	p.filter, p.top = words, 0
	p.shown = filtered(p.lines, words)
	at, found := p.find(was, nth)
	if !found {
		at = max(0, p.next(-1, 1))
	}
	p.cursor = at
	return p
}

// next is the next line about a resource in a direction; -1: there is none.
func (p page) next(from, by int) int {
	for i := from + by; i >= 0 && i < len(p.shown); i += by {
		if p.at(i).Of.Kind != "" {
			return i
		}
	}
	return -1
}

// move moves by some lines: the cursor, where there is one, to the next resource unless that is out
// of sight.
func (p page) move(by int, f frame) page {
	p.tail = false
	if !p.picks() {
		p.top += by
		return p.within(f)
	}
	step := cmp.Compare(by, 0)
	for range by * step {
		if next := p.next(p.cursor, step); next >= 0 && (next-p.cursor)*step < f.rows {
			p.cursor = next
		} else {
			p.cursor = min(max(p.cursor+step, 0), max(len(p.shown)-1, 0))
		}
	}
	return p.within(f)
}

// end moves to the first or the last line.
func (p page) end(last bool, f frame) page {
	p.cursor, p.top = 0, 0
	p.tail = last && !p.picks()
	if last {
		p.cursor, p.top = len(p.shown)-1, len(p.shown)-1
	}
	return p.within(f)
}

// within keeps what is on the screen on the page, and the cursor on the screen.
func (p page) within(f frame) page {
	last := len(p.shown) - 1
	p.cursor = min(max(p.cursor, 0), max(last, 0))
	bottom := p.topFor(last, f)
	if p.tail {
		p.top = bottom
	}
	p.top = min(max(p.top, 0), bottom)
	if !p.picks() {
		return p
	}
	if p.cursor < p.top {
		p.top = p.cursor
	}
	p.top = max(p.top, p.topFor(p.cursor, f))
	return p
}

// topFor is the first visible line when a given line is the last visible one.
func (p page) topFor(last int, f frame) int {
	rows, top := 0, max(last, 0)
	for i := last; i >= 0; i-- {
		if rows += f.height(p, p.at(i)); rows > f.rows {
			break
		}
		top = i
	}
	return top
}
