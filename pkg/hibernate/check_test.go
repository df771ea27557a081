package hibernate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// kept is the record of a target that sleeps, as the agent reads it back.
func kept(t *testing.T, edits ...func(*Record)) Record {
	t.Helper()
	spec, faults := Parse([]byte(head + "  schedule: {offHours: [{start: \"20:00\", end: \"06:00\"}]}\n  targets: [{name: a, type: noop}, {name: b, type: workload}]\n"))
	if len(faults) > 0 {
		t.Fatal(faults.Error())
	}
	r := Record{
		Target: "a", Executor: "noop", Operation: Shutdown, State: Asleep, Snapshot: Snapshot{Spec: spec, BeganAt: evening},
		Resources: []Resource{{ID: "web", UID: "1", Before: json.RawMessage("3")}, {ID: "web", UID: "2", Before: json.RawMessage("2")}},
	}
	for _, e := range edits {
		e(&r)
	}
	return r
}

func TestWhatIsWrongWithARecord(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*Record)
		want string
	}{
		"nothing":                               {func(*Record) {}, ""},
		"it wakes":                              {func(r *Record) { r.Operation, r.State = Wake, Running }, ""},
		"another operation":                     {func(r *Record) { r.Operation = "delete" }, `operation: "delete" is neither`},
		"no operation":                          {func(r *Record) { r.Operation = "" }, `operation: "" is neither`},
		"another state":                         {func(r *Record) { r.State = "Dozing" }, `state: "Dozing" is not a state`},
		"attempts below none":                   {func(r *Record) { r.Attempts = -1 }, "attempts: must not be negative, is -1"},
		"a target that the plan has not":        {func(r *Record) { r.Target = "c" }, `snapshot: has no target "c"`},
		"a target of another type":              {func(r *Record) { r.Executor = "workload" }, `snapshot: has no target "a" of type "workload"`},
		"another of its targets":                {func(r *Record) { r.Target, r.Executor = "b", "workload" }, ""},
		"no targets":                            {func(r *Record) { r.Snapshot.Spec.Targets = nil }, `snapshot: has no target "a"`},
		"a plan that is not valid":              {func(r *Record) { r.Snapshot.Spec.Schedule.OffHours = nil }, "snapshot: the plan is not valid: spec.schedule.offHours"},
		"a resource without a name":             {func(r *Record) { r.Resources[1].ID = "" }, "resources[1].id: is missing"},
		"a resource twice":                      {func(r *Record) { r.Resources[1].UID = "1" }, "resources[1]: web appears twice"},
		"a resource of which nothing is known":  {func(r *Record) { r.Resources[0].Before = nil }, "resources[0].before: is missing"},
		"a resource of which nonsense is known": {func(r *Record) { r.Resources[0].Before = json.RawMessage("{") }, "resources[0].before: is missing"},
		"a connector": {func(r *Record) {
			account := connector.AWS{AccountID: "123456789012", Region: "eu-west-1", Auth: connector.Auth{ServiceAccount: &connector.ServiceAccountAuth{}}}
			r.Snapshot.Connectors = map[string]connector.Connector{"CloudProvider/x": {Cloud: &connector.CloudSpec{Type: connector.TypeAWS, AWS: &account}}}
		}, ""},
		"a connector that is not valid": {func(r *Record) {
			r.Snapshot.Connectors = map[string]connector.Connector{"CloudProvider/x": {}}
		}, "snapshot: the connector CloudProvider/x is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := kept(t, c.edit).Check(); err != nil {
				got = err.Error()
			}
			if (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}

func TestHowManyAreAsleep(t *testing.T) {
	r := Record{Resources: []Resource{
		{ID: "asleep", AsleepAt: &evening}, {ID: "asleep, too", AsleepAt: &evening}, {ID: "on the way"}, {ID: "woken", AsleepAt: &evening, WokenAt: &evening}, {ID: "left", AsleepAt: &evening, Left: "gone"},
	}}
	if n := r.Asleep(); n != 2 {
		t.Errorf("%d are asleep", n)
	}
}

func TestTheOrderOfKinds(t *testing.T) {
	for name, c := range map[string]struct {
		p    WorkloadParameters
		want []string
	}{
		"by default":             {WorkloadParameters{}, []string{"CronJob", "Deployment", "ReplicaSet", "StatefulSet", "ScaledObject"}},
		"some first":             {WorkloadParameters{Order: []string{"StatefulSet", "Deployment"}}, []string{"StatefulSet", "Deployment", "CronJob", "ReplicaSet", "ScaledObject"}},
		"some kinds":             {WorkloadParameters{Kinds: []any{"Deployment", "StatefulSet", "CronJob"}, Order: []string{"CronJob"}}, []string{"CronJob", "Deployment", "StatefulSet", "ScaledObject"}},
		"none that KEDA scales":  {WorkloadParameters{Kinds: []any{"CronJob", "DaemonSet"}}, []string{"CronJob", "DaemonSet"}},
		"KEDA's, which is named": {WorkloadParameters{Kinds: []any{"ScaledObject", "Deployment"}}, []string{"ScaledObject", "Deployment"}},
		"one of another group": {
			WorkloadParameters{Kinds: []any{map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}, "Deployment"}, Order: []string{"Deployment"}},
			[]string{"Deployment", "Rollout", "ScaledObject"},
		},
		"what names no kind": {WorkloadParameters{Kinds: []any{"Rollout", 7, map[string]any{"kind": "x"}, map[string]any{"apiVersion": "v1", "kind": 7}, map[string]any{"apiVersion": "v1", "kind": "x", "name": "y"}}}, nil},
	} {
		var got []string
		for _, k := range c.p.Of() {
			got = append(got, k.Kind)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestWhatASelectorPicks(t *testing.T) {
	tags := map[string]string{"env": "stg", "team": "shop"}
	for name, c := range map[string]struct {
		s    CloudSelector
		want bool
	}{
		"its id":                      {CloudSelector{IDs: []string{"i-2", "i-1"}}, true},
		"another id":                  {CloudSelector{IDs: []string{"i-2"}}, false},
		"its tags":                    {CloudSelector{Tags: map[string]string{"env": "stg", "team": "shop"}}, true},
		"one tag of another value":    {CloudSelector{Tags: map[string]string{"env": "stg", "team": "bank"}}, false},
		"a tag that it has not":       {CloudSelector{Tags: map[string]string{"always": ""}}, false},
		"its id and its tags":         {CloudSelector{IDs: []string{"i-1"}, Tags: map[string]string{"env": "stg"}}, true},
		"its id and another tag":      {CloudSelector{IDs: []string{"i-1"}, Tags: map[string]string{"env": "prod"}}, false},
		"another id and its tags":     {CloudSelector{IDs: []string{"i-2"}, Tags: map[string]string{"env": "stg"}}, false},
		"a tag that it must not have": {CloudSelector{IDs: []string{"i-1"}, ExcludeTags: map[string]string{"env": "stg"}}, false},
		"one with another value":      {CloudSelector{IDs: []string{"i-1"}, ExcludeTags: map[string]string{"env": "prod"}}, true},
		"one that it has not":         {CloudSelector{IDs: []string{"i-1"}, ExcludeTags: map[string]string{"always": ""}}, true},
	} {
		if got := c.s.Picks("i-1", tags); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// As many as are read are read, and one more is not.
func TestListsEndWhereTheyAreSaidTo(t *testing.T) {
	several := func(n int, one func(i int) string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = one(i)
		}
		return strings.Join(all, ", ")
	}
	tag := func(i int) string { return fmt.Sprintf("t%d: x", i) }
	instances := func(selector string) string {
		return "targets: [{name: a, type: ec2, connectorRef: {kind: CloudProvider, name: stg}, parameters: {selector: {" + selector + "}}}]"
	}
	workloads := func(parameters string) string {
		return "targets: [{name: a, type: workload, parameters: {" + parameters + "}}]"
	}
	for name, c := range map[string]struct {
		most int
		spec func(n int) string
	}{
		"tags":               {50, func(n int) string { return instances("tags: {" + several(n, tag) + "}") }},
		"the key of a tag":   {128, func(n int) string { return instances("tags: {" + strings.Repeat("k", n) + ": x}") }},
		"the value of a tag": {256, func(n int) string { return instances("tags: {k: " + strings.Repeat("v", n) + "}") }},
		"ids": {500, func(n int) string {
			return instances("ids: [" + several(n, func(i int) string { return fmt.Sprintf("i-%08x", i) }) + "]")
		}},
		"namespaces": {MaxNamespaces, func(n int) string {
			return workloads("namespaces: [" + several(n, func(i int) string { return fmt.Sprint("n", i) }) + "]")
		}},
		"off-hours of exceptions": {MaxOffHours, func(n int) string {
			return "targets: [{name: a, type: noop}]\n  exceptions: [{type: extend, validFrom: \"2026-03-01T00:00:00Z\", validUntil: \"2026-03-02T00:00:00Z\", offHours: [" + several(n, func(int) string { return `{start: "12:00", end: "13:00"}` }) + "]}]"
		}},
		"targets": {MaxTargets, func(n int) string {
			return "targets: [" + several(n, func(i int) string { return fmt.Sprintf("{name: t%d, type: noop}", i) }) + "]"
		}},
		"health checks": {plan.MaxSteps, func(n int) string {
			return "targets: [{name: a, type: noop}]\n  healthChecks: [" + several(n, func(int) string { return "{all: true}" }) + "]"
		}},
	} {
		faults := func(n int) string {
			_, faults := Parse([]byte(head + "  schedule: {offHours: [{start: \"20:00\", end: \"06:00\"}]}\n  " + c.spec(n) + "\n"))
			return faults.Error()
		}
		if said := faults(c.most); said != "" {
			t.Errorf("%s: of %d it says %s", name, c.most, said)
		}
		if said := faults(c.most + 1); said == "" {
			t.Errorf("%s: of %d it says nothing", name, c.most+1)
		}
	}
}
