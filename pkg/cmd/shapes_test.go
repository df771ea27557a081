package cmd

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// shape is what an object of docs/cli.md has, by its fields; open: what else it has is written
// elsewhere (…).
type shape struct {
	fields map[string]*shape
	open   bool
}

func (s *shape) field(name string) *shape {
	if s.fields[name] == nil {
		s.fields[name] = &shape{fields: map[string]*shape{}}
	}
	return s.fields[name]
}

var ( //nolint:gochecknoglobals // compiled once
	shapeKey  = regexp.MustCompile(`^"([A-Za-z]+)":`)
	shapeText = regexp.MustCompile(`^"[^"]*"`)
	shapeKind = regexp.MustCompile(`^"kind":"([A-Za-z]+)"`)
)

// readShape reads an object as the page writes it: JSON, with … for what is left out. It notes the
// shapes that name their kind, and returns what stands behind the object.
func readShape(text string, into *shape, kinds map[string]*shape) (rest string) {
	text = text[1:]
	for text != "" {
		switch {
		case text[0] == '}':
			return text[1:]
		case shapeKind.MatchString(text) && !strings.HasPrefix(text, `"kind":"Deployment"`):
			match := shapeKind.FindStringSubmatch(text)
			kinds[match[1]], text = into, text[len(match[0]):]
		case shapeKey.MatchString(text):
			match := shapeKey.FindStringSubmatch(text)
			text = readShapeOf(text[len(match[0]):], into.field(match[1]), kinds)
		case strings.HasPrefix(text, "…"):
			into.open, text = true, text[len("…"):]
		default:
			text = text[1:]
		}
	}
	return ""
}

// readShapeOf reads the value of a field.
func readShapeOf(text string, into *shape, kinds map[string]*shape) (rest string) {
	depth := 0
	for text != "" {
		switch {
		case text[0] == '{':
			text = readShape(text, into, kinds)
		case text[0] == '[':
			depth++
			text = text[1:]
		case text[0] == ']':
			depth--
			text = text[1:]
		case shapeText.MatchString(text):
			text = text[len(shapeText.FindString(text)):]
		case depth == 0 && (text[0] == ',' || text[0] == '}'):
			return text
		case strings.HasPrefix(text, "…"):
			into.open, text = true, text[len("…"):]
		default:
			text = text[1:]
		}
	}
	return ""
}

// documented are the shapes of docs/cli.md, by their kinds.
func documented(t *testing.T) map[string]*shape {
	t.Helper()
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Machine output\n")
	section, _, _ = strings.Cut(section, "\n## ")
	kinds := map[string]*shape{}
	var named []string
	for line := range strings.SplitSeq(section, "\n") {
		head, body, found := strings.Cut(line, "{")
		if words := strings.FieldsFunc(head, func(r rune) bool { return r == ',' || r == ' ' }); len(words) > 0 {
			named = words
		}
		if !found {
			continue
		}
		one := &shape{fields: map[string]*shape{}}
		readShape("{"+body, one, kinds)
		if !strings.Contains(head, "→") && strings.HasPrefix(line, "  ") {
			for _, kind := range named {
				kinds[kind] = one
			}
		}
	}
	return kinds
}

func TestThePageOfTheCommandsHasTheShapesOfValues(t *testing.T) {
	inFull := []string{"spec", "history", "events", "parameters", "changed"} // of describe, in a sentence of its own
	kinds := documented(t)
	for kind, value := range map[string]any{
		"PlanStatus": print.PlanStatus{}, "RunStatus": print.RunStatus{}, "HibernatePlanStatus": print.HibernatePlanStatus{}, "NodeStatus": print.NodeStatus{},
		"NamespaceStatus": print.HeldStatus{}, "PolicyStatus": print.HeldStatus{}, "RestoreStatus": print.RestoreStatus{},
	} {
		var want []string
		for field := range reflect.TypeOf(value).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !slices.Contains(inFull, name) {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		if kinds[kind] == nil {
			t.Errorf("docs/cli.md has no %s", kind)
			continue
		}
		if got := slices.Sorted(maps.Keys(kinds[kind].fields)); !slices.Equal(got, want) {
			t.Errorf("of %s docs/cli.md has %v, and scripts get %v", kind, got, want)
		}
	}
}

// shapesWorld has something of all that is printed.
func shapesWorld(t *testing.T) *cmdtest.Cluster {
	t.Helper()
	plan := cmdtest.Plan("orders", "triggers: {schedules: [{cron: '0 2 * * *'}]}", cmdtest.Noting(annotations.Pause, "true", annotations.StatusPhase, "Running"), func(cm *corev1.ConfigMap) {
		cm.UID, cm.CreationTimestamp = "u-orders", metav1.NewTime(*cmdtest.Before(time.Hour))
	})
	ended := cmdtest.Before(time.Hour)
	kept := cmdtest.Ledger(ledger.Ledger{Recent: []ledger.Entry{{Slot: ended, Kind: run.BySchedule, Result: run.Ran, Reason: "cron", Run: "maint-run-orders-b", StartedAt: ended, At: *ended, Actor: "jane"}, {Slot: cmdtest.Before(2 * time.Hour), Kind: run.BySchedule, Result: run.Missed, Reason: "deadline", At: *ended}}})
	restored, err := annotations.RestoreObject("shop", cmdtest.Slept("gone", "apps", hibernate.Resource{ID: "deployments.apps/shop/web", UID: "u", Before: []byte(`{"replicas":3}`), CapturedAt: *ended, AsleepAt: ended}))
	if err != nil {
		t.Fatal(err)
	}
	return cmdtest.NewCluster(t, Run, []runtime.Object{
		cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"), plan, kept, cmdtest.Signed(restored),
		cmdtest.Policy("weekends", "{strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{days: [Sat, Sun], start: '22:00', end: '06:00'}]}}"),
		cmdtest.RunObject(cmdtest.AskingOf(cmdtest.Asking("ask")), "maint-run-orders-a"), cmdtest.Sleeper("nights", "schedule: {offHours: [{start: '20:00', end: '06:00'}]}", cmdtest.Noting(annotations.StatusAsleep, "2026-11-20T20:00:00Z")),
		cmdtest.Node("busy", cmdtest.Asked(cmdtest.Jane, "{}")),
	}...)
}

// printedLines print objects of each kind.
func printedLines() []string {
	return []string{
		"status", "status orders", "status orders-a", "status node/busy", "status nights", "list", "list policies", "list runs", "list requests", "history", "history orders", "report --last 1d",
		"logs orders-a", "next orders", "next nights", "next weekends", "check orders", "check weekends", "why orders", "why nights", "why node/busy", "doctor", "doctor orders", "version", "calendar", "restore list",
		"drain busy --plan", "explain plan.spec.steps", "explain plan", "wait orders-a --for=phase=Running --timeout 1s", "lint -f bad.yaml", "simulate -f good.yaml --to 2d",
	}
}

// What is printed has no field that the page does not name.
func TestWhatScriptsGetIsOnThePageOfTheCommands(t *testing.T) {
	kinds := documented(t)
	cmdtest.WriteFiles(t, map[string]string{
		"bad.yaml":  "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec: {steps: [{name: A, type: none}]}\n",
		"good.yaml": "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec: {triggers: {schedules: [{cron: '0 2 * * *'}]}, steps: [{name: rest, type: suspend, properties: {duration: 1m}}]}\n",
	})
	seen := map[string]bool{}
	for _, line := range printedLines() {
		got := shapesWorld(t).Line(line + " -o json")
		var value, asYAML map[string]any
		if err := json.Unmarshal([]byte(got.Out), &value); err != nil {
			t.Errorf("%s: %v: %+v", line, err, got)
			continue
		}
		if err := yaml.Unmarshal([]byte(shapesWorld(t).Line(line+" -o yaml").Out), &asYAML); err != nil || !reflect.DeepEqual(asYAML, value) {
			t.Errorf("%s: -o yaml has another value than -o json: %v, %s", line, err, cmp.Diff(value, asYAML))
		}
		kind, _ := value["kind"].(string)
		checkShape(t, line, kind, kinds, kinds[kind], value, seen)
	}
	for _, kind := range []string{"StatusList", "PlanStatus", "RunStatus", "HibernatePlanStatus", "NodeStatus", "RestoreStatus", "DocumentList", "RunList", "NodeRequest", "Ledger", "Report", "LogEntry", "SlotList", "WindowList", "Verdict", "Explanation", "Finding", "Versions", "CalendarEntry", "Restore", "ForecastList", "Field", "WaitResult", "FaultList"} {
		if !seen[kind] {
			t.Errorf("no line printed a %s", kind)
		}
	}
}

// checkShape compares a value with what is written of its kind.
func checkShape(t *testing.T, path, kind string, kinds map[string]*shape, known *shape, value map[string]any, seen map[string]bool) {
	t.Helper()
	if own, is := value["kind"].(string); is && kinds[own] != nil {
		kind, known = own, kinds[own]
		seen[kind] = true
	}
	if known == nil {
		t.Errorf("%s prints the kind %q, which is not in docs/cli.md", path, kind)
		return
	}
	for name, inner := range value {
		if name == "kind" || name == "apiVersion" {
			continue
		}
		next, written := known.fields[name]
		if !written && !known.open {
			t.Errorf("%s: %s has %q, which is not in docs/cli.md", path, kind, name)
			continue
		}
		if !written || len(next.fields) == 0 && name != "items" { // its own fields are written elsewhere, or are any
			continue
		}
		for _, object := range objectsIn(inner) {
			checkShape(t, path, kind+"."+name, kinds, next, object, seen)
		}
	}
}

func objectsIn(value any) []map[string]any {
	switch v := value.(type) {
	case map[string]any:
		return []map[string]any{v}
	case []any:
		var out []map[string]any
		for _, one := range v {
			out = append(out, objectsIn(one)...)
		}
		return out
	}
	return nil
}

// What the page names is a field of some value: nothing is promised that was renamed.
func TestThePageOfTheCommandsPromisesNoFieldThatThereIsNot(t *testing.T) {
	tags := tagsIn(t, "..")
	var walk func(kind string, s *shape)
	walk = func(kind string, s *shape) {
		for name, inner := range s.fields {
			if !tags[name] {
				t.Errorf("of %s docs/cli.md names %q, which is a field of nothing", kind, name)
			}
			walk(kind+"."+name, inner)
		}
	}
	for kind, s := range documented(t) {
		walk(kind, s)
	}
}

// tagsIn are the names of fields in JSON that sources have.
func tagsIn(t *testing.T, root string) map[string]bool {
	t.Helper()
	out := map[string]bool{"items": true, "replicas": true, "Ran": true, "kind": true} // in the values of maps, and of Unstructured
	names := regexp.MustCompile(`json:"([A-Za-z]+)`)
	err := walkSources(root, func(text string) {
		for _, match := range names.FindAllStringSubmatch(text, -1) {
			out[match[1]] = true
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func walkSources(root string, each func(text string)) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := root + "/" + e.Name()
		switch {
		case e.IsDir():
			if err := walkSources(path, each); err != nil {
				return err
			}
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			each(string(b))
		}
	}
	return nil
}
