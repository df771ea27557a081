package drain_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

func replica(name, node string, changes ...func(*drain.Pod)) drain.Pod {
	return web(append([]func(*drain.Pod){func(p *drain.Pod) {
		p.UID, p.Namespace, p.Name, p.Node, p.Ready, p.Created = "u-"+name, "maint-system", name, node, true, now().Add(-time.Hour)
	}}, changes...)...)
}

func starts(p *drain.Pod)     { p.Ready, p.Created = false, now().Add(-10*time.Second) }
func isDeleting(p *drain.Pod) { p.Deleting, p.DeleteBy = true, now().Add(time.Minute) }

func TestTheAgentsLastReplicaLeavesLastOrNotAtAll(t *testing.T) {
	const own = "maint-system/a"
	for name, c := range map[string]struct {
		own      string
		replicas []drain.Pod
		pod      string
		want     drain.PodAction
		why      string
	}{
		"alone":                         {own, []drain.Pod{replica("a", "n")}, own, drain.Skip, "no other replica of it is Ready on another node"},
		"another is Ready elsewhere":    {own, []drain.Pod{replica("a", "n"), replica("b", "m")}, own, drain.Evict, "leaves last"},
		"another starts elsewhere":      {own, []drain.Pod{replica("a", "n"), replica("b", "m", starts)}, own, drain.Await, "once another replica of it is Ready"},
		"another is about to be placed": {own, []drain.Pod{replica("a", "n"), replica("b", "", starts)}, own, drain.Await, "once another replica of it is Ready"},
		"another finds no node":         {own, []drain.Pod{replica("a", "n"), replica("b", "", starts, func(p *drain.Pod) { p.Unschedulable = true })}, own, drain.Skip, "stays"},
		"another does not start":        {own, []drain.Pod{replica("a", "n"), replica("b", "m", starts, func(p *drain.Pod) { p.Trouble = "CrashLoopBackOff" })}, own, drain.Skip, "stays"},
		"another is not Ready for long": {own, []drain.Pod{replica("a", "n"), replica("b", "m", func(p *drain.Pod) { p.Ready = false })}, own, drain.Skip, "stays"},
		"another goes, elsewhere":       {own, []drain.Pod{replica("a", "n"), replica("b", "m", isDeleting)}, own, drain.Skip, "stays"},
		"another goes, from here":       {own, []drain.Pod{replica("a", "n"), replica("b", "n", isDeleting)}, own, drain.Await, "once another"},
		"both are here":                 {own, []drain.Pod{replica("b", "n"), replica("a", "n")}, own, drain.Await, "once another"},
		"nobody knows which is its own": {"", []drain.Pod{replica("c", "n", starts), replica("b", "n")}, "maint-system/b", drain.Await, "once another"},
		"its own is elsewhere":          {own, []drain.Pod{replica("a", "m"), replica("b", "n")}, "maint-system/b", drain.Evict, "leaves last"},
	} {
		t.Run(name, func(t *testing.T) {
			a := drain.AgentOn("n", c.own, c.replicas, now())
			if a.Pod != c.pod {
				t.Fatalf("the last of them is %q, not %q", a.Pod, c.pod)
			}
			last := c.replicas[slices.IndexFunc(c.replicas, func(p drain.Pod) bool { return p.String() == a.Pod })]
			v := drain.NewJudge(drain.Options{}, daemonSets).WithAgent(a).Of(last)
			if v.Do != c.want || !strings.Contains(v.Why, c.why) {
				t.Errorf("%+v, want %s: %s", v, c.want, c.why)
			}
		})
	}
}

func TestTheAgentsPodWaitsForAllOthersAlsoPastTheTime(t *testing.T) {
	pods := []drain.Pod{replica("a", "n"), web(named("b"), func(p *drain.Pod) { p.UID, p.Order = "u-b", 7 })}
	for name, c := range map[string]struct {
		elsewhere drain.OtherReplica
		left      []drain.Pod
		evict     string
		done      bool
	}{
		"others first":            {drain.ReadyElsewhere, pods, "shop/b", false},
		"then itself":             {drain.ReadyElsewhere, pods[:1], "maint-system/a", false},
		"not before there is one": {drain.ComesElsewhere, pods[:1], "", false},
		"and not at all":          {drain.NoneElsewhere, pods[:1], "", true},
	} {
		t.Run(name, func(t *testing.T) {
			judge := drain.NewJudge(drain.Options{}, daemonSets).WithAgent(drain.Agent{Pod: "maint-system/a", Elsewhere: c.elsewhere})
			v := drain.View{Now: now(), Since: now(), Judged: judge.All(c.left), Slots: 10}
			got := ""
			d := drain.Decide(v)
			for _, p := range d.Requests.Evict {
				got += p.String()
			}
			if got != c.evict || d.Done != c.done {
				t.Errorf("evicts %q and is done %t: %+v", got, d.Done, d.Pods)
			}
			v.Options.OnTimeout, v.Now = drain.TimeoutForce, now().Add(time.Hour)
			for _, p := range drain.Decide(v).Requests.Delete {
				if p.String() == "maint-system/a" && c.elsewhere != drain.ReadyElsewhere {
					t.Error("past its time the agent deletes itself")
				}
			}
		})
	}
}
