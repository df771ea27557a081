package calendar

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"time"
)

// SVG is the page as a picture: a row for every week, a column for every day,
// a lane for every policy and plan. It needs no script, no font and no other
// file, and follows the light or dark of who looks at it.
func (p Page) SVG() string {
	d := &drawing{page: p.folded().spreadOut(), loc: p.clock()}
	y := d.header()
	y = d.legend(y)
	y = d.weeks(y)
	return d.wrap(y)
}

// figure is the picture without its heading, for a page that has one.
func (p Page) figure() string {
	d := &drawing{page: p.spreadOut(), loc: p.clock()}
	return d.wrap(d.weeks(d.legend(6)))
}

// drawing is a picture in the making. Functions that draw take the y at which
// they begin and return that below them.
type drawing struct {
	page Page
	loc  *time.Location
	body strings.Builder
}

func (d *drawing) wrap(height float64) string {
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" class="maint" viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-labelledby="maint-title maint-about">`+"\n", num(width), num(height), num(width), num(height))
	fmt.Fprintf(&out, "<title id=\"maint-title\">%s</title>\n", html.EscapeString(d.page.Title))
	fmt.Fprintf(&out, "<desc id=\"maint-about\">%s</desc>\n", html.EscapeString(d.page.span()+". "+d.page.clocks()+". "+d.page.counts()+"."))
	fmt.Fprintf(&out, "<style>%s</style>\n%s", svgStyle+map[bool]string{true: svgSleepStyle}[d.page.sleeps()]+map[bool]string{true: svgFailedStyle}[d.page.fails()], svgPatterns)
	fmt.Fprintf(&out, `<rect class="paper" width="%s" height="%s"/>`+"\n", num(width), num(height))
	out.WriteString(d.body.String())
	out.WriteString("</svg>\n")
	return out.String()
}

// num writes a length with at most one digit behind the point.
func num(x float64) string { return strconv.FormatFloat(float64(int(x*10+0.5))/10, 'f', -1, 64) }

func (d *drawing) rect(class string, x, y, w, h float64, more string) {
	fmt.Fprintf(&d.body, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"%s/>`+"\n", class, num(x), num(y), num(w), num(h), more)
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&d.body, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`+"\n", class, num(x1), num(y1), num(x2), num(y2))
}

func (d *drawing) text(class string, x, y float64, text string) {
	fmt.Fprintf(&d.body, `<text class="%s" x="%s" y="%s">%s</text>`+"\n", class, num(x), num(y), html.EscapeString(text))
}

// narrowText is text that is never wider than its room, whatever the font.
func (d *drawing) narrowText(class string, x, y, room, tall float64, text string) {
	fmt.Fprintf(&d.body, `<svg x="%s" y="%s" width="%s" height="%s">`, num(x), num(y), num(room), num(tall))
	fmt.Fprintf(&d.body, `<text class="%s" x="0" y="%s">%s</text></svg>`+"\n", class, num(tall/2+4), html.EscapeString(text))
}

func (d *drawing) title(text string) {
	fmt.Fprintf(&d.body, "<title>%s</title>", html.EscapeString(text))
}

func (d *drawing) diamond(class string, x, y float64) {
	h := slotHalf
	fmt.Fprintf(&d.body, `<path class="%s" d="M%s %sL%s %sL%s %sL%s %sZ"/>`+"\n", class, num(x-h), num(y), num(x), num(y-h), num(x+h), num(y), num(x), num(y+h))
}

func (d *drawing) header() float64 {
	d.text("h1", edge, 38, d.page.Title)
	d.text("lead", edge, 60, d.page.span())
	d.text("muted", edge, 79, d.page.clocks()+words(". ", d.page.lead))
	return 92
}

// legend explains the marks. It is drawn with the classes that it explains.
func (d *drawing) legend(y float64) float64 {
	middle, x := y+10, edge
	word := func(text string) {
		d.text("muted", x+34, middle+4, text)
		x += 34 + float64(len(text))*letterWide + 14
	}
	d.rect("window", x, middle-6, 26, 12, ` rx="2"`)
	word("window: change permitted")
	d.rect("freeze-base", x, middle-6, 26, 12, ` rx="2"`)
	d.rect("freeze", x, middle-6, 26, 12, ` rx="2" fill="url(#maint-hatch)"`)
	word("freeze: change forbidden")
	if d.page.sleeps() {
		d.rect("sleep", x, middle-6, 26, 12, ` rx="2"`)
		word("sleep: hibernated")
	}
	d.diamond("slot", x+13, middle)
	word("slot of a plan")
	d.diamond("slot idle", x+13, middle)
	word("slot at which nothing starts")
	if d.page.fails() {
		d.diamond("slot failed", x+13, middle)
		word("failed or missed")
	}
	if d.page.current() {
		d.line("now", x+13, middle-7, x+13, middle+7)
		word("now")
	}
	return y + 30
}

func (d *drawing) weeks(y float64) float64 {
	sorted := d.page.Sorted()
	for _, w := range d.page.weeks() {
		y = d.week(y, w, sorted) + 20
	}
	return y
}

func (d *drawing) week(y float64, w week, sorted []Entry) float64 {
	lanes := d.page.lanes(w, sorted)
	top := y + 42
	bottom := top + laneTall*float64(max(len(lanes), 1)) + 4
	d.columns(y, top, bottom, w)
	d.text("week", edge, y+17, w.number())
	d.text("muted", edge, y+36, w[0].date.Format("January 2006"))
	for i := 1; i < len(lanes); i++ {
		between := top + 2 + laneTall*float64(i)
		d.line("between", gutter, between, gridRight, between)
	}
	d.nowLine(top, bottom, w)
	for i, l := range lanes {
		d.lane(top+2+laneTall*float64(i), l)
	}
	if len(lanes) == 0 {
		d.text("muted", gutter+8, top+laneTall/2+6, "nothing")
	}
	if d.page.Zone == "UTC" {
		return bottom
	}
	d.axis(bottom+12, w, "UTC")
	d.text("axis left", gutter-8, bottom+12, "UTC")
	return bottom + 16
}

// columns draws the days: their names, their hours on the page's clocks and the
// lines between them.
func (d *drawing) columns(y, top, bottom float64, w week) {
	today := d.page.current()
	for _, day := range w {
		x := gutter + dayWidth*float64(day.column)
		switch {
		case today && day.contains(d.page.Now):
			d.rect("today", x, y, dayWidth, bottom-y, "")
		case day.column > 4:
			d.rect("weekend", x, y, dayWidth, bottom-y, "")
		}
		name := day.date.Format("Mon 2")
		if day.date.Day() == 1 || day.column == 0 {
			name = day.date.Format("Mon 2 Jan")
		}
		class := "day"
		if today && day.contains(d.page.Now) {
			class, name = "day is-today", name+" · today"
		}
		d.text(class, x+6, y+17, name)
		if length := day.end.Sub(day.start); length != 24*time.Hour {
			d.text("clock", x+dayWidth-6, y+17, num(length.Hours())+" h")
		}
		d.line("divider", x, y, x, bottom)
	}
	d.line("divider", gridRight, y, gridRight, bottom)
	d.line("rule", gutter, top, gridRight, top)
	d.line("rule", gutter, bottom, gridRight, bottom)
	d.axis(top-6, w, d.page.Zone)
	d.text("axis left", gutter-8, top-6, cut(zoneNames(w, d.loc), 12))
	d.outside(y, bottom, w)
}

// zoneNames are the names by which clocks go in a week: CET, or CET/CEST.
func zoneNames(w week, loc *time.Location) string {
	first, last := w.start().In(loc).Format("MST"), w.end().Add(-time.Second).In(loc).Format("MST")
	if first == last {
		return first
	}
	return first + "/" + last
}

// axis writes the hours that a clock shows, where it shows them.
func (d *drawing) axis(baseline float64, w week, zone string) {
	for _, day := range w {
		for _, h := range day.marks(zone) {
			x := gutter + dayWidth*w.at(h.at)
			class := "axis"
			if x-gutter < 8 || gridRight-x < 8 {
				continue // half of it would be cut
			}
			d.text(class, x, baseline, h.text)
		}
	}
}

// outside greys what the page does not cover.
func (d *drawing) outside(y, bottom float64, w week) {
	if d.page.From.After(w.start()) {
		d.rect("outside", gutter, y, dayWidth*w.at(d.page.From), bottom-y, "")
	}
	if d.page.To.Before(w.end()) {
		from := dayWidth * w.at(d.page.To)
		d.rect("outside", gutter+from, y, gridRight-gutter-from, bottom-y, "")
	}
}

func (d *drawing) nowLine(top, bottom float64, w week) {
	now := d.page.Now
	if !w.contains(now) || !d.page.current() {
		return
	}
	x := gutter + dayWidth*w.at(now)
	d.body.WriteString("<g>")
	d.title("now: " + Entry{Kind: Slot, Start: now}.local(d.loc) + " · " + stamp(now))
	d.line("now", x, top, x, bottom)
	fmt.Fprintf(&d.body, `<path class="now-head" d="M%s %sh8l-4 6z"/></g>`+"\n", num(x-4), num(top-1))
}

func (d *drawing) lane(y float64, l lane) {
	d.body.WriteString("<g>")
	d.title(l.owner.String())
	d.narrowText("owner "+l.owner.Kind, edge, y, gutter-edge-10, laneTall, cutMiddle(d.page.label(l.owner), 20))
	d.body.WriteString("</g>")
	for _, m := range l.marks {
		d.mark(y, m)
	}
	for _, m := range l.marks { // above all bars
		if m.text == "" {
			continue
		}
		class := "time"
		if m.inside {
			class = "in-" + string(m.first().Kind)
		}
		if m.inside && m.first().Idle {
			class = "time"
		}
		d.narrowText(class, m.textX, y, m.room, laneTall, m.text)
	}
}

func (d *drawing) mark(y float64, m mark) {
	middle := y + laneTall/2
	d.body.WriteString("<g>")
	d.title(m.says(d.page, d.loc))
	switch e := m.first(); e.Kind {
	case Slot:
		class := "slot"
		if e.Idle {
			class += " idle"
		}
		if e.Failed {
			class += " failed"
		}
		if m.w > 0 {
			d.rect(class, m.x, middle-2.5, m.w, 5, "")
			d.diamond(class, m.x+m.w, middle)
		}
		d.diamond(class, m.x, middle)
	case Freeze:
		d.rect("freeze-base", m.x, middle-9, m.w, 18, ` rx="2"`)
		d.rect("freeze", m.x, middle-9, m.w, 18, ` rx="2" fill="url(#maint-hatch)"`)
	default:
		d.rect(strings.TrimSpace(string(e.Kind)+" "+map[bool]string{true: "idle"}[e.Idle]), m.x, middle-7, m.w, 14, ` rx="2"`)
	}
	d.body.WriteString("</g>\n")
}

// says is the whole of a mark in words, for whoever points at it.
func (m mark) says(p Page, loc *time.Location) string {
	e, last := m.first(), m.entries[len(m.entries)-1]
	if len(m.entries) > 1 {
		span := onceWhereAlike(e.local(loc)+" to "+last.local(loc), e.utcForPeople()+" to "+last.utcForPeople())
		return fmt.Sprintf("%d %ss of %s · %s", len(m.entries), e.what(), p.label(e.Owner), span)
	}
	text := e.what() + " of " + p.label(e.Owner) + " · " + e.onBothClocks(loc)
	if e.Note != "" {
		text += " · " + e.Note
	}
	return text
}
