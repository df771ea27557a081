package view_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

func TestRunsThatAreLeftAlone(t *testing.T) {
	const unsigned = "run r is left alone, and nothing of it is put back: it carries no signature; sign it with 'kubectl maint -n shop adopt run/r'"
	const newer = "run q: shop/q was written by a newer version: its format is \"2\", and this version reads up to 1; it is left alone until a version runs that can read it"
	const unread = "run q cannot be read and is left alone: no JSON; fix its ConfigMap, or delete it and take its finalizer off, and its cleanup does not run"
	for name, c := range map[string]struct{ stuck, run, want string }{
		"its signature does not count":   {unsigned, "r", unsigned},
		"another run's does not":         {unsigned, "q", ""},
		"one whose name begins as it":    {unsigned, "r-2", ""},
		"and the other way round":        {"run r-2 is left alone: x", "r", ""},
		"a newer version wrote it":       {newer, "q", newer},
		"it cannot be read":              {unread, "q", unread},
		"the first of two":               {unsigned + "; " + unread, "r", unsigned},
		"the second of two":              {unsigned + "; " + unread, "q", unread},
		"it waits for another one":       {"run r cannot go on: it waits for run q, which holds the same target", "r", ""},
		"another one waits for it":       {"run r cannot go on: it waits for run q, which holds the same target", "q", ""},
		"the API server refuses a write": {"run r cannot go on: it is immutable", "r", ""},
		"nothing is stuck":               {"", "r", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal([]metav1.Condition{{Type: "RunStuck", Status: metav1.ConditionTrue, Message: c.stuck}})
			if err != nil {
				t.Fatal(err)
			}
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotations.StatusConditions: string(text)}}}
			if got := view.LeftAlone(cm, c.run); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if why := view.LeftAlone(&corev1.ConfigMap{}, "r"); why != "" {
		t.Error("a plan without conditions:", why)
	}
}
