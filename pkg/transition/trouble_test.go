package transition_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/transition"
)

func TestWhatIsWrongWithAPlanThatSleeps(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 12, 1, hour, 0, 0, 0, time.UTC) }
	record := func(op hibernate.Operation, s hibernate.State) hibernate.Record {
		return hibernate.Record{Target: "apps", Operation: op, State: s, Snapshot: hibernate.Snapshot{WakeAt: new(at(7))}}
	}
	byDay := hibernate.DesiredState{By: hibernate.BySchedule, Level: hibernate.Level{Since: at(7)}}
	for name, c := range map[string]struct {
		facts hibernate.Facts
		want  hibernate.DesiredState
		is    hibernate.Decision
		told  transition.Trouble
	}{
		"it sleeps as it should":                {hibernate.Facts{Now: at(5), Sleep: true, Records: []hibernate.Record{record(hibernate.Shutdown, hibernate.Asleep)}}, hibernate.DesiredState{By: hibernate.BySchedule}, hibernate.Decision{}, transition.Trouble{}},
		"nothing sleeps":                        {hibernate.Facts{Now: at(9)}, byDay, hibernate.Decision{}, transition.Trouble{}},
		"it wakes late":                         {hibernate.Facts{Now: at(9), Records: []hibernate.Record{record(hibernate.Wake, hibernate.Running)}}, byDay, hibernate.Decision{}, transition.Trouble{Overdue: at(7)}},
		"somebody paused what should wake":      {hibernate.Facts{Now: at(9), Keep: true, Records: []hibernate.Record{record(hibernate.Shutdown, hibernate.Asleep)}}, byDay, hibernate.Decision{}, transition.Trouble{Overdue: at(7)}},
		"a target does not wake":                {hibernate.Facts{Now: at(9), Records: []hibernate.Record{record(hibernate.Wake, hibernate.Failed)}}, byDay, hibernate.Decision{}, transition.Trouble{Overdue: at(7), NotBack: 1}},
		"all are awake and not healthy yet":     {hibernate.Facts{Now: at(9), Records: []hibernate.Record{record(hibernate.Wake, hibernate.Awake)}}, byDay, hibernate.Decision{Check: true}, transition.Trouble{}},
		"it has just been closed":               {hibernate.Facts{Now: at(9), Records: []hibernate.Record{record(hibernate.Wake, hibernate.Awake)}}, byDay, hibernate.Decision{Closed: []string{"apps"}}, transition.Trouble{}},
		"restore data that does not count":      {hibernate.Facts{Now: at(9), Blocked: map[string]string{"apps": "unsigned"}}, byDay, hibernate.Decision{}, transition.Trouble{Overdue: at(7), NotBack: 1}},
		"restore data that is gone":             {hibernate.Facts{Now: at(9), Missing: []string{"apps"}}, byDay, hibernate.Decision{}, transition.Trouble{NotBack: 1}},
		"somebody wakes it by hand":             {hibernate.Facts{Now: at(5), Records: []hibernate.Record{record(hibernate.Wake, hibernate.Running)}}, hibernate.DesiredState{By: hibernate.ByHold, Level: hibernate.Level{Asleep: true, Since: at(1)}}, hibernate.Decision{}, transition.Trouble{Overdue: at(5)}},
		"what was woken falls asleep again":     {hibernate.Facts{Now: at(9), Records: []hibernate.Record{record(hibernate.Shutdown, hibernate.Awake)}}, byDay, hibernate.Decision{}, transition.Trouble{Overdue: at(7)}},
		"it is held awake by day":               {hibernate.Facts{Now: at(9), Records: []hibernate.Record{{Operation: hibernate.Wake, State: hibernate.Running}}}, hibernate.DesiredState{By: hibernate.ByHold, Level: hibernate.Level{Since: at(8)}}, hibernate.Decision{}, transition.Trouble{Overdue: at(9)}},
		"its schedule has always been awake":    {hibernate.Facts{Now: at(9), Records: []hibernate.Record{record(hibernate.Wake, hibernate.Running)}}, hibernate.DesiredState{By: hibernate.BySchedule}, hibernate.Decision{}, transition.Trouble{Overdue: at(7)}},
		"the plan is gone, and its time passed": {hibernate.Facts{Now: at(9), Records: []hibernate.Record{record(hibernate.Wake, hibernate.Running)}}, hibernate.DesiredState{}, hibernate.Decision{}, transition.Trouble{Overdue: at(7)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := transition.TroubleOf(c.facts, c.want, c.is); got != c.told {
				t.Error(cmp.Diff(c.told, got))
			}
		})
	}
}
