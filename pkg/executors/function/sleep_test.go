package function_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/functiontest"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/sleepertest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// fleet is functiontest's, as a target's resources.
type fleet struct{ *functiontest.Fleet }

func newFleet(t *testing.T) fleet { return fleet{functiontest.NewFleet(t)} }

// sleepOf is a target of a function, as the plan's account reaches it.
func sleepOf(endpoint string) executors.SleepCall {
	return executors.SleepCall{
		Plan: executors.PlanRef{Name: "nights", Namespace: "shop", Account: "maint-runner"}, Cycle: "nights-1", Target: "fleet", Clients: callOf(endpoint).Clients, Now: time.Now(),
		Params: &hibernate.FunctionParameters{Endpoint: endpoint, Input: map[string]any{"room": "stg"}, TLS: &plan.FunctionTLS{Insecure: true}},
	}
}

func (f fleet) Sleeper() executors.Sleeper { return function.Sleeps{} }

func (f fleet) Call() executors.SleepCall { return sleepOf(f.Endpoint) }

func (f fleet) State(*testing.T) map[string]string {
	out := map[string]string{}
	for id, speed := range f.Speeds() {
		out[id] = fmt.Sprintf("%d, moving %t", speed, f.Moving(id))
	}
	return out
}

func (f fleet) Outside(id string) bool { return !strings.HasPrefix(id, "stg") }

func (f fleet) Unselect(*testing.T) bool {
	f.Fleet.Unselect()
	return true
}

func (f fleet) Settle(*testing.T) { f.Fleet.Settle() }

func TestAFunctionsTargetSleepsAsEveryTargetDoes(t *testing.T) {
	sleepertest.Run(t, func(t *testing.T) sleepertest.Backend { return newFleet(t) })
}

// dueOf are resources as a pass is given them.
func dueOf(ids ...string) []hibernate.Due {
	var out []hibernate.Due
	for _, id := range ids {
		out = append(out, hibernate.Due{Resource: hibernate.Resource{ID: id, Before: json.RawMessage(`{"speed":3}`)}, Seen: hibernate.Observation{Awake: true}})
	}
	return out
}

func TestTheSameIsAskedForByTheSameKeyUntilAnAttemptHasFailed(t *testing.T) {
	f := newFleet(t)
	call := f.Call()
	call.Operation, call.StartedAt = hibernate.Shutdown, call.Now
	for range 3 { // its answers were lost
		call.Now = call.Now.Add(time.Second)
		function.Sleeps{}.Shutdown(t.Context(), call, dueOf("stg-a"))
	}
	if n := len(f.Asked()); n != 1 || f.Told() != 3 {
		t.Errorf("it is told %d times by %d keys", f.Told(), n)
	}
	call.Failures++
	function.Sleeps{}.Shutdown(t.Context(), call, dueOf("stg-a"))
	call.Failures, call.StartedAt = 0, call.Now.Add(time.Hour) // it was woken, and sleeps again in the same cycle
	function.Sleeps{}.Shutdown(t.Context(), call, dueOf("stg-a"))
	if n := len(f.Asked()); n != 3 || f.Changes() != 1 {
		t.Errorf("it is told %d times, and changes something %d times", n, f.Changes())
	}
}

// A function may tell of its resources in another order each time: that is no other request.
func TestTheOrderOfResourcesMakesNoOtherKey(t *testing.T) {
	f := newFleet(t)
	call := f.Call()
	call.Operation, call.StartedAt = hibernate.Shutdown, call.Now
	for _, due := range [][]hibernate.Due{dueOf("stg-a", "stg-b"), dueOf("stg-b", "stg-a")} {
		function.Sleeps{}.Shutdown(t.Context(), call, due)
	}
	if n := len(f.Asked()); n != 1 || f.Told() != 2 {
		t.Errorf("it is told %d times by %d keys", f.Told(), n)
	}
}

// answering is a function that gives the same output to everything, and notes its inputs.
func answering(t *testing.T, text string) (executors.SleepCall, *[]string) {
	var asked []string
	endpoint := functiontest.Serve(t, func(_ context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		in, err := json.Marshal(r.GetInput().AsMap())
		asked = append(asked, string(in))
		return &fnv1.RunFunctionResponse{Output: fields(t, text)}, err
	})
	return sleepOf(endpoint), &asked
}

func TestWhatAFunctionIsTold(t *testing.T) {
	call, asked := answering(t, `{"resources":[{"id":"a","state":"asleep"}]}`)
	call.Now, call.Operation = time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC), hibernate.Wake
	call.Recorded = []hibernate.Resource{{ID: "a", UID: "u", Before: json.RawMessage(`{"n":3}`)}}
	if err := (function.Sleeps{}).Validate(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if _, err := (function.Sleeps{}).Observe(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	function.Sleeps{}.Wake(t.Context(), call, []hibernate.Due{{Resource: call.Recorded[0], Seen: hibernate.Observation{Asleep: true}}})
	about := `"namespace":"shop","now":"2026-11-23T20:00:00Z","plan":"nights",`
	want := []string{
		`{"hibernation":{"cycle":"nights-1",` + about + `"target":"fleet"},"operation":"validate","room":"stg"}`,
		`{"hibernation":{"cycle":"nights-1","for":"wake",` + about + `"resources":[{"before":{"n":3},"id":"a","uid":"u"}],"target":"fleet"},"operation":"observe","room":"stg"}`,
	}
	if diff := cmp.Diff(want, (*asked)[:2]); diff != "" {
		t.Error(diff)
	}
	wake := (*asked)[2]
	for _, part := range []string{`"operation":"wake"`, `"resources":[{"before":{"n":3},"id":"a","state":"asleep","uid":"u"}]`, `"key":"`} {
		if !strings.Contains(wake, part) {
			t.Errorf("%s lacks %s", wake, part)
		}
	}
	if strings.Contains(wake, `"now"`) {
		t.Errorf("%s is another question each time", wake)
	}
}

func TestWhatAFunctionSaysOfItsResources(t *testing.T) {
	long := strings.Repeat("x", 9000)
	many := strings.Repeat(`{"id":"a","state":"asleep"},`, 1001)
	for name, c := range map[string]struct {
		output string
		want   string // of the fault, or what is seen
	}{
		"all its states":             {`{"resources":[{"id":"a","uid":"u","state":"awake","before":{"n":3},"kind":"vm","units":{"big":2}},{"id":"b","state":"asleep"},{"id":"c","state":"starting"},{"id":"d","state":"stopping"},{"id":"e","state":"gone"}]}`, `a u awake ready {"n":3} vm map[big:2], b asleep, c starting, d, e gone`},
		"one that is left out":       {`{"resources":[{"id":"a","state":"awake","leftOut":"it is needed"}]}`, "a awake ready null left out: it is needed"},
		"nothing":                    {`{"resources":[]}`, ""},
		"before may be anything":     {`{"resources":[{"id":"a","state":"awake","before":false}]}`, "a awake ready false"},
		"awake without what it was":  {`{"resources":[{"id":"a","state":"awake"}]}`, "before: is missing"},
		"a state that there is none": {`{"resources":[{"id":"a","state":"sleeping"}]}`, `state: "sleeping" is none of awake`},
		"no id":                      {`{"resources":[{"state":"asleep"}]}`, "id is missing"},
		"a word that is not known":   {`{"resources":[{"id":"a","state":"asleep","leftout":"x"}]}`, "leftOut"},
		"one twice":                  {`{"resources":[{"id":"a","state":"asleep"},{"id":"a","state":"asleep"}]}`, `"a" appears twice`},
		"too much to keep":           {`{"resources":[{"id":"a","state":"awake","before":"` + long + `"}]}`, "before: has 9002 bytes; at most 8192 are kept"},
		"too many":                   {`{"resources":[` + strings.TrimSuffix(many, ",") + `]}`, "tells of 1001 resources; at most 1000"},
		"a credential":               {`{"resources":[{"id":"a","state":"awake","before":{"token":"hush-hush"}}]}`, "contains a credential"},
		"a unit below nothing":       {`{"resources":[{"id":"a","state":"awake","before":1,"units":{"x":-1}}]}`, `units: "x" cannot be counted`},
		"a unit beyond counting":     {`{"resources":[{"id":"a","state":"awake","before":1,"units":{"x":1e308}}]}`, `units: "x" cannot be counted`},
		"no list":                    {`{"resources":3}`, "output.resources"},
	} {
		t.Run(name, func(t *testing.T) {
			call, _ := answering(t, c.output)
			call.Params.(*hibernate.FunctionParameters).Credentials = []plan.FunctionCredential{{Name: "cloud", SecretName: "cloud"}}
			seen, err := function.Sleeps{}.Observe(t.Context(), call)
			var got []string
			for _, o := range seen {
				got = append(got, said2(o))
			}
			if err != nil {
				if !strings.Contains(err.Error(), c.want) || c.want == "" {
					t.Errorf("it says %v", err)
				}
				return
			}
			if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func said2(o hibernate.Observation) string {
	out := []string{o.ID}
	if o.UID != "" {
		out = append(out, o.UID)
	}
	for _, w := range []struct {
		is   bool
		word string
	}{{o.Awake, "awake"}, {o.Ready, "ready"}, {o.Asleep, "asleep"}, {o.Starting, "starting"}, {o.Gone, "gone"}} {
		if w.is {
			out = append(out, w.word)
		}
	}
	for _, word := range []string{string(o.Before), o.Kind} {
		if word != "" {
			out = append(out, word)
		}
	}
	if len(o.Units) > 0 {
		out = append(out, fmt.Sprint(o.Units))
	}
	if o.LeftOut != "" {
		out = append(out, "left out: "+o.LeftOut)
	}
	return strings.Join(out, " ")
}

func TestAFunctionThatForgetsWhatSleepsIsNotBelieved(t *testing.T) {
	call, _ := answering(t, `{"resources":[]}`)
	call.Recorded = []hibernate.Resource{{ID: "a", Before: json.RawMessage(`1`)}}
	if _, err := (function.Sleeps{}).Observe(t.Context(), call); err == nil || !strings.Contains(err.Error(), "says nothing of a, which is recorded") {
		t.Errorf("it says %v", err)
	}
	call, _ = answering(t, `{"resources":[{"id":"a","state":"asleep"}]}`)
	call.Recorded = []hibernate.Resource{{ID: "a", UID: "u", Before: json.RawMessage(`1`)}}
	if seen, err := (function.Sleeps{}).Observe(t.Context(), call); err != nil || seen[0].UID != "u" {
		t.Errorf("it names no uid, and it is %+v, %v", seen, err)
	}
}

func TestWhatCameOfEachResourceIsSaidOfIt(t *testing.T) {
	call, _ := answering(t, `{"results":[{"id":"a","error":"its door is locked by hush-hush"},{"id":"b"},{"id":"z","error":"none of ours"}]}`)
	call.Params.(*hibernate.FunctionParameters).Credentials = []plan.FunctionCredential{{Name: "cloud", SecretName: "cloud"}}
	var got []string
	for _, r := range (function.Sleeps{}).Shutdown(t.Context(), call, dueOf("a", "b", "c")) {
		got = append(got, fmt.Sprintf("%s: %v", r.ID, r.Err))
	}
	if diff := cmp.Diff([]string{"a: a: its door is locked by ***", "b: <nil>", "c: <nil>"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAFunctionThatFailsOrWantsMoreThanToSleepIsAFailure(t *testing.T) {
	hangs := make(chan struct{})
	t.Cleanup(func() { close(hangs) })
	for name, c := range map[string]struct {
		answer functiontest.Function
		want   string
	}{
		"it fails": {said(&fnv1.RunFunctionResponse{Results: []*fnv1.Result{{Severity: fnv1.Severity_SEVERITY_FATAL, Message: "no such room"}}}), "failed: no such room"},
		"it desires an object": {
			said(&fnv1.RunFunctionResponse{Desired: &fnv1.State{Resources: map[string]*fnv1.Resource{"x": {Resource: fields(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`)}}}}),
			"desires objects, which are not applied",
		},
		"it is down": {func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
			return nil, errors.New("boom")
		}, "boom"},
		"it does not answer": {func(ctx context.Context, _ *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
			select {
			case <-hangs:
			case <-ctx.Done():
			}
			return nil, ctx.Err()
		}, "no answer within"},
	} {
		t.Run(name, func(t *testing.T) {
			call := sleepOf(functiontest.Serve(t, c.answer))
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			if name != "it does not answer" {
				if err := (function.Sleeps{}).Validate(ctx, call); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("asked whether all is well it says %v", err)
				}
			}
			results := function.Sleeps{}.Shutdown(ctx, call, dueOf("a"))
			if len(results) != 1 || results[0].Err == nil || !strings.Contains(results[0].Err.Error(), c.want) {
				t.Errorf("it says %+v", results)
			}
		})
	}
}

// What a function requires is read as the plan's account, and with no other rights.
func TestWhatAFunctionRequiresIsReadAsThePlansAccount(t *testing.T) {
	call := sleepOf(functiontest.Serve(t, func(_ context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		out, err := functiontest.Output(map[string]any{"resources": []any{}})
		out.Requirements = &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{"it": {ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchName{MatchName: "a"}}}}
		if items := r.GetRequiredResources()["it"].GetItems(); len(items) == 1 {
			out, err = functiontest.Output(map[string]any{"resources": []any{map[string]any{"id": items[0].GetResource().AsMap()["kind"], "state": "asleep"}}})
		}
		return out, err
	}))
	seen, err := function.Sleeps{}.Observe(t.Context(), call)
	if err != nil || len(seen) != 1 || seen[0].ID != "ConfigMap" {
		t.Errorf("it sees %+v, %v", seen, err)
	}
}

func TestNoFunctionIsCalledBehindTheFence(t *testing.T) {
	call, asked := answering(t, `{}`)
	fenced := errors.New("another agent may lead")
	call.Clients.Fence = func() error { return fenced }
	if results := (function.Sleeps{}).Shutdown(t.Context(), call, dueOf("a")); len(results) != 1 || !errors.Is(results[0].Err, fenced) {
		t.Errorf("it says %+v", results)
	}
	call.Clients.Fence, call.DryRun = nil, true
	if results := (function.Sleeps{}).Wake(t.Context(), call, dueOf("a")); len(results) > 0 {
		t.Errorf("it says %+v", results)
	}
	if len(*asked) > 0 {
		t.Errorf("it is asked %q", *asked)
	}
}
