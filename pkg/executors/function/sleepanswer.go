package function

import (
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Limits of an answer (guesses: restore data has to fit into a ConfigMap).
const (
	maxResources = 1000
	maxBefore    = 8 << 10
	maxUnits     = 20
	longestID    = 200
	longestWord  = 63
	mostOfAUnit  = 1e15 // hours of more, added up, would be no number that JSON has
)

// sleepAnswer is the output of a function about its resources.
type sleepAnswer struct {
	Resources []sleepResource `json:"resources,omitempty"` // observe
	Results   []sleepResult   `json:"results,omitempty"`   // shutdown and wake
}

// sleepResource is how one resource is.
type sleepResource struct {
	ID      string             `json:"id"`
	UID     string             `json:"uid,omitempty"`
	State   string             `json:"state"`
	Before  any                `json:"before,omitempty"`
	Kind    string             `json:"kind,omitempty"`
	Units   map[string]float64 `json:"units,omitempty"`
	LeftOut string             `json:"leftOut,omitempty"`
}

// sleepResult is what came of asking for one resource.
type sleepResult struct {
	ID    string `json:"id"`
	Error string `json:"error,omitempty"`
}

// The states of a resource.
const (
	stateAwake    = "awake"    // at work
	stateAsleep   = "asleep"   // nothing of it runs
	stateStarting = "starting" // on its way up
	stateStopping = "stopping" // on its way down
	stateGone     = "gone"     // there is none any more
)

// handed is a recorded resource as the function sees it.
func handed(r hibernate.Resource) (map[string]any, error) {
	out := map[string]any{"id": r.ID, "uid": r.UID}
	if len(r.Before) == 0 {
		return out, nil
	}
	var before any
	if err := json.Unmarshal(r.Before, &before); err != nil {
		return nil, fmt.Errorf("the restore data of %s: %w", r.ID, err)
	}
	out["before"] = before
	return out, nil
}

func stateOf(o hibernate.Observation) string {
	switch {
	case o.Awake:
		return stateAwake
	case o.Asleep:
		return stateAsleep
	case o.Starting:
		return stateStarting
	}
	return stateStopping
}

// sleepAnswer reads an output strictly: an unknown field may have meant that something must not be
// touched.
func (c *conversation) sleepAnswer(output *structpb.Struct) (*sleepAnswer, error) {
	fields, _ := expr.Whole(output.AsMap()).(map[string]any)
	if fields == nil {
		fields = map[string]any{}
	}
	said := &sleepAnswer{}
	if faults := document.DecodeValue(fields, "output", nil, false, said); len(faults) > 0 {
		return nil, fmt.Errorf("the answer of %s cannot be read: %s", c, faults[0])
	}
	if len(said.Resources) > maxResources || len(said.Results) > maxResources {
		return nil, fmt.Errorf("%s tells of %d resources; at most %d are taken", c, max(len(said.Resources), len(said.Results)), maxResources)
	}
	for i, r := range said.Resources {
		if why := c.wrong(r); why != "" {
			return nil, fmt.Errorf("the answer of %s cannot be taken: output.resources[%d]%s", c, i, why)
		}
		if slices.ContainsFunc(said.Resources[:i], func(other sleepResource) bool { return other.ID == r.ID }) {
			return nil, fmt.Errorf("the answer of %s cannot be taken: output.resources[%d].id: %q appears twice", c, i, r.ID)
		}
	}
	for i := range said.Results {
		said.Results[i].Error = document.Cut(c.mask.Text(said.Results[i].Error), document.MaxMessage)
	}
	return said, nil
}

// wrong is what is wrong with the state of a resource; empty: nothing.
func (c *conversation) wrong(r sleepResource) string {
	text, err := json.Marshal(r.Before)
	switch {
	case r.ID == "" || len(r.ID) > longestID || len(r.UID) > longestID:
		return fmt.Sprintf(": id is missing, or id or uid is longer than %d characters", longestID)
	case !slices.Contains([]string{stateAwake, stateAsleep, stateStarting, stateStopping, stateGone}, r.State):
		return fmt.Sprintf(".state: %q is none of awake, asleep, starting, stopping and gone", document.Cut(r.State, 80))
	case r.State == stateAwake && r.Before == nil && r.LeftOut == "":
		return ".before: is missing: for a resource that is awake it says what to restore"
	case err != nil || len(text) > maxBefore:
		return fmt.Sprintf(".before: has %d bytes; at most %d are kept", len(text), maxBefore)
	case c.mask.Text(string(text)) != string(text):
		return ".before: contains a credential, which would be written to a ConfigMap"
	case len(r.Kind) > longestWord || len(r.LeftOut) > document.MaxMessage:
		return ": kind or leftOut is too long"
	case len(r.Units) > maxUnits:
		return fmt.Sprintf(".units: has %d; at most %d are counted", len(r.Units), maxUnits)
	}
	for unit, n := range r.Units {
		if len(unit) > longestWord || n < 0 || n > mostOfAUnit {
			return fmt.Sprintf(".units: %q cannot be counted", document.Cut(unit, 80))
		}
	}
	return ""
}

// observations reports the function's resources. A recorded resource that is missing from the
// answer is an error, not gone: a function that lost its memory would lose what sleeps.
func (a *sleepAnswer) observations(recorded []hibernate.Resource) ([]hibernate.Observation, error) {
	for _, r := range recorded {
		if !slices.ContainsFunc(a.Resources, func(s sleepResource) bool { return s.ID == r.ID }) {
			return nil, fmt.Errorf("observe: the function says nothing of %s, which is recorded; for a resource that no longer exists it has to return the state gone", r.ID)
		}
	}
	var out []hibernate.Observation
	for _, s := range a.Resources {
		o := hibernate.Observation{
			ID: s.ID, UID: s.UID, Kind: s.Kind, LeftOut: s.LeftOut,
			Awake: s.State == stateAwake, Ready: s.State == stateAwake, Asleep: s.State == stateAsleep, Starting: s.State == stateStarting, Gone: s.State == stateGone,
		}
		if i := slices.IndexFunc(recorded, func(r hibernate.Resource) bool { return r.ID == s.ID }); i >= 0 && o.UID == "" {
			o.UID = recorded[i].UID
		}
		if o.Awake {
			o.Units = s.Units
			o.Before, _ = json.Marshal(s.Before) // it was marshalled when it was checked
		}
		out = append(out, o)
	}
	return out, nil
}

// results are the results of the resources. For one that the answer does not mention, the next look
// decides.
func (a *sleepAnswer) results(due []hibernate.Due) []executors.SleepResult {
	var out []executors.SleepResult
	for _, d := range due {
		one := executors.SleepResult{ID: d.ID}
		for _, r := range a.Results {
			if r.ID == d.ID && r.Error != "" {
				one.Err = fmt.Errorf("%s: %s", d.ID, r.Error)
			}
		}
		out = append(out, one)
	}
	return out
}
