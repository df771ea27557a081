package aws

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/sleepertest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// groupCycle is a night of a plan with a target of type asg.
type groupCycle struct {
	world    sleepertest.Backend
	home     *agenttest.Cluster
	strategy string
	death    *death
}

func newGroupCycle(t *testing.T, strategy string, at int, lost bool) groupCycle {
	t.Helper()
	build := newGroups
	if strategy == hibernate.StopInstances {
		build = newKept
	}
	c := groupCycle{build(t), agenttest.New(t), strategy, newDeath(t, at, lost)}
	documents(c.home, fmt.Sprintf(`
  - name: web
    type: asg
    connectorRef: {kind: CloudProvider, name: aws}
    parameters: {selector: {tags: {env: stg, team: "*"}}, strategy: %s}
`, strategy))
	return c
}

// dies has an agent begin that dies at its call, and gives what ends whichever lives then.
func (c groupCycle) dies(t *testing.T) (end func()) {
	t.Helper()
	heir, ready := make(chan *agent, 1), make(chan struct{})
	var victim *agent
	c.death.ends = func() {
		go func() {
			<-ready
			victim.stop()
			conn, _ := c.home.Connect()
			heir <- begins(t, conn, endpoint)
		}()
	}
	conn, err := client.Connect(client.Config{
		Rest: &rest.Config{Host: "http://cluster.test", Transport: c.death.writes(c.home)}, Version: "test", Lease: 15 * time.Second, Now: time.Now, OnAnswer: func(string, string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	victim = begins(t, conn, c.death.URL)
	close(ready)
	return func() {
		if c.death.asked() == "" {
			victim.stop()
			return
		}
		(<-heir).stop()
	}
}

// recorded is what restore data says that the groups were.
func (c groupCycle) recorded(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range c.home.Names("configmaps") {
		namespace, name, _ := strings.Cut(name, "/")
		cm := c.home.ConfigMap(namespace, name)
		if cm.Labels[annotations.LabelKind] != annotations.KindRestore {
			continue
		}
		var r hibernate.Record
		if err := json.Unmarshal([]byte(cm.Data[annotations.DataRestore]), &r); err != nil {
			t.Fatal(err)
		}
		for _, res := range r.Resources {
			out[res.ID] = string(res.Before)
		}
	}
	return out
}

// through has the plan sleep and wake while its agent dies, and says where that was.
func (c groupCycle) through(t *testing.T, remembered map[string]string) (where string) {
	t.Helper()
	before := c.world.State(t)
	defer c.dies(t)()
	holds(t, c.home, func() {}, "asleep", "Hibernated")
	for name, is := range c.world.State(t) {
		if c.world.Outside(name) != (is == before[name]) || strings.Contains(is, "running") && !c.world.Outside(name) {
			t.Errorf("killed at %s: %s is %s", c.death.asked(), name, is)
		}
	}
	if diff := cmp.Diff(remembered, c.recorded(t)); diff != "" {
		t.Errorf("killed at %s: it is remembered as (-want +is):\n%s", c.death.asked(), diff)
	}
	holds(t, c.home, func() {}, "awake", "Active")
	if diff := cmp.Diff(before, c.world.State(t)); diff != "" {
		t.Errorf("killed at call %d, %s, its reply lost %t (-was +is):\n%s", c.death.at, c.death.asked(), c.death.lost, diff)
	}
	return c.death.asked()
}

// Wherever an agent dies at a call of AWS or a write in the cluster, the next one has all
// groups sleep, remembers them as they were before the first request, and brings them back so.
func TestThePlanOfWhoeverDiesHasAutoScalingGroupsSleepAndWake(t *testing.T) {
	const all, most = `"AlarmNotification","HealthCheck","InstanceRefresh","Launch","ReplaceUnhealthy","ScheduledActions"`, `"AZRebalance",`
	for strategy, remembered := range map[string]map[string]string{
		hibernate.ScaleToZero: {"stg-web": `{"min":1,"desired":2,"max":4}`, "stg-workers": `{"min":0,"desired":3,"max":3}`},
		hibernate.StopInstances: {
			"stg-web":     `{"min":1,"desired":2,"max":4,"processes":[` + most + all + `]}`,
			"stg-workers": `{"min":0,"desired":3,"max":3,"processes":[` + most + all + `,"Terminate"]}`,
		},
	} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, its reply lost %t", strategy, lost), func(t *testing.T) {
				places := map[string]int{}
				for at := 1; ; at += strideOfDeaths(7) {
					where := newGroupCycle(t, strategy, at, lost).through(t, remembered)
					if where == "" { // the cycle ended before its call of that number
						break
					}
					places[where]++
				}
				t.Log("killed at ", slices.Sorted(maps.Keys(places)))
			})
		}
	}
}
