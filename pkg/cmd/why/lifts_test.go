package why_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

// The command that ends a freeze or a pause is about the policy that has it.
func TestWhyNamesThePolicyThatIsClosed(t *testing.T) {
	weekly := func(namespace string, pairs ...string) *corev1.ConfigMap {
		cm := cmdtest.Policy("weekly", "{strategy: Permissive}")
		cm.Namespace, cm.Annotations = namespace, map[string]string{}
		cmdtest.Noting(pairs...)(cm)
		return cm
	}
	frozen := []string{annotations.ChangeStrategy, "RestrictiveUntil", annotations.RestrictiveUntil, "2026-11-22T00:00:00Z"}
	paused := []string{annotations.Pause, "true"}
	const both = "policies: [{name: weekly}, {name: weekly, namespace: maint-system}]"
	here, there := "; or 'kubectl maint freeze policy/weekly --end'", "; or 'kubectl maint -n maint-system freeze policy/weekly --end'"
	for _, c := range []struct {
		name, spec  string
		notes       []string
		shop, agent []string // what stands on the policies of the two namespaces
		hidden      string   // the reason that the agent published, for whoever may read less
		want        string   // empty: no command about a policy
	}{
		{name: "of two with one name, that of another namespace is frozen", spec: both, agent: frozen, want: there},
		{name: "of two with one name, the plan's own is frozen", spec: both, shop: frozen, want: here},
		{name: "of two with one name, that of another namespace is paused", spec: both, agent: paused, want: "; or 'kubectl maint -n maint-system resume policy/weekly'"},
		{name: "the annotation names it", spec: "triggers: {}", notes: []string{annotations.ChangePolicy, "maint-system/weekly"}, agent: frozen, want: there},
		{name: "the annotation takes the place of what the plan names", spec: "policies: [{name: weekly}]", notes: []string{annotations.ChangePolicy, "maint-system/weekly"}, shop: frozen, agent: frozen, want: there},
		{name: "the agent says which, and there is one of that name", spec: "policies: [{name: weekly, namespace: maint-system}]", hidden: "policy weekly: RestrictiveUntil 2026-11-22T00:00:00Z by jane", want: there},
		{name: "the agent says which, of two with one name", spec: both, hidden: "policy weekly: RestrictiveUntil 2026-11-22T00:00:00Z by jane"},
	} {
		t.Run(c.name, func(t *testing.T) {
			orders := cmdtest.Plan("orders", c.spec, cmdtest.Noting(c.notes...))
			orders.Annotations[annotations.StatusObserved] = annotations.Observed(orders)
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system"), orders, weekly("shop", c.shop...), weekly("maint-system", c.agent...))
			if c.hidden != "" {
				orders.Annotations[annotations.StatusBehavior] = `{"current":{"state":"ChangesPaused","reason":"` + c.hidden + `","endTime":"2026-11-22T00:00:00Z"}}`
				o.Stores("configmaps", orders)
				o.Forbids("list", "configmaps", "maint-system")
			}
			got := o.Line("why orders")
			if said := strings.Contains(got.Out, "policy/weekly"); got.Code != 3 || said != (c.want != "") || !strings.Contains(got.Out, c.want) {
				t.Errorf("it does not say %q:\n%s%s", c.want, got.Out, got.Err)
			}
		})
	}
}

// A node is not frozen since a policy with its name is.
func TestANodeAndAFrozenPolicyWithOneName(t *testing.T) {
	policy := cmdtest.Policy("weekly", "{strategy: Permissive}")
	policy.Namespace = "maint-system"
	policy.Annotations = map[string]string{annotations.ChangeStrategy: "RestrictiveUntil", annotations.RestrictiveUntil: "2026-11-22T00:00:00Z"}
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), policy, cmdtest.Node("weekly", cmdtest.Noted(annotations.ChangePolicy, "maint-system/weekly")))
	if got := o.Line("why node/weekly"); got.Code != 3 || strings.Contains(got.Out, "--end") || !strings.Contains(got.Out, "'kubectl maint allow node/weekly --for 2h --reason …'") {
		t.Errorf("%+v", got)
	}
}

// A freeze is proposed to be ended where change is permitted then: with all others that hold it too.
func TestWhyProposesToEndWhatOpens(t *testing.T) {
	frozen := func(until string) []string {
		return []string{annotations.ChangeStrategy, "RestrictiveUntil", annotations.RestrictiveUntil, until}
	}
	const ofNamespace, ofPolicy = "'kubectl maint freeze namespace/shop --end'", "'kubectl maint freeze policy/weekly --end'"
	for _, c := range []struct{ name, spec, until, want, never string }{
		{name: "the policy is frozen for longer", spec: "{strategy: Permissive}", until: "2026-11-22T00:00:00Z", want: "; or " + ofNamespace + " and " + ofPolicy + " together"},
		{name: "the policy is frozen for less long", spec: "{strategy: Permissive}", until: "2026-11-21T00:30:00Z", want: "; or " + ofNamespace + " and " + ofPolicy + " together"},
		{name: "the policy never permits", spec: "{strategy: Restrictive}", want: "; after the freeze: policy weekly: Restrictive\n   it stays so until somebody changes it", never: "--end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy := cmdtest.Policy("weekly", c.spec)
			if c.until != "" {
				policy.Annotations = map[string]string{}
				cmdtest.Noting(frozen(c.until)...)(policy)
			}
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop", frozen("2026-11-21T01:00:00Z")...), cmdtest.Namespace("maint-system"), cmdtest.Plan("orders", "policies: [{name: weekly}]"), policy)
			if got := o.Line("why orders"); !strings.Contains(got.Out, c.want) || c.never != "" && strings.Contains(got.Out, c.never) {
				t.Errorf("it does not say %q:\n%s", c.want, got.Out)
			}
		})
	}
}
