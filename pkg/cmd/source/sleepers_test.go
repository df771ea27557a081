package source

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/calendar"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

const nightly = "schedule: {offHours: [{start: '20:00', end: '06:00'}]}"

// The HibernatePlan in files that a name means, or none where something else is meant.
func TestWhichSleeperIsMeant(t *testing.T) {
	one, two := cmdtest.SleeperOf("orders", "", nightly), cmdtest.SleeperOf("reports", "", nightly)
	aPlan := "---\n" + cmdtest.Manifest()
	for _, c := range []struct{ name, files, given, want, err string }{
		{"the only one", one, "", "orders", ""},
		{"by its name", one + two, "reports", "reports", ""},
		{"by its kind and name", one + two, "hibernateplan/reports", "reports", ""},
		{"beside a plan no name means the plan", one + aPlan, "", "", ""},
		{"beside a plan its name means it", one + aPlan, "orders", "orders", ""},
		{"another name", one, "ghost", "", ""},
		{"no name of two", one + two, "", "", "the files hold 2 HibernatePlans: name one (orders, reports)"},
		{"none is there", aPlan, "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, _ := reader(c.files)
			w, err := Read(f, []string{"-"})
			if err != nil {
				t.Fatal(err)
			}
			s, err := w.Sleeper(c.given)
			got := ""
			if s != nil {
				got = s.Name
			}
			if got != c.want || cmdtest.ErrText(err) != c.err || err != nil && exit.CodeOf(err) != exit.CodeUsage {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestFindSleeperInACluster(t *testing.T) {
	_, k := clusterOf(t, "shop", cmdtest.Agent(), cmdtest.Namespace("shop", annotations.Pause, "2026-11-22T00:00:00Z"), cmdtest.Namespace("maint-system"), cmdtest.Sleeper("orders", nightly), cmdtest.Plan("weekly", ""))
	f, _ := reader("")
	agent, err := f.Agent(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"orders": "orders", "weekly": "", "ghost": ""} {
		s, err := FindSleeper(t.Context(), f, k, agent, name)
		got := ""
		if s != nil {
			got = s.Name
		}
		if got != want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if s != nil && len(s.Pauses) == 0 {
			t.Error("the pause of its namespace is not known")
		}
	}
}

// A sleep by the schedule, and one that somebody holds, are drawn beside one another.
func TestASleepBesideOneThatIsHeld(t *testing.T) {
	at := func(hour int) time.Time { return cmdtest.Now().Add(time.Duration(hour) * time.Hour) }
	for _, c := range []struct {
		name             string
		e, held          calendar.Entry
		drawn            bool
		wantE, wantOther calendar.Entry
	}{
		{"before it", calendar.Entry{Start: at(0), End: at(2)}, calendar.Entry{Start: at(2), End: at(4)}, true, calendar.Entry{Start: at(0), End: at(2)}, calendar.Entry{Start: at(2), End: at(4)}},
		{"after it", calendar.Entry{Start: at(4), End: at(6)}, calendar.Entry{Start: at(2), End: at(4)}, true, calendar.Entry{Start: at(4), End: at(6)}, calendar.Entry{Start: at(2), End: at(4)}},
		{"begun before it: it stands whole", calendar.Entry{Start: at(1), End: at(3)}, calendar.Entry{Start: at(2), End: at(4)}, true, calendar.Entry{Start: at(1), End: at(3)}, calendar.Entry{Start: at(3), End: at(4)}},
		{"begun before it, with nobody asleep", calendar.Entry{Start: at(1), End: at(3), Idle: true}, calendar.Entry{Start: at(2), End: at(4)}, true, calendar.Entry{Start: at(1), End: at(2), Idle: true}, calendar.Entry{Start: at(2), End: at(4)}},
		{"within it", calendar.Entry{Start: at(2), End: at(4)}, calendar.Entry{Start: at(2), End: at(4)}, false, calendar.Entry{Start: at(2), End: at(4)}, calendar.Entry{Start: at(2), End: at(4)}},
		{"of what goes on after it the rest", calendar.Entry{Start: at(3), End: at(6), Key: "k", Unbegun: true}, calendar.Entry{Start: at(2), End: at(4)}, true, calendar.Entry{Start: at(4), End: at(6)}, calendar.Entry{Start: at(2), End: at(4)}},
		{"of a hold whose begin nobody knows", calendar.Entry{Start: at(1), End: at(6)}, calendar.Entry{Start: at(2), End: at(4), Unbegun: true}, true, calendar.Entry{Start: at(4), End: at(6)}, calendar.Entry{Start: at(2), End: at(4), Unbegun: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, held := c.e, c.held
			if got := beside(&e, &held); got != c.drawn || e != c.wantE || held != c.wantOther {
				t.Errorf("drawn %t: %+v beside %+v", got, e, held)
			}
		})
	}
}

// What somebody holds asleep, as far as it is known when that began.
func TestASleepThatSomebodyHolds(t *testing.T) {
	now, day := cmdtest.Now(), 24*time.Hour
	until := now.Add(2 * time.Hour)
	old := now.Add(-time.Hour)
	a := &Agenda{Now: now, From: now.Add(-day), To: now.Add(day)}
	for _, c := range []struct {
		name  string
		agend *Agenda
		p     HibernatePlan
		want  string // start, end; empty: nobody holds it
	}{
		{"nobody", a, HibernatePlan{}, ""},
		{"of a file", a, HibernatePlan{Hold: hibernate.Hold{On: true, Asleep: true}}, "unbegun 2026-11-20T00:00:00Z to 2026-11-22T00:00:00Z unending"},
		{"until an instant", a, HibernatePlan{Hold: hibernate.Hold{On: true, Asleep: true, Until: &until}}, "unbegun 2026-11-20T00:00:00Z to 2026-11-21T02:00:00Z"},
		{"it is held awake", a, HibernatePlan{Hold: hibernate.Hold{On: true}}, ""},
		{"it is over", &Agenda{Now: now, From: now, To: now.Add(day)}, HibernatePlan{Hold: hibernate.Hold{On: true, Asleep: true, Until: &old}}, ""},
		{"it was so where the picture begins", a, HibernatePlan{Hold: hibernate.Hold{On: true, Asleep: true, Until: &old}}, "unbegun 2026-11-20T00:00:00Z to 2026-11-20T23:00:00Z"},
		{"in a cluster it is about to begin", a, HibernatePlan{Hold: hibernate.Hold{On: true, Asleep: true}, past: past{created: now.Add(-day)}}, "2026-11-21T00:00:00Z to 2026-11-22T00:00:00Z unending"},
		{"in a cluster it began", a, HibernatePlan{Hold: hibernate.Hold{On: true, Asleep: true}, past: past{created: now.Add(-day), asleep: old}}, "2026-11-20T23:00:00Z to 2026-11-22T00:00:00Z unending"},
		{"in a cluster it began before the picture", a, HibernatePlan{Hold: hibernate.Hold{On: true, Asleep: true}, past: past{created: now.Add(-9 * day), asleep: now.Add(-3 * day)}}, "unbegun 2026-11-20T00:00:00Z to 2026-11-22T00:00:00Z unending"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, holds := c.agend.heldAsleep(calendar.Owner{}, c.p)
			got := ""
			if holds {
				got = e.Start.Format(time.RFC3339) + " to " + e.End.Format(time.RFC3339)
				if e.Unbegun {
					got = "unbegun " + got
				}
				if e.Unending {
					got += " unending"
				}
			}
			if got != c.want {
				t.Errorf("%q", got)
			}
		})
	}
}

// A freeze is drawn less the windows that an override opens in it.
func TestAFreezeWithoutItsWindows(t *testing.T) {
	at := func(hour int) time.Time { return cmdtest.Now().Add(time.Duration(hour) * time.Hour) }
	span := func(from, to int) calendar.Entry { return calendar.Entry{Start: at(from), End: at(to)} }
	endless := calendar.Entry{Start: at(2), End: at(8), Unending: true, Unbegun: true}
	for _, c := range []struct {
		name    string
		freeze  calendar.Entry
		windows []calendar.Entry
		want    []calendar.Entry
	}{
		{"no window", span(2, 8), nil, []calendar.Entry{span(2, 8)}},
		{"windows beside it", span(2, 8), []calendar.Entry{span(0, 2), span(8, 9)}, []calendar.Entry{span(2, 8)}},
		{"one in it", span(2, 8), []calendar.Entry{span(4, 5)}, []calendar.Entry{span(2, 4), span(5, 8)}},
		{"one over its begin", span(2, 8), []calendar.Entry{span(1, 3)}, []calendar.Entry{span(3, 8)}},
		{"one from its begin on", span(2, 8), []calendar.Entry{span(2, 3)}, []calendar.Entry{span(3, 8)}},
		{"one over its end", span(2, 8), []calendar.Entry{span(7, 9)}, []calendar.Entry{span(2, 7)}},
		{"one over all of it", span(2, 8), []calendar.Entry{span(2, 8)}, nil},
		{"one whose begin nobody knows", span(2, 8), []calendar.Entry{{Start: at(4), End: at(5), Unbegun: true}}, []calendar.Entry{span(5, 8)}},
		{"one in an endless freeze", endless, []calendar.Entry{span(4, 5)}, []calendar.Entry{{Start: at(2), End: at(4), Unbegun: true}, {Start: at(5), End: at(8), Unending: true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, without(c.freeze, c.windows)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What every expression of a plan is, and where it stands.
func TestEachExpressionOfAPlan(t *testing.T) {
	spec, faults := plan.Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  steps:\n  - {name: a, type: webhook, if: 'run.name == \"x\"', properties: {url: 'https://${run.name}/${run.plan}', headers: {plain: text}}}\n  - {name: b, type: wait, properties: {resource: {apiVersion: v1, kind: Pod, name: x}, until: 'object.status.phase == \"Running\"'}}\n"), "p")
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	got := map[string][]string{}
	EachExpression(spec, func(path, expression string) {
		if expression != "" {
			got[path] = append(got[path], expression)
		}
	})
	want := map[string][]string{
		"spec.steps[0].if": {`run.name == "x"`}, "spec.steps[0].properties.url": {"run.name", "run.plan"}, "spec.steps[1].properties.until": {`object.status.phase == "Running"`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Templates in a cluster are those of the plan's namespace, else of the agent's.
func TestTemplatesOfAPlanInACluster(t *testing.T) {
	template := func(namespace, step string) *corev1.ConfigMap {
		return moved(namespace, cmdtest.Map(annotations.KindStepTemplate, "hush", annotations.DataTemplate, "{apiVersion: maint.dev/v1alpha1, kind: StepTemplate, spec: {steps: [{name: "+step+", type: suspend}]}}"))
	}
	uses := plan.Spec{Steps: []plan.Step{{Name: "a", Type: "template/hush"}}}
	for _, c := range []struct {
		name    string
		spec    plan.Spec
		objects []*corev1.ConfigMap
		want    string // name of its step
		said    string
	}{
		{"of the plan's namespace", uses, []*corev1.ConfigMap{template("maint-system", "theirs"), template("shop", "own")}, "own", ""},
		{"of the agent's", uses, []*corev1.ConfigMap{template("maint-system", "theirs"), template("ops", "other")}, "theirs", ""},
		{"of neither", uses, []*corev1.ConfigMap{template("ops", "other")}, "", "warning: spec.steps[0].type: there is no step template \"hush\"\n"},
		{"none is used", plan.Spec{Steps: []plan.Step{{Name: "a", Type: "suspend"}}}, nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, k := clusterOf(t, "shop", cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"))
			for _, cm := range c.objects {
				o.Creates(cm)
			}
			f, said := reader("")
			got := ""
			for _, one := range TemplatesOf(t.Context(), f, k, "shop", c.spec) {
				got += one.Steps[0].Name
			}
			if got != c.want || said.String() != c.said {
				t.Errorf("%q, said %q", got, said.String())
			}
		})
	}
}

// What a ConfigMap lacks is said by the data that it has.
func TestTheLabelThatAConfigMapLacks(t *testing.T) {
	for key, want := range map[string]string{
		annotations.DataPlan: "plan", annotations.DataPolicy: "policy", annotations.DataICS: "calendar", annotations.DataDates: "calendar", annotations.DataTemplate: "step-template",
		annotations.DataConnector: "connector", annotations.DataPrices: "prices",
	} {
		d := Document{Object: &corev1.ConfigMap{Data: map[string]string{key: "x"}}}
		if got := d.kindOfData(); got != want {
			t.Errorf("of %s: %s", key, got)
		}
	}
	sleeps := Document{Object: &corev1.ConfigMap{Data: map[string]string{annotations.DataPlan: "kind: HibernatePlan"}}}
	if got := sleeps.kindOfData() + " " + (Document{}).kindOfData(); got != "hibernate-plan plan" {
		t.Error(got)
	}
	for kind, want := range map[string]string{
		annotations.KindRun: "a run is written by the agent alone", annotations.KindHeartbeat: "a heartbeat is written by the agent alone",
		"plam": `"plam" is no kind of document; available are plan, hibernate-plan, policy, calendar, step-template, connector, prices and agent-config`,
	} {
		faults := Document{Kind: kind, Name: "a", Object: &corev1.ConfigMap{}}.manifestFaults()
		if diff := cmp.Diff(document.Faults{{Path: "metadata.labels[maint.dev/kind]", Message: want}}, faults); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
	if faults := (Document{Kind: annotations.KindPlan, Object: &corev1.ConfigMap{}}).manifestFaults(); len(faults) != 1 || faults[0].Path != "metadata.name" {
		t.Errorf("without a name: %v", faults)
	}
	if faults := (Document{Kind: annotations.KindPlan}).manifestFaults(); len(faults) != 0 {
		t.Errorf("a bare document needs none: %v", faults)
	}
}

// Lines are those of the file, where the text's lines are lines of it.
func TestInWhichLineATextStands(t *testing.T) {
	d := Document{Text: "a\nb\nc\n", line: 10, block: true}
	flow := Document{Text: "a\nb\nc\n", line: 10}
	if got := []int{d.LineAt("a"), d.LineAt("c"), d.LineAt("ghost"), flow.LineAt("c")}; !cmp.Equal(got, []int{10, 12, 10, 10}) {
		t.Error(got)
	}
	if got := (Fault{File: "a.yaml", Line: 3}).Place(); got != "a.yaml:3" {
		t.Error(got)
	}
}

// Connectors are looked for among the files, and what is not there may be in the cluster.
func TestConnectorsOfASleeperInFiles(t *testing.T) {
	connectorOf := func(name, spec string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop, labels: {maint.dev/kind: connector}}\ndata:\n  connector.yaml: |\n    {apiVersion: maint.dev/v1alpha1, kind: K8SCluster, spec: " + spec + "}\n"
	}
	sleeper := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: far, namespace: shop, labels: {maint.dev/kind: hibernate-plan}}\ndata:\n  plan.yaml: |\n    apiVersion: maint.dev/v1alpha1\n    kind: HibernatePlan\n    spec:\n      schedule: {offHours: [{start: '20:00', end: '06:00'}]}\n      targets:\n      - {name: apps, type: workload, connectorRef: {kind: K8SCluster, name: edge}}\n"
	for _, c := range []struct {
		name, files             string
		used                    int
		faults, missing, decode string
	}{
		{name: "it is there", files: sleeper + connectorOf("edge", "{k8s: {kubeconfigRef: {name: edge}}}"), used: 1},
		{name: "it is not", files: sleeper + connectorOf("other", "{k8s: {kubeconfigRef: {name: edge}}}"), missing: " among the files: it must be in the cluster"},
		{name: "it is not valid", files: sleeper + connectorOf("edge", "{color: red}"), faults: "the connector edge is not valid: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			docs, broken, err := ReadDocuments([]string{"-"}, strings.NewReader(c.files))
			if err != nil || len(broken) > 0 {
				t.Fatal(broken, err)
			}
			f, _ := reader("")
			w := NewSet(f, docs)
			u := w.UseConnectors(w.Sleepers[0])
			if len(u.Connectors) < c.used || (len(u.Missing) > 0) != (c.missing != "") || (len(u.Faults) > 0) != (c.faults != "") {
				t.Fatalf("%+v", u)
			}
			if c.missing != "" && (!strings.HasSuffix(u.Missing[0].Message, c.missing) || u.Missing[0].Line != 12) {
				t.Errorf("missing %+v", u.Missing)
			}
			if c.faults != "" && !strings.HasPrefix(u.Faults[0].Message, c.faults) {
				t.Errorf("faults %+v", u.Faults)
			}
		})
	}
}
