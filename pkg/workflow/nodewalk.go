package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// NodeState is what a rollout needs to know of a node before it takes it.
type NodeState struct {
	Granted     bool          // the limits over all maintenance of nodes let it be taken now
	Why         string        // why not
	Unavailable bool          // it takes no pods now: unschedulable or not ready
	Abandoned   bool          // an earlier run of the plan cordoned it and did not open it again
	Gone        bool          // there is no such node any more
	Passed      *intent.Actor // of a granted one: who lets the run have it although its gate is closed
}

// NodeDemand are the nodes that one for-each-node of a run would take next, in its
// order. It begins no more than Most of them.
type NodeDemand struct {
	Path  string
	Nodes []string
	Most  int
	Drain *drain.Options // with which the work on each begins; nil: with something else, or not known yet
	Needs time.Duration  // about the time for one node; 0: not known
}

// counts counts the nodes of a rollout by how they stand.
type counts struct {
	total, running, soaking, done, failed, pending int
	cannot                                         int       // not at work and without room for pods
	stuck                                          int       // of them, failed here
	abandoned                                      int       // of them, left by an earlier run and not begun in this one
	real                                           int       // succeeded, and had something to do
	soaked                                         time.Time // when the next soak is over
}

// notePassed notes who let the run have a node whose gate is closed, before anything is done there.
func (a *advance) notePassed() {
	if a.j.Passed != nil || a.j.Phase.Ended() {
		return
	}
	first := ""
	for path, nodes := range a.sig.Nodes {
		for name, state := range nodes {
			if at := path + "/" + name; state.Passed != nil && (first == "" || at < first) {
				first, a.j.Passed = at, state.Passed
			}
		}
	}
}

func (a *advance) countsOf(path string, list []run.Item, soak time.Duration) counts {
	c := counts{total: len(list)}
	for _, item := range list {
		state := a.sig.Nodes[path][item.Name]
		switch item.Phase {
		case run.StepRunning:
			c.running++
			continue
		case "":
			c.pending++
			if state.Unavailable && state.Abandoned {
				c.abandoned++
			}
		case run.StepFailed:
			c.failed++
			if state.Unavailable {
				c.stuck++
			}
		case run.StepSucceeded:
			c.done++
			if item.At == nil {
				break // it had nothing to do
			}
			c.real++
			if over := item.At.Add(soak); a.now.Before(over) {
				c.soaking++
				c.soaked = schedule.Earliest(c.soaked, over)
				continue
			}
		}
		if state.Unavailable {
			c.cannot++
		}
	}
	return c
}

// rollout moves the nodes at work, and begins as many more as its own limits and
// those over all maintenance let it.
func (a *advance) rollout(s scope, step plan.Step, path string) {
	list := a.items(a.record(path))
	a.nodesAtWork(s, step, path, list)
	if a.interrupted(s) {
		return
	}
	var props plan.ForEachNodeProperties
	if faults := document.DecodeValue(step.Own(), "", nil, true, &props); len(faults) > 0 { // the validator refused it
		a.failed(s, step, path, faults.Error())
		return
	}
	c := a.countsOf(path, list, props.Soak.Or(0))
	a.record(path).Window = nil
	if stop := a.stopsRollout(props, c); stop || c.pending == 0 {
		if c.running == 0 {
			a.endLoop(s, step, path)
		}
		return
	}
	if a.sig.Hold != nil && a.run.Spec.OnWindowClose == plan.CloseAbort && c.running > 0 {
		a.says(path, c, "nodes at work finish, then the run ends: "+a.heldBecause())
		return
	}
	if a.heldItem(s, step) {
		a.says(path, c, "the rest waits: "+a.heldBecause())
		a.record(path).Window = a.window()
		return
	}
	if most := a.mayBegin(props, path, c); most > 0 {
		a.beginNodes(s, step, path, list, c, most, props.Estimate.Or(0))
	}
}

func (a *advance) heldBecause() string {
	if by := cmp.Or(a.found.shut, a.sig.Hold); by != nil {
		return by.Message()
	}
	return a.sig.Held
}

// window is what keeps other nodes of a rollout from their turn, and when that ends, for whoever looks
// at the nodes.
func (a *advance) window() *run.WindowWait {
	by := cmp.Or(a.found.shut, a.sig.Hold)
	if by == nil {
		return &run.WindowWait{Why: a.sig.Held}
	}
	w := &run.WindowWait{Why: by.Reason}
	if by.Opens != nil {
		w.Opens = new(by.Opens.UTC())
	}
	return w
}

// nodesAtWork moves the steps of the nodes at work.
func (a *advance) nodesAtWork(s scope, step plan.Step, path string, list []run.Item) {
	through := map[string]*run.Item{}
	for i := range list {
		if list[i].Phase == run.StepRunning && a.item(s, step, path, &list[i]) {
			list[i].At = new(a.now.UTC())
			through[list[i].Segment()] = &list[i]
		}
	}
	a.shrink(path, through)
}

// stopsRollout says that no other node is begun, because of those that failed.
func (a *advance) stopsRollout(props plan.ForEachNodeProperties, c counts) bool {
	switch {
	case c.failed == 0:
		return false
	case props.OnError != "continue" || props.MaxFailures > 0 && c.failed > props.MaxFailures:
		return true
	}
	// Failed nodes that stay cordoned count as unavailable: when they alone use up the
	// limit, nothing of this run will ever free a place.
	return c.running+c.soaking == 0 && c.stuck >= mostUnavailable(props, c.total)
}

// mostUnavailable is how many of the selected nodes may be away at once.
func mostUnavailable(props plan.ForEachNodeProperties, total int) int {
	if props.MaxUnavailable == nil {
		return 1
	}
	share, err := document.ParseShare(props.MaxUnavailable)
	if err != nil { // the validator refused it
		return 1
	}
	return max(1, share.Down(total))
}

// mayBegin is how many more nodes the rollout's own limits let begin; with none it
// notes what it waits for. One that is away already costs nothing of the limit, but
// takes a place among those at work all the same.
func (a *advance) mayBegin(props plan.ForEachNodeProperties, path string, c counts) int {
	limit := mostUnavailable(props, c.total)
	most := limit - c.running - c.soaking
	if canary := 1; c.pending > 0 {
		if props.Canary != nil {
			canary = *props.Canary
		}
		if c.real-c.soaking < canary { // a node that soaks has not succeeded yet
			most = min(most, canary-c.real-c.running)
		}
	}
	if most <= 0 {
		a.found.clock = schedule.Earliest(a.found.clock, c.soaked)
		if c.soaking > 0 && c.running == 0 {
			a.says(path, c, fmt.Sprintf("soaks until %s", c.soaked.UTC().Format(time.RFC3339)))
		}
		return 0
	}
	if need := props.Estimate.Or(0); need > 0 && !a.sig.ClosesAt.IsZero() && a.now.Add(need).After(a.sig.ClosesAt) {
		a.waits(path, a.sig.ClosesAt)
		a.says(path, c, fmt.Sprintf(NextWouldTake+"%s, and the window closes at %s", need, a.sig.ClosesAt.UTC().Format(time.RFC3339)))
		return 0
	}
	return most
}

// NextWouldTake begins what a rollout says whose next node does not fit in what is left of the window.
const NextWouldTake = "the next would take about "

// room is how many more nodes may become unavailable. Those that an earlier run
// left cordoned count, but for the last place: else one node whose steps always
// fail would keep all others from their turn for ever.
func (c counts) room(limit int) int {
	return limit - c.running - c.soaking - (c.cannot - c.abandoned) - min(c.abandoned, limit-1)
}

// beginNodes begins those of the nodes that wait which are granted. Those that are
// away already fit where the limit is used up.
func (a *advance) beginNodes(s scope, step plan.Step, path string, list []run.Item, c counts, most int, needs time.Duration) {
	room := c.room(mostUnavailableOf(step, c.total))
	var wanted []string
	why := ""
	for i := range list {
		item := &list[i]
		if item.Phase != "" {
			continue
		}
		state := a.sig.Nodes[path][item.Name]
		switch {
		case state.Gone:
			item.Phase, item.Message = run.StepSucceeded, "the node is gone"
			a.found.moved = true
		case !state.Unavailable && room <= 0:
			why = cmp.Or(why, "enough of its nodes are away already: "+a.away(path, list, step))
		case state.Granted && most > 0:
			a.beginItem(s, step, path, item)
			a.record(path).Message = ""
			if most--; !state.Unavailable {
				room--
			}
		case most > 0:
			wanted = append(wanted, item.Name)
			if state.Why != "" {
				why = cmp.Or(why, item.Name+" "+state.Why)
			}
		}
	}
	if len(wanted) > 0 {
		a.found.wants = append(a.found.wants, NodeDemand{Path: path, Nodes: wanted, Most: most, Drain: a.firstDrain(step), Needs: needs})
	}
	if why != "" && !a.found.moved {
		a.says(path, c, run.NodesWait+why)
	}
}

// BlockedByUnavailable says whether a for-each-node begins no other node because those that are away take all its
// places, while none is at work in it or soaks: nothing that the run does frees one.
func BlockedByUnavailable(step plan.Step, rec run.Record, states map[string]NodeState, now time.Time) bool {
	var props plan.ForEachNodeProperties
	if faults := document.DecodeValue(step.Own(), "", nil, true, &props); len(faults) > 0 { // the validator refused it
		return false
	}
	waits := slices.ContainsFunc(rec.Items, func(item run.Item) bool {
		return item.Phase == "" && !states[item.Name].Unavailable && !states[item.Name].Gone
	})
	a := &advance{now: now, sig: Signals{Nodes: map[string]map[string]NodeState{rec.Path: states}}}
	c := a.countsOf(rec.Path, rec.Items, props.Soak.Or(0))
	return waits && c.running+c.soaking == 0 && c.room(mostUnavailable(props, c.total)) <= 0
}

// away names the nodes that use up the limit of a rollout, the first few of them.
func (a *advance) away(path string, list []run.Item, step plan.Step) string {
	props, names, remedy := plan.ForEachNodeProperties{}, []string(nil), ""
	_ = document.DecodeValue(step.Own(), "", nil, true, &props) // the rollout has read it
	for _, item := range list {
		done := item.Phase == run.StepSucceeded && item.At != nil
		switch {
		case item.Phase == run.StepRunning:
			names = append(names, item.Name+" (at work)")
		case done && a.now.Before(item.At.Add(props.Soak.Or(0))):
			names = append(names, item.Name+" (soaks)")
		case !a.sig.Nodes[path][item.Name].Unavailable:
		case item.Phase == run.StepFailed:
			names = append(names, item.Name+" (failed here)")
		case done && a.now.Before(item.At.Add(10*time.Second)): // its uncordon may not be seen yet (a guess)
			names = append(names, item.Name+" (just done here)")
		default:
			names, remedy = append(names, item.Name+" (cordoned or not Ready)"), cmp.Or(remedy, "; 'kubectl uncordon "+intent.Word(item.Name)+"' frees its place, if somebody cordoned it")
		}
	}
	return document.Few(names, 5) + remedy
}

func mostUnavailableOf(step plan.Step, total int) int {
	return mostUnavailable(plan.ForEachNodeProperties{MaxUnavailable: step.Properties["maxUnavailable"]}, total)
}

// nodesLeft says how many nodes a closed gate keeps from their turn.
func (a *advance) nodesLeft() string {
	left := 0
	for _, r := range a.j.Rollouts() {
		left += r.Left
	}
	if left == 0 {
		return ""
	}
	return fmt.Sprintf("; %d nodes are left", left)
}

// says notes what keeps the rest of a rollout from beginning. It is written only
// when it is news.
func (a *advance) says(path string, c counts, why string) {
	a.record(path).Message = document.Cut(strings.TrimSpace(fmt.Sprintf("%d of %d are done, %d left; %s", c.done, c.total, c.pending, why)), document.MaxMessage)
}

// firstDrain is the drain with which the work on a node begins. What stands in its
// way can be seen before the node is taken; behind a step that may move pods itself
// it cannot. Nor does it count where the drain would leave such pods, or be given up in time: else
// its time would never begin.
func (a *advance) firstDrain(step plan.Step) *drain.Options {
	for _, s := range a.tree.Children(step) {
		switch s.Type {
		case plan.TypeCordon, plan.TypeApproval, "notification", "suspend":
			continue
		case plan.TypeDrain:
			var p plan.DrainProperties
			if faults := document.DecodeValue(s.Own(), "", nil, false, &p); len(faults) > 0 || s.If != "" || p.Node != "" || p.Selector != nil || a.run.Request.DryRun {
				return nil
			}
			if limit := p.Timeout.Or(drain.DefaultDrainTimeout); p.OnTimeout == drain.TimeoutAbort && limit > 0 {
				return nil
			}
			return p.ToPreview()
		}
		return nil
	}
	return nil
}
