package setup

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// formerRules are what our roles granted in earlier versions. A rule that is neither here nor in
// the manifests is an admin's.
func formerRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get"}},
		{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"volumeattachments"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update", "watch"}},
	}
}

// mergeRules are the new rules of a role: ours, with names that an admin restricted them to, and
// rules that an admin added. known are all rules that install ever wrote there. accounts are those
// that the agent may impersonate from now on, besides those that it may already.
func mergeRules(want, live, known []rbacv1.PolicyRule, accounts []string) (out []rbacv1.PolicyRule, kept []string) {
	for _, rule := range want {
		names, there := namesOf(rule, live)
		switch {
		case !there:
		case impersonates(rule) && len(names) == 0:
			rule.ResourceNames, kept = nil, append(kept, "may act as every account")
		case impersonates(rule), asksForTokens(rule) && len(names) > 0:
			for _, name := range accounts {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
			if !slices.Equal(names, rule.ResourceNames) {
				kept = append(kept, accountWords(rule)+strings.Join(names, ", "))
			}
			rule.ResourceNames = names
		case readsSinks(rule) && len(rule.ResourceNames) > 0: // an earlier version read every Secret; those of the configuration are among ours
			if all := slices.Compact(slices.Sorted(slices.Values(append(names, rule.ResourceNames...)))); len(all) > len(rule.ResourceNames) {
				rule.ResourceNames, kept = all, append(kept, "may read the Secrets "+strings.Join(all, ", "))
			}
		case len(rule.ResourceNames) == 0 && len(names) > 0: // an admin has restricted it
			kept = append(kept, fmt.Sprintf("%s, named %s", ruleWords(rule), strings.Join(names, ", ")))
			rule.ResourceNames = names
		}
		out = append(out, rule)
	}
	for _, rule := range live {
		same := func(other rbacv1.PolicyRule) bool { return ruleKey(other) == ruleKey(rule) }
		if slices.ContainsFunc(want, same) || slices.ContainsFunc(known, same) {
			continue
		}
		out, kept = append(out, rule), append(kept, "a rule that was added: "+ruleWords(rule))
	}
	return out, kept
}

// namesOf are the names to which live rules restrict a rule, none if one of them does not; there
// says whether there is such a rule.
func namesOf(rule rbacv1.PolicyRule, live []rbacv1.PolicyRule) (names []string, there bool) {
	narrow := true
	for _, l := range live {
		if ruleKey(l) != ruleKey(rule) {
			continue
		}
		there, narrow = true, narrow && len(l.ResourceNames) > 0
		names = append(names, l.ResourceNames...)
	}
	if !narrow {
		return nil, there
	}
	return names, there
}

func impersonates(rule rbacv1.PolicyRule) bool {
	return slices.Contains(rule.Verbs, "impersonate") && slices.Contains(rule.Resources, "serviceaccounts")
}

// asksForTokens says whether a rule lets the agent request tokens of accounts.
func asksForTokens(rule rbacv1.PolicyRule) bool {
	return slices.Equal(rule.Verbs, []string{"create"}) && slices.Equal(rule.Resources, []string{"serviceaccounts/token"})
}

func accountWords(rule rbacv1.PolicyRule) string {
	if asksForTokens(rule) {
		return "may ask for tokens of "
	}
	return "may act as "
}

// actsAs are the accounts that the agent may impersonate by name in the cluster, in order.
func actsAs(live objectsByKey) ([]string, error) {
	var out []string
	for _, role := range []objectKey{{"ClusterRole", annotations.AgentName}, {"Role", documentsRole}} {
		if live[role] == nil {
			continue
		}
		rules, err := rulesOf(live[role])
		if err != nil {
			return nil, err
		}
		for _, rule := range rules {
			if impersonates(rule) {
				out = append(out, rule.ResourceNames...)
			}
		}
	}
	return out, nil
}

// withTokens lets a role request tokens of the accounts that the agent impersonates already.
func withTokens(role *unstructured.Unstructured, accounts []string) (*unstructured.Unstructured, error) {
	rules, err := rulesOf(role)
	if err != nil {
		return nil, err
	}
	role = role.DeepCopy()
	for i, rule := range rules {
		for _, name := range accounts {
			if asksForTokens(rule) && !slices.Contains(rules[i].ResourceNames, name) {
				rules[i].ResourceNames = append(rules[i].ResourceNames, name)
			}
		}
	}
	return role, putRules(role, rules)
}

// readsSinks says whether a rule lets the agent read the Secrets of sinks.
func readsSinks(rule rbacv1.PolicyRule) bool {
	return slices.Equal(rule.Verbs, []string{"get"}) && slices.Equal(rule.Resources, []string{"secrets"})
}

// ruleKey is what a rule grants, without resource names.
func ruleKey(rule rbacv1.PolicyRule) string {
	sorted := func(list []string) string { return strings.Join(slices.Sorted(slices.Values(list)), ",") }
	return strings.Join([]string{sorted(rule.APIGroups), sorted(rule.Resources), sorted(rule.Verbs), sorted(rule.NonResourceURLs)}, "|")
}

func ruleWords(rule rbacv1.PolicyRule) string {
	on := strings.Join(append(slices.Clone(rule.Resources), rule.NonResourceURLs...), ", ")
	if group := strings.Join(rule.APIGroups, ", "); group != "" {
		on += " of " + group
	}
	return strings.Join(rule.Verbs, ", ") + " " + on
}

func rulesOf(role *unstructured.Unstructured) ([]rbacv1.PolicyRule, error) {
	var typed rbacv1.ClusterRole // a Role has the same rules
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(role.Object, &typed); err != nil {
		return nil, fmt.Errorf("read the rules of %s: %w", named(role), err)
	}
	return typed.Rules, nil
}

func putRules(role *unstructured.Unstructured, rules []rbacv1.PolicyRule) error {
	list := make([]any, len(rules))
	for i := range rules {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rules[i])
		if err != nil {
			return fmt.Errorf("write the rules of %s: %w", named(role), err)
		}
		list[i] = fields
	}
	return unstructured.SetNestedSlice(role.Object, list, "rules")
}
