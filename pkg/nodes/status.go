package nodes

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// Phase is how far a request has come.
type Phase string

// The phases of a request, in their order.
const (
	Pending         Phase = "Pending"         // waits for its turn, a window, or a changed value
	Scheduled       Phase = "Scheduled"       // its turn has come; nothing is changed yet
	Cordoning       Phase = "Cordoning"       // the node takes no new pods
	WaitingForPods  Phase = "WaitingForPods"  // what waitFor names has not finished
	Draining        Phase = "Draining"        // pods are leaving
	Ready           Phase = "Ready"           // the node is its requestor's
	RequestorFailed Phase = "RequestorFailed" // its requestor failed; the node is kept out
	Uncordoned      Phase = "Uncordoned"      // it was Ready, and somebody uncordoned the node: pods may come
	Invalid         Phase = "Invalid"         // the value cannot be read; nothing was begun
)

// Holds says whether a request of this phase has the node: it takes a slot, and
// what it had cordoned stays cordoned.
func (p Phase) Holds() bool {
	switch p {
	case Scheduled, Cordoning, WaitingForPods, Draining, Ready, RequestorFailed, Uncordoned:
		return true
	}
	return false
}

// preparing are the phases in which the agent works, not the requestor.
func (p Phase) preparing() bool { return p.Holds() && !p.given() }

// given are the phases in which the node is the requestor's.
func (p Phase) given() bool { return p == Ready || p == RequestorFailed || p == Uncordoned }

// Status is the value of status.request.maint.dev/<requestor>: what the agent says of a request, and all that
// it must remember of it. All instants have whole seconds and are UTC.
type Status struct {
	Phase    Phase      `json:"phase"`
	Reason   string     `json:"reason,omitempty"`   // one sentence for a person
	Since    time.Time  `json:"since"`              // of the phase; of the pass, where a second drain follows a first
	Blocked  *Block     `json:"blocked,omitempty"`  // what stands in the drain's way, before it or during it
	Note     string     `json:"note,omitempty"`     // of the drain that is done: what stays on the node and matters
	Progress *Progress  `json:"progress,omitempty"` // of a drain, or of waitFor
	Node     string     `json:"node,omitempty"`     // uid: an earlier node of the name is another
	Asked    time.Time  `json:"asked"`              // when this request was first seen: its age counts from here
	Started  *time.Time `json:"started,omitempty"`  // when it got the node
	Yielded  *time.Time `json:"yielded,omitempty"`  // since when others have its slot, while its drain is blocked for good
	Drained  string     `json:"drained,omitempty"`  // identity of the drain that is done for it
	Left     bool       `json:"left,omitempty"`     // that drain left pods
	Overdue  bool       `json:"overdue,omitempty"`  // past maxNodeMaintenanceTime, and said
	SlotOver bool       `json:"slotOver,omitempty"` // others have its slot: it does not drain, and had one for maxTimeWithoutDrain
	Ended    *End       `json:"ended,omitempty"`    // given up, until the value changes
}

// Progress counts the pods of one request.
type Progress struct {
	Left  int       `json:"left"`            // pods still on the node, or not finished
	Total int       `json:"total,omitempty"` // pods that were to leave; 0: not known
	At    time.Time `json:"at"`              // when it was written
}

// Why a request was given up.
const (
	EndAborted = "aborted" // its drain ran out of time, and onTimeout was abort
	EndExpired = "expired" // past maxNodeMaintenanceTime, and releaseExpired is set
)

// End says that a request was given up: it is not tried again until its value is another one.
type End struct {
	Why   string `json:"why"`
	Value string `json:"value"` // Request.Identity of the value that was given up
}

// ParseStatus reads what String wrote. A status that cannot be read, or whose phase is none, is none.
func ParseStatus(value string) (Status, bool) {
	var s Status
	if err := json.Unmarshal([]byte(value), &s); err != nil {
		return Status{}, false
	}
	if !s.Phase.Holds() && s.Phase != Pending && s.Phase != Invalid {
		return Status{}, false
	}
	return s, true
}

// String is the status as the annotation holds it.
func (s Status) String() string { return compact(s) }

// Cordon is the value of status.maint.dev/cordoned: for whom a node is cordoned, how it was found, and which
// pods have left it since. It is written in the same patch as spec.unschedulable.
type Cordon struct {
	By      []string   `json:"by"`                // claimants, sorted
	Node    string     `json:"node,omitempty"`    // uid: an earlier node of the name is another
	Before  bool       `json:"before"`            // was unschedulable already: it stays so when the last one leaves
	At      time.Time  `json:"at"`                // when the record began
	Undone  bool       `json:"undone"`            // somebody else uncordoned the node meanwhile: it is left alone
	Handed  *time.Time `json:"handed,omitempty"`  // when it was kept for a plan that is next and has not claimed it yet
	Drained []Drained  `json:"drained,omitempty"` // passes that are done since; none covers another
}

// Drained is one pass that is done: which pods it was about.
type Drained = drain.Pass

// ParseCordon reads what String wrote; a record that cannot be read is none.
func ParseCordon(value string) (*Cordon, bool) {
	var c Cordon
	if err := json.Unmarshal([]byte(value), &c); err != nil || value == "null" {
		return nil, false
	}
	c.By = sortedSet(c.By)
	return &c, true
}

// String is the record as the annotation holds it.
func (c Cordon) String() string { return compact(c) }

// With is the record when another claimant wants the node cordoned. It is a new one where there is none, and
// where plans alone stand in it while the node is schedulable: somebody uncordoned what they had left. The
// claimant cordons the node in the same patch, where it is schedulable, unless the record is Undone.
func (c *Cordon) With(claimant string, unschedulable bool, now time.Time) *Cordon {
	if c == nil || !unschedulable && !slices.ContainsFunc(c.By, isRequestor) {
		return &Cordon{By: []string{claimant}, Before: unschedulable, At: stamp(now)}
	}
	next := *c
	next.Handed = nil
	next.By = sortedSet(append(slices.Clone(c.By), claimant))
	return &next
}

// Without is the record when a claimant does not want the node cordoned any more, nil where it was the last,
// and whether the node is to be uncordoned in the same patch: not where it was cordoned before us, and not
// where somebody else has uncordoned it since.
func (c *Cordon) Without(claimant string) (next *Cordon, uncordon bool) {
	if c == nil {
		return nil, false
	}
	left := *c
	left.By = slices.DeleteFunc(slices.Clone(c.By), func(by string) bool { return by == claimant })
	if len(left.By) > 0 {
		return &left, false
	}
	return nil, !c.Before && !c.Undone
}

// covers says whether what has left the node is all that a drain asks.
func (c *Cordon) covers(o drain.Options) bool {
	return c != nil && !c.Undone && slices.ContainsFunc(c.Drained, func(d Drained) bool { return d.Covers(o) })
}

const planPrefix = "plan:"

// PlanClaimant names a plan among claimants. Requestors are named as they are;
// no requestor's name holds a colon.
func PlanClaimant(namespace, name string) string { return planPrefix + namespace + "/" + name }

// IsPlan says whether a claimant is a plan, not a requestor.
func IsPlan(claimant string) bool { return strings.HasPrefix(claimant, planPrefix) }

// PlanOf is the plan of this cluster that a claimant is, if it is one.
func PlanOf(claimant string) (namespace, name string, is bool) {
	plan, is := strings.CutPrefix(claimant, planPrefix)
	namespace, name, _ = strings.Cut(plan, "/")
	return namespace, name, is && !IsElsewhere(claimant)
}

// PlanElsewhere names a plan of another cluster, by its uid, too: one here may have its name.
func PlanElsewhere(namespace, name, uid string) string { return PlanClaimant(namespace, name+"@"+uid) }

// IsElsewhere says whether a claimant is a plan of another cluster, whose agent has the node.
func IsElsewhere(claimant string) bool { return IsPlan(claimant) && strings.Contains(claimant, "@") }

// ClaimantName is a claimant as people say it: the plan by its namespace and name, a requestor as it is.
func ClaimantName(claimant string) string {
	plan, is := strings.CutPrefix(claimant, planPrefix)
	if !is {
		return claimant
	}
	if name, _, elsewhere := strings.Cut(plan, "@"); elsewhere {
		return "plan " + name + " of another cluster"
	}
	return "plan " + plan
}

func isRequestor(claimant string) bool { return !IsPlan(claimant) }

func compact(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return "{}" // texts, numbers and instants: JSON can say them all
	}
	return string(out)
}

func sortedSet(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out)
}

// stamp is an instant as annotations hold it.
func stamp(now time.Time) time.Time { return now.UTC().Truncate(time.Second) }

// NodeProgress is the value of status.maint.dev/progress on a node: how far it is on
// the way to those who asked for it. It is absent where nothing is on the way.
type NodeProgress struct {
	Step Phase    `json:"step"` // the furthest phase of them: Scheduled, Cordoning, WaitingForPods or Draining
	For  []string `json:"for"`  // requestors, sorted
	*PodCount
}

// PodCount is how many pods have left, or finished. It is absent where they have not been counted.
type PodCount struct {
	Done    int `json:"done"`
	Total   int `json:"total"` // 0: not known how many there were
	Left    int `json:"left"`
	Percent int `json:"percent"` // of Total
}

// String is the progress as the annotation holds it.
func (p NodeProgress) String() string { return compact(p) }

// progress is how far the node is, by what the statuses are about to say; empty:
// nothing is on the way. It changes with them alone, and so no more often.
func (w *work) progress() string {
	var p NodeProgress
	order := []Phase{Scheduled, Cordoning, WaitingForPods, Draining}
	for _, s := range w.states {
		if !s.next.Phase.preparing() {
			continue
		}
		p.For = append(p.For, s.name())
		further := slices.Index(order, s.next.Phase) - slices.Index(order, p.Step)
		if further > 0 {
			p.Step, p.PodCount = s.next.Phase, nil
		}
		if s.next.Progress != nil && further >= 0 {
			p.PodCount = s.next.Progress.count()
		}
	}
	if len(p.For) == 0 {
		return ""
	}
	slices.Sort(p.For)
	return p.String()
}

func (p Progress) count() *PodCount {
	c := &PodCount{Total: p.Total, Left: p.Left, Done: max(p.Total-p.Left, 0)}
	if p.Total > 0 {
		c.Percent = 100 * c.Done / p.Total
	}
	return c
}
