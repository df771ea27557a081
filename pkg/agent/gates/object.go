package gates

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

// opinion is what policies say of one object.
type opinion struct {
	question policy.Query        // with all policies that mean the object by the watch's field
	anyField policy.Query        // and by any field: what the object tells is the same whoever writes it
	wants    []knob.DesiredState // of the policies of this watch
	why      map[string]string
	leaving  bool
	wake     time.Time
	pending  bool      // its controller would change something
	again    time.Time // when to look again at what it is fed from
}

// reconcileObject closes or opens one object, as its policies say now.
func (g *Controller) reconcileObject(ctx context.Context, k types.NamespacedName) (time.Time, error) {
	w := g.watch(k.Namespace)
	if w == nil {
		return time.Time{}, nil
	}
	w.addInFlight(1)
	defer w.addInFlight(-1)
	o := w.get(k.Name)
	if o == nil {
		w.forget(k.Name)
		g.enqueuePolicies(w)
		return time.Time{}, nil
	}
	now := g.Now()
	switch {
	case o.tooMuch != "": // what is closed stays closed
		if w.leave(k.Name, o.tooMuch) {
			g.enqueuePolicies(w)
		}
		if w.mayAsk(now) {
			for _, o := range g.set.budget.fitting(w, w.use.Kept()) {
				w.use.Again(o.Namespace, o.Name)
			}
		}
		return now.Add(queue.ResyncPeriod), nil
	case w.wrote.Stale(o.UID, o.ResourceVersion): // the watch will bring what we wrote
		return time.Time{}, nil
	case g.Clients.ClockDoubt() != "": // neither closed nor opened
		return now.Add(queue.ResyncPeriod), nil
	}
	said, err := g.opinion(ctx, w, o, now)
	if err != nil {
		return time.Time{}, err
	}
	if len(said.question.Gates) > 0 {
		source, again := g.source(ctx, w, o)
		said.pending, said.again = w.knob.Pending(o.fields, source), again
	}
	memory, lost := knob.ReadMemory(o.Annotations[annotations.StatusGate])
	verdict, err := w.knob.Decide(knob.Facts{Object: o.fields, Memory: memory, Foreign: o.foreign, Deleting: o.DeletionTimestamp != nil}, said.wants...)
	if err != nil {
		g.note(w, o, said, err.Error())
		return now.Add(queue.ResyncPeriod), nil
	}
	if lost != nil {
		g.Events.Event(w.reference(o), corev1.EventTypeWarning, "GateMemoryLost", document.Cut(lost.Error()+"; if it is closed, the agent does not open it", document.MaxMessage))
	}
	if problem := w.orphans(o); problem != "" && closes(verdict.Action) {
		g.note(w, o, said, problem)
		return now.Add(queue.ResyncPeriod), nil
	}
	if retryAt := g.leftOpen(w, o, verdict.Action, now); !retryAt.IsZero() {
		g.note(w, o, said, w.contested(o, verdict.Action))
		return retryAt, nil
	}
	diff, retryAt := g.annotationsOf(w, o, verdict, said, now)
	problem, err := g.write(ctx, w, o, verdict, diff, said, now)
	if err != nil {
		return time.Time{}, err
	}
	if problem != "" {
		said.wake = queue.Soonest(said.wake, now.Add(queue.ResyncPeriod))
	}
	return queue.Soonest(queue.Soonest(said.wake, retryAt), g.note(w, o, said, problem)), nil
}

// opinion asks every policy of a watch of one object.
func (g *Controller) opinion(ctx context.Context, w *gateWatch, o *gateObject, now time.Time) (opinion, error) {
	out := opinion{question: policy.Query{Namespace: o.Namespace, Own: annotations.Stanza(o.Annotations)}, why: map[string]string{}}
	out.anyField = out.question
	all, err := g.policiesOf(ctx, w, o)
	if err != nil {
		return opinion{}, err
	}
	own := func(n policyMatch) bool { return n.counts || n.by.key.As == w.key.As }
	out.question.Gates = refsOf(all, func(n policyMatch) bool { return own(n) && w.sameField(n.by) })
	out.anyField.Gates = refsOf(all, func(n policyMatch) bool { return n.counts })
	w.mu.Lock()
	policies := map[types.NamespacedName][]policy.GateEntry{}
	for k, entries := range w.policies {
		policies[k] = entries
	}
	w.mu.Unlock()
	for k, entries := range policies {
		name := k.String()
		meant := false
		for _, e := range entries {
			out.leaving = out.leaving || e.Leaving
			meant = meant || !e.Leaving && w.means(e, o)
		}
		ref := policy.PolicyRef{Name: k.Name, Namespace: k.Namespace}
		switch {
		case meant && !slices.Contains(out.question.Gates, ref): // it has just gone, and is about to be told
		case meant:
			q := out.question
			q.Gates = []policy.PolicyRef{ref}
			v := g.Stores.Gates.Ask(q).Verdict(now)
			out.wants, out.why[name] = append(out.wants, knob.DesiredState{Policy: name, Closed: !v.Permitted}), "policy "+name+": "+v.Reason
			if again := policy.AskAgain(v, now); again != nil {
				out.wake = queue.Soonest(out.wake, *again)
			}
		case !slices.Contains(out.question.Gates, ref):
			out.wants, out.why[name] = append(out.wants, knob.DesiredState{Policy: name}), "policy "+name+" no longer names it"
		}
	}
	slices.SortFunc(out.wants, func(a, b knob.DesiredState) int { return strings.Compare(a.Policy, b.Policy) })
	return out, nil
}

// policyMatch is a policy that means an object, and the watch by which it does.
type policyMatch struct {
	ref    policy.PolicyRef
	by     *gateWatch
	counts bool // in what the object's status says
}

// refsOf are such policies, each once, by name.
func refsOf(all []policyMatch, such func(policyMatch) bool) []policy.PolicyRef {
	var out []policy.PolicyRef
	for _, n := range all {
		if such(n) && !slices.Contains(out, n.ref) {
			out = append(out, n.ref)
		}
	}
	slices.SortFunc(out, func(a, b policy.PolicyRef) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return out
}

// policiesOf are the policies that mean an object, by whatever field. Anybody's policy may name
// it: where those of several accounts do, one counts that holds the object, or whose account may
// write it. Every watch of the object has the same answer: two that had not would write its status
// against each other without end.
func (g *Controller) policiesOf(ctx context.Context, w *gateWatch, o *gateObject) ([]policyMatch, error) {
	memory, _ := knob.ReadMemory(o.Annotations[annotations.StatusGate])
	all := slices.DeleteFunc(g.matchesOf(w, o), func(n policyMatch) bool {
		_, there := g.Stores.Gates.State(n.ref.Namespace, n.ref.Name)
		return !there
	})
	several := slices.ContainsFunc(all, func(n policyMatch) bool { return n.by.key.As != all[0].by.key.As })
	for i, n := range all {
		if all[i].counts = !several || slices.Contains(memory[n.by.knob.Pointer()].By, n.ref.Namespace+"/"+n.ref.Name); all[i].counts {
			continue
		}
		var err error
		if all[i].counts, err = g.mayWrite(ctx, n.by, o.Name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// matchesOf are the policies whose rules in force mean an object, by any field.
func (g *Controller) matchesOf(w *gateWatch, o *gateObject) []policyMatch {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []policyMatch
	for k, p := range g.policies {
		for _, v := range p.naming(o, w.sameObjects) {
			out = append(out, policyMatch{ref: policy.PolicyRef{Name: k.Name, Namespace: k.Namespace}, by: v})
		}
	}
	return out
}

// annotationsOf are the annotations of an object that are to change, in a merge patch. Those that
// somebody takes away again and again are written later and later; retryAt is when, where it is not
// now. What goes with a change of the knob always goes with it.
func (g *Controller) annotationsOf(w *gateWatch, o *gateObject, v knob.Verdict, said opinion, now time.Time) (diff map[string]any, retryAt time.Time) {
	diff = map[string]any{}
	want := g.status(w, o, said, said.pending || g.pendingElsewhere(w, o), now)
	want[annotations.StatusGate] = v.Memory.String()
	for name, value := range want {
		if o.Annotations[name] != value {
			diff[name] = status.OrNull(value)
		}
	}
	if len(diff) == 0 || v.Patch != nil {
		return diff, time.Time{}
	}
	if retryAt = g.pauses.statuses.until(closedField{uid: o.UID}, now); !retryAt.IsZero() {
		return nil, retryAt
	}
	return diff, time.Time{}
}

// write makes an object what it should be, in one patch that the API server takes
// only for what was looked at. It says why it could not, where another attempt
// would not help.
func (g *Controller) write(ctx context.Context, w *gateWatch, o *gateObject, v knob.Verdict, diff map[string]any, said opinion, now time.Time) (string, error) {
	if len(diff) == 0 && v.Patch == nil || g.DryRun {
		return "", nil
	}
	metadata := map[string]any{"uid": o.UID, "resourceVersion": o.ResourceVersion}
	if len(diff) > 0 {
		metadata["annotations"] = diff
	}
	body, err := json.Marshal(merged(map[string]any{"metadata": metadata}, v.Patch))
	if err != nil {
		return "", err
	}
	after, err := w.client.Patch(ctx, o.Name, types.MergePatchType, body, client.PatchOptions())
	err = executors.Unsaid(w.key.Resource.GroupResource(), err)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil // the watch will say so
	case apierrors.IsConflict(err):
		return "", queue.ErrConflict
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("the ServiceAccount %s of namespace %s may not patch %s: grant patch on them to it (%s)", w.key.As.Name, w.key.As.Namespace, w.key, err), nil
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err):
		return fmt.Sprintf("%s/%s cannot be written: %s", w.kind.Kind, o.Name, err), nil
	case err != nil:
		return "", fmt.Errorf("write the gate on %s/%s as %s: %w", w.kind.Kind, cache.NewObjectName(o.Namespace, o.Name).String(), w.account().User(), err)
	}
	w.wrote.Expect(after.GetUID(), after.GetResourceVersion())
	g.counted(w, o, v, now)
	if v.Patch != nil && w.knob.ClosedOn(after.Object) != v.Closed {
		return fmt.Sprintf("%s of %s/%s did not stay as it was written: has its kind such a field?", w.knob.Pointer(), w.kind.Kind, o.Name), nil
	}
	g.announce(w, o, v, said, after)
	return "", nil
}

// merged is one map with another in it, section by section.
func merged(into, from map[string]any) map[string]any {
	for field, value := range from {
		below, isMap := value.(map[string]any)
		if have, both := into[field].(map[string]any); both && isMap {
			into[field] = merged(have, below)
			continue
		}
		into[field] = value
	}
	return into
}

func (g *Controller) watch(id string) *gateWatch {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.watches[id]
}
