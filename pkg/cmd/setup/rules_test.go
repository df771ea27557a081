package setup

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func rule(verbs, group, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: strings.Fields(verbs), APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names}
}

func TestWhatBecomesOfTheRulesOfARole(t *testing.T) {
	actAs := func(names ...string) rbacv1.PolicyRule { return rule("impersonate", "", "serviceaccounts", names...) }
	tokens := func(names ...string) rbacv1.PolicyRule {
		return rule("create", "", "serviceaccounts/token", names...)
	}
	type rules = []rbacv1.PolicyRule
	for _, c := range []struct {
		name             string
		want, live, gave rules
		accounts         []string
		result           rules
		kept             []string
	}{
		{
			name: "a rule that an earlier version had goes",
			want: rules{rule("get", "", "nodes")}, live: rules{rule("get", "", "nodes"), rule("list watch delete", "", "pods")},
			result: rules{rule("get", "", "nodes")},
		},
		{
			name: "a rule that this version has only in another mode goes",
			want: rules{rule("get", "", "nodes")}, live: rules{actAs("maint-runner")}, gave: rules{actAs("maint-runner")},
			result: rules{rule("get", "", "nodes")},
		},
		{
			name: "a rule that an admin added stays",
			want: rules{rule("get", "", "nodes")}, live: rules{rule("get list", "apps", "deployments")},
			result: rules{rule("get", "", "nodes"), rule("get list", "apps", "deployments")}, kept: []string{"a rule that was added: get, list deployments of apps"},
		},
		{
			name: "every Secret, which an earlier version read, becomes those that are named",
			want: rules{rule("get", "", "secrets", "maint-sinks", "ops")}, live: rules{rule("get", "", "secrets")},
			result: rules{rule("get", "", "secrets", "maint-sinks", "ops")},
		},
		{
			name: "Secrets that an admin named stay",
			want: rules{rule("get", "", "secrets", "maint-sinks")}, live: rules{rule("get", "", "secrets", "dba", "maint-sinks")},
			result: rules{rule("get", "", "secrets", "dba", "maint-sinks")}, kept: []string{"may read the Secrets dba, maint-sinks"},
		},
		{
			name: "accounts that an admin added stay",
			want: rules{actAs("maint-runner")}, live: rules{actAs("maint-runner", "deployer")},
			result: rules{actAs("maint-runner", "deployer")}, kept: []string{"may act as maint-runner, deployer"},
		},
		{
			name: "accounts in a rule of their own are taken in",
			want: rules{actAs("maint-runner")}, live: rules{actAs("maint-runner"), actAs("deployer")},
			result: rules{actAs("maint-runner", "deployer")}, kept: []string{"may act as maint-runner, deployer"},
		},
		{
			name: "an account that an admin took away does not come back",
			want: rules{actAs("maint-runner")}, live: rules{actAs("deployer")},
			result: rules{actAs("deployer")}, kept: []string{"may act as deployer"},
		},
		{
			name: "an account on the command line comes to those that are there",
			want: rules{actAs("maint-runner", "deployer")}, live: rules{actAs("maint-runner", "other")}, accounts: []string{"deployer"},
			result: rules{actAs("maint-runner", "other", "deployer")}, kept: []string{"may act as maint-runner, other, deployer"},
		},
		{
			name: "who may act as everybody is not narrowed by an account",
			want: rules{actAs("maint-runner", "deployer")}, live: rules{actAs()}, accounts: []string{"deployer"},
			result: rules{actAs()}, kept: []string{"may act as every account"},
		},
		{
			name: "accounts whose tokens may be asked for stay",
			want: rules{tokens("maint-runner")}, live: rules{tokens("maint-runner", "deployer")},
			result: rules{tokens("maint-runner", "deployer")}, kept: []string{"may ask for tokens of maint-runner, deployer"},
		},
		{
			name: "an account on the command line comes to those whose tokens may be asked for",
			want: rules{tokens("maint-runner", "dba")}, live: rules{tokens("maint-runner", "deployer")}, accounts: []string{"dba"},
			result: rules{tokens("maint-runner", "deployer", "dba")}, kept: []string{"may ask for tokens of maint-runner, deployer, dba"},
		},
		{
			name: "the right to ask for every token becomes narrow",
			want: rules{tokens("maint-runner")}, live: rules{tokens()},
			result: rules{tokens("maint-runner")},
		},
		{
			name: "a right that an admin narrowed by names stays narrow",
			want: rules{rule("get", "", "secrets")}, live: rules{rule("get", "", "secrets", "sinks")},
			result: rules{rule("get", "", "secrets", "sinks")}, kept: []string{"get secrets, named sinks"},
		},
		{
			name: "a right that an admin has named beside the whole one stays whole",
			want: rules{rule("get", "", "secrets")}, live: rules{rule("get", "", "secrets"), rule("get", "", "secrets", "sinks")},
			result: rules{rule("get", "", "secrets")},
		},
		{
			name: "a right that we narrow becomes narrow",
			want: rules{rule("get", "", "leases", "maint-agent")}, live: rules{rule("get", "", "leases")},
			result: rules{rule("get", "", "leases", "maint-agent")},
		},
		{
			name: "the order of verbs is no difference",
			want: rules{rule("get list", "", "nodes")}, live: rules{rule("list get", "", "nodes")},
			result: rules{rule("get list", "", "nodes")},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, kept := mergeRules(c.want, c.live, append(formerRules(), c.gave...), c.accounts)
			if diff := cmp.Diff(c.result, got); diff != "" {
				t.Errorf("the rules (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.kept, kept); diff != "" {
				t.Errorf("what is told (-want +got):\n%s", diff)
			}
			if again, _ := mergeRules(c.want, got, append(formerRules(), c.gave...), c.accounts); !cmp.Equal(got, again) {
				t.Errorf("a second time gives %v", again)
			}
		})
	}
}
