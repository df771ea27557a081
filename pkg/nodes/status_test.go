package nodes_test

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

func TestAClaimantIsSaidAsPeopleKnowIt(t *testing.T) {
	for claimant, want := range map[string]string{
		nodes.PlanClaimant("shop", "roll"): "plan shop/roll",
		"cli.jane":                         "cli.jane",
		"planner":                          "planner",
	} {
		if got := nodes.ClaimantName(claimant); got != want {
			t.Errorf("%q is said as %q, want %q", claimant, got, want)
		}
	}
}
