package calendar

import (
	"fmt"
	"html"
	"strings"
	"time"
)

// crowdedDay is how many slots a plan may have in a day before the table of the
// page says them in one line.
const crowdedDay = 6

// HTML is the page as a document of one file: what stands now, the picture, and
// all of it again as a table for those who do not see the picture.
func (p Page) HTML() string {
	var out strings.Builder
	fmt.Fprintf(&out, `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<title>%[1]s</title>
<style>%[2]s</style>
</head>
<body>
<header>
<h1>%[1]s</h1>
<p class="range">%[3]s</p>
<p class="note">%[4]s. %[5]s.</p>
</header>
<main>
`, html.EscapeString(p.Title), pageStyle, html.EscapeString(p.span()), html.EscapeString(p.clocks()), html.EscapeString(p.counts()))
	p.writeStandings(&out)
	// Narrow screens scroll it: who uses the keyboard has to be able to get there.
	out.WriteString("<section aria-labelledby=\"picture\">\n<h2 id=\"picture\">Week by week</h2>\n<div class=\"scroll\" role=\"region\" aria-label=\"Picture of the weeks\" tabindex=\"0\">\n")
	out.WriteString(p.figure())
	out.WriteString("</div>\n</section>\n")
	p.writeEntries(&out)
	out.WriteString("</main>\n</body>\n</html>\n")
	return out.String()
}

func (p Page) writeStandings(out *strings.Builder) {
	all := p.standings()
	if len(all) == 0 {
		return
	}
	now := Entry{Kind: Slot, Start: p.Now}
	fmt.Fprintf(out, "<section aria-labelledby=\"now\">\n<h2 id=\"now\">Now and next</h2>\n<div class=\"scroll\" role=\"region\" aria-label=\"Now and next\" tabindex=\"0\">\n<table>\n<caption>As of <time datetime=\"%s\">%s</time></caption>\n", stamp(p.Now), html.EscapeString(now.local(p.clock())))
	out.WriteString("<thead><tr><th scope=\"col\">Whose</th><th scope=\"col\">Now</th><th scope=\"col\">Next</th></tr></thead>\n<tbody>\n")
	for _, s := range all {
		fmt.Fprintf(out, "<tr><th scope=\"row\"><span class=\"sort\">%s</span> %s</th><td>%s</td><td>%s</td></tr>\n", s.owner.Kind, html.EscapeString(s.owner.path()), badge(s.class, s.present), html.EscapeString(s.next))
	}
	out.WriteString("</tbody>\n</table>\n</div>\n</section>\n")
}

func badge(class, text string) string {
	if class == "" {
		return html.EscapeString(text)
	}
	rest := strings.TrimPrefix(text, class)
	return fmt.Sprintf(`<span class="badge %s">%s</span>%s`, class, class, html.EscapeString(rest))
}

func (p Page) writeEntries(out *strings.Builder) {
	loc := p.clock()
	out.WriteString("<section aria-labelledby=\"all\">\n<h2 id=\"all\">All of it</h2>\n<div class=\"scroll\" role=\"region\" aria-label=\"All windows, freezes and slots\" tabindex=\"0\">\n<table>\n")
	fmt.Fprintf(out, "<caption>Windows, freezes and slots in order of time, on the clocks of %s and in UTC</caption>\n", html.EscapeString(p.Zone))
	out.WriteString("<thead><tr><th scope=\"col\">When</th><th scope=\"col\">UTC</th><th scope=\"col\">What</th><th scope=\"col\">Whose</th><th scope=\"col\">Note</th></tr></thead>\n<tbody>\n")
	for _, r := range p.rows(loc) {
		fmt.Fprintf(out, "<tr><th scope=\"row\">%s</th><td class=\"utc\">%s</td><td><span class=\"badge %s\">%s</span></td><td><span class=\"sort\">%s</span> %s</td><td>%s</td></tr>\n",
			html.EscapeString(r.local), utcTimes(r), r.class, r.what, r.owner.Kind, html.EscapeString(r.owner.path()), html.EscapeString(r.note))
	}
	out.WriteString("</tbody>\n</table>\n</div>\n</section>\n")
}

// row is a line of the table.
type row struct {
	local, utc, class, what, note string
	owner                         Owner
}

func utcTimes(r row) string {
	start, end, lasts := strings.Cut(r.utc, "/")
	if !lasts {
		return timeElement(start)
	}
	return timeElement(start) + " – " + timeElement(end)
}

func timeElement(at string) string {
	if at == ".." {
		return "…"
	}
	text := strings.TrimSuffix(strings.Replace(at, "T", " ", 1), "Z")
	return fmt.Sprintf(`<time datetime="%s">%s</time>`, at, strings.TrimSuffix(text, ":00")+"Z")
}

// rows are the entries, with the slots of a crowded day as one.
func (p Page) rows(loc *time.Location) []row {
	type dayOf struct {
		owner Owner
		date  string
		idle  bool
	}
	of := func(e Entry) dayOf { return dayOf{e.Owner, e.Start.In(loc).Format(time.DateOnly), e.Idle} }
	sorted := p.sorted()
	slots := map[dayOf][]Entry{}
	for _, e := range sorted {
		if e.Kind == Slot {
			slots[of(e)] = append(slots[of(e)], e)
		}
	}
	var out []row
	for _, e := range sorted {
		many := slots[of(e)]
		if e.Kind != Slot || len(many) <= crowdedDay {
			out = append(out, row{e.local(loc), e.utc(), class(e), e.what(), e.Note, e.Owner})
			continue
		}
		if first, last := many[0], many[len(many)-1]; e == first {
			whole := Entry{Kind: Window, Start: first.Start, End: last.Start}
			out = append(out, row{whole.local(loc), whole.utc(), class(e), fmt.Sprintf("%d %ss", len(many), e.what()), e.Note, e.Owner})
		}
	}
	return out
}

func class(e Entry) string {
	if e.Idle {
		return "idle"
	}
	return string(e.Kind)
}

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
