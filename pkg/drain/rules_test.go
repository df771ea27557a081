package drain_test

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

func TestADrainIncludesWhatAsksForNoMore(t *testing.T) {
	force, emptyDirs, volumes := drain.Options{Force: true}, drain.Options{DeleteEmptyDir: true}, drain.Options{WaitForVolumes: true}
	all := drain.Options{Force: true, DeleteEmptyDir: true, WaitForVolumes: true}
	for name, c := range map[string]struct {
		of, other drain.Options
		want      bool
	}{
		"all include force":                 {all, force, true},
		"all include emptyDirs":             {all, emptyDirs, true},
		"all include volumes":               {all, volumes, true},
		"force includes the plain one":      {force, drain.Options{}, true},
		"the plain one includes no force":   {drain.Options{}, force, false},
		"the plain one keeps emptyDirs":     {drain.Options{}, emptyDirs, false},
		"the plain one awaits no volumes":   {drain.Options{}, volumes, false},
		"force alone keeps emptyDirs":       {force, emptyDirs, false},
		"who awaits volumes uses no force":  {volumes, force, false},
		"force of some pods is none of all": {drain.Options{Force: true, PodSelector: "app=a"}, force, false},
	} {
		if got := c.of.Includes(c.other); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestWhatABudgetShowsOfAnEviction(t *testing.T) {
	for name, c := range map[string]struct {
		budget drain.Budget
		claim  drain.Claim
		want   bool
	}{
		"it names the pod":                  {drain.Budget{Version: 1, Disrupted: map[string]time.Time{"web-1": {}}}, drain.Claim{Pod: "web-1"}, true},
		"it names another":                  {drain.Budget{Version: 9, Disrupted: map[string]time.Time{"web-2": {}}}, drain.Claim{Pod: "web-1"}, false},
		"it was written after the deletion": {drain.Budget{Version: 9}, drain.Claim{Pod: "web-1", Deleted: 8}, true},
		"it is as old as the deletion":      {drain.Budget{Version: 8}, drain.Claim{Pod: "web-1", Deleted: 8}, false},
		"no deletion was seen":              {drain.Budget{Version: 9}, drain.Claim{Pod: "web-1"}, false},
	} {
		if got := c.budget.Shows(c.claim); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestHowManyReplicasAreSaidToStay(t *testing.T) {
	const one = "; the replica that a surge added is not given back yet to shop/web"
	for kept, want := range map[int]string{1: one, 2: one + " and 1 more", 3: one + " and 2 more"} {
		if got := (drain.Outcome{KeptReplicas: []string{"shop/web"}, Kept: kept}).StringOfKept(); got != want {
			t.Errorf("%d: %q", kept, got)
		}
	}
	if got := (drain.Outcome{}).StringOfKept(); got != "" {
		t.Errorf("none: %q", got)
	}
}

func TestADrainThatNobodyHasToLeaveIsNotLate(t *testing.T) {
	since := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	if d := drain.Decide(drain.View{Since: since, Now: since.Add(time.Hour)}); d.Late || !d.Done {
		t.Errorf("%+v", d)
	}
}
