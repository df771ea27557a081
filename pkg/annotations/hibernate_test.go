package annotations_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func TestWhatHoldsAHibernatePlan(t *testing.T) {
	for name, c := range map[string]struct {
		state, until string
		want         hibernate.Hold
		fault        string
	}{
		"nothing does":                       {},
		"asleep until it is taken away":      {state: "asleep", want: hibernate.Hold{On: true, Asleep: true}},
		"awake until an instant":             {state: "awake", until: "2026-03-02T06:00:00Z", want: hibernate.Hold{On: true, Until: until("2026-03-02T06:00:00Z")}},
		"a word that is none holds nothing":  {state: "sleeping", fault: `maint.dev/hold-state: "sleeping" is neither awake nor asleep: the hold is ignored`},
		"nor does a hold with an unread end": {state: "awake", until: "monday", fault: `maint.dev/hold-until: "monday" is no RFC 3339 instant like 2026-03-02T06:00:00Z: the hold is ignored`},
		"an end alone is the end of no hold": {until: "2026-03-02T06:00:00Z", fault: "maint.dev/hold-until: has no effect without maint.dev/hold-state"},
	} {
		hold, faults := annotations.ReadHold(map[string]string{annotations.HoldState: c.state, annotations.HoldUntil: c.until})
		if diff := cmp.Diff(c.want, hold); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if faults.Error() != c.fault {
			t.Errorf("%s: says %q", name, faults.Error())
		}
	}
}

// restored is a record as an agent writes it in the middle of a cycle.
func restored(edit func(*hibernate.Record)) hibernate.Record {
	at := *until("2026-03-02T20:00:00Z")
	spec := hibernate.Spec{Schedule: hibernate.Schedule{OffHours: []schedule.OffHours{{Start: "20:00", End: "06:00"}}}, Targets: []hibernate.Target{{Name: "apps", Type: hibernate.TypeNoop}}}
	r := hibernate.Record{
		Plan: "nights", PlanUID: "u", Cycle: "nights-1", Target: "apps", Executor: hibernate.TypeNoop, Operation: hibernate.Shutdown, State: hibernate.Running, StartedAt: &at,
		Snapshot:  hibernate.Snapshot{Spec: spec, BeganAt: at, WakeAt: until("2026-03-03T06:00:00Z")},
		Resources: []hibernate.Resource{{ID: "deployments.apps/shop/web", UID: "w", Before: json.RawMessage(`{"replicas":3}`), CapturedAt: at}},
	}
	edit(&r)
	return r
}

func restoreObject(t *testing.T, r hibernate.Record) *corev1.ConfigMap {
	t.Helper()
	cm, err := annotations.RestoreObject("shop", r)
	if err != nil {
		t.Fatal(err)
	}
	return cm
}

func TestRestoreDataIsReadAsItWasWritten(t *testing.T) {
	at := until("2026-03-02T21:00:00Z")
	want := restored(func(r *hibernate.Record) {
		r.Operation, r.State, r.Attempts, r.FinishedAt, r.NotBefore, r.Message, r.LeftOut = hibernate.Wake, hibernate.Failed, 4, at, at, "boom", []string{"i-1: a spot instance"}
		r.Resources = append(r.Resources, hibernate.Resource{ID: "x", Before: json.RawMessage(`{}`), AsleepAt: at, WokenAt: at, RestoredAt: at, Left: "it is gone", Revived: 2, NotBefore: at})
	})
	cm := restoreObject(t, want)
	if len(cm.OwnerReferences) > 0 || len(cm.Finalizers) != 1 {
		t.Errorf("owners %v, finalizers %v", cm.OwnerReferences, cm.Finalizers)
	}
	got, err := annotations.ReadRestore(cm)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRestoreDataThatIsNoneOfTheAgentsIsRefused(t *testing.T) {
	record := func(edit func(*hibernate.Record)) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) {
			text, err := json.Marshal(restored(edit))
			if err != nil {
				t.Fatal(err)
			}
			cm.Data[annotations.DataRestore] = string(text)
		}
	}
	for name, c := range map[string]struct {
		edit func(*corev1.ConfigMap)
		want string
	}{
		"it is as it was":              {edit: func(*corev1.ConfigMap) {}},
		"it is labelled otherwise":     {func(cm *corev1.ConfigMap) { cm.Labels[annotations.LabelKind] = "run" }, "lacks the label maint.dev/kind=restore"},
		"it is empty":                  {func(cm *corev1.ConfigMap) { cm.Data = nil }, "unexpected end of JSON input"},
		"it is no JSON":                {func(cm *corev1.ConfigMap) { cm.Data[annotations.DataRestore] = "replicas: 3" }, "invalid character"},
		"it is a list":                 {func(cm *corev1.ConfigMap) { cm.Data[annotations.DataRestore] = "[]" }, "cannot unmarshal array"},
		"it speaks of another plan":    {record(func(r *hibernate.Record) { r.Plan = "days" }), `speaks of target "apps" of plan "days"`},
		"it speaks of another target":  {record(func(r *hibernate.Record) { r.Target = "db" }), `speaks of target "db" of plan "nights"`},
		"it stands under another plan": {func(cm *corev1.ConfigMap) { cm.Labels[annotations.LabelPlan] = "days" }, `speaks of target "apps" of plan "nights"`},
		"an operation that is none":    {record(func(r *hibernate.Record) { r.Operation = "sleep" }), `operation: "sleep" is neither shutdown nor wake`},
		"a state that is none":         {record(func(r *hibernate.Record) { r.State = "asleep" }), `state: "asleep" is not a state of a target`},
		"attempts below none":          {record(func(r *hibernate.Record) { r.Attempts = -1 }), "attempts: must not be negative, is -1"},
		"a target of another type":     {record(func(r *hibernate.Record) { r.Executor = "workload" }), `snapshot: has no target "apps" of type "workload"`},
		"a plan that is not valid":     {record(func(r *hibernate.Record) { r.Snapshot.Spec.Schedule.OffHours = nil }), "snapshot: the plan is not valid: spec.schedule.offHours"},
		"a resource without a name":    {record(func(r *hibernate.Record) { r.Resources[0].ID = "" }), "resources[0].id: is missing"},
		"a resource twice":             {record(func(r *hibernate.Record) { r.Resources = append(r.Resources, r.Resources[0]) }), "resources[1]: deployments.apps/shop/web appears twice"},
		"a resource that was nothing": {func(cm *corev1.ConfigMap) {
			cm.Data[annotations.DataRestore] = strings.Replace(cm.Data[annotations.DataRestore], `"before":{"replicas":3},`, "", 1)
		}, "resources[0].before: is missing"},
	} {
		cm := restoreObject(t, restored(func(*hibernate.Record) {}))
		c.edit(cm)
		_, err := annotations.ReadRestore(cm)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, annotations.ErrForeign)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRestoreDataThatFitsInNoConfigMapIsRefusedWithItsSize(t *testing.T) {
	r := restored(func(r *hibernate.Record) {
		for i := range 4000 {
			r.Resources = append(r.Resources, hibernate.Resource{ID: fmt.Sprintf("deployments.apps/shop/%0200d", i), Before: json.RawMessage(`{}`)})
		}
	})
	_, err := annotations.RestoreObject("shop", r)
	big := new(annotations.TooManyResources)
	if !errors.As(err, &big) || big.Target != "apps" || big.N != 4001 || big.Bytes < 900<<10 || !strings.HasSuffix(err.Error(), "make several targets of it") {
		t.Errorf("%v", err)
	}
}

// heavy are resources that sleep, each with so large a value.
func heavy(n int, each int) []hibernate.Resource {
	var out []hibernate.Resource
	for i := range n {
		out = append(out, hibernate.Resource{ID: fmt.Sprint("fn-", i), UID: "u", Before: json.RawMessage(`"` + strings.Repeat("x", each) + `"`), CapturedAt: *until("2026-03-02T20:00:00Z"), AsleepAt: until("2026-03-02T20:01:00Z"), Kind: "vm", Units: map[string]float64{"cpu": 1}})
	}
	return out
}

func TestWhatMayNotFitUntilItIsAwakeIsRefusedBeforeItSleeps(t *testing.T) {
	none := restored(func(r *hibernate.Record) { r.Resources = nil })
	of := func(list []hibernate.Resource) hibernate.Record {
		return restored(func(r *hibernate.Record) { r.Resources = list })
	}
	few := of(heavy(3, 300<<10))
	if err := annotations.RoomToSleep(none, few); err != nil {
		t.Errorf("900 KiB are refused: %v", err)
	}
	var usual []hibernate.Resource
	for i := range 1800 { // docs/hibernation.md says so
		usual = append(usual, hibernate.Resource{
			ID: fmt.Sprintf("deployments.apps/team-checkout-dev/payment-gateway-%05d", i), UID: "0b6b7c1e-6f0e-4f0e-9f0e-1b6b7c1e6f0e",
			Before: json.RawMessage(`{"replicas":3}`), CapturedAt: *until("2026-03-02T20:00:00Z"), Kind: "Deployment", Units: map[string]float64{"cpu": 0.75, "memoryGiB": 1.5},
		})
	}
	if err := annotations.RoomToSleep(none, of(usual)); err != nil {
		t.Errorf("1800 Deployments are refused: %v", err)
	}
	var many []hibernate.Resource
	for i := range 3600 { // their text fits now, and not with all that is yet to be written of them
		many = append(many, hibernate.Resource{ID: fmt.Sprintf("cronjobs.batch/shop/job-%05d", i), UID: "0b6b7c1e-6f0e-4f0e-9f0e-1b6b7c1e6f0e", Before: json.RawMessage(`{"suspend":false}`)})
	}
	big := new(annotations.TooManyResources)
	if err := annotations.RoomToSleep(none, of(many)); !errors.As(err, &big) || big.N != len(many) || big.Bytes <= big.Most || !strings.HasSuffix(err.Error(), "make several targets of it") {
		t.Errorf("what outgrows its ConfigMap later: %v", err)
	}
	if err := annotations.RoomToSleep(of(many), of(many)); err != nil {
		t.Errorf("what was recorded by an earlier version is refused: %v", err)
	}
	if err := annotations.RoomToSleep(few, of(heavy(4, 300<<10))); !errors.As(err, &big) {
		t.Errorf("a fourth joins: %v", err)
	}
}

// shortened are resources with the sizes of their long values.
func shortened(list []hibernate.Resource) []hibernate.Resource {
	out := slices.Clone(list)
	for i, res := range out {
		if len(res.Before) > 10 {
			out[i].Before = fmt.Append(nil, len(res.Before))
		}
	}
	return out
}

func TestRestoreDataLosesWhatWakingDoesNotNeedBeforeItIsRefused(t *testing.T) {
	at := until("2026-03-03T06:00:00Z")
	for name, c := range map[string]struct {
		room int // beyond what the resources are woken by
		edit func(*hibernate.Resource)
		want func(*hibernate.Resource)
		n    int
	}{
		"all of it fits": {room: 1000, want: func(*hibernate.Resource) {}, n: 4},
		"the instants of a sleep that is over": {
			room: 400, edit: func(r *hibernate.Resource) { r.WokenAt, r.RevivedBy = at, "somebody" },
			want: func(r *hibernate.Resource) { r.AsleepAt, r.Slept, r.WokenAt = nil, 9*3600+59*60, at }, n: 4,
		},
		"the instants of a sleep of which somebody started a part": {
			room: 560, edit: func(r *hibernate.Resource) {
				r.WokenAt, r.RevivedBy = at, "somebody"
				r.UnitSlept, r.PartUnits = map[string]float64{"m5.large": 100}, map[string]float64{"m5.large": 1}
			},
			want: func(r *hibernate.Resource) {
				r.AsleepAt, r.Slept, r.WokenAt, r.UnitSlept = nil, 9*3600+59*60, at, map[string]float64{"m5.large": 100 + 9*3600 + 59*60}
			}, n: 4,
		},
		"what is counted": {
			room: 250, edit: func(r *hibernate.Resource) { r.WokenAt, r.StartingAt = at, at },
			want: func(r *hibernate.Resource) {
				r.AsleepAt, r.Slept, r.WokenAt, r.Kind, r.Units = nil, 9*3600+59*60, at, "", nil
			}, n: 4,
		},
		"the instant of waking": {
			room: 20, edit: func(r *hibernate.Resource) { r.WokenAt = at },
			want: func(r *hibernate.Resource) { r.AsleepAt, r.Kind, r.Units = nil, "", nil }, n: 4,
		},
		"what is awake again": {room: 20, edit: func(r *hibernate.Resource) { r.WokenAt, r.RestoredAt = at, at }},
		"the value of what is left alone": {
			room: 0, edit: func(r *hibernate.Resource) { r.Left, r.LeftAt = "it is gone", at },
			want: func(r *hibernate.Resource) {
				r.AsleepAt, r.Slept, r.Kind, r.Units, r.Left, r.Before = nil, 9*3600+59*60, "", nil, "it is gone", json.RawMessage("null")
			}, n: 4,
		},
	} {
		bare := restored(func(r *hibernate.Record) {
			r.Operation, r.Resources = hibernate.Wake, heavy(4, 0)
			for i := range r.Resources {
				r.Resources[i].AsleepAt, r.Resources[i].Kind, r.Resources[i].Units = nil, "", nil
			}
		})
		text, err := json.Marshal(bare)
		if err != nil {
			t.Fatal(err)
		}
		r := restored(func(r *hibernate.Record) {
			r.Operation, r.Resources = hibernate.Wake, heavy(4, (1<<20-c.room-len(text))/4)
			for i := range r.Resources {
				if c.edit != nil {
					c.edit(&r.Resources[i])
				}
			}
		})
		want := slices.Clone(r.Resources)[:c.n]
		for i := range want {
			one := heavy(1, (1<<20-c.room-len(text))/4)[0]
			one.ID = want[i].ID
			c.want(&one)
			want[i] = one
		}
		got, err := annotations.ReadRestore(restoreObject(t, r))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(shortened(want), shortened(got.Resources), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Names are derived, so that twice is once; no two targets share one.
func TestTheNamesOfRestoreData(t *testing.T) {
	if a, b := annotations.RestoreName("a-b", "c"), annotations.RestoreName("a", "b-c"); a == b {
		t.Errorf("two targets share %s", a)
	}
	one := restored(func(*hibernate.Record) {})
	for name, edit := range map[string]func(*hibernate.Record){
		"another target":                 func(r *hibernate.Record) { r.Target = "db" },
		"another cycle":                  func(r *hibernate.Record) { r.Cycle = "nights-2" },
		"a plan made anew, as its place": func(r *hibernate.Record) { r.PlanUID = "v" },
	} {
		if a, b := annotations.RescuedName("shop", one), annotations.RescuedName("shop", restored(edit)); a == b {
			t.Errorf("%s shares %s", name, a)
		}
	}
	if annotations.RescuedName("shop", one) == annotations.RescuedName("till", one) {
		t.Error("two namespaces share a name")
	}
}

// A copy of restore data belongs to no plan. What the record says of its own counts all the same.
func TestRescuedRestoreDataIsReadOnlyAsWhatItIs(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*corev1.ConfigMap)
		want error
	}{
		"as it was written":       {func(*corev1.ConfigMap) {}, nil},
		"of another kind":         {func(cm *corev1.ConfigMap) { cm.Labels[annotations.LabelKind] = "run" }, annotations.ErrForeign},
		"of a plan":               {func(cm *corev1.ConfigMap) { cm.Labels[annotations.LabelPlan] = "nights" }, annotations.ErrForeign},
		"by a newer version":      {func(cm *corev1.ConfigMap) { cm.Data[annotations.DataFormat] = "2" }, annotations.ErrNewer},
		"no JSON":                 {func(cm *corev1.ConfigMap) { cm.Data[annotations.DataRestore] = "{" }, annotations.ErrForeign},
		"a record that cannot be": {func(cm *corev1.ConfigMap) { cm.Data[annotations.DataRestore] = "{}" }, annotations.ErrForeign},
	} {
		want := restored(func(*hibernate.Record) {})
		cm := restoreObject(t, want)
		cm.Name = annotations.RescuedName("shop", want)
		delete(cm.Labels, annotations.LabelPlan)
		c.edit(cm)
		got, err := annotations.ReadRescued(cm)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); err == nil && diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTheTextOfTargets(t *testing.T) {
	list := []hibernate.TargetStatus{{Target: "apps", Executor: "noop", State: hibernate.Asleep, StartedAt: until("2026-03-02T20:00:00Z"), Attempts: 1, Message: "it said \"no\""}}
	text := annotations.Targets(list)
	if want := `[{"target":"apps","executor":"noop","state":"Asleep","startedAt":"2026-03-02T20:00:00Z","attempts":1,"message":"it said \"no\""}]`; text != want {
		t.Errorf("it is %s", text)
	}
	if diff := cmp.Diff(list, annotations.ReadTargets(text)); diff != "" {
		t.Error(diff)
	}
	if got := annotations.Targets(nil); got != "" {
		t.Errorf("no targets are %q", got)
	}
	for _, text := range []string{"", "{}", "asleep", `[{"target":3}]`} {
		if got := annotations.ReadTargets(text); got != nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestThePlanInAConfigMap(t *testing.T) {
	const text = "apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec:\n  schedule: {offHours: [{start: \"20:00\", end: \"06:00\"}]}\n  targets: [{name: a, type: noop}]\n"
	for name, c := range map[string]struct {
		edit func(*corev1.ConfigMap)
		want string
	}{
		"it is valid":               {func(*corev1.ConfigMap) {}, ""},
		"it has no text":            {func(cm *corev1.ConfigMap) { cm.Data = nil }, "plan.yaml"},
		"its name can be no plan's": {func(cm *corev1.ConfigMap) { cm.Name = "a.b" }, `metadata.name: "a.b" cannot name a plan`},
		"it names an account that its label does not": {func(cm *corev1.ConfigMap) { cm.Data["plan.yaml"] = text + "  serviceAccountName: admin\n" }, "needs the label maint.dev/service-account: admin"},
		"it is a plan of another kind":                {func(cm *corev1.ConfigMap) { cm.Data["plan.yaml"] = strings.Replace(text, "HibernatePlan", "Plan", 1) }, "kind"},
	} {
		cm := annotations.NewHibernatePlan("shop", "nights", text, "maint-runner")
		c.edit(cm)
		_, faults := annotations.HibernatePlan(cm)
		if got := faults.Error(); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestAHoldIsWrittenAsPeopleReadIt(t *testing.T) {
	until := time.Date(2026, 3, 2, 7, 0, 0, 0, time.FixedZone("CET", 3600))
	for want, h := range map[string]hibernate.Hold{
		"":                                  {},
		"awake":                             {On: true},
		"asleep":                            {On: true, Asleep: true},
		"awake until 2026-03-02T06:00:00Z":  {On: true, Until: &until},
		"asleep until 2026-03-02T06:00:00Z": {On: true, Asleep: true, Until: &until},
	} {
		if got := annotations.FormatHold(h); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
