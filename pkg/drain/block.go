package drain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// unreadyFor is how long a running pod is not Ready until that is no longer a
// start, but a fault that waiting does not mend. A guess: most pods are Ready
// sooner, and what is called permanent too early only says so too early.
const unreadyFor = 2 * time.Minute

// terminatingFor is how long after its grace a pod may be there until somebody
// has to look. A guess: a kubelet that works needs seconds.
const terminatingFor = time.Minute

// longShutdown is how much longer a pod may shut down, after the drain's time is over, until
// that is a block. A guess: databases need minutes.
const longShutdown = time.Hour

// cause is what a block is keyed by: pods of one cause are one block.
type cause struct {
	budgets   string
	permanent bool
	refused   bool
	why       string
	remedy    string
}

// Blocks are what keeps pods on their node: of those that must leave, the ones
// that are refused, that no budget will let go, or that do not end. Late says that
// the drain has begun and its time is over: what it still waits for is no longer
// believed to go by itself.
func Blocks(judged []Judged, budgets []Budget, late bool, now time.Time) []Block {
	pods := map[cause][]string{}
	for _, j := range judged {
		if c, ok := causeOf(j, budgets, late, now); ok {
			pods[c] = append(pods[c], j.Pod.String())
		}
	}
	var out []Block
	for c, names := range pods {
		b := Block{Pods: named(names), Count: len(names), Permanent: c.permanent, Refused: c.refused, Why: c.why, Remedy: c.remedy}
		if c.budgets != "" {
			b.Budgets = strings.Split(c.budgets, ",")
		}
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b Block) int {
		return cmp.Or(strings.Compare(permanence(b), permanence(a)), strings.Compare(a.Pods[0], b.Pods[0]), strings.Compare(a.Why, b.Why))
	})
	return out
}

func permanence(b Block) string { return fmt.Sprint(b.Permanent) }

func causeOf(j Judged, budgets []Budget, late bool, now time.Time) (cause, bool) {
	switch {
	case j.Do == Skip:
		return cause{}, false
	case j.Deleting && now.After(j.DeleteBy.Add(terminatingFor)):
		return cause{permanent: true, why: "it should have ended at " + stamp(j.DeleteBy), remedy: "look whether its node answers, and what finalizers it has"}, true
	case late && j.Deleting && j.DeleteBy.After(now.Add(longShutdown)):
		return cause{permanent: true, why: "the drain's time is over, and it may take until " + stamp(j.DeleteBy) + " to shut down", remedy: "wait, or delete the pod with a shorter grace period"}, true
	case late && j.Do == Await && !j.Deleting && !j.Own:
		return cause{permanent: true, why: "the drain's time is over, and it has not completed (" + j.Why + ")", remedy: "wait until it has completed, or delete the pod"}, true
	case j.Deleting, j.Do == Await:
		return cause{}, false
	case j.Do == Refuse:
		return cause{permanent: true, refused: true, why: j.Reason(), remedy: j.Remedy}, true
	}
	over := Of(j.Pod, budgets)
	if len(over) == 0 || j.Finished() || j.Phase == "Pending" {
		return cause{}, false
	}
	if i := slices.IndexFunc(over, func(b Budget) bool { return b.TooLarge }); i >= 0 {
		return over[i].tooLarge(), true
	}
	if len(over) > 1 {
		keys := make([]string, len(over))
		for i, b := range over {
			keys[i] = b.Key()
		}
		return cause{
			budgets: strings.Join(keys, ","), permanent: true,
			why:    "more than one PodDisruptionBudget covers it, and the API server evicts no such pod",
			remedy: "change a selector so that one budget covers it: " + strings.Join(keys, ", "),
		}, true
	}
	if j.Surge && over[0].Current && over[0].oneMoreHelps() {
		return cause{}, false
	}
	return budgetCause(j.Pod, over[0], now)
}

// tooLarge is why a budget lets no pod of its namespace go whose selector is not read.
func (b Budget) tooLarge() cause {
	return cause{
		budgets: b.Key(), permanent: true,
		why:    fmt.Sprintf("the selector of the budget takes more than %d KiB, and is not read: it may cover any pod of the namespace", maxSelector>>10),
		remedy: "make the selector smaller",
	}
}

// budgetCause is why a budget lets a pod go neither now nor, where it is
// permanent, later.
func budgetCause(p Pod, b Budget, now time.Time) (cause, bool) {
	if NeedOf(p, b) == NeedNothing || b.Current && b.Allowed > 0 {
		return cause{}, false
	}
	c := cause{budgets: b.Key()}
	switch { // first what the specification alone decides: no computation of it changes that
	case b.MaxUnavailable == "0" || b.MaxUnavailable == "0%":
		c.permanent, c.why, c.remedy = true, "maxUnavailable is "+b.MaxUnavailable, "raise maxUnavailable to at least 1"
	case !b.Current && b.MinAvailable == "100%":
		c.permanent, c.why, c.remedy = true, "minAvailable is 100%", "lower it, or write maxUnavailable: 1 instead"
	case !b.Current:
		c.why, c.remedy = "the budget was changed and not computed again yet", "wait; if it lasts, look whether the controller manager runs"
	case b.SyncFailed != "":
		c.why, c.remedy = "the budget cannot be computed: "+b.SyncFailed, "fix what the budget selects"
	case b.ExpectedPods > 0 && b.DesiredHealthy >= b.ExpectedPods:
		c.permanent = true
		c.why = fmt.Sprintf("%s, and there are %d pods", b.written(), b.ExpectedPods)
		c.remedy = "lower it, write maxUnavailable: 1 instead, or run one more replica"
	case !p.Ready && (p.Trouble != "" || !p.NotReady.IsZero() && now.Sub(p.NotReady) >= unreadyFor):
		c.permanent = true
		c.why = strings.TrimSpace(fmt.Sprintf("the pod is not Ready %s", trouble(p))) + fmt.Sprintf(", and %d of %d pods are healthy where %d must be: the policy IfHealthyBudget keeps it", b.CurrentHealthy, b.ExpectedPods, b.DesiredHealthy)
		c.remedy = "fix the pod, or set unhealthyPodEvictionPolicy: AlwaysAllow"
	case b.forgotten(now) != "":
		c.why = fmt.Sprintf("%d of %d pods are healthy, and %d must be: the eviction of %s was cut off, and is counted for two minutes", b.CurrentHealthy, b.ExpectedPods, b.DesiredHealthy, b.forgotten(now))
		c.remedy = "wait: Kubernetes forgets it then"
	default:
		c.why = fmt.Sprintf("%d of %d pods are healthy, and %d must be: a rollout is in progress, or a replica is not Ready", b.CurrentHealthy, b.ExpectedPods, b.DesiredHealthy)
		c.remedy = "wait; if it lasts, look why pods are not Ready"
	}
	return c, true
}

// forgotten is a pod whose eviction the budget counts, and that was not deleted
// since; empty: there is none.
func (b Budget) forgotten(now time.Time) string {
	for _, name := range slices.Sorted(maps.Keys(b.Disrupted)) {
		if now.Sub(b.Disrupted[name]) > cutOffAfter {
			return name
		}
	}
	return ""
}

// oneMoreHelps says that the budget is met as it stands, and would let a pod go
// if there were one more: a number of pods, not a share of them.
func (b Budget) oneMoreHelps() bool {
	return b.MinAvailable != "" && !strings.HasSuffix(b.MinAvailable, "%") && b.CurrentHealthy >= b.DesiredHealthy
}

func trouble(p Pod) string {
	if p.Trouble == "" {
		return ""
	}
	return "(" + p.Trouble + ")"
}

// written is what the budget demands, in its own words.
func (b Budget) written() string {
	if b.MinAvailable != "" {
		return "minAvailable is " + b.MinAvailable
	}
	return "maxUnavailable is " + b.MaxUnavailable
}

// stuck are pods that cannot leave by waiting, of those that should.
func stuck(blocks []Block) bool {
	return slices.ContainsFunc(blocks, func(b Block) bool { return b.Permanent })
}

// Permanent are the blocks that a drain's timeout does not end either: force gets past
// budgets, but deletes no pod that is refused; skip leaves both.
func Permanent(blocks []Block, o Options) []Block {
	var out []Block
	for _, b := range blocks {
		if o.Holds(b.Permanent, b.Refused) {
			out = append(out, b)
		}
	}
	return out
}
