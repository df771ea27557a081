// Package executors defines executors: an executor moves one step of a run forward by one bounded
// piece at a time, so that it may be called again after any crash. The packages below it hold the
// executors, one package for each world that they act on.
package executors

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// State is the state of a step after a pass.
type State int

// The states after a pass.
const (
	// NotYet: nothing is wrong; call again at WakeAt, or when Watch moves.
	NotYet State = iota
	// Record: write Before and ResumeAt to the journal, then call again at once. Only the first
	// record is kept, through all later attempts: after a crash or a retry, our own effect must
	// not be recorded as what was there before. An executor that finds a record in its call
	// therefore asks for none, unless it is Anew.
	Record
	// Done: the effect of the step is there.
	Done
	// Failed: the attempt failed. The plan decides whether there is another, unless the failure is
	// Permanent.
	Failed
)

// Call is everything that a pass may look at. The same call must be safe after a crash.
type Call struct {
	Plan       PlanRef
	Run        string // name of the run
	Path       string // of the step: scale-down, finally/scale-up
	Attempt    int    // 1 for the first
	OnRestart  string // exec: what happens to an attempt that was cut off: fail (default) or retry
	DryRun     bool
	Target     Target
	Properties any // a pointer to the type's properties, templates expanded
	Recorded   Recorded
	Objects    Objects
	Nodes      Nodes
	Now        time.Time
	Clients    Clients
	Cloud      *Cloud // for steps that work in a cloud account; nil for all others
	Own        bool   // notification: the agent itself speaks, and no step
}

// PlanRef is the plan for which something is done, and the account that it is done as.
type PlanRef struct {
	Name      string
	UID       string // of the plan's object
	Namespace string // the default namespace for objects of steps
	Account   string // the ServiceAccount that the clients act as
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
	ResumeAt *time.Time      // suspend: the end as an instant, if one was recorded
	Resumed  bool            // suspend: somebody resumed the run
	Memory   json.RawMessage // what the last pass asked to remember
	Approval *run.Approval   // approval: the answer that somebody gave
	Listed   bool            // for-each: its items are known
	Drift    *run.Drift      // what somebody changed of its effect, and which changes were accepted
	Items    []run.Item      // for-each: those that its batches have completed so far
	// ItemVersion and ItemKind are of the objects that a for-each has listed.
	ItemVersion, ItemKind string
	// RecoveredAt is when the run was restored from a backup, with objects that have other uids.
	// Zero: it was not.
	RecoveredAt time.Time
	// InterruptedAt is when the step ended otherwise than by success: a write that it sent until then
	// may still arrive (see LateRequest). Zero: it succeeded, or has not ended.
	InterruptedAt time.Time
}

// Objects are the objects that steps look at and change.
type Objects struct {
	Required map[string][]map[string]any // objects that the step requires, by name
	Watched  map[string]any              // the object whose change started the run, if one did
	// Holders are the other steps, of this run and of others, that have changed the object of a
	// mark (see Mark) and will restore it, the newest first; with those that ended a moment ago.
	// Nil: there are none.
	Holders func(mark string) []Holder
}

// Nodes is what steps that work on nodes need.
type Nodes struct {
	// Current is the node that a rollout has come to; empty outside of a rollout.
	Current string
	// Earlier says when an earlier run of the plan was finished with a node.
	Earlier run.NodeTurns
	// Closed are the nodes that earlier steps of the run cordoned by the selector of an uncordon
	// step, also those that the selector no longer picks, or by the name that it opens.
	Closed []run.DrainTarget
	// InterruptedAt is when the run was ended in the middle of a step that cordons: the cordon may still
	// arrive (see LateRequest). Zero: it was not.
	InterruptedAt time.Time
	// Drainer drains nodes between passes, and wakes the step.
	Drainer Drainer
	// Turn says whether a node may be taken now, or why not: the agent keeps the limits over all
	// maintenance of nodes. Asking makes the step a candidate. Nil: the nodes belong to another
	// cluster, whose limits are not known here; a drain takes them one after another.
	Turn func(node string) (granted bool, why string)
	// Yield reports whether a drain of the step is blocked for good after its cordon, and by what, and
	// says whether the slot of its node goes to others meanwhile. Nil: never.
	Yield func(node string, block nodes.Block) bool
	// Resume says whether a drain that yielded its slot may go on, or why not. Asking makes it a
	// candidate again.
	Resume func(node string) (granted bool, why string)
	// Blocked is what blocks the step's drain of a node for good, as far as it was seen before the
	// cordon; empty: nothing. Nil: nobody looks.
	Blocked func(node string) string
}

// RestoreTimeout is how long after a restore from a backup the objects of a run or a plan may
// follow it (a guess: backups restore ConfigMaps first and workloads last; the cleanup of a run has
// no more than 15 minutes).
const RestoreTimeout = 10 * time.Minute

// LateRequest is how long after it was sent a request that nobody saw answered may still take effect.
const LateRequest = hibernate.LateRequest

// LateError says that a request which nobody saw answered may still take effect: what it would leave
// cannot be ended yet.
type LateError struct{ Until time.Time }

func (e *LateError) Error() string {
	return "a request that was not answered may still arrive until " + e.Until.UTC().Format(time.RFC3339)
}

// Late is the error of a request that was sent until an instant and may still take effect now; nil: it cannot.
func Late(sent, now time.Time) *LateError {
	if until := sent.Add(LateRequest); now.Before(until) {
		return &LateError{until}
	}
	return nil
}

// Holder is a step that changed an object and will restore it.
type Holder struct {
	Run, Path string
	Before    json.RawMessage // what it recorded
	Over      time.Time       // when it was restored, or its run ended; zero: neither
}

// ObjectID identifies an object among those of all clusters. Objects of other clusters carry the mark
// of their server: another API server may be under anybody's control, and may report any uid.
func ObjectID(uid, server string) string {
	if server == "" || uid == "" {
		return uid
	}
	return uid + "@" + server
}

// mostAbroad is how many objects of a kind are kept of another cluster (a guess: Kubernetes knows
// 5,000 nodes, and the restore data of a target has room for some three thousand workloads).
const mostAbroad = 10_000

// TooMany is the error of a list of another cluster that has gone on to the n-th object of a kind;
// nil: so many are kept. Its API server is anybody's, and may list without end.
func (c Clients) TooMany(n int, what string) error {
	if c.Cluster == "" || n <= mostAbroad {
		return nil
	}
	return fmt.Errorf("K8SCluster %s shows more than %d %s", c.Cluster, mostAbroad, what)
}

// Sinks are those of the agent's configuration, as a namespace may use them.
type Sinks struct {
	// URL is that of a sink by its name. It is a secret.
	URL func(ctx context.Context, name string) (string, error)
	// Default is the name of the sink for steps that name none.
	Default func() (string, error)
}

// Clients are what a step can reach, each acting as the plan's ServiceAccount. An executor has no
// other access to the cluster.
type Clients struct {
	// Cluster is the connector of another cluster, whose credentials the clients use; empty: the
	// plan's own cluster.
	Cluster string
	// Connection is the same for clients that reach the same cluster with the same credentials;
	// empty for the plan's own cluster.
	Connection string
	// Address is the same for the same server and CA, whatever the credentials; empty for the
	// plan's own cluster.
	Address string
	// Server is the same for the same server, whatever its CA and credentials; empty for the
	// plan's own cluster.
	Server string

	Kube    kube.Interface
	Dynamic dynamic.Interface
	Mapper  meta.RESTMapper
	// Metadata reads the metadata of objects, and nothing else of them. Only for another cluster.
	Metadata metadata.Interface
	// HTTP and Dial obey the outbound rules of the agent's configuration.
	HTTP  *http.Client
	Dial  func(ctx context.Context, network, address string) (net.Conn, error)
	Sinks Sinks
	// FunctionTLS is the Secret with the client certificate of the agent's configuration, for
	// installed functions and nobody else; nil: the configuration names none. An error of
	// *agentconfig.SecretError has to be mended there.
	FunctionTLS func(ctx context.Context) (*corev1.Secret, error)
	// Fence is called right before an effect that bypasses the clients above, such as requests
	// that a library makes: it is an error where another agent may lead by now. The clients check
	// by themselves. Nil is no fence.
	Fence func() error
	// Config is for what no client above can do, such as streams into a container. It acts as the
	// same account.
	Config *rest.Config
	// Certificate is told of certificates that were used, and when they end. Nil: nobody listens.
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

// Outcome is the result of a pass.
type Outcome struct {
	State     State
	Permanent bool   // Failed: another attempt would fail in the same way
	Reason    string // CamelCase: Forbidden, NotFound, Conflict, Timeout, …
	Message   string // one sentence for people
	Outputs   map[string]any
	Before    json.RawMessage // with Record; kept from then on
	// Anew says, with any state, that what was recorded is over: nothing was written by it, and
	// somebody has changed what it speaks of, or the attempt has failed. Before replaces it, or
	// nothing does.
	Anew     bool
	ResumeAt *time.Time      // suspend: the end as an instant, to be recorded
	Memory   json.RawMessage // with any state: replaces what is remembered; nil keeps it
	Changed  []run.Change
	Listing  Listing // with Record, of a for-each

	WakeAt time.Time // NotYet: the latest time for the next call; zero: only when Watch moves. Failed: no attempt before it; zero: the plan's backoff alone
	Watch  *Watch    // NotYet: the object whose next change wakes the step
}

// Listing is what a for-each takes.
type Listing struct {
	// Listed says that Items, all of one kind, are what a for-each takes: with Record.
	Listed                bool
	Items                 []run.Item
	ItemVersion, ItemKind string
}

// Watch names one object to watch as the plan's ServiceAccount, or, without a name, all objects
// that a label selector picks.
type Watch struct {
	Resource  schema.GroupVersionResource
	Namespace string // empty: cluster-scoped, or all namespaces
	Name      string
	Selector  string // as in a list's options; empty picks all
	// Every is the minimum time between two looks, for looks that are expensive: changes in
	// between are handled together.
	Every time.Duration
}

// Selector is a plan's selector in the form of list options; an empty one picks all.
func Selector(s selector.LabelSelector) (string, error) {
	read, err := s.Read()
	if err != nil {
		return "", fmt.Errorf("selector: %w", err)
	}
	return read.String(), nil
}

// Reasons that callers tell apart. All others are only shown to people.
const (
	ReasonForbidden        = "Forbidden"        // the account lacks a right
	ReasonDenied           = "Denied"           // the account has the right, but admission or a quota refuses
	ReasonNoAccount        = "NoServiceAccount" // the account does not exist
	ReasonNoConnection     = "NoConnection"     // something that the connection to another cluster needs is missing, wrong or not allowed
	ReasonNotFound         = "NotFound"         // the object of the step does not exist
	ReasonUnknownKind      = "UnknownKind"      // the cluster serves no such kind
	ReasonUnavailable      = "Unavailable"      // the API server does not answer; a later pass decides
	ReasonConflict         = "Conflict"         // somebody wrote between our read and our write
	ReasonReplaced         = "Replaced"         // the object is another one of the same name
	ReasonInvalid          = "Invalid"          // the request can never succeed
	ReasonChangedMeanwhile = "ChangedMeanwhile" // restore: somebody's change was left alone
	ReasonHanded           = "Handed"           // restore: another run has set it since, and restores it
	ReasonGone             = "Gone"             // restore: there is nothing left to restore
)

// Executor moves steps of one type.
type Executor interface {
	// Pass does one bounded piece of work and returns the state of the step. It looks at the world
	// first: where the effect is already there, it is Done.
	Pass(ctx context.Context, call Call) Outcome
}

// Restorer is an executor that can restore what was there before a step with restoreAfter. What
// somebody else has changed since is left alone and reported (reason ChangedMeanwhile); an object
// that is gone is Done (reason Gone).
type Restorer interface {
	Restore(ctx context.Context, call Call) Outcome
}

// Finder is a Restorer that can say what its steps found.
type Finder interface {
	// Found describes for people what would be restored; empty where that is not known.
	Found(before json.RawMessage) string
	// IsRestored says whether the state of call.Before is there again, or can never be. It writes
	// nothing.
	IsRestored(ctx context.Context, call Call) (bool, error)
}

// Drifter is an executor whose effect others should leave alone while the run lives.
type Drifter interface {
	// Drift checks whether the effect of a step that succeeded is still there, and writes nothing.
	// What another active step has set since is no drift. The second result is nil without a
	// drift; the third is what to watch until the next look.
	Drift(ctx context.Context, call Call) (found Drifted, watch *Watch, err error)
}

// Drifted is the result of a look at the effect of a step.
type Drifted struct {
	Kind, Name string     // of the object
	Drift      *run.Drift // nil: all is as the step left it
}

// Stopper is an executor whose work goes on in the cluster by itself, and has to be stopped when
// the step times out or the run is aborted; a hold of a HibernatePlan also when the step fails.
// Without an error nothing goes on.
type Stopper interface {
	Stop(ctx context.Context, call Call) error
}

// Requirer is an executor that takes the objects of its step's requires as they are. All others see
// only the properties that were made from them.
type Requirer interface {
	TakesRequired()
}

// Keeper is an executor whose effect is a lease: once its step has succeeded, the lease is renewed
// while the run lives, and released when the run ends.
type Keeper interface {
	// Keep renews the lease and says in WakeAt when the next renewal is due. A failure is retried;
	// it does not end the run.
	Keep(ctx context.Context, call Call) Outcome
	// Release releases the lease. A lease that cannot be released expires by itself.
	Release(ctx context.Context, call Call) Outcome
}

// User is the user name that the API server puts into its refusals of the call's clients.
func (c Call) User() string {
	if c.Clients.Cluster != "" {
		return UnknownUser
	}
	return "system:serviceaccount:" + c.Plan.Namespace + ":" + c.Plan.Account
}

// Actor is the account that the clients act as, for people.
func (c Call) Actor() string {
	if c.Clients.Cluster != "" {
		return "the account of K8SCluster " + c.Clients.Cluster
	}
	return fmt.Sprintf("serviceaccount %s/%s", c.Plan.Namespace, c.Plan.Account)
}

// IdempotencyKey is the same for every delivery of a step, also after crashes.
func (c Call) IdempotencyKey() string { return c.Run + "/" + c.Path }

// Fail is the outcome of a failure that another attempt may overcome.
func Fail(reason, format string, args ...any) Outcome {
	return Outcome{State: Failed, Reason: reason, Message: document.Cut(fmt.Sprintf(format, args...), document.MaxMessage)}
}

// Refuse is the outcome of a failure that no other attempt can overcome.
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
