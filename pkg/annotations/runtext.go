package annotations

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"go.yaml.in/yaml/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// runText is a run as YAML, with the names of its JSON. It is what sigs.k8s.io/yaml
// makes, which reads the JSON with a parser of YAML: that alone was a fifth of all
// memory that a run's beginning allocates.
func runText(r run.Run) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(text, []byte(`"\u003c\u003c":`)) { // "<<": YAML would be written without the quotes, and read as a merge
		return text, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	if tree, err = withNumbers(tree); err != nil {
		return nil, err
	}
	return yaml.Marshal(tree)
}

// withNumbers replaces each json.Number in a decoded value, in place: whole numbers
// keep all their digits.
func withNumbers(value any) (any, error) {
	var err error
	switch v := value.(type) {
	case map[string]any:
		for key, one := range v {
			if v[key], err = withNumbers(one); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, one := range v {
			if v[i], err = withNumbers(one); err != nil {
				return nil, err
			}
		}
	case json.Number:
		return number(v.String())
	}
	return value, nil
}

func number(digits string) (any, error) {
	if whole, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return whole, nil
	}
	if whole, err := strconv.ParseUint(digits, 10, 64); err == nil {
		return whole, nil
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return nil, fmt.Errorf("read the number %s: %w", digits, err)
	}
	return f, nil
}

// runConditions are what a run's journal says as conditions: Approved where somebody is asked to
// approve the run, or was, and Succeeded once it has ended. Empty where there is nothing to say.
func runConditions(created time.Time, j run.Journal) (string, error) {
	var out []metav1.Condition
	say := func(kind, reason, message string, is bool, at time.Time) {
		status := map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}[is]
		out = append(out, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: document.Cut(document.OneLine(message), document.MaxMessage), LastTransitionTime: metav1.NewTime(at.UTC())})
	}
	ended := created
	if j.FinishedAt != nil {
		ended = *j.FinishedAt
	}
	switch {
	case j.Approved != nil:
		say("Approved", "Approved", j.Approved.Said("approved"), true, j.Approved.At)
	case j.End != nil && j.End.Reason == run.ReasonRejected:
		say("Approved", "Rejected", j.Message, false, ended)
	case j.Phase == run.Pending && j.Waiting == run.WaitApproval:
		say("Approved", "NotYet", j.Message, false, created)
	}
	if j.Phase.Ended() {
		say("Succeeded", string(j.Phase), j.Message, j.Phase == run.Succeeded, ended)
	}
	if len(out) == 0 {
		return "", nil
	}
	b, err := json.Marshal(out)
	return string(b), err
}
