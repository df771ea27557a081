// Package check judges what agents did by what others wrote down: the API server's
// audit log, what a receiver of webhooks was sent, and the state at the end. It
// knows the wire format of plans, runs and ledgers as the documentation has it, and
// shares no code with the agent: a fault that both had would not be seen.
package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// Wire names, as in docs/.
const (
	agentUser = harness.AgentUser
	runExtra  = "maint.dev/run"
	// wakingExtra is the value of runExtra on what wakes a HibernatePlan's targets.
	wakingExtra = "waking"
	finalizer   = "maint.dev/run"
	labelKind   = "maint.dev/kind"
	labelPlan   = "maint.dev/plan"
	labelPh     = "maint.dev/phase"
	pauseKey    = "maint.dev/pause"
)

// Send is when a request left its process, as the proxy in between saw it.
type Send struct {
	At      time.Time
	Process string
}

// Delivery is a webhook as its receiver got it.
type Delivery struct {
	At      time.Time
	Sent    time.Time // no earlier than its sender dialled
	Process string    // who sent it; empty: not known
	Path    string
	Key     string // Idempotency-Key: run/step
	Attempt string
}

// run and step are the two parts of the key.
func (d Delivery) split() (run, step string) {
	run, step, _ = strings.Cut(d.Key, "/")
	return run, step
}

// Finding is a promise that was broken.
type Finding struct {
	Checker string
	What    string
	At      time.Time
}

// String is the finding on one line.
func (f Finding) String() string {
	if f.At.IsZero() {
		return f.Checker + ": " + f.What
	}
	return fmt.Sprintf("%s: %s %s", f.Checker, f.At.Format("15:04:05.000"), f.What)
}

// History is all that was written down.
type History struct {
	Audit      []harness.AuditEvent
	Sends      map[string]Send // by audit id
	Deliveries []Delivery
}

// write is a request that changed something and was answered so.
type write struct {
	harness.AuditEvent
	sent      time.Time // by its process, or, where no proxy saw it, received
	committed time.Time // no later than this, in the order of versions
	process   string    // empty: not an agent
	version   uint64
	object    object
}

// object is what the checkers read of an object.
type object struct {
	Metadata struct {
		Namespace         string            `json:"namespace"`
		Name              string            `json:"name"`
		UID               string            `json:"uid"`
		ResourceVersion   string            `json:"resourceVersion"`
		CreationTimestamp time.Time         `json:"creationTimestamp"`
		DeletionTimestamp *time.Time        `json:"deletionTimestamp"`
		Labels            map[string]string `json:"labels"`
		Annotations       map[string]string `json:"annotations"`
		Finalizers        []string          `json:"finalizers"`
	} `json:"metadata"`
	Data map[string]string `json:"data"`
	Spec struct {
		HolderIdentity *string `json:"holderIdentity"`
		Replicas       *int32  `json:"replicas"`
		Suspend        *bool   `json:"suspend"`
	} `json:"spec"`
}

func mutates(verb string) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, verb)
}

func dry(e harness.AuditEvent) bool { return strings.Contains(e.URI, "dryRun=All") }

// review says whether a request only asks: it is created and changes nothing.
func review(e harness.AuditEvent) bool {
	return e.Object.Group == "authorization.k8s.io" || e.Object.Group == "authentication.k8s.io" || e.Object.Subresource == "token"
}

// byAgent says whether the agent sent a request, as itself or as a plan's account.
func byAgent(e harness.AuditEvent) bool { return e.User.Username == agentUser }

// sentAt is when a request left its process, and which one that was.
func (h History) sentAt(e harness.AuditEvent) (time.Time, string) {
	if s, ok := h.Sends[e.ID]; ok {
		return s.At, s.Process
	}
	return e.Received.Time, ""
}

// writes are the accepted changes in the order in which they were committed: by
// version, and where a kind's answers were not written down, by the time of the answer.
func (h History) writes() []write {
	var out []write
	for _, e := range h.Audit {
		if e.Stage != "ResponseComplete" || !mutates(e.Verb) || e.Status.Code >= 300 || e.Status.Code == 0 || dry(e) || review(e) {
			continue
		}
		w := write{AuditEvent: e, committed: e.Answered.Time}
		w.sent, w.process = h.sentAt(e)
		if len(e.Response) > 0 {
			_ = json.Unmarshal(e.Response, &w.object) // another kind's fields are left out
		}
		w.version, _ = strconv.ParseUint(w.object.Metadata.ResourceVersion, 10, 64)
		out = append(out, w)
	}
	return inOrder(out)
}

// inOrder sorts writes. Versions and times may contradict each other: an answer can be
// late, and a patch that changes nothing is answered with the version that stands. So a
// write with a version was committed no later than any answer with a later one, and
// only that instant is compared with those of writes without a version.
func inOrder(all []write) []write {
	var versioned, others []write
	for _, w := range all {
		if w.version > 0 {
			versioned = append(versioned, w)
		} else {
			others = append(others, w)
		}
	}
	byAnswer := func(a, b write) int { return a.committed.Compare(b.committed) }
	slices.SortStableFunc(versioned, func(a, b write) int {
		return cmp.Or(cmp.Compare(a.version, b.version), byAnswer(a, b))
	})
	for i := len(versioned) - 2; i >= 0; i-- {
		if next := versioned[i+1].committed; next.Before(versioned[i].committed) {
			versioned[i].committed = next
		}
	}
	out := slices.Concat(versioned, others)
	slices.SortStableFunc(out, byAnswer) // which leaves versions in their order
	return out
}

// step is a step's record in a journal.
type step struct {
	Path     string `json:"path"`
	Phase    string `json:"phase"`
	Reason   string `json:"reason"`
	Message  string `json:"message"`
	Restored string `json:"restored"`
}

func (s step) ended() bool {
	return s.Phase == "Succeeded" || s.Phase == "Failed" || s.Phase == "Skipped"
}

// journal is the part of a run that changes.
type journal struct {
	Phase     string     `json:"phase"`
	Reason    string     `json:"reason"`
	StartedAt *time.Time `json:"startedAt"`
	Section   string     `json:"section"`
	Steps     []step     `json:"steps"`
}

// fixed is the part of a run that does not.
type fixed struct {
	Plan    string `json:"plan"`
	PlanUID string `json:"planUID"`
	Request struct {
		Kind      string `json:"kind"`
		Slot      string `json:"slot"`
		Local     string `json:"local"`
		Label     string `json:"label"`
		TargetUID string `json:"targetUID"`
		Ordinal   int64  `json:"ordinal"`
		Rule      string `json:"rule"`
		UID       string `json:"uid"`
		Token     string `json:"token"`
	} `json:"request"`
	Spec struct {
		Description string `json:"description"`
	} `json:"spec"`
}

// identity is what makes a request the same request.
func (f fixed) identity() string {
	r := f.Request
	return strings.Join([]string{f.PlanUID, r.Kind, r.Local, r.Label, r.TargetUID, strconv.FormatInt(r.Ordinal, 10), r.Rule, r.UID, r.Token}, "|")
}

// state is a run as one write left it.
type state struct {
	write
	journal
}

// run is the life of one run's object.
type run struct {
	namespace, name string
	fixed           fixed
	creations       []write
	states          []state
	ended           *write // the write that ended it
}

// runs are all runs by name; the names are hashes and differ across namespaces.
func runs(writes []write) map[string]*run {
	out := map[string]*run{}
	for _, w := range writes {
		if w.Object.Resource != "configmaps" || w.object.Metadata.Labels[labelKind] != "run" || w.Verb == "delete" {
			continue
		}
		name := w.object.Metadata.Name
		r := out[name]
		if r == nil {
			r = &run{namespace: w.object.Metadata.Namespace, name: name}
			out[name] = r
		}
		r.add(w)
	}
	return out
}

func (r *run) add(w write) {
	if text := w.object.Data["run.yaml"]; text != "" && r.fixed.PlanUID == "" {
		_ = unmarshalYAML(text, &r.fixed)
	}
	if w.Verb == "create" {
		r.creations = append(r.creations, w)
	}
	s := state{write: w}
	_ = json.Unmarshal([]byte(w.object.Data["journal.json"]), &s.journal)
	r.states = append(r.states, s)
	if r.ended == nil && !slices.Contains(w.object.Metadata.Finalizers, finalizer) && slices.Contains([]string{"Succeeded", "Failed", "Aborted", "Replaced"}, w.object.Metadata.Labels[labelPh]) {
		r.ended = &w
	}
}

// sorted are the runs by name, so that findings come in one order.
func sorted(all map[string]*run) []*run {
	out := make([]*run, 0, len(all))
	for _, r := range all {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *run) int { return strings.Compare(a.name, b.name) })
	return out
}
