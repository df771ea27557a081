package view

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

// PolicyZone is the zone of a policy's windows.
func PolicyZone(spec policy.PolicySpec, user string) string {
	if spec.MaintenanceSchedule == nil {
		return user
	}
	if zone := spec.MaintenanceSchedule.Timezone; zone != "" {
		return zone
	}
	return "UTC"
}

// DocumentZone is the zone of the times of a plan of either kind, or a policy.
func DocumentZone(cm *corev1.ConfigMap, user string) string {
	switch cm.Labels[annotations.LabelKind] {
	case annotations.KindHibernatePlan:
		return NewSleeper(cm, nil, nil).Zone()
	case annotations.KindPolicy:
		return PolicyZone(annotations.Policy(cm).Spec, user)
	}
	spec, _ := annotations.Plan(cm)
	return PlanZone(spec, user)
}

// PlanZone is the zone of a plan's times: that of its schedules if they agree, else the user's.
func PlanZone(spec plan.Spec, user string) string {
	zone := ""
	for i, s := range spec.Triggers.Schedules {
		own := s.Timezone
		if own == "" {
			own = "UTC"
		}
		if i > 0 && own != zone {
			return user
		}
		zone = own
	}
	if zone == "" {
		return user
	}
	return zone
}
