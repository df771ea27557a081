package functiontest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
)

// Fleet is a function that puts machines to sleep. A machine has a speed, and is in transition
// until it is settled. Those of the room that its input names are selected.
type Fleet struct {
	Endpoint string

	mu      sync.Mutex
	hears   func(operation string)
	speeds  map[string]int // 0 is asleep
	rooms   map[string]string
	moving  map[string]bool
	asked   []string       // each operation that changes something, by its key
	told    map[string]int // how often each key came
	changes int
}

// NewFleet serves a function with three machines at work in room stg, one there that is off,
// and one at work in room prod.
func NewFleet(t testing.TB) *Fleet {
	t.Helper()
	f := &Fleet{
		speeds: map[string]int{"stg-a": 3, "stg-b": 5, "stg-c": 7, "off": 0, "prod": 9}, rooms: map[string]string{"stg-a": "stg", "stg-b": "stg", "stg-c": "stg", "off": "stg", "prod": "prod"},
		moving: map[string]bool{}, told: map[string]int{},
	}
	f.Endpoint = Serve(t, f.answer)
	return f
}

// Hear calls a function with each request that changes something, before the change.
func (f *Fleet) Hear(hears func(operation string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hears = hears
}

// Asked are the operations that were asked for, one for each key.
func (f *Fleet) Asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// Told is how often something was asked for, including repeated keys.
func (f *Fleet) Told() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, times := range f.told {
		n += times
	}
	return n
}

// Changes is how many machines it has changed.
func (f *Fleet) Changes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changes
}

// Speeds are the speeds of all machines.
func (f *Fleet) Speeds() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.speeds)
}

// Moving says whether a machine is in transition.
func (f *Fleet) Moving(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.moving[id]
}

// Unselect moves all machines out of their rooms.
func (f *Fleet) Unselect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.rooms)
}

// Settle ends all transitions.
func (f *Fleet) Settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.moving)
}

// input is what the function sees.
type input struct {
	Room        string `json:"room"`
	Operation   string `json:"operation"`
	Hibernation struct {
		Key, For  string
		Resources []resource
	} `json:"hibernation"`
}

type resource struct {
	ID     string
	Before struct{ Speed int }
}

func (f *Fleet) answer(_ context.Context, r *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	var in input
	text, err := r.GetInput().MarshalJSON()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}
	switch in.Operation {
	case "validate":
		return &fnv1.RunFunctionResponse{}, nil
	case "observe":
		return Output(map[string]any{"resources": f.observed(in)})
	}
	return f.change(in)
}

// change does what is asked for, once for each key.
func (f *Fleet) change(in input) (*fnv1.RunFunctionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hears != nil {
		f.hears(in.Operation)
	}
	h := in.Hibernation
	if f.told[h.Key]++; f.told[h.Key] > 1 {
		return &fnv1.RunFunctionResponse{}, nil
	}
	f.asked = append(f.asked, in.Operation)
	for _, one := range h.Resources {
		to := 0
		if in.Operation == "wake" {
			to = one.Before.Speed
		}
		if f.speeds[one.ID] != to {
			f.speeds[one.ID], f.moving[one.ID] = to, true
			f.changes++
		}
	}
	return Output(map[string]any{"results": []any{}})
}

func (f *Fleet) observed(in input) []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []any{}
	for id, speed := range f.speeds {
		known := slices.ContainsFunc(in.Hibernation.Resources, func(r resource) bool { return r.ID == id })
		if !known && (f.rooms[id] != in.Room || in.Hibernation.For == "wake") {
			continue
		}
		state := map[bool]string{true: "awake", false: "asleep"}[speed > 0]
		if f.moving[id] {
			state = map[bool]string{true: "starting", false: "stopping"}[speed > 0]
		}
		out = append(out, map[string]any{"id": id, "state": state, "kind": "machine", "before": map[string]any{"speed": speed}, "units": map[string]any{"machine": 1}})
	}
	return out
}

// Output is an answer with this output.
func Output(fields map[string]any) (*fnv1.RunFunctionResponse, error) {
	s, err := structpb.NewStruct(fields)
	if err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	return &fnv1.RunFunctionResponse{Output: s}, nil
}
