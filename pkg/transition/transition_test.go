package transition_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/transition"
)

func TestTheStateOfAllTargets(t *testing.T) {
	const pending, running, asleep, awake, failed, aborted, skipped = hibernate.Pending, hibernate.Running, hibernate.Asleep, hibernate.Awake, hibernate.Failed, hibernate.Aborted, hibernate.Skipped
	for name, c := range map[string]struct {
		states []hibernate.State
		want   hibernate.State
	}{
		"no target was ever asked":                    {nil, ""},
		"all sleep":                                   {[]hibernate.State{asleep, asleep}, asleep},
		"all are awake":                               {[]hibernate.State{awake, awake}, awake},
		"none has begun":                              {[]hibernate.State{pending, pending}, pending},
		"one is at work":                              {[]hibernate.State{asleep, running, pending}, running},
		"one sleeps and one has not begun":            {[]hibernate.State{asleep, pending}, running},
		"one is awake and one still sleeps":           {[]hibernate.State{awake, asleep}, running},
		"one has failed while another is at work":     {[]hibernate.State{running, failed}, failed},
		"one has failed, and one was given up for it": {[]hibernate.State{aborted, asleep, failed}, failed},
		"one was given up":                            {[]hibernate.State{aborted, asleep}, aborted},
		"one was taken out of the plan":               {[]hibernate.State{asleep, skipped}, asleep},
		"all were taken out of the plan":              {[]hibernate.State{skipped}, skipped},
	} {
		var list []hibernate.TargetStatus
		for _, s := range c.states {
			list = append(list, hibernate.TargetStatus{State: s})
		}
		if got := transition.Overall(list); got != c.want {
			t.Errorf("%s: it is %q, want %q", name, got, c.want)
		}
	}
}

func TestHowFarTargetsHaveCome(t *testing.T) {
	target := func(op hibernate.Operation, s hibernate.State) hibernate.TargetStatus {
		return hibernate.TargetStatus{Operation: op, State: s}
	}
	for name, c := range map[string]struct {
		list []hibernate.TargetStatus
		want string
	}{
		"no target was ever asked":   {nil, ""},
		"one of three sleeps":        {[]hibernate.TargetStatus{target(hibernate.Shutdown, hibernate.Asleep), target(hibernate.Shutdown, hibernate.Running), target(hibernate.Shutdown, hibernate.Pending)}, `{"operation":"shutdown","done":1,"total":3,"percent":33}`},
		"one of two is awake":        {[]hibernate.TargetStatus{target(hibernate.Wake, hibernate.Awake), target(hibernate.Wake, hibernate.Running)}, `{"operation":"wake","done":1,"total":2,"percent":50}`},
		"all are awake":              {[]hibernate.TargetStatus{target(hibernate.Wake, hibernate.Awake)}, `{"operation":"wake","done":1,"total":1,"percent":100}`},
		"one was not asked to sleep": {[]hibernate.TargetStatus{target(hibernate.Wake, hibernate.Awake), target(hibernate.Shutdown, hibernate.Asleep)}, `{"operation":"shutdown","done":1,"total":2,"percent":50}`},
		"one was taken out":          {[]hibernate.TargetStatus{target(hibernate.Shutdown, hibernate.Skipped), target(hibernate.Wake, hibernate.Awake)}, `{"operation":"wake","done":1,"total":1,"percent":100}`},
		"an older agent wrote them":  {[]hibernate.TargetStatus{target("", hibernate.Asleep), target("", hibernate.Asleep)}, `{"operation":"shutdown","done":2,"total":2,"percent":100}`},
	} {
		if got := transition.ProgressOf(c.list).String(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestSinceWhenATargetIsAsItIs(t *testing.T) {
	at := func(minute int) *time.Time {
		return new(time.Date(2026, 3, 2, 20, minute, 0, 0, time.UTC))
	}
	of := func(state hibernate.State, started, finished, since *time.Time) hibernate.TargetStatus {
		return hibernate.TargetStatus{Target: "apps", State: state, StartedAt: started, FinishedAt: finished, LastTransition: since}
	}
	for name, c := range map[string]struct {
		was  []hibernate.TargetStatus
		is   hibernate.TargetStatus
		want *time.Time
	}{
		"it is seen for the first time":            {nil, of(hibernate.Pending, nil, nil, nil), at(30)},
		"it has begun":                             {[]hibernate.TargetStatus{of(hibernate.Pending, nil, nil, at(1))}, of(hibernate.Running, at(5), nil, nil), at(5)},
		"it is tried again":                        {[]hibernate.TargetStatus{of(hibernate.Running, at(5), nil, at(5))}, of(hibernate.Running, at(9), nil, nil), at(5)},
		"it sleeps":                                {[]hibernate.TargetStatus{of(hibernate.Running, at(5), nil, at(5))}, of(hibernate.Asleep, at(5), at(7), nil), at(7)},
		"it still sleeps":                          {[]hibernate.TargetStatus{of(hibernate.Asleep, at(5), at(7), at(7))}, of(hibernate.Asleep, at(5), at(7), nil), at(7)},
		"it is to wake":                            {[]hibernate.TargetStatus{of(hibernate.Asleep, at(5), at(7), at(7))}, of(hibernate.Pending, nil, nil, nil), at(30)},
		"what failed is tried again":               {[]hibernate.TargetStatus{of(hibernate.Failed, at(5), at(7), at(7))}, of(hibernate.Running, at(5), at(7), nil), at(5)},
		"it slept before anybody noted since when": {[]hibernate.TargetStatus{of(hibernate.Asleep, at(5), at(7), nil)}, of(hibernate.Asleep, at(5), at(7), nil), at(7)},
		"it waited before anybody noted":           {[]hibernate.TargetStatus{of(hibernate.Pending, nil, nil, nil)}, of(hibernate.Pending, nil, nil, nil), nil},
		"another target":                           {[]hibernate.TargetStatus{{Target: "db", State: hibernate.Pending, LastTransition: at(1)}}, of(hibernate.Pending, nil, nil, nil), at(30)},
	} {
		got := transition.Targets(c.was, []hibernate.TargetStatus{c.is}, *at(30))
		want := c.is
		want.LastTransition = c.want
		if diff := cmp.Diff([]hibernate.TargetStatus{want}, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestSinceWhenAPlanHasItsPhase(t *testing.T) {
	now := time.Date(2026, 3, 2, 21, 0, 0, 0, time.FixedZone("CET", 3600))
	const since = "2026-03-02T06:00:00Z"
	for name, c := range map[string]struct {
		was, is hibernate.Phase
		since   string
		want    string
	}{
		"it is seen for the first time":       {"", hibernate.Active, "", "2026-03-02T20:00:00Z"},
		"it has another phase":                {hibernate.Active, hibernate.Hibernating, since, "2026-03-02T20:00:00Z"},
		"it goes on":                          {hibernate.Active, hibernate.Active, since, since},
		"it goes on, and nobody saw it begin": {hibernate.Active, hibernate.Active, "", ""},
	} {
		if got := transition.Plan(c.was, c.is, c.since, now); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
