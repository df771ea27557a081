package hibernation

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// runsOn has deployments stand for groups of machines.
func (w *world) runsOn(deployment, machines string) {
	w.api.Edit("deployments", shop, deployment, func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{"machines": machines})
	})
}

func TestWhatTheAgentRunsOnIsNotPutToSleep(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.runsOn("orders", "i-1 i-2")
		w.runsOn("web", "i-3")
		w.own.Store(ownMachines{ids: []string{"aws:///eu-central-1a/i-2"}})
		w.until("01:30")
		w.has("orders 3, web 0")
		const said = "orders: the agent itself runs on i-2: nobody would wake what sleeps"
		if got := annotations.ReadTargets(w.said(annotations.StatusTargets)); len(got) != 1 || got[0].Message != said {
			t.Errorf("targets are %+v", got)
		}
		w.own.Store(ownMachines{ids: []string{"aws:///eu-central-1a/i-9"}})
		w.after(2 * time.Minute)
		w.has("orders 0, web 0")
		w.until("03:01")
		w.has("orders 3, web 2")
	})
}

func TestWhereItIsNotKnownWhatTheAgentRunsOnNothingWithMachinesSleeps(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.runsOn("orders", "i-1")
		w.own.Store(ownMachines{err: errors.New("the API server is away")})
		w.until("01:01")
		w.has("orders 3, web 2")
		w.own.Store(ownMachines{})
		w.until("01:30")
		w.has("orders 0, web 0")
		w.until("03:01")
		w.has("orders 3, web 2")
	})
}

func TestWhichMachineTwoListsShare(t *testing.T) {
	for name, c := range map[string]struct {
		own, machines []string
		want          string
	}{
		"by its id alone":       {[]string{"aws:///eu-central-1a/i-2"}, []string{"i-1", "i-2"}, "i-2"},
		"by its provider id":    {[]string{"aws:///eu-central-1a/i-2"}, []string{"aws:///eu-central-1a/i-2"}, "i-2"},
		"an id in another zone": {[]string{"aws:///eu-central-1a/i-2"}, []string{"aws:///eu-central-1b/i-2"}, ""},
		"the end of an id":      {[]string{"aws:///eu-central-1a/i-12"}, []string{"i-2"}, ""},
		"none is known":         {nil, []string{"i-2"}, ""},
		"there are none":        {[]string{"aws:///eu-central-1a/i-2"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got, shared := shares(c.own, c.machines); got != c.want || shared != (c.want != "") {
				t.Errorf("they share %q, %t", got, shared)
			}
		})
	}
}
