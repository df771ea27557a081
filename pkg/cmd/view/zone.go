package view

import (
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
