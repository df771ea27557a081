package hibernate_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/functiontest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// recordedSpeeds are the machines of the target fleet that restore data tells of, with what
// they are to wake to.
func (l *lab) recordedSpeeds() string {
	l.Helper()
	r := l.restoreData("nights", "fleet")
	if r == nil {
		return ""
	}
	var out []string
	for _, res := range r.Resources {
		out = append(out, res.ID+" "+string(res.Before))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// killedAt has the agent die when the fleet is asked for an operation the first time: it is
// done, and its answer is lost.
func killedAt(fleet *functiontest.Fleet, operation string) (gone <-chan struct{}) {
	ends := make(chan struct{})
	var once sync.Once
	fleet.Hear(func(asked string) {
		if asked == operation {
			once.Do(func() {
				world.process.Kill()
				close(ends)
			})
		}
	})
	return ends
}

// followed has another agent lead once one is dead, and waits until it has asked again. It
// returns what was recorded when the first one died.
func (l *lab) followed(gone <-chan struct{}, fleet *functiontest.Fleet) (recorded string) {
	l.Helper()
	l.eventually("the agent is killed", func() (bool, string) {
		select {
		case <-gone:
			return true, ""
		default:
			return false, fmt.Sprint(l.annotationsOf("nights"))
		}
	})
	recorded, before := l.recordedSpeeds(), fleet.Told()
	l.must(world.launch())
	l.eventually("the next agent asks again", func() (bool, string) { return fleet.Told() > before, fmt.Sprint(fleet.Told()) })
	fleet.Settle()
	return recorded
}

// What a function puts to sleep wakes as it was, wherever the agent dies: what was asked for
// is asked again by the same key, and what is to be restored was recorded before.
func TestWhatAFunctionPutsToSleepWakesAsItWas(t *testing.T) {
	l := newLab(t)
	l.runner(sleepRights()...)
	fleet := functiontest.NewFleet(t)
	was := fleet.Speeds()
	l.sleeper("nights", strings.Replace(workloads(), "{name: apps, type: workload}", "{name: fleet, type: function, parameters: {endpoint: '"+fleet.Endpoint+"', input: {room: stg}, tls: {insecure: true}}}", 1))

	gone := killedAt(fleet, "shutdown")
	l.annotate("nights", map[string]string{annotations.HoldState: "asleep"})
	recorded := l.followed(gone, fleet)
	l.phaseOf("nights", hibernate.Hibernated, "1 of 1 targets sleep")
	const all = `stg-a {"speed":3}, stg-b {"speed":5}, stg-c {"speed":7}`
	if now := l.recordedSpeeds(); recorded != all || now != all {
		t.Errorf("before the first request %q is recorded, and then %q", recorded, now)
	}
	if diff := cmp.Diff(map[string]int{"stg-a": 0, "stg-b": 0, "stg-c": 0, "off": 0, "prod": 9}, fleet.Speeds()); diff != "" {
		t.Errorf("asleep (-want +got):\n%s", diff)
	}

	gone = killedAt(fleet, "wake")
	l.annotate("nights", map[string]string{annotations.HoldState: "awake"})
	l.followed(gone, fleet)
	l.phaseOf("nights", hibernate.Active, "")
	l.eventually("the restore data has served", func() (bool, string) { return l.restoreData("nights", "fleet") == nil, "" })
	if diff := cmp.Diff(was, fleet.Speeds()); diff != "" {
		t.Errorf("awake (-was +is):\n%s", diff)
	}
	if asked := fmt.Sprint(fleet.Asked()); asked != "[shutdown wake]" || fleet.Changes() != 6 || fleet.Told() < 4 {
		t.Errorf("it was asked %d times for %s, and changed %d machines", fleet.Told(), asked, fleet.Changes())
	}
}
