package nodes

import (
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// DefaultParallel is how many nodes are in maintenance at once where the config does not say.
const DefaultParallel = 1

// DefaultWithoutDrain is how long a request that does not drain keeps its slot where the config does not say.
// The number is a guess: longer than a firmware update takes, shorter than a night.
const DefaultWithoutDrain = 4 * time.Hour

// Limits are what an admin sets for all maintenance of nodes.
type Limits struct {
	Parallel       document.Share  // of all nodes, rounded up; 0: none
	Unavailable    *document.Share // of all nodes, rounded down; nil: no limit
	Zone           int             // nodes of one zone at once; 0: no limit
	MaxTime        time.Duration   // of one request with a node; 0: no limit
	WithoutDrain   time.Duration   // with a slot, of a request that does not drain; 0: no limit
	ReleaseExpired bool            // past MaxTime, unless the requestor works or failed
	Yield          bool            // a drain that is blocked for good gives its slot to others
}

// LimitsOf reads the limits of an AgentConfig; what is not given has its default.
func LimitsOf(l NodeLimits) (Limits, error) {
	out := Limits{
		Parallel: document.Share{N: DefaultParallel}, Zone: max(l.ZoneLimit, 0),
		MaxTime: max(l.MaxNodeMaintenance.Or(0), 0), WithoutDrain: max(l.MaxWithoutDrain.Or(DefaultWithoutDrain), 0),
		ReleaseExpired: l.ReleaseExpired, Yield: l.YieldWhenBlocked == nil || *l.YieldWhenBlocked,
	}
	if l.MaxParallelOperations != nil {
		s, err := document.ParseShare(l.MaxParallelOperations)
		if err != nil {
			return Limits{}, fmt.Errorf("maxParallelOperations: %w", err)
		}
		out.Parallel = s
	}
	if l.MaxUnavailable != nil {
		s, err := document.ParseShare(l.MaxUnavailable)
		if err != nil {
			return Limits{}, fmt.Errorf("maxUnavailable: %w", err)
		}
		out.Unavailable = &s
	}
	return out, nil
}

// NodeLimits are what an admin sets for all maintenance of nodes.
type NodeLimits struct {
	MaxParallelOperations any                `json:"maxParallelOperations,omitempty"` // number or share, rounded up; default 1; 0: none
	MaxUnavailable        any                `json:"maxUnavailable,omitempty"`        // number or share, rounded down; default: no limit
	ZoneLimit             int                `json:"zoneLimit,omitempty"`             // nodes of one zone at once; default: no limit
	MaxNodeMaintenance    *document.Duration `json:"maxNodeMaintenanceTime,omitempty"`
	YieldWhenBlocked      *bool              `json:"yieldWhenBlocked,omitempty"`       // a drain that is blocked for good gives its slot to others; default true
	MaxWithoutDrain       *document.Duration `json:"maxTimeWithoutDrain,omitempty"`    // how long a request that does not drain keeps its slot; default 4h; 0s: without end
	ReleaseExpired        bool               `json:"releaseExpired,omitempty"`         // past maxNodeMaintenanceTime, and its requestor does not work
	PauseMachineConfig    bool               `json:"pauseMachineConfigPool,omitempty"` // of OpenShift, while its nodes are in maintenance; not built yet: a condition says so
}

// Check reports what is wrong with the limits; at takes the field's name.
func (l NodeLimits) Check(at document.Reporter) {
	checkShare("maxParallelOperations", l.MaxParallelOperations, at)
	checkShare("maxUnavailable", l.MaxUnavailable, at)
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

// A request that does not drain is Ready at once, and nothing that happens on the node ends it: whoever may
// write it would have a slot for as long as he likes. So its slot has an end. The request keeps the node as
// it is; others may have their turn meanwhile, and the node counts as unavailable and in its zone.

// slotEnd is when the slot of a request that has its node goes to others.
func slotEnd(a *Asked, phase Phase, started *time.Time, limits Limits) (time.Time, bool) {
	if limits.WithoutDrain <= 0 || a.Request.Drain != nil || a.Fault != "" || !phase.given() || started == nil {
		return time.Time{}, false
	}
	return started.Add(limits.WithoutDrain), true
}

// noteSlots decides whether the slots of all who have the node are over.
func (s *site) noteSlots(limits Limits, now time.Time) {
	if s.leaving || len(s.standing) == 0 || len(s.holds) > 0 {
		return
	}
	s.over = !slices.ContainsFunc(s.standing, func(a *Asked) bool {
		if a.Status == nil {
			return true
		}
		end, has := slotEnd(a, s.phase(a), a.Status.Started, limits)
		return !has || end.After(now)
	})
}

// endSlots says once of each request that its slot is over.
func (w *work) endSlots() {
	for _, s := range w.holding() {
		end, has := slotEnd(s.Asked, s.next.Phase, s.next.Started, w.limits)
		if !has || w.soon.add(end) {
			s.next.SlotOver = false
			continue
		}
		if !s.next.SlotOver {
			s.next.SlotOver = true
			w.say(s.name(), true, "SlotOver", "has the node without a drain for "+w.limits.WithoutDrain.String()+
				" (maxTimeWithoutDrain): others have its slot; the node stays as it is until the request is removed")
		}
	}
}
