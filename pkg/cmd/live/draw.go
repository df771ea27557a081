package live

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/terminal"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// frame is the part of the screen for a page.
type frame struct {
	columns, rows int
	mark          terminal.Mark
}

// gutter is the width of the cursor's column, where there is a cursor.
const gutter = 2

// height is how many rows a line takes.
func (f frame) height(p page, l view.Line) int { return len(f.wrapped(p, l)) }

// wrapped is a line in rows of the screen. A table row is cut; other lines are wrapped completely,
// unless that would fill the screen.
func (f frame) wrapped(p page, l view.Line) []string {
	columns := f.columns
	if p.picks() {
		columns -= gutter
	}
	columns = max(columns, 1)
	if l.Table != nil {
		return []string{ansi.Truncate(f.clean(row(l, columns)), columns, "…")}
	}
	text := f.clean(l.Text)
	if ansi.StringWidth(text) <= columns {
		return []string{text}
	}
	indent := hanging(text, columns)
	rows := wrap(text, columns-len(indent))
	for i := 1; i < len(rows); i++ {
		rows[i] = indent + strings.TrimLeft(rows[i], " ")
	}
	if most := max(f.rows, 1); len(rows) > most {
		rows = append(rows[:most-1], ansi.Truncate(rows[most-1], columns-1, "")+"…")
	}
	return rows
}

// wrap breaks a text at spaces alone, so that names, dates and commands can be copied; a word that is
// longer than the width is cut.
func wrap(text string, width int) []string {
	const hyphen, kept = "-", "\ue000" // ansi.Wrap breaks at each hyphen, and not at what has no meaning
	rows := ansi.Wrap(strings.ReplaceAll(text, hyphen, kept), width, "")
	return strings.Split(strings.ReplaceAll(rows, kept, hyphen), "\n")
}

// clean removes what must not reach the terminal: line breaks, and sequences that are not ours.
func (f frame) clean(text string) string {
	text = f.mark.Clean(text)
	return strings.NewReplacer("\t", "    ", "\r\n", "; ", "\n", "; ").Replace(text)
}

// hanging is the indentation of the further rows of a line.
func hanging(text string, columns int) string {
	bare := ansi.Strip(text)
	n := len(bare) - len(strings.TrimLeft(bare, " ")) + 4
	return strings.Repeat(" ", min(n, columns/4))
}

// row aligns the cells of a table; spare columns are left out one after the other until the rest
// fits.
func row(l view.Line, columns int) string {
	left := make([]int, 0, len(l.Cells))
	for i := range l.Cells {
		left = append(left, i)
	}
	for _, spare := range l.Table.Spare {
		if wide(l.Table, left) <= columns {
			break
		}
		left = slices.DeleteFunc(left, func(i int) bool { return i == spare })
	}
	left, name, room := squeezed(l.Table, left, columns)
	var b strings.Builder
	for n, i := range left {
		cell, width := l.Cells[i], l.Table.Widths[i]
		if i == name && room < width {
			cell, width = ansi.Truncate(cell, room, "…"), room
		}
		if n > 0 {
			b.WriteString("  ")
		}
		b.WriteString(cell)
		if n < len(left)-1 {
			b.WriteString(strings.Repeat(" ", max(width-ansi.StringWidth(cell), 0)))
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// leastName is how much of a name a narrow screen shows, in columns (a guess).
const leastName = 4

// squeezed are the columns of a table with the one that is to be seen whatever the width: those before
// the name go first, then the name is cut to a width, which is returned.
func squeezed(t *view.Table, columns []int, screen int) (left []int, name, room int) {
	at := slices.Index(columns, t.Keep)
	if at < 1 {
		return columns, -1, 0
	}
	name, room = columns[at-1], screen-2-t.Widths[t.Keep]
	before := 0
	for _, i := range columns[:at-1] {
		before += t.Widths[i] + 2
	}
	if before+t.Widths[name] <= room {
		return columns, -1, 0
	}
	return columns[at-1:], name, max(room, leastName)
}

// wide is the width of a table; of the last column, which has the reason, only a part counts.
func wide(t *view.Table, columns []int) (n int) {
	for k, i := range columns {
		w := t.Widths[i]
		if k == len(columns)-1 {
			w = min(w, 30)
		}
		n += w + 2
	}
	return n - 2
}

// frame is the part of the screen for the front page.
func (m model) frame() frame {
	return frame{columns: m.width, rows: max(m.height-len(m.below()), 1), mark: m.mark}
}

// screen draws the visible part of the front page, and below it questions, notices and keys.
func (m model) screen() string {
	below := m.below()
	f := m.frame()
	rows := m.helpRows()
	if !m.help {
		rows = m.front().rows(f)
	}
	rows = rows[:min(len(rows), f.rows)]
	for len(rows) < f.rows {
		rows = append(rows, "")
	}
	rows = append(rows, below...)
	return strings.Join(rows[max(0, len(rows)-m.height):], "\n")
}

// rows are the visible rows of a page.
func (p page) rows(f frame) []string {
	var out []string
	if p.tail && len(p.lines) == 0 {
		return []string{ansi.Truncate("nothing was printed yet", f.columns, "…")}
	}
	for i := p.top; i < len(p.shown) && len(out) < f.rows; i++ {
		for n, row := range f.wrapped(p, p.at(i)) {
			switch {
			case !p.picks():
			case i == p.cursor && n == 0:
				row = "> " + row
			default:
				row = "  " + row
			}
			out = append(out, row)
		}
	}
	return out
}

// below are the lines at the bottom.
func (m model) below() []string {
	var out []string
	say := func(text string) {
		text = frame{mark: m.mark}.clean(text)
		out = append(out, wrap(text, max(m.width, 1))...)
	}
	if m.footer.trouble != "" {
		say(m.footer.trouble)
	}
	switch {
	case m.footer.confirm != nil:
		say("run '" + m.footer.confirm.line(m.name) + "'? [y/N]")
	case m.footer.doing != "":
		say("running '" + m.footer.doing + "' …")
	case m.footer.notice != "":
		say(m.footer.notice)
	}
	if over := len(out) - max(m.height-2, 0); over > 0 {
		out = out[over:] // the page keeps at least a row, and a question is the last line
	}
	return append(out, ansi.Truncate(m.foot(), max(m.width, 1), "…"))
}

// foot shows the position on the page and the keys, as many as fit.
func (m model) foot() string {
	p := m.front()
	if m.typing {
		return "/" + frame{mark: m.mark}.clean(p.filter) + "█" + view.Prefix("  ", p.unmatched())
	}
	f := frame{columns: m.width, rows: max(m.height-1, 1), mark: m.mark}
	text := p.place(f)
	for _, more := range m.hints(p) {
		if ansi.StringWidth(text)+2+ansi.StringWidth(more) <= m.width {
			text += "  " + more
		}
	}
	return text
}

// place is the position on the page.
func (p page) place(f frame) string {
	rows, n := 0, 0
	for i := p.top; i < len(p.shown) && rows < f.rows; i++ {
		rows += f.height(p, p.at(i))
		n++
	}
	text := fmt.Sprintf("%d-%d/%d", min(p.top+1, len(p.shown)), p.top+n, len(p.shown))
	if p.filter != "" {
		text += " /" + f.clean(p.filter) + view.Prefix(": ", p.unmatched())
	}
	return text
}

func (m model) hints(p page) []string {
	out := []string{"q quit", "? help"}
	if len(m.pages) > 1 {
		out = append(out, "esc back")
	}
	out = append(out, "/ filter")
	if m.acts() && (p.picks() || p.opens && p.resources > 0) {
		out = append(out, "enter open")
	}
	if m.acts() && p.resources > 0 {
		of := p.resource()
		if of.Question != "" {
			out = append(out, "a approve")
		}
		if of.Resumes != "" {
			out = append(out, "r resume")
		}
		if m.can(p, "s") {
			out = append(out, "s skip")
		}
		if m.can(p, "l") {
			out = append(out, "l logs")
		}
	}
	return append(out, frame{mark: m.mark}.clean(p.title))
}

// can says whether a key acts on the resource of the page's cursor.
func (m model) can(p page, key string) bool {
	_, whyNot := commandFor(key, p.resource(), m.home)
	return m.acts() && whyNot == ""
}

// helpRows name the keys that act here: on a page with several resources, on any of them.
func (m model) helpRows() []string {
	p := m.front()
	all := []string{
		"any key closes this help",
		"up, k      down, j      a line up or down",
		"pgup, b    pgdn, space  a screen up or down",
		"g, home    G, end       to the beginning or the end",
		"/    only lines with these words; esc shows all again",
	}
	for _, more := range []struct {
		text  string
		shown bool
	}{
		{"enter    open the plan, run or node of the line", m.acts() && (p.picks() || p.opens && m.can(p, "enter"))},
		{"esc      back", true},
		{"a    approve what the run waits for", m.acts() && (p.picks() || p.resource().Kind != factory.KindNode)},
		{"r    resume the plan, the run or the node", m.acts()},
		{"s    skip the next slot of the plan", m.acts() && p.picks() || m.can(p, "s")},
		{"l    logs of the run", m.acts() && p.picks() || m.can(p, "l")},
		{"     a, r and s ask before they do anything", m.acts()},
		{"q    " + m.quit.words, true},
	} {
		if more.shown {
			all = append(all, more.text)
		}
	}
	var rows []string
	for _, text := range all {
		for i, row := range wrap(text, max(m.width-1, 1)) {
			if i > 0 {
				row = " " + strings.TrimLeft(row, " ")
			}
			rows = append(rows, row)
		}
	}
	return rows
}
