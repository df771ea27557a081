package annotations

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Stanza reads what an object's annotations say of when it may be changed. What
// is not understood makes the stanza not ready, which is restrictive.
func Stanza(a map[string]string) policy.StanzaText {
	s := policy.StanzaText{Strategy: schedule.Strategy(strings.TrimSpace(a[ChangeStrategy]))}
	if _, err := schedule.ParseStrategy(string(s.Strategy)); err != nil {
		s.Faults = append(s.Faults, document.Fault{Path: ChangeStrategy, Message: fmt.Sprintf("%q is no strategy, and change is not permitted: write ByPolicy, Permissive, Restrictive, PermissiveUntil or RestrictiveUntil", document.Cut(string(s.Strategy), 80))})
	}
	if s.Strategy != "" {
		s.By = ActorOf(a, ChangeStrategy).Said("")
	}
	for item := range strings.SplitSeq(a[ChangePolicy], ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		ref := policy.PolicyRef{Name: item}
		if namespace, name, qualified := strings.Cut(item, "/"); qualified {
			ref = policy.PolicyRef{Name: name, Namespace: namespace}
		}
		if !slices.Contains(s.Policies, ref) {
			s.Policies = append(s.Policies, ref)
		}
	}
	if len(s.Policies) > plan.MaxPolicies {
		s.Faults = append(s.Faults, document.Fault{Path: ChangePolicy, Message: fmt.Sprintf("names %d policies, and change is not permitted: at most %d are asked", len(s.Policies), plan.MaxPolicies)})
		s.Strategy, s.Policies = "of too many policies", nil
	}
	if key := untilOf(s.Strategy); key != "" {
		until, err := time.Parse(time.RFC3339, a[key])
		if err != nil {
			s.Faults = append(s.Faults, document.Fault{Path: key, Message: fmt.Sprintf("%q is no RFC 3339 instant like 2026-12-01T06:00:00Z, and change is not permitted", document.Cut(a[key], 80))})
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
func readBypass(value string, faults document.Faults) (intent.Bypass, document.Faults) {
	if off(value) {
		return intent.Bypass{}, faults
	}
	what, reason, _ := strings.Cut(value, ": ")
	what, reason = strings.TrimSpace(what), strings.TrimSpace(reason)
	if what == "" || reason == "" {
		return intent.Bypass{}, append(faults, document.Fault{Path: Bypass, Message: fmt.Sprintf("%q bypasses nothing: write <run or instant>: <reason>, like 2026-12-01T06:00:00Z: urgent fix", document.Cut(value, 80))})
	}
	b := intent.Bypass{Reason: document.Cut(reason, 512)}
	if until, err := time.Parse(time.RFC3339, what); err == nil {
		b.Until = &until
		return b, faults
	}
	if !strings.HasPrefix(what, "maint-"+KindRun+"-") {
		return intent.Bypass{}, append(faults, document.Fault{Path: Bypass, Message: fmt.Sprintf("%q is neither a run nor an RFC 3339 instant, and bypasses nothing", document.Cut(what, 80))})
	}
	b.Run = what
	return b, faults
}
