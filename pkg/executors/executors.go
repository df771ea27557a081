// Package executors says what an executor is: something that moves one step of
// a run forward, a bounded piece at a time, so that it may be called again
// after any crash. The worlds that executors act on live in packages below.
package executors

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// State is what a pass says of its step.
type State int

// The states after a pass.
const (
	// NotYet: nothing is wrong, call again at WakeAt or when Watch moves.
	NotYet State = iota
	// Record: Before and ResumeAt must be journaled; then call again at once. Only
	// the first of each is kept, through every later attempt: a crash or a retry
	// must not make an effect of ours look like what was there. An executor that
	// finds one in its call therefore does not ask again.
	Record
	// Done: the step's effect is there.
	Done
	// Failed: the attempt failed. Whether there is another is the plan's affair,
	// unless the failure is Permanent.
	Failed
)

// Call is everything a pass may look at. The same call after a crash must be safe.
type Call struct {
	Plan       PlanRef
	Run        string // name of the run
	Path       string // of the step: scale-down, finally/scale-up
	Attempt    int    // 1 for the first
	OnRestart  string // exec: what becomes of an attempt that was cut off: fail (default) or retry
	DryRun     bool
	Target     Target
	Properties any // a pointer to the type's properties, templates expanded
	Recorded   Recorded
	Objects    Objects
	Nodes      Nodes
	Now        time.Time
	Clients    Clients
	Cloud      *Cloud // of a step that works in an account of a cloud; nil for all others
}

// PlanRef is the plan for which something is done, and as whom.
type PlanRef struct {
	Name      string
	UID       string // of the plan's object
	Namespace string // steps' objects default to it
	Account   string // ServiceAccount the clients act as
	Manager   string // field manager for writes
}

// Target is the plan's target; without one Object is nil.
type Target struct {
	Object *plan.ObjectRef
	UID    string
}

// Recorded is what the run's journal holds of the step.
type Recorded struct {
	Before   json.RawMessage // what an earlier pass asked to record
	ResumeAt *time.Time      // suspend: absolute end, if one was recorded
	Resumed  bool            // suspend: somebody said resume
	Memory   json.RawMessage // what the last pass asked to remember
	Approval *run.Approval   // approval: what somebody said
	Listed   bool            // for-each: its items are known
	Items    []run.Item      // for-each: those that its batches have done so far
	// RecoveredAt is when the run was put back from a backup, with what it had changed under
	// other uids. Zero: it was not.
	RecoveredAt time.Time
}

// Objects are what is known of the objects that steps look at and change.
type Objects struct {
	Required map[string][]map[string]any // objects of the step's requires, by name
	Watched  map[string]any              // the object whose change asked for the run, if one did
	// Holders are the other steps at work, of this run and of others, that hold what
	// they found in the object of a mark (see Mark), the newest first; with those that
	// ended a moment ago. Nil: there are none.
	Holders func(mark string) []Holder
}

// Nodes are how a step has nodes.
type Nodes struct {
	// Current is the node that a rollout has come to; empty outside of one.
	Current string
	// Earlier says of nodes when an earlier run of the plan was through with them.
	Earlier run.NodeTurns
	// Closed are the nodes that earlier steps of the run closed by the selector of an
	// uncordon, also those that it picks no more.
	Closed []run.DrainTarget
	// Drainer drains nodes beside the passes, and wakes the step.
	Drainer Drainer
	// Turn says whether a node may be taken now, or why not: the limits over all
	// maintenance of nodes are the agent's. Asking is wanting. Nil: the nodes are of another
	// cluster, whose limits nobody here knows, and a drain takes them one after another.
	Turn func(node string) (granted bool, why string)
	// Yield notes whether a drain of the step is blocked for good after its cordon, and
	// says whether its node's slot is to go to others meanwhile. Nil: never.
	Yield func(node string, blocked bool) bool
	// Resume says whether a drain that yielded its slot may go on, or why not. Asking
	// is wanting.
	Resume func(node string) (granted bool, why string)
	// Blocked is what stands in the way of the step's drain of a node for good, as
	// far as it was seen before the cordon; empty: nothing. Nil: nobody looks.
	Blocked func(node string) string
}

// RestoreTimeout is how long after a run or a plan that came out of a backup the objects may
// follow that it tells of (a guess: ConfigMaps are put back first, and workloads last; the
// cleanup of a run has no longer than 15 minutes).
const RestoreTimeout = 10 * time.Minute

// Holder is a step that changed an object and will put back what it found.
type Holder struct {
	Run, Path string
	Before    json.RawMessage // what it recorded
	Over      time.Time       // when that was put back, or its run ended; zero: it was not
}

// Mark tells an object apart from all others of all clusters. Those of other clusters carry
// their server's mark: another API server may be anybody's, and say any uid.
func Mark(uid, server string) string {
	if server == "" || uid == "" {
		return uid
	}
	return uid + "@" + server
}

// Clients are the worlds a step may reach, each already acting as the plan's
// ServiceAccount. No executor has any other way into the cluster.
type Clients struct {
	// Cluster is the name of the connector by which another cluster is reached, with the
	// rights of its credentials; empty: it is the plan's own cluster.
	Cluster string
	// Connection is the same for clients that reach the same cluster with the same
	// credentials; empty for the plan's own cluster.
	Connection string
	// Address is the same for the same server and authority, whatever the credentials;
	// empty for the plan's own cluster.
	Address string
	// Server is the same for the same server, whatever else; empty for the plan's own
	// cluster.
	Server string

	Kube    kube.Interface
	Dynamic dynamic.Interface
	Mapper  meta.RESTMapper
	// Metadata reads of objects who they are, and no more. Of another cluster alone.
	Metadata metadata.Interface
	// HTTP and Dial are bound to the outbound rules of the agent's configuration.
	HTTP *http.Client
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Sink is the URL of a sink of the agent's configuration, which is a secret.
	Sink func(ctx context.Context, name string) (string, error)
	// Fence is asked right before an effect that goes through no client above, as a
	// library's own requests: an error where another agent may lead by now. The
	// clients ask by themselves. Nil is no fence.
	Fence func() error
	// Config is for what no client above can do, as streams into a container. It
	// acts as the same account.
	Config *rest.Config
	// Certificate hears of certificates by which others are reached, and when they
	// end. Nil: nobody listens.
	Certificate func(c Certificate, ends time.Time)
}

// Certificate is one by which a function is called.
type Certificate struct {
	Namespace string // of the plan
	Endpoint  string // of the function
	Side      string // server or client: whose it is
}

// Sides of a certificate.
const (
	ServerSide = "server"
	ClientSide = "client"
)

// Outcome is what a pass did.
type Outcome struct {
	State     State
	Permanent bool   // Failed: another attempt would fail the same way
	Reason    string // CamelCase: Forbidden, NotFound, Conflict, Timeout, …
	Message   string // one sentence for a person
	Outputs   map[string]any
	Before    json.RawMessage // with Record, and kept from then on
	ResumeAt  *time.Time      // suspend: absolute end to record
	Memory    json.RawMessage // with any state: replaces what is remembered; nil leaves it
	Changed   []run.Change
	// Listed says that Items, of the one kind, are what a for-each takes: with Record.
	Listed                bool
	Items                 []run.Item
	ItemVersion, ItemKind string

	WakeAt time.Time // NotYet: the latest instant to be called again; zero: only when Watch moves. Failed: no attempt before it; zero: the plan's backoff alone
	Watch  *Watch    // NotYet: the object whose next change wakes the step
}

// Watch names one object to watch as the plan's ServiceAccount, or, without a
// name, all that a label selector picks.
type Watch struct {
	Resource  schema.GroupVersionResource
	Namespace string // empty: cluster-scoped, or all namespaces
	Name      string
	Selector  string // as in a list's options; empty picks all
	// Every is the least time between two looks: what moves sooner is looked at
	// together. It is for looks that cost.
	Every time.Duration
}

// Selector is a plan's selector as a list's options take it; an empty one picks all.
func Selector(s selector.LabelSelector) (string, error) {
	read, err := s.Read()
	if err != nil {
		return "", fmt.Errorf("selector: %w", err)
	}
	return read.String(), nil
}

// Reasons that callers tell apart. Others are words for people.
const (
	ReasonForbidden        = "Forbidden"        // the account lacks a right
	ReasonDenied           = "Denied"           // the account may, but admission or a quota says no
	ReasonNoAccount        = "NoServiceAccount" // the account is not there
	ReasonNoConnection     = "NoConnection"     // what another cluster needs to be reached is missing, wrong or not allowed
	ReasonNotFound         = "NotFound"         // the object of the step is not there
	ReasonUnknownKind      = "UnknownKind"      // the cluster serves no such kind
	ReasonUnavailable      = "Unavailable"      // the API server does not answer; a later pass will tell
	ReasonConflict         = "Conflict"         // somebody wrote between our read and our write
	ReasonReplaced         = "Replaced"         // the object is another one of the same name
	ReasonInvalid          = "Invalid"          // the request can never be right
	ReasonChangedMeanwhile = "ChangedMeanwhile" // restore: somebody's change was left alone
	ReasonHanded           = "Handed"           // restore: another run set it since, and puts it back
	ReasonGone             = "Gone"             // restore: nothing is left to put back into
)

// Executor moves steps of one type.
type Executor interface {
	// Pass does one bounded piece and says where the step stands. It looks at
	// the world first: a pass whose effect is already there is Done without it.
	Pass(ctx context.Context, call Call) Outcome
}

// Restorer is an executor that can put back what was there before a step with
// restoreAfter. What somebody changed since is left alone and said (Reason
// "ChangedMeanwhile"); what is gone is Done (Reason "Gone").
type Restorer interface {
	Restore(ctx context.Context, call Call) Outcome
}

// Finder is a Restorer that can say what its steps found.
type Finder interface {
	// Found says, for a person, what would be put back; empty where it cannot tell.
	Found(before json.RawMessage) string
	// IsRestored says whether what call.Before holds is so again, or can never be. It
	// looks, and writes nothing.
	IsRestored(ctx context.Context, call Call) (bool, error)
}

// Drifter is an executor whose steps leave something that others are to leave as it is
// while the run lives.
type Drifter interface {
	// Drift looks whether what a step that succeeded did is still so, and writes nothing.
	// What another step at work set since is no drift. The second is nil where it is, the
	// third names what to watch until the next look.
	Drift(ctx context.Context, call Call) (found Drifted, watch *Watch, err error)
}

// Drifted is what a look at a step's effect found.
type Drifted struct {
	Kind, Name string     // of the object
	Drift      *run.Drift // nil: all is as the step left it
}

// Stopper is an executor whose work goes on in the cluster by itself and has to
// be ended when the step times out or the run is aborted.
type Stopper interface {
	Stop(ctx context.Context, call Call) error
}

// Requirer is an executor that takes the objects of its step's requires as they are. All
// others have of them what their properties say.
type Requirer interface {
	TakesRequired()
}

// Keeper is an executor whose effect is a lease: once its step succeeded, it is
// kept up while the run lives and given back when the run ends.
type Keeper interface {
	// Keep renews the lease and says in WakeAt when to renew it next. A failure is
	// tried again; it does not end the run.
	Keep(ctx context.Context, call Call) Outcome
	// Release gives it back. What cannot be given back expires by itself.
	Release(ctx context.Context, call Call) Outcome
}

// User is whom the API server of the call's clients names in its refusals.
func (c Call) User() string {
	if c.Clients.Cluster != "" {
		return Whoever
	}
	return "system:serviceaccount:" + c.Plan.Namespace + ":" + c.Plan.Account
}

// Actor is as whom the clients act, for people.
func (c Call) Actor() string {
	if c.Clients.Cluster != "" {
		return "the account of K8SCluster " + c.Clients.Cluster
	}
	return fmt.Sprintf("serviceaccount %s/%s", c.Plan.Namespace, c.Plan.Account)
}

// IdempotencyKey is the same for every delivery of a step, whatever crashes.
func (c Call) IdempotencyKey() string { return c.Run + "/" + c.Path }

// Fail is an outcome that may succeed at another attempt.
func Fail(reason, format string, args ...any) Outcome {
	return Outcome{State: Failed, Reason: reason, Message: document.Cut(fmt.Sprintf(format, args...), document.MaxMessage)}
}

// Refuse is an outcome that no other attempt can mend.
func Refuse(reason, format string, args ...any) Outcome {
	o := Fail(reason, format, args...)
	o.Permanent = true
	return o
}

// Set is the executors of a program, by step type. The zero value has none.
type Set struct{ byType map[string]Executor }

// NewSet is a set of the given executors, by step type.
func NewSet(byType map[string]Executor) Set { return Set{byType: maps.Clone(byType)} }

// For is the executor of a step type, if the set has one.
func (s Set) For(stepType string) (Executor, bool) {
	e, ok := s.byType[stepType]
	return e, ok
}
