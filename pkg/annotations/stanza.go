package annotations

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Stanza reads what an object's annotations say of when it may be changed. What
// is not understood makes the stanza not ready, which is restrictive.
func Stanza(a map[string]string) plan.StanzaText {
	s := plan.StanzaText{Strategy: schedule.Strategy(strings.TrimSpace(a[ChangeStrategy]))}
	if _, err := schedule.ParseStrategy(string(s.Strategy)); err != nil {
		s.Faults = append(s.Faults, plan.Fault{Path: ChangeStrategy, Message: fmt.Sprintf("%q is no strategy, and change is not permitted: write ByPolicy, Permissive, Restrictive, PermissiveUntil or RestrictiveUntil", plan.Cut(string(s.Strategy), 80))})
	}
	for item := range strings.SplitSeq(a[ChangePolicy], ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		ref := plan.PolicyRef{Name: item}
		if namespace, name, qualified := strings.Cut(item, "/"); qualified {
			ref = plan.PolicyRef{Name: name, Namespace: namespace}
		}
		if !slices.Contains(s.Policies, ref) {
			s.Policies = append(s.Policies, ref)
		}
	}
	if len(s.Policies) > plan.MaxPolicies {
		s.Faults = append(s.Faults, plan.Fault{Path: ChangePolicy, Message: fmt.Sprintf("names %d policies, and change is not permitted: at most %d are asked", len(s.Policies), plan.MaxPolicies)})
		s.Strategy, s.Policies = "of too many policies", nil
	}
	if key := untilOf(s.Strategy); key != "" {
		until, err := time.Parse(time.RFC3339, a[key])
		if err != nil {
			s.Faults = append(s.Faults, plan.Fault{Path: key, Message: fmt.Sprintf("%q is no RFC 3339 instant like 2026-12-01T06:00:00Z, and change is not permitted", plan.Cut(a[key], 80))})
			return s
		}
		s.Until = &until
	}
	return s
}

func untilOf(s schedule.Strategy) string {
	switch s {
	case schedule.PermissiveUntil:
		return PermissiveUntil
	case schedule.RestrictiveUntil:
		return RestrictiveUntil
	}
	return ""
}

// readBypass reads <run or instant>: <reason>. What is not understood lets
// nothing pass.
func readBypass(value string, faults plan.Faults) (plan.Bypass, plan.Faults) {
	if off(value) {
		return plan.Bypass{}, faults
	}
	what, reason, _ := strings.Cut(value, ": ")
	what, reason = strings.TrimSpace(what), strings.TrimSpace(reason)
	if what == "" || reason == "" {
		return plan.Bypass{}, append(faults, plan.Fault{Path: Bypass, Message: fmt.Sprintf("%q lets nothing pass: write <run or instant>: <reason>, like 2026-12-01T06:00:00Z: urgent fix", plan.Cut(value, 80))})
	}
	b := plan.Bypass{Reason: plan.Cut(reason, 512)}
	if until, err := time.Parse(time.RFC3339, what); err == nil {
		b.Until = &until
		return b, faults
	}
	if !strings.HasPrefix(what, "maint-"+KindRun+"-") {
		return plan.Bypass{}, append(faults, plan.Fault{Path: Bypass, Message: fmt.Sprintf("%q is neither a run nor an RFC 3339 instant, and lets nothing pass", plan.Cut(what, 80))})
	}
	b.Run = what
	return b, faults
}
