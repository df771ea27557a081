package savings

import (
	"cmp"
	_ "embed" // for the page's template
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"time"
)

//go:embed page.html.tmpl
var pageTemplate string //nolint:gochecknoglobals // what go:embed fills

// Report is what a page or a table shows.
type Report struct {
	From, To time.Time
	Rows     []Row
}

// page is what the template fills in: all of it is text, and escaped.
type page struct {
	Span, Total string
	Height      int
	Bars        []bar
	Rows        []line
}

// bar is the hours of one plan in the picture.
type bar struct {
	Plan, Text string
	Y, Width   int
}

type line struct{ Plan, Target, Kind, Resources, Sleeps, Hours, Saved, Note string }

const (
	barsShown = 20
	barHeight = 26
	barWidth  = 420
)

// HTML is the report as a document of one file, with a picture of the hours of each plan.
func (r Report) HTML() string {
	document := template.Must(template.New("page").Parse(pageTemplate))
	var out strings.Builder
	if err := document.Execute(&out, r.page()); err != nil { // a strings.Builder takes everything
		panic(err)
	}
	return out.String()
}

func (r Report) page() page {
	const day = "Mon 2006-01-02 15:04 MST"
	p := page{Span: r.From.UTC().Format(day) + " to " + r.To.UTC().Format(day), Total: TotalOf(r.Rows).String(), Bars: r.bars()}
	p.Height = len(p.Bars) * barHeight
	for _, row := range r.Rows {
		l := line{
			Plan: row.Namespace + "/" + row.Plan, Target: row.Target, Kind: row.Kind, Resources: fmt.Sprint(row.Resources), Sleeps: fmt.Sprint(row.Sleeps),
			Hours: fmt.Sprintf("%.1f", row.Hours), Saved: row.Money(),
		}
		l.Note = row.Note()
		p.Rows = append(p.Rows, l)
	}
	return p
}

// bars are the plans that slept longest.
func (r Report) bars() []bar {
	hours := map[string]float64{}
	for _, row := range r.Rows {
		hours[row.Namespace+"/"+row.Plan] += row.Hours
	}
	plans := slices.SortedFunc(maps.Keys(hours), func(a, b string) int {
		return cmp.Or(cmp.Compare(hours[b], hours[a]), strings.Compare(a, b))
	})
	var out []bar
	for i, plan := range plans[:min(len(plans), barsShown)] {
		width := 1
		if most := hours[plans[0]]; most > 0 {
			width = max(1, int(hours[plan]/most*barWidth))
		}
		out = append(out, bar{Plan: plan, Text: fmt.Sprintf("%.1f h", hours[plan]), Y: i * barHeight, Width: width})
	}
	return out
}

// Note says what of a row is left out.
func (row Row) Note() string {
	var notes []string
	if len(row.Unpriced) > 0 {
		notes = append(notes, "no price of "+strings.Join(row.Unpriced, ", "))
	}
	if len(row.Uncounted) > 0 {
		notes = append(notes, "not counted, since more hours are recorded than are possible: "+strings.Join(row.Uncounted, ", "))
	}
	return strings.Join(notes, "; ")
}

// Money is what a row saved, as people read it; empty where no price is known.
func (row Row) Money() string {
	if row.Currency == "" {
		return ""
	}
	return fmt.Sprintf("%.2f %s", row.Saved, row.Currency)
}

// String says a total in one line: 120.5 hours, 14.20 USD.
func (t Total) String() string {
	parts := []string{fmt.Sprintf("%.1f hours", t.Hours)}
	for _, currency := range slices.Sorted(maps.Keys(t.Saved)) {
		parts = append(parts, fmt.Sprintf("%.2f %s", t.Saved[currency], currency))
	}
	return strings.Join(parts, ", ")
}
