package view_test

import (
	"encoding/json"
	"errors"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/stuck"
)

func TestRunsThatAreLeftAlone(t *testing.T) {
	unsigned := stuck.Unsigned("r", stuck.WhyUnsigned("shop", "r", errors.New("it carries no signature")))
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

// A run that was left alone for its signature counts again once it is adopted. One that somebody created
// again carries the agent's own signature, and is none.
func TestWhichRunsWereAdopted(t *testing.T) {
	ring, err := annotations.ReadKeyring(&corev1.Secret{Data: map[string][]byte{annotations.DataKey: annotations.NewKey()}})
	if err != nil {
		t.Fatal(err)
	}
	signed := func(uid, now types.UID) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r", UID: uid, Labels: map[string]string{annotations.LabelKind: annotations.KindRun}}}
		if err := ring.Sign(cm); err != nil {
			t.Fatal(err)
		}
		cm.UID = now
		return cm
	}
	why := stuck.WhyUnsigned("shop", "r", errors.New("it carries no signature"))
	for name, c := range map[string]struct {
		cm   *corev1.ConfigMap
		why  string
		want bool
	}{
		"signed since":              {signed("u", "u"), why, true},
		"created again":             {signed("u", "v"), why, false},
		"left alone for what it is": {signed("u", "u"), "no JSON", false},
		"gone":                      {nil, why, false},
	} {
		if got := view.Adopted(c.cm, c.why, ring.ID()); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Each plan is asked for once. Of one that is not known, all runs count.
func TestRunsAreCountedByTheirPlans(t *testing.T) {
	at := func(plan, name string) view.Run {
		return view.Run{Run: run.Run{Namespace: "shop", Plan: plan, PlanUID: "1", Name: name}, Journal: run.Journal{Phase: run.Running}}
	}
	text, err := json.Marshal([]metav1.Condition{{Type: "RunStuck", Status: metav1.ConditionTrue, Message: stuck.Unread("a", errors.New("no JSON")).Why}})
	if err != nil {
		t.Fatal(err)
	}
	left := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "1", Annotations: map[string]string{annotations.StatusConditions: string(text)}}}
	asked := 0
	counted, alone := view.CountRuns([]view.Run{at("p", "a"), at("p", "b"), at("gone", "a")}, func(plan types.NamespacedName) (*corev1.ConfigMap, view.Ledger) {
		asked++
		if plan.Name == "gone" {
			return nil, view.Ledger{}
		}
		return left, view.Ledger{Head: &ledger.Ledger{}}
	})
	if len(counted) != 2 || !counted[0].Unclaimed || counted[0].Run.Name != "b" || counted[1].Unclaimed || !maps.Equal(alone, map[string]string{"plan:shop/p": "a"}) || asked != 2 {
		t.Errorf("%+v, %v, asked %d times", counted, alone, asked)
	}
}

func TestWhichRunsTheAgentCounts(t *testing.T) {
	at := func(phase run.Phase) view.Run {
		return view.Run{Run: run.Run{Namespace: "shop", Plan: "p", PlanUID: "1", Name: "r"}, Journal: run.Journal{Phase: phase}}
	}
	text, err := json.Marshal([]metav1.Condition{{Type: "RunStuck", Status: metav1.ConditionTrue, Message: stuck.Unread("r", errors.New("no JSON")).Why}})
	if err != nil {
		t.Fatal(err)
	}
	left := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "1", Annotations: map[string]string{annotations.StatusConditions: string(text)}}}
	fine, again := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "1"}}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "2"}}
	open := view.Ledger{Head: &ledger.Ledger{Open: []ledger.Entry{{Run: "r"}}}}
	shut := view.Ledger{Head: &ledger.Ledger{}}
	for name, c := range map[string]struct {
		run               view.Run
		plan              *corev1.ConfigMap
		kept              view.Ledger
		counts, unclaimed bool
	}{
		"its plan's ledger has it open":     {at(run.Running), fine, open, true, false},
		"the ledger does not have it":       {at(run.Running), fine, shut, true, true},
		"it has not begun":                  {at(run.Pending), fine, shut, true, false},
		"there is no ledger":                {at(run.Running), fine, view.Ledger{}, true, false},
		"nobody knows who wrote the ledger": {at(run.Running), fine, view.Ledger{Head: &ledger.Ledger{}, Doubt: errors.New("x")}, true, false},
		"it is another plan's ledger":       {at(run.Running), again, shut, true, false},
		"the agent leaves it alone":         {at(run.Running), left, open, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, counts := c.run.AsCounted(c.plan, c.kept)
			if counts != c.counts || got.Unclaimed != c.unclaimed {
				t.Errorf("counts: %t, unclaimed: %t", counts, got.Unclaimed)
			}
		})
	}
}
