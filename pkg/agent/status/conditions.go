package status

import (
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Read are the conditions of an annotation; what cannot be read says nothing.
func Read(text string) []metav1.Condition {
	var list []metav1.Condition
	if json.Unmarshal([]byte(text), &list) != nil {
		return nil
	}
	return list
}

// clockMargin is how exactly two clocks are compared: the API server tells its own in whole seconds.
const clockMargin = 2 * time.Second

// IsCopied says whether all that a status says, by its conditions, is older than the object on
// which it stands: it was copied with that, or came back from a backup. The object was made by the API
// server's clock, which is ahead of the agent's, by which the conditions are.
func IsCopied(conditions string, created time.Time, ahead time.Duration) bool {
	said := Read(conditions)
	if ahead > 0 {
		created = created.Add(-ahead - clockMargin)
	}
	return len(said) > 0 && !slices.ContainsFunc(said, func(c metav1.Condition) bool { return !c.LastTransitionTime.Time.Before(created) })
}

// Conditions writes a list, keeping the transition times of what did not change.
func Conditions(have string, want []metav1.Condition, now time.Time) string {
	old := Read(have)
	for i := range want {
		want[i].Message = document.OneLine(want[i].Message)
		want[i].LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
		for _, o := range old {
			if o.Type == want[i].Type && o.Status == want[i].Status {
				want[i].LastTransitionTime = o.LastTransitionTime
			}
		}
	}
	b, err := json.Marshal(want)
	if err != nil {
		return have // words and instants: JSON can say them all
	}
	return string(b)
}

// ConditionClockDoubt is the type of ClockDoubt.
const ConditionClockDoubt = agentconfig.ClockDoubt

// ConditionFreezes is False where the admission policy of freezes names more kinds than are watched.
const ConditionFreezes = "FreezesWatched"

// ClockDoubt is the condition of whatever does not start while the clock is in doubt.
func ClockDoubt(why string) metav1.Condition {
	return metav1.Condition{Type: ConditionClockDoubt, Status: metav1.ConditionTrue, Reason: "ClocksDiffer", Message: why}
}

// VerdictSentence says what a gate answers, and until when.
func VerdictSentence(v schedule.Verdict) string {
	word := "change is not permitted"
	if v.Permitted {
		word = "change is permitted"
	}
	if v.Until != nil {
		word += " until " + v.Until.UTC().Format(time.RFC3339)
	}
	return word + " (" + v.Why() + ")"
}

// OrNull is a value in a merge patch, by which an empty one is taken away.
func OrNull(value string) any {
	if value == "" {
		return nil
	}
	return value
}

// Instant is how status writes one; empty where there is none.
func Instant(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Behavior writes what follows from a verdict on top of what stands there.
func Behavior(have string, v schedule.Verdict, strategy schedule.Strategy, now time.Time) string {
	var was *policy.Behavior
	if have != "" {
		was = &policy.Behavior{}
		if json.Unmarshal([]byte(have), was) != nil {
			was = nil // what cannot be read is written anew
		}
	}
	b, err := json.Marshal(was.Advance(v, strategy, now))
	if err != nil {
		return have // words and instants: JSON can say them all
	}
	return string(b)
}

// all are the status annotations among all.
func all(all map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range all {
		if len(k) > len(annotations.StatusPrefix) && k[:len(annotations.StatusPrefix)] == annotations.StatusPrefix {
			out[k] = v
		}
	}
	return out
}
