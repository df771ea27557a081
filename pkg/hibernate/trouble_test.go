package hibernate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsWrongWithAPlanThatSleeps(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 12, 1, hour, 0, 0, 0, time.UTC) }
	record := func(op Operation, s State) Record {
		return Record{Target: "apps", Operation: op, State: s, Snapshot: Snapshot{WakeAt: new(at(7))}}
	}
	byDay := DesiredState{By: BySchedule, Level: Level{Since: at(7)}}
	for name, c := range map[string]struct {
		facts Facts
		want  DesiredState
		is    Decision
		told  Trouble
	}{
		"it sleeps as it should":                {Facts{Now: at(5), Sleep: true, Records: []Record{record(Shutdown, Asleep)}}, DesiredState{By: BySchedule}, Decision{}, Trouble{}},
		"nothing sleeps":                        {Facts{Now: at(9)}, byDay, Decision{}, Trouble{}},
		"it wakes late":                         {Facts{Now: at(9), Records: []Record{record(Wake, Running)}}, byDay, Decision{}, Trouble{Overdue: at(7)}},
		"somebody paused what should wake":      {Facts{Now: at(9), Keep: true, Records: []Record{record(Shutdown, Asleep)}}, byDay, Decision{}, Trouble{Overdue: at(7)}},
		"a target does not wake":                {Facts{Now: at(9), Records: []Record{record(Wake, Failed)}}, byDay, Decision{}, Trouble{Overdue: at(7), NotBack: 1}},
		"all are awake and not healthy yet":     {Facts{Now: at(9), Records: []Record{record(Wake, Awake)}}, byDay, Decision{Check: true}, Trouble{}},
		"it has just been closed":               {Facts{Now: at(9), Records: []Record{record(Wake, Awake)}}, byDay, Decision{Closed: []string{"apps"}}, Trouble{}},
		"restore data that does not count":      {Facts{Now: at(9), Blocked: map[string]string{"apps": "unsigned"}}, byDay, Decision{}, Trouble{Overdue: at(7), NotBack: 1}},
		"restore data that is gone":             {Facts{Now: at(9), Missing: []string{"apps"}}, byDay, Decision{}, Trouble{NotBack: 1}},
		"somebody wakes it by hand":             {Facts{Now: at(5), Records: []Record{record(Wake, Running)}}, DesiredState{By: ByHold, Level: Level{Asleep: true, Since: at(1)}}, Decision{}, Trouble{Overdue: at(5)}},
		"the plan is gone, and its time passed": {Facts{Now: at(9), Records: []Record{record(Wake, Running)}}, DesiredState{}, Decision{}, Trouble{Overdue: at(7)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.facts.Trouble(c.want, c.is); got != c.told {
				t.Error(cmp.Diff(c.told, got))
			}
		})
	}
}
