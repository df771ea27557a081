package nodes

import "github.com/kubectl-maint/kubectl-maint/pkg/document"

// NodeLimits are what an admin sets for all maintenance of nodes.
type NodeLimits struct {
	MaxParallelOperations any                `json:"maxParallelOperations,omitempty"` // number or share, rounded up; default 1; 0: none
	MaxUnavailable        any                `json:"maxUnavailable,omitempty"`        // number or share, rounded down; default: no limit
	ZoneLimit             int                `json:"zoneLimit,omitempty"`             // nodes of one zone at once; default: no limit
	MaxNodeMaintenance    *document.Duration `json:"maxNodeMaintenanceTime,omitempty"`
	YieldWhenBlocked      *bool              `json:"yieldWhenBlocked,omitempty"`       // a drain that is blocked for good gives its slot to others; default true
	MaxWithoutDrain       *document.Duration `json:"maxTimeWithoutDrain,omitempty"`    // how long a request that does not drain keeps its slot; default 4h; 0s: without end
	ReleaseExpired        bool               `json:"releaseExpired,omitempty"`         // past maxNodeMaintenanceTime, and its requestor does not work
	PauseMachineConfig    bool               `json:"pauseMachineConfigPool,omitempty"` // of OpenShift, while its nodes are in maintenance
}

// Check reports what is wrong with the limits; at takes the field's name.
func (l NodeLimits) Check(at document.Reporter) {
	checkShare("maxParallelOperations", l.MaxParallelOperations, at)
	checkShare("maxUnavailable", l.MaxUnavailable, at)
	if l.PauseMachineConfig {
		at("pauseMachineConfigPool", "is not available in this version")
	}
	if l.ZoneLimit < 0 {
		at("zoneLimit", "must be a number of nodes, is %d", l.ZoneLimit)
	}
	if d := l.MaxNodeMaintenance; d != nil && d.Duration < 0 {
		at("maxNodeMaintenanceTime", "must not be negative, is %s", d)
	}
	if d := l.MaxWithoutDrain; d != nil && d.Duration < 0 {
		at("maxTimeWithoutDrain", "must not be negative, is %s; 0s is without end", d)
	}
}

func checkShare(name string, value any, at document.Reporter) {
	if value == nil {
		return
	}
	if _, err := document.ParseShare(value); err != nil {
		at(name, "%s", err)
	}
}
