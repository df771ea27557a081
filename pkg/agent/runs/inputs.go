package runs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/store"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/targets"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// Bounds of what is read for one step (guesses: more is a report, not a step).
const (
	maxRequired      = 500
	requiredPage     = 50 // objects of one request, so that large ones come few at a time
	maxRequiredBytes = 1 << 20
)

// prepare builds the call of a step: what it may look at is read as the plan's
// account, and every ${…} of its properties is evaluated. What is wrong with the
// step itself is its failure.
func (c *Controller) prepare(ctx context.Context, l *store.CachedRun, m workflow.Action, clients executors.Clients) (executors.Call, *executors.Outcome) {
	rec := l.Journal.Record(m.Path)
	call := executors.Call{
		Run: l.Run.Name, Plan: executors.PlanRef{Name: l.Run.Plan, UID: l.Run.PlanUID, Namespace: l.Run.Namespace, Account: plan.Account(l.Run.Spec), Manager: annotations.PlanManager(l.Run.Namespace, l.Run.Plan)}, Path: m.Path, Attempt: rec.Attempt,
		DryRun: l.Run.Request.DryRun, Target: executors.Target{Object: l.Run.Spec.Target, UID: targets.UIDOf(l.Run.TargetUID)},
		Recorded: executors.Recorded{Before: rec.Before, ResumeAt: rec.ResumeAt, Resumed: rec.Resumed != nil, Memory: rec.Memory, Approval: rec.Approval, Listed: rec.Listed, Drift: rec.Drift, Items: l.Run.ItemsDone(l.Journal, m.Path), ItemVersion: rec.ItemVersion, ItemKind: rec.ItemKind, RecoveredAt: recoveredAt(l.Object.CreationTimestamp.Time, l.Journal.StartedAt), InterruptedAt: interruptedAt(rec)}, OnRestart: m.Step.OnRestart,
		Objects: executors.Objects{Watched: l.Run.Watched, Holders: c.holders(l, m.Path)}, Now: c.Now(), Clients: clients,
	}
	if m.Step.Type == plan.TypeUncordon {
		call.Nodes.Closed, call.Nodes.InterruptedAt = l.Run.ClosedFor(l.Journal, m.Path), l.Journal.CordonInterruptedAt()
	}
	if cluster, _ := clusterAt(l.Run, ""); cluster.Name != clients.Cluster { // the target is on another one
		call.Target.Object, call.Target.UID = nil, ""
	}
	if ref, inCloud := l.Run.Tree().CloudAt(m.Path); inCloud {
		var failed *executors.Outcome
		if call.Cloud, failed = c.cloud(ctx, l, ref); failed != nil {
			return call, failed
		}
	}
	failed := c.inputsFor(l, clients).properties(ctx, m, &call)
	if failed != nil && (failed.Reason == executors.ReasonUnavailable || ctx.Err() != nil) { // what was cut off says nothing of the step
		failed.State, failed.Permanent, failed.WakeAt = executors.NotYet, false, queue.Latest(failed.WakeAt, c.Now().Add(retryDelay))
	}
	return call, failed
}

// cloud is the account of a cloud that a step works in.
func (c *Controller) cloud(ctx context.Context, l *store.CachedRun, ref connector.Reference) (*executors.Cloud, *executors.Outcome) {
	cloud, err := c.Clients.Accounts.Cloud(ctx, l.Account(), *l.Run.Connectors[ref.Key()].Cloud.AWS) // a run without it is not read
	var missing *executors.CredentialsError
	switch {
	case errors.As(err, &missing):
		return nil, &missing.Outcome
	case err != nil:
		out := executors.Fail(executors.ReasonUnavailable, "%s", err)
		out.State, out.WakeAt = executors.NotYet, c.Now().Add(retryDelay)
		return nil, &out
	}
	return cloud, nil
}

// recoveredAt is when a run was put back from a backup; zero: it was not.
func recoveredAt(made time.Time, started *time.Time) time.Time {
	if started == nil {
		return time.Time{}
	}
	return client.RecoveredAt(made, *started)
}

// interruptedAt is when a step ended otherwise than by success; zero: it did not.
func interruptedAt(rec *run.Record) time.Time {
	if rec.FinishedAt == nil || rec.Phase == run.StepSucceeded {
		return time.Time{}
	}
	return *rec.FinishedAt
}

// inputReader is what a step sees of the cluster.
type inputReader struct {
	run       *store.CachedRun
	account   client.Account
	clients   executors.Clients
	accounts  *client.Impersonator
	clientsAt func(ctx context.Context, l *store.CachedRun, path string, home executors.Clients) (executors.Clients, *executors.Outcome)
	turnsOf   func(ctx context.Context, l *store.CachedRun) (run.NodeTurns, error)
	nodes     Nodes
	now       func() time.Time
}

func (c *Controller) inputsFor(l *store.CachedRun, clients executors.Clients) inputReader {
	return inputReader{run: l, account: l.Account(), clients: clients, accounts: c.Clients.Accounts, clientsAt: c.clientsAt, turnsOf: c.turnsOf, nodes: c.Nodes, now: c.Now}
}

// properties evaluates a step's properties over what it may look at.
func (s inputReader) properties(ctx context.Context, m workflow.Action, call *executors.Call) *executors.Outcome {
	seen, failed := s.look(ctx, m.Path, m.Step)
	if failed != nil {
		return failed
	}
	call.Objects.Required = seen.Required
	expanded, err := executors.Expand(ctx, anyMap(m.Step.Own()), run.VarsAt(s.run.Run, s.run.Journal, m.Path, seen))
	if err != nil {
		return refusal("BadTemplate", err)
	}
	kind, _ := plan.StepTypeNamed(m.Step.Type)
	props := kind.New()
	if faults := document.DecodeValue(expanded, "properties", nil, false, props); len(faults) > 0 {
		return refusal("BadProperties", faults)
	}
	if s.clients.Cluster == "" {
		s.drains(ctx, m.Path, plan.DrainToPreview(props, call.DryRun), call)
	} else if m.Step.Type == plan.TypeDrain {
		var free bool
		if call.Nodes.Drainer, free = s.nodes.Drains().ForCluster(nodes.PlanClaimant(s.run.Run.Namespace, s.run.Run.Plan), s.clients); !free {
			return s.away(errors.New("the plans of this namespace already drain nodes of as many other clusters as is allowed at once"))
		}
	}
	if p, about := props.(interface{ OnNode(name string) }); about {
		p.OnNode(call.Nodes.Current)
	}
	if m.Step.Type == plan.TypeForEachNode && !call.Recorded.Listed {
		if call.Nodes.Earlier, err = s.turnsOf(ctx, s.run); err != nil {
			return s.away(err)
		}
	}
	if p, waits := props.(*plan.WaitProperties); waits && p.Resource == (plan.ResourceRef{}) {
		p.Resource = plan.ResourceRef{APIVersion: "v1", Kind: "Node", Name: call.Nodes.Current}
	}
	if p, asks := props.(*plan.ApprovalProperties); asks && p.Timeout == nil {
		p.Timeout = s.run.Run.Spec.ApprovalTimeout
	}
	call.Properties = props
	return nil
}

// drains is how a step has nodes of the plan's own cluster: under the limits of the agent.
func (s inputReader) drains(ctx context.Context, path string, ahead *drain.Options, call *executors.Call) {
	at := store.StepKey{Run: s.run.Key(), Path: path}
	call.Nodes.Current, call.Nodes.Drainer = s.node(path), s.nodes.Drains()
	call.Nodes.Turn = s.turn(ctx, at, call.Nodes.Current, ahead)
	call.Nodes.Blocked = func(node string) string { return s.nodes.BlockedBy(at, node, ahead) }
	call.Nodes.Yield = func(node string, block nodes.Block) bool { return s.nodes.Stalled(at, node, ahead, block) }
	call.Nodes.Resume = func(node string) (bool, string) { return s.nodes.Turn(at, node, ahead) }
}

// node is the node that a rollout has come to.
func (s inputReader) node(path string) string {
	name, _ := s.run.Run.RolloutNode(s.run.Journal, path)
	return name
}

// turn is how a step takes nodes. What a rollout has come to was granted to it;
// before its cordon it is looked at all the same.
func (s inputReader) turn(ctx context.Context, at store.StepKey, node string, ahead *drain.Options) func(string) (bool, string) {
	return func(wanted string) (bool, string) {
		if wanted == node {
			return s.nodes.Preflight(ctx, at, wanted, ahead)
		}
		return s.nodes.Turn(at, wanted, ahead)
	}
}

func refusal(reason string, err error) *executors.Outcome {
	out := executors.Refuse(reason, "%s", err)
	return &out
}

// unread is what an error in reading means: only what the API server says of the
// request itself is the step's failure.
func (s inputReader) unread(ctx context.Context, reason string, right authorizationv1.ResourceAttributes, err error) *executors.Outcome {
	asked := executors.Asked{As: s.caller().User(), Right: right, Missing: err.Error(), Denied: "not readable for now"}
	if out, is := executors.Refused(ctx, s.clients.Kube, s.now(), asked, err); is {
		return &out
	}
	if out, is := executors.TooLarge(err); is {
		return &out
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || passing(status.Status().Code) {
		return s.away(err)
	}
	return refusal(reason, err)
}

// caller is as whom it reads.
func (s inputReader) caller() executors.Call {
	return executors.Call{Plan: executors.PlanRef{Namespace: s.account.Namespace, Account: s.account.Name}, Clients: s.clients}
}

// actor is as whom it reads, in messages.
func (s inputReader) actor() string {
	if s.clients.Cluster != "" {
		return s.caller().Actor()
	}
	return s.account.User()
}

// at reads what a step at another path of the run speaks of, where that one works.
func (s inputReader) at(ctx context.Context, path string) (inputReader, *executors.Outcome) {
	if cluster, _ := clusterAt(s.run.Run, path); cluster.Name == s.clients.Cluster {
		return s, nil
	}
	home, err := s.accounts.Clients(s.account, s.run.Run.Name)
	if err != nil {
		return s, s.away(err)
	}
	var failed *executors.Outcome
	s.clients, failed = s.clientsAt(ctx, s.run, path, home)
	return s, failed
}

// passing says whether the same request may be answered otherwise later.
func passing(code int32) bool {
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
}

// away is an API server that does not answer as it should.
func (s inputReader) away(err error) *executors.Outcome {
	out := refusal(executors.ReasonUnavailable, err)
	out.WakeAt = s.now().Add(executors.RetryAfter(err))
	return out
}

// rightOn is a right on an object as a review asks for it.
func rightOn(verb string, mapping *meta.RESTMapping, namespace, name string) authorizationv1.ResourceAttributes {
	r := mapping.Resource
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		namespace = ""
	}
	return authorizationv1.ResourceAttributes{Verb: verb, Group: r.Group, Version: r.Version, Resource: r.Resource, Namespace: namespace, Name: name}
}

func anyMap(m map[string]any) any {
	if m == nil {
		return map[string]any{}
	}
	return expr.Whole(document.Clone(m))
}

// look reads what the expressions of a step speak of, and what it requires.
func (s inputReader) look(ctx context.Context, path string, step plan.Step) (run.Inputs, *executors.Outcome) {
	var seen run.Inputs
	var failed *executors.Outcome
	text := expressions(step.Own())
	if template, at, in := s.run.Run.Tree().TemplateOf(path); in {
		if seen.Params, failed = s.params(ctx, template, at); failed != nil {
			return seen, failed
		}
	}
	if s.run.Run.Spec.Target != nil && bytes.Contains(text, []byte("target")) {
		if seen.Target, failed = s.target(ctx); failed != nil {
			return seen, failed
		}
	}
	if bytes.Contains(text, []byte("each")) || bytes.Contains(text, []byte("node")) && s.node(path) != "" {
		if seen.Each, failed = s.each(ctx, path); failed != nil {
			return seen, failed
		}
	}
	if len(step.Requires) > 0 {
		if seen.Required, failed = s.required(ctx, step.Requires); failed != nil {
			return seen, failed
		}
	}
	return seen, nil
}

// target is the run's target, live, wherever the step works.
func (s inputReader) target(ctx context.Context) (map[string]any, *executors.Outcome) {
	s, failed := s.at(ctx, "")
	if failed != nil {
		return nil, failed
	}
	ref, from := *s.run.Run.Spec.Target, s.accounts.With(s.account, s.clients)
	u, err := targets.Read(ctx, from, ref)
	var gone targets.GoneError
	switch {
	case err == nil:
		return shown(u), nil
	case errors.As(err, &gone):
		return nil, refusal("TargetUnreadable", err)
	}
	mapping, unknown := from.Resolve(ref.APIVersion, ref.Kind)
	if client.UnknownKind(unknown) { // by the API server's own word: waiting does not help
		return nil, refusal(executors.ReasonUnknownKind, unknown)
	}
	if unknown != nil {
		return nil, s.away(unknown)
	}
	return nil, s.unread(ctx, "TargetUnreadable", rightOn("get", mapping, s.account.Namespace, ref.Name), err)
}

// expressions is the text of properties that hold a ${…}; empty when none does.
func expressions(properties map[string]any) []byte {
	b, err := json.Marshal(properties)
	if err != nil || !strings.Contains(string(b), "${") {
		return nil
	}
	return b
}

// params are the parameters of the template that a step stands in, evaluated
// where the template is used.
func (s inputReader) params(ctx context.Context, step plan.Step, path string) (map[string]any, *executors.Outcome) {
	there, failed := s.at(ctx, path)
	if failed != nil {
		return nil, failed
	}
	seen, failed := there.look(ctx, path, step)
	if failed != nil {
		return nil, failed
	}
	given, err := executors.Expand(ctx, anyMap(step.Properties), run.VarsAt(s.run.Run, s.run.Journal, path, seen))
	if err != nil {
		return nil, refusal("BadTemplate", err)
	}
	values, err := s.run.Run.Tree().Params(step, given.(map[string]any))
	if err != nil {
		return nil, refusal("BadParameters", err)
	}
	return values, nil
}

// each is the object that a loop has come to, live; nil when it is gone or was
// replaced: then the journal's word has to do.
func (s inputReader) each(ctx context.Context, path string) (map[string]any, *executors.Outcome) {
	item, loop, ok := s.run.Run.ItemOf(s.run.Journal, path)
	if !ok {
		return nil, nil
	}
	s, failed := s.at(ctx, loopOf(s.run.Run, path))
	if failed != nil {
		return nil, failed
	}
	from, mapping, failed := s.client(loop.APIVersion, loop.Kind, item.Namespace)
	if failed != nil {
		return nil, failed
	}
	u, err := from.Get(ctx, item.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && item.UID != "" && string(u.GetUID()) != item.UID {
		return nil, nil
	}
	if err != nil {
		return nil, s.unread(ctx, executors.ReasonForbidden, rightOn("get", mapping, cmp.Or(item.Namespace, s.account.Namespace), item.Name), fmt.Errorf("read %s/%s as %s, which needs get on %s: %w", loop.Kind, item.Name, s.actor(), mapping.Resource.GroupResource(), err))
	}
	return shown(u), nil
}

// required are the objects that a step asks for, by the names it gives them.
func (s inputReader) required(ctx context.Context, wanted []plan.Requirement) (map[string][]map[string]any, *executors.Outcome) {
	out, size := map[string][]map[string]any{}, 0
	for _, r := range wanted {
		list, failed := s.requirement(ctx, r)
		if failed != nil {
			return nil, failed
		}
		if len(list) == 0 && r.Required {
			missing := executors.Fail("RequiredMissing", "required.%s: there is no %s %s", r.Name, r.Kind, described(r))
			return nil, &missing
		}
		out[r.Name] = []map[string]any{}
		for _, u := range list {
			object := shown(&u)
			b, err := json.Marshal(object)
			if size += len(b); err != nil || size > maxRequiredBytes {
				return nil, refusal(executors.ReasonTooLarge, fmt.Errorf("requires: the objects have more than %d bytes in all: ask for fewer", maxRequiredBytes))
			}
			out[r.Name] = append(out[r.Name], object)
		}
	}
	return out, nil
}

func described(r plan.Requirement) string {
	if r.ObjectName != "" {
		return fmt.Sprintf("%q", r.ObjectName)
	}
	return "with labels " + selector.Text(r.MatchLabels)
}

func (s inputReader) requirement(ctx context.Context, r plan.Requirement) ([]unstructured.Unstructured, *executors.Outcome) {
	from, mapping, failed := s.client(r.APIVersion, r.Kind, r.Namespace)
	if failed != nil {
		return nil, failed
	}
	tell := func(verb string, err error) *executors.Outcome {
		return s.unread(ctx, executors.ReasonForbidden, rightOn(verb, mapping, cmp.Or(r.Namespace, s.account.Namespace), r.ObjectName), fmt.Errorf("read required.%s as %s, which needs %s on %s: %w", r.Name, s.actor(), verb, mapping.Resource.GroupResource(), err))
	}
	if r.ObjectName != "" {
		u, err := from.Get(ctx, r.ObjectName, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, tell("get", err)
		}
		return []unstructured.Unstructured{*u}, nil
	}
	var out []unstructured.Unstructured
	options := metav1.ListOptions{LabelSelector: selector.Text(r.MatchLabels), Limit: requiredPage}
	for size := 0; ; {
		page, err := from.List(ctx, options)
		if err != nil {
			return nil, tell("list", err)
		}
		for _, u := range page.Items {
			b, err := json.Marshal(u.Object)
			if size += len(b); err != nil || size > 2*maxRequiredBytes || len(out) >= maxRequired {
				return nil, refusal("TooMany", fmt.Errorf("required.%s: more than %d objects, or %d bytes: narrow matchLabels", r.Name, maxRequired, 2*maxRequiredBytes))
			}
			out = append(out, u)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	slices.SortFunc(out, func(a, b unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return out, nil
}

// client reads objects of a kind as the plan's account.
func (s inputReader) client(apiVersion, kind, namespace string) (dynamic.ResourceInterface, *meta.RESTMapping, *executors.Outcome) {
	mapping, err := executors.Mapping(s.clients.Mapper, apiVersion, kind)
	if meta.IsNoMatchError(err) {
		return nil, nil, refusal(executors.ReasonUnknownKind, fmt.Errorf("kind %s of %s is not known to this cluster: %w", kind, apiVersion, err))
	}
	if err != nil {
		return nil, nil, s.away(fmt.Errorf("look up kind %s of %s: %w", kind, apiVersion, err))
	}
	from := s.clients.Dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return from, mapping, nil
	}
	if namespace == "" {
		namespace = s.account.Namespace
	}
	return from.Namespace(namespace), mapping, nil
}

// shown is an object as expressions see it: a Secret without what it keeps, for
// what an expression yields ends up in journals and messages.
func shown(u *unstructured.Unstructured) map[string]any {
	object := u.DeepCopy()
	object.SetManagedFields(nil)
	return run.WithoutSecrets(object.Object)
}
