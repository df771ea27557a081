package view_test

import (
	"encoding/json"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/stuck"
)

func TestRunsThatAreLeftAlone(t *testing.T) {
	unsigned := stuck.Unsigned("shop", "r", errors.New("it carries no signature"))
	unread := stuck.Unread("q", errors.New("no JSON"))
	alone, both := stuck.Message([]stuck.Alone{unsigned}, ""), stuck.Message([]stuck.Alone{unsigned, unread}, "")
	for name, c := range map[string]struct{ stuck, run, want string }{
		"its signature does not count":   {alone, "r", unsigned.Why},
		"another run's does not":         {alone, "q", ""},
		"one whose name begins as it":    {alone, "r-2", ""},
		"the first of two":               {both, "r", unsigned.Why},
		"the second of two":              {both, "q", unread.Why},
		"it waits for another one":       {stuck.CannotGoOn("r", stuck.ForRun("", "q")), "r", ""},
		"another one waits for it":       {stuck.CannotGoOn("r", stuck.ForRun("", "q")), "q", ""},
		"the API server refuses a write": {stuck.CannotGoOn("r", "it is immutable"), "r", ""},
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
