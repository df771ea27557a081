package gates

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/knob"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// note keeps how an object was left, for the metrics and its policies' condition,
// and says when to look again at what it is fed from.
func (g *Controller) note(w *gateWatch, o *gateObject, said opinion, problem string) time.Time {
	name := cache.NewObjectName(o.Namespace, o.Name).String()
	if said.leaving {
		g.enqueuePolicies(w)
	}
	if len(said.question.Gates) == 0 && problem == "" {
		w.forget(name)
		return time.Time{}
	}
	h := &HeldObject{Subject: g.gated(w, o, said.question), Namespace: o.Namespace, Name: o.Name, uid: o.UID, closed: w.knob.ClosedOn(o.fields)}
	h.wanted = said.pending
	if w.note(name, h, problem) {
		g.enqueuePolicies(w)
	}
	return said.again
}

// problem is the first thing that keeps a policy's gates from doing what they
// should; empty where there is none. certain leaves out what may pass by itself.
func (p *gatePolicy) problem(certain bool) string {
	var all []string
	said := map[string]bool{"": true}
	say := func(text string) {
		if !said[text] {
			said[text] = true
			all = append(all, text)
		}
	}
	for i, reason := range p.reasons {
		say(reason)
		if w := p.watches[i]; w != nil {
			w.mu.Lock()
			if trouble := w.use.Trouble(); trouble != nil && (!certain || !errors.Is(trouble, informer.ErrNotYet)) {
				say(trouble.Error())
			}
			for _, name := range slices.Sorted(maps.Keys(w.problems)) {
				say(w.problems[name])
			}
			w.mu.Unlock()
		}
	}
	switch len(all) {
	case 0:
		return ""
	case 1:
		return all[0]
	}
	return fmt.Sprintf("%s (and %d more)", document.Cut(all[0], document.MaxMessage-40), len(all)-1)
}

// Condition says on a policy how its gates do; none where it has none.
func (g *Controller) Condition(k types.NamespacedName) []metav1.Condition {
	g.mu.Lock()
	p := g.policies[k]
	why, refused := g.refused[k]
	g.mu.Unlock()
	if refused {
		return []metav1.Condition{{Type: "Gates", Status: metav1.ConditionFalse, Reason: why.reason, Message: document.Cut(why.message(), document.MaxMessage)}}
	}
	if p == nil || len(p.record.InForce()) == 0 {
		return nil
	}
	out := metav1.Condition{Type: "Gates", Status: metav1.ConditionTrue, Reason: "Held"}
	if problem := p.problem(false); problem != "" {
		out.Status, out.Reason, out.Message = metav1.ConditionFalse, "Refused", document.Cut(problem, document.MaxMessage)
		return []metav1.Condition{out}
	}
	names := map[string]bool{} // and whether it is closed
	for _, w := range p.watches {
		w.mu.Lock()
		for name, h := range w.seen {
			if slices.Contains(h.Uses, policy.PolicyRef{Name: k.Name, Namespace: k.Namespace}) {
				names[h.Kind+" "+name] = h.closed
			}
		}
		w.mu.Unlock()
	}
	var closed []string
	for name, is := range names {
		if is {
			closed = append(closed, name)
		}
	}
	out.Message = fmt.Sprintf("%d objects: %d closed, %d open", len(names), len(closed), len(names)-len(closed)) + closedSaid(closed)
	return []metav1.Condition{out}
}

// maxClosedNames is how many closed objects a condition names (a guess).
const maxClosedNames = 10

// closedSaid names what is closed.
func closedSaid(names []string) string {
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	more := ""
	if n := len(names) - maxClosedNames; n > 0 {
		names, more = names[:maxClosedNames], fmt.Sprintf(" and %d more", n)
	}
	return document.Cut(" (closed: "+strings.Join(names, ", "), document.MaxMessage-60) + more + ")"
}

// Enforced says of each policy with gates whether these do what they should.
func (g *Controller) Enforced() map[types.NamespacedName]bool {
	g.mu.Lock()
	names := slices.AppendSeq(slices.Collect(maps.Keys(g.policies)), maps.Keys(g.refused))
	g.mu.Unlock()
	out := map[types.NamespacedName]bool{}
	for _, k := range names {
		for _, c := range g.Condition(k) {
			out[k] = c.Status == metav1.ConditionTrue
		}
	}
	return out
}

// report says once, as an Event and in the log, why a policy's gates do not do
// what they should.
func (g *Controller) report(k types.NamespacedName, p *gatePolicy) {
	problem := p.problem(true)
	if problem == "" || problem == p.reported {
		return
	}
	p.reported = problem
	about, reason := g.Stores.Documents.Any(k), "GateRefused"
	if about == nil {
		about, reason = g.Stores.Documents.Any(types.NamespacedName{Namespace: k.Namespace, Name: annotations.GateName(k.Name)}), "GateNotOpened"
	}
	g.Log.Warn("a gate does not work", "policy", k.String(), "problem", problem)
	if about != nil {
		g.Events.Event(about, corev1.EventTypeWarning, reason, document.Cut(problem, document.MaxMessage))
	}
}

// status are the status annotations of an object; empty ones are to go. Only what a gate wrote is
// taken away, and what another controller of the agent writes is left to it: the two would write
// against each other without end.
func (g *Controller) status(w *gateWatch, o *gateObject, said opinion, pending bool, now time.Time) map[string]string {
	keys := w.ownStatus(o)
	out := map[string]string{}
	if len(said.anyField.Gates) == 0 {
		for _, key := range keys {
			if o.Annotations[annotations.StatusPermitted] != "" || o.Annotations[annotations.StatusGate] != "" {
				out[key] = ""
			}
		}
		return out
	}
	v := g.Stores.Gates.Ask(said.anyField).Verdict(now)
	for _, key := range keys {
		switch key {
		case annotations.StatusPermitted:
			out[key] = fmt.Sprint(v.Permitted)
		case annotations.StatusBehavior:
			out[key] = status.Behavior(o.Annotations[key], v, g.Stores.Gates.Strategy(said.anyField, now), now)
		case annotations.StatusConditions:
			out[key] = status.Conditions(o.Annotations[key], changeConditions(v, pending), now)
		}
	}
	return out
}

// ownStatus are the status annotations that gates write on an object, beside what they found of it.
// The conditions of documents and nodes, and what follows from them, are others' to write.
func (w *gateWatch) ownStatus(o *gateObject) []string {
	switch {
	case w.isDocument(o):
		return nil
	case w.key.Resource.GroupResource() == corev1.Resource("nodes"):
		return []string{annotations.StatusPermitted}
	}
	return []string{annotations.StatusPermitted, annotations.StatusBehavior, annotations.StatusConditions}
}

// isDocument says whether an object is a document, or a record of the agent.
func (w *gateWatch) isDocument(o *gateObject) bool {
	return w.key.Resource.GroupResource() == corev1.Resource("configmaps") && o.Labels[annotations.LabelKind] != ""
}

// means says whether a rule means an object. Documents and records are not held, whatever a rule
// says: another field in their data makes them invalid, among them the policy itself.
func (w *gateWatch) means(e policy.GateEntry, o *gateObject) bool {
	return e.Matches(o.Name, o.Labels) && !w.isDocument(o)
}

// pendingElsewhere says whether an object's controller would change something by what another
// field of it says.
func (g *Controller) pendingElsewhere(w *gateWatch, o *gateObject) bool {
	name := cache.NewObjectName(o.Namespace, o.Name).String()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, v := range g.watches {
		if v == w || !v.sameObjects(w) {
			continue
		}
		v.mu.Lock()
		h := v.seen[name]
		v.mu.Unlock()
		if h != nil && h.uid == o.UID && h.wanted {
			return true
		}
	}
	return false
}

// changeConditions say whether an object may be changed, and whether its controller would.
func changeConditions(v schedule.Verdict, waits bool) []metav1.Condition {
	paused := metav1.Condition{Type: policy.ChangesPaused, Status: metav1.ConditionTrue, Reason: "Restrictive", Message: document.Cut(v.Reason, document.MaxMessage)}
	if v.Permitted {
		paused.Status, paused.Reason = metav1.ConditionFalse, "Permissive"
	}
	pending := metav1.Condition{Type: "ChangesPending", Status: metav1.ConditionFalse, Reason: "Nothing", Message: "no change is known to wait"}
	if waits {
		pending.Status, pending.Reason, pending.Message = metav1.ConditionTrue, "Waits", "its controller has something to change"
	}
	return []metav1.Condition{paused, pending}
}

// announce sends the Event of what was done to an object.
func (g *Controller) announce(w *gateWatch, o *gateObject, v knob.Verdict, said opinion, after *unstructured.Unstructured) {
	kind, reason, message := corev1.EventTypeNormal, "", ""
	switch v.Action {
	case knob.Closing:
		reason, message = "GateClosed", "Closed by its gate"
	case knob.Opening:
		reason, message = "GateOpened", "Opened, as it was found"
	case knob.ClosesAgain:
		kind, reason, message = corev1.EventTypeWarning, "GateClosedAgain", "Somebody opened it while change is not permitted: it is closed again, and their value is put back when change is permitted"
	case knob.FoundClosed:
		reason, message = "GateFoundClosed", "Somebody else closed it: it stays closed when change is permitted"
	case knob.Releasing:
		reason, message = "GateLetGo", "No longer held: it is left as somebody else has set it"
	default:
		return
	}
	var why []string
	for _, want := range said.wants {
		why = append(why, said.why[want.Policy])
	}
	message += " (" + strings.Join(why, "; ") + ")"
	g.Events.Event(w.reference(o), kind, reason, document.Cut(message, document.MaxMessage))
	g.Log.Info("gate", "did", string(v.Action), "object", w.kind.Kind+"/"+cache.NewObjectName(o.Namespace, o.Name).String(), "version", after.GetResourceVersion(), "why", strings.Join(why, "; "))
}

// reference is an object as Events name it.
func (w *gateWatch) reference(o *gateObject) *corev1.ObjectReference {
	gvk := w.kind
	return &corev1.ObjectReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}
}
