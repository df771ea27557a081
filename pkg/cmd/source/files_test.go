package source

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

// reader is a factory without a cluster, and what it says on standard error.
func reader(stdin string) (*factory.Factory, *bytes.Buffer) {
	var said bytes.Buffer
	return factory.New(factory.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &bytes.Buffer{}, ErrOut: &said},
		Name:      "kubectl maint", Now: cmdtest.Now, Zone: "Europe/Berlin",
	}), &said
}

func TestWhichFilesAreRead(t *testing.T) {
	plan := func(name string) string { return cmdtest.Manifest("nightly", name) }
	cmdtest.WriteFiles(t, map[string]string{
		"a.yaml": plan("a"), "dir/b.yml": plan("b"), "dir/deep/c.json": `{"apiVersion": "maint.dev/v1alpha1", "kind": "Policy", "spec": {}}`,
		"dir/README.md": plan("readme"), "dir/days.ics": "BEGIN:VCALENDAR\nEND:VCALENDAR\n", "notes.txt": plan("d"), "dir/Shout.yaml": "kind: Plan\nspec: {}\n",
	})
	for _, c := range []struct {
		name  string
		paths []string
		want  []string // kind and name
		err   string
	}{
		{"one file", []string{"a.yaml"}, []string{"plan a"}, ""},
		{"a folder, with those in it", []string{"dir"}, []string{"plan ", "plan b", "calendar days", "policy c"}, ""},
		{"a file that is named is read whatever its ending", []string{"notes.txt"}, []string{"plan d"}, ""},
		{"standard input beside a file", []string{"-", "a.yaml"}, []string{"plan stdin", "plan a"}, ""},
		{"a file that is not there", []string{"a.yaml", "ghost.yaml"}, nil, `the path "ghost.yaml" does not exist`},
	} {
		t.Run(c.name, func(t *testing.T) {
			docs, faults, err := ReadDocuments(c.paths, strings.NewReader(plan("stdin")))
			var got []string
			for _, d := range docs {
				got = append(got, d.Kind+" "+d.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || cmdtest.ErrText(err) != c.err || len(faults) > 0 {
				t.Errorf("%v, %v (-want +got):\n%s", err, faults, diff)
			}
		})
	}
}

type brokenPipe struct{}

func (brokenPipe) Read([]byte) (int, error) { return 0, os.ErrClosed }

func TestStandardInputThatBreaksIsAnError(t *testing.T) {
	if _, _, err := ReadDocuments([]string{"-"}, brokenPipe{}); cmdtest.ErrText(err) != "read standard input: file already closed" {
		t.Error(err)
	}
}

func TestReadTellsAllThatIsWrong(t *testing.T) {
	calendar := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: days, namespace: shop, labels: {maint.dev/kind: calendar}}\ndata:\n  calendar.yaml: |\n    {apiVersion: maint.dev/v1alpha1, kind: Calendar, spec: [{from: tomorrow}]}\n"
	for _, c := range []struct {
		name, text, said, err string
	}{
		{"nothing of ours", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n", "", "no document was found in -: one is a ConfigMap with the label maint.dev/kind; 'kubectl maint new' prints a plan"},
		{"only a comment", "# later\n", "", "no document was found in -: one is a ConfigMap with the label maint.dev/kind; 'kubectl maint new' prints a plan"},
		{"a plan without faults", cmdtest.Manifest(), "", ""},
		{"two faults in two documents", cmdtest.Manifest("suspend", "suspnd") + "---\n" + cmdtest.Manifest("nightly", "second", "hold", "Hold"), "", "-:14: spec.steps[0].type: unknown step type \"suspnd\"; did you mean \"suspend\"?\n-:28: spec.steps[0].name: \"Hold\" cannot name a step: at most 63 characters of a-z, 0-9 and '-'"},
		{"YAML that is none, beside a plan", "a: [1\n---\n" + cmdtest.Manifest(), "", "-:1: this is no YAML: did not find expected ',' or ']'"},
		{"a calendar with a fault is told, and the rest works", calendar + cmdtest.Manifest("apiVersion: v1", "---\napiVersion: v1"), "warning: -:7: spec[0].from: \"tomorrow\": is not a time; write it like 2026-03-08T02:00:00 on the clocks of timezone, or 2026-03-08T02:00:00Z\n", ""},
		{"a template that the files hold", cmdtest.StepTemplate() + "---\n" + cmdtest.Using("long: 5m"), "", ""},
		{"a template that is used wrongly", cmdtest.StepTemplate() + "---\n" + cmdtest.Using("short: 5m"), "", "-:35: spec.steps[0].properties.long: is missing: template \"hush\" needs it\n-:35: spec.steps[0].properties.short: template \"hush\" has no such parameter; it has long"},
		{"a template that the files do not hold may be in the cluster", cmdtest.Using("long: 5m"), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, said := reader(c.text)
			_, err := Read(f, []string{"-"})
			if diff := cmp.Diff([]string{c.said, c.err}, []string{said.String(), cmdtest.ErrText(err)}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestATemplateThatMayBeInTheClusterIsMissing(t *testing.T) {
	w, _ := in(t, cmdtest.Using("long: 5m"))
	want := []Fault{{File: "-", Line: 14, Path: "spec.steps[0].type", Message: `there is no step template "hush" among the files: it must be in the cluster`}}
	if diff := cmp.Diff(want, w.Plans[0].Used.Missing); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What may be in the cluster is missing, a connector beside a template; where a template is used
// wrongly, connectors are not looked for, since the steps are not known.
func TestAConnectorBesideATemplate(t *testing.T) {
	far := []string{"    spec:\n", "    spec:\n      connectorRef: {kind: K8SCluster, name: edge}\n"}
	for name, c := range map[string]struct {
		files           []string
		faults, missing int
	}{
		"both may be in the cluster":     {[]string{cmdtest.Using("long: 5m", far...)}, 0, 2},
		"the template is there":          {[]string{cmdtest.StepTemplate(), cmdtest.Using("long: 5m", far...)}, 0, 1},
		"the template is wanted in vain": {[]string{cmdtest.StepTemplate(), cmdtest.Using("short: 5m", far...)}, 2, 0},
	} {
		docs, broken, err := ReadDocuments([]string{"-"}, strings.NewReader(strings.Join(c.files, "---\n")))
		if err != nil || len(broken) > 0 {
			t.Fatal(broken, err)
		}
		f, _ := reader("")
		w := NewSet(f, docs)
		if used := w.Use(w.Plans[0], "maint-system"); len(used.Faults) != c.faults || len(used.Missing) != c.missing {
			t.Errorf("%s: faults %v, missing %v", name, used.Faults, used.Missing)
		}
	}
}

// elsewhere is a manifest of namespace shop in namespace ops.
func elsewhere(manifest string) string {
	return strings.Replace(manifest, "namespace: shop", "namespace: ops", 1)
}

// Of one name in several namespaces -n chooses, for each kind; what stands in one namespace alone is
// found whatever -n says.
func TestTheNamespaceChoosesAmongDocumentsOfOneName(t *testing.T) {
	plan, policy, sleeper := cmdtest.PlanOf("orders", "", ""), cmdtest.PolicyOf("night", "", window), cmdtest.SleeperOf("office", "", nightly)
	docs, broken, err := ReadDocuments([]string{"-"}, strings.NewReader(strings.Join([]string{plan, elsewhere(plan), policy, elsewhere(policy), sleeper, elsewhere(sleeper), cmdtest.PlanOf("reports", "", "")}, "---\n")))
	if err != nil || len(broken) > 0 {
		t.Fatal(broken, err)
	}
	f, _ := reader("")
	*f.Config.Namespace = "ops"
	w := NewSet(f, docs)
	for name, want := range map[string]string{"orders": "ops/orders", "policy/night": "ops/night", "reports": "shop/reports"} {
		if s, err := w.Subject(name, "UTC"); err != nil || s.Namespace+"/"+s.Name != want {
			t.Errorf("%s: %s/%s, %v", name, s.Namespace, s.Name, err)
		}
	}
	if s, err := w.Sleeper("office"); err != nil || s == nil || s.Namespace != "ops" {
		t.Errorf("office: %+v, %v", s, err)
	}
}

func TestWhichDocumentOfTheFilesIsMeant(t *testing.T) {
	orders, reports := cmdtest.PlanOf("orders", "", "triggers: {schedules: [{cron: '0 2 * * *', timezone: America/New_York}]}"), cmdtest.PlanOf("reports", "", "")
	night, day := cmdtest.PolicyOf("night", "", window), cmdtest.PolicyOf("day", "", "{strategy: Permissive}")
	for _, c := range []struct {
		name      string
		files     []string
		arg, want string // KIND/NAME and its zone
		err       string
		code      int
	}{
		{name: "the only plan", files: []string{orders, night}, want: "plan/orders America/New_York"},
		{name: "the only policy, without a plan", files: []string{night}, want: "policy/night UTC"},
		{name: "by name", files: []string{orders, reports}, arg: "reports", want: "plan/reports Europe/Berlin"},
		{name: "by kind and name", files: []string{orders, reports}, arg: "plan/orders", want: "plan/orders America/New_York"},
		{name: "a policy beside a plan", files: []string{orders, night, day}, arg: "policy/day", want: "policy/day Europe/Berlin"},
		{name: "a policy of the name of a plan elsewhere", files: []string{orders, elsewhere(cmdtest.PolicyOf("orders", "", window))}, arg: "policy/orders", want: "policy/orders UTC"},
		{name: "a plan of the name of a policy elsewhere", files: []string{orders, elsewhere(cmdtest.PolicyOf("orders", "", window))}, arg: "plan/orders", want: "plan/orders America/New_York"},
		{name: "a kind that is none of the files", files: []string{orders}, arg: "run/orders", err: `the files hold no plan or policy "run/orders"`, code: exit.CodeError},
		{name: "one name in two namespaces", files: []string{orders, elsewhere(reports), reports}, arg: "reports", err: "the files hold 2 plans: name one, and its namespace with -n (ops/reports, shop/reports)", code: exit.CodeUsage},
		{name: "two plans", files: []string{orders, reports}, err: "the files hold 2 plans: name one (orders, reports)", code: exit.CodeUsage},
		{name: "two policies", files: []string{night, day}, err: "the files hold 2 policies: name one (night, day)", code: exit.CodeUsage},
		{name: "none of that name", files: []string{orders}, arg: "ghost", err: `the files hold no plan or policy "ghost"`, code: exit.CodeError},
		{name: "neither", files: []string{cmdtest.StepTemplate()}, err: "the files hold neither a plan nor a policy", code: exit.CodeError},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _ := in(t, c.files...)
			s, err := w.Subject(c.arg, "Europe/Berlin")
			got := strings.TrimSpace(s.String() + " " + s.Zone)
			if err != nil {
				got = ""
				err = exit.Coded(t.Context(), err)
			}
			if got != c.want || cmdtest.ErrText(err) != c.err || exit.CodeOf(err) != c.code {
				t.Errorf("%q, %d, %v", got, exit.CodeOf(err), err)
			}
		})
	}
}

// The pauses of a plan, its namespace and the whole cluster all count.
func TestASubjectInFilesIsHeldByThePausesAboveIt(t *testing.T) {
	for _, c := range []struct {
		name, notes, above, cluster, want string
	}{
		{"none", "", "", "", ""},
		{"its own", "maint.dev/pause: 'true'", "", "", "paused"},
		{"its namespace's", "", "maint.dev/pause: '2026-11-22T00:00:00Z'", "", "namespace shop is paused until 2026-11-22T00:00:00Z"},
		{"the longer of both", "maint.dev/pause: '2026-11-21T12:00:00Z'", "maint.dev/pause: '2026-11-22T00:00:00Z'", "", "namespace shop is paused until 2026-11-22T00:00:00Z"},
		{"the whole cluster's", "", "maint.dev/pause: '2026-11-21T12:00:00Z'", "maint.dev/pause: '2026-11-22T00:00:00Z'", "the whole cluster is paused until 2026-11-22T00:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _ := in(t, namespaceOf(c.above), strings.Replace(namespaceOf(c.cluster), "shop", "maint-system", 1), cmdtest.PlanOf("orders", c.notes, ""))
			s, err := w.Subject("orders", "UTC")
			if err != nil {
				t.Fatal(err)
			}
			if v := s.Verdict(cmdtest.Now()); v.Permitted != (c.want == "") || c.want != "" && v.Reason != c.want {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestOnePlan(t *testing.T) {
	for _, c := range []struct {
		name, text, want, err string
	}{
		{"the only one", cmdtest.Manifest(), "nightly", ""},
		{"beside a policy with a fault", cmdtest.Manifest() + cmdtest.PolicyOf("night", "", "{strategy: Sometimes}"), "nightly", ""},
		{"none", cmdtest.StepTemplate(), "", "- must hold one plan, and holds 0 plans"},
		{"two", cmdtest.Manifest() + "---\n" + cmdtest.Manifest("nightly", "second"), "", "- must hold one plan, and holds 2 plans"},
		{"one with a fault", cmdtest.Manifest("suspend", "suspnd"), "", "-:14: spec.steps[0].type: unknown step type \"suspnd\"; did you mean \"suspend\"?"},
		{"one whose template is used wrongly", cmdtest.StepTemplate() + "---\n" + cmdtest.Using(""), "", "-:35: spec.steps[0].properties.long: is missing: template \"hush\" needs it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, _ := reader(c.text)
			d, spec, err := OnePlan(f, []File{{Path: "-", Root: "-", Text: []byte(c.text)}})
			if d.Name != c.want || cmdtest.ErrText(err) != c.err || (len(spec.Steps) == 1) != (c.err == "") {
				t.Errorf("%q, %d steps, %v", d.Name, len(spec.Steps), err)
			}
		})
	}
}

func TestAStepWithADashIsNotSubtracted(t *testing.T) {
	steps := func(condition string) string {
		return cmdtest.Manifest("      - name: hold\n        type: suspend\n", "      - {name: scale, type: suspend}\n      - {name: scale-down, type: suspend}\n      - {name: last, type: suspend, if: \""+condition+"\"}\n")
	}
	for _, c := range []struct{ name, condition, want string }{
		{"in brackets", "steps['scale-down'].phase == 'Succeeded'", ""},
		{"with a dot: the longest name is meant", "steps.scale-down.phase == 'Succeeded'", "spec.steps[2].if: a step whose name has a dash is written steps['scale-down']"},
		{"a step without a dash", "steps.scale.phase == 'Succeeded'", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			docs, _ := Split("f.yaml", []byte(steps(c.condition)))
			var got []string
			for _, f := range docs[0].Check() {
				got = append(got, f.Path+": "+f.Message)
			}
			text := strings.Join(got, "\n")
			if c.want == "" && text != "" || !strings.HasSuffix(text, strings.TrimPrefix(c.want, "spec.steps[2].if: ")) || c.want != "" && !strings.HasPrefix(text, "spec.steps[2].if: ") {
				t.Errorf("%q", text)
			}
		})
	}
}
