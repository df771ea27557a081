package calendar

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"
)

// Measures of the picture, in its own units; a unit is a pixel where it is shown
// in its size.
const (
	gutter    = 200.0 // names stand here
	dayWidth  = 150.0
	edge      = 14.0
	gridRight = gutter + 7*dayWidth
	width     = gridRight + edge
	laneTall  = 24.0
	slotHalf  = 5.5
	// letterWide is how wide a letter of the small text may be. Fonts differ; a
	// wide one (DejaVu Sans, Verdana) fills it, so that no text meets another.
	letterWide = 6.9
	crowded    = 2*slotHalf + 2 // slots nearer than this are drawn as one line
)

// mark is something drawn in a lane of a week.
type mark struct {
	entries []Entry // one, or slots that are too near to tell apart
	x, w    float64 // w is 0 for a slot alone
	text    string
	textX   float64
	room    float64 // for the text
	inside  bool    // the text stands in the bar
}

func (m mark) first() Entry { return m.entries[0] }

func (m mark) end() float64 {
	if m.first().Kind == Slot {
		return m.x + m.w + slotHalf
	}
	return m.x + m.w
}

// lane is one owner in one week.
type lane struct {
	owner Owner
	marks []mark
}

// lanes are those of a week. A plan without anything in the week is left out; a
// policy is not, for a week without a window is news.
func (p Page) lanes(w week, sorted []Entry) []lane {
	of := map[Owner][]Entry{}
	for _, e := range sorted {
		if w.overlaps(e) && p.covers(e) {
			of[e.Owner] = append(of[e.Owner], e)
		}
	}
	var out []lane
	for _, o := range p.Owners {
		if len(of[o]) > 0 || o.Kind == "policy" {
			out = append(out, lane{owner: o, marks: p.marks(w, of[o])})
		}
	}
	return out
}

func (p Page) marks(w week, entries []Entry) []mark {
	var out []mark
	for _, e := range entries {
		x := gutter + dayWidth*w.at(later(e.Start, p.From))
		if e.Kind == Slot {
			out = addSlot(out, e, x)
			continue
		}
		end := gutter + dayWidth*w.at(earlier(e.End, p.To))
		out = append(out, mark{entries: []Entry{e}, x: x, w: max(end-x, 2)})
	}
	slices.SortStableFunc(out, func(a, b mark) int { return cmp.Compare(rank(a), rank(b)) })
	lefts := []float64{gridRight}
	for _, m := range out {
		lefts = append(lefts, m.left())
	}
	slices.Sort(lefts)
	loc := p.clock()
	for i := range out {
		next := sort.Search(len(lefts)-1, func(j int) bool { return lefts[j] > out[i].x })
		out[i].place(lefts[next], loc)
	}
	return unstack(out)
}

// rank puts freezes at the bottom and slots on top.
func rank(m mark) int { return slices.Index([]Kind{Freeze, Window, Sleep, Slot}, m.first().Kind) }

func (m mark) left() float64 {
	if m.first().Kind == Slot {
		return m.x - slotHalf
	}
	return m.x
}

// addSlot joins a slot to the one before it where they would touch.
func addSlot(marks []mark, e Entry, x float64) []mark {
	for i := len(marks) - 1; i >= 0; i-- {
		m := &marks[i]
		if m.first().Kind != Slot || m.first().Idle != e.Idle || m.first().Failed != e.Failed {
			continue
		}
		if x-(m.x+m.w) < crowded {
			m.entries, m.w = append(m.entries, e), x-m.x
			return marks
		}
		break
	}
	return append(marks, mark{entries: []Entry{e}, x: x})
}

// place finds room for the words of a mark: in its bar, else behind it, up to
// where the next one begins; else there are none, and its title has them.
func (m *mark) place(room float64, loc *time.Location) {
	e := m.first()
	inner := min(m.x+m.w, room) - m.x - 10
	m.room = inner
	if e.Kind == Freeze {
		if e.Note != "" {
			m.text = cut(e.Note, min(int(inner/letterWide), 90))
		}
		if len([]rune(m.text)) < 4 && m.text != e.Note {
			m.text = ""
		}
		m.textX, m.inside = m.x+5, true
		return
	}
	text := m.times(loc)
	need := float64(len([]rune(text))) * letterWide
	switch {
	case text == "":
	case (e.Kind == Window || e.Kind == Sleep) && need <= inner:
		m.text, m.textX, m.inside = text, m.x+5, true
	case m.end()+4+need <= room-4:
		m.text, m.textX, m.room = text, m.end()+4, room-m.end()-6
	}
}

// times is the short word for when.
func (m mark) times(loc *time.Location) string {
	e := m.first()
	start, end := e.Start.In(loc), e.End.In(loc)
	switch {
	case e.Kind == Slot && len(m.entries) > 1:
		return fmt.Sprintf("%d×", len(m.entries))
	case e.Kind == Slot:
		return start.Format("15:04")
	case e.Unbegun && e.Unending && e.Kind == Sleep:
		return "always asleep"
	case e.Unbegun && e.Unending:
		return "always open"
	case e.Unbegun:
		return "until " + end.Format("15:04")
	case e.Unending:
		return "from " + start.Format("15:04")
	}
	if end.Sub(start) > 24*time.Hour {
		return start.Format("Mon 15:04") + "–" + end.Format("Mon 15:04")
	}
	return start.Format("15:04") + "–" + end.Format("15:04")
}

// unstack takes words away that would stand on those of another mark: two
// freezes at once have one line of words.
func unstack(marks []mark) []mark {
	var said []mark
	for i := range marks {
		m := &marks[i]
		if m.text == "" {
			continue
		}
		if slices.ContainsFunc(said, func(o mark) bool {
			return o.textX < m.textX+m.textWide() && m.textX < o.textX+o.textWide()
		}) {
			m.text = ""
			continue
		}
		said = append(said, *m)
	}
	return marks
}

func (m mark) textWide() float64 { return float64(len([]rune(m.text)))*letterWide + 4 }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
