package calendar

import (
	_ "embed" // for the page's template
	"html/template"
	"strings"
	"time"
)

//go:embed page.html.tmpl
var pageTemplate string //nolint:gochecknoglobals // what go:embed fills

// HTML is the page as a document of one file: what stands now, the picture, and
// all of it again as a table for those who do not see the picture.
func (p Page) HTML() string {
	document := template.Must(template.New("page").Parse(pageTemplate))
	var out strings.Builder
	// A strings.Builder takes everything, and the fields are those below.
	if err := document.Execute(&out, p.folded().document()); err != nil {
		panic(err)
	}
	return out.String()
}

// document is what the page's template fills in. What is of a type of
// html/template is our own markup; all else is text, and escaped.
type document struct {
	Title, Span, Clocks, Counts, Zone string
	Style                             template.CSS
	Now                               moment
	Standings                         []standingLine
	Figure                            template.HTML
	Rows                              []row
}

// moment is an instant for machines (RFC 3339) and for people.
type moment struct{ Stamp, Text string }

type standingLine struct {
	Kind, Path, Class, Present, Next string
}

// row is a line of the table.
type row struct {
	Local             string
	Times             []moment // one, or a start and an end; without a stamp: unbounded
	Class, What, Note string
	Kind, Path        string
}

func (p Page) document() document {
	now := Entry{Kind: Slot, Start: p.Now}
	d := document{
		Title: p.Title, Span: p.span(), Clocks: p.clocks(), Counts: p.counts(), Zone: p.Zone,
		Style:  template.CSS(pageStyle + map[bool]string{true: pageSleepStyle}[p.sleeps()] + map[bool]string{true: pageFailedStyle}[p.fails()]), //nolint:gosec // two constants
		Now:    moment{stamp(p.Now), now.local(p.clock())},
		Rows:   p.rows(p.clock()),
		Figure: template.HTML(p.figure()), //nolint:gosec // drawn here, with every text escaped
	}
	for _, s := range p.standings() {
		d.Standings = append(d.Standings, standingLine{
			Kind: s.owner.Kind, Path: s.owner.path(), Class: s.class,
			Present: strings.TrimPrefix(s.present, s.class), Next: s.next,
		})
	}
	return d
}

// rowOf is the line of an entry, with the times of when, which may be several of them.
func rowOf(e, when Entry, what string, loc *time.Location) row {
	return row{
		Local: when.local(loc), Times: utcTimes(when), Class: class(e), What: what, Note: e.Note,
		Kind: e.Owner.Kind, Path: e.Owner.path(),
	}
}

func utcTimes(e Entry) []moment {
	var out []moment
	for at := range strings.SplitSeq(e.utc(), "/") {
		if at == ".." {
			out = append(out, moment{Text: "…"})
			continue
		}
		text := strings.TrimSuffix(strings.Replace(at, "T", " ", 1), "Z")
		out = append(out, moment{Stamp: at, Text: strings.TrimSuffix(text, ":00") + "Z"})
	}
	return out
}

// rows are the entries, with the slots of a crowded day as one.
func (p Page) rows(loc *time.Location) []row {
	var out []row
	for _, e := range p.daily(loc) {
		if e.Slots == 0 {
			out = append(out, rowOf(e, e, e.what(), loc))
			continue
		}
		whole := Entry{Kind: Window, Start: e.Start, End: e.End}
		out = append(out, rowOf(e, whole, countOf(e.Slots, e.what()), loc))
	}
	return out
}

func class(e Entry) string {
	switch {
	case e.Failed:
		return "failed"
	case e.Idle:
		return "idle"
	}
	return string(e.Kind)
}

// pageFailedStyle is for pages with slots that needed somebody.
const pageFailedStyle = `
.badge.failed{background:#b3261e;color:#ffffff}
@media (prefers-color-scheme:dark){.badge.failed{background:#ff8a80;color:#3b0a06}}
`

// pageSleepStyle is for pages on which something is hibernated.
const pageSleepStyle = `
.badge.asleep,.badge.sleep{background:#3b5b8c;color:#ffffff}
@media (prefers-color-scheme:dark){.badge.asleep,.badge.sleep{background:#8fb0e8;color:#0a1a33}}
`

// pageStyle has the colours of svgStyle, under names.
const pageStyle = `
:root{color-scheme:light dark;--paper:#ffffff;--ink:#1f2328;--muted:#57606a;--rule:#d6dbe1;--stripe:#f5f6f8;--open:#1c7a55;--on-open:#ffffff;--freeze:#ffece2;--on-freeze:#6d2306;--slot:#5a3dbf;--on-slot:#ffffff;--focus:#0b57b0}
@media (prefers-color-scheme:dark){:root{--paper:#0f141a;--ink:#e6e9ee;--muted:#a3adb8;--rule:#2d3642;--stripe:#161c24;--open:#46c08f;--on-open:#06251a;--freeze:#3b1e12;--on-freeze:#ffdccb;--slot:#b9a5ff;--on-slot:#1a1038;--focus:#8fc2ff}}
*{box-sizing:border-box}
body{margin:0 auto;padding:24px 20px 48px;max-width:1288px;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",Ubuntu,"DejaVu Sans",sans-serif;font-variant-numeric:tabular-nums}
h1{font-size:26px;line-height:1.2;margin:0 0 4px}
h2{font-size:17px;margin:28px 0 8px}
p{margin:0}
.range{font-size:17px}
.note,caption,.sort,.utc{color:var(--muted)}
.scroll{overflow-x:auto}
.scroll:focus-visible{outline:3px solid var(--focus);outline-offset:2px}
.scroll>svg{display:block;width:100%;min-width:960px;height:auto}
table{border-collapse:collapse;width:100%;min-width:820px;font-size:14px}
caption{text-align:left;padding:0 0 6px}
th,td{text-align:left;font-weight:400;vertical-align:top;padding:6px 14px 6px 0;border-bottom:1px solid var(--rule);overflow-wrap:break-word}
thead th{font-weight:600;white-space:nowrap}
time{white-space:nowrap}
tbody th,.utc{min-width:11em}
tbody tr:nth-child(even){background:var(--stripe)}
.sort{font-size:13px}
.badge{display:inline-block;padding:0 7px;border:1px solid transparent;border-radius:4px;font-size:13px;white-space:nowrap}
.badge.open,.badge.window{background:var(--open);color:var(--on-open)}
.badge.frozen,.badge.freeze{background:var(--freeze);color:var(--on-freeze);border-color:currentColor}
.badge.slot{background:var(--slot);color:var(--on-slot)}
.badge.closed,.badge.idle{border-color:var(--muted)}
@media print{.scroll{overflow:visible}.scroll>svg{min-width:0}}
`
