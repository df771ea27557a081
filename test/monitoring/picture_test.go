package monitoring

import (
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// series is what Prometheus answers: an instant has one value, a range many.
type series struct {
	Metric map[string]string `json:"metric"`
	Value  sample            `json:"value"`
	Values []sample          `json:"values"`
}

// sample is a value at an instant, in seconds since 1970.
type sample struct{ at, value float64 }

func (s *sample) UnmarshalJSON(b []byte) error {
	var pair [2]any
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	at, isNumber := pair[0].(float64)
	text, isText := pair[1].(string)
	if !isNumber || !isText {
		return fmt.Errorf("a sample is %s", b)
	}
	value, err := strconv.ParseFloat(text, 64)
	s.at, s.value = at, value
	return err
}

// asked are the series of an expression: at an instant, or since one.
func (p *prometheus) asked(expr string, instant bool, since time.Time) ([]series, error) {
	path := "/api/v1/query?query=" + url.QueryEscape(expr)
	if !instant {
		path = fmt.Sprintf("/api/v1/query_range?query=%s&start=%d&end=%d&step=1", url.QueryEscape(expr), since.Unix(), time.Now().Unix())
	}
	body, err := p.get(path)
	if err != nil {
		return nil, err
	}
	var out struct {
		Status string
		Data   struct{ Result []series }
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return nil, err
	}
	if out.Status != "success" {
		return nil, fmt.Errorf("status %q", out.Status)
	}
	return out.Data.Result, nil
}

// drawn is a panel as it is shown.
type drawn struct {
	panel
	Style  template.CSS
	Unit   string
	Stat   string
	Colour template.CSS
	Rows   [][]string
	Lines  []line
	Most   string
	Empty  bool
}

type line struct {
	Name, Points string
	Colour       template.CSS
}

// picture is the dashboard with what its queries are answered, as a page, since no Grafana is
// here that would draw it.
func (l *lab) picture(since time.Time) string {
	l.Helper()
	d := readDashboard(l.T)
	var panels []drawn
	for _, p := range d.Panels {
		panels = append(panels, l.draw(p, since))
	}
	var out strings.Builder
	l.must(template.Must(template.New("page").Parse(page)).Execute(&out, map[string]any{"Title": d.Title, "Panels": panels}))
	return out.String()
}

func (l *lab) draw(p panel, since time.Time) drawn {
	l.Helper()
	out := drawn{panel: p, Unit: p.FieldConfig.Defaults.Unit, Empty: true}
	out.Style = template.CSS(fmt.Sprintf("grid-column:%d/span %d;grid-row:%d/span %d", p.GridPos.X+1, p.GridPos.W, p.GridPos.Y+1, p.GridPos.H)) //nolint:gosec // numbers
	most := 0.0
	var lines []series
	for _, target := range p.Targets {
		found, err := l.prometheus.asked(filled().Replace(target.Expr), target.Instant, since)
		if err != nil {
			l.Errorf("%s: %v", target.Expr, err)
		}
		for _, s := range found {
			out.Empty = false
			s.Metric["__name__"] = target.named(s.Metric)
			switch p.Type {
			case "stat":
				out.Stat, out.Colour = human(s.Value.value, out.Unit), p.colour(s.Value.value)
			case "table":
				out.Rows = append(out.Rows, row(s, out.Unit))
			default:
				s.Values = slices.DeleteFunc(s.Values, func(v sample) bool { return math.IsNaN(v.value) })
				lines = append(lines, s)
				for _, v := range s.Values {
					most = max(most, v.value)
				}
			}
		}
	}
	for i, s := range lines {
		out.Lines = append(out.Lines, s.line(i, most, since))
	}
	out.Most = human(most, out.Unit)
	return out
}

// named is a series in a legend: {{result}} stands for its label.
func (t target) named(labels map[string]string) string {
	text := t.LegendFormat
	for name, value := range labels {
		text = strings.ReplaceAll(text, "{{"+name+"}}", value)
	}
	return text
}

// row is a series of a table: its labels, without those of every series, and its value.
func row(s series, unit string) []string {
	out := []string{s.Metric["__name__"]}
	for _, name := range slices.Sorted(maps.Keys(s.Metric)) {
		if !slices.Contains([]string{"__name__", "instance", "job"}, name) {
			out = append(out, name+"="+s.Metric[name])
		}
	}
	return append(out, human(s.Value.value, unit))
}

const width, height = 600.0, 150.0

func (s series) line(i int, most float64, since time.Time) line {
	colours := []template.CSS{"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2"}
	out := line{Name: s.Metric["__name__"], Colour: colours[i%len(colours)]}
	long := max(time.Since(since).Seconds(), 1)
	for _, v := range s.Values {
		x, y := (v.at-float64(since.Unix()))/long*width, height
		if most > 0 {
			y -= v.value / most * (height - 10)
		}
		out.Points += fmt.Sprintf("%.1f,%.1f ", x, y)
	}
	return out
}

// colour is that of the last threshold that a value has reached.
func (p panel) colour(v float64) template.CSS {
	out := "inherit"
	for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
		if step.Value == nil || v >= *step.Value {
			out = step.Color
		}
	}
	return template.CSS(out) //nolint:gosec // a word of the dashboard
}

// human is a value in its unit, as Grafana would say it.
func human(v float64, unit string) string {
	switch unit {
	case "s":
		return time.Duration(v * float64(time.Second)).Round(time.Millisecond).String()
	case "bytes":
		return fmt.Sprintf("%.1f MiB", v/(1<<20))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

const page = `<!doctype html><meta charset="utf-8"><title>{{.Title}}</title>
<style>
body{font:12px system-ui,sans-serif;margin:12px;background:#f4f5f5;color:#1f2328}
main{display:grid;grid-template-columns:repeat(24,1fr);grid-auto-rows:34px;gap:4px}
section{background:#fff;border:1px solid #ddd;padding:6px;overflow:hidden}
section.row{background:none;border:0;font-weight:700}
h2{font-size:12px;margin:0 0 4px}
.stat{font-size:34px;text-align:center}
.none{color:#888;text-align:center;padding-top:30px}
td{padding:1px 8px 1px 0;white-space:nowrap}
svg{width:100%;height:150px;border-bottom:1px solid #bbb}
.key{display:inline-block;width:10px;height:3px;margin:0 4px 2px 10px}
</style>
<h1>{{.Title}}</h1><main>
{{range .Panels}}<section class="{{.Type}}" style="{{.Style}}"><h2 title="{{.Description}}">{{.Title}}</h2>
{{if eq .Type "row"}}{{else if .Empty}}<div class="none">no data</div>
{{else if eq .Type "stat"}}<div class="stat" style="color:{{.Colour}}">{{.Stat}}</div>
{{else if eq .Type "table"}}<table>{{range .Rows}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>{{end}}</table>
{{else}}<svg viewBox="0 0 600 150" preserveAspectRatio="none">{{range .Lines}}<polyline fill="none" stroke="{{.Colour}}" stroke-width="2" points="{{.Points}}"/>{{end}}</svg>
<div>to {{.Most}} {{.Unit}}{{range .Lines}}<span class="key" style="background:{{.Colour}}"></span>{{.Name}}{{end}}</div>{{end}}
</section>{{end}}</main>`

// keep writes the picture where MAINT_PICTURE says.
func (l *lab) keep(picture string) {
	l.Helper()
	if path := os.Getenv("MAINT_PICTURE"); path != "" {
		l.must(os.WriteFile(path, []byte(picture), 0o600))
	}
}
