// Package object holds the executors that read and change objects of any kind:
// label, annotate, patch-object, apply-object, delete-object, scale and wait.
// Each pass reads the object live, and each write carries the uid and
// resourceVersion that were read.
package object

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// record is what a step writes down before its effect: the object, the values of the fields that it
// will change, and the values that it is about to write. Restore needs both, to tell our value from
// somebody else's.
type record struct {
	UID         string            `json:"uid"`
	Server      string            `json:"server,omitempty"` // of another cluster; see executors.Clients
	Object      *plan.ResourceRef `json:"object,omitempty"`
	Subresource string            `json:"subresource,omitempty"`
	Changes     []change          `json:"changes"`
}

// toRecord is the outcome that asks to journal the record.
func toRecord(call executors.Call, w write) executors.Outcome {
	o := w.object
	ref := plan.ResourceRef{APIVersion: o.Kind.GroupVersion().String(), Kind: o.Kind.Kind, Namespace: o.Namespace, Name: o.Name}
	b, err := json.Marshal(record{UID: string(w.live.GetUID()), Server: call.Clients.Server, Object: &ref, Subresource: w.patch.Subresource, Changes: w.changes})
	if err != nil {
		return executors.Refuse(executors.ReasonInvalid, "record what %s held: %s", o, err)
	}
	if len(b) > run.MaxStepOutput {
		return executors.Refuse(executors.ReasonTooLarge, "%s: what would have to be remembered has %d bytes, more than %d; change less of it in one step", o, len(b), run.MaxStepOutput)
	}
	return executors.Outcome{State: executors.Record, Before: b, Message: "remembering what " + o.String() + " holds"}
}

// recorded reads the record of an earlier pass, if there is one.
func recorded(call executors.Call) (*record, error) {
	if len(call.Recorded.Before) == 0 {
		return nil, nil //nolint:nilnil // no record is an answer
	}
	var r record
	if err := json.Unmarshal(call.Recorded.Before, &r); err != nil {
		return nil, api.Refuse(executors.ReasonInvalid, "step %s: what it recorded is not readable: %s", call.Path, err)
	}
	return &r, nil
}

// sameObject refuses a write to another object under the name of the recorded one.
func sameObject(o api.Object, live *unstructured.Unstructured, uid string) error {
	if uid == "" || string(live.GetUID()) == uid {
		return nil
	}
	return api.Refuse(executors.ReasonReplaced, "%s was deleted and created again since this run read it; the new one is left alone", o)
}

// gone is the end of a restore whose object no longer exists.
func gone(o api.Object) executors.Outcome {
	return executors.Outcome{State: executors.Done, Reason: executors.ReasonGone, Message: o.String() + " is not there any more: nothing to put back into"}
}

// replaced is the end of a restore where another object has the name by now.
func replaced(o api.Object) executors.Outcome {
	out := gone(o)
	out.Message = o.String() + " is another one now (deleted and created again): nothing is put back into it"
	return out
}

func changed(o api.Object, what, format string, args ...any) executors.Outcome {
	out := api.Done(format, args...)
	out.Changed = []run.Change{o.Change(what)}
	return out
}

// shownDifference is how much of a difference the outputs of a dry run keep (a guess: some pages).
const shownDifference = 16 << 10

// wouldChange is the end of a dry run.
func wouldChange(verb string, o api.Object, changes []change, hide bool) executors.Outcome {
	text := difference(changes, hide)
	out := api.Done("dry run: would %s %s: %s", verb, o, text)
	out.Outputs = map[string]any{"difference": document.Cut(text, shownDifference)}
	return out
}

// difference describes changes for people: spec.paused: absent → true.
func difference(changes []change, hide bool) string {
	var lines []string
	for _, c := range changes {
		if !c.Made {
			lines = append(lines, fmt.Sprintf("%s: %s → %s", c.Path, shown(c.Before, hide), shown(c.After, hide)))
		}
	}
	if len(lines) == 0 {
		return "an empty map where there was none"
	}
	return strings.Join(lines, "; ")
}

func shown(v json.RawMessage, hide bool) string {
	switch {
	case v == nil:
		return "absent"
	case hide:
		return run.HiddenValue
	}
	return document.Cut(string(v), 120)
}

// paths are the fields that change, for people.
func paths(ps []fieldPath) string {
	names := make([]string, len(ps))
	for i, p := range ps {
		names[i] = p.String()
	}
	return strings.Join(names, ", ")
}

func touched(changes []change) []fieldPath {
	var out []fieldPath
	for _, c := range changes {
		if !c.Made {
			out = append(out, c.Path)
		}
	}
	return out
}
