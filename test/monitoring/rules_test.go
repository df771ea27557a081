package monitoring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

const (
	manifests = "../../manifests/monitoring/"
	runbooks  = "../../docs/runbooks/"
	// onGitHub is where a page of this repository is read.
	onGitHub = "https://github.com/kubectl-maint/kubectl-maint/blob/main/docs/runbooks/"
)

// rules are the groups as Prometheus reads them.
type rules struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

type rule struct {
	Record      string            `json:"record,omitempty"`
	Alert       string            `json:"alert,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func file(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func readRules(t *testing.T) rules {
	t.Helper()
	var out rules
	if err := yaml.UnmarshalStrict(file(t, manifests+"rules.yaml"), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// alerts are the rules that wake somebody.
func (r rules) alerts() []rule {
	var out []rule
	for _, g := range r.Groups {
		for _, one := range g.Rules {
			if one.Alert != "" {
				out = append(out, one)
			}
		}
	}
	return out
}

// The operator's object is made of the rules that promtool tests: MAINT_WRITE=1 writes it.
func TestTheOperatorsRulesAreTheTestedOnes(t *testing.T) {
	const path = manifests + "prometheusrule.yaml"
	var spec strings.Builder
	for line := range strings.Lines(string(file(t, manifests+"rules.yaml"))) {
		if !strings.HasPrefix(line, "#") {
			spec.WriteString("  " + line)
		}
	}
	want := "# Made of rules.yaml by `MAINT_WRITE=1 go test ./test/monitoring`.\n" +
		"apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: maint\n  namespace: maint-system\n  labels:\n    app.kubernetes.io/name: maint-agent\nspec:\n" + spec.String()
	if os.Getenv("MAINT_WRITE") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // a manifest is for everybody
			t.Fatal(err)
		}
	}
	if string(file(t, path)) != want {
		t.Errorf("%s is not what rules.yaml says: MAINT_WRITE=1 go test ./test/monitoring", path)
	}
}

func TestEachAlertSaysWhatItIsAndWhereToRead(t *testing.T) {
	for _, a := range readRules(t).alerts() {
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
			t.Errorf("%s has severity %q", a.Alert, a.Labels["severity"])
		}
		for _, key := range []string{"summary", "description"} {
			if a.Annotations[key] == "" {
				t.Errorf("%s has no %s", a.Alert, key)
			}
		}
		if a.Annotations["runbook_url"] != onGitHub+a.Alert+".md" {
			t.Errorf("%s: its page is at %q", a.Alert, a.Annotations["runbook_url"])
		}
	}
}

func TestEachAlertHasItsPageAndEachPageItsAlert(t *testing.T) {
	var alerts, pages []string
	for _, a := range readRules(t).alerts() {
		alerts = append(alerts, a.Alert+".md")
	}
	entries, err := os.ReadDir(runbooks)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "README.md" {
			pages = append(pages, e.Name())
		}
	}
	slices.Sort(alerts)
	if !slices.Equal(alerts, pages) {
		t.Errorf("alerts %v\npages %v", alerts, pages)
	}
	list := string(file(t, runbooks+"README.md"))
	for _, a := range readRules(t).alerts() {
		row := fmt.Sprintf("| [%s](%s.md) | %s |", a.Alert, a.Alert, a.Labels["severity"])
		if !strings.Contains(list, row) {
			t.Errorf("the list of runbooks has no %q", row)
		}
		page := string(file(t, runbooks+a.Alert+".md"))
		for _, part := range []string{"# " + a.Alert + "\n", "\n## Look\n", "\n## Do\n", "\n## Escalate\n", "kubectl maint "} {
			if !strings.Contains(page, part) {
				t.Errorf("%s.md has no %q", a.Alert, part)
			}
		}
	}
}

// Who is woken at night gives the commands of the page as they stand there.
func TestThePagesNameCommandsThatExist(t *testing.T) {
	command := regexp.MustCompile("(?m)(?:^|`)(kubectl maint [^`\n|]+)")
	pages, err := filepath.Glob(runbooks + "*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, page := range pages {
		for _, found := range command.FindAllStringSubmatch(string(file(t, page)), -1) {
			words := strings.Fields(found[1])[2:]
			root := cmd.New(factory.Env{Name: "kubectl maint"})
			c, rest, err := root.Find(words)
			if err != nil || c == root {
				t.Errorf("%s: %q is no command: %v", filepath.Base(page), found[1], err)
				continue
			}
			if err := c.ParseFlags(rest); err != nil {
				t.Errorf("%s: %q: %v", filepath.Base(page), found[1], err)
			}
		}
	}
}

// The alert is about an object of some namespace, and who is woken has another one in the
// kubeconfig. One pod of the agent leads, and kubectl would choose any. A kind that the
// cluster does not serve would keep kubectl from showing the others.
func TestThePagesLookWhereTheFaultIs(t *testing.T) {
	commands := regexp.MustCompile("(?m)(?:^|`)(kubectl [^`\n|#]+)")
	pages, err := filepath.Glob(runbooks + "*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, page := range pages {
		for _, found := range commands.FindAllStringSubmatch(string(file(t, page)), -1) {
			line := strings.TrimSpace(found[1])
			words := strings.Fields(line)
			ofNamespace := slices.ContainsFunc(words, func(w string) bool { return slices.Contains([]string{"PLAN", "POLICY", "RUN", "OBJECT"}, w) })
			for fault, has := range map[string]bool{
				"names no namespace":                         ofNamespace && !strings.Contains(line, "-n NAMESPACE"),
				"reads the log of one pod":                   strings.Contains(line, "logs deploy/") && !slices.Contains(words, "--all-pods"),
				"gets what only the Prometheus Operator has": strings.Contains(line, "servicemonitors,") || strings.Contains(line, ",servicemonitors"),
			} {
				if has {
					t.Errorf("%s: %q %s", filepath.Base(page), line, fault)
				}
			}
		}
	}
}

// Each alert has a test in which it fires, and one in which it does not.
func TestEachAlertIsTestedBothWays(t *testing.T) {
	type unit struct {
		Tests []struct {
			Name          string `json:"name"`
			AlertRuleTest []struct {
				Alertname string            `json:"alertname"`
				ExpAlerts []json.RawMessage `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	files, err := filepath.Glob(manifests + "tests/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		var u unit
		if err := yaml.Unmarshal(file(t, path), &u); err != nil {
			t.Fatal(path, err)
		}
		for _, one := range u.Tests {
			for _, a := range one.AlertRuleTest {
				fires[a.Alertname] = fires[a.Alertname] || len(a.ExpAlerts) > 0
				silent[a.Alertname] = silent[a.Alertname] || len(a.ExpAlerts) == 0
			}
		}
	}
	for _, a := range readRules(t).alerts() {
		if !fires[a.Alert] || !silent[a.Alert] {
			t.Errorf("%s: tested to fire: %t, to stay silent: %t", a.Alert, fires[a.Alert], silent[a.Alert])
		}
	}
}

// The page of operators is held to the code by the tests of the metrics; rules and
// dashboard are held to the page here.
func TestRulesAndDashboardNameMetricsThatExist(t *testing.T) {
	page := string(file(t, "../../docs/operations.md"))
	word := regexp.MustCompile(`\b(?:maint|change_management|rest_client)_[a-z0-9_]+`)
	told := map[string]bool{}
	for _, name := range word.FindAllString(page, -1) {
		told[name] = true
	}
	recorded := map[string]bool{}
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			recorded[r.Record] = true
		}
	}
	histogram := regexp.MustCompile(`_(bucket|count|sum)$`)
	for where, queries := range map[string][]string{"rules.yaml": readRules(t).queries(), "dashboard.json": readDashboard(t).queries()} {
		if len(queries) == 0 {
			t.Errorf("%s has no queries", where)
		}
		for _, q := range queries {
			for _, name := range word.FindAllString(q, -1) {
				if !told[name] && !told[histogram.ReplaceAllString(name, "")] {
					t.Errorf("%s: %s: there is no metric %s", where, q, name)
				}
			}
			for _, name := range regexp.MustCompile(`\bmaint:[a-z0-9_:]+`).FindAllString(q, -1) {
				if !recorded[name] {
					t.Errorf("%s: %s: no rule records %s", where, q, name)
				}
			}
		}
	}
}

func (r rules) queries() []string {
	var out []string
	for _, g := range r.Groups {
		for _, one := range g.Rules {
			out = append(out, one.Expr)
		}
	}
	return out
}

// dashboard is what the tests look at of Grafana's JSON.
type dashboard struct {
	SchemaVersion int    `json:"schemaVersion"`
	UID           string `json:"uid"`
	Title         string `json:"title"`
	Panels        []panel
	Templating    struct {
		List []struct {
			Name  string `json:"name"`
			Type  string `json:"type"`
			Query any    `json:"query"`
		} `json:"list"`
	} `json:"templating"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct{ X, Y, W, H int }
	Datasource  struct{ UID string }
	Targets     []target `json:"targets"`
	FieldConfig struct {
		Defaults struct {
			Unit       string
			Thresholds struct {
				Steps []struct {
					Color string
					Value *float64
				}
			}
		}
	}
}

type target struct {
	RefID        string `json:"refId"`
	Expr         string `json:"expr"`
	Instant      bool   `json:"instant"`
	LegendFormat string `json:"legendFormat"`
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	decoder := json.NewDecoder(bytes.NewReader(file(t, manifests+"dashboard.json")))
	if err := decoder.Decode(&d); err != nil {
		t.Fatal(err)
	}
	return d
}

// filled fills in variables as Grafana does.
func filled() *strings.Replacer {
	return strings.NewReplacer("$__rate_interval", "2m", "$namespace", ".*")
}

// queries are those of all panels.
func (d dashboard) queries() []string {
	var out []string
	for _, p := range d.Panels {
		for _, one := range p.Targets {
			out = append(out, filled().Replace(one.Expr))
		}
	}
	return out
}

// schemaOfGrafana is the schema version of Grafana 10; newer ones bring it up to their own.
const schemaOfGrafana = 38

func TestTheDashboardIsWhole(t *testing.T) {
	d := readDashboard(t)
	if d.SchemaVersion != schemaOfGrafana || d.UID == "" || d.Title == "" {
		t.Errorf("schema %d, uid %q, title %q", d.SchemaVersion, d.UID, d.Title)
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%q lies over %q", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%q is wider than the page", p.Title)
		}
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("panel %d: title %q, description %q, data source %q, %d queries", p.ID, p.Title, p.Description, p.Datasource.UID, len(p.Targets))
		}
	}
}
