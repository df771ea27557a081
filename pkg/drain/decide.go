package drain

import (
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// Guesses, each long beside what it waits for and short beside a drain.
const (
	// recheck is how long a budget that said no is believed without a word from
	// its controller. Its status moves whenever it lets somebody go.
	recheck = time.Minute
	// acceptedFor is how long after an accepted eviction the pod must be seen being
	// deleted, before it is asked for again.
	acceptedFor = 30 * time.Second
	// unneededFor is how long it is believed that a pod needs no replacement: a
	// Deployment whose pod is held up otherwise may be scaled down meanwhile.
	unneededFor = 2 * time.Second
	// maxReturns is how often the pods of one owner may come back to the node.
	maxReturns = 2
)

// Answer is what became of the last request for a pod.
type Answer int

// The answers.
const (
	NotAsked Answer = iota
	InFlight
	Accepted
	OverBudget // 429 with the cause DisruptionBudget
	Failed     // anything else, also no answer at all
)

// Asked is what a drain remembers of a pod.
type Asked struct {
	Answer    Answer
	At        time.Time // of the answer, or of the request while none is there
	Version   uint64    // OverBudget: of the budget as we knew it
	NotBefore time.Time // OverBudget, Failed: no other request before it
	Why       string    // Failed: what was said
	Unclear   bool      // Failed: it may have been accepted nevertheless
	Deleted   bool      // it was a deletion, past the budget
	Held      time.Time // since when a budget holds it; zero: none did
}

// Replacement is how far a surge for a pod has come.
type Replacement struct {
	Ready      bool      // the pod may be evicted
	ReadyAt    time.Time // since when
	Unneeded   time.Time // when it was seen that the pod needs none, and may be evicted; zero: it needs one
	Impossible bool
	Behind     bool // it has not begun: another pod of the Deployment comes first, or attempts fail for long
	Why        string
	Remedy     string
}

// block is what a pod without a replacement is to its drain.
func (r Replacement) block(p Pod) Block {
	return Block{Pods: []string{p.String()}, Count: 1, Permanent: r.Impossible, Why: r.Why, Remedy: r.Remedy}
}

// View is all that a drain decides on.
type View struct {
	Now, Since   time.Time
	Options      Options
	Judged       []Judged // pods on the node as they are
	Budgets      []Budget
	Room         map[string]int         // by budget: how many may leave now, by what its status says
	Turns        map[string]int         // by budget: how many of them this drain may ask for now
	Asked        map[string]Asked       // by uid
	Returned     map[string]int         // by uid: how often its like came back before
	Replacements map[string]Replacement // by uid, of those that a surge was asked for
	Slots        int                    // requests that may be sent now
	Unanswered   int                    // requests for pods that are gone, and surges to be undone
	MayDelete    bool                   // pods, past budgets that have counted them already
	Settle       time.Time              // pods that tolerate the cordon have left: not done before it is seen whether they come back
}

// Decision is what to do next, and how every pod stands.
type Decision struct {
	Requests Requests
	Held     []string
	Waits    map[string]int  // by budget: pods that wait for room
	Lines    map[string]bool // by budget: pods wait for a turn, and have room

	Pods    []Progress // that must leave and are there, the stuck first
	Skipped []RemainingPod
	Left    []RemainingPod // that must leave and are there, where Done or Aborted
	Blocks  []Block
	Leaving int // that must leave and are there

	Done    bool
	Aborted bool
	Late    bool
	Moving  bool      // something is on its way
	Wake    time.Time // when to decide again though nothing changed; zero: never
}

// Requests are what is to be asked of the API server now.
type Requests struct {
	Evict  []Pod
	Delete []Pod // past budgets, since time is over
	Finish []Pod // to be deleted: their eviction was cut off, and their budget counts them as gone
	Surge  []Pod // a replacement has to be made first
}

// Deadline is when a drain's time is over; without a limit ok is false.
func Deadline(o Options, since time.Time) (at time.Time, ok bool) {
	limit := o.Timeout.Or(DefaultDrainTimeout)
	return since.Add(limit), limit > 0
}

// Decide says what a drain does next.
func Decide(v View) Decision {
	d := decider{view: v, decision: Decision{Waits: map[string]int{}, Lines: map[string]bool{}}}
	deadline, limited := Deadline(v.Options, v.Since)
	d.over = limited && !v.Now.Before(deadline)
	if limited && !d.over {
		d.wake(deadline)
	}
	d.sort()
	d.limit()
	if !d.decision.Done && !d.decision.Aborted {
		for _, j := range d.leaving {
			d.step(j)
		}
	}
	d.finish()
	return d.decision
}

type decider struct {
	view     View
	decision Decision
	over     bool
	leaving  []Judged
	group    int  // order of those whose turn it is
	hold     bool // nothing leaves while a pod is refused
	stay     []RemainingPod
}

func (d *decider) wake(at time.Time) {
	if at.After(d.view.Now) && (d.decision.Wake.IsZero() || at.Before(d.decision.Wake)) {
		d.decision.Wake = at
	}
}

func (d *decider) onTimeout() OnTimeout {
	if d.view.Options.OnTimeout == "" {
		return TimeoutRetry
	}
	return d.view.Options.OnTimeout
}

// late says that a pod was held longer than it may be.
func (d *decider) late(j Judged) bool {
	limit := d.view.Options.PodTimeout.Or(0)
	held := d.view.Asked[j.UID].Held
	if limit <= 0 || held.IsZero() {
		return false
	}
	d.wake(held.Add(limit))
	return !d.view.Now.Before(held.Add(limit))
}

// sort tells those that must leave from those that stay.
func (d *decider) sort() {
	for _, j := range d.view.Judged {
		returned := d.view.Returned[j.UID]
		switch {
		case j.Do == Skip:
			d.decision.Skipped = append(d.decision.Skipped, RemainingPod{j.Pod.String(), j.Reason()})
		case returned >= maxReturns:
			d.stay = append(d.stay, RemainingPod{j.Pod.String(), fmt.Sprintf("pods of its kind came back to this node %d times: they tolerate the cordon", returned)})
		case d.late(j) && d.onTimeout() == TimeoutSkip:
			d.stay = append(d.stay, RemainingPod{j.Pod.String(), "its budget held it longer than podTimeout"})
		default:
			d.leaving = append(d.leaving, j)
		}
	}
	d.decision.Leaving = len(d.leaving) + len(d.stay)
	d.decision.Blocks = Blocks(d.unreplaced(), d.view.Budgets, d.over, d.view.Now)
	refused, first := false, true
	for _, j := range d.leaving {
		refused = refused || j.Do == Refuse && !j.Deleting
		if j.Do != Refuse && (first || j.Verdict.Order < d.group) {
			d.group, first = j.Verdict.Order, false
		}
	}
	d.hold = refused && d.onTimeout() != TimeoutSkip
}

// limit ends the drain where its time, or a pod's, says so.
func (d *decider) limit() {
	late := slices.ContainsFunc(d.leaving, d.late)
	switch d.onTimeout() {
	case TimeoutRetry:
		d.decision.Late = d.over && len(d.leaving) > 0
	case TimeoutAbort:
		d.decision.Aborted = len(d.leaving) > 0 && (d.over || late)
	case TimeoutSkip:
		d.decision.Done = d.over
	case TimeoutForce: // each pod by itself; none, where one is refused
		d.decision.Late = d.over && d.hold
	}
}

// finish says whether that was all, and what is left.
func (d *decider) finish() {
	waits := slices.ContainsFunc(d.leaving, func(j Judged) bool { return j.Do != Refuse || d.hold || j.Deleting })
	if d.view.Now.Before(d.view.Settle) {
		d.wake(d.view.Settle)
		waits, d.decision.Moving = true, true
	}
	d.decision.Done = d.decision.Done || !d.decision.Aborted && !waits && d.view.Unanswered == 0
	if d.decision.Done || d.decision.Aborted {
		d.decision.Left = d.stay
		for _, j := range d.leaving {
			d.decision.Left = append(d.decision.Left, RemainingPod{j.Pod.String(), d.whyLeft(j)})
		}
		d.decision.Wake = time.Time{}
	}
	for _, s := range d.stay {
		d.decision.Pods = append(d.decision.Pods, Progress{s.Pod, Staying, s.Why})
	}
	rank := []State{Refused, Waiting, Staying, Surging, Queued, Evicting, Terminating}
	slices.SortStableFunc(d.decision.Pods, func(a, b Progress) int { return slices.Index(rank, a.State) - slices.Index(rank, b.State) })
	d.decision.Skipped, d.decision.Left = stays(d.decision.Skipped), stays(d.decision.Left)
}

func (d *decider) whyLeft(j Judged) string {
	for _, b := range d.decision.Blocks {
		if slices.Contains(b.Pods, j.Pod.String()) {
			return b.Why
		}
	}
	switch {
	case j.Do == Refuse || j.Do == Await:
		return j.Reason()
	case j.Deleting:
		return "was still shutting down when time was over"
	case d.view.Asked[j.UID].Why != "":
		return d.view.Asked[j.UID].Why
	}
	return "was still there when time was over"
}

func (d *decider) say(j Judged, s State, format string, args ...any) {
	d.decision.Pods = append(d.decision.Pods, Progress{j.Pod.String(), s, document.Cut(fmt.Sprintf(format, args...), 300)})
	d.decision.Moving = d.decision.Moving || s == Queued || s == Surging || s == Evicting || s == Terminating
}

// step is one pod's turn.
func (d *decider) step(j Judged) {
	asked := d.view.Asked[j.UID]
	force := d.onTimeout() == TimeoutForce && (d.over || d.late(j))
	switch {
	case j.Deleting:
		d.wake(j.DeleteBy.Add(terminatingFor + time.Second))
		d.say(j, Terminating, "")
	case j.Do == Refuse:
		d.say(j, Refused, "%s", j.Reason())
	case d.hold:
		d.say(j, Waiting, "nothing is evicted while other pods are refused")
	case asked.Answer == InFlight:
		d.say(j, Evicting, "")
	case asked.Answer == Accepted && d.view.Now.Before(asked.At.Add(acceptedFor)):
		d.wake(asked.At.Add(acceptedFor))
		d.say(j, Evicting, "")
	case j.Own && (j.Do == Await || j.Verdict.Order > d.group):
		d.say(j, Waiting, "%s", j.Why)
	case d.view.Now.Before(asked.NotBefore) && (asked.Answer == Failed || force && asked.Deleted):
		d.wake(asked.NotBefore)
		d.say(j, Waiting, "%s", asked.Why)
	case force:
		d.take(j, &d.decision.Requests.Delete)
	case j.Verdict.Order > d.group:
		d.say(j, Waiting, "for the pods of order %d", d.group)
	case j.Do == Await:
		d.say(j, Waiting, "until it has completed (%s)", j.Why)
	case j.Surge && !d.replaced(j):
		d.surge(j)
	default:
		d.ask(j, asked)
	}
}

// replaced says whether a pod has a replacement, or needs none as its budgets stand now.
func (d *decider) replaced(j Judged) bool {
	r := d.view.Replacements[j.UID]
	return r.Ready || !r.Unneeded.IsZero() && !NeedsReplacement(j.Pod, d.view.Budgets)
}

// unreplaced are the pods that leave; one whose replacement is there waits for
// its budget like any other.
func (d *decider) unreplaced() []Judged {
	out := slices.Clone(d.leaving)
	for i, j := range out {
		out[i].Surge = j.Surge && !d.replaced(j)
	}
	return out
}

// surge waits for a replacement, or asks for one.
func (d *decider) surge(j Judged) {
	r, begun := d.view.Replacements[j.UID]
	asks := !begun || !r.Unneeded.IsZero()
	first := ""
	if asks {
		first = d.makesRoom(j.Pod)
	}
	switch {
	case first != "":
		d.say(j, Surging, "after pod %s, whose replacement makes room in its budget", first)
	case asks:
		d.decision.Requests.Surge = append(d.decision.Requests.Surge, j.Pod)
		d.say(j, Surging, "")
	case r.Impossible || r.Behind:
		d.decision.Blocks = append(d.decision.Blocks, r.block(j.Pod))
		d.say(j, Waiting, "%s", r.Why)
	default:
		d.say(j, Surging, "%s", r.Why)
	}
}

// ask has a pod evicted, once its budget has room.
func (d *decider) ask(j Judged, asked Asked) {
	over := Of(j.Pod, d.view.Budgets)
	if len(over) > 1 {
		d.held(j, "%d budgets cover it", len(over))
		return
	}
	if len(over) == 0 || NeedOf(j.Pod, over[0]) == NeedNothing {
		if asked.Answer == OverBudget && d.view.Now.Before(asked.NotBefore) {
			d.wake(asked.NotBefore)
			d.held(j, "its budget was just changing")
			return
		}
		d.evict(j)
		return
	}
	b := over[0]
	cutOff, again := b.cutOff(j.Pod, d.view.Now)
	d.wake(again)
	refused := asked.Answer == OverBudget && asked.Version == b.Version && d.view.Now.Before(asked.At.Add(recheck))
	if refused {
		d.wake(asked.At.Add(recheck))
	}
	switch {
	case cutOff && d.view.MayDelete:
		d.take(j, &d.decision.Requests.Finish)
	case NeedOf(j.Pod, b) == NeedSync:
		d.held(j, "for its budget %s to be computed", b.Key())
	case asked.Answer == Failed && asked.Unclear: // what it may have taken is still counted as taken
		d.evict(j)
	case refused || d.view.Room[b.Key()] <= 0:
		d.decision.Waits[b.Key()]++
		d.held(j, "for its budget %s", b.Key())
	case d.view.Turns[b.Key()] <= 0:
		d.decision.Lines[b.Key()] = true
		d.view.Room[b.Key()]--
		d.say(j, Queued, "")
	case d.evict(j):
		d.view.Turns[b.Key()]--
		d.view.Room[b.Key()]--
	}
}

func (d *decider) held(j Judged, format string, args ...any) {
	d.decision.Held = append(d.decision.Held, j.UID)
	if limit := d.view.Options.PodTimeout.Or(0); limit > 0 && d.view.Asked[j.UID].Held.IsZero() {
		d.wake(d.view.Now.Add(limit))
	}
	d.say(j, Waiting, format, args...)
}

// evict requests an eviction. That a pod needs no replacement must have been seen
// shortly before.
func (d *decider) evict(j Judged) bool {
	r := d.view.Replacements[j.UID]
	if d.view.Slots > 0 && j.Surge && !r.Ready && !d.view.Now.Before(r.Unneeded.Add(unneededFor)) {
		d.surge(j)
		return false
	}
	return d.take(j, &d.decision.Requests.Evict)
}

// take gives a pod one of the free requests, if there is one.
func (d *decider) take(j Judged, list *[]Pod) bool {
	if d.view.Slots <= 0 {
		d.say(j, Queued, "")
		return false
	}
	d.view.Slots--
	*list = append(*list, j.Pod)
	d.say(j, Evicting, "")
	return true
}
