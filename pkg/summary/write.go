package summary

import (
	_ "embed" // for the page's template
	"encoding/csv"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
)

//go:embed page.html.tmpl
var pageTemplate string //nolint:gochecknoglobals // what go:embed fills

// Section is one of the tables that a report consists of.
type Section struct {
	Title  string
	Header []string
	Rows   [][]string
}

// Sections are the tables of a report for people, with instants as when writes them; those
// without a row are left out.
func (r Report) Sections(when func(time.Time) string) []Section {
	all := []Section{r.plans(when), r.endings(when), r.notes(when), r.decisions(when)}
	return slices.DeleteFunc(all, func(s Section) bool { return len(s.Rows) == 0 })
}

func (r Report) plans(when func(time.Time) string) Section {
	s := Section{Title: "Plans", Header: []string{"Plan", "Runs", "Succeeded", "Failed", "Aborted", "Replaced", "Skipped", "Missed", "Late (median)", "Late (most)", "Worked", "Nodes", "Windows used", "Note"}}
	for _, row := range r.Rows {
		windows := ""
		if row.Windows > 0 {
			windows = fmt.Sprintf("%d of %d", row.WindowsUsed, row.Windows)
		}
		s.Rows = append(s.Rows, []string{
			row.Plan, text(row.Runs), text(row.Succeeded), text(row.Failed), text(row.Aborted), text(row.Replaced), text(row.Skipped), text(row.Missed),
			seconds(row.LateMedian), seconds(row.LateMost), seconds(row.Seconds), text(row.Nodes), windows, row.note(when),
		})
	}
	return s
}

// note is what the numbers of a plan leave open.
func (r Row) note(when func(time.Time) string) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		parts = append(parts, fmt.Sprintf("%s: %d", reason, r.Reasons[reason]))
	}
	if r.Requests > 0 {
		parts = append(parts, Number(r.Requests, "request")+" never began")
	}
	if r.DryRuns > 0 {
		parts = append(parts, Number(r.DryRuns, "dry run")+" not counted")
	}
	if r.Asleep > 0 {
		parts = append(parts, Number(r.Asleep, "sleep")+" not over")
	}
	if r.NothingSlept > 0 {
		parts = append(parts, "nothing slept in "+Number(r.NothingSlept, "sleep"))
	}
	if r.Straddling > 0 {
		parts = append(parts, fmt.Sprintf("%s of one reason lie on both sides of the report's begin or end, and count where the last of them lies", Number(r.Straddling, "slot")))
	}
	if r.MoreWindows {
		parts = append(parts, fmt.Sprintf("there are more than %d windows, and only these are counted", r.Windows))
	}
	if r.Unknown > 0 {
		parts = append(parts, Number(r.Unknown, "run")+" of unknown outcome")
	}
	if r.LedgerFault != "" {
		parts = append(parts, "its ledger "+r.LedgerFault)
	}
	if r.BegunAnew != nil {
		parts = append(parts, "its ledger begins anew at "+when(*r.BegunAnew)+": what was before is not known")
	}
	if r.Since != nil {
		parts = append(parts, "its ledger reaches back to "+when(*r.Since))
	}
	return strings.Join(parts, "; ")
}

func (r Report) endings(when func(time.Time) string) Section {
	s := Section{Title: "What did not succeed", Header: []string{"When", "Plan", "Result", "Reason", "Step", "Message", "Run"}}
	for _, e := range r.Endings {
		result := e.Result
		if e.Slots != 0 { // it is folded
			result = fmt.Sprintf("%s (%s)", e.Result, Number(e.Slots, "slot"))
		}
		s.Rows = append(s.Rows, []string{when(e.At), e.Plan, result, e.Reason, e.Step, e.Message, e.Run})
	}
	return s
}

func (r Report) notes(when func(time.Time) string) Section {
	s := Section{Title: "What else is to be known of runs that succeeded", Header: []string{"When", "Plan", "Message", "Run"}}
	for _, e := range r.Notes {
		s.Rows = append(s.Rows, []string{when(e.At), e.Plan, e.Message, e.Run})
	}
	return s
}

func (r Report) decisions(when func(time.Time) string) Section {
	s := Section{Title: "Decisions of people", Header: []string{"When", "Plan", "What", "Who", "Why", "Step", "Run"}}
	for _, d := range r.Decisions {
		who := intent.Actor{Name: d.Actor, Verified: d.Verified}.Who()
		if who == "" && !strings.HasSuffix(d.What, notKept) {
			who = intent.Unknown
		}
		s.Rows = append(s.Rows, []string{when(d.At), d.Plan, d.What, who, d.Reason, d.Step, d.Run})
	}
	return s
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

func seconds(n int64) string {
	if n == 0 {
		return "0s"
	}
	return (time.Duration(n) * time.Second).String()
}

// stamp is an instant where a reader's zone is not known, in the form of tables.
func stamp(t time.Time) string { return t.UTC().Format("Mon 2006-01-02 15:04 MST") }

// Markdown is the report for a ticket or a wiki.
func (r Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Maintenance from %s to %s\n\n%s.\n", stamp(r.From), stamp(r.To), r.Sentence())
	for _, s := range r.Sections(stamp) {
		fmt.Fprintf(&b, "\n## %s\n\n%s%s", s.Title, markdownRow(s.Header), "|"+strings.Repeat(" --- |", len(s.Header))+"\n")
		for _, row := range s.Rows {
			b.WriteString(markdownRow(row))
		}
	}
	return b.String()
}

// markdownRow escapes what would end a cell or be read as markup.
func markdownRow(cells []string) string {
	escape := strings.NewReplacer(`\`, `\\`, "|", `\|`, "\n", " ", "\r", " ", "<", "&lt;", ">", "&gt;", "`", "\\`", "[", `\[`, "*", `\*`, "_", `\_`)
	var b strings.Builder
	b.WriteString("|")
	for _, c := range cells {
		b.WriteString(" " + escape.Replace(c) + " |")
	}
	return b.String() + "\n"
}

// CSV is one line an entry, for spreadsheets: times are RFC 3339 in UTC, lateness and
// duration are seconds, and a name that nobody has checked is marked (unverified).
func (r Report) CSV() string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	lines := [][]string{{"plan", "slot", "started", "result", "reason", "phase", "failure", "step", "message", "run", "actor", "dryRun", "slots", "lateSeconds", "durationSeconds", "nodes", "overrides"}}
	for _, e := range r.runs {
		lines = append(lines, e.cells())
	}
	_ = w.WriteAll(lines) // a strings.Builder takes everything
	return b.String()
}

func (e entryOf) cells() []string {
	phase, failure, step, message, took, nodes := "", "", "", e.entry.Said, "", ""
	var overrides []string
	if o := e.entry.Outcome; o != nil {
		phase, failure, step, message = string(o.Phase), o.Reason, o.Step, o.Message
		took, nodes = text(int64(o.Duration.Seconds())), text(o.Nodes)
		for _, d := range o.Overrides {
			overrides = append(overrides, strings.TrimSpace(d.What+" "+intent.Actor{Name: d.Actor, Verified: d.Verified}.Who()))
		}
		if o.MoreOverrides > 0 {
			overrides = append(overrides, fmt.Sprintf("%d more", o.MoreOverrides))
		}
	}
	late := ""
	if e.entry.Slot != nil && e.entry.StartedAt != nil {
		late = text(secondsLate(e.entry, e.created))
	}
	slots := slotsOf(e.entry)
	if isRequest(e.entry) {
		slots = 0
	}
	cells := []string{
		e.plan, utc(e.entry.Slot), utc(e.entry.StartedAt), string(e.entry.Result), e.entry.Reason, phase, failure, step, message, e.entry.Run, e.entry.Who(),
		strconv.FormatBool(e.entry.DryRun), text(slots), late, took, nodes, strings.Join(overrides, "; "),
	}
	for i, c := range cells {
		cells[i] = inert(c)
	}
	return cells
}

func utc(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// inert keeps a spreadsheet from taking words of a plan's author for a formula.
func inert(cell string) string {
	if strings.IndexAny(cell, "=+-@\t\r") == 0 {
		return "'" + cell
	}
	return cell
}

// page is what the template fills in: all of it is text, and escaped.
type page struct {
	Span, Total string
	Bars        []bar
	Height      int
	Sections    []Section
}

// bar is how the runs of one plan ended, in the picture.
type bar struct {
	Plan, Text             string
	Y                      int
	Good, Bad, Other       int // widths
	BadAt, OtherAt, TextAt int
}

const (
	barsShown = 30
	barHeight = 26
	barWidth  = 380
	barAt     = 260
)

// HTML is the report as a document of one file, with a picture of how each plan's runs
// ended.
func (r Report) HTML() string {
	document := template.Must(template.New("page").Parse(pageTemplate))
	var out strings.Builder
	if err := document.Execute(&out, r.page()); err != nil { // a strings.Builder takes everything
		panic(err)
	}
	return out.String()
}

func (r Report) page() page {
	p := page{Span: stamp(r.From) + " to " + stamp(r.To), Total: r.Sentence(), Bars: r.bars(), Sections: r.Sections(stamp)}
	p.Height = len(p.Bars) * barHeight
	return p
}

// bars are the plans with the most failures and missed slots first.
func (r Report) bars() []bar {
	rows := slices.Clone(r.Rows)
	slices.SortStableFunc(rows, func(a, b Row) int { return int(b.bad() - a.bad()) })
	rows = rows[:min(len(rows), barsShown)]
	most := int64(1)
	for _, row := range rows {
		most = max(most, row.ends())
	}
	out := make([]bar, len(rows))
	width := func(n int64) int { return int(n * barWidth / most) }
	for i, row := range rows {
		good, bad := width(row.Succeeded), width(row.bad())
		other := width(row.ends() - row.Succeeded - row.bad())
		out[i] = bar{
			Plan: row.Plan, Y: i * barHeight, Good: good, Bad: bad, Other: other, BadAt: barAt + good, OtherAt: barAt + good + bad, TextAt: barAt + good + bad + other + 8,
			Text: fmt.Sprintf("%d of %d", row.Succeeded, row.ends()),
		}
	}
	return out
}

// bad is what should have succeeded and did not.
func (r Row) bad() int64 { return r.Failed + r.Missed }

func (r Row) ends() int64 { return r.Runs + r.Skipped + r.Missed }
