package view_test

import (
	"slices"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// A kind before a name leaves those kinds that it stands for, or stands for itself where it leaves none.
func TestTheKindBeforeANameSaysWhatIsMeant(t *testing.T) {
	const plan, sleeper, policy, run = annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy, annotations.KindRun
	for _, c := range []struct {
		name, word  string
		among, want []string
	}{
		{"none", "", []string{plan, policy}, []string{plan, policy}},
		{"that of all documents", "cm", []string{plan, policy}, []string{plan, policy}},
		{"plans are of two kinds", "plan", []string{run, plan, sleeper}, []string{plan, sleeper}},
		{"of which a command may take one", "Plans", []string{plan, policy}, []string{plan}},
		{"the other alone", "hibernateplan", []string{plan, sleeper}, []string{sleeper}},
		{"one that the command does not take", "run", []string{plan, policy}, []string{run}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := view.KindsMeant(c.word, c.among); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	for _, c := range []struct {
		word, kind string
		want       bool
	}{
		{"", plan, true}, {"configmaps", run, true}, {"policies", policy, true}, {"policy", plan, false}, {"node", plan, false}, {"plan", "", false}, {"", "", false},
	} {
		if got := view.MayMean(c.word, c.kind); got != c.want {
			t.Errorf("%s/NAME, of kind %q: %v", c.word, c.kind, got)
		}
	}
}
